"""Arrays as tables: .npy, .npz and Zarr. Nothing is unpickled, headers are not trusted, and codecs run no code."""

import json
import struct
import sys
import zipfile
from collections.abc import Callable, Collection
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from biclique.exceptions import TableError, printable
from biclique.runtime.memory import require_memory
from biclique.tables.frames import as_frame, dask
from biclique.tables.parts import FEWER, Parts
from biclique.tables.text_form import TextForm

ARRAY_BLOCK = 2**26
"""Bytes of an array that are read at once."""
UTF_32 = f"utf-32-{sys.byteorder[0]}e"
"""How NumPy stores texts."""
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


def as_table(path: Path, array: Any) -> Any:
    """The same array, if it is a table of numbers."""
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise TableError(
            f"{printable(path)}: needs a two-dimensional array of numbers, got {array.ndim} dimensions of "
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
    return as_table(path, np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(path: Path, form: TextForm, texts: Collection[str]) -> Any:  # noqa: ARG001
    """The array called X, or the only one with two dimensions; and those of ``texts`` with one value for each row."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    require_memory(size, f"{printable(path)}: its arrays", FEWER)
    arrays = {}
    with np.load(path, allow_pickle=False) as found:
        for key in found.files:
            with suppress(ValueError):  # Python's objects, and what is no array
                arrays[key] = found[key]
    if {"format", "shape", "data"} <= {*arrays}:
        arrays["X"] = sparse_rows(path, arrays["shape"])
    tables = ["X"] if "X" in arrays else [key for key, array in arrays.items() if array.ndim == 2]
    if len(tables) != 1:
        raise TableError(
            f"{printable(path)}: needs an array called X or one two-dimensional array, none of Python's objects; it "
            f"has {', '.join(map(repr, sorted(arrays)[:20])) or 'none'}."
        )
    frame = as_frame(as_table(path, arrays[tables[0]]))
    for key in texts:
        if key in arrays and arrays[key].shape == (len(frame),):
            values = arrays[key].astype(str)
            values.tobytes().decode(UTF_32)  # refuses texts that are not Unicode
            frame[key] = values
    return frame


def sparse_rows(path: Path, shape: NDArray[Any]) -> NDArray[Any]:
    """The numbers of a sparse matrix that SciPy's ``save_npz`` wrote, after a look at its indices."""
    require_memory(8 * prod(map(int, shape)), f"{printable(path)}: the sparse matrix as a table", FEWER)
    X = sparse.load_npz(path)
    if hasattr(X, "check_format"):
        X.check_format()
    return np.asarray(X.toarray())


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

    def check(node: dict[str, Any]) -> dict[str, Any]:
        """Refuse codecs that are not known, also inside shards."""
        for key in ("codecs", "index_codecs", "filters", "compressor"):
            found = node.get(key) or []
            for codec in found if isinstance(found, list) else [found]:
                kind = codec.get("name", codec.get("id")) if isinstance(codec, dict) else codec
                if not isinstance(kind, str) or kind.removeprefix("numcodecs.") not in CODECS:
                    raise TableError(
                        f"{name}: its codec {printable(repr(kind))} is not read, because codecs can run code."
                    )
        return node

    metadata = json.loads(described[0].read_text(encoding="utf-8"), object_hook=check)
    array = as_table(path, zarr.open_array(str(path), mode="r"))
    chunk = prod(array.chunks) * array.dtype.itemsize
    require_memory(chunk, f"{name}: a chunk of shape {array.chunks}", "write it with smaller chunks.")
    last = metadata.get("compressor") or (metadata.get("codecs") or [None])[-1]
    if isinstance(last, dict) and "blosc" in (last.get("id"), last.get("name")):
        check_blosc(path, chunk)
    return array


def check_blosc(path: Path, size: int) -> None:
    """Refuse chunks whose header promises other sizes: Blosc would read beyond their end."""
    for file in path.rglob("*[0-9]"):
        if file.is_file():
            with file.open("rb") as stream:
                header = stream.read(16)
            if len(header) < 16 or struct.unpack_from("<III", header, 4)[::2] != (size, file.stat().st_size):
                raise TableError(f"{printable(path)}: its chunk {printable(file.relative_to(path))} is damaged.")
