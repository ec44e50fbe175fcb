"""scikit-learn's graph of nearest neighbours: its matrix, its labels, connected components, new rows, given graphs."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans
from biclique.exceptions import (
    DataError,
    DisconnectedWarning,
    FewerClustersWarning,
    ParameterError,
    RankWarning,
)
from biclique.spectral.assign import ASSIGNERS
from tests.data import far_groups


def fitted(X, n_clusters=2, sample_weight=None, **parameters):
    settings = {"affinity": "nearest_neighbors", "random_state": 0, **parameters}
    return BicliqueSpectralClustering(n_clusters, **settings).fit(X, sample_weight=sample_weight)


def spirals(n=900):
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], n // 3)
    t = np.sqrt(random.uniform(0.05, 1, len(y))) * 3 * np.pi
    angle = t + y * 2 * np.pi / 3
    return np.column_stack([t * np.cos(angle), t * np.sin(angle)]) + random.normal(scale=0.08, size=(len(y), 2)), y


def overlapping():
    return make_blobs(500, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)


SHAPES = {
    "moons": (*make_moons(600, noise=0.05, random_state=0), 2),
    "circles": (*make_circles(600, noise=0.03, factor=0.4, random_state=0), 2),
    "spirals": (*spirals(), 3),
    "blobs": (*make_blobs(600, n_features=10, centers=4, random_state=0), 4),
}


ON_A_LINE = [[0, 0], [100, 0], [200, 0], [300, 0]]


@pytest.mark.parametrize("n_neighbors", [None, 3, 25])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_graph_is_that_of_scikit_learn(shape, n_neighbors):
    X, _, k = SHAPES[shape]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedWarning)
        fit = fitted(X, k, n_neighbors=n_neighbors)._fitted
    A = kneighbors_graph(X, n_neighbors or 10, include_self=True).toarray()
    expected = (A + A.T) / 2
    np.fill_diagonal(expected, 0)
    place = fit.known.find(X)
    assert np.array_equal(fit.points.trained.K.toarray()[np.ix_(place, place)], expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_labels_are_those_of_scikit_learn(shape):
    X, y, k = SHAPES[shape]
    theirs = SpectralClustering(k, affinity="nearest_neighbors", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # its graph is not connected
        labels = theirs.fit_predict(X)
    assert adjusted_rand_score(labels, y) == 1
    for assign in ASSIGNERS:
        model = fitted(X, k, assign_labels=assign)
        assert adjusted_rand_score(y, model.labels_) == 1, assign
        assert np.array_equal(model.predict(X), model.labels_)
        assert (model.gram_, model.order_, model.gamma_) == ("neighbors", 2.0, None)


def test_at_least_as_many_components_as_clusters_are_grouped_whole():
    X, y = far_groups(ON_A_LINE, [400, 300, 200, 100])
    with pytest.warns(
        DisconnectedWarning, match=r"4 connected components \(400, 300, 200, 100 of 1000 rows\), more than the 2 clu"
    ):
        model = fitted(X, 2)
    assert adjusted_rand_score(np.array([0, 1, 1, 0])[y], model.labels_) == 1  # each to the group of least volume
    assert np.array_equal(model.predict(X), model.labels_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        four = fitted(X, 4)
    assert adjusted_rand_score(y, four.labels_) == 1
    assert four.eigenvalues_.tolist() == [1, 1, 1]
    assert four.residuals_.max() < 1e-12


def test_fewer_components_than_clusters():
    X, y = far_groups(ON_A_LINE[:2], [300, 200])
    model = fitted(X, 5)
    assert set(model.labels_.tolist()) == set(range(5))
    assert all(len(set(y[model.labels_ == label].tolist())) == 1 for label in range(5))
    assert model.eigenvalues_[0] == 1 > model.eigenvalues_[1]
    assert np.array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_closed_form_gives_training_rows_their_labels(shape):
    X, _, k = SHAPES[shape]
    model = fitted(X, k, eigen_tol=1e-8)
    model._fitted.known = replace(model._fitted.known, digests=np.empty(0))  # without looking rows up
    assert np.array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-6)


def test_new_rows():
    X, y, k = SHAPES["moons"]
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:400], order[400:]
    model = fitted(X[train], k)
    assert adjusted_rand_score(y[test], model.predict(X[test])) > 0.97
    assert np.array_equal(model.predict(X[train] + 1e-9), model.labels_)


def test_rows_that_are_like_no_training_row():
    X, _ = far_groups(ON_A_LINE[:2], 60)
    model = fitted(X)
    near, far = model.labels_[0], model.labels_[-1]
    assert model.predict([[-1e4, 0.0], [-9, 7], [40, 0], [60, 0], [1e5, 1e4]]).tolist() == [near, near, near, far, far]


@pytest.mark.parametrize("solver", ["amg", "krylov", "arpack", "lobpcg"])
def test_solvers_agree(solver):
    X = overlapping()[0]
    first = fitted(X, 3, eigen_tol=1e-6)
    other = fitted(X, 3, eigen_solver=solver, eigen_tol=1e-6)
    np.testing.assert_allclose(other.eigenvalues_, first.eigenvalues_, atol=1e-6)
    assert adjusted_rand_score(other.labels_, first.labels_) == 1


def test_a_given_graph():
    X, y, _ = SHAPES["moons"]
    graph = kneighbors_graph(X, 10, mode="distance", include_self=True)
    given = fitted(graph, affinity="precomputed_nearest_neighbors")
    assert adjusted_rand_score(given.labels_, fitted(X).labels_) == 1
    assert np.array_equal(given.predict(graph), given.labels_)
    transformer = KNeighborsTransformer(n_neighbors=10, mode="distance").fit(X)
    assert adjusted_rand_score(given.predict(transformer.transform(X[:300] + 1e-3)), y[:300]) == 1
    assert given.gram_reason_ == "the graph is given"
    with pytest.raises(DataError, match="needs a square matrix of distances"):
        fitted(X, affinity="precomputed_nearest_neighbors")
    with pytest.raises(DataError, match="n_neighbors=11, but row 0 of the graph, counted from 0, has"):
        fitted(graph, affinity="precomputed_nearest_neighbors", n_neighbors=11)


def test_few_rows():
    X = make_blobs(12, centers=2, random_state=0)[0]
    assert set(fitted(X, 2).labels_.tolist()) == {0, 1}
    for n in (2, 3, 5):  # all are neighbours of all
        with pytest.warns(RankWarning, match="1 of 1 eigenvalues are negative"):
            assert set(fitted(X[:n], 2).labels_.tolist()) == {0, 1}
    with pytest.warns(FewerClustersWarning, match="X has only 1 distinct rows"):
        assert fitted(np.ones((50, 3)), 2).labels_.tolist() == [0] * 50
    with pytest.warns(FewerClustersWarning, match="X has only 5 distinct rows"), pytest.warns(RankWarning):
        assert len(np.unique(fitted(np.repeat(X[:5], 9, axis=0), 8).labels_)) == 5


def test_kernel_kmeans_has_no_graph():
    with pytest.raises(ParameterError, match="works with BicliqueSpectralClustering"):
        BicliqueKernelKMeans(2, affinity="nearest_neighbors").fit(SHAPES["moons"][0])
