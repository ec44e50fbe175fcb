"""Consensus of partitions: time of many rows, and accuracy beside two simple rules.

    python benchmarks/consensus.py [--data DIR] [--rows 1000000] [--partitions 50] [--most 1000]

Time: rows in 20 groups; each partition renames or joins these, with 5 % of its labels wrong and 2 % missing. A
4000³ float32 product is timed beside it,
and the processor time, since other work may share the machine.
Accuracy (``--data``: folders of NAME.data.gz and NAME.labels0.gz, …, as in DOI 10.5281/zenodo.7088171): on at most
``--most`` rows of each set, 20 partitions (k-means with k to 3k clusters, and neighbour graphs), and the mean adjusted
Rand index, best over the reference labelings, of

- the consensus,
- the medoid: the partition with the largest mean agreement with the others,
- average linkage of the co-association matrix.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from timing import product_seconds

from biclique import BicliqueSpectralClustering, consensus_labels


def noisy_partitions(n: int, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(seed)
    truth = random.randint(20, size=n)
    columns = []
    for _ in range(count):
        relabelled = random.randint(12, size=20)[truth] if random.rand() < 0.5 else random.permutation(20)[truth]
        wrong = random.rand(n)
        relabelled = np.where(wrong < 0.05, random.randint(20, size=n), relabelled)
        columns.append(np.where(wrong > 0.98, -1, relabelled))
    return np.column_stack(columns), truth


def timed(n: int, count: int) -> None:
    L, truth = noisy_partitions(n, count)
    start, used = time.perf_counter(), time.process_time()
    labels = consensus_labels(L, 20)
    wall, used = time.perf_counter() - start, time.process_time() - used
    score = adjusted_rand_score(truth, labels)
    print(
        f"{n} rows × {count} partitions: {wall:.1f} s, {used:.1f} s of processor time, adjusted Rand index {score:.3f}"
    )
    print(f"4000³ float32 product: {product_seconds():.3f} s")


def partitions_of(X: np.ndarray, k: int) -> np.ndarray:
    """Fifteen of k-means, five of neighbour graphs."""
    most = max(min(3 * k, len(X) // 4), k)
    out = [
        KMeans(int(kk), n_init=1, random_state=seed).fit_predict(X)
        for seed, kk in enumerate(np.linspace(k, most, 15).round())
    ]
    for neighbors in (5, 7, 10, 14, 20):
        model = BicliqueSpectralClustering(
            k, affinity="nearest_neighbors", n_neighbors=neighbors, random_state=0, n_jobs=1
        )
        out.append(model.fit_predict(X))
    return np.column_stack(out)


def medoid(L: np.ndarray) -> np.ndarray:
    agreement = np.array([[adjusted_rand_score(a, b) for a in L.T] for b in L.T])
    return L[:, agreement.mean(axis=1).argmax()]


def average_linkage(L: np.ndarray, k: int) -> np.ndarray:
    apart = np.mean([column[:, None] != column for column in L.T], axis=0)
    return fcluster(linkage(squareform(apart, checks=False), "average"), k, "maxclust")


def scored(labels: np.ndarray, truth: np.ndarray) -> float:
    there = truth > 0  # 0 is noise
    return adjusted_rand_score(truth[there], labels[there])


def shapes(folder: Path, most: int) -> None:
    sums: list[list[float]] = []
    for file in sorted(folder.rglob("*.data.gz")):
        X = np.loadtxt(file, ndmin=2)
        name = file.name.removesuffix(".data.gz")
        truths = [np.loadtxt(f, dtype=int) for f in sorted(file.parent.glob(f"{name}.labels*.gz"))]
        if len(X) > most:
            chosen = np.sort(np.random.RandomState(0).choice(len(X), most, replace=False))
            X, truths = X[chosen], [t[chosen] for t in truths]
        best = np.full(3, -1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for truth in truths:
                k = len(np.unique(truth[truth > 0]))
                L = partitions_of(X, k)
                rules = (consensus_labels(L, k), medoid(L), average_linkage(L, k))
                best = np.maximum(best, [scored(labels, truth) for labels in rules])
        sums.append(best.tolist())
        print(f"{name:<20} consensus {best[0]:.3f}  medoid {best[1]:.3f}  average linkage {best[2]:.3f}", flush=True)
    means = np.mean(sums, axis=0)
    gains = np.array([ours - linked for ours, _, linked in sums])
    draws = np.random.default_rng(0).integers(0, len(gains), (10_000, len(gains)))
    low, high = np.quantile(gains[draws].mean(axis=1), [0.025, 0.975])
    print(f"mean of {len(sums)} sets: consensus {means[0]:.3f}  medoid {means[1]:.3f}  average linkage {means[2]:.3f}")
    print(f"gain over average linkage: {gains.mean():+.3f}, 95 % interval over sets {low:+.3f} to {high:+.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--partitions", type=int, default=50)
    parser.add_argument("--most", type=int, default=1000)
    options = parser.parse_args()
    if options.rows:
        timed(options.rows, options.partitions)
    if options.data:
        shapes(options.data, options.most)
