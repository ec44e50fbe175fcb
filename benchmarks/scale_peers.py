"""The rows and the contenders of scale.py, which are functions of rows (or of a file) that return labels and facts.

``run(task)`` measures one of them in this process: seconds, peak resident memory, and a 4000³ float32 product.

The peers: pip install torch==2.13.0 (the build without CUDA), then dask-ml and ncut-pytorch.
"""

from __future__ import annotations

import resource
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans, SpectralClustering
from sklearn.datasets import make_circles, make_moons
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import normalize
from timing import product_seconds

from biclique.cluster.clustering import BicliqueSpectralClustering

DIMENSIONS, CLUSTERS = 16, 10
CHUNK = 100_000  # rows written at a time: fewer rows are the first of more
Found = tuple[np.ndarray, dict[str, Any]]
DASK_CHUNK = 100_000
INSTALL = {
    "dask": ("dask_ml", "pip install dask-ml"),
    "ncut": ("ncut_pytorch", "pip install torch==2.13.0 && pip install ncut-pytorch"),
}


def write_blobs(path: Path, n: int, name: str) -> None:
    """Blobs (standard deviation 5 overlaps a little, 1 does not), or unequal ones with outliers, whose truth is −1."""
    random = np.random.default_rng(0)
    centres = random.uniform(-10, 10, (CLUSTERS, DIMENSIONS))
    deviations, shares = np.full(CLUSTERS, {"blobs": 5.0, "separate": 1.0}.get(name)), np.full(CLUSTERS, 1.0)
    if name == "outliers":
        centres /= 2
        deviations = random.permutation(np.geomspace(1, 4, CLUSTERS))
        shares = random.permutation(np.linspace(0.5, 1.5, CLUSTERS))
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, DIMENSIONS))
    truth = np.empty(n, dtype=np.int8)
    for top in range(0, n, CHUNK):
        random = np.random.default_rng([1, top])
        group = random.choice(CLUSTERS, CHUNK, p=shares / shares.sum())
        rows = centres[group] + deviations[group, None] * random.standard_normal((CHUNK, DIMENSIONS))
        if name == "outliers":
            outside = random.random(CHUNK) < 0.05
            rows[outside] = random.uniform(-40, 40, (outside.sum(), DIMENSIONS))  # the blobs reach to about 20
            group[outside] = -1
        X[top : top + CHUNK], truth[top : top + CHUNK] = rows[: n - top], group[: n - top]
    X.flush()
    np.save(truth_path(path), truth)


def truth_path(path: Path) -> Path:
    return path.with_suffix(".truth.npy")


def write_rows(path: Path, name: str, n: int | None, folder: str | None) -> bool:
    """Rows of a name into a file, and their truth beside it; False where ``folder`` does not have them."""
    if name in ("blobs", "separate", "outliers"):
        write_blobs(path, n, name)
        return True
    if name == "moons":
        X, y = make_moons(n, noise=0.08, random_state=0)
    elif name == "circles":
        X, y = make_circles(n, noise=0.05, factor=0.5, random_state=0)
    else:
        given = Path(folder or "", f"{name}.npz")
        if folder is None or not given.exists():
            return False
        with np.load(given) as arrays:
            X, y = arrays["X"][:n].astype(np.float32), arrays["y"][:n]
        X = X / 255 if name == "mnist" else X
    np.save(path, X)
    np.save(truth_path(path), y)
    return True


# Contenders


def ours(X: Any, k: int, **parameters: Any) -> Found:
    if "gram" in parameters:
        parameters = {"affinity": "rbf", **parameters}
    model = BicliqueSpectralClustering(k, random_state=0, **parameters).fit(X)
    facts = {"gamma": model.gamma_, "rank": model.rank_}
    if model.approximation_ is not None:
        facts |= {"eigenvalues": model.approximation_.eigenvalues, "kernel": model.approximation_.kernel}
    return model.labels_, facts


def kmeans(X: np.ndarray, k: int, starts: int) -> Found:
    return KMeans(k, n_init=starts, random_state=0).fit(X).labels_, {}


def minibatch(X: np.ndarray, k: int) -> Found:
    return MiniBatchKMeans(k, random_state=0).fit(X).labels_, {}


def nystroem(X: np.ndarray, k: int, gamma: float, p: int, starts: int) -> Found:
    """Features of scikit-learn, scaled to unit rows, and k-means on them."""
    features = Nystroem(gamma=gamma, n_components=p, random_state=0).fit_transform(X)
    return kmeans(normalize(features, copy=False), k, starts)


def sklearn(X: np.ndarray, k: int, **parameters: Any) -> Found:
    return SpectralClustering(k, assign_labels="kmeans", random_state=0, **parameters).fit(X).labels_, {}


def dask(X: np.ndarray, k: int, gamma: float, p: int, own_kmeans: bool) -> Found:
    """With its own k-means, the default, or with scikit-learn's, as its documentation allows."""
    import dask.array
    from dask_ml.cluster import SpectralClustering

    rows = dask.array.from_array(X, chunks=(min(DASK_CHUNK, len(X) // 2), X.shape[1]))
    assign = "kmeans" if own_kmeans else KMeans(k, n_init=10, random_state=0)
    model = SpectralClustering(
        k, n_components=p, gamma=gamma, assign_labels=assign, persist_embedding=True, random_state=0
    )
    return np.asarray(model.fit(rows).labels_), {}


def ncut(X: np.ndarray, k: int, gamma: float, p: int) -> Found:
    """Eigenvectors of ncut_pytorch, whose kernel is exp(−|x − y|²/(2σ²)), and k-means on them."""
    import torch
    from ncut_pytorch import Ncut

    torch.manual_seed(0)
    model = Ncut(n_eig=k, sigma=(2 * gamma) ** -0.5, n_sample=p, device="cpu")
    return kmeans(model.fit_transform(torch.from_numpy(X)).numpy(), k, 10)


METHODS = {f.__name__: f for f in (ours, kmeans, minibatch, nystroem, sklearn, dask, ncut)}


def missing(method: str) -> str | None:
    """How to install what a method needs, where it is not there."""
    module, how = INSTALL.get(method, (None, ""))
    return f"not installed: {how}" if module and find_spec(module) is None else None


def peak_bytes() -> int:
    """Peak resident memory of this process.

    On Linux ``ru_maxrss`` of a child starts from the peak of the process that started it; VmHWM does not.
    """
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(task: dict[str, Any]) -> dict[str, Any]:
    """The best of some fits; none is begun once the budget of seconds is spent."""
    X = task["data"] if task["from_file"] else np.load(task["data"])
    best, spent, fits = np.inf, 0.0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while fits < task["repeats"] and spent < task["budget"]:
            found = None  # what an earlier fit left does not count
            start = time.perf_counter()
            found = METHODS[task["method"]](X, **task["parameters"])
            seconds = time.perf_counter() - start
            best, spent, fits = min(best, seconds), spent + seconds, fits + 1
    peak = peak_bytes()
    np.save(task["labels"], found[0])
    return {"seconds": best, "fits": fits, "peak": peak, "product": product_seconds(), **found[1]}
