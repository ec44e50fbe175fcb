"""What operators share that compute K anew in every pass, and never store it."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from biclique._typing import FloatArray, Rows
from biclique.gram.operator import CrossGram, GramOperator, TrainedRows
from biclique.kernels.held import HeldRows
from biclique.kernels.kernel import Kernel, nonnegative
from biclique.runtime.threads import Tick


class ComputedGram(GramOperator):
    """K of a kernel and rows that is computed anew in every pass, and never stored."""

    passes_are_cheap = False

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
        self.noise = float(np.finfo(self.dtype).eps)
        self.held = HeldRows(kernel, X, dtype)

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        return nonnegative(self.kernel, self.held.rows)

    def diagonal(self) -> FloatArray:
        return self.kernel.diagonal(self.held.rows)

    def training(self) -> TrainedRows:
        return self.held

    def cross(self, Y: Rows) -> CrossGram:
        return self.training().cross(Y, self.n_jobs)
