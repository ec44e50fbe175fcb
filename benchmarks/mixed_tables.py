"""Tables of numbers and categories, with gaps: Gower's distance beside one-hot columns, and k-prototypes.

    python benchmarks/mixed_tables.py [--rows 400] [--seeds 10]      the four methods: adjusted Rand index and seconds
    python benchmarks/mixed_tables.py --tiles [--rows 10000]        one pass over tiles of gower and of rbf

Every table has four groups in four columns of numbers, whose centres are normal and whose spread is ``--spread``. A
category has four levels: a row has that of its group with probability 0.6, else any. Gaps are anywhere.

- gower metric: the default with ``kernel_params={"metric": Gower(…)}``, which leaves gaps out.
- gower kernel: ``affinity=Gower(…)``, which does so too.
- one-hot: numbers filled with the mean and scaled to variance 1; one column of 1/√2 for every level, zeros for a gap,
  so that one mismatch counts 1; the default.
- k-prototypes (Huang 1998), written here: means of the scaled numbers and modes of the categories, a mismatch counts
  half the mean standard deviation; gaps filled with mean and mode; the best of 10 starts.

Labels of the groups are used for the index alone. Indices and seconds are means over the seeds. Seconds are those of
the CPU, all threads together, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.gram.tiled import TiledGram
from biclique.kernels import RBF, Columns, Gower, Kernel
from biclique.kernels.gamma_rules import bandwidth
from biclique.kernels.named import make_kernel

GROUPS, NUMBERS, LEVELS, KEPT = 4, 4, 4, 0.6
CATEGORIES = (2, 6, 12)
GAPS = (0.0, 0.1, 0.3)


def table(n: int, categories: int, gaps: float, spread: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, a mask of the categories, and the groups."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % GROUPS
    numbers = random.normal(size=(GROUPS, NUMBERS))[y] + random.normal(0, spread, (n, NUMBERS))
    own = random.integers(0, LEVELS, (GROUPS, categories))[y]
    codes = np.where(random.random(own.shape) < KEPT, own, random.integers(0, LEVELS, own.shape))
    X = np.column_stack([numbers, codes]).astype(float)
    X[random.random(X.shape) < gaps] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 0.0  # a row without any value has no place in any method
    return X, np.arange(X.shape[1]) >= NUMBERS, y


def by_gower_metric(X: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    nearest = {"metric": Gower(mask)}
    return np.asarray(BicliqueSpectralClustering(GROUPS, kernel_params=nearest, random_state=seed).fit(X).labels_)


def by_gower_kernel(X: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    model = BicliqueSpectralClustering(GROUPS, affinity=Gower(mask), random_state=seed)
    return np.asarray(model.fit(X).labels_)


def scaled_numbers(X: np.ndarray) -> np.ndarray:
    """Gaps filled with the mean; mean 0, variance 1."""
    mean, deviation = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    return np.nan_to_num((X - mean) / deviation)


def by_one_hot(X: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    levels = [(X[:, [j]] == np.unique(X[~np.isnan(X[:, j]), j])) / np.sqrt(2) for j in np.flatnonzero(mask)]
    rows = np.column_stack([scaled_numbers(X[:, ~mask]), *levels])
    return np.asarray(BicliqueSpectralClustering(GROUPS, random_state=seed).fit(rows).labels_)


def by_prototypes(X: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    numbers, codes = scaled_numbers(X[:, ~mask]), X[:, mask].copy()
    for column in codes.T:
        column[np.isnan(column)] = mode(column[~np.isnan(column)])
    found = [one_start(numbers, codes, 0.5 * float(numbers.std(axis=0).mean()), random) for _ in range(10)]
    return min(found, key=lambda start: start[0])[1]


def mode(values: np.ndarray) -> float:
    levels, counts = np.unique(values, return_counts=True)
    return float(levels[counts.argmax()])


def one_start(
    numbers: np.ndarray, codes: np.ndarray, weight: float, random: np.random.Generator
) -> tuple[float, np.ndarray]:
    """Lloyd steps from rows as prototypes; the cost and the labels."""
    first = random.choice(len(numbers), GROUPS, replace=False)
    means, modes = numbers[first], codes[first]
    labels = np.full(len(numbers), -1)
    for _ in range(100):
        cost = ((numbers[:, None] - means) ** 2).sum(axis=2) + weight * (codes[:, None] != modes).sum(axis=2)
        last, labels = labels, cost.argmin(axis=1)
        if (labels == last).all():
            break
        for group in np.unique(labels):
            means[group] = numbers[labels == group].mean(axis=0)
            modes[group] = [mode(column) for column in codes[labels == group].T]
    return float(cost.min(axis=1).sum()), labels


METHODS: dict[str, Callable[[np.ndarray, np.ndarray, int], np.ndarray]] = {
    "gower metric": by_gower_metric,
    "gower kernel": by_gower_kernel,
    "one-hot": by_one_hot,
    "k-prototypes": by_prototypes,
}


def compare(n: int, seeds: int, spread: float) -> None:
    print(f"{n} rows, {GROUPS} groups, {NUMBERS} numbers of spread {spread:g}, {seeds} seeds\n")
    print("| categories | gaps | " + " | ".join(METHODS) + " | " + " | ".join(f"{m}, CPU s" for m in METHODS) + " |")
    print("| --- " * (2 + 2 * len(METHODS)) + "|")
    for categories in CATEGORIES:
        for gaps in GAPS:
            index, seconds = np.zeros(len(METHODS)), np.zeros(len(METHODS))
            for seed in range(seeds):
                X, mask, y = table(n, categories, gaps, spread, seed)
                for place, method in enumerate(METHODS.values()):
                    start = time.process_time()
                    labels = method(X, mask, seed)
                    seconds[place] += time.process_time() - start
                    index[place] += adjusted_rand_score(y, labels)
            cells = [*(f"{x:.2f}" for x in index / seeds), *(f"{x:.2f}" for x in seconds / seeds)]
            print(f"| {categories} | {gaps:.0%} | " + " | ".join(cells) + " |", flush=True)


def time_tiles(n: int) -> None:
    """The best of three passes with four vectors, one thread, float32 tiles; and how far rows of K are from float64."""
    V = np.random.default_rng(0).standard_normal((n, 4))
    print(f"one pass over float32 tiles of {n} rows, 20 columns, 1 thread, best of 3\n")
    print("| tiles | CPU s | times rbf | error of the product |\n| --- | --- | --- | --- |")
    rbf = 0.0
    for name, categories, gaps in (
        ("rbf, 20 numbers", 0, 0.0),
        ("gower, 20 numbers", 0, 0.0),
        ("gower, 10 numbers and 10 categories", 10, 0.0),
        ("gower, 20 categories", 20, 0.0),
        ("gower, 10 and 10, 10 % gaps", 10, 0.1),
    ):
        random = np.random.default_rng(0)
        X = np.column_stack([random.normal(size=(n, 20 - categories)), random.integers(0, 5, (n, categories))])
        X[random.random(X.shape) < gaps] = np.nan
        if name.startswith("rbf"):
            kernel: Kernel = RBF(bandwidth("auto", make_kernel("rbf", gamma=None), X, np.ones(n), 0))
        else:
            kernel = Gower(1.0, Columns.of(X, np.arange(20) >= 20 - categories))
        gram = TiledGram(kernel, X, n_jobs=1)
        seconds = []
        for _ in range(3):
            start = time.process_time()
            product = gram.matmat(V)
            seconds.append(time.process_time() - start)
        exact = kernel.block(X[:50], X) @ V
        error = float(np.abs(product[:50] - exact).max() / (kernel.block(X[:50], X) @ np.abs(V)).max())
        rbf = rbf or min(seconds)
        print(f"| {name} | {min(seconds):.2f} | {min(seconds) / rbf:.1f} | {error:.0e} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--spread", type=float, default=0.7)
    parser.add_argument("--tiles", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.tiles:
        time_tiles(options.rows or 10_000)
    else:
        compare(options.rows or 400, options.seeds, options.spread)


if __name__ == "__main__":
    main()
