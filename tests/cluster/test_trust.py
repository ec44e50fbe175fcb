"""How sure: probabilities, stability, typical rows, profiles."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons

from biclique import BicliqueSpectralClustering
from biclique.cluster import trust
from biclique.exceptions import DataError, ParameterError
from biclique.spectral.membership import Seen, even_steps
from tests.calls import refuses
from tests.oracles import calibration_error, share_difference, standardised_difference


def two_gaussians(n, gap, d=2, seed=0):
    """Rows, and the posterior of the second of two unit Gaussians."""
    random = np.random.RandomState(seed)
    truth = random.randint(2, size=n)
    X = random.standard_normal((n, d))
    X[:, 0] += gap * truth
    return X, 1 / (1 + np.exp(-gap * (X[:, 0] - gap / 2))), truth


RBF = {"affinity": "rbf"}
WAYS = {
    "neighborhoods": {},
    "few landmarks": {"rank": 60},
    "exact": RBF,
    "tiled": {**RBF, "gram": "tiled"},
    "order": {**RBF, "order": 4},
    "landmarks": {**RBF, "gram": "nystroem", "rank": 60},
    "graph": {"affinity": "nearest_neighbors"},
    "qr": {"assign_labels": "cluster_qr"},
    "kernel k-means": {"assign_labels": "kernel_kmeans"},
    "few columns": {**RBF, "n_components": 2},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
def test_probabilities_sum_to_one_and_agree_with_predict(way):
    X, _ = make_blobs(150, centers=3, cluster_std=2.0, random_state=1)
    new = np.concatenate([make_blobs(80, centers=3, cluster_std=3.0, random_state=2)[0], [[1e3, 1e3]]])
    model = BicliqueSpectralClustering(3, random_state=0, **WAYS[way]).fit(X)
    for rows, labels in ((X, model.labels_), (new, model.predict(new))):
        p = model.predict_proba(rows)
        assert p.shape == (len(rows), 3)
        assert np.isfinite(p).all()
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
        np.testing.assert_array_equal(p.argmax(axis=1), labels)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("affinity", ["neighborhoods", "rbf"])
@pytest.mark.parametrize("gap", [3, 4])
def test_probabilities_are_near_the_posterior_of_gaussians(gap, affinity):
    X, _, _ = two_gaussians(1000, gap)
    new, posterior, truth = two_gaussians(2000, gap, seed=1)
    model = BicliqueSpectralClustering(2, affinity=affinity, random_state=0).fit(X)
    p = model.predict_proba(new)[:, model.predict([[gap, 0.0]])[0]]
    assert np.abs(p - posterior).mean() < 0.05
    assert calibration_error(p, truth) < 0.05
    hard = (p > 0.5).astype(float)
    assert np.abs(p - posterior).mean() < 0.8 * np.abs(hard - posterior).mean()


def test_at_order_two_nearly_all_rows_are_placed_so_clusters_that_overlap_a_lot_are_separated():
    errors = []
    for seed in range(10):
        X, _, _ = two_gaussians(1000, 2, seed=seed)
        new, posterior, _ = two_gaussians(1000, 2, seed=seed + 100)
        rows, fresh = (np.column_stack([np.ones(1000), x[:, 0]]) for x in (X, new))
        known, labels = (rows[:, 1] > 1).astype(int), (fresh[:, 1] > 1).astype(int)
        seen = [Seen.of(rows, known, np.ones(1000), np.array([0.1]), order) for order in (2.0, 4.0)]
        errors.append([np.abs(of_order.probabilities(fresh, labels)[:, 1] - posterior).mean() for of_order in seen])
    at_two, above = np.mean(errors, axis=0)
    assert at_two < 0.05
    assert at_two < 0.8 * above


def noisy_moons(n, noise, seed):
    """Rows, and the posterior of the second moon."""
    random = np.random.RandomState(seed)
    arc = np.linspace(0, np.pi, 400)
    curves = np.array([[np.cos(arc), np.sin(arc)], [1 - np.cos(arc), 0.5 - np.sin(arc)]]).transpose(0, 2, 1)
    rows = curves[random.randint(2, size=n), random.randint(400, size=n)] + noise * random.standard_normal((n, 2))
    a, b = (np.exp(-((rows[:, None] - c) ** 2).sum(axis=2) / (2 * noise**2)).sum(axis=1) for c in curves)
    return rows, b / (a + b)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("affinity", "noise"), [("neighborhoods", 0.1), ("rbf", 0.1), ("rbf", 0.15)])
def test_probabilities_of_curved_clusters_are_about_as_good_as_their_labels(noise, affinity):
    X, _ = noisy_moons(1000, noise, 0)
    new, posterior = noisy_moons(1000, noise, 1)
    model = BicliqueSpectralClustering(2, affinity=affinity, random_state=0).fit(X)
    p = model.predict_proba(new)[:, model.predict([[1.0, -0.5]])[0]]
    hard = (p > 0.5).astype(float)
    assert np.abs(p - posterior).mean() < 0.02 + np.abs(hard - posterior).mean()
    assert ((p - posterior) ** 2).mean() < 0.001 + ((hard - posterior) ** 2).mean()


def test_clusters_far_apart_are_sure():
    X = make_moons(300, noise=0.03, random_state=0)[0]
    p = BicliqueSpectralClustering(2, affinity="nearest_neighbors", random_state=0).fit(X).predict_proba(X)
    assert np.median(p.max(axis=1)) > 0.99


def test_even_steps_do_not_stretch_if_the_walk_jumps_anywhere_and_open_what_saturates_if_it_crawls():
    x = np.sort(np.random.RandomState(0).standard_normal(4000))
    knots, places = even_steps(x, np.ones(4000), 1.0)
    inner = np.abs(knots) < 1.5
    assert np.corrcoef(knots[inner], places[inner])[0, 1] > 0.999
    # For a Gaussian and small steps the eigenfunction is x itself, if ρ is the density: M = ρ, and u = x.
    knots, places = even_steps(x, np.ones(4000), 1e-4)
    slope = np.polyfit(knots[inner], places[inner], 1)[0]
    assert slope == pytest.approx(1, abs=0.05)


def test_a_cluster_of_one_row_or_of_equal_rows_has_probabilities():
    rows = np.array([[1.0, 0.0]] * 10 + [[1.0, 3.0]])
    labels = np.array([0] * 10 + [1])
    p = Seen.of(rows, labels, np.ones(11), np.array([0.9]), 2.0).probabilities(rows, labels)
    np.testing.assert_array_equal(p.argmax(axis=1), labels)
    assert p.max(axis=1).min() > 0.9
    alone = Seen.of(rows, labels * 0, np.ones(11), np.array([0.9]), 2.0).probabilities(rows, labels * 0)
    np.testing.assert_array_equal(alone, np.ones((11, 1)))


@pytest.fixture(scope="module")
def blobs():
    X, _ = make_blobs(120, centers=4, cluster_std=2.0, random_state=0)
    return X, BicliqueSpectralClustering(4, random_state=0).fit(X)


def test_membership_is_the_sparse_form_and_takes_sparse_rows(blobs):
    X, model = blobs
    p, found = model.predict_proba(X), model.membership(X, top=2)
    assert sparse.issparse(found)
    assert found.format == "csr"
    assert found.nnz == 240
    for row, full in zip(found.toarray(), p, strict=True):
        np.testing.assert_array_equal(np.sort(row)[:2], 0)
        np.testing.assert_array_equal(np.sort(row)[2:], np.sort(full)[2:])
    np.testing.assert_array_equal(model.membership(X, top=9).toarray(), p)
    refuses(ParameterError, "top must be", model.membership, X, top=0)
    rows = sparse.csr_array(X)
    model = BicliqueSpectralClustering(4, random_state=0).fit(rows)
    refuses(DataError, r"sparse rows, got a csr_array: use membership\(X, top=4\)", model.predict_proba, rows)
    p = model.membership(rows, top=4).toarray()
    np.testing.assert_array_equal(p, model.predict_proba(X))
    np.testing.assert_array_equal(p.argmax(axis=1), model.predict(rows, reject_below=0))


def test_predict_rejects_what_is_not_sure(blobs):
    X, model = blobs
    p = model.predict_proba(X)
    level = float(np.median(p.max(axis=1)))
    expected = np.where(p.max(axis=1) < level, -1, model.labels_)
    np.testing.assert_array_equal(model.predict(X, reject_below=level), expected)
    np.testing.assert_array_equal(model.predict(X, reject_below=0), model.labels_)
    refuses(ParameterError, "reject_below", model.predict, X, reject_below=1.5)


@pytest.mark.parametrize("n_clusters", [3, "select"])
def test_clusters_that_are_there_are_stable(n_clusters):
    X = make_blobs(90, centers=[[0, 0], [20, 0], [0, 20]], random_state=0)[0]
    good = BicliqueSpectralClustering(n_clusters, random_state=0).fit(X).cluster_stability(X, n_splits=3)
    assert good.shape == (3,)
    assert (good > 0.95).all()


def test_clusters_of_noise_are_not_stable():
    noise = np.random.RandomState(0).standard_normal((80, 6))
    model = BicliqueSpectralClustering(4, random_state=0, order=4).fit(noise)
    bad = model.cluster_stability(noise, n_splits=3)
    assert bad.mean() < 0.8
    np.testing.assert_array_equal(bad, model.cluster_stability(noise, n_splits=3))
    refuses(DataError, "half of X", model.cluster_stability, noise[:6])


def test_representatives_are_nearest_to_the_mean_and_distinct(blobs):
    X, model = blobs
    rows = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    found = model.representatives(X, per_cluster=3)
    assert len(found) == 4
    for cluster, numbers in enumerate(found):
        own = np.flatnonzero(model.labels_ == cluster)
        gaps = np.linalg.norm(rows[own] - rows[own].mean(axis=0), axis=1)
        chosen = gaps[np.searchsorted(own, np.sort(numbers))]
        np.testing.assert_allclose(np.sort(chosen), np.sort(gaps)[:3], atol=1e-9)  # whole components tie
    twice = model.representatives(np.concatenate([X, X]), per_cluster=3)
    assert all((numbers < len(X)).all() for numbers in twice)


def test_the_profile_is_its_definition():
    pandas = pytest.importorskip("pandas")
    X, _ = make_blobs(60, centers=3, random_state=0)
    model = BicliqueSpectralClustering(3, random_state=0).fit(pandas.DataFrame(X, columns=["a", "b"]))
    kind = np.where(X[:, 0] > 0, "up", "down")
    table = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": kind, "code": (X[:, 1] > 2).astype(int)})
    table["kind"] = table["kind"].astype("category")
    found = model.profile(table, categories=["code"])
    assert list(found.columns) == ["a", "b", "kind=down", "kind=up", "code=0", "code=1"]
    np.testing.assert_allclose(found["a"], standardised_difference(X[:, 0], model.labels_, 3))
    np.testing.assert_allclose(found["kind=up"], share_difference(kind == "up", model.labels_, 3))
    np.testing.assert_array_equal(model.profile(table[["a", "b"]]), found[["a", "b"]])
    assert "p-values" in model.profile.__doc__


def test_the_profile_needs_no_pandas(blobs, monkeypatch):
    X, model = blobs
    monkeypatch.setattr(trust, "find_spec", lambda name: None)
    found = model.profile(X)
    assert list(found) == ["x0", "x1"]
    np.testing.assert_allclose(found["x0"], standardised_difference(X[:, 0], model.labels_, 4))
    refuses(ParameterError, "which is not a column", model.profile, X, categories=["colour"])
    refuses(DataError, "columns of fit", model.profile, X[:5, :1])


def test_how_sure_is_the_mean_probability_of_the_rows_of_a_cluster(blobs):
    X = blobs[0]
    model = BicliqueSpectralClustering(4, random_state=0).fit(X)
    assert "odds" not in vars(model._fitted.seen)  # a fit does not fit probabilities
    own = model.predict_proba(X).max(axis=1)
    expected = [own[model.labels_ == cluster].mean() for cluster in range(4)]
    assert np.allclose(model.how_sure(), expected, atol=1e-9)
