"""Pieces of how sure a label is."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.special import erfcx, log_ndtr
from scipy.stats import norm

from biclique import BicliqueSpectralClustering
from biclique.exceptions import BicliqueWarning
from biclique.spectral.membership import (
    COMPARED,
    FAR,
    MODES,
    Cells,
    Mixture,
    Seen,
    _hazard,
    _Line,
    near_pairs,
    settled,
    two_modes,
)
from tests import oracles


def line(shares: list[float], gap: float, boundary: float, n: int = 1000) -> _Line:
    """Cells of exactly normal rows, 0 and ``gap`` their means, with labels that change at a boundary."""
    edges = np.linspace(-2.0, gap + 2.0, 201)

    def below(x: np.ndarray) -> np.ndarray:
        return n * (shares[0] * norm.cdf(x) + shares[1] * norm.cdf(x - gap))

    counts, centres = np.diff(below(edges)), (edges[1:] + edges[:-1]) / 2
    beyond = np.array([below(edges[0]), n - below(edges[-1])])
    labelled = np.array([below(np.array(boundary)), n - below(np.array(boundary))]) / n
    cuts, start = edges[[0, -1]], np.array([boundary - 1.0, boundary + 1.0])
    cells = Cells(centres, counts, cuts, beyond)
    return _Line(edges, edges, cells, Mixture(start, np.array(1.0), labelled), boundary=boundary)


def likelihood(one: _Line, means: list[float] | np.ndarray, deviation: float, shares: np.ndarray) -> float:
    """The definition: rows in cells have a density, rows beyond the cuts a probability."""
    centres, counts, cuts, beyond = one.cells
    total = counts @ np.log(norm.pdf(centres[:, None], means, deviation) @ shares)
    total += beyond[0] * np.log(sum(shares * norm.cdf(cuts[0], means, deviation)))
    return total + beyond[1] * np.log(sum(shares * norm.sf(cuts[1], means, deviation)))


def test_the_hazard_of_a_normal_distribution_near_and_far():
    z = np.array([-30.0, -1.0, 0.0, 5.0, 1e3, FAR * 0.999, FAR, 1e9, 1e150])
    exact = np.sqrt(2 / np.pi) / erfcx(z / np.sqrt(2))
    assert np.allclose(_hazard(z, log_ndtr(-z)), exact, rtol=1e-7, atol=0)


def test_the_shares_of_the_labels_are_kept_while_the_rows_do_not_speak_against_them():
    given = line([0.5, 0.5], 2.0, 1.1)
    (kept,) = settled([given])
    assert kept.shares[0] == pytest.approx(0.52, abs=0.01)
    assert np.array_equal(kept.shares, given.start.shares)
    assert kept.means == pytest.approx([0.0, 2.0], abs=0.1)
    assert kept.deviation == pytest.approx(1.0, abs=0.05)


@pytest.mark.once
def test_shares_are_those_of_the_rows_if_twice_the_log_likelihood_rises_by_more_than_log_n():
    given = line([0.2, 0.8], 3.0, 2.0)
    (free,) = settled([given])
    assert free.shares == pytest.approx([0.2, 0.8], abs=0.01)
    assert free.means == pytest.approx([0.0, 3.0], abs=0.05)
    grid = product(np.linspace(-0.5, 1.5, 11), np.linspace(2.5, 3.5, 6), np.linspace(0.8, 1.3, 6))
    kept = max(likelihood(given, [low, high], deviation, given.start.shares) for low, high, deviation in grid)
    assert 2 * (likelihood(given, free.means, free.deviation, free.shares) - kept) > np.log(1000)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("gap", [-0.5, 0.0, 1.0, 1.99])
def test_means_that_make_one_mode_are_moved_two_deviations_apart_with_the_same_mean_and_variance(gap, share):
    means, deviation, shares = np.array([0.3, 0.3 + 3 * gap]), 3.0, np.array([1 - share, share])
    assert oracles.modes(means, deviation, shares) == 1
    found = two_modes(Mixture(means, np.array(deviation), shares))
    moved, apart = found.means, found.deviation
    assert moved[1] - moved[0] == pytest.approx(2 * apart)
    assert shares @ moved == pytest.approx(shares @ means)
    before, after = (s**2 + shares @ (m - shares @ m) ** 2 for m, s in ((means, deviation), (moved, apart)))
    assert after == pytest.approx(before)


def test_two_deviations_are_where_equal_clusters_get_two_modes_and_means_beyond_them_stay():
    for share in (0.3, 0.5):
        assert oracles.modes([0, 0.99 * MODES], 1.0, [1 - share, share]) == 1
    assert oracles.modes([0, 1.01 * MODES], 1.0, [0.5, 0.5]) == 2
    far = Mixture(np.array([1.0, 3.1]), np.array(1.0), np.array([0.9, 0.1]))
    assert two_modes(far) is far


def test_of_many_clusters_each_is_compared_with_its_nearest():
    centres = np.random.default_rng(0).normal(size=(60, 3))
    pairs = near_pairs(centres)
    gaps = np.linalg.norm(centres[:, None] - centres, axis=2)
    near = [set(np.argsort(row)[1 : COMPARED + 1]) for row in gaps]
    assert pairs == [(a, b) for a in range(60) for b in range(a + 1, 60) if b in near[a] or a in near[b]]
    assert len(near_pairs(centres[: COMPARED + 1])) == COMPARED * (COMPARED + 1) / 2
    rows = np.column_stack([np.ones(1200), np.repeat(centres, 20, axis=0)])
    rows[:, 1:] += 0.05 * np.random.default_rng(1).normal(size=(1200, 3))
    labels = np.repeat(np.arange(60), 20)
    seen = Seen.of(rows, labels, np.ones(1200), np.full(3, 0.5), 2.0)
    p = seen.probabilities(rows, labels)
    np.testing.assert_array_equal(p.argmax(axis=1), labels)
    for j in range(60):
        compared = {a + b - j for a, b in seen.odds.pairs if j in (a, b)} | {j}
        assert set(np.flatnonzero(p[labels == j].any(axis=0))) <= compared


def test_a_row_of_weight_counts_as_so_many_rows():
    """The middle of a cluster is that of its weight: without it, half of these rows would have another."""
    rows, labels = two_sides(400)
    weights = np.random.RandomState(1).randint(1, 6, 800).astype(float)
    repeated = np.repeat(np.arange(800), weights.astype(int))
    weighted = Seen.of(rows, labels, weights, np.array([0.0]), 2.0)
    again = Seen.of(rows[repeated], labels[repeated], np.ones(len(repeated)), np.array([0.0]), 2.0)
    np.testing.assert_allclose(weighted.odds.directions, again.odds.directions, rtol=1e-12)
    assert not np.allclose(
        weighted.odds.directions, Seen.of(rows, labels, np.ones(800), np.array([0.0]), 2.0).odds.directions
    )


def two_sides(n: int, far: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Embedded rows of two normal clusters 4 deviations apart, one row ``far`` out, and their labels."""
    random = np.random.RandomState(0)
    t = np.r_[random.normal(0, 1, n), random.normal(4, 1, n)]
    t[t.argmax()] += far
    return np.column_stack([np.ones(2 * n), t]), (t > 2).astype(int)


def test_one_row_far_out_does_not_widen_the_clusters():
    (rows, labels), (with_one, _) = two_sides(400), two_sides(400, far=1e4)
    one, other = (
        Seen.of(x, labels, np.ones(800), np.array([0.0]), 2.0).probabilities(rows, labels) for x in (rows, with_one)
    )
    np.testing.assert_allclose(one, other, atol=0.02)


def test_the_boundary_of_drawn_out_clusters_is_half_way_between_their_nearest_rows():
    t = np.r_[np.linspace(0, 1, 500), np.linspace(9, 10, 500)]
    rows, labels = np.column_stack([np.ones(1000), t]), np.repeat([0, 1], 500)
    p = Seen.of(rows, labels, np.ones(1000), np.array([1 - 1e-6]), 2.0).probabilities(rows, labels)
    assert p.max(axis=1).min() > 0.99


def test_rows_of_a_border_that_are_one_place():
    """Hardly any row is like another here: what is between the clusters differs by rounding alone."""
    random = np.random.default_rng(119)
    n, d, k = int(random.integers(8, 70)), int(random.integers(1, 12)), int(random.integers(2, 5))
    X = random.normal(size=(n, d)) * random.choice([1, 3, 0.1], size=(n, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicliqueWarning)
        model = BicliqueSpectralClustering(
            k, affinity="rbf", gamma=float(10 ** random.uniform(-4, 2)), row_normalize=True, random_state=0
        ).fit(X)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
