"""A fit on a Dask cluster of worker processes against Dask's threads in one process, from Parquet to labels.

    python benchmarks/dask_scale.py --rows 2000000
    python benchmarks/dask_scale.py --rows 20000000 --small 1000000
    python benchmarks/dask_scale.py --exact 20000
    python benchmarks/dask_scale.py --paper 1000000000
    python benchmarks/dask_scale.py --peers 20000 --only KMeans     (pip install dask-ml==2025.1.0)

Rows are ten normal groups in 16 columns, float32, in files of --chunk rows. Both sides use as many cores: one process
with threads, and as many worker processes of one thread with --memory each. Times include reading and writing.
Beside what was measured stands what formulas say (``on_paper``); --paper evaluates them alone. Their seconds are of
speeds that are measured in the same run (``Speed.measured``): by one process for --paper, else by all workers at the
same time.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path

import dask
import dask.array as da
import distributed
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.cli.label_output import Labels, Parts
from biclique.cli.opened_tables import open_table
from biclique.features import maps
from biclique.fit import low_rank
from biclique.gram.spread import SpreadTiles
from biclique.gram.tiled import TiledGram
from biclique.kernels import RBF
from biclique.progress import Progress
from biclique.rows import dask_rows
from biclique.rows.array import ArrayRows
from biclique.runtime.threads import single_threaded_blas
from biclique.tables.preparer import TablePreparer
from biclique.tables.reading import read_frame
from biclique.tables.text_form import PLAIN

COLUMNS, GROUPS = 16, 10

CALIBRATION = 131_072
"""Rows that speeds are measured with."""

SAMPLED = 10_000
"""Products with the K of so many rows or fewer are those of samples."""


def cpu_seconds() -> float:
    return time.process_time()


def cpu_of(client: distributed.Client) -> float:
    """Seconds of the CPU that workers took so far."""
    return sum(client.run(cpu_seconds).values())


def rows_of(number: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of one file, and their groups."""
    centres = np.random.default_rng(0).normal(scale=3.0, size=(GROUPS, COLUMNS))
    random = np.random.default_rng([1, number])
    truth = random.integers(GROUPS, size=n)
    return (centres[truth] + random.normal(size=(n, COLUMNS))).astype(np.float32), truth


def write_files(folder: Path, n: int, chunk: int) -> np.ndarray:
    """Parquet files of some rows each; returns the groups."""
    folder.mkdir(parents=True)
    truths = []
    for number, top in enumerate(range(0, n, chunk)):
        X, truth = rows_of(number, min(chunk, n - top))
        table = pa.table({f"x{j:02d}": X[:, j] for j in range(COLUMNS)})
        pq.write_table(table, folder / f"rows-{number:05d}.parquet", use_dictionary=False)  # no number comes twice
        truths.append(truth)
    return np.concatenate(truths)


def model(n_jobs: int | None, rank: int) -> BicliqueSpectralClustering:
    return BicliqueSpectralClustering(
        GROUPS, affinity="rbf", gram="nystroem", rank=rank, order=4, random_state=0, n_jobs=n_jobs
    )


def moved(client: distributed.Client) -> int:
    """Bytes that workers gave to each other and to the client so far."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def spilled(client: distributed.Client) -> int:
    return client.run_on_scheduler(
        lambda dask_scheduler: sum(w.memory.spilled for w in dask_scheduler.workers.values())
    )


@dataclass
class Pass:
    """What a pass over the rows takes: measured, or on paper."""

    name: str
    tasks: int
    read: float
    """Bytes read by all workers."""
    moved: float
    """Bytes from workers to workers and to the client; on paper at most."""
    entries: float = 0.0
    """Values of κ: 2 (d + 1) operations and an exponential each."""
    products: float = 0.0
    """Multiplications and additions besides."""
    seconds: float = 0.0
    cpu: float = 0.0
    """Seconds of the CPU, of all workers."""

    @property
    def operations(self) -> float:
        return 2 * (COLUMNS + 1) * self.entries + self.products


@dataclass
class Speed:
    """Seconds of the CPU: for a byte that is read, an entry, an operation of the matrix, and one of the labels."""

    byte: float
    entry: float
    matrix: float
    label: float

    @classmethod
    def measured(cls, path: str, rank: int) -> Speed:
        """Here and now: a file is read, and its rows go through the three passes of a fit, in one thread."""
        best = [min(seconds) for seconds in zip(*(cls._passes(path, rank) for _ in range(2)), strict=True)]
        read, sums, matrix, labels = best
        entries = CALIBRATION * rank
        return cls(
            read / (4 * CALIBRATION * COLUMNS),
            sums / entries,
            max(matrix - sums, 0.0) / (entries * rank),
            max(labels - sums, 0.0) / (2 * entries * GROUPS),
        )

    @staticmethod
    def _passes(path: str, rank: int) -> list[float]:
        """Seconds of reading, and of the passes for the sums, the matrix and the labels."""
        seconds = []

        def timed(function, *arguments, **more):
            start = cpu_seconds()
            found = function(*arguments, **more)
            seconds.append(cpu_seconds() - start)
            return found

        X = timed(lambda: read_frame(path).to_numpy(np.float32))
        source, quiet = ArrayRows(X, np.ones(len(X))), Progress(False)
        feature_map, Q = maps.NystroemMap(RBF(0.02), X[:rank], np.float32), np.ones((rank, GROUPS))
        with single_threaded_blas():
            first = timed(low_rank.RowSums.of, feature_map, source, 1, quiet)
            mean, degree = first.sums / first.weight, float(first.sums.mean())
            weigher = low_rank._Weigher(Q[:, 0], feature_map.dtype, degree, 4.0, 0.0, -degree)
            timed(source.sum, weigher.products(feature_map, mean, 1), "matrix", quiet, rank)
            timed(maps.map_rows, feature_map, X, Q, lambda rows, _: rows.argmin(axis=1), n_jobs=1, sizes=Q[:, 0])
        return seconds

    @classmethod
    def mean(cls, speeds: list[Speed]) -> Speed:
        """Of workers that measured at the same time."""
        return cls(*(sum(map(attrgetter(name), speeds)) / len(speeds) for name in cls.__dataclass_fields__))

    def __str__(self) -> str:
        return (
            f"{1e-6 / self.byte:.0f} MB read in a second, {1e9 * self.entry:.2f} ns an entry, "
            f"{1e-9 / max(self.matrix, 1e-12):.1f}e9 operations a second for the matrix, "
            f"{1e-9 / max(self.label, 1e-12):.1f}e9 for the labels"
        )

    def seconds(self, one: Pass) -> float:
        """Of the CPU, all workers together."""
        product = self.matrix if one.name == "matrix" else self.label
        return self.byte * one.read + self.entry * one.entries + product * one.products


def on_paper(n: int, rank: int, chunk: int) -> list[Pass]:
    """The passes of a fit of n rows with p = rank landmarks, by formulas alone.

    Tasks: one that holds the function, L = n / chunk for the chunks, and T of a tree that adds eight at a time. Read:
    4 n d bytes. Moved: each result at most once, 8 (L + T) bytes for each of its numbers; rows that were drawn at most
    once for each level of the tree, and to the client. Entries: n p. Products: n p² for the matrix, 2 n p k for labels.
    """
    chunks, d = -(-n // chunk), COLUMNS
    tree, levels, left = 0, 0, chunks
    while left > 1 or levels == 0:
        left = -(-left // dask_rows.FAN_IN)
        tree, levels = tree + left, levels + 1
    hops, drawn = chunks + tree, min(low_rank.pool_size(rank), n)
    passes = {  # bytes that move, entries of a row, other operations of a row
        "draw": ((levels + 1) * drawn * (4 * d + 8), 0, 0),
        "sums": (8 * rank * hops, rank, 0),
        "matrix": (8 * rank**2 * hops, rank, rank**2),
        "labels": (8 * 3 * GROUPS * hops, rank, 2 * rank * GROUPS),
        "label files": (8 * hops, rank, 2 * rank * GROUPS),
    }
    return [
        Pass(name, 1 + chunks + tree, 4.0 * n * d, float(moved), float(n * entries), float(n * products))
        for name, (moved, entries, products) in passes.items()
    ]


def show_passes(passes: list[Pass], paper: list[Pass], speed: Speed) -> None:
    """A table of passes, measured beside on paper."""
    print("  | pass | tasks | on paper | read, MB | on paper | moved, MB | at most | s | s of CPU | on paper |")
    print("  | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for one, said in zip(passes, paper, strict=True):
        print(
            f"  | {one.name} | {one.tasks} | {said.tasks} | {one.read / 1e6:.1f} | {said.read / 1e6:.1f} | "
            f"{one.moved / 1e6:.3f} | {said.moved / 1e6:.3f} | {one.seconds:.1f} | {one.cpu:.1f} | "
            f"{speed.seconds(said):.1f} |"
        )
    measured, said = sum(one.cpu for one in passes), sum(map(speed.seconds, paper))
    print(f"  all passes: {measured:.1f} s of CPU, on paper {said:.1f}: {measured / said:.2f} x; one core: {speed}")


def show_paper(n: int, rank: int, chunk: int, speed: Speed) -> None:
    """A table of passes on paper alone."""
    print(f"{n} rows x {COLUMNS}, rank {rank}, {-(-n // chunk)} chunks; one core, measured now: {speed}")
    print("| pass | tasks | read, GB | moved, GB, at most | operations | s of CPU |")
    print("| --- | --- | --- | --- | --- | --- |")
    paper = on_paper(n, rank, chunk)
    sums = [sum(getattr(one, what) for one in paper) for what in ("tasks", "read", "moved", "entries", "products")]
    for one in [*paper, Pass("all", *sums)]:
        seconds = sum(map(speed.seconds, paper)) if one.name == "all" else speed.seconds(one)
        print(
            f"| {one.name} | {one.tasks} | {one.read / 1e9:.1f} | {one.moved / 1e9:.3f} | {one.operations:.3g} | "
            f"{seconds:.0f} |"
        )


def calibration_file(folder: Path) -> str:
    """Rows to measure speeds with."""
    if not (folder / "calibration").exists():
        write_files(folder / "calibration", CALIBRATION, CALIBRATION)
    return str(folder / "calibration" / "rows-00000.parquet")


def calibrated(client: distributed.Client, folder: Path, rank: int) -> Speed:
    """The speed of the workers, all at the same time."""
    path, workers = calibration_file(folder), list(client.scheduler_info(n_workers=-1)["workers"])
    return Speed.mean(
        client.gather([client.submit(Speed.measured, path, rank, workers=[one], pure=False) for one in workers])
    )


def bytes_read(client: distributed.Client) -> int:
    """Bytes that workers read from files so far, whether from a disk or from memory that holds them."""
    return sum(client.run(lambda: psutil.Process().io_counters().read_chars).values())


class Watched:
    """Tasks, bytes and seconds of every pass."""

    def __init__(self, client: distributed.Client) -> None:
        self.client, self.passes, self._run = client, list[Pass](), dask_rows._Pass.run

    def __enter__(self) -> Watched:
        watched = self

        def run(one, add):
            before, read, cpu = moved(watched.client), bytes_read(watched.client), cpu_of(watched.client)
            start = time.perf_counter()
            try:
                return watched._run(one, add)
            finally:
                seconds, name = time.perf_counter() - start, one.told.removeprefix("pass over the rows for the ")
                read, more = bytes_read(watched.client) - read, moved(watched.client) - before
                cpu = cpu_of(watched.client) - cpu
                watched.passes.append(Pass(name, len(one.tasks), read, more, seconds=seconds, cpu=cpu))

        dask_rows._Pass.run = run
        return self

    def __exit__(self, *_: object) -> None:
        dask_rows._Pass.run = self._run


def clustered(folder: Path, labels: Path, rank: int, n_jobs: int) -> float:
    """Seconds from files to files: on the workers of the active client, else in threads of this process."""
    start = time.perf_counter()
    table = open_table(str(folder / "*.parquet"), PLAIN, dask=True)
    X, _ = table.prepared(TablePreparer(scale="none"))
    parts = Parts.opened(str(labels), table, {})
    found = model(n_jobs, rank).fit(X)
    parts.write(Labels(np.asarray(found.labels_)), table, [])
    return time.perf_counter() - start


def error_of(labels: Path, truth: np.ndarray) -> float:
    paths = sorted(labels.glob("part-*.parquet"))
    return adjusted_rand_score(truth, np.concatenate([pq.read_table(path)["label"].to_numpy() for path in paths]))


def exact(n: int, threads: int, client: distributed.Client, repeats: int) -> None:
    """Exact tiles: the workers against the threads of this process, in turn; the best time of each counts.

    Other work on the same cores makes seconds longer, hardly those of the CPU: both are printed. Workers import
    biclique before, as they do once in their life.
    """
    X = rows_of(0, n)[0]
    rows = da.from_array(X, chunks=(-(-n // 8), COLUMNS))
    parameters = {"gram": "tiled", "order": 4, "random_state": 0, "gamma": 0.02}
    client.run(import_module, "biclique.gram.spread")
    print(f"exact tiles, {n} rows", flush=True)
    found, best, least = {}, {}, {}
    for _ in range(repeats):
        for name, given in ((f"{threads} threads", X), (f"{threads} worker processes", rows)):
            start, cpu = time.perf_counter(), cpu_seconds() + cpu_of(client)
            with Passes() as passes:
                found[name] = BicliqueSpectralClustering(GROUPS, n_jobs=threads, **parameters).fit(given)
            seconds = time.perf_counter() - start
            cpu = cpu_seconds() + cpu_of(client) - cpu
            best[name], least[name] = min(seconds, best.get(name, seconds)), min(cpu, least.get(name, cpu))
            told = ", ".join(f"{one:.1f}" for one in passes.seconds)
            print(f"  {name}: {seconds:.1f} s, {cpu:.1f} s of CPU; passes over K: {told} s", flush=True)
    (here, there), ((alone, together), (own, shared)) = found.values(), (best.values(), least.values())
    same = adjusted_rand_score(here.labels_, there.labels_)
    print(
        f"  worker processes / threads, best of {repeats}: {together / alone:.2f} x the seconds, {shared / own:.2f} x "
        f"those of the CPU, adjusted Rand index between them {same:.4f}"
    )


class Passes:
    """Seconds of every product with the K of all rows, here or on workers."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __enter__(self) -> Passes:
        self._kept = {kind: kind.matmat for kind in (TiledGram, SpreadTiles)}
        for kind, matmat in self._kept.items():
            kind.matmat = self._timed(matmat)
        return self

    def _timed(self, matmat):
        def timed(gram, V):
            start = time.perf_counter()
            found = matmat(gram, V)
            if gram.n > SAMPLED:
                self.seconds.append(time.perf_counter() - start)
            return found

        return timed

    def __exit__(self, *_: object) -> None:
        for kind, matmat in self._kept.items():
            kind.matmat = matmat


def peers(n: int, only: str) -> None:
    """dask-ml's clusterings of rows that are on the workers, beside ours; labels are fetched."""
    from dask_ml.cluster import KMeans, SpectralClustering

    X, truth = rows_of(0, n)
    rows = da.from_array(X, chunks=(-(-n // 8), COLUMNS)).persist()
    distributed.wait(rows)
    print(f"dask-ml {version('dask-ml')}, scikit-learn {version('scikit-learn')}, {n} rows x {COLUMNS}", flush=True)
    contenders = {
        "biclique": BicliqueSpectralClustering(
            GROUPS, affinity="rbf", gram="nystroem", rank=128, order=4, gamma=0.02, random_state=0
        ),
        "dask-ml KMeans": KMeans(GROUPS, random_state=0),
        "dask-ml SpectralClustering": SpectralClustering(GROUPS, n_components=128, gamma=0.02, random_state=0),
        "dask-ml SpectralClustering, scikit-learn's k-means": SpectralClustering(
            GROUPS, n_components=128, gamma=0.02, random_state=0, assign_labels="sklearn-kmeans"
        ),
    }
    for name, clusterer in contenders.items():
        if only in name:
            start = time.perf_counter()
            try:
                fitted = clusterer.fit(rows)
            except Exception as error:
                print(f"  {name}: {type(error).__name__}: {error}", flush=True)
                continue
            found = np.asarray(fitted.labels_ if hasattr(fitted, "labels_") else fitted.assign_labels_.labels_)
            seconds = time.perf_counter() - start
            print(f"  {name}: {seconds:.1f} s, adjusted Rand index {adjusted_rand_score(truth, found):.4f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--small", type=int, default=0, help="a smaller run for seconds per row")
    parser.add_argument("--chunk", type=int, default=1_000_000)
    parser.add_argument("--rank", type=int, default=512)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="1GB", help="of a worker")
    parser.add_argument("--exact", type=int, default=0, help="rows of a run with exact tiles, instead of the others")
    parser.add_argument("--no-alone", dest="alone", action="store_false", help="without one process beside it")
    parser.add_argument("--peers", type=int, default=0, help="rows of a run of dask-ml beside ours")
    parser.add_argument("--only", default="", help="a part of the name of what --peers runs")
    parser.add_argument("--paper", type=int, default=0, help="rows of a fit that is not run: formulas alone")
    parser.add_argument("--repeats", type=int, default=3, help="of a run with exact tiles")
    chosen = parser.parse_args()
    if chosen.paper:
        with tempfile.TemporaryDirectory(prefix="dask-scale-") as folder:
            speed = Speed.measured(calibration_file(Path(folder)), chosen.rank)
        show_paper(chosen.paper, chosen.rank, chosen.chunk, speed)
        return 0
    warnings.simplefilter("ignore")
    work = Path(tempfile.mkdtemp(prefix="dask-scale-"))
    try:
        print(f"dask {dask.__version__}, {chosen.workers} worker processes of 1 thread and {chosen.memory}")
        with (
            distributed.LocalCluster(
                n_workers=chosen.workers,
                threads_per_worker=1,
                memory_limit=chosen.memory,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=50,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            if chosen.exact:
                exact(chosen.exact, chosen.workers, client, chosen.repeats)
                return 0
            if chosen.peers:
                peers(chosen.peers, chosen.only)
                return 0
            per_row = list[float]()
            for n in filter(None, (chosen.small, chosen.rows)):
                folder = work / f"rows-{n}"
                truth = write_files(folder, n, chosen.chunk)
                speed = calibrated(client, work, chosen.rank)
                with Watched(client) as watched:
                    seconds = clustered(folder, work / f"labels-{n}", chosen.rank, 1)
                per_row.append(seconds / n)
                told = f"{n} rows x {COLUMNS}, rank {chosen.rank}"
                print(f"{told}: cluster {seconds:.1f} s, {seconds / n * 1e6:.2f} us a row", flush=True)
                show_passes(watched.passes, on_paper(n, chosen.rank, chosen.chunk), speed)
                found = error_of(work / f"labels-{n}", truth)
                print(f"  spilled {spilled(client)} bytes, adjusted Rand index {found:.4f}", flush=True)
                if not chosen.alone:
                    shutil.rmtree(folder)
                    continue
                with dask.config.set(scheduler="threads"):
                    alone = clustered(folder, work / f"one-{n}", chosen.rank, chosen.workers)
                same = error_of(work / f"one-{n}", truth)
                print(
                    f"  one process, {chosen.workers} threads: {alone:.1f} s, adjusted Rand index {same:.4f}; "
                    f"cluster / one process {seconds / alone:.2f}"
                )
                shutil.rmtree(folder)
            if len(per_row) > 1:
                print(f"seconds a row, large / small: {per_row[1] / per_row[0]:.2f}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
