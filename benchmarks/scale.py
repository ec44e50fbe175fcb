"""Millions of rows: approximate kernels, neighbour graphs and files on disk, beside the peers, in one run.

    python benchmarks/scale.py                                everything that needs no data
    python benchmarks/scale.py --data FOLDER                  with mnist.npz and pendigits.npz (arrays X, y) from there
    python benchmarks/scale.py --only blobs disk              some parts
    python benchmarks/scale.py --quick --data FOLDER          small sizes, to see that it runs

    blobs      ten blobs in 16 dimensions, ranks 200 and 500, beside the exact solution on 100,000 of the rows
    outliers   blobs of unequal scales and sizes with 5 % uniform outliers, beside k-means
    peers      the same gamma in scikit-learn, dask-ml and ncut-pytorch (scale_peers.py says how to install these)
    disk       --big rows fitted from a file
    features   random features, and landmarks
    neighbors  neighbour graphs: MNIST, pen digits, circles and moons

Every contender runs in a process of its own on rows that it loads from a file, so that its peak memory is its own: the
interpreter and its libraries, the rows, and the fit. Seconds are the best of three fits (fewer where they add up to
over two minutes: column fits), and a 4000³ float32 matrix product is timed in the same process. Agreement is the
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

SAMPLE = 100_000  # rows of the exact solution
BUDGET = 120.0  # seconds of fits after which none is repeated
SAME = 0.002  # ARI differences that count as none
PACKAGES = ("biclique", "numpy", "scipy", "scikit-learn", "faiss-cpu", "dask-ml", "ncut-pytorch", "torch")


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
        from_file, repeats = parameters.pop("from_file", False), parameters.pop("repeats", options.repeats)
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
        ari, sample = adjusted_rand_score(truth[kept], found[kept]), slice(0, SAMPLE)
        scores = {"ari": ari, "nmi": normalized_mutual_info_score(truth[kept], found[kept])}
        scores["sample ari"] = adjusted_rand_score(truth[sample][kept[sample]], found[sample][kept[sample]])
        return {**json.loads(done.stdout.splitlines()[-1]), **scores}

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


def blobs(bench: Bench) -> None:
    n, columns = bench.options.rows, ("seconds", "bar", "ARI", "of the sample", "exact there", "bar")
    for name in ("blobs", "separate"):
        sample = min(n, SAMPLE)
        header(f"### {name}: {n} rows, the exact solution on {sample} of them", "K", *columns, *TIMED)
        exact = None
        for rank, seconds in ((200, 2.5), (500, 7.0)):
            found = bench.measure("ours", bench.rows(name, n), gram="nystroem", rank=rank)
            if "failed" in found:
                row(f"rank {rank}", found["failed"])
                continue
            if exact is None:
                path = bench.rows(name, sample)
                exact = bench.measure("ours", path, gram="tiled", gamma=found["gamma"], repeats=1)
                exact_ari = exact.get("ari", np.nan)
            what = f"{name}, rank {rank}"
            verdict = bench.bar(f"{what}, seconds", found["seconds"], seconds, n == 10**6)
            close = bench.bar(f"{what}, |ARI − exact|", abs(found["sample ari"] - exact_ari), SAME)
            aris = (f"{found[key]:.4f}" for key in ("ari", "sample ari"))
            row(f"rank {rank}", f"{found['seconds']:.2f}", verdict, *aris, f"{exact_ari:.4f}", close, *timed(found))
        if exact is not None and "failed" not in exact:
            row(f"exact, {sample} rows", f"{exact['seconds']:.2f}", "", "", "", f"{exact_ari:.4f}", "", *timed(exact))
        elif exact is not None:
            row("exact", exact["failed"])


def outliers(bench: Bench) -> None:
    n = bench.options.rows
    path = bench.rows("outliers", n)
    header(f"### outliers: {n} rows, deviations from 1 to 4", "contender", "seconds", "ARI of the inliers", *TIMED)
    contenders = [(f"KMeans, {s} start{'s' * (s > 1)}", "kmeans", {"starts": s}) for s in (1, 10)]
    contenders.append(("MiniBatchKMeans", "minibatch", {}))
    contenders += [(f"ours, rank {p}", "ours", {"gram": "nystroem", "rank": p}) for p in (200, 500, "auto")]
    for name, method, parameters in contenders:
        found = bench.measure(method, path, **parameters)
        if "failed" in found:
            row(name, found["failed"])
            continue
        chosen = f" ({found['rank']})" if parameters.get("rank") == "auto" else ""
        row(name + chosen, f"{found['seconds']:.2f}", f"{found['ari']:.4f}", *timed(found))


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


def disk(bench: Bench) -> None:
    big, n = bench.options.big, bench.options.rows
    columns = ("rows", "rank", "seconds", "bar", "memory bar", f"× {n} rows", "bar", "ARI")
    header(f"### disk: {big} × {DIMENSIONS} float32 rows from an .npy file", *columns, *TIMED)
    default = big == 10**7
    for rank, seconds in ((200, 25.0), (500, 70.0)):
        less = bench.measure("ours", bench.rows("blobs", n), from_file=True, rank=rank)
        more = bench.measure("ours", bench.rows("blobs", big), from_file=True, rank=rank)
        for rows, found in ((n, less), (big, more)):
            if "failed" in found:
                row(rows, rank, found["failed"])
                continue
            cells = ["", "", "", ""]
            if found is more:
                what, ratio = f"disk, rank {rank}", found["seconds"] / less.get("seconds", np.nan)
                cells = [
                    bench.bar(f"{what}, seconds", found["seconds"], seconds, default),
                    bench.bar(f"{what}, GB", found["peak"] / 1e9, 1.0, default),
                    f"{ratio:.2f}",
                    bench.bar(f"{what}, ratio", ratio, 11.0, default and n == 10**6),
                ]
            row(rows, rank, f"{found['seconds']:.2f}", *cells, f"{found['ari']:.4f}", *timed(found))
    bench.rows("blobs", big).unlink()


def features(bench: Bench) -> None:
    n, errors = bench.options.rows, ("eigenvalue error", "kernel error", "ARI")
    header("### features: gram='features'", "kernel", "rows", "rank", "seconds", *errors, *TIMED)
    for affinity, rows in (("rbf", n), ("laplacian", min(n, 10**5))):
        for rank in (500, 1000):
            found = bench.measure("ours", bench.rows("blobs", rows), affinity=affinity, gram="features", rank=rank)
            row(affinity, rows, rank, *with_errors(found))


def with_errors(found: dict[str, Any]) -> tuple[str, ...]:
    if "failed" in found:
        return (found["failed"],)
    errors = (f"{found[key]:.2e}" if key in found else "exact" for key in ("eigenvalues", "kernel"))
    return f"{found['seconds']:.2f}", *errors, f"{found['ari']:.4f}", *timed(found)


def neighbors(bench: Bench) -> None:
    quick, n = bench.options.quick, bench.options.rows
    few, count = bench.few, 10
    contenders = [
        ("mnist", "ours", 5000 if quick else None, 10, {"nmi": 0.76, "seconds": 60.0}),
        ("pendigits", "ours", None, 10, {"nmi": 0.83}),
        ("pendigits", "sklearn", None, 10, {}),
        ("circles", "ours", n, 2, {"ari": 0.98}),
        ("moons", "ours", n, 2, {"ari": 0.98}),
        ("moons", "ours", few, 2, {"ari": 0.98}),
        ("moons", "sklearn", few, 2, {}),
    ]
    columns = ("rows", "contender", "seconds", "NMI", "ARI", "bar")
    header(f"### neighbors: {count} neighbours", "data", *columns, *TIMED)
    for name, method, size, k, bars in contenders:
        path = bench.rows(name, size)
        if path is None:
            continue
        given = {"n_neighbors": count} if method == "sklearn" else {}  # ours: the default, which is the same
        found = bench.measure(method, path, k=k, affinity="nearest_neighbors", **given)
        rows = len(np.load(path, mmap_mode="r"))
        contender = {"ours": "ours", "sklearn": "scikit-learn"}[method]
        if "failed" in found:
            row(name, rows, contender, found["failed"])
            continue
        whole = not (quick and name == "mnist")
        verdicts = [
            f"{key} {bench.bar(f'{name}, {key}', found[key], bar, whole, most=key == 'seconds')}"
            for key, bar in bars.items()
        ]
        scores = f"{found['nmi']:.4f}", f"{found['ari']:.4f}"
        row(name, rows, contender, f"{found['seconds']:.2f}", *scores, ", ".join(verdicts), *timed(found))


PARTS = {part.__name__: part for part in (blobs, outliers, peers, disk, features, neighbors)}


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
    parser.add_argument("--data", help="folder with mnist.npz and pendigits.npz")
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
