"""Labels out, beside rows of a table: CSV, TSV, .npy and Parquet, whole or absent."""

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, ParameterError
from biclique.tables.atomic_files import atomic_path, check_target, is_stream
from biclique.tables.frames import pandas, pyarrow, texts_of
from biclique.tables.text_form import PLAIN, TextForm

DELIMITERS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}
"""What stands between the fields of text files that are written, by their ending."""
PARQUET = (".parquet", ".pq")
"""Endings of Parquet files."""
ENDINGS = (*DELIMITERS, ".npy", *PARQUET)
"""Endings of files that are written."""


def check_output(path: str, *, several: bool = False) -> None:
    """Refuse, before any work, an output that could not be written; ``several`` columns beside labels and one id."""
    if not path:
        raise ParameterError("the name of the output is empty: give a file, such as labels.csv.")
    ending = ending_of(path)
    if ending not in ENDINGS:
        raise DataError(f"cannot write {path}: its name must end in one of {', '.join(ENDINGS)}.")
    if several and ending == ".npy":
        raise DataError(f"cannot write {path}: .npy holds labels alone; use .csv, .tsv or .parquet.")
    check_target(path)
    if ending != ".npy":
        pyarrow()
        pandas()


def ending_of(path: str | os.PathLike[str]) -> str:
    """The ending of the name; .csv for a pipe or a device without a known one."""
    suffix = Path(path).suffix.lower()
    return ".csv" if suffix not in ENDINGS and is_stream(path) else suffix


def free_name(name: str, taken: Sequence[str]) -> str:
    """``label``, or ``label_2`` if the table has such a column, and so on."""
    return next(found for found in chain([name], (f"{name}_{i}" for i in count(2))) if found not in taken)


def label_columns(labels: IntArray, probabilities: FloatArray | None = None) -> Any:
    """The columns ``label`` and, if there are any, ``probability``, to six digits; a row without a label (−1) has gaps.

    These are gaps of pandas, so whole numbers stay whole.
    """
    without = np.asarray(labels) < 0
    found = pandas().DataFrame({"label": pandas().Series(labels, dtype="Int64").mask(without)})
    if probabilities is not None:
        found["probability"] = np.where(without, np.nan, [float(f"{value:.6g}") for value in probabilities])
    return found


def write_labels(
    path: str | os.PathLike[str],
    labels: IntArray,
    pieces: Iterable[Any],
    form: TextForm = PLAIN,
    probabilities: FloatArray | None = None,
) -> None:
    """Frames of rows as one CSV, TSV or Parquet file, with their labels beside them; .npy has labels alone.

    Texts are written as they are; numbers of a text file have the form's decimal.
    """
    ending = ending_of(path)
    with atomic_path(path) as temporary:
        if ending == ".npy":
            packed = io.BytesIO()  # NumPy itself does not say why a disk refuses
            np.save(packed, labels.astype(np.int64))
            temporary.write_bytes(packed.getbuffer())
            return
        labelled = _labelled(pieces, label_columns(labels, probabilities))
        if ending in PARQUET:
            _write_parquet(temporary, labelled)
        else:
            _write_text(temporary, labelled, DELIMITERS[ending], form.decimal)


def _labelled(pieces: Iterable[Any], found: Any) -> Iterator[Any]:
    """The frames with more columns: those of ``label_columns``, by names that they do not have."""
    start = 0
    for frame in pieces:
        labelled = frame.copy(deep=False)
        for name, values in found.iloc[start : start + len(frame)].items():
            labelled[free_name(name, list(frame.columns))] = values.array
        start += len(frame)
        yield labelled


def _write_parquet(path: Path, pieces: Iterator[Any]) -> None:
    from_pandas = partial(pyarrow().Table.from_pandas, preserve_index=False)
    table = from_pandas(next(pieces))
    with pyarrow("pyarrow.parquet").ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        for piece in pieces:
            writer.write_table(from_pandas(piece).cast(table.schema))


def _write_text(path: Path, pieces: Iterable[Any], delimiter: str, decimal: str) -> None:
    with path.open("wb") as file:
        for number, piece in enumerate(pieces):
            fields = {name: _fields(column, decimal) for name, column in piece.items()}
            frame = pandas().DataFrame(fields, columns=piece.columns)
            frame.to_csv(file, sep=delimiter, index=False, lineterminator="\n", header=number == 0)


def _fields(column: Any, decimal: str) -> Any:
    """Whole numbers as they are, other columns as texts, empty for gaps."""
    if column.dtype.kind in "iu":
        return column
    texts = texts_of(column)
    return [text.replace(".", decimal) for text in texts] if column.dtype.kind == "f" else texts
