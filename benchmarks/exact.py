"""Exact clustering against scikit-learn's SpectralClustering: seconds, peak memory and agreement, in one run.

    python benchmarks/exact.py                       everything (about 25 minutes on 2 cores)
    python benchmarks/exact.py --sizes 10000         one size
    python benchmarks/exact.py --sizes 100000        ours alone: the other would need 80 GB
    python benchmarks/exact.py --planted             small groups that the solver's start does not contain (10 minutes)

Ten blobs in 16 dimensions, k = 10, the same rbf kernel for all. Every contender runs in a process of its own, so
that its peak memory is its own; seconds are the best of three fits. A 4000³ float32 matrix product is timed in the
same process, since machines are noisy. Agreement is the adjusted Rand index with the labels of the stored
float64 matrix, solved to 1e-8. A contender below 0.99 reports no time.

With ``--planted``: five blobs of 6,000 rows and a group of 0, 1, 2, 8 or 32 rows far away, five seeds each, at order 2.
There the group has the eigenvalue 1 and the blobs follow. The solver starts from 2,048 of the rows, which may hold none
of the group. Passes from a random start are printed beside those of the start from few rows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from importlib.util import find_spec

import numpy as np
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from timing import best_of, product_seconds

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.fit import exact
from biclique.gram.tiled import TiledGram
from biclique.kernels import RBF
from biclique.kernels.gamma_rules import bandwidth
from biclique.kernels.named import make_kernel

DIMENSIONS, CLUSTERS = 16, 10
LARGEST_FOR_SKLEARN = 20_000
LEAST_AGREEMENT = 0.99


def blobs(n: int) -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(n, DIMENSIONS, centers=CLUSTERS, random_state=0)


def contender(name: str, gamma: float) -> BicliqueSpectralClustering | SpectralClustering:
    if name.startswith("sklearn"):
        solver = name.split()[1]
        return SpectralClustering(
            CLUSTERS, gamma=gamma, eigen_solver=None if solver == "default" else solver, random_state=0
        )
    if name == "dense float64":
        return BicliqueSpectralClustering(CLUSTERS, affinity="rbf", gamma=gamma, order=2, gram="dense", random_state=0)
    return BicliqueSpectralClustering(
        CLUSTERS,
        affinity="rbf",
        gamma=gamma,
        order=float(name.split()[-1]),
        gram="tiled",
        precision="float32",
        random_state=0,
    )


def run_worker(task: dict) -> dict:
    """One contender, in this process."""
    X, truth = blobs(task["n"])
    model = contender(task["name"], task["gamma"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        seconds = best_of(task["repeats"], lambda: model.fit(X))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    np.save(task["labels"], model.labels_)
    result = {
        "seconds": seconds,
        "peak": peak,
        "truth": adjusted_rand_score(truth, model.labels_),
        "passes": getattr(model, "n_passes_", None),
    }
    if task["name"].startswith("tiled"):
        gram = TiledGram(RBF(task["gamma"]), X)
        V = np.random.default_rng(0).standard_normal((task["n"], CLUSTERS + 3))
        result["evaluations"] = task["n"] ** 2 / best_of(3, lambda: gram.matmat(V))
    result["product"] = product_seconds()
    return result


def measure(n: int, name: str, gamma: float, repeats: int, folder: str) -> dict:
    labels = os.path.join(folder, f"{n}-{name.replace(' ', '-')}.npy")
    task = {"n": n, "name": name, "gamma": gamma, "repeats": repeats, "labels": labels}
    command = [sys.executable, __file__, "--worker", json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"name": name, "failed": done.stderr.strip().splitlines()[-1] if done.stderr else done.returncode}
    return {"name": name, **json.loads(done.stdout), "labels": np.load(labels)}


def compare(n: int, repeats: int, folder: str) -> None:
    X, _ = blobs(n)
    gamma = bandwidth("auto", make_kernel("rbf", gamma=None), X, np.ones(n), 0)
    names = ["tiled order 4", "tiled order 20"]
    if n <= LARGEST_FOR_SKLEARN:
        solvers = ["default", "lobpcg", *(["amg"] if find_spec("pyamg") else [])]
        names = ["dense float64", *names, *(f"sklearn {solver}" for solver in solvers)]
    print(f"\nn = {n}, {DIMENSIONS} dimensions, k = {CLUSTERS}, gamma = {gamma:.4g}", flush=True)
    print("| contender | seconds | peak MB | agreement | truth | passes | evaluations/s | 4000³ product s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    results = {}
    for name in names:
        result = results[name] = measure(n, name, gamma, repeats if not name.startswith("dense") else 1, folder)
        if "failed" in result:
            print(f"| {name} | failed: {result['failed']} |", flush=True)
            continue
        reference = results[names[0]]["labels"]
        agreement = result["agreement"] = adjusted_rand_score(reference, result["labels"])
        seconds = f"{result['seconds']:.2f}" if agreement >= LEAST_AGREEMENT else "—"
        evaluations = f"{result['evaluations']:.2e}" if "evaluations" in result else ""
        print(
            f"| {name} | {seconds} | {result['peak'] / 1e6:.0f} | {agreement:.4f} | {result['truth']:.4f} | "
            f"{result['passes'] or ''} | {evaluations} | {result['product']:.3f} |",
            flush=True,
        )
    summarize(results)


PLANTED_CENTRES = [(0, 0), (4, 0), (0, 4), (4, 4), (8, 0)]
PLANTED_GROUPS, PLANTED_SEEDS = (0, 1, 2, 8, 32), 5


def planted(group: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    rows = [random.normal(size=(6_000, 2)) * 0.5 + centre for centre in PLANTED_CENTRES]
    return np.concatenate([*rows, random.normal(size=(group, 2)) * 0.05 + 30])


def compare_planted() -> None:
    print("| group | seed | leading eigenvalues | found | passes | seconds | passes, random start |")
    print("| ---: | ---: | --- | --- | ---: | ---: | ---: |", flush=True)
    start_from = exact.START_FROM
    for group in PLANTED_GROUPS:
        for seed in range(PLANTED_SEEDS):
            X = planted(group, seed)
            models = []
            for least in (start_from, len(X) + 1):
                exact.START_FROM = least
                model = BicliqueSpectralClustering(
                    5, affinity="rbf", gamma=0.5, gram="tiled", order=2, random_state=seed
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    seconds = best_of(1, lambda model=model, X=X: model.fit(X))
                models.append((model, seconds))
            (ours, seconds), (random, _) = models
            found = np.abs(ours.eigenvalues_ - random.eigenvalues_).max() < 1e-4
            values = ", ".join(f"{value:.5f}" for value in ours.eigenvalues_)
            print(
                f"| {group} | {seed} | {values} | {'all' if found else 'NOT ALL'} | {ours.n_passes_} | "
                f"{seconds:.1f} | {random.n_passes_} |",
                flush=True,
            )
    exact.START_FROM = start_from


def summarize(results: dict[str, dict]) -> None:
    ours = results["tiled order 4"]
    print(f"order 20 takes {results['tiled order 20']['seconds'] / ours['seconds']:.2f} × order 4")
    peers = [r for name, r in results.items() if name.startswith("sklearn") and "failed" not in r]
    if not peers:
        return
    default = results["sklearn default"]
    best = min(peers, key=lambda r: r["seconds"])
    print(f"speed-up over scikit-learn's default solver: {default['seconds'] / ours['seconds']:.1f} ×")
    print(f"speed-up over its best solver ({best['name']}): {best['seconds'] / ours['seconds']:.1f} ×")
    print(f"peak memory: 1/{default['peak'] / ours['peak']:.1f} of its default solver's")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 20_000, 100_000])
    parser.add_argument("--repeats", type=int, default=3, help="fits of which the fastest counts")
    parser.add_argument("--planted", action="store_true", help="small groups that the solver's start may not contain")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(run_worker(json.loads(options.worker))))
        return
    if options.planted:
        compare_planted()
        return
    with tempfile.TemporaryDirectory() as folder:
        for n in options.sizes:
            compare(n, options.repeats, folder)


if __name__ == "__main__":
    main()
