"""Millions of rows: the default beside its bars and its peers, and how its time grows, in one run.

    python benchmarks/scale.py                                everything that needs no data
    python benchmarks/scale.py --data FOLDER                  with mnist.npz (arrays X, y) from there
    python benchmarks/scale.py --only default growth          some parts
    python benchmarks/scale.py --quick --data FOLDER          small sizes, to see that it runs

    default  10⁶ × 16 blobs, MNIST (five seeds), 500 clusters with probabilities; seconds as products, beside the bars
    small    iris, 1,000 × 2 and digits beside scikit-learn's neighbours
    growth   seconds against rows, columns, clusters and landmarks, and the slope of the last step in log-log
    beside   blobs, moons and groups of 90, 8 and 2 %: ours beside k-means, Nystroem, HDBSCAN and others
    disk     --big rows from files: a memory map, and the command line with .npy and Parquet
    peers    the same gamma in scikit-learn, dask-ml and ncut-pytorch (scale_peers.py says how to install these)

Every contender runs in a process of its own on rows that it loads from a file, so that its peak memory is its own: the
interpreter and its libraries, the rows, and the fit. Seconds are the best of three fits (fewer where they add up to
over two minutes: column fits). A product is one of 4000³ in float32, timed in the same process. Agreement is the
adjusted Rand index (ARI) with the truth, over all rows but outliers. A bar says "met" or by how much it is missed;
those of seconds and memory are for the default sizes and left out at others (—). What is missed is listed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scale_peers
from scale_peers import CLUSTERS, DIMENSIONS, truth_path
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

BUDGET = 120.0  # seconds of fits after which none is repeated
SAME = 0.002  # ARI differences that count as none
PACKAGES = (
    *("biclique", "numpy", "scipy", "scikit-learn", "faiss-cpu", "dask-ml", "ncut-pytorch", "torch"),
    *("hdbscan", "genieclust"),
)


@dataclass
class Bench:
    """The options, the files of rows that were written, and the bars that were missed."""

    options: argparse.Namespace
    folder: Path
    missed: list[str] = field(default_factory=list)

    @property
    def few(self) -> int:
        """Rows that scikit-learn's SpectralClustering can hold."""
        return 5_000 if self.options.quick else 20_000

    def rows(self, name: str, n: int | None = None) -> Path | None:
        """The file of rows of a name, written once; None where it needs data that are not there."""
        path = self.folder / f"{name}-{n}.npy"
        if path.exists() or scale_peers.write_rows(path, name, n, self.options.data):
            return path
        print(f"{name}: left out, needs {name}.npz (arrays X, y) in the folder --data")
        return None

    def measure(self, method: str, path: Path, **parameters: Any) -> dict[str, Any]:
        """One contender in a process of its own: what scale_peers.run returns, and its agreement with the truth."""
        missing = scale_peers.missing(method)
        if missing:
            return {"failed": missing}
        options, labels = self.options, self.folder / "labels.npy"
        from_file, repeats = parameters.pop("from_file", False), parameters.pop("repeats", None) or options.repeats
        task = {"method": method, "data": str(path), "from_file": from_file, "labels": str(labels)}
        task |= {"repeats": repeats, "budget": BUDGET, "parameters": {"k": CLUSTERS, **parameters}}
        command = [sys.executable, __file__, "--worker", json.dumps(task)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=options.timeout)
        except subprocess.TimeoutExpired:
            return {"failed": f"no result within {options.timeout} s"}
        if done.returncode:
            return {"failed": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
        found, truth = np.load(labels), np.load(truth_path(path))
        labels.unlink()
        kept = truth >= 0
        result = json.loads(done.stdout.splitlines()[-1])
        result["products"] = result["seconds"] / result["product"]
        result["ari"] = adjusted_rand_score(truth[kept], found[kept])
        result["nmi"] = normalized_mutual_info_score(truth[kept], found[kept])
        return result

    def bar(self, what: str, value: float, bar: float, at_default_size: bool = True, most: bool = True) -> str:
        """Whether a value is at most (or at least) the bar, or by how much it is not."""
        if not at_default_size:
            return "—"
        sign, short = ("≤", value - bar) if most else ("≥", bar - value)
        if short <= 0:
            return f"met ({sign} {bar:g})"
        self.missed.append(f"{what}: {value:.4g}, the bar is {sign} {bar:g}")
        return f"missed by {short:.2g} ({sign} {bar:g})"


def header(title: str, *columns: str) -> None:
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)


def row(*cells: Any) -> None:
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def timed(result: dict[str, Any]) -> tuple[str, ...]:
    """The cells that every table ends with."""
    return f"{result['peak'] / 1e6:.0f}", str(result["fits"]), f"{result['product']:.3f}"


TIMED = ("peak MB", "fits", "4000³ s")


# Parts


def default(bench: Bench) -> None:
    n, quick = bench.options.rows, bench.options.quick
    many = 5_000 if quick else 100_000
    header("The default beside its bars", "rows", "seconds", "products", "bar", "reach", "ARI", "NMI", *TIMED)
    for name, size, k, most, reach, parameters in (
        ("blobs", n, CLUSTERS, 8, 4, {}),
        ("many", many, 50 if quick else 500, 30, 10, {"probabilities": 1000}),
        ("mnist", 5000 if quick else None, 10, 25, 12, {}),
    ):
        path = bench.rows(name, size)
        if path is None:
            continue
        seeds = range(5) if name == "mnist" else range(1)
        found = [
            bench.measure("ours", path, k=k, seed=seed, repeats=1 if seed else None, **parameters) for seed in seeds
        ]
        first, failed = found[0], [one["failed"] for one in found if "failed" in one]
        if failed:
            row(name, *failed[:1])
            continue
        nmi = float(np.median([one["nmi"] for one in found]))
        at_size = not quick and n == 10**6
        met = [bench.bar(f"{name}, products", first["products"], bar, at_size) for bar in (most, reach)]
        if name == "mnist":
            met[0] += f", NMI {bench.bar('mnist, median NMI of five seeds', nmi, 0.76, at_size, most=False)}"
        numbers = f"{first['seconds']:.2f}", f"{first['products']:.1f}"
        row(f"{name}, k = {k}", *numbers, *met, f"{first['ari']:.4f}", f"{nmi:.4f}", *timed(first))


def small(bench: Bench) -> None:
    header("Small tables beside scikit-learn's neighbours", "rows", "ours, s", "theirs, s", "ratio", "bar", "reach")
    for name, k in (("iris", 3), ("moons", 2), ("digits", 10)):
        path = bench.rows(name, 1000 if name == "moons" else None)
        own = bench.measure("ours", path, k=k, repeats=20)
        other = bench.measure("sklearn", path, k=k, repeats=20, affinity="nearest_neighbors")
        ratio = own["seconds"] / other["seconds"]
        met = [bench.bar(f"{name} beside scikit-learn", ratio, bar) for bar in (1.2, 0.8)]
        row(name, f"{own['seconds']:.4f}", f"{other['seconds']:.4f}", f"{ratio:.2f}", *met)


def growth(bench: Bench) -> None:
    """The slope is that of the last step: nothing may grow faster than linearly, k no faster than k² on p rows."""
    header("Growth", "what", "sizes", "seconds", "slopes")
    few, big = (5_000, 20_000) if bench.options.quick else (100_000, 10**7)
    sweeps = {
        "rows": [(n, "blobs", n, {}) for n in (10**3, 10**4, 10**5, 10**6, 10**7) if n <= big],
        "columns": [(d, f"columns{d}", few, {}) for d in (2, 4, 16, 64, 256, 1024)],
        "clusters": [(k, "blobs", few, {"k": k}) for k in (2, 10, 50, 200, 500) if 20 * k <= few],
        "landmarks": [(p, "blobs", few, {"rank": p}) for p in (500, 1000, 2000, 4000, 8000) if p < few],
    }
    for what, cases in sweeps.items():
        found = [bench.measure("ours", bench.rows(name, n), repeats=1, **own) for _, name, n, own in cases]
        seconds = np.array([one.get("seconds", np.nan) for one in found])
        sizes = np.array([size for size, *_ in cases])
        slopes = np.diff(np.log(seconds)) / np.diff(np.log(sizes))
        cells = (", ".join(f"{value:g}" for value in values) for values in (sizes, seconds.round(3), slopes.round(2)))
        row(what, *cells)


def beside(bench: Bench) -> None:
    n = bench.options.rows
    contenders = [
        ("ours", "ours", {}),
        ("MiniBatchKMeans", "minibatch", {}),
        ("KMeans, one start", "kmeans", {"starts": 1}),
        ("Nystroem + KMeans, 500 landmarks", "nystroem", {"p": 500, "starts": 1, "gamma": None}),
        ("dask-ml, 500 landmarks", "dask", {"p": 500, "own_kmeans": False, "gamma": None}),
        ("ncut-pytorch, 500 landmarks", "ncut", {"p": 500, "gamma": None}),
        ("HDBSCAN", "hdbscan", {}),
        ("genieclust", "genie", {}),
    ]
    header(f"{n} rows beside peers", "data", "contender", "seconds", "products", "ARI", *TIMED)
    for name, k in (
        ("blobs", CLUSTERS),
        ("blobs2", CLUSTERS),
        ("moons", 2),
        ("moons16", 2),
        ("unequal", 3),
        ("unequal16", 3),
    ):
        for label, method, parameters in contenders:
            found = bench.measure(method, bench.rows(name, n), k=k, **parameters)
            if "failed" in found:
                row(name, label, found["failed"])
                continue
            numbers = f"{found['seconds']:.2f}", f"{found['products']:.1f}", f"{found['ari']:.4f}"
            row(name, label, *numbers, *timed(found))


def disk(bench: Bench) -> None:
    big = bench.options.big
    columns = ("seconds", "products", "bar", "reach", "ARI", "memory bar", "own MB", "MB of files", *TIMED)
    header(f"{big} × {DIMENSIONS} float32 rows from files", "from", *columns)
    path = bench.rows("blobs", big)
    for label, method, ending in (
        ("a memory map of .npy", "ours", ".npy"),
        ("biclique cluster rows.npy", "command", ".npy"),
        ("biclique cluster rows.parquet", "command", ".parquet"),
    ):
        if ending == ".parquet":
            scale_peers.write_parquet(path)
        found = bench.measure(method, path.with_suffix(ending), from_file=True)
        if "failed" in found:
            row(label, found["failed"])
            continue
        whole = big == 10**7
        met = [bench.bar(f"{label}, products", found["products"], bar, whole) for bar in (80, 40)]
        memory = bench.bar(f"{label}, GB", found["peak"] / 1e9, 1.5, whole)
        parts = (f"{found[name] / 1e6:.0f}" for name in ("own", "of_files"))
        numbers = f"{found['seconds']:.2f}", f"{found['products']:.1f}"
        row(label, *numbers, *met, f"{found['ari']:.4f}", memory, *parts, *timed(found))
    for ending in (".npy", ".parquet"):
        path.with_suffix(ending).unlink()


def peers(bench: Bench) -> None:
    for name in ("blobs", "outliers"):
        n, few = bench.options.rows, bench.few
        first = bench.measure("ours", bench.rows(name, few), gram="nystroem", rank=200, repeats=1)
        if "failed" in first:
            print(f"\npeers on {name}: left out, since ours failed: {first['failed']}")
            continue
        gamma = first["gamma"]
        title = f"### peers on {name}: gamma {gamma:.4g} for all"
        header(title, "contender", "rows", "p", "seconds", "ARI", *TIMED)
        contenders = [("ours", "ours", n, p, {"gram": "nystroem", "rank": p, "gamma": gamma}) for p in (200, 500)]
        contenders += [("ours", "ours", few, p, {"gram": "nystroem", "rank": p, "gamma": gamma}) for p in (200, 500)]
        contenders.append(("MiniBatchKMeans", "minibatch", n, None, {}))
        for starts in (1, 10):
            nystroem = {"gamma": gamma, "starts": starts}
            label = f"scikit-learn Nystroem + KMeans, {starts} start{'s' * (starts > 1)}"
            contenders += [(label, "nystroem", n, p, {"p": p, **nystroem}) for p in (200, 500)]
        contenders.append(("scikit-learn SpectralClustering", "sklearn", few, None, {"gamma": gamma}))
        for own, ranks in ((True, (200,)), (False, (200, 500))):
            label = f"dask-ml, {'its own' if own else 'scikit-learn'} k-means"
            contenders += [(label, "dask", n, p, {"p": p, "gamma": gamma, "own_kmeans": own}) for p in ranks]
        contenders += [("ncut-pytorch", "ncut", n, p, {"p": p, "gamma": gamma}) for p in (200, 500, 10240)]
        results: dict[str, dict[Any, dict]] = {}
        for label, method, rows, p, parameters in contenders:
            found = bench.measure(method, bench.rows(name, rows), **parameters)
            results.setdefault(label, {})[rows, p] = found
            if "failed" in found:
                row(label, rows, p or "", found["failed"])
                continue
            row(label, rows, p or "", f"{found['seconds']:.2f}", f"{found['ari']:.4f}", *timed(found))
        print()
        mine = results.pop("ours")
        for label, found in results.items():
            print(f"- {compare(label, found, mine)}")


def compare(label: str, theirs: dict[Any, dict], ours: dict[Any, dict]) -> str:
    """One sentence on a peer: beside ours of the same rows and p, or of p = 500 where it has none of ours."""
    parts, all_better = [], True
    for (rows, p), found in theirs.items():
        mine = ours[rows, p if (rows, p) in ours else 500]
        at = f"p = {p}" if p else f"{rows} rows"
        if "failed" in found or "failed" in mine:
            parts.append(f"{at}: {found.get('failed') or 'ours failed'}")
            all_better = False
            continue
        ratio, gap = found["seconds"] / mine["seconds"], mine["ari"] - found["ari"]
        speed = f"ours takes 1/{ratio:.1f} of its time" if ratio > 1 else f"ours takes {1 / ratio:.1f} × its time"
        agreement = "equal" if abs(gap) <= SAME else "better" if gap > 0 else "lower"
        parts.append(f"{at}: {speed} at {agreement} agreement ({mine['ari']:.4f} against {found['ari']:.4f})")
        all_better &= ratio > 1 and gap >= -SAME
    verdict = (
        "ours is faster at equal or better agreement"
        if all_better
        else "ours is not both faster and as close everywhere"
    )
    return f"{label}: {verdict}; {'; '.join(parts)}."


PARTS = {part.__name__: part for part in (default, small, growth, beside, disk, peers)}


def describe() -> None:
    print(f"`{' '.join(['python', *sys.argv])}`\n")
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"no {package}")
    print(f"Python {platform.python_version()}, {', '.join(versions)}; {os.cpu_count()} cores, {platform.machine()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), help="1e6 unless --quick")
    parser.add_argument("--big", type=lambda text: int(float(text)), help="rows on disk, 1e7 unless --quick")
    parser.add_argument("--data", help="folder with mnist.npz")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to run")
    parser.add_argument("--quick", action="store_true", help="20,000 and 200,000 rows, one fit each")
    parser.add_argument("--scratch", help="folder for the rows on disk; the system's temporary one by default")
    parser.add_argument("--repeats", type=int, help="fits of which the fastest counts: 3 unless --quick")
    parser.add_argument("--timeout", type=float, default=1200.0, help="seconds for a contender")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(scale_peers.run(json.loads(options.worker))))
        return
    options.rows = options.rows or (20_000 if options.quick else 10**6)
    options.big = options.big or (200_000 if options.quick else 10**7)
    options.repeats = options.repeats or (1 if options.quick else 3)
    describe()
    with tempfile.TemporaryDirectory(prefix="biclique-scale-", dir=options.scratch) as folder:
        bench = Bench(options, Path(folder))
        for name in options.only:
            PARTS[name](bench)
    print("\nMissed: " + ("; ".join(bench.missed) if bench.missed else "none of the bars that apply") + ".")


if __name__ == "__main__":
    main()
