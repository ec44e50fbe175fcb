"""Tables in: CSV, TSV, Parquet, .npy and .npz, never with pickle."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import TableError
from biclique.io._extras import import_pyarrow

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
CHUNK = 10_000
SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".parquet", ".pq", ".npy", ".npz")


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for; all others are features."""

    label: str | None = None
    id: str | None = None
    drop: Sequence[str] = ()


@dataclass(frozen=True)
class Table:
    """Features, and the label and id of every row where there are such columns."""

    name: str
    X: FloatArray  # (n, d)
    columns: list[str]
    rows: IntArray  # (n,), numbers of the rows kept, counting from 0
    n_rows: int  # rows in the file
    labels: list[str] | None = None
    ids: list[str] | None = None
    lines: list[int] = field(default_factory=list)  # of a text file, for messages


def read_table(
    path: str | os.PathLike[str],
    roles: Roles | None = None,
    *,
    header: bool | None = None,
    drop_missing: bool = False,
) -> Table:
    """Read a table by the ending of its name.

    A missing or infinite value is an error that names its row and column, unless ``drop_missing`` leaves such
    rows out. ``header`` says whether a text file's first line holds names; by default it does unless all of
    its fields are numbers.
    """
    roles = roles or Roles()
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise TableError(f"{path}: unknown kind of table; the name must end in one of {', '.join(SUFFIXES)}.")
    if not file.exists():
        raise TableError(f"{path}: no such file.")
    try:
        if suffix in (".parquet", ".pq"):
            table = _read_parquet(file, roles)
        elif suffix in (".npy", ".npz"):
            table = _read_numpy(file, roles)
        else:
            table = _read_text(file, roles, header)
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror or error}).") from error
    return _checked(table, drop_missing)


def _checked(table: Table, drop_missing: bool) -> Table:
    """Values that are not numbers are named, or their rows left out; a missing label or id is none of them."""
    if table.X.shape[1] == 0:
        raise TableError(f"{table.name}: no feature columns are left; drop fewer columns.")
    if table.X.shape[0] == 0:
        raise TableError(f"{table.name}: the table has no rows.")
    good = np.asarray(np.isfinite(table.X).all(axis=1))
    if good.all():
        return table
    if not drop_missing:
        row, column = np.argwhere(~np.isfinite(table.X))[0]
        what = "missing value" if np.isnan(table.X[row, column]) else "infinite value"
        line = f" (line {table.lines[row]})" if table.lines else ""
        raise TableError(
            f"{table.name}: {what} in row {row + 1}{line}, column {table.columns[column]!r}; {int((~good).sum())} of "
            f"{len(good)} rows have one. Leave those rows out with --drop-missing, or a column with --drop."
        )
    if not good.any():
        raise TableError(f"{table.name}: every row has a missing value; leave out columns with --drop.")
    kept = np.flatnonzero(good)
    return Table(
        table.name,
        table.X[kept],
        table.columns,
        table.rows[kept],
        table.n_rows,
        None if table.labels is None else [table.labels[i] for i in kept],
        None if table.ids is None else [table.ids[i] for i in kept],
        [table.lines[i] for i in kept] if table.lines else [],
    )


def _feature_columns(name: str, columns: list[str], roles: Roles) -> list[str]:
    """The columns that are features, after checking that those with a role exist."""
    doubled = sorted({c for c in columns if columns.count(c) > 1})
    if doubled:
        raise TableError(f"{name}: column name {doubled[0]!r} appears {columns.count(doubled[0])} times; rename it.")
    for option, wanted in [("--label-column", roles.label), ("--id", roles.id), *(("--drop", c) for c in roles.drop)]:
        if wanted is not None and wanted not in columns:
            shown = ", ".join(map(repr, columns[:20])) + (", …" if len(columns) > 20 else "")
            raise TableError(f"{name}: {option} names column {wanted!r}, which is not there; columns: {shown}.")
    if "" in columns and "" not in (roles.label, roles.id, *roles.drop):
        raise TableError(
            f"{name}: column {columns.index('') + 1} has no name. If it numbers the rows, say so with --id '', or "
            "leave it out with --drop ''."
        )
    taken = {roles.label, roles.id, *roles.drop}
    return [c for c in columns if c not in taken]


# Text


def _read_text(file: Path, roles: Roles, header: bool | None) -> Table:
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            return _parse_text(file, stream, roles, header)
    except UnicodeDecodeError as error:
        raise TableError(f"{file}: not a text file in UTF-8 (byte {error.start}); save it as UTF-8.") from error
    except csv.Error as error:
        raise TableError(f"{file}: not a table ({error}).") from error


def _parse_text(file: Path, stream: Any, roles: Roles, header: bool | None) -> Table:
    first_line = stream.readline()
    stream.seek(0)
    reader = csv.reader(stream, delimiter=_delimiter(file, first_line))
    lines = ((reader.line_num, row) for row in reader if any(cell.strip() for cell in row))
    first = next(lines, None)
    if first is None:
        raise TableError(f"{file}: the file is empty.")
    width = len(first[1])
    if header is None:
        header = not all(_number(cell) is not None for cell in first[1])
    columns = [cell.strip() for cell in first[1]] if header else [str(j) for j in range(width)]
    features = _feature_columns(str(file), columns, roles)
    places = [columns.index(c) for c in features]
    label = columns.index(roles.label) if roles.label is not None else None
    key = columns.index(roles.id) if roles.id is not None else None

    blocks: list[FloatArray] = []
    labels: list[str] = []
    ids: list[str] = []
    numbers: list[int] = []
    for chunk in _chunks(lines if header else _prepend(first, lines)):
        start = len(numbers)
        for number, row in chunk:
            numbers.append(number)
            if len(row) != width:
                raise TableError(
                    f"{file}: row {len(numbers)} (line {number}) has {len(row)} fields, the first has {width}."
                )
        cells = list(zip(*(row for _, row in chunk), strict=True))
        block = [_numbers(file, columns[j], cells[j], start, numbers) for j in places]
        blocks.append(np.array(block, dtype=float).reshape(len(places), len(chunk)).T)
        labels += cells[label] if label is not None else ()
        ids += cells[key] if key is not None else ()
    X = np.concatenate(blocks) if blocks else np.empty((0, len(features)))
    return Table(
        str(file),
        X,
        features,
        np.arange(len(X)),
        len(X),
        labels if label is not None else None,
        ids if key is not None else None,
        numbers,
    )


def _delimiter(file: Path, first_line: str) -> str:
    if file.suffix.lower() in (".tsv", ".tab"):
        return "\t"
    return max(",;\t", key=first_line.count)


def _prepend(first: tuple[int, list[str]], rest: Iterable[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield first
    yield from rest


def _chunks(lines: Iterable[tuple[int, list[str]]]) -> Iterator[list[tuple[int, list[str]]]]:
    lines = iter(lines)
    while chunk := list(islice(lines, CHUNK)):
        yield chunk


def _number(cell: str) -> float | None:
    """A field as a number (NaN where missing), or None for other text."""
    try:
        return float(cell)
    except ValueError:
        return float("nan") if cell.strip().lower() in MISSING else None


def _numbers(file: Path, column: str, cells: Sequence[str], start: int, lines: list[int]) -> list[float]:
    try:
        return [float(cell) for cell in cells]
    except ValueError:
        values = [_number(cell) for cell in cells]
    numbers = [value for value in values if value is not None]
    if len(numbers) == len(values):
        return numbers
    at = next(i for i, value in enumerate(values) if value is None)
    raise TableError(
        f"{file}: row {start + at + 1} (line {lines[start + at]}), column {column!r}: {cells[at]!r} is not a number. "
        "If the column holds classes or names, say so with --label-column, --id or --drop."
    )


# Arrays


def _read_numpy(file: Path, roles: Roles) -> Table:
    try:
        with file.open("rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            single = isinstance(loaded, np.ndarray)
            arrays = {"X": loaded} if single else {key: loaded[key] for key in loaded.files}
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        hint = " (Python objects inside; they are never unpickled)" if "Object arrays" in str(error) else ""
        raise TableError(f"{file}: not a readable NumPy file{hint}.") from error
    X, extra = _pick_array(file, arrays, roles)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise TableError(f"{file}: needs a two-dimensional array of numbers, got {X.ndim} dimensions of {X.dtype}.")
    columns = [str(j) for j in range(X.shape[1])]
    features = _feature_columns(str(file), columns + list(extra), roles)
    features = [c for c in features if c in set(columns)]

    def texts(name: str | None) -> list[str] | None:
        if name is None:
            return None
        values = extra[name] if name in extra else X[:, columns.index(name)]
        return [str(value) for value in values.tolist()]

    kept = [columns.index(c) for c in features]
    values = X if len(kept) == X.shape[1] else X[:, kept]
    return Table(
        str(file),
        np.asarray(values, dtype=float),
        features,
        np.arange(len(X)),
        len(X),
        texts(roles.label),
        texts(roles.id),
    )


def _pick_array(file: Path, arrays: dict[str, Any], roles: Roles) -> tuple[Any, dict[str, Any]]:
    """The table of an .npz file (``X``, or its only two-dimensional array), and the arrays with one entry a row."""
    tables = [key for key, value in arrays.items() if value.ndim == 2]
    key = "X" if "X" in arrays else tables[0] if len(tables) == 1 else None
    if key is None:
        raise TableError(f"{file}: needs an array called X or one two-dimensional array; it has {sorted(arrays)}.")
    extra = {
        name: value
        for name, value in arrays.items()
        if name in (roles.label, roles.id) and value.shape == arrays[key].shape[:1]
    }
    return arrays[key], extra


# Parquet


def _read_parquet(file: Path, roles: Roles) -> Table:
    pyarrow = import_pyarrow()
    try:
        frame = pyarrow.parquet.read_table(file)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
        raise TableError(f"{file}: not a readable Parquet file ({str(error).splitlines()[0]}).") from error
    columns = list(frame.column_names)
    features = _feature_columns(str(file), columns, roles)
    X = np.empty((frame.num_rows, len(features)))
    for j, name in enumerate(features):
        kind = frame.schema.field(name).type
        if not (
            pyarrow.types.is_integer(kind)
            or pyarrow.types.is_floating(kind)
            or pyarrow.types.is_boolean(kind)
            or pyarrow.types.is_decimal(kind)
        ):
            raise TableError(
                f"{file}: column {name!r} holds {kind}, not numbers. If it holds classes or names, say so with "
                "--label-column, --id or --drop."
            )
        X[:, j] = frame.column(name).cast(pyarrow.float64()).to_numpy()

    def texts(name: str | None) -> list[str] | None:
        return None if name is None else [str(value) for value in frame.column(name).to_pylist()]

    return Table(str(file), X, features, np.arange(len(X)), len(X), texts(roles.label), texts(roles.id))
