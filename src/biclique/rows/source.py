"""The one idea of where rows come from: three verbs, draw, sum and map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np

from biclique._typing import Device, FloatArray, IntArray, Rows
from biclique.progress import Progress
from biclique.runtime.draws import draw_numbers

Found = TypeVar("Found")


class Addable(Protocol):
    """What can be added to in place."""

    def __iadd__(self, other: Self, /) -> Self: ...


Sum = TypeVar("Sum", bound=Addable)


@dataclass(frozen=True)
class Block:
    """Consecutive rows with their multiplicities, where they lie."""

    rows: Rows
    weights: FloatArray
    start: int = 0
    """The number of the first one."""


class RowSource(ABC):
    """Rows with their multiplicities, passed over as often as is asked.

    Arrays in memory, tensors on a device and files in chunks are subclasses. What they yield is cut by sizes alone, so
    that sums have the same bits however many threads there are.
    """

    in_memory: bool = False
    """Whether an embedding of all rows may be kept."""
    device: Device | None = None
    """Where blocks are tensors, and passes look at them."""
    name: str = "X"
    """In messages."""
    n_columns: int
    weights: FloatArray | None
    names: Sequence[str] | None = None
    """Of the columns."""

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """None where only a pass can tell."""

    @property
    def held(self) -> Rows:
        """The rows themselves, where they are in memory."""
        raise TypeError("these rows are read in chunks, and rows in memory are needed")

    def placed(self) -> tuple[Rows, bool]:
        """The rows where they are computed with, and whether they were copied for that."""
        return self.held, False

    @property
    def n_counted(self) -> int | None:
        """Rows of positive weight."""
        return self.n_rows if self.weights is None else int((self.weights > 0).sum())

    @abstractmethod
    def draw(self, size: int, random: np.random.RandomState) -> tuple[Rows, FloatArray]:
        """At most ``size`` rows that count, drawn evenly, with their multiplicities; on the host."""

    @abstractmethod
    def _blocks(self) -> Iterator[Block]:
        """One pass."""

    def sum(self, function: Callable[[Block], Sum], what: str, progress: Progress) -> Sum:
        """Σ of a function of every block, in the order of the rows; its results are added in place."""
        total: Sum | None = None
        for found in self._each(function, what, progress):
            total = found if total is None else total.__iadd__(found)
        if total is None:
            raise ValueError("a pass gave no rows")
        return total

    def map(self, function: Callable[[Block], Found], what: str, progress: Progress) -> list[Found]:
        """A function of every block, in the order of the rows."""
        return list(self._each(function, what, progress))

    def _each(self, function: Callable[[Block], Found], what: str, progress: Progress) -> Iterator[Found]:
        told = f"pass over the rows for the {what}"
        progress.share(told, 0.0)
        for block in self._blocks():
            yield function(block)
            if self.n_rows:
                progress.share(told, (block.start + block.rows.shape[0]) / self.n_rows)


def drawn(weights: FloatArray, size: int, random: np.random.RandomState) -> IntArray:
    """Numbers of at most ``size`` rows of positive weight, drawn evenly, ascending."""
    counted = np.flatnonzero(weights > 0)
    return counted[draw_numbers(len(counted), size, random)]
