"""From the embedding to labels, each way with a fitted pointwise rule for new rows.

Every assigner takes the embedding's rows, their multiplicities and the cut they come from, and returns labels and a
rule: a small object that gives the label of a single new row.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from scipy.linalg import qr, svd
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from biclique._typing import FloatArray, IntArray, RandomState
from biclique.exceptions import ParameterError
from biclique.runtime.namespace import (
    float64,
    full,
    identity,
    moved,
    namespace,
    on_host,
    padded,
    scalars,
    to_host,
    unit_rows,
)
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

DISCRETIZE_STEPS = 100

MANY_ROWS = 200_000
"""With more rows an assigner is fitted on a sample of them, because every step of k-means takes long."""


SEEN_ROWS = 20_000
"""Training rows that are kept for probabilities. With so many, errors of a few thousandths are left."""


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
    return _assigned(NearestCentre(_centres(embedding, weights, n_clusters, n_init, random)), embedding)


def _centres(
    embedding: FloatArray, weights: FloatArray, n_clusters: int, n_init: int, random: np.random.RandomState
) -> FloatArray:
    """The centres of k-means, sorted."""
    if n_init == 1:
        centres = _lloyd(embedding, weights, n_clusters, "k-means++", 1, random)[0]
    else:
        start = _spread_out_rows(embedding, n_clusters)
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


def _assigned(rule: EmbeddingRule, embedding: FloatArray, parts: Parts | None = None) -> Assignment:
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
    inertias = [float(weights @ ((rows - c[own]) ** 2).sum(axis=1)) for c, own in zip(centres, labels, strict=True)]
    return centres, np.array(inertias), well


def _nearest(rows: FloatArray, centres: FloatArray) -> IntArray:
    """The nearest centre of every start to every row, (s, n)."""
    scores: FloatArray = np.einsum("skd,skd->sk", centres, centres)[:, :, None] - 2 * (centres @ rows.T)
    return np.asarray(np.argmin(scores, axis=1))


def cluster_qr(
    embedding: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    cut: NormalizedCut | None = None,  # noqa: ARG001
    n_init: int,  # noqa: ARG001
    random_state: int | np.random.RandomState | None,  # noqa: ARG001
    parts: Parts | None = None,
) -> Assignment:
    """Pivoted QR (Damle, Minden and Ying): nothing random, no iterations.

    k rows that span the embedding best are picked, and the embedding is turned so that they lie along the
    axes; a row's label is its largest coordinate in absolute value.
    """
    columns = embedding[:, :n_clusters]
    rotation = _pivot_rotation(columns)
    return _assigned(
        by_sorted_centres(LargestCoordinate(rotation, absolute=True), embedding, weights), embedding, parts
    )


def discretize(
    embedding: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    cut: NormalizedCut | None = None,  # noqa: ARG001
    n_init: int,  # noqa: ARG001
    random_state: int | np.random.RandomState | None,  # noqa: ARG001
    parts: Parts | None = None,
) -> Assignment:
    """The rotation that brings unit rows closest to indicators (Yu and Shi), from ``cluster_qr``'s."""
    columns = embedding[:, :n_clusters]
    norms = np.linalg.norm(columns, axis=1, keepdims=True)
    rows = np.divide(columns, norms, out=np.zeros_like(columns), where=norms > 0)
    rotation = _pivot_rotation(rows)
    objective = -np.inf
    for _ in range(DISCRETIZE_STEPS):
        labels = np.argmax(rows @ rotation, axis=1)
        left, singular, right = svd(cluster_sums(weights[:, None] * rows, labels, rows.shape[1]))
        if singular.sum() <= objective * (1 + 1e-12):
            break
        objective = singular.sum()
        rotation = right.T @ left.T
    # A row's length does not move its largest coordinate, so the rule needs no norms.
    return _assigned(
        by_sorted_centres(LargestCoordinate(rotation, absolute=False), embedding, weights), embedding, parts
    )


def lowered_cut(
    embedding: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    cut: NormalizedCut | None = None,
    n_init: int,
    random_state: int | np.random.RandomState | None,
    parts: Parts | None = None,
) -> Assignment:
    """k-means, then Lloyd steps of weighted kernel k-means, which lower the order-m cut itself: one pass a step."""
    if cut is None:
        raise ParameterError("assign_labels='kernel_kmeans' needs the cut, not only the embedding.")
    if not on_host(cut.like):
        raise ParameterError(
            "assign_labels='kernel_kmeans' runs on the host alone: leave device at None, or use 'kmeans'."
        )
    random = check_random_state(random_state)
    start = kmeans(embedding, weights, n_clusters, n_init=n_init, random_state=random, parts=parts)
    # Where k-means finds fewer groups, so does this: splitting one could only raise the cut.
    found, labels = np.unique(start.labels, return_inverse=True)
    result = kernel_kmeans(KernelKMeansProblem(cut), labels, len(found), random_state=random)
    return Assignment(result.labels, result.rule, result.history)


@dataclass(frozen=True)
class Assigner:
    """A way of assigning labels, and what it needs."""

    assign: Callable[..., Assignment]
    needs_cut: bool = False
    """Whether labels, also those of new rows, need passes over K."""
    scales_rows: bool = True
    """Whether ``row_normalize="auto"`` is True. Pivoted QR starts from the longest row: among rows of one length,
    rounding would choose it."""
    spans_columns: bool = False
    """Whether there are at most as many clusters as columns."""
    takes_parts: bool = False
    """Whether clusters are sought inside each part, rather than made of parts afterwards."""

    def __call__(
        self,
        rows: FloatArray,
        weights: FloatArray,
        n_clusters: int,
        *,
        cut: NormalizedCut | None = None,
        n_init: int,
        random_state: RandomState,
        parts: Parts | None = None,
    ) -> Assignment:
        """Labels of the rows of an embedding, and the rule behind them."""
        return self.assign(rows, weights, n_clusters, cut=cut, n_init=n_init, random_state=random_state, parts=parts)


ASSIGNERS: dict[str, Assigner] = {
    "kmeans": Assigner(kmeans, takes_parts=True),
    "cluster_qr": Assigner(cluster_qr, scales_rows=False, spans_columns=True),
    "discretize": Assigner(discretize, spans_columns=True),
    "kernel_kmeans": Assigner(lowered_cut, needs_cut=True),
}
"""The ways of assigning labels by name; validation and documentation read this table."""


def assign_sampled(
    name: str,
    rows: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    cut: NormalizedCut | None,
    n_init: int,
    random_state: int | np.random.RandomState | None,
    parts: Parts | None = None,
    sample_rows: int = SAMPLE_ROWS,
) -> Assignment:
    """An assigner for many rows: it is fitted on a sample, then its rule labels every row once.

    Of rows on a device only the sample travels; their labels stay there.
    """
    random = check_random_state(random_state)
    options: dict[str, Any] = {"cut": cut, "n_init": n_init, "random_state": random}
    few = len(rows) <= sample_rows
    assigner = ASSIGNERS[name]
    if assigner.needs_cut or (few and on_host(rows)) or (assigner.takes_parts and parts is not None):
        return assigner(rows, weights, n_clusters, parts=parts, **options)
    sample = np.arange(len(rows)) if few else np.sort(random.choice(len(rows), sample_rows, replace=False))
    found = assigner(_taken(rows, sample), _taken(weights, sample), n_clusters, **options)
    return _assigned(found.pointwise, rows, parts)


def one_each(rows: FloatArray, cut: NormalizedCut | None = None) -> Assignment:
    """Every distinct row a cluster of its own: nothing is left to assign. With a cut, its value is given."""
    order = np.lexsort(rows.T[::-1])
    labels = np.argsort(order)
    history = None if cut is None else kernel_kmeans(KernelKMeansProblem(cut), labels, len(rows)).history
    return Assignment(labels, NearestCentre(rows[order]), history)


CLEARLY_MORE, NOT_MORE = 1.05, 1.02
"""Clusters that hold more than 1/1.05 of what any could hold are left as they are. Without links, clusters of rows as
they are must hold 1.05 times what those of rows of length 1 hold. If those of some rows hold no more than 1.02 times
that, all rows are not tried."""

POINT_ROWS, POINT_STARTS = 2_000, 4
"""Rows and starts of a k-means that is only a first look."""

Assign = Callable[[FloatArray], Assignment]


def has_dust(labels: IntArray, weights: FloatArray, n_clusters: int, of_all: FloatArray) -> bool:
    """Whether a cluster has less than the share of the weight that one of all rows must have."""
    return bool(counted_shares(labels, weights, n_clusters).min() < least_share(of_all, n_clusters))


def held_of_eigenpairs(
    embedding: FloatArray, eigenvalues: FloatArray, weights: FloatArray, labels: IntArray, n_clusters: int
) -> float:
    """Σ_j Σ_i λ_i (v_iᵀ z_j)²: what clusters hold of the leading eigenpairs.

    z_j is √(wS) on cluster j and 0 elsewhere, of length 1. With all eigenpairs of B this is k − 1 minus the k-way cut.
    """
    own = weights[:, None] * embedding[:, :1] * embedding  # (n, columns): √(wS) times √w v, the trivial column first
    sums = cluster_sums(own, labels, n_clusters)
    present = sums[:, 0] > 0
    return float((eigenvalues * sums[present, 1:] ** 2 / sums[present, :1]).sum())


def round_rows(
    assign: Assign,
    rows: FloatArray,
    eigenvalues: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    tested: Assignment | None = None,
    by_links: Callable[[Assignment], tuple[Assignment, str] | None] | None = None,
) -> tuple[Assignment, str]:
    """Clusters of the embedding's rows, and why, if these are not scaled to length 1.

    No clusters hold more of the eigenpairs than the sum of the eigenvalues. If those of rows of length 1 hold nearly as
    much, they are taken. Otherwise ``by_links`` decides, or, if there are no links, what clusters of rows as they are
    hold.
    """
    unit = assign(unit_rows(rows)) if tested is None else tested
    on_rows, weights = to_host(rows), to_host(weights)
    if not leaves_room(on_rows, eigenvalues, weights, unit.labels, n_clusters):
        return unit, ""
    found = None if by_links is None else by_links(unit)
    if found is not None:
        return found
    return _by_what_they_hold(lambda: assign(rows), on_rows, eigenvalues, weights, n_clusters, unit)


def leaves_room(
    embedding: FloatArray, eigenvalues: FloatArray, weights: FloatArray, labels: IntArray, n_clusters: int
) -> bool:
    """Whether other clusters could hold clearly more of the eigenpairs. None hold more than all of them."""
    held = held_of_eigenpairs(embedding, eigenvalues, weights, labels, n_clusters)
    return bool(np.maximum(eigenvalues, 0.0).sum() > CLEARLY_MORE * held)


def _by_what_they_hold(
    assign: Callable[[], Assignment],
    rows: FloatArray,
    eigenvalues: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    unit: Assignment,
) -> tuple[Assignment, str]:
    """Clusters of rows as they are, if they hold clearly more of the eigenpairs."""
    k = n_clusters
    if len(rows) > POINT_ROWS:  # a few tell whether all are worth the time
        few = np.linspace(0, len(rows) - 1, POINT_ROWS).astype(np.intp)
        some, w = rows[few], weights[few]
        found = kmeans(some, w, k, n_init=POINT_STARTS, random_state=0).labels
        of_few = [held_of_eigenpairs(some, eigenvalues, w, labels, k) for labels in (found, unit.labels[few])]
        if of_few[0] <= NOT_MORE * max(of_few[1], 0.0):
            return unit, ""
    plain = assign()
    more, held = (held_of_eigenpairs(rows, eigenvalues, weights, labels, k) for labels in (plain.labels, unit.labels))
    if more <= CLEARLY_MORE * max(held, 0.0) or has_dust(plain.labels, weights, k, weights):
        return unit, ""
    told = f"{more:.3g} of the eigenvalues, those of rows of length 1 {held:.3g}"
    return plain, f"labels come from rows of the embedding as they are: their clusters hold {told}"


def _taken(values: FloatArray, places: IntArray) -> FloatArray:
    """Some rows, on the host."""
    return to_host(values[moved(places, values)])


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


def _spread_out_rows(embedding: FloatArray, n_clusters: int) -> IntArray:
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


def _pivot_rotation(rows: FloatArray) -> FloatArray:
    """The orthogonal matrix closest to carrying the pivot rows onto the axes, (columns, columns)."""
    pivots = _spread_out_rows(rows, rows.shape[1])
    left, _, right = svd(rows[pivots].T)
    return np.asarray(left @ right)


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


START_ROWS = 5_000
"""Rows of the sample: only a start, which the steps over all rows improve."""


LLOYD_STEPS = 10
"""Steps over all rows: centres of a sample are so near that few rows move after the first."""


def device_kmeans(
    embedding: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    cut: NormalizedCut | None = None,
    n_init: int,
    random_state: int | np.random.RandomState | None,
    steps: int = LLOYD_STEPS,
) -> Assignment:
    """Weighted k-means: the best start of a sample, then Lloyd steps over all rows until no label moves.

    A sample of rows travels to the host, nothing else of their size; labels stay with the rows. A step waits for the
    device twice. ``steps=0`` is ``assign_sampled``.
    """
    start = assign_sampled(
        "kmeans",
        embedding,
        weights,
        n_clusters,
        cut=cut,
        n_init=n_init,
        random_state=random_state,
        sample_rows=START_ROWS,
    )
    labels, rule = start.labels, start.pointwise
    weights = moved(float64(weights), embedding)
    for _ in range(steps):
        centres = _means(embedding, weights, labels, rule.centres)  # type: ignore[attr-defined]
        rule = NearestCentre(centres[sorted_order(centres)])
        before, labels = labels, rule.labels(embedding)
        if not scalars((labels != before).any())[0]:
            break
    return Assignment(labels, rule)


def _means(rows: FloatArray, weights: FloatArray, labels: IntArray, centres: FloatArray) -> FloatArray:
    """The weighted mean of every cluster, on the host; an empty one keeps its centre.

    Sums are products with an indicator matrix, a block of rows at a time: adding by index would add in any order on a
    device, and give other bits every time.
    """
    k = len(centres)
    xp = namespace(rows)
    sums = full((k, rows.shape[1] + 1), 0.0, rows)
    unit = identity(k, rows)
    step = max(BLOCK_ENTRIES // k, 1)
    for top in range(0, len(rows), step):
        place = slice(top, top + step)
        ones = full((len(rows[place]), 1), 1.0, rows)
        sums += unit[labels[place]].T @ (weights[place, None] * xp.concatenate([ones, float64(rows[place])], axis=1))
    found = to_host(sums)
    present = found[:, 0] > 0
    return np.where(present[:, None], found[:, 1:] / np.where(present, found[:, 0], 1.0)[:, None], centres)


def assign_in_place(
    name: str,
    rows: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    cut: NormalizedCut | None = None,
    n_init: int,
    random_state: RandomState,
    parts: Parts | None = None,
) -> Assignment:
    """Labels, on the host, of rows wherever they lie. Nobody looks for ``parts`` on a device."""
    if on_host(rows):
        assign = partial(assign_sampled, name) if len(rows) > MANY_ROWS else ASSIGNERS[name]
        return assign(rows, weights, n_clusters, cut=cut, n_init=n_init, random_state=random_state, parts=parts)
    if name == "kmeans":
        found = device_kmeans(rows, weights, n_clusters, cut=cut, n_init=n_init, random_state=random_state)
    else:
        found = assign_sampled(name, rows, weights, n_clusters, cut=cut, n_init=n_init, random_state=random_state)
    return replace(found, labels=to_host(found.labels).astype(np.intp))
