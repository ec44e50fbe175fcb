"""``biclique predict``: labels of new rows, by a model that ``biclique cluster --save`` or ``biclique.save`` wrote."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from biclique._typing import IntArray
from biclique.cli.label_output import Labels, write_file
from biclique.cli.opened_tables import open_table
from biclique.cli.options import WORK, Command, Printing, check_apart, checked_output, option
from biclique.cli.output import EXIT_OK, block, line, print_warnings
from biclique.cli.saved_models import id_names, possible_ids, rows_of, written_as_fitted
from biclique.cli.standard_streams import shown_output, table_file
from biclique.cli.table_options import Labelling, SavedModel
from biclique.exceptions import BicliqueError, BicliqueWarning, DataError, ParameterError, printable, warn_user
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


def run(options: PredictOptions) -> int:
    with table_file(options.table) as path:
        return _predict(options, path)


def _predict(options: PredictOptions, path: str) -> int:
    options.check_labels(path)
    if options.output is not None:
        with checked_output():
            check_apart("output", options.output, options.model)
    start = time.perf_counter()
    model, notes = load_with_notes(options.model)
    if not hasattr(model, "predict"):
        raise ParameterError(f"{options.model}: a {type(model).__name__} gives no labels, so it cannot predict.")
    taken = options.taken_from(notes)
    with written_as_fitted(taken), options.caught_messages() as messages:
        form = options.form(taken)
        table = open_table(path, form, texts=possible_ids(options, notes), append=options.append)
        ids = id_names(options, notes, table.names)
        if options.output and len(ids) > 1:
            check_output(options.output, several=True)
        found = [_labels(options, model, piece, ids) for piece in table.pieces()]
        labels = np.concatenate([one.labels for one in found])
        if not len(labels):
            raise DataError(f"{options.shown_table}: the table has no rows.")
        probabilities = None
        if options.append and all(one.probabilities is not None for one in found):
            probabilities = np.concatenate([one.probabilities for one in found if one.probabilities is not None])
        if options.output:
            write_file(options.output, Labels(labels, probabilities), table, ids, form, append=options.append)
    _print(options, labels, _n_clusters(model, labels), messages, time.perf_counter() - start)
    return EXIT_OK


def _n_clusters(model: BaseEstimator, found: IntArray) -> int:
    last = model[-1] if isinstance(model, Pipeline) else model
    known = getattr(last, "n_clusters_", getattr(last, "n_clusters", 0))
    return max(int(found.max(initial=-1)) + 1, known if isinstance(known, int) else 0)


def _labels(options: PredictOptions, model: BaseEstimator, frame: Any, ids: Sequence[str]) -> Labels:
    """The label of every row of a frame, −1 for none; with probabilities for ``--append``."""
    X, kept, rest = rows_of(model, frame, ids, options.drop_missing)
    labels = np.full(len(kept), -1, dtype=np.int64)
    probabilities = np.full(len(kept), np.nan)
    if not kept.any():
        return Labels(labels, probabilities)
    for one in rest if isinstance(rest, Pipeline) else [rest]:
        if options.n_jobs is not None and "n_jobs" in one.get_params(deep=False):
            one.set_params(n_jobs=options.n_jobs)
    try:
        labels[kept] = rest.predict(X)
    except BicliqueError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, FloatingPointError) as error:
        # All can be read, and yet it is no model: somebody wrote the file by hand.
        raise DataError(
            f"{options.model}: its parts do not make a model ({type(error).__name__}: {error}): save it again."
        ) from error
    if options.append:
        try:
            probabilities[kept] = rest.predict_proba(X).max(axis=1)
        except (BicliqueError, NotImplementedError, AttributeError) as error:
            warn_user(f"probabilities are left out: {error}", BicliqueWarning)
            return Labels(labels)
    return Labels(labels, probabilities)


def _print(options: PredictOptions, labels: IntArray, n_clusters: int, messages: list[str], seconds: float) -> None:
    name = printable(options.shown_table)
    sizes = np.bincount(labels[labels >= 0], minlength=n_clusters).tolist()
    without = int((labels < 0).sum())
    result = {
        "model": options.model,
        "table": name,
        "rows": len(labels),
        "without_label": without,
        "seconds": seconds,
        "clusters": [{"label": j, "rows": rows} for j, rows in enumerate(sizes)],
        "output": options.output,
        "warnings": messages,
    }
    if options.json:
        block(json.dumps(result, indent=2))
    elif not options.quiet:
        print_warnings(messages)
        line(f"{name}: {len(labels)} rows labelled by {options.model} in {format_seconds(seconds)}")
        line()
        line(f"{'cluster':>7}  {'rows':>8}  {'share':>7}")
        shown = {**{str(j): rows for j, rows in enumerate(sizes)}, **({"none": without} if without else {})}
        for label, rows in shown.items():
            line(f"{label:>7}  {rows:>8}  {rows / len(labels):>7.1%}")
        if options.output:
            line()
            line(f"labels written to {shown_output(options.output)}")


add_to = Command(
    run,
    PredictOptions,
    "Label the rows of a table with a model that was saved. Columns are found by their names; others are ignored. "
    "Text and ids are read as in the fit, unless an option says otherwise. The file of a model runs no code.",
    EXAMPLES,
).add_to
