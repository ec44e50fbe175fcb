"""The golden cases: a covering of estimators, ways of storing K, kernels, orders, assigners, weights and sources."""

from __future__ import annotations

import pickle
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from itertools import cycle
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import biclique
from biclique.kernels import InnerProductKernel, Kernel
from tests.golden.data import DATA, SOURCES, rows_of, weights_of
from tests.golden.record import Case, Record, attempt, note, note_model
from tests.golden.refusals import REFUSALS

ESTIMATORS = {
    "clustering": biclique.BicliqueSpectralClustering,
    "embedding": biclique.BicliqueSpectralEmbedding,
    "kernel k-means": biclique.BicliqueKernelKMeans,
    "hypergraph": biclique.HypergraphSpectralClustering,
    "subspaces": biclique.InhomogeneousSubspaceClustering,
}
ORDERS = ["auto", 2, 2.1, 3, 4, 8, np.inf]
SAME_KIND = ("float32", "fortran", "csr", "csr float32", "csc", "csr_matrix", "pandas", "polars", "arrow", "int64")
TENSORS = ("tensor", "tensor float32")
"""Sources of which new rows are of the same kind; for others they are an array."""

CASES: dict[str, Case] = {}


def add(name: str, run: Any, needs: tuple[str, ...] = ()) -> None:
    if name in CASES:
        raise ValueError(f"two golden cases are called {name!r}")
    CASES[name] = Case(name, run, needs)


def fit(
    name: str,
    data: str = "blobs",
    estimator: str = "clustering",
    *,
    source: str = "as it is",
    sample_weight: str | None = None,
    call: str = "fit",
    needs: tuple[str, ...] = (),
    **parameters: Any,
) -> None:
    """Add a case: one fit, then labels and embeddings of training rows, new rows and a row far away."""
    convert, package = SOURCES[source]

    def run(record: Record) -> None:
        X = rows_of(data)
        given = convert(X)
        model = make(estimator, data, parameters)
        asked = {} if sample_weight is None else {"sample_weight": weights_of(sample_weight, X.shape[0])}
        returned = getattr(model, call)(given, **asked)
        if call != "fit":
            note(record, call, returned)
        note_model(record, model)
        note_use(record, model, X, given, convert if source in (*SAME_KIND, *TENSORS) else None)
        if hasattr(model, "estimate_cost"):
            attempt(record, "cost", lambda: _cost(model.estimate_cost(given, **asked)))

    add(name, run, (package, *needs) if package else needs)


def make(estimator: str, data: str, parameters: dict[str, Any]) -> Any:
    """An estimator whose results do not depend on the machine's free memory or cores."""
    fixed = {"random_state": 0, "memory_limit": "2GB", "n_jobs": 1}
    if estimator == "subspaces":
        del fixed["n_jobs"]
    if estimator != "embedding":
        fixed["n_clusters"] = DATA[data][1]
    return ESTIMATORS[estimator](**{**fixed, **parameters})


def note_use(record: Record, model: Any, X: Any, given: Any, convert: Any = None) -> None:
    """What a fitted model says about the rows of its fit, about rows near them, and about one far away."""
    new, far = new_rows(X)
    asked = {"training": given.incidence if isinstance(given, biclique.Hypergraph) else given, "new": new, "far": far}
    if convert is not None:
        asked.update({"new": convert(new), "far": convert(far)})
    for method in ("predict", "transform"):
        for name, rows in asked.items() if hasattr(model, method) else ():
            attempt(record, f"{method}({name})", partial(getattr(model, method), rows))
    if hasattr(model, "get_feature_names_out"):
        attempt(record, "feature names", lambda: ", ".join(model.get_feature_names_out()))
    if hasattr(model, "clusters"):
        attempt(record, "clusters()", lambda: str(model.clusters()))


def new_rows(X: Any) -> tuple[Any, Any]:
    """Some rows near those of X, and one far from all."""
    if isinstance(X, biclique.Hypergraph):
        rows = sparse.csr_array(X.incidence)[::9]
        return rows, sparse.csr_array((1, rows.shape[1]))
    if X is rows_of("neighbor_graph"):
        return X[::9], X[:1] * 1000
    if sparse.issparse(X) or X.shape[0] == X.shape[1]:  # a given matrix
        return X[::9], sparse.csr_array((1, X.shape[1])) if sparse.issparse(X) else np.zeros((1, X.shape[1]))
    return X[::9] * 1.01, np.full((1, X.shape[1]), 1e3 * np.abs(X).max() + 1)


def _cost(cost: Any) -> tuple[Any, ...]:
    """An estimate without its seconds, which are measured."""
    return cost.gram, cost.rows, cost.bytes, cost.device, cost.device_bytes


def likeness(x: np.ndarray, y: np.ndarray, width: float = 0.1) -> float:
    """A user's own function of two rows."""
    return float(np.exp(-width * np.abs(x - y).sum()))


class Cauchy(Kernel):
    """A user's own kernel: 1/(1 + |x − y|²/10)."""

    translation_invariant = True
    positive = True

    def block(self, X: Any, Y: Any) -> Any:
        squares = (X * X).sum(1)[:, None] + (Y * Y).sum(1)[None] - 2 * (X @ Y.T)
        return 1 / (1 + np.maximum(squares, 0) / 10)


class Parabola(InnerProductKernel):
    """A user's own kernel of an inner product: (1 + ⟨x, y⟩/100)²."""

    def left(self, X: Any) -> Any:
        return X / 100

    def right(self, X: Any) -> Any:
        return X

    def finish(self, inner: Any) -> Any:
        inner += 1
        inner *= inner
        return inner


AFFINITIES: dict[str, tuple[str, dict[str, Any]]] = {
    "rbf": ("blobs", {}),
    "laplacian": ("blobs", {}),
    "polynomial": ("positive", {"gamma": 0.01}),
    "poly": ("positive", {"degree": 2, "coef0": 0.5}),
    "linear": ("positive", {}),
    "cosine": ("positive", {}),
    "sigmoid": ("positive", {"gamma": 1e-3, "coef0": 0.1}),
    "chi2": ("positive", {}),
    "additive_chi2": ("positive", {}),
    "function": ("blobs", {"affinity": likeness}),
    "function with parameters": ("blobs", {"affinity": likeness, "kernel_params": {"width": 0.3}}),
    "Kernel": ("blobs", {"affinity": Cauchy()}),
    "InnerProductKernel": ("positive", {"affinity": Parabola()}),
    "gower": ("blobs", {}),
}
"""Kernels, and data that suit them."""

GRAMS: dict[str, dict[str, Any]] = {
    "auto": {},
    "dense": {"gram": "dense"},
    "tiled": {"gram": "tiled"},
    "nystroem": {"gram": "nystroem", "rank": 30},
    "features": {"gram": "features", "rank": 60},
}
NEIGHBORS = {"affinity": "nearest_neighbors"}


def add_kernels() -> None:
    orders = cycle(ORDERS)
    for affinity, (data, parameters) in AFFINITIES.items():
        for gram, ways in GRAMS.items():
            order = next(orders)
            name = f"kernel/{affinity}/{gram}/order {order}"
            fit(name, data, **{"affinity": affinity, "order": order, **parameters, **ways})


def add_orders() -> None:
    for order in ORDERS:
        fit(f"order/dense/{order}", "touching", gram="dense", order=order)
        fit(f"order/tiled/{order}", "touching", gram="tiled", order=order)
        fit(f"order/nystroem/{order}", "touching", gram="nystroem", rank=60, order=order)
        fit(f"order/features/{order}", "touching", gram="features", rank=100, order=order)
        fit(f"order/neighbors/{order}", "rings", **NEIGHBORS, order=order)
        fit(f"order/connected neighbors/{order}", "touching", **NEIGHBORS, order=order)
        fit(f"order/similarities/{order}", "similarities", affinity="precomputed", order=order)
        fit(f"order/embedding/{order}", "touching", "embedding", order=order)
        fit(f"order/kernel k-means/{order}", "touching", "kernel k-means", order=order)
        for data in ("dusty", "outlier"):
            fit(f"order/{data}/{order}", data, order=order)


def add_symmetric() -> None:
    for order in ("auto", 2, 3, 4, 5, 2.5):
        fit(f"symmetric/dense/{order}", order=order, modelling="symmetric")
    for gram in ("tiled", "nystroem", "features"):
        fit(f"symmetric/{gram}/3", order=3, modelling="symmetric", **GRAMS[gram])
    fit("symmetric/embedding/3", "touching", "embedding", order=3, modelling="symmetric")
    fit("symmetric/polynomial/20", "positive", order=20, modelling="symmetric", affinity="polynomial")
    fit("symmetric/weights", sample_weight="integers", order=3, modelling="symmetric")


def add_assigners() -> None:
    ways = {
        "dense": ("touching", GRAMS["dense"]),
        "tiled": ("touching", GRAMS["tiled"]),
        "nystroem": ("touching", GRAMS["nystroem"]),
        "neighbors": ("touching", NEIGHBORS),
        "similarities": ("similarities", {"affinity": "precomputed"}),
        "parts": ("parted", {"order": 2}),
    }
    scales = cycle(["auto", True, False])
    for assign in ("kmeans", "cluster_qr", "discretize", "kernel_kmeans"):
        for way, (data, parameters) in ways.items():
            scale = next(scales)
            fit(f"assign/{assign}/{way}/{scale}", data, assign_labels=assign, row_normalize=scale, **parameters)
        next(scales)  # other pairs for the next one
        fit(f"assign/{assign}/n_init 1", "touching", assign_labels=assign, n_init=1)
        fit(f"assign/{assign}/few rows", "few", assign_labels=assign)
        fit(f"assign/{assign}/fewer components", "touching", assign_labels=assign, n_components=2)
        fit(f"assign/{assign}/more components", "touching", assign_labels=assign, n_components=6)
    for way, (data, parameters) in ways.items():
        fit(f"assign/scaled/{way}", data, row_normalize=True, n_init=3, **parameters)
        fit(f"assign/not scaled/{way}", data, row_normalize=False, **parameters)


def add_solvers() -> None:
    for solver in (None, "auto", "krylov", "arpack", "lobpcg", "amg"):
        fit(f"solver/dense/{solver}", "middling", eigen_solver=solver, order=4)
        fit(f"solver/tiled/{solver}", "middling", eigen_solver=solver, order=4, gram="tiled")
        fit(f"solver/small/{solver}", "blobs", eigen_solver=solver)
        fit(f"solver/neighbors/{solver}", "middling", eigen_solver=solver, **NEIGHBORS)
        fit(f"solver/graph/{solver}", "similarity_graph", eigen_solver=solver, affinity="precomputed")
    fit("solver/features", "middling", eigen_solver="krylov", **GRAMS["features"])
    fit("solver/tolerance", "middling", eigen_tol=1e-4, order=2.1, gram="tiled")
    fit("solver/one pass", "middling", max_iter=1, gram="tiled", order=3)
    fit("solver/few passes", "middling", max_iter=3, order=3, n_clusters=6, eigen_tol=1e-10)
    fit("solver/embedding", "middling", "embedding", eigen_tol=1e-10, order=2)


def add_weights() -> None:
    for kind in ("integers", "zeros", "fractions", "list", "number", "ones"):
        for gram in ("dense", "tiled", "nystroem", "features"):
            fit(
                f"weights/{kind}/{gram}",
                sample_weight=kind,
                **GRAMS[gram],
            )
        fit(f"weights/{kind}/neighbors", "rings", sample_weight=kind, **NEIGHBORS)
    for kind in ("integers", "zeros"):
        fit(f"weights/{kind}/embedding", "touching", "embedding", sample_weight=kind)
        fit(f"weights/{kind}/kernel k-means", "touching", "kernel k-means", sample_weight=kind)
        fit(f"weights/{kind}/repeated", "repeated", sample_weight=kind)
        fit(f"weights/{kind}/parted", "parted", sample_weight=kind, order=2)
        fit(f"weights/{kind}/similarities", "similarities", sample_weight=kind, affinity="precomputed")
        fit(f"weights/{kind}/chunks", sample_weight=kind, source="list of chunks")


def add_shapes() -> None:
    ways = {**GRAMS, "neighbors": NEIGHBORS, "order 2": {"order": 2}, "order 4 tiled": {"order": 4, "gram": "tiled"}}
    for data in ("dusty", "parted", "repeated", "outlier", "uneven", "wide", "far", "few", "equal", "line"):
        for way, parameters in ways.items():
            if way in ("nystroem", "features") and data in ("few", "equal"):
                parameters = {"gram": way}  # as many distinct rows as the rank are needed
            fit(f"shape/{data}/{way}", data, **parameters)
        fit(f"shape/{data}/embedding", data, "embedding")
        fit(f"shape/{data}/kernel k-means", data, "kernel k-means")
    fit("shape/blobs/one cluster", n_clusters=1)
    fit("shape/blobs/neighbors, one cluster", n_clusters=1, **NEIGHBORS)
    fit("shape/blobs/as many clusters as rows", n_clusters=120)


def add_precisions() -> None:
    for precision in ("auto", "float32", "float64"):
        for gram in ("dense", "tiled", "nystroem", "features"):
            fit(f"precision/{precision}/{gram}", "touching", precision=precision, **GRAMS[gram])
        fit(f"precision/{precision}/far", "far", precision=precision, gram="tiled", affinity="polynomial")
        fit(f"precision/{precision}/float32 rows", source="float32", precision=precision, gram="tiled")


def add_factors() -> None:
    for landmarks in ("uniform", "kmeans++", "leverage"):
        for rank in (20, "auto"):
            fit(f"landmarks/{landmarks}/{rank}", "touching", gram="nystroem", landmarks=landmarks, rank=rank)
    fit("landmarks/kernel k-means", "touching", "kernel k-means", gram="nystroem", rank=40)
    fit("landmarks/embedding", "touching", "embedding", gram="nystroem", landmarks="leverage", rank=40)
    for affinity in ("rbf", "laplacian", "linear", "cosine", "polynomial"):
        data, parameters = AFFINITIES[affinity]
        fit(f"features/{affinity}/auto", data, gram="features", affinity=affinity, **parameters)
    fit("features/sketch", "wide", gram="features", affinity="polynomial", rank=50)
    fit("features/embedding", "touching", "embedding", gram="features", rank=80)
    fit("features/kernel k-means", "touching", "kernel k-means", gram="features", rank=80)


def add_neighbors() -> None:
    for weights in ("auto", "connectivity", "rbf", "self_tuning"):
        for n_neighbors in (4, 10):
            fit(
                f"neighbors/{weights}/{n_neighbors}",
                "rings",
                neighbor_weights=weights,
                n_neighbors=n_neighbors,
                **NEIGHBORS,
            )
        fit(
            f"neighbors/given/{weights}",
            "neighbor_graph",
            affinity="precomputed_nearest_neighbors",
            n_neighbors=8,
            neighbor_weights=weights,
        )
    fit("neighbors/gamma", "rings", gamma=2.0, **NEIGHBORS)
    fit("neighbors/embedding", "rings", "embedding", **NEIGHBORS)
    fit("neighbors/whole embedding", "touching", "embedding", drop_first=False, n_components=4, **NEIGHBORS)
    fit("neighbors/sparse rows", "counts", source="csr", **NEIGHBORS)
    fit("neighbors/frame", "touching", source="pandas", **NEIGHBORS)
    fit("neighbors/more neighbours than rows", "few", n_neighbors=40, **NEIGHBORS)
    for data in ("similarities", "indefinite", "blocks", "similarity_graph"):
        for order in ("auto", 2, 4):
            fit(f"given/{data}/{order}", data, affinity="precomputed", order=order)
        fit(f"given/{data}/embedding", data, "embedding", affinity="precomputed")
        fit(f"given/{data}/kernel k-means", data, "kernel k-means", affinity="precomputed")
    fit("given/sparse", "similarities", source="csr", affinity="precomputed")
    fit("given/sparse blocks", "blocks", source="csr", affinity="precomputed", order=2)
    fit("given/float32", "similarities", source="float32", affinity="precomputed")
    fit("given/frame", "similarities", source="pandas", affinity="precomputed")


def add_sources() -> None:
    for source in SOURCES:
        if "tensor" not in source:
            data = "whole" if source == "int64" else "counts" if source.startswith("cs") else "blobs"
            fit(f"source/{source}/auto", data, source=source)
            fit(f"source/{source}/nystroem", data, source=source, gram="nystroem", rank=25)
    for source in ("path of npy", "list of chunks", "function of chunks", "parquet", "pandas"):
        fit(f"source/{source}/linear", "positive", source=source, affinity="linear")
        fit(f"source/{source}/features", source=source, gram="features", rank=40, order=3)
        fit(f"source/{source}/embedding", "touching", "embedding", source=source, rank=40)
        fit(f"source/{source}/dense", source=source, gram="dense")
        fit(f"source/{source}/neighbors", source=source, **NEIGHBORS)
    for source in ("csr", "csr float32"):
        for affinity in ("linear", "cosine", "rbf"):
            for gram in ("dense", "tiled", "nystroem"):
                fit(f"source/{source}/{affinity}/{gram}", "counts", source=source, affinity=affinity, **GRAMS[gram])


def add_options() -> None:
    for rule in ("median", "scale", 0.05):
        for gram in ("dense", "nystroem"):
            fit(f"gamma/{rule}/{gram}", "touching", gamma=rule, **GRAMS[gram])
    for affinity in ("laplacian", "chi2", "polynomial"):
        fit(f"gamma/scale/{affinity}", "positive", gamma="scale", affinity=affinity)
        fit(f"gamma/median/{affinity}", "positive", gamma="median", affinity=affinity)
    for call in ("fit_predict", "fit_transform"):
        for estimator in ("clustering", "embedding", "kernel k-means"):
            if hasattr(ESTIMATORS[estimator], call):
                fit(f"call/{call}/{estimator}", "touching", estimator, call=call)
    fit("call/fit_predict/weights", call="fit_predict", sample_weight="integers")
    fit("call/fit_predict/neighbors", "rings", call="fit_predict", **NEIGHBORS)
    fit("call/fit_transform/nystroem", call="fit_transform", **GRAMS["nystroem"])
    for limit in (8 * 1200**2 + 100_000, "3MB", "40MB", "400KB", "auto"):
        fit(f"memory/{limit}", "middling", memory_limit=limit)
        fit(f"memory/{limit}/nystroem", "middling", memory_limit=limit, **GRAMS["nystroem"])
        fit(f"memory/{limit}/neighbors", "middling", memory_limit=limit, **NEIGHBORS)
    for n_jobs in (None, 2):
        fit(f"threads/{n_jobs}", "middling", gram="tiled", n_jobs=n_jobs, order=3)
    fit("embedding/whole", "touching", "embedding", drop_first=False)
    fit("embedding/many columns", "touching", "embedding", n_components=12)
    fit("seed/1", "touching", random_state=1, gram="tiled")
    fit("seed/numpy", "touching", random_state=np.random.RandomState(3).randint(1000), n_init=2)


def add_selections() -> None:
    for data in ("blobs", "touching", "rings", "dusty"):
        for chosen in ({"affinity": "select", "gamma": "select", "order": "select"}, {"n_clusters": "select"}):
            fit(f"select/{'+'.join(chosen)}/{data}", data, **chosen)
    fit("select/gamma/weights", sample_weight="integers", gamma="select")
    fit("select/order/neighbors", "rings", order="select", **NEIGHBORS)


def add_kernel_kmeans() -> None:
    for init in ("spectral", "random", "k-means++"):
        for n_init in (1, 4):
            fit(f"kernel k-means/{init}/{n_init}", "touching", "kernel k-means", init=init, n_init=n_init)
        fit(f"kernel k-means/{init}/indefinite", "indefinite", "kernel k-means", init=init, affinity="precomputed")
        fit(f"kernel k-means/{init}/tiled", "touching", "kernel k-means", init=init, gram="tiled", order=3)
    for weights in ("paper", np.linspace(0, 2, 400)):
        for order in (2, 4, np.inf):
            name = weights if isinstance(weights, str) else "given"
            fit(f"kernel k-means/weights {name}/{order}", "touching", "kernel k-means", weights=weights, order=order)
    fit("kernel k-means/one step", "touching", "kernel k-means", init="random", max_iter=1)
    fit("kernel k-means/sparse rows", "counts", "kernel k-means", source="csr", affinity="cosine")
    fit("kernel k-means/frame", "touching", "kernel k-means", source="polars")


def quadratic(j: int, s: int) -> float:
    """A user's own splitting function."""
    return j * (s - j) / s


def add_hypergraphs() -> None:
    for expansion in ("star", "clique", "normalized_clique", "contraction", quadratic):
        name = expansion if isinstance(expansion, str) else "function"
        for order in (2, 3.5, np.inf):
            fit(f"hypergraph/{name}/{order}", "planted", "hypergraph", expansion=expansion, order=order)
    for assign in ("kmeans", "cluster_qr", "discretize", "kernel_kmeans"):
        fit(f"hypergraph/{assign}/mixed", "mixed_edges", "hypergraph", assign_labels=assign)
        fit(f"hypergraph/{assign}/separate", "separate_edges", "hypergraph", assign_labels=assign)
    for order in (2, 4):
        fit(f"hypergraph/separate/{order}", "separate_edges", "hypergraph", order=order)
        fit(f"hypergraph/separate, more clusters/{order}", "separate_edges", "hypergraph", order=order, n_clusters=6)
        fit(f"hypergraph/many/{order}", "many_edges", "hypergraph", order=order)
    fit("hypergraph/not scaled", "planted", "hypergraph", row_normalize=False, n_init=1)
    fit("hypergraph/components", "planted", "hypergraph", n_components=5)
    fit("hypergraph/few passes", "many_edges", "hypergraph", max_iter=2)
    fit("hypergraph/little memory", "many_edges", "hypergraph", memory_limit="10KB")
    for source in ("as it is", "csr", "pandas", "int64"):
        fit(f"hypergraph/incidence/{source}", "counts", "hypergraph", source=source)
    fit("hypergraph/fit_predict", "planted", "hypergraph", call="fit_predict")


def add_subspaces() -> None:
    for parameters in (
        {},
        {"n_rounds": 2, "n_draws": 100},
        {"n_restarts": 2, "n_rounds": 2, "n_draws": 50, "n_init": 1},
        {"subspace_dim": 1, "n_rounds": 3, "n_draws": 100},
        {"n_clusters": 1},
        {"n_clusters": 5, "n_rounds": 2, "n_draws": 100},
    ):
        name = ", ".join(f"{key} {value}" for key, value in parameters.items()) or "default"
        fit(f"subspaces/{name}", "subspaces", "subspaces", **{"subspace_dim": 2, **parameters})
    fit("subspaces/repeated", "repeated", "subspaces", subspace_dim=2, n_rounds=2, n_draws=60)
    fit("subspaces/frame", "subspaces", "subspaces", source="pandas", subspace_dim=2, n_rounds=1, n_draws=60)


def add_sizes() -> None:
    for gram in ("auto", "tiled"):
        fit(f"size/many/{gram}", "many", gram=gram)
    fit("size/many/nystroem", "many", gram="nystroem")
    fit("size/many/features", "many", gram="features", rank=200)
    fit("size/many/neighbors", "many", **NEIGHBORS)
    fit("size/many/kernel k-means", "many", "kernel k-means", gram="tiled", order=4)
    fit("size/thousands/auto", "thousands", order=4)
    fit("size/thousands/function", "thousands", affinity=Cauchy(), order=4)
    fit("size/columns", "columns", order=3)
    fit("size/large/tiled", "large", gram="tiled")
    fit("size/often repeated", "often_repeated")
    fit("size/hundred thousands", "hundred_thousands", n_init=2)


def add_rare() -> None:
    """Ways that few data take."""
    for data in ("scattered", "heavy"):
        for gram in ("dense", "tiled", "nystroem", "features"):
            fit(f"rare/{data}/{gram}", data, **GRAMS[gram])
            fit(f"rare/{data}/{gram}/not scaled", data, row_normalize=False, n_init=2, **GRAMS[gram])
        fit(f"rare/{data}/embedding", data, "embedding", gram="tiled")
        fit(f"rare/{data}/kernel k-means", data, "kernel k-means")
        fit(f"rare/{data}/krylov", data, eigen_solver="krylov", n_clusters=5)
        fit(f"rare/{data}/arpack", data, eigen_solver="arpack")
        fit(f"rare/{data}/symmetric", data, modelling="symmetric")
        fit(f"rare/{data}/weights", data, sample_weight="integers")
        fit(f"rare/{data}/chunks", data, source="list of chunks")
        fit(f"rare/{data}/neighbors", data, **NEIGHBORS)
    for gram in ("auto", "tiled"):
        fit(f"rare/large parts/{gram}", "large_parts", gamma=1.0, order=2, **GRAMS[gram])
    fit("rare/large parts/auto order", "large_parts", gamma=1.0)
    fit("rare/large parts/neighbors", "large_parts", **NEIGHBORS)
    fit("rare/parts and fewer components", "parted", n_components=2, order=2)
    fit("rare/parts and more components", "parted", n_components=7, order=2)
    fit("rare/unseen rows", "parted", order=2, gram="nystroem", rank=4, gamma=1.0)
    fit("rare/symmetric, zeros", "similarities", affinity="precomputed", modelling="symmetric", sample_weight="zeros")
    fit("rare/symmetric, given", "similarities", affinity="precomputed", modelling="symmetric", order=3)
    fit("rare/negative eigenvalues", "indefinite", affinity="precomputed", order=2, n_clusters=40)
    fit(
        "rare/given graph, zeros",
        "neighbor_graph",
        affinity="precomputed_nearest_neighbors",
        n_neighbors=8,
        sample_weight="zeros",
    )
    fit(
        "rare/given graph, integers",
        "neighbor_graph",
        affinity="precomputed_nearest_neighbors",
        n_neighbors=8,
        sample_weight="integers",
    )
    for source in ("list of chunks", "function of chunks"):
        fit(f"rare/{source}/symmetric", source=source, modelling="symmetric", order=3)
        fit(f"rare/{source}/kernel_kmeans", source=source, assign_labels="kernel_kmeans")
        fit(f"rare/{source}/precomputed", "similarities", source=source, affinity="precomputed")
    fit("rare/chunks, embedding at order 2", "touching", "embedding", source="list of chunks", order=2)
    for order in (2, 4):
        fit(f"rare/long chain/{order}", "long_chain", "hypergraph", order=order)
    fit("rare/long chain, little memory", "long_chain", "hypergraph", memory_limit="500KB", max_iter=60)
    fit("rare/separate edges, fewer components", "separate_edges", "hypergraph", n_components=2)
    fit("rare/more clusters than groups", "separate_edges", "hypergraph", n_clusters=12, assign_labels="discretize")
    fit("rare/few draws", "subspaces", "subspaces", subspace_dim=2, n_draws=1, n_rounds=2)
    fit("rare/few distinct points", "few", "subspaces", subspace_dim=1, n_draws=20, n_rounds=2)


def _verbose(estimator: str, data: str, parameters: dict[str, Any]) -> Any:
    """What is shown has times in it: only the results are written down."""

    def run(record: Record) -> None:
        with redirect_stderr(StringIO()):
            note_model(record, make(estimator, data, {**parameters, "verbose": 1}).fit(rows_of(data)))

    return run


def add_verbose() -> None:
    for way, (estimator, data, parameters) in {
        "dense": ("clustering", "touching", {}),
        "tiled": ("clustering", "middling", {"gram": "tiled"}),
        "nystroem": ("clustering", "touching", GRAMS["nystroem"]),
        "neighbors": ("clustering", "touching", NEIGHBORS),
        "parts": ("clustering", "parted", NEIGHBORS),
        "kernel k-means": ("kernel k-means", "touching", {}),
        "hypergraph": ("hypergraph", "planted", {}),
        "subspaces": ("subspaces", "subspaces", {"subspace_dim": 2, "n_rounds": 1, "n_draws": 50}),
    }.items():
        add(f"verbose/{way}", _verbose(estimator, data, parameters))


def _other_kind(parameters: dict[str, Any], fitted: str, asked: str) -> Any:
    """Fit rows of one kind, ask about rows of another."""

    def run(record: Record) -> None:
        X = rows_of("counts")
        model = make("clustering", "counts", parameters).fit(SOURCES[fitted][0](X))
        note_model(record, model)
        for method in ("predict", "transform"):
            attempt(record, method, lambda method=method: getattr(model, method)(SOURCES[asked][0](X[::3])))

    return run


def add_kinds() -> None:
    pairs = [("as it is", "csr"), ("csr", "as it is"), ("as it is", "float32"), ("float32", "as it is")]
    pairs += [("as it is", "list"), ("pandas", "as it is"), ("as it is", "pandas"), ("pandas", "polars")]
    pairs += [("path of npy", "as it is"), ("as it is", "path of npy"), ("parquet", "pandas"), ("parquet", "npy")]
    ways = {"auto": {}, "tiled": GRAMS["tiled"], "nystroem": GRAMS["nystroem"], "neighbors": NEIGHBORS}
    for fitted, asked in pairs:
        needs = tuple(package for package in (SOURCES[fitted][1], SOURCES[asked][1]) if package)
        for way, parameters in ways.items():
            if fitted in ("as it is", "csr", "float32", "pandas") or way in ("auto", "nystroem"):
                add(f"kind/{fitted}/{asked}/{way}", _other_kind(parameters, fitted, asked), needs)


DEVICE_WAYS: dict[str, dict[str, Any]] = {
    "rbf": {},
    "laplacian": {"affinity": "laplacian"},
    "polynomial": {"affinity": "polynomial"},
    "linear": {"affinity": "linear"},
    "cosine": {"affinity": "cosine"},
    "sigmoid": {"affinity": "sigmoid"},
    "median": {"gamma": "median"},
    "float64": {"precision": "float64"},
    "fast": {"precision": "fast"},
    "nystroem": {"gram": "nystroem", "rank": 40},
    "leverage": {"gram": "nystroem", "rank": 40, "landmarks": "leverage"},
    "polynomial landmarks": {"gram": "nystroem", "rank": 40, "affinity": "polynomial", "landmarks": "kmeans++"},
    "laplacian landmarks": {"gram": "nystroem", "rank": 40, "affinity": "laplacian"},
    "features": {"gram": "features", "rank": 80},
    "laplacian features": {"gram": "features", "rank": 80, "affinity": "laplacian"},
    "linear features": {"gram": "features", "affinity": "linear"},
    "cluster_qr": {"assign_labels": "cluster_qr"},
    "discretize": {"assign_labels": "discretize"},
    "kernel_kmeans": {"assign_labels": "kernel_kmeans"},
    "scaled": {"row_normalize": True},
    "not scaled": {"row_normalize": False, "n_init": 1},
    "neighbors": NEIGHBORS,
}


def add_devices() -> None:
    needs = ("torch",)
    orders = cycle(ORDERS)
    for way, parameters in DEVICE_WAYS.items():
        order = next(orders)
        fit(f"device/array/{way}", "positive", device="cpu", order=order, needs=needs, **parameters)
        fit(f"device/tensor/{way}", "positive", source="tensor float32", order=order, **parameters)
    for order in ORDERS:
        fit(f"device/order/{order}", "touching", device="cpu", order=order, needs=needs)
    for source in SOURCES:
        if "tensor" in source:
            fit(f"device/source/{source}", "touching", source=source)
            fit(f"device/source/{source}/nystroem", "touching", source=source, gram="nystroem", rank=30)
    fit("device/source/float32", "touching", source="float32", device="cpu", needs=needs)
    fit("device/source/list", "touching", source="list", device="cpu", needs=needs)
    fit("device/far landmarks", "outlier", device="cpu", gram="nystroem", needs=needs)
    fit("device/sketch", "wide", device="cpu", gram="features", affinity="polynomial", rank=50, needs=needs)
    for estimator in ("embedding", "kernel k-means"):
        fit(f"device/tensor/{estimator}", "touching", estimator, source="tensor")
    fit("device/embedding", "touching", "embedding", device="cpu", needs=needs)
    for kind in ("integers", "zeros"):
        for gram in ("auto", "nystroem"):
            fit(f"device/weights/{kind}/{gram}", sample_weight=kind, device="cpu", needs=needs, **GRAMS[gram])
    for data in ("dusty", "repeated", "outlier", "parted", "few", "equal"):
        fit(f"device/{data}", data, device="cpu", needs=needs)
    fit("device/sparse rows", "counts", source="csr", device="cpu", needs=needs)
    fit("device/chunks", source="list of chunks", device="cpu", needs=needs)
    fit("device/many", "many", device="cpu", needs=needs)
    fit("device/many landmarks", "many", device="cpu", gram="nystroem", needs=needs)


def _scenario(name: str, data: str = "touching", **parameters: Any) -> Any:
    """Adds a function of a record, a fitted model and its rows as a case."""

    def decorate(function: Any) -> Any:
        def run(record: Record) -> None:
            model = make("clustering", data, parameters).fit(rows_of(data))
            function(record, model, rows_of(data))

        add(f"again/{name}", run)
        return function

    return decorate


def _fitted_again(record: Record, model: Any, X: Any) -> None:
    """Nothing of an earlier fit is left."""
    del X
    model.set_params(assign_labels="kmeans", affinity="rbf", n_clusters=3, gram="dense").fit(rows_of("blobs"))
    note_model(record, model)


def _failed(record: Record, model: Any, X: Any) -> None:
    """A fit that fails leaves the model as it was."""
    attempt(record, "fit", lambda: model.set_params(order=1).fit(X))
    note_model(record, model)
    attempt(record, "predict", lambda: model.predict(X[:7] * 1.01))


def _pickled(record: Record, model: Any, X: Any) -> None:
    model = pickle.loads(pickle.dumps(model))
    note_model(record, model)
    note_use(record, model, X, X)


def _estimated(record: Record, model: Any, X: Any) -> None:
    """An estimate leaves the model as it was; it refuses what a fit refuses."""
    attempt(record, "cost", lambda: _cost(model.estimate_cost(X[:50])))
    attempt(record, "refused", lambda: _cost(clone(model).set_params(n_clusters=1000).estimate_cost(X)))
    note_model(record, model)


def add_scenarios() -> None:
    ways: dict[str, tuple[str, dict[str, Any]]] = {
        "dense": ("touching", {"assign_labels": "kernel_kmeans"}),
        "tiled": ("touching", {"gram": "tiled"}),
        "nystroem": ("touching", {"gram": "nystroem", "rank": 30}),
        "neighbors": ("rings", NEIGHBORS),
        "parts": ("parted", {"order": 2}),
    }
    for way, (data, parameters) in ways.items():
        for function in (_fitted_again, _failed, _pickled, _estimated):
            _scenario(f"{function.__name__[1:]}/{way}", data, **parameters)(function)


for _add in (
    add_kernels,
    add_orders,
    add_symmetric,
    add_assigners,
    add_solvers,
    add_weights,
    add_shapes,
    add_precisions,
    add_factors,
    add_neighbors,
    add_sources,
    add_options,
    add_selections,
    add_kernel_kmeans,
    add_hypergraphs,
    add_subspaces,
    add_sizes,
    add_rare,
    add_verbose,
    add_kinds,
    add_devices,
    add_scenarios,
):
    _add()
for _name, _run in REFUSALS.items():
    add(_name, _run)
