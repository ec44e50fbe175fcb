import numpy as np
import pytest

from biclique.exceptions import DegreeError
from biclique.gram import DenseGram, StoredCross, TiledGram
from biclique.kernels import RBF, Linear
from biclique.spectral.cut import Extension, NormalizedCut
from biclique.spectral.solver import top_eigenpairs
from tests.oracles import extended

EPS = float(np.finfo(float).eps)


def fitted(order, weights, n=40, k=3):
    X = np.random.default_rng(0).normal(size=(n, 3))
    gram = DenseGram.from_kernel(RBF(0.3), X, memory_limit=2**30)
    cut = NormalizedCut(gram, order, weights)
    pairs = top_eigenpairs(cut, k, deflate=cut.trivial)
    extension, rows = Extension.fit(cut, pairs, EPS)
    return X, gram, cut, pairs, extension, rows


@pytest.mark.parametrize("order", [2, 2.5, 4, 1000, np.inf])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_formula_and_returns_training_rows(order, weighted):
    weights = np.arange(1.0, 41.0) if weighted else np.ones(40)
    X, gram, cut, pairs, extension, rows = fitted(order, weights)
    Y = np.random.default_rng(1).normal(size=(6, 3))
    u = pairs.vectors / np.sqrt(weights * cut.shrunken)[:, None]
    expected = extended(gram.K, RBF(0.3).block(Y, X), order, weights, u, pairs.values)
    found = extension.embed(gram.cross(Y))
    np.testing.assert_allclose(found[:, 1:], expected * extension.signs, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(extension.embed(gram.cross(X)), rows, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(rows[:, 1:] * np.sqrt(weights)[:, None], pairs.vectors * extension.signs, atol=1e-10)
    np.testing.assert_allclose(rows[:, 0] * np.sqrt(weights), cut.trivial)
    assert (weights @ rows[:, 1:] ** 3 > 0).all()


def test_before_convergence_training_rows_still_come_back():
    X = np.random.default_rng(0).normal(size=(1500, 4))
    gram = TiledGram(RBF(0.2), X, dtype=np.float64)
    cut = NormalizedCut(gram, 4, probe=np.random.default_rng(1).normal(size=(1500, 9)))
    pairs = top_eigenpairs(cut, 5, max_iter=2, start=cut.start, start_image=cut.start_image, deflate=cut.trivial)
    assert not pairs.converged
    extension, rows = Extension.fit(cut, pairs, EPS)
    np.testing.assert_allclose(extension.embed(gram.cross(X[:200])), rows[:200], rtol=1e-7, atol=1e-9)


def test_null_eigenvalues_give_columns_of_zeros():
    X = np.random.default_rng(0).normal(size=(30, 2)) + 3
    gram = DenseGram.from_kernel(Linear(), X, memory_limit=2**30)
    cut = NormalizedCut(gram, 4)
    extension, rows = Extension.fit(cut, top_eigenpairs(cut, 5, deflate=cut.trivial), EPS)
    assert extension.informative.sum() <= 2
    assert (rows[:, 1:][:, ~extension.informative] == 0).all()
    assert (extension.embed(gram.cross(X + 0.1))[:, 1:][:, ~extension.informative] == 0).all()


def test_a_point_that_nothing_sees_is_embedded_at_zero():
    extension = fitted(2, np.ones(40))[4]
    gram = fitted(2, np.ones(40))[1]
    np.testing.assert_array_equal(extension.embed(gram.cross(np.full((1, 3), 1e3))), np.zeros((1, 4)))
    higher = fitted(4, np.ones(40))
    row = higher[4].embed(higher[1].cross(np.full((1, 3), 1e3)))
    assert row[0, 0] > 0
    assert (row[0, 1:] == 0).all()


def test_a_negative_degree_of_a_new_row_is_refused():
    extension = fitted(2, np.ones(40))[4]
    with pytest.raises(DegreeError, match=r"1 of 2 new rows .* \(first: row 1, -40\)"):
        extension.embed(StoredCross(np.array([[1.0] * 40, [-1.0] * 40])))


def test_a_row_that_no_row_sees_has_no_coordinates_even_in_null_columns():
    X = np.random.default_rng(0).normal(size=(30, 2)) + 5
    gram = DenseGram.from_kernel(Linear(), X, memory_limit=2**30)  # rank 2: the third pair is null
    cut = NormalizedCut(gram, 2)
    extension, _ = Extension.fit(cut, top_eigenpairs(cut, 3, deflate=cut.trivial), EPS)
    assert not extension.informative.all()
    assert extension.embed(StoredCross(np.zeros((2, 30)))).tolist() == [[0.0] * 4] * 2
