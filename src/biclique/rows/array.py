"""Rows in memory, dense or sparse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from biclique._typing import FloatArray, Rows
from biclique.io import CHUNK_ROWS
from biclique.rows.source import Block, RowSource, drawn
from biclique.runtime.namespace import rows_on_host


class ArrayRows(RowSource):
    """Rows that are held in memory."""

    in_memory = True

    def __init__(self, X: Rows, weights: FloatArray, names: Sequence[str] | None = None) -> None:
        self.X = X
        self.weights: FloatArray = weights
        self.n_columns = int(X.shape[1])
        self.names = names

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def held(self) -> Rows:
        return self.X

    def draw(self, size: int, random: np.random.RandomState) -> tuple[Rows, FloatArray]:
        chosen = drawn(self.weights, size, random)
        return rows_on_host(self.X, chosen), self.weights[chosen]

    def _blocks(self) -> Iterator[Block]:
        for top in range(0, self.n_rows, CHUNK_ROWS):
            yield Block(self.X[top : top + CHUNK_ROWS], self.weights[top : top + CHUNK_ROWS], top)
