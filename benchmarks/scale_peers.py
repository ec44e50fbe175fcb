"""The rows and the contenders of scale.py, which are functions of rows (or of a file) that return labels and facts.

``run(task)`` measures one of them in this process: seconds, peak resident memory, and a 4000³ float32 product.

The peers: pip install torch==2.13.0 (the build without CUDA), then dask-ml and ncut-pytorch.
"""

from __future__ import annotations

import resource
import time
import warnings
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans, SpectralClustering
from sklearn.datasets import load_digits, load_iris, make_blobs, make_moons
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import normalize
from timing import product_seconds

from biclique.cluster.clustering import BicliqueSpectralClustering

DIMENSIONS, CLUSTERS = 16, 10
CHUNK = 100_000  # rows written at a time: fewer rows are the first of more
Found = tuple[np.ndarray, dict[str, Any]]
DASK_CHUNK = 100_000
GROUP_ROWS = 2**20  # of a Parquet file
INSTALL = {
    "dask": ("dask_ml", "pip install dask-ml"),
    "hdbscan": ("hdbscan", "pip install hdbscan"),
    "genie": ("genieclust", "pip install genieclust"),
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


def write_parquet(path: Path) -> None:
    """The rows of an .npy file as Parquet, in the groups of rows that pyarrow makes."""
    import pyarrow
    from pyarrow import parquet

    rows = np.load(path, mmap_mode="r")
    schema = pyarrow.schema([(f"x{j}", pyarrow.float32()) for j in range(rows.shape[1])])
    with parquet.ParquetWriter(path.with_suffix(".parquet"), schema) as writer:
        for top in range(0, len(rows), GROUP_ROWS):
            block = np.ascontiguousarray(rows[top : top + GROUP_ROWS].T)
            writer.write_table(pyarrow.Table.from_arrays(list(map(pyarrow.array, block)), schema=schema))


def truth_path(path: Path) -> Path:
    return path.with_suffix(".truth.npy")


def write_rows(path: Path, name: str, n: int | None, folder: str | None) -> bool:
    """Rows of a name into a file, and their truth beside it; False where ``folder`` does not have them."""
    if name in ("blobs", "outliers"):
        write_blobs(path, n, name)
        return True
    if name.startswith("moons"):
        X, y = make_moons(n, noise=0.08, random_state=0)
        more = 14 if name == "moons16" else 0
        X = np.column_stack([X, 0.08 * np.random.default_rng(0).normal(size=(n, more))])
    elif name == "blobs2":
        X, y = make_blobs(n, 2, centers=CLUSTERS, cluster_std=0.5, random_state=0)
    elif name.startswith("unequal"):
        y = np.random.default_rng(0).choice(3, n, p=[0.9, 0.08, 0.02])
        X = np.random.default_rng(1).normal(size=(n, 16 if name == "unequal16" else 2))
        X[:, :2] += np.array([[0, 0], [6, 6], [6, -6]])[y]
    elif name.startswith("columns"):
        X, y = make_blobs(n, int(name.removeprefix("columns")), centers=CLUSTERS, cluster_std=4.0, random_state=0)
    elif name == "many":
        k = max(n // 200, 2)
        y = np.arange(n) % k
        X = np.random.default_rng(0).uniform(-10, 10, (k, 8))[y] + np.random.default_rng(1).normal(size=(n, 8))
    elif name in ("iris", "digits"):
        X, y = (load_iris if name == "iris" else load_digits)(return_X_y=True)
    else:
        given = Path(folder or "", f"{name}.npz")
        if folder is None or not given.exists():
            return False
        with np.load(given) as arrays:
            X, y = arrays["X"][:n].astype(np.float32), arrays["y"][:n]
        X = X / 255 if name == "mnist" else X
    np.save(path, X if name in ("iris", "digits") else X.astype(np.float32))
    np.save(truth_path(path), y)
    return True


# Contenders


def ours(X: Any, k: int, seed: int = 0, probabilities: int = 0, **parameters: Any) -> Found:
    if "gram" in parameters:
        parameters = {"affinity": "rbf", **parameters}
    if isinstance(X, str):
        X = np.load(X, mmap_mode="r")
    model = BicliqueSpectralClustering(k, random_state=seed, **parameters).fit(X)
    if probabilities:
        model.predict_proba(X[:probabilities])
    return np.asarray(model.labels_), {"gamma": model.gamma_, "rank": model.rank_}


def command(X: str, k: int) -> Found:
    """``biclique cluster`` of a file, with the labels in another."""
    from biclique.cli import main

    labels = Path(X).with_suffix(".found.npy")
    with redirect_stdout(StringIO()):
        code = main(["cluster", X, "-k", str(k), "--seed", "0", "-q", "-o", str(labels)])
    if code:
        raise RuntimeError(f"biclique cluster ended with {code}")
    found = np.load(labels)
    labels.unlink()
    return found, {}


def kmeans(X: np.ndarray, k: int, starts: int) -> Found:
    return KMeans(k, n_init=starts, random_state=0).fit(X).labels_, {}


def minibatch(X: np.ndarray, k: int) -> Found:
    return MiniBatchKMeans(k, random_state=0).fit(X).labels_, {}


def usual_gamma(X: np.ndarray) -> float:
    """1/(d · variance), scikit-learn's "scale"."""
    return float(1 / (X.shape[1] * X.var()))


def nystroem(X: np.ndarray, k: int, gamma: float | None, p: int, starts: int) -> Found:
    """Features of scikit-learn, scaled to unit rows, and k-means on them."""
    gamma = gamma or usual_gamma(X)
    features = Nystroem(gamma=gamma, n_components=p, random_state=0).fit_transform(X)
    return kmeans(normalize(features, copy=False), k, starts)


def sklearn(X: np.ndarray, k: int, **parameters: Any) -> Found:
    return SpectralClustering(k, assign_labels="kmeans", random_state=0, **parameters).fit(X).labels_, {}


def dask(X: np.ndarray, k: int, gamma: float | None, p: int, own_kmeans: bool) -> Found:
    """With its own k-means, the default, or with scikit-learn's, as its documentation allows."""
    import dask.array
    from dask_ml.cluster import SpectralClustering

    rows = dask.array.from_array(X, chunks=(min(DASK_CHUNK, len(X) // 2), X.shape[1]))
    assign = "kmeans" if own_kmeans else KMeans(k, n_init=10, random_state=0)
    model = SpectralClustering(
        k, n_components=p, gamma=gamma or usual_gamma(X), assign_labels=assign, persist_embedding=True, random_state=0
    )
    return np.asarray(model.fit(rows).labels_), {}


def ncut(X: np.ndarray, k: int, gamma: float | None, p: int) -> Found:
    """Eigenvectors of ncut_pytorch, whose kernel is exp(−|x − y|²/(2σ²)), and k-means on them."""
    import torch
    from ncut_pytorch import Ncut

    torch.manual_seed(0)
    model = Ncut(n_eig=k, sigma=(2 * (gamma or usual_gamma(X))) ** -0.5, n_sample=p, device="cpu")
    return kmeans(model.fit_transform(torch.from_numpy(X)).numpy(), k, 10)


def hdbscan(X: np.ndarray, k: int) -> Found:  # noqa: ARG001
    """It chooses the number of clusters itself; rows that it leaves out are a cluster here."""
    from hdbscan import HDBSCAN

    return HDBSCAN(min_cluster_size=max(len(X) // 200, 5)).fit_predict(X), {}


def genie(X: np.ndarray, k: int) -> Found:
    from genieclust import Genie

    return Genie(k).fit_predict(X), {}


METHODS = {f.__name__: f for f in (ours, command, kmeans, minibatch, nystroem, sklearn, dask, ncut, hdbscan, genie)}


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


class Resident(Thread):
    """The most memory of this process that is its own, and the most that is pages of files.

    It looks 20 times a second, because the system keeps a peak of their sum alone. Pages of files are dropped if others
    need the memory.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.own = self.of_files = 0
        self._ended = Event()

    def run(self) -> None:
        while not self._ended.wait(0.05):
            try:
                lines = Path("/proc/self/status").read_text().splitlines()
            except OSError:
                return
            found = dict(line.split(":", 1) for line in lines if line.startswith("Rss"))
            own, of_files = (int(found[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile"))
            self.own, self.of_files = max(self.own, own), max(self.of_files, of_files)

    def end(self) -> None:
        self._ended.set()
        self.join()


def run(task: dict[str, Any]) -> dict[str, Any]:
    """The best of some fits, and the peak of memory of the first; none is begun once the budget of seconds is spent."""
    resident = Resident()
    resident.start()
    X = task["data"] if task["from_file"] else np.load(task["data"])
    best, spent, fits, peak = np.inf, 0.0, 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while fits < task["repeats"] and spent < task["budget"]:
            start = time.perf_counter()
            found = METHODS[task["method"]](X, **task["parameters"])
            seconds = time.perf_counter() - start
            best, spent, fits = min(best, seconds), spent + seconds, fits + 1
            peak = peak or peak_bytes()
            resident.end()
    np.save(task["labels"], found[0])
    memory = {"peak": peak, "own": resident.own, "of_files": resident.of_files}
    return {"seconds": best, "fits": fits, **memory, "product": product_seconds(), **found[1]}
