"""NumPy's files: .npy whole, in chunks and written, and .npz whole; nothing is unpickled, headers are not trusted."""

from __future__ import annotations

import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from io import BytesIO, FileIO
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import BicliqueError, DataError, TableError, printable
from biclique.io.chunks import (
    ChunkSource,
    DType,
    FileChunks,
    Raw,
    check_table_size,
    guard,
    held,
    line,
    real_table,
    stamp,
)
from biclique.io.fields import TextForm
from biclique.io.roles import Roles, Table, as_texts, feature_columns, numbered
from biclique.io.sources import select_features
from biclique.runtime import Tick

PAGE = 4096
HEADER_BYTES = 2**16  # NumPy itself refuses headers of more than 10,000 bytes


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


def open_npy(path: Path, roles: Roles, limit: int) -> ChunkSource:
    """The features of a .npy file."""
    source = NpyChunks(path, limit)
    return source if roles == Roles() else select_features(source, roles, limit)


def read_numpy(path: Path, roles: Roles, limit: int, form: TextForm, tick: Tick | None = None) -> Table:
    """The table of a .npy or .npz file: its first bytes tell which, not its name."""
    with path.open("rb") as stream:
        beginning = stream.read(HEADER_BYTES)
    if beginning.startswith(b"PK"):
        return _read_npz(path, roles, limit)
    _needs_numbers(printable(path), read_header(printable(path), beginning))
    return held(open_npy)(path, roles, limit, form, tick)


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
                        f"{self.name}: holds {header.shape} of {header.dtype} now and held {self._header.shape} of "
                        f"{self._stored} when it was opened; leave it as it is until the work is done, or open it "
                        "again."
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


# .npz


def _needs_numbers(name: str, header: Header) -> None:
    """Refuse an array that is not a table."""
    if len(header.shape) != 2 or header.dtype.kind not in "fiub":
        raise TableError(
            f"{name}: needs a two-dimensional array of numbers, got {len(header.shape)} dimensions of "
            f"{printable(header.dtype)}."
        )


def _read_npz(path: Path, roles: Roles, limit: int) -> Table:
    """The table of an .npz file; of its other arrays only those with a role are read."""
    name = printable(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _Archive(name, archive, limit).table(roles)
    except (BicliqueError, MemoryError, OSError):
        raise
    except Exception as error:  # zipfile and its decompressors raise what they like
        raise TableError(f"{name}: not a readable NumPy file ({line(error)}).") from error


class _Archive:
    """The arrays of an open .npz file."""

    def __init__(self, name: str, archive: zipfile.ZipFile, limit: int) -> None:
        self.name, self._archive, self._limit = name, archive, limit
        self._members = {m.filename.removesuffix(".npy"): m for m in archive.infolist() if not m.is_dir()}
        self._headers: dict[str, Header] = {}

    def table(self, roles: Roles) -> Table:
        """The array called X, or the only two-dimensional one, with the arrays that have a role."""
        key = self._table_key()
        header = self._header(key)
        _needs_numbers(self.name, header)
        n, width = header.shape
        with_role = [c for c in (roles.label, roles.id) if c is not None]
        extra = [c for c in with_role if c in self._members and c != key and self._header(c).shape == (n,)]
        needed = header.n_bytes + sum(2 * self._header(c).n_bytes for c in extra)
        check_table_size(self.name, n, width, len(with_role), self._limit, needed)
        columns = numbered(width)
        features = [j for j in feature_columns(self.name, columns + list(dict.fromkeys(extra)), roles) if j < width]
        X = self._array(key)

        def texts(wanted: str | None) -> list[str] | None:
            if wanted is None:
                return None
            values = self._array(wanted) if wanted in extra else X[:, columns.index(wanted)]
            return as_texts(values.tolist())

        values = X if len(features) == width else X[:, features]
        return Table(
            self.name,
            np.asarray(values, dtype=float),
            [columns[j] for j in features],
            np.arange(n),
            n,
            texts(roles.label),
            texts(roles.id),
        )

    def _table_key(self) -> str:
        if "X" in self._members:
            return "X"
        tables = [key for key in self._members if self._has_two_dimensions(key)]
        if len(tables) != 1:
            shown = sorted(self._members)[:20]
            raise TableError(
                f"{self.name}: needs an array called X or one two-dimensional array; it has {shown}"
                f"{' and more' if len(self._members) > 20 else ''}."
            )
        return tables[0]

    def _has_two_dimensions(self, key: str) -> bool:
        try:
            return len(self._header(key).shape) == 2
        except TableError:  # of an array that is not needed
            return False

    @contextmanager
    def _opened(self, key: str) -> Iterator[IO[bytes]]:
        member = self._members[key]
        if member.flag_bits & 1:
            raise TableError(f"{self.name}: the array {key!r} is encrypted; save it without a password.")
        with self._archive.open(member) as stream:
            yield stream

    def _header(self, key: str) -> Header:
        if key not in self._headers:
            with self._opened(key) as stream:
                self._headers[key] = read_header(f"{self.name}: the array {key!r}", stream.read(HEADER_BYTES))
        return self._headers[key]

    def _array(self, key: str) -> Any:
        """The numbers that the header promises, and no byte more is unpacked."""
        header, size = self._header(key), self._members[key].file_size
        if size - header.start != header.n_bytes:
            raise TableError(
                f"{self.name}: the array {key!r} has {size - header.start} bytes, its header promises "
                f"{header.n_bytes}; write it again."
            )
        raw = np.empty(header.n_bytes, dtype=np.uint8)
        done = 0
        with self._opened(key) as stream:
            stream.read(header.start)
            while piece := stream.read(2**20):  # at the end the checksum is compared
                raw[done : done + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
                done += len(piece)
        if done < header.n_bytes:
            raise TableError(f"{self.name}: the array {key!r} ends early; write it again.")
        return raw.view(header.dtype).reshape(header.shape, order="F" if header.fortran else "C")


class NpySink:
    """Labels as int64, behind a header that is written again when their number is known."""

    with_ids = False

    def __init__(self, path: Path, names: tuple[str, str]) -> None:  # noqa: ARG002
        self._file = path.open("wb")
        self._n_rows = 0
        self._start = self._header()

    def _header(self) -> int:
        self._file.seek(0)
        npy.write_array_header_1_0(
            self._file, {"descr": "<i8", "fortran_order": False, "shape": (self._n_rows,)}
        )  # numpy leaves room for the first axis to grow
        return self._file.tell()

    def write(self, keys: object, labels: NDArray[Any], kept: NDArray[np.bool_] | None = None) -> None:  # noqa: ARG002
        labels = labels if kept is None else np.where(kept, labels, -1)
        self._file.write(np.ascontiguousarray(labels, dtype="<i8").data)
        self._n_rows += len(labels)

    def close(self, kind: type[BaseException] | None, *_: object) -> None:
        with suppress(OSError) if kind is not None else nullcontext(), self._file:
            if kind is None and self._header() != self._start:
                raise DataError("this numpy leaves no room in the header of a .npy file; write another kind of file.")
