"""Text files of fields between commas, semicolons, tabs or bars: bytes to columns of texts, and these to values.

pyarrow splits the fields, and reads columns that are numbers throughout. Others are looked at field by field.
In parts, columns hold what they hold in the first rows.
"""

import codecs
import csv
import gzip
import io
import re
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

from biclique.exceptions import TableError, TableWarning, printable, warn_user
from biclique.runtime.memory import format_bytes, free_memory
from biclique.runtime.threads import count_threads
from biclique.tables.frames import DTYPES, check_names, frame_of, kind_of, pandas, pyarrow, values_of
from biclique.tables.parts import Parts
from biclique.tables.text_form import MISSING, TextForm, as_amount, as_number, is_missing

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
"""What may stand between fields."""
HEAD = 2**22
"""Bytes in which the first row must end."""
BLOCK = 2**22
"""Bytes that pyarrow parses at once."""
TEXT_BLOCK = 2**25
"""Bytes of a file in parts that are read at once."""
FIRST_BYTES = 2**22
"""Bytes of a file in parts that say what its columns hold."""
LOOKED_AT = 20
"""Rows that say whether a first line of numbers may hold names."""
YEARS = range(1900, 2101)
"""Whole numbers that are names of columns rather than values, if the rows below have no such."""
QUOTED = re.compile(r'"[^"]*"')
EXCEL_LINE = re.compile(r"(?:sep=([,;\t|])\r?\n)?")
BLANK_LINES = re.compile(r"(?:[ \t]*(?:\r\n|\n|\r))*")
LINE = re.compile(r"[^\r\n]*")
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
OTHERS = {
    b"PAR1": "a Parquet file: rename it to end in .parquet",
    b"\x93NUM": "a NumPy file: rename it to end in .npy",
    b"PK\x03\x04": "a zip archive: rename it to end in .xlsx or .npz",
}
"""What a file that is no text may be, by its first bytes."""


@dataclass(frozen=True)
class Head:
    """What the first lines say about a text file."""

    delimiter: str
    names: list[str]
    start: int
    """The byte at which the rows begin, in UTF-8."""
    names_by_guess: bool


def read_text(path: Path, form: TextForm, texts: Collection[str]) -> Any:
    """A whole text file as a frame; fields of columns in ``texts`` stay as they are written."""
    name = printable(path)
    data = read_bytes(path, form)
    head = find_head(path, data, form)
    table = without_last_gaps(split_fields(name, data, head, head.start))
    if not table.num_rows:
        guess = ": its only line was read as names of columns. If it is a row, say so with header=False"
        raise TableError(f"{name}: the table has no rows{guess * head.names_by_guess}.")
    return typed_frame(table, form, texts)


def read_bytes(path: Path, form: TextForm) -> bytes:
    """The text of a file in UTF-8, unpacked, without a byte order mark."""
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = _unpacked(path, most=free_memory() // 4)
    return in_utf8(printable(path), data, form.encoding)


def _unpacked(path: Path, most: int) -> bytes:
    """The content of a gzip file, a block at a time: a file that unpacks to more bytes is refused."""
    unpacked = io.BytesIO()
    with gzip.open(path) as file:
        while block := file.read(BLOCK):
            unpacked.write(block)
            if unpacked.tell() > most:
                raise TableError(f"{printable(path)}: unpacks to more than {format_bytes(most)}: take fewer rows.")
    return unpacked.getvalue()


def in_utf8(name: str, data: bytes, encoding: str) -> bytes:
    """The same text in UTF-8."""
    codec = "utf-16" if data.startswith(UTF_16) else codecs.lookup(encoding).name
    try:
        if codec not in ("utf-8", "utf-8-sig"):
            return data.decode(codec).encode()
        if not data.isascii():
            data.decode()
    except UnicodeError as error:
        if data[:4] in OTHERS:
            raise TableError(f"{name}: not a text file but {OTHERS[data[:4]]}.") from error
        raise TableError(
            f"{name}: not a text file in {encoding.upper()} (byte {getattr(error, 'start', 0)}); save it as UTF-8, or "
            "name its encoding with encoding=…, such as cp1252."
        ) from error
    return data.removeprefix(codecs.BOM_UTF8)


# The first lines


def find_head(path: Path, data: bytes, form: TextForm) -> Head:
    """The delimiter, the names of the columns, and where the rows begin."""
    name, text = printable(path), data[:HEAD].decode(errors="ignore")
    excel = EXCEL_LINE.match(text)
    start = BLANK_LINES.match(text, excel.end()).end()  # type: ignore[union-attr]
    first = LINE.match(text, start)[0]  # type: ignore[index]
    if not first:
        raise TableError(f"{name}: the file is empty.")
    is_tsv = Path(path.name.lower().removesuffix(".gz")).suffix in (".tsv", ".tab")
    delimiter = "\t" if is_tsv else excel[1] or find_delimiter(first, form.decimal)  # type: ignore[index]
    lines = io.StringIO(text[start:], newline="")
    reader = csv.reader(lines, delimiter=delimiter)
    fields = [field.strip() for field in next(reader)]
    end = lines.tell()
    sign = form.decimal
    numeric = [is_missing(one) or (as_number(one, sign), as_amount(one, sign)) != (None, None) for one in fields]
    has_names = not all(numeric) if form.header is None else form.header
    names = fields if has_names else [str(j) for j in range(len(fields))]
    check_names(name, names)
    start += end if has_names else 0
    if not has_names and form.header is None and _are_whole(fields) and _may_be_names(fields, reader, form.decimal):
        shown = ", ".join([*fields[:2], *["…"] * (len(fields) > 2)])
        warn_user(
            f"{name}: the first line ({shown}) was read as a row of numbers; if it holds the names "
            "of the columns, say so: header=True.",
            TableWarning,
        )
    return Head(delimiter, names, len(text[:start].encode()), has_names and form.header is None)


def find_delimiter(line: str, decimal: str) -> str:
    """The most frequent sign outside quotes. A decimal comma is no delimiter if there is another one."""
    bare = QUOTED.sub("", line)
    best = max((sign for sign in DELIMITERS if sign != decimal), key=bare.count)
    return best if best in bare or "," not in bare else ","


def _are_whole(fields: Iterable[str]) -> bool:
    """True for whole numbers of at most 9 digits."""
    return all(field.strip().isdecimal() and len(field) < 10 for field in fields)


def _may_be_names(first: list[str], reader: Iterator[list[str]], decimal: str) -> bool:
    """True for whole numbers that go up by one, are years above other rows, or stand above fractions alone."""
    numbers = list(map(int, first))
    if len(numbers) >= 3 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return True
    rows: list[list[str]] = []
    with suppress(csv.Error):  # of a field that is too long; pyarrow reads it
        rows += islice(reader, LOOKED_AT)
    if len({*numbers}) < len(numbers) or not any(map(any, rows)):
        return False
    if _are_years(first):
        return not any(map(_are_years, rows))
    return all(decimal in field for field in chain.from_iterable(rows) if not is_missing(field))


def _are_years(fields: Iterable[str]) -> bool:
    return _are_whole(fields) and all(int(field) in YEARS for field in fields)


# Fields


def without_last_gaps(table: Any) -> Any:
    """The rows up to the last one that has a value: spreadsheets leave others at the end."""
    stop = table.num_rows
    while stop and not any(column[stop - 1].as_py().strip() for column in table.columns):
        stop -= 1
    return table.slice(0, stop)


def split_fields(name: str, data: bytes, head: Head, start: int = 0) -> Any:
    """An Arrow table of texts, from a byte on. Blank lines are rows in a table of one column only."""
    pa, csv_reader = pyarrow(), pyarrow("pyarrow.csv")
    types = dict.fromkeys(head.names, pa.string())
    if not data[start : start + HEAD].strip() and not data[start:].strip():
        return pa.schema(types).empty_table()
    wrong: list[Any] = []

    def look_at(row: Any) -> str:
        if row.text.strip() and not wrong:
            wrong.append(row)
        return "skip"

    parsing = csv_reader.ParseOptions(
        delimiter=head.delimiter,
        newlines_in_values=b'"' in data,
        ignore_empty_lines=len(head.names) > 1,
        invalid_row_handler=look_at,
    )
    values = csv_reader.ConvertOptions(column_types=types, check_utf8=False)
    block = BLOCK if data.find(b"\n", start, start + BLOCK) >= 0 else len(data) + 1

    def parse(threads: bool) -> Any:
        reading = csv_reader.ReadOptions(column_names=head.names, block_size=block, use_threads=threads)
        return csv_reader.read_csv(pa.BufferReader(pa.py_buffer(data).slice(start)), reading, parsing, values)

    table = parse(threads=True)
    if wrong:
        wrong.clear()
        parse(threads=False)  # counts the rows
        row = wrong[0]
        longer = row.actual_columns > row.expected_columns
        title = " If the first line is a title, delete it." if longer else ""
        raise TableError(
            f"{name}: row {row.number} has {row.actual_columns} fields, the first has {row.expected_columns}: mend the "
            f"line; a field that has a {DELIMITERS[head.delimiter]} in it needs quotes.{title}"
        )
    return table


# Values


def typed_frame(table: Any, form: TextForm, texts: Collection[str] = ()) -> Any:
    """An Arrow table of texts as a frame of numbers, booleans, dates and texts.

    Columns in ``texts`` stay as they are.
    """

    def typed(name: str) -> Any:
        column = table.column(name)
        numbers = None if name in texts else as_numbers(column, form.decimal)
        if numbers is not None:
            return numbers
        fields = column.to_numpy()
        return fields if name in texts else values_of(fields, form, numbers=True)

    with ThreadPoolExecutor(count_threads(None)) as pool:
        names = table.column_names
        return frame_of(dict(zip(names, pool.map(typed, names), strict=True)))


def as_numbers(column: Any, decimal: str) -> Any:
    """A column of texts as float64 with NaN for gaps; None if a field is not a number."""
    pa, pc = pyarrow(), pyarrow("pyarrow.compute")
    first = column[0].as_py() if len(column) else ""
    if not is_missing(first) and as_number(first, decimal) is None:
        return None
    if decimal == ",":
        if pc.any(pc.match_substring(column, ".")).as_py():
            return None
        column = pc.replace_substring(column, ",", ".")
    with suppress(pa.ArrowInvalid):
        return pc.cast(column, pa.float64()).to_numpy()
    with suppress(pa.ArrowInvalid):
        plain = pc.utf8_trim_whitespace(column)
        gaps = pc.is_in(pc.utf8_lower(plain), value_set=pa.array(MISSING))
        return pc.cast(pc.if_else(gaps, None, plain), pa.float64()).to_numpy()
    return None


# In parts


def open_text(path: Path, form: TextForm, texts: Collection[str]) -> Parts:
    """The blocks of a text file."""
    name = printable(path)
    with path.open("rb") as file:
        first = file.read(FIRST_BYTES) + file.readline()
    if first.startswith((b"\x1f\x8b", *UTF_16)):
        raise TableError(f"{name}: does not fit the memory, and can not be read in parts: unpack it, in UTF-8.")
    text = in_utf8(name, first, form.encoding)
    head = find_head(path, text, form)
    nothing = typed_frame(split_fields(name, text, head, head.start), form, texts).iloc[:0]
    rows = text[head.start :].decode().encode(form.encoding.replace("-sig", ""))
    edges = block_edges(path, len(first) - len(rows))
    places = [(path, start, stop, form, head, nothing, texts) for start, stop in pairwise(edges)]
    return read_block, places, nothing


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
    path: Path, start: int, stop: int, form: TextForm, head: Head, nothing: Any, texts: Collection[str]
) -> Any:
    """The rows between two bytes, as columns of the same kinds as in ``nothing``."""
    name = f"{printable(path)} (from byte {start} on)"
    with path.open("rb") as file:
        file.seek(start)
        data = in_utf8(name, file.read(stop - start), form.encoding)
        is_last = not file.read(1)
    table = split_fields(name, data, head)
    table = without_last_gaps(table) if is_last else table
    frame = typed_frame(table, form, texts)
    for column in head.names:
        kind, found = kind_of(nothing[column]), kind_of(frame[column])
        if found == kind:
            continue
        if frame[column].isna().all():
            frame[column] = pandas().Series([None] * len(frame), dtype=DTYPES[kind])
        elif kind == "text":
            frame[column] = table.column(column).to_pandas().astype(object)
        else:
            raise TableError(
                f"{name}: column {column!r} holds {kind}s in the first rows and {found}s here: mend the values, or "
                "leave it out."
            )
    frame.attrs["name"] = name
    return frame
