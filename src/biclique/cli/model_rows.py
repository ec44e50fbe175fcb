"""The rows of a table as a saved model takes them, how the table is written, and the columns that name the rows."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from biclique._typing import FloatArray
from biclique.cli.table_options import names_of, take_form
from biclique.exceptions import DataError, TableError
from biclique.io.prepare import TablePreparer
from biclique.io.prepare_columns import row_in_words
from biclique.io.roles import first_names
from biclique.io.typed_columns import Column, TypedTable


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
