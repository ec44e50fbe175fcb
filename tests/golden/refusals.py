"""Golden cases that are refused, or that a model answers with an error: the type and the text of each message."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
from scipy import sparse

import biclique
from biclique.io import open_chunks
from tests.golden.data import groups, neighbor_graph, planted
from tests.golden.record import Record, attempt

GOOD = groups([14, 13, 13], d=3, seed=20)


def with_value(value: float) -> np.ndarray:
    X = GOOD.copy()
    X[7, 1] = value
    return X


def clustering(X: Any = GOOD, k: Any = 3, sample_weight: Any = None, **parameters: Any) -> Any:
    fixed = {"random_state": 0, "memory_limit": "1GB", "n_jobs": 1}
    return biclique.BicliqueSpectralClustering(k, **{**fixed, **parameters}).fit(X, sample_weight=sample_weight)


PARAMETERS: list[dict[str, Any]] = [
    {"order": 1.5},
    {"order": "high"},
    {"order": np.nan},
    {"order": True},
    {"order": 2.5, "modelling": "symmetric"},
    {"modelling": "triples"},
    {"gamma": 0},
    {"gamma": -1.0},
    {"gamma": np.nan},
    {"gamma": "wide"},
    {"gamma": "median", "affinity": "nearest_neighbors"},
    {"affinity": "poly", "degree": 0},
    {"degree": "3"},
    {"coef0": np.nan},
    {"k": 0},
    {"k": 2.5},
    {"k": 41},
    {"affinity": "gauss"},
    {"affinity": 3},
    {"assign_labels": "best"},
    {"gram": "gpu"},
    {"gram": "nystroem", "affinity": "precomputed"},
    {"gram": "features", "affinity": "nearest_neighbors"},
    {"gram": "features", "affinity": "chi2"},
    {"categorical_features": [0]},
    {"affinity": "gower", "categorical_features": [7]},
    {"affinity": "gower", "gamma": "scale"},
    {"gram": "nystroem", "rank": 41},
    {"rank": 0},
    {"rank": "many"},
    {"landmarks": "random"},
    {"precision": "half"},
    {"precision": "fast"},
    {"eigen_solver": "magic"},
    {"eigen_solver": "amg"},
    {"eigen_tol": -1},
    {"max_iter": 0},
    {"n_init": 0},
    {"n_init": 10**9},
    {"n_components": 0},
    {"n_neighbors": 0, "affinity": "nearest_neighbors"},
    {"n_neighbors": 50, "affinity": "nearest_neighbors"},
    {"neighbor_weights": "heavy"},
    {"modelling": "symmetric", "affinity": "nearest_neighbors"},
    {"row_normalize": "yes"},
    {"n_jobs": 0},
    {"memory_limit": "much"},
    {"memory_limit": 1000},
    {"memory_limit": 1000, "gram": "dense"},
    {"memory_limit": 1000, "gram": "tiled"},
    {"memory_limit": 1000, "gram": "nystroem", "rank": 5},
    {"memory_limit": 1000, "affinity": "nearest_neighbors"},
    {"device": "gpu"},
    {"device": 0},
    {"random_state": "seed"},
    {"kernel_params": {"width": 1}, "affinity": lambda x, y: 1.0},
    {"affinity": lambda x, y: float(x[0])},
    {"affinity": lambda x, y: np.nan},
    {"affinity": lambda x, y: "like"},
    {"affinity": "chi2"},
    {"affinity": "linear", "order": 2},
    {"affinity": "precomputed"},
    {"affinity": "precomputed_nearest_neighbors"},
    {"k": "select", "k_max": 0},
]

ROWS: dict[str, Callable[[], Any]] = {
    "NaN": lambda: clustering(with_value(np.nan)),
    "infinity": lambda: clustering(with_value(np.inf)),
    "huge": lambda: clustering(with_value(1e30)),
    "tiny": lambda: clustering(GOOD * 1e-155),
    "NaN in CSR": lambda: clustering(sparse.csr_array(with_value(np.nan))),
    "NaN, landmarks": lambda: clustering(with_value(np.nan), gram="nystroem", rank=10),
    "NaN, neighbours": lambda: clustering(with_value(np.nan), affinity="nearest_neighbors"),
    "NaN in chunks": lambda: clustering(open_chunks(with_value(np.nan))),
    "no rows": lambda: clustering(np.empty((0, 3))),
    "one row": lambda: clustering(GOOD[:1]),
    "two rows": lambda: clustering(GOOD[:2]),
    "no columns": lambda: clustering(np.empty((10, 0))),
    "a vector": lambda: clustering(GOOD[0]),
    "three dimensions": lambda: clustering(GOOD[None]),
    "text": lambda: clustering(np.array([["a", "b"]] * 5)),
    "complex": lambda: clustering(GOOD * 1j),
    "dates": lambda: clustering([[date(2020, 1, 1), 1.0]] * 5),
    "dates as objects": lambda: clustering(np.array([[date(2020, 1, 1), 1.0]] * 5, dtype=object)),
    "dates of NumPy": lambda: clustering(np.array([["2020-01-01", "2020-01-02"]] * 5, dtype="datetime64[D]")),
    "masked": lambda: clustering(np.ma.masked_greater(GOOD, 1)),
    "CSR and laplacian": lambda: clustering(sparse.csr_array(GOOD), affinity="laplacian"),
    "missing file": lambda: clustering("nothing.npy"),
    "unknown ending": lambda: clustering("rows.doc"),
    "pieces of other widths": lambda: clustering(open_chunks([GOOD, GOOD[:, :2]])),
    "pieces of other types": lambda: clustering(open_chunks([GOOD, GOOD.astype(np.float32)])),
    "an iterator": lambda: clustering(open_chunks(part for part in [GOOD])),
    "chunks, tiles": lambda: clustering(open_chunks(GOOD), gram="tiled"),
    "chunks, kernel k-means": lambda: biclique.BicliqueKernelKMeans(3).fit(open_chunks(GOOD)),
    "not symmetric": lambda: clustering(np.triu(np.ones((5, 5))), 2, affinity="precomputed"),
    "not symmetric, sparse": lambda: clustering(sparse.csr_array(np.triu(np.ones((5, 5)))), 2, affinity="precomputed"),
    "not square": lambda: clustering(np.ones((5, 4)), 2, affinity="precomputed"),
    "too few distances": lambda: clustering(
        neighbor_graph(5), 2, affinity="precomputed_nearest_neighbors", n_neighbors=9
    ),
    "a given matrix too large": lambda: clustering(np.eye(60) + 1, affinity="precomputed", memory_limit=1000),
    "negative weights": lambda: clustering(sample_weight=-np.ones(40)),
    "NaN in weights": lambda: clustering(sample_weight=np.r_[np.nan, np.ones(39)]),
    "too few weights": lambda: clustering(sample_weight=np.ones(39)),
    "no weight": lambda: clustering(sample_weight=np.zeros(40)),
    "weights of text": lambda: clustering(sample_weight=["heavy"] * 40),
    "two rows of weight": lambda: clustering(sample_weight=np.r_[1, 1, np.zeros(38)]),
    "weights of chunks": lambda: clustering(open_chunks(GOOD), sample_weight=np.ones(10)),
    "weights of a function": lambda: clustering(open_chunks(lambda: iter([GOOD])), sample_weight=np.ones(10)),
    "one row of weight": lambda: biclique.BicliqueSpectralEmbedding(2, gram="nystroem").fit(
        GOOD, sample_weight=np.eye(40)[0]
    ),
    "other columns in chunks": lambda: clustering(gram="nystroem", rank=9).predict(open_chunks(GOOD[:, :2])),
    "one column less": lambda: clustering().predict(GOOD[:, :2]),
    "one column less, landmarks": lambda: clustering(gram="nystroem", rank=9).predict(GOOD[:, :2]),
    "one column less, neighbours": lambda: clustering(affinity="nearest_neighbors").transform(GOOD[:, :2]),
    "NaN to predict": lambda: clustering().predict(with_value(np.nan)),
    "NaN to transform": lambda: clustering(gram="nystroem", rank=9).transform(with_value(np.nan)),
    "chunks to a stored K": lambda: clustering().predict(open_chunks(GOOD)),
    "not fitted": lambda: biclique.BicliqueSpectralClustering(3).predict(GOOD),
    "embedding not fitted": lambda: biclique.BicliqueSpectralEmbedding(3).transform(GOOD),
    "a block of another width": lambda: clustering(GOOD @ GOOD.T + 100, affinity="precomputed").predict(GOOD),
    "columns of an embedding": lambda: biclique.BicliqueSpectralEmbedding(0).fit(GOOD),
    "start of kernel k-means": lambda: biclique.BicliqueKernelKMeans(3, init="best").fit(GOOD),
    "weights of kernel k-means": lambda: biclique.BicliqueKernelKMeans(3, weights="heavy").fit(GOOD),
    "lengths of weights": lambda: biclique.BicliqueKernelKMeans(3, weights=np.ones(3)).fit(GOOD),
    "neighbours in kernel k-means": lambda: biclique.BicliqueKernelKMeans(3, affinity="nearest_neighbors").fit(GOOD),
    "rows as a hypergraph": lambda: biclique.HypergraphSpectralClustering(3).fit(GOOD),
    "lists as a hypergraph": lambda: biclique.HypergraphSpectralClustering(3).fit([[1, 2], [2, 3]]),
    "no edges": lambda: biclique.HypergraphSpectralClustering(2).fit(np.zeros((4, 3))),
    "negative edges": lambda: biclique.HypergraphSpectralClustering(2).fit(
        biclique.Hypergraph.from_edges([[0, 1], [1, 2]], [1.0, -1.0])
    ),
    "faint edges": lambda: biclique.HypergraphSpectralClustering(2).fit(
        biclique.Hypergraph.from_edges([[0, 1], [1, 2], [2, 3]], [1.0, 1.0, 1e-20])
    ),
    "expansion": lambda: biclique.HypergraphSpectralClustering(3, expansion="tree").fit(planted()),
    "order of a hypergraph": lambda: biclique.HypergraphSpectralClustering(3, order="auto").fit(planted()),
    "a hypergraph to predict": lambda: biclique.HypergraphSpectralClustering(3).fit(planted()).predict(planted()),
    "dimension of subspaces": lambda: biclique.InhomogeneousSubspaceClustering(2, subspace_dim=3).fit(GOOD),
    "rows of subspaces": lambda: biclique.InhomogeneousSubspaceClustering(9, subspace_dim=2).fit(GOOD[:5]),
    "draws of subspaces": lambda: biclique.InhomogeneousSubspaceClustering(2, n_draws=0).fit(GOOD),
    "memory of subspaces": lambda: biclique.InhomogeneousSubspaceClustering(2, subspace_dim=2, memory_limit="10KB").fit(
        GOOD
    ),
}


def _refused(call: Callable[[], Any]) -> Callable[[Record], None]:
    """What a call raises, or that it raises nothing."""

    def run(record: Record) -> None:
        attempt(record, "raises", lambda: call() and "nothing")

    return run


def _name(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{key} {'a function' if callable(value) else value}" for key, value in parameters.items())


REFUSALS: dict[str, Callable[[Record], None]] = {
    f"refused/{name}": _refused(call)
    for name, call in [
        *(
            (f"{number}: {_name(parameters)}", lambda parameters=parameters: clustering(**parameters))
            for number, parameters in enumerate(PARAMETERS)
        ),
        *ROWS.items(),
    ]
}
"""What is refused, by name."""
