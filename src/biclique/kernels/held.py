"""Rows as a kernel needs them, and new rows against them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, Rows
from biclique.kernels.kernel import Kernel, middle
from biclique.runtime.namespace import as_dtype, float64, moved, namespace, on_host, to_host
from biclique.runtime.threads import PANEL, Pulse, run_groups

DEVICE_ENTRIES = 2**26
"""Numbers that are in float64 at a time where rows are centred on a device."""


class HeldRows:
    """A kernel and its training rows as they are held: in one precision, centred where the kernel allows it.

    The expanded square |x|² − 2⟨x, y⟩ + |y|² loses digits far from the origin, so the middle of the rows is taken off
    first, in float64, for every kernel that does not see a translation. Rows on a device are held there; pickled ones
    are the host's. A tensor that could be kept as it is is copied, for it is the caller's to change, unless ``owned``
    says that it was made for this.
    """

    def __init__(self, kernel: Kernel, X: Rows, dtype: Any, *, owned: bool = False) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.offset: FloatArray | None = None
        if kernel.translation_invariant and not sparse.issparse(X):
            self.offset = middle(X)
        self.rows = self.hold(X)
        if self.rows is X and not owned and not on_host(X):
            self.rows = X.clone()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ if on_host(self.rows) else {**self.__dict__, "rows": to_host(self.rows)}

    def hold(self, X: Rows) -> Rows:
        """Other rows, treated as the training rows were."""
        X = self.kernel.rescaled(X)
        if sparse.issparse(X) and self.offset is None:
            return sparse.csr_array(X, dtype=self.dtype)
        if sparse.issparse(X):
            X = X.toarray()  # the training rows are dense, and counted from their middle
        if not on_host(X):
            return self._hold_there(X)
        if self.offset is None:
            return np.ascontiguousarray(X, dtype=self.dtype)
        out = np.empty(X.shape, dtype=self.dtype)
        return np.subtract(X, self.offset, out=out, casting="same_kind")  # in float64, rounded as it is stored

    def _hold_there(self, X: Rows) -> Rows:
        if self.offset is None:
            return as_dtype(X, self.dtype)
        offset, step = moved(self.offset, X), max(DEVICE_ENTRIES // X.shape[1], 1)
        out = X.new_empty(X.shape, dtype=getattr(namespace(X), self.dtype.name))
        for top in range(0, X.shape[0], step):
            out[top : top + step] = float64(X[top : top + step]) - offset
        return out

    def stacked(self, Y: Rows) -> Rows:
        """These rows, as they came up to the rounding they are held with, and others below them."""
        if sparse.issparse(Y):
            return sparse.vstack([self.rows, Y], format="csr")
        rows = self.rows if self.offset is None else float64(self.rows) + moved(self.offset, self.rows)
        return namespace(Y).concatenate([moved(rows, Y), Y])

    def cross(self, Y: Rows, n_jobs: int | None = None) -> KernelCross:
        """κ(y, x) of new rows against these."""
        return KernelCross(self, Y, n_jobs=n_jobs)


class KernelCross:
    """κ(y, x) from a kernel and rows, a panel at a time."""

    def __init__(self, held: HeldRows, Y: Rows, *, n_jobs: int | None = None) -> None:
        self.held = held
        self.rows = held.hold(Y)
        self.n_jobs = n_jobs

    def matmat(self, V: FloatArray) -> FloatArray:
        kernel, training = self.held.kernel, self.held.rows
        V = np.asarray(V, dtype=self.held.dtype)
        out = np.empty((self.rows.shape[0], V.shape[1]))
        starts = range(0, out.shape[0], PANEL)

        def multiply(panel: int, pulse: Pulse) -> None:
            top = starts[panel]
            rows = self.rows[top : top + PANEL]
            total = np.zeros((rows.shape[0], V.shape[1]))
            for left in range(0, training.shape[0], PANEL):
                total += kernel.block(rows, training[left : left + PANEL]) @ V[left : left + PANEL]
                pulse()
            out[top : top + PANEL] = total

        run_groups(multiply, len(starts), n_jobs=self.n_jobs)
        return out

    def diagonal(self) -> FloatArray:
        return self.held.kernel.diagonal(self.rows)
