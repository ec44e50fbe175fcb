"""Zarr arrays, and arrays that are stored alike: rows in chunks.

A Zarr array names the codecs that decode it, and some of those run code that the data hold (pickle). Only the codecs
listed here are let through, and only real numbers.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import BicliqueError, DataError, TableError, optional, printable
from biclique.io.chunks import (
    ChunkSource,
    Raw,
    Stamp,
    check_chunk_size,
    guard,
    line,
    real_table,
    stamp,
    written_again,
)
from biclique.io.roles import Roles
from biclique.io.sources import select_features
from biclique.runtime import parse_memory_limit, require

# What a folder says about itself, read as plain JSON before zarr decodes anything


LARGEST = 2**20  # bytes of metadata
_CHECKSUMS = {"crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"}
_COMPRESSORS = {"blosc", "zstd", "gzip", "zlib", "lz4", "bz2", "lzma"}
CODECS_2 = _COMPRESSORS | {"delta", "shuffle", "fixedscaleoffset", "quantize", "bitround", "astype"} | _CHECKSUMS
CODECS_3 = {"bytes", "transpose", "blosc", "zstd", "gzip", "crc32c"} | {f"numcodecs.{name}" for name in CODECS_2}
REAL_3 = {
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
}
REAL_2 = re.compile(r"\|b1|[<>|][iu][1248]|[<>][f][248]")
DTYPES = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])|bool|u?int(8|16|32|64)|float(16|32|64)")


@dataclass(frozen=True)
class ZarrMetadata:
    """What is needed before the array is opened."""

    version: int
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    stamp: Stamp
    prefix: str  # of the names of chunks
    separator: str
    blosc_end: int | None  # bytes after a blosc buffer in the file of a chunk; None without blosc

    def same(self, later: ZarrMetadata) -> bool:
        """Whether a later look met the same array."""
        return (self.version, self.chunks) == (later.version, later.chunks) and self.stamp.same_file(later.stamp)

    @property
    def chunk_bytes(self) -> int:
        """At most; float64 is the largest type."""
        return 8 * prod(self.chunks)


def check_blosc(folder: Path, found: ZarrMetadata, start: int, stop: int) -> None:
    """Compare the sizes in the headers of these rows' chunks with their files: blosc itself reads beyond the end."""
    if found.blosc_end is None:
        return
    height, width = found.chunks
    for i in range(start // height, (stop - 1) // height + 1):
        for j in range(-(-found.shape[1] // width)):
            file = folder / f"{found.prefix}{i}{found.separator}{j}"
            if file.is_file():
                with file.open("rb") as stream:
                    header = stream.read(16)
                unpacked, packed = int.from_bytes(header[4:8], "little"), int.from_bytes(header[12:16], "little")
                held = file.stat().st_size - found.blosc_end
                if len(header) < 16 or packed > held or unpacked > found.chunk_bytes:
                    raise ValueError(f"its header promises {packed} bytes of {unpacked}, it has {held}")


def read_metadata(name: str, folder: Path) -> ZarrMetadata:
    """The metadata of the array in a folder, if all that it asks for is known and harmless."""
    for version, file in ((3, folder / "zarr.json"), (2, folder / ".zarray")):
        if file.is_file():
            with guard(name):
                found = _json(name, file)
                if version == 3 and found.get("node_type") == "group":
                    raise _group(name, folder)
                if version == 2 and (folder / ".zattrs").is_file():
                    _json(name, folder / ".zattrs")
                shape, chunks = _checked_3(name, found) if version == 3 else _checked_2(name, found)
                return ZarrMetadata(version, shape, chunks, stamp(file), *_stored(version, found))
    if (folder / ".zgroup").is_file():
        raise _group(name, folder)
    raise TableError(f"{name}: not a readable Zarr array (there is no zarr.json or .zarray in it).")


def _stored(version: int, found: dict[str, Any]) -> tuple[str, str, int | None]:
    """How the files of chunks are named, and what ends them; of metadata that were checked."""
    if version == 2:
        compressor = found.get("compressor") or {}
        return "", found.get("dimension_separator", "."), 0 if compressor.get("id") == "blosc" else None
    keys = found["chunk_key_encoding"]
    default = keys["name"] == "default"
    separator = (keys.get("configuration") or {}).get("separator", "/" if default else ".")
    names = [codec["name"] for codec in found["codecs"]]
    end = 0
    while names and names[-1] == "crc32c":
        names.pop()
        end += 4
    return f"c{separator}" if default else "", separator, end if names and names[-1] == "blosc" else None


def _json(name: str, file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise TableError(f"{name}: not a readable Zarr array ({file.name} has more than {LARGEST} bytes).")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{name}: not a readable Zarr array ({file.name}: {line(error)}).") from error
    if not isinstance(found, dict):
        raise _wrong(name, file.name, found)
    return found


def _wrong(name: str, what: str, value: object) -> TableError:
    return TableError(f"{name}: not a readable Zarr array ({what} is {line(repr(value))}).")


def _group(name: str, folder: Path) -> TableError:
    names = sorted(
        f.name
        for f in folder.iterdir()
        if (f / ".zarray").is_file()
        or ((f / "zarr.json").is_file() and _json(name, f / "zarr.json").get("node_type") == "array")
    )
    example = f": pass {line(folder / names[0])}" if names else ""
    return TableError(f"{name}: is a Zarr group of {len(names)} arrays; pass one of its arrays{example}.")


def _sizes(name: str, what: str, value: object, least: int) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(n) is int and least <= n < 2**62 for n in value):
        raise _wrong(name, what, value)
    return tuple(value)


def _part(name: str, what: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(name, what, value)
    return value


def _chunks(name: str, what: str, value: object, shape: tuple[int, ...]) -> tuple[int, ...]:
    chunks = _sizes(name, what, value, 1)
    if len(chunks) != len(shape):
        raise _wrong(name, what, value)
    return chunks


def _checked_3(name: str, found: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if found.get("zarr_format") != 3 or found.get("node_type") != "array":
        raise _wrong(name, "zarr_format, node_type", (found.get("zarr_format"), found.get("node_type")))
    shape = _sizes(name, "shape", found.get("shape"), 0)
    grid = _part(name, "chunk_grid", found.get("chunk_grid"))
    keys = _part(name, "chunk_key_encoding", found.get("chunk_key_encoding"))
    if grid.get("name") != "regular" or keys.get("name") not in ("default", "v2") or found.get("storage_transformers"):
        what = "chunk_grid, chunk_key_encoding, storage_transformers"
        raise _wrong(name, what, (grid.get("name"), keys.get("name"), found.get("storage_transformers")))
    separator = _part(name, "the configuration of chunk_key_encoding", keys.get("configuration") or {})
    if separator.get("separator", "/") not in ("/", "."):
        raise _wrong(name, "separator", separator["separator"])
    configuration = _part(name, "the configuration of chunk_grid", grid.get("configuration"))
    chunks = _chunks(name, "chunk_shape", configuration.get("chunk_shape"), shape)
    _check_codecs(name, found.get("codecs"), chunks)
    kind = found.get("data_type")
    if not isinstance(kind, str) or kind not in REAL_3:
        raise TableError(f"{name}: holds {line(kind)}, not real numbers; write it again as float64.")
    return shape, chunks


def _check_codecs(name: str, codecs: object, chunks: tuple[int, ...], sharded: bool = False) -> None:
    if not isinstance(codecs, list) or not codecs:
        raise _wrong(name, "codecs", codecs)
    for codec in codecs:
        said = _part(name, "a codec", codec)
        which, options = said.get("name"), _part(name, "the configuration of a codec", said.get("configuration", {}))
        if which == "sharding_indexed" and not sharded:
            inner = _chunks(name, "chunk_shape of a shard", options.get("chunk_shape"), chunks)
            if any(outer % n for outer, n in zip(chunks, inner, strict=True)):
                raise _wrong(name, "chunk_shape of a shard", list(inner))
            _check_codecs(name, options.get("codecs"), inner, sharded=True)
            _check_codecs(name, options.get("index_codecs"), inner, sharded=True)
        else:
            _check_codec(name, which, options, CODECS_3)


def _check_codec(name: str, which: object, options: dict[str, Any], known: set[str]) -> None:
    if not isinstance(which, str) or which not in known:
        raise TableError(
            f"{name}: its codec {line(repr(which))} is not read, because codecs can run code; write the array again "
            "with zstd, gzip, blosc or without compression."
        )
    for key in ("dtype", "astype", "encode_dtype", "decode_dtype"):
        kind = options.get(key, "<f8")
        if not isinstance(kind, str) or not DTYPES.fullmatch(kind):
            raise _wrong(name, f"{key} of the codec {which!r}", kind)


def _checked_2(name: str, found: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if found.get("zarr_format") != 2:
        raise _wrong(name, "zarr_format", found.get("zarr_format"))
    shape = _sizes(name, "shape", found.get("shape"), 0)
    chunks = _chunks(name, "chunks", found.get("chunks"), shape)
    kind, separator = found.get("dtype"), found.get("dimension_separator", ".")
    filters, compressor = found.get("filters") or [], found.get("compressor")
    if not isinstance(filters, list):
        raise _wrong(name, "filters", filters)
    for codec in [*filters, *([] if compressor is None else [compressor])]:
        said = _part(name, "a codec", codec)
        _check_codec(name, said.get("id"), said, CODECS_2)
    if not isinstance(kind, str) or not REAL_2.fullmatch(kind):
        raise TableError(f"{name}: holds {line(kind)}, not real numbers; write it again as float64.")
    if separator not in (".", "/") or found.get("order") not in ("C", "F"):
        raise _wrong(name, "dimension_separator, order", (separator, found.get("order")))
    return shape, chunks


# Rows in chunks


SLAB_BYTES = 2**28  # the most that is read from a Zarr array at once, unless one chunk of rows asked for has more
ZARR_CHUNK_BYTES = 2**10  # what zarr needs to find one chunk, beside its numbers


def import_zarr() -> Any:
    """zarr, or the line that installs it."""
    return optional("zarr", "Zarr arrays need zarr: pip install 'zarr>=3'")


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
            with warnings.catch_warnings(action="ignore"):  # about codecs that other programs may not know
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
            with guard(self.name), warnings.catch_warnings(action="ignore"):  # of codecs, about damaged numbers
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
