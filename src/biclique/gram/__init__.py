"""Ways to store or compute K: one class per file, one contract for all."""

from biclique.gram.dense import GIVEN_WAY_OUT, DenseGram, StoredCross, checked_matrix, dense_bytes
from biclique.gram.factored import FactoredGram, FactoredRows
from biclique.gram.fourier import FourierGram, FourierRows, GridError, ProductError
from biclique.gram.operator import CrossGram, GramOperator, MeasuredError, TrainedRows
from biclique.gram.sparse import NeighborGram, SparseGram, checked_sparse, given_bytes
from biclique.gram.tiled import TiledGram, tiled_bytes
from biclique.gram.torch_gram import TorchGram

__all__ = [
    "GIVEN_WAY_OUT",
    "GRAMS",
    "CrossGram",
    "DenseGram",
    "FactoredGram",
    "FactoredRows",
    "FourierGram",
    "FourierRows",
    "GramOperator",
    "GridError",
    "MeasuredError",
    "NeighborGram",
    "ProductError",
    "SparseGram",
    "StoredCross",
    "TiledGram",
    "TorchGram",
    "TrainedRows",
    "checked_matrix",
    "checked_sparse",
    "dense_bytes",
    "given_bytes",
    "tiled_bytes",
]

GRAMS: dict[str, type[GramOperator]] = {"dense": DenseGram, "tiled": TiledGram, "fourier": FourierGram}
"""The ways of holding an exact K of a kernel, by name. The plan, validation and the command line read this."""
