"""The defaults beside other methods on data of many shapes: adjusted Rand index at the true number of clusters.

    python benchmarks/defaults.py --data FOLDER          # 46 public sets, 1,000 rows each, and all that is generated
    python benchmarks/defaults.py --data FOLDER --all    # every row of the public sets, ours and k-means alone
    python benchmarks/defaults.py                        # what is generated alone

FOLDER holds the batteries fcps, graves, other and sipu of "A benchmark suite for clustering algorithms" (version 1,
DOI 10.5281/zenodo.7088171; for research only, so they are not part of this project). They are scored as their
authors do: columns as they are, k = classes of a reference labelling, rows with label 0 left out of the score, the
best score over the reference labellings. No method sees labels; every one has its library's defaults and the true k.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import scale

from biclique.cluster.clustering import BicliqueSpectralClustering

BATTERIES = ("fcps", "graves", "other", "sipu")
MOST_ROWS = 1000
SLOW = "SpectralClustering, rbf"


@dataclass(frozen=True)
class Case:
    """A table with its reference labellings; label 0 is noise and not scored."""

    group: str
    name: str
    X: np.ndarray
    labellings: tuple[np.ndarray, ...]


# Generated data


def unequal(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three round clusters of 900, 80 and 20 rows."""
    random = np.random.default_rng(seed)
    sizes, centres = (900, 80, 20), ((0, 0), (6, 6), (6, -6))
    X = np.concatenate([random.normal(size=(n, 2)) + c for n, c in zip(sizes, centres, strict=True)])
    return X, np.repeat([1, 2, 3], sizes)


def outliers(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three round clusters, and 5 % of the rows uniform over three times their range; these are not scored."""
    X, y = make_blobs(950, centers=[[0, 0], [6, 0], [3, 5]], random_state=seed)
    middle, half = (X.max(axis=0) + X.min(axis=0)) / 2, np.ptp(X, axis=0) / 2
    noise = np.random.default_rng(seed).uniform(middle - 3 * half, middle + 3 * half, (50, 2))
    return np.concatenate([X, noise]), np.concatenate([y + 1, np.zeros(50, dtype=int)])


MIXES = ((950, 50), (800, 150, 50), (850, 100, 50), (700, 200, 70, 30), (500, 200, 150, 100, 50))
"""Sizes of clusters that differ much."""


def mixed(sizes: tuple[int, ...], seed: int, *, tails: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Round clusters of these sizes, deviations 0.7 to 1.3, centres at least 6 apart; with tails, those of t."""
    random = np.random.default_rng(seed)
    while True:
        centres = random.uniform(-4, 4, (len(sizes), 2)) * np.sqrt(len(sizes))
        gaps = np.linalg.norm(centres[:, None] - centres, axis=2) + 1e9 * np.eye(len(sizes))
        if gaps.min() > 6:
            break
    made = [
        (random.normal(size=(n, 2)) if tails is None else random.standard_t(tails, (n, 2))) * random.uniform(0.7, 1.3)
        for n in sizes
    ]
    X = np.concatenate([rows + centre for rows, centre in zip(made, centres, strict=True)])
    return X, np.repeat(range(1, len(sizes) + 1), sizes)


def aniso(seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(1000, random_state=170 + seed)
    return X @ np.array([[0.6, -0.6], [-0.4, 0.8]]), y + 1


def varied(seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(1000, cluster_std=[1.0, 2.5, 0.5], random_state=170 + seed)
    return X, y + 1


SHAPES: dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]] = {
    "circles": lambda s: _from_one(make_circles(1000, factor=0.5, noise=0.05, random_state=s)),
    "moons": lambda s: _from_one(make_moons(1000, noise=0.05, random_state=s)),
    "aniso": aniso,
    "varied": varied,
    "blobs": lambda s: _from_one(make_blobs(1000, random_state=8 + s)),
    "900/80/20": unequal,
    "5 % outliers": outliers,
}


def in_columns(sizes: tuple[int, ...], seed: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Round clusters of these sizes in several columns, each 6.4 deviations from every other."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    return np.random.default_rng(seed).normal(size=(len(y), columns)) + 4.5 * np.eye(columns)[y], y + 1


def _from_one(made: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return made[0], made[1] + 1


def generated() -> Iterator[Case]:
    """The comparison shapes, z-scored; unequal clusters and outliers on ten seeds as they come; four tables."""
    for name, make in SHAPES.items():
        for seed in range(3):
            X, y = make(seed)
            yield Case("comparison (z-scored)", f"{name} {seed}", scale(X), (y,))
    for seed in range(10):
        yield Case("900/80/20", f"900/80/20 as it is {seed}", *_labelled(unequal(seed)))
        yield Case("5 % outliers", f"5 % outliers as they are {seed}", *_labelled(outliers(seed)))
    for sizes in MIXES:
        for seed in range(5):
            name = f"{'/'.join(map(str, sizes))} {seed}"
            yield Case("unequal sizes", name, *_labelled(mixed(sizes, seed, tails=None)))
            yield Case("unequal sizes, heavy tails", f"{name}, t of 3", *_labelled(mixed(sizes, seed, tails=3)))
            for columns in (5, 10, 20):
                where = f"unequal sizes, {columns} columns"
                yield Case(where, f"{name}, {columns} columns", *_labelled(in_columns(sizes, seed, columns)))
    for name, load, scaled in (
        ("iris", load_iris, False),
        ("digits", load_digits, False),
        ("wine, z-scored", load_wine, True),
        ("breast cancer, z-scored", load_breast_cancer, True),
    ):
        X, y = load(return_X_y=True)
        yield Case("tables", name, scale(X) if scaled else X, (y + 1,))


def _labelled(made: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    return made[0], (made[1],)


def public(folder: Path, most: int | None) -> Iterator[Case]:
    """The public sets, with at most so many rows, drawn with seed 0."""
    if not any((folder / battery).is_dir() for battery in BATTERIES):
        raise SystemExit(f"{folder} has none of the folders {', '.join(BATTERIES)}: give the folder that holds them.")
    for battery in BATTERIES:
        for file in sorted((folder / battery).glob("*.data.gz")):
            X = np.loadtxt(file, ndmin=2)
            name = file.name.removesuffix(".data.gz")
            labellings = [
                np.loadtxt(other, dtype=int) for other in sorted((folder / battery).glob(f"{name}.labels*.gz"))
            ]
            if most is not None and len(X) > most:
                rows = np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))
                X, labellings = X[rows], [labels[rows] for labels in labellings]
            yield Case("public", f"{battery}/{name}", X, tuple(labellings))


# Methods

Method = Callable[[np.ndarray, int], np.ndarray]

OURS: dict[str, Method] = {"biclique": lambda X, k: BicliqueSpectralClustering(k, random_state=0).fit_predict(X)}
KMEANS: dict[str, Method] = {"k-means": lambda X, k: KMeans(k, n_init=10, random_state=0).fit_predict(X)}
PEERS: dict[str, Method] = {
    "biclique, neighbours": lambda X, k: BicliqueSpectralClustering(
        k, affinity="nearest_neighbors", random_state=0
    ).fit_predict(X),
    "Gaussian mixture": lambda X, k: GaussianMixture(k, n_init=3, random_state=0).fit_predict(X),
    "SpectralClustering, rbf": lambda X, k: SpectralClustering(k, random_state=0).fit_predict(X),
    "SpectralClustering, neighbours": lambda X, k: SpectralClustering(
        k, affinity="nearest_neighbors", random_state=0
    ).fit_predict(X),
    "HDBSCAN (own k)": lambda X, k: HDBSCAN(copy=True).fit_predict(X),  # noqa: ARG005
}


def score(case: Case, method: Method) -> float:
    """The best adjusted Rand index over the reference labellings, each with its own k."""
    found: dict[int, np.ndarray] = {}
    best = -1.0
    for labels in case.labellings:
        k = len(np.unique(labels[labels > 0]))
        if k not in found:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[k] = method(case.X, k)
        best = max(best, float(adjusted_rand_score(labels[labels > 0], found[k][labels > 0])))
    return best


def run(cases: list[Case], methods: dict[str, Method], *, quiet: bool) -> None:
    scores: dict[tuple[str, str], list[float]] = {}
    seconds = dict.fromkeys(methods, 0.0)
    width = max(len(case.name) for case in cases)
    for case in cases:
        line = []
        for name, method in methods.items():
            start = time.perf_counter()
            # Its gamma of 1 leaves no two rows of large units similar, and its solver then takes minutes.
            slow = name == SLOW and (case.group == "public" or len(case.X) > MOST_ROWS)
            value = np.nan if slow else score(case, method)
            seconds[name] += time.perf_counter() - start
            scores.setdefault((case.group, name), []).append(value)
            line.append(f"{value:6.3f}")
        if not quiet:
            print(f"{case.name:{width}s} {len(case.X):6d} " + " ".join(line), flush=True)
    print("\n| mean adjusted Rand index | sets | " + " | ".join(methods) + " |")
    print("| --- | ---: |" + " ---: |" * len(methods))
    for group in dict.fromkeys(case.group for case in cases):
        measured = {name: np.array(scores[group, name])[~np.isnan(scores[group, name])] for name in methods}
        means = " | ".join(f"{m.mean():.3f}" if len(m) else "" for m in measured.values())
        print(f"| {group} | {len(scores[group, next(iter(methods))])} | {means} |")
        lowest = " | ".join(f"{m.min():.3f}" if len(m) else "" for m in measured.values())
        print(f"| {group}, lowest | | {lowest} |")
    print("| seconds, all sets | | " + " | ".join(f"{seconds[name]:.1f}" for name in methods) + " |")
    if "k-means" in methods:
        for name in methods:
            lost = [
                (b - a, case.name)
                for group in dict.fromkeys(case.group for case in cases)
                for a, b, case in zip(
                    scores[group, name],
                    scores[group, "k-means"],
                    [case for case in cases if case.group == group],
                    strict=True,
                )
                if a < b - 0.02
            ]
            worst = ", ".join(f"{case} by {gap:.2f}" for gap, case in sorted(lost, reverse=True)[:5])
            print(f"{name}: worse than k-means by more than 0.02 on {len(lost)} of {len(cases)} sets ({worst})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder with the batteries")
    parser.add_argument("--all", action="store_true", help="every row of the public sets, ours and k-means alone")
    parser.add_argument("--ours", action="store_true", help="no method but ours and k-means")
    parser.add_argument("--quiet", action="store_true", help="the means alone")
    options = parser.parse_args()
    if options.all and options.data is None:
        parser.error("--all needs --data")
    cases = [] if options.all else list(generated())
    if options.data is not None:
        cases += public(options.data, None if options.all else MOST_ROWS)
    few = options.all or options.ours
    run(cases, {**OURS, **KMEANS, **({} if few else PEERS)}, quiet=options.quiet)


if __name__ == "__main__":
    main()
