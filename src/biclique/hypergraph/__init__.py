"""Given hyperedges: the class, expansions, cuts, models of points, inhomogeneous cuts, sampling and files."""

from biclique.hypergraph.convert import as_hypergraph
from biclique.hypergraph.cuts import cut, k_way_normalized_cut, normalized_cut
from biclique.hypergraph.expansions import EXPANSIONS, Expansion, ExpansionGram, find_expansion, laplacian
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.hypergraph.inhomogeneous import (
    SubsetSplitting,
    cost_graph,
    inhomogeneous_contraction,
    inhomogeneous_cut,
    inhomogeneous_kernel,
    inhomogeneous_kmeans_objective,
    inhomogeneous_normalized_cut,
    kernel_costs,
    pair_weights,
    span_distances,
    subspace_costs,
)
from biclique.hypergraph.splitting import SPLITTINGS, distortion, pair_weight
from biclique.hypergraph.subspaces import AffineSubspace, draw_together, edge_distances, fit_subspaces, linked_pairs

__all__ = [
    "EXPANSIONS",
    "SPLITTINGS",
    "AffineSubspace",
    "Expansion",
    "ExpansionGram",
    "Hypergraph",
    "SubsetSplitting",
    "as_hypergraph",
    "cost_graph",
    "cut",
    "distortion",
    "draw_together",
    "edge_distances",
    "find_expansion",
    "fit_subspaces",
    "inhomogeneous_contraction",
    "inhomogeneous_cut",
    "inhomogeneous_kernel",
    "inhomogeneous_kmeans_objective",
    "inhomogeneous_normalized_cut",
    "k_way_normalized_cut",
    "kernel_costs",
    "laplacian",
    "linked_pairs",
    "normalized_cut",
    "pair_weight",
    "pair_weights",
    "span_distances",
    "subspace_costs",
]
