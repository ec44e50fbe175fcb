"""Objectives of a partition, from a Gram operator and labels, without storing K: one pass each.

The paper's table of objectives, graph beside hypergraph: weighted kernel k-means, the normalised cut of two parts and
of k parts, and weighted tensor k-means. A matrix is taken as well as an operator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, DegreeError
from biclique.gram import DenseGram, GramOperator
from biclique.multiway.biclique import square
from biclique.multiway.tensors import contract
from biclique.spectral.cut import check_order, shrunken_degrees


def as_operator(gram: GramOperator | FloatArray) -> GramOperator:
    """A Gram operator as it is, a matrix as one."""
    return gram if isinstance(gram, GramOperator) else DenseGram(square(gram))


def indicators(labels: Any, n: int) -> FloatArray:
    """The 0/1 matrix of clusters, (n, k), in the order of their names."""
    names, codes = np.unique(np.asarray(labels), return_inverse=True)
    if codes.shape != (n,):
        raise DataError(f"labels must have one entry a row, {n}, got shape {np.asarray(labels).shape}.")
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
    gains, volumes, _ = cut_parts(gram, labels, order, sample_weight)
    return float(len(volumes) - 1 - (2 / order) ** 2 * gains.sum())


def cut_parts(
    gram: GramOperator | FloatArray, labels: IntArray, order: float, sample_weight: FloatArray | None
) -> tuple[FloatArray, FloatArray, float]:
    """g_j = (a_j − δ_j²/ρ)/S_j and S_j of every part, and ρ = Σ_j S_j; cut_j/vol_j = 1 − S_j/ρ − (2/m)² g_j."""
    operator, order = as_operator(gram), check_order(order)
    w = np.ones(operator.n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    weighted = w[:, None] * indicators(labels, operator.n)
    product = operator.matmat(np.column_stack([w, weighted]))
    degrees = product[:, 0]
    total = float(w @ degrees)
    shrunken = shrunken_degrees(degrees, total / float(w.sum()), order)
    volumes = shrunken @ weighted
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
    parts = len(np.unique(np.asarray(labels)))
    if parts != 2:
        raise DataError(f"normalized_cut is of two parts, labels have {parts}: use k_way_normalized_cut.")
    return k_way_normalized_cut(gram, labels, order, sample_weight)


def weighted_tensor_kmeans_objective(
    tensor: FloatArray | GramOperator, labels: IntArray, weights: FloatArray | None = None
) -> float:
    """J' = Σ_i w_i (A_g)_ii − Σ_j Σ_{i,l∈j} w_i w_l (A_g)_il / s_j, A_g the contraction to the first two modes.

    Weighted tensor k-means in its matrix form (the paper's appendix on symmetric modelling). The paper's other form
    restricts the inner sums to the cluster: ``literal_tensor_kmeans_objective``, another number. For the symmetric
    model give a ``SymmetricGram``, which is A_g/n^(m−2) without any tensor: J' then comes divided by n^(m−2).
    """
    if isinstance(tensor, GramOperator):
        return weighted_kernel_kmeans_objective(tensor, labels, weights)
    return weighted_kernel_kmeans_objective(contract(tensor, (0, 1)), labels, weights)
