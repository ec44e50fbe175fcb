"""Labels out: one for each row, in the format that the name of the file says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biclique._typing import IntArray
from biclique.exceptions import Argument, DataError, ParameterError
from biclique.io.atomic_files import atomic_path, check_target, is_stream
from biclique.io.chunks import FORMATS, LabelSink, writers

OUTPUT = Argument("a file, such as labels.csv")


def check_output(path: str, table: str | None = None) -> None:
    """Refuse, before any work, an output of labels that could not be written."""
    if not path:
        raise ParameterError("the name of the output is empty: give ", OUTPUT, ".")
    if _ending(path) not in writers():
        raise DataError(f"cannot write {path}: its name must end in one of {', '.join(writers())}.")
    check_target(path)
    target = Path(path)
    if table is not None and target.exists() and Path(table).exists() and target.samefile(table):
        raise DataError(f"output {path} is the input table itself: choose another name.")
    FORMATS[_ending(path)].needs()


def _ending(path: str | os.PathLike[str]) -> str:
    """The ending of the name, which says the format; CSV for a pipe or a device that has no such ending."""
    suffix = Path(path).suffix.lower()
    return ".csv" if suffix not in writers() and is_stream(path) else suffix


def write_labels(
    path: str,
    labels: IntArray,
    *,
    rows: IntArray,
    n_rows: int,
    ids: Sequence[str] | None = None,
    id_name: str = "row",
) -> None:
    """One line for every row of the table: its number (from 0) or its id, and its label.

    ``rows`` are the numbers of the rows that have a label, ``ids`` those of all ``n_rows`` rows. The label of another
    row is empty; in .npy, which holds labels alone, it is −1.
    """
    kept = np.zeros(n_rows, dtype=bool)
    kept[rows] = True
    full = np.zeros(n_rows, dtype=np.int64)
    full[rows] = labels
    with LabelWriter(path, id_name=id_name) as writer:
        writer.write(full, ids, None if kept.all() else kept)


class LabelWriter:
    """Labels that come chunk by chunk, into a file that is whole or not there at all.

    ``with LabelWriter(path) as writer: writer.write(labels)``. The file is the one that ``write_labels`` writes for the
    same labels: CSV, TSV and Parquet hold the id of every row, by default its number from 0, and .npy holds the labels
    alone, as int64. If anything goes wrong inside the block, the old file stays, and no other is left.
    """

    def __init__(self, path: str | os.PathLike[str], id_name: str = "row") -> None:
        self.path = Path(path)
        check_output(os.fspath(path))
        self.names = (id_name, "label" if id_name != "label" else "cluster")
        self.n_rows = 0
        self._stack = ExitStack()
        self._sink: LabelSink | None = None
        self._numbered: bool | None = None

    def __enter__(self) -> LabelWriter:
        with ExitStack() as stack:
            temporary = stack.enter_context(atomic_path(self.path))
            self._sink = writers()[_ending(self.path)](temporary, self.names)
            stack.push(self._sink.close)
            self._stack = stack.pop_all()
        return self

    @property
    def with_ids(self) -> bool:
        """Whether the open file holds ids."""
        return self._sink is not None and self._sink.with_ids

    def write(
        self,
        labels: ArrayLike,
        ids: Sequence[str] | NDArray[Any] | None = None,
        kept: NDArray[np.bool_] | None = None,
    ) -> None:
        """Append a label for each row; ``ids`` are texts or whole numbers; without ids rows are counted on.

        A row that is not ``kept`` has an empty label, and −1 in .npy.
        """
        if self._sink is None:
            raise DataError(f"{self.path}: labels are written inside a with block: with LabelWriter(path) as writer.")
        values = np.asarray(labels)
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise DataError(
                f"{self.path}: labels must be one whole number for each row, got {values.dtype} of shape "
                f"{values.shape}."
            )
        if ids is not None and len(ids) != len(values):
            raise DataError(f"{self.path}: {len(ids)} ids came with {len(values)} labels; every row needs one of each.")
        if kept is not None and (kept.dtype != bool or kept.shape != values.shape):
            raise DataError(f"{self.path}: kept must say of each of {len(values)} rows whether it has a label.")
        if ids is None:
            ids = np.arange(self.n_rows, self.n_rows + len(values), dtype=np.int64)
        if not len(values):
            return
        numbered = isinstance(ids, np.ndarray) and ids.dtype.kind in "iu"
        if self._numbered not in (None, numbered):
            raise DataError(f"{self.path}: ids must be texts in every chunk, or numbers in every chunk.")
        self._numbered = numbered
        self._sink.write(np.asarray(ids) if numbered else list(ids), values, kept)
        self.n_rows += len(values)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sink = None
        self._stack.__exit__(kind, error, trace)
