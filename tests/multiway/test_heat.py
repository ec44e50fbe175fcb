import numpy as np
import pytest

from biclique.exceptions import DataError, MemoryLimitError, ParameterError
from biclique.multiway import (
    HeatKernel,
    HeatLaplacian,
    biclique_gram,
    biclique_heat_kernel,
    heat_flow,
    heat_limit,
    heat_mass_limit,
)
from tests import oracles
from tests.calls import refusals

TWO_PI = 2 * np.pi


def circle(n):
    """n points. From 600 on, sums of the heat kernels here are integrals: more points change nothing."""
    angle = TWO_PI * np.arange(n) / n
    return np.column_stack([np.cos(angle), np.sin(angle)]), angle


def tuples(n, h, count=6, seed=0):
    return np.random.default_rng(seed).integers(0, n, (count, h))


def test_gaussian_and_biclique_heat_kernels():
    x, y = np.array([[0.0, 1.0]]), np.array([[2.0, 1.0]])
    expected = np.exp(-4 / (4 * 0.3)) / (4 * np.pi * 0.3)
    assert HeatKernel(0.3, 2).block(x, y)[0, 0] == pytest.approx(expected)
    assert biclique_heat_kernel(np.repeat(x, 3, axis=0), np.repeat(y, 3, axis=0), 0.3, 2) == pytest.approx(9 * expected)


@pytest.mark.parametrize("h", [1, 2, 3])
def test_the_fast_laplacian_is_the_definition(h):
    X = np.random.default_rng(0).normal(size=(6, 2))  # g is far from constant here, and F is not zero
    f = np.random.default_rng(1).normal(size=6)
    laplacian = HeatLaplacian(X, 0.4, 2 * h, 2)
    where = tuples(6, h)
    np.testing.assert_allclose(laplacian.apply(f, where), laplacian.by_definition(f, where))


@pytest.mark.parametrize("h", [1, 2, 3])
def test_the_energy_is_the_sum_over_all_tuples(h):
    X = np.random.default_rng(0).normal(size=(5, 2))
    f = np.random.default_rng(1).normal(size=5)
    laplacian = HeatLaplacian(X, 0.4, 2 * h, 2)
    every = np.stack(np.meshgrid(*[np.arange(5)] * h, indexing="ij"), axis=-1).reshape(-1, h)
    values = f[every].sum(axis=1)
    assert laplacian.energy(f) == pytest.approx(values @ laplacian.apply(f, every))
    # The form printed in the paper factorises, so it vanishes for a mean-zero function.
    centred = f - f.mean()
    printed = laplacian.apply(centred, every).sum() * centred[every].sum(axis=1).sum()
    assert abs(printed) < 1e-9 < abs(laplacian.energy(centred))


@pytest.mark.parametrize("h", [1, 2, 3])
def test_with_constant_g_it_is_h_copies_of_one_variable(h):
    X, angle = circle(60)
    f = np.cos(3 * angle)
    one, many = HeatLaplacian(X, 0.05, 2, 1), HeatLaplacian(X, 0.05, 2 * h, 1)
    where = tuples(60, h)
    single = one.apply(f, np.arange(60)[:, None])
    np.testing.assert_allclose(many.apply(f, where), h * 60.0 ** (h - 1) * single[where].sum(axis=1), atol=1e-6 * 60**h)


@pytest.mark.parametrize("h", [1, 2, 3])
def test_theorem_2_on_the_circle_with_its_factor(h):
    # Δ cos(jθ) = j² cos(jθ) on the unit circle; the factor is vol/(h nʰ t), not C/(n t).
    X, angle = circle(600)
    laplacian = HeatLaplacian(X, 1e-3, 2 * h, 1)
    where = tuples(600, h)
    for j in (1, 2):
        f = np.cos(j * angle)
        expected = j**2 * f[where].sum(axis=1)
        found = laplacian.factor(TWO_PI) * laplacian.apply(f, where)
        np.testing.assert_allclose(found, expected, atol=0.02 * j**2 * h)


@pytest.mark.parametrize("h", [1, 2, 3])
def test_proposition_3_the_limits_as_t_vanishes(h):
    # (vol/n)ʰ Σ_y H f(y) → h vol^(h−1) f(x) for mean-zero f, and (vol/n)ʰ Σ_y H(x; y) → h² vol^(h−1).
    n = 600
    X, angle = circle(n)
    where = tuples(n, h)
    for t, tolerance in ((1e-2, 3e-2), (1e-3, 4e-3)):
        laplacian = HeatLaplacian(X, t, 2 * h, 1)
        f = np.cos(angle)
        mean = (TWO_PI / n) ** h * laplacian.average(f, where)
        limit = h * TWO_PI ** (h - 1) * f[where].sum(axis=1)
        np.testing.assert_allclose(mean, limit, atol=tolerance * h**2 * TWO_PI ** (h - 1))
        # average of the constant f' = 1/h is Σ_y H(x; y)
        ones = (TWO_PI / n) ** h * laplacian.average(np.full(n, 1 / h), where)
        np.testing.assert_allclose(ones, h**2 * TWO_PI ** (h - 1), rtol=tolerance)


@pytest.mark.parametrize("h", [1, 2])
def test_the_limits_of_proposition_3_are_those_of_the_sum_over_all_tuples(h):
    # Sums over all tuples at two small times; what is missing to the limit halves with t, so that 2a − b has no term t.
    n = 48
    X, angle = circle(n)
    for f in (np.cos(angle), np.cos(angle) + 0.3):  # of mean zero, and not
        for x in ([5] * h, list(range(h))):
            a, b = ((TWO_PI / n) ** h * oracles.heat_average(X, f, x, t, 1) for t in (0.01, 0.02))
            limit = heat_limit(f, np.array([x]), TWO_PI)[0]
            assert abs(b - limit) > 1.8 * abs(a - limit)
            assert 2 * a - b == pytest.approx(limit, rel=1e-3)
            # Prop. 3 says that this is f(x)/h times the mass, which needs mean zero from two variables on.
            claimed = heat_mass_limit(2 * h, TWO_PI) / h * f[x].sum()
            assert (limit == pytest.approx(claimed)) == (h == 1 or abs(f.mean()) < 1e-9)
    a, b = ((TWO_PI / n) ** h * oracles.heat_average(X, np.full(n, 1 / h), [0] * h, t, 1) for t in (0.01, 0.02))
    assert 2 * a - b == pytest.approx(heat_mass_limit(2 * h, TWO_PI), rel=1e-3)


@pytest.mark.parametrize("h", [1, 2])
def test_heat_flow_is_the_sum_over_all_tuples(h):
    n, t = 12, 0.3
    X, angle = circle(n)
    f = np.cos(angle) + np.sin(2 * angle)
    scale = (TWO_PI / n) ** h / (h * TWO_PI ** (h - 1))
    flow = heat_flow(X, f, t, 2 * h, 1, TWO_PI)
    for x in ([3] * h, list(range(h))):  # U is decomposable: u' of one point serves every tuple, as g is constant here
        assert flow[x].sum() == pytest.approx(scale * oracles.heat_average(X, f, x, t, 1))


@pytest.mark.parametrize("h", [1, 2, 3])
def test_heat_flow_is_that_of_the_heat_equation(h):
    X, angle = circle(600)
    t = 5e-3
    for j in (1, 2, 3):
        f = np.cos(j * angle)
        once = heat_flow(X, f, t, 2 * h, 1, TWO_PI)
        np.testing.assert_allclose(once, np.exp(-(j**2) * t) * f, atol=5e-3)
        twice = heat_flow(X, once, t, 2 * h, 1, TWO_PI)
        np.testing.assert_allclose(twice, heat_flow(X, f, 2 * t, 2 * h, 1, TWO_PI), atol=5e-3)


@pytest.mark.parametrize("h", [1, 2, 3])
def test_the_energy_of_the_function_is_that_of_the_heat_kernel_over_t(h):
    # S₂(f) = mean of f Δf; (1/t) S₂(H_t, f) with the factor of the theorem, averaged over tuples.
    n = 600
    X, angle = circle(n)
    laplacian = HeatLaplacian(X, 1e-3, 2 * h, 1)
    f = np.cos(2 * angle)
    found = laplacian.factor(TWO_PI) * laplacian.energy(f) / float(n) ** h
    assert found == pytest.approx(4 * h * 0.5, rel=0.02)  # Δf = 4f, and the mean of f² is h/2


def test_on_an_ellipse_order_4_fails():
    # g is not constant there: the sum over γ of g times the sum of f' mixes points. The sign itself is wrong somewhere.
    n = 3000
    angle = TWO_PI * np.arange(n) / n
    axes = np.array([3.0, 0.5])
    arc = np.cumsum(np.hypot(*(axes[:, None] * [np.sin(angle), np.cos(angle)])))
    even = np.interp(np.linspace(0, arc[-1], n, endpoint=False), arc, angle)
    X = axes * np.column_stack([np.cos(even), np.sin(even)])
    s = TWO_PI * np.arange(n) / n
    length = arc[-1] * TWO_PI / n
    f, expected = np.cos(s), (TWO_PI / length) ** 2 * np.cos(s)
    where = np.array([[0, 0], [300, 300], [0, 500], [700, 300]])
    two = HeatLaplacian(X, 2e-3, 2, 1)
    one_variable = two.factor(length) * two.apply(f, np.arange(n)[:, None])
    smooth = np.abs(one_variable - expected).max()
    assert smooth < 0.25 * np.abs(expected).max()
    four = HeatLaplacian(X, 2e-3, 4, 1)
    found = four.factor(length) * four.apply(f, where)
    wanted = expected[where].sum(axis=1)
    assert np.abs(found - wanted).max() > 5 * np.abs(wanted).max()
    assert (np.sign(found) != np.sign(wanted)).any()


TEN, ANGLE = circle(10)
HEAT = HeatLaplacian(TEN, 0.1, 4, 1)
MANY = HeatLaplacian(circle(2000)[0], 0.1, 4, 1)


test_bad_arguments = refusals(
    (lambda: HeatLaplacian(TEN, 0.0, 4, 1), ParameterError, "t must be positive"),
    (lambda: HeatLaplacian(TEN, 0.1, 3, 1), ParameterError, "must be even"),
    (lambda: HEAT.apply(np.ones(3), np.zeros((1, 2), int)), DataError, "one value for each point"),
    (lambda: HEAT.apply(np.ones(10), np.zeros((1, 3), int)), DataError, r"shape \(p, 2\)"),
    (lambda: MANY.by_definition(np.ones(2000), np.zeros((1, 2), int)), MemoryLimitError, "use apply"),
    (lambda: heat_flow(TEN, np.cos(ANGLE) + 1, 0.1, 4, 1, TWO_PI), DataError, r"mean zero, got 1: pass f - f\.mean"),
    (lambda: heat_limit(np.cos(ANGLE), np.zeros(3, int), TWO_PI), DataError, r"row numbers \(p, h\)"),
    (lambda: heat_mass_limit(3, TWO_PI), ParameterError, "must be even"),
)


def test_the_contracted_form_of_the_laplacian_is_not_exact():
    # The paper contracts L to D/h − A acting on f', with A the contraction of the heat tensor and D its degrees. By
    # definition Σ over x₂..x_h of L f(x) is another vector: f(x) brings in the other points of the same half.
    n, h = 5, 2
    X = np.random.default_rng(0).normal(size=(n, 2))
    f = np.random.default_rng(1).normal(size=n)
    f -= f.mean()
    laplacian = HeatLaplacian(X, 0.4, 2 * h, 2)
    every = np.stack(np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), axis=-1).reshape(-1, h)
    by_definition = laplacian.by_definition(f, every).reshape(n, n).sum(axis=1)
    A = biclique_gram(HeatKernel(0.4, 2).block(X, X), 2 * h, scaled=True)
    contracted = A.sum(axis=1) / h * f - A @ f
    assert np.abs(by_definition - contracted).max() > 0.1 * np.abs(by_definition).max()
