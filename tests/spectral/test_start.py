"""A start for the solver from the cut of a few rows."""

from functools import partial

import numpy as np
import pytest

from biclique.gram.dense import DenseGram
from biclique.gram.tiled import TiledGram
from biclique.kernels import RBF, Linear
from biclique.spectral import start
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.solver import top_eigenpairs
from biclique.spectral.start import start_from_few

ORDER = 4


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    return np.concatenate([random.normal(size=(400, 3)) + centre for centre in (0, 3, 7)])


def pairs_of(cut, k, tol, **options):
    start = {"start": cut.start, "start_image": cut.start_image}
    return top_eigenpairs(cut, k, tol=tol, deflate=cut.trivial, random_state=0, **start, **options)


def solved(gram, probe, tol=1e-6):
    cut = NormalizedCut(gram, ORDER, None, probe)
    return cut, pairs_of(cut, 4, tol)


TILES = partial(TiledGram, RBF(0.1), dtype=np.float64)


def random_probe(n, b=8):
    return np.random.default_rng(1).standard_normal((n, b))


def test_the_start_of_all_rows_is_their_eigenvectors(rows, monkeypatch):
    """p = v/√(wS): √(wS) p is the eigenvector itself."""
    monkeypatch.setattr(start, "TOLERANCE", 1e-10)
    monkeypatch.setattr(start, "STAYS", 0.0)
    gram = TiledGram(RBF(0.1), rows, dtype=np.float64)
    everyone = np.arange(len(rows))
    probe = start_from_few(random_probe(len(rows), 4), gram, TILES, rows, everyone, np.ones(len(rows)), ORDER, 0)
    cut, pairs = solved(gram, random_probe(len(rows)), tol=1e-10)
    begun = np.sqrt(cut.shrunken)[:, None] * probe
    begun /= np.linalg.norm(begun, axis=0)
    np.testing.assert_allclose(np.abs((begun * pairs.vectors).sum(0)), 1, atol=1e-8)


def test_few_rows_without_a_cut_leave_the_start_random(rows):
    """Values of both signs that sum to nothing: the few have no cut, whatever the many have."""
    few = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]])
    X = np.concatenate([few, rows])
    probe = random_probe(len(X))
    make = partial(TiledGram, Linear())
    assert start_from_few(probe, make(X), make, X, np.arange(4), np.ones(len(X)), ORDER, 0) is probe


def test_as_many_columns_as_the_few_rows_have(rows):
    probe = random_probe(len(rows), 8)
    found = start_from_few(probe, TILES(rows), TILES, rows, np.arange(0, len(rows), 300), np.ones(len(rows)), ORDER, 0)
    assert found.shape == probe.shape
    assert np.array_equal(found[:, 3:], probe[:, 3:])
    assert np.isfinite(found).all()


# Groups that the few rows do not contain

CENTRES = [(0, 0), (4, 0), (0, 4), (4, 4), (8, 0)]


def planted(group, seed=0, each=600):
    """Five blobs, and a small group far away. At order 2 the group has an eigenvalue of 1, above those of the blobs."""
    random = np.random.default_rng(seed)
    blobs = [random.normal(size=(each, 2)) * 0.5 + centre for centre in CENTRES]
    return np.concatenate([*blobs, random.normal(size=(group, 2)) * 0.05 + 30])


def solved_from_blobs(X, weights, seed=0, few_rows=500, k=4):
    """Eigenpairs at order 2, from a start that knows of the blobs alone, and the passes they took."""
    some = np.sort(np.random.default_rng(seed).choice(len(CENTRES) * 600, few_rows, replace=False))
    probe = np.random.default_rng(seed + 100).standard_normal((X.shape[0], k + 4))
    make = partial(TiledGram, RBF(0.5))
    gram = make(X)
    begun = start_from_few(probe, gram, make, X, some, weights, 2, seed)
    cut = NormalizedCut(gram, 2, weights, begun)
    return pairs_of(cut, k, 1e-3, noise=cut.gram.noise), cut.n_passes


@pytest.mark.once
@pytest.mark.parametrize("group", [1, 8])
@pytest.mark.parametrize("seed", range(2))
def test_a_group_that_the_few_rows_do_not_contain_is_found(group, seed):
    X = planted(group, seed)
    pairs, passes = solved_from_blobs(X, np.ones(len(X)), seed)
    alone, usual = solved_from_blobs(X[:-group], np.ones(len(X) - group), seed)
    np.testing.assert_allclose(pairs.values, [1, *alone.values[:3]], atol=1e-4)
    assert pairs.converged
    assert passes <= usual + 1


@pytest.mark.parametrize("seed", range(2))
def test_a_group_is_found_by_random_columns_alone(seed, monkeypatch):
    """Should rows be seen by the few and a leading eigenvector be missing all the same."""
    monkeypatch.setattr(start, "_unseen", lambda *_: np.empty(0, dtype=int))
    X = planted(8, seed)
    assert solved_from_blobs(X, np.ones(len(X)), seed)[0].values[0] == pytest.approx(1, abs=1e-4)


def test_several_groups_are_found():
    random = np.random.default_rng(0)
    X = np.concatenate([planted(4), *(random.normal(size=(3, 2)) * 0.05 + (30 * i, -30) for i in range(5))])
    pairs, _ = solved_from_blobs(X, np.ones(len(X)), k=7)
    np.testing.assert_allclose(pairs.values[:6], 1, atol=1e-4)
    assert pairs.values[6] < 0.999


@pytest.mark.parametrize("heavy", ["group", "one row of a blob"])
def test_weights_that_the_few_rows_do_not_have(heavy):
    X = planted(8)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    some = np.sort(np.random.default_rng(0).choice(len(CENTRES) * 600, 500, replace=False))
    row = np.setdiff1d(np.arange(600), some)[0]
    if heavy == "group":
        weights[-8:] *= 100
    else:
        weights[row] = 1e6
    pairs, _ = solved_from_blobs(X, weights)
    cut = NormalizedCut(DenseGram(RBF(0.5).block(X, X)), 2, weights)
    exact = top_eigenpairs(cut, 4, tol=1e-6, deflate=cut.trivial, random_state=0)
    np.testing.assert_allclose(pairs.values, exact.values, atol=1e-4)
