"""Tables larger than memory as Dask frames: nothing is read before it is needed, and a part at a time.

The parts depend on the file alone, so every pass gives the same bits.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from biclique.exceptions import BicliqueError, MemoryLimitError, TableError, printable
from biclique.tables.frames import dask, with_texts

FEWER = "leave out columns, or take fewer rows."
"""The way out of a table that does not fit the memory."""


Parts: TypeAlias = tuple[Callable[..., Any], Sequence[tuple[Any, ...]], Any]
"""A table in parts: ``read(path, *more)``, which gives a frame; places (path, *more); the frame without rows."""


@contextmanager
def readable(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Whatever a damaged file makes a library raise becomes one sentence."""
    name = printable(path)
    try:
        yield
    except BicliqueError:
        raise
    except MemoryError as error:
        raise MemoryLimitError(f"{name}: there was not enough memory to read it: {FEWER}") from error
    except Exception as error:  # libraries raise what they like
        system = isinstance(error, OSError) and error.strerror
        why = "cannot be read" if system else f"not a readable {what}"
        line = (str(system or error).strip().splitlines() or [type(error).__name__])[0]
        raise TableError(f"{name}: {why} ({printable(line[:200])}).") from error


def stamp(path: Path) -> tuple[int, int]:
    """How long a file is, and when it was written."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def check_unchanged(path: Path, before: tuple[int, int], now: tuple[int, int]) -> None:
    """Refuse a file that was written between two stamps."""
    if now != before:
        raise TableError(f"{printable(path)}: was written again or replaced; leave it as it is until the work is done.")


def read_unchanged(
    stamped: tuple[tuple[int, int], tuple[Any, ...]], read: Callable[..., Any], what: str, texts: Sequence[str]
) -> Any:
    """A part of a file, which is refused if it was written since it was opened."""
    before, place = stamped
    path = place[0]
    check_unchanged(path, before, stamp(path))
    with readable(path, what):
        frame = read(*place)
        frame.attrs.setdefault("name", printable(path))
        return with_texts(frame, texts)


def of_parts(function: Callable[..., Any], frame: Any, arguments: Sequence[tuple[Any, ...]] = ()) -> Sequence[Any]:
    """``function(part, *arguments)`` of every partition, by the worker that reads it."""
    parts = frame.to_delayed()
    own = arguments or [()] * len(parts)
    return tuple(
        dask().compute(*(dask().delayed(function)(part, *more) for part, more in zip(parts, own, strict=True)))
    )
