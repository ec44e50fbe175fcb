"""Given hyperedges: the class, expansions, cuts, models of points, inhomogeneous cuts, sampling and files."""

from biclique.hypergraph.affine import AffineSubspace, draw_together, edge_distances, fit_subspaces, linked_pairs
from biclique.hypergraph.cuts import (
    cut,
    k_way_normalized_cut,
    literal_incidence,
    literal_k_way_normalized_cut,
    normalized_cut,
)
from biclique.hypergraph.expansions import EXPANSIONS, Expansion, ExpansionGram, find_expansion, laplacian
from biclique.hypergraph.files.by_ending import read_hypergraph, write_hypergraph
from biclique.hypergraph.files.convert import (
    as_hypergraph,
    from_hypergraphx,
    from_hypernetx,
    from_xgi,
    to_hypergraphx,
    to_hypernetx,
    to_xgi,
)
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
    subspace_costs,
)
from biclique.hypergraph.points.contraction import modelling_gram
from biclique.hypergraph.points.modellings import POINT_MODELLINGS, Modelling, make_modelling, modelling_values
from biclique.hypergraph.points.sampling import IterativeSample, iterative_sample, sample_hyperedges
from biclique.hypergraph.splitting import SPLITTINGS, distortion, pair_weight

__all__ = [
    "EXPANSIONS",
    "POINT_MODELLINGS",
    "SPLITTINGS",
    "AffineSubspace",
    "Expansion",
    "ExpansionGram",
    "Hypergraph",
    "IterativeSample",
    "Modelling",
    "SubsetSplitting",
    "as_hypergraph",
    "cost_graph",
    "cut",
    "distortion",
    "draw_together",
    "edge_distances",
    "find_expansion",
    "fit_subspaces",
    "from_hypergraphx",
    "from_hypernetx",
    "from_xgi",
    "inhomogeneous_contraction",
    "inhomogeneous_cut",
    "inhomogeneous_kernel",
    "inhomogeneous_kmeans_objective",
    "inhomogeneous_normalized_cut",
    "iterative_sample",
    "k_way_normalized_cut",
    "kernel_costs",
    "laplacian",
    "linked_pairs",
    "literal_incidence",
    "literal_k_way_normalized_cut",
    "make_modelling",
    "modelling_gram",
    "modelling_values",
    "normalized_cut",
    "pair_weight",
    "pair_weights",
    "read_hypergraph",
    "sample_hyperedges",
    "subspace_costs",
    "to_hypergraphx",
    "to_hypernetx",
    "to_xgi",
    "write_hypergraph",
]
