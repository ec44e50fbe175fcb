"""From a table and options to rows of numbers: read, columns told apart, prepared; or as a saved model takes them."""

from __future__ import annotations

import argparse
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
from biclique.cli.common import Classes, Facts
from biclique.cli.output import EXIT_DATA, fail, line
from biclique.cli.table_options import command, form_of, names_of, take_form
from biclique.cluster import BicliqueSpectralClustering
from biclique.datasets import SHIPPED, load_shipped
from biclique.exceptions import BicliqueError, DataError, TableError, printable
from biclique.fit.settings import NEIGHBORHOODS
from biclique.io import (
    CHUNK_ROWS,
    ChunkSource,
    Roles,
    TablePreparer,
    find_format,
    open_columns,
    read_columns,
    read_table,
    write_labels,
)
from biclique.io.columns import NOTHING_LEFT, Advice, ColumnsError, texts_of
from biclique.io.fields import text_array
from biclique.io.label_files import NewColumns, append_labels, open_text, text_fields
from biclique.io.prepare_columns import row_in_words, weights_of
from biclique.io.roles import first_names
from biclique.io.typed_columns import HEADER, Column, ColumnSource, TypedTable
from biclique.kernels import KERNELS
from biclique.runtime import Tick

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

    @property
    def constant(self) -> list[str]:
        """The names of columns that tell nothing apart."""
        names = self.preparer.get_feature_names_out()
        return [str(name) for name, spread in zip(names, np.ptp(self.X, axis=0), strict=True) if spread == 0]

    @property
    def facts(self) -> Facts:
        """What is known of the table besides its clusters."""
        classes = None
        if self.classes is not None:
            classes = Classes()
            classes.add(self.classes)
        left_out, names = len(self.kept) - len(self.X), [str(name) for name in self.preparer.get_feature_names_out()]
        told = [j for j in range(len(names)) if j not in self.preparer.categorical_places_]  # codes are no quantities
        seen, names = self.X[:, told], [names[j] for j in told]
        return Facts(self.table.name, len(self.X), left_out, self.preparer.n_used, classes, seen=seen, names=names)


def prepare(options: argparse.Namespace, tick: Tick | None = None) -> Prepared:
    """The table of the options, as numbers; ``tick`` hears of the share that was read."""
    table = replace(load(options, tick), name=printable(options.shown_table))
    label, ids, weight = roles_of(table, options)
    preparer = preparer_of(table.name, table.names, options)
    preparer.fit(table)
    X, kept = preparer.transform_rows(table)
    known = {column.name: column for column in table.columns}
    return Prepared(
        table,
        preparer,
        X,
        kept,
        None if label is None else [text for text, stays in zip(texts_of(known[label]), kept, strict=True) if stays],
        None if weight is None else weights_of(table, known[weight], kept),
        ids_of(table, ids, options),
    )


def explain(error: ColumnsError, options: argparse.Namespace) -> int:
    """Print what each column looks like, and the command that deals with all of them."""
    told = error.told.replace(printable(options.table), printable(options.shown_table))
    advice, more = _with_one_decimal(error.advice, options)
    for name, option in WORDS.items():
        told = told.replace(name, option)
    first, *others = told.splitlines()
    code = fail(first, EXIT_DATA)
    way = ["This deals with all of them:", f"  {command(options.arguments, advice)}"]
    for told in (*others, *more, *([NOTHING_LEFT] if error.hopeless else way)):
        line(told, sys.stderr)
    return code


def _with_one_decimal(advice: Advice, options: argparse.Namespace) -> tuple[Advice, list[str]]:
    """The advice if some columns have decimal commas and others points; and lines about the latter.

    A file is read with one sign: that of more columns, and the others are left out.
    """
    if not advice.decimal:
        return advice, []
    form = replace(form_of(options), decimal=",")
    kinds = open_columns(options.table, form, memory_limit=options.memory_limit).kinds
    try:
        preparer = preparer_of(options.table, list(kinds), options)
    except TableError:  # without commas between fields the names are others
        return advice, []
    told_of = {*advice.id, *advice.drop, *advice.categorical, *advice.year_last, *map(str, preparer.drop)}
    used = [str(name) for name in preparer.columns or kinds]
    points = [name for name in used if kinds[name] == "text" and name not in told_of]
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


def load(options: argparse.Namespace, tick: Tick | None = None) -> TypedTable:
    """Every column of the table, with its kind."""
    if is_shipped(options.table):
        return _load_shipped(options.table.replace("-", "_"), options)
    path = Path(options.table)
    if not path.suffix and not path.exists():
        raise TableError(
            f"{options.table}: neither a file nor a data set of scikit-learn; those are {', '.join(SHIPPED)}."
        )
    kind = find_format(path)
    if kind is None or kind.read_columns is not None:
        return read_columns(path, form_of(options), memory_limit=options.memory_limit, tick=tick)
    return _load_numbers(options, tick)


def notes_of(options: argparse.Namespace) -> tuple[str, ...]:
    """What may have been meant otherwise, such as a first line of numbers that could be names."""
    notes = open_text(Path(options.table), form_of(options)).notes if is_text(options) else ()
    return tuple(note.replace(HEADER, WORDS[HEADER]) for note in notes)


def _load_numbers(options: argparse.Namespace, tick: Tick | None) -> TypedTable:
    """A table of numbers alone; .npz files may have classes and ids in arrays of their own."""
    roles = Roles(label=options.label_column, id=options.id[0] if options.id else None)
    table = read_table(options.table, roles, drop_missing=None, memory_limit=options.memory_limit, tick=tick)
    columns = [Column(name, "number", values) for name, values in zip(table.columns, table.X.T, strict=True)]
    for name, texts in ((roles.label, table.labels), (roles.id, table.ids)):
        if name is not None and texts is not None and name not in [column.name for column in columns]:
            columns.append(Column(name, "text", text_array(texts)))
    return TypedTable(table.name, tuple(columns), table.n_rows)


def _load_shipped(name: str, options: argparse.Namespace) -> TypedTable:
    bunch = load_shipped(name)
    columns = list(bunch.feature_names)
    unknown = [c for c in (*options.id, *options.drop) if c not in columns and "," not in c]
    if unknown or options.label_column not in (None, "target"):
        wrong = unknown[0] if unknown else options.label_column
        raise TableError(f"{name}: no column {wrong!r}; columns: {', '.join(map(repr, [*columns, 'target']))}.")
    if bunch.target_names is None and options.label_column is not None:
        raise TableError(f"{name}: its target is a number, not a class; leave out --label-column.")
    X = np.asarray(bunch.data, dtype=float)
    made = [Column(c, "number", X[:, j]) for j, c in enumerate(columns)]
    if bunch.target_names is not None:
        options.label_column = "target"
        made.append(Column("target", "text", text_array([str(bunch.target_names[t]) for t in bunch.target])))
    return TypedTable(name, tuple(made), len(X))


# What columns are for


def roles_of(table: TypedTable, options: argparse.Namespace) -> tuple[str | None, list[str], str | None]:
    """The column of classes, those of ids, and that of weights."""
    ids = names_of(table.name, "--id", options.id, table.names)
    for option, value in (("--label-column", options.label_column), ("--weight", options.weight)):
        if value is not None and value not in table.names:
            names_of(table.name, option, [value.replace(",", "")], table.names)
    return options.label_column, ids, options.weight


def preparer_of(table: str, names: Sequence[str], options: argparse.Namespace) -> TablePreparer:
    """What makes numbers of the columns, by the options."""
    taken = {option: names_of(table, f"--{option}", getattr(options, option), names) for option in ("drop", "id")}
    roles = [name for name in (options.label_column, options.weight) if name is not None]
    away = list(dict.fromkeys([*taken["drop"], *taken["id"], *roles]))
    chosen = names_of(table, "--columns", options.columns, names)
    auto = options.categorical == ["auto"] and "auto" not in names
    return TablePreparer(
        columns=[name for name in chosen if name not in away] if chosen else None,
        drop=[] if chosen else away,
        categorical="auto" if auto else names_of(table, "--categorical", options.categorical, names),
        missing=options.missing,
        dates=options.dates,
        scale=options.scale,
        encode="codes" if takes_codes(options) else "one-hot",
    )


def takes_codes(options: argparse.Namespace) -> bool:
    """Whether the model compares categories and leaves gaps out itself."""
    if options.affinity == NEIGHBORHOODS:
        return bool(options.metric == "gower")
    return options.affinity in KERNELS and not KERNELS[options.affinity].euclidean


def ids_of(table: ColumnSource, names: Sequence[str], options: argparse.Namespace) -> dict[str, list[str]]:
    """Columns of ids as texts; those of a text file as they stand there, such as 007."""
    ids: dict[str, list[str]] = {name: [] for name in names}
    if not names:
        return ids
    if is_text(options):
        blocks = text_fields(Path(options.table), form_of(options), names)
    else:
        blocks = ([texts_of(chunk.column(name)) for name in names] for chunk in table.column_chunks(CHUNK_ROWS))
    for block in blocks:
        for name, texts in zip(names, block, strict=True):
            ids[name] += texts
    return ids


def is_text(options: argparse.Namespace) -> bool:
    """Whether the table is a text file."""
    kind = None if is_shipped(options.table) else find_format(options.table)
    return kind is not None and kind.is_text


def probabilities_of(
    model: BicliqueSpectralClustering, X: FloatArray | ChunkSource
) -> tuple[FloatArray | None, list[str]]:
    """How probable the label of each row is; None if the model cannot tell, and why."""
    try:
        return np.asarray(model.predict_proba(X).max(axis=1)), []
    except (BicliqueError, NotImplementedError, AttributeError) as error:
        return None, [f"probabilities are left out: {error}"]


def write_new(
    options: argparse.Namespace, table: ColumnSource, new: NewColumns, ids: Mapping[str, Sequence[str]]
) -> None:
    """Labels beside the whole table (``--append``), beside several columns of ids, or beside ids or numbers of rows."""
    if options.append:
        file = None if is_shipped(options.table) else Path(options.table)
        append_labels(options.output, table, new, file, form_of(options))
        return
    if len(ids) > 1:
        named = tuple(Column(name, "text", text_array(texts)) for name, texts in ids.items())
        append_labels(options.output, TypedTable(table.name, named, len(new.kept)), new)
        return
    name, texts = next(iter(ids.items()), ("row", None))
    rows = np.flatnonzero(new.kept)
    write_labels(options.output, new.labels, rows=rows, n_rows=len(new.kept), ids=texts, id_name=name)


# Rows for a saved model


@contextmanager
def written_as_fitted(options: argparse.Namespace, notes: Mapping[str, Any]) -> Iterator[None]:
    """A text file is read as that of the fit, unless an option says otherwise; an error names what was taken."""
    taken = take_form(options, notes.get("text"))
    try:
        yield
    except DataError as error:
        if not taken:
            raise
        raise DataError(
            *error.args,
            f" The file was read with {' '.join(taken)}, as the table of the fit: give the option with another value "
            "if this one is written otherwise.",
        ) from error


def id_names(options: argparse.Namespace, notes: Mapping[str, Any], table: str, columns: Sequence[str]) -> list[str]:
    """The columns that name the rows: those of ``--id``, or those of the fit that the table has too."""
    if options.id:
        return names_of(table, "--id", options.id, columns)
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
