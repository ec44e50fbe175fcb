"""``biclique cluster``: the rows of a table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from biclique.cli import on_dask
from biclique.cli.cluster_options import ClusterOptions
from biclique.cli.options import Command
from biclique.cli.output import EXIT_OK
from biclique.cli.results import Clustered, print_result, result_of
from biclique.cli.standard_streams import table_file
from biclique.cli.table_rows import (
    Prepared,
    explain,
    notes_of,
    prepare,
    probabilities_of,
    row_names,
    shown_columns,
    write_new,
)
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import DataError
from biclique.io.columns import ColumnsError
from biclique.io.label_files import NewColumns, check_ids
from biclique.models.saving import save
from biclique.runtime.memory import format_bytes
from biclique.selection.count_search import select_n_clusters

EXAMPLES = """\
examples:
  biclique cluster iris -k 3
  biclique cluster customers.csv -k 5 --id name --drop notes -o labels.csv
  biclique cluster customers.csv -k select --save customers.skops
  biclique cluster rows.npy -k 10 --report rows.html
"""


def run(options: ClusterOptions) -> int:
    with table_file(options.table) as path:
        options.check(path)
        if options.dask is not None:
            return on_dask.cluster(options.model([]), options, options.dask)
        try:
            return _cluster(options, path)
        except ColumnsError as error:
            return explain(error, options, path, options.compares_levels)


def _cluster(options: ClusterOptions, path: str) -> int:
    with options.caught_messages() as messages:
        prepared = prepare(options, path, options.compares_levels)
    if options.output and not options.append and len(prepared.ids) > 1:
        check_ids(options.output)
    _check_rows(prepared)
    model = options.model(prepared.preparer.categorical_places_)
    start = time.perf_counter()
    with options.caught_messages() as warned:
        _fit(model, prepared, options)
    seconds = time.perf_counter() - start
    messages = [*warned, *messages, *notes_of(options, path), *prepared.about_constants()]
    if options.output:
        messages += _write(model, prepared, options, path)
    saved = None if options.save is None else _save(model, prepared, options)
    if options.report:
        model.report(
            prepared.X,
            options.report,
            table=shown_columns(prepared.table, prepared.kept, [*prepared.ids]),
            used=[*prepared.preparer.number_columns_, *prepared.preparer.category_columns_],
            ids=row_names(prepared.kept, prepared.ids),
            title=Path(options.shown_table).name,
            command=options.command,
            notes=messages,
        )
    if options.json or not options.quiet:
        made = {
            "seconds": seconds,
            "output": options.output,
            "report": options.report,
            "saved": saved,
            "warnings": messages,
        }
        print_result(options, result_of(model, _clustered(model, prepared)) | made, model)
    return EXIT_OK


def _check_rows(prepared: Prepared) -> None:
    """Refuse a table of which less than two rows are left."""
    kept, rows = len(prepared.X), len(prepared.kept)
    if kept >= 2:
        return
    few = ("no row", "only one row")[kept]
    why, way = "", "add rows, or label it by a saved model (biclique predict)"
    if kept < rows:
        why = " without missing values"
        way = "fill the gaps in with --missing mean, or leave out the columns that have them with --drop"
    raise DataError(f"{prepared.table.name}: {few}{why}; a table needs at least 2 rows to be clustered: {way}.")


def _fit(model: BicliqueSpectralClustering, prepared: Prepared, options: ClusterOptions) -> None:
    weights: dict[str, Any] = {} if prepared.weights is None else {"sample_weight": prepared.weights}
    if options.n_clusters != "select" or options.k_max is None:
        model.fit(prepared.X, **weights)
        return
    selection = select_n_clusters(
        prepared.X,
        options.k_max,
        random_state=options.random_state,
        n_jobs=options.n_jobs,
        verbose=options.verbose,
        **weights,
    )
    model.set_params(n_clusters=selection.n_clusters).fit(prepared.X, **weights)
    model.k_selection_ = selection


def _write(model: BicliqueSpectralClustering, prepared: Prepared, options: ClusterOptions, path: str) -> list[str]:
    """Write the labels; what there is to say about that."""
    probabilities, notes = probabilities_of(model, prepared.X) if options.append else (None, [])
    new = NewColumns(prepared.kept, model.labels_, probabilities)
    write_new(options, path, prepared.table, new, prepared.ids, options.form())
    return notes


def _save(model: BicliqueSpectralClustering, prepared: Prepared, options: ClusterOptions) -> dict[str, Any]:
    """Columns, model, which columns are ids, and how the text is written: ``biclique predict`` needs all of them."""
    notes: dict[str, Any] = {"id": [*prepared.ids], "text": options.written}
    target = options.save or ""
    save(Pipeline([("prepare", prepared.preparer), ("cluster", model)]), target, notes=notes)
    size = Path(target).stat().st_size
    return {"file": target, "bytes": size, "told": f"{target}: {format_bytes(size)}"}


def _clustered(model: BicliqueSpectralClustering, prepared: Prepared) -> Clustered:
    n_clusters = getattr(model, "n_clusters_", model.n_clusters)
    codes = prepared.preparer.categorical_places_  # no quantities
    names = {j: str(name) for j, name in enumerate(prepared.preparer.get_feature_names_out()) if j not in codes}
    return Clustered(
        name=prepared.table.name,
        rows=len(prepared.X),
        left_out=len(prepared.kept) - len(prepared.X),
        columns=prepared.preparer.n_used,
        scale=prepared.preparer.scale,
        sizes=np.bincount(model.labels_[model.labels_ >= 0], minlength=int(n_clusters)).tolist(),
        shown=prepared.X[:, [*names]],
        shown_labels=model.labels_,
        names=[*names.values()],
        labels=model.labels_,
        classes=prepared.classes,
    )


add_to = Command(
    run,
    ClusterOptions,
    "Cluster the rows of a table. Columns are scaled to unit variance unless --scale says otherwise.",
    EXAMPLES,
    BicliqueSpectralClustering,
).add_to
