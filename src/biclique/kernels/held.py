"""A kernel and its training rows as they are stored, and new rows against them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.utils.sparsefuncs import inplace_csr_row_scale

from biclique._typing import Array, FloatArray, Rows
from biclique.kernels.kernel import InnerProductKernel, Kernel, dense_product, squared_norms
from biclique.runtime.namespace import as_dtype, float64, moved, namespace, on_host, rows_on_host, to_host
from biclique.runtime.threads import PANEL, run_panels

DEVICE_ENTRIES = 2**26
"""How many numbers are converted to float64 at once when rows are centred on a device."""

FLOAT32 = np.finfo(np.float32)

FLOAT32_ERROR = 3e-4
"""Above this ``float32_error``, ``precision="auto"`` computes tiles in float64."""

COMPARED_ROWS = 64
"""Rows from all over the table, and as many of those farthest out, on which float32 is compared with float64."""


class Sides(NamedTuple):
    """The parts of κ(x_i, x_j) = f(⟨l(x_i), r(x_j)⟩), made once for all rows."""

    left: Rows  # l(X), (n, p)
    right: Rows  # r(X)ᵀ, (p, n)
    finish: Callable[[FloatArray], FloatArray]
    """f, in place."""


class HeldRows:
    """A kernel and its training rows as they are stored: in one precision, centred if the kernel allows it.

    The expanded square |x|² − 2⟨x, y⟩ + |y|² loses digits far from the origin, so the middle of the rows is taken off
    first, in float64, for every kernel that does not see a translation. Rows on a device are held there; pickled ones
    are the host's. The caller's tensor is copied, because the caller may change it, unless ``owned`` says that it was
    made for this.
    """

    def __init__(self, kernel: Kernel, X: Rows, dtype: DTypeLike, *, owned: bool = False) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.offset = None if sparse.issparse(X) else kernel.centre(X)
        self.rows = self.hold(X)
        if self.rows is X and not owned and not on_host(X):
            self.rows = namespace(X).clone(X)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "right"}
        return kept if on_host(self.rows) else {**kept, "rows": to_host(self.rows)}

    def hold(self, X: Rows) -> Rows:
        """Other rows, treated as the training rows were."""
        X = in_range(self.kernel, X)
        if sparse.issparse(X) and self.offset is None:
            return sparse.csr_array(X, dtype=self.dtype)
        if sparse.issparse(X):
            X = X.toarray()  # the training rows are dense, and counted from their middle
        if self.offset is None:
            return np.ascontiguousarray(X, dtype=self.dtype) if on_host(X) else as_dtype(X, self.dtype)
        if on_host(X):  # in float64, rounded as it is stored
            return np.subtract(X, self.offset, out=np.empty(X.shape, dtype=self.dtype), casting="same_kind")
        offset, step = moved(self.offset, X), max(DEVICE_ENTRIES // X.shape[1], 1)
        out: Array = namespace(X).empty(X.shape, dtype=getattr(namespace(X), self.dtype.name), device=X.device)
        for top in range(0, X.shape[0], step):
            out[top : top + step] = float64(X[top : top + step]) - offset
        return out

    def sides(self) -> Sides | None:
        """These rows as factors of a matrix product; None unless κ is a function of an inner product."""
        if not isinstance(self.kernel, InnerProductKernel):
            return None
        return Sides(self.kernel.left(self.rows), self.right, self.kernel.finish)

    @cached_property
    def right(self) -> Rows:
        """r(X)ᵀ, (p, n), of a kernel of an inner product, stored row by row: products with it round alike."""
        right = cast("InnerProductKernel", self.kernel).right(self.rows)
        return right.T.tocsr() if sparse.issparse(right) else np.ascontiguousarray(right.T)

    def cross(self, Y: Rows, n_jobs: int | None = None) -> KernelCross:
        """κ(y, x) of new rows against these."""
        return KernelCross(self, self.hold(Y), n_jobs)


class KernelCross(NamedTuple):
    """κ(y, x) from a kernel and rows, a panel at a time."""

    held: HeldRows
    rows: Rows
    n_jobs: int | None

    def matmat(self, V: FloatArray) -> FloatArray:
        kernel, training = self.held.kernel, self.held.rows
        V = np.asarray(V, dtype=self.held.dtype)
        out = np.empty((self.rows.shape[0], V.shape[1]))

        def multiply(panel: slice) -> None:
            rows = self.rows[panel]
            total = np.zeros((rows.shape[0], V.shape[1]))
            for left in range(0, training.shape[0], PANEL):
                total += kernel.block(rows, training[left : left + PANEL]) @ V[left : left + PANEL]
            out[panel] = total

        run_panels(multiply, len(out), PANEL, n_jobs=self.n_jobs)
        return out

    def diagonal(self) -> FloatArray:
        return self.held.kernel.diagonal(self.rows)


def float32_error(held: HeldRows, X: Rows) -> float:
    """How far values of rows that are held in float32 may be off, as a share of what tells rows apart; at most 1.

    A bound on the error over the largest value without the means of its row and column. It is computed in float64, so
    that it is the same on every CPU, for rows from all over the table and for those farthest out, whose values round
    most. Rounded are the rows; a term of an inner product, by ε of its size; and the value, by ε.
    """
    kernel, eps, tiny = held.kernel, float(FLOAT32.eps), float(FLOAT32.tiny)
    if kernel.form is not None and kernel.form.direct:
        return 1.0  # rows lie so far apart that even float64 would lose digits
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite has an error of 1
        sizes = to_host(squared_norms(held.rows))
        spread_out = np.linspace(0, len(sizes) - 1, COMPARED_ROWS).astype(np.intp)
        some = np.unique([spread_out, np.resize(np.argsort(sizes, kind="stable")[::-1], COMPARED_ROWS)])
        single, exact = rows_on_host(held.rows, some), HeldRows(kernel, rows_on_host(X, some), np.float64).rows
        K = kernel.block(exact, exact)
        rounded = single.astype(np.float64)
        found = [kernel.block(rounded, rounded)]
        if isinstance(kernel, InnerProductKernel):
            left: Rows = kernel.left(single).astype(np.float64)
            right: Rows = kernel.right(single).astype(np.float64)
            sizes_left, sizes_right = np.abs(left), np.abs(right)
            slack = eps * dense_product(sizes_left, sizes_right.T) + tiny
            inner = dense_product(left, right.T)
            found += [kernel.finish(inner - slack), kernel.finish(inner + slack)]
        error = max(float(np.abs(values - K).max()) for values in found) + eps * float(np.abs(K).max())
        spread = float(np.abs(K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()).max())
    return error / spread if error < spread else 1.0


def in_range(kernel: Kernel, X: Rows) -> Rows:
    """X, or rows with the same κ that fit float32 in any unit, if only their directions count."""
    return near_one(X) if kernel.form is not None and kernel.form.unit else X


def near_one(X: Rows) -> Rows:
    """Every row times a power of two, which rounds nothing, such that its largest |value| is near 1."""
    if sparse.issparse(X):
        X = sparse.csr_array(X, copy=True, dtype=X.dtype if X.dtype.kind == "f" else float)
        inplace_csr_row_scale(X, _power_near_one(abs(X).max(axis=1).toarray().ravel()))
        return X
    xp = namespace(X)
    return X * _power_near_one(xp.amax(xp.abs(X), 1))[:, None]


def _power_near_one(largest: FloatArray) -> FloatArray:
    """2^−e with 2^(e−1) ≤ largest < 2^e; 1 for 0. At the very ends of the range, the nearest power that is finite."""
    xp = namespace(largest)
    part, e = xp.frexp(largest)
    most = int(np.log2(float(xp.finfo(part.dtype).max))) - 8
    return xp.ldexp(xp.ones_like(part), -xp.clip(e, -most, most))  # type: ignore[no-any-return]
