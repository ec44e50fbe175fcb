"""Eigenpairs of one K at several orders, in one space."""

import numpy as np
import pytest

from biclique import BicliqueSpectralClustering
from biclique.gram import DenseGram
from biclique.selection import order_path
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.many_orders import ManyOrders
from biclique.spectral.solver import top_eigenpairs
from tests import oracles

ORDERS = [2.25, 3, 8, np.inf]
N, K_PAIRS = 560, 3


def similarities(seed=0):
    X = np.random.RandomState(seed).standard_normal((N, 3))
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))


def solved(K, k=K_PAIRS, tol=1e-6, weights=None, max_passes=100, first_tol=1e-3):
    first = NormalizedCut(DenseGram(K), 2.1, weights)
    found = top_eigenpairs(first, k, tol=first_tol, deflate=first.trivial, random_state=0, keep_space=True)
    cuts = [first.at_order(order) for order in ORDERS]
    solver = ManyOrders(first, found.space, k)
    return cuts, solver, solver.solve(cuts, tol, 1e-15, max_passes)


def check(cuts, pairs, k=K_PAIRS, tol=1e-6):
    for cut, own in zip(cuts, pairs, strict=True):
        B = cut.matmat(np.eye(N))
        values, vectors = oracles.leading_pairs(B, cut.trivial, k)
        np.testing.assert_allclose(own.values, values, atol=1e-9)
        np.testing.assert_allclose(own.vectors @ own.vectors.T, vectors @ vectors.T, atol=10 * tol)
        np.testing.assert_allclose(own.images, B @ own.vectors, atol=1e-10)
        np.testing.assert_allclose(
            np.linalg.norm(B @ own.vectors - own.vectors * own.values, axis=0), own.residuals, atol=1e-14
        )
        assert own.converged
        assert (own.residuals <= own.target).all()


def test_every_order_has_its_own_leading_pairs():
    cuts, _, pairs = solved(similarities())
    check(cuts, pairs)


def test_with_weights():
    weights = np.random.RandomState(1).randint(1, 4, N).astype(float)
    cuts, _, pairs = solved(similarities(), weights=weights)
    check(cuts, pairs)


def test_wanted_eigenvalues_may_be_negative():
    """B has two positive eigenvalues. The trivial vector, with eigenvalue zero, must not be the third."""
    random = np.random.RandomState(2)
    turn = np.linalg.qr(np.column_stack([np.ones(N), random.standard_normal((N, N - 1))]))[0]
    values = np.concatenate([[3.0, 0.5, 0.3], np.linspace(-0.2, -0.9, N - 3)])
    cuts, _, pairs = solved(turn * values @ turn.T)
    assert pairs[0].values[2] < 0
    check(cuts, pairs)


def test_passes_are_fewer_than_of_each_order_alone():
    cuts, solver, pairs = solved(similarities(), tol=1e-5)
    alone = [top_eigenpairs(cut, K_PAIRS, tol=1e-5, deflate=cut.trivial, random_state=0).n_passes for cut in cuts]
    assert solver.n_passes < max(alone) < sum(alone)
    check(cuts, pairs, tol=1e-5)


def test_too_few_passes_are_reported():
    _, solver, pairs = solved(similarities(), tol=1e-12, max_passes=1)
    assert solver.n_passes == 1
    assert not any(own.converged for own in pairs)


def test_orders_that_a_full_space_has_not_solved_are_solved_one_by_one(monkeypatch):
    X = np.random.RandomState(0).standard_normal((N, 3)) + 4 * (np.arange(N) % 2)[:, None]
    options = {"n_clusters": 2, "random_state": 0, "gram": "tiled", "eigen_tol": 1e-6}
    usual = order_path(X, [2.5, 2.1, 4], **options)
    monkeypatch.setattr("biclique.spectral.many_orders.MOST_BLOCKS", 0)
    short = order_path(X, [2.5, 2.1, 4], **options)
    np.testing.assert_allclose(usual.eigenvalues, short.eigenvalues, atol=1e-9)
    np.testing.assert_array_equal(usual.labels, short.labels)


@pytest.mark.parametrize("orders", [[2, 2.5, np.inf], [2.5, 2, np.inf]])
def test_a_path_of_rows_that_fall_into_parts(orders):
    X = np.random.RandomState(0).standard_normal((300, 2))
    far = np.concatenate([X, X[:, ::-1] * 1.1 + 1000])
    options = {"affinity": "nearest_neighbors", "random_state": 0, "eigen_tol": 1e-6}
    path = order_path(far, orders, n_clusters=3, **options)
    for order, values in zip(orders, path.eigenvalues, strict=True):
        model = BicliqueSpectralClustering(3, order=order, **options).fit(far)
        np.testing.assert_allclose(values, model.eigenvalues_, atol=1e-9)
