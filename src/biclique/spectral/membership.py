"""How sure a label is: probabilities of clusters, from the embedding alone.

For clusters a and b, let t be the coordinate from a to b in φ = v/√S, the functions that a random walk on K knows.
Where the walk moves in small steps, the spread Γ(t) of a step and the stationary density ρ(t) of the walk obey

    Γ(t) ρ(t) ∝ M(t) = Σ_{t_i > t} S_i (t_i − t̄),

because t is an eigenfunction (the Dirichlet form of φ and of the indicator of t_i > t). Hence u(t) = ∫ √(ρ/M) dt is the
coordinate in which steps have one length: distance across the boundary as the kernel measures it. In u two normal
distributions of one variance are fitted by EM, with the shares of the labels unless the rows speak against them. What
is fitted is log p_b/p_a, a line in u. Means less than two deviations apart are moved apart: see ``two_modes``.

A cluster may be drawn out along u: a curved one, whose far end is many steps away from its near end. Its spread then
says nothing about the overlap at the boundary. Then p_b is that of a boundary known up to one step, the least that the
kernel can see: the normal distribution function of the steps from the labels' boundary. A step of neighbourhoods is so
short that every cluster is many steps long: there the two normal distributions are always taken.

Rows far out are counted, but not placed. At order 2 these are √n rows of a cluster of n: ρ and M are averaged over as
many, so u is not known there. Orders above 2 send rows of low degree anywhere. That folds the outer part of a cluster
back toward its middle, and a quarter of the rows are not placed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import log_ndtr

from biclique._typing import FloatArray, IntArray

OUTER = 0.25
"""Largest share of each cluster, on the side away from the other one, that is counted but not placed."""

CELLS = 200
"""Cells between the two cuts in which EM counts rows."""

STEPS = 300
"""Most steps of EM."""

SETTLED = 1e-8
"""The rise of the mean log-likelihood that ends EM."""

TIE = 1e-9
"""How far below the label's, as a share, another probability stays at least."""

FEW_ROWS = 8
"""Two clusters with fewer rows than this, together, say nothing about how they overlap."""

DRAWN_OUT = 5.0
"""Steps of the walk in one deviation above which a cluster is drawn out."""

MODES = 2.0
"""Deviations between the means of two normal distributions up to which they have one mode, whatever their shares."""

FAR = 1e4
"""Standard deviations from which on a tail is its limit, to a relative 1e-16."""

LOG_NORMAL = 0.5 * np.log(2 * np.pi)
"""−log of the density of a standard normal distribution at 0."""


@dataclass(frozen=True)
class Odds:
    """log p_b/p_a of every pair a < b of clusters, as a piecewise linear function of a coordinate."""

    n_clusters: int
    directions: FloatArray  # (pairs, columns − 1)
    knots: list[FloatArray]  # of t, ascending, one array a pair
    values: list[FloatArray]  # log p_b/p_a at the knots

    def of_pair(self, coordinates: FloatArray, a: int, b: int) -> FloatArray:
        """log p_b/p_a of rows."""
        low, high = min(a, b), max(a, b)
        place = low * self.n_clusters - low * (low + 1) // 2 + high - low - 1
        found = np.interp(coordinates @ self.directions[place], self.knots[place], self.values[place])
        return np.asarray(found if a < b else -found)

    def probabilities(self, rows: FloatArray, labels: IntArray) -> FloatArray:
        """p_b/p_label by pairs, no more than 1, and divided by their sum. A row at the origin has equal ones."""
        coordinates, here = walk_coordinates(rows)
        log_odds = np.full((len(rows), self.n_clusters), -TIE)
        for a in range(self.n_clusters):
            own = np.flatnonzero((labels == a) & here)
            for b in range(self.n_clusters):
                if b != a and len(own):
                    log_odds[own, b] = np.minimum(self.of_pair(coordinates[own], a, b), -TIE)
        log_odds[np.arange(len(rows)), labels] = 0.0
        ratios = np.exp(log_odds)
        return np.asarray(ratios / ratios.sum(axis=1, keepdims=True))


def walk_coordinates(rows: FloatArray) -> tuple[FloatArray, np.ndarray]:
    """φ = v/√S of rows of the embedding, (n, columns − 1), and which rows have any."""
    first = rows[:, :1]
    here = first[:, 0] > 0
    return np.divide(rows[:, 1:], first, out=np.zeros_like(rows[:, 1:]), where=first > 0), here


def fit_odds(
    rows: FloatArray,
    labels: IntArray,
    weights: FloatArray,
    values: FloatArray,
    order: float,
    *,
    short_steps: bool = False,
) -> Odds:
    """The log-odds of every pair of clusters, from training rows, eigenvalues and the order of the cut.

    ``short_steps``: those of neighbourhoods, by whose length no cluster is judged to be drawn out.
    """
    k = int(labels.max()) + 1
    coordinates, here = walk_coordinates(rows)
    members = [np.flatnonzero((labels == j) & here) for j in range(k)]
    centres = np.array([_median_row(coordinates[own]) for own in members]).reshape(k, rows.shape[1] - 1)
    pairs = list(combinations(range(k), 2))
    directions = np.array([centres[b] - centres[a] for a, b in pairs]).reshape(len(pairs), rows.shape[1] - 1)
    lines = []
    for (a, b), direction in zip(pairs, directions, strict=True):
        both = np.concatenate([members[a], members[b]])
        t, w = coordinates[both] @ direction, weights[both]
        place = np.argsort(t, kind="stable")
        side = np.repeat([False, True], [len(members[a]), len(members[b])])[place]
        rate = float(direction**2 @ (1 - values) / max(direction @ direction, np.finfo(float).tiny))
        lines.append(_line(t[place], w[place], (w * rows[both, 0] ** 2)[place], side, rate, folded=order > 2))
    _settle([line for line in lines if isinstance(line, _Line)])
    return Odds(k, directions, [line.knots for line in lines], [line.log_odds(short_steps) for line in lines])


def _median_row(rows: FloatArray) -> FloatArray:
    return np.median(rows, axis=0) if len(rows) else np.zeros(rows.shape[1])


@dataclass(frozen=True)
class _Step:
    """Two clusters without a spread, or with too few rows to see one: a step half-way between them."""

    middle: float
    most: float

    @property
    def knots(self) -> FloatArray:
        near = np.spacing(abs(self.middle)) + np.finfo(float).tiny
        return np.array([self.middle - near, self.middle + near])

    def log_odds(self, short_steps: bool) -> FloatArray:  # noqa: ARG002
        return np.array([-self.most, self.most])


@dataclass
class _Line:
    """Two clusters along u: knots, counts between two cuts, masses beyond these, and the mixture found so far."""

    knots: FloatArray  # of t
    places: FloatArray  # u of the knots
    centres: FloatArray  # (cells,), of the cells in u
    counts: FloatArray  # (cells,)
    cuts: FloatArray  # (2,)
    beyond: FloatArray  # (2,), the weights outside the cuts
    means: FloatArray  # (2,)
    deviation: float
    shares: FloatArray  # (2,)
    most: float
    """Nobody is surer than the rows are many: the largest log-odds."""
    step: float = 0.0
    """Root of the mean square of a step in u."""
    boundary: float = 0.0
    """u of the boundary of the labels, half-way between the last row of one and the first of the other."""

    def log_odds(self, short_steps: bool) -> FloatArray:
        """At the knots."""
        if self.deviation > DRAWN_OUT * self.step > 0 and not short_steps:
            steps = (self.places - self.boundary) / self.step
            values = log_ndtr(steps) - log_ndtr(-steps)
        else:
            slope = (self.means[1] - self.means[0]) / self.deviation**2
            values = slope * (self.places - self.means.mean()) + np.log(self.shares[1] / self.shares[0])
        return np.asarray(np.clip(values, -self.most, self.most))


def _line(
    t: FloatArray, w: FloatArray, volume: FloatArray, side: np.ndarray, rate: float, *, folded: bool
) -> _Line | _Step:
    """From ascending t, with multiplicities, wS, which rows are of the second cluster, and 1 − λ."""
    total, first = float(w.sum()), np.count_nonzero(~side)
    middle = float(t[first - 1 : first + 1].mean()) if 0 < first < len(t) else 0.0
    apart = _Step(middle, np.log1p(total))
    if len(t) < FEW_ROWS or side.all() or not side.any():
        return apart
    knots, places = even_steps(t, volume, rate)
    u = np.interp(t, knots, places)
    low, high = u[~side], u[side]
    cuts = np.array(
        [np.quantile(low, outer_share(len(low), folded)), np.quantile(high, 1 - outer_share(len(high), folded))]
    )
    near = np.clip(u, *cuts)  # EM would not come back from a start that one row far out has widened
    means = np.array([np.average(near[~side], weights=w[~side]), np.average(near[side], weights=w[side])])
    deviation = float(np.sqrt(np.average((near - means[side.astype(int)]) ** 2, weights=w)))
    if not (cuts[0] < cuts[1] and means[0] < means[1] and deviation > 1e-9 * (means[1] - means[0])):
        return apart
    below, above = ~side & (u <= cuts[0]), side & (u >= cuts[1])
    inner = ~below & ~above
    if np.ptp(u[inner]) <= CELLS * np.spacing(np.abs(u[inner]).max()):  # all of them are one place
        return apart
    counts, edges = np.histogram(u[inner], CELLS, weights=w[inner])
    return _Line(
        knots,
        places,
        centres=(edges[1:] + edges[:-1]) / 2,
        counts=counts,
        cuts=cuts,
        beyond=np.array([w[below].sum(), w[above].sum()]),
        means=means,
        deviation=deviation,
        shares=np.array([w[~side].sum(), w[side].sum()]) / total,
        most=apart.most,
        step=float(np.sqrt(2 * max(rate, 0.0))),
        boundary=float(np.interp(middle, knots, places)),
    )


def outer_share(n: int, folded: bool) -> float:
    """Share of a cluster of n rows that is counted, but not placed."""
    return OUTER if folded else min(OUTER, 1 / np.sqrt(n))


def even_steps(t: FloatArray, volume: FloatArray, rate: float) -> tuple[FloatArray, FloatArray]:
    """Knots of ascending t, (about √n,), and u(t) = ∫ √(ρ/M) dt there.

    The steps of the walk have the mean square 2 (1 − λ) Var(t); ``rate`` is 1 − λ. ρ and M are means over a window of
    one such step to each side, or of √n rows if these reach farther. If a step is as long as the clusters
    are apart, u is t.
    """
    n = len(t)
    mass = volume / volume.sum()
    centred = t - mass @ t
    step = np.sqrt(2 * max(rate, 0.0) * (mass @ centred**2))
    ends = np.unique(np.linspace(0, n - 1, int(np.sqrt(n)) + 2).astype(np.intp))
    reach = int(np.sqrt(n) / 2) + 1
    left = np.minimum(t[ends] - step, t[np.maximum(ends - reach, 0)])
    right = np.maximum(t[ends] + step, t[np.minimum(ends + reach, n - 1)])
    below = np.concatenate([[0.0], np.cumsum(mass)])
    weight = below[np.searchsorted(t, right, "right")] - below[np.searchsorted(t, left, "left")]
    moment = np.maximum(-np.cumsum(mass * centred), 0.0)  # M between each row and the next
    area = np.concatenate([[0.0], np.cumsum(moment[:-1] * np.diff(t))])
    areas = np.interp(right, t, area) - np.interp(left, t, area)
    speed = np.sqrt(np.divide(weight, areas, out=np.zeros_like(weight), where=areas > 0))
    grown = np.diff(t[ends]) * (speed[1:] + speed[:-1]) / 2
    return t[ends], np.concatenate([[0.0], np.cumsum(grown)])


@dataclass
class _Mixtures:
    """Two normal distributions of one variance for every pair of clusters: (pairs, 1, 2) or (pairs, 1, 1)."""

    means: FloatArray
    deviation: FloatArray
    shares: FloatArray
    likelihood: FloatArray  # (pairs,), of the logarithm


def _settle(lines: list[_Line]) -> None:
    """EM of all lines at once: two normal distributions of one variance, with rows beyond the cuts only counted.

    First the shares are those of the labels. Clusters that overlap much fit nearly as well with any other shares, so
    free shares are taken only if they raise twice the log-likelihood of n rows by more than log n (Schwarz 1978).
    """
    if not lines:
        return
    x = np.array([line.centres for line in lines])[:, :, None]  # (pairs, cells, 1)
    counts = np.array([line.counts for line in lines])[:, :, None]
    cuts = np.array([line.cuts for line in lines])[:, :, None]  # (pairs, 2 sides, 1)
    beyond = np.array([line.beyond for line in lines])[:, :, None]
    start = _Mixtures(
        np.array([line.means for line in lines])[:, None, :],
        np.array([line.deviation for line in lines])[:, None, None],
        np.array([line.shares for line in lines])[:, None, :],
        np.full(len(lines), -np.inf),
    )
    labelled = _climb(x, counts, cuts, beyond, start, free=False)
    free = _climb(x, counts, cuts, beyond, labelled, free=True)
    total = counts.sum(axis=(1, 2)) + beyond.sum(axis=(1, 2))
    against = 2 * (free.likelihood - labelled.likelihood) > np.log(total)
    for place, line in enumerate(lines):
        found = free if against[place] else labelled
        line.shares = found.shares[place, 0]
        line.means, line.deviation = two_modes(found.means[place, 0], float(found.deviation[place, 0, 0]), line.shares)


def two_modes(means: FloatArray, deviation: float, shares: FloatArray) -> tuple[FloatArray, float]:
    """Means m and deviation s of two normal distributions, the means at least 2 s apart: m_b − m_a ≥ 2 s.

    Nearer means make one mode, whatever the shares: such rows do not show two clusters, only their labels do.
    Probabilities suppose that there are two. So the means are taken 2 s apart, where equal shares get two modes, with
    the same mean π_a m_a + π_b m_b and the same variance s² + π_a π_b (m_b − m_a)².
    """
    gap, between = means[1] - means[0], shares[0] * shares[1]
    if gap >= MODES * deviation:
        return means, deviation
    apart = float(np.sqrt((deviation**2 + between * gap**2) / (1 + between * MODES**2)))
    return shares @ means + MODES * apart * np.array([-shares[1], shares[0]]), apart


def _climb(
    x: FloatArray, counts: FloatArray, cuts: FloatArray, beyond: FloatArray, start: _Mixtures, *, free: bool
) -> _Mixtures:
    """EM from a start, with free shares or those of the start."""
    means, deviation, shares = start.means, start.deviation, start.shares
    total = counts.sum(axis=1, keepdims=True) + beyond.sum(axis=1, keepdims=True)
    outward = np.array([-1.0, 1.0])[None, :, None]
    least = 1e-6 * deviation
    before = -np.inf
    for _ in range(STEPS):
        inside = np.log(shares) - 0.5 * ((x - means) / deviation) ** 2 - np.log(deviation) - LOG_NORMAL
        from_cut = outward * (cuts - means) / deviation
        tail = log_ndtr(-from_cut)
        own, likelihood = _responsible(inside, counts)
        own_tail, of_tails = _responsible(np.log(shares) + tail, beyond)
        found = _Mixtures(means, deviation, shares, likelihood + of_tails)
        now = found.likelihood / total[:, 0, 0]
        if np.max(np.abs(now - before)) < SETTLED:
            break
        before = now
        hazard = _hazard(from_cut, tail)
        mean_tail = means + outward * deviation * hazard
        square_tail = means**2 + 2 * means * outward * deviation * hazard + deviation**2 * (1 + from_cut * hazard)
        each = (own.sum(axis=1) + own_tail.sum(axis=1))[:, None, :] + np.finfo(float).tiny
        means = ((own * x).sum(axis=1) + (own_tail * mean_tail).sum(axis=1))[:, None, :] / each
        square = ((own * x**2).sum(axis=1) + (own_tail * square_tail).sum(axis=1))[:, None, :]
        variance = (square - each * means**2).sum(axis=2, keepdims=True) / total
        deviation = np.maximum(np.sqrt(np.maximum(variance, 0.0)), least)
        if free:
            shares = np.maximum(each / total, np.finfo(float).tiny)
    return found


def _hazard(z: FloatArray, tail: FloatArray) -> FloatArray:
    """φ(z)/Φ(−z), where ``tail`` is log Φ(−z). Far out this is z + 1/z, and both logarithms have lost their digits."""
    near = np.exp(np.where(z < FAR, -0.5 * z**2 - LOG_NORMAL - tail, 0.0))
    return np.where(z < FAR, near, z + 1 / np.maximum(z, FAR))


def _responsible(logs: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Counts divided among the two clusters, and the log-likelihood of each pair."""
    sums = np.logaddexp(logs[:, :, 0], logs[:, :, 1])[:, :, None]
    return counts * np.exp(logs - sums), (counts * sums).sum(axis=(1, 2))
