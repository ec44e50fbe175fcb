"""The rows of a text file, block by block: by pyarrow or NumPy if the lines are plain, by Python if they are not.

Python's ``csv`` and ``fields.py`` define what a text means. The fast parsers get blocks of lines for which they do the
same, and leave a block to Python if they cannot read it.
"""

from __future__ import annotations

import csv
import gzip
import io
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

from biclique.exceptions import TableError, printable
from biclique.io.arrow import find_pyarrow, parse_block
from biclique.io.chunks import line
from biclique.io.fields import Kind, TextForm, as_number, kind_of, values_of
from biclique.io.roles import numbered
from biclique.io.text_lines import HEAD, Lines, Row, count_plain
from biclique.io.typed_columns import HEADER, NO_HEADER
from biclique.runtime import Tick, count_threads

FEW_LINES = 64  # of a block, up to which Python is as fast
SIGN_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
THREADS = 4  # at most, that parse blocks
PLAIN = bytes(range(32, 127)) + b"\t\r\n"

Values: TypeAlias = dict[int, NDArray[Any]]
Parser: TypeAlias = Callable[[bytes, int, str, TextForm, int, Mapping[int, Kind | None]], Values | None]


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

    def without_text(self) -> Block:
        """The same without the text that it was made of, which takes memory."""
        return replace(self, rows=list)

    def fields(self, place: int) -> list[str]:
        """A column as it stands in the file."""
        return [row[place] for _, row in self.rows()]


# The file


class TextFile:
    """A table of text: the names of its columns, and passes over its rows."""

    def __init__(self, path: Path, form: TextForm, limit: int) -> None:
        self.path, self.form, self.limit = path, form, limit
        self.name = printable(path)
        with self._opened() as lines:
            block = lines.take(HEAD)
            first = next((one for one in block[: 2**16].splitlines() if one.strip()), b"")
            signs = ",;\t|" if form.decimal == "." else ";\t|"
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
            block = lines.take(HEAD)
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

    def no_rows(self) -> TableError:
        """The error about a file of names alone."""
        if not self.has_names or self.form.header is not None:
            return TableError(f"{self.name}: the table has no rows.")
        return TableError(
            f"{self.name}: the table has no rows: its only line was read as names of columns. If it is a row, say so "
            "with ",
            NO_HEADER,
            ".",
        )

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
        """About how many rows there are, from the first block: a row that is read with the names is none."""
        rows = 0
        with self._opened() as lines:
            for job in self._jobs(lines):
                rows += len(job)
                if rows > FEW_LINES:
                    return max(rows, round(rows / max(lines.share, 1e-9)))
        return rows

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
                                parser, job.rows, len(job), self.delimiter, self.form, self.width, wanted
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
        return {**kinds, **{j: kind_of([row[j] for row in rows], self.form) for j in unknown}}

    def _jobs(self, lines: Lines) -> Iterator[_Job]:
        """The rows after the names: a plain block with the number of its first line, or rows that Python has read."""
        held: list[Row] = []  # rows without a value: left out if none follows
        skip = self.has_names
        rows: list[Row] = self._head(lines, lines.take(HEAD))[skip:]
        while True:
            block = b""
            if not rows:
                block = lines.take()
                if not block:
                    return
                n = count_plain(block, self.delimiter)
                if n is not None and n > FEW_LINES:
                    if held:
                        yield _Job(held, len(held))
                        held = []
                    lines.number += n
                    yield _Job(block, n, lines.number - n + 1)
                    continue
                rows = [r for r in lines.rows(block, self.delimiter) if self._is_row(r[1])]
            rows = held + [(number, row or [""]) for number, row in rows]
            end = len(rows)
            while end and not any(cell.strip() for cell in rows[end - 1][1]):
                end -= 1
            if end:
                yield _Job(rows[:end], end)
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
                    f"{self.width}: mend the line; a field that has a {SIGN_NAMES.get(self.delimiter, 'delimiter')} "
                    "in it needs quotes."
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
        wanted: Kind = kind or "number"
        values = values_of(fields, wanted, self.form)
        if isinstance(values, int):
            wanted = kind_of(fields, self.form) or wanted
            values = values_of(fields, wanted, self.form)
        values = np.asarray(values)
        return values, _number_or_none(values) if kind is None and wanted == "number" else wanted


@dataclass(frozen=True)
class _Job:
    """Rows that Python has read, or plain lines from a line on, to be read as these kinds."""

    rows: bytes | list[Row]
    n_rows: int
    first_line: int = 0
    kinds: Mapping[int, Kind | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.n_rows


def _may_be_names(fields: Sequence[str]) -> bool:
    """Whether a line of numbers looks like a header: whole numbers that go up by one, such as years."""
    if len(fields) < 3 or not all(field.strip().isdecimal() and len(field) < 10 for field in fields):
        return False
    return list(map(int, fields)) == list(range(int(fields[0]), int(fields[0]) + len(fields)))


def _header_note(name: str, fields: Sequence[str]) -> str:
    return (
        f"{name}: the first line ({fields[0].strip()}, {fields[1].strip()}, …) was read as a row of numbers; if it "
        f"holds the names of the columns, say so: {HEADER}."
    )


def _number_or_none(values: NDArray[Any]) -> Kind | None:
    """None if all are missing: such a column can still become anything."""
    return None if np.isnan(values).all() else "number"


# Fast parsers


def find_parser() -> Parser:
    """pyarrow's parser of blocks, or NumPy's without it."""
    pyarrow = find_pyarrow()
    return _parse_numbers if pyarrow is None else partial(parse_block, pyarrow)


def _parse_numbers(
    block: bytes, n_rows: int, delimiter: str, form: TextForm, width: int, kinds: Mapping[int, Kind | None]
) -> Values | None:
    """By NumPy: tables of numbers alone, without missing ones."""
    if any(kind not in (None, "number") for kind in kinds.values()) or block.translate(None, PLAIN):
        return None
    text = block.decode()
    if form.decimal != ".":
        if "." in text or delimiter == form.decimal:
            return None
        text = text.replace(form.decimal, ".")
    try:
        X = np.loadtxt(io.StringIO(text), delimiter=delimiter, comments=None, quotechar='"', ndmin=2)
    except ValueError:
        return None
    if X.shape != (n_rows, width) or np.isnan(X).any():
        return None
    return {j: X[:, j] for j in kinds}
