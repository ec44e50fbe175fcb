"""Labels out: beside the whole table, beside ids or beside numbers of rows; one file, or a folder of parts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from biclique import __version__
from biclique._typing import FloatArray, IntArray
from biclique.cli.opened_tables import OpenedTable
from biclique.exceptions import BicliqueError, BicliqueWarning, DataError, printable, warn_user
from biclique.tables.atomic_files import files, write_text
from biclique.tables.frames import pandas
from biclique.tables.text_form import TextForm
from biclique.tables.writing import ENDINGS, ending_of, with_labels, write_frame, write_npy, write_pieces

RUN_FILE = "_biclique.json"
"""In the folder of parts: which run they are of. Readers of Parquet folders skip names that begin so."""
NUMBERED_ROWS = 2**20
"""Rows that are written at once if they have numbers alone."""


@dataclass(frozen=True)
class Labels:
    """The label of every row of a table, −1 for none, and its probability."""

    labels: IntArray  # (n,)
    probabilities: FloatArray | None = None  # (n,)

    @classmethod
    def found(cls, model: Any, X: Any, kept: NDArray[np.bool_], labels: IntArray, *, append: bool) -> Self:
        """The labels of the rows X, which are those of a table that are kept; with probabilities to append."""
        full = np.full(len(kept), -1, dtype=np.int64)
        full[kept] = labels
        if not append:
            return cls(full)
        probabilities = np.full(len(kept), np.nan)
        try:
            if kept.any():
                probabilities[kept] = np.asarray(model.predict_proba(X).max(axis=1))
        except (BicliqueError, NotImplementedError, AttributeError) as error:
            warn_user(f"probabilities are left out: {error}", BicliqueWarning)
            return cls(full)
        return cls(full, probabilities)

    def beside(self, frame: Any, start: int) -> Any:
        """Rows of the table from a number on, with their labels."""
        rows = slice(start, start + len(frame))
        return with_labels(frame, self.labels[rows], None if self.probabilities is None else self.probabilities[rows])

    def pieces(self, table: OpenedTable, ids: Sequence[str], append: bool) -> Iterator[Any]:
        """What is written, piece by piece."""
        start = 0
        for frame in table.pieces(as_written=append) if append or ids else _numbered(len(self.labels)):
            yield self.beside(frame[list(ids)] if ids and not append else frame, start)
            start += len(frame)


def _numbered(n_rows: int) -> Iterator[Any]:
    for start in range(0, n_rows, NUMBERED_ROWS):
        yield _row_numbers(start, min(n_rows, start + NUMBERED_ROWS))


def _row_numbers(start: int, stop: int) -> Any:
    return pandas().DataFrame({"row": np.arange(start, stop)})


def write_file(
    path: str, found: Labels, table: OpenedTable, ids: Sequence[str], form: TextForm, *, append: bool
) -> None:
    """One file, whole or not at all."""
    if ending_of(path) == ".npy":
        write_npy(path, found.labels)
    else:
        write_pieces(path, found.pieces(table, ids, append), form)


def cluster_sizes(labels: IntArray, n_clusters: int, unit: str) -> list[dict[str, int]]:
    """How many have each label; −1 is none."""
    sizes = np.bincount(labels[labels >= 0], minlength=n_clusters)
    return [{"label": label, unit: int(size)} for label, size in enumerate(sizes)]


# A folder of parts


def is_folder(path: str) -> bool:
    """Whether an output of ``--dask`` is a folder: its name has no ending of a file of labels."""
    return ending_of(path) not in ENDINGS


def paths_of_parts(output: str, table: OpenedTable, settings: Mapping[str, Any]) -> list[str]:
    """The Parquet files in a fresh folder, or in that of the same run, one for every partition of the table.

    Each is whole or not there, so a run that was stopped goes on. ``settings`` are the options that labels depend on.
    """
    folder = Path(output).absolute()
    stamps = [[path, Path(path).stat().st_size, Path(path).stat().st_mtime_ns] for path in table.paths]
    run = json.dumps({"version": __version__, "files": stamps, "options": settings}, indent=1)
    note = folder / RUN_FILE
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{printable(output)}: is a file, and --dask writes a folder: give another -o.")
    if not folder.exists() or not any(path != note for path in folder.iterdir()):  # new, or it failed early
        folder.mkdir(parents=True, exist_ok=True)
        write_text(note, run)
        files.placed = None  # there is no label yet
    elif not note.exists() or note.read_text(encoding="utf-8") != run:
        raise DataError(
            f"{printable(output)}: holds something else than labels of this run (other files, options or version): "
            "give another folder, or empty it."
        )
    return [str(folder / f"part-{number:05d}.parquet") for number in range(table.frame.npartitions)]


def write_parts(paths: Sequence[str], found: Labels, table: OpenedTable, ids: Sequence[str]) -> None:
    """The parts that are missing, each by the worker that reads its rows."""
    starts = np.cumsum([0, *table.lengths])[:-1].tolist()
    own: list[tuple[Any, ...] | None] = []
    for path, start, length in zip(paths, starts, table.lengths, strict=True):
        labels = Labels(found.labels[start : start + length])
        own.append(None if Path(path).exists() else (path, list(ids), labels, start))
    table.on_parts(_write_part, own)
    files.placed = Path(paths[0]).parent


def _write_part(part: Any, path: str, ids: list[str], found: Labels, start: int) -> None:
    write_frame(path, found.beside(part[ids] if ids else _row_numbers(start, start + len(part)), 0))
