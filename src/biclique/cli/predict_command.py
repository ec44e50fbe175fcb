"""``biclique predict``: labels of new rows, by a model that ``biclique cluster --save`` or ``biclique.save`` wrote."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from biclique._typing import IntArray
from biclique.cli.options import WORK, Command, Printing, check_apart, checked_output, option
from biclique.cli.output import EXIT_OK, block, line, print_warnings
from biclique.cli.standard_streams import shown_output, table_file
from biclique.cli.table_options import Labelling, SavedModel
from biclique.cli.table_rows import id_names, ids_of, probabilities_of, rows_of, write_new, written_as_fitted
from biclique.exceptions import BicliqueError, DataError, ParameterError, printable
from biclique.io import CHUNK_ROWS, TypedTable, open_columns
from biclique.io.label_files import NewColumns, check_ids
from biclique.models.saving import load_with_notes
from biclique.progress import Progress, format_seconds

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
    with written_as_fitted(taken), Progress.of(options.verbose) as progress:
        table = open_columns(path, options.form(taken))
        ids = id_names(options, notes, list(table.kinds))
        if options.output and not options.append and len(ids) > 1:
            check_ids(options.output)
        found: list[NewColumns] = []
        with options.caught_messages() as messages:
            for chunk in table.column_chunks(CHUNK_ROWS):
                new, about = _new_columns(model, chunk, ids, options)
                found.append(new)
                progress.share("labelling the rows", (chunk.first_row + chunk.n_rows) / (table.n_rows or 1))
                messages += [text for text in about if text not in messages]
        whole = NewColumns.joined(found)
        if not len(whole.kept):
            raise DataError(f"{table.name}: the table has no rows.")
        if options.output:
            form = options.form(taken)
            write_new(options, path, table, whole, ids_of(table, [] if options.append else ids, path, form), form)
    labels = np.full(len(whole.kept), -1, dtype=np.int64)
    labels[whole.kept] = whole.labels
    _print(options, labels, _n_clusters(model, labels), messages, time.perf_counter() - start)
    return EXIT_OK


def _n_clusters(model: BaseEstimator, found: IntArray) -> int:
    last = model[-1] if isinstance(model, Pipeline) else model
    known = getattr(last, "n_clusters_", getattr(last, "n_clusters", 0))
    return max(int(found.max(initial=-1)) + 1, known if isinstance(known, int) else 0)


def _new_columns(
    model: BaseEstimator, table: TypedTable, ids: Sequence[str], options: PredictOptions
) -> tuple[NewColumns, list[str]]:
    """Labels of a piece of the table, with probabilities for ``--append``; and what there is to say about these."""
    X, kept, rest = rows_of(model, table, ids, options.drop_missing)
    if not kept.any():
        nothing = np.empty(0) if options.append else None
        return NewColumns(kept, np.empty(0, dtype=np.int64), nothing), []
    try:
        for one in rest if isinstance(rest, Pipeline) else [rest]:
            if options.n_jobs is not None and "n_jobs" in one.get_params(deep=False):
                one.n_jobs = options.n_jobs
        labels = np.asarray(rest.predict(X))
        probabilities, notes = probabilities_of(rest, X) if options.append else (None, [])
    except BicliqueError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, FloatingPointError) as error:
        # All can be read, and yet it is no model: somebody wrote the file by hand.
        raise DataError(
            f"{options.model}: its parts do not make a model ({type(error).__name__}: {error}): save it again."
        ) from error
    inside = labels >= 0  # -1 is no label
    kept = kept.copy()
    kept[kept] = inside
    return NewColumns(kept, labels[inside], None if probabilities is None else probabilities[inside]), notes


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
