"""Cuts of a hypergraph and a partition, for every expansion, in one pass over the incidences.

With c(e) of the expansion, Cut(V₁, V₂) = Σ_e c(e) |e ∩ V₁| |e ∩ V₂|, repeated vertices counted; volumes are row sums of
the expansion's A.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from biclique._typing import FloatArray
from biclique.exceptions import DataError, DegreeError
from biclique.hypergraph.expansions import Expansion, ExpansionGram
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.hypergraph.splitting import SplittingFunction
from biclique.multiway import indicators

AnyExpansion = str | Expansion | SplittingFunction


def _parts(hypergraph: Hypergraph, labels: Any, expansion: AnyExpansion) -> tuple[FloatArray, FloatArray]:
    """Cut(V_j, V∖V_j) and vol(V_j) of every part, in the order of their names."""
    gram = ExpansionGram(hypergraph, expansion)
    inside = indicators(labels, hypergraph.n_vertices)
    counts = hypergraph.members @ inside  # |e ∩ V_j|, (n_edges, k)
    cuts = gram.coefficients @ (counts * (hypergraph.edge_sizes[:, None] - counts))
    return np.asarray(cuts), np.asarray(gram.degrees() @ inside)


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
    if (volumes <= 0).any():
        raise DegreeError(
            f"{int((volumes <= 0).sum())} of {len(volumes)} parts have no positive volume: leave out vertices that are "
            "in no edge (hypergraph.isolated())."
        )
    return float((cuts / volumes).sum())
