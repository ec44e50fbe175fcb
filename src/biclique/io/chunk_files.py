"""Rows of files, passed over in chunks: .npy, Parquet and Zarr; and the one function that opens any source."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from math import prod
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, TableError
from biclique.io._extras import import_pyarrow, import_zarr
from biclique.io.chunks import (
    CHUNK_ROWS,
    ArrayChunks,
    ChunkSource,
    ColumnChunks,
    DType,
    IterableChunks,
    Raw,
    real_table,
    working_dtype,
)
from biclique.io.tables import Roles, Table, _checked, _feature_columns

SLAB_BYTES = 2**28  # the most that is read from a Zarr array at once, unless one chunk of rows asked for has more
PARQUET_BUFFER = 2**18  # bytes read ahead of each column
PAGE = 4096


def open_chunks(source: Any, *, roles: Roles | None = None) -> ChunkSource:
    """Rows to pass over: a path (.npy, .parquet, .zarr), an array, a Zarr array, or chunks.

    Chunks are a list of two-dimensional arrays or frames, an object that gives a fresh iterator of them each time, or
    a function without arguments that returns one. ``roles`` names columns that are no features, by name, or where
    there are no names by their number as text ("0", "1", …).
    """
    if isinstance(source, (str, os.PathLike)):
        return _open_path(Path(source), roles or Roles())
    return _select(source if isinstance(source, ChunkSource) else _open_object(source), roles or Roles())


def is_chunk_file(path: str | os.PathLike[str]) -> bool:
    """Whether the name is that of a file (or a Zarr folder) that ``open_chunks`` can read."""
    return Path(path).suffix.lower() in (".npy", ".parquet", ".pq") or is_zarr(path)


def is_zarr(path: str | os.PathLike[str]) -> bool:
    """Whether the name is that of a Zarr array: a folder ``*.zarr``, or in one."""
    file = Path(path)
    known = file.suffix.lower() in (".csv", ".tsv", ".tab", ".txt", ".npz", ".npy", ".parquet", ".pq")
    return not known and any(part.lower().endswith(".zarr") for part in file.parts)


def column_texts(source: ChunkSource, name: str) -> Iterator[list[str]]:
    """One fresh pass over a column of a file, as the texts that ``read_table`` gives: ids and classes.

    ``source`` is the file's, opened with that column in a role.
    """
    if isinstance(source, ParquetChunks):
        yield from source.texts(name)
        return
    whole = source.inner if isinstance(source, ColumnChunks) else source
    place = (whole.columns or [str(j) for j in range(whole.n_columns)]).index(name)
    for piece in whole._pieces(CHUNK_ROWS):
        yield [str(value) for value in piece[:, place].tolist()]


def hold(source: ChunkSource, roles: Roles, *, drop_missing: bool = False) -> Table:
    """The whole table of a file that was opened with these roles, as ``read_table`` gives others."""
    X = np.empty((source.n_rows or 0, source.n_columns))
    done = 0
    for chunk in source.chunks(check_finite=False):
        X[done : done + len(chunk)] = chunk
        done += len(chunk)

    def texts(name: str | None) -> list[str] | None:
        return None if name is None else [text for chunk in column_texts(source, name) for text in chunk]

    columns = source.columns or [str(j) for j in range(source.n_columns)]
    rows = np.arange(len(X))
    return _checked(Table(source.name, X, columns, rows, len(X), texts(roles.label), texts(roles.id)), drop_missing)


def _open_path(path: Path, roles: Roles) -> ChunkSource:
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv", ".tab", ".txt", ".npz"):
        raise TableError(
            f"{path}: a {suffix} file cannot be read in chunks; convert it to .npy or Parquet, or read it whole with "
            "read_table."
        )
    if suffix in (".parquet", ".pq"):
        return ParquetChunks(path, roles)
    if suffix == ".npy":
        return _select(NpyChunks(path), roles)
    if is_zarr(path):
        return _select(ZarrChunks(path), roles)
    raise TableError(
        f"{path}: unknown kind of table; to be read in chunks its name must end in one of .npy, .parquet, .pq, .zarr."
    )


def _open_object(source: Any) -> ChunkSource:
    if isinstance(source, np.ndarray) or hasattr(source, "tocsr"):
        return ArrayChunks(source)
    if all(hasattr(source, name) for name in ("shape", "chunks", "__getitem__")):
        return ZarrChunks(source)
    if hasattr(source, "__array__"):
        return ArrayChunks(source)
    if isinstance(source, Iterable) or callable(source):
        return IterableChunks(source)
    raise DataError(
        f"cannot read rows from {type(source).__name__}; pass a path, an array, a Zarr array, a list of arrays, or a "
        "function that returns a fresh iterator of arrays."
    )


def _select(source: ChunkSource, roles: Roles) -> ChunkSource:
    """The columns that are features."""
    if roles.label is None and roles.id is None and not roles.drop:
        return source
    names = source.columns or [str(j) for j in range(source.n_columns)]
    features = _feature_columns(source.name, names, roles)
    if not features:
        raise source._error(f"{source.name}: no feature columns are left; drop fewer columns.")
    return ColumnChunks(source, [names.index(feature) for feature in features])


class _FileChunks(ChunkSource):
    """What files share: the kind of error, rows counted from 1 in messages, and a look at the size every pass."""

    _error = TableError
    _first = 1

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        if path.is_dir():
            raise TableError(f"{path}: is a folder, not a file.")
        with self._guard():
            self._bytes = path.stat().st_size

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """What the system says about a file, in one line."""
        try:
            yield
        except FileNotFoundError as error:
            raise TableError(f"{self.name}: no such file.") from error
        except OSError as error:
            raise TableError(f"{self.name}: cannot be read ({_line(error.strerror or error)}).") from error

    def _resized(self, now: int) -> TableError:
        return TableError(
            f"{self.name}: the file has {now} bytes and had {self._bytes} when it was opened; leave it as it is until "
            "the work is done, or open it again."
        )

    def _check_rows(self) -> None:
        if self.n_columns == 0:
            raise TableError(f"{self.name}: no feature columns are left; drop fewer columns.")
        if not self._n_rows:
            raise TableError(f"{self.name}: the table has no rows.")


def _line(error: object) -> str:
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


class NpyChunks(_FileChunks):
    """Rows of a .npy file, read into one buffer that is used again: mapped pages would count as memory of the process.

    In Fortran order every chunk is gathered column by column. Nothing is ever unpickled.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(Path(path))
        with self._guard(), self._path.open("rb", buffering=0) as file:
            shape, self._fortran, self._stored = self._header(file)
            self._start = file.tell()
        self.n_columns, self.dtype = real_table(TableError, self.name, shape, self._stored)
        self._n_rows = shape[0]
        self._row_bytes = self.n_columns * self._stored.itemsize
        self._check_rows()
        self._check_length(self._bytes)

    def _header(self, file: FileIO) -> tuple[tuple[int, ...], bool, DType]:
        readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about headers that Python 2 wrote
                version = npy.read_magic(file)
                if version not in readers:  # 3.0 is for names of fields, which cannot be used
                    raise TableError(f"{self.name}: .npy version {version[0]}.{version[1]}, not 1.0 or 2.0.")
                shape, fortran, dtype = readers[version](file)
        except (TableError, OSError):
            raise
        except Exception as error:  # whatever a broken header makes numpy and its parser raise
            raise TableError(f"{self.name}: not a readable NumPy file ({_line(error)}).") from error
        if dtype.hasobject:
            raise TableError(f"{self.name}: holds Python objects, which are never unpickled; save it as numbers.")
        if min(shape, default=0) < 0:
            raise TableError(f"{self.name}: not a readable NumPy file (its header gives the shape {shape}).")
        return shape, fortran, dtype

    def _check_length(self, size: int) -> None:
        promised = (self._n_rows or 0) * self._row_bytes
        held = max(size - self._start, 0)
        if held >= promised:
            return
        rows = f"{self._n_rows} rows, it holds {held // self._row_bytes}"
        what = f"{promised} bytes of numbers, it holds {held}" if self._fortran else rows
        raise TableError(f"{self.name}: the file ends early: its header promises {what}; write it again.")

    @contextmanager
    def _opened(self) -> Iterator[FileIO]:
        with self._guard(), self._path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            self._check_length(size)
            if size != self._bytes:
                raise self._resized(size)
            shape, fortran, dtype = self._header(file)
            held = ((self._n_rows, self.n_columns), self._fortran, self._stored, self._start)
            if (shape, fortran, dtype, file.tell()) != held:
                raise TableError(
                    f"{self.name}: holds {shape} of {dtype} now and held {held[0]} of "
                    f"{self._stored} when it was opened; leave it as it is until the work is done, or open it again."
                )
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
        n, itemsize = self._n_rows or 0, self._stored.itemsize
        rows = min(rows, n)
        shape = (self.n_columns, rows) if self._fortran else (rows, self.n_columns)
        buffer = np.empty(prod(shape) * itemsize, dtype=np.uint8)
        table = buffer.view(self._stored).reshape(shape)
        with self._opened() as file:
            for start in range(0, n, rows):
                m = min(rows, n - start)
                if self._fortran:
                    for j in range(self.n_columns):
                        line = buffer[j * rows * itemsize : (j * rows + m) * itemsize]
                        self._fill(file, self._start + (j * n + start) * itemsize, line)
                else:
                    self._fill(file, self._start + start * self._row_bytes, buffer[: m * self._row_bytes])
                yield table.T[:m] if self._fortran else table[:m]

    def _take(self, rows: IntArray) -> FloatArray:
        near = len(rows) * 4 * max(PAGE, self._row_bytes) > (self._n_rows or 0) * self._row_bytes
        if self._fortran or near:  # one pass is faster then
            return super()._take(rows)
        raw = np.empty((len(rows), self._row_bytes), dtype=np.uint8)
        with self._opened() as file:
            for i, row in enumerate(rows.tolist()):
                self._fill(file, self._start + row * self._row_bytes, raw[i])
        return np.ascontiguousarray(raw.view(self._stored), dtype=self.dtype)


class ParquetChunks(_FileChunks):
    """The feature columns of a Parquet file, a batch of rows at a time; nulls are NaN."""

    def __init__(self, path: str | os.PathLike[str], roles: Roles | None = None) -> None:
        pyarrow = import_pyarrow()
        super().__init__(Path(path))
        with self._opened() as file:
            schema = file.schema_arrow
            self._n_rows = file.metadata.num_rows
        self.columns = _feature_columns(self.name, list(schema.names), roles or Roles())
        self.n_columns = len(self.columns)
        kinds = [self._kind(pyarrow, name, schema.field(name).type) for name in self.columns]
        self.dtype = np.result_type(np.float32, *kinds)
        self._check_rows()

    def _kind(self, pyarrow: Any, name: str, kind: Any) -> DType:
        types = pyarrow.types
        if types.is_decimal(kind):
            return np.dtype(np.float64)
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
            return working_dtype(np.dtype(kind.to_pandas_dtype())) or np.dtype(np.float64)
        raise TableError(
            f"{self.name}: column {name!r} holds {kind}, not numbers. If it holds classes or names, say so with "
            "--label-column, --id or --drop."
        )

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        pyarrow = import_pyarrow()
        with self._guard():
            size = self._path.stat().st_size
            if size != self._bytes:
                raise self._resized(size)
            try:
                with pyarrow.parquet.ParquetFile(
                    self._path,
                    pre_buffer=False,  # True, the default, ends up holding the whole file in memory
                    buffer_size=PARQUET_BUFFER,
                    page_checksum_verification=True,
                ) as file:
                    yield file
            except (pyarrow.ArrowException, OSError) as error:
                if isinstance(error, FileNotFoundError):
                    raise
                raise TableError(f"{self.name}: not a readable Parquet file ({_line(error)}).") from error

    def texts(self, name: str) -> Iterator[list[str]]:
        """One fresh pass over any column of the file, as texts."""
        with self._opened() as file:
            for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=[name]):
                yield [str(value) for value in batch.column(0).to_pylist()]

    def _pieces(self, rows: int) -> Iterator[Raw]:
        pyarrow = import_pyarrow()
        columns = self.columns or []
        target = pyarrow.from_numpy_dtype(self.dtype)
        buffer = np.empty((min(rows, self._n_rows or 0), self.n_columns), dtype=self.dtype)
        with self._opened() as file:
            if [n for n in columns if n not in file.schema_arrow.names]:
                raise TableError(f"{self.name}: the file has other columns than when it was opened; open it again.")
            for batch in file.iter_batches(batch_size=len(buffer), columns=columns):
                out = buffer[: batch.num_rows]
                for j, name in enumerate(columns):
                    out[:, j] = batch.column(name).cast(target, safe=False).to_numpy(zero_copy_only=False)
                yield out


class ZarrChunks(ChunkSource):
    """Rows of a two-dimensional Zarr array: a path to one, or one already open, or an array that works alike (h5py).

    It is read in whole chunks of its rows, so that each is unpacked once a pass.
    """

    def __init__(self, source: Any, name: str = "zarr array") -> None:
        self._path = Path(source) if isinstance(source, (str, os.PathLike)) else None
        self._array = source
        self.name = name
        if self._path is not None:
            self._error, self._first, self.name = TableError, 1, str(self._path)
        array = self._opened()
        if not all(isinstance(n, Integral) for n in array.shape):
            raise self._error(f"{self.name}: has no known shape, got {array.shape}.")
        self.n_columns, self.dtype = real_table(self._error, self.name, array.shape, np.dtype(array.dtype))
        self._n_rows = int(array.shape[0])
        if not self._n_rows:
            raise self._error(f"{self.name}: the source has no rows.")

    def _opened(self) -> Any:
        if self._path is None:
            return self._array
        zarr = import_zarr()
        if not self._path.exists():
            raise TableError(f"{self.name}: no such folder.")
        if not self._path.is_dir():
            raise TableError(f"{self.name}: is a file; a Zarr array is a folder.")
        try:
            array = zarr.open(str(self._path), mode="r")
        except Exception as error:  # whatever a broken store makes zarr, its codecs or json raise
            raise TableError(f"{self.name}: not a readable Zarr array ({_line(error)}).") from error
        if not hasattr(array, "shape"):
            names = sorted(array.array_keys())
            example = f": pass {self._path / names[0]}" if names else ""
            raise TableError(f"{self.name}: is a Zarr group of {len(names)} arrays; pass one of its arrays{example}.")
        return array

    def _same(self) -> Any:
        array = self._opened()
        if tuple(array.shape) != (self._n_rows, self.n_columns):
            raise self._error(
                f"{self.name}: has the shape {tuple(array.shape)} now and had {(self._n_rows, self.n_columns)} when it "
                "was opened; leave it as it is until the work is done, or open it again."
            )
        return array

    def _slab(self, array: Any, rows: int) -> int:
        """How many rows to read at once: whole chunks, unless too large (then they are unpacked more than once)."""
        unit = getattr(array, "shards", None) or array.chunks
        height = int(unit[0]) if unit and isinstance(unit[0], Integral) else rows
        whole = height * max(1, rows // height)
        fits = SLAB_BYTES // (self.n_columns * int(np.dtype(array.dtype).itemsize))
        return min(whole, max(fits, rows))

    def _read(self, array: Any, start: int, stop: int) -> Raw:
        try:
            return np.asarray(array[start:stop])
        except Exception as error:  # codecs raise what they like
            raise self._error(
                f"{self.name}: rows {start + self._first} to {stop - 1 + self._first} (counting from {self._first}) "
                f"cannot be read ({_line(error)}); a chunk of the array is damaged: write it again."
            ) from error

    def _pieces(self, rows: int) -> Iterator[Raw]:
        array, n = self._same(), self._n_rows or 0
        step = self._slab(array, rows)
        for start in range(0, n, step):
            yield self._read(array, start, min(start + step, n))

    def _take(self, rows: IntArray) -> FloatArray:
        """Only the chunks in which there are such rows."""
        array = self._same()
        step = self._slab(array, 1)
        X = np.empty((len(rows), self.n_columns), dtype=self.dtype)
        slabs, starts = np.unique(rows // step, return_index=True)
        for slab, a, b in zip(slabs.tolist(), starts, [*starts[1:], len(rows)], strict=True):
            piece = self._read(array, slab * step, min((slab + 1) * step, self._n_rows or 0))
            X[a:b] = piece[rows[a:b] - slab * step]
        return X
