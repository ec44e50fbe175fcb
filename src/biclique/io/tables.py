"""Tables in, whole or in chunks, by the ending of their name; never with pickle.

A new format is one ``TableFormat`` in ``FORMATS``, registered for each of its endings.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from biclique.exceptions import DataError, TableError, printable
from biclique.io.arrow import import_pyarrow
from biclique.io.chunks import FORMATS, ChunkSource, TableFormat, find_format, guard, held, is_path, open_file, open_npy
from biclique.io.csv_files import TextChunks, TextColumns, TextSink, read_text, read_text_columns
from biclique.io.fields import TextForm
from biclique.io.numpy_files import NpySink, read_numpy
from biclique.io.parquet_files import ParquetChunks, ParquetColumns, ParquetSink, read_parquet_columns
from biclique.io.roles import Roles, Table, checked
from biclique.io.sources import ArrayChunks, IterableChunks, select_features
from biclique.io.typed_columns import Column, ColumnSource, TypedTable
from biclique.io.zarr_files import ZarrChunks, import_zarr, is_stored, open_zarr
from biclique.runtime import Tick, parse_memory_limit
from biclique.runtime.namespace import is_dask

CSV = TableFormat(
    "CSV",
    (".csv", ".txt", ".csv.gz", ".txt.gz"),
    read_text,
    TextChunks,
    TextSink,
    is_text=True,
    read_columns=read_text_columns,
    open_columns=TextColumns,
)
TSV_ENDINGS = (".tsv", ".tab", ".tsv.gz", ".tab.gz")

FORMATS.update(
    (ending, kind)
    for kind in (
        CSV,
        replace(CSV, name="TSV", endings=TSV_ENDINGS, writer=partial(TextSink, delimiter="\t"), delimiter="\t"),
        TableFormat(".npy", (".npy",), read_numpy, open_npy, NpySink),
        TableFormat(".npz", (".npz",), read_numpy),
        TableFormat(
            "Parquet",
            (".parquet", ".pq"),
            held(partial(ParquetChunks, folders=True)),
            ParquetChunks,
            ParquetSink,
            "both",
            import_pyarrow,
            read_columns=read_parquet_columns,
            open_columns=ParquetColumns,
        ),
        TableFormat(".zarr", (".zarr",), held(open_zarr), open_zarr, place="folder", needs=import_zarr),
    )
    for ending in kind.endings
)


# Reading


def read_table(
    path: str | os.PathLike[str],
    roles: Roles | None = None,
    *,
    header: bool | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    drop_missing: bool | None = False,
    memory_limit: object = "auto",
    tick: Tick | None = None,
) -> Table:
    """Read a table by the ending of its name.

    A missing or infinite value is an error that names its row and column, unless ``drop_missing`` leaves such
    rows out. Booleans are 0 and 1. The text of a missing label or id is empty.

    Text files: ``header`` says whether the first line holds names; by default it does unless all of its fields are
    numbers. ``decimal`` is "." or ",". ``encoding`` is one of Python's, such as "latin-1".

    ``memory_limit`` is "auto" (half of what is free), a number of bytes or text like "4GB". A table that needs more
    is a MemoryLimitError, before it is allocated. ``tick`` hears of the share that was read, from 0 to 1.
    """
    limit, form = parse_memory_limit(memory_limit), TextForm(header, decimal, encoding)
    file, kind = Path(path), _known_format(path)
    with guard(printable(path)):
        return checked(kind.read(file, roles or Roles(), limit, kind.form(form), tick), drop_missing)


def _known_format(path: str | os.PathLike[str]) -> TableFormat:
    """The format of a file that exists."""
    name, kind = printable(path), find_format(path)
    if kind is None:
        raise TableError(f"{name}: unknown kind of table; the name must end in one of {', '.join(FORMATS)}.")
    with guard(name):
        if not Path(path).exists():
            raise TableError(f"{name}: no such {'folder' if kind.place == 'folder' else 'file'}.")
    return kind


def open_chunks(
    source: Any,
    *,
    roles: Roles | None = None,
    memory_limit: object = "auto",
    form: TextForm | None = None,
    tick: Tick | None = None,
) -> ChunkSource:
    """Rows to pass over: a path (.csv, .csv.gz, .npy, .parquet, .zarr), an array, a Zarr array, or chunks.

    Chunks are a list of two-dimensional arrays or frames, an object that gives a fresh iterator of them each time, or
    a function without arguments that returns one. ``roles`` names columns that are not features: by name, or without
    names by their number as text ("0", "1", …).

    ``memory_limit`` ("auto": half of what is free, a number of bytes, or text like "4GB") is for what is read of a
    file at once: more is a MemoryLimitError, before it is allocated. ``form`` says how a text file is written, and
    ``tick`` hears of the share that was read while its rows are counted.
    """
    roles = roles or Roles()
    limit = parse_memory_limit(memory_limit)
    if is_path(source):
        return open_file(Path(source), roles, limit, form, tick)
    return select_features(source if isinstance(source, ChunkSource) else _open_object(source, limit), roles, limit)


def read_columns(
    path: str | os.PathLike[str],
    form: TextForm | None = None,
    *,
    memory_limit: object = "auto",
    tick: Tick | None = None,
) -> TypedTable:
    """Read every column of a table with its kind: numbers, booleans, dates or texts.

    Columns that are not numbers are not refused, and missing values stay. ``form`` says how a text file is written.
    """
    limit, kind = parse_memory_limit(memory_limit), _known_format(path)
    with guard(printable(path)):
        if kind.read_columns is not None:
            return kind.read_columns(Path(path), kind.form(form), limit, tick)
        table = kind.read(Path(path), Roles(), limit, kind.form(form), tick)
        columns = [Column(key, "number", values) for key, values in zip(table.columns, table.X.T, strict=True)]
        return TypedTable(table.name, tuple(columns), len(table.X))


def open_columns(
    path: str | os.PathLike[str],
    form: TextForm | None = None,
    *,
    memory_limit: object = "auto",
    tick: Tick | None = None,
) -> ColumnSource:
    """The same table to be passed over in chunks; the kinds of its columns are settled before the first chunk.

    A format that holds nothing but numbers is read whole.
    """
    kind = _known_format(path)
    if kind.open_columns is None or Path(path).is_dir():
        return read_columns(path, form, memory_limit=memory_limit, tick=tick)
    with guard(printable(path)):
        return kind.open_columns(Path(path), kind.form(form), parse_memory_limit(memory_limit), tick)


def is_chunked(X: Any) -> bool:
    """Whether rows are to be read from X in chunks: a source, a path, or a stored array such as Zarr's and h5py's.

    An array that calculates (it has ``__array_ufunc__``, as NumPy's, Dask's and xarray's) counts as rows in memory.
    """
    if is_path(X) or isinstance(X, ChunkSource):
        return True
    return is_stored(X) and not hasattr(X, "__array_ufunc__")


def _open_object(source: Any, limit: int) -> ChunkSource:
    if is_dask(source):
        raise DataError(
            f"open_chunks does not read a {type(source).__name__} of Dask: pass it to fit or predict as it is; its "
            "chunks stay on the workers."
        )
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
