import numpy as np
import pytest
from scipy import sparse

from biclique.kernels.gamma_rules import bandwidth
from biclique.kernels.named import make_kernel
from tests.oracles import neighbor_gamma


def gamma(X, weights=None, rule="auto", *, name="rbf", random_state=0):
    weights = np.ones(X.shape[0]) if weights is None else weights
    return bandwidth(rule, make_kernel(name, gamma=None), X, weights, random_state)


@pytest.mark.parametrize("n", [2, 3, 7, 8, 40])
def test_auto_is_the_neighbour_rule(n):
    rng = np.random.default_rng(n)
    X, weights = rng.normal(size=(n, 3)), rng.integers(1, 5, n).astype(float)
    assert gamma(X, weights) == pytest.approx(neighbor_gamma(X, weights), rel=1e-10)


def test_auto_uses_a_sample_of_a_thousand_so_that_it_does_not_grow_with_n():
    rng = np.random.default_rng(0)
    small, large = (rng.normal(size=(n, 3)) for n in (1000, 20000))
    assert 0.7 < gamma(large) / gamma(small) < 1.4


def test_auto_is_drawn_by_the_random_state():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    first, again, other = (gamma(X, random_state=seed) for seed in (0, 0, 1))
    assert first == again != other


def test_median_and_scale():
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(30, 4)), rng.integers(1, 4, 30).astype(float)
    pairs = [(np.sum((X[i] - X[j]) ** 2), weights[i] * weights[j]) for i in range(30) for j in range(i + 1, 30)]
    values = np.repeat([p[0] for p in pairs], [int(p[1]) for p in pairs])
    assert gamma(X, weights, "median") == pytest.approx(1 / np.median(values))
    repeated = np.repeat(X, weights.astype(int), axis=0)
    assert gamma(X, weights, "scale") == pytest.approx(1 / (4 * repeated.var()))
    assert gamma(sparse.csr_matrix(X), weights, "scale") == pytest.approx(1 / (4 * repeated.var()))


def test_laplacian_and_chi2_use_their_own_distance():
    X = np.random.default_rng(2).random((50, 3))
    city = np.abs(X[:, None] - X[None]).sum(axis=2)
    np.fill_diagonal(city, np.inf)
    expected = 0.2 / np.median(np.sort(city, axis=1)[:, 6])
    assert gamma(X, name="laplacian") == pytest.approx(expected)
    assert gamma(X, name="chi2") > 0


@pytest.mark.parametrize("spread", [1e-3, 1e-6, 1e-9, 1e-12])
def test_tight_groups_far_apart_have_their_own_bandwidth(spread):
    rng = np.random.default_rng(0)
    rows, centres = rng.normal(size=(90, 3)), np.repeat(rng.normal(size=(3, 3)), 30, axis=0)
    loose = gamma(1000 * centres + rows)
    tight = gamma(10 * centres + spread * rows)
    assert tight * spread**2 == pytest.approx(loose, rel=1e-2)


def test_distances_of_zero_do_not_count():
    rng = np.random.default_rng(1)
    same = np.arange(20)[:, None] * np.full((1, 2), 1e-200)  # distinct, but their squared distances vanish
    others = rng.normal(size=(12, 2))
    X, weights = np.concatenate([same, others]), rng.integers(1, 4, 32).astype(float)
    q = np.array([[np.sum((x - y) ** 2) for y in X] for x in X])
    kth = np.array([np.sort(np.delete(q[i], i))[6] for i in range(32)])
    assert np.median(np.repeat(kth, weights.astype(int))) == 0
    counted = np.repeat(kth[kth > 0], weights[kth > 0].astype(int))
    assert gamma(X, weights) == pytest.approx(0.2 / np.median(counted))
    pairs = [(q[i, j], int(weights[i] * weights[j])) for i in range(32) for j in range(i) if q[i, j] > 0]
    values = np.repeat([p[0] for p in pairs], [p[1] for p in pairs])
    assert gamma(X, weights, "median") == pytest.approx(1 / np.median(values))
    # Every 7th neighbour is at a distance of zero: pairs are left, all of them between the two groups.
    two = np.concatenate([same, same + 3])
    assert gamma(two) == pytest.approx(0.2 / 18)
    for rule in ("auto", "median"):
        assert gamma(same, rule=rule) == 1.0


def test_kernels_without_a_distance_take_one_over_d():
    assert gamma(np.eye(5), name="polynomial") == 0.2


@pytest.mark.parametrize("rule", ["auto", "median", "scale"])
def test_a_single_row_gets_one(rule):
    assert gamma(np.ones((1, 2)), np.array([5.0]), rule) == 1.0
