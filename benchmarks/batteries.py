"""The data of defaults.py, robustness.py and selection.py, and how it is scored.

- `generated` and `public`: 170 generated and 46 public sets, 216 in all, which judge the default.
- `few_generated`: 14 of the generated sets.
- `zero_one_tables`: 120 small tables with columns of 0 and 1.
- `forty_tables`: 40 generated tables, written before any method was run on them.
- `MANY_ROWS`: sets of any number of rows. Their rows are in random order, so the first rows are a smaller draw.

The public sets are the batteries fcps, graves, other and sipu of "A benchmark suite for clustering algorithms"
(version 1, DOI 10.5281/zenodo.7088171; for research only, so they are not part of this project). They are scored as
their authors do: columns as they are, k = classes of a reference labelling, rows with label 0 left out of the score,
the best score over the reference labellings.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

from biclique import BicliqueSpectralClustering

BATTERIES = ("fcps", "graves", "other", "sipu")
MOST_ROWS = 1000
MIXES = ((950, 50), (800, 150, 50), (850, 100, 50), (700, 200, 70, 30), (500, 200, 150, 100, 50))
"""Sizes of clusters that differ much."""

Made = tuple[np.ndarray, np.ndarray]
"""Rows, and their clusters from 1; 0 is noise."""
Method = Callable[[np.ndarray, int], np.ndarray]
"""Labels of rows, for a number of clusters."""


@dataclass(frozen=True)
class Case:
    """A table with its reference labellings; label 0 is noise and not scored."""

    group: str
    name: str
    X: np.ndarray
    labellings: tuple[np.ndarray, ...]

    def at_most(self, rows: int | None) -> Case:
        """The same, or so many of its rows, drawn with seed 0."""
        if rows is None or len(self.X) <= rows:
            return self
        drawn = np.sort(np.random.default_rng(0).choice(len(self.X), rows, replace=False))
        return replace(self, X=self.X[drawn], labellings=tuple(labels[drawn] for labels in self.labellings))

    @property
    def counts(self) -> list[int]:
        """The number of clusters of each labelling."""
        return [len(np.unique(labels[labels > 0])) for labels in self.labellings]


# Generators: a seed gives rows and clusters


def unequal(seed: int, sizes: tuple[int, ...] = (900, 80, 20)) -> Made:
    """Three round clusters of these sizes in two columns."""
    random = np.random.default_rng(seed)
    centres = ((0, 0), (6, 6), (6, -6))
    X = np.concatenate([random.normal(size=(n, 2)) + c for n, c in zip(sizes, centres, strict=True)])
    return X, np.repeat([1, 2, 3], sizes)


def outliers(seed: int) -> Made:
    """Three round clusters, and 5 % of the rows uniform over three times their range; these are not scored."""
    X, y = make_blobs(950, centers=[[0, 0], [6, 0], [3, 5]], random_state=seed)
    return with_noise((X, y + 1), 50, seed, wide=3)


def with_noise(made: Made, count: int, seed: int, wide: float = 1) -> Made:
    """The same, and rows that are uniform over so many times the range of the others and are not scored."""
    X, y = made
    middle, half = (X.max(axis=0) + X.min(axis=0)) / 2, np.ptp(X, axis=0) / 2
    noise = np.random.default_rng(seed).uniform(middle - wide * half, middle + wide * half, (count, X.shape[1]))
    return np.concatenate([X, noise]), np.concatenate([y, np.zeros(count, dtype=int)])


def mixed(sizes: tuple[int, ...], seed: int, *, tails: float | None) -> Made:
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


def in_columns(sizes: tuple[int, ...], seed: int, columns: int, shift: float = 4.5) -> Made:
    """Round clusters of these sizes in several columns, each √2 · shift deviations from every other."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    return np.random.default_rng(seed).normal(size=(len(y), columns)) + shift * np.eye(columns)[y], y + 1


def on_a_line(sizes: tuple[int, ...], seed: int, places: tuple[float, ...]) -> Made:
    """Normal clusters of deviation 1 at these places of one column."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    return (np.random.default_rng(seed).normal(size=len(y)) + np.array(places)[y])[:, None], y + 1


def bars(count: int, seed: int, length: float, gap: float = 2) -> Made:
    """Parallel uniform bars of 300 rows each, 1 wide, with a gap between them."""
    y = np.repeat(np.arange(count), 300)
    X = np.random.default_rng(seed).uniform(0, (length, 1), (len(y), 2))
    return X + np.column_stack([np.zeros(len(y)), (1 + gap) * y]), y + 1


def rings(radii: tuple[float, ...], seed: int, noise: float) -> Made:
    """Circles of these radii, 250 rows each."""
    random = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(radii)), 250)
    angle = random.uniform(0, 2 * np.pi, len(y))
    circle = np.array(radii)[y, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return circle + random.normal(0, noise, (len(y), 2)), y + 1


def spirals(arms: int, seed: int, noise: float) -> Made:
    """Arms of a spiral, 300 rows each, three quarters of a turn."""
    random = np.random.default_rng(seed)
    y = np.repeat(np.arange(arms), 300)
    way = np.sqrt(random.uniform(0.05, 1, len(y)))
    angle = 1.5 * np.pi * way + 2 * np.pi * y / arms
    spiral = 5 * way[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return spiral + random.normal(0, noise, (len(y), 2)), y + 1


def moons(seed: int, noise: float, n: int = 1000) -> Made:
    return _from_one(make_moons(n, noise=noise, random_state=seed))


def blobs(n: int, seed: int, k: int, columns: int = 2, spread: float = 1.0) -> Made:
    return _from_one(make_blobs(n, columns, centers=k, cluster_std=spread, random_state=seed))


def skewed(seed: int, factors: tuple[float, ...], columns: int) -> Made:
    """Log-normal clusters of 300 rows; each is another multiple of the same."""
    y = np.repeat(np.arange(len(factors)), 300)
    rows = np.random.default_rng(seed).lognormal(0, 0.5, (len(y), columns))
    return np.array(factors)[y, None] * rows, y + 1


def with_columns(made: Made, count: int, seed: int) -> Made:
    """The same, z-scored, and columns of normal noise."""
    X, y = made
    return np.column_stack([scale(X), np.random.default_rng(seed).normal(size=(len(X), count))]), y


def stretched(made: Made, seed: int) -> Made:
    """The same after a random linear map, whose singular values are from 1 to 4."""
    X, y = made
    random, d = np.random.default_rng(seed), X.shape[1]
    left, right = (np.linalg.qr(random.normal(size=(d, d)))[0] for _ in range(2))
    return X @ (left * np.geomspace(1, 4, d)) @ right, y


def inside(seed: int) -> Made:
    """A dense cluster of 300 rows inside a loose one of 700 rows."""
    random = np.random.default_rng(seed)
    X = np.concatenate([random.normal(0, 4, (700, 2)), random.normal(1, 0.3, (300, 2))])
    return X, np.repeat([1, 2], [700, 300])


def categories(n: int, seed: int, k: int, numbers: int, columns: int, levels: int, kept: float) -> Made:
    """Numbers with normal centres and deviations of 0.5, then 0/1 columns: one for two levels, else one for each level.

    A row has the level of its cluster in each category with this probability, else any level.
    """
    random = np.random.default_rng(seed)
    y = np.arange(n) % k
    values = random.normal(size=(k, numbers))[y] + random.normal(0, 0.5, (n, numbers))
    own = random.integers(0, levels, (k, columns))[y]
    codes = np.where(random.random(own.shape) < kept, own, random.integers(0, levels, own.shape))
    hot = codes if levels == 2 else np.eye(levels)[codes].reshape(n, -1)
    return np.column_stack([values, hot]), y + 1


def aniso(seed: int) -> Made:
    X, y = make_blobs(1000, random_state=170 + seed)
    return X @ np.array([[0.6, -0.6], [-0.4, 0.8]]), y + 1


def _from_one(made: Made) -> Made:
    return made[0], made[1] + 1


def _shuffled(made: Made) -> Made:
    order = np.random.default_rng(0).permutation(len(made[0]))
    return made[0][order], made[1][order]


def _shares(n: int) -> tuple[int, int, int]:
    """90, 8 and 2 % of so many rows."""
    return n - n * 8 // 100 - n * 2 // 100, n * 8 // 100, n * 2 // 100


SHAPES: dict[str, Callable[[int], Made]] = {
    "circles": lambda s: _from_one(make_circles(1000, factor=0.5, noise=0.05, random_state=s)),
    "moons": lambda s: moons(s, 0.05),
    "aniso": aniso,
    "varied": lambda s: _from_one(make_blobs(1000, cluster_std=[1.0, 2.5, 0.5], random_state=170 + s)),
    "blobs": lambda s: blobs(1000, 8 + s, 3),
    "900/80/20": unequal,
    "5 % outliers": outliers,
}

MANY_ROWS: dict[str, Callable[[int], Made]] = {
    "five blobs apart": lambda n: blobs(n, 1, 5, spread=0.5),
    "five blobs": lambda n: blobs(n, 1, 5),
    "five blobs that overlap": lambda n: blobs(n, 0, 5),
    "moons, noise 0.1": lambda n: moons(0, 0.1, n),
    "moons, noise 0.15": lambda n: moons(0, 0.15, n),
    "90/8/2 %, 2 columns": lambda n: _shuffled(unequal(0, _shares(n))),
    "90/8/2 %, 10 columns": lambda n: _shuffled(in_columns(_shares(n), 0, 10)),
}


# Batteries


def generated() -> Iterator[Case]:
    """The comparison shapes, z-scored; unequal clusters and outliers on ten seeds as they come; four tables."""
    for name, make in SHAPES.items():
        for seed in range(3):
            X, y = make(seed)
            yield Case("comparison (z-scored)", f"{name} {seed}", scale(X), (y,))
    for seed in range(10):
        yield _case("900/80/20", f"900/80/20 as it is {seed}", unequal(seed))
        yield _case("5 % outliers", f"5 % outliers as they are {seed}", outliers(seed))
    for sizes in MIXES:
        for seed in range(5):
            name = f"{'/'.join(map(str, sizes))} {seed}"
            yield _case("unequal sizes", name, mixed(sizes, seed, tails=None))
            yield _case("unequal sizes, heavy tails", f"{name}, t of 3", mixed(sizes, seed, tails=3))
            for columns in (5, 10, 20):
                made = in_columns(sizes, seed, columns)
                yield _case(f"unequal sizes, {columns} columns", f"{name}, {columns} columns", made)
    for name, load, scaled in (
        ("iris", load_iris, False),
        ("digits", load_digits, False),
        ("wine, z-scored", load_wine, True),
        ("breast cancer, z-scored", load_breast_cancer, True),
    ):
        X, y = load(return_X_y=True)
        yield Case("tables", name, scale(X) if scaled else X, (y + 1,))


def few_generated() -> list[Case]:
    """The seven comparison shapes with seed 0, and the first set of every other family but tables: 14 sets."""
    found: list[Case] = []
    for case in generated():
        new = case.group not in {other.group for other in found}
        if case.group != "tables" and (new or case.name in {f"{name} 0" for name in SHAPES}):
            found.append(case)
    return found


def zero_one_tables() -> Iterator[Case]:
    """120 tables of 60 to 400 rows: 2 to 5 clusters, 2 to 5 columns of numbers and 1 to 4 columns of 0 and 1."""
    for seed in range(120):
        n, k, numbers, columns = np.random.default_rng([seed, 1]).integers((60, 2, 2, 1), (401, 6, 6, 5)).tolist()
        yield _case("0/1 columns", f"0/1 columns {seed}", categories(n, seed, k, numbers, columns, 2, 0.6))


FORTY_TABLES: dict[str, dict[str, Callable[[int], Made]]] = {
    "one column": {
        "3 equal": lambda s: on_a_line((300, 300, 300), s, (0, 5, 10)),
        "900/80/20": lambda s: on_a_line((900, 80, 20), s, (0, 6, 12)),
        "5 unequal": lambda s: on_a_line((400, 100, 200, 50, 250), s, (0, 5, 11, 17, 22)),
        "skewed": lambda s: skewed(s, (1, 8), 1),
    },
    "many columns": {
        "5 in 30": lambda s: in_columns((120,) * 5, s, 30),
        "4 in 100": lambda s: in_columns((150,) * 4, s, 100),
        "2 in 200": lambda s: in_columns((200, 100), s, 200),
        "3 in 500": lambda s: in_columns((100,) * 3, s, 500, 6),
    },
    "overlap": {
        "2 equal": lambda s: in_columns((500, 500), s, 2, 2.2),
        "900/100": lambda s: in_columns((900, 100), s, 2, 2.2),
        "4 in 10": lambda s: in_columns((200,) * 4, s, 10, 2.5),
        "3 stretched": lambda s: stretched(in_columns((300,) * 3, s, 3, 3), s),
    },
    "unequal sizes": {
        "980/10/10": lambda s: unequal(s, (980, 10, 10)),
        "850/100/50 in 15": lambda s: in_columns((850, 100, 50), s, 15, 4),
        "6 sizes": lambda s: mixed((480, 240, 120, 80, 50, 30), s, tails=None),
        "inside": inside,
    },
    "bars": {
        "2 of 20:1": lambda s: bars(2, s, 20),
        "3 of 10:1": lambda s: bars(3, s, 10, 1),
        "4 of 30:1": lambda s: bars(4, s, 30),
        "3 oblique": lambda s: stretched(bars(3, s, 15), s),
    },
    "noise columns": {
        "moons + 4": lambda s: with_columns(moons(s, 0.08), 4, s),
        "4 blobs + 8": lambda s: with_columns(blobs(800, s, 4), 8, s),
        "rings + 1": lambda s: with_columns(rings((1, 2.5), s, 0.1), 1, s),
        "3 in 5 + 20": lambda s: with_columns(in_columns((250,) * 3, s, 5), 20, s),
    },
    "heavy tails": {
        "t of 2": lambda s: mixed((400, 300, 300), s, tails=2),
        "t of 1.5": lambda s: mixed((500, 500), s, tails=1.5),
        "t of 3, unequal": lambda s: mixed((700, 150, 100, 50), s, tails=3),
        "log-normal": lambda s: skewed(s, (1, 5, 25), 4),
    },
    "curves": {
        "3 rings": lambda s: rings((1, 2, 3), s, 0.1),
        "moons, noise 0.15": lambda s: moons(s, 0.15),
        "2 spirals": lambda s: spirals(2, s, 0.15),
        "3 spirals": lambda s: spirals(3, s, 0.25),
    },
    "noise points": {
        "moons + 10 %": lambda s: with_noise(moons(s, 0.06, 900), 100, s),
        "3 blobs + 20 %": lambda s: with_noise(in_columns((300, 300, 200), s, 3), 200, s),
        "rings + 5 %": lambda s: with_noise(rings((1, 3), s, 0.1), 25, s, wide=1.5),
        "5 blobs + 10 %": lambda s: with_noise(mixed((180,) * 5, s, tails=None), 100, s, wide=1.5),
    },
    "categories": {
        "12 alone": lambda s: categories(600, s, 4, 0, 12, 4, 0.7),
        "4 numbers + 4": lambda s: categories(600, s, 4, 4, 4, 3, 0.7),
        "6 numbers + 2": lambda s: categories(500, s, 3, 6, 2, 5, 0.6),
        "2 numbers + 10 of 0/1": lambda s: categories(700, s, 3, 2, 10, 2, 0.6),
    },
}
"""Ten kinds of four tables each. They were not changed after the first score: do not tune them."""


def forty_tables() -> Iterator[Case]:
    """The 40 tables, each with a seed of its own."""
    seed = 100
    for kind, tables in FORTY_TABLES.items():
        for name, make in tables.items():
            yield _case(kind, f"{kind}: {name}", make(seed))
            seed += 1


def _case(group: str, name: str, made: Made) -> Case:
    return Case(group, name, made[0], (made[1],))


def public(folder: Path, most: int | None) -> Iterator[Case]:
    """The public sets, with at most so many rows, drawn with seed 0. They are in the folder or in its `shapes`."""
    folder = folder / "shapes" if (folder / "shapes").is_dir() else folder
    if not any((folder / battery).is_dir() for battery in BATTERIES):
        raise SystemExit(f"{folder} has none of the folders {', '.join(BATTERIES)}: give the folder that holds them.")
    for battery in BATTERIES:
        for file in sorted((folder / battery).glob("*.data.gz")):
            name = file.name.removesuffix(".data.gz")
            others = sorted((folder / battery).glob(f"{name}.labels*.gz"))
            labellings = tuple(np.loadtxt(other, dtype=int) for other in others)
            yield Case("public", f"{battery}/{name}", np.loadtxt(file, ndmin=2), labellings).at_most(most)


# Methods and scores


def ours(X: np.ndarray, k: int, random_state: int = 0, **options: object) -> np.ndarray:
    """Labels of the default, or with options."""
    return BicliqueSpectralClustering(k, random_state=random_state, **options).fit(X).labels_


def kmeans(X: np.ndarray, k: int) -> np.ndarray:
    """Labels of k-means with ten starts."""
    return KMeans(k, n_init=10, random_state=0).fit_predict(X)


def score(case: Case, method: Method) -> float:
    """The best adjusted Rand index over the reference labellings, each with its own k."""
    found: dict[int, np.ndarray] = {}
    best = -1.0
    for labels, k in zip(case.labellings, case.counts, strict=True):
        if k not in found:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[k] = method(case.X, k)
        best = max(best, float(adjusted_rand_score(labels[labels > 0], found[k][labels > 0])))
    return best


def print_scores(cases: list[Case], methods: dict[str, Method], *, quiet: bool = False) -> np.ndarray:
    """Prints a line a set, then means by family and the seconds of every method; returns scores, sets × methods."""
    scores, seconds = np.empty((len(cases), len(methods))), np.zeros(len(methods))
    width = max(len(case.name) for case in cases)
    for i, case in enumerate(cases):
        for j, method in enumerate(methods.values()):
            start = time.perf_counter()
            scores[i, j] = score(case, method)
            seconds[j] += time.perf_counter() - start
        if not quiet:
            print(f"{case.name:{width}s} {len(case.X):6d} " + " ".join(f"{x:6.3f}" for x in scores[i]), flush=True)
    groups = np.array([case.group for case in cases])
    families = {group: groups == group for group in dict.fromkeys(groups.tolist())}
    print("\n| mean adjusted Rand index | sets | " + " | ".join(methods) + " |")
    print("| --- | ---: |" + " ---: |" * len(methods))
    for name, rows in {**families, "all sets": np.ones(len(cases), dtype=bool)}.items():
        print(f"| {name} | {rows.sum()} | " + " | ".join(f"{mean:.3f}" for mean in scores[rows].mean(axis=0)) + " |")
    print("| seconds, all sets | | " + " | ".join(f"{s:.1f}" for s in seconds) + " |\n", flush=True)
    return scores
