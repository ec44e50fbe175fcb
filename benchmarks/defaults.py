"""The default beside other methods: adjusted Rand index at the true number of clusters, and seconds.

    python benchmarks/defaults.py --data FOLDER             # 216 sets: 46 public ones, 1,000 rows each, 170 generated
    python benchmarks/defaults.py --data FOLDER --all       # every row of the public sets, ours and k-means alone
    python benchmarks/defaults.py --only tables comparison  # families that begin with these words
    python benchmarks/defaults.py --forty                   # 40 other tables, written before anything was run on them
    python benchmarks/defaults.py --data FOLDER --large     # MNIST, pen digits and sets of 10⁶ rows, five seeds each
    python benchmarks/defaults.py --same                    # do 10⁴, 10⁵ and 10⁶ rows get the same labels?
    python benchmarks/defaults.py --seconds                 # beside scikit-learn's neighbours and MiniBatchKMeans

FOLDER holds the public sets of batteries.py; for `--large` also mnist.npz and pendigits.npz. Without FOLDER the
generated sets are run alone. No method sees labels. Every one has its library's defaults and the true k, but HDBSCAN
chooses its own number, and its noise counts as one more cluster.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from batteries import (
    MANY_ROWS,
    MOST_ROWS,
    Case,
    Made,
    Method,
    blobs,
    forty_tables,
    generated,
    kmeans,
    ours,
    print_scores,
    public,
)
from sklearn.cluster import HDBSCAN, MiniBatchKMeans, SpectralClustering
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from timing import best_of, product_seconds

WORSE = 0.1
SEEDS = range(5)
SLOW_ROWS = 100_000
"""scikit-learn's neighbours are not timed above so many rows."""


def neighbors(X: np.ndarray, k: int) -> np.ndarray:
    """Labels of scikit-learn's spectral clustering of a graph of neighbours."""
    return SpectralClustering(k, affinity="nearest_neighbors", random_state=0).fit_predict(X)


def genie(X: np.ndarray, k: int) -> np.ndarray:
    from genieclust import Genie

    return Genie(n_clusters=k).fit_predict(X)


OURS: dict[str, Method] = {"biclique": ours, "k-means": kmeans}
PEERS: dict[str, Method] = {
    "SpectralClustering, neighbours": neighbors,
    "HDBSCAN (own k)": lambda X, k: HDBSCAN(copy=True).fit_predict(X),  # noqa: ARG005
}
if find_spec("genieclust"):
    PEERS["genieclust"] = genie


def print_families(cases: list[Case], methods: dict[str, Method], *, quiet: bool) -> None:
    """Mean scores by family, the seconds, and the sets on which the default is worse than k-means."""
    scores = print_scores(cases, methods, quiet=quiet)
    lost = scores[:, 1] - scores[:, 0]
    worse = [f"{cases[i].name} by {lost[i]:.2f}" for i in np.argsort(-lost) if lost[i] > WORSE]
    print(f"worse than k-means by more than {WORSE} on {len(worse)} of {len(cases)} sets", *worse, sep="\n- ")
    if len(methods) > len(OURS) and "genieclust" not in methods:
        print("Left out, not installed: genieclust")


def large_sets(folder: Path | None, rows: int) -> Iterator[tuple[str, Made, Callable[..., float]]]:
    """Name, rows with labels, and the measure of every set that is named singly."""
    names = {"MNIST, NMI": ("mnist", normalized_mutual_info_score), "pen digits": ("pendigits", adjusted_rand_score)}
    for name, (file, measure) in names.items() if folder else ():
        with np.load((folder.parent if folder.name == "shapes" else folder) / f"{file}.npz") as held:
            yield name, (held["X"].astype(np.float32), held["y"]), measure
    for name, make in MANY_ROWS.items():
        if not name.startswith("five blobs"):
            yield f"{name}, {rows:,} rows", make(rows), adjusted_rand_score


def print_large(folder: Path | None, rows: int, *, peers: bool) -> None:
    """Scores of the default over five seeds, and one of k-means."""
    print("| adjusted Rand index, or NMI | biclique, mean | lowest | seconds a fit | k-means |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, (X, y), measure in large_sets(folder, rows):
        k = len(np.unique(y))
        start = time.perf_counter()
        found = [measure(y, ours(X, k, seed)) for seed in SEEDS]
        seconds = (time.perf_counter() - start) / len(SEEDS)
        beside = f"{measure(y, kmeans(X, k)):.3f}" if peers else ""
        print(f"| {name} | {np.mean(found):.3f} | {min(found):.3f} | {seconds:.1f} | {beside} |", flush=True)


def print_same(rows: int) -> None:
    """The agreement of fits of fewer and of more rows, on the rows in common, which are the first ones."""
    sizes = (rows // 100, rows // 10, rows)
    pairs = ((0, 1), (1, 2), (0, 2))
    columns = " | ".join(f"{sizes[a]:,} and {sizes[b]:,} rows" for a, b in pairs)
    print(f"| adjusted Rand index of two fits | {columns} |\n| --- | ---: | ---: | ---: |")
    for name, make in MANY_ROWS.items():
        X, y = make(rows)
        fits = [ours(X[:n], len(np.unique(y))) for n in sizes]
        cells = [adjusted_rand_score(fits[a], fits[b][: sizes[a]]) for a, b in pairs]
        print(f"| {name} | " + " | ".join(f"{cell:.4f}" for cell in cells) + " |", flush=True)


def print_seconds(rows: int) -> None:
    """Seconds of fits with labels, the best of three."""
    methods: dict[str, Method] = {
        "biclique": ours,
        "SpectralClustering, neighbours": neighbors,
        "MiniBatchKMeans": lambda X, k: MiniBatchKMeans(k, random_state=0).fit_predict(X),
    }
    sets = (
        ("iris", load_iris().data, 3),
        ("1,000 × 2", blobs(1000, 0, 3)[0], 3),
        ("digits", load_digits().data, 10),
        (f"{rows:,} × 16", blobs(rows, 0, 10, 16, 4.0)[0], 10),
    )
    print("| seconds | " + " | ".join(methods) + " | 4000³ float32 product |\n| --- |" + " ---: |" * (len(methods) + 1))
    for name, X, k in sets:
        cells = [
            "" if method is neighbors and len(X) > SLOW_ROWS else f"{best_of(3, partial(method, X, k)):.3f}"
            for method in methods.values()
        ]
        print(f"| {name} | " + " | ".join(cells) + f" | {product_seconds():.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the public sets")
    parser.add_argument("--all", action="store_true", help="every row of the public sets, ours and k-means alone")
    parser.add_argument("--only", nargs="+", default=[""], help="families that begin with one of these words")
    parser.add_argument("--forty", action="store_true", help="instead: 40 other generated tables")
    parser.add_argument("--ours", action="store_true", help="ours and k-means alone; with --large ours alone")
    parser.add_argument("--quiet", action="store_true", help="the means alone")
    parser.add_argument("--large", action="store_true", help="instead: large sets, five seeds each")
    parser.add_argument("--same", action="store_true", help="instead: fits of fewer and of more rows")
    parser.add_argument("--seconds", action="store_true", help="instead: seconds of single fits")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the largest set of these three")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.large:
        print_large(options.data, options.rows, peers=not options.ours)
    if options.same:
        print_same(options.rows)
    if options.seconds:
        print_seconds(options.rows)
    if options.large or options.same or options.seconds:
        return
    if options.all and options.data is None:
        parser.error("--all needs --data")
    cases = [] if options.all else list(forty_tables() if options.forty else generated())
    if options.data is not None and not options.forty:
        cases += public(options.data, None if options.all else MOST_ROWS)
    cases = [case for case in cases if case.group.startswith(tuple(options.only))]
    if not cases:
        parser.error(f"no family begins with {' or '.join(options.only)}")
    print_families(cases, OURS if options.all or options.ours else OURS | PEERS, quiet=options.quiet)


if __name__ == "__main__":
    main()
