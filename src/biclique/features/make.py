"""Which feature map, and how it is made."""

from __future__ import annotations

from typing import Any

import numpy as np

from biclique._typing import Rows
from biclique.features.maps import (
    MOST_EXACT_COLUMNS,
    ExactMap,
    FeatureMap,
    FourierMap,
    SketchMap,
    check_features,
    exact_columns,
)
from biclique.features.nystroem import NystroemMap, choose_landmarks
from biclique.kernels import Kernel, Polynomial


def map_kind(gram: str, kernel: Kernel, n_columns: int, rank: int | str) -> str:
    """Which feature map holds K: ``"nystroem"``, ``"exact"``, ``"fourier"`` or ``"sketch"``."""
    if gram == "nystroem":
        return "nystroem"
    check_features(kernel, n_columns)
    columns = exact_columns(kernel, n_columns)
    if columns is None:
        return "fourier"
    most = MOST_EXACT_COLUMNS if isinstance(rank, str) else max(rank, n_columns)
    return "exact" if columns <= most else "sketch"


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
    if kind == "nystroem":
        return NystroemMap(kernel, pool[choose_landmarks(landmarks, kernel, pool, size, random, dtype)], dtype)
    if kind == "fourier":
        return FourierMap(kernel, pool, size, random, dtype)
    if kind == "sketch" and isinstance(kernel, Polynomial):
        return SketchMap(kernel, pool.shape[1], size, random, dtype)
    return ExactMap(kernel, pool.shape[1], dtype)
