"""γ="auto" is raised where clusters would cut across the parts that nearest neighbours form."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.exceptions import DisconnectedWarning
from biclique.fit import fine_gamma
from biclique.fit.fine_gamma import cut_across
from biclique.kernels import make_kernel, neighbor_parts
from biclique.selection import order_path
from biclique.spectral import OrderRule
from tests import oracles


def rings(n, seed=0):
    return make_circles(n, factor=0.5, noise=0.05, random_state=seed)


def as_sets(parts):
    return sorted(sorted(np.flatnonzero(parts == part).tolist()) for part in np.unique(parts))


@pytest.mark.parametrize("affinity", ["rbf", "laplacian"])
def test_parts_of_neighbors(affinity):
    X = np.concatenate([make_blobs(60, random_state=3)[0], [[40.0, 0.0], [41.0, 0.0]]])
    q = ((X[:, None] - X) ** 2).sum(axis=2) if affinity == "rbf" else np.abs(X[:, None] - X).sum(axis=2)
    expected = sorted(sorted(part) for part in oracles.neighbor_parts(q))
    found = as_sets(neighbor_parts(make_kernel(affinity, gamma=1.0), X))
    assert found == expected
    assert len(found) > 1
    assert as_sets(neighbor_parts(make_kernel(affinity, gamma=1.0), X[:3])) == [[0, 1, 2]]


def test_kernels_without_a_distance_have_one_part():
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert neighbor_parts(make_kernel("polynomial", gamma=1.0), X).tolist() == [0] * 30


def test_what_cuts_across():
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        parts, labels = random.integers(3, size=40), random.choice(2, p=[0.85, 0.15], size=40)
        rule = OrderRule.of(np.ones(40), 2, (2.0,))
        expected = oracles.splits_a_part(labels, [np.flatnonzero(parts == p) for p in range(3)], 2)
        assert cut_across(labels, parts, np.ones(40), rule) == expected
        seen.add(expected)
    assert seen == {False, True}


@pytest.mark.parametrize("n", [200, 500])
@pytest.mark.parametrize("gram", ["auto", "nystroem"])
def test_rings_are_told_apart(n, gram):
    X, y = rings(n)
    model = BicliqueSpectralClustering(2, gram=gram, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert (model.predict(X) == model.labels_).all()
    assert "clusters cut across" in model.plan_.gamma_reason
    assert model.plan_.gamma_reason in str(model.plan_)
    plain = BicliqueSpectralClustering(2, gamma="auto", random_state=0, order=2).plan(X)
    assert plain.gamma == model.gamma_
    # A number is taken as it is.
    low = float(model.plan_.gamma_reason.split()[2].rstrip(","))
    model = BicliqueSpectralClustering(2, gram=gram, gamma=low, random_state=0).fit(X)
    assert model.gamma_ == low
    assert adjusted_rand_score(y, model.labels_) < 0.8


def test_one_path_of_orders_has_the_same_gamma():
    X, y = rings(500)
    path = order_path(X, [2, 4], n_clusters=2, random_state=0)
    assert adjusted_rand_score(y, path.labels[0]) == 1


def test_weights_are_repeated_rows():
    X, y = rings(300)
    weights = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
    model = BicliqueSpectralClustering(2, random_state=0).fit(X, sample_weight=weights)
    repeated = BicliqueSpectralClustering(2, random_state=0).fit(np.repeat(X, weights.astype(int), axis=0))
    assert model.gamma_ == pytest.approx(repeated.gamma_)
    assert adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.parametrize("k", [2, 3, 4])
def test_other_data_keep_their_gamma(k):
    blobs = make_blobs(300, centers=[[0, 0], [7, 0], [0, 7]], random_state=0)[0]
    for X in (load_iris().data, blobs):
        assert not BicliqueSpectralClustering(k, random_state=0).fit(X).plan_.gamma_reason


def test_if_no_gamma_does_it_is_said(monkeypatch):
    monkeypatch.setattr(fine_gamma, "FACTORS", (1.01,))
    X, y = rings(200)
    with pytest.warns(DisconnectedWarning, match=r"clusters cut across .* use affinity='nearest_neighbors'"):
        model = BicliqueSpectralClustering(2, random_state=0).fit(X)
    assert not model.plan_.gamma_reason
    model = BicliqueSpectralClustering(2, affinity="nearest_neighbors", random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.parametrize("asked", [{"order": 4}, {"order": np.inf}, {"modelling": "symmetric"}])
def test_where_parts_of_k_are_not_told_apart_gamma_stays(asked):
    X, _ = rings(200)
    assert not BicliqueSpectralClustering(2, random_state=0, **asked).plan(X).gamma_reason
    assert BicliqueSpectralClustering(2, random_state=0, order=2).plan(X).gamma_reason
