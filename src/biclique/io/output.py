"""Results out: complete files or none."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import os
import platform
import re
import shutil
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray

from biclique._typing import IntArray
from biclique.exceptions import Argument, DataError, ParameterError
from biclique.io.extras import import_pyarrow

OUTPUT = Argument("a file, such as labels.csv")
LABEL_SUFFIXES = (".csv", ".tsv", ".npy", ".parquet")
TEXT_ROWS = 65_536  # lines of text that are made at once
GROUP_ROWS = 2**20  # rows of a group in a Parquet file
STALE_SECONDS = 3600  # age of a temporary file whose process is gone, from which on it is removed
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the disk, the user's share of it, or what a file may take


@dataclass
class Files:
    """What this process has written, and what it would leave behind if it ended now."""

    temporary: set[Path] = field(default_factory=set)
    placed: Path | None = None
    """The last file that was put in place."""
    partial: Path | None = None
    """The pipe or device that is being written into."""

    def discard(self) -> None:
        """Remove the temporary files."""
        for path in tuple(self.temporary):
            with suppress(OSError):
                path.unlink(missing_ok=True)
            self.temporary.discard(path)


files = Files()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep SIGINT, SIGTERM and SIGHUP waiting until the block ends: for a few quick lines only."""
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # signals raise in no other
        handlers = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}
    came: list[int] = []
    holding = True

    def record(number: int, frame: FrameType | None) -> None:
        if holding:
            came.append(number)
        else:  # between two lines of the end below
            handlers[number](number, frame)

    try:
        for number in handlers:
            signal.signal(number, record)
        yield
    finally:
        holding = False
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            handlers[came[0]](came[0], None)


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path`` to write to; moved into place at the end, removed on any failure.

    Symbolic links are followed. A pipe or a character device, such as /dev/stdout, is not replaced: what was written
    is copied into it at the end.

    A process that is killed leaves its temporary file, ``.biclique-…-HOST-PID-….part``. The next one that writes the
    same file on the same host removes it, if it is more than an hour old and its process is gone.
    """
    stream = _is_stream(path)
    target = Path(path) if stream else Path(os.path.realpath(path))
    temporary: Path | None = None
    files.partial = None
    try:
        with uninterrupted():
            temporary = _make_temporary(target, Path(tempfile.gettempdir()) if stream else target.parent)
        yield temporary
        if stream:
            files.partial = target
            _copy(temporary, target)
        else:
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
        with uninterrupted():
            if not stream:
                temporary.chmod(target.stat().st_mode if target.exists() else 0o666 & ~_umask())
                temporary.replace(target)
            files.placed, files.partial = Path(path), None
    except OSError as error:
        if error.filename not in (None, str(temporary), str(target)):
            raise  # of another file
        left = "nothing was written" if files.partial is None else "a part of it may have been written"
        raise OSError(
            error.errno,
            f"cannot write {path} ({error.strerror or error}): make room or choose another place; {left}",
        ) from error
    finally:
        with uninterrupted():
            if temporary is not None:
                temporary.unlink(missing_ok=True)
                files.temporary.discard(temporary)


# Temporary files


def _make_temporary(target: Path, folder: Path) -> Path:
    """An empty file of ours: its name says for which target, by which host and by which process, and stays short."""
    key = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]
    host = re.sub(r"[^A-Za-z0-9]+", "_", platform.node())[:32]
    _remove_stale(folder, f".biclique-{key}-{host}-")
    handle, name = tempfile.mkstemp(dir=folder, prefix=f".biclique-{key}-{host}-{os.getpid()}-", suffix=".part")
    os.close(handle)
    files.temporary.add(Path(name))
    return Path(name)


def _remove_stale(folder: Path, prefix: str) -> None:
    """Remove what killed processes of this host left behind."""
    with suppress(OSError):
        for entry in folder.iterdir():
            match = re.fullmatch(re.escape(prefix) + r"(\d+)-\w+\.part", entry.name)
            if match and _is_gone(int(match[1])):
                with suppress(OSError):
                    if time.time() - entry.stat().st_mtime > STALE_SECONDS:
                        entry.unlink()


def _is_gone(process: int) -> bool:
    if os.name != "posix":
        return False  # elsewhere, to ask is to kill
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


# Pipes and devices


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether this is to be written into, not replaced: a pipe, a character device or an open descriptor."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or _descriptor(path) is not None


def _descriptor(path: str | os.PathLike[str]) -> int | None:
    """The number in /dev/stdout, /dev/stderr and /dev/fd/N."""
    text = os.fspath(path)
    match = re.fullmatch(r"/dev/fd/(\d+)", text)
    return int(match[1]) if match else {"/dev/stdout": 1, "/dev/stderr": 2}.get(text)


def _copy(source: Path, target: Path) -> None:
    """The file's bytes into a pipe or a device; into a descriptor where it stands, so that nothing is overwritten."""
    number = _descriptor(target)
    handle = os.open(target, os.O_WRONLY) if number is None else os.dup(number)
    with open(handle, "wb") as out, source.open("rb") as file:
        shutil.copyfileobj(file, out)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """A text file in UTF-8, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work, a file that could not be written."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except (OSError, ValueError) as error:
        raise DataError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}.") from error
    if stat.S_ISDIR(mode):
        raise DataError(f"cannot write {path}: it is a folder.")
    if _is_stream(path):
        if not os.access(path, os.W_OK):
            raise DataError(f"cannot write {path}: no permission to write into it.")
        return
    if not stat.S_ISREG(mode):
        raise DataError(f"cannot write {path}: it is a disk or a socket, not a file, a pipe or a character device.")
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise DataError(f"cannot write {path}: there is no folder {Path(path).parent}.")
    if not os.access(target.parent, os.W_OK):
        raise DataError(f"cannot write {path}: no permission to write in {target.parent}.")
    try:
        with uninterrupted():
            temporary = _make_temporary(target, target.parent)
            temporary.unlink()
            files.temporary.discard(temporary)
    except OSError as error:
        if error.errno in FULL:
            raise OSError(error.errno, f"cannot write {path} ({error.strerror}): make room first") from error
        raise DataError(f"cannot write {path}: no file can be made in {target.parent} ({error.strerror}).") from error


def check_output(path: str, table: str | None = None) -> None:
    """Refuse, before any work, an output of labels that could not be written."""
    if not path:
        raise ParameterError("the name of the output is empty: give ", OUTPUT, ".")
    if _kind(path) not in LABEL_SUFFIXES:
        raise DataError(f"cannot write {path}: its name must end in one of {', '.join(LABEL_SUFFIXES)}.")
    check_target(path)
    target = Path(path)
    if table is not None and target.exists() and Path(table).exists() and target.samefile(table):
        raise DataError(f"output {path} is the input table itself: choose another name.")
    if _kind(path) == ".parquet":
        import_pyarrow()


def _kind(path: str | os.PathLike[str]) -> str:
    """The ending of the name, which says the format; CSV for a pipe or a device that has no such ending."""
    suffix = Path(path).suffix.lower()
    return ".csv" if suffix not in LABEL_SUFFIXES and _is_stream(path) else suffix


def write_labels(
    path: str,
    labels: IntArray,
    *,
    rows: IntArray,
    n_rows: int,
    ids: Sequence[str] | None = None,
    id_name: str = "row",
) -> None:
    """One label a row: with its number (from 1) or its id, except in .npy, where rows left out have −1."""
    with LabelWriter(path, id_name=id_name) as writer:
        if Path(path).suffix.lower() == ".npy":
            full = np.full(n_rows, -1, dtype=np.int64)
            full[rows] = labels
            writer.write(full)
        else:
            writer.write(labels, np.asarray(rows, dtype=np.int64) + 1 if ids is None else ids)


class LabelWriter:
    """Labels that come chunk by chunk, into a file that is whole or not there at all.

    ``with LabelWriter(path) as writer: writer.write(labels)``. The file is the one that ``write_labels`` writes for the
    same labels: CSV, TSV and Parquet hold the id of every row, by default its number from 1, and .npy holds the labels
    alone, as int64. Whatever goes wrong inside the block leaves the old file, if any, and no other.
    """

    def __init__(self, path: str | os.PathLike[str], id_name: str = "row") -> None:
        self.path = Path(path)
        check_output(os.fspath(path))
        self.names = (id_name, "label" if id_name != "label" else "cluster")
        self.n_rows = 0
        self._stack = ExitStack()
        self._sink: _TextSink | _NpySink | _ParquetSink | None = None
        self._numbered: bool | None = None

    def __enter__(self) -> LabelWriter:
        suffix = _kind(self.path)
        with ExitStack() as stack:
            temporary = stack.enter_context(atomic_path(self.path))
            if suffix == ".parquet":
                self._sink = _ParquetSink(temporary, self.names)
            elif suffix == ".npy":
                self._sink = _NpySink(temporary)
            else:
                self._sink = _TextSink(temporary, self.names, "\t" if suffix == ".tsv" else ",")
            stack.push(self._sink.close)
            self._stack = stack.pop_all()
        return self

    def write(self, labels: ArrayLike, ids: Sequence[str] | NDArray[Any] | None = None) -> None:
        """Append a label a row; ``ids`` are texts or whole numbers, and go on counting where there are none."""
        if self._sink is None:
            raise DataError(f"{self.path}: labels are written inside a with block: with LabelWriter(path) as writer.")
        values = np.asarray(labels)
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise DataError(
                f"{self.path}: labels must be one whole number a row, got {values.dtype} of shape {values.shape}."
            )
        if ids is not None and len(ids) != len(values):
            raise DataError(f"{self.path}: {len(ids)} ids came with {len(values)} labels; every row needs one of each.")
        if ids is None:
            ids = np.arange(self.n_rows + 1, self.n_rows + len(values) + 1, dtype=np.int64)
        if not len(values):
            return
        numbered = isinstance(ids, np.ndarray) and ids.dtype.kind in "iu"
        if self._numbered not in (None, numbered):
            raise DataError(f"{self.path}: ids must be texts in every chunk, or numbers in every chunk.")
        self._numbered = numbered
        self._sink.write(np.asarray(ids) if numbered else list(ids), values)
        self.n_rows += len(values)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sink = None
        self._stack.__exit__(kind, error, trace)


class _TextSink:
    """Lines of an id and a label."""

    def __init__(self, path: Path, names: tuple[str, str], delimiter: str) -> None:
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


class _NpySink:
    """Labels as int64, behind a header that is written again when their number is known."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._n_rows = 0
        self._start = self._header()

    def _header(self) -> int:
        self._file.seek(0)
        npy.write_array_header_1_0(
            self._file, {"descr": "<i8", "fortran_order": False, "shape": (self._n_rows,)}
        )  # numpy leaves room for the first axis to grow
        return self._file.tell()

    def write(self, keys: object, labels: NDArray[Any]) -> None:  # noqa: ARG002
        self._file.write(np.ascontiguousarray(labels, dtype="<i8").data)
        self._n_rows += len(labels)

    def close(self, kind: type[BaseException] | None, *_: object) -> None:
        with suppress(OSError) if kind is not None else nullcontext(), self._file:
            if kind is None and self._header() != self._start:
                raise DataError("this numpy leaves no room in the header of a .npy file; write another kind of file.")


class _ParquetSink:
    """Two columns, in groups of rows of the size that pyarrow makes."""

    def __init__(self, path: Path, names: tuple[str, str]) -> None:
        self._pa = import_pyarrow()
        self._path = path
        self._names = names
        self._writer: Any = None
        self._waiting: Any = None  # fewer rows than a group

    def write(self, keys: NDArray[Any] | list[str], labels: NDArray[Any]) -> None:
        keys = self._pa.array(keys) if isinstance(keys, np.ndarray) else self._pa.array(keys, type=self._pa.string())
        arrays = [keys, self._pa.array(labels)]
        if self._waiting is None:
            table = self._pa.table(arrays, names=list(self._names))
        else:
            schema = self._waiting.schema
            columns = [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)]
            table = self._pa.concat_tables([self._waiting, self._pa.table(columns, schema=schema)])
        whole = len(table) - len(table) % GROUP_ROWS
        if whole:
            self._put(table[:whole])
        self._waiting = table[whole:]

    def _put(self, table: Any) -> None:
        if self._writer is None:
            self._writer = self._pa.parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table.combine_chunks(), row_group_size=GROUP_ROWS)

    def close(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            if self._waiting is None:
                self.write(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
            if len(self._waiting) or self._writer is None:
                self._put(self._waiting)
        if self._writer is not None:
            with suppress(OSError) if kind is not None else nullcontext():
                self._writer.close()
