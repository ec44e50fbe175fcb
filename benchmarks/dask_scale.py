"""Fits of Parquet files larger than memory: Dask's threads, worker processes, and ``--stream`` of another tree.

    python benchmarks/dask_scale.py --rows 10000000
    python benchmarks/dask_scale.py --rows 10000000 --base ../base/src --stream
    python benchmarks/dask_scale.py --rows 20000000 --array --base ../base/src
    python benchmarks/dask_scale.py --rows 100000000 --array --only-workers --threads 8 --chunk 250000
    python benchmarks/dask_scale.py --exact 20000
    python benchmarks/dask_scale.py --peers 20000      (pip install dask-ml==2025.1.0)

Rows are ten normal groups in 16 columns, float32. Every contender runs in a process of its own and writes the labels,
chunk by chunk. Printed are seconds, seconds of the CPU with those of worker processes, the peak of the largest process
in MB, and the adjusted Rand index. On a busy machine compare seconds of the CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

COLUMNS, GROUPS = 16, 10

FILE_ROWS = 1_000_000


def groups_of(number: int, n: int) -> np.ndarray:
    """The groups of ``rows_of``."""
    return np.random.default_rng([1, number]).integers(GROUPS, size=n).astype(np.int8)


def rows_of(number: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows, and their groups."""
    centres = np.random.default_rng(0).normal(scale=3.0, size=(GROUPS, COLUMNS))
    random = np.random.default_rng([1, number])
    truth = random.integers(GROUPS, size=n)
    return (centres[truth] + random.normal(size=(n, COLUMNS))).astype(np.float32), truth


def write_file(path: Path, n: int) -> np.ndarray:
    """One Parquet file with a row group for each million of rows; returns the groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names, truths = [f"x{j:02d}" for j in range(COLUMNS)], []
    with pq.ParquetWriter(path, pa.schema([(name, pa.float32()) for name in names]), use_dictionary=False) as writer:
        for number, top in enumerate(range(0, n, FILE_ROWS)):
            X, truth = rows_of(number, min(FILE_ROWS, n - top))
            writer.write_table(pa.table(dict(zip(names, X.T, strict=True))))
            truths.append(truth)
    return np.concatenate(truths)


# Contenders: each is run in a process of its own


@contextmanager
def workers(count: int, memory: str, threads: int = 1) -> Iterator[object]:
    """A client of worker processes of some threads; none if there are to be none."""
    if not count:
        yield None
        return
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=threads,
            memory_limit=memory,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def used() -> tuple[float, float]:
    """Seconds of the CPU and the peak in MB of this process."""
    found = resource.getrusage(resource.RUSAGE_SELF)
    return found.ru_utime + found.ru_stime, found.ru_maxrss / 1024


def fit(chosen: argparse.Namespace) -> dict[str, float]:
    """The default on Dask rows: of a Parquet file, or of an array that is generated chunk by chunk."""
    import dask.array as da

    from biclique import BicliqueSpectralClustering

    with workers(chosen.workers, chosen.memory, chosen.threads) as client:
        start = time.perf_counter()
        if chosen.array:
            n_chunks, chunk = -(-chosen.rows // chosen.chunk), chosen.chunk
            numbers = da.from_array(np.arange(n_chunks), chunks=1)
            X = numbers.map_blocks(
                lambda number: rows_of(int(number[0]), chunk)[0],
                chunks=((chunk,) * n_chunks, (COLUMNS,)),
                new_axis=1,
                meta=np.empty((0, 0), np.float32),
            )
        else:
            import dask.dataframe as dd

            X = dd.read_parquet(chosen.file, blocksize="64MiB")
        da.to_npy_stack(chosen.labels, BicliqueSpectralClustering(GROUPS, random_state=0).fit(X).labels_)
        seconds = time.perf_counter() - start
        shares = [used(), *(client.run(used).values() if client else ())]
    return {"seconds": seconds, "cpu": sum(cpu for cpu, _ in shares), "peak": max(peak for _, peak in shares)}


def stream(chosen: argparse.Namespace) -> dict[str, float]:
    """``biclique cluster --stream`` of a tree that has it."""
    import dask.array as da
    import pyarrow.parquet as pq

    from biclique.cli import main as command

    start, output = time.perf_counter(), str(Path(chosen.labels).with_suffix(".parquet"))
    command(["cluster", chosen.file, "-k", str(GROUPS), "--scale", "none", "--stream", "-q", "-o", output])
    seconds = time.perf_counter() - start
    da.to_npy_stack(chosen.labels, da.from_array(pq.read_table(output)["label"].to_numpy()))
    cpu, peak = used()
    return {"seconds": seconds, "cpu": cpu, "peak": peak}


CONTENDERS = {"fit": fit, "stream": stream}


def measured(name: str, source: str, arguments: list[str]) -> dict[str, float]:
    """One contender, with the package of a folder."""
    environment = {**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--contender", name, *arguments]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(found.stdout.splitlines()[-1])


def compare(chosen: argparse.Namespace) -> None:
    """A line for each contender, in turns."""
    import dask.array as da

    own = str(Path(__file__).resolve().parent.parent / "src")
    on_workers = f"{chosen.processes} worker processes of {chosen.threads} threads and {chosen.memory}"
    runs = {} if chosen.only_workers else {"threads": ("fit", own, 0)}
    runs[on_workers] = "fit", own, chosen.processes
    if chosen.base:
        name = "stream" if chosen.stream else "fit"
        runs = {f"base, {'--stream' if chosen.stream else 'threads'}": (name, chosen.base, 0), **runs}
    with tempfile.TemporaryDirectory(prefix="dask-scale-") as folder:
        file, labels = Path(folder) / "rows.parquet", Path(folder) / "labels"
        if chosen.array:
            pieces = range(-(-chosen.rows // chosen.chunk))
            truth = np.concatenate([groups_of(number, chosen.chunk) for number in pieces])
        else:
            truth = write_file(file, chosen.rows)
        print(f"{chosen.rows} rows x {COLUMNS}, {'an array' if chosen.array else 'Parquet'}", flush=True)
        for _ in range(chosen.repeats):
            for name, (contender, source, count) in runs.items():
                arguments = ["--file", str(file), "--labels", str(labels), "--workers", str(count)]
                arguments += ["--rows", str(chosen.rows), "--memory", chosen.memory, *["--array"] * chosen.array]
                arguments += ["--threads", str(chosen.threads), "--chunk", str(chosen.chunk)]
                found = measured(contender, source, arguments)
                score = adjusted_rand_score(truth, da.from_npy_stack(labels).compute())
                print(
                    f"  {name}: {found['seconds']:.1f} s, {found['cpu']:.1f} s of CPU, peak {found['peak']:.0f} MB, "
                    f"adjusted Rand index {score:.4f}",
                    flush=True,
                )


# Exact tiles, and dask-ml


def exact(n: int, count: int, repeats: int) -> None:
    """Exact tiles: workers against the threads of this process, in turn."""
    import dask.array as da

    from biclique import BicliqueSpectralClustering

    X = rows_of(0, n)[0]
    lazy = da.from_array(X, chunks=(-(-n // 8), COLUMNS))
    model = BicliqueSpectralClustering(
        GROUPS, affinity="rbf", gram="tiled", order=4, gamma=0.02, n_jobs=count, random_state=0
    )
    print(f"exact tiles, {n} rows", flush=True)
    with workers(count, "4GB") as client:
        for _ in range(repeats):
            for name, rows in ((f"{count} threads", X), (f"{count} worker processes", lazy)):
                before = sum(cpu for cpu, _ in (used(), *client.run(used).values()))
                start = time.perf_counter()
                labels = model.fit(rows).labels_
                seconds = time.perf_counter() - start
                cpu = sum(cpu for cpu, _ in (used(), *client.run(used).values())) - before
                print(f"  {name}: {seconds:.1f} s, {cpu:.1f} s of CPU, sizes {np.bincount(labels)}", flush=True)


def peers(n: int, count: int) -> None:
    """dask-ml's clusterings of rows that are on the workers, beside ours; labels are fetched."""
    import dask.array as da
    import distributed
    from dask_ml.cluster import KMeans, SpectralClustering

    from biclique import BicliqueSpectralClustering

    X, truth = rows_of(0, n)
    others = {"n_components": 128, "gamma": 0.02, "random_state": 0}
    contenders = {
        "biclique": BicliqueSpectralClustering(GROUPS, random_state=0),
        "dask-ml KMeans": KMeans(GROUPS, random_state=0),
        "dask-ml SpectralClustering": SpectralClustering(GROUPS, **others),
        "the same, scikit-learn's k-means": SpectralClustering(GROUPS, assign_labels="sklearn-kmeans", **others),
    }
    with workers(count, "4GB"):
        rows = da.from_array(X, chunks=(-(-n // 8), COLUMNS)).persist()
        distributed.wait(rows)
        for name, clusterer in contenders.items():
            start = time.perf_counter()
            try:
                fitted = clusterer.fit(rows)
            except Exception as error:
                print(f"  {name}: {type(error).__name__}: {error}", flush=True)
                continue
            labels = np.asarray(fitted.labels_ if hasattr(fitted, "labels_") else fitted.assign_labels_.labels_)
            seconds = time.perf_counter() - start
            print(
                f"  {name}: {seconds:.1f} s, adjusted Rand index {adjusted_rand_score(truth, labels):.4f}", flush=True
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--array", action="store_true", help="rows generated chunk by chunk, not those of a file")
    parser.add_argument("--base", help="src of another tree, run beside this one")
    parser.add_argument("--stream", action="store_true", help="the other tree runs its cluster --stream")
    parser.add_argument("--chunk", type=int, default=FILE_ROWS, help="rows of a generated chunk")
    parser.add_argument("--processes", type=int, default=2, help="worker processes")
    parser.add_argument("--threads", type=int, default=1, help="of a worker")
    parser.add_argument("--only-workers", action="store_true", help="leave out the threads of one process")
    parser.add_argument("--memory", default="2GB", help="of a worker")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--exact", type=int, default=0, help="rows of a run with exact tiles, instead of the others")
    parser.add_argument("--peers", type=int, default=0, help="rows of a run of dask-ml beside ours")
    for own in ("--contender", "--file", "--labels"):
        parser.add_argument(own, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.contender:
        print(json.dumps(CONTENDERS[chosen.contender](chosen)))
    elif chosen.exact:
        exact(chosen.exact, chosen.processes, chosen.repeats)
    elif chosen.peers:
        peers(chosen.peers, chosen.processes)
    else:
        compare(chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
