"""Tables larger than memory as collections of Dask: nothing is read before it is needed, and a part at a time.

The parts depend on the file alone, so every pass gives the same bits.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from biclique.exceptions import TableError, optional, printable
from biclique.tables.array_tables import open_zarr, read_npy
from biclique.tables.frames import from_arrow, kind_of
from biclique.tables.parquet_tables import columns_of, open_parquet, with_texts
from biclique.tables.text_form import Kind, TextForm
from biclique.tables.text_tables import (
    Head,
    as_kinds,
    delimiter_of,
    find_head,
    in_utf8,
    no_rows,
    split_fields,
    typed_frame,
)

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
    """When and how long a file was written: a file that changes between two passes is refused."""

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


# Text


@dataclass(frozen=True)
class TextBlocks:
    """A text file that is read by blocks of bytes, whose columns have the kinds of its first rows."""

    stamp: Stamp
    form: TextForm
    head: Head
    kinds: dict[str, Kind]
    texts: Sequence[str]

    def read(self, place: tuple[int, int]) -> Any:
        """The rows between two bytes."""
        self.stamp.check()
        start, stop = place
        with self.stamp.path.open("rb") as file:
            file.seek(start)
            data = file.read(stop - start)
        name = f"{printable(self.stamp.path)} (from byte {start} on)"
        table = split_fields(name, in_utf8(name, data, self.form.encoding), self.head, last=stop == self.stamp.size)
        frame = as_kinds(name, table, self.form, self.kinds, self.texts)
        frame.attrs["name"] = name
        return frame


def open_text(path: Path, form: TextForm, texts: Sequence[str]) -> Any:
    """A Dask frame of a text file."""
    dask = optional("dask.dataframe", DASK)
    name = printable(path)
    with path.open("rb") as file:
        first = file.read(FIRST_BYTES) + file.readline()
    if path.suffix.lower() == ".gz" or first.startswith((b"\x1f\x8b", *(codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))):
        raise TableError(f"{name}: does not fit the memory, and can not be read in parts: unpack it, in UTF-8.")
    text = in_utf8(name, first, form.encoding)
    head = find_head(name, text, form, delimiter_of(path))
    if head.start >= len(text):
        raise no_rows(name, head)
    seen = typed_frame(split_fields(name, text, head, head.start), form, texts)
    kinds = {column: kind_of(seen[column]) for column in head.names}
    start = len(first) - len(text[head.start :].decode().encode(form.encoding.replace("-sig", "")))
    blocks = TextBlocks(Stamp.of(path), form, head, kinds, texts)
    places = list(pairwise(block_edges(path, start)))
    made = dask.from_map(blocks.read, places, meta=seen.iloc[:0], enforce_metadata=False)
    made.attrs = {"name": name, "notes": head.notes}
    return made


def block_edges(path: Path, start: int) -> list[int]:
    """The bytes at which blocks begin and the last one ends: ends of lines outside quotes."""
    edges = [start]
    with path.open("rb") as file:
        file.seek(start)
        while block := file.read(TEXT_BLOCK):
            block += file.readline()
            quotes = block.count(b'"')
            while quotes % 2 and (line := file.readline()):
                quotes += line.count(b'"')
            edges.append(file.tell())
    return edges


# Parquet


@dataclass(frozen=True)
class RowGroups:
    """Groups of rows of a Parquet file or of a folder of files."""

    groups: Sequence[Any]
    stamps: Sequence[Stamp]
    columns: Sequence[str]
    texts: Sequence[str]
    schema: Any

    def read(self, number: int) -> Any:
        """One group of rows."""
        self.stamps[number].check()
        table = self.groups[number].to_table(schema=self.schema, columns=list(self.columns))
        frame = from_arrow(with_texts(table, self.texts))
        frame.attrs["name"] = f"{printable(self.stamps[number].path)} (group {number} of rows)"
        return frame


def open_groups(path: Path, form: TextForm, texts: Sequence[str]) -> Any:  # noqa: ARG001
    """A Dask frame of a Parquet file or of a folder of files."""
    dask = optional("dask.dataframe", DASK)
    dataset = open_parquet(path)
    groups = [group for fragment in dataset.fragments for group in fragment.split_by_row_group()]
    stamps = [Stamp.of(Path(group.path)) for group in groups]
    columns = columns_of(path, dataset.schema)
    source = RowGroups(groups, stamps, columns, texts, dataset.schema)
    nothing = from_arrow(with_texts(dataset.schema.empty_table().select(columns), texts))
    if not groups:
        raise TableError(f"{printable(path)}: the table has no rows.")
    made = dask.from_map(source.read, range(len(groups)), meta=nothing, enforce_metadata=False)
    made.attrs = {"name": printable(path), "notes": ()}
    return made


# Arrays


def open_npy(path: Path, form: TextForm, texts: Sequence[str]) -> Any:  # noqa: ARG001
    """A Dask array of a memory map."""
    array = read_npy(path)
    rows = max(1, ARRAY_BLOCK // max(1, array.dtype.itemsize * array.shape[1]))
    return optional("dask.array", DASK).from_array(array, chunks=(rows, -1))


def open_chunks(path: Path, form: TextForm, texts: Sequence[str]) -> Any:  # noqa: ARG001
    """A Dask array of the chunks of a Zarr array."""
    return optional("dask.array", DASK).from_zarr(open_zarr(path)).rechunk({1: -1})
