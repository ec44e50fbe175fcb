"""Which way of holding K, and in which precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from biclique._typing import Rows
from biclique.exceptions import ParameterError
from biclique.gram.base import GramOperator
from biclique.gram.cross import HeldRows
from biclique.gram.dense import DenseGram, dense_bytes
from biclique.gram.threads import Tick
from biclique.gram.tiled import TiledGram
from biclique.kernels import Kernel

GRAM_NAMES = ("auto", "dense", "tiled")
PRECISIONS = ("auto", "float32", "float64")

STORE_BELOW = 4096
"""Up to here a stored K (128 MiB) is quick to build and gives float64 throughout."""

FLOAT32_ERROR = 1e-3
"""Above this (generous) bound on the relative error of a value, ``precision="auto"`` computes tiles in float64."""


HOPELESS_ERROR = 1e-2
"""Above this one, float32 is refused even when asked for."""


def choose_gram(requested: str, kernel: Kernel, X: Rows, memory_limit: int) -> str:
    """``"dense"`` or ``"tiled"``.

    ``"auto"`` stores K where that is small, or where a kernel value is dear (not one matrix product) and
    the matrix fits the memory limit; tiles otherwise. Both are exact.
    """
    if requested != "auto":
        return requested
    n = X.shape[0]
    dear = not kernel.cheap or not isinstance(X, np.ndarray)
    if dense_bytes(n) <= memory_limit and (n <= STORE_BELOW or dear):
        return "dense"
    return "tiled"


def choose_precision(requested: str, kernel: Kernel, X: Rows) -> Any:
    """The dtype of tiles: float32 unless asked otherwise, or unless its rounding would show."""
    if requested == "float64":
        return np.dtype(np.float64)
    error = kernel.float32_error(HeldRows(kernel, X, np.float32).rows)
    if requested == "float32" and error > HOPELESS_ERROR:
        raise ParameterError(
            f"precision='float32' would give kernel values off by {error:.1g}: rows lie too far apart for this kernel "
            "(or its values too close together); use precision='auto' or 'float64'."
        )
    return np.dtype(np.float32 if requested == "float32" or error <= FLOAT32_ERROR else np.float64)


def make_gram(
    name: str,
    kernel: Kernel,
    X: Rows,
    *,
    dtype: Any = np.float64,
    n_jobs: int | None = None,
    memory_limit: int,
    tick: Tick | None = None,
) -> GramOperator:
    """K of a kernel over rows, held as ``name`` says; ``dtype`` is the precision of tiles."""
    if name == "dense":
        return DenseGram.from_kernel(kernel, X, memory_limit=memory_limit, n_jobs=n_jobs, tick=tick)
    return TiledGram(kernel, X, dtype=dtype, n_jobs=n_jobs, memory_limit=memory_limit, tick=tick)
