"""The one convention for parts, against a naive loop."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import DisconnectedWarning
from biclique.spectral.cut import OrderRule, counted_shares, effective_rows, least_share
from biclique.spectral.joining import LeastVolume, MostSimilar, NearRows, join_parts
from tests import oracles
from tests.oracles import joined_parts


@pytest.mark.parametrize("kind", ["equal", "uniform", "heavy", "counts", "one"])
def test_what_is_dust_by_weight_and_by_rows(kind):
    random = np.random.default_rng(3)
    seen = set()
    for _ in range(100):
        w = {
            "equal": np.full(60, 2.5),
            "uniform": random.uniform(0.5, 2, 60),
            "heavy": np.exp(3 * random.normal(size=60)),
            "counts": random.integers(1, 12, 60).astype(float),
            "one": np.where(np.arange(60) == 0, 400.0, 1.0),
        }[kind]
        labels = random.choice(3, p=[0.75, 0.2, 0.05], size=60)
        dust = [oracles.is_dust(np.flatnonzero(labels == c), w, 3) for c in range(3)]
        assert (counted_shares(labels, w, 3) < least_share(w, 3)).tolist() == dust
        # Only the proportions count.
        assert_allclose(counted_shares(labels, 1e6 * w, 3), counted_shares(labels, w, 3))
        rule = OrderRule.of(w, 3, (2.0, 2.05))
        assert rule.n_solid(labels, w) == 3 - sum(dust)
        assert (rule.smallest(labels, w) < rule.least) == any(dust)
        seen.update(dust)
    assert seen == {False, True}


def test_one_heavy_row_makes_no_dust_of_others():
    """Four of ten rows are equal: n_e is 6, and the least share by weight nearly a quarter."""
    w = np.append(np.ones(540), 360.0)
    labels = np.repeat([0, 1, 2], [240, 240, 61])
    assert least_share(w, 3) > 0.2 > 61 / 900
    rule = OrderRule.of(w, 3, (2.0, 2.05))
    assert rule.smallest(labels, w) >= rule.least
    # A vector on those 60 rows is none of dust, one on three of them is.
    cluster = (labels == 2) & (w == 1)
    assert not len(rule.live_on_dust(cluster[:, None] / np.sqrt(60), w, w.sum()))
    three = np.arange(541) < 3
    assert rule.live_on_dust(three[:, None] / np.sqrt(3), w, w.sum()).tolist() == [0, 1, 2]


def test_the_least_share():
    assert effective_rows(np.full(40, 2.5)) == pytest.approx(40)
    assert effective_rows(np.array([1.0, 3.0])) == pytest.approx(16 / 10)
    assert least_share(np.ones(400), 4) == pytest.approx(10 / 400, rel=2e-3)
    assert least_share(np.ones(400), 4) <= 10 / 400  # a share that is just enough is enough


@pytest.mark.parametrize("seed", range(20))
def test_joining_is_the_naive_loop(seed):
    random = np.random.default_rng(seed)
    sizes = np.concatenate([random.integers(12, 40, 4), random.integers(1, 4, 3)])
    found = np.repeat(np.arange(7), sizes)
    X = random.uniform(-100, 100, (7, 2))[found] + random.uniform(-1, 1, (len(found), 2))
    for k in (2, 3, 6):
        joined = join_parts(found, np.ones(len(X)), k, k, NearRows(X))
        expected = joined_parts(X, found, k)
        assert len(np.unique(expected)) == joined.n_parts
        assert len(np.unique(np.column_stack([expected, joined.part_of]), axis=0)) == joined.n_parts
        small = np.isin(found, np.flatnonzero(sizes < np.sqrt(len(X) / k)))
        assert not (joined.dust & ~small).any()
        like = joined.like(NearRows(X))
        assert np.array_equal(np.flatnonzero(like != np.arange(len(X))), np.flatnonzero(joined.dust))
        assert np.array_equal(joined.part_of[like], joined.part_of)


def test_noise_adds_up_to_no_part():
    # 40 single rows in a cloud far from two groups of 30: no part of their own.
    random = np.random.default_rng(0)
    X = np.concatenate(
        [random.normal(size=(30, 2)), random.normal(size=(30, 2)) + [40, 0], random.uniform(0, 40, (40, 2)) + [0, 60]]
    )
    found = np.concatenate([np.zeros(30), np.ones(30), 2 + np.arange(40)]).astype(int)
    joined = join_parts(found, np.ones(100), 3, 3, NearRows(X))
    assert joined.n_parts == 2
    assert joined.dust.sum() == 40


def test_a_piece_with_a_satellite_is_solid():
    # 18 rows and 2 beside them, of 1,000 with k = 3: together more than √(1000/3) = 18.3.
    random = np.random.default_rng(0)
    X = np.concatenate(
        [random.normal(size=(900, 2)), random.normal(size=(80, 2)) + 60, random.normal(size=(20, 2)) + [60, -60]]
    )
    found = np.repeat([0, 1, 2, 3], [900, 80, 18, 2])
    joined = join_parts(found, np.ones(1000), 3, 3, NearRows(X))
    assert sorted(np.bincount(joined.part_of).tolist()) == [20, 80, 900]
    assert joined.whole.all()


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_given_similarities_decide(convert):
    K = np.kron(np.eye(4), np.ones((10, 10)))
    K[0, 39] = K[39, 0] = 1e-9  # a whisper between the first and the last
    found = np.repeat(range(4), 10)
    joined = join_parts(found, np.ones(40), 3, 3, MostSimilar(convert(K), np.ones(40)))
    assert joined.part_of[0] == joined.part_of[39]
    assert joined.n_parts == 3
    assert joined.solid_sizes.tolist() == [10] * 4


def test_without_any_similarity_sizes_become_even():
    degrees = np.repeat([1.6, 1.0, 1.0, 1.0], [5, 3, 3, 2])
    joined = join_parts(np.repeat(range(4), [5, 3, 3, 2]), np.ones(13), 2, 2, LeastVolume(degrees))
    assert sorted(np.bincount(joined.part_of, degrees).tolist()) == [8, 8]


def test_many_rows_that_are_like_no_other_are_said():
    random = np.random.default_rng(0)
    dense = [random.normal(size=(400, 2)) * 0.05 + (10 * i, 0) for i in range(3)]
    sparser = [random.normal(size=(50, 2)) * 1.5 + (30 * i, 60) for i in range(5)]
    X = np.concatenate([*dense, *sparser])
    with (
        pytest.warns(DisconnectedWarning, match="clusters cut across the parts that .* neighbours form, at gamma="),
        pytest.warns(
            DisconnectedWarning, match=r"1[0-9]% of the rows are like hardly any other row at gamma=.*nearest"
        ),
    ):
        BicliqueSpectralClustering(8, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a handful of outliers is no cause for alarm
        BicliqueSpectralClustering(3, random_state=0).fit(np.concatenate([*dense, *sparser[:1]]))
        BicliqueSpectralClustering(8, affinity="nearest_neighbors", random_state=0).fit(X)
