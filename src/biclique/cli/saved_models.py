"""Rows for a saved model: ``biclique predict`` and ``biclique report``."""

import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from biclique.cli.opened_tables import OpenedTable, open_table, table_file
from biclique.cli.table_options import TEXT_CHOICES, TableOptions, possible_names
from biclique.exceptions import DataError, TableError
from biclique.tables.frames import kind_of, pandas
from biclique.tables.preparer import TablePreparer
from biclique.tables.text_form import TextForm
from biclique.tables.used_columns import name_of


@contextmanager
def opened_as_fitted(
    options: TableOptions, notes: Mapping[str, Any], *, append: bool = False
) -> Iterator[tuple[OpenedTable, list[str], TextForm]]:
    """A table, its columns of ids and how it is written: by the options, else as the table of the fit.

    An error in the block names what was taken from the fit.
    """
    taken = _taken(options, notes)
    known = notes.get("id")
    known = known if isinstance(known, list) else [known]
    try:
        form = options.form(taken)
        with table_file(options.table) as path:
            table = open_table(path, form, texts=possible_names(options.id) or known, append=append)
            ids = options.ids(table.names, known)
            yield table, ids, form
    except DataError as error:
        words = [f"--{name.replace('_', '-')} {shlex.quote(value)}" for name, value in taken.items()]
        if words:
            more = f" The file was read with {' '.join(words)}, as the table of the fit: give the option with another "
            error.args = (f"{error}{more}value if this one is written otherwise.",)
        raise


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


def split_model(
    model: BaseEstimator, frame: Any, ids: Collection[str], missing: str | None
) -> tuple[TablePreparer, Any]:
    """What makes numbers of a frame, and the rest of the model, which takes them.

    A model that was not saved with a preparer takes the columns of its fit by name. If it knows no names, it takes all
    columns of numbers in their order.
    """
    first = model[0] if isinstance(model, Pipeline) else model
    if isinstance(first, TablePreparer):
        preparer, rest = first, model[1:]
    else:
        columns = [name for name in frame.columns if name not in ids and kind_of(frame[name]) in ("number", "boolean")]
        columns = list(map(str, getattr(first, "feature_names_in_", columns)))
        fitted = getattr(model, "n_features_in_", len(columns))
        if len(columns) != fitted:
            raise TableError(
                f"{name_of(frame)}: has {len(columns)} columns of numbers, and the model was fitted with {fitted}, "
                "without names: leave the others out of the table, or name the column of ids with --id."
            )
        like = pandas().DataFrame(np.zeros((2, fitted)), columns=columns)
        preparer, rest = TablePreparer(scale="none").fit(like), model
    if missing is not None and preparer.missing == "refuse":
        preparer.set_params(missing=missing)
    return preparer, rest
