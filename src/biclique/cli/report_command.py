"""``biclique report``: a page about a saved model and a table, and ``--report`` of ``biclique cluster``."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from biclique.cli.common import caught_messages, check_apart, checked_option
from biclique.cli.output import EXIT_CODES, EXIT_OK, line, print_warnings
from biclique.cli.table_options import add_new_row_options, form_of
from biclique.cli.table_rows import id_names, ids_of, rows_of, written_as_fitted
from biclique.cluster import BicliqueSpectralClustering
from biclique.exceptions import DataError
from biclique.io import Column, TypedTable, check_target, read_columns
from biclique.models import load_with_notes
from biclique.report.gather import Ids

EXAMPLES = """\
examples:
  biclique cluster data.csv -k select --report report.html
  biclique report model.biclique data.csv -o report.html
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write one HTML page about the clusters that a saved model finds in a table: a map, what sets each "
        "cluster apart, how sure the labels are. The page needs no network."
    )
    parser.epilog = f"{EXAMPLES}\n{EXIT_CODES}"
    parser.set_defaults(run=_report)
    parser.add_argument("model", metavar="MODEL", help="file of biclique.save, such as model.biclique")
    parser.add_argument("table", metavar="TABLE", help="the rows: of the fit, or others with the same columns")
    parser.add_argument("-o", "--output", metavar="FILE", help="page to write (default: TABLE with the ending .html)")
    add_new_row_options(parser, "leave out rows with missing values")
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")


def _report(options: argparse.Namespace) -> int:
    target = options.output or str(Path(options.table).with_suffix(".html"))
    with checked_option():
        check_report(target, options.table, options.model)
    model, notes = load_with_notes(options.model, memory_limit=options.memory_limit)
    last = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(last, BicliqueSpectralClustering):
        raise DataError(
            f"{options.model} holds a {type(last).__name__}: reports are for BicliqueSpectralClustering, alone or at "
            "the end of a pipeline."
        )
    with written_as_fitted(options, notes), caught_messages() as messages:
        table = read_columns(options.table, form_of(options), memory_limit=options.memory_limit)
        ids = id_names(options, notes, table.name, table.names)
        X, kept, rest = rows_of(model, table, ids, options.drop_missing)
        if isinstance(rest, Pipeline) and len(rest) > 1:
            X = np.asarray(rest[:-1].transform(X))
        shown = shown_columns(table, kept, ids)
        names = row_names(kept, ids_of(table, ids, options))
        if not kept.all():
            left = int((~kept).sum())
            messages.append(f"{left} {'row' if left == 1 else 'rows'} with missing values left out.")
        last.report(
            X,
            target,
            table=shown,
            used=_used(model, shown),
            ids=names,
            title=Path(options.table).name,
            command=options.command,
            notes=messages,
        )
    if not options.quiet:
        print_warnings(messages)
        line(f"report written to {target}")
    return EXIT_OK


# ``--report`` of ``biclique cluster``


def check_report(path: str | None, *inputs: str | None) -> None:
    """Refuse, before any work, a page that could not be written."""
    if path is None:
        return
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise DataError(f"cannot write {path}: the name of a report must end in .html.")
    check_target(path)
    check_apart("report", path, *inputs)


def shown_columns(table: TypedTable, kept: NDArray[np.bool_], leave_out: Collection[str] = ()) -> TypedTable:
    """Some rows of a table, before they are prepared, without some columns."""
    columns = tuple(Column(c.name, c.kind, c.values[kept]) for c in table.columns if c.name not in leave_out)
    return replace(table, columns=columns, n_rows=int(kept.sum()), lines=())


def _used(model: BaseEstimator, shown: TypedTable) -> list[str]:
    """The columns of a table that a model, or the pipeline that ends in it, clusters."""
    first = model[0] if hasattr(model, "steps") else model
    if hasattr(first, "number_columns_"):  # a TablePreparer
        return [*first.number_columns_, *first.category_columns_]
    known = getattr(first, "feature_names_in_", None)
    return [c.name for c in shown.columns if c.numbers is not None] if known is None else list(map(str, known))


def row_names(kept: NDArray[np.bool_], ids: Mapping[str, Sequence[str]]) -> list[str] | None:
    """The ids of the rows that are kept; their numbers in the file if some are not."""
    for texts in ids.values():
        return [text for text, stays in zip(texts, kept, strict=True) if stays]
    return None if kept.all() else [f"row {row}" for row in np.flatnonzero(kept)]


def write_report(
    model: BicliqueSpectralClustering,
    X: Any,
    options: argparse.Namespace,
    notes: Sequence[str],
    table: Any,
    used: Collection[str],
    ids: Ids | None = None,
) -> None:
    """The page of a run of ``biclique cluster``; ``used`` names the columns of the table that were clustered."""
    model.report(
        X,
        options.report,
        table=table,
        used=used,
        ids=ids,
        title=Path(options.table).name,
        command=options.command,
        notes=notes,
    )
