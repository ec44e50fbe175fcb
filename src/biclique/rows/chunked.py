"""Rows that are read chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from biclique._typing import FloatArray, Rows
from biclique.exceptions import DataError
from biclique.io import CHUNK_ROWS, ChunkSource
from biclique.rows.checks import check_values
from biclique.rows.source import Block, RowSource, drawn

Check = Callable[[Rows, Sequence[int] | np.ndarray], None]
"""Refuses rows, given with their numbers."""


class ChunkRows(RowSource):
    """Rows of a chunk source; the first pass looks for values that cannot be used."""

    def __init__(self, source: ChunkSource, weights: FloatArray | None, check: Check) -> None:
        self.source, self.weights, self.check = source, weights, check
        self.n_columns, self.names = source.n_columns, source.columns
        self._checked = False

    @property
    def n_rows(self) -> int | None:
        return self.source.n_rows

    def draw(self, size: int, random: np.random.RandomState) -> tuple[Rows, FloatArray]:
        if self.weights is None:
            rows, numbers = self.source.draw(size, random)
        else:
            numbers = drawn(self.weights, size, random)
            rows = self.source.take(numbers)
            self._check_weights()
        self.check(rows, numbers)
        return rows, np.ones(len(rows)) if self.weights is None else self.weights[numbers]

    def _blocks(self) -> Iterator[Block]:
        done = 0
        for rows in self.source.chunks(CHUNK_ROWS, check_finite=not self._checked):
            if not self._checked:
                check_values(rows, self.source.columns, first_row=done)
                self.check(rows, range(done, done + len(rows)))
            weights = np.ones(len(rows)) if self.weights is None else self.weights[done : done + len(rows)]
            yield Block(rows, weights, done)
            done += len(rows)
        self._checked = True

    def _check_weights(self) -> None:
        if self.weights is not None and self.n_rows is not None and len(self.weights) != self.n_rows:
            raise DataError(f"sample_weight has {len(self.weights)} numbers for {self.n_rows} rows: give one a row.")
