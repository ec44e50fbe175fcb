"""Files that are written whole or not at all."""

import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from biclique.exceptions import DataError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk that is full, of a user's share of it, and of the largest file."""


@dataclass
class Files:
    """What this process has written, and what it would leave behind if it ended now."""

    temporary: set[Path] = field(default_factory=set)
    placing: tuple[Path, Path] | None = None
    """A temporary file that is complete, and what it replaces."""
    placed: Path | None = None
    """The last file that was put in place."""
    partial: Path | None = None
    """The pipe or device that is being written into."""
    kept: str = ""
    """What a command keeps besides, in words."""

    def name(self, folder: Path, ending: str = ".part") -> Path:
        """The path of a temporary file that is yet to be made: whatever happens from now on, it is known."""
        path = folder / f".biclique-{os.getpid()}-{secrets.token_hex(8)}{ending}"
        self.temporary.add(path)
        return path

    @property
    def outcome(self) -> str:
        """What became of the output, in words; empty if there is none."""
        if self.placing is not None and not self.placing[0].exists():
            self.placed = self.placing[1]
        if self.kept or self.placed is not None:
            return self.kept or f"{self.placed} was written and is complete"
        return "" if self.partial is None else f"{self.partial} may have got a part of the output"

    def put(self, temporary: Path, target: Path, name: Path) -> None:
        """Move a temporary file or folder that is complete to where it belongs."""
        self.placing = temporary, name
        try:
            temporary.replace(target)
            self.placed = name
        finally:
            self.placing = None

    def remove(self, path: Path) -> None:
        """Remove a temporary file or folder, if it is there."""
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            path.unlink(missing_ok=True)
        self.temporary.discard(path)

    def discard(self) -> None:
        """Remove the temporary files."""
        for path in tuple(self.temporary):
            self.remove(path)


files = Files()


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path`` to write to; moved into place at the end, removed on any failure.

    Symbolic links are followed. A pipe or a character device, such as /dev/stdout, is not replaced: what was written
    is copied into it at the end.
    """
    stream = is_stream(path)
    target = Path(path) if stream else Path(os.path.realpath(path))
    temporary = files.name(Path(tempfile.gettempdir()) if stream else target.parent)
    files.partial = None
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else None  # no setuid
        temporary.touch(0o666 if mode is None else 0o600, exist_ok=False)
        yield temporary
        if stream:
            files.partial = target
            _copy(temporary, target)
            files.placed, files.partial = target, None
        else:
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            if mode is not None:
                temporary.chmod(mode)
            files.put(temporary, target, Path(path))
    except OSError as error:
        if error.filename not in (None, str(temporary), str(target)):
            raise  # of another file
        left = "nothing was written" if files.partial is None else "a part of it may have been written"
        raise OSError(
            error.errno,
            f"cannot write {path} ({error.strerror or error}): make room or choose another place; {left}",
        ) from error
    finally:
        files.remove(temporary)


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder to fill, moved to ``path``, where nothing is yet, at the end; removed on any failure."""
    target = Path(path).absolute()
    temporary = files.name(target.parent)
    try:
        temporary.mkdir()
        yield temporary
        files.put(temporary, target, Path(path))
    finally:
        files.remove(temporary)


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


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work, a file that could not be written."""
    target = Path(os.path.realpath(path))
    if is_stream(path):
        if not os.access(path, os.W_OK):
            raise DataError(f"cannot write {path}: no permission to write into it.")
        return
    try:
        with suppress(FileNotFoundError):
            os.stat(path)  # a name that is too long, or a loop of links
        if target.is_dir():
            raise DataError(f"cannot write {path}: it is a folder.")
        if target.exists() and not target.is_file():
            raise DataError(f"cannot write {path}: it is a disk or a socket, not a file, a pipe or a character device.")
        if not target.parent.is_dir():
            raise DataError(f"cannot write {path}: there is no folder {Path(path).parent}.")
        temporary = files.name(target.parent)
        try:
            temporary.touch(0o600, exist_ok=False)
        finally:
            files.remove(temporary)
    except OSError as error:
        if error.errno in FULL:
            raise OSError(error.errno, f"cannot write {path} ({error.strerror}): make room first") from error
        raise DataError(f"cannot write {path}: no file can be made there ({error.strerror}).") from error
