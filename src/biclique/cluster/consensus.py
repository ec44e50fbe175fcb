"""Several partitions of the same rows into one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, FewerClustersWarning, ParameterError, warn_user
from biclique.hypergraph import ExpansionGram, Hypergraph
from biclique.runtime.arguments import check_count, check_random
from biclique.runtime.threads import single_threaded_blas
from biclique.spectral import NormalizedCut
from biclique.spectral.assign import kmeans
from biclique.spectral.solver import top_eigenpairs

MISSING = -1
"""The label of a row that a partition says nothing about."""


def consensus_labels(
    L: ArrayLike, n_clusters: int, *, random_state: int | np.random.RandomState | None = 0, n_jobs: int | None = None
) -> IntArray:
    """One partition for several of the same rows.

    Every cluster of every partition is a hyperedge on the rows, and the normalised cut of the hypergraph's star
    expansion is solved: rows that many partitions put together stay together. All hyperedges of a partition have the
    weight 1, so a row has one vote in each partition. Rows with equal labels in all partitions are one vertex with a
    weight.

    Parameters
    ----------
    L : array of whole numbers, shape (n_rows, n_partitions)
        The labels of each partition in its column; −1 where a partition has none for a row.
    n_clusters : int
    random_state : int, RandomState or None, default 0
        Of k-means in the embedding.
    n_jobs : int, optional
        Threads; the result does not depend on it.

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
    table = _checked(L)
    patterns, index, weights = equal_rows(table)
    voting = (patterns != MISSING).any(axis=1)
    labels = np.full(len(patterns), MISSING)
    if n_clusters > int(weights[voting].sum()):
        raise DataError(
            f"L has labels for {int(weights[voting].sum())} rows, fewer than n_clusters={n_clusters}: ask for fewer "
            "clusters."
        )
    with single_threaded_blas():
        found = _cut(patterns[voting], weights[voting], n_clusters, check_random(random_state), n_jobs)
    labels[voting] = _by_first_row(found, index, np.flatnonzero(voting))
    groups = len(np.unique(found))
    if groups < n_clusters:
        warn_user(
            f"{groups} clusters returned, {n_clusters} asked for: the partitions tell only {int(voting.sum())} kinds "
            f"of rows apart; labels run from 0 to {groups - 1}.",
            FewerClustersWarning,
        )
    return labels[index]


def _checked(L: ArrayLike) -> IntArray:
    table = np.asarray(L)
    if table.ndim != 2 or not table.size:
        raise DataError(
            f"L must be a table of rows by partitions, got an array of shape {table.shape}: for lists of labels, one a "
            "partition, pass numpy.column_stack(lists)."
        )
    if table.dtype.kind not in "iu" or table.min() < MISSING:
        what = f"dtype {table.dtype}" if table.dtype.kind not in "iu" else f"the label {table.min()}"
        raise DataError(f"L must hold whole numbers of at least 0, or −1 for a missing label, got {what}.")
    return np.ascontiguousarray(table, dtype=np.int64)


def equal_rows(table: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """The distinct rows, which of them every row is, and how often each occurs."""
    # Column by column: numbers of kinds so far and labels are made one number. No row is ever compared whole.
    kinds = np.zeros(len(table), dtype=np.int64)
    for column in table.T:
        values, codes = np.unique(column, return_inverse=True)
        kinds = np.unique(kinds * len(values) + codes, return_inverse=True)[1]
    _, first, counts = np.unique(kinds, return_index=True, return_counts=True)
    return table[first], kinds, counts.astype(float)


def partitions_as_hypergraph(patterns: IntArray, weights: FloatArray) -> Hypergraph:
    """Every cluster of every partition as a hyperedge of weight 1 on the distinct rows.

    A distinct row of weight w stands for w rows. The star expansion divides by the rows of an edge, Σw, so edges carry
    w(e) = |e|/Σ_{i∈e} w_i, where |e| counts distinct rows: then w(e)/|e| is 1/Σw.
    """
    n, _n_partitions = patterns.shape
    places, edges = [], []
    first = 0
    for column in patterns.T:
        there = np.flatnonzero(column != MISSING)
        codes = np.unique(column[there], return_inverse=True)[1]
        places.append(there)
        edges.append(first + codes)
        first += int(codes.max(initial=-1)) + 1
    rows, columns = np.concatenate(edges), np.concatenate(places)
    members = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(first, n))
    sizes = np.asarray(members.sum(axis=1)).ravel()
    return Hypergraph(members, sizes / (members @ weights))


def _cut(
    patterns: IntArray, weights: FloatArray, n_clusters: int, random: np.random.RandomState, n_jobs: int | None
) -> IntArray:
    """Labels of distinct rows by the normalised cut of order 2."""
    n = len(patterns)
    k = min(n_clusters, n)
    if k == n:
        return np.arange(n)
    if k == 1:
        return np.zeros(n, dtype=np.intp)
    gram = ExpansionGram(partitions_as_hypergraph(patterns, weights), "star", n_jobs=n_jobs)
    cut = NormalizedCut(gram, 2.0, weights)
    pairs = top_eigenpairs(cut, k - 1, tol=1e-6, max_iter=200, deflate=cut.trivial, random_state=random)
    rows = np.column_stack([cut.trivial, pairs.vectors]) / np.sqrt(weights)[:, None]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return kmeans(rows / lengths, weights, k, n_init=10, random_state=random).contiguous().labels


def _by_first_row(found: IntArray, index: IntArray, places: IntArray) -> IntArray:
    """Labels numbered in the order in which they come among the rows."""
    first = np.full(int(places.max()) + 1 if len(places) else 0, len(index))
    where = np.searchsorted(places, index)
    known = (where < len(places)) & (places[np.minimum(where, len(places) - 1)] == index)
    np.minimum.at(first, index[known], np.flatnonzero(known))
    earliest = np.full(int(found.max()) + 1, len(index))
    np.minimum.at(earliest, found, first[places])
    return np.argsort(np.argsort(earliest, kind="stable"), kind="stable")[found]


class ConsensusClustering(ClusterMixin, BaseEstimator):
    """Cluster by the consensus of several clusterers.

    Every estimator is fitted on the same rows. The clusters of their partitions are hyperedges of a hypergraph, whose
    normalised cut gives the labels (``consensus_labels``).

    Parameters
    ----------
    n_clusters : int, default 8
    estimators : list of (name, estimator), optional
        Clusterers with ``fit_predict``; those with ``predict`` label new rows. By default k-means with
        ``n_clusters``, 1.5 and 2 times as many clusters, five starts each.
    random_state : int, RandomState or None
        Of the consensus, and of the default estimators. The given ones have their own.
    n_jobs : int, optional
        Threads of the consensus.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
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

    def __init__(
        self,
        n_clusters: int = 8,
        estimators: Sequence[tuple[str, BaseEstimator]] | None = None,
        *,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.estimators = estimators
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit every estimator, then the consensus of their labels."""
        del y
        check_count("n_clusters", self.n_clusters)
        random = check_random(self.random_state)
        checked = validate_data(self, X, ensure_min_samples=2, dtype=None)
        if checked.shape[0] < self.n_clusters:
            raise DataError(
                f"n_clusters={self.n_clusters} is more than the n_samples={checked.shape[0]} rows of X: ask for fewer."
            )
        fitted = [clone(model) for _, model in self._named(random, checked.shape[0])]
        labels = [np.asarray(model.fit_predict(X)) for model in fitted]
        partitions = np.column_stack([np.maximum(each, MISSING) for each in labels])
        with warnings.catch_warnings():
            if self.n_clusters == 1:
                warnings.simplefilter("ignore", FewerClustersWarning)
            found = consensus_labels(partitions, self.n_clusters, random_state=random, n_jobs=self.n_jobs)
        self.estimators_, self.partitions_, self.labels_ = fitted, partitions, found
        return self

    def _named(self, random: np.random.RandomState, n_rows: int) -> Sequence[tuple[str, BaseEstimator]]:
        """The estimators, checked; or k-means of several numbers of clusters."""
        if self.estimators is None:
            return _default_estimators(self.n_clusters, n_rows, random)
        given = list(self.estimators)
        if not given or not all(isinstance(one, tuple) and len(one) == 2 for one in given):
            raise ParameterError(
                "estimators must be a list of at least one pair (name, estimator), such as "
                f"[('means', KMeans(8))], got {self.estimators!r}."
            )
        names = [name for name, _ in given]
        if len(set(names)) < len(names):
            raise ParameterError(f"estimators must have distinct names, got {names}.")
        for name, model in given:
            if not hasattr(model, "fit_predict"):
                raise ParameterError(f"estimators has {name!r}, a {type(model).__name__}, which is no clusterer.")
        return given

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
        validate_data(self, X, reset=False, dtype=None)
        for model in self.estimators_:
            if not hasattr(model, "predict"):
                raise ParameterError(
                    f"{type(model).__name__} has no predict, so new rows have no label in its partition: leave it out "
                    "of estimators, or fit on all rows."
                )
        new = np.column_stack([np.asarray(model.predict(X)) for model in self.estimators_])
        return votes(self.partitions_, self.labels_, new)


def votes(partitions: IntArray, labels: IntArray, new: IntArray) -> IntArray:
    """argmax_j Σ_p |cluster of x in p ∩ j| / |cluster of x in p|: equal labels in all partitions give equal votes.

    New rows whose labels are those of a training row take its label.
    """
    k = int(labels.max()) + 1
    counted = labels != MISSING
    tally = np.zeros((len(new), k))
    for old, now in zip(partitions.T, new.T, strict=True):
        known = counted & (old != MISSING)
        top = int(max(old.max(initial=0), now.max(initial=0))) + 1
        table = np.zeros((top, k))
        np.add.at(table, (old[known], labels[known]), 1.0)
        shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)
        there = now != MISSING
        tally[there] += shares[now[there]]
    out = np.where(tally.any(axis=1), tally.argmax(axis=1), MISSING)
    both, index, _ = equal_rows(np.concatenate([partitions, new]).astype(np.int64))
    own = np.full(len(both), MISSING - 1)
    own[index[: len(partitions)]] = labels
    same = own[index[len(partitions) :]]
    return np.where(same > MISSING - 1, same, out)


def _default_estimators(n_clusters: int, n_rows: int, random: np.random.RandomState) -> list[tuple[str, BaseEstimator]]:
    from sklearn.cluster import KMeans

    out = []
    for factor in (1.0, 1.5, 2.0):
        k = min(max(round(factor * n_clusters), 1), n_rows)
        for start in range(5):
            seed = int(random.randint(2**31))
            out.append((f"k-means of {k}, start {start} x{factor:g}", KMeans(k, n_init=1, random_state=seed)))
    return out
