"""What a kernel is: a pure ``block`` of values, and what is known of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.runtime.namespace import full, on_host, padded, to_host


class Form(NamedTuple):
    """κ as one of five functions. Code that computes such a function in its own way reads this, not the class.

    - ``"gauss"``: exp(−γ |x − y|²),
    - ``"manhattan"``: exp(−γ |x − y|₁),
    - ``"inner"``: ⟨x, y⟩, of rows scaled to length 1 if ``unit``,
    - ``"power"``: (γ⟨x, y⟩ + c)^q,
    - ``"tanh"``: tanh(γ⟨x, y⟩ + c).
    """

    function: str
    gamma: float = 1.0
    coef0: float = 0.0  # c
    degree: float = 1.0  # q
    unit: bool = False
    direct: bool = False
    """Whether |x − y|² must be summed from differences: the expanded square would lose its digits."""


class Kernel(ABC):
    """A base kernel κ(x, y).

    Subclass it, write ``block``, and pass an instance as ``affinity``: a stored K, tiles and landmarks need no more.
    ``block`` must be pure and must return the same values whichever rows it is asked for together. All else here has a
    default. To give a kernel a name, add its class to ``biclique.kernels.KERNELS``; parameters of its class that are
    called ``gamma``, ``coef0`` and ``degree`` are those of the estimator.
    """

    name: ClassVar[str] = "custom"
    accepts_sparse: ClassVar[bool] = False
    needs_nonnegative: ClassVar[bool] = False
    """κ is defined for rows without negative numbers alone."""
    takes_gaps: ClassVar[bool] = False
    """κ leaves out NaN, a missing value. Rows are no points then: Euclidean distances between them mean nothing."""
    translation_invariant: ClassVar[bool] = False
    """κ(x + t, y + t) = κ(x, y): rows may be centred, which saves digits."""
    inner_product: ClassVar[bool] = False
    """κ(x, y) = f(⟨l(x), r(y)⟩), with l, r and f in ``left``, ``right`` and ``finish`` of ``InnerProductKernel``."""
    positive: bool = False
    """κ(x, y) ≥ 0 for all rows: in sums of such values nothing cancels."""
    formula: ClassVar[Form | None] = None
    """κ as a known function, of which the parameters are attributes of a kernel; None for another."""
    dissimilarity: Callable[[Rows], FloatArray] | None = None
    """q of all pairs of rows, (n, n), if κ is a function of γ q(x, y): the rules for γ need it."""

    @property
    def form(self) -> Form | None:
        """``formula`` with the parameters of this kernel, for features, sketches, Fourier transforms and devices."""
        own = {name: value for name, value in vars(self).items() if name in Form._fields}
        return None if self.formula is None else self.formula._replace(**own)

    @abstractmethod
    def block(self, X: Rows, Y: Rows) -> FloatArray:
        """κ(x_i, y_j) for every row of X and of Y, shape (n_x, n_y)."""

    def diagonal(self, X: Rows) -> FloatArray:
        """κ(x_i, x_i), shape (n_x,)."""
        return np.array([self.block(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(X.shape[0])], dtype=float)

    def centre(self, X: FloatArray) -> FloatArray | None:
        """What is taken off dense rows before they are rounded, (d,); None for nothing."""
        return middle(X) if self.translation_invariant else None


class ExponentialKernel(Kernel):
    """A kernel of the form κ(x, y) = exp(−γ q(x, y)) with q(x, x) = 0: write ``distances``."""

    positive = True

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    @abstractmethod
    def distances(self, X: Rows, Y: Rows) -> FloatArray:
        """q(x_i, y_j) for every row of X and of Y, shape (n_x, n_y): a new array."""

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        q = self.distances(X, Y)
        with np.errstate(over="ignore", invalid="ignore"):
            q *= -self.gamma
            return np.exp(q, out=q)

    def diagonal(self, X: Rows) -> FloatArray:
        return full((X.shape[0],), 1.0, X)

    def dissimilarity(self, X: Rows) -> FloatArray:
        """q of all pairs of rows."""
        return self.distances(X, X)


class InnerProductKernel(Kernel):
    """A kernel of the form κ(x, y) = f(⟨l(x), r(y)⟩): one matrix product and one function a block.

    ``left`` and ``right`` compute l and r once for all rows; ``finish`` applies f in place. Everything
    that depends on one row alone (norms, scales, constants) is folded into l and r.
    """

    inner_product = True

    @abstractmethod
    def left(self, X: Rows) -> Rows:
        """l(x) for every row, shape (n, p)."""

    def right(self, X: Rows) -> Rows:
        """r(x) for every row, shape (n, p); by default l(x)."""
        return self.left(X)

    def finish(self, inner: FloatArray) -> FloatArray:
        """f applied to inner products, in place."""
        return inner

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        return self.finish(dense_product(self.left(X), self.right(Y).T))

    def diagonal(self, X: Rows) -> FloatArray:
        left = self.left(X)
        inner = row_products(left, self.right(X))
        return self.finish(inner.astype(float) if sparse.issparse(left) else inner)


def nonnegative(kernel: Kernel, X: Rows) -> bool:
    """Whether κ(x, y) ≥ 0 for all pairs of these rows; False if that is not known."""
    form = kernel.form
    if kernel.positive or form is None or form.function not in ("inner", "power", "tanh"):
        return kernel.positive
    # Powers and tanh of what is not negative are not negative.
    return form.gamma >= 0 and form.coef0 >= 0 and (X.shape[0] == 0 or bool(X.min() >= 0))


def pair_values(kernel: Kernel, X: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """κ(x_{first_t}, x_{second_t}) for every t; as many evaluations as there are pairs."""
    form = kernel.form
    if form is not None and form.function == "gauss":
        gaps = X[first] - X[second]
        return np.asarray(np.exp(-form.gamma * row_products(gaps, gaps)))
    if isinstance(kernel, InnerProductKernel):
        return kernel.finish(row_products(kernel.left(X[first]), kernel.right(X[second])))
    out = np.empty(len(first))
    ranks = np.argsort(first, kind="stable")
    starts = np.flatnonzero(np.diff(first[ranks], prepend=-1))
    for run in np.split(ranks, starts[1:]):
        out[run] = kernel.block(X[first[run[:1]]], X[second[run]])[0]
    return out


def middle(X: FloatArray) -> FloatArray:
    """About the middle of dense rows, (d,): the median of a thousand of them, which no outlier moves."""
    return np.asarray(np.median(to_host(X[:: max(X.shape[0] // 1000, 1)]), axis=0), dtype=np.float64)


def row_products(X: Rows, Y: Rows) -> FloatArray:
    """⟨x_i, y_i⟩, (n,)."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(Y).sum(axis=1), dtype=X.dtype).ravel()
    if on_host(X):
        return np.einsum("ij,ij->i", X, Y)  # type: ignore[no-any-return]
    return (X * Y).sum(1)  # type: ignore[no-any-return]  # einsum would be a million small products


def squared_norms(X: Rows) -> FloatArray:
    """|x|² of every row, (n,)."""
    return row_products(X, X)


def dense_product(left: Rows, right: Rows) -> FloatArray:
    """left @ right as a dense array, for dense and sparse ones."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is an error of the caller's, with a cure
        product: Any = left @ right
    return product.toarray() if sparse.issparse(product) else np.asarray(product)


def beside(X: Rows, *columns: FloatArray | float) -> Rows:
    """X with more columns on its right: an array each, or a number for all rows."""
    if sparse.issparse(X):
        added = (np.broadcast_to(np.asarray(column, dtype=X.dtype), X.shape[0])[:, None] for column in columns)
        return sparse.hstack([X, *map(sparse.csr_array, added)], format="csr", dtype=X.dtype)
    out = padded(X, X.shape[1] + len(columns))
    with np.errstate(over="ignore"):
        for place, column in enumerate(columns, X.shape[1]):
            out[:, place] = column
    return out
