"""``biclique report``: a page about a saved model and a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline

from biclique._typing import FloatArray, IntArray
from biclique.cli.options import Command, Facts, Quiet, Warned, option
from biclique.cli.saved_models import opened_as_fitted, split_model
from biclique.cli.table_options import SavedModel, TableOptions, check_page
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import DataError, MemoryLimitError, TableWarning, warn_user
from biclique.models.saving import load_with_notes
from biclique.tables.diagnosis import counted
from biclique.tables.frames import texts_of
from biclique.tables.preparer import TablePreparer

EXAMPLES = """\
examples:
  biclique cluster data.csv -k select --report report.html
  biclique report model.skops data.csv -o report.html
"""


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Quiet, TableOptions, SavedModel):
    """Write one HTML page about the clusters that a saved model finds in a table.

    It shows a map, what sets each cluster apart, and how sure the labels are. Text and ids are read as in the fit,
    unless an option says otherwise. The page needs no network.
    """

    output: str = option("page to write (default: TABLE with the ending .html)", "-o", "--output", writes=check_page)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        return super().read({"output": str(Path(given["table"]).with_suffix(".html")), **given})


def run(options: ReportOptions, warned: Warned) -> Facts:
    model, notes = load_with_notes(options.model)
    last = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(last, BicliqueSpectralClustering):
        raise DataError(
            f"{options.model} holds a {type(last).__name__}: reports are for BicliqueSpectralClustering, alone or at "
            "the end of a pipeline."
        )
    with opened_as_fitted(options, notes) as (table, ids, _):
        if table.streamed:
            raise MemoryLimitError(f"{options.shown_table}: a report needs the whole table in memory: take fewer rows.")
        preparer, rest = split_model(model, table.frame, ids, options.missing)
        X, kept = preparer.transform_rows(table.frame)
        if isinstance(rest, Pipeline) and len(rest) > 1:
            X = np.asarray(rest[:-1].transform(X))
        if not kept.all():
            warn_user(f"{counted(int((~kept).sum()), 'row')} with missing values left out.", TableWarning)
        last.set_params(verbose=options.verbose)
        write_report(options, options.output, last, preparer, X, table.frame[kept], ids, np.flatnonzero(kept), warned())
    return {"report": options.output}


def write_report(
    options: TableOptions,
    page: str,
    model: BicliqueSpectralClustering,
    preparer: TablePreparer,
    rows: FloatArray,
    frame: Any,
    ids: Sequence[str],
    places: IntArray,
    notes: Sequence[str],
) -> None:
    """The page about some prepared rows, which are those of a frame; ``places`` are their numbers in the table.

    Rows without ids are named by their numbers if some are left out.
    """
    names = texts_of(frame[ids[0]]) if ids else None
    if not ids and len(places) and places[-1] != len(places) - 1:
        names = [f"row {row}" for row in places]
    model.report(
        rows,
        page,
        table=frame.drop(columns=ids),
        used=[*preparer.number_columns_, *preparer.category_columns_],
        ids=names,
        title=Path(options.shown_table).name,
        command=options.command,
        notes=notes,
    )


def lines(facts: Facts) -> list[str]:
    """Where the page is."""
    return [f"report written to {facts['report']}"]


add_to = Command(ReportOptions, run, lines, EXAMPLES).add_to
