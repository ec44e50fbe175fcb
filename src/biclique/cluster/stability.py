"""Are clusters found again? Best Jaccard index with the clusters of random halves (Hennig 2007)."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.selection.criteria import best_jaccard


def found_again(labels: IntArray, others: IntArray, n_clusters: int) -> FloatArray:
    """max_B |A ∩ B| / |A ∪ B| of every cluster A of ``labels`` with the clusters B of ``others``.

    Not a number for a cluster without rows.
    """
    shares = best_jaccard(labels, others, np.ones(len(labels)), n_clusters)
    return np.where(np.bincount(labels, minlength=n_clusters) > 0, shares, np.nan)


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
    with warnings.catch_warnings(
        action="ignore"
    ):  # of fits that the user did not ask for, and of clusters without rows
        for split in range(n_splits):
            chosen = np.sort(random.choice(len(labels), half, replace=False))
            found[split] = found_again(labels[chosen], fit_half(chosen, split), n_clusters)
        return np.asarray(np.nanmean(found, axis=0))
