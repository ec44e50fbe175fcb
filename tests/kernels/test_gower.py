"""The Gower kernel against its definition, value by value."""

import numpy as np
import pytest

from biclique.exceptions import DataError, ParameterError
from biclique.kernels import Columns, Gower
from biclique.kernels.gamma_rules import bandwidth
from biclique.kernels.held import HeldRows, float32_error
from biclique.kernels.named import make_kernel
from tests.oracles import gower_distance, gower_kernel, gower_ranges

GAMMA = 1.7


def table(n, gaps=0.0, seed=0, shift=0.0):
    """Three columns of numbers, one that is constant, two of categories; read-only."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=(n, 2)), 1e3 * rng.random(n) + shift, np.full(n, 5.0), rng.integers(0, 3, (n, 2))]
    )
    X[rng.random(X.shape) < gaps] = np.nan
    X.setflags(write=False)
    return X


MASK = np.array([False, False, False, False, True, True])


def kernel_of(X, mask=MASK, gamma=GAMMA):
    return Gower(gamma=gamma, columns=Columns.of(X, mask))


@pytest.mark.parametrize("gaps", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("mask", [MASK, ~MASK, np.zeros(6, bool), np.ones(6, bool)])
def test_block_is_the_definition(gaps, mask):
    X, Y = table(23, gaps), table(9, gaps, seed=1)
    expected = gower_kernel(Y, X, GAMMA, mask)
    np.testing.assert_allclose(kernel_of(X, mask).block(Y, X), expected, rtol=1e-12)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-6)])
def test_rows_as_they_are_held_keep_their_digits_far_from_zero(gaps, dtype, tolerance):
    X, Y = table(40, gaps, shift=1e9), table(7, gaps, seed=1, shift=1e9)
    held = HeldRows(kernel_of(X), X, dtype)
    found = held.kernel.block(held.hold(Y), held.rows)
    np.testing.assert_allclose(found, gower_kernel(Y, X, GAMMA, MASK), rtol=tolerance * 10)
    assert float32_error(HeldRows(held.kernel, X, np.float32), X) < 1e-4


def test_a_range_that_float32_does_not_hold_asks_for_float64():
    X = np.array(table(20))
    X[:, 0] *= 1e-50
    assert float32_error(HeldRows(kernel_of(X), X, np.float32), X) > 0.01
    X[:] = 7.0
    assert float32_error(HeldRows(kernel_of(X), X, np.float32), X) == 1.0  # all rows are the same


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_without_gaps_no_eigenvalue_is_negative_and_a_row_is_like_itself(gaps):
    X = table(60, gaps)
    K = kernel_of(X, gamma=5.0).block(X, X)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    np.testing.assert_allclose(K, K.T, rtol=1e-13)
    lowest = np.linalg.eigvalsh(K)[0]
    assert lowest > -1e-12 if gaps == 0 else lowest < -1e-3


def test_new_rows_beyond_the_range_and_unseen_categories():
    X = np.array([[0.0, 1.0, 3.0], [10.0, 2.0, 3.0]])
    kernel = Gower(gamma=1.0, columns=Columns.of(X, np.array([False, True, False])))
    new = np.array([[30.0, 7.0, 4.0]])  # 3 and 2 ranges away, a category of its own, not the constant
    np.testing.assert_allclose(kernel.distances(new, X), [[5 / 3, 4 / 3]])


def test_ranges_of_parts_are_those_of_the_whole():
    X = np.array(table(30, 0.5))
    X[:10, 0] = np.nan
    parts = Columns.of(X[:10], MASK).joined(Columns.of(X[10:20], MASK)).joined(Columns.of(X[20:], MASK))
    whole = Columns.of(X, MASK)
    np.testing.assert_array_equal(parts.low, whole.low)
    np.testing.assert_array_equal(parts.high, whole.high)
    np.testing.assert_allclose(whole.span, gower_ranges(X))


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_auto_bandwidth_looks_at_gower_distances_that_are_positive(gaps):
    X = np.unique(table(50, gaps), axis=0)
    ranges = gower_ranges(X)
    q = np.array([[gower_distance(x, y, ranges, MASK) for y in X] for x in X])
    np.fill_diagonal(q, np.inf)
    seventh = np.sort(q, axis=1)[:, 6]
    found = bandwidth("auto", kernel_of(X), X, np.ones(len(X)), 0)
    assert found == pytest.approx(0.2 / np.median(seventh[seventh > 0]))
    pairs = q[np.triu_indices(len(X), 1)]
    assert bandwidth("median", kernel_of(X), X, np.ones(len(X)), 0) == pytest.approx(1 / np.median(pairs[pairs > 0]))
    with pytest.raises(ParameterError, match=r"gamma='scale'.*'auto' or 'median'"):
        bandwidth("scale", kernel_of(X), X, np.ones(len(X)), 0)


@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_near_rows_are_those_of_least_distance(gaps):
    X, Y = table(1100, gaps), table(5, gaps, seed=1)
    kernel = kernel_of(X)
    gap, near = kernel.nearest(Y, X, 3)
    q = kernel.distances(Y, X)
    np.testing.assert_array_equal(near, np.argsort(q, axis=1, kind="stable")[:, :3])
    np.testing.assert_array_equal(gap, np.sort(q, axis=1)[:, :3])


@pytest.mark.parametrize("value", [-1.0, 0.5, 2.0**24])
def test_codes_that_are_no_codes_are_named(value):
    X = np.array(table(8))
    X[3, 5] = value
    columns = Columns.of(X, MASK)
    with pytest.raises(DataError, match=rf"column 5 \('colour'\) has {value:.10g} in row 103.*OrdinalEncoder"):
        columns.check_rows(X, range(100, 108), ["a", "b", "c", "d", "e", "colour"])
    columns.check_rows(np.delete(X, 3, axis=0), range(7), None)


def test_a_million_levels_are_told_apart_in_float32():
    codes = np.arange(1_000_000, dtype=np.float64)[::250_000][:, None] + [[0.0], [1.0], [2.0], [3.0]]
    held = HeldRows(Gower(gamma=1.0, columns=Columns.of(codes, np.array([True]))), codes, np.float32)
    np.testing.assert_allclose(held.kernel.distances(held.rows, held.rows), 1 - np.eye(4))


def test_a_name_alone_says_that_ranges_are_needed():
    with pytest.raises(ParameterError, match=r"needs the ranges of the columns.*Columns\.of\(X\)"):
        make_kernel("gower", gamma=1.0).block(np.ones((2, 2)), np.ones((2, 2)))
