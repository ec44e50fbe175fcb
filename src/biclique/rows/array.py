"""Where rows come from: the contract (draw, sum, map), rows in memory and on a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import blake2b
from itertools import pairwise
from operator import iadd
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from biclique._typing import Array, Device, FloatArray, IntArray, Rows
from biclique.device.torch_tiles import place_rows
from biclique.gram.dense import GIVEN_WAY_OUT, checked_matrix
from biclique.gram.sparse import checked_sparse, given_bytes
from biclique.gram.spread import Spread
from biclique.kernels.gower import Columns
from biclique.progress import Progress
from biclique.runtime.draws import draw_numbers
from biclique.runtime.memory import data_bytes, require_memory
from biclique.runtime.namespace import PIECE_ROWS, moved, rows_on_host

Found = TypeVar("Found")
Sum = TypeVar("Sum")

Check = Callable[[Rows, Sequence[int] | np.ndarray], None]
"""Refuses rows, given with their numbers."""


@dataclass(frozen=True)
class Block:
    """Consecutive rows with their multiplicities, on the host or on their device."""

    rows: Rows
    weights: FloatArray
    start: int = 0
    """The number of the first one."""


class RowSource(ABC):
    """Rows with their multiplicities, passed over as often as is asked: in memory, on a device, or Dask's.

    What they yield is cut by sizes alone, so that sums have the same bits however many threads there are.
    """

    in_memory: bool = True
    """If not, passes give sums alone, and what every row gets is a lazy collection."""
    note: str = ""
    """What was done to open it, for ``verbose``."""
    spread: Spread | None = None
    """Who runs the passes of an exact K, if not this process."""
    device: Device | None = None
    """The device on which blocks are tensors; passes run there."""
    n_columns: int
    weights: FloatArray
    """Of rows in memory: those of Dask's are never all here."""
    names: Sequence[str] | None = None
    """Of the columns."""
    columns: Columns | None = None
    """What is known of the columns, once a kernel that needs it has asked."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """All of them."""

    @property
    @abstractmethod
    def n_counted(self) -> int:
        """Rows of positive weight."""

    @property
    def held(self) -> Rows:
        """The rows themselves, if they are in memory."""
        raise TypeError("these are rows of Dask, and rows in memory are needed")

    def placed(self) -> Rows:
        """The rows on the device that computes; a copy, if they were elsewhere."""
        return self.held

    @abstractmethod
    def draw(self, size: int, random: np.random.RandomState) -> tuple[Rows, FloatArray]:
        """At most ``size`` rows that count, drawn evenly, with their multiplicities; on the host."""

    @abstractmethod
    def sum(self, function: Callable[[Block], Sum], what: str, progress: Progress) -> Sum:
        """Σ of a function of every block, in the order of the rows; its results are added in place."""

    @abstractmethod
    def map(self, function: Callable[[Block], Found], what: str, progress: Progress) -> list[Found]:
        """A function of every block, in the order of the rows."""

    def keep(
        self, function: Callable[[Rows], Array], columns: int, dtype: DTypeLike, what: str, progress: Progress
    ) -> RowSource:
        """What every row gets, computed once, as rows of some ``columns``, with the multiplicities of these."""
        raise NotImplementedError("these rows give their results at once")

    def later(
        self, function: Callable[[Rows], Array], columns: int | None, dtype: DTypeLike, *, checked: bool = False
    ) -> Array:
        """What every row gets, as a lazy collection: (n,), or (n, columns). ``checked``: values were looked at."""
        raise NotImplementedError("these rows give their results at once")

    def label(self, function: Callable[[Rows], Array], n_clusters: int, progress: Progress) -> tuple[Array, IntArray]:
        """Labels as a lazy collection, numbered without clusters that have no rows; and the rows of every cluster."""
        raise NotImplementedError("these rows give their results at once")


def drawn(weights: FloatArray, size: int, random: np.random.RandomState) -> IntArray:
    """Numbers of at most ``size`` rows of positive weight, drawn evenly, ascending."""
    counted = np.flatnonzero(weights > 0)
    return counted[draw_numbers(len(counted), size, random)]


# Rows in memory


@dataclass(eq=False, repr=False)
class ArrayRows(RowSource):
    """Rows in memory, or in a memory map, of which a block is read at a time.

    For a device, an array is copied there once, before the first pass; a tensor that lies there stays. Only what is
    drawn comes to the host.
    """

    X: Rows
    weights: FloatArray
    names: Sequence[str] | None = None
    device: Device | None = None
    block_rows: int = PIECE_ROWS

    def __post_init__(self) -> None:
        self.n_columns = int(self.X.shape[1])

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_counted(self) -> int:
        return int((self.weights > 0).sum())

    @property
    def held(self) -> Rows:
        return self.X

    def placed(self) -> Rows:
        return self.X if self.device is None else place_rows(self.X, self.device)

    def draw(self, size: int, random: np.random.RandomState) -> tuple[Rows, FloatArray]:
        chosen = drawn(self.weights, size, random)
        return rows_on_host(self.X, chosen), self.weights[chosen]

    def sum(self, function: Callable[[Block], Sum], what: str, progress: Progress) -> Sum:
        total: Sum = reduce(iadd, self._each(function, what, progress))
        return total

    def map(self, function: Callable[[Block], Found], what: str, progress: Progress) -> list[Found]:
        return list(self._each(function, what, progress))

    def _each(self, function: Callable[[Block], Found], what: str, progress: Progress) -> Iterator[Found]:
        step = f"pass over the rows for the {what}"
        progress.share(step, 0.0)
        for block in self._blocks():
            yield function(block)
            progress.share(step, (block.start + block.rows.shape[0]) / self.n_rows)

    def _blocks(self) -> Iterator[Block]:
        if self.device is not None:
            self.X = self.placed()  # for all passes to come
            yield Block(self.X, moved(self.weights, self.X))
            return
        for top in range(0, self.n_rows, self.block_rows):
            place = slice(top, top + self.block_rows)
            yield Block(self.X[place], self.weights[place], top)


DIGEST_BYTES = 16

ROWS_AT_ONCE = 4096
"""Rows whose bytes are made at once for their digests."""


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
    def of_rows(cls, data: Rows, weights: FloatArray, *, given: bool = False) -> Vertices:
        """Every row a vertex of its own, none of which will be met again."""
        everyone = np.arange(data.shape[0])
        return cls(data, weights, everyone, np.empty(0), everyone, given)

    def some(self, chosen: IntArray) -> Vertices:
        """Some of the rows, in any order."""
        found = Vertices.of_rows(self.data[chosen], self.weights[chosen])
        return replace(found, numbers=self.numbers[chosen])


def digests(X: Rows) -> np.ndarray:
    """16 bytes for every row; they are equal only if rows are equal. Shape (n,)."""
    pieces = _bytes_of_sparse_rows(X) if sparse.issparse(X) else _bytes_of_rows(X)
    joined = b"".join(blake2b(piece, digest_size=DIGEST_BYTES).digest() for piece in pieces)
    return np.frombuffer(joined, dtype=f"V{DIGEST_BYTES}")


def _bytes_of_rows(X: Array) -> Iterator[bytes]:
    for top in range(0, X.shape[0], ROWS_AT_ONCE):
        yield from row_bytes(X[top : top + ROWS_AT_ONCE]).tolist()


def row_bytes(X: Array) -> np.ndarray:
    """The bytes of every row as one item, (n,): equal only if rows are equal."""
    # −0.0 + 0.0 is 0.0: equal numbers must have equal bytes.
    rows = np.ascontiguousarray(X + 0.0)
    return rows.view(f"V{rows.shape[1] * rows.itemsize}")[:, 0]


def _bytes_of_sparse_rows(X: Any) -> Iterator[bytes]:
    X = X.tocsr(copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    for start, stop in pairwise(X.indptr):
        yield X.indices[start:stop].astype(np.int64).tobytes() + X.data[start:stop].tobytes()


def with_zeros(X: Rows) -> Rows:
    """A graph of distances whose entries of 0, such as that of a row itself, are told from entries that are not there.

    They are −1, which is no distance.
    """
    X = sparse.csr_array(X, copy=True)
    X.data[X.data == 0] = -1.0
    return X


def distinct_rows(X: Rows, weights: FloatArray, *, met_again: bool = True) -> Vertices:
    """The distinct rows of X with their total weights, in the order of their digests.

    If they will not be met again, they need no digests, and are in the order of their bytes.
    """
    keys = digests(X) if met_again or sparse.issparse(X) else row_bytes(np.asarray(X))
    totals, index, found, numbers = _distinct(weights, keys)
    return Vertices(X[numbers], totals, index, found if met_again else np.empty(0), numbers)


def _distinct(weights: FloatArray, keys: np.ndarray) -> tuple[FloatArray, IntArray, np.ndarray, IntArray]:
    """Total weights, the index of every row, keys and numbers, in the order of the keys that tell rows apart."""
    positive = weights > 0
    found, first, inverse = np.unique(keys[positive], return_index=True, return_inverse=True)
    # A row of weight 0 that equals one that counts is that one.
    index = inverse if positive.all() else _places(found, keys)
    totals = np.zeros(len(found))
    np.add.at(totals, inverse, weights[positive])
    return totals, index, found, np.flatnonzero(positive)[first]


def distinct_given(X: Rows, weights: FloatArray) -> Vertices:
    """The distinct rows of a symmetric matrix, in the order in which they come.

    Rows that are alike to all rows, and so to each other, are equal.
    """
    n = X.shape[0]
    require_memory(given_bytes(X), f"work on the given {n} × {X.shape[1]} matrix", GIVEN_WAY_OUT)
    K = checked_sparse(X) if sparse.issparse(X) else checked_matrix(np.asarray(X, dtype=float))
    totals, index, found, numbers = _distinct(weights, digests(X))
    order = np.argsort(numbers)
    places, kept = np.argsort(order), numbers[order]
    if len(kept) < n:
        what = f"a copy of the {len(kept)} distinct rows and columns of the given matrix"
        copied = 0 if K is X else data_bytes(K)
        require_memory(copied + data_bytes(K) * (len(kept) / n) ** 2, what, GIVEN_WAY_OUT)
        K = K[kept][:, kept] if sparse.issparse(K) else K[np.ix_(kept, kept)]
    index = np.where(index < 0, -1, places[index])
    return Vertices(K, totals[order], index, found, kept, True, kept if len(kept) < n else None, places)


def distinct_drawn(rows: Rows, weights: FloatArray) -> Vertices:
    """The distinct ones of drawn rows, in the order in which they come: what is chosen once is chosen from these."""
    found = distinct_rows(rows, weights, met_again=False)
    return found.some(np.argsort(found.numbers))


def find_rows(known: np.ndarray, X: Rows) -> IntArray:
    """Which known digest every row has, −1 for none."""
    if len(known) == 0 or X.shape[0] == 0:
        return np.full(X.shape[0], -1)
    return _places(known, digests(X))


def known_or_new(table: np.ndarray, place: IntArray, X: Rows, of_new: Callable[[Rows], np.ndarray]) -> np.ndarray:
    """What the table holds for vertices ``place``, and ``of_new`` of the rows of X where that is −1."""
    new = np.flatnonzero(place < 0)
    if len(new) == len(place):
        return of_new(X)
    out = table[place]
    if len(new):
        out[new] = of_new(X[new])
    return out


def _places(known: np.ndarray, keys: np.ndarray) -> IntArray:
    """The place of every key in an ascending array, −1 if it is not in it."""
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, place, -1)
