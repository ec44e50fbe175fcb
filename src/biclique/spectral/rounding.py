"""Rounding: from rows of the embedding to clusters, each with a fitted rule for new rows.

Eigenvectors are a relaxation of the cut, and k-means on their rows is one way of several to make clusters of them. Rows
of length 1 are right where clusters are well apart: there a cluster is a direction. Where eigenvalues are low, the rows
of one large cluster spread over many directions, and k-means splits it rather than set a small cluster apart.

What the embedding did not see decides: link each of at most 1,000 rows to its 7 nearest neighbours. Clusters share

    L = (1/k) Σ_j out_j / links_j

of their links, out_j those that lead from cluster j to others. Row i with o_i such links of d_i contributes
c_i = (o_i − L_j d_i) / (k links_j) to the error of L, so L − L' of two partitions has the standard error |c − c'|.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.linalg import qr
from scipy.special import logsumexp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from biclique._typing import FloatArray, IntArray, RandomState, Rows
from biclique.kernels import Nearby, neighbor_links
from biclique.runtime import check_random
from biclique.runtime.namespace import float64, moved, namespace, on_host, padded, to_host, unit_rows
from biclique.spectral.cut import NormalizedCut, counted_shares, least_share
from biclique.spectral.lloyd import KernelKMeansProblem, NewRows, kernel_kmeans
from biclique.spectral.membership import Odds, fit_odds

TIE = 1e-6
"""Another k-means start wins only by this relative margin; otherwise the deterministic one stays."""

SAMPLE_ROWS = 20_000
"""With more rows centres come from a sample: they are then known to a hundredth of a cluster's width."""

BLOCK_ENTRIES = 2**26
"""Entries of the table rows × clusters that are in memory at once on a device."""

FEW_ENTRIES = 10_000
"""Rows times clusters up to which k-means takes all starts at once: scikit-learn's takes most of its time to begin."""

STEPS, SHIFT = 300, 1e-8
"""Most Lloyd steps, and the squared shift of centres that ends them, as a share of the variance of a column."""

SEEN_ROWS = 20_000
"""Training rows that are kept for probabilities. With so many, errors of a few thousandths are left."""

CLEARLY_MORE, NOT_MORE = 1.05, 1.02
"""Clusters that hold more than 1/1.05 of what any could hold are left as they are. Without links, clusters of rows as
they are must hold 1.05 times what those of rows of length 1 hold. If those of some rows hold no more than 1.02 times
that, all rows are not tried."""

POINT_ROWS, POINT_STARTS = 2_000, 4
"""Rows and starts of a k-means that is only a first look."""

FEW_LINKS = 0.005
"""Clusters that share so few of their links are left as they are."""

HALF = 0.5
"""Clusters of points must share at most this part of the links, unless their cut is clearly lower. Those of another K
that do are taken at once. Any part from 0.25 to 0.8 does the same there."""

STANDARD_ERRORS = 2.0
"""Other clusters must share fewer links by so many."""

MIXTURE_STEPS, RISE, RIDGE = 100, 1e-3, 1e-6
"""Of the mixture: most steps, the rise of the mean log-likelihood that ends them, and the share of the variance that is
added to every column."""

LINEAR, NEARLY = 0.5, 1.1
"""If all eigenvalues are below the first, clusters of the mixture may share as many links, or up to 1.1 times that."""

ALIKE, MIXTURE_ROWS = 1.5, 40
"""But only if the variances of its distributions differ by no more than this, since it has one covariance for all, and
if there are so many linked rows for each cluster."""


class Rule(Protocol):
    """A fitted rule for the labels of new rows."""

    def of_new(self, new: NewRows) -> tuple[IntArray, np.ndarray]:
        """The labels of new rows, and which of these are like any training row."""

    def keeping(self, clusters: IntArray) -> Rule:
        """The same rule for some of the clusters, numbered anew."""


class EmbeddingRule(ABC):
    """A fitted pointwise rule on the embedding. The rule is on the host; labels are on the device of the rows."""

    @abstractmethod
    def labels(self, embedding: FloatArray) -> IntArray:
        """The label of every row, shape (n,)."""

    @abstractmethod
    def keeping(self, clusters: IntArray) -> EmbeddingRule:
        """The same rule for some of the clusters, numbered anew."""

    def of_new(self, new: NewRows) -> tuple[IntArray, np.ndarray]:
        """The labels of new rows, and which of these are like any training row."""
        rows, seen = new.embedded()
        return self.labels(rows), seen


@dataclass(frozen=True)
class Assignment:
    """Labels of the rows, the rule for new rows, and the cut after every step if steps lowered it."""

    labels: IntArray
    rule: Rule
    cut_history: FloatArray | None = None

    @property
    def pointwise(self) -> EmbeddingRule:
        """The rule, if it needs only rows of the embedding."""
        if not isinstance(self.rule, EmbeddingRule):
            raise TypeError("this rule needs similarities of new rows, not only their embedding")
        return self.rule

    def contiguous(self) -> Assignment:
        """The same with labels 0, 1, … and no cluster without a row; labels on the host."""
        counts = np.bincount(self.labels)
        used = np.flatnonzero(counts)
        places = np.cumsum(counts > 0) - 1
        labels = self.labels if len(used) == len(counts) else places[self.labels]
        return replace(self, labels=labels, rule=self.rule.keeping(used))


@dataclass(frozen=True)
class Parts:
    """Rows in parts between which there is no similarity: no cluster spans two of them."""

    part_of: IntArray  # (n,)
    shares: tuple[int, ...]  # clusters of every part
    like: IntArray  # (n,), the row whose label each row takes: itself, unless it is dust that joined a part

    @property
    def solid(self) -> np.ndarray:
        """Which rows are not dust."""
        return np.asarray(self.like == np.arange(len(self.like)))


@dataclass(frozen=True, eq=False)
class Seen:
    """Some training rows of a fit: what probabilities are made of, when they are first asked for."""

    rows: FloatArray  # (n, columns), the embedding, not scaled
    labels: IntArray  # (n,)
    weights: FloatArray  # (n,), multiplicities
    values: FloatArray  # (columns − 1,), eigenvalues

    @classmethod
    def of(cls, rows: FloatArray, labels: IntArray, weights: FloatArray, values: FloatArray) -> Seen:
        """At most ``SEEN_ROWS``, evenly spaced; a copy on the host."""
        n = len(rows)
        some = np.arange(n) if n <= SEEN_ROWS else np.linspace(0, n - 1, SEEN_ROWS).astype(np.intp)
        own, w, named = (to_host(x[moved(some, x)]) for x in (rows, weights, labels))
        return cls(own.astype(float), named.astype(np.intp), w.astype(float), padded(values, own.shape[1] - 1))

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": self.rows, "labels": self.labels, "weights": self.weights, "values": self.values}

    @cached_property
    def _found(self) -> dict[float, Odds]:
        return {}

    def odds(self, order: float) -> Odds:
        """Of every pair of clusters of a cut of this order."""
        if order not in self._found:
            self._found[order] = fit_odds(self.rows, self.labels, self.weights, self.values, order)
        return self._found[order]

    def probabilities(self, rows: FloatArray, labels: IntArray, order: float) -> FloatArray:
        """Probabilities of clusters, (n, k), of embedded rows with known labels: the largest is the label's."""
        return self.odds(order).probabilities(rows, labels)


@dataclass(frozen=True)
class NearestCentre(EmbeddingRule):
    """label(x) = argmin_j |x − c_j|."""

    centres: FloatArray  # (k, columns)

    def labels(self, embedding: FloatArray) -> IntArray:
        xp = namespace(embedding)
        centres = moved(self.centres, embedding)
        squares = moved(np.einsum("ij,ij->i", self.centres, self.centres), embedding)

        def nearest(rows: FloatArray) -> IntArray:
            return xp.argmin(squares - 2 * (rows @ centres.T), axis=1)  # type: ignore[no-any-return]

        return in_blocks(nearest, embedding, len(self.centres))

    def keeping(self, clusters: IntArray) -> NearestCentre:
        return NearestCentre(self.centres[clusters])


@dataclass(frozen=True)
class LargestCoordinate(EmbeddingRule):
    """label(x) = argmax_j of (x R)_j, or of its absolute value."""

    rotation: FloatArray  # (columns, k)
    absolute: bool

    def labels(self, embedding: FloatArray) -> IntArray:
        xp = namespace(embedding)
        rotation = moved(self.rotation, embedding)

        def largest(rows: FloatArray) -> IntArray:
            rotated = rows[:, : len(rotation)] @ rotation
            return xp.argmax(xp.abs(rotated) if self.absolute else rotated, axis=1)  # type: ignore[no-any-return]

        return in_blocks(largest, embedding, self.rotation.shape[1])

    def keeping(self, clusters: IntArray) -> LargestCoordinate:
        return LargestCoordinate(self.rotation[:, clusters], self.absolute)


def in_blocks(label: Callable[[FloatArray], IntArray], rows: FloatArray, width: int) -> IntArray:
    """``label`` of rows; on a device block by block, because a table of ``width`` columns may not fit."""
    if on_host(rows):
        return np.asarray(label(rows))
    step = max(BLOCK_ENTRIES // max(width, 1), 1)
    blocks = [label(float64(rows[top : top + step])) for top in range(0, max(len(rows), 1), step)]
    return blocks[0] if len(blocks) == 1 else namespace(rows).concatenate(blocks)


def kmeans(
    embedding: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    cut: NormalizedCut | None = None,  # noqa: ARG001
    n_init: int,
    random_state: int | np.random.RandomState | None,
    parts: Parts | None = None,
) -> Assignment:
    """Weighted k-means; with ``parts``, inside each of them.

    With ``n_init=1``: one k-means++ start from ``random_state``, as the paper's repeats need. With more,
    the first start is deterministic (the means of the rows nearest to each of k rows that span the embedding
    best) and is left only for a start that is better by more than rounding. With ``n_init=0`` there is no other.
    """
    random = check_random_state(random_state)
    if parts is not None:
        return _kmeans_in_parts(embedding, weights, parts, n_init, random)
    return assigned(NearestCentre(_centres(embedding, weights, n_clusters, n_init, random)), embedding)


def _centres(
    embedding: FloatArray, weights: FloatArray, n_clusters: int, n_init: int, random: np.random.RandomState
) -> FloatArray:
    """The centres of k-means, sorted."""
    if n_init == 1:
        centres = _lloyd(embedding, weights, n_clusters, "k-means++", 1, random)[0]
    else:
        start = spread_out_rows(embedding, n_clusters)
        first_labels = NearestCentre(embedding[start]).labels(embedding)
        first, present = weighted_means(embedding, weights, first_labels, n_clusters)
        first[~present] = embedding[start][~present]
        centres = _best_centres(embedding, weights, first, n_init, random)
    return centres[sorted_order(centres)]


def _best_centres(
    embedding: FloatArray, weights: FloatArray, first: FloatArray, n_init: int, random: np.random.RandomState
) -> FloatArray:
    """The centres that k-means ends at, from the first ones or from the best of the other starts."""
    k, others = len(first), max(n_init - 1, 0)
    if embedding.shape[0] * k <= FEW_ENTRIES:
        middle = embedding.mean(axis=0)
        rows, before = embedding - middle, random.get_state()
        drawn = rows[spread_starts(rows, weights, k, others, random)]
        centres, inertias, well = lloyd_together(rows, weights, np.concatenate([(first - middle)[None], drawn]))
        if well.all():
            return np.asarray(centres[_least(inertias)] + middle)
        random.set_state(before)  # scikit-learn has a way on if a cluster loses its rows
    best, least = _lloyd(embedding, weights, k, first, 1, random)
    if others:
        other, inertia = _lloyd(embedding, weights, k, "k-means++", others, random)
        best = other if inertia < (1 - TIE) * least else best
    return best


def _least(inertias: FloatArray) -> int:
    """The start with the least inertia; the first one if it is as good, up to rounding."""
    least = float(inertias.min())
    return 0 if least >= (1 - TIE) * inertias[0] else int(np.argmax(inertias <= (1 + TIE**2) * least))


def _kmeans_in_parts(
    embedding: FloatArray, weights: FloatArray, parts: Parts, n_init: int, random: np.random.RandomState
) -> Assignment:
    """k-means inside every part, of at most ``SAMPLE_ROWS`` rows; dust gets the label of the row that stands for it."""
    centres: list[FloatArray] = []
    labels = np.zeros(len(embedding), dtype=np.intp)
    found = 0
    solid = parts.solid
    for part, share in enumerate(parts.shares):
        rows = np.flatnonzero((parts.part_of == part) & solid)
        share = min(share, len(rows))
        if share == 1:
            own = np.average(embedding[rows], axis=0, weights=weights[rows])[None, :]
        else:
            some = rows if len(rows) <= SAMPLE_ROWS else np.sort(random.choice(rows, SAMPLE_ROWS, replace=False))
            own = _centres(embedding[some], weights[some], share, n_init, random)
        labels[rows] = found + NearestCentre(own).labels(embedding[rows])
        centres.append(own)
        found += share
    joined = np.concatenate(centres)
    order = sorted_order(joined)
    renumbered = np.empty_like(order)
    renumbered[order] = np.arange(found)
    return Assignment(renumbered[labels][parts.like], NearestCentre(joined[order]))


def assigned(rule: EmbeddingRule, embedding: FloatArray, parts: Parts | None = None) -> Assignment:
    labels = rule.labels(embedding)
    return Assignment(labels if parts is None else labels[parts.like], rule)


def _lloyd(
    embedding: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    init: str | FloatArray,
    n_init: int,
    random: np.random.RandomState,
) -> tuple[FloatArray, float]:
    """The centres of scikit-learn's k-means, and their inertia."""
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: the estimator says so itself, with numbers.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(n_clusters, init=init, n_init=n_init, random_state=random, tol=SHIFT)
        model.fit(embedding, sample_weight=weights)
    return np.asarray(model.cluster_centers_, dtype=float), float(model.inertia_)


def spread_starts(
    rows: FloatArray, weights: FloatArray, n_clusters: int, n_starts: int, random: np.random.RandomState
) -> IntArray:
    """Rows to start from, (n_starts, n_clusters), by greedy k-means++: up to rounding, scikit-learn's.

    Each next row is drawn by weight times squared distance to the rows before it. Of 2 + ⌊log k⌋ such rows, the one
    that leaves the least of that sum is taken.
    """
    n, trials = len(rows), 2 + int(np.log(n_clusters))
    first, later = np.empty(n_starts), np.empty((n_starts, n_clusters - 1, trials))
    for start in range(n_starts):
        first[start] = random.random_sample()
        later[start] = random.uniform(size=(n_clusters - 1, trials))
    odds = np.cumsum(weights / weights.sum())
    chosen = np.empty((n_starts, n_clusters), dtype=np.intp)
    chosen[:, 0] = np.searchsorted(odds / odds[-1], first, side="right")
    squares, each = np.einsum("ij,ij->i", rows, rows), np.arange(n_starts)

    def distances(places: IntArray) -> FloatArray:
        """Squared distances of all rows to some, (…, n)."""
        product = rows[places] @ rows.T
        found: FloatArray = np.maximum(squares + squares[places][..., None] - 2 * product, 0.0)
        return found

    nearest = distances(chosen[:, 0])  # (n_starts, n)
    left = nearest @ weights
    for centre in range(1, n_clusters):
        marks, sums = later[:, centre - 1] * left[:, None], np.cumsum(weights * nearest, axis=1)
        drawn = np.empty(marks.shape, dtype=np.intp)
        for start in range(n_starts):
            drawn[start] = np.minimum(np.searchsorted(sums[start], marks[start]), n - 1)
        closer = np.minimum(distances(drawn), nearest[:, None])  # (n_starts, trials, n)
        potentials = closer @ weights
        best = np.argmin(potentials, axis=1)
        chosen[:, centre], nearest, left = drawn[each, best], closer[each, best], potentials[each, best]
    return chosen


def lloyd_together(
    rows: FloatArray, weights: FloatArray, centres: FloatArray
) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Centres where Lloyd steps from each start end, (s, k, columns), their inertias (s,), and which starts ended well.

    A start in which a cluster loses all its rows ends there.
    """
    k, centres = centres.shape[1], np.array(centres)
    weighted = np.column_stack([weights[:, None] * rows, weights])
    labels = np.full((len(centres), len(rows)), -1)
    well = np.ones(len(centres), dtype=bool)
    live, enough = np.arange(len(centres)), SHIFT * float(rows.var(axis=0).mean())
    for _ in range(STEPS):
        before = centres[live]
        nearest = _nearest(rows, before)
        sums = (nearest[:, None] == np.arange(k)[:, None]).astype(float) @ weighted
        whole = (sums[:, :, -1] > 0).all(axis=1)
        well[live] = whole
        moves = whole & (nearest != labels[live]).any(axis=1)
        labels[live], live = nearest, live[moves]
        centres[live] = sums[moves, :, :-1] / sums[moves, :, -1:]
        live = live[((centres[live] - before[moves]) ** 2).sum(axis=(1, 2)) > enough]
        if not len(live):
            break
    labels = _nearest(rows, centres)
    own = centres[np.arange(len(centres))[:, None], labels]  # (s, n, columns)
    return centres, ((rows - own) ** 2).sum(axis=2) @ weights, well


def _nearest(rows: FloatArray, centres: FloatArray) -> IntArray:
    """The nearest centre of every start to every row, (s, n)."""
    scores: FloatArray = np.einsum("skd,skd->sk", centres, centres)[:, :, None] - 2 * (centres @ rows.T)
    return np.asarray(np.argmin(scores, axis=1))


def cluster_sums(values: FloatArray, labels: IntArray, n_clusters: int) -> FloatArray:
    """The sum of the rows of every cluster, (k, columns)."""
    return np.column_stack([np.bincount(labels, column, n_clusters) for column in values.T])


def weighted_means(
    embedding: FloatArray, weights: FloatArray, labels: IntArray, n_clusters: int
) -> tuple[FloatArray, np.ndarray]:
    """The weighted mean of every cluster (zero if it is empty), and which clusters have rows."""
    totals = np.bincount(labels, weights, minlength=n_clusters)
    sums = cluster_sums(weights[:, None] * embedding, labels, n_clusters)
    present = totals > 0
    sums[present] /= totals[present, None]
    return sums, present


def spread_out_rows(embedding: FloatArray, n_clusters: int) -> IntArray:
    """k rows that span the embedding best, by pivoted QR; by distance beyond its number of columns.

    The longest row is taken first, and of rows equally long the first one: rows of length 1 differ by rounding alone.
    """
    columns = np.array(embedding[:, :n_clusters])
    lengths = np.einsum("ij,ij->i", columns, columns)
    columns[np.argmax(lengths >= (1 - TIE) * lengths.max())] *= 1 + TIE
    pivots = list(qr(columns.T, mode="r", pivoting=True)[1][: columns.shape[1]])
    nearest, known = np.full(len(embedding), np.inf), 0
    while len(pivots) < n_clusters:
        for p in pivots[known:]:
            nearest = np.minimum(nearest, np.sum((embedding - embedding[p]) ** 2, axis=1))
        known = len(pivots)
        pivots.append(int(np.argmax(nearest)))
    return np.asarray(pivots)


def by_sorted_centres(rule: LargestCoordinate, embedding: FloatArray, weights: FloatArray) -> LargestCoordinate:
    """The same rule with its clusters numbered by sorted centres, empty ones last."""
    k = rule.rotation.shape[1]
    centres, present = weighted_means(embedding, weights, rule.labels(embedding), k)
    order = sorted_order(centres)
    order = np.concatenate([order[present[order]], order[~present[order]]])
    return LargestCoordinate(rule.rotation[:, order], rule.absolute)


def sorted_order(centres: FloatArray) -> IntArray:
    """The order of centres by their second column (the leading eigenvector), then the others."""
    columns = np.roll(np.arange(centres.shape[1]), -1)
    return np.lexsort(centres[:, columns[::-1]].T)


# Which clusters


Assign = Callable[[FloatArray], Assignment]


def has_dust(labels: IntArray, weights: FloatArray, n_clusters: int, of_all: FloatArray) -> bool:
    """Whether a cluster has less than the share of the weight that one of all rows must have."""
    return bool(counted_shares(labels, weights, n_clusters).min() < least_share(of_all, n_clusters))


@dataclass(frozen=True, eq=False)
class Linked:
    """Some rows, and which of them are linked."""

    places: IntArray
    links: sparse.csr_array

    @classmethod
    def of(cls, nearby: Nearby | None) -> Linked | None:
        """These rows, linked to their nearest; None for a kernel without a distance, or of categories."""
        links = None if nearby is None else neighbor_links(nearby)
        return None if nearby is None or links is None else cls(nearby.chosen, links)

    @cached_property
    def _ends(self) -> sparse.coo_array:
        return self.links.tocoo()

    @cached_property
    def _degrees(self) -> FloatArray:
        return np.asarray(np.bincount(self._ends.row, self._ends.data, len(self.places)), dtype=float)

    def shared(self, labels: IntArray, n_clusters: int) -> tuple[float, FloatArray]:
        """L of the clusters of all rows, and c of the linked ones. A cluster without links counts as 1."""
        own, ends, degrees = labels[self.places], self._ends, self._degrees
        out = np.bincount(ends.row, ends.data * (own[ends.row] != own[ends.col]), len(own))
        of_all, of_out, rows = (np.bincount(own, x, n_clusters) for x in (degrees, out, None))
        shares = np.where(of_all > 0, of_out / np.where(of_all > 0, of_all, 1.0), 1.0)
        k = int((rows > 0).sum())
        errors = (out - shares[own] * degrees) / (k * np.where(of_all > 0, of_all, 1.0)[own])
        return float(shares[rows > 0].mean()), errors


@dataclass(frozen=True, eq=False)
class Rounding:
    """Rows of an embedding that are to become k clusters."""

    rows: FloatArray  # (n, columns)
    eigenvalues: FloatArray  # (columns − 1,)
    weights: FloatArray  # (n,), multiplicities
    n_clusters: int
    assign: Assign
    """The clusters of rows by the way that was asked for."""
    n_init: int
    """Starts of k-means where some rows are looked at first. The first start is deterministic."""

    @cached_property
    def _on_host(self) -> tuple[FloatArray, FloatArray]:
        """The rows and their weights, which may lie on a device."""
        return to_host(self.rows), to_host(self.weights)

    def held(self, labels: IntArray) -> float:
        """Σ_j Σ_i λ_i (v_iᵀ z_j)²: what clusters hold of the leading eigenpairs.

        z_j is √(wS) on cluster j and 0 elsewhere, of length 1. With all eigenpairs of B this is k − 1 minus the k-way
        cut.
        """
        rows, weights = self._on_host
        own = weights[:, None] * rows[:, :1] * rows  # √(wS) times √w v, the trivial column first
        sums = cluster_sums(own, labels, self.n_clusters)
        present = sums[:, 0] > 0
        return float((self.eigenvalues * sums[present, 1:] ** 2 / sums[present, :1]).sum())

    def leaves_room(self, labels: IntArray) -> bool:
        """Whether other clusters could hold clearly more of the eigenpairs. None hold more than all of them."""
        return bool(np.maximum(self.eigenvalues, 0.0).sum() > CLEARLY_MORE * self.held(labels))

    def clusters(
        self, tested: Assignment | None = None, linked: Callable[[], Linked | None] | None = None
    ) -> tuple[Assignment, str]:
        """Clusters of the rows, and why, if these are not scaled to length 1.

        No clusters hold more of the eigenpairs than the sum of the eigenvalues. If those of rows of length 1 hold
        nearly as much, they are taken. Otherwise links decide, or, if there are none, what clusters of rows as they
        are hold.
        """
        unit = self.assign(unit_rows(self.rows)) if tested is None else tested
        if not self.leaves_room(unit.labels):
            return unit, ""
        known = None if linked is None else linked()
        return self._by_what_they_hold(unit) if known is None else self.by_links(unit, known)

    def _by_what_they_hold(self, unit: Assignment) -> tuple[Assignment, str]:
        """Clusters of rows as they are, if they hold clearly more of the eigenpairs."""
        k, n = self.n_clusters, len(self.rows)
        if n > POINT_ROWS:  # a few tell whether all are worth the time
            places = np.linspace(0, n - 1, POINT_ROWS).astype(np.intp)
            few = replace(self, rows=self._on_host[0][places], weights=self._on_host[1][places])
            found = kmeans(few.rows, few.weights, k, n_init=POINT_STARTS, random_state=0).labels
            if few.held(found) <= NOT_MORE * max(few.held(unit.labels[places]), 0.0):
                return unit, ""
        plain = self.assign(self.rows)
        more, held = self.held(plain.labels), self.held(unit.labels)
        weights = self._on_host[1]
        if more <= CLEARLY_MORE * max(held, 0.0) or has_dust(plain.labels, weights, k, weights):
            return unit, ""
        told = f"{more:.3g} of the eigenvalues, those of rows of length 1 {held:.3g}"
        return plain, f"labels come from rows of the embedding as they are: their clusters hold {told}"

    def by_links(self, unit: Assignment, linked: Linked) -> tuple[Assignment, str]:
        """The clusters of rows of length 1, or others that clearly share fewer links.

        The others are tried on the linked rows first. All rows follow if that is worth it.

        If every eigenvalue is below ½, K is nearly linear in the rows, and so are its eigenvectors: round clusters stay
        round. The mixture is then taken unless it shares clearly more links, or its distributions are not alike, since
        k-means moves the border between clusters of unequal size that overlap.
        """
        k, some, rows, weights = self.n_clusters, linked.places, self.rows, self.weights
        starts = 0 if self.n_init == 1 else self.n_init
        best, reason = unit, ""
        least, errors = linked.shared(unit.labels, k)
        first = least
        if first <= FEW_LINKS:
            return best, reason
        linear = len(some) >= MIXTURE_ROWS * k and bool(self.eigenvalues.max(initial=0.0) < LINEAR)
        others: tuple[tuple[str, Assign, Callable[[FloatArray], tuple[Assignment, float]]], ...] = (
            (
                "rows of the embedding as they are",
                self.assign,
                lambda own: (kmeans(own, weights[some], k, n_init=starts, random_state=0), np.inf),
            ),
            (
                "a mixture of normal distributions in the embedding",
                lambda own: mixture(own, weights, k, starts)[0],
                lambda own: mixture(own, weights[some], k, starts),
            ),
        )
        for name, of_all, of_linked in others:
            labels = np.zeros(len(rows), dtype=np.intp)
            tried, spread = of_linked(rows[some])
            labels[some] = tried.labels
            if has_dust(labels[some], weights[some], k, weights):
                continue
            near = linear and spread <= ALIKE and linked.shared(labels, k)[0] <= NEARLY * least
            if not near and not share_fewer(linked, labels, k, least, errors):
                continue
            found = of_all(rows)
            if has_dust(found.labels, weights, k, weights):
                continue
            best, (least, errors) = found, linked.shared(found.labels, k)
            told = f"{least:.2g} of the links to nearest neighbours lead to another cluster"
            reason = f"labels come from {name}: {told}, of rows of length 1 {first:.2g}"
        return best, reason


def mixture(rows: FloatArray, weights: FloatArray, n_clusters: int, n_init: int) -> tuple[Assignment, float]:
    """Clusters of k normal distributions with one covariance Σ, in the coordinates v/√S of the embedding.

    In these, unlike in rows of length 1 or as they are, a row's place does not depend on how many are like it, and a
    round cluster stays about round. The label is the distribution j with the largest ⟨r, Σ⁻¹μ_j⟩ + log π_j −
    ⟨μ_j, Σ⁻¹μ_j⟩/2, a linear function of the embedding's row, since r is that row divided by its first entry. Fitted by
    expectation and maximisation from k-means, on at most ``SAMPLE_ROWS`` rows.

    And how unlike the distributions are: the largest of their variances Σ_i p_ij |r_i − μ_j|² / Σ_i p_ij over the
    least, with lengths by Σ⁻¹ and p_ij the odds of row i for distribution j. If all have the covariance Σ, it is 1.
    """
    k, n = n_clusters, len(rows)
    some = np.arange(n) if n <= SAMPLE_ROWS else np.linspace(0, n - 1, SAMPLE_ROWS).astype(np.intp)
    some = some[(rows[some, 0] > 0) & (weights[some] > 0)]
    r, w = rows[some, 1:] / rows[some, :1], weights[some] / weights[some].sum()
    if len(np.unique(r, axis=0)) < k:  # no mixture: one cluster, and the others are dust
        rule = LargestCoordinate(np.zeros((rows.shape[1], k)), absolute=False)
        return Assignment(np.zeros(n, dtype=np.intp), rule), np.inf
    shares = np.eye(k)[kmeans(r, weights[some], k, n_init=n_init, random_state=0).labels]  # of each row, (n, k)
    mean = w @ r
    ridge = RIDGE * float(w @ ((r - mean) ** 2).mean(axis=1)) * np.eye(r.shape[1])
    r -= mean
    whole, before, tiny = (w[:, None] * r).T @ r, -np.inf, np.finfo(float).tiny
    for _ in range(MIXTURE_STEPS):
        odds = np.maximum(w @ shares, tiny)  # π
        centres = (w[:, None] * shares).T @ r / odds[:, None]  # μ
        covariance = whole - (odds[:, None] * centres).T @ centres + ridge
        slopes = np.linalg.solve(covariance, centres.T)  # Σ⁻¹μ, (columns, k)
        offsets = np.log(odds) - np.einsum("kd,dk->k", centres, slopes) / 2
        scores = r @ slopes + offsets
        total = logsumexp(scores, axis=1)
        inner = np.einsum("ij,ij->i", r, np.linalg.solve(covariance, r.T).T)
        now = float(w @ (total - inner / 2)) - np.linalg.slogdet(covariance)[1] / 2
        if now - before < RISE:
            break
        before, shares = now, np.exp(scores - total[:, None])
    odds_of = w[:, None] * np.exp(scores - total[:, None])
    distances = inner[:, None] - 2 * r @ slopes + np.einsum("kd,dk->k", centres, slopes)
    variances = (odds_of * distances).sum(axis=0) / np.maximum(odds_of.sum(axis=0), tiny)
    rotation = np.vstack([offsets - mean @ slopes, slopes])
    rule = by_sorted_centres(LargestCoordinate(rotation, absolute=False), rows, weights)
    most, least = float(variances.max()), float(variances.min())
    return Assignment(rule.labels(rows), rule), most / least if least > RIDGE * most else np.inf


class PointClusters:
    """Clusters of the rows of X by k-means, made when they are asked for: the same at every order."""

    def __init__(self, points: Rows, weights: FloatArray, n_clusters: int, random_state: RandomState) -> None:
        self.points, self.weights, self.n_clusters, self.random_state = points, weights, n_clusters, random_state
        self._of_linked: IntArray | None = None

    @cached_property
    def _centred(self) -> FloatArray:
        """k-means of rows far from the origin would lose digits."""
        rows: FloatArray = np.asarray(self.points, dtype=float)
        return np.asarray(rows - np.average(rows, axis=0, weights=self.weights))

    def of_linked(self, linked: Linked) -> IntArray:
        """Of linked rows alone. All linked rows that are asked for are the same."""
        if self._of_linked is None:
            self._of_linked = self._found(self._centred[linked.places], self.weights[linked.places])
        return self._of_linked

    @cached_property
    def of_all(self) -> IntArray:
        return self._found(self._centred, self.weights)

    def _found(self, rows: FloatArray, weights: FloatArray) -> IntArray:
        random, n = check_random(deepcopy(self.random_state)), len(rows)
        some = np.arange(n) if n <= POINT_ROWS else np.sort(random.choice(n, POINT_ROWS, replace=False))
        found = kmeans(rows[some], weights[some], self.n_clusters, n_init=POINT_STARTS, random_state=random)
        return found.labels if len(some) == n else found.pointwise.labels(rows)


def round_points(
    rounding: Rounding,
    points: PointClusters,
    cut: NormalizedCut,
    own: IntArray,
    links: Callable[[], Linked | None],
    random_state: np.random.RandomState,
) -> tuple[Assignment | None, str]:
    """The clusters of k-means on points, after Lloyd steps on the cut, if they share clearly fewer links.

    They are not tried if the clusters of the embedding hold nearly all that any could.

    If many eigenvalues are as large as the k-th, as with columns of noise, k − 1 eigenvectors say little. Clusters of
    points must share fewer links by two standard errors. And either they share at most half of them, or they also have
    a clearly lower cut: clusters hold Σ_j (a_j − δ_j²/ρ) / S_j = (m/2)² (k − 1 − kNCut_m) of B, with a_j, δ_j and S_j
    the sums of K, δ and S over cluster j.
    """
    linked = links() if rounding.leaves_room(own) else None
    if linked is None:
        return None, ""
    k, weights, some = rounding.n_clusters, cut.weights, linked.places
    first, errors = linked.shared(own, k)
    if first <= FEW_LINKS or int(own.max()) + 1 < k:
        return None, ""
    labels = np.zeros(len(own), dtype=np.intp)
    labels[some] = points.of_linked(linked)
    if has_dust(labels[some], weights[some], k, weights) or not share_fewer(linked, labels, k, first, errors):
        return None, ""
    found = labels if len(some) == len(labels) else points.of_all
    problem = KernelKMeansProblem(cut)
    if linked.shared(found, k)[0] > HALF * first:
        held, more = (problem.state(each, k).gain for each in (own, found))
        if more <= CLEARLY_MORE * held:
            return None, ""
    lowered = kernel_kmeans(problem, found, k, random_state=random_state)
    if has_dust(lowered.labels, weights, k, weights) or not share_fewer(linked, lowered.labels, k, first, errors):
        return None, ""
    share = linked.shared(lowered.labels, k)[0]
    told = f"{share:.2g} of the links to nearest neighbours lead to another cluster, of those of the embedding"
    reason = f"labels come from k-means of the rows of X and Lloyd steps on the cut: {told} {first:.2g}"
    return Assignment(lowered.labels, lowered.rule), reason


def share_fewer(linked: Linked, labels: IntArray, n_clusters: int, least: float, errors: FloatArray) -> bool:
    """Whether clusters share fewer links than others with L = ``least`` and c = ``errors``, by two standard errors."""
    share, own = linked.shared(labels, n_clusters)
    return least - share > STANDARD_ERRORS * float(np.linalg.norm(errors - own))
