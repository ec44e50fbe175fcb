"""The bytes of a text file as blocks of whole lines, in UTF-8; and which blocks every parser reads alike."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from biclique.exceptions import MemoryLimitError, TableError
from biclique.io.chunks import MEMORY_LIMIT, TEXT_BYTES
from biclique.io.typed_columns import ENCODING
from biclique.runtime import format_bytes

BLOCK = 2**21  # bytes that are read at once; less, and starting a parser takes a tenth of the time
HEAD = 2**14  # bytes that are read for the first rows
BLANK_LINE = re.compile(r"^\s*\n|\n\s*\n")
NEWLINE, QUOTE = ord("\n"), ord('"')
EXCEL_LINE = re.compile(rb"^sep=[,;\t|]\r?\n")  # tells Excel the delimiter, and is no part of the table
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
GZIP = b"\x1f\x8b"
OTHERS = {
    b"PAR1": "a Parquet file: rename it to end in .parquet",
    b"\x93NUM": "a NumPy file: rename it to end in .npy",
    b"PK\x03\x04": "a zip archive, as of .npz and .xlsx: rename the first to end in .npz, save the second as CSV",
}
"""What a file that is no text may be, by its first bytes."""

Row: TypeAlias = tuple[int, list[str]]
"""The number of the line in which a row ends, counting from 1, and its fields."""


class Lines:
    """The text of an open file in UTF-8, whole lines at a time."""

    def __init__(self, name: str, raw: io.FileIO, size: int, encoding: str, limit: int) -> None:
        self.name, self._raw, self._size, self._encoding, self._limit = name, raw, size, encoding, limit
        self._beginning = raw.read(4)
        raw.seek(0)
        self._bytes: Any = gzip.GzipFile(fileobj=raw) if self._beginning.startswith(GZIP) else raw
        codec = codecs.lookup(encoding)
        self._decoder = None if codec.name in ("utf-8", "utf-8-sig") else codec.incrementaldecoder()
        self._rest = b""
        self._place = 0  # bytes before the rest, for messages
        self._longest = max(limit // TEXT_BYTES, 1)
        self.number = 0  # lines before the rest
        if self._decoder is None:
            start = self._read(len(codecs.BOM_UTF8) + len(b"sep=;\r\n"))
            self._rest = EXCEL_LINE.sub(b"", start.removeprefix(codecs.BOM_UTF8))
            self._place = len(start) - len(self._rest)
            self.number = int(b"\n" in start[: self._place])

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
        if self._beginning in OTHERS:
            return TableError(f"{self.name}: not a text file but {OTHERS[self._beginning]}.")
        shown = "UTF-8" if self._decoder is None else self._encoding
        return TableError(
            f"{self.name}: not a text file in {shown} (byte {self._place + start}); save it as UTF-8, or name its "
            "encoding with ",
            ENCODING,
            f", such as {'utf-16' if self._beginning.startswith(UTF_16) else 'cp1252'}.",
        )

    def take(self, size: int | None = None) -> bytes:
        """Some lines, none of them too long: those of about ``size`` bytes more. Nothing at the end of the file."""
        parts: list[bytes | memoryview] = [self._rest]
        size = min(size or BLOCK, BLOCK, self._longest + 1)
        length = len(self._rest) - _last_end(self._rest)  # of the line that is not whole yet
        self._rest = b""
        while new := self._read(size):
            end = _last_end(new)
            if end:
                parts.append(memoryview(new)[:end])
                self._rest = new[end:]
                break
            parts.append(new)
            length += len(new)
            if length > self._longest:
                raise self._too_long()
        block = b"".join(parts)
        if len(block) > self._longest and any(len(one) > self._longest for one in block.splitlines()):
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


def _last_end(data: bytes) -> int:
    """The place after the last whole line; 0 if there is none."""
    return data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, len(data) - 1) + 1


def count_plain(block: bytes, delimiter: str) -> int | None:
    """The number of lines of a block if each of them is a row that every parser reads alike; None if not.

    No blank lines, no fields over several lines, no lone quotes or carriage returns; the last line has a value.
    """
    last = block[block.rfind(b"\n", 0, len(block) - 1) + 1 :]
    if not last.decode().replace(delimiter, "").replace('"', "").strip() or b"\0" in block:
        return None
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return None
    codes = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(codes == NEWLINE)
    firsts = codes[np.append(0, ends[:-1] + 1 if block.endswith(b"\n") else ends + 1)]
    odd = (firsts <= ord(" ")) | (firsts > ord("~"))  # blank lines start so, and few others do
    if odd.any() and BLANK_LINE.search(block.decode()):
        return None
    return len(firsts) if b'"' not in block or _quotes_are_plain(codes, ends, delimiter) else None


def _quotes_are_plain(codes: NDArray[np.uint8], ends: NDArray[np.intp], delimiter: str) -> bool:
    """Whether quotes stand around whole fields, each within a line; in a field they come twice.

    Every second quote opens, and the others close. A line ends with none open, and what stands before one that opens
    or after one that closes is the edge of a field, or the other quote of two within a field.
    """
    quotes = np.flatnonzero(codes == QUOTE)
    if len(quotes) % 2 or (np.searchsorted(quotes, ends) % 2).any():
        return False
    edges = np.zeros(256, dtype=bool)
    edges[[QUOTE, NEWLINE, ord("\r"), *delimiter.encode()]] = True
    bounded = np.concatenate([[NEWLINE], codes, [NEWLINE]])  # so that place i of the block is i + 1
    before, after = bounded[quotes[::2]], bounded[quotes[1::2] + 2]
    return bool(edges[before].all() and edges[after].all())
