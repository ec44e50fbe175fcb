import numpy as np
import pytest

from biclique.exceptions import DataError, MemoryLimitError, ParameterError
from biclique.multiway import (
    biclique_gram,
    contract,
    gram_tensor,
    is_half_symmetric,
    is_symmetric,
    mode_product,
    semidefiniteness,
    tensor_form,
)
from tests import oracles
from tests.calls import refusals


def kernel_matrix(n=4, rank=None, seed=0):
    F = np.random.default_rng(seed).normal(size=(n, rank or n))
    return F @ F.T


def no_kernel(n=4, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A + A.T - 3 * np.eye(n)


@pytest.mark.parametrize(("n", "m"), [(5, 2), (4, 4), (3, 6)])
def test_gram_tensor_is_the_definition(n, m):
    K = no_kernel(n)
    np.testing.assert_allclose(gram_tensor(K, m), oracles.gram_tensor(K, m))


def test_mode_product_keeps_the_mode_with_size_one():
    A = np.random.default_rng(0).normal(size=(2, 3, 4))
    x = np.arange(3.0)
    out = mode_product(A, x, 1)
    assert out.shape == (2, 1, 4)
    for i in range(2):
        for k in range(4):
            assert out[i, 0, k] == pytest.approx(sum(A[i, j, k] * x[j] for j in range(3)))


@pytest.mark.parametrize(("n", "m"), [(5, 2), (4, 4), (3, 6)])
def test_the_biclique_contraction_is_one_mode_of_each_half(n, m):
    K = no_kernel(n)
    tensor = gram_tensor(K, m)
    np.testing.assert_allclose(contract(tensor, (0, m // 2)), oracles.contracted(tensor))
    np.testing.assert_allclose(contract(tensor, (0, m // 2)), biclique_gram(K, m, scaled=True))
    for i in range(m // 2):
        for j in range(m // 2, m):
            np.testing.assert_allclose(contract(tensor, (i, j)), contract(tensor, (0, m // 2)))


def test_contraction_by_mode_products_and_its_transpose():
    A = np.random.default_rng(0).normal(size=(3, 3, 3))
    ones = np.ones(3)
    np.testing.assert_allclose(contract(A, (0, 2)), mode_product(A, ones, 1)[:, 0])
    np.testing.assert_allclose(contract(A, (2, 0)), contract(A, (0, 2)).T)


@pytest.mark.parametrize("m", [4, 6])
def test_within_one_half_the_contraction_is_another(m):
    # h n^(m−3)(δ1ᵀ + 1δᵀ) + h(h−2) n^(m−4) ρ: the GD contraction of a biclique tensor holds no K at all.
    K, n, h = kernel_matrix(), 4, m // 2
    degrees = K.sum(axis=1)
    expected = h * n ** (m - 3) * (degrees[:, None] + degrees) + h * (h - 2) * n ** (m - 4) * K.sum()
    np.testing.assert_allclose(contract(gram_tensor(K, m), (0, 1)), expected)


def test_the_appendix_examples_of_half_symmetry():
    tensor = gram_tensor(no_kernel(4), 4)
    assert is_half_symmetric(tensor)
    assert not is_symmetric(tensor)
    for equal in (
        ["1234", "2134", "1243", "2143", "3412", "4312", "3421", "4321"],
        ["1123", "1132", "2311", "3211"],
        ["1213", "2113", "1231", "2131", "1312", "3112", "1321", "3121"],
    ):
        values = [tensor[tuple(int(c) - 1 for c in index)] for index in equal]
        np.testing.assert_allclose(values, values[0])


def test_a_swap_of_the_halves_alone_is_not_half_symmetry():
    # The paper's Eq. 1 read literally would accept this one.
    rng = np.random.default_rng(0)
    A = rng.normal(size=(9, 9))
    tensor = (A + A.T).reshape(3, 3, 3, 3)
    np.testing.assert_allclose(tensor, tensor.transpose(2, 3, 0, 1))
    assert not is_half_symmetric(tensor)


def test_symmetric_tensors():
    for m in (2, 3, 4):
        assert is_symmetric(oracles.symmetric_tensor(no_kernel(3), m))
    assert is_half_symmetric(oracles.symmetric_tensor(no_kernel(3), 4))


@pytest.mark.parametrize(("n", "m"), [(5, 2), (4, 4), (3, 6)])
def test_the_certificate_is_an_identity(n, m):
    # 𝒦 v^m = h² (1ᵀv)^(m−2) vᵀK v
    K = no_kernel(n)
    tensor = gram_tensor(K, m)
    for seed in range(5):
        v = np.random.default_rng(seed).normal(size=n)
        assert tensor_form(tensor, v) == pytest.approx((m / 2) ** 2 * v.sum() ** (m - 2) * (v @ K @ v))


@pytest.mark.parametrize("m", [2, 4, 6])
def test_theorem_1_both_ways(m):
    n = 3
    for rank in (1, 2, 3):
        found = semidefiniteness(gram_tensor(kernel_matrix(n, rank), m))
        assert found.verdict is True
        assert "biclique kernel" in found.reason
    K = no_kernel(n)
    found = semidefiniteness(gram_tensor(K, m))
    assert found.verdict is False
    assert tensor_form(gram_tensor(K, m), found.witness) < 0


@pytest.mark.parametrize("m", [4, 6])
def test_theorem_1_where_the_negative_direction_sums_to_zero(m):
    # K is negative only along (1, −1): 𝒦 v^m vanishes there, but not beside it.
    v = np.array([1.0, -1.0]) / np.sqrt(2)
    K = np.full((2, 2), 5.0) - np.outer(v, v)
    found = semidefiniteness(gram_tensor(K, m))
    assert found.verdict is False
    assert tensor_form(gram_tensor(K, m), found.witness) < 0


def test_sampling_refutes_but_never_proves():
    squares = np.zeros((2, 2, 2, 2))
    for i in range(2):
        for j in range(2):
            squares[i, i, j, j] = 1.0  # (v·v)², semi-definite, but not a biclique kernel's
    assert semidefiniteness(squares, random_state=0).verdict is None
    found = semidefiniteness(-squares, random_state=0)
    assert found.verdict is False
    assert tensor_form(-squares, found.witness) < 0


CUBE = np.ones((2, 2, 2))
TOO_LARGE = r"order 4 over 1000 points needs 7\.276 TiB \(8000000000000 bytes\)"


test_refused_with_a_reason = refusals(
    (lambda: gram_tensor(np.eye(1000), 4), MemoryLimitError, TOO_LARGE),
    (lambda: gram_tensor(np.eye(3), 3), ParameterError, r"order must be even here, got 3.*symmetric"),
    (lambda: mode_product(CUBE, np.ones(2), 3), DataError, "mode 3 of a tensor"),
    (lambda: contract(CUBE, (1, 1)), ParameterError, "two different modes from 0 to 2"),
    (lambda: is_half_symmetric(CUBE), ParameterError, "even number of modes, got 3"),
    (lambda: semidefiniteness(CUBE), ParameterError, "odd order 3 is never semi-definite"),
)
