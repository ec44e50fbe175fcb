"""Data of golden cases and of tests: small, from fixed seeds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag
from sklearn.datasets import make_circles
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

from biclique import Hypergraph


def groups(sizes: list[int], d: int = 4, apart: float = 8.0, spread: float = 1.0, seed: int = 0) -> np.ndarray:
    """Normal groups of these sizes; their centres are about ``apart`` from each other."""
    random = np.random.RandomState(seed)
    centres = random.standard_normal((len(sizes), d))
    centres *= apart / np.sqrt(2 * d)
    each = np.repeat(np.arange(len(sizes)), sizes)
    X = centres[each] + spread * random.standard_normal((len(each), d))
    return X[random.permutation(len(X))]


def normal(n: int = 400, d: int = 3, seed: int = 0) -> np.ndarray:
    """Normal rows without groups, read-only."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    X.setflags(write=False)
    return X


def far_groups(centres: Any, sizes: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal groups of these sizes, or of one, around these centres, and the group of every row."""
    centres = np.asarray(centres, dtype=float)
    each = np.repeat(np.arange(len(centres)), sizes)
    return centres[each] + normal(len(each), centres.shape[1], seed), each


def parted() -> np.ndarray:
    """Five groups so far apart that rbf is zero between them."""
    random = np.random.RandomState(3)
    return np.concatenate([random.standard_normal((n, 2)) + 500 * i for i, n in enumerate([40, 30, 30, 20, 12])])


def outliers() -> np.ndarray:
    """Two groups far apart and seven outliers, each far from everything."""
    random = np.random.RandomState(2)
    return np.concatenate([parted()[:70] / 8, random.uniform(-400, 400, (7, 2))])


def counts() -> np.ndarray:
    """Rows of small whole numbers, mostly zero."""
    random = np.random.RandomState(7)
    rates = random.uniform(0, 0.1, (3, 30))
    for i in range(3):
        rates[i, 10 * i : 10 * i + 10] = 2.0
    X = random.poisson(rates[np.arange(120) % 3]).astype(float)
    X[:, 0] += 1  # no row of zeros
    return X


def words(n: int = 300) -> np.ndarray:
    """Rows with six ones in 60 columns, most of them in the 15 columns of one of four groups."""
    random = np.random.RandomState(3)
    X = np.zeros((n, 60))
    for row, group in zip(X, random.randint(0, 4, n), strict=True):
        of_group = 15 * group + np.arange(15)
        row[random.choice(of_group if random.rand() < 0.85 else np.arange(60), 6, replace=False)] = 1
    return X


def mixed(n: int = 120, gaps: float = 0.0, seed: int = 0, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Groups in two columns of numbers, of which one has large values, and three of codes; and the group of each."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % k
    numbers = (y[:, None] + random.normal(0, 0.15, (n, 2))) * [1.0, 1e6]
    codes = np.where(random.random((n, 3)) < 0.1, random.integers(0, k, (n, 3)), y[:, None])
    X = np.column_stack([numbers, codes]).astype(float)
    X[random.random(X.shape) < gaps] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 0.5
    X.setflags(write=False)
    return X, y


def similarities() -> np.ndarray:
    return rbf_kernel(groups([30, 30, 30], seed=8), gamma=0.2)


def indefinite() -> np.ndarray:
    """A given matrix with positive sums and negative eigenvalues."""
    K = similarities() + 0.2
    np.fill_diagonal(K, 0)
    return K


def blocks() -> np.ndarray:
    """Similarities of four parts with nothing between them, and two rows alone."""
    return block_diag(*[np.ones((12, 12))] * 4, 1, 1)


def nearest(X: np.ndarray, n_neighbors: int) -> Any:
    """Distances to the nearest rows, sparse, as scikit-learn gives them."""
    return sparse.csr_array(kneighbors_graph(X, n_neighbors, mode="distance", include_self=True))


def alike(graph: Any) -> Any:
    """A symmetric graph of similarities from one of distances."""
    graph.data = np.exp(-graph.data)
    return sparse.csr_array(graph.maximum(graph.T))


def subspaces(
    k: int = 3, dimension: int = 2, d: int = 6, size: int = 30, noise: float = 0.01, seed: int = 9
) -> tuple[np.ndarray, np.ndarray]:
    """Points near k affine subspaces, and the number of each."""
    random = np.random.RandomState(seed)
    parts = []
    for _ in range(k):
        basis = np.linalg.qr(random.standard_normal((d, dimension)))[0].T
        parts.append(0.3 * random.standard_normal(d) + random.standard_normal((size, dimension)) @ basis)
    return np.concatenate(parts) + noise * random.standard_normal((k * size, d)), np.repeat(np.arange(k), size)


def planted(n: int = 60, k: int = 3, n_edges: int = 240, inside: float = 0.85, seed: int = 10) -> Hypergraph:
    """Edges of two to five vertices, most inside one of k groups."""
    random = np.random.RandomState(seed)
    edges = []
    for _ in range(n_edges):
        group = random.randint(k)
        pool = np.arange(n)[np.arange(n) % k == group] if random.random_sample() < inside else np.arange(n)
        edges.append(random.choice(pool, random.randint(2, 6), replace=False).tolist())
    return Hypergraph.from_edges(edges, random.random_sample(n_edges) + 0.5, vertices=n)


def separate_edges() -> Hypergraph:
    """Connected parts of a hypergraph, and two vertices without edges."""
    parts = [(0, 12), (12, 22), (22, 30), (30, 33)]
    random = np.random.RandomState(11)
    edges = [random.choice(np.arange(a, b), 3, replace=False).tolist() for a, b in parts for _ in range(4 * (b - a))]
    return Hypergraph.from_edges(edges, vertices=35)


DATA: dict[str, tuple[Callable[[], Any], int, float]] = {
    "blobs": (lambda: groups([40, 40, 40], apart=14), 3, 0.02),
    "touching": (lambda: groups([120, 100, 80, 100], apart=5, seed=12), 4, 0.1),
    "positive": (lambda: np.abs(groups([40, 40, 40], apart=14) + 20), 3, 0.02),
    "rings": (lambda: make_circles(240, factor=1 / 3, noise=0.03, random_state=1)[0] * 3, 2, 0.5),
    "outliers": (outliers, 2, 0.3),
    "parted": (parted, 3, 0.2),
    "repeated": (lambda: groups([20, 20, 20], seed=4)[np.random.RandomState(4).randint(60, size=150)], 3, 0.03),
    "counts": (counts, 3, 0.01),
    "wide": (lambda: groups([20, 20, 20], d=150, apart=20, seed=13), 3, 0.001),
    "mixed": (lambda: mixed(gaps=0.05)[0], 3, 3.0),
    "few": (lambda: np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 5.0]], 6, axis=0), 5, 0.1),
    "line": (lambda: np.linspace(0, 1, 200)[:, None], 3, 100.0),
    "middling": (lambda: groups([500, 400, 300], apart=6, seed=14), 3, 0.1),
    "many": (lambda: groups([900, 800, 700, 600], d=3, apart=6, seed=15), 4, 0.1),
    "large": (lambda: groups([12000, 10000, 9000], d=3, apart=9, seed=17), 3, 0.05),
    "similarities": (similarities, 3, 1.0),
    "indefinite": (indefinite, 3, 1.0),
    "blocks": (blocks, 4, 1.0),
    "connected_graph": (lambda: alike(nearest(rows_of("touching"), 15)), 4, 1.0),
    "distance_graph": (lambda: nearest(rows_of("rings"), 8), 2, 1.0),
    "similarity_graph": (lambda: alike(nearest(rows_of("rings"), 8)), 2, 1.0),  # two rings, with nothing between them
    "subspaces": (lambda: subspaces()[0], 3, 1.0),
    "planted": (planted, 3, 1.0),
    "mixed_edges": (lambda: planted(inside=0.4, seed=18), 3, 1.0),
    "many_edges": (lambda: planted(n=900, n_edges=4000, seed=19), 3, 1.0),
    "separate_edges": (separate_edges, 3, 1.0),
}
"""What makes the rows (or a matrix, a graph, a hypergraph), into how many clusters they go, and γ of rbf."""

GIVEN = ("similarities", "indefinite", "blocks", "connected_graph", "distance_graph", "similarity_graph")
"""Matrices of similarities or distances: there is no kernel."""


@cache
def rows_of(name: str) -> Any:
    """The data of this name; arrays are read-only."""
    X = DATA[name][0]()
    if isinstance(X, np.ndarray):
        X.setflags(write=False)
    return X


def weights_of(kind: str, n: int) -> Any:
    """Weights of rows: multiplicities."""
    number = np.arange(n)
    made = {
        "integers": 1 + number % 3,
        "zeros": (number % 5 > 0).astype(float),
        "fractions": 0.5 + (number % 7) / 7,
        "number": 2.0,
        "ones": np.ones(n),
    }
    return made[kind]


def frame_of(module: str, make: str) -> Callable[[np.ndarray], Any]:
    """What turns rows into a frame of a package, with names of columns."""
    return lambda X: getattr(import_module(module), make)({f"column {j}": X[:, j] for j in range(X.shape[1])})


pandas_frame = frame_of("pandas", "DataFrame")


def tensor_of(dtype: str) -> Callable[[np.ndarray], Any]:
    return lambda X: import_module("torch").tensor(X.astype(dtype))


def _memory_map(X: np.ndarray) -> np.ndarray:
    np.save("rows.npy", X)
    return np.load("rows.npy", mmap_mode="r")


SOURCES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "as it is": (lambda X: X, ""),
    "float32": (lambda X: X.astype(np.float32), ""),
    "int64": (lambda X: X.astype(np.int64), ""),
    "csr": (sparse.csr_array, ""),
    "csr float32": (lambda X: sparse.csr_array(X.astype(np.float32)), ""),
    "pandas": (pandas_frame, "pandas"),
    "polars": (frame_of("polars", "DataFrame"), "polars"),
    "arrow": (frame_of("pyarrow", "table"), "pyarrow"),
    "memory map": (_memory_map, ""),
    "dask": (lambda X: import_module("dask.array").from_array(X, chunks=(50, X.shape[1])), "dask"),
    "dask frame": (lambda X: import_module("dask.dataframe").from_pandas(pandas_frame(X), npartitions=3), "dask"),
    "tensor": (tensor_of("float64"), "torch"),
    "tensor float32": (tensor_of("float32"), "torch"),
}
"""How rows are passed, and the package that this needs."""
