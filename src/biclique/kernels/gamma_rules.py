"""γ by a rule, from the distances between rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from biclique._typing import FloatArray, Rows
from biclique.exceptions import ParameterError
from biclique.kernels.kernel import Kernel
from biclique.runtime.draws import draw_by_permutation

SAMPLE = 1000
"""Distinct rows from which γ comes: more would make γ grow with n."""

NEIGHBOR = 7
"""γ="auto" looks at the distance to this neighbour."""

NEIGHBOR_FACTOR = 0.2
"""γ="auto" is this over the median of those squared distances."""

GAMMA_RULES = ("auto", "median", "scale")
"""The rules by name."""


def weighted_median(values: FloatArray, weights: FloatArray) -> FloatArray:
    """The median of rows that are repeated ``weights`` times (the mean of the two middle ones when even), by column."""
    ranks = np.argsort(values, axis=0, kind="stable")
    cumulative = np.cumsum(weights[ranks], axis=0)
    half = cumulative[-1] / 2
    low, high = (np.sum(cumulative < half * near, axis=0, keepdims=True) for near in (1 - 1e-12, 1 + 1e-12))
    low, high = (np.take_along_axis(ranks, np.minimum(place, len(ranks) - 1), axis=0) for place in (low, high))
    return np.asarray((np.take_along_axis(values, low, axis=0) + np.take_along_axis(values, high, axis=0))[0] / 2)


def bandwidth(
    rule: str,
    kernel: Kernel,
    X: Rows,
    weights: FloatArray,
    random_state: int | np.random.RandomState | None,
) -> float:
    """γ by a rule, for κ = exp(−γ q(x, y)), from distinct rows X with their multiplicities.

    - ``"auto"``: γ = 0.2 / median over rows of q to the 7th nearest neighbour,
    - ``"median"``: γ = 1 / median of q over pairs,
    - ``"scale"``: γ = 1 / (d · var X), as scikit-learn's support vector machines have it,

    the first two within a sample of at most 1,000 distinct rows, so that γ does not grow with n, medians
    weighted by multiplicity. If a row has fewer neighbours, the last one counts as its 7th. Distances of zero do not
    count (distinct rows may be too close for float64, or equal for q); if no 7th neighbour is at a positive distance,
    the median is over pairs. γ = 1 if no distance is positive. A kernel without
    ``dissimilarity``, such as polynomial and sigmoid, has 1/d for ``"auto"`` and ``"median"``: scikit-learn's default.
    """
    if rule == "scale":
        if kernel.takes_gaps:
            raise ParameterError(
                f"gamma='scale' is the variance of all numbers of X, which affinity={kernel.name!r} does not see: use "
                "gamma='auto' or 'median'."
            )
        spread = int(X.shape[1]) * _variance(X, weights)
        return 1.0 / spread if spread > 0 else 1.0
    if kernel.dissimilarity is None:
        return 1.0 / int(X.shape[1])
    chosen = draw_by_permutation(X.shape[0], SAMPLE, random_state)
    n, weights = len(chosen), weights[chosen]
    if n < 2:
        return 1.0
    rows = X[chosen]
    q = kernel.dissimilarity(rows if sparse.issparse(rows) else np.array(rows, dtype=float))
    np.fill_diagonal(q, np.inf)
    factor = 1.0
    if rule == "auto":
        factor, kth = NEIGHBOR_FACTOR, min(NEIGHBOR, n - 1) - 1
        distances = np.partition(q, kth, axis=1)[:, kth]
    if rule == "median" or not (distances > 0).any():
        first, second = np.triu_indices(n, 1)
        distances, weights = q[first, second], weights[first] * weights[second]
    positive = distances > 0
    return factor / float(weighted_median(distances[positive], weights[positive])) if positive.any() else 1.0


def _variance(X: Rows, weights: FloatArray) -> float:
    """The variance of all entries of X, rows weighted by multiplicity."""
    if sparse.issparse(X):
        means, variances = mean_variance_axis(X.tocsr(), axis=0, weights=weights.astype(X.dtype))
        return float(variances.mean() + means.var())
    mean = float(np.average(X.mean(axis=1), weights=weights))
    return float(np.average(((X - mean) ** 2).mean(axis=1), weights=weights))
