"""What a fit will take, measured on a few tiles before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import Rows
from biclique.gram.cross import HeldRows
from biclique.gram.factored import block_starts
from biclique.gram.features import FeatureMap
from biclique.gram.index import exact_seconds
from biclique.gram.memory import format_bytes
from biclique.gram.threads import count_threads, single_threaded_blas
from biclique.gram.tiled import TILE_COLUMNS, TILE_ROWS, TiledGram
from biclique.kernels import Kernel
from biclique.progress import format_seconds

TYPICAL_PASSES = 5
SECONDS_PER_VERTEX = 1e-5
"""Of a neighbour graph: making it, and an eigenvector of it, on two cores."""

STORED_PRODUCTS_PER_SECOND = 1e9
"""Entries of a stored matrix times a column, a second and a core: memory traffic, alike everywhere."""


@dataclass(frozen=True)
class Cost:
    """An estimate of the time and the memory of a fit."""

    gram: str
    rows: int
    seconds: float
    bytes: int

    def __str__(self) -> str:
        return (
            f"{self.rows} rows, gram={self.gram!r}: about {format_seconds(self.seconds)} and {format_bytes(self.bytes)}"
        )


def estimate_seconds(
    kernel: Kernel | None, data: Rows, *, gram: str, dtype: Any, columns: int, n_jobs: int | None
) -> float:
    """Time of a fit with blocks of ``columns`` vectors, from the speed of a few tiles of these rows.

    Without a kernel, ``data`` is the matrix itself.
    """
    n = int(data.shape[0])
    threads = count_threads(n_jobs)
    if gram == "tiled" and kernel is not None:
        return TYPICAL_PASSES * _seconds_per_entry(kernel, data, dtype, columns) * n * n / 2 / threads
    entries = int(data.nnz) if kernel is None and sparse.issparse(data) else n * n
    product = entries * columns / STORED_PRODUCTS_PER_SECOND / threads
    build = 0.0 if kernel is None else _seconds_per_entry(kernel, data, np.float64, 1) * n * n / 2 / threads
    return build + TYPICAL_PASSES * product


def estimate_factored(feature_map: FeatureMap, X: Rows, n: int, n_jobs: int | None) -> float:
    """Time of the three passes over n rows, from the speed of a block of some of them."""
    rows = X[: block_starts(feature_map, X).step]
    with single_threaded_blas():
        columns = feature_map.columns(rows)
        compute = _best_seconds(lambda: feature_map.columns(rows))
        gram = _best_seconds(lambda: columns.T @ columns)
    return float((3 * compute + gram) * n / rows.shape[0] / count_threads(n_jobs))


def estimate_neighbors(n: int, d: int, columns: int) -> float:
    """Time of a neighbour graph and its eigenvectors: the search by its own rule, the rest by the row."""
    return exact_seconds(n, d) + SECONDS_PER_VERTEX * n * columns


def _seconds_per_entry(kernel: Kernel, X: Rows, dtype: Any, columns: int) -> float:
    """Seconds for one entry of a tile: computed, and used for both halves of a product with ``columns``."""
    n = X.shape[0]
    rows = np.linspace(0, n - 1, min(n, TILE_ROWS + TILE_COLUMNS)).astype(int)
    if not kernel.cheap:
        rows = rows[:: max(len(rows) // 64, 1)]
    with single_threaded_blas():
        if kernel.cheap:
            small = TiledGram(kernel, X[rows], dtype=dtype, n_jobs=1)
            V = np.ones((len(rows), columns), dtype=dtype)
            return _best_seconds(lambda: small.matmat(V)) / (len(rows) ** 2 / 2)
        held = HeldRows(kernel, X[rows], dtype).rows
        return _best_seconds(lambda: kernel.block(held, held)) / len(rows) ** 2


def _best_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return float(best)
