"""``biclique cluster --dask``: files as chunks of rows on a cluster, labels as a folder of Parquet parts."""

from __future__ import annotations

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
from sklearn.preprocessing import RobustScaler

from biclique import __version__
from biclique._typing import Array, FloatArray, IntArray
from biclique.cli.cluster_options import ClusterOptions
from biclique.cli.output import EXIT_OK, line
from biclique.cli.results import Clustered, print_result, result_of
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import DataError, ParameterError, TableError, optional, printable
from biclique.io import LabelWriter, Roles, find_format, open_chunks, write_text
from biclique.io.sources import Moments, varies
from biclique.progress import Progress
from biclique.rows.array import Block
from biclique.rows.dask_rows import DaskRows, import_dask, no_check, open_dask_rows
from biclique.runtime import count_threads

RUN_FILE = "_biclique.json"
"""In the folder of labels: which run its parts are of. Readers of Parquet folders skip names that begin so."""

CONNECT_SECONDS = 30

QUARTILE_ROWS = 100_000


def cluster(model: BicliqueSpectralClustering, options: ClusterOptions, where: str) -> int:
    """Fit on the cluster, write the parts that are missing, print."""
    _check(options)
    files = Files.found(options)
    parts = None if options.output is None else Parts.opened(options.output, _run_of(options, files), len(files.paths))
    if parts is not None and not parts.missing:
        if not options.quiet:
            line(f"{options.output}: all {len(files.paths)} parts of this run are there; nothing to do.")
        return EXIT_OK
    start = time.perf_counter()
    with connected(where, options.n_jobs), Progress(bool(model.verbose)) as progress:
        source, notes = _scaled(files, options, progress)
        with options.caught_messages() as messages:
            model.fit(source.array)
        if parts is not None:
            parts.write(model, source, files, _id(options), progress)
    found = Clustered(
        name=files.name,
        rows=source.n_rows,
        left_out=0,
        columns=source.n_columns,
        scale=options.scale or "standard",
        sizes=[int(size) for size in model._lazy_sizes],
        streamed=True,
    )
    made = {
        "seconds": time.perf_counter() - start,
        "output": options.output,
        "report": None,
        "saved": None,
        "warnings": messages + notes,
    }
    print_result(options, result_of(model, found) | made, model)
    return EXIT_OK


def _id(options: ClusterOptions) -> str | None:
    """The column that names the rows."""
    return options.id[0] if options.id else None


def _check(options: ClusterOptions) -> None:
    """What a cluster cannot do."""
    others = ("label", "missing", "append", "save", "report", "columns", "categorical", "weight")
    given = [f"--{name}" for name in others if getattr(options, name)] + ["--id"] * (len(options.id) > 1)
    if given:
        raise ParameterError(f"{', '.join(given)} cannot be used with --dask: prepare the files first.")


def _run_of(options: ClusterOptions, files: Files) -> str:
    """Files, version and options that labels depend on."""
    settings = {name: getattr(options, name) for name in ("id", "drop", "scale", "metric", "row_normalize", "k_max")}
    settings |= options.parameters() | {"affinity": options.affinity, "n_jobs": None}
    return json.dumps({"version": __version__, "files": files.signature(), "options": settings}, indent=1)


@contextmanager
def connected(where: str, jobs: int | None) -> Iterator[None]:
    """A client of the scheduler at an address; or of processes on this machine, one for each core."""
    distributed = optional("distributed", "a Dask cluster needs distributed: pip install 'biclique[dask]'")
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
    def found(cls, options: ClusterOptions) -> Files:
        """What a pattern or a path names, in the order of the names; sizes and columns from the heads of the files."""
        table = options.table
        path = Path(table)
        paths = [table] if path.exists() else sorted(glob(table, recursive=True))
        if path.is_dir() and find_format(path) is None:
            paths = sorted(str(file) for file in path.iterdir() if find_format(file) is not None)
        if not paths:
            raise TableError(f"{printable(table)}: no such file, and no file has a name of this pattern.")
        roles = Roles(None, _id(options), tuple(options.drop))
        opened = [open_chunks(one, roles=roles) for one in paths]
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
        numbers = import_dask().array.from_array(np.arange(len(self.lengths)), chunks=1)
        return numbers.map_blocks(
            lambda number: read(int(number[0])),
            chunks=(tuple(self.lengths), (self.n_columns,)),
            new_axis=1,
            meta=np.empty((0, 0), self.dtype),
        )

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


def _scaled(files: Files, options: ClusterOptions, progress: Progress) -> tuple[DaskRows, list[str]]:
    """The rows, scaled as those in memory are, and what there is to say about the columns."""
    array = files.array()
    plain = open_dask_rows(array, None, "auto", no_check)
    found = plain.sum(moments_of, "scale", progress)
    deviation = np.sqrt(found.squares / found.n)
    names = files.columns or [str(j) for j in range(files.n_columns)]
    constant = [repr(names[j]) for j in np.flatnonzero(deviation == 0)]
    notes = [f"constant columns tell nothing apart: {', '.join(constant)}."] if constant else []
    if options.scale == "none":
        return plain, notes
    offset, scale = found.mean, np.where(varies(found.mean, deviation**2, int(found.n.max())), deviation, 1.0)
    if options.scale == "robust":
        size = min(QUARTILE_ROWS, int(found.n.max()))
        drawn = plain.draw(size, np.random.RandomState(options.random_state))[0]
        scaler = RobustScaler().fit(np.asarray(drawn, dtype=np.float64))
        offset, scale = scaler.center_, scaler.scale_
    scaled = array.map_blocks(scale_rows, offset, 1 / scale, dtype=array.dtype, meta=np.empty((0, 0), array.dtype))
    return open_dask_rows(scaled, None, "auto", no_check), notes


# Labels


@dataclass(frozen=True)
class Parts:
    """The folder of labels: a Parquet file for every file of rows, each whole or not there."""

    folder: Path
    names: list[str]

    @classmethod
    def opened(cls, output: str, run: str, n_parts: int) -> Parts:
        """A fresh folder, or that of the same run, which is gone on with."""
        folder = Path(output).absolute()
        width = max(len(str(n_parts - 1)), 5)
        names = [f"part-{i:0{width}d}.parquet" for i in range(n_parts)]
        note = folder / RUN_FILE
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{printable(output)}: is a file, and --dask writes a folder: give another -o.")
        if folder.exists() and any(path != note for path in folder.iterdir()):  # a run that failed left no labels
            if not note.exists() or note.read_text(encoding="utf-8") != run:
                raise DataError(
                    f"{printable(output)}: holds something else than labels of this run (other files, options or "
                    "version): give another folder, or empty it."
                )
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(note, run)
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
        fitted, starts = model._fitted.for_rows(), np.cumsum(source.lengths) - source.lengths
        label: Callable[[Any], IntArray] = lambda rows: fitted.labels(rows, 1)  # noqa: E731
        paths = [str(self.folder / name) for name in self.names]
        work = partial(write_part, label, paths, files.paths, files.roles, id_name, starts, source.lengths)
        empty = [i for i in self.missing if not source.lengths[i]]
        source.map(work, "label files", progress)
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
    if Path(paths[number]).exists():
        return 0
    labels = np.asarray(label(block.rows), dtype=np.int64)
    ids: Any = np.arange(block.start, block.start + len(labels), dtype=np.int64)
    if id_name is not None:
        ids = [text for texts in open_chunks(tables[number], roles=roles).texts(id_name) for text in texts]
    with LabelWriter(paths[number], id_name=id_name or "row") as writer:
        writer.write(labels, ids)
    return len(labels)
