"""Text files of fields between commas, semicolons or tabs: whole tables, and labels written."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray
from biclique.exceptions import MemoryLimitError, TableError
from biclique.io.chunks import MEMORY_LIMIT, TEXT_BYTES, check_table_size, line
from biclique.io.fields import ODD, as_number, kind_of, values_of
from biclique.io.roles import A_ROLE, Roles, Table, feature_columns, numbered
from biclique.io.typed_columns import Column, TextForm, TypedTable
from biclique.printable import printable
from biclique.runtime import format_bytes

CHUNK = 10_000  # rows of a text that are parsed at once
CHUNK_CELLS = 1_000_000  # fields of them
TEXT_ROWS = 65_536  # lines of text that are made at once


def read_text(file: Path, roles: Roles, limit: int, header: bool | None, delimiter: str = "") -> Table:
    """The table of a text file; without ``delimiter``, the one that is most frequent in the first line."""
    name = printable(file)
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            return _parse_text(file, stream, roles, header, limit, delimiter)
    except UnicodeDecodeError as error:
        raise TableError(f"{name}: not a text file in UTF-8 (byte {error.start}); save it as UTF-8.") from error
    except csv.Error as error:
        raise TableError(f"{name}: not a table ({line(error)}).") from error


def _parse_text(file: Path, stream: TextIO, roles: Roles, header: bool | None, limit: int, delimiter: str) -> Table:
    name = printable(file)
    first_line = stream.readline(2**16)
    stream.seek(0)
    reader = csv.reader(_lines(name, stream, limit), delimiter=delimiter or max(",;\t", key=first_line.count))
    lines = _rows(reader)
    first = next(lines, None)
    if first is None:
        raise TableError(f"{name}: the file is empty.")
    width = len(first[1])
    if header is None:
        header = not all(as_number(cell) is not None for cell in first[1])
    columns = [cell.strip() for cell in first[1]] if header else numbered(width)
    places = feature_columns(name, columns, roles)
    label = columns.index(roles.label) if roles.label is not None else None
    key = columns.index(roles.id) if roles.id is not None else None

    blocks: list[FloatArray] = []
    labels: list[str] = []
    ids: list[str] = []
    numbers: list[int] = []
    size, seen = file.stat().st_size, 0
    for chunk in _chunks(lines if header else chain([first], lines), width):
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


def read_text_columns(file: Path, form: TextForm, limit: int, delimiter: str = "") -> TypedTable:
    """Every column of a text file, with its kind."""
    name = printable(file)
    try:
        with file.open(newline="", encoding="utf-8-sig" if form.encoding == "utf-8" else form.encoding) as stream:
            first_line = stream.readline(2**16)
            stream.seek(0)
            sign = delimiter or form.delimiter or max(",;\t", key=first_line.count)
            lines = list(_rows(csv.reader(_lines(name, stream, limit), delimiter=sign)))
    except UnicodeDecodeError as error:
        raise TableError(f"{name}: not a text file in UTF-8 (byte {error.start}); save it as UTF-8.") from error
    except csv.Error as error:
        raise TableError(f"{name}: not a table ({line(error)}).") from error
    if not lines:
        raise TableError(f"{name}: the file is empty.")
    width = len(lines[0][1])
    header = form.header
    if header is None:
        header = not all(as_number(cell, form.decimal) is not None for cell in lines[0][1])
    names = [cell.strip() for cell in lines.pop(0)[1]] if header else numbered(width)
    for i, (number, row) in enumerate(lines):
        if len(row) != width:
            raise TableError(f"{name}: row {i + 1} (line {number}) has {len(row)} fields, the first has {width}.")
    columns = []
    for j, key in enumerate(names):
        cells = [row[j] for _, row in lines]
        kind = kind_of(cells, form.decimal) or "number"
        values = values_of(cells, kind, form.decimal)
        if isinstance(values, np.ndarray):
            columns.append(Column(key, kind, values))
    return TypedTable(name, tuple(columns), len(lines), lines=[number for number, _ in lines])


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


def _chunks(lines: Iterator[tuple[int, list[str]]], width: int) -> Iterator[list[tuple[int, list[str]]]]:
    while chunk := list(islice(lines, max(1, min(CHUNK, CHUNK_CELLS // width)))):
        yield chunk


def _numbers(name: str, column: str, cells: Sequence[str], start: int, lines: list[int]) -> list[float]:
    try:
        if not ODD.search("".join(cells)):
            return [float(cell) for cell in cells]
    except ValueError:
        pass
    values = [as_number(cell) for cell in cells]
    numbers = [value for value in values if value is not None]
    if len(numbers) == len(values):
        return numbers
    at = next(i for i, value in enumerate(values) if value is None)
    shown = repr(cells[at][:100]) + ("…" if len(cells[at]) > 100 else "")
    raise TableError(
        f"{name}: row {start + at + 1} (line {lines[start + at]}), column {column!r}: {shown} is not a "
        "number. If the column holds classes or names, say so with ",
        *A_ROLE,
        ".",
    )


# Labels


class TextSink:
    """Lines of an id and a label."""

    with_ids = True

    def __init__(self, path: Path, names: tuple[str, str], delimiter: str = ",") -> None:
        self._delimiter = delimiter
        self._file = path.open("wb", buffering=0)
        try:
            self._put(self._quoted([names]))
        except BaseException:
            self._file.close()
            raise

    def write(self, keys: NDArray[Any] | list[str], labels: NDArray[Any]) -> None:
        for start in range(0, len(labels), TEXT_ROWS):
            some, values = keys[start : start + TEXT_ROWS], labels[start : start + TEXT_ROWS]
            if isinstance(some, np.ndarray):
                self._put(_number_lines(some, values, self._delimiter))
            else:
                self._put(self._quoted(zip(some, values.tolist(), strict=True)))

    def _quoted(self, rows: Iterable[tuple[object, object]]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=self._delimiter, lineterminator="\n").writerows(rows)
        return text.getvalue().encode("utf-8")

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while len(view):
            view = view[self._file.write(view) :]

    def close(self, *_: object) -> None:
        self._file.close()


def _number_lines(keys: NDArray[Any], labels: NDArray[Any], delimiter: str) -> bytes:
    """Lines of two whole numbers: characters in a table with one row a line, less those that only align."""
    tables = [_digits(keys), _digits(labels)]
    width = sum(table.shape[1] for table in tables) + 2
    lines = np.empty((len(keys), width), dtype=np.uint8)
    at = 0
    for table, end in zip(tables, (delimiter, "\n"), strict=True):
        lines[:, at : at + table.shape[1]] = table
        at += table.shape[1] + 1
        lines[:, at - 1] = ord(end)
    shown = lines != 0
    return lines.tobytes() if shown.all() else lines[shown].tobytes()


def _digits(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Whole numbers in ASCII, one a row, the last digits below each other; 0 stands for nothing.

    A minus sign stands in a column of its own in front.
    """
    negative = values < 0
    rest = np.abs(values.astype(np.int64)).astype(np.uint64) if values.dtype.kind == "i" else values.astype(np.uint64)
    top = int(rest.max(initial=0))
    rest = rest.astype(np.uint32) if top < 2**32 else rest
    width = len(str(top))
    signed = bool(negative.any())
    table = np.zeros((len(values), width + signed), dtype=np.uint8)
    for j in range(width - 1, -1, -1):
        shorter = rest // 10
        digit = (rest - shorter * 10).astype(np.uint8) + ord("0")
        table[:, j + signed] = digit if j == width - 1 else np.where(rest > 0, digit, 0)
        rest = shorter
    if signed:
        table[:, 0] = np.where(negative, ord("-"), 0)
    return table
