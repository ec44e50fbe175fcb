"""``biclique cluster --dask``: files as chunks of rows on a cluster, labels as a folder of Parquet parts."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from biclique import __version__
from biclique._typing import Array, FloatArray, IntArray
from biclique.cli.common import (
    Facts,
    caught_messages,
    column_scale,
    constant_note,
    needs_memory,
    print_estimate,
    report,
)
from biclique.cli.output import EXIT_OK, line
from biclique.cluster import BicliqueSpectralClustering
from biclique.exceptions import DataError, ParameterError, TableError, printable
from biclique.io import LabelWriter, Roles, find_format, open_chunks, write_text
from biclique.io.sources import Moments
from biclique.progress import Progress
from biclique.rows.array import Block
from biclique.rows.dask_rows import DaskRows, array_of_pieces, import_distributed, no_check, open_dask_rows
from biclique.runtime import count_threads

RUN_FILE = "_biclique.json"
"""In the folder of labels: which run its parts are of. Readers of Parquet folders skip names that begin so."""

CONNECT_SECONDS = 30

QUARTILE_ROWS = 100_000

SHAPING = (
    *("clusters", "k_max", "id", "drop", "scale", "order", "modelling", "gamma", "affinity", "metric"),
    *(
        "n_neighbors",
        "degree",
        "coef0",
        "row_normalize",
        "assign_labels",
        "n_init",
        "seed",
        "gram",
        "rank",
        "landmarks",
        "precision",
    ),
)
"""The options that labels depend on."""


def cluster(model: BicliqueSpectralClustering, options: argparse.Namespace) -> int:
    """Fit on the cluster, write the parts that are missing, print."""
    _check(model, options)
    files = Files.found(options)
    parts = None if options.output is None or options.dry_run else Parts.opened(options, files)
    if parts is not None and not parts.missing:
        if not options.quiet:
            line(f"{options.output}: all {len(files.paths)} parts of this run are there; nothing to do.")
        return EXIT_OK
    start = time.perf_counter()
    with connected(options.dask, options.jobs), Progress(bool(model.verbose)) as progress:
        source, notes = _scaled(files, options, progress)
        if options.dry_run:
            return _print_estimate(model, source, files, options)
        with caught_messages() as messages:
            model.fit(source.array)
        if parts is not None:
            parts.write(model, source, files, _id(options), progress)
    facts = Facts(files.name, source.n_rows, 0, source.n_columns, streamed=True, sizes=model._lazy_sizes)
    report(model, facts, options, time.perf_counter() - start, messages + notes)
    return EXIT_OK


def _id(options: argparse.Namespace) -> str | None:
    """The column that names the rows."""
    return options.id[0] if options.id else None


def _check(model: BicliqueSpectralClustering, options: argparse.Namespace) -> None:
    """What a cluster cannot do."""
    for option, given in (("--label-column", options.label_column), ("--missing", options.missing != "refuse")):
        if given:
            raise ParameterError(f"{option} does not work with --dask: leave it out, or use --drop for a column.")
    others = ("append", "save", "report", "columns", "categorical", "weight")
    given = [f"--{name}" for name in others if getattr(options, name)] + ["--id"] * (len(options.id) > 1)
    if given:
        raise ParameterError(f"{', '.join(given)} cannot be used with --dask yet: prepare the files first.")
    barrier = needs_memory(model)
    if barrier is not None:
        raise ParameterError(f"--dask does not work with {barrier[0]}: {barrier[1]}.")


@contextmanager
def connected(where: str, jobs: int | None) -> Iterator[None]:
    """A client of the scheduler at an address; or of processes on this machine, one for each core."""
    distributed = import_distributed()
    if where != "local":
        try:
            client = distributed.Client(where, timeout=CONNECT_SECONDS)
        except (OSError, ValueError, ImportError) as error:
            raise DataError(
                f"--dask {printable(where)}: no Dask scheduler answers there ({error}): give its address, such as "
                "tcp://10.0.0.1:8786, or local."
            ) from error
        with client:
            yield
        return
    workers = count_threads(jobs)
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield


# Files as chunks


@dataclass(frozen=True)
class Files:
    """Tables of the same columns: each one is a chunk of rows."""

    name: str
    paths: list[str]
    lengths: list[int]
    columns: list[str] | None
    n_columns: int
    dtype: np.dtype[Any]
    roles: Roles

    @classmethod
    def found(cls, options: argparse.Namespace) -> Files:
        """What a pattern or a path names, in the order of the names; sizes and columns from the heads of the files."""
        table = options.table
        path = Path(table)
        paths = [table] if path.exists() else sorted(glob(table, recursive=True))
        if path.is_dir() and find_format(path) is None:
            paths = sorted(str(file) for file in path.iterdir() if find_format(file) is not None)
        if not paths:
            raise TableError(f"{printable(table)}: no such file, and no file has a name of this pattern.")
        roles = Roles(None, _id(options), tuple(options.drop))
        opened = [open_chunks(one, roles=roles, memory_limit=options.memory_limit) for one in paths]
        first = opened[0]
        for one, other in zip(paths, opened, strict=True):
            if other.columns != first.columns or other.n_columns != first.n_columns:
                raise TableError(f"{printable(one)}: has other columns than {printable(paths[0])}; take them apart.")
        dtype = np.result_type(*(one.dtype for one in opened))
        lengths = [int(one.n_rows or 0) for one in opened]
        paths = [str(Path(one).absolute()) for one in paths]  # workers have folders of their own
        return cls(table, paths, lengths, first.columns, first.n_columns, dtype, roles)

    def array(self) -> Any:
        """The rows, lazy."""
        read = partial(read_file, self.paths, self.roles, self.dtype)
        return array_of_pieces(read, self.lengths, self.n_columns, self.dtype)

    def signature(self) -> list[list[Any]]:
        """What tells whether files have changed."""
        return [[path, Path(path).stat().st_size, Path(path).stat().st_mtime_ns] for path in self.paths]


def read_file(paths: Sequence[str], roles: Roles, dtype: np.dtype[Any], number: int) -> Array:
    """The rows of one file, on a worker."""
    source = open_chunks(paths[number], roles=roles)
    source.advice = "leave a column out with --drop"
    return source.fill(np.empty((source.n_rows or 0, source.n_columns), dtype))


# Scales


def moments_of(block: Block) -> Moments:
    """Moments of a chunk, on a worker."""
    return Moments.of(np.array(block.rows, dtype=np.float64))


def scale_rows(rows: Array, offset: FloatArray, factor: FloatArray) -> Array:
    return np.asarray((rows - offset) * factor, dtype=rows.dtype)


def _scaled(files: Files, options: argparse.Namespace, progress: Progress) -> tuple[DaskRows, list[str]]:
    """The rows, scaled as those in memory are, and what there is to say about the columns."""
    array = files.array()
    plain = open_dask_rows(array, None, options.memory_limit, no_check)
    found = plain.sum(moments_of, "scale", progress)
    deviation = np.sqrt(found.squares / found.n)
    names = files.columns or [str(j) for j in range(files.n_columns)]
    notes = constant_note([names[j] for j in np.flatnonzero(deviation == 0)])
    if options.scale == "none":
        return plain, notes
    random = np.random.RandomState(options.seed)
    offset, scale, told = column_scale(
        options.scale,
        found.mean,
        deviation,
        int(found.n.max()),
        QUARTILE_ROWS,
        lambda rows: plain.draw(rows, random)[0],
    )
    scaled = array.map_blocks(scale_rows, offset, 1 / scale, dtype=array.dtype, meta=np.empty((0, 0), array.dtype))
    return open_dask_rows(scaled, None, options.memory_limit, no_check), notes + told


# Labels


@dataclass(frozen=True)
class Parts:
    """The folder of labels: a Parquet file for every file of rows, each whole or not there."""

    folder: Path
    names: list[str]

    @classmethod
    def opened(cls, options: argparse.Namespace, files: Files) -> Parts:
        """A fresh folder, or that of the same run, which is gone on with."""
        folder = Path(options.output).absolute()
        width = max(len(str(len(files.paths) - 1)), 5)
        names = [f"part-{i:0{width}d}.parquet" for i in range(len(files.paths))]
        settings = {name: getattr(options, name) for name in SHAPING}
        run = json.dumps({"version": __version__, "files": files.signature(), "options": settings}, indent=1)
        told = folder / RUN_FILE
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{printable(options.output)}: is a file, and --dask writes a folder: give another -o.")
        if folder.exists() and any(path != told for path in folder.iterdir()):  # a run that failed left no labels
            if not told.exists() or told.read_text(encoding="utf-8") != run:
                raise DataError(
                    f"{printable(options.output)}: holds something else than labels of this run (other files, options "
                    "or version): give another folder, or empty it."
                )
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(told, run)
        return cls(folder, names)

    @property
    def missing(self) -> list[int]:
        """The numbers of parts that are still to be written."""
        return [i for i, name in enumerate(self.names) if not (self.folder / name).exists()]

    def write(
        self,
        model: BicliqueSpectralClustering,
        source: DaskRows,
        files: Files,
        id_name: str | None,
        progress: Progress,
    ) -> None:
        """The parts that are missing, each by the worker that computes its labels."""
        fitted, starts = model._fitted.for_rows(), source.starts
        label: Callable[[Any], IntArray] = lambda rows: fitted.labels(rows, 1)  # noqa: E731
        paths = [str(self.folder / name) for name in self.names]
        work = partial(write_part, label, paths, files.paths, files.roles, id_name, starts, source.lengths)
        empty = [i for i in self.missing if not source.lengths[i]]
        source.map(work, "label files", progress, chunks=[i for i in self.missing if source.lengths[i]])
        for i in empty:
            with LabelWriter(paths[i], id_name=id_name or "row"):
                pass


def write_part(
    label: Callable[[Any], IntArray],
    paths: Sequence[str],
    tables: Sequence[str],
    roles: Roles,
    id_name: str | None,
    starts: IntArray,
    lengths: IntArray,
    block: Block,
) -> int:
    """The labels of one chunk, in a file of their own, with ids or numbers of rows from 0, as everywhere."""
    number = int(np.flatnonzero((starts == block.start) & (lengths > 0))[0])
    labels = np.asarray(label(block.rows), dtype=np.int64)
    ids: Any = np.arange(block.start, block.start + len(labels), dtype=np.int64)
    if id_name is not None:
        ids = [text for texts in open_chunks(tables[number], roles=roles).texts(id_name) for text in texts]
    with LabelWriter(paths[number], id_name=id_name or "row") as writer:
        writer.write(labels, ids)
    return len(labels)


def _print_estimate(
    model: BicliqueSpectralClustering, source: DaskRows, files: Files, options: argparse.Namespace
) -> int:
    with caught_messages():
        plan = model.plan(source.array)
    facts = {"table": files.name, "rows": source.n_rows, "columns": source.n_columns, "chunks": len(files.paths)}
    return print_estimate(plan, facts, f"{len(files.paths)} chunks", options)
