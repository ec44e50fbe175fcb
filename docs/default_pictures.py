"""Draw the pictures of docs/default.md, or print its tables.

    python docs/default_pictures.py [neighbors] [landmarks]
    python docs/default_pictures.py --floor    # the least weight of a hyperedge
    python docs/default_pictures.py --loses    # where k-means is better
    python docs/default_pictures.py --starts   # starts of k-means

The sets of points are those of benchmarks/batteries.py that need no folder of data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from biclique import BicliqueSpectralClustering
from biclique.exceptions import DegreeError
from biclique.features import neighborhoods

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "benchmarks"))
from batteries import (  # noqa: E402
    Case,
    Made,
    generated,
    in_columns,
    kmeans,
    moons,
    on_a_line,
    ours,
    rings,
    score,
    unequal,
)

COLOURS = np.array(["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#000000"])
MARKERS = "os^vD"
FLOORS = {"none": 0.0, "1e-300": 1e-300, "2⁻⁵² (the default)": 2.0**-52, "1e-8": 1e-8, "1e-4": 1e-4}


def normal_bars(seed: int) -> Made:
    """Two normal clusters of 300 rows each, long in the first column and apart in the second."""
    y = np.repeat([0, 1], 300)
    X = np.random.default_rng(seed).normal(size=(600, 2)) * np.array([20, 1])
    return X + np.column_stack([np.zeros(600), 6 * y]), y + 1


LOSES: dict[str, Callable[[int], Made]] = {
    "one column, 900/80/20 rows, 6 deviations apart": lambda s: on_a_line((900, 80, 20), s, (0, 6, 12)),
    "3 × 100 rows in 500 columns, 6.4 deviations apart": lambda s: in_columns((100,) * 3, s, 500),
    "40,000 rows, one cluster of 0.2 %": lambda s: unequal(s, (39_120, 800, 80)),
    "2 × 300 rows in bars, deviations 20 and 1, 6 apart": normal_bars,
    "900/100 rows that touch, 3 deviations apart": lambda s: in_columns((900, 100), s, 2, 3 / np.sqrt(2)),
}


def mixture(X: np.ndarray, k: int) -> np.ndarray:
    return GaussianMixture(k, random_state=0).fit_predict(X)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def save(figure: plt.Figure, name: str) -> None:
    figure.savefig(HERE / "images" / f"{name}.png", dpi=90)
    plt.close(figure)


def bare(panel: plt.Axes, title: str) -> None:
    panel.set_title(title, fontsize=10)
    panel.set(xticks=[], yticks=[], aspect="equal")


def show_fits(
    panels: list[plt.Axes], X: np.ndarray, y: np.ndarray, name: str, values: tuple, **options: object
) -> None:
    """The same rows clustered with several values of one parameter."""
    for panel, value in zip(panels, values, strict=True):
        k = len(np.unique(y))
        model = BicliqueSpectralClustering(k, random_state=0, **options, **{name: value}).fit(X)
        some = np.random.default_rng(0).permutation(len(X))[:1500]
        order = some[np.argsort(-np.bincount(model.labels_)[model.labels_[some]], kind="stable")]
        by_size = np.argsort(np.argsort(-np.bincount(model.labels_), kind="stable"))
        panel.scatter(*X[order].T, s=3, color=COLOURS[by_size[model.labels_[order]]])
        shown = {"n_neighbors": f"r = {value}", "rank": f"{value:,} landmarks"}[name]
        bare(panel, f"{shown}: {adjusted_rand_score(y, model.labels_):.2f}")


def neighbors() -> None:
    """Clusters at three r, and means over the generated families at more."""
    sizes = (3, 5, 7, 10, 15, 20, 30)
    cases = list(generated())
    figure, panels = plt.subplots(1, 4, figsize=(12, 3), constrained_layout=True, width_ratios=(1, 1, 1, 1.3))
    X, y = rings((1, 2, 3), 2, 0.1)
    show_fits(list(panels[:3]), X, y, "n_neighbors", (3, 7, 30))
    families = {
        "comparison": lambda case: case.group.startswith("comparison"),
        "unequal sizes": lambda case: case.group == "unequal sizes",
        "the same, heavy tails": lambda case: "tails" in case.group,
        "the same, 20 columns": lambda case: "20 columns" in case.group,
        "tables": lambda case: case.group == "tables",
    }
    for (name, belongs), colour, marker in zip(families.items(), COLOURS, MARKERS, strict=True):
        means = [mean_score(cases, belongs, n_neighbors=r) for r in sizes]
        say(f"{name}: " + ", ".join(f"{r}: {mean:.3f}" for r, mean in zip(sizes, means, strict=True)))
        panels[3].plot(sizes, means, marker=marker, markersize=4, color=colour, label=name)
    panels[3].axvline(7, color="0.8", zorder=0)
    panels[3].set_title("mean agreement of 100 sets", fontsize=10)
    panels[3].set_xlabel("r")
    panels[3].legend(fontsize=7)
    save(figure, "default_r")


def landmarks() -> None:
    """Clusters at three numbers of landmarks, and the agreement at more."""
    counts = (50, 100, 200, 500, 1000, 2000, 4000, 8000)
    n = 40_000
    sets = {
        "moons, noise 0.15": moons(0, 0.15, n),
        "90/8/2 %, 10 columns": in_columns((n * 90 // 100, n * 8 // 100, n * 2 // 100), 0, 10),
        "95/4/1 %, 2 columns": unequal(0, (n * 95 // 100, n * 4 // 100, n // 100)),
        "97.8/2/0.2 %, 2 columns": unequal(0, (n * 978 // 1000, n * 2 // 100, n * 2 // 1000)),
    }
    figure, panels = plt.subplots(1, 4, figsize=(12, 2.4), constrained_layout=True, width_ratios=(1, 1, 1, 1))
    show_fits(list(panels[:3]), *sets["moons, noise 0.15"], "rank", (50, 500, 4000))
    for (name, (X, y)), colour, marker in zip(sets.items(), COLOURS, MARKERS, strict=False):
        found = [adjusted_rand_score(y, ours(X, len(np.unique(y)), rank=count)) for count in counts]
        say(f"{name}: " + ", ".join(f"{count}: {x:.3f}" for count, x in zip(counts, found, strict=True)))
        panels[3].plot(counts, found, marker=marker, markersize=4, color=colour, label=name)
    panels[3].axvline(4000, color="0.8", zorder=0)
    panels[3].set_xscale("log")
    panels[3].set_title("agreement, 40,000 rows", fontsize=10)
    panels[3].set_xlabel("landmarks")
    panels[3].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    save(figure, "default_landmarks")


def mean_score(cases: list[Case], belongs: Callable[[Case], bool], **options: object) -> float:
    return float(np.mean([score(case, lambda X, k: ours(X, k, **options)) for case in cases if belongs(case)]))


def print_floors() -> None:
    """Mean agreement with other least weights of a hyperedge."""
    cases = list(generated())
    say("| floor | heavy tails (25 sets) | tables (4) | all generated sets (170) | fits refused |")
    say("| --- | ---: | ---: | ---: | ---: |")
    for name, floor in FLOORS.items():
        neighborhoods.FLOOR = floor
        found = np.array([refused_is_nan(case) for case in cases])
        groups = np.array([case.group for case in cases])
        means = (found[np.char.find(groups, "tails") >= 0], found[groups == "tables"], found)
        cells = [f"{np.nanmean(mean):.3f}" for mean in means]
        say(f"| {name} | {' | '.join(cells)} | {np.isnan(found).sum()} |")


def refused_is_nan(case: Case) -> float:
    """The score of the default, NaN if a degree vanishes."""
    try:
        return score(case, ours)
    except DegreeError:
        return np.nan


def print_losses() -> None:
    """Mean agreement over five seeds, beside k-means."""
    say("| data | biclique | `n_neighbors=15` | k-means | Gaussian mixture |\n| --- | ---: | ---: | ---: | ---: |")
    for name, make in LOSES.items():
        sets = [(X, len(np.unique(y)), y) for X, y in map(make, range(5))]
        methods = (ours, lambda X, k: ours(X, k, n_neighbors=15), kmeans, mixture)
        means = [
            0.0 + round(np.mean([adjusted_rand_score(y, method(X, k)) for X, k, y in sets]), 2) for method in methods
        ]
        say(f"| {name} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")


def print_starts() -> None:
    """Mean agreement over three draws with many groups of unequal sizes: k-means with few starts, and with ten."""
    say("| groups | one k-means++ start | the default | ten starts |\n| ---: | ---: | ---: | ---: |")
    for k in (10, 20, 50, 100):
        scores = []
        for seed in range(3):
            sizes = np.random.RandomState(seed).geometric(0.02, k) + 20
            X, y = make_blobs(sizes, 4, cluster_std=0.8, random_state=seed)
            scores.append([adjusted_rand_score(y, ours(X, k, n_init=starts)) for starts in (1, "auto", 10)])
        say(f"| {k} | " + " | ".join(f"{mean:.3f}" for mean in np.mean(scores, axis=0)) + " |")


PICTURES = {"neighbors": neighbors, "landmarks": landmarks}

if __name__ == "__main__":
    if "--floor" in sys.argv:
        print_floors()
    elif "--loses" in sys.argv:
        print_losses()
    elif "--starts" in sys.argv:
        print_starts()
    else:
        for wanted in sys.argv[1:] or PICTURES:
            PICTURES[wanted]()
