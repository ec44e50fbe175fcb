"""The golden cases: estimators, ways of storing K, kernels, orders, assigners, weights and sources.

Every case says what it asks for: kernel, γ, order, gram, rank, assigner. None depends on a default or on a rule that
chooses one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

import biclique
from biclique.kernels import Gower, Kernel
from tests.data import DATA, GIVEN, SOURCES, rows_of, weights_of
from tests.golden.record import Case, Record, attempt, note, note_model

ESTIMATORS = {
    "clustering": biclique.BicliqueSpectralClustering,
    "embedding": biclique.BicliqueSpectralEmbedding,
    "kernel k-means": biclique.BicliqueKernelKMeans,
    "hypergraph": biclique.HypergraphSpectralClustering,
    "subspaces": biclique.InhomogeneousSubspaceClustering,
}

ALL = {"random_state": 0, "n_jobs": 1}
CUT = {**ALL, "order": 4, "eigen_tol": 1e-10}
LABELS = {"assign_labels": "kmeans", "row_normalize": True, "n_init": 10}
ROWS = {"affinity": "rbf", "gram": "dense", "precision": "float64"}
PLANES = {"subspace_dim": 2, "n_draws": 100, "n_rounds": 2, "n_restarts": 1, "n_init": 10}
ASKED: dict[str, dict[str, Any]] = {
    "clustering": {**CUT, **ROWS, **LABELS, "modelling": "biclique"},
    "embedding": {**CUT, **ROWS, "modelling": "biclique", "n_components": 3, "drop_first": True},
    "kernel k-means": {**ALL, **ROWS, "order": 4, "weights": "cut", "init": "spectral", "n_init": 1},
    "hypergraph": {**CUT, **LABELS, "order": 2, "expansion": "star"},
    "subspaces": {"random_state": 0, **PLANES},
}
"""What a case asks for unless it says otherwise."""

ORDERS = (2, 2.1, 4, np.inf)
GRAMS: dict[str, dict[str, Any]] = {
    "dense": {"gram": "dense"},
    "tiled": {"gram": "tiled"},
    "nystroem": {"gram": "nystroem", "rank": 30},
    "features": {"gram": "features", "rank": 60},
}
ASSIGNERS = ("kmeans", "cluster_qr", "discretize", "kernel_kmeans")
FLOAT32 = {"precision": "float32", "eigen_tol": 1e-3}
GIVEN_MATRIX = {"affinity": "precomputed"}
NEIGHBORS = {"affinity": "nearest_neighbors", "n_neighbors": 10, "gamma": 1.0}
GIVEN_NEIGHBORS = {"affinity": "precomputed_nearest_neighbors", "n_neighbors": 8, "gamma": 1.0}

SAME_KIND = ("float32", "csr", "csr float32", "pandas", "polars", "arrow", "int64")
TENSORS = ("tensor", "tensor float32")
"""Sources of which new rows are of the same kind; for others they are an array."""

CASES: dict[str, Case] = {}


def add(name: str, run: Callable[[Record], None], needs: tuple[str, ...] = ()) -> None:
    if name in CASES:
        raise ValueError(f"two golden cases are called {name!r}")
    CASES[name] = Case(name, run, tuple(package for package in needs if package))


def parameters_of(estimator: str, data: str, own: dict[str, Any]) -> dict[str, Any]:
    """Everything that a case passes to an estimator."""
    asked = {**ASKED[estimator], **own}
    if estimator != "embedding":
        asked.setdefault("n_clusters", DATA[data][1])
    if asked.get("affinity") == "rbf":
        asked.setdefault("gamma", DATA[data][2])
    if data in GIVEN or asked.get("affinity") == "nearest_neighbors":
        del asked["gram"]  # there is but one way to store K
    if "auto" in [value for value in asked.values() if isinstance(value, str)]:
        raise ValueError(f"a golden case leaves a choice to a rule: {own}")
    return asked


def make(estimator: str, data: str, own: dict[str, Any]) -> Any:
    return ESTIMATORS[estimator](**parameters_of(estimator, data, own))


def fit(
    name: str,
    data: str = "blobs",
    estimator: str = "clustering",
    *,
    source: str = "as it is",
    sample_weight: str | None = None,
    call: str = "fit",
    needs: str = "",
    **own: Any,
) -> None:
    """Add a case: one fit, then labels, embeddings and probabilities of training rows, new rows and a row far away."""
    convert, package = SOURCES[source]
    parameters_of(estimator, data, own)  # a mistake shows at once

    def run(record: Record) -> None:
        X = rows_of(data)
        given = convert(X)
        model = make(estimator, data, own)
        weights = {} if sample_weight is None else {"sample_weight": weights_of(sample_weight, X.shape[0])}
        returned = getattr(model, call)(given, **weights)
        if call != "fit":
            note(record, call, returned)
        note_model(record, model)
        note_use(record, model, X, given, convert if source in (*SAME_KIND, *TENSORS) else None)

    add(name, run, (package, needs))


def note_use(record: Record, model: Any, X: Any, given: Any, convert: Any = None) -> None:
    """What a fitted model says about the rows of its fit, about rows near them, and about one far away."""
    new, far = new_rows(X)
    asked = {"training": given.incidence if isinstance(given, biclique.Hypergraph) else given, "new": new, "far": far}
    if convert is not None:
        asked.update({"new": convert(new), "far": convert(far)})
    for method in ("predict", "predict_proba", "transform"):
        for name, rows in asked.items() if hasattr(model, method) else ():
            if method != "predict_proba" or not sparse.issparse(rows):
                attempt(record, f"{method}({name})", partial(getattr(model, method), rows))


def new_rows(X: Any) -> tuple[Any, Any]:
    """Some rows near those of X, and one far from all."""
    if isinstance(X, biclique.Hypergraph):
        rows = sparse.csr_array(X.incidence)[::9]
        return rows, sparse.csr_array((1, rows.shape[1]))
    if sparse.issparse(X) or X.shape[0] == X.shape[1]:  # a given matrix
        return X[::9], X[:1] * 0
    new, far = X[::9].copy(), X[:1].copy()
    new[:, 0] *= 1.01
    far[:, 0] = 1e3 * np.nanmax(np.abs(X)) + 1
    return new, far


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


KERNELS: dict[str, tuple[str, dict[str, Any]]] = {
    "rbf": ("blobs", {"affinity": "rbf", "gamma": 0.02}),
    "laplacian": ("blobs", {"affinity": "laplacian", "gamma": 0.07}),
    "polynomial": ("positive", {"affinity": "polynomial", "gamma": 0.01, "degree": 3, "coef0": 1}),
    "poly": ("positive", {"affinity": "poly", "gamma": 0.25, "degree": 2, "coef0": 0.5}),
    "linear": ("positive", {"affinity": "linear"}),
    "cosine": ("positive", {"affinity": "cosine"}),
    "sigmoid": ("positive", {"affinity": "sigmoid", "gamma": 1e-3, "coef0": 0.1}),
    "chi2": ("positive", {"affinity": "chi2", "gamma": 0.2}),
    "gower": ("mixed", {"affinity": Gower([2, 3, 4]), "gamma": 3.0}),
    "function": ("blobs", {"affinity": likeness}),
    "function with parameters": ("blobs", {"affinity": likeness, "kernel_params": {"width": 0.3}}),
    "Kernel": ("blobs", {"affinity": Cauchy()}),
}
"""Kernels, and data that suit them."""

HAVE_FEATURES = ("rbf", "laplacian", "polynomial", "poly", "linear", "cosine")


WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    **{gram: ("touching", GRAMS[gram]) for gram in ("dense", "tiled", "nystroem")},
    "similarities": ("similarities", GIVEN_MATRIX),
    "connected graph": ("connected_graph", GIVEN_MATRIX),
    "parts": ("parted", {"order": 2}),
    "neighbors": ("touching", NEIGHBORS),
}
"""Ways to hold K, and data that suit them."""

ON_DEVICE: dict[str, dict[str, Any]] = {
    "rbf": {},
    **{name: KERNELS[name][1] for name in ("laplacian", "polynomial", "linear", "cosine")},
    "float32": FLOAT32,
    "nystroem": {"gram": "nystroem", "rank": 40},
    "polynomial landmarks": {"gram": "nystroem", "rank": 40, **KERNELS["polynomial"][1]},
    "features": {"gram": "features", "rank": 80},
    "laplacian features": {"gram": "features", "rank": 80, **KERNELS["laplacian"][1]},
    "linear features": {"gram": "features", "rank": 4, "affinity": "linear"},
    "cluster_qr": {"assign_labels": "cluster_qr"},
    "discretize": {"assign_labels": "discretize"},
    "as they are": {"row_normalize": False, "n_init": 1},
}


KMEANS = "kernel k-means"
GRAPHS = ("similarities", "indefinite", "connected_graph", "blocks")


def add_kernels() -> None:
    for i, (name, (data, kernel)) in enumerate(KERNELS.items()):
        for j, (gram, way) in enumerate(GRAMS.items()):
            if gram != "features" or name in HAVE_FEATURES:
                fit(f"kernel/{name}/{gram}", data, order=ORDERS[(i + j) % len(ORDERS)], **kernel, **way)
        for estimator in ("embedding", KMEANS):
            fit(f"kernel/{name}/{estimator}", data, estimator, **kernel)
    fit("kernel/polynomial/sketch", "wide", **KERNELS["polynomial"][1], gram="features", rank=50)


def add_orders() -> None:
    for order in ORDERS:
        for gram, way in GRAMS.items():
            more = {**way, "rank": 300} if gram == "features" else way  # few features make degrees negative
            fit(f"order/{gram}/{order}", "touching", order=order, **more)
        for data in ("line", "rings"):
            fit(f"order/fourier/{data}/{order}", data, gram="fourier", needs="finufft", order=order)
        for estimator in ("embedding", KMEANS):
            fit(f"order/{estimator}/{order}", "touching", estimator, order=order)
        for data in (*GRAPHS, "similarity_graph"):
            fit(f"order/{data}/{order}", data, **GIVEN_MATRIX, order=order)
        for data in ("outliers", "parted"):
            fit(f"order/{data}/{order}", data, order=order)
        fit(f"order/neighbors/{order}", "touching", **NEIGHBORS, order=order)


def add_symmetric() -> None:
    symmetric = {"modelling": "symmetric", "order": 3}
    for order in (2, 3, 4, 5, 20):
        fit(f"symmetric/dense/{order}", "positive", **{**symmetric, "order": order})
    for gram in ("tiled", "nystroem", "features"):
        fit(f"symmetric/{gram}", **symmetric, **GRAMS[gram])
    fit("symmetric/polynomial", "positive", **symmetric, **KERNELS["polynomial"][1])
    fit("symmetric/embedding", "touching", "embedding", **symmetric)
    fit("symmetric/given", "similarities", **symmetric, **GIVEN_MATRIX)
    fit("symmetric/weights", sample_weight="integers", **symmetric)


def add_assigners() -> None:
    for assign in ASSIGNERS:
        for way, (data, own) in WAYS.items():
            for scaled in (True, False):
                name = f"assign/{assign}/{way}/{'scaled' if scaled else 'as they are'}"
                fit(name, data, assign_labels=assign, row_normalize=scaled, **own)
        fit(f"assign/{assign}/n_init 1", "touching", assign_labels=assign, n_init=1)
        fit(f"assign/{assign}/few rows", "few", assign_labels=assign)
        for n_components in (2, 6) if "kmeans" in assign else (6,):
            fit(f"assign/{assign}/{n_components} columns", "touching", assign_labels=assign, n_components=n_components)


def add_solvers() -> None:
    for solver in ("krylov", "arpack", "lobpcg", "amg"):
        for gram in ("dense", "tiled") if solver != "amg" else ():
            fit(f"solver/{gram}/{solver}", "middling", eigen_solver=solver, gram=gram)
        if solver != "lobpcg":
            fit(f"solver/graph/{solver}", "connected_graph", eigen_solver=solver, **GIVEN_MATRIX)
    fit("solver/embedding", "middling", "embedding", order=2)
    fit("solver/seed", "touching", random_state=1, gram="tiled")
    for gram, way in GRAMS.items():
        fit(f"solver/many/{gram}", "many", **way)
    fit("solver/large/tiled", "large", gram="tiled")
    fit("solver/large/fourier", "large", gram="fourier", needs="finufft")
    fit("solver/many/threads", "many", gram="tiled", n_jobs=2)
    fit("solver/many/kernel k-means", "many", KMEANS, gram="tiled")


def add_weights() -> None:
    for kind in ("integers", "zeros", "fractions"):
        for way, (data, own) in {**WAYS, "features": ("touching", GRAMS["features"])}.items():
            fit(f"weights/{kind}/{way}", data, sample_weight=kind, **own)
        for estimator in ("embedding", KMEANS):
            fit(f"weights/{kind}/{estimator}", "touching", estimator, sample_weight=kind)
        fit(f"weights/{kind}/gower", "mixed", sample_weight=kind, **KERNELS["gower"][1])
        fit(f"weights/{kind}/repeated", "repeated", sample_weight=kind)
    fit("weights/dask", sample_weight="integers", source="dask", **GRAMS["nystroem"])


def add_shapes() -> None:
    for gram, way in GRAMS.items():
        for data in ("repeated", "wide", "few", "line"):
            own = {**way, "rank": 3} if data == "few" and "rank" in way else way
            fit(f"shape/{data}/{gram}", data, **own)
        if gram != "dense":
            fit(f"shape/float32/{gram}", "touching", **FLOAT32, **way)
    fit("shape/rings", "rings", order=2)
    for k in (1, 120):
        fit(f"shape/{k} clusters", n_clusters=k)
    fit("shape/whole embedding", "touching", "embedding", drop_first=False)
    fit("shape/many columns", "touching", "embedding", n_components=12)
    for call, estimator in (("fit_predict", "clustering"), ("fit_transform", "embedding"), ("fit_predict", KMEANS)):
        fit(f"call/{call}/{estimator}", "touching", estimator, call=call)


def add_given() -> None:
    for n_neighbors in (4, 10):
        fit(f"neighbors/{n_neighbors}", "rings", **{**NEIGHBORS, "n_neighbors": n_neighbors})
    fit("neighbors/embedding", "rings", "embedding", **NEIGHBORS)
    fit("neighbors/sparse rows", "counts", source="csr", **NEIGHBORS)
    fit("neighbors/given", "distance_graph", **GIVEN_NEIGHBORS)
    fit("neighbors/given, weights", "distance_graph", sample_weight="integers", **GIVEN_NEIGHBORS)
    fit("neighbors/given, embedding", "distance_graph", "embedding", **GIVEN_NEIGHBORS)
    for estimator in ("embedding", KMEANS):
        for data in GRAPHS:
            fit(f"given/{data}/{estimator}", data, estimator, **GIVEN_MATRIX)
    for source in ("csr", "float32", "pandas"):
        fit(f"given/{source}", "similarities", source=source, **GIVEN_MATRIX)
    fit("given/negative eigenvalues", "indefinite", **GIVEN_MATRIX, order=2, n_clusters=40)


def add_sources() -> None:
    for source in SOURCES:
        if source not in TENSORS:
            data = "counts" if source.startswith(("csr", "int")) else "blobs"
            fit(f"source/{source}/nystroem", data, source=source, gram="nystroem", rank=12)
            if source not in ("dask", "dask frame"):  # whose K is factored
                fit(f"source/{source}/dense", data, source=source)
    for source in ("dask", "dask frame"):
        fit(f"source/{source}/linear", "positive", source=source, affinity="linear", gram="features", rank=4)
        fit(f"source/{source}/features", source=source, gram="features", rank=40, order=2.1)
        fit(f"source/{source}/embedding", "touching", "embedding", source=source, gram="nystroem", rank=40)
        fit(f"source/{source}/cluster_qr", source=source, assign_labels="cluster_qr", **GRAMS["nystroem"])
    for source in ("csr", "csr float32"):
        for affinity in ("linear", "cosine", "rbf"):
            for gram in ("dense", "tiled", "nystroem"):
                fit(f"source/{source}/{affinity}/{gram}", "counts", source=source, affinity=affinity, **GRAMS[gram])
    fit("source/csr/kernel k-means", "counts", KMEANS, source="csr", affinity="cosine")
    fit("source/polars/kernel k-means", "touching", KMEANS, source="polars")
    fit("source/pandas/gower", "mixed", source="pandas", **KERNELS["gower"][1])
    fit("source/float32/tiled", source="float32", gram="tiled", **FLOAT32)


def add_kernel_kmeans() -> None:
    for init in ("spectral", "random", "k-means++"):
        for n_init in (1, 4):
            fit(f"kernel k-means/{init}/{n_init}", "touching", KMEANS, init=init, n_init=n_init)
        fit(f"kernel k-means/{init}/indefinite", "indefinite", KMEANS, init=init, **GIVEN_MATRIX)
        fit(f"kernel k-means/{init}/tiled", "touching", KMEANS, init=init, gram="tiled", order=2.1)
    for name, weights in {"paper": "paper", "given": np.linspace(0, 2, 400)}.items():
        for order in ORDERS:
            fit(f"kernel k-means/weights {name}/{order}", "touching", KMEANS, weights=weights, order=order)
        for gram in ("tiled", "nystroem", "features"):
            fit(f"kernel k-means/weights {name}/{gram}", "touching", KMEANS, weights=weights, **GRAMS[gram])


def quadratic(j: int, s: int) -> float:
    """A user's own splitting function."""
    return j * (s - j) / s


def add_hypergraphs() -> None:
    for expansion in ("star", "clique", "normalized_clique", "contraction", quadratic):
        name = expansion if isinstance(expansion, str) else "function"
        for order in ORDERS:
            fit(f"hypergraph/{name}/{order}", "planted", "hypergraph", expansion=expansion, order=order)
    for assign in ASSIGNERS:
        for data in ("mixed_edges", "separate_edges"):
            fit(f"hypergraph/{assign}/{data}", data, "hypergraph", assign_labels=assign)
    for order in (2, 4):
        fit(f"hypergraph/many/{order}", "many_edges", "hypergraph", order=order)
        fit(f"hypergraph/separate/{order}", "separate_edges", "hypergraph", order=order, n_clusters=6)
    fit("hypergraph/as they are", "planted", "hypergraph", row_normalize=False, n_init=1)
    fit("hypergraph/components", "planted", "hypergraph", n_components=5)
    for source in ("csr", "pandas", "int64"):
        fit(f"hypergraph/incidence/{source}", "counts", "hypergraph", source=source)
    for name, own in {"lines": {"subspace_dim": 1}, "restarts": {"n_restarts": 2, "n_draws": 50}}.items():
        fit(f"subspaces/{name}", "subspaces", "subspaces", **own)
    fit("subspaces/repeated", "repeated", "subspaces", n_draws=60)


def add_devices() -> None:
    on_cpu = partial(fit, device="cpu", needs="torch")
    for i, (way, own) in enumerate(ON_DEVICE.items()):
        own = {"gram": "tiled", "order": ORDERS[i % len(ORDERS)], **own}
        on_cpu(f"device/array/{way}", "positive", **own)
        for source in TENSORS:
            fit(f"device/{source}/{way}", "positive", source=source, **own)
    for order in ORDERS:
        on_cpu(f"device/order/{order}", "touching", gram="tiled", order=order)
    for gram in ("tiled", "nystroem"):
        on_cpu(f"device/weights/{gram}", sample_weight="integers", **GRAMS[gram])
    for data in ("repeated", "few", "middling", "outliers", "parted"):
        on_cpu(f"device/{data}", data, gram="tiled", order=2)
    on_cpu("device/embedding", "touching", "embedding", gram="tiled")
    fit("device/tensor/embedding", "touching", "embedding", source="tensor", gram="tiled")


for section in (
    *(add_kernels, add_orders, add_symmetric, add_assigners, add_solvers, add_weights, add_shapes, add_given),
    *(add_sources, add_kernel_kmeans, add_hypergraphs, add_devices),
):
    section()
