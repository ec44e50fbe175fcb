"""Is there structure at all?"""

import numpy as np
import pytest
from scipy import sparse

import biclique.selection.structure as structure
from biclique.rows.array import Vertices
from biclique.selection import find_structure
from biclique.selection.structure import (
    dithered,
    gaussian_reference,
    least_prominence,
    mode_prominences,
    uniform_reference,
)
from tests.oracles import mode_prominence


@pytest.mark.parametrize("seed", range(10))
def test_prominences_are_those_of_the_definition(seed):
    X = np.random.default_rng(seed).normal(size=(9, 2))
    gaps = np.linalg.norm(X[:, None] - X, axis=2)
    near = np.sort(gaps, axis=1)[:, 1:4]
    dimension = min(1 / np.log(near[:, -1:] / near[:, :-1]).mean(), 2)
    edges = [(i, j, -dimension * np.log(max(near[i, -1], near[j, -1], gaps[i, j]))) for i in range(9) for j in range(i)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(structure, "MODE_NEIGHBORS", 3)
        found = mode_prominences(X)
    assert found[0] == pytest.approx(mode_prominence(-dimension * np.log(near[:, -1]), edges))


def test_two_clouds_have_a_second_mode_and_one_has_none():
    random = np.random.default_rng(0)
    cloud = random.normal(size=(150, 2))
    assert mode_prominences(cloud)[0] < 1.5
    two = np.concatenate([cloud, cloud + 8])
    assert mode_prominences(two)[0] > least_prominence(300)
    assert [round(least_prominence(n), 2) for n in (50, 100, 1000)] == [1.25, 1.52, 2.19]
    # Units do not matter.
    assert mode_prominences(100 * two)[0] == pytest.approx(mode_prominences(two)[0])
    assert mode_prominences(np.concatenate([cloud, cloud + 1000]))[0] > mode_prominences(two)[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda random: random.normal(size=(150, 3)),
        lambda random: np.exp(random.normal(size=(150, 2))),
        lambda random: random.uniform(size=(150, 2)) * [20, 1],
        lambda random: random.poisson(4, size=(150, 2)).astype(float),
        lambda random: random.standard_t(3, size=(150, 2)),
    ],
    ids=["gaussian", "lognormal", "strip", "counts", "t3"],
)
def test_one_cloud_has_no_structure(make):
    found = find_structure(make(np.random.default_rng(1)), random_state=0)
    assert found.found is False
    assert "No structure" in found.reason


def test_the_eigenvalues_of_a_reason_are_those_that_decided(monkeypatch):
    """The mean falls below that of the first reference, the leading eigenvalue below that of the second."""
    means = iter([[0.9, 0.5], [0.8, 0.6], [0.95, 0.4]])
    monkeypatch.setattr(structure, "leading_means", lambda X: np.array(next(means)))
    found = find_structure(np.random.default_rng(0).normal(size=(60, 2)), random_state=0)
    assert "(leading eigenvalue: uniform rows 0.9500, yours 0.9000)" in found.reason


def test_clusters_and_a_curve_have_structure():
    random = np.random.default_rng(2)
    X = random.normal(size=(150, 2)) + 7 * random.integers(0, 2, (150, 1))
    assert find_structure(X, random_state=0).found
    angle = random.uniform(0, 5, 150)
    arc = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.03 * random.normal(size=(150, 2))
    found = find_structure(arc, random_state=0)
    assert found.found
    assert found.spectrum is not None
    assert find_structure(sparse.csr_array(X), random_state=0).found


def test_few_rows_are_not_tested_and_equal_rows_have_none():
    few = find_structure(np.random.default_rng(0).normal(size=(49, 2)), random_state=0)
    assert few.found is None
    assert "49 rows, and 50 are needed" in few.reason
    assert find_structure(np.ones((60, 2)), random_state=0).found is False


def test_references_keep_what_is_no_structure():
    random = np.random.RandomState(0)
    X = np.exp(random.normal(size=(400, 2)) @ [[1.0, 0.8], [0, 0.6]])
    Y = gaussian_reference(X)(random)
    assert Y.shape == X.shape
    assert (X.min(axis=0) - 1e-12 <= Y).all()
    assert (X.max(axis=0) + 1e-12 >= Y).all()
    np.testing.assert_allclose(np.median(Y, axis=0), np.median(X, axis=0), rtol=0.25)
    assert np.corrcoef(np.log(Y.T))[0, 1] == pytest.approx(np.corrcoef(np.log(X.T))[0, 1], abs=0.1)
    box = np.array([[3.0, 3], [1, -1]])
    X = random.uniform(-1, 1, (400, 2)) @ box
    inside = np.abs(uniform_reference(X)(random) @ np.linalg.inv(box))
    assert inside.max() < 1.15


def test_rounded_columns_and_categories_are_dithered_by_their_least_gap():
    random = np.random.RandomState(0)
    X = np.column_stack([random.randint(0, 6, 90) * 2.0, random.randint(0, 2, 90), random.normal(size=90)])
    Y = dithered(X, random)
    assert len(np.unique(Y[:, 0])) == len(np.unique(Y[:, 1])) == 90
    assert np.abs(Y - X).max(axis=0).tolist() <= [1, 0.5, 0]


def one_hot(levels, random, n=600):
    return np.eye(levels)[random.integers(0, levels, n)] / np.sqrt(2)


@pytest.mark.parametrize("levels", [3, 8])
def test_the_levels_of_a_random_category_are_no_structure(levels):
    random = np.random.default_rng(0)
    noise = np.column_stack([random.normal(size=(600, 3)), one_hot(levels, random)])
    found = find_structure(noise, random_state=0)
    assert found.found is False, found.reason
    noise[:, 0] += 7 * random.integers(0, 2, 600)
    assert find_structure(noise, random_state=0).found
    # Categories that go together are structure.
    answers = random.random((300, 16)) < np.where(random.integers(0, 2, (300, 1)), 0.9, 0.1)
    assert find_structure(answers.astype(float), random_state=0).found
    assert not find_structure((random.random((300, 16)) < 0.5).astype(float), random_state=0).found


def test_weights_count_as_repeated_rows():
    vertices = Vertices.of_rows(np.eye(3), np.array([1.0, 2, 3]))
    assert structure.repeated_rows(vertices, np.random.RandomState(0)).sum(axis=0).tolist() == [1, 2, 3]
    heavy = Vertices.of_rows(np.eye(3), np.array([1.0, 2, 3]) * 1e6)
    assert len(structure.repeated_rows(heavy, np.random.RandomState(0))) == structure.MODE_ROWS


@pytest.mark.parametrize("seed", range(5))
def test_a_rare_value_that_is_not_drawn(seed):
    """A column that is constant among the rows compared with references, though not among all."""
    X = np.column_stack([np.random.default_rng(0).normal(size=(3000, 3)), np.arange(3000) < 3])
    assert find_structure(X, random_state=seed).found is not None
