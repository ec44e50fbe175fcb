"""Another source, changed: scaled rows, some of the columns, rows without missing values; and moments of columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, ParameterError
from biclique.io.chunks import ChunkSource, Raw
from biclique.io.roles import DROP, Roles, feature_columns, numbered
from biclique.io.safe_files import TEXT_BYTES
from biclique.runtime.memory import require


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
                f"{name} must hold {self.n_columns} finite numbers of {self.dtype}, one a column; got shape {row.shape}"
                f"{'' if np.isfinite(row).all() else ' with NaN or infinity'}."
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
        names = source.columns or [str(j) for j in range(source.n_columns)]
        self.columns = [names[j] for j in places]

    def _mapped(self, X: FloatArray, out: FloatArray) -> None:
        np.take(X, self._places, axis=1, out=out, mode="clip")


def select_features(source: ChunkSource, roles: Roles, limit: int) -> ChunkSource:
    """The columns that have no role."""
    if roles.label is None and roles.id is None and not roles.drop:
        return source
    way_out = "raise memory_limit, or keep its columns in several files."
    require(TEXT_BYTES * source.n_columns, limit, f"{source.name}: naming {source.n_columns} columns", way_out)
    features = feature_columns(source.name, source.columns or numbered(source.n_columns), roles)
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


def column_moments(
    source: ChunkSource, tick: Callable[[float], None] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Mean and standard deviation (over n, not n − 1) of every column, and n, in one pass.

    Sums are in float64, of differences to the first row, and the moments of chunks are merged: a column far from 0
    keeps its digits, and a constant one has deviation 0 exactly. ``tick`` is told the share of the rows that is done.
    """
    n = 0
    mean, squares, largest = np.zeros(source.n_columns), np.zeros(source.n_columns), np.zeros(source.n_columns)
    origin = np.zeros(source.n_columns)
    with np.errstate(over="ignore", invalid="ignore"):
        for chunk in source.chunks():
            if n == 0:
                origin = chunk[0].astype(np.float64)
            Y = chunk - origin
            np.maximum(largest, np.abs(Y).max(axis=0), out=largest)
            m = len(Y)
            chunk_mean = Y.sum(axis=0) / m
            Y -= chunk_mean
            shift = chunk_mean - mean
            squares += np.einsum("ij,ij->j", Y, Y) + shift**2 * (n * m / (n + m))
            mean += shift * (m / (n + m))
            n += m
            if tick is not None and source.n_rows:
                tick(n / source.n_rows)
    bad = np.flatnonzero(~np.isfinite(squares))
    if len(bad):
        raise DataError(
            f"{source.name}: the values of column {bad[0]} (counting from 0) are too large for their variance in "
            "float64; divide them by a constant first."
        )
    bad = np.flatnonzero((squares == 0) & (largest > 0))
    if len(bad):
        raise DataError(
            f"{source.name}: the values of column {bad[0]} (counting from 0) differ by {largest[bad[0]]:.3g} at most, "
            "and such squares vanish; multiply them by a constant first."
        )
    return mean + origin, np.sqrt(squares / n), n
