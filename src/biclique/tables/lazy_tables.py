"""Tables larger than memory as collections of Dask: nothing is read before it is needed, and a part at a time.

The parts depend on the file alone, so every pass gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from biclique.exceptions import TableError, optional, printable
from biclique.tables.array_tables import open_zarr, read_npy
from biclique.tables.frames import DTYPES, from_arrow, kind_of, pandas
from biclique.tables.parquet_tables import columns_of, open_parquet, with_texts
from biclique.tables.text_form import Kind, TextForm
from biclique.tables.text_tables import UTF_16, Head, find_head, in_utf8, split_fields, typed_frame, without_last_gaps

DASK = "tables larger than memory are read with Dask: pip install 'biclique[dask]'"
"""The sentence about packages that are not installed."""
TEXT_BLOCK = 2**25
"""Bytes of a text file that are read at once."""
FIRST_BYTES = 2**22
"""Bytes of a text file that say what its columns hold."""
ARRAY_BLOCK = 2**26
"""Bytes of an array that are read at once."""


@dataclass(frozen=True)
class Stamp:
    """When and how long a file was written: one that changes between two passes is refused."""

    path: Path
    size: int
    time: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """That of the file as it is now."""
        found = path.stat()
        return cls(path, found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Refuse a file that was written since."""
        if Stamp.of(self.path) != self:
            raise TableError(
                f"{printable(self.path)}: was written again or replaced; leave it as it is until the work is done."
            )


def _frame_of(read: Callable[[Any], Any], parts: Sequence[Any], meta: Any, name: str, notes: Sequence[str] = ()) -> Any:
    """A Dask frame of what is read of every part."""
    frame = optional("dask.dataframe", DASK).from_map(read, parts, meta=meta, enforce_metadata=False)
    frame.attrs = {"name": name, "notes": notes}
    return frame


# Text


def open_text(path: Path, form: TextForm, texts: Sequence[str]) -> Any:
    """A Dask frame of a text file, whose columns hold what they hold in its first rows."""
    name = printable(path)
    with path.open("rb") as file:
        first = file.read(FIRST_BYTES) + file.readline()
    if first.startswith((b"\x1f\x8b", *UTF_16)):
        raise TableError(f"{name}: does not fit the memory, and can not be read in parts: unpack it, in UTF-8.")
    text = in_utf8(name, first, form.encoding)
    head = find_head(path, text, form)
    seen = typed_frame(split_fields(name, text, head, head.start), form, texts)
    kinds = {column: "text" if column in texts else kind_of(seen[column]) for column in head.names}
    rows = text[head.start :].decode().encode(form.encoding.replace("-sig", ""))
    edges = block_edges(path, len(first) - len(rows))
    read = partial(read_block, Stamp.of(path), form, head, kinds, texts)
    return _frame_of(read, list(pairwise(edges)), seen.iloc[:0], name, head.notes)


def block_edges(path: Path, start: int) -> list[int]:
    """The bytes at which blocks begin and the last one ends: ends of lines outside quotes."""
    edges = [start]
    with path.open("rb") as file:
        file.seek(start)
        while block := file.read(TEXT_BLOCK):
            quotes = (block + file.readline()).count(b'"')
            while quotes % 2 and (line := file.readline()):
                quotes += line.count(b'"')
            edges.append(file.tell())
    return edges


def read_block(
    stamp: Stamp, form: TextForm, head: Head, kinds: dict[str, Kind], texts: Sequence[str], place: tuple[int, int]
) -> Any:
    """The rows between two bytes, with the kinds of the first rows."""
    stamp.check()
    with stamp.path.open("rb") as file:
        file.seek(place[0])
        data = file.read(place[1] - place[0])
    name = f"{printable(stamp.path)} (from byte {place[0]} on)"
    data = in_utf8(name, data, form.encoding)
    table = split_fields(name, without_last_gaps(data, head) if place[1] == stamp.size else data, head)
    frame = typed_frame(table, form, texts)
    for column, kind in kinds.items():
        found = kind_of(frame[column])
        if found != kind and frame[column].isna().all():
            frame[column] = pandas().Series([None] * len(frame), dtype=DTYPES[kind])
        elif found != kind and kind == "text":
            frame[column] = table.column(column).to_pandas().astype(object)
        elif found != kind:
            raise TableError(
                f"{name}: column {column!r} holds {kind}s in the first rows and {found}s here: mend the values, or "
                "leave it out."
            )
    frame.attrs["name"] = name
    return frame


# Parquet


def open_groups(path: Path, form: TextForm, texts: Sequence[str]) -> Any:  # noqa: ARG001
    """A Dask frame of the groups of rows of a Parquet file or of a folder of files."""
    dataset = open_parquet(path)
    columns = columns_of(path, dataset.schema)
    groups = [group for fragment in dataset.fragments for group in fragment.split_by_row_group()]
    if not groups:
        raise TableError(f"{printable(path)}: the table has no rows.")
    parts = [(Stamp.of(Path(group.path)), group) for group in groups]
    nothing = from_arrow(with_texts(dataset.schema.empty_table().select(columns), texts))
    return _frame_of(partial(read_group, dataset.schema, columns, texts), parts, nothing, printable(path))


def read_group(schema: Any, columns: Sequence[str], texts: Sequence[str], part: tuple[Stamp, Any]) -> Any:
    """One group of rows."""
    stamp, group = part
    stamp.check()
    frame = from_arrow(with_texts(group.to_table(schema=schema, columns=list(columns)), texts))
    frame.attrs["name"] = printable(stamp.path)
    return frame


# Arrays


def open_npy(path: Path, form: TextForm, texts: Sequence[str]) -> Any:  # noqa: ARG001
    """A Dask array of a memory map."""
    array = read_npy(path)
    rows = max(1, ARRAY_BLOCK // max(1, array.dtype.itemsize * array.shape[1]))
    return optional("dask.array", DASK).from_array(array, chunks=(rows, -1))


def open_chunks(path: Path, form: TextForm, texts: Sequence[str]) -> Any:  # noqa: ARG001
    """A Dask array of the chunks of a Zarr array."""
    return optional("dask.array", DASK).from_zarr(open_zarr(path)).rechunk({1: -1})
