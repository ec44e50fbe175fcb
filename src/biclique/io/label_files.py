"""Labels out: one for each row, by themselves or behind the columns of their table."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import Argument, DataError, ParameterError, TableError
from biclique.io.arrow import import_pyarrow
from biclique.io.chunks import FORMATS, LabelSink, find_format, writers
from biclique.io.columns import texts_of
from biclique.io.fields import Kind, TextForm
from biclique.io.roles import as_texts
from biclique.io.text_blocks import TextFile
from biclique.io.typed_columns import ColumnSource
from biclique.runtime import parse_memory_limit
from biclique.tables.atomic_files import atomic_path, check_target, is_stream

OUTPUT = Argument("a file, such as labels.csv")
ROWS = 65_536  # that are written at once
DELIMITERS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET = (".parquet", ".pq")


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


# A table written back with new columns: the label of every row, and the probability of that label


@dataclass(frozen=True)
class NewColumns:
    """What is known of the rows of a table: labels of those that are kept, and probabilities if there are any."""

    kept: NDArray[np.bool_]  # (n,)
    labels: IntArray  # (rows that are kept,)
    probabilities: FloatArray | None = None  # (rows that are kept,)

    @classmethod
    def joined(cls, parts: Sequence[NewColumns]) -> NewColumns:
        """What is known of consecutive rows; no probabilities if a part has none."""
        known = [part.probabilities for part in parts if part.probabilities is not None]
        return cls(
            np.concatenate([np.empty(0, dtype=bool), *(part.kept for part in parts)]),
            np.concatenate([np.empty(0, dtype=np.int64), *(part.labels for part in parts)]),
            np.concatenate(known) if known and len(known) == len(parts) else None,
        )

    def names(self, taken: Sequence[str]) -> list[str]:
        """``label`` and ``probability``, or other names if the table has such columns."""
        wanted = ["label"] if self.probabilities is None else ["label", "probability"]
        return [free_name(name, taken) for name in wanted]

    def values(self, start: int, stop: int) -> list[list[float | int | None]]:
        """The new values of some rows, None for rows that were left out."""
        inside = self.kept[start:stop]
        first = int(self.kept[:start].sum())
        made: list[list[float | int | None]] = []
        for known in (self.labels, self.probabilities):
            if known is not None:
                column = np.full(len(inside), None, dtype=object)
                column[inside] = known[first : first + int(inside.sum())].tolist()
                made.append(column.tolist())
        return made


def free_name(name: str, taken: Sequence[str]) -> str:
    """``label``, or ``label_2`` if the table has such a column, and so on."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def check_append(path: str, table: str) -> None:
    """Refuse, before any work, a file that cannot hold the table with new columns."""
    ending = Path(path).suffix.lower()
    if ending in PARQUET:
        if Path(table).suffix.lower() not in PARQUET or Path(table).is_dir():
            raise DataError(f"cannot write {path}: only the rows of a Parquet file are written back so; use .csv.")
        import_pyarrow()
    elif ending not in DELIMITERS and not is_stream(path):
        raise DataError(f"cannot write {path}: a table with its labels is written as .csv, .tsv or .parquet.")


def check_ids(path: str) -> None:
    """Refuse a file that cannot hold several columns of ids."""
    if Path(path).suffix.lower() not in DELIMITERS and not is_stream(path):
        raise DataError(f"cannot write {path}: several columns of ids are written as .csv or .tsv.")


def append_labels(
    path: str, source: ColumnSource, new: NewColumns, file: Path | None = None, form: TextForm | None = None
) -> None:
    """Write every row of a table with new columns; those of rows that were left out are empty.

    ``file`` is where the table was read from. The fields of a text file, which ``form`` describes, and the values of a
    Parquet file are written as they are; without a file, the rows of ``source`` are. Probabilities beside
    the fields of a text have its decimal sign.
    """
    target, names = Path(path), list(source.kinds)
    with atomic_path(target) as temporary:
        if file is not None and target.suffix.lower() in PARQUET:
            n = _write_parquet(temporary, file, new, names)
        else:
            blocks = column_texts(source) if file is None else file_texts(file, form, source)
            kind = None if file is None else find_format(file)
            decimal = form.decimal if form is not None and kind is not None and kind.is_text else "."
            n = _write_text(temporary, blocks, new, names, DELIMITERS.get(target.suffix.lower(), ","), decimal)
        if n != len(new.kept):
            raise TableError(
                f"{source.name}: {n} rows came in this pass, {len(new.kept)} before; leave it as it is until the work "
                "is done."
            )


def _write_text(
    path: Path, blocks: Iterator[list[list[str]]], new: NewColumns, names: Sequence[str], delimiter: str, decimal: str
) -> int:
    n = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        lines.writerow([*names, *new.names(names)])
        for columns in blocks:
            start, n = n, n + len(columns[0])
            if n > len(new.kept):
                break
            more = [[_shown(x, decimal) for x in column] for column in new.values(start, n)]
            lines.writerows(zip(*columns, *more, strict=True))
    return n


def _shown(value: float | int | None, decimal: str) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.6g}".replace(".", decimal)


def _write_parquet(path: Path, file: Path, new: NewColumns, names: Sequence[str]) -> int:
    """The same types as in the file; labels are int64, null for rows that were left out."""
    pyarrow, n = import_pyarrow(), 0
    writer: Any = None
    with pyarrow.parquet.ParquetFile(file) as source:
        try:
            for batch in source.iter_batches(batch_size=ROWS):
                start, n = n, n + batch.num_rows
                if n > len(new.kept):
                    break
                table = pyarrow.Table.from_batches([batch])
                kinds = (pyarrow.int64(), pyarrow.float64())
                for name, values, kind in zip(new.names(names), new.values(start, n), kinds, strict=False):
                    table = table.append_column(name, pyarrow.array(values, type=kind))
                writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()
    return n


# Rows as texts


def file_texts(file: Path, form: TextForm | None, source: ColumnSource) -> Iterator[list[list[str]]]:
    """Every column as the file has it, some rows at a time; numbers of other files as texts."""
    kind = find_format(file)
    if kind is not None and kind.is_text:
        return text_fields(file, form or TextForm())
    is_parquet = file.suffix.lower() in PARQUET and not file.is_dir()
    return parquet_texts(file) if is_parquet else column_texts(source)


def open_text(file: Path, form: TextForm) -> TextFile:
    """A text file; tabs are between the fields if its name says so."""
    kind = find_format(file)
    return TextFile(file, form if kind is None else kind.form(form), parse_memory_limit("auto"))


def text_fields(file: Path, form: TextForm, names: Sequence[str] | None = None) -> Iterator[list[list[str]]]:
    """Fields of a text file as they are, of all columns or of some."""
    text = open_text(file, form)
    places = range(text.width) if names is None else [text.names.index(name) for name in names]
    kinds: dict[int, Kind | None] = {j: "text" for j in places}
    for block in text.blocks(kinds):
        yield [block.values[j].tolist() for j in places]


def column_texts(source: ColumnSource) -> Iterator[list[list[str]]]:
    """Typed columns as texts, some rows at a time."""
    for table in source.column_chunks(ROWS):
        yield [texts_of(column) for column in table.columns]


def parquet_texts(file: Path) -> Iterator[list[list[str]]]:
    """The columns of a Parquet file as texts, each value as it is stored."""
    with import_pyarrow().parquet.ParquetFile(file) as source:
        for batch in source.iter_batches(batch_size=ROWS):
            yield [as_texts(column.to_pylist()) for column in batch.columns]
