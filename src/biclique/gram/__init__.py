"""How K is held; one class a file, one contract for all."""

from biclique.gram.choose import (
    FACTORED,
    GRAM_NAMES,
    GRAMS,
    PRECISIONS,
    Choice,
    choose_gram,
    choose_precision,
    exact_features,
    factored_precision,
    make_gram,
)
from biclique.gram.dense import GIVEN_WAY_OUT, DenseGram, StoredCross, checked_matrix, dense_bytes
from biclique.gram.factored import FactoredGram
from biclique.gram.neighbor_graph import NEIGHBOR_WEIGHTS, NeighborGram
from biclique.gram.operator import CrossGram, GramOperator, TrainedRows
from biclique.gram.sparse import SparseGram, checked_sparse, given_bytes
from biclique.gram.tiled import TiledGram, tiled_bytes

__all__ = [
    "FACTORED",
    "GIVEN_WAY_OUT",
    "GRAMS",
    "GRAM_NAMES",
    "NEIGHBOR_WEIGHTS",
    "PRECISIONS",
    "Choice",
    "CrossGram",
    "DenseGram",
    "FactoredGram",
    "GramOperator",
    "NeighborGram",
    "SparseGram",
    "StoredCross",
    "TiledGram",
    "TrainedRows",
    "checked_matrix",
    "checked_sparse",
    "choose_gram",
    "choose_precision",
    "dense_bytes",
    "exact_features",
    "factored_precision",
    "given_bytes",
    "make_gram",
    "tiled_bytes",
]
