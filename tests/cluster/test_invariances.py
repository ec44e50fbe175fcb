"""What must not change labels: units, signs, the order of columns, a column of zeros, the size of all weights."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

from biclique import BicliqueSpectralClustering
from tests.data import words

pytestmark = pytest.mark.filterwarnings("ignore::biclique.exceptions.BicliqueWarning")

CHANGES = {
    "X · 2": lambda X: 2 * X,
    "−X": lambda X: -X,
    "columns reversed": lambda X: X[:, ::-1].copy(),
    "a zero column": lambda X: np.column_stack([X, np.zeros(len(X))]),
}
WAYS = {
    "default": {},
    "few landmarks": {"rank": 60},
    "dense": {"affinity": "rbf"},
    "tiled": {"affinity": "rbf", "gram": "tiled"},
    "landmarks of a kernel": {"affinity": "rbf", "gram": "nystroem", "rank": 100},
    "kernel k-means": {"affinity": "rbf", "assign_labels": "kernel_kmeans"},
    "graph": {"affinity": "nearest_neighbors"},
}


NORMAL = np.random.RandomState(0).randn(173, 2)
TIED = {
    "whole numbers": (np.random.default_rng(1).integers(0, 5, (300, 3)).astype(float), 3),
    "words": (words(), 7),
    "iris": (np.round(load_iris().data * 10), 3),
    **{f"one row at {far}": (np.vstack([NORMAL, [[far, far]]]), 3) for far in (1e9, 1e13)},
}


def fitted(X, k=4, sample_weight=None, **parameters):
    return BicliqueSpectralClustering(k, random_state=0, **parameters).fit(X, sample_weight=sample_weight)


@pytest.mark.parametrize("way", WAYS)
def test_draws_and_starts_do_not_follow_the_bytes_of_rows(way):
    X = np.random.default_rng(1).normal(size=(600, 3))  # without groups, k-means has many optima
    labels = fitted(X, **WAYS[way]).labels_
    for name, change in CHANGES.items():
        found = fitted(change(X), **WAYS[way]).labels_
        assert adjusted_rand_score(labels, found) > 0.95, name


def test_draws_of_features_follow_neither_the_order_nor_the_signs_of_columns():
    options = {"affinity": "rbf", "gram": "features", "rank": 120, "gamma": "scale", "order": 2}
    X = np.random.default_rng(1).normal(size=(600, 3))
    labels = fitted(X, 3, **options).labels_
    for changed in (2 * X, -X, X * [1, -1, 1], X[:, ::-1].copy()):
        assert adjusted_rand_score(labels, fitted(changed, 3, **options).labels_) > 0.95


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("name", "way"), [*((name, "default") for name in TIED), ("whole numbers", "graph")])
def test_equally_near_rows_do_not_follow_them_either(name, way, stored):
    X, k = TIED[name]
    order = np.random.default_rng(0).permutation(len(X))
    changed = {what: (change(X), slice(None)) for what, change in CHANGES.items()}
    changed["rows shuffled"] = X[order], order
    if X.max() < 1e9:
        changed["float32"] = X.astype(np.float32), slice(None)
    if way == "default":
        changed["X · 3.7"] = X * 3.7, slice(None)
    if way == "default" and stored is np.asarray:  # sparse rows are not centred
        changed["X + 2²⁰"] = X + 2.0**20, slice(None)
    expected = fitted(X, k, **WAYS[way])
    for what, (rows, numbers) in changed.items():
        model = fitted(stored(rows), k, **WAYS[way])
        assert adjusted_rand_score(model.labels_, expected.labels_[numbers]) == 1, what
        np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=1e-5, err_msg=what)


def test_the_number_that_is_selected_does_not_either():
    X = make_blobs(300, 4, centers=5, cluster_std=2.5, random_state=0)[0]
    model = fitted(X, "select")
    for name, change in CHANGES.items():
        assert fitted(change(X), "select").n_clusters_ == model.n_clusters_, name


@pytest.mark.parametrize("size", [1e-50, 1e39, 1e99])
@pytest.mark.parametrize("way", [*WAYS, "features"])
def test_equal_weights_of_any_size_are_no_weights(way, size):
    X, _ = make_blobs(400, 4, centers=4, cluster_std=1.5, random_state=0)
    parameters = WAYS.get(way, {"affinity": "rbf", "gram": "features", "rank": 200})
    plain, weighted = fitted(X, **parameters), fitted(X, sample_weight=np.full(400, size), **parameters)
    np.testing.assert_array_equal(weighted.labels_, plain.labels_)
    np.testing.assert_allclose(weighted.predict_proba(X), plain.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("assign", ["kmeans", "cluster_qr", "discretize", "kernel_kmeans"])
def test_a_given_graph_gives_its_rows_their_labels(assign, include_self):
    for seed in range(12):
        random = np.random.default_rng(seed)
        X = np.round(random.normal(size=(random.integers(8, 60), random.integers(1, 4))), random.integers(0, 3))
        graph = kneighbors_graph(X, min(6, len(X) - 1), mode="distance", include_self=include_self)
        parameters = {"affinity": "precomputed_nearest_neighbors", "n_neighbors": min(6, len(X) - 1)}
        model = fitted(graph, int(random.integers(2, 5)), assign_labels=assign, **parameters)
        np.testing.assert_array_equal(model.predict(graph), model.labels_)
        np.testing.assert_array_equal(model.transform(graph), model.embedding_)


def test_sparse_rows_that_hold_zeros_get_their_labels_from_ffts():
    pytest.importorskip("finufft")
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(60, 2))
        held = sparse.csr_array((np.where(X.ravel() > 0.5, 0.0, X.ravel()), np.tile([0, 1], 60), 2 * np.arange(61)))
        model = fitted(held, affinity="rbf", gram="fourier")
        np.testing.assert_array_equal(model.predict(held), model.labels_)
