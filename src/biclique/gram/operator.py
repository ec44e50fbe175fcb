"""The one contract for every way of holding K."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from biclique._typing import Array, FloatArray, IntArray, Rows

CHECKED_AT_ONCE = 32
"""Vectors of a product by which parts are checked, unless a caller has room for others."""


class GramOperator(ABC):
    """A symmetric n × n Gram matrix K that can be multiplied; how it is stored is its own affair.

    Immutable: every method gives the same bits for the same argument, whatever the number of threads. Callers ask the
    operator and never look at its class: what differs between operators is an attribute or a method here, with a
    default. ``tests/gram/contract.py`` holds the contract.
    """

    name: str
    n: int
    dtype: np.dtype[Any]
    """The precision in which values of κ are computed; products come back in float64."""

    passes_are_cheap: bool = True
    """False if every pass computes K anew."""

    is_graph: bool = False
    """True for a sparse K without negative entries: multigrid can solve it."""

    noise: float = float(np.finfo(np.float64).eps)
    """The rounding of a product with a unit vector; the solver asks for no smaller residual."""

    rank: int | None = None
    """Landmarks or features of an approximate K; None if K is exact by construction."""

    engine: str = "numpy"
    """What computes products."""

    like: Array = np.empty(0)
    """An empty array that lies where the operator takes and returns arrays: on the host, or on a device."""

    @property
    def shape(self) -> tuple[int, int]:
        return (self.n, self.n)

    @property
    def nonnegative(self) -> bool:
        """Whether no entry of K is negative: nothing cancels in its sums. False if that is not known."""
        return False

    @abstractmethod
    def matmat(self, V: FloatArray) -> FloatArray:
        """K @ V, shape (n, b), float64. One call is one pass over K."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """κ(x_i, x_i), shape (n,), where ``like`` lies."""

    @abstractmethod
    def cross(self, Y: Rows) -> CrossGram:
        """New rows against the training rows."""

    def stored(self, memory_limit: int | str = "auto") -> Any:  # noqa: ARG002
        """K itself, an array or a sparse matrix in rows, where it fits a limit; a TypeError if it is never stored."""
        raise TypeError(f"{type(self).__name__} never stores K: use matmat, which multiplies it.")

    def training(self) -> TrainedRows | None:
        """What a model keeps to meet new rows once K is gone; None if it needs the operator itself, or its matrix."""
        return None

    def parts(
        self,
        degrees: FloatArray,  # noqa: ARG002
        weights: FloatArray,  # noqa: ARG002
        random: int | np.random.RandomState | None,  # noqa: ARG002
        columns: int = CHECKED_AT_ONCE,  # noqa: ARG002
    ) -> IntArray:
        """The disconnected part of every row: 0, 1, …; all 0 if K is connected, or if the operator cannot tell.

        ``degrees`` are K ``weights``. ``columns`` are the vectors that a product may have, ``random`` a source for
        samples.
        """
        return np.zeros(self.n, dtype=np.intp)

    def normal(self, shape: tuple[int, ...], seed: int) -> Any:
        """Standard normal numbers, drawn where ``like`` lies."""
        return np.random.RandomState(seed).standard_normal(shape)

    def restricted(self, members: IntArray) -> GramOperator:
        """K of some of the rows, in their order."""
        raise NotImplementedError(f"{type(self).__name__} holds no rows of its own to choose from")

    def with_rows(self, Y: Rows) -> GramOperator:  # noqa: ARG002
        """K of the training rows and, after them, of more rows."""
        raise TypeError(f"{type(self).__name__} cannot take more rows: it is not computed from a kernel.")


class CrossGram(Protocol):
    """The (n_new × n) block κ(y, x) of new rows against the training rows."""

    def matmat(self, V: FloatArray) -> FloatArray:
        """κ(Y, X) @ V, shape (n_new, b), float64."""

    def diagonal(self) -> FloatArray:
        """κ(y, y), shape (n_new,)."""


class TrainedRows(Protocol):
    """The training rows as a model keeps them: what new rows are compared with once K is gone. It can be pickled."""

    rows: Rows
    """As they are stored: centred or rounded, if the operator does that."""

    def hold(self, Y: Rows) -> Rows:
        """Other rows, treated as the training rows were: distances to ``rows`` then mean something."""

    def cross(self, Y: Rows, n_jobs: int | None = None) -> CrossGram:
        """New rows against these."""
