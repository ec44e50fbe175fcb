"""``-`` as the name of a table or of an output: standard input and standard output."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from biclique.cli.output import STDOUT
from biclique.exceptions import Argument, BicliqueError, TableError
from biclique.tables.atomic_files import files

INPUT = "standard input"
BEGINNINGS = {b"PAR1": ".parquet", b"\x93NUM": ".npy", b"PK\x03\x04": ".npz"}
"""The first bytes of tables that are not text, with the endings of their names."""


def shown_output(path: str) -> str:
    """What to call an output in words."""
    return "standard output" if path == STDOUT else path


@contextmanager
def table_file(name: str) -> Iterator[str]:
    """The file of a table: a copy of standard input for ``-``, which is removed afterwards."""
    if name != "-":
        yield name
        return
    stream: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
    if stream is None or sys.stdin.isatty():
        raise TableError(f"{INPUT}: there is no table in it: send one, as in biclique cluster - -k 3 < table.csv.")
    beginning = stream.read(4)
    path = files.name(Path(tempfile.gettempdir()), BEGINNINGS.get(beginning, ".csv"))
    try:
        path.touch(0o600, exist_ok=False)
        with path.open("wb") as file:
            file.write(beginning)
            shutil.copyfileobj(stream, file)
        yield str(path)
    except BicliqueError as error:
        error.args = tuple(
            part if isinstance(part, Argument) else str(part).replace(str(path), INPUT) for part in error.args
        )
        raise
    finally:
        files.remove(path)
