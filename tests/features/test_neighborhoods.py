"""Neighbourhoods of landmarks against loops over rows and landmarks, and clusters of their hypergraph."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.features.neighborhoods import NeighborhoodMap, canonical_order, joined_components
from tests import oracles
from tests.data import far_groups, normal

FLOOR = 2.0**-52


def fitted(X, k, weights=None, **parameters):
    chosen = {"affinity": "neighborhoods", "n_neighbors": None, "rank": "auto", "random_state": 0} | parameters
    return BicliqueSpectralClustering(n_clusters=k, **chosen).fit(X, sample_weight=weights)


def lattice(d, seed=0, n=60):
    """At most n points with whole coordinates, in random order."""
    side = {1: 60, 2: 8, 3: 5, 4: 3, 5: 3}[d]
    points = np.array(list(product(range(side), repeat=d)), dtype=float)
    return np.random.default_rng(seed).permutation(points)[:n]


def members(feature_map, X):
    columns = feature_map.columns(X)
    return [set(columns.indices[a:b].tolist()) for a, b in zip(columns.indptr[:-1], columns.indptr[1:], strict=True)]


def same_partition(first, second):
    return adjusted_rand_score(first, second) == 1


def full_sets(X, Z, r):
    """Rows with as many members as a row may have."""
    return sum(len(own) == 4 * r for own in oracles.neighborhood_members(X, Z, r))


CASES = {}  # rows and landmarks
for _d in range(1, 6):
    CASES[f"normal, d = {_d}"] = normal(40, _d, _d), None
    CASES[f"lattice, d = {_d}"] = lattice(_d), None
    CASES[f"landmarks between the rows, d = {_d}"] = lattice(_d), lattice(_d, 1, 35) + 0.5
    CASES[f"landmarks are some of the rows, d = {_d}"] = lattice(_d), lattice(_d)[:25]
CASES["repeated rows"] = np.repeat(lattice(2), 1 + np.arange(60) % 3, axis=0), None
CASES["repeated normal rows"] = np.repeat(normal(30, 3), 2, axis=0), None
CASES["heavy tails"] = np.random.default_rng(0).standard_cauchy((50, 2)), None
CASES["far from zero"] = lattice(3) + 2.0**20, None
CASES["one landmark"] = np.ones((5, 2)), None
CASES["two landmarks"] = np.array([[0.0], [0.0], [3.0]]), None


@pytest.fixture(params=CASES)
def case(request):
    X, Z = CASES[request.param]
    return X, oracles.distinct_landmarks(X) if Z is None else Z


# The oracles, by hand


def test_members_by_hand():
    Z = np.array([[0.0], [1.0], [2.0], [3.0], [10.0]])
    assert oracles.neighborhood_members(Z, Z, 1) == [{0}, {1}, {2}, {3}, {4}]
    assert oracles.neighborhood_members(Z, Z, 2) == [{0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3}, {3, 4}]  # 1 and 2: ties
    assert oracles.neighborhood_members([[0.5], [1.4], [7.0]], Z, 1) == [{0, 1}, {1}, {4}]
    assert oracles.neighborhood_members([[0.5]], Z, 2) == [{0, 1}]
    assert oracles.neighborhood_members([[0.0]], Z, 5) == [{0, 1, 2, 3, 4}]


CROSS = np.concatenate([np.eye(5), -np.eye(5), np.zeros((1, 5))])  # ten at distance 1 from the last
CIRCLE = np.array([[np.cos(t), np.sin(t)] for t in 2 * np.pi * np.arange(12) / 12])  # equal but for rounding


def test_weights_by_hand():
    Z = np.array([[0.0], [1.0], [3.0]])
    np.testing.assert_allclose(oracles.edge_weights(Z, 1), np.exp([-1, -1, -4]))  # ρ² = 1, 1, 4
    np.testing.assert_allclose(oracles.edge_weights(Z, 2), np.exp([-1, -4 / 9, -1]))  # ρ² = 9, 4, 9
    np.testing.assert_allclose(oracles.edge_weights(Z, 7), oracles.edge_weights(Z, 2))  # there are only two others
    four = np.array([[0.0], [1.0], [3.0], [6.0]])  # ρ² = 1, 1, 4, 9: the median is 2.5
    np.testing.assert_allclose(oracles.edge_weights(four, 1), np.exp([-0.4, -0.4, -1.6, -3.6]))
    far = np.array([[0.0], [1.0], [2.0], [100.0]])
    assert oracles.edge_weights(far, 1)[3] == FLOOR
    assert oracles.edge_weights(Z[:1], 1).tolist() == [1]
    assert oracles.edge_weights([[0.0], [0.0], [0.0], [0.0], [5.0]], 1).tolist() == [1, 1, 1, 1, FLOOR]


def test_components_by_hand():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [30.0], [31.0]])
    for rows, r, expected in (
        (X, 2, [0, 0, 1, 1, 2, 2]),
        (X[[4, 0, 5, 2]], 1, [0, 1, 2, 3]),
        (X[[4, 0, 5]], 2, [0, 1, 0]),
    ):
        count, component = oracles.hypergraph_components(rows, X, r)
        assert (count, component.tolist()) == (max(expected) + 1, expected)
    # N of 4 landmarks: {0..3}, {0..3}, {0..3}, {0..3}, {2..5}, {2..5}
    assert [oracles.doubled_neighbors(X, X, k, 2) for k in (6, 3, 2, 1)] == [2, 2, 4, 4]


# The map against the oracles


def test_members_and_weights_of_the_map(case):
    X, Z = case
    for n_neighbors in (1, 2, 7):
        feature_map = NeighborhoodMap(Z, min(n_neighbors, max(1, len(Z) // 2)))
        r = feature_map.n_neighbors
        assert (feature_map.size, r) == (len(Z), oracles.effective_neighbors(len(Z), n_neighbors))
        columns = feature_map.columns(X)
        assert isinstance(columns, sparse.csr_array)
        assert columns.dtype == np.float64
        assert columns.shape == (len(X), len(Z))
        assert members(feature_map, X) == oracles.neighborhood_members(X, Z, r)
        weights = oracles.edge_weights(Z, r)
        np.testing.assert_allclose(feature_map.edge_weights, weights, rtol=1e-9)
        dense = columns.toarray()
        np.testing.assert_allclose(dense, np.where(dense > 0, np.sqrt(weights), 0), rtol=1e-9)
        np.testing.assert_allclose(dense @ dense.T, oracles.neighborhood_kernel(X, Z, r), rtol=1e-9, atol=1e-15)


def test_components_of_the_map(case):
    X, Z = case
    groups = np.concatenate([X, X[:7] + 1e4]), np.concatenate([Z, Z[:7] + 1e4])
    for rows, marks in ((X, Z), groups, (X[:1], Z), (X[::9], Z)):
        for r in {1, oracles.effective_neighbors(len(marks))}:
            of_landmarks = joined_components(NeighborhoodMap(marks, r).columns(rows))
            count, of_rows = oracles.hypergraph_components(rows, marks, r)
            expected = np.full(len(marks), -1)  # landmarks that no row has
            for own, component in zip(oracles.neighborhood_members(rows, marks, r), of_rows, strict=True):
                expected[list(own)] = component
            assert len(np.unique(of_landmarks[of_landmarks >= 0])) == count
            assert np.array_equal(of_landmarks < 0, expected < 0)
            assert same_partition(of_landmarks, expected)


def test_ties_are_relative():
    x = np.zeros((1, 1))
    for unit in (1.0, 3.7, 1e-5):
        assert members(NeighborhoodMap(unit * np.array([[1.0], [-1 - 0.5e-9]]), 1), x) == [{0, 1}]
        assert members(NeighborhoodMap(unit * np.array([[1.0], [-1 - 2e-9]]), 1), x) == [{0}]


def test_at_most_four_r_members():
    for Z, x, r, expected in (
        (CROSS, np.zeros((1, 5)), 2, {10, 0, 1, 2, 3, 4, 5, 6}),
        (CROSS, np.zeros((1, 5)), 3, set(range(11))),
        (CROSS[:10], np.zeros((1, 5)), 2, set(range(8))),
        (CIRCLE, np.zeros((1, 2)), 1, {0, 1, 2, 3}),
        (CIRCLE, np.zeros((1, 2)), 2, set(range(8))),
    ):
        for unit in (1.0, 3.7, 1e-5):
            assert members(NeighborhoodMap(Z * unit, r), x * unit) == [expected]
    Z = lattice(5, n=243)
    X = Z[:30] + 0.5  # in the middle of 32 landmarks, or of fewer at the border
    for r in (1, 3, 7):
        assert full_sets(X, Z, r) > 0
        assert members(NeighborhoodMap(Z, r), X) == oracles.neighborhood_members(X, Z, r)


def test_landmarks_at_one_point():
    feature_map = NeighborhoodMap(np.array([[0.0], [0.0], [0.0], [0.0], [5.0]]), 1)
    assert feature_map.edge_weights.tolist() == [1, 1, 1, 1, FLOOR]
    assert members(feature_map, np.array([[0.0], [5.0]])) == [{0, 1, 2, 3}, {4}]


def words(n, seed=0):
    """Rows with six ones in 40 columns, in four groups."""
    random = np.random.default_rng(seed)
    own, any_column = np.arange(10), np.arange(40)
    X = np.zeros((n, 40))
    for i, group in enumerate(random.integers(0, 4, n)):
        X[i, random.choice(own + 10 * group if random.random() < 0.9 else any_column, 6, replace=False)] = 1
    return np.unique(X, axis=0)


SYMMETRIC = np.array(list(product((-1.0, 0, 1), repeat=4)))
ORDERED = {
    "normal": normal(50, 3),
    "words": words(150),
    "bits": np.unique(np.random.default_rng(0).integers(0, 2, (150, 10)), axis=0).astype(float),
    "part of a lattice": np.unique(np.random.default_rng(1).integers(0, 5, (300, 3)), axis=0).astype(float),
    "one row far out": np.vstack([normal(50, 3), np.full(3, 1e9)]),
    "two rows far out": np.vstack([normal(50, 3), np.full(3, 1e9), np.full(3, -1e9)]),
    "symmetric": SYMMETRIC,
    "symmetric, whole numbers": SYMMETRIC.astype(int),
    "a cross": CROSS,
    "two rows": normal(2, 3),
    "one row": normal(1, 3),
    "no row": normal(0, 3),
}


@pytest.mark.parametrize("name", ORDERED)
def test_the_canonical_order_is_that_of_a_loop(name):
    X = np.random.default_rng(5).permutation(ORDERED[name])
    expected = oracles.canonical_order(X)
    assert canonical_order(X).tolist() == expected
    for kind in (sparse.csr_array, sparse.csr_matrix):
        assert canonical_order(kind(X)).tolist() == expected
    stored = sparse.csr_array(np.ones(X.shape))
    stored.data[:] = X.ravel()
    assert canonical_order(stored).tolist() == expected  # a zero that is stored is a zero


def test_degrees_do_not_vanish_on_heavy_tails():
    X = np.random.default_rng(0).standard_cauchy((300, 2)) ** 3
    feature_map = NeighborhoodMap(X, 7)
    assert feature_map.edge_weights.min() == FLOOR
    assert feature_map.edge_weights.max() <= 1
    columns = feature_map.columns(X)
    degrees = columns @ (columns.T @ np.ones(len(X)))
    assert degrees.min() >= 7 * FLOOR * (1 - 1e-9)
    model = fitted(X, 3)
    assert np.isfinite(model.embedding_).all()
    assert np.array_equal(model.predict(X), model.labels_)


# Clusters

SPREAD = {
    "normal": normal(70, 2, 3),
    "one column": normal(60, 1, 4),
    "five columns": normal(60, 5, 5),
    "repeated": np.repeat(normal(40, 2, 6), 1 + np.arange(40) % 3, axis=0),
    "moons": make_moons(90, noise=0.1, random_state=0)[0],
}


@pytest.mark.parametrize("name", SPREAD)
@pytest.mark.parametrize("order", [2, 4])
def test_the_embedding_is_that_of_the_dense_cut(name, order):
    X, k = SPREAD[name], 3
    Z = oracles.distinct_landmarks(X)
    r = oracles.doubled_neighbors(X, Z, k)
    assert order == 2 or oracles.hypergraph_components(X, Z, r)[0] == 1
    values, _ = oracles.neighborhood_cut(X, Z, r, k + 1, order)
    assert values[-2] - values[-1] > 1e-3  # else the test says nothing
    values, embedding = oracles.neighborhood_cut(X, Z, r, k, order)
    model = fitted(X, k, order=order)
    assert model.n_neighbors_ == r
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-6)
    np.testing.assert_allclose(oracles.projector(model.embedding_), oracles.projector(embedding), atol=1e-6)
    trivial = model.embedding_[:, 0] * np.sign(model.embedding_[0, 0])
    np.testing.assert_allclose(trivial, embedding[:, 0], atol=1e-6)


def test_nine_groups_in_three_clusters():
    """Three far triples of far groups: 7 neighbours leave nine components."""
    centres = [[a + b, a + b] for a in (0, 1e4, 2.5e4) for b in (0, 100, 220)]
    X, group = far_groups(centres, 14)
    Z = oracles.distinct_landmarks(X)
    assert oracles.hypergraph_components(X, Z, 7)[0] == 9
    r = oracles.doubled_neighbors(X, Z, 3)
    assert r > 7
    model = fitted(X, 3)
    assert model.n_neighbors_ == r
    assert same_partition(group // 3, model.labels_)


@pytest.mark.parametrize("n_neighbors", [None, 3, 10])
def test_as_many_components_as_clusters_are_the_clusters(n_neighbors):
    X, group = far_groups([[0.0, 0], [50, 0], [0, 60], [300, 300]], 20)
    model = fitted(X, 4, n_neighbors=n_neighbors)
    Z = oracles.distinct_landmarks(X)
    r = oracles.doubled_neighbors(X, Z, 4, n_neighbors or 7)
    count, component = oracles.hypergraph_components(X, Z, r)
    assert count == 4
    assert model.n_neighbors_ == r
    assert same_partition(component, model.labels_)
    assert same_partition(group, model.labels_)


def test_fewer_components_than_clusters():
    X, group = far_groups([[0.0, 0], [500, 500]], 40)
    model = fitted(X, 5)
    assert model.n_neighbors_ == 7
    assert set(model.labels_.tolist()) == set(range(5))
    assert all(len(set(group[model.labels_ == c].tolist())) == 1 for c in range(5))


def test_one_cluster():
    for X in (normal(30, 2), far_groups([[0.0], [1e3]], 12)[0], np.ones((6, 2))):
        model = fitted(X, 1)
        assert model.labels_.tolist() == [0] * len(X)
        assert np.array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("order", [2, 4])
def test_new_rows(order):
    """κ(x, x_j) from N(x) by its definition, then the closed form, then the nearest mean of unit rows."""
    X, k = SPREAD["normal"], 3
    new = np.concatenate([normal(40, 2, 9), [[30.0, -20.0]], X[:5]])
    model = fitted(X, k, order=order)
    r = model.n_neighbors_
    Z = oracles.distinct_landmarks(X)
    K, cross = oracles.neighborhood_kernel(X, Z, r), oracles.neighborhood_kernel(new, Z, r, X)
    S, S_new = (2 / order * Q.sum(axis=1) + (1 - 2 / order) * K.sum() / len(X) for Q in (K, cross))
    u = model.embedding_[:, 1:] / np.sqrt(S)[:, None]
    expected = oracles.extended(K, cross, order, np.ones(len(X)), u, model.eigenvalues_)
    found = model.transform(new)
    np.testing.assert_allclose(found[:, 1:], expected, atol=1e-6)
    np.testing.assert_allclose(np.abs(found[:, 0]), np.sqrt(S_new / S.sum()), atol=1e-6)
    rows, own = (Q / np.linalg.norm(Q, axis=1, keepdims=True) for Q in (found, model.embedding_))
    means = np.array([own[model.labels_ == c].mean(axis=0) for c in range(k)])
    gaps = np.sort(np.linalg.norm(rows[:, None] - means, axis=2), axis=1)
    nearest = np.linalg.norm(rows[:, None] - means, axis=2).argmin(axis=1)
    clear = gaps[:, 1] - gaps[:, 0] > 1e-2
    assert clear.sum() > 30
    assert np.array_equal(model.predict(new)[clear], nearest[clear])


def test_tenths_in_float32_keep_their_labels():
    """0.1 is not exact in either precision: distances tie up to the rounding of the rows."""
    X = np.random.default_rng(0).integers(1, 6, (400, 5)) / 10
    assert same_partition(fitted(X, 3).labels_, fitted(X.astype(np.float32), 3).labels_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", ["row", "column"])
def test_one_large_value_does_not_tie_the_others(dtype, far):
    """The rounding of a row far out is its own, and that of a constant column moves no distance."""
    X, y = make_moons(600, noise=0.08, random_state=0)
    large = {np.float32: 1e8, np.float64: 1e15}[dtype]
    rows = np.vstack([X, [[large, large]]]) if far == "row" else np.column_stack([X, np.full(600, large)])
    labels = BicliqueSpectralClustering(2, random_state=0).fit(rows.astype(dtype)).labels_
    assert adjusted_rand_score(y, labels[:600]) > 0.99
