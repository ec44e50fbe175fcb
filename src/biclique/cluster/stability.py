"""Are clusters found again? Best Jaccard index with the clusters of random halves (Hennig 2007)."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from biclique._typing import FloatArray, IntArray


def best_jaccard(labels: IntArray, others: IntArray, n_clusters: int) -> FloatArray:
    """max_B |A ∩ B| / |A ∪ B| of every cluster A of ``labels`` with the clusters B of ``others``.

    Not a number for a cluster without rows.
    """
    table = np.zeros((n_clusters, int(others.max(initial=0)) + 1))
    np.add.at(table, (labels, others), 1.0)
    own, other = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    union = own + other - table
    shares = np.divide(table, union, out=np.zeros_like(table), where=union > 0).max(axis=1)
    return np.where(own[:, 0] > 0, shares, np.nan)


def stability_of(
    labels: IntArray,
    n_clusters: int,
    n_splits: int,
    half: int,
    fit_half: Callable[[IntArray, int], IntArray],
    random: np.random.RandomState,
) -> FloatArray:
    """The mean over random halves; ``fit_half`` gives the labels of some rows, fitted alone."""
    found = np.empty((n_splits, n_clusters))
    for split in range(n_splits):
        chosen = np.sort(random.choice(len(labels), half, replace=False))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that the user did not ask for by themselves
            others = fit_half(chosen, split)
        found[split] = best_jaccard(labels[chosen], others, n_clusters)
    there = ~np.isnan(found)
    sums = np.where(there, found, 0.0).sum(axis=0)
    out = np.full(n_clusters, np.nan)
    np.divide(sums, there.sum(axis=0), out=out, where=there.any(axis=0))
    return out
