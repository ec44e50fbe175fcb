"""The one contract for every way of holding K."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from biclique._typing import Array, FloatArray, IntArray, Rows


class GramOperator(ABC):
    """A symmetric n × n Gram matrix K that can be multiplied; how it is stored is its own affair.

    Immutable: every method gives the same bits for the same argument, for any number of threads. Callers ask the
    operator and never look at its class. ``tests/gram/contract.py`` holds the contract: a subclass sets ``name``, ``n``
    and ``dtype``, and writes ``matmat``, ``diagonal`` and ``cross``. All else has a default.
    """

    name: str
    n: int
    dtype: np.dtype[Any]
    """The precision in which values of κ are computed; products come back in float64."""
    noise: float = float(np.finfo(np.float64).eps)
    """The rounding of a product with a unit vector; the solver asks for no smaller residual."""
    like: Array = np.empty(0)
    """An empty array on the host or on the device, wherever the operator takes and returns arrays."""
    nonnegative: bool = False
    """Whether no entry of K is negative: nothing cancels in its sums. False if that is not known."""
    passes_are_cheap: bool = True
    """False if every pass computes K anew."""
    error: MeasuredError | None = None
    """How far products are from exact ones, if that was measured."""

    @abstractmethod
    def matmat(self, V: FloatArray) -> FloatArray:
        """K @ V, shape (n, b), float64. One call is one pass over K."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """κ(x_i, x_i), shape (n,), on the device of ``like``."""

    @abstractmethod
    def cross(self, Y: Rows) -> CrossGram:
        """New rows against the training rows."""

    def weigh(self, weights: FloatArray) -> None:  # noqa: B027
        """Measure ``error`` anew, with the weights of the rows; before the first pass."""

    def training(self) -> TrainedRows | None:
        """What a model keeps to meet new rows once K is gone; None if it needs the operator itself, or its matrix."""
        return None

    def graph(self) -> sparse.csr_array | None:
        """K as a sparse matrix without negative entries, which multigrid can solve; None for another."""
        return None

    def parts(self) -> IntArray | None:
        """The connected component of every row, 0, 1, …; None if that is not known."""
        return None

    def restricted(self, members: IntArray) -> GramOperator:
        """K of some of the rows, in their order, if ``parts`` is known; new rows are compared with these alone."""
        raise NotImplementedError(f"{type(self).__name__} has no parts: {len(members)} rows cannot be taken out of it.")

    def sparse_factor(self) -> sparse.csr_array | None:
        """Φ with K = ΦΦᵀ as a sparse matrix, if K is stored so."""
        return None


class MeasuredError(Protocol):
    """How far a K is from the exact one; printed, a few words."""

    @property
    def counts_as_exact(self) -> bool:
        """Whether nobody needs to be warned."""

    def facts(self) -> dict[str, float]:
        """What was measured, by name."""


class CrossGram(Protocol):
    """The (n_new × n) block κ(y, x) of new rows against the training rows."""

    def matmat(self, V: FloatArray, /) -> FloatArray:
        """κ(Y, X) @ V, shape (n_new, b), float64."""

    def diagonal(self) -> FloatArray:
        """κ(y, y), shape (n_new,)."""


class Cross(NamedTuple):
    """A ``CrossGram`` of two functions."""

    matmat: Callable[[FloatArray], FloatArray]
    diagonal: Callable[[], FloatArray]


class TrainedRows(Protocol):
    """The training rows as a model keeps them: what new rows are compared with once K is gone. It can be pickled."""

    @property
    def rows(self) -> Rows:
        """As they are stored: centred or rounded, if the operator does that."""

    def hold(self, Y: Rows) -> Rows:
        """Other rows, treated as the training rows were: distances to ``rows`` then mean something."""

    def cross(self, Y: Rows, n_jobs: int | None = None) -> CrossGram:
        """New rows against these."""
