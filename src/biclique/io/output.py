"""Results out: complete files or none."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from biclique._typing import IntArray
from biclique.exceptions import DataError
from biclique.io._extras import import_pyarrow

LABEL_SUFFIXES = (".csv", ".tsv", ".npy", ".parquet")


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path`` to write to; moved into place at the end, removed on any failure."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(target.stat().st_mode if target.exists() else 0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """A text file in UTF-8, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_output(path: str, table: str | None = None) -> None:
    """Refuse, before any work, an output that could not be written."""
    target = Path(path)
    if target.suffix.lower() not in LABEL_SUFFIXES:
        raise DataError(f"cannot write {path}: its name must end in one of {', '.join(LABEL_SUFFIXES)}.")
    if target.is_dir():
        raise DataError(f"cannot write {path}: it is a folder.")
    if not target.parent.is_dir():
        raise DataError(f"cannot write {path}: there is no folder {target.parent}.")
    if not os.access(target.parent, os.W_OK):
        raise DataError(f"cannot write {path}: no permission to write in {target.parent}.")
    if table is not None and target.exists() and Path(table).exists() and target.samefile(table):
        raise DataError(f"output {path} is the input table itself: choose another name.")
    if target.suffix.lower() == ".parquet":
        import_pyarrow()


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
    suffix = Path(path).suffix.lower()
    label_name = "label" if id_name != "label" else "cluster"
    keys: Sequence[str] | list[int] = list(ids) if ids is not None else [int(r) + 1 for r in rows]
    with atomic_path(path) as temporary:
        if suffix == ".npy":
            full = np.full(n_rows, -1, dtype=np.int64)
            full[rows] = labels
            with temporary.open("wb") as file:
                np.save(file, full)
        elif suffix == ".parquet":
            pa = import_pyarrow()
            pa.parquet.write_table(pa.table({id_name: keys, label_name: np.asarray(labels)}), temporary)
        else:
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
                writer.writerow([id_name, label_name])
                writer.writerows(zip(keys, np.asarray(labels).tolist(), strict=True))
