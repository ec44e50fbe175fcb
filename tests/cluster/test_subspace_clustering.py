"""Clustering into affine subspaces by inhomogeneous hyperedges."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from biclique.cluster.subspace_clustering import InhomogeneousSubspaceClustering
from biclique.exceptions import DataError, FewerClustersWarning, MemoryLimitError
from biclique.hypergraph import draw_together, edge_distances, fit_subspaces, linked_pairs
from tests import data, oracles
from tests.conftest import frozen


def subspaces(size=40, seed=0, **how):
    """Points near three affine subspaces, or k, and which."""
    X, y = data.subspaces(size=size, seed=seed, **how)
    return frozen(X), y


def clustering(**parameters):
    return InhomogeneousSubspaceClustering(3, subspace_dim=2, **{"random_state": 0, **parameters})


@pytest.mark.parametrize("p", [2, 3, 4])
def test_distances_by_least_squares(p):
    X, _ = subspaces(size=6)
    X = X.copy()
    X[3] = X[2]
    random = np.random.RandomState(0)
    draws = draw_together(np.zeros(len(X), dtype=int), p, 10, random)
    draws[0, :2] = 2, 3  # two equal points
    found = edge_distances(X, draws)
    for i, draw in enumerate(draws):
        for y in range(len(X)):
            if y in draw:
                continue
            edge = X[[*draw, y]]
            expected = [oracles.distance_to_span(edge[v], np.delete(edge, v, axis=0)) ** 2 for v in range(p + 1)]
            np.testing.assert_allclose(found[i, :, y], expected, atol=1e-10)


@pytest.mark.parametrize("p", [2, 4])
def test_pairs_of_drawn_and_other_points(p):
    random = np.random.RandomState(1)
    n = 9
    draws = np.array([random.choice(n, p, replace=False) for _ in range(5)])
    costs = random.random_sample((5, p + 1, n))
    s, A = p + 1, np.zeros((n, n))
    for i, draw in enumerate(draws):
        for y in set(range(n)) - set(draw.tolist()):
            w = costs[i, :, y]
            for j, v in enumerate(draw):
                A[v, y] += w[j] / (s - 2) + w[p] / (s - 1) - w.sum() / ((s - 1) * (s - 2))
    expected = np.maximum(A + A.T, 0)
    np.testing.assert_allclose(linked_pairs(costs, draws), expected, atol=1e-12)


def test_draws_stay_in_their_cluster():
    labels = np.array([0] * 50 + [1] * 30 + [2] * 2)
    draws = draw_together(labels, 4, 500, np.random.RandomState(0))
    assert all(len(set(draw)) == 4 for draw in draws.tolist())
    inside = np.array([len(np.unique(labels[draw])) == 1 for draw in draws])
    shares = [np.mean([labels[d[0]] == c for d in draws[inside]]) for c in (0, 1)]
    assert 0.55 < shares[0] < 0.7
    assert 0.3 < shares[1] < 0.45
    assert (~inside).mean() < 0.1  # the cluster of two draws from all points


def test_fitted_subspaces():
    X, y = subspaces(noise=0)
    found = fit_subspaces(X, y, 2)
    for j, subspace in enumerate(found):
        assert subspace.residual == pytest.approx(0, abs=1e-20)
        np.testing.assert_allclose(subspace.basis @ subspace.basis.T, np.eye(2), atol=1e-12)
        np.testing.assert_allclose(subspace.squared_distances(X[y == j]), 0, atol=1e-20)
    line = fit_subspaces(X[:3], np.zeros(3), 1)[0]
    assert line.residual == pytest.approx(line.squared_distances(X[:3]).sum())


@pytest.mark.parametrize(("k", "dimension"), [(2, 1), (3, 2), (2, 3)])
def test_subspaces_are_found(k, dimension):
    X, y = subspaces(k=k, dimension=dimension)
    model = InhomogeneousSubspaceClustering(k, subspace_dim=dimension, random_state=0).fit(X)
    # A line and a plane cross others: points near the crossing belong to both.
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert adjusted_rand_score(y, model.predict(X + 1e-3)) > 0.9
    assert (np.diff(model.residual_history_) <= 0).all()
    assert model.residual_ == pytest.approx(model.residual_history_[-1], rel=1e-8)
    by_truth = sum(s.residual for s in fit_subspaces(X, y, dimension))
    undivided = fit_subspaces(X, np.zeros(len(X)), dimension)[0].residual
    assert model.residual_ < by_truth + 0.01 * (undivided - by_truth)
    assert (model.predict(X) == model.labels_).all()


def test_seeded_pickled_and_in_another_unit_and_place():
    X, _ = subspaces()
    one, again, other = (clustering(n_rounds=4).fit(rows) for rows in (X, X, 1e6 * X + 1e8))
    assert (one.labels_ == again.labels_).all()
    assert (pickle.loads(pickle.dumps(one)).predict(X) == one.labels_).all()
    assert adjusted_rand_score(one.labels_, other.labels_) > 0.95
    assert other.residual_ == pytest.approx(1e12 * one.residual_, rel=1e-2)


def test_points_exactly_on_subspaces_and_repeated_points():
    X, y = subspaces(noise=0)
    X = np.concatenate([X, X[:5], X[:5]])
    y = np.concatenate([y, y[:5], y[:5]])
    model = clustering(n_rounds=5).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.residual_ < 1e-3


def test_restarts_keep_the_smallest_residual():
    X, _ = subspaces(noise=0.2, seed=4)
    one = clustering(n_rounds=1, n_draws=20).fit(X)
    more = clustering(n_rounds=1, n_draws=20, n_restarts=6).fit(X)
    assert more.residual_ < one.residual_
    assert more.residual_history_.shape == (1,)


def test_one_subspace_holds_all_points():
    X = np.outer(np.arange(20.0), [1, 2, 3]) + 7
    with pytest.warns(FewerClustersWarning, match="1 cluster returned"):
        model = InhomogeneousSubspaceClustering(2, subspace_dim=1, random_state=0).fit(X)
    assert (model.labels_ == 0).all()
    with pytest.warns(FewerClustersWarning):
        model.fit(np.ones((10, 4)))
    assert (model.predict(np.ones((10, 4))) == model.labels_).all()
    assert InhomogeneousSubspaceClustering(1, subspace_dim=2).fit(subspaces(k=1)[0]).labels_.max() == 0


@pytest.mark.parametrize(
    ("rows", "subspace_dim", "message"),
    [
        (slice(6), 5, "need at least 7: lower them"),
        (slice(None), 6, "must be below the number of columns"),
    ],
)
def test_too_large_subspaces_are_refused(rows, subspace_dim, message):
    with pytest.raises(DataError, match=message):
        InhomogeneousSubspaceClustering(2, subspace_dim=subspace_dim).fit(subspaces()[0][rows])


def test_sparse_rows_and_what_does_not_fit_the_memory_are_refused(monkeypatch):
    X, _ = subspaces()
    model = clustering(n_draws=10, n_rounds=1).fit(X)
    for call in (model.fit, model.predict):
        with pytest.raises(DataError, match=r"needs dense rows, got a sparse matrix: pass X\.toarray\(\)"):
            call(sparse.csr_array(X))
    monkeypatch.setattr("biclique.runtime.memory.free_memory", lambda: 2**20)
    with pytest.raises(MemoryLimitError, match="n_draws"):
        clustering().fit(X)


@pytest.mark.filterwarnings("ignore::biclique.exceptions.FewerClustersWarning")
@pytest.mark.parametrize(
    "X",
    [
        np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 8, axis=0),
        np.repeat(subspaces(noise=0.3)[0], 2, axis=0),
        np.outer(np.random.default_rng(1).normal(size=20), [1.0, 2.0, 3.0]),
        np.random.default_rng(2).normal(size=(20, 3)) * [1, 0, 1],
        np.random.default_rng(3).normal(size=(20, 3)) + 1e9,
        np.round(np.random.default_rng(4).normal(size=(30, 3))),
    ],
    ids=["repeated rows", "equal pairs", "a line", "a constant column", "far from the origin", "whole numbers"],
)
def test_odd_tables_leak_no_warnings(X):
    model = InhomogeneousSubspaceClustering(2, subspace_dim=1, n_draws=20, n_rounds=2, random_state=0).fit(X)
    assert (model.predict(X) == model.labels_).all()
