"""Chunk sources: rows that are read in pieces, several times, and are never all in memory."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import Argument, DataError, MemoryLimitError, ParameterError, TableError, printable
from biclique.io.roles import DROP, Roles, Table, as_texts, checked, feature_columns, numbered
from biclique.io.typed_columns import TextForm
from biclique.runtime import Tick, all_finite, check_count, draw_numbers, parse_memory_limit, require

CHUNK_ROWS = 65_536
BLOCK_BYTES = 2**26  # of the rows read at once into a table in memory, unless one row has more

DType: TypeAlias = np.dtype[Any]
Raw: TypeAlias = NDArray[Any]


class ChunkSource(ABC):
    """A table of finite numbers that is passed over in chunks of rows.

    Every chunk of a pass has exactly as many rows as asked for, except the last: the same table is cut in the same
    places in every format. An array that a pass yields may be read-only, and **is only valid until the next one**,
    since its memory may be used again.

    A subclass gives ``_pieces``, and ``_take`` if it can reach single rows cheaply.
    """

    name: str
    n_columns: int
    dtype: DType
    columns: list[str] | None = None
    advice: str = "leave such rows out or fill them in before, or drop the column"
    """What to do about values that are missing or infinite."""
    notes: tuple[str, ...] = ()
    """What may have been meant otherwise."""
    _error: type[DataError] = DataError
    _first = 0  # the number of the first row in messages
    _n_rows: int | None = None

    @property
    def n_rows(self) -> int | None:
        """The number of rows; None if only a whole pass can tell and none has been made."""
        return self._n_rows

    @property
    def held_bytes(self) -> int:
        """What the rows would take in memory as float64; an estimate if only a whole pass can tell."""
        return 8 * (self.n_rows or 0) * self.n_columns

    def require_labels(self, memory_limit: object) -> None:
        """Refuse, before the first pass, more rows than labels fit a memory limit."""
        what = f"{self.name}: a label for each of {self.n_rows} rows"
        limit = parse_memory_limit(memory_limit)
        require(8 * (self.n_rows or 0), limit, what, "raise ", MEMORY_LIMIT, ", or take fewer rows.")

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
        """The rows with these sorted numbers: by one pass, unless a source has a faster way."""
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
        if all_finite(X):
            return
        row, column = np.argwhere(~np.isfinite(X))[0]
        what = "missing value (NaN)" if np.isnan(X[row, column]) else "infinite value"
        where = repr(self.columns[column]) if self.columns is not None else f"{column} (counting from 0)"
        raise self._error(
            f"{self.name}: {what} in row {rows[row] + self._first} (counting from {self._first}), column {where}; "
            f"every value must be a finite number: {self.advice}."
        )


def _recut(pieces: Iterable[Raw], rows: int, width: int, dtype: DType) -> Iterator[FloatArray]:
    """The same rows, ``rows`` at a time; copied only if a chunk does not lie within one piece."""
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
    """float32 if it has all values exactly, float64 for other real numbers, None for what is not a real number."""
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


# What readers of files share: errors in one printable line, memory limits, and a file that must stay as it is


MEMORY_LIMIT, OPEN_CHUNKS = Argument("memory_limit"), Argument("open_chunks")
TEXT_BYTES = 100  # of a short text in a list, such as an id or the name of a column
LONGEST = 300  # characters of another package's message
COMPARED = 2**20  # bytes of a file up to which its contents tell whether it is the same, beyond it the time

ChunkReader: TypeAlias = Callable[[Path, Roles, int], ChunkSource]
"""From a path, roles and a memory limit to rows in chunks."""
TableReader: TypeAlias = Callable[[Path, Roles, int, TextForm, Tick | None], Table]
"""From the same, how a text is written, and what hears of the share that was read, to a table in memory."""


def line(error: object) -> str:
    """The first line of another package's message, printable and not too long."""
    lines = str(error).splitlines() or [type(error).__name__]
    text = printable(lines[0]).rstrip(".")
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


@contextmanager
def guard(name: str) -> Iterator[None]:
    """What the system says about a file, in one line."""
    try:
        yield
    except MemoryLimitError:
        raise
    except MemoryError as error:
        raise MemoryLimitError(
            f"{name}: there was not enough memory to read it ({line(error)}): free some, or convert the table to .npy, "
            "which can be read in chunks (",
            OPEN_CHUNKS,
            ").",
        ) from error
    except FileNotFoundError as error:
        raise TableError(f"{name}: no such file.") from error
    except OSError as error:
        raise TableError(f"{name}: cannot be read ({line(error.strerror or error)}).") from error


@dataclass(frozen=True)
class Stamp:
    """Which file it is: size, time and inode, and the digest of a small one."""

    size: int
    time: int
    inode: int
    digest: bytes | None = None

    @property
    def moment(self) -> tuple[int, int, int]:
        return self.size, self.time, self.inode

    def same_file(self, later: Stamp) -> bool:
        """Whether a later look met the same file: untouched, or small and written again with the same bytes."""
        if self.moment == later.moment:
            return True
        return self.digest is not None and (self.size, self.digest) == (later.size, later.digest)


def stamp(path: Path, known: Stamp | None = None) -> Stamp:
    """Which file this is now; the bytes are looked at only if it is not the one ``known``."""
    found = os.stat(path)
    now = Stamp(found.st_size, found.st_mtime_ns, found.st_ino)
    if known is not None and known.moment == now.moment:
        return known
    if now.size > COMPARED or not path.is_file():
        return now
    return replace(now, digest=hashlib.blake2b(path.read_bytes()).digest())


def check_table_size(name: str, rows: int, columns: int, texts: int, limit: int, extra: float = 0) -> None:
    """Refuse a table that does not fit memory: float64 features, texts of ids and classes, names of columns."""
    needed = rows * (8 * columns + TEXT_BYTES * texts) + TEXT_BYTES * columns + extra
    require(
        needed,
        limit,
        f"{name}: a table of {rows} rows and {columns} columns in memory",
        "raise ",
        MEMORY_LIMIT,
        ", leave out columns, or read it in chunks (",
        OPEN_CHUNKS,
        ").",
    )


class FileChunks(ChunkSource):
    """What files share: the kind of error, rows counted from 1 in messages, and a look at the file every pass."""

    _error = TableError
    _first = 1
    _folder = False  # whether this is a folder of files

    def __init__(self, path: Path, memory_limit: object = "auto") -> None:
        self.name = printable(path)
        self._path = path
        self.memory_limit = parse_memory_limit(memory_limit)
        if path.is_dir() and not self._folder:
            raise TableError(f"{self.name}: is a folder, not a file.")
        with guard(self.name):
            self._stamp = stamp(path)

    def _check_same(self, now: Stamp) -> None:
        if now.size != self._stamp.size:
            raise TableError(
                f"{self.name}: the file has {now.size} bytes and had {self._stamp.size} when it was opened; leave "
                "it as it is until the work is done, or open it again."
            )
        if not self._stamp.same_file(now):
            raise written_again(self.name)
        self._stamp = now

    def _check_rows(self) -> None:
        if self.n_columns == 0:
            raise TableError(f"{self.name}: no feature columns are left; drop fewer columns.")
        if not self._n_rows:
            raise TableError(f"{self.name}: the table has no rows.")

    def _check_memory(self, rows: int, row_bytes: int) -> None:
        check_chunk_size(self.name, rows, self.n_columns, rows * row_bytes, self.memory_limit)


def check_chunk_size(name: str, rows: int, columns: int, needed: int, limit: int) -> None:
    """Refuse chunks of rows that do not fit memory."""
    require(
        needed,
        limit,
        f"{name}: reading {rows} rows of {columns} columns at once",
        "raise memory_limit, or ask for fewer rows at once: source.chunks(rows).",
    )


def written_again(name: str) -> TableError:
    """The error about a file that is not the one that was opened."""
    return TableError(
        f"{name}: was written again or replaced after it was opened; leave it as it is until the work is done, or open "
        "it again."
    )


def held(open_file: ChunkReader) -> TableReader:
    """The reader of whole tables that holds what a reader of chunks gives."""

    def read(file: Path, roles: Roles, limit: int, form: TextForm, tick: Tick | None = None) -> Table:  # noqa: ARG001
        return _whole(open_file(file, roles, limit), roles, limit, tick)

    return read


def hold(source: ChunkSource, roles: Roles, *, drop_missing: bool = False, memory_limit: object = "auto") -> Table:
    """The whole table of a file that was opened with these roles, as ``read_table`` gives it.

    A table that needs more than ``memory_limit`` is a MemoryLimitError, before it is allocated.
    """
    return checked(_whole(source, roles, parse_memory_limit(memory_limit)), drop_missing)


def _whole(source: ChunkSource, roles: Roles, limit: int, tick: Tick | None = None) -> Table:
    with_role = [name for name in (roles.label, roles.id) if name is not None]
    n, width = source.n_rows or 0, source.n_columns
    check_table_size(source.name, n, width, len(with_role), limit)
    with guard(source.name), np.errstate(invalid="ignore"):  # a damaged NaN of float32
        X = np.empty((n, width))
        done = 0
        for chunk in source.chunks(source.block_rows, check_finite=False):
            X[done : done + len(chunk)] = chunk
            done += len(chunk)
            if tick is not None:
                tick(done / n)
        label, key = (
            None if name is None else [text for chunk in source.texts(name) for text in chunk]
            for name in (roles.label, roles.id)
        )
        return Table(source.name, X, source.columns or numbered(width), np.arange(n), n, label, key)


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
