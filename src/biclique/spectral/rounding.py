"""Rounding: from rows of the embedding to clusters, each with a fitted rule for new rows."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from biclique._typing import FloatArray, IntArray
from biclique.kernels.kernel import squared_norms
from biclique.runtime.namespace import float64, full, identity, moved, namespace, to_host
from biclique.spectral.lloyd import KernelRule, NewRows

TIE = 1e-6
"""Another k-means start wins only by this relative margin; otherwise the deterministic one stays."""

SAME = 1e-9
"""Rows that differ by less, as a share of the largest entry, are equal: what is left is rounding."""

STARTS = 10
"""Starts of k-means for up to so many clusters; 100/k for more, where the first start is hardly ever beaten."""

LOST = 1e-4
"""Squares that were made this much smaller by subtractions are computed anew: four of their sixteen digits are lost."""

SAMPLE_ROWS = 20_000
"""With more rows centres come from a sample: they are then known to a hundredth of a cluster's width."""

BLOCK_ENTRIES = 2**22
"""Entries of the table rows × clusters that are in memory at once."""


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


Rule: TypeAlias = EmbeddingRule | KernelRule
"""A fitted rule for the labels of new rows: ``of_new`` gives them, ``keeping`` the same rule for some clusters."""


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
class NearestCentre(EmbeddingRule):
    """label(x) = argmin_j |x − c_j|."""

    centres: FloatArray  # (k, columns)

    def labels(self, embedding: FloatArray) -> IntArray:
        squares = np.einsum("ij,ij->i", self.centres, self.centres)
        return largest_column(embedding, self.centres.T, -squares / 2)

    def keeping(self, clusters: IntArray) -> NearestCentre:
        return NearestCentre(self.centres[clusters])


@dataclass(frozen=True)
class LargestCoordinate(EmbeddingRule):
    """label(x) = argmax_j of (x R)_j, or of its absolute value."""

    rotation: FloatArray  # (columns, k)
    absolute: bool

    def labels(self, embedding: FloatArray) -> IntArray:
        rows = embedding[:, : len(self.rotation)]
        return largest_column(rows, self.rotation, np.zeros(self.rotation.shape[1]), absolute=self.absolute)

    def keeping(self, clusters: IntArray) -> LargestCoordinate:
        return LargestCoordinate(self.rotation[:, clusters], self.absolute)


def largest_column(rows: FloatArray, matrix: FloatArray, offset: FloatArray, *, absolute: bool = False) -> IntArray:
    """argmax_j of (x M)_j + o_j, or of its absolute value: block by block, because a table of all may not fit."""
    xp = namespace(rows)
    matrix, offset = moved(matrix, rows), moved(offset, rows)
    step = max(BLOCK_ENTRIES // max(matrix.shape[1], 1), 1)
    blocks = []
    for top in range(0, max(len(rows), 1), step):
        scores = float64(rows[top : top + step]) @ matrix + offset
        blocks.append(xp.argmax(xp.abs(scores) if absolute else scores, axis=1))
    return xp.concatenate(blocks)  # type: ignore[no-any-return]


def kmeans(
    embedding: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    n_init: int | str,
    random_state: int | np.random.RandomState | None,
) -> Assignment:
    """Weighted k-means.

    With ``n_init=1``: one k-means++ start from ``random_state``, as the paper's repeats need. With more,
    the first start is deterministic, and is left only for a start that is better by more than rounding.
    With "auto" these are ten for up to ten clusters, 100/k for more; the first one alone for more than 50.

    If there are no more distinct rows than clusters, each is a cluster: k-means would split one by its rounding.
    """
    random = check_random_state(random_state)
    centres = few_distinct_rows(embedding, n_clusters)
    if centres is None and n_init == 1:
        centres, _ = lloyd(embedding, weights, n_clusters, "k-means++", random)
    elif centres is None:
        starts = min(STARTS, STARTS**2 // n_clusters) if isinstance(n_init, str) else n_init
        centres, least = lloyd(embedding, weights, n_clusters, first_centres(embedding, weights, n_clusters), random)
        if starts > 1:
            others, inertia = lloyd(embedding, weights, n_clusters, "k-means++", random, starts - 1)
            centres = others if inertia < (1 - TIE) * least else centres
    return assigned(NearestCentre(centres[sorted_order(centres)]), embedding)


def assigned(rule: EmbeddingRule, embedding: FloatArray) -> Assignment:
    """The labels that a rule gives."""
    return Assignment(rule.labels(embedding), rule)


def lloyd(
    embedding: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    init: str | FloatArray,
    random: np.random.RandomState | None,
    n_init: int = 1,
) -> tuple[FloatArray, float]:
    """The centres of scikit-learn's k-means, and their inertia."""
    model = KMeans(n_clusters, init=init, n_init=n_init, random_state=random, tol=0)
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: the estimator says so itself, with numbers.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(embedding, sample_weight=weights)
    return np.asarray(model.cluster_centers_, dtype=float), float(model.inertia_)


def few_distinct_rows(embedding: FloatArray, most: int) -> FloatArray | None:
    """The distinct rows if there are at most so many, else None; rows that agree to ``SAME`` are one."""
    near = SAME * float(np.abs(embedding).max(initial=0.0))
    sums = np.sort(embedding.sum(axis=1))
    if np.sum(np.diff(sums) > near * embedding.shape[1]) >= most:  # each gap parts rows that differ
        return None
    found = list[FloatArray]()
    for rows in (embedding[: 2 * most], embedding):  # the first rows show at once that there are more
        found.clear()
        while len(rows):
            if len(found) == most:
                return None
            found.append(rows[0])
            rows = rows[np.abs(rows - rows[0]).max(axis=1) > near]
    return np.array(found)


def first_centres(embedding: FloatArray, weights: FloatArray, n_clusters: int) -> FloatArray:
    """Means of the rows nearest to each of k rows that span the embedding best: a start with nothing random."""
    start = embedding[spread_out_rows(embedding, n_clusters)]
    labels = NearestCentre(start).labels(embedding)
    means, present = weighted_means(embedding, weights, labels, n_clusters)
    return np.where(present[:, None], means, start)


def cluster_sums(rows: FloatArray, weights: FloatArray, labels: IntArray, n_clusters: int) -> FloatArray:
    """Σ w and Σ w x of every cluster, (k, 1 + columns), on the host; rows are wherever they lie.

    Sums are products with an indicator matrix, a block of rows at a time: adding by index would add in any order on a
    device, and give other bits every time.
    """
    xp = namespace(rows)
    sums, unit = full((n_clusters, 1 + rows.shape[1]), 0.0, rows), identity(n_clusters, rows)
    step = max(BLOCK_ENTRIES // n_clusters, 1)
    for top in range(0, len(rows), step):
        place = slice(top, top + step)
        w = weights[place, None]
        sums += unit[labels[place]].T @ xp.concatenate([w, w * float64(rows[place])], axis=1)
    return to_host(sums)


def weighted_means(
    rows: FloatArray, weights: FloatArray, labels: IntArray, n_clusters: int
) -> tuple[FloatArray, np.ndarray]:
    """The weighted mean of every cluster (zero if it is empty), on the host, and which clusters have rows."""
    sums = cluster_sums(rows, weights, labels, n_clusters)
    present = sums[:, 0] > 0
    return sums[:, 1:] / np.where(present, sums[:, 0], 1.0)[:, None], present


def spread_out_rows(embedding: FloatArray, n_clusters: int) -> IntArray:
    """k rows that span the embedding best: each is farthest from the span of those before, as in pivoted QR.

    Of rows that are equally far the first one is taken: rows of length 1 differ by rounding alone. If the span is all
    there is, the rows farthest from those before follow.
    """
    rest, found = np.asarray(embedding[:, :n_clusters]), list[int]()
    directions = np.empty((0, rest.shape[1]))  # orthonormal: of the rows that were found since ``rest`` was computed
    squares = squared_norms(rest)
    first = exact = squares.max()
    while len(found) < min(n_clusters, rest.shape[1]):
        if squares.max() < LOST * exact:
            rest = rest - (rest @ directions.T) @ directions
            directions, squares = directions[:0], squared_norms(rest)
            exact = squares.max()
        largest = squares.max()
        if largest <= SAME**2 * first:
            break
        found.append(int(np.argmax(squares >= (1 - TIE) * largest)))
        direction = rest[found[-1]] - (directions @ rest[found[-1]]) @ directions
        direction /= np.linalg.norm(direction)
        directions = np.vstack([directions, direction])
        squares -= (rest @ direction) ** 2
    if len(found) == n_clusters:
        return np.asarray(found)
    distances = np.full(len(embedding), np.inf)
    for place in found:
        distances = np.minimum(distances, np.sum((embedding - embedding[place]) ** 2, axis=1))
    while len(found) < n_clusters:
        found.append(int(np.argmax(distances)))
        distances = np.minimum(distances, np.sum((embedding - embedding[found[-1]]) ** 2, axis=1))
    return np.asarray(found)


def by_sorted_centres(rule: LargestCoordinate, embedding: FloatArray, weights: FloatArray) -> Assignment:
    """The labels of a rule with its clusters numbered by sorted centres, empty ones last."""
    k = rule.rotation.shape[1]
    centres, present = weighted_means(embedding, weights, rule.labels(embedding), k)
    order = sorted_order(centres)
    return assigned(rule.keeping(np.concatenate([order[present[order]], order[~present[order]]])), embedding)


def sorted_order(centres: FloatArray) -> IntArray:
    """The order of centres by their second column (the leading eigenvector), then the others."""
    columns = np.roll(np.arange(centres.shape[1]), -1)
    return np.lexsort(centres[:, columns[::-1]].T)
