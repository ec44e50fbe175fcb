"""The one contract for every way of holding K."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows


class GramOperator(ABC):
    """A symmetric n × n Gram matrix K that can be multiplied; how it is held is its own affair.

    Immutable: every method gives the same bits for the same argument, whatever the number of threads.
    """

    name: str
    n: int
    dtype: np.dtype[Any]
    """The precision in which values of κ are computed; products come back in float64."""

    @property
    def shape(self) -> tuple[int, int]:
        return (self.n, self.n)

    @property
    def noise(self) -> float:
        """The rounding of a product with a unit vector, below which the solver asks for no residual."""
        return float(np.finfo(self.dtype).eps)

    @property
    def nonnegative(self) -> bool:
        """Whether no entry of K is negative: nothing cancels in its sums. False if that is not known."""
        return False

    @abstractmethod
    def matmat(self, V: FloatArray) -> FloatArray:
        """K @ V, shape (n, b), float64. One call is one pass over K."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """κ(x_i, x_i), shape (n,)."""

    @abstractmethod
    def cross(self, Y: Rows) -> CrossGram:
        """New rows against the training rows."""

    def restricted(self, members: IntArray) -> GramOperator:
        """K of some of the rows, in their order."""
        raise NotImplementedError(f"{type(self).__name__} holds no rows of its own to choose from")

    def with_rows(self, Y: Rows) -> GramOperator:  # noqa: ARG002
        """K of the training rows and, after them, of more rows."""
        raise TypeError(f"{type(self).__name__} cannot take more rows: it is not computed from a kernel.")


class TrainedRows(Protocol):
    """What a model keeps of an operator to meet new rows."""

    rows: Rows

    def hold(self, X: Rows) -> Rows:
        """Other rows, treated as the training rows were."""

    def cross(self, Y: Rows, *, n_jobs: int | None = None) -> CrossGram:
        """New rows against the training rows."""


class CrossGram(Protocol):
    """The (n_new × n) block κ(y, x) of new rows against the training rows."""

    def matmat(self, V: FloatArray) -> FloatArray:
        """κ(Y, X) @ V, shape (n_new, b), float64."""

    def diagonal(self) -> FloatArray:
        """κ(y, y), shape (n_new,)."""
