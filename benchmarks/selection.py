"""The number of clusters selected without labels, and whether structure is seen where there is some and only there.

    python benchmarks/selection.py --data FOLDER            # all of it
    python benchmarks/selection.py --data FOLDER --quick    # a tenth of the repetitions, every fifth set
    python benchmarks/selection.py --data FOLDER --only mixtures nulls

FOLDER is that of defaults.py. Parts:

- mixtures: 200 fresh mixtures of Gaussians, 1,000 rows, k from 2 to 12, d = 2, 5, 10, spreads 0.7 to 1.2, sizes
  Dirichlet(8), centres uniform in a box at least 4.5 apart (then 3.5); Gaussian mixtures with BIC beside.
- shapes: the 46 public sets, all rows; right if k is that of any reference labelling.
- nulls: 100 tables without structure of each family, 50 to 500 rows.
- calibration: the prominence of the second mode of lines and strips without structure.
- time: 10,000 rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from batteries import public
from scipy.stats import beta
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture

import biclique.selection.count_search as count_search
from biclique.selection import find_structure, select_n_clusters
from biclique.selection.count_result import Counted
from biclique.selection.structure import least_prominence, mode_prominences

PARTS = ("mixtures", "shapes", "nulls", "calibration", "time")
Random = np.random.Generator


def mixture(seed: int, apart: float) -> tuple[np.ndarray, int]:
    """Rows of a mixture and its number of clusters."""
    random = np.random.default_rng([seed, 17])
    d, k = (2, 5, 10)[seed % 3], int(random.integers(2, 13))
    side, centres = apart * (2 * k) ** (1 / d), np.empty((0, d))
    while len(centres) < k:
        for _ in range(2000):
            new = random.uniform(0, side, d)
            if (np.linalg.norm(centres - new, axis=1) >= apart).all():
                centres = np.concatenate([centres, new[None]])
            if len(centres) == k:
                break
        else:
            side, centres = 1.1 * side, np.empty((0, d))
    spreads, sizes = random.uniform(0.7, 1.2, k), random.multinomial(1000, random.dirichlet(np.full(k, 8.0)))
    y = np.repeat(np.arange(k), sizes)
    return centres[y] + spreads[y, None] * random.normal(size=(1000, d)), k


def size(random: Random) -> int:
    return int(random.integers(50, 501))


def correlated(random: Random) -> np.ndarray:
    d = int(random.integers(2, 11))
    return np.asarray(random.normal(size=(size(random), d)) @ random.normal(size=(d, d)))


def box(random: Random) -> tuple[int, int]:
    return size(random), int(random.integers(2, 11))


NULLS: dict[str, Callable[[Random], np.ndarray]] = {
    "uniform": lambda r: r.uniform(size=box(r)),
    "Gaussian": lambda r: r.normal(size=box(r)),
    "correlated": correlated,
    "lognormal": lambda r: np.exp(r.normal(size=box(r))),
    "exponential": lambda r: r.exponential(size=box(r)),
    "t3": lambda r: r.standard_t(3, size=box(r)),
    "counts": lambda r: r.poisson(r.uniform(1, 20), size=box(r)).astype(float),
    "strip 5:1": lambda r: r.uniform(size=(size(r), 2)) * [5, 1],
    "strip 20:1": lambda r: r.uniform(size=(size(r), 2)) * [20, 1],
    "d = 50": lambda r: r.normal(size=(size(r), 50)),
}


Curve = tuple[Counted, ...]


def count_mixture(job: tuple[int, float, bool]) -> tuple[int, int, int, bool, Curve]:
    """k, the selected one, that of BIC (0 if not asked for), whether structure was seen, and the curve."""
    seed, apart, with_bic = job
    X, k = mixture(seed, apart)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = select_n_clusters(X, random_state=0, n_jobs=1)
        tried = range(1, 16) if with_bic else ()
        bic = [GaussianMixture(j, n_init=1, reg_covar=1e-4, random_state=0).fit(X).bic(X) for j in tried]
    return k, found.n_clusters, int(np.argmin(bic)) + 1 if bic else 0, bool(found.has_structure), found.counted


def count_shape(job: tuple[str, np.ndarray, list[int]]) -> tuple[str, list[int], int, bool, str, float, Curve]:
    name, X, numbers = job
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = select_n_clusters(X, random_state=0, n_jobs=1)
    return (
        name,
        numbers,
        found.n_clusters,
        bool(found.has_structure),
        found.structure.reason,
        time.perf_counter() - start,
        found.counted,
    )


def alarm(job: tuple[str, int]) -> bool:
    """Whether structure is claimed for a table without any."""
    family, seed = job
    X = NULLS[family](np.random.default_rng([seed, list(NULLS).index(family)]))
    return bool(find_structure(X, random_state=seed).found)


def print_mixtures(pool: ProcessPoolExecutor, many: int) -> None:
    print("\n| mixtures | tables | exact | within one | BIC exact | structure seen |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    curves: list[tuple[list[int], Curve]] = []
    for apart in (4.5, 3.5):
        with_bic = min(many, 20)
        counted = [*pool.map(count_mixture, [(seed, apart, seed < with_bic) for seed in range(many)])]
        found = np.array([one[:4] for one in counted])
        off = np.abs(found[:, 0] - found[:, 1])
        bic = (found[:with_bic, 0] == found[:with_bic, 2]).mean()
        print(
            f"| centres ≥ {apart} σ | {many} | {(off == 0).mean():.1%} | {(off <= 1).mean():.1%} | "
            f"{bic:.1%} (of {with_bic}) | {found[:, 3].mean():.1%} |",
            flush=True,
        )
        curves += [([one[0]], one[4]) for one in counted if apart == 4.5]
    print_sensitivity(curves)


def print_sensitivity(curves: list[tuple[list[int], Curve]]) -> None:
    """Exact choices for other constants of the rule."""
    tolerances, usual = (0.0, 0.01, 0.02, 0.03, 0.05, 0.08), (count_search.EQUAL, count_search.FOUND_AGAIN)
    print(f"\n| exact of {len(curves)}, tolerance | " + " | ".join(map(str, tolerances)) + " |")
    print("| --- |" + " ---: |" * len(tolerances))
    for jaccard in (0.0, 0.75, 0.85, 0.9):
        right = []
        for tolerance in tolerances:
            count_search.EQUAL, count_search.FOUND_AGAIN = tolerance, jaccard
            right.append(sum(count_search.choose_count(curve)[0] in numbers for numbers, curve in curves))
        print(f"| Jaccard {jaccard} | " + " | ".join(map(str, right)) + " |", flush=True)
    count_search.EQUAL, count_search.FOUND_AGAIN = usual


def print_shapes(pool: ProcessPoolExecutor, folder: Path, step: int) -> None:
    jobs = [(case.name, case.X, sorted(set(case.counts))) for case in public(folder, None)][::step]
    found = [*pool.map(count_shape, jobs)]
    print("\n| set | k of the labellings | selected | structure | seconds |\n| --- | --- | ---: | --- | ---: |")
    for name, numbers, k, seen, reason, seconds, _ in found:
        print(
            f"| {name} | {', '.join(map(str, numbers))} | {k} | {'yes' if seen else f'no: {reason}'} | {seconds:.1f} |"
        )
    off = np.array([min(abs(k - j) for j in numbers) for _, numbers, k, *_ in found])
    print(
        f"\n{len(found)} sets: exact {(off == 0).mean():.1%}, within one {(off <= 1).mean():.1%}, structure seen "
        f"{np.mean([one[3] for one in found]):.1%}",
        flush=True,
    )
    print_sensitivity([(one[1], one[6]) for one in found])


def print_nulls(pool: ProcessPoolExecutor, many: int) -> None:
    print("\n| no structure | tables | false alarms |\n| --- | ---: | ---: |")
    total = 0
    for family in NULLS:
        own = sum(pool.map(alarm, [(family, seed) for seed in range(many)]))
        total += own
        print(f"| {family} | {many} | {own} |", flush=True)
    n = many * len(NULLS)
    limit = float(beta.ppf(0.95, total + 1, n - total))
    print(f"| all | {n} | {total} ({total / n:.1%}, one-sided 95 % limit {limit:.1%}) |", flush=True)


def print_calibration(many: int) -> None:
    shapes: dict[str, Callable[[Random, int], np.ndarray]] = {
        "line": lambda r, n: r.uniform(size=(n, 1)),
        "Gaussian line": lambda r, n: r.normal(size=(n, 1)),
        **{f"strip {a}:1": lambda r, n, a=a: r.uniform(size=(n, 2)) * [a, 1] for a in (1, 5, 20, 100)},  # type: ignore[misc]
    }
    sizes = (50, 100, 200, 500)
    print("\n| 99 % of prominences are below | " + " | ".join(f"{n} rows" for n in sizes) + " |")
    print("| --- |" + " ---: |" * len(sizes))
    for name, make in shapes.items():
        random = np.random.default_rng(0)
        found = [np.quantile([mode_prominences(make(random, n))[0] for _ in range(many)], 0.99) for n in sizes]
        print(f"| {name} | " + " | ".join(f"{x:.2f}" for x in found) + " |", flush=True)
    print("| needed | " + " | ".join(f"{least_prominence(n):.2f}" for n in sizes) + " |", flush=True)


def print_time() -> None:
    X = make_blobs(10_000, 8, centers=10, random_state=0)[0]
    start, busy = time.perf_counter(), time.process_time()
    found = select_n_clusters(X, random_state=0, n_jobs=2)
    print(
        f"\n10,000 rows, 8 columns: {time.perf_counter() - start:.1f} s, {time.process_time() - busy:.1f} s of the "
        f"processor, 2 threads ({found.reason})",
        flush=True,
    )


def run(folder: Path, *, quick: bool, processes: int, only: list[str] | None) -> None:
    parts = only or list(PARTS)
    with ProcessPoolExecutor(processes) as pool:
        if "mixtures" in parts:
            print_mixtures(pool, 20 if quick else 200)
        if "nulls" in parts:
            print_nulls(pool, 10 if quick else 100)
        if "shapes" in parts:
            print_shapes(pool, folder, 5 if quick else 1)
    if "calibration" in parts:
        print_calibration(20 if quick else 200)
    if "time" in parts:
        print_time()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with shapes/")
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions, every fifth set")
    parser.add_argument("--processes", type=int, default=2, help="tables at a time (default: 2)")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="some parts")
    options = parser.parse_args()
    run(options.data, quick=options.quick, processes=options.processes, only=options.only)


if __name__ == "__main__":
    main()
