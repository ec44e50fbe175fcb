"""Seconds of fits and commands beside those of another commit, in turns in one run.

    python benchmarks/beside.py --base 0fd2c36
    python benchmarks/beside.py --base 0fd2c36 --only iris mnist --data FOLDER

Each case runs in a process of its own, three times with each tree. Printed are the best seconds on the clock and of the
processor, the most memory, and the agreement of the labels of both trees (adjusted Rand index). --data names the folder
with mnist.npz.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score
from timing import product_seconds

ROOT = Path(__file__).parent.parent
REPEATS = 3

CASES = {
    "iris": "X = load_iris().data; labels = fit(X, 3, repeats=20)",
    "rows_1000": "X = blobs(1_000, 2); labels = fit(X, 10, repeats=5)",
    "tiled_10000": "X = blobs(10_000, 16); labels = fit(X, 10, affinity='rbf', gamma=0.1, order=4, gram='tiled')",
    "rows_1e6": "X = blobs(1_000_000, 16); labels = fit(X, 10)",
    "mnist": "X = mnist(); labels = fit(X, 10, affinity='nearest_neighbors')",
    "csv": "labels = command('t.csv')",
    "dask_2e7": "X = dask_blobs(20_000_000); labels = fit(X, 10)",
}
"""What is timed: ``fit`` and ``command`` of the worker."""

WORKER = """
import json, resource, subprocess, sys, time, warnings
import numpy as np
from sklearn.datasets import load_iris, make_blobs
from biclique import BicliqueSpectralClustering
warnings.simplefilter("ignore")
used = {}

def timed(work):
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    used["wall"] = min(used.get("wall", np.inf), time.perf_counter() - wall)
    used["cpu"] = min(used.get("cpu", np.inf), time.process_time() - cpu)
    return result

def fit(X, k, repeats=1, **asked):
    for _ in range(repeats):
        labels = timed(lambda: np.asarray(BicliqueSpectralClustering(k, random_state=0, **asked).fit(X).labels_))
    return labels

def blobs(n, d):
    return make_blobs(n, d, centers=10, random_state=0)[0].astype(np.float32)

def dask_blobs(n):
    import dask.array as da
    centers = make_blobs(10, 16, centers=10, random_state=0)[0]
    def chunk(block_info=None):
        number = block_info[None]["chunk-location"][0]
        random = np.random.default_rng(number)
        return (centers[np.arange(500_000) % 10] + random.normal(size=(500_000, 16))).astype(np.float32)
    return da.map_blocks(chunk, chunks=((500_000,) * (n // 500_000), (16,)), dtype=np.float32)

def mnist():
    return np.load(FOLDER + "/mnist.npz")["X"].reshape(-1, 784).astype(np.float32)

def command(name):
    words = [sys.executable, "-m", "biclique", "cluster", PLACE + "/" + name, "-k", "10", "-q", "-o", PLACE + "/l.npy"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    timed(lambda: subprocess.run(words, check=True))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used["cpu"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return np.load(PLACE + "/l.npy")
"""

END = """
most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1e6
np.save(PLACE + "/labels.npy", np.asarray(labels))
print(json.dumps({**used, "gb": most}))
"""


def run(case: str, tree: Path, place: Path, folder: str) -> tuple[dict[str, float], np.ndarray]:
    """Seconds and memory of a case with the source of a tree, and the labels."""
    source = f"FOLDER, PLACE = {folder!r}, {str(place)!r}\n{WORKER}\n{CASES[case]}\n{END}"
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{case}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1]), np.load(place / "labels.npy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", required=True, help="a commit")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--data", default=".")
    options = parser.parse_args()
    print(f"product 4000³: {product_seconds():.2f} s")
    print(f"{'case':>12} {'base [s]':>9} {'now [s]':>9} {'ratio':>6} {'of CPU':>7} {'now [GB]':>9} {'agreement':>10}")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        base = place / "base"
        base.mkdir()
        packed = subprocess.run(["git", "archive", options.base, "src"], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", str(base)], input=packed.stdout, check=True)
        if "csv" in options.only:
            centers = 6 * np.eye(10).repeat(50_000, axis=0)
            X = centers + np.random.default_rng(0).normal(size=centers.shape)
            np.savetxt(place / "t.csv", X, fmt="%.6f", delimiter=",", header=",".join("abcdefghij"), comments="")
        for case in options.only:
            rounds = [[run(case, tree, place, options.data) for tree in (base, ROOT)] for _ in range(REPEATS)]
            best = [{key: min(row[side][0][key] for row in rounds) for key in ("wall", "cpu", "gb")} for side in (0, 1)]
            before, now = best
            agreement = adjusted_rand_score(rounds[0][0][1], rounds[0][1][1])
            print(
                f"{case:>12} {before['wall']:>9.3f} {now['wall']:>9.3f} {now['wall'] / before['wall']:>6.2f} "
                f"{now['cpu'] / before['cpu']:>7.2f} {now['gb']:>9.2f} {agreement:>10.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
