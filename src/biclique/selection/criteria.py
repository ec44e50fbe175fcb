"""How partitions are judged without labels: the neutral cut, stability, consensus, and the doubt that they leave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.neighbors.index import NeighborIndex, links_inside
from biclique.rows.array import Vertices

NEUTRAL_NEIGHBORS = 10
"""Neighbours of the graph on which every candidate is judged."""

SIMILAR = 5
"""Families that the consensus looks at."""

DIGITS = 9
"""Criteria are compared to so many digits: rounding must decide nothing."""


def crossed(first: IntArray, second: IntArray, weights: FloatArray, k: int) -> FloatArray:
    """The weight of rows in cluster i of the first partition, of k clusters, and j of the second."""
    width = int(second.max(initial=0)) + 1
    sums: FloatArray = np.bincount(first * width + second, weights, k * width).astype(float)
    return sums.reshape(k, width)


def agreement(first: IntArray, second: IntArray, weights: FloatArray) -> float:
    """The adjusted Rand index of two partitions; a row of weight w counts as w rows.

    With the table t_ij of weights in cluster i of the first and j of the second, C(x) = x(x − 1)/2, and sums over the
    table, its rows and its columns,

        (Σ C(t_ij) − E) / ((Σ C(t_i·) + Σ C(t_·j))/2 − E),   E = Σ C(t_i·) Σ C(t_·j) / C(t_··),

    and 1 where that is 0/0: both partitions are one cluster, or both are single rows.
    """
    table = crossed(first, second, weights, int(first.max(initial=0)) + 1)
    both, rows, columns, all_pairs = (
        float((sums * (sums - 1) / 2).sum()) for sums in (table, table.sum(1), table.sum(0), table.sum())
    )
    expected = rows * columns / all_pairs if all_pairs else 0.0
    most = (rows + columns) / 2
    return 1.0 if np.isclose(most, expected, rtol=1e-12, atol=0.0) else (both - expected) / (most - expected)


def best_jaccard(first: IntArray, second: IntArray, weights: FloatArray, k: int) -> FloatArray:
    """For each of the k clusters of the first partition: |A ∩ B| / |A ∪ B| with the most similar cluster of the second;
    0 for a cluster without rows.
    """
    both = crossed(first, second, weights, k)
    either = both.sum(axis=1, keepdims=True) + both.sum(axis=0) - both
    return np.asarray((both / np.where(either > 0, either, 1.0)).max(axis=1))


def agreements(labels: Sequence[IntArray], weights: FloatArray) -> FloatArray:
    """The agreement of every pair of partitions, (c, c)."""
    found = np.eye(len(labels))
    for i, first in enumerate(labels):
        for j in range(i):
            found[i, j] = found[j, i] = agreement(first, labels[j], weights)
    return found


def neutral_graph(vertices: Vertices) -> sparse.csr_array:
    """A_ij = 1 if each of rows i ≠ j is among the 10 nearest of the other. No candidate uses this similarity itself.

    For a given matrix the nearest rows are the most similar ones. At a tie the row of the lower number is nearer.
    """
    near = _most_similar(vertices.data) if vertices.given else _nearest(vertices.data)
    n, width = near.shape
    ends = np.repeat(np.arange(n), width)
    A = sparse.csr_array((np.ones(n * width), (ends, near.ravel())), shape=(n, n))
    return sparse.csr_array(A.multiply(A.T))


def _nearest(rows: Rows) -> IntArray:
    """The nearest other rows of each row, (n, at most 10)."""
    n = int(rows.shape[0])
    k = min(NEUTRAL_NEIGHBORS + 1, n)
    near = NeighborIndex(rows, search="exact", n_jobs=1).query(None, k)[1]
    return _without_itself(np.asarray(near))


def _most_similar(K: Rows) -> IntArray:
    """The same for a matrix of similarities."""
    dense = K.toarray() if sparse.issparse(K) else np.array(K, dtype=float)
    np.fill_diagonal(dense, np.inf)
    k = min(NEUTRAL_NEIGHBORS + 1, len(dense))
    return _without_itself(np.argsort(-dense, axis=1, kind="stable")[:, :k])


def _without_itself(near: IntArray) -> IntArray:
    """Lists of neighbours without the row itself, which is one of each."""
    n, k = near.shape
    other = near != np.arange(n)[:, None]
    other[other.all(axis=1), -1] = False
    return np.asarray(near[other].reshape(n, k - 1))


def neutral_cut(A: sparse.csr_array, labels: IntArray) -> float:
    """The mean over clusters of (Σ_{i,j in the cluster} A_ij) / (Σ_{i in the cluster, all j} A_ij).

    1: no edge leaves a cluster. A cluster without edges counts as 0.
    """
    return links_inside(A, labels)


def consensus(pairs: FloatArray, families: Sequence[str]) -> FloatArray:
    """For every candidate the mean agreement with the five most similar other families; 1 if there is no other.

    The agreement with a family is that with its most similar candidate: families of many candidates have no more votes.
    Among candidates of a single family, each counts as a family of its own.
    """
    names = list(dict.fromkeys(families))
    if len(names) < 2:
        families = [str(i) for i in range(len(pairs))]
        names = list(families)
    if len(names) < 2:
        return np.ones(len(pairs))
    own = np.array([names.index(family) for family in families])
    likeness = np.column_stack([pairs[:, own == j].max(axis=1) for j in range(len(names))])
    likeness[np.arange(len(pairs)), own] = -np.inf
    return np.asarray(np.sort(likeness, axis=1)[:, 1:][:, -SIMILAR:].mean(axis=1))


def merge(pairs: FloatArray, above: float) -> IntArray:
    """For every candidate the first one that it agrees with by more than ``above`` and that joins no other."""
    found = np.arange(len(pairs))
    for i in range(len(pairs)):
        like = [j for j in range(i) if found[j] == j and pairs[i, j] > above]
        found[i] = like[0] if like else i
    return found


def doubts(criteria: Sequence[FloatArray], shares: Sequence[float], least: Sequence[float]) -> FloatArray:
    """How far a candidate is from 1 in its criteria c: the weighted geometric mean of max(1 − c, ε).

    ε (``least``) is what a single edge or row would change. Half as many edges between clusters count as much as half
    as many rows that change sides. Unlike a rank, the doubt does not depend on how many others are better.
    """
    logs = [np.log(np.maximum(1 - np.round(c, DIGITS), e)) for c, e in zip(criteria, least, strict=True)]
    return np.asarray(np.exp(np.average(logs, axis=0, weights=shares)))
