"""Which feature map, and how it is made."""

from __future__ import annotations

from typing import Any

import numpy as np

from biclique._typing import Rows
from biclique.exceptions import ParameterError
from biclique.features.maps import (
    MOST_EXACT_COLUMNS,
    ExactMap,
    FeatureMap,
    FourierMap,
    SketchMap,
    check_features,
    has_sketch,
)
from biclique.features.nystroem import NystroemMap
from biclique.kernels import Kernel

FEATURE_MAPS: dict[str, type[FeatureMap]] = {
    "nystroem": NystroemMap,
    "exact": ExactMap,
    "fourier": FourierMap,
    "sketch": SketchMap,
}
"""The feature maps by kind; ``FeatureMap.make`` makes one."""


def map_kind(gram: str, kernel: Kernel, n_columns: int, rank: int | str) -> str:
    """Which feature map holds K: a key of ``FEATURE_MAPS``; ``gram="features"`` leaves it to the kernel."""
    if gram in FEATURE_MAPS:
        return gram
    check_features(kernel, n_columns)
    columns = kernel.exact_columns(n_columns)
    if columns is None:
        return "fourier"
    most = MOST_EXACT_COLUMNS if isinstance(rank, str) else max(rank, n_columns)
    return "exact" if columns <= most or not has_sketch(kernel) else "sketch"


def make_map(
    kind: str,
    kernel: Kernel,
    pool: Rows,
    size: int,
    *,
    landmarks: str = "uniform",
    random: np.random.RandomState,
    dtype: Any = np.float32,
) -> FeatureMap:
    """The feature map of a kind, with ``size`` columns; landmarks come from a pool of distinct rows."""
    if kind not in FEATURE_MAPS:
        raise ParameterError(f"a feature map must be one of {', '.join(map(repr, FEATURE_MAPS))}, got {kind!r}.")
    return FEATURE_MAPS[kind].make(kernel, pool, size, landmarks=landmarks, random=random, dtype=dtype)
