"""What a kernel is: parameters, a pure ``block`` and a ``diagonal``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, Rows
from biclique.runtime.namespace import namespace, on_host, to_host


class Kernel(ABC):
    """A base kernel κ(x, y).

    Subclass it, write ``block``, and pass an instance as ``affinity``. A kernel knows nothing of tiles,
    threads or devices; ``block`` must be pure and must return the same values whichever rows it is
    asked for together.
    """

    name: ClassVar[str] = "custom"
    accepts_sparse: ClassVar[bool] = False
    translation_invariant: ClassVar[bool] = False
    """κ(x + t, y + t) = κ(x, y): the Gram operator may centre the rows, which saves digits."""
    positive: ClassVar[bool] = False
    """κ(x, y) ≥ 0 for all rows: in sums of such values nothing cancels."""
    cheap: ClassVar[bool] = False
    """A block costs about one matrix product, so computing it again beats storing it."""

    @abstractmethod
    def block(self, X: Rows, Y: Rows) -> FloatArray:
        """κ(x_i, y_j) for every row of X and of Y, shape (n_x, n_y)."""

    def diagonal(self, X: Rows) -> FloatArray:
        """κ(x_i, x_i), shape (n_x,)."""
        return np.array([self.block(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(X.shape[0])], dtype=float)

    def rescaled(self, X: Rows) -> Rows:
        """X, or rows with the same κ whose values fit float32 in any unit; called before rows are rounded."""
        return X

    def nonnegative(self, X: Rows) -> bool:  # noqa: ARG002
        """Whether κ(x, y) ≥ 0 for all pairs of these rows; False if that is not known."""
        return self.positive

    def float32_error(self, X: Rows) -> float:  # noqa: ARG002
        """A bound on the relative error of a value computed in float32, for the rows as they are held."""
        return float(np.finfo(np.float32).eps)


class InnerProductKernel(Kernel):
    """A kernel of the form κ(x, y) = f(⟨l(x), r(y)⟩): one matrix product and one function a block.

    ``left`` and ``right`` compute l and r once for all rows; ``finish`` applies f in place. Everything
    that depends on one row alone (norms, scales, constants) is folded into l and r.
    """

    cheap = True

    @abstractmethod
    def left(self, X: Rows) -> Rows:
        """l(x) for every row, shape (n, p)."""

    @abstractmethod
    def right(self, X: Rows) -> Rows:
        """r(x) for every row, shape (n, p)."""

    def finish(self, inner: FloatArray) -> FloatArray:
        """f applied to inner products, in place."""
        return inner

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        return self.finish(dense_product(self.left(X), self.right(Y).T))

    def diagonal(self, X: Rows) -> FloatArray:
        left, right = self.left(X), self.right(X)
        if sparse.issparse(left):
            inner = np.asarray(left.multiply(right).sum(axis=1), dtype=float).ravel()
        else:
            inner = row_products(left, right)
        return self.finish(inner)

    def float32_error(self, X: Rows) -> float:
        # What the cut sees is the spread around the mean; an offset of many spreads buries it under rounding.
        left = self.left(X)
        double = namespace(left).float64
        with np.errstate(over="ignore", invalid="ignore"):  # sums that are not finite are in need of float64 too
            total = float((left.multiply(left) if sparse.issparse(left) else left * left).sum(dtype=double))
            mean = to_host(left.mean(axis=0, dtype=double)).ravel()
            spread = total - left.shape[0] * float(mean @ mean)
        eps = float(np.finfo(np.float32).eps)
        if total < left.shape[0] * float(np.finfo(np.float32).tiny) / eps:
            return 1.0  # products that vanish in float32
        return eps * total / spread if spread > eps * total else 1.0


def none_negative(X: Rows) -> bool:
    """Whether no number of these rows is negative, nor missing."""
    return X.shape[0] == 0 or bool(X.min() >= 0)


def middle(X: FloatArray) -> FloatArray:
    """About the middle of dense rows, (d,): the median of a thousand of them, which no outlier moves."""
    return np.asarray(np.median(to_host(X[:: max(X.shape[0] // 1000, 1)]), axis=0), dtype=np.float64)


def row_products(X: Rows, Y: Rows) -> FloatArray:
    """⟨x_i, y_i⟩ of dense rows, (n,)."""
    if on_host(X):
        return np.einsum("ij,ij->i", X, Y)  # type: ignore[no-any-return]
    return (X * Y).sum(1)  # type: ignore[no-any-return]  # einsum would be a million small products


def dense_product(left: Rows, right: Rows) -> FloatArray:
    """left @ right as a dense array, whatever the two are held as."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is an error of the caller's, with a cure
        product = left @ right
    return product.toarray() if sparse.issparse(product) else np.asarray(product)
