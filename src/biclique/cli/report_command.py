"""``biclique report``: a page about a saved model and a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from biclique.cli.cluster_command import row_names
from biclique.cli.cluster_options import check_page
from biclique.cli.opened_tables import table_file
from biclique.cli.options import Command, Quiet, option
from biclique.cli.output import line, print_warnings
from biclique.cli.saved_models import number_columns, opened_as_fitted, rows_of
from biclique.cli.table_options import SavedModel, TableOptions
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import DataError, MemoryLimitError
from biclique.models.saving import load_with_notes

EXAMPLES = """\
examples:
  biclique cluster data.csv -k select --report report.html
  biclique report model.skops data.csv -o report.html
"""


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Quiet, TableOptions, SavedModel):
    output: str | None = option(
        "-o", "--output", metavar="FILE", help="page to write (default: TABLE with the ending .html)"
    )

    @property
    def page(self) -> str:
        return self.output or str(Path(self.table).with_suffix(".html"))

    def check(self) -> None:
        check_page(self.page, self.table, self.model)


def run(options: ReportOptions) -> None:
    model, notes = load_with_notes(options.model)
    last = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(last, BicliqueSpectralClustering):
        raise DataError(
            f"{options.model} holds a {type(last).__name__}: reports are for BicliqueSpectralClustering, alone or at "
            "the end of a pipeline."
        )
    with (
        options.caught_messages() as messages,
        table_file(options.table) as path,
        opened_as_fitted(options, notes, path) as (table, ids, _),
    ):
        if table.streamed:
            raise MemoryLimitError(f"{options.shown_table}: a report needs the whole table in memory: take fewer rows.")
        X, kept, rest = rows_of(model, table.frame, ids, options.drop_missing)
        if isinstance(rest, Pipeline) and len(rest) > 1:
            X = np.asarray(rest[:-1].transform(X))
        if not kept.all():
            left = int((~kept).sum())
            messages.append(f"{left} {'row' if left == 1 else 'rows'} with missing values left out.")
        last.report(
            X,
            options.page,
            table=table.frame[kept].drop(columns=ids),
            used=_used(model, table.frame, ids),
            ids=row_names(table.frame[kept], ids, np.flatnonzero(kept)),
            title=Path(options.shown_table).name,
            command=options.command,
            notes=messages,
        )
    if not options.quiet:
        print_warnings(messages)
        line(f"report written to {options.page}")


def _used(model: BaseEstimator, frame: Any, ids: list[str]) -> list[str]:
    """The columns of a table that a model, or the pipeline that ends in it, clusters."""
    first = model[0] if isinstance(model, Pipeline) else model
    if hasattr(first, "number_columns_"):  # a TablePreparer
        return [*first.number_columns_, *first.category_columns_]
    known = getattr(first, "feature_names_in_", None)
    return number_columns(frame, ids) if known is None else list(map(str, known))


add_to = Command(
    run,
    ReportOptions,
    "Write one HTML page about the clusters that a saved model finds in a table: a map, what sets each cluster apart, "
    "how sure the labels are. Text and ids are read as in the fit, unless an option says otherwise. The page needs no "
    "network.",
    EXAMPLES,
).add_to
