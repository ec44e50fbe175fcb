"""Rows passed over in chunks: the one function that opens any source, and Zarr arrays."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from math import prod
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import BicliqueError, DataError, TableError
from biclique.io.chunks import CHUNK_ROWS, ArrayChunks, ChunkSource, ColumnChunks, IterableChunks, Raw, real_table
from biclique.io.extras import import_zarr
from biclique.io.numpy_files import NpyChunks
from biclique.io.parquet import ParquetChunks
from biclique.io.roles import Roles, Table, as_texts, checked, feature_columns, numbered
from biclique.io.safe_files import TEXT_BYTES, check_chunk_size, check_table_size, guard, line, written_again
from biclique.io.zarr_metadata import ZarrMetadata, check_blosc, read_metadata
from biclique.printable import printable
from biclique.runtime.memory import parse_memory_limit, require

SLAB_BYTES = 2**28  # the most that is read from a Zarr array at once, unless one chunk of rows asked for has more
ZARR_CHUNK_BYTES = 2**10  # what zarr needs to find one chunk, beside its numbers
BLOCK_BYTES = 2**26  # of the rows read at once into a table in memory, unless one row has more


def open_chunks(source: Any, *, roles: Roles | None = None, memory_limit: object = "auto") -> ChunkSource:
    """Rows to pass over: a path (.npy, .parquet, .zarr), an array, a Zarr array, or chunks.

    Chunks are a list of two-dimensional arrays or frames, an object that gives a fresh iterator of them each time, or
    a function without arguments that returns one. ``roles`` names columns that are no features, by name, or where
    there are no names by their number as text ("0", "1", …).

    ``memory_limit`` ("auto": half of what is free, a number of bytes, or text like "4GB") is for what is read of a
    file at once: more is a MemoryLimitError, before it is allocated.
    """
    roles = roles or Roles()
    limit = parse_memory_limit(memory_limit)
    if isinstance(source, (str, os.PathLike)):
        return _open_path(Path(source), roles, limit)
    return _select(source if isinstance(source, ChunkSource) else _open_object(source, limit), roles, limit)


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
    place = (whole.columns or numbered(whole.n_columns)).index(name)
    for piece in whole._pieces(_block(whole)):
        yield as_texts(piece[:, place].tolist())


def hold(source: ChunkSource, roles: Roles, *, drop_missing: bool = False, memory_limit: object = "auto") -> Table:
    """The whole table of a file that was opened with these roles, as ``read_table`` gives others.

    A table that needs more than ``memory_limit`` is a MemoryLimitError, before it is allocated.
    """
    with_role = [name for name in (roles.label, roles.id) if name is not None]
    n, width = source.n_rows or 0, source.n_columns
    check_table_size(source.name, n, width, len(with_role), parse_memory_limit(memory_limit))
    with guard(source.name), np.errstate(invalid="ignore"):  # a damaged NaN of float32
        X = np.empty((n, width))
        done = 0
        for chunk in source.chunks(_block(source), check_finite=False):
            X[done : done + len(chunk)] = chunk
            done += len(chunk)
        columns = source.columns or numbered(width)
        label, key = (
            None if name is None else [text for chunk in column_texts(source, name) for text in chunk]
            for name in (roles.label, roles.id)
        )
        return checked(Table(source.name, X, columns, np.arange(n), n, label, key), drop_missing)


def _block(source: ChunkSource) -> int:
    """How many rows to read at once into memory."""
    return max(1, min(CHUNK_ROWS, BLOCK_BYTES // (8 * source.n_columns)))


def _open_path(path: Path, roles: Roles, limit: int) -> ChunkSource:
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv", ".tab", ".txt", ".npz"):
        raise TableError(
            f"{printable(path)}: a {suffix} file cannot be read in chunks; convert it to .npy or Parquet, or read it "
            "whole with read_table."
        )
    if suffix in (".parquet", ".pq"):
        return ParquetChunks(path, roles, limit)
    if suffix == ".npy":
        return _select(NpyChunks(path, limit), roles, limit)
    if is_zarr(path):
        return _select(ZarrChunks(path, memory_limit=limit), roles, limit)
    raise TableError(
        f"{printable(path)}: unknown kind of table; to be read in chunks its name must end in one of .npy, .parquet, "
        ".pq, .zarr."
    )


def _open_object(source: Any, limit: int) -> ChunkSource:
    if isinstance(source, np.ndarray) or hasattr(source, "tocsr"):
        return ArrayChunks(source)
    if all(hasattr(source, name) for name in ("shape", "chunks", "__getitem__")):
        return ZarrChunks(source, memory_limit=limit)
    if hasattr(source, "__array__"):
        return ArrayChunks(source)
    if isinstance(source, Iterable) or callable(source):
        return IterableChunks(source)
    raise DataError(
        f"cannot read rows from {type(source).__name__}; pass a path, an array, a Zarr array, a list of arrays, or a "
        "function that returns a fresh iterator of arrays."
    )


def _select(source: ChunkSource, roles: Roles, limit: int) -> ChunkSource:
    """The columns that are features."""
    if roles.label is None and roles.id is None and not roles.drop:
        return source
    way_out = "raise memory_limit, or keep its columns in several files."
    require(TEXT_BYTES * source.n_columns, limit, f"{source.name}: naming {source.n_columns} columns", way_out)
    features = feature_columns(source.name, source.columns or numbered(source.n_columns), roles)
    if not features:
        raise source._error(f"{source.name}: no feature columns are left; drop fewer columns.")
    return ColumnChunks(source, features)


class ZarrChunks(ChunkSource):
    """Rows of a two-dimensional Zarr array: a path to one, or one already open, or an array that works alike (h5py).

    It is read in whole chunks of its rows, so that each is unpacked once a pass.
    """

    _metadata: ZarrMetadata | None = None  # of a path, when it was opened

    def __init__(self, source: Any, name: str = "zarr array", memory_limit: object = "auto") -> None:
        self._path = Path(source) if isinstance(source, (str, os.PathLike)) else None
        self._array = source
        self.name = name
        self.memory_limit = parse_memory_limit(memory_limit)
        if self._path is not None:
            self._error, self._first, self.name = TableError, 1, printable(self._path)
        array = self._opened()
        if not all(isinstance(n, Integral) for n in array.shape):
            raise self._error(f"{self.name}: has no known shape, got {array.shape}.")
        self.n_columns, self.dtype = real_table(self._error, self.name, array.shape, np.dtype(array.dtype))
        self._n_rows = int(array.shape[0])
        if not self._n_rows:
            raise self._error(f"{self.name}: the source has no rows.")
        check_chunk_size(self.name, 1, self.n_columns, self._row_bytes(array), self.memory_limit)

    def _opened(self) -> Any:
        if self._path is None:
            return self._array
        zarr = import_zarr()
        if not self._path.exists():
            raise TableError(f"{self.name}: no such folder.")
        if not self._path.is_dir():
            raise TableError(f"{self.name}: is a file; a Zarr array is a folder.")
        found = read_metadata(self.name, self._path)
        if self._metadata is None:
            self._metadata = found
        elif found.shape != self._metadata.shape:
            raise self._reshaped(found.shape)
        elif not self._metadata.same(found):
            raise written_again(self.name)
        way_out = "raise memory_limit, or write the array again with smaller chunks."
        require(found.chunk_bytes, self.memory_limit, f"{self.name}: a chunk of shape {found.chunks}", way_out)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about codecs that other programs may not know
                return zarr.open_array(str(self._path), mode="r", zarr_format=found.version)
        except Exception as error:  # whatever a broken store makes zarr and its codecs raise
            raise TableError(f"{self.name}: not a readable Zarr array ({line(error)}).") from error

    def _reshaped(self, shape: tuple[int, ...]) -> DataError:
        return self._error(
            f"{self.name}: has the shape {shape} now and had {(self._n_rows, self.n_columns)} when it was opened; "
            "leave it as it is until the work is done, or open it again."
        )

    def _same(self) -> Any:
        array = self._opened()
        if tuple(array.shape) != (self._n_rows, self.n_columns):
            raise self._reshaped(tuple(array.shape))
        return array

    def _row_bytes(self, array: Any) -> int:
        return self.n_columns * (int(np.dtype(array.dtype).itemsize) + self.dtype.itemsize)

    def _check_memory(self, array: Any, rows: int) -> None:
        """That so many rows fit, with what zarr needs for each chunk that they touch."""
        unit = array.chunks or (rows, self.n_columns)
        touched = prod(-(-size // int(n)) for size, n in zip((rows, self.n_columns), unit, strict=True))
        needed = rows * self._row_bytes(array) + ZARR_CHUNK_BYTES * touched
        check_chunk_size(self.name, rows, self.n_columns, needed, self.memory_limit)

    def _slab(self, array: Any, rows: int) -> int:
        """How many rows to read at once: whole chunks, unless too large (then they are unpacked more than once)."""
        unit = getattr(array, "shards", None) or array.chunks
        height = int(unit[0]) if unit and isinstance(unit[0], Integral) else rows
        whole = height * max(1, rows // height)
        fits = SLAB_BYTES // (self.n_columns * int(np.dtype(array.dtype).itemsize))
        return min(whole, max(fits, rows))

    def _read(self, array: Any, start: int, stop: int) -> Raw:
        try:
            with guard(self.name), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of codecs, about damaged numbers
                if self._path is not None and self._metadata is not None:
                    check_blosc(self._path, self._metadata, start, stop)
                piece = np.asarray(array[start:stop])
        except BicliqueError:
            raise
        except Exception as error:  # codecs raise what they like
            raise self._error(
                f"{self.name}: rows {start + self._first} to {stop - 1 + self._first} (counting from {self._first}) "
                f"cannot be read ({line(error)}); a chunk of the array is damaged: write it again."
            ) from error
        return piece

    def _pieces(self, rows: int) -> Iterator[Raw]:
        array, n = self._same(), self._n_rows or 0
        step = self._slab(array, min(rows, n))
        self._check_memory(array, min(step, n))
        for start in range(0, n, step):
            yield self._read(array, start, min(start + step, n))

    def _take(self, rows: IntArray) -> FloatArray:
        """Only the chunks in which there are such rows."""
        array = self._same()
        step = self._slab(array, 1)
        self._check_memory(array, min(step, self._n_rows or 0))
        X = np.empty((len(rows), self.n_columns), dtype=self.dtype)
        slabs, starts = np.unique(rows // step, return_index=True)
        for slab, a, b in zip(slabs.tolist(), starts, [*starts[1:], len(rows)], strict=True):
            piece = self._read(array, slab * step, min((slab + 1) * step, self._n_rows or 0))
            X[a:b] = piece[rows[a:b] - slab * step]
        return X
