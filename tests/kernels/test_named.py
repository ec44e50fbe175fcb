import warnings
from contextlib import suppress

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import DataError, ParameterError
from biclique.kernels import RBF, Columns, Polynomial
from biclique.kernels.held import HeldRows, float32_error
from biclique.kernels.kernel import nonnegative
from biclique.kernels.named import KERNEL_NAMES, make_kernel
from tests.calls import refuses

GAMMA, DEGREE, COEF0 = 0.3, 3, 1.5

OWN = {"gower"}
"""Names that scikit-learn does not have."""

POSITIVE = {"rbf", "laplacian", "chi2", "gower"}
"""Kernels without negative values, whatever the rows and parameters."""


def reference(name, X, Y):
    return pairwise_kernels(X, Y, metric=name, filter_params=True, gamma=GAMMA, degree=DEGREE, coef0=COEF0)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.random((23, 4)), rng.random((11, 4))


def test_every_name_of_scikit_learn_is_known():
    assert set(KERNEL_NAMES) == {*PAIRWISE_KERNEL_FUNCTIONS, *OWN}


@pytest.mark.parametrize("name", sorted(set(KERNEL_NAMES) - OWN))
def test_block_and_diagonal_are_scikit_learns(name, rows):
    X, Y = rows
    kernel = make_kernel(name, gamma=GAMMA, degree=DEGREE, coef0=COEF0)
    np.testing.assert_allclose(kernel.block(X, Y), reference(name, X, Y), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(reference(name, X, X)), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("degree", [2, 3, 4, 2.5])
@pytest.mark.parametrize("coef0", [1.5, -1.5])
@pytest.mark.parametrize("signs", ["none negative", "both"])
@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_kernels_know_when_no_value_is_negative(name, signs, coef0, degree, rows):
    X = rows[0] if signs == "none negative" or "chi2" in name else rows[0] - 0.5
    kernel = make_kernel(name, gamma=GAMMA, degree=degree, coef0=coef0, columns=Columns.of(X))
    with np.errstate(invalid="ignore"):
        true = bool((kernel.block(X, X) >= 0).all())
    if nonnegative(kernel, X):
        assert true
    # Said wherever it follows from the kernel, or from rows and parameters without a minus sign.
    always = name in POSITIVE or ("poly" in name and degree % 2 == 0)
    plain = signs == "none negative" and (coef0 > 0 or name in ("linear", "cosine")) and name != "additive_chi2"
    assert nonnegative(kernel, X) == (always or plain)
    if kernel.accepts_sparse:
        assert nonnegative(kernel, sparse.csr_array(X)) == nonnegative(kernel, X)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 7, 2.5, 20])
def test_every_degree_is_the_power(degree, rows):
    X, Y = rows
    expected = (GAMMA * X @ Y.T + COEF0) ** degree
    np.testing.assert_allclose(Polynomial(GAMMA, COEF0, degree).block(X, Y), expected, rtol=1e-12)


def test_function_of_two_rows_with_parameters(rows):
    X, Y = rows
    kernel = make_kernel(lambda x, y, scale: scale * float(x @ y), gamma=None, kernel_params={"scale": 2.0})
    np.testing.assert_allclose(kernel.block(X, Y), 2 * X @ Y.T)
    np.testing.assert_allclose(kernel.diagonal(X), 2 * np.sum(X**2, axis=1))


def error_in_float32(kernel, X):
    return float32_error(HeldRows(kernel, X, np.float32), X)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 50.0])
def test_the_error_of_float32_is_a_bound(gamma):
    X = np.random.default_rng(0).normal(size=(100, 5)) * 3
    kernel = RBF(gamma)
    exact = kernel.block(X, X)
    single = kernel.block(X.astype(np.float32), X.astype(np.float32))
    spread = np.abs(exact - exact.mean(axis=0) - exact.mean(axis=1)[:, None] + exact.mean()).max()
    found = error_in_float32(kernel, X)
    assert 1 <= found * spread / np.abs(single - exact).max() < 20
    pair = 1e7 + np.outer([0, gamma**-0.5], np.ones(5))  # far out, and alike
    far = np.append(np.repeat(X, 50, axis=0), pair, axis=0)
    assert error_in_float32(kernel, far) > 0.01


@pytest.mark.parametrize(("offset", "worse"), [(0.0, False), (1e5, True)])
def test_the_error_of_float32_of_linear_sees_an_offset(offset, worse):
    X = np.random.default_rng(0).normal(size=(50, 3)) + offset
    assert (error_in_float32(make_kernel("linear", gamma=None), X) > 1e-4) == worse


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("held", [np.asarray, sparse.csr_array])
def test_cosine_of_rows_in_any_unit(dtype, held):
    X = np.random.default_rng(0).normal(size=(8, 3))
    expected = make_kernel("cosine", gamma=None).block(X, X)
    # Every row in a unit of its own, close to the ends of the precision; a zero row is like none.
    ends = np.finfo(dtype)
    units = np.geomspace(100 * float(ends.tiny), float(ends.max) / 100, 8)
    rows = np.append(X * units[:, None], np.zeros((1, 3)), axis=0).astype(dtype)
    rows.setflags(write=False)
    found = make_kernel("cosine", gamma=None).block(held(rows), held(rows))
    assert found.dtype == dtype
    np.testing.assert_allclose(found[:8, :8], expected, atol=1e-6 if dtype == np.float32 else 1e-14)
    assert not found[8].any()


def test_cosine_of_whole_numbers():
    X = np.array([[3, 4], [0, 2]])
    for rows in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(make_kernel("cosine", gamma=None).block(rows, rows), [[1, 0.8], [0.8, 1]])


@pytest.mark.parametrize("scale", [1e-25, 1e15])
def test_rbf_does_not_care_about_units_in_float32(scale):
    X = np.random.default_rng(0).normal(size=(20, 3))
    expected = RBF(0.5).block(X, X)
    tiny = (X * scale).astype(np.float32)
    np.testing.assert_allclose(RBF(0.5 / scale**2).block(tiny, tiny), expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("affinity", "options"),
    [
        ("polynomial", {"degree": 1e308}),
        ("polynomial", {"degree": 400}),
        ("polynomial", {"degree": 2.5}),
        ("polynomial", {"coef0": 1e200}),
        ("polynomial", {"gamma": 1e308}),
        ("polynomial", {"gamma": 1e200}),
        ("sigmoid", {"gamma": 1e308}),
        ("rbf", {"gamma": 1e308}),
        ("laplacian", {"gamma": 1e308}),
        ("chi2", {"gamma": 1e308}),
        ("linear", {}),
    ],
)
def test_huge_values_are_no_warning_of_numpys(affinity, options):
    X = np.random.default_rng(0).standard_normal((60, 3))
    X = np.abs(X) if affinity == "chi2" else X
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        for scale in (1, 1e100, 1e150):
            for gram in ("dense", "tiled"):
                model = BicliqueSpectralClustering(2, affinity=affinity, gram=gram, random_state=0, **options)
                with suppress(DataError):
                    model.fit(scale * X)


def test_the_error_of_huge_values_names_a_cure():
    X = np.random.default_rng(0).standard_normal((60, 3))
    for options in ({"degree": 1e308}, {"coef0": 1e200}, {"gamma": 1e200}):
        with pytest.raises(DataError, match="scale the columns of X, lower gamma or degree"):
            BicliqueSpectralClustering(2, affinity="polynomial", **options).fit(X)


@pytest.mark.parametrize("value", [10**400, np.inf])
@pytest.mark.parametrize("name", ["gamma", "degree", "coef0"])
def test_parameters_that_no_float_holds(name, value):
    refuses(ParameterError, f"{name} must be a finite number", make_kernel, "polynomial", **{"gamma": 1.0, name: value})
