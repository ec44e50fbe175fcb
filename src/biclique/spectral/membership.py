"""How sure a label is: probabilities of clusters, from the embedding alone.

For clusters a and b, let t be the coordinate from a to b in φ = v/√S, the functions that a random walk on K knows.
Where the walk moves in small steps, the spread Γ(t) of a step and the stationary density ρ(t) of the walk obey

    Γ(t) ρ(t) ∝ M(t) = Σ_{t_i > t} S_i (t_i − t̄),

because t is an eigenfunction (the Dirichlet form of φ and of the indicator of t_i > t). Hence u(t) = ∫ √(ρ/M) dt is the
coordinate in which steps have one length: distance across the boundary as the kernel measures it. In u two normal
distributions of one variance are fitted by EM, with the shares of the labels unless the rows speak against them. What
is fitted is log p_b/p_a, a line in u. Means less than two deviations apart are moved apart: see ``two_modes``.

Of many clusters, each is compared with those nearest to it: the others have the probability 0.

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
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import expit, log_ndtr, logsumexp, softmax

from biclique._typing import FloatArray, IntArray
from biclique.kernels.gamma_rules import weighted_median
from biclique.runtime.namespace import moved, padded, to_host

SEEN_ROWS = 20_000
"""Training rows that are kept for probabilities. With so many, errors of a few thousandths are left."""

COMPARED = 9
"""The nearest clusters with which each is compared. Farther ones have a probability of 0."""

OUTER = 0.25
"""Largest share of each cluster, on the side away from the other one, that is counted but not placed."""

CELLS = 200
"""Cells between the two cuts in which EM counts rows."""

STEPS = 300
"""Most steps of EM."""

SETTLED = 1e-5
"""EM ends when means move by less than this many deviations, and shares by less than this."""

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

TINY = float(np.finfo(float).tiny)
"""The smallest positive number with all its digits."""


@dataclass(frozen=True)
class Odds:
    """log p_b/p_a of pairs a < b of clusters, each a piecewise linear function of a coordinate."""

    n_clusters: int
    pairs: list[tuple[int, int]]
    directions: FloatArray  # (pairs, columns − 1)
    knots: list[FloatArray]  # of t, ascending, one array a pair
    values: list[FloatArray]  # log p_b/p_a at the knots

    def probabilities(self, rows: FloatArray, labels: IntArray) -> FloatArray:
        """p_b/p_label by pairs, no more than 1, and divided by their sum. A row at the origin has equal ones."""
        coordinates, here = walk_coordinates(rows)
        log_odds = np.where(here[:, None], -np.inf, np.full(self.n_clusters, -TIE))
        members = [np.flatnonzero((labels == j) & here) for j in range(self.n_clusters)]
        for (a, b), direction, knots, values in zip(self.pairs, self.directions, self.knots, self.values, strict=True):
            for own, other, sign in ((a, b, 1.0), (b, a, -1.0)):
                some = members[own]
                found = np.interp(coordinates[some] @ direction, knots, sign * values)
                log_odds[some, other] = np.minimum(found, -TIE)
        log_odds[np.arange(len(rows)), labels] = 0.0
        return np.asarray(softmax(log_odds, axis=1))


def some_rows(n: int) -> IntArray:
    """The numbers of at most ``SEEN_ROWS`` of n rows, evenly spaced."""
    return np.arange(n) if n <= SEEN_ROWS else np.linspace(0, n - 1, SEEN_ROWS).astype(np.intp)


def walk_coordinates(rows: FloatArray) -> tuple[FloatArray, np.ndarray]:
    """φ = v/√S of rows of the embedding, (n, columns − 1), and which rows have any."""
    first = rows[:, :1]
    here = first[:, 0] > 0
    return np.divide(rows[:, 1:], first, out=np.zeros_like(rows[:, 1:]), where=first > 0), here


@dataclass(frozen=True, eq=False)
class Seen:
    """Some training rows of a fit: what probabilities are made of, when they are first asked for."""

    rows: FloatArray  # (n, columns), the embedding, not scaled
    labels: IntArray  # (n,)
    weights: FloatArray  # (n,), multiplicities
    values: FloatArray  # (columns − 1,), eigenvalues
    order: float
    short_steps: bool
    """Whether K is that of neighbourhoods, by whose length no cluster is judged to be drawn out."""

    @classmethod
    def of(
        cls,
        rows: FloatArray,
        labels: IntArray,
        weights: FloatArray,
        values: FloatArray,
        order: float,
        *,
        short_steps: bool = False,
    ) -> Seen:
        """``some_rows``, a copy on the host. Weights of a mean below 1 are divided by it."""
        some = some_rows(len(rows))
        own, w, named = (to_host(x[moved(some, x)]) for x in (rows, weights, labels))
        values = padded(values, own.shape[1] - 1)
        w = w / min(float(w.mean()), 1.0)
        return cls(own.astype(float), named.astype(np.intp), w.astype(float), values, order, short_steps)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "odds"}

    def probabilities(self, rows: FloatArray, labels: IntArray) -> FloatArray:
        """Probabilities of clusters, (n, k), of embedded rows with known labels: the largest is the label's."""
        return self.odds.probabilities(rows, labels)

    @cached_property
    def odds(self) -> Odds:
        """The log-odds of pairs of clusters."""
        k = int(self.labels.max()) + 1
        coordinates, here = walk_coordinates(self.rows)
        members = [np.flatnonzero((self.labels == j) & here) for j in range(k)]
        centres = np.zeros((k, coordinates.shape[1]))
        for j, own in enumerate(members):
            if len(own):
                centres[j] = weighted_median(coordinates[own], self.weights[own])
        pairs = near_pairs(centres)
        directions = np.array([centres[b] - centres[a] for a, b in pairs]).reshape(len(pairs), len(centres[0]))
        knots, log_odds = list[FloatArray](), list[FloatArray]()
        lines = dict[int, _Line]()
        for place, ((a, b), direction) in enumerate(zip(pairs, directions, strict=True)):
            both = np.concatenate([members[a], members[b]])
            t, w = coordinates[both] @ direction, self.weights[both]
            ascending = np.argsort(t, kind="stable")
            side = np.repeat([False, True], [len(members[a]), len(members[b])])[ascending]
            t, w, first = t[ascending], w[ascending], len(members[a])
            # Without a spread, or with too few rows to see one, the odds are a step half-way between the clusters.
            middle = float(t[first - 1 : first + 1].mean()) if 0 < first < len(t) else 0.0
            most = np.log1p(float(w.sum()))  # nobody is surer than the rows are many
            near = np.spacing(abs(middle)) + TINY
            knots.append(np.array([middle - near, middle + near]))
            log_odds.append(np.array([-most, most]))
            rate = float(direction**2 @ (1 - self.values) / max(direction @ direction, TINY))
            volume = w * self.rows[both, 0][ascending] ** 2
            line = _line(t, w, volume, side, middle, rate, folded=self.order > 2)
            if line is not None:
                lines[place] = line
        for (place, line), mixture in zip(lines.items(), settled(list(lines.values())), strict=True):
            knots[place] = line.knots
            log_odds[place] = np.clip(line.log_odds(mixture, self.short_steps), *log_odds[place])
        return Odds(k, pairs, directions, knots, log_odds)


def near_pairs(centres: FloatArray) -> list[tuple[int, int]]:
    """Pairs a < b of clusters of which one is among the nearest of the other."""
    near = np.argsort(cdist(centres, centres), axis=1, kind="stable")[:, : COMPARED + 1]
    pairs = np.column_stack([np.repeat(np.arange(len(centres)), near.shape[1]), near.ravel()])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    return [(int(a), int(b)) for a, b in pairs if a < b]


class Mixture(NamedTuple):
    """Two normal distributions of one variance for every line, or for one."""

    means: FloatArray  # (lines, 2)
    deviation: FloatArray  # (lines,)
    shares: FloatArray  # (lines, 2)


Group = TypeVar("Group", bound=tuple[FloatArray, ...])


def _of(group: Group, some: IntArray | int) -> Group:
    """Of some of the lines."""
    return type(group)(*(field[some] for field in group))


@dataclass(frozen=True)
class _Line:
    """Two clusters along u."""

    knots: FloatArray  # of t
    places: FloatArray  # u of the knots
    cells: Cells
    start: Mixture
    """That of the labels."""
    step: float = 0.0
    """Root of the mean square of a step in u."""
    boundary: float = 0.0
    """u of the boundary of the labels, half-way between the last row of one and the first of the other."""

    def log_odds(self, mixture: Mixture, short_steps: bool) -> FloatArray:
        """At the knots."""
        if mixture.deviation > DRAWN_OUT * self.step > 0 and not short_steps:
            steps = (self.places - self.boundary) / self.step
            return np.asarray(log_ndtr(steps) - log_ndtr(-steps))
        slope = (mixture.means[1] - mixture.means[0]) / mixture.deviation**2
        shares = np.log(mixture.shares[1] / mixture.shares[0])
        return np.asarray(slope * (self.places - mixture.means.mean()) + shares)


def _line(
    t: FloatArray, w: FloatArray, volume: FloatArray, side: np.ndarray, middle: float, rate: float, *, folded: bool
) -> _Line | None:
    """From ascending t, with multiplicities, wS, which rows are of the second cluster, the boundary, and 1 − λ."""
    if len(t) < FEW_ROWS or side.all() or not side.any():
        return None
    knots, places = even_steps(t, volume, rate)
    u = np.interp(t, knots, places)
    low, high = u[~side], u[side]
    cuts = np.array(
        [np.quantile(low, outer_share(len(low), folded)), np.quantile(high, 1 - outer_share(len(high), folded))]
    )
    near = np.clip(u, *cuts)  # EM would not come back from a start that one row far out has widened
    means = np.array([np.average(near[~side], weights=w[~side]), np.average(near[side], weights=w[side])])
    deviation = np.sqrt(np.average((near - means[side.astype(int)]) ** 2, weights=w))
    if not (cuts[0] < cuts[1] and means[0] < means[1] and deviation > 1e-9 * (means[1] - means[0])):
        return None
    below, above = ~side & (u <= cuts[0]), side & (u >= cuts[1])
    inner = ~below & ~above
    if np.ptp(u[inner]) <= CELLS * np.spacing(np.abs(u[inner]).max()):  # all of them are one place
        return None
    counts, edges = np.histogram(u[inner], CELLS, weights=w[inner])
    shares = np.array([w[~side].sum(), w[side].sum()]) / float(w.sum())
    return _Line(
        knots,
        places,
        Cells((edges[1:] + edges[:-1]) / 2, counts, cuts, np.array([w[below].sum(), w[above].sum()])),
        Mixture(means, deviation, shares),
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


def settled(lines: list[_Line]) -> list[Mixture]:
    """EM of all lines at once: two normal distributions of one variance, with rows beyond the cuts only counted.

    First the shares are those of the labels. Clusters that overlap much fit nearly as well with any other shares, so
    free shares are taken only if they raise twice the log-likelihood of n rows by more than log n (Schwarz 1978).
    """
    if not lines:
        return []
    cells = Cells(*map(np.array, zip(*(line.cells for line in lines), strict=True)))
    start = Mixture(*map(np.array, zip(*(line.start for line in lines), strict=True)))
    labelled = _climb(cells, start, free=False)
    free = _climb(cells, labelled, free=True)
    against = 2 * (cells.likelihood(free) - cells.likelihood(labelled)) > np.log(cells.total)
    return [two_modes(_of(free if against[place] else labelled, place)) for place in range(len(lines))]


def two_modes(mixture: Mixture) -> Mixture:
    """Means m and deviation s of two normal distributions, the means at least 2 s apart: m_b − m_a ≥ 2 s.

    Nearer means make one mode, whatever the shares: such rows do not show two clusters, only their labels do.
    Probabilities suppose that there are two. So the means are taken 2 s apart, where equal shares get two modes, with
    the same mean π_a m_a + π_b m_b and the same variance s² + π_a π_b (m_b − m_a)².
    """
    means, deviation, shares = mixture
    gap, between = means[1] - means[0], shares[0] * shares[1]
    if gap >= MODES * deviation:
        return mixture
    apart = np.sqrt((deviation**2 + between * gap**2) / (1 + between * MODES**2))
    return Mixture(shares @ means + MODES * apart * np.array([-shares[1], shares[0]]), apart, shares)


OUTWARD = np.array([-1.0, 1.0])[:, None]
"""The directions away from the two cuts, (2, 1)."""


class Cells(NamedTuple):
    """What EM sees of lines, or of one: rows are counted in cells between two cuts, and beyond these."""

    centres: FloatArray  # (lines, cells), of cells in u
    counts: FloatArray  # (lines, cells), rows in them
    cuts: FloatArray  # (lines, 2)
    beyond: FloatArray  # (lines, 2), rows outside the cuts

    @property
    def total(self) -> FloatArray:
        """All rows, (lines,)."""
        return np.asarray(self.counts.sum(axis=1) + self.beyond.sum(axis=1))

    def tails(self, mixture: Mixture) -> tuple[FloatArray, FloatArray]:
        """z of the cuts, outward, and log Φ(−z), both (lines, sides, clusters)."""
        away = OUTWARD * (self.cuts[:, :, None] - mixture.means[:, None, :])
        z = away / mixture.deviation[:, None, None]
        return z, log_ndtr(-z)

    def likelihood(self, mixture: Mixture) -> FloatArray:
        """The log-likelihood of rows in cells, by their density, and of rows beyond the cuts, by their probability."""
        spread, shares = mixture.deviation[:, None, None], np.log(mixture.shares)[:, None, :]
        z = (self.centres[:, :, None] - mixture.means[:, None, :]) / spread
        inside = logsumexp(shares - 0.5 * z**2 - np.log(spread) - LOG_NORMAL, axis=2)
        outside = logsumexp(shares + self.tails(mixture)[1], axis=2)
        return np.asarray((self.counts * inside).sum(axis=1) + (self.beyond * outside).sum(axis=1))

    def step(self, mixture: Mixture) -> Mixture:
        """One step of EM."""
        x, means, shares = self.centres, mixture.means[:, None, :], mixture.shares
        spread = mixture.deviation[:, None, None]
        slope = (means[..., 1] - means[..., 0]) / mixture.deviation[:, None] ** 2
        second = self.counts * expit(slope * (x - means.mean(axis=2)) + np.log(shares[:, 1:] / shares[:, :1]))
        first = self.counts - second
        z, tail = self.tails(mixture)
        outside = self.beyond[:, :, None] * softmax(np.log(shares)[:, None, :] + tail, axis=2)
        # Rows beyond a cut have the mean and the mean square of a normal distribution beyond it.
        hazard = _hazard(z, tail)
        outer = means + OUTWARD * spread * hazard
        outer_square = means * (2 * outer - means) + spread**2 * (1 + z * hazard)
        each = np.stack([first.sum(axis=1), second.sum(axis=1)], axis=1) + outside.sum(axis=1) + TINY
        sums = np.stack([(first * x).sum(axis=1), (second * x).sum(axis=1)], axis=1)
        found = (sums + (outside * outer).sum(axis=1)) / each
        square = (self.counts * x**2).sum(axis=1) + (outside * outer_square).sum(axis=(1, 2))
        total = self.total
        variance = (square - (each * found**2).sum(axis=1)) / total
        return Mixture(found, np.sqrt(np.maximum(variance, 0.0)), np.maximum(each / total[:, None], TINY))


def _climb(cells: Cells, start: Mixture, *, free: bool) -> Mixture:
    """EM of every line from a start until nothing moves, with free shares or those of the start."""
    found = Mixture(*(field.copy() for field in start))
    least, going = 1e-6 * start.deviation, np.arange(len(start.means))
    for _ in range(STEPS):
        before = _of(found, going)
        now = _of(cells, going).step(before)
        shares = now.shares if free else before.shares
        moved = np.abs(now.means - before.means) / before.deviation[:, None] + np.abs(shares - before.shares)
        found.means[going], found.shares[going] = now.means, shares
        found.deviation[going] = np.maximum(now.deviation, least[going])
        going = going[moved.max(axis=1) > SETTLED]
        if not len(going):
            break
    return found


def _hazard(z: FloatArray, tail: FloatArray) -> FloatArray:
    """φ(z)/Φ(−z), where ``tail`` is log Φ(−z). Far out this is z + 1/z, and both logarithms have lost their digits."""
    near = np.exp(np.where(z < FAR, -0.5 * z**2 - LOG_NORMAL - tail, 0.0))
    return np.where(z < FAR, near, z + 1 / np.maximum(z, FAR))
