"""``biclique predict``: labels of new rows, by a model that ``biclique cluster --save`` or ``biclique.save`` wrote."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from biclique._typing import FloatArray, IntArray
from biclique.cli.label_output import cluster_sizes, found_labels, rows_to_label
from biclique.cli.opened_tables import in_rows_of_table
from biclique.cli.options import Command, Facts, Json, Quiet, Warned, work_option
from biclique.cli.output import output_lines, size_lines
from biclique.cli.saved_models import opened_as_fitted, split_model
from biclique.cli.table_options import Labelling, SavedModel
from biclique.exceptions import BicliqueError, DataError, ParameterError, printable
from biclique.models.saving import load_with_notes
from biclique.progress import format_seconds
from biclique.tables.diagnosis import counted
from biclique.tables.writing import write_labels

EXAMPLES = """\
examples:
  biclique cluster customers.csv -k 5 --id name --save customers.skops
  biclique predict customers.skops new.csv -o labels.csv
  biclique predict customers.skops new.csv -o labelled.csv --append
  biclique predict customers.skops new.csv --json
"""


@dataclass(frozen=True, kw_only=True)
class PredictOptions(Json, Quiet, Labelling, SavedModel):
    """Label the rows of a table with a model that was saved.

    Columns are found by their names; others are ignored. Text and ids are read as in the fit, unless an option says
    otherwise. The file of a model runs no code.
    """

    n_jobs: int | None = work_option("threads (default: every core)", "--jobs")


def run(options: PredictOptions, warned: Warned) -> Facts:
    start = time.perf_counter()
    model, notes = load_with_notes(options.model)
    if not hasattr(model, "predict"):
        raise ParameterError(f"{options.model}: a {type(model).__name__} gives no labels, so it cannot predict.")
    with opened_as_fitted(options, notes, append=options.append) as (table, ids, form):
        found, n_rows = list[Any](), 0
        for piece in table.pieces():
            found.append(_labels(options, model, piece, ids, n_rows))
            n_rows += len(piece)
        labels = np.concatenate([some for some, _ in found])
        shares = [share for _, share in found if share is not None]
        if not len(labels):
            raise DataError(f"{options.shown_table}: the table has no rows.")
        if options.output:
            beside = rows_to_label(table, ids, len(labels), append=options.append)
            probabilities = np.concatenate(shares) if len(shares) == len(found) else None
            write_labels(options.output, labels, beside, form, probabilities)
    last = model[-1] if isinstance(model, Pipeline) else model
    known = getattr(last, "n_clusters_", getattr(last, "n_clusters", 0))
    return {
        "model": options.model,
        "table": printable(options.shown_table),
        "rows": len(labels),
        "without_label": int((labels < 0).sum()),
        "seconds": time.perf_counter() - start,
        "clusters": cluster_sizes(labels, known if isinstance(known, int) else 0, "rows"),
        "output": options.output,
        "warnings": warned(),
    }


def _labels(
    options: PredictOptions, model: BaseEstimator, frame: Any, ids: Sequence[str], first_row: int
) -> tuple[IntArray, FloatArray | None]:
    """The label of every row of a frame, −1 for none; with probabilities for ``--append``.

    ``first_row`` is the number of the frame's first row in the table.
    """
    preparer, rest = split_model(model, frame, ids, options.missing)
    X, kept = preparer.transform_rows(frame)
    for one in rest if isinstance(rest, Pipeline) else [rest]:
        if options.n_jobs is not None and "n_jobs" in one.get_params(deep=False):
            one.set_params(n_jobs=options.n_jobs)
    try:
        with in_rows_of_table(kept, preparer.get_feature_names_out(), first_row):
            labels = rest.predict(X) if kept.any() else np.empty(0, dtype=np.int64)
    except BicliqueError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, FloatingPointError) as error:
        # All can be read, and yet it is no model: somebody wrote the file by hand.
        raise DataError(
            f"{options.model}: its parts do not make a model ({type(error).__name__}: {error}): save it again."
        ) from error
    return found_labels(rest, X, kept, labels, append=options.append)


def lines(facts: Facts) -> list[str]:
    """The facts as text."""
    seconds = format_seconds(facts["seconds"])
    return [
        f"{facts['table']}: {counted(facts['rows'], 'row')} labelled by {facts['model']} in {seconds}",
        *size_lines(facts["clusters"], facts["without_label"], "rows"),
        *output_lines(facts["output"]),
    ]


add_to = Command(PredictOptions, run, lines, EXAMPLES).add_to
