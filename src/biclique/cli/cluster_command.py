"""``biclique cluster``: open the table, prepare, fit, describe, write."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from biclique._typing import FloatArray, IntArray
from biclique.cli.cluster_options import ClusterOptions
from biclique.cli.label_output import Labels, Parts, is_folder, write_file
from biclique.cli.opened_tables import OpenedTable, Work, connected, is_shipped, open_table, table_file
from biclique.cli.options import Command
from biclique.cli.output import EXIT_DATA, fail, line
from biclique.cli.results import facts_of, print_result
from biclique.cli.table_options import command, possible_names
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import DataError, TableError, printable
from biclique.models.saving import save
from biclique.runtime.memory import format_bytes
from biclique.selection.count_search import select_n_clusters
from biclique.tables.diagnosis import NOTHING_LEFT, Advice, ColumnsError
from biclique.tables.frames import kind_of, texts_of
from biclique.tables.preparer import TablePreparer
from biclique.tables.text_form import TextForm
from biclique.tables.used_columns import weights_of
from biclique.tables.writing import check_output

EXAMPLES = """\
examples:
  biclique cluster iris -k 3
  biclique cluster customers.csv -k 5 --id name --drop notes -o labels.csv
  biclique cluster customers.csv -k select --save customers.skops
  biclique cluster rows.npy -k 10 --report rows.html
"""


def run(options: ClusterOptions) -> int | None:
    with table_file(options.table) as path:
        try:
            with connected(options.dask, options.n_jobs):
                _cluster(options, path)
        except ColumnsError as error:
            return _explain(error, options, path)
    return None


def _cluster(options: ClusterOptions, path: str) -> None:
    table = _open(options, path, options.form())
    ids = options.names("id", table.names)
    if options.output and len(ids) > 1 and not is_folder(options.output):
        check_output(options.output, several=True)
    parts = _parts(options, table)
    if parts is not None and parts.complete:
        if not options.quiet:
            line(f"{options.output}: all {len(parts.paths)} parts of this run are there; nothing to do.")
        return
    with options.caught_messages() as about_table:
        work = _prepare(options, path, table, ids)
    model = options.model(work.preparer.categorical_places_)
    start = time.perf_counter()
    with options.caught_messages() as about_fit:
        _fit(options, model, work)
    labels = np.asarray(model.labels_)
    seconds = time.perf_counter() - start
    messages = [*about_fit, *about_table, *map(options.in_words, table.notes)]
    if options.report or options.json or not options.quiet:
        frame, rows, numbers = table.shown(work, options.random_state)
        constant = work.preparer.get_feature_names_out()[np.ptp(rows, axis=0) == 0]
        if len(constant):
            messages.append(f"constant columns tell nothing apart: {', '.join(repr(str(name)) for name in constant)}.")
    if options.output:
        with options.caught_messages() as about_labels:
            found = Labels.found(model, work.X, work.kept, labels, append=options.append)
        messages += about_labels
        if parts is not None:
            parts.write(found, table, ids)
        else:
            write_file(options.output, found, table, ids, options.form(), append=options.append)
    saved = None if options.save is None else _save(options, model, work)
    if options.report:
        _report(options, model, work, frame, rows, numbers, messages)
    if options.json or not options.quiet:
        facts = facts_of(model, work, labels, rows, labels[numbers])
        result = {
            "table": printable(options.shown_table),
            **facts,
            "seconds": seconds,
            "output": options.output,
            "report": options.report,
            "saved": saved,
            "warnings": messages,
        }
        print_result(options, result, model)


# Open, and prepare


def _open(options: ClusterOptions, path: str, form: TextForm) -> OpenedTable:
    named = [*options.id, *([] if options.label is None else [options.label])]
    return open_table(path, form, texts=possible_names(named), append=options.append, dask=options.dask is not None)


def _preparer(options: ClusterOptions, names: Sequence[str], label: str | None) -> TablePreparer:
    leave_out = [*options.names("id", names), *options.names("weight", names), *([] if label is None else [label])]
    return options.preparer(names, leave_out=leave_out, codes=options.compares_levels)


def _prepare(options: ClusterOptions, path: str, table: OpenedTable, ids: list[str]) -> Work:
    name = printable(options.shown_table)
    label = next(iter(options.names("label", table.names)), None)
    if is_shipped(path) and "target" in table.names:
        label = "target"
    preparer = _preparer(options, table.names, label)
    X, kept = table.prepared(preparer)
    n_rows = int(kept.sum())
    if n_rows < 2:
        few = ("no row", "only one row")[n_rows]
        why, way = "", "add rows, or label it by a saved model (biclique predict)"
        if n_rows < len(kept):
            why = " without missing values"
            way = "fill the gaps in with --missing mean, or leave out the columns that have them with --drop"
        raise DataError(f"{name}: {few}{why}; a table needs at least 2 rows to be clustered: {way}.")
    classes = None if label is None else texts_of(table.column(label)[kept])
    weights = None
    if options.weight is not None:
        weights = table.weights(weights_of(table.column(options.weight), kept, name), X)
    return Work(table, ids, preparer, X, kept, classes, weights)


def _explain(error: ColumnsError, options: ClusterOptions, path: str) -> int:
    """Print what each column looks like, and the command that deals with all of them."""
    text = options.in_words(error.description.replace(printable(path), printable(options.shown_table)))
    advice, more = _with_one_decimal(error.advice, options, path)
    first, *others = text.splitlines()
    code = fail(first, EXIT_DATA)
    way = ["This deals with all of them:", f"  {command(options.arguments, advice)}"]
    for one in (*others, *more, *([NOTHING_LEFT] if error.hopeless else way)):
        line(one, sys.stderr)
    return code


def _with_one_decimal(advice: Advice, options: ClusterOptions, path: str) -> tuple[Advice, list[str]]:
    """The advice if some columns have decimal commas and others points; and lines about the latter.

    A file is read with one sign: that of more columns, and the others are left out.
    """
    if not advice.decimal:
        return advice, []
    table = _open(options, path, replace(options.form(), decimal=","))
    try:
        preparer = _preparer(options, table.names, options.label)
    except TableError:  # without commas between fields the names are others
        return advice, []
    dealt_with = {*advice.id, *advice.drop, *advice.categorical, *advice.year_last, *map(str, preparer.drop)}
    used = [str(name) for name in preparer.columns or table.names]
    points = [name for name in used if name not in dealt_with and kind_of(table.column(name)) == "text"]
    more = [
        f"  {printable(name)}  numbers with a decimal point: a file is read with one decimal sign" for name in points
    ]
    if len(points) > len(advice.decimal):
        return replace(advice, drop=[*advice.drop, *advice.decimal], decimal=[]), more
    return replace(advice, drop=[*advice.drop, *points]), more


# Fit


def _fit(options: ClusterOptions, model: BicliqueSpectralClustering, work: Work) -> None:
    weights: dict[str, Any] = {} if work.weights is None else {"sample_weight": work.weights}
    if options.n_clusters != "select" or options.k_max is None:
        model.fit(work.X, **weights)
        return
    selection = select_n_clusters(
        work.X,
        options.k_max,
        random_state=options.random_state,
        n_jobs=options.n_jobs,
        verbose=options.verbose,
        **weights,
    )
    model.set_params(n_clusters=selection.n_clusters).fit(work.X, **weights)
    model.k_selection_ = selection


# Write


def _parts(options: ClusterOptions, table: OpenedTable) -> Parts | None:
    """The folder of labels, if the output is one."""
    if options.output is None or not table.streamed or not is_folder(options.output):
        return None
    settings = {name: getattr(options, name) for name in options.flags if name not in ("output", "dask", "n_jobs")}
    return Parts.opened(options.output, table, settings)


def _save(options: ClusterOptions, model: BicliqueSpectralClustering, work: Work) -> dict[str, Any]:
    """Columns, model, which columns are ids, and how the text is written: ``biclique predict`` needs all of them."""
    target = options.save or ""
    notes: dict[str, Any] = {"id": work.ids, "text": options.written}
    save(Pipeline([("prepare", work.preparer), ("cluster", model)]), target, notes=notes)
    size = Path(target).stat().st_size
    return {"file": target, "bytes": size, "told": f"{target}: {format_bytes(size)}"}


def _report(
    options: ClusterOptions,
    model: BicliqueSpectralClustering,
    work: Work,
    frame: Any,
    rows: FloatArray,
    numbers: IntArray,
    messages: list[str],
) -> None:
    notes = list(messages)
    if len(rows) < int(work.kept.sum()):
        notes.append(f"this page is made of {len(rows)} of {int(work.kept.sum())} rows, drawn at random.")
    model.report(
        rows,
        options.report or "",
        table=frame.drop(columns=work.ids),
        used=[*work.preparer.number_columns_, *work.preparer.category_columns_],
        ids=row_names(frame, work.ids, np.flatnonzero(work.kept)[numbers]),
        title=Path(options.shown_table).name,
        command=options.command,
        notes=notes,
    )


def row_names(frame: Any, ids: Sequence[str], places: IntArray) -> list[str] | None:
    """The ids of some rows; their numbers in the table if some are left out."""
    if ids:
        return texts_of(frame[ids[0]])
    return None if len(places) and places[-1] == len(places) - 1 else [f"row {row}" for row in places]


add_to = Command(
    run,
    ClusterOptions,
    "Cluster the rows of a table. Columns are scaled to unit variance unless --scale says otherwise.",
    EXAMPLES,
    BicliqueSpectralClustering,
).add_to
