"""Settings that are selected without labels, beside fixed ones: adjusted Rand index at the true number of clusters.

    python benchmarks/selection.py --data FOLDER            # 46 public sets, 21 comparison shapes, 7 tables
    python benchmarks/selection.py --data FOLDER --quick    # every fifth of them
    python benchmarks/selection.py --data FOLDER --sensitivity    # also with other constants
    python benchmarks/selection.py --count --data FOLDER    # the number of clusters and structure: select_count.py
    python benchmarks/selection.py --time                   # seconds of a selection and of an order path alone

FOLDER holds `shapes/`, the batteries fcps, graves, other and sipu of "A benchmark suite for clustering algorithms"
(version 1, DOI 10.5281/zenodo.7088171; for research only, so they are not part of this project), and the tables
spine.csv, ovarian100.npz and pendigits.npz. Sets are scored as in batteries.py, with at most 1,000 rows each (seed 0).

- comparison shapes: those of batteries.py, z-scored, three seeds each.
- tables: iris, digits and pen digits as they are; wine, breast cancer, spine (two classes) and ovarian z-scored.

No method sees labels. The best single fixed candidate is chosen with labels, which favours it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import select_count
from batteries import MOST_ROWS, Case, generated, public
from scipy import sparse
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale
from timing import product_seconds

from biclique import BicliqueSpectralClustering
from biclique.fit.settings import Settings
from biclique.progress import Progress
from biclique.rows.array import ArrayRows
from biclique.runtime.threads import single_threaded_blas
from biclique.selection import criteria, order_path, settings_search
from biclique.selection.candidates import make_candidates
from biclique.selection.result import SelectionResult
from biclique.selection.settings_search import HALVES, KMEANS, Fits, Search, draw_vertices, judge, split_halves
from biclique.spectral.cut import least_share

PUBLIC, SHAPES, TABLES = "46 public sets", "comparison shapes", "7 tables"
PEER = "SpectralClustering"
LOST = 0.02
TEN_ORDERS = (2.1, 2.25, 2.5, 3, 4, 5, 6, 8, 16, np.inf)


@dataclass(frozen=True)
class Scored:
    """The scores of one set, the best over its labellings."""

    group: str
    name: str
    selected: float
    candidates: dict[str, float]
    """Every candidate by its name, k-means and scikit-learn's default among them."""
    without: dict[str, float]
    """The selection without one family."""
    others: dict[str, float]
    """The selection with another constant."""
    chosen: str
    seconds: float


def tables(folder: Path) -> Iterator[Case]:
    """Three tables beside those of scikit-learn."""
    spine = np.genfromtxt(folder / "spine.csv", delimiter=",", skip_header=1, dtype=str)
    yield Case(
        TABLES, "spine", scale(spine[:, :6].astype(float)), (np.unique(spine[:, 7], return_inverse=True)[1] + 1,)
    )
    with np.load(folder / "ovarian100.npz") as file:
        yield Case(TABLES, "ovarian", scale(file["X"]), (file["y"] + 1,))
    with np.load(folder / "pendigits.npz") as file:
        yield Case(TABLES, "pen digits", file["X"].astype(float), (file["y"] + 1,)).at_most(MOST_ROWS)


def cases(folder: Path) -> list[Case]:
    groups = {"comparison (z-scored)": SHAPES, "tables": TABLES}
    found = [replace(case, group=PUBLIC) for case in public(folder, MOST_ROWS)]
    for case in generated():
        if case.group in groups:
            found.append(replace(case, group=groups[case.group]).at_most(MOST_ROWS))
    return found + list(tables(folder))


def fitted(X: np.ndarray, k: int) -> tuple[Search, Fits]:
    """Every candidate on all rows and on halves, as a selection with seed 0 makes them."""
    asked = {"n_clusters": k, "affinity": "select", "gamma": "select", "order": "select", "random_state": 0}
    settings = Settings.of({**asked, "n_jobs": 1}, n_columns=k)
    vertices = draw_vertices(settings, ArrayRows(X, np.ones(len(X))), MOST_ROWS, np.random.RandomState(0))
    candidates = tuple(make_candidates(settings, vertices.n))
    halves = split_halves(vertices.n, HALVES, k, np.random.RandomState(0))
    search = Search(settings.unselected, vertices, candidates, halves, Progress(False))
    fits = Fits(search)
    fits.run(1)
    return search, fits


def among(search: Search, fits: Fits, kept: Callable[[str], bool]) -> tuple[Search, Fits]:
    """The same with the candidates of some families alone."""
    numbers = [i for i, one in enumerate(search.candidates) if kept(one.family)]
    fewer = replace(search, candidates=tuple(search.candidates[i] for i in numbers))
    found = Fits(fewer)
    for mine, all_of_them in zip([found.full, *found.halves], [fits.full, *fits.halves], strict=True):
        mine.update({new: all_of_them[old] for new, old in enumerate(numbers) if old in all_of_them})
    return fewer, found


def score(case: Case, *, others: bool = False) -> Scored:
    """All of one set."""
    best: dict[str, dict[str, float]] = {"selected": {}, "candidates": {}, "without": {}, "others": {}}
    chosen, seconds = [], 0.0
    for k in sorted(set(case.counts)):
        truths = [labels for labels in case.labellings if len(np.unique(labels[labels > 0])) == k]

        def keep(table: str, name: str, labels: np.ndarray, truths: list[np.ndarray] = truths) -> None:
            value = max(float(adjusted_rand_score(t[t > 0], labels[t > 0])) for t in truths)
            best[table][name] = max(best[table].get(name, -1.0), value)

        with single_threaded_blas(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            search, fits = fitted(case.X, k)
            result = judge(search, fits)
            seconds += time.perf_counter() - start
            index = search.vertices.index
            keep("selected", "", result.labels[index])
            chosen.append(result.chosen.name)
            for i, labels in fits.full.items():
                name = KMEANS if i == len(search.candidates) else search.candidates[i].name
                keep("candidates", name, labels[index])
            for family in dict.fromkeys(one.family for one in search.candidates):
                part = among(search, fits, lambda other, family=family: other != family)
                keep("without", family, judge(*part).labels[index])
            if others:
                for name, other in with_other_constants(search, fits):
                    keep("others", name, other.labels[index])
            # Its gamma of 1 leaves no two rows of large units similar, and its solver then takes minutes.
            if case.group != PUBLIC:
                keep("candidates", PEER, SpectralClustering(k, random_state=0).fit_predict(case.X))
    return Scored(
        case.group,
        case.name,
        best["selected"][""],
        best["candidates"],
        best["without"],
        best["others"],
        "; ".join(chosen),
        seconds,
    )


def with_other_constants(search: Search, fits: Fits) -> Iterator[tuple[str, SelectionResult]]:
    """The choice with one constant changed, from the same fits."""
    for count in (1, 2):
        fewer = replace(search, halves=search.halves[:count])
        some = Fits(fewer)
        some.full, some.halves = fits.full, fits.halves[:count]
        yield f"halves: {count} (4)", judge(fewer, some)
    for name, place, constant, value in (
        ("what the cut counts: 1 (2)", settings_search, "SHARES", (1.0, 1.0, 1.0)),
        ("what the cut counts: 3 (2)", settings_search, "SHARES", (3.0, 1.0, 1.0)),
        ("no consensus", settings_search, "SHARES", (2.0, 1.0, 0.0)),
        ("a cut of 1 is like any other (comes first)", settings_search, "parts_nothing", lambda cut: False),  # noqa: ARG005
        ("stability less one standard error (the mean)", settings_search, "_stability", cautious_stability),
        ("cut of the worst cluster (the mean)", settings_search, "neutral_cut", cut_of_the_worst),
        ("cut of the whole graph (the mean)", settings_search, "neutral_cut", cut_of_the_whole),
        ("agreement of equal partitions: 0.98 (0.99)", settings_search, "SAME", 0.98),
        ("agreement of equal partitions: 0.995 (0.99)", settings_search, "SAME", 0.995),
        ("families of the consensus: 3 (5)", criteria, "SIMILAR", 3),
        ("families of the consensus: 8 (5)", criteria, "SIMILAR", 8),
        ("neighbours of the neutral graph: 7 (10)", criteria, "NEUTRAL_NEIGHBORS", 7),
        ("neighbours of the neutral graph: 15 (10)", criteria, "NEUTRAL_NEIGHBORS", 15),
        ("least cluster: √(n/k), not rounded down", settings_search, "least_size", least),
        ("least cluster: half of √(n/k)", settings_search, "least_size", lambda w, k: least(w, k) / 2),
        ("least cluster: twice √(n/k)", settings_search, "least_size", lambda w, k: least(w, k) * 2),
    ):
        with patch.object(place, constant, value):
            yield name, judge(search, fits)


def least(weights: np.ndarray, k: int) -> float:
    """The weight of √(n/k) rows."""
    return least_share(weights, k) * float(weights.sum())


def cautious_stability(fits: Fits, number: int, search: Search) -> float | None:
    """The mean agreement with halves, less its standard error."""
    found = [
        criteria.agreement(fits.full[number][rows], half[number], search.vertices.weights[rows])
        for rows, half in zip(search.halves, fits.halves, strict=True)
        if number in half
    ]
    return float(np.mean(found) - np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else None


def kept_edges(A: sparse.csr_array, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every cluster: edges inside, and all edges."""
    ends = A.tocoo()
    inside = labels[ends.row] == labels[ends.col]
    k = int(labels.max(initial=0)) + 1
    return np.bincount(labels[ends.row][inside], minlength=k), np.bincount(labels[ends.row], minlength=k)


def cut_of_the_worst(A: sparse.csr_array, labels: np.ndarray) -> float:
    within, volume = kept_edges(A, labels)
    return float((within / np.maximum(volume, 1)).min())


def cut_of_the_whole(A: sparse.csr_array, labels: np.ndarray) -> float:
    within, volume = kept_edges(A, labels)
    return float(within.sum() / max(volume.sum(), 1))


def print_sensitivity(found: list[Scored]) -> None:
    groups = {group: [s for s in found if s.group == group] for group in dict.fromkeys(s.group for s in found)}
    print("\n| constant (default) | " + " | ".join(groups) + " |")
    print("| --- |" + " ---: |" * len(groups))
    print("| as it is | " + " | ".join(f"{np.mean([s.selected for s in own]):.3f}" for own in groups.values()) + " |")
    for name in found[0].others:
        means = [np.mean([s.others[name] for s in own]) for own in groups.values()]
        print(f"| {name} | " + " | ".join(f"{x:.3f}" for x in means) + " |")


def interval(gains: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of a mean gain, by 10,000 draws of sets."""
    draws = np.random.default_rng(0).integers(0, len(gains), (10_000, len(gains)))
    low, high = np.quantile(gains[draws].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def print_tables(found: list[Scored]) -> None:
    groups = {group: [s for s in found if s.group == group] for group in dict.fromkeys(s.group for s in found)}
    names = [name for name in found[0].candidates if name not in (KMEANS, PEER)]
    print(
        "\n| mean adjusted Rand index | sets | selected | best fixed | k-means | SpectralClustering | best by labels |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for group, own in groups.items():
        means = {name: np.mean([s.candidates.get(name, 0.0) for s in own]) for name in names}
        best = max(means, key=lambda name: means[name])
        peer = [s.candidates[PEER] for s in own if PEER in s.candidates]
        ours = np.mean([s.selected for s in own])
        oracle = np.mean([max(s.candidates[name] for name in names if name in s.candidates) for s in own])
        print(
            f"| {group} | {len(own)} | {ours:.3f} | {means[best]:.3f} ({best}) | "
            f"{np.mean([s.candidates[KMEANS] for s in own]):.3f} | {f'{np.mean(peer):.3f}' if peer else ''} | "
            f"{oracle:.3f} |"
        )
        gains = np.array([s.selected - s.candidates.get(best, 0.0) for s in own])
        low, high = interval(gains)
        print(f"| {group}, gain over the best fixed | | {gains.mean():+.3f} ({low:+.3f} to {high:+.3f}) | | | | |")
    lost = [(s.candidates[KMEANS] - s.selected, s.name) for s in found if s.selected < s.candidates[KMEANS] - LOST]
    worst = ", ".join(f"{name} by {gap:.3f}" for gap, name in sorted(lost, reverse=True))
    print(f"\nworse than k-means by more than {LOST}: {len(lost)} of {len(found)} sets ({worst})")
    print("\n| without the family | " + " | ".join(groups) + " | largest change |")
    print("| --- |" + " ---: |" * (len(groups) + 1))
    for family in dict.fromkeys(family for s in found for family in s.without):
        moved = [np.mean([s.without.get(family, s.selected) - s.selected for s in own]) for own in groups.values()]
        print(f"| {family} | " + " | ".join(f"{x:+.3f}" for x in moved) + f" | {max(map(abs, moved)):.3f} |")
    print(f"\nseconds a set, one core: median {np.median([s.seconds for s in found]):.1f}")


def least_busy(work: Callable[[], object]) -> float:
    """Processor seconds, all threads together, because other work may share the machine; the best of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def print_times() -> None:
    """10,000 rows: a fit whose settings are selected, the number of clusters, and ten orders beside one fit."""
    print(f"4000³ float32 product: {product_seconds():.2f} s")
    select_count.print_time()
    for name, X, k in (
        ("moons", make_moons(10_000, noise=0.05, random_state=0)[0], 2),
        ("blobs, 16 columns", make_blobs(10_000, 16, centers=8, cluster_std=4, random_state=0)[0], 8),
    ):
        start, busy = time.perf_counter(), time.process_time()
        model = BicliqueSpectralClustering(k, affinity="select", gamma="select", order="select", random_state=0).fit(X)
        print(
            f"{name}, {len(X)} rows: selection and fit {time.perf_counter() - start:.1f} s, "
            f"{time.process_time() - busy:.1f} s of the processor ({model.selection_.reason})",
            flush=True,
        )
        for n in (4_000, 10_000):
            for gram in ("auto", "tiled"):
                model = BicliqueSpectralClustering(k, order=2.1, gram=gram, random_state=0)
                one = least_busy(partial(model.fit, X[:n]))
                ten = least_busy(partial(order_path, X[:n], TEN_ORDERS, n_clusters=k, gram=gram, random_state=0))
                print(
                    f"{name}, {n} rows, {model.gram_}: one order {one:.2f} s, ten orders {ten:.2f} s of the processor, "
                    f"{ten / one:.2f} times",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder with shapes/ and the tables")
    parser.add_argument("--quick", action="store_true", help="every fifth set")
    parser.add_argument("--sensitivity", action="store_true", help="also with other constants")
    parser.add_argument("--time", action="store_true", help="seconds alone")
    parser.add_argument("--count", action="store_true", help="the number of clusters instead: see select_count.py")
    parser.add_argument("--only", nargs="+", choices=select_count.PARTS, help="with --count: some parts")
    parser.add_argument("--processes", type=int, default=2, help="sets at a time (default: 2)")
    options = parser.parse_args()
    if not options.time and options.data is None:
        parser.error("--data is needed, or --time")
    if options.count:
        select_count.run(options.data, quick=options.quick, processes=options.processes, only=options.only)
        return
    if options.time:
        print_times()
        return
    chosen = cases(options.data)[:: 5 if options.quick else 1]
    found = []
    with ProcessPoolExecutor(options.processes) as pool:
        for scored in pool.map(partial(score, others=options.sensitivity), chosen):
            found.append(scored)
            kmeans = scored.candidates[KMEANS]
            print(
                f"{scored.name:32s} selected {scored.selected:.3f}, k-means {kmeans:.3f}, {scored.seconds:5.1f} s: "
                f"{scored.chosen}",
                flush=True,
            )
    print_tables(found)
    if options.sensitivity:
        print_sensitivity(found)


if __name__ == "__main__":
    main()
