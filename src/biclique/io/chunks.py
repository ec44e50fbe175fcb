"""Chunk sources: rows that are read in pieces, several times, and are never all in memory; .npy; formats of files.

Nothing is unpickled, and headers are not trusted.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO, FileIO
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import Argument, DataError, MemoryLimitError, TableError, printable
from biclique.io.fields import TextForm
from biclique.io.roles import Roles, Table, as_texts, checked, numbered
from biclique.io.typed_columns import ColumnSource, TypedTable
from biclique.runtime import Tick, all_finite, check_count, draw_numbers, parse_memory_limit, require

CHUNK_ROWS = 65_536
PAGE = 4096
HEADER_BYTES = 2**16  # NumPy itself refuses headers of more than 10,000 bytes
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
    def names(self) -> list[str]:
        """The names of the columns: their numbers if they have none."""
        return self.columns or numbered(self.n_columns)

    @property
    def n_used(self) -> int:
        """Columns of the table that the rows are made of."""
        return self.n_columns

    @property
    def n_table_rows(self) -> int:
        """Rows of the table that these are of, those that are left out among them."""
        return self.n_rows or 0

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

    def fill(
        self,
        out: FloatArray,
        rows: int = CHUNK_ROWS,
        *,
        check_finite: bool = True,
        tick: Tick | None = None,
    ) -> FloatArray:
        """All rows, in an array that has room for them: one fresh pass, ``rows`` at a time."""
        done = 0
        for chunk in self.chunks(rows, check_finite=check_finite):
            out[done : done + len(chunk)] = chunk
            done += len(chunk)
            if tick is not None:
                tick(done / len(out))
        return out

    def texts(self, name: str) -> Iterator[list[str]]:
        """One fresh pass over a column that has a role, as the texts that ``read_table`` gives: ids and classes."""
        place = self.names.index(name)
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
            near = np.flatnonzero(drawn < keys.max()) if len(keys) == size else np.arange(len(chunk))
            every = np.append(keys, drawn[near])
            stays = np.sort(np.argpartition(every, min(size, len(every)) - 1)[:size])
            old, new = stays[stays < len(keys)], near[stays[stays >= len(keys)] - len(keys)]
            keys, rows = every[stays], np.append(rows[old], start + new)
            kept = np.concatenate([kept[old], chunk[new]])
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


# .npy: a header, then the numbers themselves


@dataclass(frozen=True)
class Header:
    """What a .npy file says about its array."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: DType
    start: int  # of the numbers, in bytes

    @property
    def n_bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.shape} of {self.dtype}{', column by column' if self.fortran else ''}"


def read_header(name: str, beginning: bytes) -> Header:
    """The header of a .npy file, from its first bytes."""
    file = BytesIO(beginning)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        with warnings.catch_warnings(action="ignore"):  # about headers that Python 2 wrote
            version = npy.read_magic(file)
            if version not in readers:  # 3.0 is for names of fields, which cannot be used
                raise TableError(f"{name}: .npy version {version[0]}.{version[1]}, not 1.0 or 2.0.")
            shape, fortran, dtype = readers[version](file)
    except TableError:
        raise
    except Exception as error:  # whatever a broken header makes numpy and its parser raise, MemoryError among it
        raise TableError(f"{name}: not a readable NumPy file ({line(error)}).") from error
    if dtype.hasobject:
        raise TableError(f"{name}: holds Python objects, which are never unpickled; save it as numbers.")
    if min(shape, default=0) < 0:
        raise TableError(f"{name}: not a readable NumPy file (its header gives the shape {shape}).")
    return Header(shape, fortran, dtype, file.tell())


class NpyChunks(FileChunks):
    """Rows of a .npy file, read into one buffer that is used again: mapped pages would count as memory of the process.

    In Fortran order every chunk is gathered column by column. Nothing is ever unpickled.
    """

    def __init__(self, path: str | os.PathLike[str], memory_limit: object = "auto") -> None:
        super().__init__(Path(path), memory_limit)
        with guard(self.name), self._path.open("rb", buffering=0) as file:
            self._header = read_header(self.name, file.read(HEADER_BYTES))
        self._stored = self._header.dtype
        self.n_columns, self.dtype = real_table(TableError, self.name, self._header.shape, self._stored)
        self._n_rows = self._header.shape[0]
        self._row_bytes = self.n_columns * self._stored.itemsize
        self._check_rows()
        self._check_length(self._stamp.size)

    def _check_length(self, size: int) -> None:
        held = max(size - self._header.start, 0)
        if held >= self._header.n_bytes:
            return
        rows = f"{self._n_rows} rows, it holds {held // self._row_bytes}"
        what = f"{self._header.n_bytes} bytes of numbers, it holds {held}" if self._header.fortran else rows
        raise TableError(f"{self.name}: the file ends early: its header promises {what}; write it again.")

    @contextmanager
    def _opened(self) -> Iterator[FileIO]:
        with guard(self.name), self._path.open("rb", buffering=0) as file:
            now = stamp(self._path, self._stamp)
            self._check_length(now.size)
            if now.size == self._stamp.size:
                header = read_header(self.name, file.read(HEADER_BYTES))
                if header != self._header:
                    raise TableError(
                        f"{self.name}: holds {header} now and held {self._header} when it was opened; leave it as it "
                        "is until the work is done, or open it again."
                    )
            self._check_same(now)
            yield file

    def _fill(self, file: FileIO, place: int, out: Raw) -> None:
        """Bytes from ``place`` on, into all of ``out``."""
        view = out.data.cast("B")
        file.seek(place)
        done = 0
        while done < len(view):
            got = file.readinto(view[done:])
            if not got:
                self._check_length(os.fstat(file.fileno()).st_size)
                raise TableError(f"{self.name}: the file ends early: it became shorter while it was read.")
            done += got

    def _pieces(self, rows: int) -> Iterator[Raw]:
        n, itemsize, first = self._n_rows or 0, self._stored.itemsize, self._header.start
        rows = min(rows, n)
        self._check_memory(rows, self._row_bytes + self.n_columns * self.dtype.itemsize)
        shape = (self.n_columns, rows) if self._header.fortran else (rows, self.n_columns)
        with self._opened() as file:
            buffer = np.empty(prod(shape) * itemsize, dtype=np.uint8)
            table = buffer.view(self._stored).reshape(shape)
            for start in range(0, n, rows):
                m = min(rows, n - start)
                if self._header.fortran:
                    for j in range(self.n_columns):
                        part = buffer[j * rows * itemsize : (j * rows + m) * itemsize]
                        self._fill(file, first + (j * n + start) * itemsize, part)
                else:
                    self._fill(file, first + start * self._row_bytes, buffer[: m * self._row_bytes])
                yield (table.T[:m] if self._header.fortran else table[:m])

    def _take(self, rows: IntArray) -> FloatArray:
        near = len(rows) * 4 * max(PAGE, self._row_bytes) > (self._n_rows or 0) * self._row_bytes
        if self._header.fortran or near:  # one pass is faster then
            return super()._take(rows)
        raw = np.empty((len(rows), self._row_bytes), dtype=np.uint8)
        with self._opened() as file:
            for i, row in enumerate(rows.tolist()):
                self._fill(file, self._header.start + row * self._row_bytes, raw[i])
        return np.ascontiguousarray(raw.view(self._stored), dtype=self.dtype)


def open_npy(path: Path, roles: Roles, limit: int) -> ChunkSource:
    """The features of a .npy file."""
    source = NpyChunks(path, limit)
    if roles == Roles():
        return source
    from biclique.io.sources import select_features  # which needs this file

    return select_features(source, roles, limit)


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
        X = source.fill(np.empty((n, width)), source.block_rows, check_finite=False, tick=tick)
        label, key = (
            None if name is None else [text for chunk in source.texts(name) for text in chunk]
            for name in (roles.label, roles.id)
        )
        return Table(source.name, X, source.names, np.arange(n), n, label, key)


# The formats, in one dictionary: everything that depends on the kind of a file looks there


class LabelSink(Protocol):
    """An open file that takes labels."""

    @property
    def with_ids(self) -> bool:
        """Whether it stores the id of each row."""

    def write(
        self, keys: NDArray[Any] | list[str], labels: NDArray[Any], kept: NDArray[np.bool_] | None = None
    ) -> None:
        """Append rows: whole numbers or texts as keys. A row that is not kept has no label."""

    def close(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """End the file, or give it up after an error."""


Writer: TypeAlias = Callable[[Path, tuple[str, str]], LabelSink]
"""Opens a file for labels, from its path and the names of its two columns."""


@dataclass(frozen=True)
class TableFormat:
    """What can be done with one kind of file."""

    name: str  # in messages
    endings: tuple[str, ...]  # of names; files are written with the first
    read: TableReader
    chunks: Callable[..., ChunkSource] | None = None  # a ChunkReader; of texts also with a form and a tick
    writer: Writer | None = None
    place: Literal["file", "folder", "both"] = "file"  # "both": a folder of files is read too, but not in chunks
    needs: Callable[[], object] = lambda: None  # imports the package that it needs, or names the install line
    is_text: bool = False  # its readers ask how the text is written
    read_columns: Callable[[Path, TextForm, int, Tick | None], TypedTable] | None = None  # if not all are numbers
    open_columns: Callable[[Path, TextForm, int, Tick | None], ColumnSource] | None = None  # in chunks
    delimiter: str = ""  # between the fields of a text; "" is for the one that the first line has

    def form(self, given: TextForm | None) -> TextForm:
        """How a text of this kind is written."""
        form = given or TextForm()
        return replace(form, delimiter=form.delimiter or self.delimiter)


FORMATS: dict[str, TableFormat] = {}
"""By the ending of the name, in small letters; ``tables.py`` has the entries."""


def formats(*, in_chunks: bool = False) -> list[TableFormat]:
    """Every format once; or those that can be read in chunks."""
    return [kind for kind in dict.fromkeys(FORMATS.values()) if kind.chunks is not None or not in_chunks]


def writers() -> dict[str, Writer]:
    """What writes labels, by the ending of the file."""
    return {kind.endings[0]: kind.writer for kind in formats() if kind.writer is not None}


def find_format(path: str | os.PathLike[str]) -> TableFormat | None:
    """The format that the name says: by its ending, or by that of a folder above it, as in ``a.zarr/x``."""
    file = Path(path)
    for ending in ("".join(file.suffixes[-2:]).lower(), file.suffix.lower()):
        if ending in FORMATS:
            return FORMATS[ending]
    folders = (kind for kind in formats() if kind.place == "folder")
    return next((kind for kind in folders if any(part.lower().endswith(kind.endings) for part in file.parts)), None)


def listed(words: Sequence[str], last: str) -> str:
    """``a, b or c``."""
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else "".join(words)


def is_path(X: Any) -> bool:
    """Whether X names a file."""
    return isinstance(X, (str, os.PathLike))


def open_file(
    path: Path, roles: Roles, limit: int, form: TextForm | None = None, tick: Tick | None = None
) -> ChunkSource:
    """The rows of a file or a folder in chunks, by the ending of its name."""
    kind = find_format(path)
    readable = formats(in_chunks=True)
    if kind is None:
        endings = ", ".join(ending for one in readable for ending in one.endings)
        raise TableError(
            f"{printable(path)}: unknown kind of table; to be read in chunks its name must end in one of {endings}."
        )
    if kind.chunks is None:
        better = listed([one.name for one in readable if one.place != "folder"], "or")
        raise TableError(
            f"{printable(path)}: a {path.suffix.lower()} file cannot be read in chunks; convert it to {better}, or "
            "read it whole with read_table."
        )
    return kind.chunks(path, roles, limit, *([kind.form(form), tick] if kind.is_text else []))
