"""Chunk sources that are no files: another one that is changed, and rows that Python holds; and moments of columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, ParameterError
from biclique.io.chunks import TEXT_BYTES, ChunkSource, DType, Raw, real_table
from biclique.io.roles import DROP, Roles, feature_columns
from biclique.runtime import require

# Another source, changed: scaled rows, some of the columns, rows without missing values; and moments of columns


class _InnerChunks(ChunkSource):
    """A source that reads another."""

    def __init__(self, source: ChunkSource) -> None:
        self._inner = source
        self.name, self.n_columns, self.dtype = source.name, source.n_columns, source.dtype
        self.columns, self._error, self._first = source.columns, source._error, source._first
        self.advice = source.advice


class _MappedChunks(_InnerChunks):
    """Another source, with something done to every chunk."""

    @property
    def n_rows(self) -> int | None:
        return self._inner.n_rows

    def texts(self, name: str) -> Iterator[list[str]]:
        return self._inner.texts(name)

    @abstractmethod
    def _mapped(self, X: FloatArray, out: FloatArray) -> None:
        """Write into ``out`` what becomes of these rows."""

    def _pieces(self, rows: int) -> Iterator[Raw]:
        yield from self._inner.chunks(rows, check_finite=False)

    def _pass(self, rows: int, check_finite: bool) -> Iterator[FloatArray]:
        start = 0
        buffer = np.empty((0, self.n_columns), dtype=self.dtype)
        for chunk in self._pieces(rows):
            if len(chunk) > len(buffer):
                buffer = np.empty((len(chunk), self.n_columns), dtype=self.dtype)
            out = buffer[: len(chunk)]
            self._mapped(chunk, out)
            if check_finite:
                self._check_finite(out, range(start, start + len(out)))
            start += len(out)
            yield out

    def _sample(self, size: int, random: np.random.RandomState) -> tuple[FloatArray, IntArray]:
        X, rows = self._inner._sample(size, random)
        out = np.empty((len(X), self.n_columns), dtype=self.dtype)
        self._mapped(X, out)
        return out, rows


class ScaledChunks(_MappedChunks):
    """(x − offset) · factor, column by column, in the dtype of the source."""

    def __init__(self, source: ChunkSource, offset: ArrayLike, factor: ArrayLike) -> None:
        super().__init__(source)
        self.offset = self._row("offset", offset)
        self.factor = self._row("factor", factor)

    def _row(self, name: str, values: ArrayLike) -> FloatArray:
        with np.errstate(over="ignore"):
            row = np.array(values, dtype=self.dtype)
        if row.shape != (self.n_columns,) or not np.isfinite(row).all():
            raise ParameterError(
                f"{name} must hold {self.n_columns} finite numbers of {self.dtype}, one for each column; got shape "
                f"{row.shape}{'' if np.isfinite(row).all() else ' with NaN or infinity'}."
            )
        return row

    def _mapped(self, X: FloatArray, out: FloatArray) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            np.subtract(X, self.offset, out=out)
            np.multiply(out, self.factor, out=out)


class ColumnChunks(_MappedChunks):
    """Some of the columns of another source, by their places."""

    def __init__(self, source: ChunkSource, places: Sequence[int]) -> None:
        super().__init__(source)
        self._places = np.asarray(places, dtype=np.intp)
        self.n_columns = len(self._places)
        names = source.names
        self.columns = [names[j] for j in places]

    def _mapped(self, X: FloatArray, out: FloatArray) -> None:
        np.take(X, self._places, axis=1, out=out, mode="clip")


def select_features(source: ChunkSource, roles: Roles, limit: int) -> ChunkSource:
    """The columns that have no role."""
    if roles.label is None and roles.id is None and not roles.drop:
        return source
    way_out = "raise memory_limit, or keep its columns in several files."
    require(TEXT_BYTES * source.n_columns, limit, f"{source.name}: naming {source.n_columns} columns", way_out)
    features = feature_columns(source.name, source.names, roles)
    if not features:
        raise source._error(f"{source.name}: no feature columns are left; drop fewer columns.")
    return ColumnChunks(source, features)


class FiniteChunks(_InnerChunks):
    """The rows of another source without missing and infinite values; only a whole pass can tell how many."""

    kept: NDArray[np.bool_] | None = None
    """Which rows of the other source these are, once a whole pass was made."""

    def _pieces(self, rows: int) -> Iterator[Raw]:
        masks = []
        for chunk in self._inner.chunks(rows, check_finite=False):
            masks.append(np.isfinite(chunk).all(axis=1))
            yield chunk if masks[-1].all() else chunk[masks[-1]]
        self.kept = np.concatenate(masks)
        if not self.kept.any():
            raise self._error(f"{self.name}: every row has a missing value; leave out columns with ", DROP, ".")


@dataclass
class Moments:
    """Number of values, mean and squared deviations of columns, added as Chan, Golub and LeVeque do."""

    n: FloatArray
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def none(cls, width: int) -> Moments:
        """Those of no rows."""
        return cls(np.zeros(width), np.zeros(width), np.zeros(width))

    @classmethod
    def of(cls, rows: FloatArray) -> Moments:
        """Those of some rows, which are overwritten."""
        mean = rows.mean(axis=0)
        rows -= mean
        return cls(np.full(len(mean), float(len(rows))), mean, np.einsum("ij,ij->j", rows, rows))

    @classmethod
    def of_values(cls, rows: FloatArray) -> Moments:
        """Those of some rows with gaps: NaN counts as no value."""
        present = ~np.isnan(rows)
        n = present.sum(axis=0).astype(float)
        mean = np.where(present, rows, 0).sum(axis=0) / np.maximum(n, 1)
        return cls(n, mean, (np.where(present, rows - mean, 0) ** 2).sum(axis=0))

    def __iadd__(self, other: Moments) -> Moments:
        n, gap = np.maximum(self.n + other.n, 1), np.where(other.n > 0, other.mean - self.mean, 0)
        self.squares += other.squares + gap**2 * (self.n * other.n / n)
        self.mean += gap * (other.n / n)
        self.n = self.n + other.n
        return self


def varies(mean: FloatArray, variance: FloatArray, n: int) -> NDArray[np.bool_]:
    """Columns of n rows whose variance is more than rounding, by the rule of scikit-learn's StandardScaler."""
    unit = np.finfo(np.float64).eps
    return np.asarray(variance > n * unit * variance + (n * mean * unit) ** 2)


def column_moments(
    source: ChunkSource, tick: Callable[[float], None] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Mean and standard deviation (over n, not n − 1) of every column, and n, in one pass.

    Sums are in float64, of differences to the first row, and the moments of chunks are merged: a column far from 0
    keeps its digits, and a constant one has deviation 0 exactly. ``tick`` is told the share of the rows that is done.
    """
    origin, largest = np.zeros(source.n_columns), np.zeros(source.n_columns)
    found, n = Moments.none(source.n_columns), 0
    with np.errstate(over="ignore", invalid="ignore"):
        for chunk in source.chunks():
            if n == 0:
                origin = chunk[0].astype(np.float64)
            Y = chunk - origin
            np.maximum(largest, np.abs(Y).max(axis=0), out=largest)
            found += Moments.of(Y)
            n += len(Y)
            if tick is not None and source.n_rows:
                tick(n / source.n_rows)
    bad = np.flatnonzero(~np.isfinite(found.squares))
    if len(bad):
        raise DataError(
            f"{source.name}: the values of column {bad[0]} (counting from 0) are too large for their variance in "
            "float64; divide them by a constant first."
        )
    bad = np.flatnonzero((found.squares == 0) & (largest > 0))
    if len(bad):
        raise DataError(
            f"{source.name}: the values of column {bad[0]} (counting from 0) differ by {largest[bad[0]]:.3g} at most, "
            "and such squares vanish; multiply them by a constant first."
        )
    return found.mean + origin, np.sqrt(found.squares / n), n


# Rows that Python holds: an array, a frame, or chunks of them


def as_rows(name: str, rows: Any) -> Raw:
    """An array, a frame or a nested list as a read-only array of the same values."""
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
    """Rows of an array in memory, a mapped file (np.memmap) or a data frame; chunks are views if possible."""

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
        self.name, self._source = name, source
        self._last: object = None
        number, first = next(self._tables(), (0, None))
        if first is None:
            raise DataError(f"{name}: the source has no rows.")
        self.columns = column_names(first)
        self.n_columns, self.dtype = self._kind(number, as_rows(f"{name}: chunk {number}", first))

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
