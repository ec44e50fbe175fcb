"""K stored whole."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike

from biclique._typing import FloatArray, Rows
from biclique.exceptions import ApproximationWarning, DataError, warn_user
from biclique.gram.operator import CrossGram, GramOperator
from biclique.kernels.held import HeldRows
from biclique.kernels.kernel import Kernel, nonnegative
from biclique.runtime.memory import require_memory
from biclique.runtime.threads import PANEL, Pulse, Tick, given_panel, panel_product, run_groups


class StoredCross(CrossGram):
    """κ(y, x) given as a matrix, dense or sparse. κ(y, y) is not known then, and not needed."""

    def __init__(self, K: Rows, *, n_jobs: int | None = None) -> None:
        self.K, self.n_jobs = K, n_jobs

    def matmat(self, V: FloatArray) -> FloatArray:
        return panel_product(self.K, V, n_jobs=self.n_jobs)

    def diagonal(self) -> FloatArray:
        raise DataError("κ(y, y) of new rows is not known with affinity='precomputed'.")


SYMMETRY_TOLERANCE = 1e-6
"""Largest |K − Kᵀ| allowed in a given matrix, relative to its largest entry: float32 kernels pass."""


def dense_bytes(n: int) -> int:
    """Memory that a stored K of n rows takes."""
    return 8 * n * n


class DenseGram(GramOperator):
    """K as an n × n float64 array, built from a kernel and rows by ``from_kernel``, or given."""

    name = "dense"
    dtype = np.dtype(np.float64)

    def __init__(self, K: FloatArray, *, held: HeldRows | None = None, n_jobs: int | None = None) -> None:
        self.K, self.n, self.held, self.n_jobs = K, K.shape[0], held, n_jobs

    @classmethod
    def from_kernel(
        cls,
        kernel: Kernel,
        X: Rows,
        *,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
        tick: Tick | None = None,
    ) -> DenseGram:
        """Evaluate the kernel once for every pair; each block above the diagonal is mirrored below it."""
        n = X.shape[0]
        held = HeldRows(kernel, X, dtype)
        K = np.empty((n, n))
        starts = range(0, n, PANEL)

        def fill(panel: int, pulse: Pulse) -> None:
            top = starts[panel]
            for left in starts[panel:]:
                block = kernel.block(held.rows[top : top + PANEL], held.rows[left : left + PANEL])
                if left == top:
                    block = (block + block.T) / 2
                K[top : top + PANEL, left : left + PANEL] = block
                K[left : left + PANEL, top : top + PANEL] = block.T
                pulse()

        run_groups(fill, len(starts), n_jobs=n_jobs, total=len(starts) * (len(starts) + 1) // 2, tick=tick)
        K.setflags(write=False)
        return cls(K, held=held, n_jobs=n_jobs)

    @cached_property
    def nonnegative(self) -> bool:  # type: ignore[override]
        known = self.held is not None and nonnegative(self.held.kernel, self.held.rows)
        return known or bool(self.K.min(initial=0.0) >= 0)  # a look at all of K takes as long as half a pass

    def matmat(self, V: FloatArray) -> FloatArray:
        return panel_product(self.K, V, n_jobs=self.n_jobs)

    def diagonal(self) -> FloatArray:
        return np.diagonal(self.K).copy()

    def training(self) -> HeldRows | None:
        return self.held

    def cross(self, Y: Rows) -> CrossGram:
        return StoredCross(Y, n_jobs=self.n_jobs) if self.held is None else self.held.cross(Y, n_jobs=self.n_jobs)


GIVEN_WAY_OUT = "make the matrix symmetric and float64 yourself, so that no copy is needed."


def checked_matrix(K: FloatArray) -> FloatArray:
    """A given matrix, checked: square and symmetric up to float32 rounding, which is averaged out in a copy."""
    n = K.shape[0]
    worst, where = 0.0, (0, 0)
    step = given_panel(n)
    for top in range(0, n, step):
        gap = np.abs(K[top : top + step] - K[:, top : top + step].T)
        if gap.max(initial=0.0) > worst:
            i, j = np.unravel_index(int(gap.argmax()), gap.shape)
            worst, where = float(gap[i, j]), (top + int(i), int(j))
    check_asymmetry(worst, float(max(K.max(initial=0.0), -K.min(initial=0.0))), where)
    if worst == 0:
        return K
    require_memory(K.nbytes, f"a symmetric copy of the given {n} × {n} matrix", GIVEN_WAY_OUT)
    out = np.add(K, K.T, order="C")
    out /= 2
    return out


def check_asymmetry(worst: float, largest: float, where: tuple[int, int]) -> None:
    """Say it if the two halves of a given matrix differ by more than float32 rounding."""
    if worst > SYMMETRY_TOLERANCE * largest:
        i, j = where
        warn_user(
            f"affinity='precomputed' needs a symmetric matrix, but entries ({i}, {j}) and ({j}, {i}) differ by "
            f"{worst:.3g}: (K + K.T) / 2 is taken. For a table of features use another affinity.",
            ApproximationWarning,
        )
