"""Labels out: beside the whole table, beside ids or beside numbers of rows; one file, or a folder of parts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray, IntArray
from biclique.cli.opened_tables import OpenedTable
from biclique.exceptions import BicliqueError, BicliqueWarning, DataError, warn_user
from biclique.tables.atomic_files import atomic_folder, check_target
from biclique.tables.frames import pandas
from biclique.tables.parts import of_parts
from biclique.tables.writing import write_labels


def found_labels(
    model: Any, X: Any, kept: NDArray[np.bool_], labels: IntArray, *, append: bool
) -> tuple[IntArray, FloatArray | None]:
    """The label of every row of a table, of which X has those that are kept; with probabilities to append."""
    full = np.full(len(kept), -1, dtype=np.int64)
    full[kept] = labels
    if not append:
        return full, None
    probabilities = np.full(len(kept), np.nan)
    try:
        if kept.any():
            probabilities[kept] = np.asarray(model.predict_proba(X).max(axis=1))
    except (BicliqueError, NotImplementedError, AttributeError) as error:
        warn_user(f"probabilities are left out: {error}", BicliqueWarning)
        return full, None
    return full, probabilities


def rows_to_label(table: OpenedTable, ids: Sequence[str], n_rows: int, *, append: bool) -> Iterator[Any]:
    """What stands beside the labels, piece by piece: the whole table, its ids or numbers of rows."""
    if append:
        yield from table.pieces(as_written=True)
    elif ids:
        yield from (frame[list(ids)] for frame in table.pieces())
    else:
        yield pandas().DataFrame({"row": np.arange(n_rows)})


def cluster_sizes(labels: IntArray, n_clusters: int, unit: str) -> list[dict[str, int]]:
    """How many have each label; −1 is none."""
    sizes = np.bincount(labels[labels >= 0], minlength=n_clusters)
    return [{"label": label, unit: int(size)} for label, size in enumerate(sizes)]


# A folder of parts


def check_folder(path: str) -> None:
    """Refuse, before any work, a folder that could not be made; one that exists may have other labels in it."""
    if Path(path).exists():
        raise DataError(f"cannot write {path}: it exists, and --dask writes a new folder: give another name.")
    check_target(path)


def write_parts(output: str, labels: IntArray, table: OpenedTable, ids: Sequence[str]) -> None:
    """A folder of Parquet files, one for every partition of the table, each by the worker that reads its rows."""
    with atomic_folder(output) as folder:
        own = []
        start = 0
        for number, length in enumerate(table.lengths):
            path = folder / f"part-{number:05d}.parquet"
            own.append((str(path), list(ids), labels[start : start + length], start))
            start += length
        of_parts(_write_part, table.frame, own)


def _write_part(part: Any, path: str, ids: list[str], labels: IntArray, start: int) -> None:
    beside = part[ids] if ids else pandas().DataFrame({"row": np.arange(start, start + len(part))})
    write_labels(path, labels, [beside])
