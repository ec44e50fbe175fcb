"""Rows that Python holds: an array, a frame, or chunks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError
from biclique.io.chunks import ChunkSource, DType, Raw, real_table


def as_rows(name: str, rows: Any) -> Raw:
    """An array, a frame, a nested list: as a read-only array of whatever it holds."""
    if hasattr(rows, "tocsr"):
        raise DataError(f"{name}: is a sparse matrix; pass dense rows, such as its .toarray().")
    if isinstance(rows, np.ma.MaskedArray) and np.ma.is_masked(rows):
        raise DataError(f"{name}: has masked values; fill them in with .filled(value), or leave those rows out.")
    try:
        array = np.asarray(rows).view()
    except (ValueError, TypeError) as error:
        raise DataError(f"{name}: {type(rows).__name__} is not a table of numbers ({error}).") from error
    array.flags.writeable = False
    return array


def column_names(rows: Any) -> list[str] | None:
    """The names of a frame's columns; None for anything else."""
    names = getattr(rows, "columns", None)
    if names is None or isinstance(rows, np.ndarray) or callable(names):
        return None
    arrow = getattr(rows, "column_names", None)
    return [str(name) for name in (arrow if isinstance(arrow, list) else names)]


def _is_empty(rows: Any) -> bool:
    shape = getattr(rows, "shape", None)
    if shape is not None:
        return len(shape) > 0 and shape[0] == 0
    return hasattr(rows, "__len__") and len(rows) == 0


class ArrayChunks(ChunkSource):
    """Rows of an array in memory, a mapped file (np.memmap) or a data frame; chunks are views where they can be."""

    def __init__(self, X: Any, name: str = "array") -> None:
        self.name = name
        self._X = as_rows(name, X)
        self.n_columns, self.dtype = real_table(DataError, name, self._X.shape, self._X.dtype)
        self.columns = column_names(X)
        self._n_rows = len(self._X)
        if not self._n_rows:
            raise DataError(f"{name}: the source has no rows.")

    def _pieces(self, rows: int) -> Iterator[Raw]:  # noqa: ARG002
        yield self._X

    def _take(self, rows: IntArray) -> FloatArray:
        return np.ascontiguousarray(self._X[rows], dtype=self.dtype)


class IterableChunks(ChunkSource):
    """Chunks that Python gives: a list of two-dimensional arrays or frames, or what makes a fresh iterator of them.

    A sample is always drawn in one pass, whether or not the number of rows is known by then: the same seed draws the
    same rows the first time and later.
    """

    def __init__(self, source: Iterable[Any] | Callable[[], Iterable[Any]], name: str = "chunks") -> None:
        self.name = name
        self._source = source
        self._last: object = None
        number, first = next(self._tables(), (0, None))
        if first is None:
            raise DataError(f"{name}: the source has no rows.")
        self.columns = column_names(first)
        rows = as_rows(f"{name}: chunk {number}", first)
        self.n_columns, self.dtype = self._kind(number, rows)

    def _fresh(self) -> Iterator[Any]:
        made = self._source if isinstance(self._source, Iterable) else self._source()
        if not isinstance(made, Iterable):
            raise DataError(
                f"{self.name}: the function returned {type(made).__name__}; it must return an iterator of chunks."
            )
        iterator = iter(made)
        if iterator is self._source or (iterator is made and iterator is self._last):
            raise DataError(
                f"{self.name}: {type(made).__name__} can be read only once, and several passes are needed; pass a "
                "function that returns a fresh generator, or a list."
            )
        self._last = iterator
        return iterator

    def _tables(self) -> Iterator[tuple[int, Any]]:
        """Chunks that are not empty, with their numbers."""
        iterator = self._fresh()
        try:
            for number, chunk in enumerate(iterator):
                if not _is_empty(chunk):
                    yield number, chunk
        finally:
            if hasattr(iterator, "close"):  # a generator left in the middle may hold a file open
                iterator.close()

    def _pieces(self, rows: int) -> Iterator[Raw]:  # noqa: ARG002
        start = 0
        for number, chunk in self._tables():
            X = as_rows(f"{self.name}: chunk {number}", chunk)
            self._check_like_first(number, start, X, column_names(chunk))
            yield X
            start += len(X)

    def _kind(self, number: int, X: Raw) -> tuple[int, DType]:
        advice = "chunks are tables, and a whole table is passed as one array: np.asarray(x)"
        return real_table(DataError, f"{self.name}: chunk {number}", X.shape, X.dtype, advice)

    def _check_like_first(self, number: int, start: int, X: Raw, columns: list[str] | None) -> None:
        width, dtype = self._kind(number, X)
        where = f"{self.name}: chunk {number} (from row {start}, counting from 0)"
        if width != self.n_columns:
            raise DataError(
                f"{where} has {width} columns, the first has {self.n_columns}; every chunk needs the same columns."
            )
        if dtype != self.dtype:
            raise DataError(
                f"{where} holds {X.dtype} (read as {dtype}), the first is read as {self.dtype}; give every chunk one "
                f"type, such as chunk.astype(np.{self.dtype})."
            )
        if columns is not None and self.columns is not None and columns != self.columns:
            at = next(j for j in range(width) if columns[j] != self.columns[j])
            raise DataError(
                f"{where} has column {columns[at]!r} where the first has {self.columns[at]!r}; put the columns in one "
                "order."
            )

    def _sample(self, size: int, random: np.random.RandomState) -> tuple[FloatArray, IntArray]:
        return self._sample_unseen(size, random)
