"""Rows that are read piece by piece, and how X of such a kind is recognised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from biclique._typing import FloatArray, Rows
from biclique.exceptions import DataError
from biclique.io import CHUNK_ROWS, ChunkSource, is_chunked, open_chunks
from biclique.rows.checks import check_values, check_weights
from biclique.rows.source import Block, RowSource, drawn

Check = Callable[[Rows, Sequence[int] | np.ndarray], None]
"""Refuses rows, given with their numbers."""


class ChunkRows(RowSource):
    """Rows of a chunk source; the first pass looks for values that cannot be used."""

    def __init__(self, source: ChunkSource, weights: FloatArray | None, check: Check) -> None:
        self.source, self.weights, self.check = source, weights, check
        self.name, self.n_columns, self.names = source.name, source.n_columns, source.columns
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


@dataclass(frozen=True)
class Opener:
    """A kind of rows that are never held whole."""

    recognises: Callable[[Any], bool]
    """Whether X is of this kind."""
    open: Callable[[Any, Any, int | str, Check], RowSource]
    """The source of X and of ``sample_weight`` as it came, within a memory limit; rows that are drawn, and those of the
    first pass, go through the check."""


def open_chunk_rows(X: Any, sample_weight: Any, memory_limit: int | str, check: Check) -> ChunkRows:
    """Rows of a chunk source, or of whatever ``open_chunks`` makes one of."""
    source = open_chunks(X, memory_limit=memory_limit)
    source.require_labels(memory_limit)
    weights = None
    if sample_weight is not None:
        n = source.n_rows
        weights = check_weights(sample_weight, np.size(sample_weight) if n is None else n)
    return ChunkRows(source, weights, check)


OPENERS: dict[str, Opener] = {
    "chunks": Opener(lambda X: not isinstance(X, np.ndarray) and is_chunked(X), open_chunk_rows),
}
"""The kinds of rows that are read piece by piece; ``fit``, ``plan`` and ``predict`` read this table."""


def find_opener(X: Any) -> Opener | None:
    """The first kind that X is of; None where its rows are in memory."""
    return next((opener for opener in OPENERS.values() if opener.recognises(X)), None)
