"""How alike two partitions of the same rows are."""

import numpy as np

from biclique._typing import FloatArray, IntArray


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
