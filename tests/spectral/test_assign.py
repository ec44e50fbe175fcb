import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.exceptions import FewerClustersWarning
from biclique.spectral import rounding
from biclique.spectral.assign import ASSIGNERS as ALL_ASSIGNERS
from biclique.spectral.rounding import few_distinct_rows, lloyd, spread_out_rows, weighted_means
from tests import oracles

# Those that need nothing but the embedding.
ASSIGNERS = {name: ALL_ASSIGNERS[name] for name in ("kmeans", "cluster_qr", "discretize")}


def embedding(k=4, n=200, noise=0.05, seed=0):
    """Rows near k orthogonal directions: what the eigenvectors of k clear clusters look like, turned."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    labels[:k] = np.arange(k)
    rotation = np.linalg.qr(rng.normal(size=(k, k)))[0]
    return (np.eye(k)[labels] + noise * rng.normal(size=(n, k))) @ rotation, labels


def labels_of(name, rows, k, weights=None, n_init=5, random_state=0):
    weights = np.ones(len(rows)) if weights is None else weights
    return ASSIGNERS[name].assign(rows, weights, k, n_init=n_init, random_state=random_state).rule.labels(rows)


@pytest.mark.parametrize("name", ASSIGNERS)
@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_clear_clusters_are_found_and_rules_are_pointwise(name, k):
    rows, truth = embedding(k)
    rule = ASSIGNERS[name].assign(rows, np.ones(len(rows)), k, n_init=5, random_state=0).rule
    labels = rule.labels(rows)
    assert adjusted_rand_score(truth, labels) == 1
    one_by_one = np.concatenate([rule.labels(row[None]) for row in rows])
    assert np.array_equal(labels, one_by_one)


@pytest.mark.parametrize("name", ASSIGNERS)
def test_multiplicities_and_order_of_rows_do_not_matter(name):
    rows, _ = embedding(noise=0.25)
    weights = np.random.default_rng(1).integers(1, 5, len(rows))
    repeated = np.repeat(np.arange(len(rows)), weights)
    shuffled = np.random.default_rng(2).permutation(repeated)
    few = labels_of(name, rows, 4, weights.astype(float))
    many = labels_of(name, rows[shuffled], 4, random_state=7)
    assert np.array_equal(few[shuffled], many)


def test_labels_are_numbered_by_sorted_centres():
    rows, _ = embedding()
    for name in ASSIGNERS:
        centres, present = weighted_means(rows, np.ones(len(rows)), labels_of(name, rows, 4), 4)
        assert present.all()
        assert (np.diff(centres[:, 1]) > 0).all()


def test_one_start_is_a_plain_kmeans_plus_plus():
    rows, _ = embedding(noise=0.4)
    labels = labels_of("kmeans", rows, 4, n_init=1, random_state=3)
    plain = KMeans(4, init="k-means++", n_init=1, random_state=3, tol=1e-8).fit(rows)
    assert adjusted_rand_score(labels, plain.labels_) == 1


def test_more_starts_are_never_worse_than_fewer_from_the_same_seed():
    rows, _ = embedding(k=6, noise=0.6)

    def inertia(n_init, seed):
        rule = ASSIGNERS["kmeans"].assign(rows, np.ones(len(rows)), 6, n_init=n_init, random_state=seed).rule
        return np.min(((rows[:, None] - rule.centres[None]) ** 2).sum(axis=2), axis=1).sum()

    assert all(inertia(20, seed) <= inertia(2, seed) * (1 + 1e-5) for seed in range(5))


@pytest.mark.parametrize(("k", "starts"), [(2, 10), (10, 10), (20, 5), (50, 2), (51, 1)])
def test_many_clusters_have_fewer_starts_and_the_first_is_always_there(k, starts, monkeypatch):
    rows, truth = embedding(k, n=5 * k, noise=0.02)
    made = []

    def noted(embedding, weights, n_clusters, init, random, n_init=1):
        made.extend([init if isinstance(init, str) else "first"] * n_init)
        return lloyd(embedding, weights, n_clusters, init, random, n_init)

    monkeypatch.setattr(rounding, "lloyd", noted)
    assert adjusted_rand_score(truth, labels_of("kmeans", rows, k, n_init="auto")) == 1
    assert made == ["first"] + ["k-means++"] * (starts - 1)


def test_more_clusters_than_columns_and_the_reverse():
    rows, truth = embedding(3)
    wide = np.column_stack([rows, np.zeros((len(rows), 2))])
    for name in ASSIGNERS:
        assert adjusted_rand_score(truth, labels_of(name, wide, 3)) == 1
    line = np.array([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]])
    assert len(spread_out_rows(line, 3)) == 3
    assert adjusted_rand_score([0, 0, 1, 1, 2, 2], labels_of("kmeans", line, 3)) == 1


@pytest.mark.parametrize("name", ["cluster_qr", "discretize"])
def test_rows_of_zeros_are_no_trouble(name):
    rows, _ = embedding(3)
    rows[:5] = 0
    assert set(labels_of(name, rows, 3, n_init=1)[5:]) == {0, 1, 2}


def test_rows_of_length_one_start_at_the_first_whatever_the_rounding():
    """Their lengths differ by rounding alone, and another start may end in other clusters if there are none."""
    rows = np.random.RandomState(0).normal(size=(500, 4))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    rows.setflags(write=False)
    start = spread_out_rows(rows, 4)
    assert start[0] == 0
    for seed in range(5):
        moved = rows * (1 + 1e-15 * np.random.RandomState(seed).normal(size=rows.shape))
        np.testing.assert_array_equal(spread_out_rows(moved, 4), start)
    longer = rows.copy()
    longer[7] *= 1.001
    assert spread_out_rows(longer, 4)[0] == 7


@pytest.mark.parametrize("shrinking", [0.0, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("count", [1, 6, 9])
def test_rows_that_span_best_are_those_of_the_naive_loop(shrinking, unit, count):
    rows = np.random.default_rng(0).normal(size=(60, 6)) * np.logspace(0, -shrinking, 6)
    rows[20:40] = rows[:20] * (1 + 1e-5)
    if unit:
        rows /= np.linalg.norm(rows, axis=1)[:, None]
    np.testing.assert_array_equal(spread_out_rows(rows, count), oracles.spread_out_rows(rows, count))


@pytest.mark.parametrize("columns", [1, 3])
def test_distinct_rows_are_counted_up_to_their_rounding(columns):
    rows = np.random.default_rng(0).normal(size=(5, columns))
    many = rows[np.arange(200) % 5] * (1 + 1e-12 * np.random.default_rng(1).normal(size=(200, columns)))
    np.testing.assert_allclose(few_distinct_rows(many, 5), rows, rtol=1e-9)
    assert few_distinct_rows(many, 4) is None
    # Their sums are equal, but the rows are not.
    turned = np.array([np.roll([1.0, 2.0, 5.0], shift) for shift in range(3)])
    assert few_distinct_rows(turned, 2) is None
    np.testing.assert_array_equal(few_distinct_rows(turned, 3), turned)


@pytest.mark.parametrize("n_init", [1, 10])
def test_a_row_is_not_split_by_its_rounding(n_init):
    rows = np.repeat([[0.6, 0.8], [1.0, 0.0]], [100, 50], axis=0)
    rows *= 1 + 1e-15 * np.random.RandomState(0).normal(size=rows.shape)
    found = ASSIGNERS["kmeans"].assign(rows, np.ones(150), 3, n_init=n_init, random_state=0)
    assert np.bincount(found.labels).tolist() in ([100, 50], [50, 100])


def test_two_components_in_two_columns_are_two_clusters():
    X = make_blobs(150, centers=3, cluster_std=2.0, random_state=1)[0]
    with pytest.warns(FewerClustersWarning, match="2 clusters returned, 3 asked for"):
        model = BicliqueSpectralClustering(3, n_components=2).fit(X)
    assert sorted(np.bincount(model.labels_)) == [50, 100]
