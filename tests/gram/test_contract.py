"""Gram operators of every kernel, size and kind of rows; the contract itself is in ``contract.py``."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from biclique.gram.by_name import GRAMS
from biclique.gram.dense import DenseGram
from biclique.gram.sparse import SparseGram
from biclique.gram.tiled import TiledGram
from biclique.kernels import Columns
from biclique.kernels.kernel import nonnegative
from biclique.kernels.named import KERNEL_NAMES, make_kernel
from tests.conftest import frozen
from tests.gram.contract import vectors

N = 700  # over one panel and several tiles, and a multiple of none


def rows(n=N, d=3, seed=0):
    return frozen(np.random.default_rng(seed).random((n, d)))


def tiled(dtype):
    return lambda kernel, X, n_jobs: TiledGram(kernel, X, dtype=dtype, n_jobs=n_jobs)


OPERATORS = {
    "dense": (lambda kernel, X, n_jobs: DenseGram.from_kernel(kernel, X, n_jobs=n_jobs), 1e-12),
    "tiled float64": (tiled(np.float64), 1e-12),
    "tiled float32": (tiled(np.float32), 2e-6),
}


@pytest.fixture(params=OPERATORS, scope="module")
def operator(request):
    return OPERATORS[request.param]


def relative(error, exact):
    return np.abs(error).max() / np.abs(exact).max()


@pytest.mark.parametrize("name", sorted(set(KERNEL_NAMES) - {"poly"}))
def test_product_diagonal_and_cross_are_those_of_the_dense_form(name, operator):
    build, tolerance = operator
    X, Y = rows(), rows(37, seed=1)
    kernel = make_kernel(name, gamma=0.7, degree=3, coef0=1.0, columns=Columns.of(X))
    K, V = kernel.block(X, X), vectors(N, 5)
    gram = build(kernel, X, 2)
    product = gram.matmat(V)
    assert product.dtype == np.float64
    assert relative(product - K @ V, np.abs(K) @ np.abs(V)) < tolerance
    assert relative(gram.diagonal() - np.diagonal(K), K) < tolerance
    assert gram.nonnegative <= (K >= 0).all()
    assert gram.nonnegative or not nonnegative(kernel, X)
    cross = gram.cross(Y)
    expected = kernel.block(Y, X) @ V
    assert relative(cross.matmat(V) - expected, np.abs(kernel.block(Y, X)) @ np.abs(V)) < tolerance
    assert relative(cross.diagonal() - kernel.diagonal(Y), K) < tolerance


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 511, 512, 513, 1025])
def test_odd_sizes(n, operator):
    build, tolerance = operator
    X, kernel = rows(n), make_kernel("rbf", gamma=0.7)
    K, V = kernel.block(X, X), vectors(n, 3)
    assert relative(build(kernel, X, 2).matmat(V) - K @ V, np.abs(K) @ np.abs(V)) < tolerance


@pytest.mark.parametrize("name", ["linear", "cosine", "rbf"])
@pytest.mark.parametrize("how", ["dense", "tiled"])
def test_sparse_rows(name, how):
    X = np.where(rows(d=12) > 0.7, rows(d=12), 0)
    kernel = make_kernel(name, gamma=0.7)
    V = vectors(N, 3)
    gram, threads = (GRAMS[how](kernel, sparse.csr_array(X), dtype=np.float64, n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_allclose(gram.matmat(V), kernel.block(X, X) @ V, rtol=1e-10, atol=1e-10)
    assert np.array_equal(gram.matmat(V), threads.matmat(V))
    np.testing.assert_allclose(gram.diagonal(), kernel.diagonal(X), rtol=1e-10)
    kept = pickle.loads(pickle.dumps(gram.training()))
    for cross in (gram.cross(sparse.csr_array(X[:9])), kept.cross(sparse.csr_array(X[:9]))):
        np.testing.assert_allclose(cross.matmat(V), kernel.block(X[:9], X) @ V, rtol=1e-10, atol=1e-10)


def test_far_from_the_origin_float32_tiles_keep_their_digits():
    X = rows() + 1e5
    kernel = make_kernel("rbf", gamma=2.0)
    V = np.ones((N, 1))
    exact = kernel.block(rows(), rows()) @ V
    assert relative(TiledGram(kernel, X).matmat(V) - exact, exact) < 1e-5


@pytest.mark.parametrize("make", [DenseGram, lambda K, n_jobs: SparseGram(sparse.csr_array(K), n_jobs=n_jobs)])
@pytest.mark.parametrize("n", [1, 127, 513, 1025])
def test_given_matrices_of_odd_sizes_and_both_signs(make, n):
    V, signed = vectors(n, 3), (rows(n) - 0.5) @ (rows(n) - 0.5).T
    for K in (signed, np.abs(signed)):
        gram = make(K, n_jobs=2)
        assert relative(gram.matmat(V) - K @ V, np.abs(K) @ np.abs(V)) < 1e-12
        assert gram.nonnegative == (K >= 0).all()
