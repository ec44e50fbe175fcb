"""The bandwidth γ without labels."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from biclique._typing import FloatArray, Rows
from biclique.kernels.kernel import Kernel
from biclique.kernels.named import NEIGHBOR, make_kernel
from biclique.runtime.draws import draw_by_permutation

SAMPLE = 1000
NEIGHBOR_FACTOR = 0.2

GAMMA_RULES = ("auto", "median", "scale")


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
    affinity: str | Kernel,
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
    kernel = make_kernel(affinity, gamma=None)
    if kernel.dissimilarity(_precise(X[:1])) is None:
        return 1.0 / int(X.shape[1])
    chosen = draw_by_permutation(X.shape[0], SAMPLE, random_state)
    if len(chosen) < 2:
        return 1.0
    rows, weights = X[chosen], weights[chosen]
    q = np.asarray(kernel.dissimilarity(_precise(rows)))
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


def _precise(rows: Rows) -> Rows:
    return rows if sparse.issparse(rows) else np.array(rows, dtype=float)


def _variance(X: Rows, weights: FloatArray) -> float:
    """The variance of all entries of X, rows weighted by multiplicity."""
    if sparse.issparse(X):
        means, variances = mean_variance_axis(X.tocsr(), axis=0, weights=weights.astype(X.dtype))
        return float(variances.mean() + means.var())
    mean = float(np.average(X.mean(axis=1), weights=weights))
    return float(np.average(((X - mean) ** 2).mean(axis=1), weights=weights))
