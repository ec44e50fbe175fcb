"""Which way of holding K and which precision, and what each needs."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from biclique.exceptions import DataError, MemoryLimitError, ParameterError
from biclique.fit.plan import choose_gram, choose_precision
from biclique.gram import DenseGram, TiledGram, checked_matrix, checked_sparse
from biclique.gram.tiled import tiled_bytes
from biclique.kernels import RBF, Chi2, Function, Kernel, Laplacian, Linear

GIB = 2**30


def test_dense_is_refused_before_anything_is_allocated():
    X = np.zeros((200_000, 1))
    tracemalloc.start()
    with pytest.raises(
        MemoryLimitError, match=r"gram='dense' for 200000 distinct rows needs 298 GiB, limit 16 GiB: use "
    ):
        DenseGram.from_kernel(RBF(1.0), X, memory_limit=16 * GIB)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_tiled_is_refused_when_its_vectors_do_not_fit():
    gram = TiledGram(RBF(1.0), np.zeros((2000, 2)), memory_limit=10 * 2**20)
    with pytest.raises(MemoryLimitError, match=r"gram='tiled' for 2000 distinct rows and 500 vectors needs .* MiB"):
        gram.matmat(np.zeros((2000, 500)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiled_stays_within_what_it_says(dtype):
    X = np.random.default_rng(0).normal(size=(4000, 16))
    V = np.ones((4000, 14))
    tracemalloc.start()
    gram = TiledGram(RBF(0.1), X, dtype=dtype)
    gram.matmat(V)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * tiled_bytes(4000, 16, 14, dtype) + 2**20
    assert peak < 4000 * 4000 * 4 / 2  # far from the matrix itself


class Cheap(Kernel):
    cheap = True

    def block(self, X, Y):
        return X @ Y.T


@pytest.mark.parametrize(
    ("kernel", "n", "limit", "expected"),
    [
        (RBF(1.0), 1000, GIB, "dense"),
        (RBF(1.0), 5000, GIB, "tiled"),
        (RBF(1.0), 4000, 2**20, "dense"),
        (Laplacian(1.0), 5000, GIB, "dense"),
        (Laplacian(1.0), 50_000, GIB, "tiled"),
        (Cheap(), 5000, GIB, "tiled"),
        (RBF(1.0), 120_000, GIB, "tiled"),
        (Function(min, {}), 5000, GIB, "dense"),
        (Function(min, {}), 20_000, GIB, "tiled"),
        (Linear(), 5000, GIB, "tiled"),
    ],
)
def test_auto_is_exact(kernel, n, limit, expected):
    choice = choose_gram("auto", kernel, n, np.zeros((n, 4)), limit)
    assert choice.name == expected
    assert choice.reason.startswith("exact: ")
    assert choose_gram("dense", kernel, n, np.zeros((n, 1)), limit).name == "dense"


def test_precision_is_float32_until_its_rounding_shows():
    X = np.random.default_rng(0).normal(size=(100, 3))
    assert choose_precision("auto", RBF(1.0), X) == np.float32
    assert choose_precision("auto", RBF(1e5), X) == np.float64
    assert choose_precision("auto", RBF(1.0), X + 1e6) == np.float32  # centring takes the offset away
    assert choose_precision("auto", Linear(), X + 1e4) == np.float64
    assert choose_precision("float32", RBF(1e3), X) == np.float32
    with pytest.raises(
        ParameterError, match=r"precision='float32' would give kernel values off by 0\.\d: rows lie too far"
    ):
        choose_precision("float32", RBF(1e5), X)


@pytest.mark.parametrize("make", [RBF, Laplacian, Chi2])
def test_precision_where_all_values_are_near_one(make):
    X = np.random.default_rng(0).random((100, 3))
    assert choose_precision("auto", make(1.0), X) == np.float32
    assert choose_precision("auto", make(1e-2), X) == np.float32
    assert choose_precision("auto", make(1e-6), X) == np.float64
    with pytest.raises(ParameterError, match="or its values too close together"):
        choose_precision("float32", make(1e-7), X)


@pytest.mark.parametrize("kernel", [Linear(), Laplacian(1e60), Chi2(1e60)])
def test_precision_where_float32_vanishes(kernel):
    X = np.random.default_rng(0).random((100, 3))
    assert choose_precision("auto", kernel, X * 1e-60) == np.float64
    assert choose_precision("auto", Linear(), X * 1e-10) == np.float32


def test_given_matrices_must_be_symmetric():
    K = np.eye(600)
    K[3, 550] = 0.5
    for check, matrix in ((checked_matrix, K), (checked_sparse, sparse.csr_array(K))):
        with pytest.raises(DataError, match=r"symmetric matrix, but entries \(\d+, \d+\).* differ by 0.5"):
            check(matrix)
    K[550, 3] = 0.5 + 1e-8
    for check, matrix in ((checked_matrix, K), (checked_sparse, sparse.csr_array(K))):
        fixed = check(matrix)
        assert (fixed != fixed.T).sum() == 0
