"""``biclique predict``: labels of new rows, by a model that ``biclique cluster --save`` or ``biclique.save`` wrote."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from biclique._typing import FloatArray, IntArray
from biclique.cli.common import caught_messages, check_apart, checked_option
from biclique.cli.standard_streams import standard_streams
from biclique.cli.table_options import add_text_options
from biclique.cli.table_rows import form_of
from biclique.cli.text import EXIT_CODES, EXIT_OK, block, line, print_warnings
from biclique.cluster import BicliqueSpectralClustering
from biclique.exceptions import BicliqueError, DataError, ParameterError
from biclique.io import (
    CHUNK_ROWS,
    TablePreparer,
    check_output,
    find_format,
    listed,
    open_columns,
    write_labels,
    writers,
)
from biclique.io.append import text_fields
from biclique.io.columns import texts_of
from biclique.io.typed_columns import TypedTable
from biclique.models import Saved, load_with_notes, save
from biclique.printable import printable
from biclique.progress import format_seconds

EXAMPLES = """\
examples:
  biclique cluster customers.csv -k 5 --id name --save customers.biclique
  biclique predict customers.biclique new.csv -o labels.csv
  biclique predict customers.biclique new.csv --json
"""


def add_command(commands: Any) -> None:
    parser = commands.add_parser(
        "predict",
        help="label new rows with a saved model",
        description="Label the rows of a table with a model that was saved. Columns are found by their names; others "
        "are ignored. The file of a model runs no code.",
        epilog=f"{EXAMPLES}\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_predict)
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
    parser.add_argument("--id", metavar="NAME", help="column that names the rows: written beside the labels")
    parser.add_argument("--drop-missing", action="store_true", help="rows with missing values get no label")
    add_text_options(parser)
    parser.add_argument(
        "--memory-limit", default="auto", metavar="SIZE", help="such as 4GB (default: half of what is free)"
    )
    parser.add_argument("--jobs", type=int, default=None, metavar="N", help="threads (default: every core)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")


def save_run(model: BicliqueSpectralClustering, preparer: TablePreparer, options: argparse.Namespace) -> Saved:
    """What ``biclique cluster --save`` writes: the columns with their scale, and the model."""
    pipeline = Pipeline([("prepare", preparer), ("cluster", model)])
    return save(pipeline, options.save, notes={"table": options.table, "id": next(iter(options.id), None)})


# The command


def _predict(options: argparse.Namespace) -> int:
    with standard_streams(options):
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    if options.output is not None:
        with checked_option():
            check_output(options.output, options.table)
            check_apart("output", options.output, options.model)
    start = time.perf_counter()
    model, notes = load_with_notes(options.model, memory_limit=options.memory_limit)
    if not hasattr(model, "predict"):
        raise ParameterError(f"{options.model}: a {type(model).__name__} gives no labels, so it cannot predict.")
    table = open_columns(options.table, form_of(options), memory_limit=options.memory_limit)
    noted = notes.get("id")
    id_name = options.id or (noted if noted in table.kinds else None)
    if options.id is not None and options.id not in table.kinds:
        raise ParameterError(
            f"{table.name}: --id names column {options.id!r}, which is not there; columns: {', '.join(table.kinds)}."
        )
    kind = find_format(Path(options.table))
    is_text = kind is not None and kind.is_text
    labels: list[IntArray] = []
    ids: list[str] = []
    with caught_messages() as messages:
        for chunk in table.column_chunks(CHUNK_ROWS):
            labels.append(_labels(model, chunk, options))
            if id_name is not None and options.output and not is_text:
                ids += texts_of(chunk.column(id_name))
    if id_name is not None and options.output and is_text:
        for (texts,) in text_fields(Path(options.table), form_of(options), [id_name]):
            ids += texts
    found = np.concatenate(labels) if labels else np.empty(0, dtype=np.int64)
    if not len(found):
        raise DataError(f"{table.name}: the table has no rows.")
    if options.output:
        rows = np.flatnonzero(found >= 0)
        write_labels(
            options.output,
            found[rows],
            rows=rows,
            n_rows=len(found),
            ids=None if id_name is None else ids,
            id_name=id_name or "row",
        )
    _report(
        options, printable(options.shown_table), found, _n_clusters(model, found), messages, time.perf_counter() - start
    )
    return EXIT_OK


def _n_clusters(model: Any, found: IntArray) -> int:
    plan = getattr(model[-1] if isinstance(model, Pipeline) else model, "plan_", None)
    known = plan.settings.assigning.n_clusters if plan is not None else None
    return max(int(found.max(initial=-1)) + 1, known or 0)


def _labels(model: Any, table: TypedTable, options: argparse.Namespace) -> IntArray:
    """A label for every row of a piece of the table, −1 for those without one."""
    first = model[0] if isinstance(model, Pipeline) else None
    if isinstance(model, Pipeline) and isinstance(first, TablePreparer):
        if options.drop_missing and first.missing == "refuse":
            first.missing = "drop"
        X, kept = first.transform_rows(table)
        rest = model[1:]
    else:
        X, kept = _numbers(model, table, options)
        rest = model
    labels = np.full(table.n_rows, -1, dtype=np.int64)
    if not kept.any():
        return labels
    try:
        for one in rest if isinstance(rest, Pipeline) else [rest]:
            if options.jobs is not None and "n_jobs" in one.get_params(deep=False):
                one.n_jobs = options.jobs
        labels[kept] = rest.predict(X)
    except BicliqueError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, FloatingPointError) as error:
        # Checksums are right, and yet it is no model: somebody wrote the file by hand.
        raise DataError(
            f"{options.model}: its parts do not make a model ({type(error).__name__}: {error}): save it again."
        ) from error
    return labels


def _numbers(model: Any, table: TypedTable, options: argparse.Namespace) -> tuple[FloatArray, np.ndarray]:
    """The columns of a model without a preparer: by the names it was fitted with, or all number columns in order."""
    known = getattr(model, "feature_names_in_", None)
    n_columns = getattr(model, "n_features_in_", None)
    if known is not None:
        absent = [name for name in known if name not in table.kinds]
        if absent:
            raise DataError(f"{table.name}: column {absent[0]!r} was used in fit and is not there.")
        columns = [table.column(name) for name in known]
    else:
        columns = [column for column in table.columns if column.name != options.id and column.numbers is not None]
        if n_columns is not None and len(columns) != n_columns:
            raise DataError(
                f"{table.name}: has {len(columns)} columns of numbers, the model was fitted with {n_columns} and "
                "without names: pass a table of these columns, or fit with named columns."
            )
    wrong = [column.name for column in columns if column.numbers is None]
    if wrong:
        raise DataError(
            f"{table.name}: column {wrong[0]!r} held numbers in fit and holds {table.kinds[wrong[0]]}s now."
        )
    X = np.column_stack([column.numbers for column in columns if column.numbers is not None])
    kept: NDArray[np.bool_] = np.asarray(np.isfinite(X).all(axis=1))
    if not kept.all() and not options.drop_missing:
        row = table.first_row + int(np.argmin(kept))
        raise DataError(f"{table.name}: missing or infinite value in row {row} (from 0); use --drop-missing.")
    return X[kept], kept


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
            line(f"labels written to {options.output}")


def _sizes(sizes: list[int], without: int, n: int) -> Iterator[str]:
    for j, rows in enumerate(sizes):
        yield f"{j:>7}  {rows:>8}  {rows / n:>7.1%}"
    if without:
        yield f"{'none':>7}  {without:>8}  {without / n:>7.1%}"
