"""Rows in memory, dense or sparse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.gram import GIVEN_WAY_OUT, given_bytes
from biclique.gram.dense import checked_matrix
from biclique.gram.sparse import checked_sparse
from biclique.io import CHUNK_ROWS
from biclique.rows.source import Block, RowSource, drawn
from biclique.runtime.memory import data_bytes, require
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


DIGEST_BYTES = 16

SHORT_BYTES, MANY_ROWS = 24, 100_000
"""Among more than so many rows those of at most so many bytes are their own digests: that is quicker."""


@dataclass(frozen=True)
class Vertices:
    """What a Gram operator is built on: distinct rows of positive weight, or a given matrix, and multiplicities."""

    data: Rows  # distinct rows (n_distinct, d), or the given matrix of the rows that count
    weights: FloatArray  # (n_distinct,)
    index: IntArray  # row i of the input is vertex index[i]; −1 where only rows of weight zero are like it
    digests: np.ndarray  # (n_distinct,), ascending; () where rows cannot be met again
    numbers: IntArray  # (n_distinct,), where each stands first in the input
    given: bool = False
    kept: np.ndarray | None = None  # for a given matrix: the columns of vertices, where not all are
    places: IntArray | None = None  # for a given matrix: the vertex of each digest

    @property
    def n(self) -> int:
        return int(self.data.shape[0])

    @classmethod
    def as_they_are(
        cls, data: Rows, weights: FloatArray, numbers: IntArray | None = None, *, given: bool = False
    ) -> Vertices:
        """Every row a vertex of its own, none of which will be met again."""
        everyone = np.arange(data.shape[0])
        return cls(data, weights, everyone, np.empty(0), everyone if numbers is None else numbers, given)

    def some(self, chosen: IntArray) -> Vertices:
        """Some of the rows."""
        return Vertices.as_they_are(self.data[chosen], self.weights[chosen], self.numbers[chosen])


def digests(X: Rows, short: bool = False) -> np.ndarray:
    """Some 16 bytes for every row, equal just where rows are equal, shape (n,).

    Short rows can be their own digests, with a byte more, by which these are told from others.
    """
    if sparse.issparse(X):
        X = X.tocsr(copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        bounds = X.indptr
        pieces = (X.indices[a:b].astype(np.int64).tobytes() + X.data[a:b].tobytes() for a, b in pairwise(bounds))
    else:
        # −0.0 + 0.0 is 0.0: equal numbers must have equal bytes.
        if short:
            whole = np.ascontiguousarray(X + 0.0).view(np.uint8)
            return np.pad(whole, ((0, 0), (0, 1))).view(f"V{whole.shape[1] + 1}")[:, 0]
        pieces = ((row + 0.0).tobytes() for row in np.ascontiguousarray(X))
    joined = b"".join(blake2b(piece, digest_size=DIGEST_BYTES).digest() for piece in pieces)
    return np.frombuffer(joined, dtype=f"V{DIGEST_BYTES}")


def distinct_rows(X: Rows, weights: FloatArray) -> Vertices:
    """The distinct rows of X with their total weights, in the order of their digests."""
    totals, index, found, numbers = _distinct(X, weights)
    return Vertices(X[numbers], totals, index, found, numbers)


def _distinct(X: Rows, weights: FloatArray) -> tuple[FloatArray, IntArray, np.ndarray, IntArray]:
    """Total weights, the index of every row, digests and numbers, in the order of the digests."""
    short = not sparse.issparse(X) and X.shape[0] > MANY_ROWS and X.shape[1] * X.itemsize <= SHORT_BYTES
    keys = digests(X, short)
    positive = weights > 0
    found, first, inverse = np.unique(keys[positive], return_index=True, return_inverse=True)
    # A row of weight 0 that equals one that counts is that one.
    index = inverse if positive.all() else _places(found, keys)
    totals = np.zeros(len(found))
    np.add.at(totals, inverse, weights[positive])
    return totals, index, found, np.flatnonzero(positive)[first]


def distinct_given(X: Rows, weights: FloatArray, memory_limit: int) -> Vertices:
    """The distinct rows of a symmetric matrix, in the order in which they come.

    Rows that are alike to all rows, and so to each other, are equal.
    """
    n = X.shape[0]
    require(given_bytes(X), memory_limit, f"work on the given {n} × {X.shape[1]} matrix", GIVEN_WAY_OUT)
    K = checked_sparse(X) if sparse.issparse(X) else checked_matrix(np.asarray(X, dtype=float), memory_limit)
    totals, index, found, numbers = _distinct(X, weights)
    order = np.argsort(numbers)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    kept = numbers[order]
    if len(kept) < n:
        what = f"a copy of the {len(kept)} distinct rows and columns of the given matrix"
        copied = 0 if K is X else data_bytes(K)
        require(copied + data_bytes(K) * (len(kept) / n) ** 2, memory_limit, what, "raise memory_limit.")
        K = K[kept][:, kept] if sparse.issparse(K) else K[np.ix_(kept, kept)]
    index = np.where(index < 0, -1, places[index])
    return Vertices(K, totals[order], index, found, kept, True, kept if len(kept) < n else None, places)


@dataclass(frozen=True)
class Pool:
    """Rows drawn at the start, from which everything is chosen that is not a sum over all rows."""

    rows: Rows
    weights: FloatArray
    distinct: IntArray  # where each of its distinct rows stands first, ascending
    distinct_weights: FloatArray  # their total weights

    @classmethod
    def of(cls, rows: Rows, weights: FloatArray) -> Pool:
        _, first, inverse = np.unique(digests(rows), return_index=True, return_inverse=True)
        order = np.argsort(first)
        return cls(rows, weights, first[order], np.bincount(inverse, weights)[order].astype(float))

    @property
    def n_distinct(self) -> int:
        return len(self.distinct)

    @property
    def vertices(self) -> Vertices:
        """Its distinct rows."""
        return Vertices.as_they_are(self.rows[self.distinct], self.distinct_weights)


def many_repeats(X: Rows) -> bool:
    """Whether most of a few thousand rows are equal to another."""
    rows = X[:: max(X.shape[0] // 4096, 1)]
    return bool(len(np.unique(digests(rows))) < 0.5 * rows.shape[0])


def find_rows(known: np.ndarray, X: Rows) -> IntArray:
    """Which known digest every row has, −1 where none."""
    if len(known) == 0 or X.shape[0] == 0:
        return np.full(X.shape[0], -1)
    keys = digests(X, short=known.dtype.itemsize != DIGEST_BYTES)
    return _places(known, keys) if keys.dtype == known.dtype else np.full(X.shape[0], -1)


def _places(known: np.ndarray, keys: np.ndarray) -> IntArray:
    """Where every key stands in an ascending array, −1 where it does not."""
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, place, -1)
