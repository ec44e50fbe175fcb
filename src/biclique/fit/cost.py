"""What a fit will take, measured on a few tiles before it starts."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from biclique._typing import Array, Device, Rows
from biclique.device.torch_tiles import MOST_COLUMNS as MOST_FUSED
from biclique.device.torch_tiles import (
    MOST_VECTORS,
    ON_DEVICE,
    can_fuse,
    device_type,
    lie_beside,
    pad_columns,
    pad_vectors,
    sums_differences,
)
from biclique.device.torch_tiles import TILE_COLUMNS as TORCH_COLUMNS
from biclique.features.maps import FeatureMap, block_starts
from biclique.gram import GRAMS, TiledGram
from biclique.gram.tiled import TILE_COLUMNS, TILE_ROWS
from biclique.kernels import HeldRows, Kernel
from biclique.neighbors.index import exact_seconds
from biclique.progress import format_seconds
from biclique.runtime import count_threads, format_bytes, single_threaded_blas

TYPICAL_PASSES, STARTED_PASSES = 5, 3
"""Over K, from a random start and from the eigenvectors of a few rows."""
SECONDS_PER_VERTEX = 1e-5
"""Of a neighbour graph: making it, and an eigenvector of it, on two cores."""

STORED_PRODUCTS_PER_SECOND = 1e9
"""Entries of a stored matrix times a column, a second and a core: memory traffic, alike everywhere."""

# A GPU is not measured but taken for an H200: docs/performance.md has κ a second and the seconds of whole fits there.
FUSED_PICOSECONDS = {"float32": (0.27, 0.0115, 0.008), "fast": (0.25, 0.0042, 0.006)}
"""Of one value of K in the fused kernel: for itself, for a column of X, and for a vector beyond the first 16."""
MANHATTAN_PICOSECONDS = 0.2
"""Of a column of X if the kernel is laplacian, which cannot use tensor cores."""
FEW_VECTORS = 16
FUSED_BYTES = 32
"""Of a row and a vector, those filled up to 16, 32 or 64, in a product of the fused kernel: V's halves, and sums."""
TORCH_PICOSECONDS = (12.7, 0.038)
"""Of one value of K in torch's tiles: for itself, and for a column of X."""
WIDE_FACTOR = 2
"""What float64 costs there: twice the bytes."""
FACTORED_FLOPS = 5e13
"""A second, of torch's products in float32: three quarters of what is on the H200's data sheet."""
DEVICE_SECONDS_PER_ROW = 7e-8
"""Of a row and a column of the embedding: the way to the device and back, and k-means."""


@dataclass(frozen=True)
class Cost:
    """An estimate of the time and the memory of a fit; with a device, ``bytes`` are the host's alone."""

    gram: str
    rows: int
    seconds: float
    bytes: int
    device: str | None = None
    device_bytes: int = 0

    @property
    def time(self) -> str:
        """In words."""
        return format_seconds(self.seconds)

    def __str__(self) -> str:
        told = f"{self.rows} rows, gram={self.gram!r}: about {self.time}"
        if self.device is None:
            return f"{told} and {format_bytes(self.bytes)}"
        return f"{told}, {format_bytes(self.device_bytes)} on {self.device} and {format_bytes(self.bytes)} on the host"


def is_fused(kernel: Kernel, d: int, precision: str, device: Device) -> bool:
    """Whether a device has the fused kernel for rows of d columns; else tiles are torch's."""
    return device_type(device) == "cuda" and can_fuse(kernel) and d <= MOST_FUSED and precision != "float64"


def device_seconds(
    kernel: Kernel, n: int, d: int, *, columns: int, passes: int, precision: str = "float32", device: Device = "cuda"
) -> float:
    """Time of passes over an exact K on a GPU with blocks of ``columns`` vectors; compiling it is not counted."""
    if not is_fused(kernel, d, precision, device):
        value, column = TORCH_PICOSECONDS
        each = (value + column * d) * (WIDE_FACTOR if precision == "float64" else 1)
    else:
        value, column, vector = FUSED_PICOSECONDS[precision]
        if sums_differences(kernel):
            column = MANHATTAN_PICOSECONDS
        each = (value + column * d) * ceil(columns / MOST_VECTORS) + vector * max(columns - FEW_VECTORS, 0)
    return passes * 1e-12 * each * n**2


def device_bytes(
    kernel: Kernel, n: int, d: int, *, columns: int, precision: str = "float32", device: Device = "cuda"
) -> int:
    """Memory on a device of the sides of an exact K and of a product with blocks of ``columns`` vectors."""
    if not is_fused(kernel, d, precision, device):
        size, tile = 8 if precision == "float64" else 4, min(n, TORCH_COLUMNS.get(device_type(device), ON_DEVICE))
        return n * size * (d + 1) + n * (size + 16) * columns + 3 * size * tile**2
    # Two halves of 16 bits: beside each other with few columns, and then a left and a right side.
    width = d if sums_differences(kernel) else pad_columns(3 * d if lie_beside(d) else d)
    return n * (4 * width + FUSED_BYTES * min(pad_vectors(columns), MOST_VECTORS))


def device_factored_seconds(size: int, n: int, d: int) -> float:
    """Time of the three passes over n rows on a GPU: their columns, and one product of p × p."""
    value, column = TORCH_PICOSECONDS
    return n * size * (3e-12 * (value + column * d) + 2 * size / FACTORED_FLOPS)


def torch_cpu_seconds(
    kernel: Kernel, X: Rows, n: int, *, columns: int, passes: int, precision: str = "float32"
) -> float:
    """Time of passes on torch's CPU, from tiles of some rows on the host; torch uses a tile for one half only."""
    dtype = np.float64 if precision == "float64" else np.float32
    return passes * _seconds_per_entry(kernel, X, dtype, columns) * n**2 / count_threads(None)


def estimate_seconds(
    kernel: Kernel | None,
    data: Rows,
    n: int,
    *,
    gram: str,
    dtype: DTypeLike,
    columns: int,
    n_jobs: int | None,
    passes: float = TYPICAL_PASSES,
) -> float:
    """Time of a fit of n rows with blocks of ``columns`` vectors, from the speed of a few tiles of some of them.

    Without a kernel, ``data`` is the matrix itself.
    """
    threads = count_threads(n_jobs)
    known = GRAMS[gram].pass_seconds(n, data.shape[1], columns, threads) if gram in GRAMS else None
    if known is not None:
        return passes * known
    if kernel is not None and gram in GRAMS and not GRAMS[gram].passes_are_cheap:
        return passes * _seconds_per_entry(kernel, data, dtype, columns) * n * n / 2 / threads
    entries = int(data.nnz) if kernel is None and sparse.issparse(data) else n * n
    product = entries * columns / STORED_PRODUCTS_PER_SECOND / threads
    build = 0.0 if kernel is None else _seconds_per_entry(kernel, data, np.float64, 1) * n * n / 2 / threads
    return build + passes * product


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


def _seconds_per_entry(kernel: Kernel, X: Rows, dtype: DTypeLike, columns: int) -> float:
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


def products_per_second() -> float:
    """Additions and multiplications of a matrix product, a second, on one core."""
    A = np.ones((512, 512))
    with single_threaded_blas():
        return len(A) ** 3 / _best_seconds(lambda: A @ A)


def _best_seconds(work: Callable[[], Array]) -> float:
    return min(timeit.repeat(work, number=1, repeat=3))
