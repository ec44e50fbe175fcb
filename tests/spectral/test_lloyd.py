import numpy as np
import pytest

from biclique.gram.dense import DenseGram
from biclique.gram.tiled import TiledGram
from biclique.kernels import RBF
from biclique.multiway import k_way_normalized_cut
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.lloyd import KernelKMeansProblem, kernel_kmeans, plus_plus_start, random_start

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
K = RBF(0.4).block(X, X)


def problem_of(matrix, order=4, multiplicities=None, weights=None):
    return KernelKMeansProblem(NormalizedCut(DenseGram(matrix), order, multiplicities), weights)


def to_means(rows, labels, weights):
    """Squared distances to the weighted means of clusters, (n, k)."""
    masks = [labels == j for j in range(labels.max() + 1)]
    means = np.array([np.average(rows[mask], axis=0, weights=weights[mask]) for mask in masks])
    return ((rows[:, None] - means) ** 2).sum(axis=2)


@pytest.mark.parametrize("order", [2, 3.3, 4, 50, np.inf])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_it_lowers_is_the_cut_at_every_step(order, weighted):
    multiplicities = np.arange(80.0) % 4 + 1 if weighted else np.ones(80)
    result = kernel_kmeans(problem_of(K, order, multiplicities), random_start(80, 4, 0), 4)
    assert result.converged
    assert result.shift == 0
    assert (np.diff(result.history) <= 0).all()
    assert result.history[-1] < result.history[0]
    start = random_start(80, 4, 0)
    for value, labels in ((result.history[0], start), (result.history[-1], result.labels)):
        if np.isinf(order):  # every cut is k − 1 there: the scaled limit is lowered
            huge = k_way_normalized_cut(K, labels, 1e5, multiplicities)
            assert value == pytest.approx((huge - 3) * (1e5 / 2) ** 2, rel=1e-3)
        else:
            assert value == pytest.approx(k_way_normalized_cut(K, labels, order, multiplicities))


def indefinite(seed):
    """Far from semi-definite, with positive degrees."""
    A = np.random.default_rng(seed).normal(size=(60, 60))
    return (A + A.T) / 2 + 3


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("matrix", [K, *map(indefinite, range(12))], ids=["definite", *range(12)])
def test_the_end_is_a_fixed_point_of_lloyd_by_explicit_features_and_the_shift_the_lowest_eigenvalue(matrix, order):
    n, k = len(matrix), 3
    problem = problem_of(matrix, order)
    result = kernel_kmeans(problem, random_start(n, k, 0), k, random_state=0)
    assert (np.diff(result.history) <= 0).all()
    assert result.history[-1] == pytest.approx(k_way_normalized_cut(matrix, result.labels, order))
    assert len(set(result.labels)) == k
    B = problem.matmat(np.eye(n))
    lowest = np.linalg.eigvalsh((B + B.T) / 2)[0]
    assert result.shift in (0, pytest.approx(-lowest, rel=0.02))
    # κ' + σ/ω, and features of it: every row is nearest to its own weighted mean.
    degrees = matrix.sum(axis=1)
    S = 2 / order * degrees + (1 - 2 / order) * degrees.mean()
    centred = (matrix - np.outer(degrees, degrees) / matrix.sum()) / np.outer(S, S)
    values, vectors = np.linalg.eigh(centred + np.diag(result.shift / S))
    distances = to_means(vectors * np.sqrt(np.maximum(values, 0)), result.labels, S)
    assert (distances[np.arange(n), result.labels] <= distances.min(axis=1) + 1e-9).all()


def test_an_indefinite_matrix_is_shifted_where_plain_lloyd_would_rise():
    problems = [problem_of(indefinite(seed), 2) for seed in range(12)]
    assert sum(kernel_kmeans(one, random_start(60, 3, 0), 3, random_state=0).shift > 0 for one in problems) > 3


def test_a_start_at_the_limit_of_steps_is_known_to_be_the_end():
    whole = kernel_kmeans(problem_of(K), random_start(80, 4, 0), 4)
    exact = kernel_kmeans(problem_of(K), random_start(80, 4, 0), 4, max_iter=whole.n_iter)
    assert exact.converged
    assert not kernel_kmeans(problem_of(K), random_start(80, 4, 0), 4, max_iter=whole.n_iter - 1).converged


def test_empty_clusters_are_filled():
    start = np.zeros(80, dtype=int)
    start[0] = 3  # clusters 1 and 2 are empty
    result = kernel_kmeans(problem_of(K), start, 4)
    assert set(result.labels) == {0, 1, 2, 3}
    assert (np.diff(result.history) <= 0).all()


def test_one_step_is_one_pass():
    gram = TiledGram(RBF(0.4), X, dtype=float)
    cut = NormalizedCut(gram, 4)
    problem = KernelKMeansProblem(cut)
    before = cut.n_passes
    result = kernel_kmeans(problem, random_start(80, 4, 0), 4)
    assert cut.n_passes - before == result.n_iter + 1  # and one for the start


def test_starts_have_no_empty_part():
    for seed in range(10):
        assert set(random_start(6, 5, seed)) == set(range(5))
        labels = plus_plus_start(problem_of(K), 6, seed)
        assert set(labels) == set(range(6))
    duplicates = np.ones((6, 6))
    assert set(plus_plus_start(problem_of(duplicates), 3, 0)) == {0, 1, 2}
