"""Fits of random data with random settings.

Each must end soon, with labels that keep what is promised of them or with an error of ours.
"""

import traceback
from functools import partial

import numpy as np
from scipy import sparse

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.embedding import BicliqueSpectralEmbedding
from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans
from biclique.exceptions import BicliqueWarning
from tests.fuzz.campaign import judge

SIGNED = ("linear", "poly", "sigmoid", "cosine", "additive_chi2")


KINDS = {
    "normal": lambda draw, X: X,
    "blobs": lambda draw, X: X + 8 * draw.integers(0, 3, size=(len(X), 1)),
    "lattice": lambda draw, X: draw.integers(0, 3, size=X.shape).astype(float),
    "copies": lambda draw, X: X[draw.integers(0, max(len(X) // 5, 1), size=len(X))],
    "tails": lambda draw, X: draw.standard_t(1, size=X.shape),
    "constant": lambda draw, X: np.column_stack([np.full(len(X), 3.0), X[:, 1:]]) * draw.choice([0.0, 1.0]),
    "counts": lambda draw, X: draw.poisson(2, size=X.shape).astype(float),
    "one far": lambda draw, X: X + 1e4 * (np.arange(len(X)) == 0)[:, None],
    "line": lambda draw, X: np.linspace(0, 1, len(X))[:, None] * np.ones(X.shape[1]),
}


def draw_rows(draw):
    """Rows of many kinds: plain, repeated, constant, tied, heavy-tailed, huge, tiny, few, wide, sparse."""
    n, d = int(draw.choice([2, 3, 5, 20, 60, 150, 300])), int(draw.choice([1, 2, 3, 8, 40]))
    X = KINDS[draw.choice(list(KINDS))](draw, draw.normal(size=(n, d)))
    X = X * draw.choice([1e-6, 1e6, 1e-120, 1e100] if draw.random() < 0.2 else [1.0])
    X = X + draw.choice([0.0, 0.0, 0.0, 1e3])
    if draw.random() < 0.15:
        with np.errstate(over="ignore"):
            X = X.astype(np.float32)
    if draw.random() < 0.03:
        X[draw.integers(0, n), 0] = draw.choice([np.nan, np.inf])
    return sparse.csr_array(X) if draw.random() < 0.15 else X


def draw_model(draw):
    """An estimator with random settings, most of which are allowed."""
    kernels = ["rbf", "laplacian", "chi2", *SIGNED]
    affinity = str(draw.choice([*["neighborhoods"] * 6, *kernels, "nearest_neighbors", "precomputed"]))
    k = int(draw.choice([1, 2, 3, 5, 12]))
    options = {
        "affinity": affinity,
        "order": draw.choice(np.array(["auto", 2, 2.5, 4, 6, np.inf], dtype=object)),
        "gamma": draw.choice(np.array(["auto", "auto", "median", "scale", 1e-9, 0.5, 1e6], dtype=object)),
        "random_state": int(draw.integers(1000)),
    }
    if affinity == "neighborhoods":
        options["kernel_params"] = {"metric": str(draw.choice(["euclidean", "euclidean", "cosine", "gower"]))}
        options["rank"] = draw.choice(np.array(["auto", "auto", "all", 12, 40], dtype=object))
    elif affinity != "nearest_neighbors":
        options["gram"] = str(draw.choice(["auto", "auto", "dense", "tiled", "nystroem", "features"]))
        options["rank"] = draw.choice(np.array(["auto", 2, 20], dtype=object))
    kind = draw.choice(["clustering", "clustering", "clustering", "kernel k-means", "embedding"])
    if affinity == "neighborhoods" and kind != "kernel k-means":
        options["n_neighbors"] = draw.choice(np.array([None, None, 1, 3, 30], dtype=object))
    if kind == "embedding":
        return BicliqueSpectralEmbedding(k, **options)
    if kind == "kernel k-means":
        return BicliqueKernelKMeans(k, **options)
    options["assign_labels"] = str(draw.choice(["kmeans", "kmeans", "discretize", "cluster_qr", "kernel_kmeans"]))
    if affinity != "neighborhoods":
        options["modelling"] = str(draw.choice(["biclique", "biclique", "biclique", "symmetric"]))
    options["eigen_solver"] = draw.choice(np.array([None, None, "arpack", "lobpcg"], dtype=object))
    return BicliqueSpectralClustering(k, **options)


def check(model, X, weights):
    """Fit twice, and say which promise is broken; nothing if all are kept."""
    try:
        model.fit(X, sample_weight=weights)
    except ValueError as error:
        if "sklearn" in traceback.extract_tb(error.__traceback__)[-1].filename:  # its own checks of shapes and values
            return ""
        raise
    rows = model.embedding_ if hasattr(model, "embedding_") else np.zeros(1)
    if not np.isfinite(rows).all():
        return "the embedding is not finite"
    if not hasattr(model, "labels_"):
        return ""
    labels, found = model.labels_, np.unique(model.labels_)
    if len(labels) != X.shape[0] or found.tolist() != list(range(len(found))) or len(found) > model.n_clusters:
        return f"labels {found[:10]} of {len(labels)} rows for {model.n_clusters} clusters"
    again = type(model)(**{**model.get_params(), "n_jobs": 2}).fit(X, sample_weight=weights)
    if not np.array_equal(again.labels_, labels):
        return f"{int((again.labels_ != labels).sum())} labels differ the second time"
    if getattr(model, "modelling", "") == "symmetric" and model.affinity == "precomputed":
        return ""
    if not np.array_equal(model.predict(X), labels):
        return f"predict gives {int((model.predict(X) != labels).sum())} of {len(labels)} training rows another label"
    return ""


def draw_fit(draw):
    """A model, rows that most often suit it, and weights or None."""
    X, model = draw_rows(draw), draw_model(draw)
    if model.affinity in ("chi2", "additive_chi2") and draw.random() < 0.9:
        X = abs(X)
    if model.affinity == "precomputed":
        dense = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
        with np.errstate(all="ignore"):
            X = np.exp(-np.square(dense[:, None] - dense[None]).sum(-1))
        X = sparse.csr_array(np.where(X > 1e-3, X, 0)) if draw.random() < 0.3 else X
    return model, X, draw.integers(0, 4, X.shape[0]).astype(float) if draw.random() < 0.2 else None


def run(n_fits, seed):
    """The failures of so many fits; fit i of a seed is the same, however many there are."""
    failures = []
    for number in range(n_fits):
        model, X, weights = draw_fit(np.random.default_rng(1_000_003 * seed + number))
        failure = judge(partial(check, model, X, weights), ignored=BicliqueWarning)
        if failure:
            failures.append(f"seed {seed}, fit {number}: {model} on {type(X).__name__} {X.shape}: {failure}")
    return failures
