"""Text files of fields between commas, semicolons, tabs or bars: bytes to columns of texts, and these to values.

pyarrow splits all fields as texts. Columns of numbers are cast as a whole; only others are looked at field by field.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biclique.exceptions import Argument, TableError, printable
from biclique.runtime import count_threads, format_bytes, free_memory
from biclique.tables.frames import DTYPES, check_names, kind_of, pandas, pyarrow, settled
from biclique.tables.text_form import MISSING, Kind, TextForm, as_amount, as_number, is_missing

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
"""What may stand between fields."""
HEAD = 2**22
"""Bytes in which the first row must end."""
BLOCK = 2**22
"""Bytes that pyarrow parses at once, if a row is not longer."""
QUOTED = re.compile(r'"[^"]*"')
EXCEL_LINE = re.compile(r"sep=([,;\t|])\r?\n")
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
OTHERS = {
    b"PAR1": "a Parquet file: rename it to end in .parquet",
    b"\x93NUM": "a NumPy file: rename it to end in .npy",
    b"PK\x03\x04": "a zip archive: rename it to end in .xlsx or .npz",
}
"""What a file that is no text may be, by its first bytes."""
ENCODING = Argument("encoding=…")
NO_HEADER = Argument("header=False")
HEADER = Argument("header=True")


@dataclass(frozen=True)
class Head:
    """What the first lines say about a text file."""

    delimiter: str
    names: list[str]
    start: int
    """The byte at which the rows begin, in UTF-8."""
    only_names: bool
    """True if the first line was taken as names without being asked to."""
    notes: tuple[str, ...] = ()
    """What may have been meant otherwise."""


# Bytes


def read_bytes(path: Path, form: TextForm) -> bytes:
    """The text of a file in UTF-8, unpacked, without a byte order mark."""
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = _unpacked(path, data)
    return in_utf8(printable(path), data, form.encoding)


def _unpacked(path: Path, data: bytes) -> bytes:
    most = free_memory() // 4
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise TableError(f"{printable(path)}: unpacks to more than {format_bytes(most)}: take fewer rows.")
    return text


def in_utf8(name: str, data: bytes, encoding: str) -> bytes:
    """The same text in UTF-8."""
    codec = codecs.lookup(encoding).name
    if codec in ("utf-8", "utf-8-sig") and data.startswith(UTF_16):
        codec = "utf-16"
    try:
        if codec not in ("utf-8", "utf-8-sig"):
            return data.decode(codec).removeprefix("\ufeff").encode()
        if not data.isascii():
            data.decode()
    except UnicodeError as error:
        if data[:4] in OTHERS:
            raise TableError(f"{name}: not a text file but {OTHERS[data[:4]]}.") from error
        raise TableError(
            f"{name}: not a text file in {encoding.upper()} (byte {getattr(error, 'start', 0)}); save it as UTF-8, or "
            "name its encoding with ",
            ENCODING,
            ", such as cp1252.",
        ) from error
    return data.removeprefix(codecs.BOM_UTF8)


# The first lines


def find_head(name: str, data: bytes, form: TextForm, delimiter: str = "") -> Head:
    """The delimiter, the names of the columns, and where the rows begin."""
    text = data[:HEAD].decode(errors="ignore")
    excel = EXCEL_LINE.match(text)
    if excel:
        delimiter = delimiter or excel[1]
        text = text[excel.end() :]
    lines = io.StringIO(text, newline="")
    blank = 0
    first = next(lines, "")
    while first and not first.strip():
        blank += len(first)
        first = next(lines, "")
    if not first:
        raise TableError(f"{name}: the file is empty.")
    delimiter = delimiter or find_delimiter(first, form.decimal)
    text = text[blank:]
    lines = io.StringIO(text, newline="")
    fields = next(csv.reader(lines, delimiter=delimiter))
    numbers = all(is_missing(field) or _is_number(field, form.decimal) for field in fields)
    has_names = not numbers if form.header is None else form.header
    names = [field.strip() for field in fields] if has_names else [str(j) for j in range(len(fields))]
    notes = (header_note(name, fields),) if form.header is None and _may_be_names(fields) else ()
    skipped = data[:HEAD].decode(errors="ignore")
    skipped = skipped[: len(skipped) - len(text) + (lines.tell() if has_names else 0)]
    check_names(name, names)
    return Head(delimiter, names, len(skipped.encode()), has_names and form.header is None, notes)


def delimiter_of(path: Path) -> str:
    """A tab if the name says so; nothing if the file must tell."""
    return "\t" if Path(path.name.lower().removesuffix(".gz")).suffix in (".tsv", ".tab") else ""


def find_delimiter(line: str, decimal: str) -> str:
    """The most frequent sign outside quotes; a comma if there is none. A decimal comma is no delimiter."""
    bare = QUOTED.sub("", line)
    signs = [sign for sign in DELIMITERS if sign != decimal]
    best = max(signs, key=bare.count)
    return best if best in bare else ","


def _is_number(field: str, decimal: str) -> bool:
    return as_number(field, decimal) is not None or as_amount(field, decimal) is not None


def _may_be_names(fields: Sequence[str]) -> bool:
    """True for whole numbers that go up by one, such as years."""
    if len(fields) < 3 or not all(field.strip().isdecimal() and len(field) < 10 for field in fields):
        return False
    return list(map(int, fields)) == list(range(int(fields[0]), int(fields[0]) + len(fields)))


def header_note(name: str, fields: Sequence[str]) -> str:
    """A note about a first line that may hold names."""
    return (
        f"{name}: the first line ({fields[0].strip()}, {fields[1].strip()}, …) was read as a row of numbers; if it "
        f"holds the names of the columns, say so: {HEADER}."
    )


# Columns of texts


def split_fields(name: str, data: bytes, head: Head, start: int = 0, *, last: bool = True) -> Any:
    """An Arrow table of texts, from a byte on.

    Blank lines are rows in a table of one column only. The ``last`` rows of a file are left out if they have no value.
    """
    pa, csv_reader = pyarrow(), pyarrow("pyarrow.csv")
    wrong: list[Any] = []

    def look_at(row: Any) -> str:
        if not row.text.strip():
            return "skip"
        wrong.append(row)
        return "error"

    def parse(threads: bool) -> Any:
        return csv_reader.read_csv(
            pa.BufferReader(pa.py_buffer(data).slice(start)),
            read_options=csv_reader.ReadOptions(
                column_names=head.names, block_size=max(BLOCK, longest_line(data)), use_threads=threads
            ),
            parse_options=csv_reader.ParseOptions(
                delimiter=head.delimiter,
                newlines_in_values=b'"' in data,
                ignore_empty_lines=len(head.names) > 1,
                invalid_row_handler=look_at,
            ),
            convert_options=csv_reader.ConvertOptions(
                column_types=dict.fromkeys(head.names, pa.string()), check_utf8=False
            ),
        )

    try:
        table = parse(threads=True)
    except pa.ArrowInvalid as error:
        if not wrong:
            raise
        wrong.clear()
        with suppress(pa.ArrowInvalid):
            parse(threads=False)  # counts the rows
        row = wrong[0]
        raise TableError(
            f"{name}: row {row.number} has {row.actual_columns} fields, the first has {row.expected_columns}: mend the "
            f"line; a field that has a {DELIMITERS[head.delimiter]} in it needs quotes."
        ) from error
    return without_last_gaps(table) if last else table


def longest_line(data: bytes) -> int:
    """A bound on the bytes of a row: the whole text if its first mebibyte has no end of a line."""
    return len(data) + 1 if b"\n" not in data[: 2**20] and b"\r" not in data[: 2**20] else 0


def without_last_gaps(table: Any) -> Any:
    """The rows up to the last one that has a value."""
    n = table.num_rows
    while n and not any(column[n - 1].as_py().strip() for column in table.columns):
        n -= 1
    return table.slice(0, n)


def no_rows(name: str, head: Head) -> TableError:
    """The error about a file of names alone."""
    if not head.only_names:
        return TableError(f"{name}: the table has no rows.")
    return TableError(
        f"{name}: the table has no rows: its only line was read as names of columns. If it is a row, say so with ",
        NO_HEADER,
        ".",
    )


# Values


def typed_frame(table: Any, form: TextForm, texts: Collection[str] = ()) -> Any:
    """An Arrow table of texts as a frame of numbers, booleans, dates and texts.

    Columns in ``texts`` stay as they are.
    """
    pd = pandas()

    def typed(name: str) -> Any:
        column = table.column(name)
        numbers = None if name in texts else as_numbers(column, form.decimal)
        if numbers is not None:
            return numbers
        series = column.to_pandas().astype(object)
        return series if name in texts else settled(series, form, numbers=True)

    with ThreadPoolExecutor(count_threads(None)) as pool:
        columns = list(pool.map(typed, table.column_names))
    return pd.DataFrame(dict(zip(table.column_names, columns, strict=True)), copy=False)


def as_numbers(column: Any, decimal: str) -> Any:
    """A column of texts as float64 with NaN for gaps; None if a field is not a number."""
    pa, pc = pyarrow(), pyarrow("pyarrow.compute")
    if decimal == ",":
        if pc.any(pc.match_substring(column, ".")).as_py():
            return None
        column = pc.replace_substring(column, ",", ".")
    try:
        return pc.cast(column, pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        pass
    plain = pc.utf8_trim_whitespace(column)
    gaps = pc.is_in(pc.utf8_lower(plain), value_set=pa.array(MISSING))
    try:
        return pc.cast(pc.if_else(gaps, None, plain), pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None


def as_kinds(name: str, table: Any, form: TextForm, kinds: dict[str, Kind], texts: Collection[str]) -> Any:
    """``typed_frame`` of some rows of a larger table, with the kinds of its first rows."""
    pd = pandas()
    frame = typed_frame(table, form, [*texts, *(column for column, kind in kinds.items() if kind == "text")])
    for column, kind in kinds.items():
        values = frame[column]
        if column in texts:
            continue
        if kind == "text":
            frame[column] = values.where(~values.map(is_missing), None)
        elif kind_of(values) != kind and values.isna().all():
            frame[column] = pd.Series([None] * len(frame), dtype=DTYPES[kind])
        elif kind_of(values) != kind:
            raise TableError(
                f"{name}: column {column!r} holds {kind}s in its first rows and other values below: mend the values, "
                "or leave it out."
            )
    return frame
