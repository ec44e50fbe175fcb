"""The rows of a text file, block by block: by pyarrow or NumPy if the lines are plain, by Python if they are not.

Python's ``csv`` and ``fields.py`` define what a text means. The fast parsers get blocks of lines for which they do the
same, and leave a block to Python if they cannot read it.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from biclique.exceptions import MemoryLimitError, TableError
from biclique.io.arrow import find_pyarrow, parse_block
from biclique.io.chunks import MEMORY_LIMIT, TEXT_BYTES, line
from biclique.io.fields import Kind, as_number, kind_of, values_of
from biclique.io.roles import numbered
from biclique.io.typed_columns import ENCODING, TextForm
from biclique.printable import printable
from biclique.runtime import Tick, count_threads, format_bytes

BLOCK = 2**20  # bytes of lines that are parsed at once
FEW_LINES = 64  # of a block, up to which Python is as fast
THREADS = 4  # at most, that parse blocks
PLAIN = bytes(range(32, 127)) + b"\t\r\n"
SPACE = b" \t\r\n\x0b\x0c\x1c\x1d\x1e\x1f"
BLANK_LINE = re.compile(rb"\n[ \t\r\x0b\x0c\x1c-\x1f]*\n")
GZIP = b"\x1f\x8b"

Row: TypeAlias = tuple[int, list[str]]
"""The number of the line in which a row ends, counting from 1, and its fields."""
Values: TypeAlias = dict[int, NDArray[Any]]
Parser: TypeAlias = Callable[[bytes, str, str, int, Mapping[int, Kind | None]], Values | None]


@dataclass(frozen=True)
class Block:
    """Consecutive rows: the values and the kinds of the columns that were asked for, by their places."""

    first_row: int
    lines: Sequence[int]
    values: Values
    kinds: dict[int, Kind | None]  # None if all fields are missing
    share: float  # of the file that was read by the end of this block
    rows: Callable[[], list[Row]]  # as they stand in the file

    def __len__(self) -> int:
        return len(self.lines)

    def fields(self, place: int) -> list[str]:
        """A column as it stands in the file."""
        return [row[place] for _, row in self.rows()]


# Lines


class Lines:
    """The text of an open file in UTF-8, whole lines at a time."""

    def __init__(self, name: str, raw: io.FileIO, size: int, encoding: str, limit: int) -> None:
        self.name, self._raw, self._size, self._encoding, self._limit = name, raw, size, encoding, limit
        zipped = raw.read(2) == GZIP
        raw.seek(0)
        self._bytes: Any = gzip.GzipFile(fileobj=raw) if zipped else raw
        codec = codecs.lookup(encoding)
        self._decoder = None if codec.name in ("utf-8", "utf-8-sig") else codec.incrementaldecoder()
        self._rest = b""
        self._place = 0  # bytes before the rest, for messages
        self._longest = max(limit // TEXT_BYTES, 1)
        self.number = 0  # lines before the rest
        if self._decoder is None:
            start = self._read(3)
            self._rest = start.removeprefix(codecs.BOM_UTF8)
            self._place = len(start) - len(self._rest)

    @property
    def share(self) -> float:
        """How much of the file was read."""
        return min(self._raw.tell() / self._size, 1.0) if self._size else 1.0

    def _read(self, size: int) -> bytes:
        data: bytes = self._bytes.read(size)
        if self._decoder is None:
            return data
        try:
            text = self._decoder.decode(data, final=not data)
            while data and not text:  # half a character
                data = self._bytes.read(size)
                text = self._decoder.decode(data, final=not data)
            return text.encode()
        except UnicodeError as error:
            raise self._wrong_encoding(getattr(error, "start", 0)) from error

    def _wrong_encoding(self, start: int) -> TableError:
        shown = "UTF-8" if self._decoder is None else self._encoding
        return TableError(
            f"{self.name}: not a text file in {shown} (byte {self._place + start}); save it as UTF-8, or name its "
            "encoding with ",
            ENCODING,
            ".",
        )

    def take(self) -> bytes:
        """Some lines, none of them too long; nothing at the end of the file."""
        parts, size = [self._rest], min(BLOCK, self._longest + 1)
        cut, length = 0, len(self._rest)
        while not cut:
            new = self._read(size)
            if not new:
                cut = length
                break
            parts.append(new)
            length += len(new)
            cut = _last_end(new, length - len(new))
            if not cut and length > self._longest:
                raise self._too_long()
        data = b"".join(parts)
        block, self._rest = data[:cut], data[cut:]
        if self._longest < 2 * BLOCK and any(len(one) > self._longest for one in block.splitlines()):
            raise self._too_long()
        if self._decoder is None and not block.isascii():
            try:
                block.decode()
            except UnicodeDecodeError as error:
                raise self._wrong_encoding(error.start) from error
        self._place += len(block)
        return block

    def _too_long(self) -> MemoryLimitError:
        return MemoryLimitError(
            f"{self.name}: a line has more than {self._longest} characters, limit {format_bytes(self._limit)}: raise ",
            MEMORY_LIMIT,
            ", or save the table with a row in each line.",
        )

    def rows(self, block: bytes, delimiter: str, most: int | None = None) -> Iterator[Row]:
        """The rows of a block by Python; the last one may go on in later lines. Without the rest after ``most`` rows.

        What was not read of the lines is read again later.
        """
        text = first = io.StringIO(block.decode(), newline="")

        def following() -> Iterator[str]:
            nonlocal text
            yield from text
            while more := self.take():
                text = io.StringIO(more.decode(), newline="")
                yield from text

        reader = csv.reader(following(), delimiter=delimiter)
        end, given = len(first.getvalue()), 0
        while text is first and first.tell() < end and given != most:
            row = next(reader, None)
            if row is None:
                break
            given += 1
            yield self.number + reader.line_num, row
        self.number += reader.line_num
        left = text.read().encode()
        self._rest, self._place = left + self._rest, self._place - len(left)


def _last_end(data: bytes, before: int) -> int:
    """The place after the last whole line, counted from ``before`` bytes earlier; 0 if there is none."""
    end = data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, len(data) - 1) + 1
    return before + end if end else 0


def is_plain(block: bytes, delimiter: str) -> bool:
    """Whether each line of a block is a row and every parser reads it alike.

    No blank lines, no fields over several lines, no lone quotes or carriage returns; the last line has a value.
    """
    last = block[block.rfind(b"\n", 0, len(block) - 1) + 1 :]
    if not last.strip(delimiter.encode() + SPACE + b'"') or b"\0" in block:
        return False
    if BLANK_LINE.search(block) or BLANK_LINE.match(b"\n" + block[: block.find(b"\n") + 1]):
        return False
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return False
    if not block.isascii():
        text = block.decode()
        if re.search(r"(?:^|\n)\s*\n", text) or not text[text.rfind("\n", 0, -1) + 1 :].replace(delimiter, "").strip():
            return False
    if b'"' not in block:
        return True
    sign = re.escape(delimiter.encode())
    quoted = re.compile(rb'(?:^|(?<=[\n%b]))"(?:[^"\r\n]|"")*"(?=[%b\r\n]|$)' % (sign, sign))
    return bool(sum(found.count(b'"') for found in quoted.findall(block)) == block.count(b'"'))


# The file


class TextFile:
    """A table of text: the names of its columns, and passes over its rows."""

    def __init__(self, path: Path, form: TextForm, limit: int) -> None:
        self.path, self.form, self.limit = path, form, limit
        self.name = printable(path)
        with self._opened() as lines:
            block = lines.take()
            first = next((one for one in block[: 2**16].splitlines() if one.strip()), b"")
            signs = ",;\t" if form.decimal == "." else ";\t"
            best = max(signs, key=first.decode(errors="replace").count)
            self.delimiter = form.delimiter or (best if best.encode() in first else ",")
            head = self._head(lines, block)
            if not head:
                raise TableError(f"{self.name}: the file is empty.")
            fields = head[0][1]
            self.width = len(fields)
            has_names = form.header
            if has_names is None:
                has_names = not all(as_number(cell, form.decimal) is not None for cell in fields)
            self.has_names = has_names
            self.notes = (_header_note(self.name, fields),) if form.header is None and _may_be_names(fields) else ()
            self.names = [cell.strip() for cell in fields] if has_names else numbered(self.width)
            self._blank_is_row = len(head[-1][1]) == 1

    def _head(self, lines: Lines, block: bytes) -> list[Row]:
        """The rows up to the first one that has a value; blank lines are not rows."""
        head: list[Row] = []
        while block:
            for number, row in list(lines.rows(block, self.delimiter, most=1)):
                if len(row) > 1 or (row and row[0].strip()):
                    head.append((number, row))
                    if any(cell.strip() for cell in row):
                        return head
            block = lines.take()
        return []

    @contextmanager
    def _opened(self) -> Iterator[Lines]:
        try:
            with self.path.open("rb", buffering=0) as raw:
                yield Lines(self.name, raw, self.path.stat().st_size, self.form.encoding, self.limit)
        except csv.Error as error:
            raise TableError(f"{self.name}: not a table ({line(error)}).") from error
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise TableError(f"{self.name}: not a readable gzip file ({line(error)}).") from error

    def count_rows(self, tick: Tick | None = None) -> int:
        """The number of rows, in one pass that looks at line ends."""
        rows = 0
        with self._opened() as lines:
            for job in self._jobs(lines):
                rows += len(job)
                if tick is not None:
                    tick(lines.share)
        return rows

    def estimate_rows(self) -> int:
        """About how many rows there are, from the first block."""
        with self._opened() as lines:
            for job in self._jobs(lines):
                return max(len(job), round(len(job) / max(lines.share, 1e-9)))
        return 0

    def blocks(self, kinds: Mapping[int, Kind | None]) -> Iterator[Block]:
        """One pass over some columns. A block is read as these kinds say if it can be, or as what it holds.

        ``kinds`` may change while the pass goes on; None stands for a kind that is not known yet.
        """
        row, parser = 0, None
        waiting: deque[tuple[float, _Job, Future[Values | None] | None]] = deque()
        threads = min(THREADS, count_threads(None))
        pool = ThreadPoolExecutor(threads, "biclique-read")
        try:
            with self._opened() as lines:
                jobs = self._jobs(lines)
                job = next(jobs, None)
                while job is not None or waiting:
                    while job is not None and len(waiting) <= threads:
                        parsed = None
                        if isinstance(job.rows, bytes):
                            parser = parser or find_parser()
                            wanted = self._guessed(job, kinds)
                            parsed = pool.submit(
                                parser, job.rows, self.delimiter, self.form.decimal, self.width, wanted
                            )
                            job = replace(job, kinds=wanted)
                        waiting.append((lines.share, job, parsed))
                        job = next(jobs, None)
                    share, done, parsed = waiting.popleft()
                    block = self._block(row, share, done, kinds, parsed.result() if parsed is not None else None)
                    row += len(block)
                    yield block
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _guessed(self, job: _Job, kinds: Mapping[int, Kind | None]) -> dict[int, Kind | None]:
        """The kinds; if one is not known, that of the first lines: texts are then not tried as numbers."""
        unknown = [j for j, kind in kinds.items() if kind is None]
        if not unknown:
            return dict(kinds)
        lines = job.rows[: 2**16].splitlines(keepends=True) if isinstance(job.rows, bytes) else []
        head = b"".join(lines[:-1][:FEW_LINES])  # the last one may be cut
        rows = list(csv.reader(io.StringIO(head.decode(), newline=""), delimiter=self.delimiter))
        if any(len(row) != self.width for row in rows):
            return dict(kinds)
        return {**kinds, **{j: kind_of([row[j] for row in rows], self.form.decimal) for j in unknown}}

    def _jobs(self, lines: Lines) -> Iterator[_Job]:
        """The rows after the names: a plain block with the number of its first line, or rows that Python has read."""
        held: list[Row] = []  # rows without a value: left out if none follows
        skip = self.has_names
        rows: list[Row] = self._head(lines, lines.take())[skip:]
        while True:
            block = b""
            if not rows:
                block = lines.take()
                if not block:
                    return
                if _count_lines(block) > FEW_LINES and is_plain(block, self.delimiter):
                    if held:
                        yield _Job(held)
                        held = []
                    first = lines.number + 1
                    lines.number += _count_lines(block)
                    yield _Job(block, first)
                    continue
                rows = [r for r in lines.rows(block, self.delimiter) if self._is_row(r[1])]
            rows = held + [(number, row or [""]) for number, row in rows]
            end = len(rows)
            while end and not any(cell.strip() for cell in rows[end - 1][1]):
                end -= 1
            if end:
                yield _Job(rows[:end])
            held, rows = rows[end:], []

    def _is_row(self, row: list[str]) -> bool:
        """A blank line is a row in a table of one column only."""
        return self._blank_is_row or len(row) > 1 or bool(row and row[0].strip())

    def _block(
        self, first_row: int, share: float, job: _Job, kinds: Mapping[int, Kind | None], values: Values | None
    ) -> Block:
        rows = partial(self._rows, job)
        if values is not None:
            found = {j: kind or _number_or_none(values[j]) for j, kind in job.kinds.items()}
            return Block(first_row, range(job.first_line, job.first_line + len(job)), values, found, share, rows)
        made = rows()
        for i, (number, row) in enumerate(made):
            if len(row) != self.width:
                raise TableError(
                    f"{self.name}: row {first_row + i + 1} (line {number}) has {len(row)} fields, the first has "
                    f"{self.width}."
                )
        fields = list(zip(*(row for _, row in made), strict=True))
        values, found = {}, {}
        for j, kind in kinds.items():
            values[j], found[j] = self._read(fields[j], kind)
        return Block(first_row, [number for number, _ in made], values, found, share, rows)

    def _rows(self, job: _Job) -> list[Row]:
        """By Python."""
        if not isinstance(job.rows, bytes):
            return job.rows
        reader = csv.reader(io.StringIO(job.rows.decode(), newline=""), delimiter=self.delimiter)
        return [(job.first_line - 1 + reader.line_num, row) for row in reader]

    def _read(self, fields: Sequence[str], kind: Kind | None) -> tuple[NDArray[Any], Kind | None]:
        """The values as this kind if they can be, or as what they are."""
        decimal = self.form.decimal
        wanted: Kind = kind or "number"
        values = values_of(fields, wanted, decimal)
        if isinstance(values, int):
            wanted = kind_of(fields, decimal) or wanted
            values = values_of(fields, wanted, decimal)
        values = np.asarray(values)
        return values, _number_or_none(values) if kind is None and wanted == "number" else wanted


@dataclass(frozen=True)
class _Job:
    """Rows that Python has read, or plain lines from a line on, to be read as these kinds."""

    rows: bytes | list[Row]
    first_line: int = 0
    kinds: Mapping[int, Kind | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return _count_lines(self.rows) if isinstance(self.rows, bytes) else len(self.rows)


def _may_be_names(fields: Sequence[str]) -> bool:
    """Whether a line of numbers looks like a header: whole numbers that go up by one, such as years."""
    if len(fields) < 3 or not all(field.strip().isdecimal() and len(field) < 10 for field in fields):
        return False
    return list(map(int, fields)) == list(range(int(fields[0]), int(fields[0]) + len(fields)))


def _header_note(name: str, fields: Sequence[str]) -> str:
    return (
        f"{name}: the first line ({fields[0].strip()}, {fields[1].strip()}, …) was read as a row of numbers; if it "
        "holds the names of the columns, say so: header=True, or --header yes."
    )


def _count_lines(block: bytes) -> int:
    return block.count(b"\n") + (not block.endswith(b"\n"))


def _number_or_none(values: NDArray[Any]) -> Kind | None:
    """None if all are missing: such a column can still become anything."""
    return None if np.isnan(values).all() else "number"


# Fast parsers


def find_parser() -> Parser:
    """pyarrow's parser of blocks, or NumPy's without it."""
    pyarrow = find_pyarrow()
    return _parse_numbers if pyarrow is None else partial(parse_block, pyarrow)


def _parse_numbers(
    block: bytes, delimiter: str, decimal: str, width: int, kinds: Mapping[int, Kind | None]
) -> Values | None:
    """By NumPy: tables of numbers alone, without missing ones."""
    if any(kind not in (None, "number") for kind in kinds.values()) or block.translate(None, PLAIN):
        return None
    text = block.decode()
    if decimal != ".":
        if "." in text or delimiter == decimal:
            return None
        text = text.replace(decimal, ".")
    try:
        X = np.loadtxt(io.StringIO(text), delimiter=delimiter, comments=None, quotechar='"', ndmin=2)
    except ValueError:
        return None
    if X.shape != (_count_lines(block), width) or np.isnan(X).any():
        return None
    return {j: X[:, j] for j in kinds}
