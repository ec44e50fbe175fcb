"""``biclique predict``: labels of new rows, by a model that ``biclique cluster --save`` or ``biclique.save`` wrote."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from biclique._typing import IntArray
from biclique.cli.label_output import Labels, cluster_sizes, write_file
from biclique.cli.opened_tables import table_file
from biclique.cli.options import WORK, Command, Printing, check_apart, option
from biclique.cli.output import line, print_output, print_sizes
from biclique.cli.saved_models import opened_as_fitted, rows_of
from biclique.cli.table_options import Labelling, SavedModel
from biclique.exceptions import BicliqueError, DataError, ParameterError, printable
from biclique.models.saving import load_with_notes
from biclique.progress import format_seconds
from biclique.tables.writing import check_output

EXAMPLES = """\
examples:
  biclique cluster customers.csv -k 5 --id name --save customers.skops
  biclique predict customers.skops new.csv -o labels.csv
  biclique predict customers.skops new.csv -o labelled.csv --append
  biclique predict customers.skops new.csv --json
"""


@dataclass(frozen=True, kw_only=True)
class PredictOptions(Printing, Labelling, SavedModel):
    n_jobs: int | None = option("--jobs", group=WORK, type=int, metavar="N", help="threads (default: every core)")

    def check(self) -> None:
        super().check()
        if self.output is not None:
            check_apart("output", self.output, self.model)


def run(options: PredictOptions) -> None:
    start = time.perf_counter()
    model, notes = load_with_notes(options.model)
    if not hasattr(model, "predict"):
        raise ParameterError(f"{options.model}: a {type(model).__name__} gives no labels, so it cannot predict.")
    with options.caught_messages() as messages, table_file(options.table) as path:
        labels = _predict(options, model, notes, path)
    result = {
        "model": options.model,
        "table": printable(options.shown_table),
        "rows": len(labels),
        "without_label": int((labels < 0).sum()),
        "seconds": time.perf_counter() - start,
        "clusters": cluster_sizes(labels, _n_clusters(model), "rows"),
        "output": options.output,
        "warnings": messages,
    }
    options.show(result, _print)


def _predict(options: PredictOptions, model: BaseEstimator, notes: Mapping[str, Any], path: str) -> IntArray:
    """The label of every row, which are written too."""
    with opened_as_fitted(options, notes, path, append=options.append) as (table, ids, form):
        if options.output and len(ids) > 1:
            check_output(options.output, several=True)
        found = [_labels(options, model, piece, ids) for piece in table.pieces()]
        labels = np.concatenate([one.labels for one in found])
        if not len(labels):
            raise DataError(f"{options.shown_table}: the table has no rows.")
        if options.output:
            probabilities = [one.probabilities for one in found if one.probabilities is not None]
            complete = len(probabilities) == len(found)
            every = Labels(labels, np.concatenate(probabilities) if complete else None)
            write_file(options.output, every, table, ids, form, append=options.append)
    return labels


def _n_clusters(model: BaseEstimator) -> int:
    last = model[-1] if isinstance(model, Pipeline) else model
    known = getattr(last, "n_clusters_", getattr(last, "n_clusters", 0))
    return known if isinstance(known, int) else 0


def _labels(options: PredictOptions, model: BaseEstimator, frame: Any, ids: Sequence[str]) -> Labels:
    """The label of every row of a frame, −1 for none; with probabilities for ``--append``."""
    X, kept, rest = rows_of(model, frame, ids, options.drop_missing)
    for one in rest if isinstance(rest, Pipeline) else [rest]:
        if options.n_jobs is not None and "n_jobs" in one.get_params(deep=False):
            one.set_params(n_jobs=options.n_jobs)
    try:
        labels = rest.predict(X) if kept.any() else np.empty(0, dtype=np.int64)
    except BicliqueError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, FloatingPointError) as error:
        # All can be read, and yet it is no model: somebody wrote the file by hand.
        raise DataError(
            f"{options.model}: its parts do not make a model ({type(error).__name__}: {error}): save it again."
        ) from error
    return Labels.found(rest, X, kept, labels, append=options.append)


def _print(result: dict[str, Any]) -> None:
    seconds = format_seconds(result["seconds"])
    line(f"{result['table']}: {result['rows']} rows labelled by {result['model']} in {seconds}")
    print_sizes(result["clusters"], result["without_label"], "rows")
    print_output(result["output"])


add_to = Command(
    run,
    PredictOptions,
    "Label the rows of a table with a model that was saved. Columns are found by their names; others are ignored. "
    "Text and ids are read as in the fit, unless an option says otherwise. The file of a model runs no code.",
    EXAMPLES,
).add_to
