"""A fit on a Dask cluster of worker processes against the streaming fit of one process, from Parquet to labels.

    python benchmarks/dask_scale.py --rows 2000000
    python benchmarks/dask_scale.py --rows 20000000 --small 1000000
    python benchmarks/dask_scale.py --exact 20000

Rows are ten normal groups in 16 columns, float32, in files of --chunk rows. Both sides use as many cores: one process
with threads, and as many worker processes of one thread with --memory each. Times include reading and writing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import warnings
from importlib import import_module
from pathlib import Path

import dask
import dask.array as da
import distributed
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.cli.on_dask import Files, Parts
from biclique.gram.spread import SpreadTiles
from biclique.gram.tiled import TiledGram
from biclique.io import LabelWriter
from biclique.io.chunks import IterableChunks
from biclique.progress import Progress
from biclique.rows import dask_rows

COLUMNS, GROUPS = 16, 10

SAMPLED = 10_000
"""Products with the K of so many rows or fewer are those of samples."""


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
        pq.write_table(table, folder / f"rows-{number:05d}.parquet")
        truths.append(truth)
    return np.concatenate(truths)


def model(n_jobs: int | None, rank: int) -> BicliqueSpectralClustering:
    return BicliqueSpectralClustering(
        GROUPS, gram="nystroem", rank=rank, order=4, random_state=0, n_jobs=n_jobs, memory_limit="2GB"
    )


def options(folder: Path, output: Path) -> argparse.Namespace:
    """What the command line would hand over."""
    names = dict.fromkeys(("id", "drop"), None) | {"table": str(folder / "*.parquet"), "output": str(output)}
    found = argparse.Namespace(**{**names, "drop": [], "memory_limit": "auto"})
    for name in (
        *("clusters", "k_max", "scale", "order", "modelling", "gamma", "affinity", "degree", "coef0", "row_normalize"),
        *("assign_labels", "n_init", "seed", "gram", "rank", "landmarks", "precision"),
    ):
        setattr(found, name, None)
    return found


def moved(client: distributed.Client) -> int:
    """Bytes that workers gave to each other so far."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def spilled(client: distributed.Client) -> int:
    return client.run_on_scheduler(
        lambda dask_scheduler: sum(w.memory.spilled for w in dask_scheduler.workers.values())
    )


class Watched:
    """Tasks, bytes and seconds of every pass."""

    def __init__(self, client: distributed.Client) -> None:
        self.client, self.lines, self._run = client, [], dask_rows._Pass.run

    def __enter__(self) -> Watched:
        watched = self

        def run(one, add):
            before, start = moved(watched.client), time.perf_counter()
            try:
                return watched._run(one, add)
            finally:
                seconds, more, tasks = time.perf_counter() - start, moved(watched.client) - before, len(one.tasks)
                watched.lines.append(
                    f"  {one.told:<40} {tasks:>5} tasks  {more / 1e6:>8.2f} MB moved  {seconds:6.1f} s"
                )

        dask_rows._Pass.run = run
        return self

    def __exit__(self, *_: object) -> None:
        dask_rows._Pass.run = self._run


def on_cluster(folder: Path, labels: Path, rank: int) -> float:
    start = time.perf_counter()
    chosen = options(folder, labels)
    files = Files.found(chosen)
    parts = Parts.opened(chosen, files)
    source = dask_rows.open_dask_rows(files.array(), None, "auto", dask_rows.no_check)
    found = model(1, rank).fit(source.array)
    parts.write(found, source, files, None, Progress(False))
    return time.perf_counter() - start


def in_one_process(folder: Path, labels: Path, threads: int, rank: int) -> float:
    from biclique.io import open_chunks

    start = time.perf_counter()
    paths = sorted(folder.glob("*.parquet"))
    source = IterableChunks(lambda: (chunk for path in paths for chunk in open_chunks(path).chunks()))
    found = model(threads, rank).fit(source)
    with LabelWriter(labels) as writer:
        writer.write(found.labels_.astype(np.int64))
    return time.perf_counter() - start


def error_of(labels: Path, truth: np.ndarray) -> float:
    paths = sorted(labels.glob("part-*.parquet")) if labels.is_dir() else [labels]
    return adjusted_rand_score(truth, np.concatenate([pq.read_table(path)["label"].to_numpy() for path in paths]))


def cpu_seconds() -> float:
    return time.process_time()


def exact(n: int, threads: int, client: distributed.Client, repeats: int) -> None:
    """Exact tiles: the workers against the threads of this process, in turn; the best time of each counts.

    Other work on the same cores makes seconds longer, hardly those of the CPU: both are printed. Workers import
    biclique before, as they do once in their life.
    """
    X = rows_of(0, n)[0]
    rows = da.from_array(X, chunks=(-(-n // 8), COLUMNS))
    parameters = {"gram": "tiled", "order": 4, "random_state": 0, "gamma": 0.02, "memory_limit": "4GB"}
    client.run(import_module, "biclique.gram.spread")
    print(f"exact tiles, {n} rows", flush=True)
    found, best, least = {}, {}, {}
    for _ in range(repeats):
        for name, given in ((f"{threads} threads", X), (f"{threads} worker processes", rows)):
            start, cpu = time.perf_counter(), cpu_seconds() + sum(client.run(cpu_seconds).values())
            with Passes() as passes:
                found[name] = BicliqueSpectralClustering(GROUPS, n_jobs=threads, **parameters).fit(given)
            seconds = time.perf_counter() - start
            cpu = cpu_seconds() + sum(client.run(cpu_seconds).values()) - cpu
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--small", type=int, default=0, help="a smaller run for seconds per row")
    parser.add_argument("--chunk", type=int, default=1_000_000)
    parser.add_argument("--rank", type=int, default=512)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="1GB", help="of a worker")
    parser.add_argument("--exact", type=int, default=0, help="rows of a run with exact tiles, instead of the others")
    parser.add_argument("--repeats", type=int, default=3, help="of a run with exact tiles")
    chosen = parser.parse_args()
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
            per_row = []
            for n in filter(None, (chosen.small, chosen.rows)):
                folder = work / f"rows-{n}"
                truth = write_files(folder, n, chosen.chunk)
                with Watched(client) as watched:
                    seconds = on_cluster(folder, work / f"labels-{n}", chosen.rank)
                per_row.append(seconds / n)
                told = f"{n} rows x {COLUMNS}, rank {chosen.rank}"
                print(f"{told}: cluster {seconds:.1f} s, {seconds / n * 1e6:.2f} us a row")
                print("\n".join(watched.lines))
                found = error_of(work / f"labels-{n}", truth)
                print(f"  spilled {spilled(client)} bytes, adjusted Rand index {found:.4f}")
                with dask.config.set(scheduler="threads"):
                    alone = in_one_process(folder, work / f"one-{n}.parquet", chosen.workers, chosen.rank)
                same = error_of(work / f"one-{n}.parquet", truth)
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
