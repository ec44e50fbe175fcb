"""How K is held; one class a file, one contract for all."""

from biclique.gram.base import CrossGram, GramOperator
from biclique.gram.choose import GRAM_NAMES, PRECISIONS, choose_gram, choose_precision, make_gram
from biclique.gram.cost import Cost, estimate_seconds
from biclique.gram.cross import HeldRows, KernelCross, StoredCross, panel_product
from biclique.gram.dense import DenseGram, dense_bytes, symmetric
from biclique.gram.memory import data_bytes, format_bytes, parse_memory_limit, require
from biclique.gram.parts import part_sizes
from biclique.gram.sparse import SparseGram, symmetric_sparse
from biclique.gram.threads import single_threaded_blas
from biclique.gram.tiled import TiledGram, tiled_bytes

__all__ = [
    "GRAM_NAMES",
    "PRECISIONS",
    "Cost",
    "CrossGram",
    "DenseGram",
    "GramOperator",
    "HeldRows",
    "KernelCross",
    "SparseGram",
    "StoredCross",
    "TiledGram",
    "choose_gram",
    "choose_precision",
    "data_bytes",
    "dense_bytes",
    "estimate_seconds",
    "format_bytes",
    "make_gram",
    "panel_product",
    "parse_memory_limit",
    "part_sizes",
    "require",
    "single_threaded_blas",
    "symmetric",
    "symmetric_sparse",
    "tiled_bytes",
]
