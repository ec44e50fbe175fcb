"""What choosing the order costs: the default beside a fit at order 4, which is what the default was.

    python benchmarks/order_cost.py             # 10,000 and 10⁶ rows
    python benchmarks/order_cost.py --rows 10000

Two kinds of data each: ten blobs, where the search ends at the first order, and three blobs with 5 % of outliers, where
it moves on. Best of three; a 4000³ float32 matrix product is timed beside every line.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from timing import product_seconds

from biclique.cluster.clustering import BicliqueSpectralClustering

Table = tuple[np.ndarray, np.ndarray, int]


def blobs(n: int) -> Table:
    X, y = make_blobs(n, 16, centers=10, cluster_std=1.5, center_box=(-5, 5), random_state=0)
    return X.astype(np.float32), y, 10


def outliers(n: int) -> Table:
    """Three blobs, and 5 % of the rows uniform over three times their range; the first rows are the blobs."""
    inside = n - n // 20
    X, y = make_blobs(inside, centers=[[0, 0], [6, 0], [3, 5]], random_state=0)
    middle, half = (X.max(axis=0) + X.min(axis=0)) / 2, np.ptp(X, axis=0) / 2
    noise = np.random.default_rng(0).uniform(middle - 3 * half, middle + 3 * half, (n // 20, 2))
    return np.concatenate([X, noise]).astype(np.float32), y, 3


def best_of_three(X: np.ndarray, k: int, **parameters: object) -> tuple[float, BicliqueSpectralClustering]:
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that landmarks are an approximation
            model = BicliqueSpectralClustering(k, random_state=0, **parameters).fit(X)
        seconds.append(time.perf_counter() - start)
    return min(seconds), model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 1_000_000])
    for n in parser.parse_args().rows:
        way = {"gram": "nystroem", "rank": 200} if n > 100_000 else {}
        for name, (X, y, k) in (("blobs", blobs(n)), ("5 % outliers", outliers(n))):
            before, fixed = best_of_three(X, k, order=4, row_normalize=False, **way)
            after, found = best_of_three(X, k, **way)
            scores = [adjusted_rand_score(y, model.labels_[: len(y)]) for model in (fixed, found)]
            print(
                f"{name}, {n} rows: order 4 {before:.2f} s (ARI {scores[0]:.3f}, {fixed.n_passes_} passes), auto "
                f"{after:.2f} s (ARI {scores[1]:.3f}, order {found.order_:g}, {found.n_passes_} passes): "
                f"{after / before:.2f} ×; product {product_seconds():.2f} s",
                flush=True,
            )
            print(f"    {found.order_reason_}")


if __name__ == "__main__":
    main()
