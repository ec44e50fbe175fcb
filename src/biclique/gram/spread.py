"""Exact tiles by workers on other machines: a pass is one task for every pair of blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Protocol, TypeAlias

import numpy as np

from biclique._typing import Array, FloatArray
from biclique.gram.tiled import TILE_COLUMNS, TILE_ROWS, TiledGram
from biclique.runtime.threads import one_thread

BLOCK_ROWS = 4096
"""Rows of a block at least."""

MOST_BLOCKS = 32
"""Blocks at most: what travels in a pass grows with their number."""

PairProduct: TypeAlias = Callable[[TiledGram, Array, int, int], tuple[FloatArray, FloatArray]]


class Spread(Protocol):
    """Who runs tasks elsewhere."""

    def keep(self, gram: TiledGram) -> None:
        """Take the rows, which every worker will hold; they travel once."""

    def add_pairs(self, product: PairProduct, V: Array, n_blocks: int) -> list[FloatArray]:
        """Of every block of rows the sum over its pairs (i ≤ j), in the order of the other block; V travels once."""


def count_blocks(n: int) -> int:
    """Blocks of rows: by their number alone, so that sums have the same bits for any workers."""
    return int(np.clip(n // BLOCK_ROWS, 1, MOST_BLOCKS))


def rows_of_block(n: int, block: int) -> range:
    """The numbers of the rows of a block."""
    size = -(-n // count_blocks(n))
    return range(min(block * size, n), min((block + 1) * size, n))


def pair_product(gram: TiledGram, V: Array, i: int, j: int) -> tuple[FloatArray, FloatArray]:
    """K_ij V_j for block i, and K_ijᵀ V_i for block j: every tile is computed once and used for both."""
    rows, columns = rows_of_block(gram.n, i), rows_of_block(gram.n, j)
    own, other = np.zeros((len(rows), V.shape[1])), np.zeros((len(columns), V.shape[1]))
    buffer = np.empty(TILE_ROWS * TILE_COLUMNS, dtype=gram.dtype)
    with one_thread():
        for top in rows[::TILE_ROWS]:
            bottom = min(top + TILE_ROWS, rows.stop)
            for left in columns[::TILE_COLUMNS]:
                right = min(left + TILE_COLUMNS, columns.stop)
                tile = gram.tile(top, bottom, left, right, buffer)
                own[top - rows.start : bottom - rows.start] += tile @ V[left:right]
                if i < j:
                    other[left - columns.start : right - columns.start] += tile.T @ V[top:bottom]
    return own, other


class SpreadTiles(TiledGram):
    """The same K as ``TiledGram``; its passes are run elsewhere, the vectors of the solver stay here."""

    def __init__(self, gram: TiledGram, spread: Spread) -> None:
        self.__dict__.update(gram.__dict__)
        self._spread = spread
        light = copy(gram)
        light.tick = None
        spread.keep(light)

    def matmat(self, V: FloatArray) -> FloatArray:
        V = np.ascontiguousarray(V, dtype=self.dtype)
        return np.concatenate(self._spread.add_pairs(pair_product, V, count_blocks(self.n)))
