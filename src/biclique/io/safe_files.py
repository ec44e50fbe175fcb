"""What readers of files share: errors in one printable line, memory limits, and a file that must stay as it is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from biclique.exceptions import Argument, MemoryLimitError, TableError
from biclique.io.chunks import ChunkSource
from biclique.io.roles import Roles, Table, checked, numbered
from biclique.printable import printable
from biclique.runtime.memory import parse_memory_limit, require

MEMORY_LIMIT, OPEN_CHUNKS = Argument("memory_limit"), Argument("open_chunks")
TEXT_BYTES = 100  # of a short text in a list, such as an id or the name of a column
LONGEST = 300  # characters of another package's message
COMPARED = 2**20  # bytes of a file up to which its contents tell whether it is the same, beyond it the time

ChunkReader: TypeAlias = Callable[[Path, Roles, int], ChunkSource]
"""From a path, roles and a memory limit to rows in chunks."""
TableReader: TypeAlias = Callable[[Path, Roles, int, bool | None], Table]
"""From the same, and whether a text has a header, to a table in memory."""


def line(error: object) -> str:
    """The first line of another package's message, printable and not too long."""
    lines = str(error).splitlines() or [type(error).__name__]
    text = printable(lines[0]).rstrip(".")
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


@contextmanager
def guard(name: str) -> Iterator[None]:
    """What the system says about a file, in one line."""
    try:
        yield
    except MemoryLimitError:
        raise
    except MemoryError as error:
        raise MemoryLimitError(
            f"{name}: there was not enough memory to read it ({line(error)}): free some, or convert the table to .npy, "
            "which can be read in chunks (",
            OPEN_CHUNKS,
            ").",
        ) from error
    except FileNotFoundError as error:
        raise TableError(f"{name}: no such file.") from error
    except OSError as error:
        raise TableError(f"{name}: cannot be read ({line(error.strerror or error)}).") from error


@dataclass(frozen=True)
class Stamp:
    """Which file it is: size, time and inode, and the digest of a small one."""

    size: int
    time: int
    inode: int
    digest: bytes | None = None

    @property
    def moment(self) -> tuple[int, int, int]:
        return self.size, self.time, self.inode

    def same_file(self, later: Stamp) -> bool:
        """Whether a later look met the same file: untouched, or small and written again with the same bytes."""
        if self.moment == later.moment:
            return True
        return self.digest is not None and (self.size, self.digest) == (later.size, later.digest)


def stamp(path: Path, known: Stamp | None = None) -> Stamp:
    """Which file this is now; the bytes are looked at only if it is not the one ``known``."""
    found = os.stat(path)
    now = Stamp(found.st_size, found.st_mtime_ns, found.st_ino)
    if known is not None and known.moment == now.moment:
        return known
    if now.size > COMPARED or not path.is_file():
        return now
    return replace(now, digest=hashlib.blake2b(path.read_bytes()).digest())


def check_table_size(name: str, rows: int, columns: int, texts: int, limit: int, extra: float = 0) -> None:
    """Refuse a table that does not fit memory: float64 features, texts of ids and classes, names of columns."""
    needed = rows * (8 * columns + TEXT_BYTES * texts) + TEXT_BYTES * columns + extra
    require(
        needed,
        limit,
        f"{name}: a table of {rows} rows and {columns} columns in memory",
        "raise ",
        MEMORY_LIMIT,
        ", leave out columns, or read it in chunks (",
        OPEN_CHUNKS,
        ").",
    )


class FileChunks(ChunkSource):
    """What files share: the kind of error, rows counted from 1 in messages, and a look at the file every pass."""

    _error = TableError
    _first = 1
    _folder = False  # whether this is a folder of files

    def __init__(self, path: Path, memory_limit: object = "auto") -> None:
        self.name = printable(path)
        self._path = path
        self.memory_limit = parse_memory_limit(memory_limit)
        if path.is_dir() and not self._folder:
            raise TableError(f"{self.name}: is a folder, not a file.")
        with guard(self.name):
            self._stamp = stamp(path)

    def _check_same(self, now: Stamp) -> None:
        if now.size != self._stamp.size:
            raise TableError(
                f"{self.name}: the file has {now.size} bytes and had {self._stamp.size} when it was opened; leave "
                "it as it is until the work is done, or open it again."
            )
        if not self._stamp.same_file(now):
            raise written_again(self.name)
        self._stamp = now

    def _check_rows(self) -> None:
        if self.n_columns == 0:
            raise TableError(f"{self.name}: no feature columns are left; drop fewer columns.")
        if not self._n_rows:
            raise TableError(f"{self.name}: the table has no rows.")

    def _check_memory(self, rows: int, row_bytes: int) -> None:
        check_chunk_size(self.name, rows, self.n_columns, rows * row_bytes, self.memory_limit)


def check_chunk_size(name: str, rows: int, columns: int, needed: int, limit: int) -> None:
    """Refuse chunks of rows that do not fit memory."""
    require(
        needed,
        limit,
        f"{name}: reading {rows} rows of {columns} columns at once",
        "raise memory_limit, or ask for fewer rows at once: source.chunks(rows).",
    )


def written_again(name: str) -> TableError:
    """The error about a file that is not the one that was opened."""
    return TableError(
        f"{name}: was written again or replaced after it was opened; leave it as it is until the work is done, or open "
        "it again."
    )


def held(open_file: ChunkReader) -> TableReader:
    """The reader of whole tables that holds what a reader of chunks gives."""

    def read(file: Path, roles: Roles, limit: int, header: bool | None) -> Table:  # noqa: ARG001
        return _whole(open_file(file, roles, limit), roles, limit)

    return read


def hold(source: ChunkSource, roles: Roles, *, drop_missing: bool = False, memory_limit: object = "auto") -> Table:
    """The whole table of a file that was opened with these roles, as ``read_table`` gives it.

    A table that needs more than ``memory_limit`` is a MemoryLimitError, before it is allocated.
    """
    return checked(_whole(source, roles, parse_memory_limit(memory_limit)), drop_missing)


def _whole(source: ChunkSource, roles: Roles, limit: int) -> Table:
    with_role = [name for name in (roles.label, roles.id) if name is not None]
    n, width = source.n_rows or 0, source.n_columns
    check_table_size(source.name, n, width, len(with_role), limit)
    with guard(source.name), np.errstate(invalid="ignore"):  # a damaged NaN of float32
        X = np.empty((n, width))
        done = 0
        for chunk in source.chunks(source.block_rows, check_finite=False):
            X[done : done + len(chunk)] = chunk
            done += len(chunk)
        label, key = (
            None if name is None else [text for chunk in source.texts(name) for text in chunk]
            for name in (roles.label, roles.id)
        )
        return Table(source.name, X, source.columns or numbered(width), np.arange(n), n, label, key)
