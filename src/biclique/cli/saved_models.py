"""Rows for a saved model: ``biclique predict`` and ``biclique report``."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from biclique._typing import FloatArray
from biclique.cli.opened_tables import OpenedTable, open_table
from biclique.cli.table_options import TEXT_CHOICES, TableOptions, possible_names
from biclique.exceptions import DataError, TableError
from biclique.tables.frames import kind_of, numbers_of
from biclique.tables.preparer import TablePreparer
from biclique.tables.text_form import TextForm
from biclique.tables.used_columns import name_of


@contextmanager
def opened_as_fitted(
    options: TableOptions, notes: Mapping[str, Any], path: str, *, append: bool = False
) -> Iterator[tuple[OpenedTable, list[str], TextForm]]:
    """A table, its columns of ids and how it is written: by the options, else as the table of the fit.

    An error in the block names what was taken from the fit.
    """
    taken = _taken(options, notes)
    known = notes.get("id")
    known = known if isinstance(known, list) else [known]
    try:
        form = options.form(taken)
        table = open_table(path, form, texts=possible_names(options.id) or known, append=append)
        found = [name for name in table.names if name in known]
        yield table, options.names("id", table.names) if options.id else found, form
    except DataError as error:
        if not taken:
            raise
        words = [f"--{name.replace('_', '-')} {shlex.quote(value)}" for name, value in taken.items()]
        raise DataError(
            *error.args,
            f" The file was read with {' '.join(words)}, as the table of the fit: give the option with another value "
            "if this one is written otherwise.",
        ) from error


def _taken(options: TableOptions, notes: Mapping[str, Any]) -> dict[str, str]:
    """How the table of the fit was written, as far as options do not say otherwise.

    What is no value of such an option is left alone: the file of a model may come from anybody.
    """
    noted = notes.get("text")
    noted = noted if isinstance(noted, Mapping) else {}
    return {
        name: noted[name]
        for name, choices in TEXT_CHOICES.items()
        if name not in options.written
        and isinstance(noted.get(name), str)
        and (noted[name] in choices or name == "encoding")
    }


def rows_of(
    model: BaseEstimator, frame: Any, ids: Collection[str], drop_missing: bool
) -> tuple[FloatArray, NDArray[np.bool_], Any]:
    """Rows as numbers, which rows of the frame these are, and what is left of the model: it takes these rows."""
    first = model[0] if isinstance(model, Pipeline) else model
    if isinstance(first, TablePreparer):
        if drop_missing and first.missing == "refuse":
            first.set_params(missing="drop")
        X, kept = first.transform_rows(frame)
        return X, kept, model[1:]
    X = _numbers(model, frame, ids)
    kept = np.asarray(np.isfinite(X).all(axis=1))
    if not kept.all() and not drop_missing:
        raise TableError(
            f"{name_of(frame)}: missing or infinite value in row {int(np.argmin(kept)) + 1}, {int((~kept).sum())} of "
            f"{len(kept)} rows have one: leave them out with --drop-missing."
        )
    return X[kept], kept, model


def _numbers(model: BaseEstimator, frame: Any, ids: Collection[str]) -> FloatArray:
    """The columns of the fit: by name if the model knows names, else all columns of numbers in their order."""
    name, known = name_of(frame), getattr(model, "feature_names_in_", None)
    columns = number_columns(frame, ids) if known is None else list(map(str, known))
    absent = [column for column in columns if column not in frame.columns]
    if absent:
        shown = ", ".join(map(repr, frame.columns[:20]))
        raise TableError(f"{name}: column {absent[0]!r} was used in fit and is not there; columns: {shown}.")
    fitted = getattr(model, "n_features_in_", len(columns))
    if len(columns) != fitted:
        raise TableError(
            f"{name}: has {len(columns)} columns of numbers, and the model was fitted with {fitted}, without names: "
            "leave the others out of the table, or name the column of ids with --id."
        )
    for column in columns:
        kind = kind_of(frame[column])
        if kind not in ("number", "boolean"):
            raise TableError(
                f"{name}: column {column!r} held numbers in fit and holds {kind}s now: mend the values, or fit again."
            )
    return np.column_stack([numbers_of(frame[column]) for column in columns])


def number_columns(frame: Any, ids: Collection[str]) -> list[str]:
    """The columns of numbers that are no ids."""
    return [name for name in frame.columns if name not in ids and kind_of(frame[name]) in ("number", "boolean")]
