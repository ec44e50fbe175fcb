"""The criteria of a selection against their definitions."""

import numpy as np
import pytest
from scipy import sparse

from biclique.rows.array import Vertices
from biclique.selection.criteria import (
    agreement,
    agreements,
    consensus,
    doubts,
    merge,
    neutral_cut,
    neutral_graph,
)
from tests import oracles


@pytest.fixture
def random():
    return np.random.default_rng(0)


def test_agreement_counts_pairs(random):
    for _ in range(5):
        first, second = random.integers(0, 4, 40), random.integers(0, 3, 40)
        assert agreement(first, second, np.ones(40)) == pytest.approx(oracles.pair_agreement(first, second))
    assert agreement(first, first[::1], np.ones(40)) == 1.0
    one = np.zeros(40, dtype=int)
    assert agreement(one, one, np.ones(40)) == 1.0
    assert agreement(one, first, np.ones(40)) == 0.0


def test_a_weight_counts_as_so_many_rows(random):
    first, second = random.integers(0, 3, 20), random.integers(0, 3, 20)
    weights = random.integers(1, 5, 20)
    repeated = agreement(np.repeat(first, weights), np.repeat(second, weights), np.ones(weights.sum()))
    assert agreement(first, second, weights.astype(float)) == pytest.approx(repeated, abs=1e-12)


@pytest.mark.parametrize("n", [3, 11, 60])
def test_the_neutral_graph_is_of_mutual_neighbours(random, n):
    X = random.normal(size=(n, 2))
    expected = oracles.mutual_neighbors(X)
    np.testing.assert_array_equal(neutral_graph(Vertices.as_they_are(X, np.ones(n))).toarray(), expected)
    as_csr = Vertices.as_they_are(sparse.csr_array(X), np.ones(n))
    np.testing.assert_array_equal(neutral_graph(as_csr).toarray(), expected)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    for given in (K, sparse.csr_array(K)):
        found = neutral_graph(Vertices.as_they_are(given, np.ones(n), given=True))
        np.testing.assert_array_equal(found.toarray(), expected)


def test_the_neutral_cut_is_the_share_of_edges_inside(random):
    X, labels = random.normal(size=(60, 2)), random.integers(0, 4, 60)
    A = neutral_graph(Vertices.as_they_are(X, np.ones(60)))
    assert neutral_cut(A, labels) == pytest.approx(oracles.kept_inside(A.toarray(), labels))
    alone = np.append(X, [[50.0, 50.0]], axis=0)  # nobody's neighbour
    A = neutral_graph(Vertices.as_they_are(alone, np.ones(61)))
    own = np.append(labels, 4)
    assert neutral_cut(A, own) == pytest.approx(oracles.kept_inside(A.toarray(), own))


def test_consensus_is_with_the_most_similar_other_families(random):
    partitions = [random.integers(0, 3, 30) for _ in range(9)]
    families = list("aabcdefgb")
    pairs = agreements(partitions, np.ones(30))
    expected = oracles.family_consensus(partitions, families)
    np.testing.assert_allclose(consensus(pairs, families), expected)
    # One family: every candidate is one.
    np.testing.assert_allclose(
        consensus(pairs, ["a"] * 9), oracles.family_consensus(partitions, [str(i) for i in range(9)])
    )
    assert consensus(pairs[:1, :1], ["a"]) == [1.0]


def test_candidates_that_agree_are_merged_with_the_first():
    pairs = np.array([[1, 0.5, 0.995, 0.2], [0.5, 1, 0.3, 0.999], [0.995, 0.3, 1, 0.1], [0.2, 0.999, 0.1, 1]])
    assert merge(pairs, 0.99).tolist() == [0, 1, 0, 1]
    assert merge(pairs, 0.9999).tolist() == [0, 1, 2, 3]


def test_doubt_is_the_geometric_mean_of_what_is_missing(random):
    criteria = [random.uniform(-0.2, 1, 8) for _ in range(3)]
    criteria[0][:3] = 1.0, 0.999, 0.0
    shares, least = (2, 1, 1), (0.01, 0.02, 0.02)
    np.testing.assert_allclose(doubts(criteria, shares, least), oracles.open_doubt(criteria, shares, least), rtol=1e-7)
    # Rounding decides nothing.
    assert len(set(doubts([np.array([0.3, 0.1 + 0.2])], (1,), (0.01,)).tolist())) == 1
    # Nor do candidates that were not chosen.
    np.testing.assert_array_equal(doubts([c[:4] for c in criteria], shares, least), doubts(criteria, shares, least)[:4])
