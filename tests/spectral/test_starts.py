"""k-means of few rows, all starts at once, is plain k-means from each start, and scikit-learn's from the same draws."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from biclique.spectral import rounding
from biclique.spectral.rounding import lloyd_together, spread_starts
from tests import oracles


def table(seed, n=60, columns=3, k=4):
    random = np.random.default_rng(seed)
    X = make_blobs(n, columns, centers=k, cluster_std=2.0, random_state=seed)[0]
    return X, random.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_starts_are_those_of_the_definition(k):
    X, w = table(0)
    random, trials = np.random.RandomState(3), 2 + int(np.log(k))
    draws = [(random.random_sample(), random.uniform(size=(k - 1, trials))) for _ in range(4)]
    expected = [oracles.greedy_start(X, w, k, *draw) for draw in draws]
    assert spread_starts(X, w, k, 4, np.random.RandomState(3)).tolist() == expected


def test_steps_are_those_of_the_definition():
    X, w = table(1)
    starts = X[spread_starts(X, w, 4, 5, np.random.RandomState(0))]
    centres, inertias, well = lloyd_together(X, w, starts)
    assert well.all()
    for start, found, inertia in zip(starts, centres, inertias, strict=True):
        expected = oracles.lloyd(X, w, start)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        nearest = ((X[:, None] - expected) ** 2).sum(axis=2).min(axis=1)
        assert inertia == pytest.approx(float(w @ nearest))


@pytest.mark.parametrize("seed", range(20))
def test_the_same_as_scikit_learn_from_the_same_random_numbers(seed):
    X, w = table(seed, n=80 + 10 * seed, columns=1 + seed % 5, k=2 + seed % 4)
    k = 2 + seed % 6
    peer = KMeans(k, n_init=6, tol=1e-8, random_state=seed).fit(X, sample_weight=w)
    rows = X - X.mean(axis=0)
    starts = rows[spread_starts(rows, w, k, 6, np.random.RandomState(seed))]
    _, inertias, well = lloyd_together(rows, w, starts)
    assert well.all()
    assert inertias.min() == pytest.approx(peer.inertia_, rel=1e-9)


@pytest.mark.parametrize("n_init", [0, 2, 10])
@pytest.mark.parametrize("rounded", [False, True])
def test_few_rows_get_the_labels_of_many(n_init, rounded, monkeypatch):
    """The other way through ``kmeans``, which large tables take, gives the same; equal rows and empty clusters too."""
    for seed in range(6):
        X, w = table(seed, n=40 + 40 * seed)
        X = np.round(X / 3) if rounded else X
        few = rounding.kmeans(X, w, 6, n_init=n_init, random_state=seed)
        with monkeypatch.context() as patched:
            patched.setattr(rounding, "FEW_ENTRIES", 0)
            many = rounding.kmeans(X, w, 6, n_init=n_init, random_state=seed)
        np.testing.assert_allclose(few.rule.centres, many.rule.centres, atol=1e-7)
        assert (few.labels == many.labels).all()


def test_a_cluster_that_loses_its_rows_ends_its_start_alone():
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    starts = np.array([[[0.5], [10.5]], [[5.0], [500.0]]])
    centres, inertias, well = lloyd_together(X, np.ones(4), starts)
    assert well.tolist() == [True, False]
    np.testing.assert_allclose(centres[0], [[0.5], [10.5]])
    assert inertias[0] == pytest.approx(1.0)


def test_a_start_is_left_only_for_a_better_one():
    better, equal = np.array([2.0, 1.0, 1.0 + 1e-13]), np.array([1.0, 1.0 - 1e-9])
    assert (rounding._least(better), rounding._least(equal), rounding._least(np.array([3.0]))) == (1, 0, 0)
