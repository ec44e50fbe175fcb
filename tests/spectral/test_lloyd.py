import numpy as np
import pytest

from biclique.gram.dense import DenseGram
from biclique.gram.tiled import TiledGram
from biclique.kernels import RBF
from biclique.multiway import k_way_normalized_cut, weighted_kernel_kmeans_objective
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.lloyd import KernelKMeansProblem, NewRows, kernel_kmeans, plus_plus_start, random_start
from tests import oracles

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


def test_a_fixed_point_is_one_of_lloyd_by_explicit_features():
    # Features of the centred kernel; at the end every row is nearest to its own weighted mean.
    degrees = K.sum(axis=1)
    S = 0.5 * degrees + 0.5 * degrees.mean()
    centred = (K - np.outer(degrees, degrees) / K.sum()) / np.outer(S, S)
    values, vectors = np.linalg.eigh(centred)
    features = vectors * np.sqrt(np.maximum(values, 0))
    result = kernel_kmeans(problem_of(K, 4), random_start(80, 5, 1), 5)
    assert np.array_equal(np.argmin(to_means(features, result.labels, S), axis=1), result.labels)


def test_given_weights_are_plain_weighted_kernel_kmeans():
    weights = RNG.uniform(0.5, 2, 80)
    result = kernel_kmeans(problem_of(K, 7, None, weights), random_start(80, 4, 0), 4)
    assert (np.diff(result.history) <= 0).all()
    assert result.history[-1] == pytest.approx(weighted_kernel_kmeans_objective(K, result.labels, weights))
    features = np.linalg.cholesky(K + 1e-12 * np.eye(80))
    assert result.history[-1] == pytest.approx(oracles.kernel_kmeans_objective(features, result.labels, weights))


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_an_indefinite_k_is_shifted_and_never_rises(order, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(60, 60))
    matrix = (A + A.T) / 2 + 3  # far from semi-definite, degrees positive
    result = kernel_kmeans(problem_of(matrix, order), random_start(60, 3, seed), 3, random_state=0)
    assert (np.diff(result.history) <= 0).all()
    assert result.history[-1] == pytest.approx(k_way_normalized_cut(matrix, result.labels, order))
    assert len(set(result.labels)) == 3


def test_the_shift_is_the_lowest_eigenvalue_and_the_end_a_fixed_point_of_shifted_lloyd():
    shifted = moved = 0
    for seed in range(12):
        A = np.random.default_rng(seed).normal(size=(60, 60))
        matrix = (A + A.T) / 2 + 3
        problem = problem_of(matrix, 2)
        result = kernel_kmeans(problem, random_start(60, 3, seed), 3, random_state=0)
        if result.shift == 0:
            continue
        shifted += 1
        B = problem.matmat(np.eye(60))
        assert result.shift == pytest.approx(-np.linalg.eigvalsh((B + B.T) / 2)[0], rel=0.02)
        # Explicit Lloyd on κ' + σ/ω, from features.
        degrees = matrix.sum(axis=1)
        kernel = (matrix - np.outer(degrees, degrees) / matrix.sum()) / np.outer(degrees, degrees)
        values, vectors = np.linalg.eigh(kernel + np.diag(result.shift / degrees))
        features = vectors * np.sqrt(np.maximum(values, 0))
        distances = to_means(features, result.labels, degrees)
        own = distances[np.arange(60), result.labels]
        assert (own <= distances.min(axis=1) + 1e-9).all()
        plain = problem.state(result.labels, 3)
        unshifted = np.argmax(2 * plain.product / plain.masses - plain.within / plain.masses**2, axis=1)
        moved += not np.array_equal(unshifted, result.labels)  # where plain Lloyd would have gone on
    assert shifted > 3
    assert moved > 0


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


@pytest.mark.parametrize("order", [2, 4, np.inf])
def test_the_rule_gives_training_rows_their_labels(order):
    gram = TiledGram(RBF(0.4), X, dtype=float)
    for weights in (None, RNG.uniform(0.5, 2, 80)):
        problem = KernelKMeansProblem(NormalizedCut(gram, order), weights)
        result = kernel_kmeans(problem, random_start(80, 4, 0), 4)
        assert np.array_equal(result.rule.of_new(NewRows(lambda: gram.cross(X), None))[0], result.labels)


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
