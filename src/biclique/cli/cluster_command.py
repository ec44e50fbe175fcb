"""``biclique cluster``: the rows of a table."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import RobustScaler, StandardScaler

from biclique._typing import FloatArray
from biclique.cli import stream
from biclique.cli.common import (
    Classes,
    Facts,
    add_assignment_options,
    add_work_options,
    caught_messages,
    count_or_auto,
    count_or_select,
    number_or_word,
    order,
    plan_facts,
    print_plan,
    report,
)
from biclique.cli.text import EXIT_CODES, EXIT_OK, block, line
from biclique.cluster import BicliqueSpectralClustering
from biclique.datasets import SHIPPED, load_shipped
from biclique.exceptions import DataError, TableError
from biclique.features.maps import LANDMARKS
from biclique.fit.settings import GRAM_NAMES, MODELLINGS, PRECISIONS, SELECT
from biclique.gram import NEIGHBOR_WEIGHTS
from biclique.io import Roles, Table, check_output, formats, listed, read_table, write_labels, writers
from biclique.kernels import KERNEL_NAMES

SWITCH: dict[str, bool | str] = {"auto": "auto", "yes": True, "no": False}


def add_command(commands: Any) -> None:
    parser = commands.add_parser(
        "cluster",
        help="cluster the rows of a table",
        description="Cluster the rows of a table. Columns are scaled to unit variance unless --scale says otherwise.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_cluster)
    files, folders = (
        listed([kind.endings[0] for kind in formats() if (kind.place == "folder") is folder], "or")
        for folder in (False, True)
    )
    parser.add_argument(
        "table",
        metavar="TABLE",
        help=f"{files} file, {folders} folder, or a data set of scikit-learn ({', '.join(SHIPPED)})",
    )
    parser.add_argument(
        "-k", "--clusters", type=count_or_select, required=True, metavar="K", help="number of clusters, or select"
    )
    parser.add_argument(
        "--k-max", type=int, default=20, metavar="K", help="most clusters that select tries (default: 20)"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help=f"write one label per row to FILE ({listed([*writers()], 'or')})"
    )
    table = parser.add_argument_group("the table")
    table.add_argument(
        "--label-column", metavar="NAME", help="column of known classes: left out, used for an error rate"
    )
    table.add_argument("--id", metavar="NAME", help="column that names the rows: left out, written beside the labels")
    table.add_argument("--drop", metavar="NAME", nargs="+", action="extend", default=[], help="columns to leave out")
    table.add_argument("--drop-missing", action="store_true", help="leave out rows with missing values")
    table.add_argument(
        "--header", choices=["auto", "yes", "no"], default="auto", help="whether a text file's first line holds names"
    )
    table.add_argument(
        "--scale",
        choices=["standard", "robust", "none"],
        default="standard",
        help="standard: mean 0, variance 1 (default); robust: by median and quartiles; none: as they are",
    )
    table.add_argument(
        "--stream",
        action="store_true",
        help=f"read a {listed([kind.endings[0] for kind in formats(in_chunks=True)], 'or')} table in chunks and never "
        "hold it (by itself where it is large)",
    )
    model = parser.add_argument_group("the model")
    model.add_argument(
        "--order", type=order, default="auto", help="order of the hypergraph: 2 to inf, auto, select (default: auto)"
    )
    model.add_argument(
        "--modelling", choices=MODELLINGS, default="biclique", help="symmetric: whole orders, odd ones too"
    )
    model.add_argument(
        "--gamma", type=number_or_word, default="auto", help="bandwidth: a number, auto, select, median, scale"
    )
    model.add_argument(
        "--affinity",
        choices=(*KERNEL_NAMES, "nearest_neighbors", SELECT),
        default="rbf",
        help="base kernel, a graph of nearest neighbours, or select: search for the best (default: rbf)",
    )
    model.add_argument("--degree", type=float, default=3, help="of the polynomial kernel (default: 3)")
    model.add_argument("--coef0", type=float, default=1, help="of the polynomial and sigmoid kernels (default: 1)")
    model.add_argument("--n-neighbors", type=int, default=10, metavar="N", help="of nearest_neighbors (default: 10)")
    model.add_argument(
        "--neighbor-weights",
        choices=("auto", *NEIGHBOR_WEIGHTS),
        default="auto",
        help="of the edges of nearest_neighbors (default: auto)",
    )
    model.add_argument(
        "--row-normalize",
        choices=list(SWITCH),
        default="auto",
        help="embedding rows of length 1 (default: auto)",
    )
    add_assignment_options(model)
    work = parser.add_argument_group("the work")
    work.add_argument(
        "--gram", choices=GRAM_NAMES, default="auto", help="how the kernel matrix is held (default: auto)"
    )
    work.add_argument(
        "--rank",
        type=count_or_auto,
        default="auto",
        metavar="N",
        help="landmarks of nystroem, columns of features (default: auto)",
    )
    work.add_argument(
        "--landmarks", choices=list(LANDMARKS), default="uniform", help="how nystroem draws them (default: uniform)"
    )
    work.add_argument("--precision", choices=PRECISIONS, default="auto", help="of tiles (default: auto)")
    work.add_argument("--device", metavar="NAME", help="such as cuda: exact, on a GPU (needs biclique[gpu])")
    work.add_argument("--dry-run", action="store_true", help="print an estimate of time and memory, and stop")
    add_work_options(work, max_iter=100, passes_over="kernel matrix")


# Commands


def _cluster(options: argparse.Namespace) -> int:
    if options.output is not None:
        check_output(options.output, options.table)
    model = _model(options)
    source = None if _is_shipped(options.table) and not options.stream else stream.open_streamed(model, options)
    if source is not None:
        return stream.cluster(model, source, options)
    table = _load(options)
    X, constant = _scaled(table, options.scale)
    if options.dry_run:
        return _print_estimate(model, X, table, options)
    start = time.perf_counter()
    with caught_messages() as messages:
        model.fit(X)
    seconds = time.perf_counter() - start
    if constant:
        messages.append(f"constant columns tell nothing apart: {', '.join(constant)}.")
    if options.output:
        write_labels(
            options.output,
            model.labels_,
            rows=table.rows,
            n_rows=table.n_rows,
            ids=table.ids,
            id_name=options.id or "row",
        )
    report(model, _facts(table), options, seconds, messages)
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
        neighbor_weights=options.neighbor_weights,
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
        verbose=int(not options.quiet and sys.stderr.isatty()),
        k_max=options.k_max,
    )


def _is_shipped(name: str) -> bool:
    return name.replace("-", "_") in SHIPPED and not Path(name).exists()


def _load(options: argparse.Namespace) -> Table:
    roles = Roles(label=options.label_column, id=options.id, drop=tuple(options.drop))
    if _is_shipped(options.table):
        return _load_shipped(options.table.replace("-", "_"), roles)
    if not Path(options.table).suffix and not Path(options.table).exists():
        raise TableError(
            f"{options.table}: neither a file nor a data set of scikit-learn; those are {', '.join(SHIPPED)}."
        )
    header = {"auto": None, "yes": True, "no": False}[options.header]
    return read_table(
        options.table, roles, header=header, drop_missing=options.drop_missing, memory_limit=options.memory_limit
    )


def _load_shipped(name: str, roles: Roles) -> Table:
    bunch = load_shipped(name)
    columns = list(bunch.feature_names)
    unknown = [c for c in (roles.id, *roles.drop) if c is not None and c not in columns]
    if unknown or roles.label not in (None, "target"):
        wrong = unknown[0] if unknown else roles.label
        raise TableError(f"{name}: no column {wrong!r}; columns: {', '.join(map(repr, [*columns, 'target']))}.")
    kept = [j for j, c in enumerate(columns) if c not in (roles.id, *roles.drop)]
    labels = None
    if bunch.target_names is None and roles.label is not None:
        raise TableError(f"{name}: its target is a number, not a class; leave out --label-column.")
    if bunch.target_names is not None:
        labels = [str(bunch.target_names[t]) for t in bunch.target]
    return Table(
        name,
        np.asarray(bunch.data, dtype=float)[:, kept],
        [columns[j] for j in kept],
        np.arange(len(bunch.data)),
        len(bunch.data),
        labels,
        None if roles.id is None else [str(v) for v in bunch.data[:, columns.index(roles.id)]],
    )


def _scaled(table: Table, scale: str) -> tuple[FloatArray, list[str]]:
    """The features, scaled, and the names of constant columns."""
    constant = [repr(c) for c, spread in zip(table.columns, np.ptp(table.X, axis=0), strict=True) if spread == 0]
    if scale == "none":
        return table.X, constant
    scaler = StandardScaler() if scale == "standard" else RobustScaler()
    with np.errstate(over="ignore", invalid="ignore"):
        X = scaler.fit_transform(table.X)
    if not np.isfinite(X).all():
        raise DataError(f"{table.name}: values too large to scale; rescale the columns first, or use --scale none.")
    return X, constant


def _facts(table: Table) -> Facts:
    classes = None
    if table.labels is not None:
        classes = Classes()
        classes.add(table.labels)
    return Facts(table.name, len(table.X), table.n_rows - len(table.X), len(table.columns), classes)


# Printing


def _print_estimate(model: BicliqueSpectralClustering, X: FloatArray, table: Table, options: argparse.Namespace) -> int:
    with caught_messages():
        plan = model.plan(X)
    if options.json:
        facts: dict[str, Any] = {"table": table.name, "rows": len(X), "columns": X.shape[1]}
        if plan.device is None:
            facts["distinct_rows"] = plan.rows
        block(json.dumps({**facts, **plan_facts(plan)}, indent=2))
    else:
        line(f"{table.name}: {len(X)} rows, {X.shape[1]} columns")
        print_plan(plan)
    return EXIT_OK
