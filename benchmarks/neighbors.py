"""Neighbour graphs beside neighbourhoods, eigenvector solvers, searches.

    python benchmarks/neighbors.py [--data FOLDER] [--rows 1e5] [--only graphs solver search]

`graphs` prints the agreement with the known classes, `solver` the seconds and
the residual over the eigengap of multigrid, block Krylov, shift-invert (SciPy's splu) and pyamg where it is installed,
`search` the seconds and the recall of exact and approximate searches (pynndescent where it is installed). FOLDER holds
mnist.npz and pendigits.npz with X and y. Times are of one run each; a 4000³ float32 product is timed beside them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh
from sklearn.datasets import load_digits, make_circles, make_moons
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import NearestNeighbors
from timing import product_seconds

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.gram.sparse import NeighborGram, SparseGram
from biclique.neighbors.index import NeighborIndex, components
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.multigrid import graph_eigenpairs
from biclique.spectral.solver import top_eigenpairs

KRYLOV_PASSES = 300


def load(name: str, rows: int, folder: Path | None) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows, classes and their number."""
    if name == "moons":
        return *make_moons(rows, noise=0.08, random_state=0), 2
    if name == "circles":
        return *make_circles(rows, noise=0.05, factor=0.5, random_state=0), 2
    if name == "digits":
        return *load_digits(return_X_y=True), 10
    with np.load(folder / f"{name}.npz") as file:
        X = file["X"].astype(np.float32)
        return (X / 255 if name == "mnist" else X), file["y"], 10


def graphs(names: list[str], rows: int, folder: Path | None) -> None:
    print("\n## Normalised mutual information and seconds\n")
    print("| data | graph of 10 neighbours | neighbourhoods |")
    print("| --- | ---: | ---: |")
    for name in names:
        X, y, k = load(name, rows, folder)
        cells = []
        for affinity in ("nearest_neighbors", "neighborhoods"):
            start = time.perf_counter()
            model = BicliqueSpectralClustering(k, affinity=affinity, random_state=0).fit(X)
            score = normalized_mutual_info_score(y, model.labels_)
            cells.append(f"{score:.4f} ({time.perf_counter() - start:.1f} s)")
        print(f"| {name} {len(X)} | " + " | ".join(cells) + " |", flush=True)


def solver(names: list[str], rows: int, folder: Path | None) -> None:
    print("\n## Eigenvectors of the largest part, order 2: seconds, passes, worst residual / eigengap\n")
    print("| data | multigrid | block Krylov | shift-invert | pyamg + lobpcg |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in names:
        X, _, k = load(name, rows, folder)
        gram = NeighborGram.from_rows(np.unique(X, axis=0), 10)
        labels = components(gram.K)
        largest = np.flatnonzero(labels == np.bincount(labels).argmax())
        K = gram.K[largest][:, largest]
        gap = eigengap(K, k - 1)
        cells = [
            f"{seconds:.2f} s, {passes}, {residual / gap:.1e}"
            for seconds, passes, residual in (
                multigrid(K, k - 1),
                krylov(K, k - 1),
                shift_invert(K, k - 1),
                pyamg(K, k - 1),
            )
        ]
        print(f"| {name} {K.shape[0]}, k − 1 = {k - 1}, gap {gap:.1e} | " + " | ".join(cells) + " |", flush=True)


def eigengap(K: sparse.csr_array, k: int) -> float:
    values = graph_eigenpairs(NormalizedCut(SparseGram(K), 2), k + 1, tol=0.01, random_state=0).values
    return float(values[-2] - values[-1])


def multigrid(K: sparse.csr_array, k: int) -> tuple[float, int, float]:
    start = time.perf_counter()
    pairs = graph_eigenpairs(NormalizedCut(SparseGram(K), 2), k, random_state=0)
    return time.perf_counter() - start, pairs.n_passes, float(pairs.residuals.max())


def krylov(K: sparse.csr_array, k: int) -> tuple[float, int, float]:
    start = time.perf_counter()
    cut = NormalizedCut(SparseGram(K), 2)
    pairs = top_eigenpairs(cut, k, tol=1e-4, max_iter=KRYLOV_PASSES, deflate=cut.trivial, random_state=0)
    return time.perf_counter() - start, pairs.n_passes, float(pairs.residuals.max())


def normalized(K: sparse.csr_array) -> tuple[sparse.csc_array, np.ndarray]:
    root = 1 / np.sqrt(np.asarray(K.sum(axis=1)).ravel())
    return sparse.csc_array(K * root[:, None] * root), root


def shift_invert(K: sparse.csr_array, k: int) -> tuple[float, int, float]:
    if K.shape[0] > 3e5 or (K.shape[0] > 15_000 and k > 5):  # fills in: minutes, and more memory than there is
        return np.nan, 0, np.nan
    start = time.perf_counter()
    A, _ = normalized(K)
    values, vectors = eigsh(A, k + 1, sigma=1.0 + 1e-9, which="LM", v0=np.ones(K.shape[0]))
    residual = np.linalg.norm(A @ vectors - vectors * values, axis=0).max()
    return time.perf_counter() - start, 0, float(residual)


def pyamg(K: sparse.csr_array, k: int) -> tuple[float, int, float]:
    if find_spec("pyamg") is None:
        return np.nan, 0, np.nan
    from pyamg import smoothed_aggregation_solver
    from scipy.sparse.linalg import lobpcg

    start = time.perf_counter()
    A, root = normalized(K)
    L = sparse.csr_matrix(sparse.identity(K.shape[0]) * (1 + 1e-9) - A)
    ladder = smoothed_aggregation_solver(L, B=(1 / root)[:, None])
    trivial = (1 / root)[:, None] / np.linalg.norm(1 / root)
    X = np.random.default_rng(0).normal(size=(K.shape[0], k + 3))
    values, vectors = lobpcg(L, X, M=ladder.aspreconditioner(), Y=trivial, largest=False, maxiter=60, tol=1e-8)
    residual = np.linalg.norm(L @ vectors - vectors * values, axis=0)[:k].max()
    return time.perf_counter() - start, 0, float(residual)


def search(names: list[str], rows: int, folder: Path | None) -> None:
    print("\n## Ten nearest rows of every row: seconds, recall on 1,000 rows\n")
    print("| data | ours, exact | ours, approximate (faiss) | scikit-learn | pynndescent |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in names:
        X = load(name, rows, folder)[0]
        some = np.random.default_rng(0).choice(len(X), min(1000, len(X)), replace=False)
        truth = NeighborIndex(X, search="exact").query(X[some], 10)[1]
        cells = []
        for find in (exact_search, approximate_search, theirs, descent):
            start = time.perf_counter()
            near = find(X)
            seconds = time.perf_counter() - start
            if near is None:
                cells.append("not installed")
                continue
            recall = np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(near[some], truth, strict=True)])
            cells.append(f"{seconds:.1f} s, {recall:.4f}")
        print(f"| {name} {X.shape[0]} × {X.shape[1]} | " + " | ".join(cells) + " |", flush=True)


def exact_search(X: np.ndarray) -> np.ndarray:
    return NeighborIndex(X, search="exact").query(None, 10)[1]


def approximate_search(X: np.ndarray) -> np.ndarray | None:
    return None if find_spec("faiss") is None else NeighborIndex(X, search="approximate").query(None, 10)[1]


def theirs(X: np.ndarray) -> np.ndarray:
    return NearestNeighbors(n_neighbors=10, n_jobs=-1).fit(X).kneighbors(X, return_distance=False)


def descent(X: np.ndarray) -> np.ndarray | None:
    if find_spec("pynndescent") is None:
        return None
    from pynndescent import NNDescent

    return NNDescent(X, n_neighbors=10, random_state=0).neighbor_graph[0]


PARTS = {"graphs": graphs, "solver": solver, "search": search}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with mnist.npz and pendigits.npz")
    parser.add_argument("--rows", type=float, default=1e5, help="of moons and circles (default: 1e5)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ["digits", "moons", "circles"] + (["pendigits", "mnist"] if options.data else [])
    print(f"4000³ float32 product: {product_seconds():.2f} s")
    for part in options.only:
        PARTS[part](names, int(options.rows), options.data)
    print(f"\n4000³ float32 product: {product_seconds():.2f} s")


if __name__ == "__main__":
    main()
