"""One Lloyd step of kernel k-means beside one pass over the tiles, and what the steps do to the cut.

    python benchmarks/kernel_kmeans.py [--rows 20000]

Seconds are the best of three, with a 4000³ float32 matrix product timed in the same process.
"""

from __future__ import annotations

import argparse

import numpy as np
from exact import CLUSTERS
from sklearn.datasets import make_blobs
from timing import best_of, product_seconds

from biclique.gram.tiled import TiledGram
from biclique.kernels import RBF
from biclique.kernels.gamma_rules import bandwidth
from biclique.kernels.named import make_kernel
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.lloyd import KernelKMeansProblem, kernel_kmeans, random_start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    n = parser.parse_args().rows
    X, _ = make_blobs(n, 16, centers=CLUSTERS, cluster_std=5.0, random_state=0)
    gram = TiledGram(RBF(bandwidth("auto", make_kernel("rbf", gamma=None), X, np.ones(n), 0)), X)
    cut = NormalizedCut(gram, 4)
    problem = KernelKMeansProblem(cut)
    V = np.random.default_rng(0).standard_normal((n, CLUSTERS))
    start = random_start(n, CLUSTERS, 0)
    one_pass = best_of(3, lambda: gram.matmat(V))
    steps = 5
    several = best_of(3, lambda: kernel_kmeans(problem, start, CLUSTERS, max_iter=steps))
    result = kernel_kmeans(problem, start, CLUSTERS, max_iter=steps)
    per_step = several / (result.n_iter + 1)
    print(f"n = {n}, 16 dimensions, k = {CLUSTERS}, float32 tiles, 4000³ product {product_seconds():.3f} s")
    print(
        f"one pass with {CLUSTERS} columns: {one_pass:.3f} s; one Lloyd step: {per_step:.3f} s "
        f"({per_step / one_pass:.2f} ×)"
    )
    print("cut by step:", " ".join(f"{value:.5f}" for value in result.history))


if __name__ == "__main__":
    main()
