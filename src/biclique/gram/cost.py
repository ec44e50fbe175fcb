"""What a fit will take, measured on a few tiles before it starts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from biclique._typing import Rows
from biclique.gram.cross import HeldRows
from biclique.gram.dense import dense_bytes
from biclique.gram.memory import format_bytes
from biclique.gram.threads import count_threads, single_threaded_blas
from biclique.gram.tiled import TILE_COLUMNS, TILE_ROWS, TiledGram, tiled_bytes
from biclique.kernels import Kernel
from biclique.progress import format_seconds

TYPICAL_PASSES = 5
BASIS_BLOCKS = 13
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
            f"{self.rows} distinct rows, gram={self.gram!r}: about {format_seconds(self.seconds)} and "
            f"{format_bytes(self.bytes)}"
        )


def estimate_cost(kernel: Kernel, X: Rows, *, gram: str, dtype: Any, columns: int, n_jobs: int | None) -> Cost:
    """Time and memory of a fit with blocks of ``columns`` vectors, from the speed of a few tiles of these rows."""
    n = X.shape[0]
    threads = count_threads(n_jobs)
    basis = 8 * n * columns * BASIS_BLOCKS
    if gram == "dense":
        build = _seconds_per_entry(kernel, X, np.float64, 0) * n * n / 2 / threads
        product = n * n * columns / STORED_PRODUCTS_PER_SECOND / threads
        return Cost(gram, n, build + TYPICAL_PASSES * product, dense_bytes(n) + basis)
    per_pass = _seconds_per_entry(kernel, X, dtype, columns) * n * n / 2 / threads
    return Cost(gram, n, TYPICAL_PASSES * per_pass, tiled_bytes(n, X.shape[1], columns, dtype) + basis)


def _seconds_per_entry(kernel: Kernel, X: Rows, dtype: Any, columns: int) -> float:
    """Seconds for one entry of a tile: computed, and used for both halves of a product with ``columns``."""
    n = X.shape[0]
    rows = np.linspace(0, n - 1, min(n, TILE_ROWS + TILE_COLUMNS)).astype(int)
    if not kernel.cheap:
        rows = rows[:: max(len(rows) // 64, 1)]
    best = np.inf
    with single_threaded_blas():
        if kernel.cheap:
            small = TiledGram(kernel, X[rows], dtype=dtype, n_jobs=1)
            V = np.ones((len(rows), max(columns, 1)), dtype=dtype)
            for _ in range(3):
                start = time.perf_counter()
                small.matmat(V)
                best = min(best, time.perf_counter() - start)
            return best / (len(rows) ** 2 / 2)
        held = HeldRows(kernel, X[rows], dtype).rows
        for _ in range(2):
            start = time.perf_counter()
            kernel.block(held, held)
            best = min(best, time.perf_counter() - start)
    return best / len(rows) ** 2
