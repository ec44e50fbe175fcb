"""Exact tiles by workers on other machines: a pass is one task for every pair of blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Protocol, TypeAlias

import numpy as np

from biclique._typing import Array, FloatArray, IntArray, Rows
from biclique.gram.tiled import TILE_COLUMNS, TILE_ROWS, TiledGram
from biclique.runtime.threads import one_thread, single_threaded_blas

BLOCK_ROWS, MOST_BLOCKS = 4096, 32
"""Rows of a block at least, and blocks at most: what travels in a pass grows with the number of blocks."""

PairProduct: TypeAlias = Callable[[TiledGram, Array, int, int], tuple[FloatArray, FloatArray]]


class Spread(Protocol):
    """Who runs tasks elsewhere."""

    @property
    def n_threads(self) -> int:
        """Threads of all workers."""

    def keep(self, gram: TiledGram) -> None:
        """Take the rows, which every worker will hold; they travel once."""

    def add_pairs(self, product: PairProduct, V: Array, n_blocks: int) -> list[FloatArray]:
        """Of every block of rows the sum over its pairs (i ≤ j), in the order of the other block; V travels once."""


def count_blocks(n: int) -> int:
    """Blocks of rows: by their number alone, so that sums have the same bits for any workers."""
    return int(np.clip(n // BLOCK_ROWS, 1, MOST_BLOCKS))


def block_bounds(n: int, block: int) -> tuple[int, int]:
    """The first row of a block, and the first behind it."""
    size = -(-n // count_blocks(n))
    return min(block * size, n), min((block + 1) * size, n)


def pair_product(gram: TiledGram, V: Array, i: int, j: int) -> tuple[FloatArray, FloatArray]:
    """K_ij V_j for block i, and K_ijᵀ V_i for block j; of a block with itself the first is all.

    Every tile is computed once and used for both.
    """
    (first, last), (left_end, right_end) = block_bounds(gram.n, i), block_bounds(gram.n, j)
    own, other = np.zeros((last - first, V.shape[1])), np.zeros((right_end - left_end, V.shape[1]))
    buffer = np.empty(TILE_ROWS * TILE_COLUMNS, dtype=gram.dtype)
    with one_thread(), single_threaded_blas():
        for top in range(first, last, TILE_ROWS):
            bottom = min(top + TILE_ROWS, last)
            for left in range(top if i == j else left_end, right_end, TILE_COLUMNS):
                right = min(left + TILE_COLUMNS, right_end)
                tile = gram.tile(top, bottom, left, right, buffer)
                own[top - first : bottom - first] += tile @ V[left:right]
                beyond = max(left, bottom) if i == j else left
                if beyond < right:  # the square on the diagonal holds both of its halves already
                    target = own if i == j else other
                    target[beyond - left_end : right - left_end] += tile[:, beyond - left :].T @ V[top:bottom]
    return own, other


class SpreadTiles(TiledGram):
    """The same K as ``TiledGram``; its passes are run elsewhere, the vectors of the solver stay here."""

    def __init__(self, gram: TiledGram, spread: Spread) -> None:
        self.__dict__.update(gram.__dict__)
        self._here, self._spread = gram, spread
        light = copy(gram)
        light.tick = None
        spread.keep(light)

    def matmat(self, V: FloatArray) -> FloatArray:
        V = np.ascontiguousarray(V, dtype=self.dtype)
        return np.concatenate(self._spread.add_pairs(pair_product, V, count_blocks(self.n)))

    def restricted(self, members: IntArray) -> TiledGram:  # type: ignore[override]
        return self._here.restricted(members)

    def with_rows(self, Y: Rows) -> TiledGram:  # type: ignore[override]
        return self._here.with_rows(Y)
