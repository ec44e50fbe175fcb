"""``biclique predict``: labels of new rows, by a model that ``biclique cluster --save`` or ``biclique.save`` wrote."""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from biclique._typing import IntArray
from biclique.cli.common import add_run_options, caught_messages, check_apart, checked_option, progress_of
from biclique.cli.output import EXIT_CODES, EXIT_OK, block, line, print_warnings
from biclique.cli.standard_streams import shown_output, standard_streams
from biclique.cli.table_options import add_new_row_options, form_of, given_form
from biclique.cli.table_rows import id_names, ids_of, probabilities_of, rows_of, write_new, written_as_fitted
from biclique.cluster import BicliqueSpectralClustering
from biclique.exceptions import BicliqueError, DataError, ParameterError, printable
from biclique.io import (
    CHUNK_ROWS,
    TablePreparer,
    TypedTable,
    check_output,
    listed,
    open_columns,
    writers,
)
from biclique.io.label_files import NewColumns, check_append, check_ids
from biclique.models import Saved, load_with_notes, save
from biclique.progress import format_seconds

EXAMPLES = """\
examples:
  biclique cluster customers.csv -k 5 --id name --save customers.biclique
  biclique predict customers.biclique new.csv -o labels.csv
  biclique predict customers.biclique new.csv -o labelled.csv --append
  biclique predict customers.biclique new.csv --json
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Label the rows of a table with a model that was saved. Columns are found by their names; others "
        "are ignored. The file of a model runs no code."
    )
    parser.epilog = f"{EXAMPLES}\n{EXIT_CODES}"
    parser.set_defaults(run=_predict, fail=parser.error)
    parser.add_argument("model", metavar="MODEL", help="file that --save wrote, such as model.biclique")
    parser.add_argument(
        "table", metavar="TABLE", help="table of new rows, with the columns of the fit; - for standard input"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"write one label a row to FILE ({listed([*writers()], 'or')}); - is standard output",
    )
    parser.add_argument(
        "--append",
        action="store_true",
        help="write the whole table to FILE, with columns for the label of each row and its probability",
    )
    add_new_row_options(parser, "rows with missing values get no label")
    add_run_options(parser)


def save_run(
    model: BicliqueSpectralClustering, preparer: TablePreparer, options: argparse.Namespace, ids: Sequence[str]
) -> Saved:
    """What ``biclique cluster --save`` writes: columns, model, which columns are ids, how the text is written."""
    model = copy.copy(model)
    if hasattr(model, "feature_names_in_"):  # of rows in chunks; the preparer gives rows without names
        del model.feature_names_in_
    pipeline = Pipeline([("prepare", preparer), ("cluster", model)])
    notes = {"table": options.table, "id": list(ids), "text": given_form(options)}
    return save(pipeline, options.save, notes=notes)


# The command


def _predict(options: argparse.Namespace) -> int:
    with standard_streams(options):
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    if options.append and not options.output:
        options.fail("--append needs a file to write to: -o FILE")
    if options.output is not None:
        with checked_option():
            if options.append:
                check_append(options.output, options.table)
            check_output(options.output, options.table)
            check_apart("output", options.output, options.model)
    start = time.perf_counter()
    model, notes = load_with_notes(options.model, memory_limit=options.memory_limit)
    if not hasattr(model, "predict"):
        raise ParameterError(f"{options.model}: a {type(model).__name__} gives no labels, so it cannot predict.")
    with written_as_fitted(options, notes), progress_of(options) as progress:
        tick = partial(progress.share, "reading the table")
        table = open_columns(options.table, form_of(options), memory_limit=options.memory_limit, tick=tick)
        ids = id_names(options, notes, table.name, list(table.kinds))
        if options.output and not options.append and len(ids) > 1:
            check_ids(options.output)
        found: list[NewColumns] = []
        with caught_messages() as messages:
            for chunk in table.column_chunks(CHUNK_ROWS):
                new, told = _new_columns(model, chunk, ids, options)
                found.append(new)
                progress.share("labelling the rows", (chunk.first_row + chunk.n_rows) / (table.n_rows or 1))
                messages += [text for text in told if text not in messages]
        whole = NewColumns.joined(found)
        if not len(whole.kept):
            raise DataError(f"{table.name}: the table has no rows.")
        if options.output:
            write_new(options, table, whole, ids_of(table, [] if options.append else ids, options))
    labels = np.full(len(whole.kept), -1, dtype=np.int64)
    labels[whole.kept] = whole.labels
    name = printable(options.shown_table)
    _report(options, name, labels, _n_clusters(model, labels), messages, time.perf_counter() - start)
    return EXIT_OK


def _n_clusters(model: BaseEstimator, found: IntArray) -> int:
    plan = getattr(model[-1] if isinstance(model, Pipeline) else model, "plan_", None)
    known = plan.settings.assigning.n_clusters if plan is not None else None
    return max(int(found.max(initial=-1)) + 1, known or 0)


def _new_columns(
    model: BaseEstimator, table: TypedTable, ids: Sequence[str], options: argparse.Namespace
) -> tuple[NewColumns, list[str]]:
    """Labels of a piece of the table, with probabilities for ``--append``; and what there is to say about these."""
    X, kept, rest = rows_of(model, table, ids, options.drop_missing)
    if not kept.any():
        nothing = np.empty(0) if options.append else None
        return NewColumns(kept, np.empty(0, dtype=np.int64), nothing), []
    try:
        for one in rest if isinstance(rest, Pipeline) else [rest]:
            if options.jobs is not None and "n_jobs" in one.get_params(deep=False):
                one.n_jobs = options.jobs
        labels = np.asarray(rest.predict(X))
        probabilities, told = probabilities_of(rest, X) if options.append else (None, [])
    except BicliqueError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, FloatingPointError) as error:
        # Checksums are right, and yet it is no model: somebody wrote the file by hand.
        raise DataError(
            f"{options.model}: its parts do not make a model ({type(error).__name__}: {error}): save it again."
        ) from error
    inside = labels >= 0  # -1 is no label
    kept = kept.copy()
    kept[kept] = inside
    return NewColumns(kept, labels[inside], None if probabilities is None else probabilities[inside]), told


def _report(
    options: argparse.Namespace, name: str, labels: IntArray, n_clusters: int, messages: list[str], seconds: float
) -> None:
    sizes = [int((labels == j).sum()) for j in range(n_clusters)]
    result = {
        "model": options.model,
        "table": name,
        "rows": len(labels),
        "without_label": int((labels < 0).sum()),
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
        for row in _sizes(sizes, result["without_label"], len(labels)):
            line(row)
        if options.output:
            line()
            line(f"labels written to {shown_output(options.output)}")


def _sizes(sizes: list[int], without: int, n: int) -> Iterator[str]:
    for j, rows in enumerate(sizes):
        yield f"{j:>7}  {rows:>8}  {rows / n:>7.1%}"
    if without:
        yield f"{'none':>7}  {without:>8}  {without / n:>7.1%}"
