"""``biclique cluster``: the rows of a table."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

from biclique.cli import on_dask, stream
from biclique.cli.common import (
    add_assignment_options,
    add_work_options,
    caught_messages,
    check_apart,
    check_rows,
    checked_option,
    constant_note,
    count_or_select,
    number_or_word,
    order,
    print_estimate,
    rank,
    report,
)
from biclique.cli.output import EXIT_CODES, EXIT_OK
from biclique.cli.predict_command import save_run
from biclique.cli.report_command import check_report, row_names, shown_columns, write_report
from biclique.cli.standard_streams import standard_streams
from biclique.cli.table_options import add_table_options, add_text_options, find_table
from biclique.cli.table_rows import (
    Prepared,
    explain,
    is_shipped,
    notes_of,
    prepare,
    probabilities_of,
    takes_codes,
    write_new,
)
from biclique.cluster import BicliqueSpectralClustering
from biclique.datasets import SHIPPED
from biclique.features.maps import LANDMARKS
from biclique.features.neighborhoods import METRICS, NEIGHBORS
from biclique.fit.settings import GRAM_NAMES, MODELLINGS, NEIGHBORHOODS, PRECISIONS
from biclique.io import check_output, check_target, formats, listed, writers
from biclique.io.columns import ColumnsError
from biclique.io.label_files import NewColumns, check_append, check_ids
from biclique.kernels import KERNEL_NAMES
from biclique.progress import PLAIN_SECONDS, Progress

SWITCH: dict[str, bool | str] = {"auto": "auto", "yes": True, "no": False}


EXAMPLES = """\
examples:
  biclique cluster iris -k 3
  biclique cluster customers.csv -k 5 --id name --drop notes -o labels.csv
  biclique cluster customers.csv -k select --save customers.biclique
  biclique cluster rows.npy -k 10 --stream --dry-run
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Cluster the rows of a table. Columns are scaled to unit variance unless --scale says otherwise."
    )
    parser.epilog = f"{EXAMPLES}\n{EXIT_CODES}"
    parser.set_defaults(run=_cluster, fail=parser.error)
    files, folders = (
        listed([kind.endings[0] for kind in formats() if (kind.place == "folder") is folder], "or")
        for folder in (False, True)
    )
    parser.add_argument(
        "table",
        nargs="?",  # --drop a b TABLE takes it at first
        metavar="TABLE",
        help=f"{files} file, {folders} folder, - for standard input, or a data set of scikit-learn "
        f"({', '.join(SHIPPED)}); a text file may end in .gz",
    )
    parser.add_argument(
        "-k", "--clusters", type=count_or_select, required=True, metavar="K", help="number of clusters, or select"
    )
    parser.add_argument(
        "--k-max", type=int, default=20, metavar="K", help="most clusters that select tries (default: 20)"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"write one label per row to FILE ({listed([*writers()], 'or')}); - is standard output",
    )
    parser.add_argument(
        "--append",
        action="store_true",
        help="write the whole table to FILE, with columns for the label of each row and its probability",
    )
    parser.add_argument("--report", metavar="FILE", help="write a page to look at and to send, such as report.html")
    parser.add_argument("--save", metavar="FILE", help="write the model to FILE, for biclique predict (model.biclique)")
    table = parser.add_argument_group("the table")
    add_table_options(table)
    add_text_options(table)
    table.add_argument(
        "--scale",
        choices=["standard", "robust", "none"],
        default="standard",
        help="standard: mean 0, variance 1 (default); robust: by median and quartiles; none: as they are, always for "
        "gower, which divides by ranges",
    )
    table.add_argument(
        "--stream",
        action="store_true",
        help=f"read a {listed([kind.endings[0] for kind in formats(in_chunks=True)], 'or')} table in chunks, not "
        "whole (large tables are read so by themselves)",
    )
    model = parser.add_argument_group("the model")
    model.add_argument(
        "--order", type=order, default="auto", help="order of the hypergraph: 2 to inf, or auto (default)"
    )
    model.add_argument(
        "--modelling", choices=MODELLINGS, default="biclique", help="symmetric: whole orders, odd ones too"
    )
    model.add_argument(
        "--gamma", type=number_or_word, default="auto", help="bandwidth of a kernel: a number, auto, median, scale"
    )
    model.add_argument(
        "--affinity",
        choices=(NEIGHBORHOODS, *KERNEL_NAMES, "nearest_neighbors"),
        default=NEIGHBORHOODS,
        help="the hypergraph of neighbourhoods (default), a kernel, or a graph of nearest neighbours",
    )
    model.add_argument(
        "--metric",
        choices=METRICS,
        default="euclidean",
        help="how neighborhoods measures distances: cosine for text, gower for tables with categories",
    )
    model.add_argument("--degree", type=float, default=3, help="of the polynomial kernel (default: 3)")
    model.add_argument("--coef0", type=float, default=1, help="of the polynomial and sigmoid kernels (default: 1)")
    model.add_argument(
        "--n-neighbors",
        type=int,
        metavar="N",
        help=f"of neighborhoods (default: {NEIGHBORS}) and nearest_neighbors (default: 10)",
    )
    model.add_argument(
        "--row-normalize",
        choices=list(SWITCH),
        default="auto",
        help="embedding rows of length 1 (default: auto, that is no for kernels and yes for the others)",
    )
    add_assignment_options(model)
    work = parser.add_argument_group("the work")
    work.add_argument(
        "--gram", choices=GRAM_NAMES, default="auto", help="how the kernel matrix is stored (default: auto)"
    )
    work.add_argument(
        "--rank",
        type=rank,
        default="auto",
        metavar="N",
        help="landmarks of neighborhoods (default: 4000; all: every distinct row) and nystroem, columns of features "
        "(default: 1000)",
    )
    work.add_argument(
        "--landmarks", choices=list(LANDMARKS), default="uniform", help="how nystroem draws them (default: uniform)"
    )
    work.add_argument("--precision", choices=PRECISIONS, default="auto", help="of tiles (default: auto)")
    work.add_argument("--device", metavar="NAME", help="such as cuda: exact, on a GPU (needs biclique[gpu])")
    work.add_argument(
        "--dask",
        metavar="WHERE",
        help="run on a Dask cluster: the address of its scheduler, or local: processes on this machine. TABLE may be a "
        "pattern such as 'rows/*.parquet', one chunk a file, and -o names a folder (needs biclique[dask])",
    )
    work.add_argument("--dry-run", action="store_true", help="print an estimate of time and memory, and stop")
    add_work_options(work, max_iter=100, passes_over="kernel matrix")


# Commands


def _cluster(options: argparse.Namespace) -> int:
    find_table(options)
    with standard_streams(options):
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    if options.append and not options.output:
        options.fail("--append needs a file to write to: -o FILE")
    if options.metric != METRICS[0] and options.affinity != NEIGHBORHOODS:
        options.fail(
            f"--metric {options.metric} is for --affinity neighborhoods, not {options.affinity}: leave one out"
        )
    if options.missing == "keep" and not takes_codes(options):
        options.fail(
            "--missing keep is for --metric gower and --affinity gower, and the others need every value: use "
            "--missing drop, mean, median or indicator"
        )
    with checked_option():
        if options.append:
            check_append(options.output, options.table)
        if options.output is not None and options.dask is None:
            check_output(options.output, options.table)
        if options.save is not None:
            check_target(options.save)
            check_apart("model", options.save, options.table, options.output)
        check_report(options.report, options.table, options.output, options.save)
    if takes_codes(options):
        options.scale = "none"  # gower divides by ranges itself, and leaves gaps out
        options.missing = "keep" if options.missing == "refuse" and not options.stream else options.missing
    model = _model(options)
    if options.dask is not None:
        return on_dask.cluster(model, options)
    try:
        source = None if is_shipped(options.table) and not options.stream else stream.open_streamed(model, options)
        if source is not None:
            return stream.cluster(model, source, options)
        return _cluster_held(model, options)
    except ColumnsError as error:
        return explain(error, options)


def _cluster_held(model: BicliqueSpectralClustering, options: argparse.Namespace) -> int:
    reading = time.perf_counter()
    with caught_messages() as notes, Progress.of(model.verbose) as progress:
        prepared = prepare(options, lambda share: progress.share("reading the table", share))
    reading = time.perf_counter() - reading
    if options.output and not options.append and len(prepared.ids) > 1:
        check_ids(options.output)
    if takes_codes(options):
        model.set_params(categorical_features=prepared.preparer.categorical_places_ or None)
    check_rows(prepared.table.name, len(prepared.X), len(prepared.kept))
    if options.dry_run:
        return _print_estimate(model, prepared, options, reading)
    start = time.perf_counter()
    with caught_messages() as messages:
        model.fit(prepared.X) if prepared.weights is None else model.fit(prepared.X, sample_weight=prepared.weights)
    seconds = time.perf_counter() - start
    messages += [*notes, *notes_of(options)]
    messages += constant_note(prepared.constant)
    if options.output:
        messages += _write(model, prepared, options)
    saved = None if options.save is None else save_run(model, prepared.preparer, options, [*prepared.ids])
    if options.report:
        shown = shown_columns(prepared.table, prepared.kept, [*prepared.ids])
        used = [*prepared.preparer.number_columns_, *prepared.preparer.category_columns_]
        write_report(model, prepared.X, options, messages, shown, used, row_names(prepared.kept, prepared.ids))
    report(model, prepared.facts, options, seconds, messages, saved)
    return EXIT_OK


def _model(options: argparse.Namespace) -> BicliqueSpectralClustering:
    return BicliqueSpectralClustering(
        options.clusters,
        order=options.order,
        modelling=options.modelling,
        gamma=options.gamma,
        affinity=options.affinity,
        degree=options.degree,
        coef0=options.coef0,
        n_neighbors=options.n_neighbors,
        kernel_params=None if options.metric == METRICS[0] else {"metric": options.metric},
        row_normalize=SWITCH[options.row_normalize],
        assign_labels=options.assign_labels,
        n_init=options.n_init,
        random_state=options.seed,
        gram=options.gram,
        rank=options.rank,
        landmarks=options.landmarks,
        precision=options.precision,
        device=options.device,
        eigen_tol=options.tol,
        max_iter=options.max_iter,
        memory_limit=options.memory_limit,
        n_jobs=options.jobs,
        verbose=0 if options.quiet else PLAIN_SECONDS,
        k_max=options.k_max,
    )


def _write(model: BicliqueSpectralClustering, prepared: Prepared, options: argparse.Namespace) -> list[str]:
    """Write the labels; what there is to say about that."""
    probabilities, notes = probabilities_of(model, prepared.X) if options.append else (None, [])
    write_new(options, prepared.table, NewColumns(prepared.kept, model.labels_, probabilities), prepared.ids)
    return notes


# Printing


def _print_estimate(
    model: BicliqueSpectralClustering, prepared: Prepared, options: argparse.Namespace, reading: float
) -> int:
    X = prepared.X
    with caught_messages():
        plan = model.plan(X, sample_weight=prepared.weights)
    plan = replace(plan, seconds=plan.cost.seconds + reading)
    facts: dict[str, Any] = {"table": prepared.table.name, "rows": len(X), "columns": prepared.preparer.n_used}
    if plan.device is None:
        facts["distinct_rows"] = plan.rows
    return print_estimate(plan, facts, "", options)
