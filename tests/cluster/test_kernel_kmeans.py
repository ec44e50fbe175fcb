from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

from biclique import BicliqueKernelKMeans, BicliqueSpectralClustering
from biclique.exceptions import DataError, FewerClustersWarning, RankWarning, SolverWarning
from biclique.multiway import k_way_normalized_cut, symmetric_gram, weighted_kernel_kmeans_objective
from tests import oracles
from tests.oracles import algorithm_1, projector

RBF = {"affinity": "rbf", "random_state": 0}
ASSIGN = ("kmeans", "kernel_kmeans")


def check_never_rising(model):
    """The history of the objective, whose last value is that of the labels."""
    assert np.isfinite(model.cut_history_).all()
    assert (np.diff(model.cut_history_) <= 0).all()
    assert model.cut_ == model.cut_history_[-1]


@pytest.mark.parametrize("init", ["spectral", "random", "k-means++"])
@pytest.mark.parametrize("gram", ["dense", "tiled"])
def test_the_cut_is_reported_and_never_rises(init, gram, iris):
    X, _ = iris
    ask = {**RBF, "order": 4, "gamma": 1.0, "gram": gram, "precision": "float64"}
    model = BicliqueKernelKMeans(3, init=init, **ask).fit(X)
    check_never_rising(model)
    assert model.cut_ == pytest.approx(k_way_normalized_cut(rbf_kernel(X, gamma=1.0), model.labels_, 4))
    assert model.shift_ == 0
    assert np.array_equal(model.predict(X), model.labels_)


ONE_VALUE_TWICE = np.kron(np.eye(2), np.ones((10, 10))) + 0.1
"""A matrix for which k-means finds fewer groups than five."""


@pytest.mark.once
@pytest.mark.filterwarnings("ignore::biclique.exceptions.BicliqueWarning")
@pytest.mark.parametrize(
    "K", [rbf_kernel(scale(load_breast_cancer().data), gamma=0.03), ONE_VALUE_TWICE], ids=["table", "two groups"]
)
@pytest.mark.parametrize("order", [2, 4, 20, 1e4])
def test_in_the_spectral_clusterer_it_never_ends_above_kmeans(order, K):
    for seed in range(3):
        ask = {"affinity": "precomputed", "order": order, "random_state": seed, "n_init": 1}
        plain, lowered = (BicliqueSpectralClustering(4, assign_labels=a, **ask).fit(K) for a in ASSIGN)
        before, after = (k_way_normalized_cut(K, m.labels_, order) for m in (plain, lowered))
        assert lowered.cut_history_[0] == pytest.approx(before)
        assert lowered.cut_history_[-1] == pytest.approx(after)
        assert after <= before + 1e-12
        assert np.array_equal(lowered.predict(K), lowered.labels_)


@pytest.mark.parametrize("affinity", ["neighborhoods", "rbf"])
def test_new_rows_go_to_the_nearest_mean(affinity, many_blobs):
    X, y = many_blobs
    model = BicliqueKernelKMeans(5, affinity=affinity, random_state=0).fit(X[:2000])
    assert adjusted_rand_score(model.predict(X[2000:]), y[2000:]) > 0.8
    ask = {"affinity": affinity, "assign_labels": "kernel_kmeans", "row_normalize": True, "random_state": 0}
    spectral = BicliqueSpectralClustering(5, **ask).fit(X[:2000])
    assert np.array_equal(spectral.predict(X[2000:]), model.predict(X[2000:]))


def test_float32_tiles_and_given_matrices(many_blobs):
    X, _ = many_blobs
    dense = BicliqueKernelKMeans(5, gamma=0.05, order=2, **RBF).fit(X)
    tiled = BicliqueKernelKMeans(5, gamma=0.05, gram="tiled", order=2, **RBF).fit(X)
    given = BicliqueKernelKMeans(5, affinity="precomputed", order=2, random_state=0).fit(rbf_kernel(X, gamma=0.05))
    for other in (tiled, given):
        assert adjusted_rand_score(dense.labels_, other.labels_) > 0.99
        assert other.cut_ == pytest.approx(dense.cut_, rel=1e-4)
    assert np.array_equal(given.predict(rbf_kernel(X, gamma=0.05)), given.labels_)


def test_weights_of_the_paper_and_of_the_user(iris):
    X, _ = iris
    K = rbf_kernel(X, gamma=1.0)
    degrees = K.sum(axis=1)
    S = 0.5 * degrees + 0.5 * degrees.mean()
    paper = BicliqueKernelKMeans(3, order=4, gamma=1.0, weights="paper", **RBF).fit(X)
    assert paper.cut_ == pytest.approx((2 / 4) ** 2 * weighted_kernel_kmeans_objective(K, paper.labels_, 1 / S))
    own = np.arange(1.0, 151.0)
    user = BicliqueKernelKMeans(3, gamma=1.0, weights=own, **RBF).fit(X)
    assert user.cut_ == pytest.approx(weighted_kernel_kmeans_objective(K, user.labels_, own))
    check_never_rising(BicliqueKernelKMeans(3, gamma=1.0, weights=own, order=50, init="random", **RBF).fit(X))


@pytest.mark.parametrize("m", [2, 4, 6])
def test_with_the_papers_weights_the_objective_is_j_prime(m):
    # J' from its definition: K^(m) is the contraction of the whole Gram tensor, W the inverse of its row sums.
    n = 6
    X = np.random.default_rng(m).normal(size=(n, 2))
    Km = oracles.contracted(oracles.gram_tensor(rbf_kernel(X, gamma=0.7), m))
    w = 1 / Km.sum(axis=1)
    model = BicliqueKernelKMeans(2, gamma=0.7, order=m, weights="paper", init="random", **RBF).fit(X)
    check_never_rising(model)
    expected = sum(w[i] * Km[i, i] for i in range(n))
    for j in range(2):
        inside = np.flatnonzero(model.labels_ == j)
        expected -= sum(w[i] * w[b] * Km[i, b] for i in inside for b in inside) / w[inside].sum()
    assert model.cut_ == pytest.approx(expected, rel=1e-12)
    # Repeated rows are rows: the same number comes from weights.
    assert model.fit(X, sample_weight=np.full(n, 2.0)).cut_ == pytest.approx(expected, rel=1e-12)


def test_with_the_papers_weights_order_infinity_reports_the_scaled_limit(iris):
    X, _ = iris
    limit = BicliqueKernelKMeans(3, gamma=1.0, order=np.inf, weights="paper", **RBF).fit(X)
    huge = BicliqueKernelKMeans(3, gamma=1.0, order=1e6, weights="paper", **RBF).fit(X)
    assert limit.cut_ > 0
    assert (1e6 / 2) ** 2 * huge.cut_ == pytest.approx(limit.cut_, rel=1e-4)


@pytest.mark.once
def test_the_papers_weights_have_other_minimisers():
    different = 0
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(6, 2))
        K = rbf_kernel(X, gamma=1.0)
        degrees = K.sum(axis=1)
        S = 0.5 * degrees + 0.5 * degrees.mean()
        partitions = [np.array(p) for p in product([0, 1], repeat=6) if 0 < sum(p) < 6 and p[0] == 0]
        by_cut = min(partitions, key=lambda p: k_way_normalized_cut(K, p, 4))
        by_paper = min(partitions, key=lambda p: weighted_kernel_kmeans_objective(K, p, 1 / S))
        different += not np.array_equal(by_cut, by_paper)
    assert 0 < different < 5


def test_bad_arguments_and_warnings(iris):
    X, _ = iris
    with pytest.raises(DataError, match=r"weights must have one number per row, shape \(150,\)"):
        BicliqueKernelKMeans(3, weights=np.ones(3)).fit(X)
    with pytest.warns(SolverWarning, match="rows still moved after 1 steps"):
        BicliqueKernelKMeans(5, init="random", max_iter=1, random_state=0).fit(X)
    with pytest.warns(FewerClustersWarning, match="2 clusters returned, 3 asked for: X has only 2 distinct rows"):
        model = BicliqueKernelKMeans(3).fit(np.repeat([[0.0], [1.0]], 5, axis=0))
    assert len(set(model.labels_)) == 2


# Symmetric modelling


@pytest.mark.parametrize("order", [2, 3, 4, 7, 20])
@pytest.mark.parametrize("gram", ["dense", "tiled"])
def test_symmetric_orders_end_to_end(order, gram, blobs):
    X, y = blobs
    ask = {**RBF, "modelling": "symmetric", "gamma": 0.02, "precision": "float64"}
    model = BicliqueSpectralClustering(4, order=order, gram=gram, **ask).fit(X)
    values, vectors = algorithm_1(symmetric_gram(rbf_kernel(X, gamma=0.02), order), 2)
    np.testing.assert_allclose(model.eigenvalues_, values[1:4], rtol=1e-6, atol=1e-12)
    assert np.linalg.norm(projector(model.embedding_) - projector(vectors[:, :4]), 2) < 1e-5
    assert adjusted_rand_score(model.labels_, y) == 1
    assert model.order_ == order
    assert np.array_equal(model.predict(X), model.labels_)
    closed = model._fitted.points.extension.embed(model._fitted.points.cross(X, None))
    np.testing.assert_allclose(closed, model.embedding_, atol=1e-8)
    assert adjusted_rand_score(model.predict(X + 0.01), y) == 1


def test_an_indefinite_contraction_has_a_warning():
    K = np.full((20, 20), 2.0) - np.diag(np.linspace(0.5, 1.5, 20))  # one positive eigenvalue, nineteen negative
    for parameters in ({"modelling": "symmetric", "order": 3}, {"order": 4}):
        model = BicliqueSpectralClustering(3, affinity="precomputed", random_state=0, **parameters)
        with pytest.warns(RankWarning, match=r"2 of 2 eigenvalues are negative \(lowest -.*indefinite"):
            model.fit(K)
        assert len(set(model.labels_)) == 3


def test_symmetric_modelling_of_given_matrices_has_no_new_diagonal(iris):
    K = rbf_kernel(iris[0])
    model = BicliqueSpectralClustering(3, modelling="symmetric", order=3, affinity="precomputed", random_state=0).fit(K)
    assert len(model.labels_) == 150
    with pytest.raises(DataError, match=r"κ\(y, y\) of new rows is not known"):
        model.predict(K[:5])
    with pytest.raises(DataError, match="cannot label rows of weight 0"):
        model.fit(K, sample_weight=(np.arange(150) != 3).astype(float))


def test_rows_of_no_weight_have_a_place_but_no_say():
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[:20] += 8
    weights = np.ones(60)
    weights[:20] = 0
    model = BicliqueKernelKMeans(3, weights=weights, gamma=0.3, **RBF).fit(X)
    check_never_rising(model)
    assert (model.predict(X + 1e-9) == model.labels_).mean() > 0.9


@pytest.mark.parametrize("sd", [1e-2, 3e-3, 1e-3])
def test_a_nearly_constant_kernel_is_not_taken_for_indefinite(sd):
    X = np.random.default_rng(0).normal(size=(400, 4)) * sd
    parameters = {**RBF, "gamma": 0.01, "init": "random", "max_iter": 300}
    dense = BicliqueKernelKMeans(4, **parameters).fit(X)
    tiled = BicliqueKernelKMeans(4, gram="tiled", **parameters).fit(X)
    assert tiled.precision_ == "float64"
    assert dense.shift_ == tiled.shift_ == 0
    assert 3 - tiled.cut_ == pytest.approx(3 - dense.cut_, rel=0.05)


def test_a_second_fit_forgets_the_first(iris):
    X, _ = iris
    model = BicliqueSpectralClustering(3, assign_labels="kernel_kmeans", random_state=0).fit(X)
    assert model.cut_history_.size
    assert not hasattr(model.set_params(assign_labels="kmeans").fit(X), "cut_history_")
    few = BicliqueSpectralClustering(3, assign_labels="kernel_kmeans").fit(np.repeat([[0.0], [1.0], [5.0]], 2, axis=0))
    assert few.cut_history_.shape == (1,)


def test_a_row_of_weight_zero_like_one_that_counts_shares_its_label():
    rng = np.random.default_rng(115)
    X = np.round(rng.random((30, 1)) * 3, 1) + 0.1
    weights = rng.integers(0, 3, 30)
    for model, options in product((BicliqueKernelKMeans, BicliqueSpectralClustering), ({}, {**RBF, "gamma": 0.5})):
        model = model(4, **options).fit(X, sample_weight=weights)
        assert np.array_equal(model.predict(X), model.labels_)
