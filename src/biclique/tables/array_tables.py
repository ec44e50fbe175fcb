"""Arrays as tables: .npy, .npz and Zarr. Nothing is unpickled, headers are not trusted, and codecs run no code."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from biclique.exceptions import TableError, printable
from biclique.runtime.memory import require_memory
from biclique.tables.frames import as_frame, dask
from biclique.tables.parts import Parts
from biclique.tables.text_form import TextForm

ARRAY_BLOCK = 2**26
"""Bytes of an array that are read at once."""
METADATA = ("zarr.json", ".zarray")
"""Files in which an array describes itself, of Zarr 3 and 2."""
MOST_METADATA = 2**20
"""Bytes of such a file; more is refused."""
CODECS = frozenset(
    [
        *("bytes", "endian", "transpose", "sharding_indexed", "crc32c", "crc32", "adler32", "fletcher32"),
        *("blosc", "zlib", "gzip", "zstd", "lz4", "bz2", "lzma"),
        *("delta", "shuffle", "fixedscaleoffset", "bitround", "quantize", "packbits"),
    ]
)
"""Codecs of Zarr that compute and run no code of others."""


def as_table(name: str, array: Any) -> Any:
    """The same array, if it is a table of numbers."""
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise TableError(
            f"{name}: needs a two-dimensional array of numbers, got {array.ndim} dimensions of "
            f"{printable(array.dtype)}."
        )
    return array


def read_array(open_array: Callable[[Path], Any], path: Path, form: TextForm, texts: Collection[str]) -> Any:  # noqa: ARG001
    """The whole array as a frame."""
    return as_frame(open_array(path)[:])


def array_parts(open_array: Callable[[Path], Any], path: Path, form: TextForm, texts: Collection[str]) -> Parts:  # noqa: ARG001
    """Blocks of about 64 MiB of its rows, of whole chunks if it has chunks."""
    array = open_array(path)
    multiple = getattr(array, "chunks", (1,))[0]
    rows = max(1, ARRAY_BLOCK // max(1, array.dtype.itemsize * array.shape[1] * multiple)) * multiple
    checked = None if isinstance(array, np.memmap) else array  # all rows of a map would travel to the workers

    def read(path: Path, start: int) -> Any:
        return as_frame((open_array(path) if checked is None else checked)[start : start + rows])

    return read, [(path, start) for start in range(0, array.shape[0], rows)], as_frame(array[:0])


def open_npy(path: Path) -> Any:
    """The array of a .npy file, as a memory map."""
    return as_table(printable(path), np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(path: Path, form: TextForm, texts: Collection[str]) -> Any:  # noqa: ARG001
    """The array called X, or the only one with two dimensions; and those of ``texts`` with one value for each row."""
    name = printable(path)
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        require_memory(sum(member.file_size for member in members), f"{name}: its arrays", "take fewer rows.")
        found = {member.filename.removesuffix(".npy"): array_in(archive, member) for member in members}
    arrays = {key: array for key, array in found.items() if array is not None}
    if {"format", "shape", "data"} <= {*arrays}:
        arrays["X"] = _dense(name, arrays)
    tables = ["X"] if "X" in arrays else [key for key, array in arrays.items() if array.ndim == 2]
    if len(tables) != 1:
        shown = ", ".join(map(repr, sorted(found)[:20]))
        raise TableError(
            f"{name}: needs an array called X or one two-dimensional array, none of Python's objects; it has {shown}."
        )
    frame = as_frame(as_table(name, arrays[tables[0]]))
    for key in texts:
        if key in arrays and arrays[key].shape == (len(frame),):
            frame[key] = arrays[key].astype(str)
            "".join(frame[key]).encode()  # refuses texts that are not Unicode
    return frame


def _dense(name: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """The numbers of a sparse matrix that SciPy's ``save_npz`` wrote, after a look at its indices."""
    kind, shape = str(arrays["format"].astype(str)), tuple(arrays["shape"].tolist())
    if kind not in ("csr", "csc", "coo"):
        raise TableError(f"{name}: its sparse matrix has the format {printable(kind)}: save it as csr, csc or coo.")
    require_memory(8 * prod(shape), f"{name}: the sparse matrix as a table", "take fewer rows.")
    data = arrays["data"].astype(np.float64, casting="same_kind")
    try:
        if kind == "coo":
            return np.asarray(sparse.coo_array((data, (arrays["row"], arrays["col"])), shape).toarray())
        matrix = sparse.csr_array if kind == "csr" else sparse.csc_array
        X = matrix((data, arrays["indices"], arrays["indptr"]), shape)
        X.check_format()
    except ValueError as error:
        raise TableError(f"{name}: the places of its sparse matrix are damaged; write it again.") from error
    return np.asarray(X.toarray())


def array_in(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any] | None:
    """The array of a .npy file in an archive, if it has the bytes that its header promises; None for what is none."""
    with archive.open(member) as stream:
        try:
            version = npy.read_magic(stream)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, columns_first, dtype = read(stream)
        except ValueError:
            return None
        if dtype.hasobject:
            return None
        promised, found = prod(shape) * dtype.itemsize, member.file_size - stream.tell()
        if promised != found or min(shape, default=0) < 0:
            raise TableError(
                f"{printable(archive.filename)}: the array {printable(repr(member.filename))} has {found} bytes, its "
                f"header promises {promised}; write it again."
            )
        numbers = np.frombuffer(stream.read(found + 1), dtype)  # with a number, zipfile unpacks no more than that
    return numbers.reshape(shape, order="F" if columns_first else "C")


# Zarr


def open_zarr(path: Path) -> Any:
    """The array of a folder, which is not read yet."""
    zarr = dask("zarr")
    name = printable(path)
    described = [path / file for file in METADATA if (path / file).is_file()]
    if not described:
        raise TableError(f"{name}: not a readable Zarr array: it has neither {METADATA[0]} nor {METADATA[1]}.")
    if described[0].stat().st_size > MOST_METADATA:
        raise TableError(f"{name}: {described[0].name} has more than {MOST_METADATA} bytes.")
    codecs = list(_codecs(json.loads(described[0].read_text(encoding="utf-8"))))
    for codec in codecs:
        if not isinstance(codec, str) or codec.removeprefix("numcodecs.") not in CODECS:
            raise TableError(f"{name}: its codec {printable(repr(codec))} is not read, because codecs can run code.")
    array = as_table(name, zarr.open_array(str(path), mode="r"))
    chunk = prod(array.chunks) * array.dtype.itemsize
    require_memory(chunk, f"{name}: a chunk of shape {array.chunks}", "write it with smaller chunks.")
    if codecs[-1:] == ["blosc"]:
        _check_blosc(path, chunk)
    return array


def _check_blosc(path: Path, size: int) -> None:
    """Refuse chunks whose header promises other sizes: Blosc would read beyond their end."""
    for file in path.rglob("*[0-9]"):
        if file.is_file():
            with file.open("rb") as stream:
                header = stream.read(16)
            if len(header) < 16 or struct.unpack_from("<III", header, 4)[::2] != (size, file.stat().st_size):
                raise TableError(f"{printable(path)}: its chunk {printable(file.relative_to(path))} is damaged.")


def _codecs(metadata: Any) -> Iterator[object]:
    """The names of all codecs in what describes an array, those inside shards among them."""
    if isinstance(metadata, list):
        for part in metadata:
            yield from _codecs(part)
    if not isinstance(metadata, dict):
        return
    for key in ("codecs", "index_codecs", "filters", "compressor"):
        found = metadata.get(key)
        for codec in found if isinstance(found, list) else [found] * (found is not None):
            yield codec.get("name", codec.get("id")) if isinstance(codec, dict) else codec
            yield from _codecs(codec.get("configuration") if isinstance(codec, dict) else None)
