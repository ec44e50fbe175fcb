"""How K is stored and in which precision, and what is refused before anything is computed."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from biclique import BicliqueSpectralClustering
from biclique.exceptions import MemoryLimitError, ParameterError
from biclique.fit.choose import check_memory, choose_gram, choose_precision
from biclique.kernels import RBF, Chi2, Gower, Laplacian, Linear
from biclique.rows.array import ArrayRows
from tests.case_names import without_address
from tests.optional import Optional, needs

da = Optional("dask.array")


def settings_of(**parameters):
    return BicliqueSpectralClustering(3, **{"affinity": "rbf", **parameters})._settings()


@pytest.mark.parametrize(
    ("affinity", "n", "expected", "of_sparse_rows"),
    [
        ("rbf", 4096, "dense", "dense"),
        ("rbf", 4097, "tiled", "dense"),
        ("laplacian", 20_000, "dense", "dense"),
        ("laplacian", 20_001, "tiled", "tiled"),
        (lambda x, y: 1.0, 20_000, "dense", "dense"),
        ("linear", 5000, "tiled", "dense"),
        ("neighborhoods", 5000, "neighborhoods", "neighborhoods"),
        ("nearest_neighbors", 5000, "neighbors", "neighbors"),
        ("precomputed", 5000, "dense", "sparse"),
    ],
    ids=without_address,
)
def test_auto_is_exact_for_rows_in_memory(affinity, n, expected, of_sparse_rows):
    for X, name in ((np.zeros((2, 4)), expected), (sparse.csr_array(np.zeros((2, 4))), of_sparse_rows)):
        found, reason = choose_gram(settings_of(affinity=affinity), ArrayRows(X, np.ones(2)), n)
        assert found == name
        assert reason.startswith("exact: ") or name not in ("dense", "tiled") or affinity == "precomputed"


def test_what_is_asked_for_is_taken():
    source = ArrayRows(np.zeros((2, 4)), np.ones(2))
    for gram in ("dense", "tiled", "nystroem", "features"):
        assert choose_gram(settings_of(gram=gram), source, 10**6) == (gram, "as asked for")
    away = SimpleNamespace(in_memory=False, device=None, n_columns=3)
    assert choose_gram(settings_of(), away, None) == ("nystroem", "approximate: the rows are not in memory")
    assert choose_gram(settings_of(affinity="linear"), away, None)[0] == "features"


def precision(kernel, X, asked="auto"):
    return choose_precision(settings_of(precision=asked), "tiled", kernel, X)


def test_precision_is_float32_until_its_rounding_shows():
    X = np.random.default_rng(0).normal(size=(100, 3))
    assert precision(RBF(1.0), X) == "float32"
    assert precision(RBF(1e5), X) == "float64"
    assert precision(RBF(1.0), X + 1e6) == "float32"  # centring takes the offset away
    assert precision(Linear(), X + 1e4) == "float64"
    assert precision(RBF(1e3), X, "float32") == "float32"
    assert precision(RBF(1.0), X, "float64") == "float64"
    assert choose_precision(settings_of(), "dense", RBF(1.0), X) == "float64"
    with pytest.raises(ParameterError, match=r"precision='float32' would give kernel values off by 1: rows lie too"):
        precision(RBF(1e5), X, "float32")


@pytest.mark.parametrize("make", [RBF, Laplacian, Chi2])
def test_precision_if_all_values_are_near_one(make):
    X = np.random.default_rng(0).random((100, 3))
    assert [precision(make(gamma), X) for gamma in (1.0, 1e-2, 1e-6)] == ["float32", "float32", "float64"]
    with pytest.raises(ParameterError, match="or its values too close together"):
        precision(make(1e-7), X, "float32")


@pytest.mark.parametrize("kernel", [Linear(), Laplacian(1e60), Chi2(1e60)])
def test_precision_if_float32_vanishes(kernel):
    X = np.random.default_rng(0).random((100, 3))
    assert precision(kernel, X * 1e-60) == "float64"
    assert precision(Linear(), X * 1e-10) == "float32"


# Memory


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gram": "dense"}, "gram='dense' for 300 rows and 4 columns .* use gram='tiled'"),
        ({"gram": "tiled"}, "gram='tiled' for 300 rows .* fewer clusters"),
        ({"gram": "nystroem", "rank": 200}, "gram='nystroem' for 300 rows .* lower rank"),
        ({"gram": "nystroem", "rank": 200, "assign_labels": "kernel_kmeans"}, "gram='nystroem' .* lower rank"),
        ({"affinity": "nearest_neighbors"}, "gram='neighbors' for 300 rows .* lower n_neighbors"),
        ({"affinity": "neighborhoods"}, "neighbourhoods of 300 rows needs .* Dask"),
        ({"affinity": "precomputed"}, "work on the given 300 × 300 matrix needs"),
    ],
)
def test_what_does_not_fit_the_free_memory_is_refused(blobs, monkeypatch, parameters, message):
    monkeypatch.setattr("biclique.runtime.memory.free_memory", lambda: 20_000)
    X = RBF(0.1).block(blobs[0], blobs[0]) if parameters.get("affinity") == "precomputed" else blobs[0]
    model = BicliqueSpectralClustering(4, **{"affinity": "rbf", **parameters})
    with pytest.raises(MemoryLimitError, match=message):
        model.fit(X)
    assert not hasattr(model, "labels_")


def test_a_matrix_is_refused_before_anything_is_allocated(monkeypatch):
    monkeypatch.setattr("biclique.runtime.memory.free_memory", lambda: 16 * 2**30)
    tracemalloc.start()
    with pytest.raises(MemoryLimitError, match=r"gram='dense' for 200000 rows .* needs .* GiB, and 16 GiB are free"):
        check_memory(settings_of(), "dense", np.zeros((2, 1)), 200_000, np.dtype(float))
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


# What rows in memory, on a device and in Dask's chunks are refused


LANDMARKS = {"device": "cpu", "gram": "nystroem"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"affinity": "neighborhoods", "rank": 3}, "rank=3 landmarks are fewer than the 4 clusters"),
        ({"gram": "nystroem", "rank": 301}, "rank=301 is more than the 300 distinct rows there are: use rank='auto'"),
        ({"gram": "features", "rank": 301}, "rank=301 is more than the 300 rows there are: use rank='auto'"),
        ({"affinity": "nearest_neighbors", "n_neighbors": 301}, "more than the 300 distinct rows"),
        ({"affinity": "sigmoid", "gram": "features"}, "gram='features' knows rbf.*use gram='nystroem'"),
        ({"gram": "tiled", "precision": "float32", "gamma": 1e6}, "precision='float32' would give"),
        ({"precision": "fast"}, "precision='fast' is for device='cuda'"),
        ({"device": "cpu", "gram": "dense"}, "gram='dense' works on the host"),
        ({"device": "cpu", "modelling": "symmetric"}, "leave device at None"),
        ({"device": "cpu", "affinity": "sigmoid"}, "the kernel 'sigmoid' is not supported on a GPU"),
        ({"device": "cpu", "assign_labels": "kernel_kmeans"}, "leave device at None"),
        ({"device": "cpu", "affinity": "neighborhoods", "kernel_params": {"metric": Gower()}}, "leave device at None"),
        ({"device": "cpu", "affinity": "nearest_neighbors"}, "leave device at None"),
        ({"device": "cpu", "affinity": "polynomial", "gram": "features", "rank": 50}, "sketch.*use rank='auto'"),
        (
            {"device": "cpu", "affinity": "polynomial", "gram": "features", "degree": 20},
            "sketch.*: use gram='nystroem'",
        ),
        ({**LANDMARKS, "affinity": "laplacian"}, r"inner product .*gram='auto' \(exact\), or the host"),
        ({**LANDMARKS, "affinity": "chi2"}, "inner product .*use the host"),
        ({**LANDMARKS, "affinity": lambda x, y: float(x @ y)}, "inner product .*use the host"),
        ({"device": "mps", "precision": "float64"}, "device='mps' has no float64"),
        ({"device": "nowhere"}, "device must be None, 'cpu', .* got 'nowhere'"),
    ],
    ids=without_address,
)
def test_what_cannot_be_done_is_refused(blobs, parameters, message):
    with pytest.raises(ParameterError, match=message):
        BicliqueSpectralClustering(**{"n_clusters": 4, "affinity": "rbf", **parameters}).fit(blobs[0])


@needs("dask")
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"affinity": "neighborhoods", "rank": "all"}, "rank='all' needs X in memory"),
        ({"gram": "dense"}, "gram='dense' needs X in memory: load the rows, or use gram='nystroem'"),
        ({"affinity": "nearest_neighbors"}, "affinity='nearest_neighbors' needs X in memory"),
        ({"affinity": "precomputed"}, "affinity='precomputed' needs X in memory"),
        ({"device": "cpu"}, "device='cpu' needs X in memory"),
        ({"precision": "fast"}, "precision='fast' is for device='cuda'"),
        ({"modelling": "symmetric"}, r"modelling='symmetric' needs X in memory.* use modelling='biclique'"),
        ({"assign_labels": "kernel_kmeans"}, "assign_labels='kmeans' or 'cluster_qr' or 'discretize'"),
        ({"gram": "nystroem", "rank": 301}, "rank=301 is more than the 300 distinct rows there are: use rank='auto'"),
    ],
    ids=without_address,
)
def test_what_needs_rows_in_memory(blobs, parameters, message):
    rows = da.from_array(blobs[0], chunks=(100, -1))
    with pytest.raises(ParameterError, match=message):
        BicliqueSpectralClustering(4, **{"affinity": "rbf", **parameters}).fit(rows)
