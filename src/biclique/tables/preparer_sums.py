"""What a TablePreparer learns from the parts of a table."""

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
        counts, means, squares = np.zeros((3, X.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            for j, column in enumerate(X.T):  # one at a time: copies of all would be the most memory of a pass
                values = column[~np.isnan(column)]
                counts[j] = len(values)
                if len(values):
                    means[j] = values.mean()
                    squares[j] = ((values - means[j]) ** 2).sum()
        return cls(len(X), counts, means, squares, [Counter(column.tolist()) for column in L.T])

    @classmethod
    def added(cls, parts: Sequence[Sums]) -> Sums:
        """Those of all parts: Σ (x − mean)² = Σ over parts of (their own + count (their mean − mean)²)."""
        counts = np.array([part.counts for part in parts])
        own = np.array([part.means for part in parts])
        total = counts.sum(axis=0)
        means = (counts * own).sum(axis=0) / np.maximum(total, 1)
        squares = sum(part.squares for part in parts) + (counts * (own - means) ** 2).sum(axis=0)
        levels = [Counter(found) for found in parts[0].levels]
        for part in parts[1:]:
            for found, more in zip(levels, part.levels, strict=True):
                found.update(more)
        return cls(sum(part.n_rows for part in parts), total, means, squares, levels)

    def two_rows(self, filled: bool) -> FloatArray:
        """mean ± deviation: two rows with the mean and the variance of all; a value ``filled`` in has deviation 0."""
        deviation = np.sqrt(self.squares / (self.n_rows if filled else self.counts))
        return np.array([self.means - deviation, self.means + deviation])

    @property
    def n_values(self) -> list[float]:
        """The number of values of every column of numbers, then of every category."""
        return [*self.counts.tolist(), *(found.total() - found[None] for found in self.levels)]
