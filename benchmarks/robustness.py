"""Outliers: what orders, the selection, k-means and HDBSCAN make of clusters with 0, 1, 5 and 10 % of noise.

    python benchmarks/robustness.py                                     # the table
    python benchmarks/robustness.py --picture docs/images/robustness.png

Three blobs of unequal size, and two moons, 600 rows each; outliers are uniform in a square three times as wide as the
data. Numbers are adjusted Rand indices of the rows that are no outliers, means over ``--seeds`` draws; noise of HDBSCAN
counts as a cluster of its own. All methods but HDBSCAN know the number of clusters.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering

SHARES = (0.0, 0.01, 0.05, 0.10)
Labels = Callable[[np.ndarray, int], np.ndarray]


def blobs(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    X, y = make_blobs([380, 160, 60], centers=[(0, 0), (6, 0), (2, 6)], random_state=seed)
    return X, y, 3


def moons(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    X, y = make_moons(600, noise=0.06, random_state=seed)
    return X, y, 2


DATA = {"blobs": blobs, "moons": moons}


def ours(**options: object) -> Labels:
    return lambda X, k: BicliqueSpectralClustering(k, random_state=0, **options).fit(X).labels_


METHODS: dict[str, Labels] = {
    "order 2": ours(order=2),
    "order 4": ours(order=4),
    "auto": ours(),
    "select": ours(affinity="select", gamma="select", order="select"),
    "k-means": lambda X, k: KMeans(k, n_init=10, random_state=0).fit_predict(X),
    "HDBSCAN": lambda X, k: HDBSCAN(copy=True).fit_predict(X),  # noqa: ARG005
}


def with_outliers(X: np.ndarray, share: float, seed: int) -> np.ndarray:
    """The rows, and below them uniform ones that make up a share of all."""
    random = np.random.default_rng(seed)
    count = round(len(X) * share / (1 - share))
    low, high = X.min(axis=0), X.max(axis=0)
    return np.concatenate([X, random.uniform(2 * low - high, 2 * high - low, size=(count, 2))])


def draw(path: Path) -> None:
    """Every method on both data sets with 5 % of outliers."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    colours = np.array(["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"])
    figure, panels = plt.subplots(len(DATA), len(METHODS), figsize=(13, 4.6), constrained_layout=True)
    for row, make in zip(panels, DATA.values(), strict=True):
        X, y, k = make(0)
        rows = with_outliers(X, 0.05, 0)
        for panel, (name, method) in zip(row, METHODS.items(), strict=True):
            labels = method(rows, k)
            score = adjusted_rand_score(y, labels[: len(X)])
            panel.scatter(*rows.T, s=4, c=np.where(labels < 0, "#999999", colours[labels % len(colours)]))
            panel.set_title(f"{name}: {score:.2f}", fontsize=10)
            panel.set_xticks([])
            panel.set_yticks([])
    figure.savefig(path, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.picture is not None:
        draw(options.picture)
        return
    print("| data, outliers | " + " | ".join(METHODS) + " |")
    print("| --- |" + " ---: |" * len(METHODS))
    for name, make in DATA.items():
        for share in SHARES:
            scores = []
            for seed in range(options.seeds):
                X, y, k = make(seed)
                rows = with_outliers(X, share, seed)
                scores.append([adjusted_rand_score(y, method(rows, k)[: len(X)]) for method in METHODS.values()])
            means = " | ".join(f"{mean:.3f}" for mean in np.mean(scores, axis=0))
            print(f"| {name}, {share:.0%} | {means} |", flush=True)


if __name__ == "__main__":
    main()
