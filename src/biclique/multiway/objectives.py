"""Objectives of a partition, from a Gram operator and labels, without storing K: one pass each.

The paper's table of objectives, graph beside hypergraph: weighted kernel k-means, the normalised cut of two parts and
of k parts, and weighted tensor k-means. A matrix is taken as well as an operator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, DegreeError
from biclique.gram.dense import DenseGram
from biclique.gram.operator import GramOperator
from biclique.multiway.biclique import check_even_order, square
from biclique.multiway.tensors import contract, cubical
from biclique.spectral.cut import check_order, shrunken_degrees


def as_operator(gram: GramOperator | FloatArray) -> GramOperator:
    """A Gram operator as it is, a matrix as one."""
    return gram if isinstance(gram, GramOperator) else DenseGram(square(gram))


def indicators(labels: Any, n: int) -> FloatArray:
    """The 0/1 matrix of clusters, (n, k), in the order of their names."""
    names, codes = np.unique(np.asarray(labels), return_inverse=True)
    if codes.shape != (n,):
        raise DataError(f"labels must have one entry for each row, {n}, got shape {np.asarray(labels).shape}.")
    return np.eye(len(names))[codes]


def cluster_masses(inside: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """w, w in the column of its cluster, and s_j = Σ_{i∈j} w_i."""
    w = np.ones(len(inside)) if weights is None else np.asarray(weights, dtype=float)
    weighted = w[:, None] * inside
    masses = weighted.sum(axis=0)
    if (masses <= 0).any():
        raise DataError("weights must be positive in total in every cluster: one has none, so it has no mean.")
    return w, weighted, masses


def weighted_kernel_kmeans_objective(
    gram: GramOperator | FloatArray, labels: IntArray, weights: FloatArray | None = None
) -> float:
    """J = Σ_i w_i κ_ii − Σ_j Σ_{i,l∈j} w_i w_l κ_il / s_j, s_j = Σ_{i∈j} w_i (the paper's Eq. 16).

    = trace(W^½ K W^½) − trace(Yᵀ W^½ K W^½ Y) with Y_ij = √(w_i/s_j) inside cluster j. For fixed weights the biclique
    kernel changes nothing: J with K^(m) is n^(m−2) times J with K, since the shift of the features cancels inside
    each cluster.
    """
    operator = as_operator(gram)
    w, weighted, masses = cluster_masses(indicators(labels, operator.n), weights)
    within = np.einsum("ij,ij->j", weighted, operator.matmat(weighted))
    return float(w @ operator.diagonal() - (within / masses).sum())


def k_way_normalized_cut(
    gram: GramOperator | FloatArray, labels: IntArray, order: float = 2, sample_weight: FloatArray | None = None
) -> float:
    """kNCut_m = Σ_j cut_j/vol_j = k − 1 − (2/m)² Σ_j (a_j − δ_j²/ρ)/S_j, the order-m normalised cut of a partition.

    a_j = 1_jᵀK1_j, δ_j and S_j the sums of δ and S over cluster j, cut and volume those of K^(m) (the paper's Eq. 9).
    The paper sums NCut(V_j, V∖V_j), which also divides by the volume of the rest; its trace form does not, and neither
    does this (``literal_k_way_normalized_cut`` does).
    """
    gains, volumes, _ = _cut_parts(gram, labels, order, sample_weight)
    return float(len(volumes) - 1 - (2 / order) ** 2 * gains.sum())


def _cut_parts(
    gram: GramOperator | FloatArray, labels: IntArray, order: float, sample_weight: FloatArray | None
) -> tuple[FloatArray, FloatArray, float]:
    """g_j = (a_j − δ_j²/ρ)/S_j and S_j of every part, and ρ = Σ_j S_j; cut_j/vol_j = 1 − S_j/ρ − (2/m)² g_j."""
    operator, order = as_operator(gram), check_order(order)
    w = np.ones(operator.n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    weighted = w[:, None] * indicators(labels, operator.n)
    product = operator.matmat(np.column_stack([w, weighted]))
    degrees = product[:, 0]
    total = float(w @ degrees)
    volumes = shrunken_degrees(degrees, total / float(w.sum()), order) @ weighted
    if total <= 0 or (volumes <= 0).any():
        raise DegreeError(
            "a cluster has no positive volume: use a higher order, or shift X so that kernels are positive."
        )
    within = np.einsum("ij,ij->j", weighted, product[:, 1:])
    return np.asarray((within - (degrees @ weighted) ** 2 / total) / volumes), volumes, total


def normalized_cut(
    gram: GramOperator | FloatArray, labels: IntArray, order: float = 2, sample_weight: FloatArray | None = None
) -> float:
    """NCut(V₁, V₂) = Cut(V₁, V₂) (1/vol V₁ + 1/vol V₂) of two parts, for K^(m) (the paper's, after Eq. 8)."""
    check_two_parts(labels)
    return k_way_normalized_cut(gram, labels, order, sample_weight)


def check_two_parts(labels: Any) -> None:
    parts = len(np.unique(np.asarray(labels)))
    if parts != 2:
        raise DataError(f"normalized_cut is of two parts, labels have {parts}: use k_way_normalized_cut.")


def weighted_tensor_kmeans_objective(
    tensor: FloatArray | GramOperator, labels: IntArray, weights: FloatArray | None = None
) -> float:
    """J' = Σ_i w_i (A_g)_ii − Σ_j Σ_{i,l∈j} w_i w_l (A_g)_il / s_j, A_g the contraction to the first two modes.

    Weighted tensor k-means in its matrix form (the paper's appendix on symmetric modelling). The paper's other form
    restricts the inner sums to the cluster: ``literal_tensor_kmeans_objective``, another number. For the symmetric
    model give a ``SymmetricGram``, which is A_g/n^(m−2) without any tensor: J' then comes divided by n^(m−2).
    """
    gram = tensor if isinstance(tensor, GramOperator) else contract(tensor, (0, 1))
    return weighted_kernel_kmeans_objective(gram, labels, weights)


# As the paper prints them, where print and definition differ; all but the tensor take one pass over K


def literal_k_way_normalized_cut(
    gram: GramOperator | FloatArray, labels: IntArray, order: float = 2, sample_weight: FloatArray | None = None
) -> float:
    """Σ_j NCut(V_j, V∖V_j) = Σ_j cut_j (1/vol(V_j) + 1/vol(V∖V_j)), cuts and volumes of K^(m) (Eq. 9 as printed).

    The trace form below that equation has no volume of the rest, and neither has ``k_way_normalized_cut``. For two
    parts this is twice that number, for more parts another objective.
    """
    gains, volumes, total = _cut_parts(gram, labels, order, sample_weight)
    return literal_sum(1 - volumes / total - (2 / order) ** 2 * gains, volumes)


def literal_sum(ratios: FloatArray, volumes: FloatArray) -> float:
    """Σ_j cut_j (1/vol_j + 1/(Σ_i vol_i − vol_j)) from cut_j/vol_j and vol_j."""
    if len(volumes) < 2:
        raise DataError("labels must have at least two parts: the rest of a single part has no volume.")
    total = volumes.sum()
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
