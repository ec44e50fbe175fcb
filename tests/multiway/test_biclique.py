import numpy as np
import pytest

from biclique.exceptions import DataError, ParameterError
from biclique.gram.tiled import TiledGram
from biclique.kernels import RBF, Linear, Polynomial
from biclique.multiway import (
    SymmetricGram,
    base_gram,
    biclique_degrees,
    biclique_features,
    biclique_gram,
    biclique_kernel,
    contract,
    symmetric_gram,
    symmetric_kernel,
)
from tests import oracles
from tests.calls import refusals

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3))
K = RBF(0.3).block(X, X)


def test_the_kernel_of_four_points_written_out():
    kernel = RBF(0.3)
    a, b, c, d = X[:4]

    def k(x, y):
        return np.exp(-0.3 * np.sum((x - y) ** 2))

    expected = k(a, c) + k(a, d) + k(b, c) + k(b, d)
    assert biclique_kernel(kernel, [a, b], [c, d]) == pytest.approx(expected)
    assert biclique_kernel(k, [a, b], [c, d]) == pytest.approx(expected)
    assert symmetric_kernel(k, [a, b, c]) == pytest.approx(symmetric_kernel(kernel, [a, b, c]))


@pytest.mark.parametrize("m", [2, 2.5, 4, 10, 1000])
def test_gram_features_degrees_and_inverse_agree(m):
    n = len(K)
    Km = biclique_gram(K, m)
    c = (m - 2) / 2
    P = np.eye(n) + c / n
    np.testing.assert_allclose(Km, P @ K @ P)
    Phi = np.linalg.cholesky(K)
    features = biclique_features(Phi, m)
    np.testing.assert_allclose(features @ features.T, Km, atol=1e-9 * m**2)
    np.testing.assert_allclose(biclique_degrees(K.sum(axis=1), m), Km.sum(axis=1))
    np.testing.assert_allclose(base_gram(Km, m), K, atol=1e-12 * m**2)


@pytest.mark.parametrize("m", [2, 4, 6])
def test_the_factor_on_request(m):
    np.testing.assert_allclose(biclique_gram(K, m, scaled=True), 6.0 ** (m - 2) * biclique_gram(K, m))
    scaled = biclique_gram(K, m, scaled=True)
    np.testing.assert_allclose(biclique_degrees(K.sum(axis=1), m, scaled=True), scaled.sum(axis=1))
    np.testing.assert_allclose(base_gram(scaled, m, scaled=True), K)


@pytest.mark.parametrize("m", [4, 8, 100])
def test_corollary_1_the_contraction_is_semidefinite(m):
    assert np.linalg.eigvalsh(biclique_gram(K, m))[0] > -1e-10
    indefinite = K - 0.9 * np.eye(6)
    assert np.linalg.eigvalsh(biclique_gram(indefinite, m))[0] < 0  # and only then


def test_the_reproducing_property():
    # f(x; ·) = Σ_γ κ(x_γ, ·) as a function of h points: ⟨κ^(m)(x; ·), κ^(m)(t; ·)⟩ = κ^(m)(x; t), features summed.
    kernel = Linear()
    first, second = X[:3], X[3:]
    psi = first.sum(axis=0)
    assert biclique_kernel(kernel, first, second) == pytest.approx(psi @ second.sum(axis=0))
    coefficients, centres = RNG.normal(size=4), RNG.normal(size=(4, 3, 3))
    f_at_x = sum(a * biclique_kernel(kernel, t, first) for a, t in zip(coefficients, centres, strict=True))
    representer = sum(a * t.sum(axis=0) for a, t in zip(coefficients, centres, strict=True))
    assert f_at_x == pytest.approx(representer @ psi)


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_symmetric_contraction_is_the_definition_for_odd_orders_too(m):
    small = K[:4, :4]
    tensor = oracles.symmetric_tensor(small, m)
    expected = contract(tensor, (0, 1))
    np.testing.assert_allclose(symmetric_gram(small, m, scaled=True), expected)
    np.testing.assert_allclose(symmetric_gram(small, m) * 4.0 ** (m - 2), expected)
    assert symmetric_kernel(RBF(0.3), X[:m]) == pytest.approx(K[:m, :m].sum() / 4)


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_the_papers_closed_form_of_the_symmetric_model_is_another_matrix(m):
    Phi = np.linalg.cholesky(K)
    shifted = Phi + (m - 1) * Phi.mean(axis=0)
    assert not np.allclose(shifted @ shifted.T / 4, symmetric_gram(K, m), rtol=1e-2)


@pytest.mark.parametrize(
    ("kernel", "m"), [(Polynomial(1.0, 0.0, 3), 4), (RBF(0.1), 20)], ids=["polynomial", "rbf, order 20"]
)
def test_the_symmetric_contraction_can_be_indefinite(kernel, m):
    Y = np.random.default_rng(1).normal(size=(100, 3))
    values = np.linalg.eigvalsh(symmetric_gram(kernel.block(Y, Y), m))
    assert values[0] < -1e-10 * values[-1]


@pytest.mark.parametrize("m", [2, 3, 7])
def test_weights_of_the_symmetric_operator_and_its_cross_are_repeated_rows(m):
    rows = RNG.normal(size=(40, 3))
    weights = np.arange(1.0, 41.0) % 3 + 1
    repeated = np.repeat(np.arange(40), weights.astype(int))
    dense = RBF(0.3).block(rows, rows)
    whole = symmetric_gram(dense[np.ix_(repeated, repeated)], m)
    first = np.unique(repeated, return_index=True)[1]
    expected = whole[np.ix_(first, first)]
    V = RNG.normal(size=(40, 4))
    gram = SymmetricGram(TiledGram(RBF(0.3), rows, dtype=float), m, weights)
    np.testing.assert_allclose(gram.matmat(V), expected @ V, atol=1e-10)
    np.testing.assert_allclose(gram.diagonal(), np.diagonal(expected))
    cross = gram.cross(rows[:7])
    np.testing.assert_allclose(cross.matmat(V), expected[:7] @ V, atol=1e-10)
    np.testing.assert_allclose(cross.diagonal(), np.diagonal(expected)[:7])


SMALL = np.eye(3) + 1
SYMMETRIC = "too large for the symmetric model"
SCALED = r"order=3000 with scaled=True multiplies by 3\^2998"


test_refused_with_a_reason = refusals(
    (lambda: biclique_kernel(RBF(0.3), X[:2], X[:3]), DataError, "one shape"),
    (lambda: biclique_gram(K, np.inf), ParameterError, "finite"),
    (lambda: base_gram(K, 1), ParameterError, "at least 2"),
    (lambda: biclique_gram(K[:2], 4), DataError, "square"),
    (lambda: symmetric_gram(K, 2.5), ParameterError, "whole number"),
    (lambda: symmetric_gram(SMALL, 1e200), ParameterError, SYMMETRIC),
    (lambda: symmetric_gram(SMALL, 10**300), ParameterError, SYMMETRIC),
    (lambda: symmetric_gram(SMALL, 1e308), ParameterError, SYMMETRIC),
    (lambda: symmetric_gram(SMALL, 10**400), ParameterError, "pass inf"),
    (lambda: symmetric_gram(SMALL, -(10**400)), ParameterError, "at least 2, got -1e"),
    (lambda: symmetric_gram(SMALL, 3000, scaled=True), ParameterError, SCALED),
    (lambda: biclique_gram(SMALL, 3000, scaled=True), ParameterError, SCALED),
    (lambda: base_gram(SMALL, 3000, scaled=True), ParameterError, SCALED),
    (lambda: biclique_degrees(np.ones(3), 3000, scaled=True), ParameterError, "scaled=True"),
    (lambda: symmetric_gram(SMALL * 8e307, 5), DataError, "K_s leaves the range of numbers: divide K"),
    (lambda: symmetric_kernel(Linear(), [[1e200], [1e200]]), DataError, "scale their columns"),
)
