"""From a table and options to rows of numbers: read, columns sorted, prepared; or as a saved model takes them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from biclique._typing import FloatArray
from biclique.cli.output import EXIT_DATA, fail, line
from biclique.cli.table_options import ColumnOptions, Labelling, TableOptions, command, names_of
from biclique.datasets import SHIPPED, load_shipped
from biclique.exceptions import BicliqueError, DataError, TableError, printable
from biclique.io import (
    CHUNK_ROWS,
    Roles,
    TablePreparer,
    find_format,
    open_columns,
    read_columns,
    read_table,
    write_labels,
)
from biclique.io.columns import NOTHING_LEFT, Advice, ColumnsError, texts_of
from biclique.io.fields import TextForm, text_array
from biclique.io.label_files import NewColumns, append_labels, open_text, text_fields
from biclique.io.prepare_columns import row_in_words, weights_of
from biclique.io.roles import first_names
from biclique.io.typed_columns import HEADER, Column, ColumnSource, TypedTable

WORDS = {"decimal=','": "--decimal ,", "date_order=": "--date-order ", HEADER: "--header yes"}
"""What the list of columns and notes call by Python's name, in the words of the command line."""


@dataclass(frozen=True)
class Prepared:
    """A table in memory, made into numbers."""

    table: TypedTable
    preparer: TablePreparer
    X: FloatArray  # (rows that are kept, prepared columns)
    kept: NDArray[np.bool_]  # (rows of the table,)
    classes: list[str] | None = None  # of the rows that are kept
    weights: FloatArray | None = None  # of the rows that are kept
    ids: dict[str, list[str]] = field(default_factory=dict)  # of all rows, by the name of the column

    def about_constants(self) -> list[str]:
        """What there is to say about columns with a single value, if there are any."""
        names = self.preparer.get_feature_names_out()
        constant = [repr(str(name)) for name, spread in zip(names, np.ptp(self.X, axis=0), strict=True) if spread == 0]
        return [f"constant columns tell nothing apart: {', '.join(constant)}."] if constant else []


def prepare(options: ColumnOptions, path: str, codes: bool) -> Prepared:
    """The table of the options, as numbers."""
    table = replace(load(options, path), name=printable(options.shown_table))
    label = "target" if is_shipped(path) and "target" in table.names else options.label
    ids = options.names("id", table.names)
    for flag, value in (("--label-column", label), ("--weight", options.weight)):
        if value is not None and value not in table.names:
            names_of(table.name, flag, [value.replace(",", "")], table.names)
    preparer = preparer_of(options, table.names, label, codes)
    preparer.fit(table)
    X, kept = preparer.transform_rows(table)
    known = {column.name: column for column in table.columns}
    return Prepared(
        table,
        preparer,
        X,
        kept,
        None if label is None else [text for text, stays in zip(texts_of(known[label]), kept, strict=True) if stays],
        None if options.weight is None else weights_of(table, known[options.weight], kept),
        ids_of(table, ids, path, options.form()),
    )


def explain(error: ColumnsError, options: ColumnOptions, path: str, codes: bool) -> int:
    """Print what each column looks like, and the command that deals with all of them."""
    text = error.told.replace(printable(path), printable(options.shown_table))
    advice, more = _with_one_decimal(error.advice, options, path, codes)
    for name, word in WORDS.items():
        text = text.replace(name, word)
    first, *others = text.splitlines()
    code = fail(first, EXIT_DATA)
    way = ["This deals with all of them:", f"  {command(options.arguments, advice)}"]
    for one in (*others, *more, *([NOTHING_LEFT] if error.hopeless else way)):
        line(one, sys.stderr)
    return code


def _with_one_decimal(advice: Advice, options: ColumnOptions, path: str, codes: bool) -> tuple[Advice, list[str]]:
    """The advice if some columns have decimal commas and others points; and lines about the latter.

    A file is read with one sign: that of more columns, and the others are left out.
    """
    if not advice.decimal:
        return advice, []
    kinds = open_columns(path, replace(options.form(), decimal=",")).kinds
    try:
        preparer = preparer_of(options, list(kinds), options.label, codes)
    except TableError:  # without commas between fields the names are others
        return advice, []
    dealt_with = {*advice.id, *advice.drop, *advice.categorical, *advice.year_last, *map(str, preparer.drop)}
    used = [str(name) for name in preparer.columns or kinds]
    points = [name for name in used if kinds[name] == "text" and name not in dealt_with]
    more = [
        f"  {printable(name)}  numbers with a decimal point: a file is read with one decimal sign" for name in points
    ]
    if len(points) > len(advice.decimal):
        return replace(advice, drop=[*advice.drop, *advice.decimal], decimal=[]), more
    return replace(advice, drop=[*advice.drop, *points]), more


# Reading


def is_shipped(name: str) -> bool:
    """Whether this is a data set of scikit-learn; a file of that name goes first."""
    return name.replace("-", "_") in SHIPPED and not Path(name).exists()


def load(options: ColumnOptions, path: str) -> TypedTable:
    """Every column of the table, with its kind."""
    if is_shipped(path):
        return _load_shipped(path.replace("-", "_"), options)
    if not Path(path).suffix and not Path(path).exists():
        raise TableError(f"{path}: neither a file nor a data set of scikit-learn; those are {', '.join(SHIPPED)}.")
    kind = find_format(path)
    if kind is None or kind.read_columns is not None:
        return read_columns(path, options.form())
    roles = Roles(label=options.label, id=options.id[0] if options.id else None)
    table = read_table(path, roles, drop_missing=None)
    columns = [Column(name, "number", values) for name, values in zip(table.columns, table.X.T, strict=True)]
    for name, texts in ((roles.label, table.labels), (roles.id, table.ids)):  # arrays of an .npz file
        if name is not None and texts is not None and name not in [column.name for column in columns]:
            columns.append(Column(name, "text", text_array(texts)))
    return TypedTable(table.name, tuple(columns), table.n_rows)


def _load_shipped(name: str, options: ColumnOptions) -> TypedTable:
    bunch = load_shipped(name)
    columns = list(bunch.feature_names)
    unknown = [c for c in (*options.id, *options.drop) if c not in columns and "," not in c]
    if unknown or options.label not in (None, "target"):
        wrong = unknown[0] if unknown else options.label
        raise TableError(f"{name}: no column {wrong!r}; columns: {', '.join(map(repr, [*columns, 'target']))}.")
    if bunch.target_names is None and options.label is not None:
        raise TableError(f"{name}: its target is a number, not a class; leave out --label-column.")
    X = np.asarray(bunch.data, dtype=float)
    made = [Column(c, "number", X[:, j]) for j, c in enumerate(columns)]
    if bunch.target_names is not None:
        made.append(Column("target", "text", text_array([str(bunch.target_names[t]) for t in bunch.target])))
    return TypedTable(name, tuple(made), len(X))


def notes_of(options: TableOptions, path: str) -> tuple[str, ...]:
    """What may have been meant otherwise, such as a first line of numbers that could be names."""
    notes = open_text(Path(path), options.form()).notes if is_text(path) else ()
    return tuple(note.replace(HEADER, WORDS[HEADER]) for note in notes)


def is_text(path: str) -> bool:
    """Whether the table is a text file."""
    kind = None if is_shipped(path) else find_format(path)
    return kind is not None and kind.is_text


# What columns are for


def preparer_of(options: ColumnOptions, names: Sequence[str], label: str | None, codes: bool) -> TablePreparer:
    """What makes numbers of the columns, by the options; ``codes`` if the model compares levels itself."""
    roles = [name for name in (label, options.weight) if name is not None]
    away = list(dict.fromkeys([*options.names("drop", names), *options.names("id", names), *roles]))
    chosen = options.names("columns", names)
    auto = options.categorical == ("auto",) and "auto" not in names
    given = {"missing": options.missing, "dates": options.dates, "scale": options.scale}
    if codes:  # gower divides by ranges itself, and leaves gaps out
        given |= {"missing": options.missing or "keep", "scale": "none", "encode": "codes"}
    return TablePreparer(
        columns=[name for name in chosen if name not in away] if chosen else None,
        drop=[] if chosen else away,
        categorical="auto" if auto else options.names("categorical", names),
        **{name: value for name, value in given.items() if value is not None},
    )


def ids_of(table: ColumnSource, names: Sequence[str], path: str, form: TextForm) -> dict[str, list[str]]:
    """Columns of ids as texts; those of a text file as they stand there, such as 007."""
    ids: dict[str, list[str]] = {name: [] for name in names}
    if not names:
        return ids
    if is_text(path):
        blocks = text_fields(Path(path), form, names)
    else:
        blocks = ([texts_of(chunk.column(name)) for name in names] for chunk in table.column_chunks(CHUNK_ROWS))
    for block in blocks:
        for name, texts in zip(names, block, strict=True):
            ids[name] += texts
    return ids


def probabilities_of(model: BaseEstimator, X: FloatArray) -> tuple[FloatArray | None, list[str]]:
    """How probable the label of each row is; None if the model cannot tell, and why."""
    try:
        return np.asarray(model.predict_proba(X).max(axis=1)), []
    except (BicliqueError, NotImplementedError, AttributeError) as error:
        return None, [f"probabilities are left out: {error}"]


def write_new(
    options: Labelling,
    path: str,
    table: ColumnSource,
    new: NewColumns,
    ids: Mapping[str, Sequence[str]],
    form: TextForm,
) -> None:
    """Labels beside the whole table (``--append``), beside several columns of ids, or beside ids or numbers of rows."""
    output = options.output or ""
    if options.append:
        append_labels(output, table, new, None if is_shipped(path) else Path(path), form)
        return
    if len(ids) > 1:
        named = tuple(Column(name, "text", text_array(texts)) for name, texts in ids.items())
        append_labels(output, TypedTable(table.name, named, len(new.kept)), new)
        return
    name, texts = next(iter(ids.items()), ("row", None))
    rows = np.flatnonzero(new.kept)
    write_labels(output, new.labels, rows=rows, n_rows=len(new.kept), ids=texts, id_name=name)


def shown_columns(table: TypedTable, kept: NDArray[np.bool_], leave_out: Collection[str] = ()) -> TypedTable:
    """Some rows of a table, before they are prepared, without some columns."""
    columns = tuple(Column(c.name, c.kind, c.values[kept]) for c in table.columns if c.name not in leave_out)
    return replace(table, columns=columns, n_rows=int(kept.sum()), lines=())


def row_names(kept: NDArray[np.bool_], ids: Mapping[str, Sequence[str]]) -> list[str] | None:
    """The ids of the rows that are kept; their numbers in the file if some are not."""
    for texts in ids.values():
        return [text for text, stays in zip(texts, kept, strict=True) if stays]
    return None if kept.all() else [f"row {row}" for row in np.flatnonzero(kept)]


# Rows for a saved model


@contextmanager
def written_as_fitted(taken: Mapping[str, str]) -> Iterator[None]:
    """An error about a text file names what was taken from the table of the fit."""
    try:
        yield
    except DataError as error:
        if not taken:
            raise
        words = [f"--{name.replace('_', '-')} {shlex.quote(value)}" for name, value in taken.items()]
        raise DataError(
            *error.args,
            f" The file was read with {' '.join(words)}, as the table of the fit: give the option with another value "
            "if this one is written otherwise.",
        ) from error


def id_names(options: TableOptions, notes: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """The columns that name the rows: those of ``--id``, or those of the fit that the table has too."""
    if options.id:
        return options.names("id", columns)
    noted = notes.get("id")
    known = noted if isinstance(noted, list) else [noted]
    return [name for name in columns if name in known]


def rows_of(
    model: BaseEstimator, table: TypedTable, ids: Collection[str], drop_missing: bool
) -> tuple[FloatArray, NDArray[np.bool_], Any]:
    """Rows as numbers, which rows of the table these are, and what is left of the model: it takes these rows."""
    first = model[0] if isinstance(model, Pipeline) else model
    if isinstance(first, TablePreparer):
        if drop_missing and first.missing == "refuse":
            first.missing = "drop"
        X, kept = first.transform_rows(table)
        return X, kept, model[1:]
    X = _numbers(model, table, ids)
    kept = np.asarray(np.isfinite(X).all(axis=1))
    if not kept.all() and not drop_missing:
        raise TableError(
            f"{table.name}: missing or infinite value in {row_in_words(table, int(np.argmin(kept)))}, "
            f"{int((~kept).sum())} of {len(kept)} rows have one: leave them out with --drop-missing."
        )
    return X[kept], kept, model


def _numbers(model: BaseEstimator, table: TypedTable, ids: Collection[str]) -> FloatArray:
    """The columns of the fit: by name if the model knows names, else all columns of numbers in their order."""
    known = getattr(model, "feature_names_in_", None)
    if known is not None:
        columns = [_column(table, str(name)) for name in known]
    else:
        columns = [column for column in table.columns if column.numbers is not None and column.name not in ids]
        fitted = getattr(model, "n_features_in_", len(columns))
        if len(columns) != fitted:
            raise TableError(
                f"{table.name}: has {len(columns)} columns of numbers, and the model was fitted with {fitted}, without "
                "names: leave the others out of the table, or name the column of ids with --id."
            )
    parts = []
    for column in columns:
        if column.numbers is None:
            raise TableError(
                f"{table.name}: column {column.name!r} held numbers in fit and holds {column.kind}s now: mend the "
                "values, or fit again."
            )
        parts.append(column.numbers)
    return np.column_stack(parts)


def _column(table: TypedTable, name: str) -> Column:
    if name not in table.names:
        shown = first_names(table.names)
        raise TableError(f"{table.name}: column {name!r} was used in fit and is not there; columns: {shown}.")
    return table.column(name)
