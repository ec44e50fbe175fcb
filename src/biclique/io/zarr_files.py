"""Zarr arrays, and arrays that are stored alike: rows in chunks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from importlib import import_module
from math import prod
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import BicliqueError, DataError, MissingExtraError, TableError
from biclique.io.chunks import ChunkSource, Raw, real_table
from biclique.io.mapped_chunks import select_features
from biclique.io.roles import Roles
from biclique.io.safe_files import check_chunk_size, guard, line, written_again
from biclique.io.zarr_metadata import ZarrMetadata, check_blosc, read_metadata
from biclique.printable import printable
from biclique.runtime.memory import parse_memory_limit, require

SLAB_BYTES = 2**28  # the most that is read from a Zarr array at once, unless one chunk of rows asked for has more
ZARR_CHUNK_BYTES = 2**10  # what zarr needs to find one chunk, beside its numbers


def import_zarr() -> Any:
    """zarr, or the line that installs it."""
    try:
        return import_module("zarr")
    except ImportError as error:
        raise MissingExtraError("Zarr arrays need zarr: pip install 'zarr>=3'") from error


def open_zarr(path: Path, roles: Roles, limit: int) -> ChunkSource:
    """The features of a Zarr array in a folder."""
    return select_features(ZarrChunks(path, memory_limit=limit), roles, limit)


def is_stored(X: Any) -> bool:
    """Whether X works like a Zarr array: it has a shape and chunks, and gives the rows that are asked for."""
    return all(hasattr(X, name) for name in ("shape", "chunks", "__getitem__"))


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
