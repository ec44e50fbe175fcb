"""One K at several orders: what a fit at each order finds."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_moons

from biclique import BicliqueSpectralClustering
from biclique.exceptions import DataError, ParameterError
from biclique.selection import order_path
from tests import oracles
from tests.calls import refusals

ORDERS = [2, 2.1, 4, np.inf]


@pytest.mark.parametrize(
    "options",
    [
        {"affinity": "rbf", "gamma": 1.0, "row_normalize": True},
        {"affinity": "nearest_neighbors"},
        {"affinity": "rbf", "gamma": 1.0, "gram": "tiled"},
    ],
)
def test_every_order_is_its_own_fit(options):
    X = load_iris().data
    path = order_path(X, ORDERS, n_clusters=3, n_init=10, random_state=0, **options)
    for i, order in enumerate(ORDERS):
        model = BicliqueSpectralClustering(3, order=order, random_state=0, **options).fit(X)
        assert oracles.pair_agreement(path.labels[i], model.labels_) > 0.97
        np.testing.assert_allclose(path.eigenvalues[i], model.eigenvalues_, atol=2e-3)
    expected = [oracles.pair_agreement(a, b) for a, b in zip(path.labels, path.labels[1:], strict=False)]
    np.testing.assert_allclose(path.agreement, expected)
    assert path.orders.tolist() == ORDERS


def test_orders_of_many_rows_start_from_each_other():
    X = make_moons(700, noise=0.1, random_state=0)[0]
    options = {"n_clusters": 2, "affinity": "rbf", "row_normalize": True, "random_state": 0}
    path, back = (order_path(X, orders, **options) for orders in ([2.1, 3, 4], [4, 3, 2.1]))
    assert (path.labels == back.labels[::-1]).all()
    for i, order in enumerate([2.1, 3, 4]):
        model = BicliqueSpectralClustering(order=order, **options).fit(X)
        assert oracles.pair_agreement(path.labels[i][:200], model.labels_[:200]) > 0.97


def test_the_cut_is_that_of_k():
    X = load_iris().data[::3]
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    for rows, options in (
        (K, {"affinity": "precomputed"}),
        (sparse.csr_array(K), {"affinity": "precomputed"}),
        (X, {"gamma": 1.0}),
        (sparse.csr_array(X), {"gamma": 1.0}),
    ):
        path = order_path(rows, [2, 4], n_clusters=3, random_state=0, **options)
        for labels, cut in zip(path.labels, path.cuts, strict=True):
            assert cut == pytest.approx(oracles.kept_inside(K, labels))


def test_weights_are_repeated_rows():
    X = load_iris().data[::5]
    weights = np.random.RandomState(0).randint(1, 4, len(X))
    path = order_path(X, [2, 4], n_clusters=3, gamma=1.0, sample_weight=weights, random_state=0)
    other = order_path(np.repeat(X, weights, axis=0), [2, 4], n_clusters=3, gamma=1.0, random_state=0)
    np.testing.assert_array_equal(np.repeat(path.labels, weights, axis=1), other.labels)
    np.testing.assert_allclose(path.cuts, other.cuts)


def test_same_bits_for_any_number_of_threads():
    X = make_moons(300, noise=0.1, random_state=0)[0]
    one, two = (order_path(X, [2, 4], n_clusters=2, random_state=0, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.eigenvalues, two.eigenvalues)
    np.testing.assert_array_equal(one.labels, two.labels)
    assert str(one) == str(two)
    assert str(one).splitlines()[0].split()[:2] == ["order", "cut"]


PATH = partial(order_path, load_iris().data, n_clusters=3)
test_bad_arguments_are_refused = refusals(
    (partial(PATH, []), ParameterError, "orders must be numbers from 2 to infinity, at least one"),
    (partial(PATH, 3), ParameterError, "orders must be numbers from 2 to infinity, at least one"),
    (partial(PATH, [2, 1.5]), ParameterError, "order must be at least 2"),
    (partial(PATH, [2], sample_weight=np.arange(150)), ParameterError, "sample_weight is 0 in 1 rows"),
    (partial(PATH, [2], affinity="neighborhoods"), ParameterError, "'neighborhoods' has order 2: use affinity='rbf'"),
    (partial(PATH, [2], affinity="precomputed"), DataError, "square matrix"),
)
