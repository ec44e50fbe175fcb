"""Rows that are read again and again in pieces and never held whole: what every source can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError
from biclique.io.roles import as_texts, numbered
from biclique.runtime.arguments import check_count
from biclique.runtime.draws import draw_numbers
from biclique.runtime.memory import parse_memory_limit, require

CHUNK_ROWS = 65_536
BLOCK_BYTES = 2**26  # of the rows read at once into a table in memory, unless one row has more

DType: TypeAlias = np.dtype[Any]
Raw: TypeAlias = NDArray[Any]


class ChunkSource(ABC):
    """A table of finite numbers that is passed over in chunks of rows.

    Every chunk of a pass has exactly as many rows as asked for, except the last: the same table is cut in the same
    places whatever holds it. An array that a pass yields may be read-only, and **is only valid until the next one**,
    since its memory may be used again.

    A subclass gives ``_pieces``, and ``_take`` where it can reach single rows cheaply.
    """

    name: str
    n_columns: int
    dtype: DType
    columns: list[str] | None = None
    advice: str = "leave such rows out or fill them in before, or drop the column"
    """What to do about values that are missing or infinite."""
    _error: type[DataError] = DataError
    _first = 0  # the number of the first row in messages
    _n_rows: int | None = None

    @property
    def n_rows(self) -> int | None:
        """The number of rows; None where only a whole pass can tell and none has been made."""
        return self._n_rows

    def require_labels(self, memory_limit: object) -> None:
        """Refuse, before the first pass, more rows than labels fit a memory limit."""
        what = f"{self.name}: a label for each of {self.n_rows} rows"
        limit = parse_memory_limit(memory_limit)
        require(8 * (self.n_rows or 0), limit, what, "raise memory_limit, or take fewer rows.")

    def chunks(self, rows: int = CHUNK_ROWS, *, check_finite: bool = True) -> Iterator[FloatArray]:
        """One fresh pass: C-contiguous arrays of ``rows`` rows (the last one of what is left).

        ``check_finite`` looks for NaN and infinity; a later pass over rows already checked can leave it out.
        """
        return self._pass(check_count("rows", rows), check_finite)

    def sample(self, size: int, random: np.random.RandomState) -> FloatArray:
        """``min(size, n_rows)`` rows drawn uniformly without replacement, in the order of the source.

        Only the rows that are drawn are looked at for NaN and infinity.
        """
        return self.draw(size, random)[0]

    def draw(self, size: int, random: np.random.RandomState) -> tuple[FloatArray, IntArray]:
        """What ``sample`` gives, and the numbers of those rows, ascending."""
        X, rows = self._sample(check_count("size", size), random)
        self._check_finite(X, rows)
        return X, rows

    def take(self, rows: IntArray) -> FloatArray:
        """The rows with these numbers, which ascend."""
        X = self._take(rows)
        self._check_finite(X, rows)
        return X

    def texts(self, name: str) -> Iterator[list[str]]:
        """One fresh pass over a column that has a role, as the texts that ``read_table`` gives: ids and classes."""
        place = (self.columns or numbered(self.n_columns)).index(name)
        for piece in self._pieces(self.block_rows):
            yield as_texts(piece[:, place].tolist())

    @property
    def block_rows(self) -> int:
        """How many rows to read at once into memory."""
        return max(1, min(CHUNK_ROWS, BLOCK_BYTES // (8 * self.n_columns)))

    @abstractmethod
    def _pieces(self, rows: int) -> Iterator[Raw]:
        """One fresh pass over arrays of numbers of any length and of any type that goes into ``dtype``."""

    def _pass(self, rows: int, check_finite: bool) -> Iterator[FloatArray]:
        start = 0
        for chunk in _recut(self._pieces(rows), min(rows, self._n_rows or rows), self.n_columns, self.dtype):
            stop = start + len(chunk)
            if self._n_rows is not None and stop > self._n_rows:
                raise self._changed(f"at least {stop}")
            if check_finite:
                self._check_finite(chunk, range(start, stop))
            yield chunk
            start = stop
        if start == 0 and not self._n_rows:
            raise self._error(f"{self.name}: the source has no rows.")
        if self._n_rows not in (None, start):
            raise self._changed(str(start))
        self._n_rows = start

    def _changed(self, rows: str) -> DataError:
        return self._error(
            f"{self.name}: {rows} rows came in this pass, {self._n_rows} before; every pass must give the same rows: "
            "leave the source as it is until the work is done."
        )

    def _sample(self, size: int, random: np.random.RandomState) -> tuple[FloatArray, IntArray]:
        """Rows and their numbers, not checked for NaN."""
        if self._n_rows is None:
            return self._sample_unseen(size, random)
        rows = draw_numbers(self._n_rows, size, random)
        return self._take(rows), rows

    def _take(self, rows: IntArray) -> FloatArray:
        """The rows with these sorted numbers: by one pass, where a source does not know better."""
        X = np.empty((len(rows), self.n_columns), dtype=self.dtype)
        start = done = 0
        for chunk in self._pass(CHUNK_ROWS, False):
            stop = int(np.searchsorted(rows, start + len(chunk)))
            X[done:stop] = chunk[rows[done:stop] - start]
            start, done = start + len(chunk), stop
        return X

    def _sample_unseen(self, size: int, random: np.random.RandomState) -> tuple[FloatArray, IntArray]:
        """One pass in which every row draws a number and the ``size`` smallest stay; the rows are counted too."""
        keys, rows = np.empty(0), np.empty(0, dtype=np.intp)
        kept = np.empty((0, self.n_columns), dtype=self.dtype)
        start = 0
        for chunk in self._pass(CHUNK_ROWS, False):
            drawn = random.random_sample(len(chunk))
            new = np.flatnonzero(drawn < keys.max()) if len(keys) == size else np.arange(len(chunk))
            room = min(len(new), size - len(keys))
            keys, rows = np.append(keys, drawn[new[:room]]), np.append(rows, start + new[:room])
            kept = np.concatenate([kept, chunk[new[:room]]]) if room else kept
            new = new[room:]
            every = np.concatenate([keys, drawn[new]])
            stays = np.zeros(len(every), dtype=bool)
            stays[np.argpartition(every, len(keys) - 1)[: len(keys)]] = True
            out, new = np.flatnonzero(~stays[: len(keys)]), new[stays[len(keys) :]]
            keys[out], rows[out], kept[out] = drawn[new], start + new, chunk[new]
            start += len(chunk)
        order = np.argsort(rows)
        return kept[order], rows[order]

    def _check_finite(self, X: FloatArray, rows: IntArray | range) -> None:
        """Refuse NaN and infinity; ``rows`` are the numbers of these rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            total = X.sum()  # finite only if every value is; it can overflow, so that it only ever acquits
        if np.isfinite(total) or np.isfinite(X).all():
            return
        row, column = np.argwhere(~np.isfinite(X))[0]
        what = "missing value (NaN)" if np.isnan(X[row, column]) else "infinite value"
        where = repr(self.columns[column]) if self.columns is not None else f"{column} (counting from 0)"
        raise self._error(
            f"{self.name}: {what} in row {rows[row] + self._first} (counting from {self._first}), column {where}; "
            f"every value must be a finite number: {self.advice}."
        )


def _recut(pieces: Iterable[Raw], rows: int, width: int, dtype: DType) -> Iterator[FloatArray]:
    """The same rows, ``rows`` at a time; copied only where a chunk does not lie within one piece."""
    buffer = np.empty((0, width), dtype=dtype)
    filled = 0
    for piece in pieces:
        at = 0
        while at < len(piece):
            if filled == 0 and len(piece) - at >= rows:
                with np.errstate(invalid="ignore", over="ignore"):  # NaN of damaged bits, numbers beyond float64
                    chunk = np.ascontiguousarray(piece[at : at + rows], dtype=dtype)
                yield chunk
                at += rows
                continue
            if len(buffer) == 0:
                buffer = np.empty((rows, width), dtype=dtype)
            taken = min(rows - filled, len(piece) - at)
            with np.errstate(invalid="ignore", over="ignore"):
                buffer[filled : filled + taken] = piece[at : at + taken]
            filled, at = filled + taken, at + taken
            if filled == rows:
                yield buffer
                filled = 0
    if filled:
        yield buffer[:filled]


def working_dtype(dtype: DType) -> DType | None:
    """float32 for what it holds exactly, float64 for other real numbers, None for what is no real number."""
    if dtype.kind not in "fiub":
        return None
    exact = dtype.itemsize <= 4 if dtype.kind == "f" else dtype.itemsize <= 2
    return np.dtype(np.float32 if exact else np.float64)


def real_table(
    error: type[DataError], name: str, shape: Sequence[int], dtype: DType, advice: str = ""
) -> tuple[int, DType]:
    """The width and the working dtype of a two-dimensional array of real numbers; anything else is refused."""
    if len(shape) != 2:
        hint = advice or "one column is x.reshape(-1, 1)"
        raise error(f"{name}: needs two dimensions (rows, columns), got {len(shape)} (shape {tuple(shape)}); {hint}.")
    working = working_dtype(dtype)
    if working is None:
        raise error(
            f"{name}: holds {dtype}, not real numbers; leave out columns of text, and turn the others into numbers "
            "with astype(float)."
        )
    if shape[1] == 0:
        raise error(f"{name}: no feature columns are left; it needs at least one.")
    return int(shape[1]), working
