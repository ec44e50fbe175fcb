"""The agreement of partitions against its definition."""

import numpy as np
import pytest

from biclique.selection.criteria import agreement, best_jaccard
from tests import oracles


@pytest.fixture
def random():
    return np.random.default_rng(0)


def test_agreement_counts_pairs_and_a_weight_counts_as_so_many_rows(random):
    for _ in range(5):
        first, second = random.integers(0, 4, 40), random.integers(0, 3, 40)
        assert agreement(first, second, np.ones(40)) == pytest.approx(oracles.pair_agreement(first, second))
    assert agreement(first, first[::1], np.ones(40)) == 1.0
    one = np.zeros(40, dtype=int)
    assert agreement(one, one, np.ones(40)) == 1.0
    assert agreement(one, first, np.ones(40)) == 0.0
    first, second = random.integers(0, 3, 20), random.integers(0, 3, 20)
    weights = random.integers(1, 5, 20)
    repeated = agreement(np.repeat(first, weights), np.repeat(second, weights), np.ones(weights.sum()))
    assert agreement(first, second, weights.astype(float)) == pytest.approx(repeated, abs=1e-12)


def test_the_best_jaccard_is_that_of_sets(random):
    first, second, weights = random.integers(0, 3, 30), random.integers(0, 4, 30), random.integers(1, 4, 30)
    found = best_jaccard(first, second, weights.astype(float), 4)
    assert found[3] == 0
    for c in range(3):
        tried = [
            weights[(first == c) & (second == d)].sum() / weights[(first == c) | (second == d)].sum() for d in range(4)
        ]
        assert found[c] == pytest.approx(max(tried))
