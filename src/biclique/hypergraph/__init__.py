"""Given hyperedges: the class, expansions, cuts, models of points, inhomogeneous cuts, sampling and files."""

from biclique.hypergraph.hypergraph import Hypergraph

__all__ = ["Hypergraph"]
