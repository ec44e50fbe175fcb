"""What operators share that compute K anew in every pass, and never store it."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from biclique._typing import FloatArray, IntArray, Rows
from biclique.gram.operator import CrossGram, GramOperator, TrainedRows
from biclique.kernels import HeldRows, Kernel
from biclique.kernels.kernel import nonnegative
from biclique.runtime import Tick


class ComputedGram(GramOperator):
    """K of a kernel and rows that is computed anew in every pass, and never stored."""

    passes_are_cheap = False
    held: HeldRows

    def __init__(
        self,
        kernel: Kernel,
        X: Rows,
        *,
        dtype: DTypeLike = np.float32,
        n_jobs: int | None = None,
        tick: Tick | None = None,
    ) -> None:
        self.kernel, self.n, self.dtype = kernel, X.shape[0], np.dtype(dtype)
        self.n_jobs, self.tick = n_jobs, tick

    @property
    def nonnegative(self) -> bool:
        return nonnegative(self.kernel, self.held.rows)

    def diagonal(self) -> FloatArray:
        return self.kernel.diagonal(self.held.rows)

    def training(self) -> TrainedRows:
        return self.held

    def cross(self, Y: Rows) -> CrossGram:
        return self.training().cross(Y, self.n_jobs)

    def restricted(self, members: IntArray) -> Self:
        rows = self.held.rows[members]
        found = type(self)(self.kernel, rows, dtype=self.dtype, n_jobs=self.n_jobs, tick=self.tick)
        found.held.came_from(self.held)
        return found

    def with_rows(self, Y: Rows) -> Self:
        return type(self)(self.kernel, self.held.stacked(Y), dtype=self.dtype, n_jobs=self.n_jobs)
