"""How K is held; one class a file, one contract for all."""

from biclique.gram.base import CrossGram, GramOperator
from biclique.gram.choose import (
    FACTORED,
    GRAM_NAMES,
    PRECISIONS,
    Choice,
    choose_gram,
    choose_precision,
    exact_features,
    factored_precision,
    make_gram,
    make_map,
    map_kind,
)
from biclique.gram.cost import Cost, estimate_factored, estimate_neighbors, estimate_seconds
from biclique.gram.cross import HeldRows, KernelCross, StoredCross, panel_product
from biclique.gram.dense import DenseGram, dense_bytes, symmetric
from biclique.gram.factored import FactoredGram, column_sums, factored_bytes, map_product, map_rows, weighted_gram
from biclique.gram.features import (
    MOST_EXACT_COLUMNS,
    ExactMap,
    FeatureMap,
    FourierMap,
    SketchMap,
    check_features,
    exact_columns,
)
from biclique.gram.memory import data_bytes, format_bytes, parse_memory_limit, require
from biclique.gram.neighbors import (
    NEIGHBOR_WEIGHTS,
    NeighborGram,
    components,
    members_of,
    nearest_among,
    with_ties,
    without_loops,
)
from biclique.gram.nystroem import LANDMARKS, NystroemMap, choose_landmarks
from biclique.gram.parts import part_sizes
from biclique.gram.sparse import SparseGram, symmetric_sparse
from biclique.gram.threads import single_threaded_blas
from biclique.gram.tiled import TiledGram, tiled_bytes

__all__ = [
    "FACTORED",
    "GRAM_NAMES",
    "LANDMARKS",
    "MOST_EXACT_COLUMNS",
    "NEIGHBOR_WEIGHTS",
    "PRECISIONS",
    "Choice",
    "Cost",
    "CrossGram",
    "DenseGram",
    "ExactMap",
    "FactoredGram",
    "FeatureMap",
    "FourierMap",
    "GramOperator",
    "HeldRows",
    "KernelCross",
    "NeighborGram",
    "NystroemMap",
    "SketchMap",
    "SparseGram",
    "StoredCross",
    "TiledGram",
    "check_features",
    "choose_gram",
    "choose_landmarks",
    "choose_precision",
    "column_sums",
    "components",
    "data_bytes",
    "dense_bytes",
    "estimate_factored",
    "estimate_neighbors",
    "estimate_seconds",
    "exact_columns",
    "exact_features",
    "factored_bytes",
    "factored_precision",
    "format_bytes",
    "make_gram",
    "make_map",
    "map_kind",
    "map_product",
    "map_rows",
    "members_of",
    "nearest_among",
    "panel_product",
    "parse_memory_limit",
    "part_sizes",
    "require",
    "single_threaded_blas",
    "symmetric",
    "symmetric_sparse",
    "tiled_bytes",
    "weighted_gram",
    "with_ties",
    "without_loops",
]
