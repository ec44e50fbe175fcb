"""What a TablePreparer learns from a part of a table, so that parts can be added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray


@dataclass(frozen=True)
class Sums:
    """Number of values, mean and Σ (x − mean)² of every column of numbers, and how often every level comes."""

    n_rows: int
    counts: FloatArray  # (p,)
    means: FloatArray  # (p,)
    squares: FloatArray  # (p,)
    levels: list[Counter[str | None]]  # q

    @classmethod
    def of(cls, X: FloatArray, L: NDArray[Any]) -> Sums:
        """Those of some rows; NaN and None count as no value."""
        present = ~np.isnan(X)
        counts = present.sum(axis=0).astype(float)
        levels = [Counter(column.tolist()) for column in L.T]
        with np.errstate(over="ignore", invalid="ignore"):
            means = np.where(present, X, 0).sum(axis=0) / np.maximum(counts, 1)
            squares = (np.where(present, X - means, 0) ** 2).sum(axis=0)
        return cls(len(X), counts, means, squares, levels)

    @classmethod
    def added(cls, parts: Sequence[Sums]) -> Sums:
        """Those of all parts, in their order, as Chan, Golub and LeVeque add them."""
        first, *others = parts
        n_rows, counts, means, squares = first.n_rows, first.counts, first.means, first.squares
        levels = [Counter(found) for found in first.levels]
        for part in others:
            total = np.maximum(counts + part.counts, 1)
            gap = np.where(part.counts > 0, part.means - means, 0)
            squares = squares + part.squares + gap**2 * (counts * part.counts / total)
            means = means + gap * (part.counts / total)
            counts = counts + part.counts
            n_rows += part.n_rows
            for found, more in zip(levels, part.levels, strict=True):
                found.update(more)
        return cls(n_rows, counts, means, squares, levels)

    def two_rows(self, filled: bool) -> FloatArray:
        """mean ± deviation: two rows with the mean and the variance of all; a value ``filled`` in has deviation 0."""
        deviation = np.sqrt(self.squares / (self.n_rows if filled else self.counts))
        return np.array([self.means - deviation, self.means + deviation])

    @property
    def n_values(self) -> list[float]:
        """The number of values of every column of numbers, then of every category."""
        present = [sum(n for level, n in found.items() if level is not None) for found in self.levels]
        return [*self.counts.tolist(), *present]
