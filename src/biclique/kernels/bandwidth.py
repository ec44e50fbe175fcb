"""The bandwidth γ without labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, euclidean_distances, manhattan_distances
from sklearn.utils.sparsefuncs import mean_variance_axis

from biclique._typing import FloatArray, Rows
from biclique.runtime.draws import draw_by_permutation

SAMPLE = 1000
NEIGHBOR = 7
NEIGHBOR_FACTOR = 0.2

GAMMA_RULES = ("auto", "median", "scale")


def _squared_euclidean(X: Rows) -> FloatArray:
    if sparse.issparse(X):
        return np.asarray(euclidean_distances(X, squared=True))
    X = X - np.median(X, axis=0)
    q = np.asarray(euclidean_distances(X, squared=True))
    # Small distances drown in the rounding of large rows (or of tight groups far apart): take them from differences.
    near = min(NEIGHBOR, len(q) - 1)
    small = np.median(np.partition(q, near, axis=1)[:, near]) < 1e-6 * np.max(X**2)
    return np.asarray(cdist(X, X, "sqeuclidean")) if small else q


def _chi2_distance(X: Rows) -> FloatArray:
    return np.asarray(-additive_chi2_kernel(X))


DISSIMILARITIES: dict[str, Callable[[Rows], FloatArray]] = {
    "rbf": _squared_euclidean,
    "laplacian": manhattan_distances,
    "chi2": _chi2_distance,
}
"""For κ = exp(−γ q(x, y)): the q of each kernel, all pairs of rows."""


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """The median of values repeated ``weights`` times (the mean of the two middle ones when even)."""
    ranks = np.argsort(values, kind="stable")
    values, cumulative = values[ranks], np.cumsum(weights[ranks])
    half = cumulative[-1] / 2
    low = int(np.searchsorted(cumulative, half * (1 - 1e-12)))
    high = int(np.searchsorted(cumulative, half * (1 + 1e-12)))
    return float((values[low] + values[min(high, len(values) - 1)]) / 2)


def bandwidth(
    rule: str,
    affinity: str,
    X: Rows,
    weights: FloatArray,
    random_state: int | np.random.RandomState | None,
) -> float:
    """γ by a rule, for κ = exp(−γ q(x, y)), from distinct rows X with their multiplicities.

    - ``"auto"``: γ = 0.2 / median over rows of q to the 7th nearest neighbour,
    - ``"median"``: γ = 1 / median of q over pairs,
    - ``"scale"``: γ = 1 / (d · var X), as scikit-learn's support vector machines have it,

    the first two within a sample of at most 1,000 distinct rows, so that γ does not grow with n, medians
    weighted by multiplicity. The 7th neighbour is the last one where there are fewer. Distances of zero do not count
    (distinct rows may be too close for float64, or alike to q); if no 7th neighbour is at a positive distance, the
    median is over pairs. γ = 1 if no distance is positive. The polynomial and sigmoid kernels have no distance: their
    ``"auto"`` and ``"median"`` are 1/d, scikit-learn's own default.
    """
    if rule == "scale":
        spread = int(X.shape[1]) * _variance(X, weights)
        return 1.0 / spread if spread > 0 else 1.0
    if affinity not in DISSIMILARITIES:
        return 1.0 / int(X.shape[1])
    chosen = draw_by_permutation(X.shape[0], SAMPLE, random_state)
    if len(chosen) < 2:
        return 1.0
    rows, weights = X[chosen], weights[chosen]
    q = DISSIMILARITIES[affinity](np.asarray(rows, dtype=float) if not sparse.issparse(rows) else rows)
    factor = 1.0
    if rule == "auto":
        factor = NEIGHBOR_FACTOR
        np.fill_diagonal(q, np.inf)
        kth = min(NEIGHBOR, len(chosen) - 1) - 1
        distances = np.partition(q, kth, axis=1)[:, kth]
    if rule == "median" or not (distances > 0).any():
        first, second = np.triu_indices(len(chosen), 1)
        distances, weights = q[first, second], weights[first] * weights[second]
    positive = distances > 0
    return factor / weighted_median(distances[positive], weights[positive]) if positive.any() else 1.0


def _variance(X: Rows, weights: FloatArray) -> float:
    """The variance of all entries of X, rows weighted by multiplicity."""
    if sparse.issparse(X):
        means, variances = mean_variance_axis(X.tocsr(), axis=0, weights=weights.astype(X.dtype))
        return float(variances.mean() + means.var())
    mean = float(np.average(X.mean(axis=1), weights=weights))
    return float(np.average(((X - mean) ** 2).mean(axis=1), weights=weights))
