"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import shutil
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from biclique.exceptions import DataError

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
    stream = is_stream(path)
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


def is_stream(path: str | os.PathLike[str]) -> bool:
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
    """The file's bytes into a pipe or a device; into a descriptor at its current place: nothing is overwritten."""
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
    if is_stream(path):
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
