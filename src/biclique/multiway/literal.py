"""Objectives as the paper prints them, where print and definition differ; for comparison.

``objectives.py`` has the forms that the rest of the paper uses. Each function here says where the difference lies.
All but the tensor take one pass over K.
"""

from __future__ import annotations

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError
from biclique.gram import GramOperator
from biclique.multiway.biclique import check_even_order
from biclique.multiway.objectives import as_operator, cluster_masses, cut_parts, indicators
from biclique.multiway.tensors import contract, cubical


def literal_k_way_normalized_cut(
    gram: GramOperator | FloatArray, labels: IntArray, order: float = 2, sample_weight: FloatArray | None = None
) -> float:
    """Σ_j NCut(V_j, V∖V_j) = Σ_j cut_j (1/vol(V_j) + 1/vol(V∖V_j)), cuts and volumes of K^(m) (Eq. 9 as printed).

    The trace form below that equation has no volume of the rest, and neither has ``k_way_normalized_cut``. For two
    parts this is twice that number, for more parts another objective.
    """
    gains, volumes, total = cut_parts(gram, labels, order, sample_weight)
    if len(volumes) < 2:
        raise DataError("labels must have at least two parts: the rest of a single part has no volume.")
    ratios = 1 - volumes / total - (2 / order) ** 2 * gains  # cut_j / vol(V_j)
    return float((ratios * total / (total - volumes)).sum())


def literal_kernel_kmeans_objective(
    gram: GramOperator | FloatArray, labels: IntArray, order: int, weights: FloatArray | None = None
) -> float:
    """J' = Σ_j [Σ_i Σ_r w_i κ^(m)(i, r; i, r) − Σ_{i,l} Σ_{r,q} w_i w_l κ^(m)(i, r; l, q)/s_j], all in cluster j.

    i and l run over the points of cluster j, r and q over all tuples of h − 1 of its points, h = m/2 (the paper's J'
    as printed, {i·} ⊂ π_j). With p points, K_j the block of the cluster, δ = K_j 1 and ρ = 1ᵀδ,

        Σ_r κ^(m)(i, r; i, r) = p^(h−1) κ_ii + (h−1) p^(h−2) (2δ_i + tr K_j) + (h−1)(h−2) p^(h−3) ρ,

    and the second sum is the contraction of the block, so J' costs one pass. The paper's matrix form, with K^(m) over
    all points, is ``weighted_kernel_kmeans_objective(biclique_gram(K, m, scaled=True), labels, weights)``. It is
    another number from m = 4 on.
    """
    operator, m = as_operator(gram), check_even_order(order)
    inside = indicators(labels, operator.n)
    w, weighted, s = cluster_masses(inside, weights)
    product = operator.matmat(np.column_stack([inside, weighted]))
    k, h, c = inside.shape[1], m // 2, m // 2 - 1
    degrees = inside * product[:, :k]  # δ_i in the column of its cluster
    p, trace, rho = inside.sum(axis=0), operator.diagonal() @ inside, degrees.sum(axis=0)
    first = p ** (h - 1.0) * ((w * operator.diagonal()) @ inside)
    first += c * p ** (h - 2.0) * (2 * (w @ degrees) + s * trace) + c * (h - 2) * p ** (h - 3.0) * s * rho
    within = np.einsum("ij,ij->j", weighted, product[:, k:])
    second = p ** (m - 2.0) * (within + 2 * (c / p) * s * (w @ degrees) + (c / p) ** 2 * s**2 * rho)
    return float((first - second / s).sum())


def literal_tensor_kmeans_objective(tensor: FloatArray, labels: IntArray, weights: FloatArray | None = None) -> float:
    """J' = Σ_j [Σ_i w_i Σ_r 𝒜[i, i, r] − Σ_{i,l} w_i w_l Σ_r 𝒜[i, l, r]/s_j], i, l and r in cluster j (as printed).

    r runs over tuples of m − 2 points of the cluster. In the matrix form, ``weighted_tensor_kmeans_objective``, it runs
    over tuples of all points.
    """
    tensor = cubical(tensor)
    inside = indicators(labels, len(tensor))
    w, _, s = cluster_masses(inside, weights)
    total = 0.0
    for j in range(len(s)):
        members = np.flatnonzero(inside[:, j])
        block = contract(tensor[np.ix_(*[members] * tensor.ndim)], (0, 1))
        total += w[members] @ np.diagonal(block) - w[members] @ block @ w[members] / s[j]
    return float(total)
