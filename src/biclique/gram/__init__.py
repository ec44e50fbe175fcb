"""How K is held; one class a file, one contract for all."""

from biclique.gram.dense import GIVEN_WAY_OUT, DenseGram, StoredCross, checked_matrix, dense_bytes
from biclique.gram.factored import FactoredGram
from biclique.gram.fourier import FourierGram
from biclique.gram.operator import CrossGram, GramOperator, TrainedRows
from biclique.gram.sparse import NEIGHBOR_WEIGHTS, NeighborGram, SparseGram, checked_sparse, given_bytes
from biclique.gram.tiled import TiledGram, tiled_bytes

__all__ = [
    "GIVEN_WAY_OUT",
    "GRAMS",
    "NEIGHBOR_WEIGHTS",
    "CrossGram",
    "DenseGram",
    "FactoredGram",
    "FourierGram",
    "GramOperator",
    "NeighborGram",
    "SparseGram",
    "StoredCross",
    "TiledGram",
    "TrainedRows",
    "checked_matrix",
    "checked_sparse",
    "dense_bytes",
    "given_bytes",
    "tiled_bytes",
]

GRAMS: dict[str, type[GramOperator]] = {"dense": DenseGram, "tiled": TiledGram, "fourier": FourierGram}
"""The ways of holding an exact K of a kernel, by name. The plan, validation and the command line read this."""
