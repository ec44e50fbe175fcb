"""Tables in: CSV, TSV, Parquet, .npy and .npz, never with pickle."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from biclique._typing import FloatArray
from biclique.exceptions import MemoryLimitError, TableError
from biclique.io.chunk_files import hold, open_chunks
from biclique.io.numpy_files import HEADER_BYTES, NpyChunks, is_zipped, needs_numbers, read_header, read_npz
from biclique.io.parquet import ParquetChunks, ParquetFolder
from biclique.io.roles import A_ROLE, Roles, Table, checked, feature_columns, numbered
from biclique.io.safe_files import MEMORY_LIMIT, TEXT_BYTES, check_table_size, guard, line
from biclique.printable import printable
from biclique.runtime.memory import format_bytes, parse_memory_limit

__all__ = ["Roles", "Table", "read_table"]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
ODD = re.compile(r"[^\t\r\n -~]|_")  # float() reads 1_2 and digits of every script, but no table means numbers by them
CHUNK = 10_000  # rows of a text that are parsed at once
CHUNK_CELLS = 1_000_000  # fields of them
SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".parquet", ".pq", ".npy", ".npz")


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
    roles = roles or Roles()
    limit = parse_memory_limit(memory_limit)
    file, name = Path(path), printable(path)
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise TableError(f"{name}: unknown kind of table; the name must end in one of {', '.join(SUFFIXES)}.")
    with guard(name):
        if not file.exists():
            raise TableError(f"{name}: no such file.")
        if suffix in (".parquet", ".pq"):
            source = (ParquetFolder if file.is_dir() else ParquetChunks)(file, roles, limit)
            return hold(source, roles, drop_missing=drop_missing, memory_limit=limit)
        if suffix not in (".npy", ".npz"):
            return checked(_read_text(file, roles, header, limit), drop_missing)
        if is_zipped(file):
            return checked(read_npz(file, roles, limit), drop_missing)
        with file.open("rb") as stream:
            needs_numbers(name, read_header(name, stream.read(HEADER_BYTES)))
        rows = open_chunks(NpyChunks(file, limit), roles=roles, memory_limit=limit)
        return hold(rows, roles, drop_missing=drop_missing, memory_limit=limit)


# Text


def _read_text(file: Path, roles: Roles, header: bool | None, limit: int) -> Table:
    name = printable(file)
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            return _parse_text(file, stream, roles, header, limit)
    except UnicodeDecodeError as error:
        raise TableError(f"{name}: not a text file in UTF-8 (byte {error.start}); save it as UTF-8.") from error
    except csv.Error as error:
        raise TableError(f"{name}: not a table ({line(error)}).") from error


def _parse_text(file: Path, stream: TextIO, roles: Roles, header: bool | None, limit: int) -> Table:
    name = printable(file)
    first_line = stream.readline(2**16)
    stream.seek(0)
    reader = csv.reader(_lines(name, stream, limit), delimiter=_delimiter(file, first_line))
    lines = _rows(reader)
    first = next(lines, None)
    if first is None:
        raise TableError(f"{name}: the file is empty.")
    width = len(first[1])
    if header is None:
        header = not all(_number(cell) is not None for cell in first[1])
    columns = [cell.strip() for cell in first[1]] if header else numbered(width)
    places = feature_columns(name, columns, roles)
    label = columns.index(roles.label) if roles.label is not None else None
    key = columns.index(roles.id) if roles.id is not None else None

    blocks: list[FloatArray] = []
    labels: list[str] = []
    ids: list[str] = []
    numbers: list[int] = []
    size, seen = file.stat().st_size, 0
    for chunk in _chunks(lines if header else _prepend(first, lines), width):
        start = len(numbers)
        for number, row in chunk:
            numbers.append(number)
            if len(row) != width:
                raise TableError(
                    f"{name}: row {len(numbers)} (line {number}) has {len(row)} fields, the first has {width}."
                )
            seen += sum(map(len, row)) + width  # characters, with the separators
        rows = max(len(numbers), len(numbers) * size // seen) if len(chunk) > 1 else len(numbers)
        check_table_size(name, rows, len(places), 1 + (label is not None) + (key is not None), limit)
        cells = list(zip(*(row for _, row in chunk), strict=True))
        block = [_numbers(name, columns[j], cells[j], start, numbers) for j in places]
        blocks.append(np.array(block, dtype=float).reshape(len(places), len(chunk)).T)
        labels += cells[label] if label is not None else ()
        ids += cells[key] if key is not None else ()
    X = _stacked(blocks, len(numbers), len(places))
    return Table(
        name,
        X,
        [columns[j] for j in places],
        np.arange(len(X)),
        len(X),
        labels if label is not None else None,
        ids if key is not None else None,
        numbers,
    )


def _lines(name: str, stream: TextIO, limit: int) -> Iterator[str]:
    """The lines of a text, if each fits memory when it is cut into fields."""
    longest = max(limit // TEXT_BYTES, 1)
    while text := stream.readline(longest + 1):
        if len(text) > longest:
            raise MemoryLimitError(
                f"{name}: a line has more than {longest} characters, limit {format_bytes(limit)}: raise ",
                MEMORY_LIMIT,
                ", or save the table with a row in each line.",
            )
        yield text


def _stacked(blocks: list[FloatArray], rows: int, columns: int) -> FloatArray:
    """One array of all blocks, each of which is let go as soon as it is copied."""
    X = np.empty((rows, columns))
    done = 0
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        X[done : done + len(block)] = block
        done += len(block)
    return X


def _delimiter(file: Path, first_line: str) -> str:
    if file.suffix.lower() in (".tsv", ".tab"):
        return "\t"
    return max(",;\t", key=first_line.count)


def _rows(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """The rows of a text file with their lines. A row without a value is one of missing values if another row follows.

    Blank lines are no rows, except in a table of one column. At the end of the file rows without a value are left out,
    as spreadsheets write them.
    """
    width, waiting = 0, []
    for row in reader:
        blank = len(row) < 2 and not (row and row[0].strip())
        if blank and width != 1:
            continue
        if blank or not any(cell.strip() for cell in row):
            waiting.append((reader.line_num, row or [""]))
            continue
        yield from waiting
        waiting = []
        width = width or len(row)
        yield reader.line_num, row


def _prepend(first: tuple[int, list[str]], rest: Iterable[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield first
    yield from rest


def _chunks(lines: Iterable[tuple[int, list[str]]], width: int) -> Iterator[list[tuple[int, list[str]]]]:
    lines = iter(lines)
    while chunk := list(islice(lines, max(1, min(CHUNK, CHUNK_CELLS // width)))):
        yield chunk


def _number(cell: str) -> float | None:
    """A field as a number (NaN where missing), or None for other text."""
    try:
        if not ODD.search(cell):
            return float(cell)
    except ValueError:
        pass
    return float("nan") if cell.strip().lower() in MISSING else None


def _numbers(name: str, column: str, cells: Sequence[str], start: int, lines: list[int]) -> list[float]:
    try:
        if not ODD.search("".join(cells)):
            return [float(cell) for cell in cells]
    except ValueError:
        pass
    values = [_number(cell) for cell in cells]
    numbers = [value for value in values if value is not None]
    if len(numbers) == len(values):
        return numbers
    at = next(i for i, value in enumerate(values) if value is None)
    raise TableError(
        f"{name}: row {start + at + 1} (line {lines[start + at]}), column {column!r}: {_shown(cells[at])} is not a "
        "number. If the column holds classes or names, say so with ",
        *A_ROLE,
        ".",
    )


def _shown(cell: str) -> str:
    return repr(cell) if len(cell) <= 100 else repr(cell[:100]) + "…"
