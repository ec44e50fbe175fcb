import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering, ConsensusClustering, consensus_labels
from biclique.cluster.consensus import embedded, equal_rows, memberships
from biclique.exceptions import DataError, FewerClustersWarning, ParameterError
from tests.calls import refuses
from tests.oracles import consensus_similarity


def noisy(n=60, k=3, count=8, wrong=0.1, missing=0.1, seed=0):
    random = np.random.RandomState(seed)
    truth = random.randint(k, size=n)
    L = np.column_stack([random.permutation(k)[truth] for _ in range(count)])
    L[random.rand(n, count) < wrong] = 0
    L[random.rand(n, count) < missing] = -1
    return L, truth


def test_the_embedding_is_that_of_the_dense_cut_of_the_definition():
    L, _ = noisy(50, k=4, count=5, wrong=0.2)
    L = np.concatenate([L, L[:12], L[:5]])
    K = consensus_similarity(L)
    roots = np.sqrt(K.sum(axis=1))
    vectors = np.linalg.eigh(K / np.outer(roots, roots))[1][:, -4:]
    patterns, index, weights = equal_rows(L)
    np.testing.assert_array_equal(patterns[index], L)
    assert weights.sum() == len(L)
    H = memberships(patterns)
    np.testing.assert_allclose((H @ H.T).toarray()[np.ix_(index, index)], K, atol=1e-12)
    rows = embedded(patterns, weights, 4)[index]
    # Eigenvectors are known up to a rotation: inner products of rows are not.
    np.testing.assert_allclose(rows @ rows.T, vectors @ vectors.T, atol=1e-9)


def test_noisy_partitions_give_the_groups_back_whatever_the_order_of_rows_and_names_of_clusters():
    L, truth = noisy(200, 4, 12)
    L.setflags(write=False)
    labels = consensus_labels(L, 4)
    assert adjusted_rand_score(truth, labels) > 0.95
    assert labels[0] == 0  # numbered in the order of the rows
    order = np.random.RandomState(1).permutation(200)
    other, far = np.where(L < 0, -1, 7 - L), np.where(L < 0, -1, L * 10**15 + 5)
    assert adjusted_rand_score(labels[order], consensus_labels(other[order], 4)) == 1
    np.testing.assert_array_equal(consensus_labels(far, 4), labels)


def test_rows_without_labels_and_few_patterns():
    L = np.array([[0, 0], [0, -1], [1, 1], [1, 1], [-1, -1]])
    np.testing.assert_array_equal(consensus_labels(L, 2), [0, 0, 1, 1, -1])
    np.testing.assert_array_equal(consensus_labels(L, 1), [0, 0, 0, 0, -1])
    with pytest.warns(FewerClustersWarning, match="3 clusters returned, 4 asked for"):
        consensus_labels(L, 4)


@pytest.mark.parametrize(
    ("L", "k", "message"),
    [
        ([0, 1], 2, "rows by partitions"),
        ([[0.5], [1.0]], 2, "whole numbers"),
        ([[-2], [1]], 2, "the label -2"),
        ([[-1], [1]], 2, "fewer than n_clusters=2"),
    ],
)
def test_bad_labels_are_refused(L, k, message):
    refuses(DataError, message, consensus_labels, L, k)


def test_the_estimator_and_its_predict():
    X, truth = make_blobs(120, centers=3, cluster_std=0.5, random_state=0)
    parts = [
        ("cut", BicliqueSpectralClustering(3, random_state=0)),
        ("means", KMeans(3, n_init=1, random_state=0)),
        ("more", KMeans(6, n_init=1, random_state=1)),
    ]
    model = ConsensusClustering(3, estimators=parts, random_state=0).fit(X)
    assert model.partitions_.shape == (120, 3)
    assert adjusted_rand_score(truth, model.labels_) > 0.8
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    near = model.predict(X + 1e-6)
    assert (near == model.labels_).mean() > 0.98
    trees = ConsensusClustering(3, estimators=[("tree", AgglomerativeClustering(3))]).fit(X)
    refuses(ParameterError, "has no predict", trees.predict, X)


@pytest.mark.parametrize(
    ("estimators", "message"),
    [
        ([], "at least one pair"),
        ([("a", KMeans(2)), ("a", KMeans(3))], "distinct names"),
        ([("a", 3)], "not a clusterer"),
        ([("n_clusters", KMeans(2))], "other than those of parameters"),
    ],
)
def test_bad_estimators_are_refused(estimators, message):
    refuses(ParameterError, message, ConsensusClustering(2, estimators=estimators).fit, np.eye(5))


def test_parameters_of_members_by_name():
    model = ConsensusClustering(2, [("a", KMeans(2)), ("b", KMeans(3))])
    assert model.get_params()["b__n_clusters"] == 3
    other = clone(model).set_params(a__n_clusters=5, b=KMeans(7), n_clusters=4)
    assert [one.n_clusters for _, one in other.estimators] == [5, 7]
    assert (other.n_clusters, model.estimators[0][1].n_clusters) == (4, 2)
    assert "a__n_clusters" not in model.get_params(deep=False)


def test_sparse_rows_and_gaps_if_all_members_take_them():
    X, truth = make_blobs(90, centers=[[0, 0], [9, 0], [0, 9]], cluster_std=0.5, random_state=0)
    rows = sparse.csr_array(X)
    plain = ConsensusClustering(3, random_state=0).fit(rows)
    assert adjusted_rand_score(plain.labels_, truth) == 1
    np.testing.assert_array_equal(plain.predict(rows), plain.labels_)
    with pytest.raises(DataError, match=r"'tree', a AgglomerativeClustering, which takes no sparse X: pass X\.toarray"):
        ConsensusClustering(3, [("tree", AgglomerativeClustering(3))]).fit(rows)
    X[3, 1] = np.nan
    gower = ConsensusClustering(3, [("cut", BicliqueSpectralClustering(3, affinity="gower", random_state=0))])
    assert len(gower.fit(X).labels_) == 90
    assert gower.__sklearn_tags__().input_tags.allow_nan
    for wrong, message in (
        (X, "X contains NaN: 1 missing .* in row 3, column 1"),
        (np.eye(6) * 1e200, "overflow: resc"),
    ):
        refuses(DataError, message, ConsensusClustering(3).fit, wrong)


def test_few_distinct_rows_have_one_warning():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ConsensusClustering(5, random_state=0).fit(np.repeat(np.eye(4), 5, axis=0))
    assert [one.category for one in found] == [FewerClustersWarning]


@pytest.mark.parametrize("unit", [1e-60, 1e-20, 1.0, 1e12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_rows_keep_their_labels_in_every_unit(unit, dtype):
    X, _ = make_blobs(90, centers=4, cluster_std=2.0, random_state=1)
    rows = (X * [1.0, 1e3] * unit if dtype == np.float64 else X * min(max(unit, 1e-10), 1e10)).astype(dtype)
    model = ConsensusClustering(4, random_state=0).fit(rows)
    np.testing.assert_array_equal(model.predict(rows), model.labels_)


def test_training_rows_keep_labels_that_their_partitions_lose():
    """The members may predict another cluster for a training row than they gave it."""

    class Moody(KMeans):
        def predict(self, X):
            return np.roll(super().predict(X), 1)

    X, _ = make_blobs(60, centers=3, random_state=0)
    model = ConsensusClustering(3, [("moody", Moody(3, n_init=1, random_state=0))], random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
