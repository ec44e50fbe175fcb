"""Clusters of the embedding are chosen by the links that they share: the formulas, and what is taken when."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import biclique
from biclique import BicliqueSpectralClustering
from biclique.spectral.rounding import Assignment, Linked, NearestCentre, Rounding, kmeans, mixture
from tests import oracles


def overlapping(sizes, columns, distance, seed):
    """Round clusters, each so many deviations from every other."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    centres = distance / np.sqrt(2) * np.eye(columns)[: len(sizes)]
    return np.random.default_rng(seed).normal(size=(len(y), columns)) + centres[y], y


def rows_of(r, random):
    """An embedding whose coordinates v/√S are r: rows of any positive first entry."""
    first = random.uniform(0.5, 1.5, len(r))
    return np.column_stack([first, first[:, None] * r])


def test_shared_links_and_their_errors_by_the_definition():
    random = np.random.default_rng(0)
    for _ in range(10):
        A = np.triu(random.random((25, 25)) < 0.3, 1).astype(float)
        A += A.T
        labels = random.integers(3, size=40)
        places = np.sort(random.choice(40, 25, replace=False))
        share, errors = Linked(places, sparse.csr_array(A)).shared(labels, 3)
        assert share == pytest.approx(oracles.links_leaving(A, labels[places]))
        np.testing.assert_allclose(errors, oracles.links_errors(A, labels[places]), atol=1e-14)
        assert errors.sum() == pytest.approx(0, abs=1e-12)


def test_clusters_without_links_count_as_one():
    A = np.zeros((5, 5))
    A[0, 1] = A[1, 0] = A[2, 3] = A[3, 2] = 1
    assert Linked(np.arange(5), sparse.csr_array(A)).shared(np.array([0, 0, 1, 1, 2]), 4)[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize("sizes", [(300, 60), (200, 150, 50)])
def test_the_mixture_is_that_of_one_covariance(sizes):
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(len(sizes)), sizes)
    r = random.normal(size=(len(y), len(sizes) - 1)) * 0.4 + 2 * np.eye(len(sizes))[y][:, 1:]
    rows = rows_of(r, random)
    found = mixture(rows, np.ones(len(y)), len(sizes), 10)[0]
    peer = GaussianMixture(len(sizes), covariance_type="tied", random_state=0).fit(r)
    assert adjusted_rand_score(found.labels, peer.predict(r)) > 0.97
    # The label is the largest ⟨r, Σ⁻¹μ⟩ + log π − ⟨μ, Σ⁻¹μ⟩/2, whatever the first entry of a row.
    assert (found.rule.labels(rows * random.uniform(0.1, 9, (len(y), 1))) == found.labels).all()


def test_weights_of_the_mixture_are_repeated_rows():
    random = np.random.default_rng(1)
    rows = rows_of(np.append(random.normal(size=120), random.normal(size=30) * 0.7 + 3)[:, None], random)
    weights = random.integers(1, 4, 150)
    once, repeated = (
        mixture(rows, weights.astype(float), 2, 10)[0],
        mixture(np.repeat(rows, weights, axis=0), np.ones(weights.sum()), 2, 10)[0],
    )
    np.testing.assert_allclose(once.rule.rotation, repeated.rule.rotation, rtol=1e-6, atol=1e-9)


def test_rows_of_length_1_stay_unless_others_share_clearly_fewer_links():
    random = np.random.default_rng(2)
    r = np.append(random.normal(size=250), random.normal(size=50) + 4)[:, None]
    rows, weights = rows_of(r, random), np.ones(300)
    X = np.column_stack([r, random.normal(size=(300, 3))])
    linked = Linked(np.arange(300), sparse.csr_array(oracles.neighbor_links(((X[:, None] - X) ** 2).sum(axis=2))))

    def assign(own):
        return kmeans(own, weights, 2, n_init=10, random_state=0)

    def split(at):
        return Assignment((r[:, 0] > at).astype(np.intp), NearestCentre(rows[:2]))

    rounding = Rounding(rows, np.array([0.9]), weights, 2, assign, 10)
    best, reason = rounding.by_links(split(0.0), linked)
    assert "mixture" in reason or "as they are" in reason
    (before, errors), (share, others) = (linked.shared(one.labels, 2) for one in (split(0.0), best))
    assert before - share > 2 * np.linalg.norm(errors - others)
    same, reason = rounding.by_links(split(2.0), linked)
    assert reason == ""
    assert (same.labels == split(2.0).labels).all()


def test_where_eigenvalues_are_low_the_mixture_may_share_nearly_as_many_links():
    random = np.random.default_rng(4)
    r = np.append(random.normal(size=500), random.normal(size=100) + 2.5)[:, None]
    rows, weights = rows_of(r, random), np.ones(600)
    X = np.column_stack([r, random.normal(size=(600, 9))])
    linked = Linked(np.arange(600), sparse.csr_array(oracles.neighbor_links(((X[:, None] - X) ** 2).sum(axis=2))))
    first = Assignment((r[:, 0] > 0.6).astype(np.intp), NearestCentre(rows[:2]))

    def assign(own):
        return kmeans(own, weights, 2, n_init=10, random_state=0)

    own = mixture(rows, weights, 2, 10)[0]
    (before, errors), (share, others) = (linked.shared(one.labels, 2) for one in (first, own))
    assert abs(before - share) < 2 * np.linalg.norm(errors - others)  # links do not tell
    assert share < 1.1 * before
    for value, taken in ((0.49, own), (0.5, first)):
        found, reason = Rounding(rows, np.array([value]), weights, 2, assign, 10).by_links(first, linked)
        assert (found.labels == taken.labels).all()
        assert ("mixture" in reason) == (taken is own)


def test_the_spread_of_a_mixture_is_that_of_its_definition():
    random = np.random.default_rng(5)
    r = np.append(random.normal(size=(300, 2)), 3 * random.normal(size=(100, 2)) + 8, axis=0)
    rows, weights = rows_of(r, random), random.integers(1, 4, 400).astype(float)
    found, spread = mixture(rows, weights, 2, 10)
    scores = (rows @ found.rule.rotation) / rows[:, :1]
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = weights[:, None] * p / p.sum(axis=1, keepdims=True)
    centres = [p[:, j] @ r / p[:, j].sum() for j in range(2)]
    each = [(p[:, j, None] * (r - centres[j])).T @ (r - centres[j]) for j in range(2)]
    inverse = np.linalg.inv(sum(each) / weights.sum())
    variances = [np.trace(inverse @ each[j]) / p[:, j].sum() for j in range(2)]
    assert spread == pytest.approx(max(variances) / min(variances), rel=0.02)
    assert spread > 4


@pytest.mark.parametrize(("loose", "seed"), [(6, 0), (6, 1), (3, 2), (4, 2)])
def test_a_mixture_of_unlike_distributions_is_not_favoured(loose, seed):
    y = np.repeat([0, 1], [500, 100])
    X = np.random.default_rng(seed).normal(size=(600, 30)) * np.where(y, loose, 1)[:, None]
    X[:, 0] += 1.7 * (1 + loose) * y
    X[:, 1] -= 1.7 * (1 + loose) * y
    model = BicliqueSpectralClustering(2, random_state=0).fit(X)
    assert "mixture" not in str(model.plan_)
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_a_mixture_of_few_rows_is_not_favoured():
    scores = []
    for seed in range(20):
        y = np.repeat([0, 1, 2], 6)
        X = np.random.default_rng(seed).normal(size=(18, 4)) + 4.5 / np.sqrt(2) * np.eye(4)[y]
        scores.append(adjusted_rand_score(y, BicliqueSpectralClustering(3, random_state=0).fit(X).labels_))
    assert np.mean(scores) > 0.9


def test_small_clusters_that_overlap_in_many_columns():
    """Two deviations apart: no density has two modes, but the border of the mixture is the right one."""
    found = []
    for seed in range(4):
        random = np.random.RandomState(seed)
        y = random.rand(1000) < 5 / 6
        X = random.standard_normal((1000, 10))
        X[:, 0] += 2 * y
        best = X[:, 0] > 1 - np.log(5) / 2
        labels = [
            BicliqueSpectralClustering(2, row_normalize=scaled, random_state=0).fit(X).labels_
            for scaled in ("auto", True)
        ]
        found.append([adjusted_rand_score(best, own) for own in labels])
    auto, unit = np.mean(found, axis=0)
    assert auto > 0.5 > 0.2 > unit


@pytest.mark.parametrize(("sizes", "columns", "distance"), [((833, 167), 10, 3.0), ((563, 550, 86), 10, 4.0)])
@pytest.mark.parametrize("gram", ["dense", "tiled", "nystroem"])
def test_unequal_round_clusters_that_overlap(sizes, columns, distance, gram, tmp_path):
    """Rows of length 1 move the border into the large cluster."""
    for seed in range(2):
        X, y = overlapping(sizes, columns, distance, seed)
        model = BicliqueSpectralClustering(len(sizes), gram=gram, random_state=0).fit(X)
        unit = clone(model).set_params(row_normalize=True, gamma=model.gamma_).fit(X)
        assert adjusted_rand_score(y, model.labels_) > 0.1 + adjusted_rand_score(y, unit.labels_)
        assert "labels come from" in str(model.plan_)
        assert (model.predict(X) == model.labels_).all()
        assert (model.predict_proba(X).argmax(axis=1) == model.labels_).all()
    biclique.save(model, tmp_path / "saved.biclique")
    fresh = overlapping(sizes, columns, distance, 9)[0]
    assert (biclique.load(tmp_path / "saved.biclique").predict(fresh) == model.predict(fresh)).all()


def test_the_same_gamma_and_order_give_the_same_labels_from_a_sample_too():
    X, _ = overlapping((1500, 300), 10, 3.0, 0)
    auto = BicliqueSpectralClustering(2, random_state=3).fit(X)
    given = BicliqueSpectralClustering(2, gamma=auto.gamma_, order=auto.order_, random_state=3).fit(X)
    assert auto.rows_left_out_ is None or not len(auto.rows_left_out_)
    assert (auto.labels_ == given.labels_).all()


def test_clear_clusters_need_no_links():
    X, y = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    model = BicliqueSpectralClustering(3, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert "labels come from" not in str(model.plan_)
