"""Other packages beside biclique, on data that each of them can do: seconds and agreement, in one run.

    python benchmarks/comparison.py                       both parts
    python benchmarks/comparison.py --only points --rows 5000

    points       curved shapes, unequal sizes, outliers, digits: k-means, SpectralClustering, HDBSCAN, Genie
    hypergraphs  planted groups: XGI, HyperNetX, hypergraphx

Every method has its library's defaults and the true number of clusters; HDBSCAN finds its own. Seconds are the best of
three fits (of one, if it takes over 10 s); for points of processor time, on one thread, so that other work on the
machine does not count. Fits of points that take longer than --limit seconds are ended; the table says so.
Agreement is the adjusted Rand index (ARI) with the truth, without outliers; rows that HDBSCAN calls noise count as one
cluster. Packages that are not installed are left out, and said. dask-ml and ncut-pytorch are for millions of rows:
scale.py --only peers.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from hypergraph import planted
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from biclique import BicliqueSpectralClustering, Hypergraph, HypergraphSpectralClustering
from biclique.hypergraph import to_hypergraphx, to_hypernetx, to_xgi

Labels = Callable[[], np.ndarray]
VERTICES, GROUPS = 400, 4


def best_of(repeats: int, work: Labels, clock: Callable[[], float] = time.perf_counter) -> tuple[float, np.ndarray]:
    seconds, labels = np.inf, np.empty(0, dtype=int)
    for _ in range(repeats):
        start = clock()
        labels = work()
        seconds = min(seconds, clock() - start)
        if seconds > 10:
            break
    return seconds, labels


def within(limit: float, work: Labels) -> tuple[float, np.ndarray] | None:
    """The same in a process of its own, in seconds of processor time on one thread; None if it takes too long."""

    def measure() -> None:
        with threadpool_limits(1):
            theirs.send(best_of(3, work, time.process_time))

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=measure)
    process.start()
    theirs.close()
    found = ours.recv() if ours.poll(limit) else None
    process.terminate()
    process.join()
    return found


# Points


def sets(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows and their groups; −1 for outliers."""
    blobs, group = make_blobs(n - n // 20, centers=[[0, 0], [6, 0], [3, 5]], random_state=0)
    middle, half = (blobs.max(axis=0) + blobs.min(axis=0)) / 2, np.ptp(blobs, axis=0) / 2
    far = np.random.default_rng(0).uniform(middle - 3 * half, middle + 3 * half, (n // 20, 2))
    sizes = [n - n // 10, n // 10 - n // 50, n // 50]
    moons, circles = make_moons(n, noise=0.05, random_state=0), make_circles(n, noise=0.05, factor=0.5, random_state=0)
    return {
        "moons": (scale(moons[0]), moons[1]),
        "circles": (scale(circles[0]), circles[1]),
        "sizes 90, 8 and 2 %": make_blobs(sizes, centers=[[0, 0], [6, 6], [6, -6]], random_state=0),
        "5 % outliers": (np.concatenate([blobs, far]), np.concatenate([group, np.full(len(far), -1)])),
        "digits": load_digits(return_X_y=True),
    }


def methods(k: int) -> dict[str, object]:
    found: dict[str, object] = {
        "biclique": BicliqueSpectralClustering(k, random_state=0),
        "biclique, neighbour graph": BicliqueSpectralClustering(k, affinity="nearest_neighbors", random_state=0),
        "KMeans": KMeans(k, n_init=10, random_state=0),
        "SpectralClustering, rbf": SpectralClustering(k, random_state=0),
        "SpectralClustering, neighbours": SpectralClustering(k, affinity="nearest_neighbors", random_state=0),
        "HDBSCAN of scikit-learn": HDBSCAN(copy=True),
    }
    if find_spec("hdbscan"):
        import hdbscan

        found["hdbscan"] = hdbscan.HDBSCAN()
    if find_spec("genieclust"):
        import genieclust

        found["genieclust"] = genieclust.Genie(k)
    return found


def points(n: int, limit: float) -> None:
    data = sets(n)
    print(f"\n## {n} rows (digits: 1,797): ARI, and seconds of processor time in brackets\n")
    print(f"| method | {' | '.join(data)} |\n| --- |{' ---: |' * len(data)}", flush=True)
    for name in methods(2):
        cells = []
        for X, truth in data.values():
            inside = truth >= 0
            k = len(set(truth[inside]))
            # A new model for every fit: some keep what they have computed of the same rows.
            done = within(limit, lambda k=k, X=X, name=name: methods(k)[name].fit_predict(X))
            if done is None:
                cells.append(f"not done after {limit:g} s")
                continue
            seconds, labels = done
            cells.append(f"{adjusted_rand_score(truth[inside], labels[inside]):.3f} ({seconds:.2f})")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    missing = [package for package in ("hdbscan", "genieclust") if not find_spec(package)]
    if missing:
        print(f"\nLeft out, not installed: {', '.join(missing)}")


# Hypergraphs


def by_xgi(hypergraph: Hypergraph) -> Labels:
    import xgi

    theirs = to_xgi(hypergraph)

    def run() -> np.ndarray:
        found = xgi.communities.spectral_clustering(theirs, GROUPS, seed=0)
        return np.array([found[vertex] for vertex in range(VERTICES)])

    return run


def by_hypergraphx(hypergraph: Hypergraph) -> Labels:
    from hypergraphx.communities.hy_sc.model import HySC

    theirs = to_hypergraphx(hypergraph, merge_equal_edges=True)
    order = np.array(theirs.get_mapping().classes_).astype(int)

    def run() -> np.ndarray:
        labels = np.empty(VERTICES, dtype=int)
        labels[order] = HySC(seed=0).fit(theirs, K=GROUPS).argmax(axis=1)
        return labels

    return run


def by_hypernetx(hypergraph: Hypergraph) -> Labels:
    from hypernetx.algorithms import laplacians_clustering

    theirs = to_hypernetx(hypergraph)

    def run() -> np.ndarray:
        labels = np.empty(VERTICES, dtype=int)
        for group, members in laplacians_clustering.spec_clus(theirs, GROUPS).items():
            labels[np.array(members, dtype=int)] = group
        return labels

    return run


def by_ours(hypergraph: Hypergraph) -> Labels:
    return lambda: HypergraphSpectralClustering(GROUPS, random_state=0).fit(hypergraph).labels_


def hypergraphs(n: int, limit: float) -> None:  # noqa: ARG001
    edges, truth = planted(VERTICES, 2_000, GROUPS, 5)
    hypergraph = Hypergraph.from_edges([sorted(set(edge)) for edge in edges.tolist()], vertices=VERTICES)
    packages = {"biclique": by_ours, "xgi": by_xgi, "hypernetx": by_hypernetx, "hypergraphx": by_hypergraphx}
    print(f"\n## {VERTICES} vertices, 2,000 edges, {GROUPS} groups\n")
    print("| package | seconds | ARI |\n| --- | ---: | ---: |", flush=True)
    for package, prepare in packages.items():
        if find_spec(package):
            seconds, labels = best_of(3, prepare(hypergraph))
            print(f"| {package} | {seconds:.2f} | {adjusted_rand_score(truth, labels):.3f} |", flush=True)
    missing = [package for package in packages if not find_spec(package)]
    if missing:
        print(f"\nLeft out, not installed: {', '.join(missing)}")


PARTS = {"points": points, "hypergraphs": hypergraphs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--limit", type=float, default=300, help="seconds of the fits of one method on one set")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.only:
        PARTS[name](options.rows, options.limit)


if __name__ == "__main__":
    main()
