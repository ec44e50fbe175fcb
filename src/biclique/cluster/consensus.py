"""Several partitions of the same rows into one."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError, FewerClustersWarning, ParameterError, warn_user
from biclique.features.neighborhoods import joined_components
from biclique.fit.given_rows import read_array
from biclique.fit.neighborhood_cut import embedded_columns
from biclique.rows.array import digests, find_rows, known_or_new
from biclique.rows.checks import check_values
from biclique.runtime.arguments import check_count, check_random
from biclique.runtime.threads import single_threaded_blas
from biclique.spectral.assign import assign_in_place

MISSING = -1
"""The label of a row that a partition says nothing about."""

TOLERANCE = 1e-9
"""Residuals of eigenpairs, as a share of the eigengap."""


def consensus_labels(
    L: ArrayLike,
    n_clusters: int,
    *,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,  # noqa: ARG001
) -> IntArray:
    """One partition for several of the same rows.

    Every cluster of every partition is a hyperedge on the rows, and the normalised cut of the hypergraph's star
    expansion is solved: rows that many partitions put together stay together. A hyperedge weighs as much as it has
    rows, so the similarity of two rows is the number of partitions that put them together. Rows with equal labels in
    all partitions are one vertex with a weight.

    Parameters
    ----------
    L : array of whole numbers, shape (n_rows, n_partitions)
        The labels of each partition in its column; −1 if a partition has none for a row.
    n_clusters : int
    random_state : int, RandomState or None, default 0
        Of k-means in the embedding.
    n_jobs : int, optional
        Ignored: one thread is enough.

    Returns
    -------
    ndarray of shape (n_rows,)
        −1 for rows that no partition has a label for.

    Examples
    --------
    >>> from biclique import consensus_labels
    >>> consensus_labels([[0, 1, 5], [0, 1, 5], [0, 1, 7], [2, 0, 7], [2, 0, 7]], n_clusters=2).tolist()
    [0, 0, 0, 1, 1]
    """
    check_count("n_clusters", n_clusters)
    patterns, index, weights = equal_rows(_checked(L))
    voting = (patterns != MISSING).any(axis=1)
    n_voting = int(weights[voting].sum())
    if n_clusters > n_voting:
        raise DataError(
            f"L has labels for {n_voting} rows, fewer than n_clusters={n_clusters}: ask for fewer clusters."
        )
    labels = np.full(len(patterns), MISSING)
    with single_threaded_blas():
        labels[voting] = _cut(patterns[voting], weights[voting], n_clusters, check_random(random_state))
    found = labels[index]
    first = np.unique(found[found != MISSING], return_index=True)[1]
    if len(first) < n_clusters:
        warn_user(
            f"{len(first)} cluster{'s' * (len(first) != 1)} returned, {n_clusters} asked for: the partitions tell only "
            f"{int(voting.sum())} kinds of rows apart; labels run from 0 to {len(first) - 1}.",
            FewerClustersWarning,
        )
    # Numbered in the order in which they come among the rows.
    return np.where(found == MISSING, MISSING, np.argsort(np.argsort(first))[found])


def _checked(L: ArrayLike) -> IntArray:
    table = np.asarray(L)
    if table.ndim != 2 or not table.size:
        raise DataError(
            f"L must be a table of rows by partitions, got an array of shape {table.shape}: for lists of labels, one "
            "for each partition, pass numpy.column_stack(lists)."
        )
    if table.dtype.kind not in "iu" or table.min() < MISSING:
        what = f"dtype {table.dtype}" if table.dtype.kind not in "iu" else f"the label {table.min()}"
        raise DataError(f"L must hold whole numbers of at least 0, or −1 for a missing label, got {what}.")
    return np.ascontiguousarray(table, dtype=np.int64)


def equal_rows(table: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """The distinct rows, the number of the distinct row that every row equals, and how often each occurs."""
    as_bytes = np.ascontiguousarray(table).view(f"V{table.itemsize * table.shape[1]}")[:, 0]  # quicker than axis=0
    _, first, index, counts = np.unique(as_bytes, return_index=True, return_inverse=True, return_counts=True)
    return table[first], index.ravel(), counts.astype(float)


def memberships(patterns: IntArray) -> sparse.csr_array:
    """H, (rows, clusters of all partitions): 1 if a row is in a cluster."""
    encoder = OneHotEncoder()
    H = encoder.fit_transform(patterns)
    return sparse.csr_array(H[:, np.concatenate(encoder.categories_) != MISSING])


def embedded(patterns: IntArray, weights: FloatArray, k: int) -> FloatArray:
    """The k leading eigenvectors of the normalised cut of order 2, divided by √w, up to a rotation: (rows, ≤ k).

    K = HHᵀ counts the partitions that put two rows together.
    """
    H = memberships(patterns)
    rows, values = embedded_columns(H, weights, joined_components(H), min(k, H.shape[1]), TOLERANCE)
    kept = values > np.finfo(float).eps * H.shape[1]
    return rows[:, np.concatenate([[True], kept])]


def _cut(patterns: IntArray, weights: FloatArray, n_clusters: int, random: np.random.RandomState) -> IntArray:
    """Labels of distinct rows by the normalised cut of order 2."""
    n = len(patterns)
    k = min(n_clusters, n)
    if k in (1, n):
        return np.arange(n) % k
    rows = embedded(patterns, weights, k)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return assign_in_place("kmeans", rows, weights, k, n_init="auto", random_state=random).contiguous().labels


@dataclass(eq=False, repr=False)
class ConsensusClustering(ClusterMixin, _BaseComposition):
    """Cluster by the consensus of several clusterers.

    Every estimator is fitted on the same rows. The clusters of their partitions are hyperedges of a hypergraph, whose
    normalised cut gives the labels (``consensus_labels``).

    Parameters
    ----------
    n_clusters : int, default 8
    estimators : list of (name, estimator), optional
        Clusterers with ``fit_predict``; those with ``predict`` label new rows. By default k-means with
        ``n_clusters``, 1.5 and 2 times as many clusters, five starts each. X may be sparse or have NaN if all of them
        take that. ``set_params(name__parameter=value)`` sets a parameter of one.
    random_state : int, RandomState or None
        Of the consensus, and of the default estimators. The given ones have their own.
    n_jobs : int, optional
        Threads of the consensus.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
        Clusters that were found.
    partitions_ : ndarray of shape (n_samples, n_estimators)
        The labels of each estimator.
    estimators_ : list of fitted estimators

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import load_iris
    >>> from biclique import BicliqueSpectralClustering, ConsensusClustering
    >>> parts = [("cut", BicliqueSpectralClustering(3, random_state=0)), ("means", KMeans(3, random_state=0)),
    ...          ("more means", KMeans(5, random_state=0))]
    >>> model = ConsensusClustering(3, estimators=parts, random_state=0).fit(load_iris().data)
    >>> int((model.labels_[:50] == 0).sum())
    50
    """

    n_clusters: int = 8
    estimators: Sequence[tuple[str, BaseEstimator]] | None = None
    _: KW_ONLY
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit every estimator, then the consensus of their labels."""
        del y
        check_count("n_clusters", self.n_clusters)
        random = check_random(self.random_state)
        self._check_estimators()
        rows, X = self._read(X, reset=True)
        n_rows = int(rows.shape[0])
        if n_rows < self.n_clusters:
            raise DataError(
                f"n_clusters={self.n_clusters} is more than the n_samples={n_rows} rows of X: ask for fewer."
            )
        with warnings.catch_warnings():
            if self.estimators is None:
                counts = [min(max(round(factor * self.n_clusters), 1), n_rows) for factor in (1.0, 1.5, 2.0)]
                fitted = [KMeans(k, n_init=1, random_state=random.randint(2**31)) for k in counts for _ in range(5)]
                # Fewer clusters of the consensus have a warning of their own.
                warnings.simplefilter("ignore", ConvergenceWarning)
            else:
                fitted = [clone(model) for _, model in self.estimators]
            partitions = np.column_stack([np.maximum(model.fit_predict(X), MISSING) for model in fitted])
        found = consensus_labels(partitions, self.n_clusters, random_state=random, n_jobs=self.n_jobs)
        self.estimators_, self.partitions_, self.labels_ = fitted, partitions, found
        self.n_clusters_ = int(found.max()) + 1
        numbers = sparse.issparse(rows) or rows.dtype.kind in "biuf"  # given estimators may take other tables
        self._known, first = np.unique(digests(rows) if numbers else np.empty(0), return_index=True)
        self._known_labels = found[first]
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with ``deep`` the estimators by name, and theirs."""
        found: dict[str, Any] = self._get_params("estimators", deep=deep)
        return found

    def set_params(self, **params: object) -> Self:
        """Set parameters, an estimator by its name, or a parameter of one (``name__parameter``)."""
        self._set_params("estimators", **params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = [get_tags(model).input_tags for _, model in self._tagged()]
        tags.input_tags.sparse = all(one.sparse for one in members)
        tags.input_tags.allow_nan = self.estimators is not None and all(one.allow_nan for one in members)
        return tags

    def _tagged(self) -> Sequence[tuple[str, BaseEstimator]]:
        """The given estimators that can say what they take."""
        return [(name, model) for name, model in self.estimators or () if hasattr(model, "__sklearn_tags__")]

    def _read(self, X: Any, *, reset: bool) -> tuple[Rows, Any]:
        """The rows, and X: as an array of numbers for k-means, as it came for given estimators."""
        if sparse.issparse(X):
            for name, model in self._tagged():
                if not get_tags(model).input_tags.sparse:
                    raise DataError(
                        f"estimators has {name!r}, a {type(model).__name__}, which takes no sparse X: pass X.toarray()."
                    )
        means = self.estimators is None
        dtype: Any = [np.float64, np.float32] if means else None
        rows = read_array(X, self, reset=reset, accept_sparse="csr", dtype=dtype)
        if means:
            check_values(rows, getattr(self, "feature_names_in_", None))
        return rows, rows if means else X

    def _check_estimators(self) -> None:
        if self.estimators is None:
            return
        given = list(self.estimators)
        if not given or not all(isinstance(one, tuple) and len(one) == 2 for one in given):
            raise ParameterError(
                "estimators must be a list of at least one pair (name, estimator), such as "
                f"[('means', KMeans(8))], got {self.estimators!r}."
            )
        names = [name for name, _ in given]
        if len({*names, *self.get_params(deep=False)}) < len(names) + len(self.get_params(deep=False)):
            raise ParameterError(f"estimators must have distinct names, other than those of parameters, got {names}.")
        for name, model in given:
            if not hasattr(model, "fit_predict"):
                raise ParameterError(f"estimators has {name!r}, a {type(model).__name__}, which is not a clusterer.")

    def predict(self, X: Any) -> IntArray:
        """The cluster of new rows, by the labels that the fitted estimators predict.

        A new row takes the label of the training rows that share its label in most partitions; training rows with
        those labels vote by their number.

        Parameters
        ----------
        X : array of shape (n_new, n_features)

        Returns
        -------
        ndarray of shape (n_new,)
        """
        check_is_fitted(self)
        rows, X = self._read(X, reset=False)
        for model in self.estimators_:
            if not hasattr(model, "predict"):
                raise ParameterError(
                    f"{type(model).__name__} has no predict, so new rows have no label in its partition: leave it out "
                    "of estimators, or fit on all rows."
                )
        new = np.column_stack([np.asarray(model.predict(X)) for model in self.estimators_])
        place = find_rows(self._known, rows)
        return known_or_new(self._known_labels, place, new, partial(votes, self.partitions_, self.labels_))


def votes(partitions: IntArray, labels: IntArray, new: IntArray) -> IntArray:
    """argmax_j Σ_p |cluster of x in p ∩ j| / |cluster of x in p|: equal labels in all partitions give equal votes.

    New rows whose labels are those of a training row take its label.
    """
    tally = np.zeros((len(new), int(labels.max()) + 1))
    for old, now in zip(partitions.T, new.T, strict=True):
        known = (labels != MISSING) & (old != MISSING)
        table = np.zeros((int(max(old.max(initial=0), now.max(initial=0))) + 1, tally.shape[1]))
        np.add.at(table, (old[known], labels[known]), 1.0)
        table /= np.maximum(table.sum(axis=1, keepdims=True), 1.0)
        there = now != MISSING
        tally[there] += table[now[there]]
    found = np.where(tally.any(axis=1), tally.argmax(axis=1), MISSING)
    patterns, first = np.unique(digests(partitions), return_index=True)
    place = find_rows(patterns, new)
    return np.where(place < 0, found, labels[first][place])
