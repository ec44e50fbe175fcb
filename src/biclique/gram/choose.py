"""Which way of holding K, and in which precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from biclique._typing import Rows
from biclique.exceptions import ParameterError
from biclique.features.maps import FEATURE_MAPS
from biclique.gram.dense import DenseGram, dense_bytes
from biclique.gram.fourier import TARGET, FourierGram, can_help, is_installed
from biclique.gram.operator import GramOperator
from biclique.gram.tiled import TiledGram
from biclique.kernels import Kernel
from biclique.kernels.kernel import HeldRows
from biclique.progress import format_seconds
from biclique.runtime.arguments import Names
from biclique.runtime.memory import format_bytes
from biclique.runtime.threads import Tick

GRAMS: dict[str, type[GramOperator]] = {"dense": DenseGram, "tiled": TiledGram, "fourier": FourierGram}
"""The ways of holding an exact K of a kernel, by name. The plan, validation and the command line read this."""

FACTORED = Names(lambda: (*(name for name, kind in FEATURE_MAPS.items() if kind.by_name), "features"))
"""What ``gram`` may be for an approximate K = ΦΦᵀ."""

GRAM_NAMES = Names(lambda: ("auto", *GRAMS, *FACTORED))
"""What ``gram`` may be."""

PRECISIONS = ("auto", "float32", "float64", "fast")

STORE_BELOW = 4096
"""Up to here a stored K (128 MiB) is quick to build and gives float64 throughout."""

FLOAT32_ERROR = 1e-3
"""Above this (generous) bound on the relative error of a value, ``precision="auto"`` computes tiles in float64."""

HOPELESS_ERROR = 1e-2
"""Above this one, float32 is refused even when asked for."""

FOURIER_FROM = 10_000
"""Rows from which FFTs overtake tiles in three columns; in two they do at some 3,000 (``benchmarks/fourier.py``)."""

EXACT_WORK = 6e11
"""Up to this much work K is held exactly: some 12 s on two cores, 110,000 rows in 16 dimensions."""

WORK_PER_SECOND = 5e10

FEW_EXACT_COLUMNS = 512


@dataclass(frozen=True)
class Choice:
    """How K will be held, and why."""

    name: str
    reason: str


def choose_gram(requested: str, kernel: Kernel, n: int, X: Rows, memory_limit: int, *, grids: bool = True) -> Choice:
    """How K of n rows is held, X being some of them: a fixed rule of n, d, the kernel and the memory limit.

    ``"auto"`` stores K where that is small, or where a kernel value is dear (not one matrix product) and
    the matrix fits the memory limit, and computes tiles otherwise; both are exact. Where the kernel is an inner product
    of few columns, K = ΦΦᵀ is as exact, and cheaper. Many rows of at most three columns go through FFTs. Beyond
    ``EXACT_WORK``, K is approximated by landmarks.
    """
    d = X.shape[1]
    if requested != "auto":
        return Choice(requested, "as asked for")
    features = exact_features(kernel, d, n // 4)
    if n > STORE_BELOW and features is not None:
        return features
    fourier = grids and n >= FOURIER_FROM and can_help(kernel, X)
    if fourier and is_installed():
        return Choice("fourier", f"exact to {TARGET:g} of each degree: FFTs of {n} rows in {d} columns")
    work = exact_work(kernel, n, X)
    if work > EXACT_WORK:
        seconds = format_seconds(work / WORK_PER_SECOND)
        other = ", and FFTs, which would be exact, need pip install 'biclique[fourier]'" if fourier else ""
        told = f"approximate: exact tiles of {n} rows would take some {seconds} on two cores{other}"
        return Choice("nystroem", told)
    dear = not kernel.cheap or not isinstance(X, np.ndarray)
    if dense_bytes(n) <= memory_limit and (n <= STORE_BELOW or dear):
        return Choice("dense", f"exact: the matrix of {n} rows takes {format_bytes(dense_bytes(n))}")
    return Choice("tiled", f"exact: the matrix of {n} rows would take {format_bytes(dense_bytes(n))}")


def exact_features(kernel: Kernel, n_columns: int, most: int = FEW_EXACT_COLUMNS) -> Choice | None:
    """``"features"``, where they are the kernel itself and few."""
    columns = kernel.exact_columns(n_columns)
    if columns is None or columns > min(FEW_EXACT_COLUMNS, most):
        return None
    return Choice("features", f"exact: {kernel.name} is an inner product of {columns} columns")


def exact_work(kernel: Kernel, n: int, X: Rows) -> float:
    """What an exact fit of the rows costs: entries of K times columns of X, dear kernels more."""
    d = X.shape[1]
    if sparse.issparse(X):
        d = min(d, 10 * (X.nnz // max(X.shape[0], 1) + 1))
    return float(n) ** 2 * float(kernel.cost_per_pair(d))


def choose_precision(requested: str, kernel: Kernel, X: Rows) -> np.dtype[Any]:
    """The dtype of tiles: float32 unless asked otherwise, or unless its rounding would show."""
    if requested == "float64":
        return np.dtype(np.float64)
    error = kernel.float32_error(HeldRows(kernel, X, np.float32).rows)
    if requested == "float32" and error > HOPELESS_ERROR:
        raise ParameterError(
            f"precision='float32' would give kernel values off by {error:.1g}: rows lie too far apart for this kernel "
            "(or its values too close together, or too small); use precision='auto' or 'float64'."
        )
    return np.dtype(np.float32 if requested == "float32" or error <= FLOAT32_ERROR else np.float64)


def factored_precision(requested: str, gram: str, kernel: Kernel, X: Rows) -> np.dtype[Any]:
    """The dtype of a factored K: as for tiles, but float64 for landmarks and a kernel that is no function of x − y.

    Its values are dominated by what all rows share, and W^(−1/2) magnifies the rounding of that over what tells rows
    apart.
    """
    landmarks = gram in FEATURE_MAPS and FEATURE_MAPS[gram].has_landmarks
    if requested == "auto" and landmarks and not kernel.translation_invariant:
        return np.dtype(np.float64)
    return choose_precision(requested, kernel, X)


def make_gram(
    name: str,
    kernel: Kernel,
    X: Rows,
    *,
    dtype: DTypeLike = np.float64,
    n_jobs: int | None = None,
    memory_limit: int,
    tick: Tick | None = None,
) -> GramOperator:
    """K of a kernel over rows, held as ``name`` says, a key of ``GRAMS``; ``dtype`` is the precision of tiles."""
    if name not in GRAMS:
        raise ParameterError(f"an exact K is held as one of {', '.join(map(repr, GRAMS))}, got {name!r}.")
    return GRAMS[name].from_kernel(kernel, X, dtype=dtype, n_jobs=n_jobs, memory_limit=memory_limit, tick=tick)
