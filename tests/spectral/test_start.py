"""A start for the solver from the cut of a few rows."""

import numpy as np
import pytest

from biclique.gram import DenseGram, TiledGram
from biclique.kernels import RBF, Linear
from biclique.spectral import NormalizedCut, start, start_from_few, top_eigenpairs

ORDER = 4


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    return np.concatenate([random.normal(size=(400, 3)) + centre for centre in (0, 3, 7)])


def solved(gram, probe, k=4, tol=1e-6):
    cut = NormalizedCut(gram, ORDER, None, probe)
    pairs = top_eigenpairs(
        cut, k, tol=tol, start=cut.start, start_image=cut.start_image, deflate=cut.trivial, random_state=0
    )
    return cut, pairs


def random_probe(n, b=8):
    return np.random.default_rng(1).standard_normal((n, b))


def test_the_start_of_all_rows_is_their_eigenvectors(rows, monkeypatch):
    """p = v/√(wS): √(wS) p is the eigenvector itself."""
    monkeypatch.setattr(start, "TOLERANCE", 1e-10)
    monkeypatch.setattr(start, "STAYS", 0.0)
    gram = TiledGram(RBF(0.1), rows, dtype=np.float64)
    probe = start_from_few(random_probe(len(rows), 4), gram, rows, ORDER, np.ones(len(rows)), 0)
    cut, pairs = solved(gram, random_probe(len(rows)), tol=1e-10)
    begun = np.sqrt(cut.shrunken)[:, None] * probe
    begun /= np.linalg.norm(begun, axis=0)
    np.testing.assert_allclose(np.abs((begun * pairs.vectors).sum(0)), 1, atol=1e-8)


def test_a_start_from_few_saves_passes_and_changes_nothing(rows):
    gram = TiledGram(RBF(0.1), rows, dtype=np.float64)
    some = np.arange(0, len(rows), 4)
    few = TiledGram(RBF(0.1), rows[some], dtype=np.float64)
    random = random_probe(len(rows))
    probe = start_from_few(random, few, rows, ORDER, np.ones(len(some)), 0)
    assert probe.shape == random.shape
    plain_cut, plain = solved(gram, random)
    cut, pairs = solved(gram, probe)
    assert cut.n_passes < plain_cut.n_passes
    np.testing.assert_allclose(pairs.values, plain.values, rtol=1e-8)


def test_no_direction_is_left_out_that_the_few_rows_do_not_have():
    """Three parts far away, of which none of the few rows is: at order 2 each has the eigenvalue 1."""
    random = np.random.default_rng(0)
    near = random.normal(size=(600, 3))
    X = np.concatenate([near, *(random.normal(size=(5, 3)) * 0.3 + far for far in (100, 200, 300))])
    gram = DenseGram(RBF(0.1).block(X, X))
    few = TiledGram(RBF(0.1), near[::3], dtype=np.float64)
    probe = start_from_few(random_probe(len(X)), few, X, 2, np.ones(200), 0)
    assert (np.abs(probe[600:]) > 0).all()
    cut = NormalizedCut(gram, 2, None, probe)
    pairs = top_eigenpairs(
        cut, 4, tol=1e-8, start=cut.start, start_image=cut.start_image, deflate=cut.trivial, random_state=0
    )
    np.testing.assert_allclose(pairs.values[:3], 1, rtol=1e-10)


def test_few_rows_without_a_cut_leave_the_start_random(rows):
    """Values of both signs that sum to nothing: the few have no cut, whatever the many have."""
    few = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]])
    probe = random_probe(len(rows))
    assert start_from_few(probe, TiledGram(Linear(), few), rows, ORDER, np.ones(4), 0) is probe


def test_as_many_columns_as_the_few_rows_have(rows):
    probe = random_probe(len(rows), 8)
    few = TiledGram(RBF(0.1), rows[::300], dtype=np.float64)
    found = start_from_few(probe, few, rows, ORDER, np.ones(4), 0)
    assert found.shape == probe.shape
    assert np.array_equal(found[:, 3:], probe[:, 3:])
    assert np.isfinite(found).all()
