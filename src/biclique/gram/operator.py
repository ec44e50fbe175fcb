"""The one contract for every way of holding K."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from biclique._typing import Array, FloatArray, IntArray, Rows
from biclique.kernels import Kernel
from biclique.runtime import Tick
from biclique.runtime.namespace import PIECE_ROWS


class GramOperator(ABC):
    """A symmetric n × n Gram matrix K that can be multiplied; how it is stored is its own affair.

    Immutable: every method gives the same bits for the same argument, for any number of threads. Callers ask the
    operator and never look at its class: what differs between operators is an attribute or a method here, with a
    default. ``tests/gram/contract.py`` holds the contract.
    """

    name: str
    n: int
    dtype: np.dtype[Any]
    """The precision in which values of κ are computed; products come back in float64."""

    passes_are_cheap: bool = True
    """False if every pass computes K anew."""

    n_jobs: int | None = None
    """Threads; None means every core."""

    takes_precision: bool = False
    """Whether values of a kernel may be computed in float32; else they are in float64."""

    has_device_tiles: bool = False
    """Whether K in tiles on a device is this operator's counterpart there."""

    is_graph: bool = False
    """True for a sparse K without negative entries: multigrid can solve it."""

    has_parts: bool = False
    """Whether ``parts`` knows the connected components."""

    noise: float = float(np.finfo(np.float64).eps)
    """The rounding of a product with a unit vector; the solver asks for no smaller residual."""

    rank: int | None = None
    """Landmarks or features of an approximate K; None if K is exact by construction."""

    engine: str = "numpy"
    """What computes products."""

    starts_from_few: bool = True
    """Whether a start from the eigenvectors of a few rows saves passes, if passes are slow."""

    cross_rows: int = PIECE_ROWS
    """How many new rows are compared with the training rows together, if there are many."""

    error: MeasuredError | None = None
    """How far products are from exact ones, if that was measured."""

    like: Array = np.empty(0)
    """An empty array on the host or on the device, wherever the operator takes and returns arrays."""

    # Of operators that are made of a kernel and rows

    @classmethod
    def from_kernel(
        cls,
        kernel: Kernel,
        X: Rows,
        *,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
        tick: Tick | None = None,
    ) -> GramOperator:
        """K of a kernel over rows; ``dtype`` is the precision of values that are computed anew."""
        make: Any = cls
        made: GramOperator = make(kernel, X, dtype=dtype, n_jobs=n_jobs, tick=tick)
        return made

    @classmethod  # noqa: B027
    def check_rows(cls, kernel: Kernel, X: Rows) -> None:
        """Refuse rows that K cannot be made of; X may be some of them."""

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
        """κ(x_i, x_i), shape (n,), on the device of ``like``."""

    @abstractmethod
    def cross(self, Y: Rows) -> CrossGram:
        """New rows against the training rows."""

    def stored(self) -> Any:
        """K itself, an array or a sparse matrix in rows, if it fits the memory; a TypeError if it is never stored."""
        raise TypeError(f"{type(self).__name__} never stores K: use matmat, which multiplies it.")

    def weigh(self, weights: FloatArray) -> None:  # noqa: B027
        """Measure ``error`` anew, with the weights of the rows; before the first pass."""

    def training(self) -> TrainedRows | None:
        """What a model keeps to meet new rows once K is gone; None if it needs the operator itself, or its matrix."""
        return None

    def parts(self) -> IntArray:
        """The connected component of every row, of a K that ``has_parts``: 0, 1, …"""
        return np.zeros(self.n, dtype=np.intp)

    def sparse_factor(self) -> Any | None:
        """Φ with K = ΦΦᵀ as a sparse matrix, if K is stored so."""
        return None

    def normal(self, shape: tuple[int, ...], seed: int) -> Any:
        """Standard normal numbers, drawn on the device of ``like``."""
        return np.random.RandomState(seed).standard_normal(shape)

    def restricted(self, members: IntArray) -> GramOperator:
        """K of some of the rows, in their order; new rows are compared with these alone."""
        raise NotImplementedError(f"{type(self).__name__} holds no rows of its own to choose from")

    def with_rows(self, Y: Rows) -> GramOperator:  # noqa: ARG002
        """K of the training rows and, after them, of more rows."""
        raise TypeError(f"{type(self).__name__} cannot take more rows: it is not computed from a kernel.")


class MeasuredError(Protocol):
    """How far a K is from the exact one; printed, a few words."""

    @property
    def counts_as_exact(self) -> bool:
        """Whether nobody needs to be warned."""

    def facts(self) -> dict[str, float]:
        """What was measured, by name."""


class CrossGram(Protocol):
    """The (n_new × n) block κ(y, x) of new rows against the training rows."""

    def matmat(self, V: FloatArray) -> FloatArray:
        """κ(Y, X) @ V, shape (n_new, b), float64."""

    def diagonal(self) -> FloatArray:
        """κ(y, y), shape (n_new,)."""


class TrainedRows(Protocol):
    """The training rows as a model keeps them: what new rows are compared with once K is gone. It can be pickled."""

    @property
    def rows(self) -> Rows:
        """As they are stored: centred or rounded, if the operator does that."""

    def hold(self, Y: Rows) -> Rows:
        """Other rows, treated as the training rows were: distances to ``rows`` then mean something."""

    def cross(self, Y: Rows, n_jobs: int | None = None) -> CrossGram:
        """New rows against these."""
