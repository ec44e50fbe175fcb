"""Tables in, whole or in chunks, by the ending of their name; never with pickle."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from biclique.exceptions import DataError, TableError
from biclique.io.chunks import ChunkSource
from biclique.io.chunks_in_memory import ArrayChunks, IterableChunks
from biclique.io.formats import FORMATS, find_format, formats, listed
from biclique.io.mapped_chunks import select_features
from biclique.io.roles import Roles, Table, checked
from biclique.io.safe_files import guard
from biclique.io.zarr_files import ZarrChunks, is_stored
from biclique.printable import printable
from biclique.runtime.memory import parse_memory_limit


def read_table(
    path: str | os.PathLike[str],
    roles: Roles | None = None,
    *,
    header: bool | None = None,
    drop_missing: bool = False,
    memory_limit: object = "auto",
) -> Table:
    """Read a table by the ending of its name.

    A missing or infinite value is an error that names its row and column, unless ``drop_missing`` leaves such
    rows out. ``header`` says whether a text file's first line holds names; by default it does unless all of
    its fields are numbers. The text of a missing label or id is empty.

    ``memory_limit`` is "auto" (half of what is free), a number of bytes or text like "4GB". A table that needs more
    is a MemoryLimitError, before it is allocated.
    """
    limit = parse_memory_limit(memory_limit)
    file, name = Path(path), printable(path)
    kind = find_format(file)
    if kind is None:
        raise TableError(f"{name}: unknown kind of table; the name must end in one of {', '.join(FORMATS)}.")
    with guard(name):
        if not file.exists():
            raise TableError(f"{name}: no such {'folder' if kind.place == 'folder' else 'file'}.")
        return checked(kind.read(file, roles or Roles(), limit, header), drop_missing)


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
    return select_features(source if isinstance(source, ChunkSource) else _open_object(source, limit), roles, limit)


def is_chunked(X: Any) -> bool:
    """Whether rows are to be read from X in chunks: a source, a path, or a stored array such as Zarr's and h5py's.

    An array that calculates (it has ``__array_ufunc__``, as NumPy's, Dask's and xarray's) counts as rows in memory.
    """
    if isinstance(X, (ChunkSource, str, os.PathLike)):
        return True
    return is_stored(X) and not hasattr(X, "__array_ufunc__")


def _open_path(path: Path, roles: Roles, limit: int) -> ChunkSource:
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
    return kind.chunks(path, roles, limit)


def _open_object(source: Any, limit: int) -> ChunkSource:
    if isinstance(source, np.ndarray) or hasattr(source, "tocsr"):
        return ArrayChunks(source)
    if is_stored(source):
        return ZarrChunks(source, memory_limit=limit)
    if hasattr(source, "__array__"):
        return ArrayChunks(source)
    if isinstance(source, Iterable) or callable(source):
        return IterableChunks(source)
    raise DataError(
        f"cannot read rows from {type(source).__name__}; pass a path, an array, a Zarr array, a list of arrays, or a "
        "function that returns a fresh iterator of arrays."
    )
