import numpy as np
import pytest
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from biclique import BicliqueSpectralClustering, ConsensusClustering, consensus_labels
from biclique.cluster import consensus
from biclique.cluster.consensus import equal_rows, partitions_as_hypergraph
from biclique.exceptions import DataError, FewerClustersWarning, ParameterError
from biclique.hypergraph import ExpansionGram
from tests.oracles import consensus_similarity


def noisy(n=60, k=3, count=8, wrong=0.1, missing=0.1, seed=0):
    random = np.random.RandomState(seed)
    truth = random.randint(k, size=n)
    L = np.column_stack([random.permutation(k)[truth] for _ in range(count)])
    L[random.rand(n, count) < wrong] = 0
    L[random.rand(n, count) < missing] = -1
    return L, truth


def test_the_hypergraph_of_partitions_is_its_definition():
    L, _ = noisy(30, count=4)
    L = np.concatenate([L, L[:12], L[:5]])
    patterns, index, weights = equal_rows(L)
    np.testing.assert_array_equal(patterns[index], L)
    assert weights.sum() == len(L)
    assert len(np.unique(patterns, axis=0)) == len(patterns)
    K = ExpansionGram(partitions_as_hypergraph(patterns), "star").matmat(np.eye(len(patterns)))
    np.testing.assert_allclose(K[np.ix_(index, index)], consensus_similarity(L), atol=1e-12)


@pytest.mark.parametrize("few_clusters", [0, 2000])
def test_both_ways_embed_as_the_dense_cut_of_the_definition(few_clusters, monkeypatch):
    L, _ = noisy(50, k=4, count=5, wrong=0.2)
    L = np.concatenate([L, L[:12], L[:5]])
    K = consensus_similarity(L)
    roots = np.sqrt(K.sum(axis=1))
    vectors = np.linalg.eigh(K / np.outer(roots, roots))[1][:, -4:]
    patterns, index, weights = equal_rows(L)
    monkeypatch.setattr(consensus, "FEW_CLUSTERS", few_clusters)
    rows = consensus.embedded(patterns, weights, 4, np.random.RandomState(0), None)[index]
    # Eigenvectors are known up to a rotation: inner products of rows are not.
    np.testing.assert_allclose(rows @ rows.T, vectors @ vectors.T, atol=1e-5 if few_clusters == 0 else 1e-10)


def test_blocks_of_rows_add_up(monkeypatch):
    L, _ = noisy(90, 3, 6)
    patterns, _, weights = equal_rows(L)
    members = consensus.memberships(patterns)
    whole = consensus.from_clusters(members, weights, 3, 1)
    monkeypatch.setattr(consensus, "BLOCK_ROWS", 7)
    blocks = [consensus.from_clusters(members, weights, 3, n_jobs) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(*blocks)
    np.testing.assert_allclose(blocks[0] @ blocks[0].T, whole @ whole.T, atol=1e-12)


def test_large_names_of_clusters():
    L, _ = noisy(40, 3, 6)
    far = np.where(L < 0, -1, L * 10**15 + 5)
    np.testing.assert_array_equal(consensus_labels(far, 3), consensus_labels(L, 3))


def test_noisy_partitions_give_the_groups_back():
    L, truth = noisy(200, 4, 12)
    L.setflags(write=False)
    labels = consensus_labels(L, 4)
    assert adjusted_rand_score(truth, labels) > 0.95
    np.testing.assert_array_equal(labels, consensus_labels(L, 4, n_jobs=1))
    assert labels[0] == 0  # numbered in the order of the rows


def test_the_order_of_rows_and_names_of_clusters_do_not_matter():
    L, _ = noisy(80, 3, 10)
    order = np.random.RandomState(1).permutation(80)
    other = np.where(L < 0, -1, 7 - L)
    assert adjusted_rand_score(consensus_labels(L, 3)[order], consensus_labels(other[order], 3)) == 1


def test_rows_without_labels_and_few_patterns():
    L = np.array([[0, 0], [0, -1], [1, 1], [1, 1], [-1, -1]])
    np.testing.assert_array_equal(consensus_labels(L, 2), [0, 0, 1, 1, -1])
    np.testing.assert_array_equal(consensus_labels(L, 1), [0, 0, 0, 0, -1])
    with pytest.warns(FewerClustersWarning, match="3 clusters returned, 4 asked for"):
        consensus_labels(L, 4)


@pytest.mark.parametrize(
    ("L", "k", "said"),
    [
        ([0, 1], 2, "rows by partitions"),
        ([[0.5], [1.0]], 2, "whole numbers"),
        ([[-2], [1]], 2, "the label -2"),
        ([[-1], [1]], 2, "fewer than n_clusters=2"),
    ],
)
def test_bad_labels_are_refused(L, k, said):
    with pytest.raises(DataError, match=said):
        consensus_labels(L, k)


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
    with pytest.raises(ParameterError, match="has no predict"):
        trees.predict(X)


@pytest.mark.parametrize(
    ("estimators", "said"),
    [
        ([], "at least one pair"),
        ([("a", KMeans(2)), ("a", KMeans(3))], "distinct names"),
        ([("a", 3)], "not a clusterer"),
    ],
)
def test_bad_estimators_are_refused(estimators, said):
    with pytest.raises(ParameterError, match=said):
        ConsensusClustering(2, estimators=estimators).fit(np.eye(5))


@parametrize_with_checks([ConsensusClustering(2)])
def test_estimator_checks(estimator, check):
    check(estimator)
