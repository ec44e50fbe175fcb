"""Symmetric modelling, for odd orders too: its contraction in O(n²), and as a Gram operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from biclique._typing import FloatArray, Rows
from biclique.exceptions import DataError, ParameterError
from biclique.gram.operator import Cross, CrossGram, GramOperator, TrainedRows
from biclique.kernels.kernel import Kernel
from biclique.kernels.named import make_kernel
from biclique.multiway.biclique import check_finite_order, power_of_count, square


def check_whole_order(order: float) -> int:
    """A whole order from 2, even or odd."""
    if check_finite_order(order) % 1:
        raise ParameterError(f"order must be a whole number for the symmetric model, got {order:g}.")
    return int(order)


def symmetric_kernel(kernel: Kernel | Callable[..., float], points: Rows) -> float:
    """κ_s(x₁..x_m) = ¼ Σ_i Σ_j κ(x_i, x_j), i and j from 1 to m: the same for every order of its points.

    >>> from biclique.kernels.named import Linear
    >>> from biclique.multiway import symmetric_kernel
    >>> symmetric_kernel(Linear(), [[1.0], [2.0], [3.0]])
    9.0
    """
    points = np.asarray(points, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(make_kernel(kernel, gamma=None).block(points, points).sum()) / 4
    if not np.isfinite(value):
        raise DataError("the kernel of these points leaves the range of numbers: scale their columns, or lower gamma.")
    return value


def symmetric_gram(K: FloatArray, order: int, *, scaled: bool = False) -> FloatArray:
    """K_s/n^(m−2) = ¼ [2K + k1ᵀ + 1kᵀ + (2(m−2)/n)(δ1ᵀ + 1δᵀ) + ((m−2)/n) tr K + ((m−2)(m−3)/n²) ρ], k = diag K.

    The contraction of the symmetric tensor over m − 2 modes, for any whole m ≥ 2, odd ones too: O(n²); the paper
    expects O(n^m). The paper's closed form, (n^(m−2)/4) ⟨ψ_i + (m−1)Ψ, ψ_j + (m−1)Ψ⟩, is another matrix, and the true
    one can be indefinite. ``scaled`` multiplies by n^(m−2).
    """
    K, m = square(K), check_whole_order(order)
    n = len(K)
    with np.errstate(over="ignore", invalid="ignore"):
        column, constant = _symmetric_terms(np.diagonal(K), K.sum(axis=1), np.ones(n), m)
        gram = (2 * K + column[:, None] + column[None, :] + constant) / 4
    if not np.isfinite(gram).all():
        raise DataError("K_s leaves the range of numbers: divide K by its largest value, or lower the order.")
    return gram * power_of_count(n, m) if scaled else gram


def _symmetric_terms(
    diagonal: FloatArray, degrees: FloatArray, weights: FloatArray, m: int
) -> tuple[FloatArray, float]:
    """a and c of K_s = ¼ [2K + a1ᵀ + 1aᵀ + c 11ᵀ], sums weighted by multiplicities."""
    n, order = float(weights.sum()), float(m)  # whole numbers of any size would not divide
    with np.errstate(over="ignore", invalid="ignore"):
        trace, total = float(weights @ diagonal), float(weights @ degrees)
        column = diagonal + (2 * (order - 2) / n) * degrees
        constant = (order - 2) / n * trace + ((order - 2) / n) * ((order - 3) / n) * total
    if np.isfinite(total) and not (np.isfinite(column).all() and np.isfinite(constant)):
        raise ParameterError(
            f"order={order:g} is too large for the symmetric model, whose values grow with its square."
        )
    return column, constant


class SymmetricGram(GramOperator):
    """K_s/n^(m−2) over any Gram operator, never stored: K and a matrix of rank two.

    Building it costs one pass over K, for the degrees.
    """

    def __init__(self, base: GramOperator, order: int, weights: FloatArray) -> None:
        self.base = base
        self.name, self.n, self.dtype = base.name, base.n, base.dtype
        self.passes_are_cheap, self.nonnegative, self.like = base.passes_are_cheap, base.nonnegative, base.like
        self.noise = float(np.finfo(self.dtype).eps)
        order = check_whole_order(order)
        degrees = base.matmat(weights[:, None])[:, 0]
        self.shift = SymmetricShift(order, weights, *_symmetric_terms(base.diagonal(), degrees, weights, order))

    def matmat(self, V: FloatArray) -> FloatArray:
        column, sums = self.shift.column, V.sum(axis=0)
        product = 2 * self.base.matmat(V) + np.outer(column, sums) + column @ V + self.shift.constant * sums
        return np.asarray(product / 4)

    def diagonal(self) -> FloatArray:
        return np.asarray((2 * self.base.diagonal() + 2 * self.shift.column + self.shift.constant) / 4)

    def cross(self, Y: Rows) -> CrossGram:
        return self.shift.cross(self.base.cross(Y))

    def training(self) -> SymmetricRows | None:
        base = self.base.training()
        return None if base is None else SymmetricRows(base, self.shift)


@dataclass(frozen=True)
class SymmetricShift:
    """What is left of a ``SymmetricGram`` for new rows once it is fitted: everything but K itself."""

    order: int
    weights: FloatArray
    column: FloatArray
    constant: float

    def cross(self, base: CrossGram) -> CrossGram:
        """¼ [2κ(y, x_j) + a(y) + a_j + c], a(y) = κ(y, y) + (2(m−2)/n) δ(y), from κ(y, x_j)."""
        slope = 2 * (float(self.order) - 2) / float(self.weights.sum())

        def matmat(V: FloatArray) -> FloatArray:
            sums = V.sum(axis=0)
            product = base.matmat(np.column_stack([self.weights, V]))
            own = base.diagonal() + slope * product[:, 0]
            return np.asarray((2 * product[:, 1:] + np.outer(own, sums) + self.column @ V + self.constant * sums) / 4)

        def diagonal() -> FloatArray:
            own, degrees = base.diagonal(), base.matmat(self.weights[:, None])[:, 0]
            return np.asarray((2 * own + 2 * (own + slope * degrees) + self.constant) / 4)

        return Cross(matmat, diagonal)


@dataclass(frozen=True)
class SymmetricRows:
    """The training rows of a ``SymmetricGram``: those of K, and the shift."""

    base: TrainedRows
    shift: SymmetricShift

    @property
    def rows(self) -> Rows:
        return self.base.rows

    def hold(self, Y: Rows) -> Rows:
        return self.base.hold(Y)

    def cross(self, Y: Rows, n_jobs: int | None = None) -> CrossGram:
        return self.shift.cross(self.base.cross(Y, n_jobs))
