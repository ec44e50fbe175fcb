"""K never stored: exact products from tiles that are computed, used twice and forgotten."""

from __future__ import annotations

from functools import cached_property, reduce
from operator import iadd
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from biclique._typing import FloatArray
from biclique.gram.computed import ComputedGram
from biclique.kernels.held import Sides
from biclique.runtime.threads import Pulse, run_groups

TILE_ROWS = 128
"""Rows of a tile."""

TILE_COLUMNS = 512
"""Columns of a tile: in float32 it is a quarter of a MiB, and stays in a core's cache until its last use."""

PARTIAL_SUM_BYTES = 256 * 2**20
"""Memory of all partial sums of a product, if that leaves groups enough."""

MIN_GROUPS = 4
"""Fewest partial sums."""

MAX_GROUPS = 16
"""Most partial sums."""


def count_groups(n: int, b: int) -> int:
    """How many partial sums of a product there are: by the sizes alone, never by the number of threads."""
    return int(np.clip(PARTIAL_SUM_BYTES // max(8 * n * b, 1), MIN_GROUPS, MAX_GROUPS))


def tiled_bytes(n: int, d: int, b: int, dtype: DTypeLike) -> int:
    """Memory that a product with b columns takes, the stored rows included."""
    item = np.dtype(dtype).itemsize
    groups = count_groups(n, b)
    return int(n * (4 * d + 6 + b) * item + 8 * n * b * (groups + 1) + groups * TILE_ROWS * TILE_COLUMNS * item)


class TiledGram(ComputedGram):
    """K = [κ(x_i, x_j)] as an exact, matrix-free operator.

    A pass runs over tiles on and above the diagonal. A tile T of rows I and columns J adds T V_J to the
    rows I of the product and Tᵀ V_I to the rows J. Strips of rows are dealt to a fixed number of groups,
    each with a partial sum of its own, in float64; threads take groups, and the partial sums are added in
    the groups' order. So the bits do not depend on the number of threads.
    """

    name = "tiled"

    @cached_property
    def _sides(self) -> Sides | None:
        """Both sides of all tiles; threads would make them several times, so ``matmat`` asks first."""
        return self.held.sides()

    def matmat(self, V: FloatArray) -> FloatArray:
        n, b = V.shape
        V = np.ascontiguousarray(V, dtype=self.dtype)
        strips = range(0, n, TILE_ROWS)
        n_groups = min(count_groups(n, b), len(strips))
        _ = self._sides
        tiles = sum((n - top - 1) // TILE_COLUMNS + 1 for top in strips)

        def multiply(group: int, pulse: Pulse) -> FloatArray:
            partial = np.zeros((n, b))
            buffer = np.empty(TILE_ROWS * TILE_COLUMNS, dtype=self.dtype)
            for top in strips[group::n_groups]:
                bottom = min(top + TILE_ROWS, n)
                for left in range(top, n, TILE_COLUMNS):
                    right = min(left + TILE_COLUMNS, n)
                    tile = self.tile(top, bottom, left, right, buffer)
                    partial[top:bottom] += tile @ V[left:right]
                    # The square on the diagonal holds both of its halves already.
                    beyond = max(left, bottom)
                    if beyond < right:
                        partial[beyond:right] += tile[:, beyond - left :].T @ V[top:bottom]
                    pulse()
            return partial

        return reduce(iadd, run_groups(multiply, n_groups, n_jobs=self.n_jobs, total=tiles, tick=self.tick))

    def __getstate__(self) -> dict[str, Any]:
        """Both sides are made of the rows again: what is pickled are the rows alone."""
        return {name: value for name, value in self.__dict__.items() if name != "_sides"} | {"tick": None}

    def tile(self, top: int, bottom: int, left: int, right: int, buffer: FloatArray) -> FloatArray:
        """κ of some rows and some others, in a buffer if it can be."""
        if self._sides is None:
            rows = self.held.rows
            return self.kernel.block(rows[top:bottom], rows[left:right]).astype(self.dtype, copy=False)
        rows, columns, finish = self._sides
        if sparse.issparse(rows):
            inner = (rows[top:bottom] @ columns[:, left:right]).toarray()
        else:
            inner = buffer[: (bottom - top) * (right - left)].reshape(bottom - top, right - left)
            np.matmul(rows[top:bottom], columns[:, left:right], out=inner)
        return finish(inner)
