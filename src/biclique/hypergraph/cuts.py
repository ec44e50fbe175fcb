"""Cuts of a hypergraph and a partition, for every expansion, in one pass over the incidences.

With c(e) of the expansion, Cut(V₁, V₂) = Σ_e c(e) |e ∩ V₁| |e ∩ V₂|, repeated vertices counted; volumes are row sums of
the expansion's A.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, DegreeError
from biclique.hypergraph.expansions import Expansion, ExpansionGram, SplittingFunction
from biclique.hypergraph.hypergraph import Hypergraph

AnyExpansion = str | Expansion | SplittingFunction


def _parts(hypergraph: Hypergraph, labels: Any, expansion: AnyExpansion) -> tuple[FloatArray, FloatArray]:
    """Cut(V_j, V∖V_j) and vol(V_j) of every part, in the order of their names."""
    codes, k = part_codes(hypergraph, labels)
    gram = ExpansionGram(hypergraph, expansion)
    inside = sparse.csr_array((np.ones(gram.n), (np.arange(gram.n), codes)), shape=(gram.n, k))
    counts = sparse.coo_array(hypergraph.members @ inside)  # |e ∩ V_j|, one entry where e and V_j meet
    rest = hypergraph.edge_sizes[counts.row] - counts.data
    cuts = np.bincount(counts.col, gram.coefficients[counts.row] * counts.data * rest, minlength=k)
    return np.asarray(cuts), np.bincount(codes, gram.degrees(), minlength=k).astype(float)


def _check_hypergraph(hypergraph: object) -> None:
    if not isinstance(hypergraph, Hypergraph):
        raise DataError(f"a Hypergraph is needed, got a {type(hypergraph).__name__}: use Hypergraph.from_incidence.")


def part_codes(hypergraph: Hypergraph, labels: Any) -> tuple[IntArray, int]:
    """The number of every vertex's part, in the order of their names, and how many parts there are."""
    _check_hypergraph(hypergraph)
    try:
        names, codes = np.unique(np.asarray(labels), return_inverse=True)
    except TypeError as error:
        raise DataError(f"labels must be of one kind, numbers or text: {error}.") from error
    if codes.shape != (hypergraph.n_vertices,):
        raise DataError(f"labels must have one entry a vertex, {hypergraph.n_vertices}, got shape {codes.shape}.")
    return codes, len(names)


def cut(hypergraph: Hypergraph, labels: Any, expansion: AnyExpansion = "star") -> float:
    """Cut = Σ_e c(e) Σ_{i<j} |e ∩ V_i| |e ∩ V_j|: for two parts the paper's Eq. 8."""
    return float(_parts(hypergraph, labels, expansion)[0].sum() / 2)


def normalized_cut(hypergraph: Hypergraph, labels: Any, expansion: AnyExpansion = "star") -> float:
    """NCut(V₁, V₂) = Cut(V₁, V₂) (1/vol V₁ + 1/vol V₂) of two parts."""
    parts = len(np.unique(np.asarray(labels)))
    if parts != 2:
        raise DataError(f"normalized_cut is of two parts, labels have {parts}: use k_way_normalized_cut.")
    return k_way_normalized_cut(hypergraph, labels, expansion)


def k_way_normalized_cut(hypergraph: Hypergraph, labels: Any, expansion: AnyExpansion = "star") -> float:
    """kNCut = Σ_j Cut(V_j, V∖V_j)/vol(V_j) of k parts (the paper's Eq. 9)."""
    cuts, volumes = _parts(hypergraph, labels, expansion)
    _check_volumes(volumes)
    return float((cuts / volumes).sum())


def _check_volumes(volumes: FloatArray) -> None:
    if (volumes <= 0).any():
        raise DegreeError(
            f"{int((volumes <= 0).sum())} of {len(volumes)} parts have no positive volume: leave out vertices that are "
            "in no edge (hypergraph.isolated())."
        )


def literal_k_way_normalized_cut(hypergraph: Hypergraph, labels: Any, expansion: AnyExpansion = "star") -> float:
    """Σ_j Cut(V_j, V∖V_j) (1/vol(V_j) + 1/vol(V∖V_j)), the paper's Eq. 9 as printed.

    The trace form below that equation has no volume of the rest, and neither has ``k_way_normalized_cut``. For two
    parts this is twice that number, for more parts another objective.
    """
    cuts, volumes = _parts(hypergraph, labels, expansion)
    if len(volumes) < 2:
        raise DataError("labels must have at least two parts: the rest of a single part has no volume.")
    _check_volumes(volumes)
    return float((cuts / volumes + cuts / (volumes.sum() - volumes)).sum())


def literal_incidence(hypergraph: Hypergraph) -> Any:
    """h(v, e) = √μ(v, e), μ how often v is in e: the paper's index matrix H as printed, shape (n_vertices, n_edges).

    A sparse matrix. With it fᵀ(D_v − H W Hᵀ/m)f is not Eq. 8's cut if a vertex is in an edge more than once. With
    H = μ, ``hypergraph.incidence``, it is, and the rest of this package uses that.
    """
    _check_hypergraph(hypergraph)
    return np.sqrt(hypergraph.incidence)
