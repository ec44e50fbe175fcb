"""Golden cases that are refused, or that a model answers with an error: the type and the text of each message."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

import biclique
from tests.golden.data import groups, planted
from tests.golden.record import Record, attempt
from tests.golden.trees import in_chunks, own_names

GOOD = groups([14, 13, 13], d=3, seed=20)
KERNEL_KMEANS = {"n_clusters": 3, "random_state": 0, "order": 4, "affinity": "rbf", "gamma": 0.1, "gram": "dense"}
CLUSTERING = {**KERNEL_KMEANS, "n_jobs": 1, "assign_labels": "kmeans", "row_normalize": True, "n_init": 10}
NYSTROEM = {"gram": "nystroem", "rank": 9}


def with_value(value: float) -> np.ndarray:
    X = GOOD.copy()
    X[7, 1] = value
    return X


def clustering(X: Any = GOOD, sample_weight: Any = None, **own: Any) -> Any:
    return own_names(biclique.BicliqueSpectralClustering, {**CLUSTERING, **own}).fit(X, sample_weight=sample_weight)


def kernel_kmeans(**own: Any) -> Any:
    return biclique.BicliqueKernelKMeans(**{**KERNEL_KMEANS, **own}).fit(GOOD)


def given(K: Any) -> Any:
    return clustering(K, n_clusters=2, affinity="precomputed")


def hypergraph(X: Any, **own: Any) -> Any:
    return biclique.HypergraphSpectralClustering(**{"n_clusters": 2, "order": 2, **own}).fit(X)


def edges(weights: list[float]) -> biclique.Hypergraph:
    return biclique.Hypergraph.from_edges([[i, i + 1] for i in range(len(weights))], weights)


PARAMETERS: list[dict[str, Any]] = [
    {"order": 1.5},
    {"order": np.nan},
    {"order": True},
    {"order": 2.5, "modelling": "symmetric"},
    {"modelling": "triples"},
    {"affinity": "poly", "degree": 0},
    {"degree": "3"},
    {"coef0": np.nan},
    {"n_clusters": 0},
    {"n_clusters": 2.5},
    {"n_clusters": 41},
    {"n_components": 0},
    {"n_init": 0},
    {"n_jobs": 0},
    {"gram": "nystroem", "rank": 41},
    {"gram": "nystroem", "rank": 0},
    {"precision": "half"},
    {"eigen_solver": "magic"},
    {"eigen_tol": -1},
    {"device": "gpu"},
    {"random_state": "seed"},
    {"kernel_params": {"width": 1}, "affinity": lambda x, y: 1.0},
    {"affinity": lambda x, y: float(x[0])},
    {"affinity": lambda x, y: np.nan},
    {"affinity": "chi2"},
    {"affinity": "linear", "order": 2},
    {"affinity": "gower", "categorical_features": [7]},
]

CALLS: dict[str, Callable[[], Any]] = {
    "NaN": lambda: clustering(with_value(np.nan)),
    "infinity": lambda: clustering(with_value(np.inf)),
    "huge": lambda: clustering(with_value(1e30)),
    "NaN in CSR": lambda: clustering(sparse.csr_array(with_value(np.nan))),
    "NaN, landmarks": lambda: clustering(with_value(np.nan), **NYSTROEM),
    "NaN in chunks": lambda: clustering(in_chunks([with_value(np.nan)]), **NYSTROEM),
    "no rows": lambda: clustering(np.empty((0, 3))),
    "one row": lambda: clustering(GOOD[:1]),
    "two rows": lambda: clustering(GOOD[:2]),
    "no columns": lambda: clustering(np.empty((10, 0))),
    "a vector": lambda: clustering(GOOD[0]),
    "three dimensions": lambda: clustering(GOOD[None]),
    "text": lambda: clustering(np.array([["a", "b"]] * 5)),
    "complex": lambda: clustering(GOOD * 1j),
    "dates": lambda: clustering([[date(2020, 1, 1), 1.0]] * 5),
    "masked": lambda: clustering(np.ma.masked_greater(GOOD, 1)),
    "CSR and laplacian": lambda: clustering(sparse.csr_array(GOOD), affinity="laplacian"),
    "additive_chi2": lambda: clustering(np.abs(GOOD), affinity="additive_chi2"),
    "chunks, tiles": lambda: clustering(in_chunks([GOOD]), gram="tiled"),
    "not symmetric": lambda: given(np.triu(np.ones((5, 5)))),
    "not symmetric, sparse": lambda: given(sparse.csr_array(np.triu(np.ones((5, 5))))),
    "negative weights": lambda: clustering(sample_weight=-np.ones(40)),
    "NaN in weights": lambda: clustering(sample_weight=np.r_[np.nan, np.ones(39)]),
    "too few weights": lambda: clustering(sample_weight=np.ones(39)),
    "no weight": lambda: clustering(sample_weight=np.zeros(40)),
    "weights of text": lambda: clustering(sample_weight=["heavy"] * 40),
    "two rows of weight": lambda: clustering(sample_weight=np.r_[1, 1, np.zeros(38)]),
    "weights of chunks": lambda: clustering(in_chunks([GOOD]), sample_weight=np.ones(10), **NYSTROEM),
    "one column less": lambda: clustering().predict(GOOD[:, :2]),
    "one column less, landmarks": lambda: clustering(**NYSTROEM).predict(GOOD[:, :2]),
    "other columns in chunks": lambda: clustering(**NYSTROEM).predict(in_chunks([GOOD[:, :2]])),
    "NaN to predict": lambda: clustering().predict(with_value(np.nan)),
    "NaN to transform": lambda: clustering(**NYSTROEM).transform(with_value(np.nan)),
    "chunks to a stored K": lambda: clustering().predict(in_chunks([GOOD])),
    "not fitted": lambda: biclique.BicliqueSpectralClustering(**CLUSTERING).predict(GOOD),
    "a block of another width": lambda: given(GOOD @ GOOD.T + 100).predict(GOOD),
    "start of kernel k-means": lambda: kernel_kmeans(init="best"),
    "weights of kernel k-means": lambda: kernel_kmeans(weights="heavy"),
    "lengths of weights": lambda: kernel_kmeans(weights=np.ones(3)),
    "rows as a hypergraph": lambda: hypergraph(GOOD),
    "lists as a hypergraph": lambda: hypergraph([[1, 2], [2, 3]]),
    "no edges": lambda: hypergraph(np.zeros((4, 3))),
    "negative edges": lambda: hypergraph(edges([1.0, -1.0])),
    "faint edges": lambda: hypergraph(edges([1.0, 1.0, 1e-20])),
    "expansion": lambda: hypergraph(planted(), expansion="tree"),
    "a hypergraph to predict": lambda: hypergraph(planted()).predict(planted()),
    "dimension of subspaces": lambda: biclique.InhomogeneousSubspaceClustering(2, subspace_dim=3).fit(GOOD),
    "rows of subspaces": lambda: biclique.InhomogeneousSubspaceClustering(9, subspace_dim=2).fit(GOOD[:5]),
    "draws of subspaces": lambda: biclique.InhomogeneousSubspaceClustering(2, n_draws=0).fit(GOOD),
}


def _refused(record: Record, call: Callable[[], Any]) -> None:
    """What a call raises, or that it raises nothing."""
    attempt(record, "raises", lambda: (call(), "nothing")[1])


def _name(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{key} {'a function' if callable(value) else value}" for key, value in parameters.items())


REFUSALS: dict[str, Callable[[Record], None]] = {
    **{
        f"refused/{number}: {_name(own)}": partial(_refused, call=partial(clustering, **own))
        for number, own in enumerate(PARAMETERS)
    },
    **{f"refused/{name}": partial(_refused, call=call) for name, call in CALLS.items()},
}
"""What is refused, by name."""

OTHER_MESSAGES: dict[str, str] = {
    f"refused/{name}": "rows in chunks are Dask's now"
    for name in (
        "NaN in chunks",
        "chunks, tiles",
        "weights of chunks",
        "other columns in chunks",
        "chunks to a stored K",
    )
}
"""Cases whose message may be another one than that of the base, and why."""
