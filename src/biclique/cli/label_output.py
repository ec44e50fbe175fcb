"""Labels out: beside the whole table, beside ids or beside numbers of rows; one file, or a folder of parts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique import __version__
from biclique._typing import IntArray
from biclique.cli.opened_tables import OpenedTable
from biclique.exceptions import BicliqueError, BicliqueWarning, DataError, printable, warn_user
from biclique.tables.atomic_files import files, write_text
from biclique.tables.frames import pandas
from biclique.tables.parts import of_parts, stamp
from biclique.tables.writing import ENDINGS, ending_of, label_columns, write_labels

RUN_FILE = "_biclique.json"
"""In the folder of parts: which run they are of. Readers of Parquet folders skip names that begin so."""
NUMBERED_ROWS = 2**20
"""Rows that are written at once if they have numbers alone."""


def found_labels(model: Any, X: Any, kept: NDArray[np.bool_], labels: IntArray, *, append: bool) -> Any:
    """The label of every row of a table, of which X has those that are kept; with probabilities to append."""
    full = np.full(len(kept), -1, dtype=np.int64)
    full[kept] = labels
    probabilities = None
    if append:
        try:
            probabilities = np.full(len(kept), np.nan)
            if kept.any():
                probabilities[kept] = np.asarray(model.predict_proba(X).max(axis=1))
        except (BicliqueError, NotImplementedError, AttributeError) as error:
            warn_user(f"probabilities are left out: {error}", BicliqueWarning)
            probabilities = None
    return label_columns(full, probabilities)


def rows_to_label(table: OpenedTable, ids: Sequence[str], n_rows: int, *, append: bool) -> Iterator[Any]:
    """What stands beside the labels, piece by piece: the whole table, its ids or numbers of rows."""
    if append:
        yield from table.pieces(as_written=True)
    elif ids:
        yield from (frame[list(ids)] for frame in table.pieces())
    else:
        for start in range(0, n_rows, NUMBERED_ROWS):
            yield _row_numbers(start, min(n_rows, start + NUMBERED_ROWS))


def _row_numbers(start: int, stop: int) -> Any:
    return pandas().DataFrame({"row": np.arange(start, stop)})


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
    stamps = [[path, *stamp(Path(path))] for path in table.paths]
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


def write_parts(paths: Sequence[str], found: Any, table: OpenedTable, ids: Sequence[str]) -> None:
    """The parts that are missing, each by the worker that reads its rows."""
    own: list[tuple[Any, ...] | None] = []
    start = 0
    for path, length in zip(paths, table.lengths, strict=True):
        labels = found.iloc[start : start + length]
        own.append(None if Path(path).exists() else (path, list(ids), labels, start))
        start += length
    of_parts(_write_part, table.frame, own)
    files.placed = Path(paths[0]).parent


def _write_part(part: Any, path: str, ids: list[str], found: Any, start: int) -> None:
    write_labels(path, found, [part[ids] if ids else _row_numbers(start, start + len(part))])
