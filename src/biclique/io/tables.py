"""Tables in, whole or in chunks, by the ending of their name; never with pickle.

A new format is one ``TableFormat`` in ``FORMATS``, registered for each of its endings.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from biclique.exceptions import DataError, TableError, printable
from biclique.io.arrow import import_pyarrow
from biclique.io.chunks import (
    ArrayChunks,
    ChunkSource,
    IterableChunks,
    TableReader,
    guard,
    held,
    select_features,
)
from biclique.io.csv_files import TextChunks, TextSink, read_text
from biclique.io.numpy_files import NpySink, open_npy, read_numpy
from biclique.io.parquet_files import ParquetChunks, ParquetColumns, ParquetSink, open_whole, read_parquet_columns
from biclique.io.roles import Roles, Table, checked
from biclique.io.text_columns import TextColumns, read_text_columns
from biclique.io.typed_columns import Column, ColumnSource, TextForm, TypedTable
from biclique.io.zarr_files import ZarrChunks, import_zarr, is_stored, open_zarr
from biclique.runtime import Tick, parse_memory_limit

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


def _text(name: str, endings: tuple[str, ...], delimiter: str) -> TableFormat:
    """A format of text; "" is for the delimiter that the first line has."""

    def written(form: TextForm) -> TextForm:
        return replace(form, delimiter=form.delimiter or delimiter)

    return TableFormat(
        name,
        endings,
        lambda file, roles, limit, form, tick: read_text(file, roles, limit, written(form), tick),
        lambda file, roles, limit, form, tick: TextChunks(file, roles, limit, written(form), tick),
        partial(TextSink, delimiter=delimiter or ","),
        is_text=True,
        read_columns=lambda file, form, limit, tick: read_text_columns(file, written(form), limit, tick),
        open_columns=lambda file, form, limit, tick: TextColumns(file, written(form), limit, tick),
    )


FORMATS: dict[str, TableFormat] = {
    ending: kind
    for kind in (
        _text("CSV", (".csv", ".txt", ".csv.gz", ".txt.gz"), ""),
        _text("TSV", (".tsv", ".tab", ".tsv.gz", ".tab.gz"), "\t"),
        TableFormat(".npy", (".npy",), read_numpy, open_npy, NpySink),
        TableFormat(".npz", (".npz",), read_numpy),
        TableFormat(
            "Parquet",
            (".parquet", ".pq"),
            held(open_whole),
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
}
"""By the ending of the name, in small letters."""


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
        return checked(kind.read(file, roles or Roles(), limit, form, tick), drop_missing)


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
    if isinstance(source, (str, os.PathLike)):
        return _open_path(Path(source), roles, limit, form, tick)
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
    limit, kind, form = parse_memory_limit(memory_limit), _known_format(path), form or TextForm()
    with guard(printable(path)):
        if kind.read_columns is not None:
            return kind.read_columns(Path(path), form, limit, tick)
        table = kind.read(Path(path), Roles(), limit, form, tick)
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
        return kind.open_columns(Path(path), form or TextForm(), parse_memory_limit(memory_limit), tick)


def is_chunked(X: Any) -> bool:
    """Whether rows are to be read from X in chunks: a source, a path, or a stored array such as Zarr's and h5py's.

    An array that calculates (it has ``__array_ufunc__``, as NumPy's, Dask's and xarray's) counts as rows in memory.
    """
    if isinstance(X, (ChunkSource, str, os.PathLike)):
        return True
    return is_stored(X) and not hasattr(X, "__array_ufunc__")


def is_dask(X: Any) -> bool:
    """Whether X is a collection of Dask's, by Dask's own protocol: not by its class, of which there are several."""
    if isinstance(X, type) or not hasattr(X, "__dask_graph__"):
        return False
    return hasattr(X, "partitions") or X.__dask_graph__() is not None  # xarray has the method with any array


def _open_path(path: Path, roles: Roles, limit: int, form: TextForm | None, tick: Tick | None) -> ChunkSource:
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
    return kind.chunks(path, roles, limit, *([form or TextForm(), tick] if kind.is_text else []))


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
