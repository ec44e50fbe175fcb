import numpy as np
import pytest

from biclique.exceptions import DataError, ParameterError
from biclique.gram.dense import DenseGram
from biclique.gram.tiled import TiledGram
from biclique.kernels import RBF
from biclique.multiway import (
    SymmetricGram,
    biclique_features,
    biclique_gram,
    contract,
    gram_tensor,
    k_way_normalized_cut,
    literal_k_way_normalized_cut,
    literal_kernel_kmeans_objective,
    literal_tensor_kmeans_objective,
    normalized_cut,
    weighted_kernel_kmeans_objective,
    weighted_tensor_kmeans_objective,
)
from tests import oracles
from tests.calls import refusals

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
KERNEL = RBF(0.3)
K = KERNEL.block(X, X)
LABELS = np.arange(12) % 3
WEIGHTS = RNG.uniform(0.5, 2, 12)


def indicator_matrix(labels, weights):
    Z = np.zeros((len(labels), labels.max() + 1))
    for i, j in enumerate(labels):
        Z[i, j] = np.sqrt(weights[i] / weights[labels == j].sum())
    return Z


def test_weighted_kernel_kmeans_is_the_definition_and_its_trace_form():
    features = np.linalg.cholesky(K)
    expected = oracles.kernel_kmeans_objective(features, LABELS, WEIGHTS)
    assert weighted_kernel_kmeans_objective(K, LABELS, WEIGHTS) == pytest.approx(expected)
    root = np.sqrt(WEIGHTS)
    M = root[:, None] * K * root
    Y = indicator_matrix(LABELS, WEIGHTS)
    assert np.trace(M) - np.trace(Y.T @ M @ Y) == pytest.approx(expected)


@pytest.mark.parametrize("m", [2, 4, 6])
def test_for_fixed_weights_the_order_only_scales_it(m):
    features = biclique_features(np.linalg.cholesky(K), m) * 12.0 ** ((m - 2) / 2)
    expected = oracles.kernel_kmeans_objective(features, LABELS, WEIGHTS)
    Km = biclique_gram(K, m, scaled=True)
    assert weighted_kernel_kmeans_objective(Km, LABELS, WEIGHTS) == pytest.approx(expected)
    assert expected == pytest.approx(12.0 ** (m - 2) * weighted_kernel_kmeans_objective(K, LABELS, WEIGHTS))


@pytest.mark.parametrize("m", [2, 2.5, 4, 20])
def test_the_order_m_cut_is_the_cut_of_the_contraction_and_its_trace(m):
    Km = biclique_gram(K, m)
    expected = oracles.k_way_cut(Km, LABELS)
    assert k_way_normalized_cut(K, LABELS, m) == pytest.approx(expected)
    degrees = Km.sum(axis=1)
    Z = indicator_matrix(LABELS, degrees)
    normalized = Km / np.sqrt(np.outer(degrees, degrees))
    assert 3 - np.trace(Z.T @ normalized @ Z) == pytest.approx(expected)


@pytest.mark.parametrize("m", [2, 4, 20])
def test_the_cut_is_weighted_kernel_kmeans_with_weights_s(m):
    # Weights S and kernel S⁻¹(K − δδᵀ/ρ)S⁻¹: kNCut_m = k − 1 − (2/m)² (trace − J).
    degrees = K.sum(axis=1)
    S = 2 / m * degrees + (1 - 2 / m) * degrees.mean()
    centred = (K - np.outer(degrees, degrees) / K.sum()) / np.outer(S, S)
    J = weighted_kernel_kmeans_objective(centred, LABELS, S)
    trace = S @ np.diagonal(centred)
    assert k_way_normalized_cut(K, LABELS, m) == pytest.approx(2 - (2 / m) ** 2 * (trace - J))


def test_the_papers_sum_of_two_way_cuts_is_another_number():
    A, inside = biclique_gram(K, 4), LABELS > 0
    assert oracles.k_way_cut(A, LABELS, literal=True) > 1.1 * k_way_normalized_cut(K, LABELS, 4)
    cut, volumes = A[inside][:, ~inside].sum(), (A[inside].sum(), A[~inside].sum())
    assert normalized_cut(K, inside, 4) == pytest.approx(cut * (1 / volumes[0] + 1 / volumes[1]))


@pytest.mark.parametrize("m", [2, 2.5, 4, 20])
def test_the_literal_cut_divides_by_the_rest_too(m):
    for labels in (LABELS, (LABELS > 0).astype(int)):
        expected = oracles.k_way_cut(biclique_gram(K, m), labels, literal=True)
        assert literal_k_way_normalized_cut(K, labels, m) == pytest.approx(expected)
    assert expected == pytest.approx(2 * k_way_normalized_cut(K, LABELS > 0, m))  # of two parts
    weights = np.arange(12) % 3 + 1
    repeated = np.repeat(np.arange(12), weights)
    assert literal_k_way_normalized_cut(K, LABELS, m, weights) == pytest.approx(
        oracles.k_way_cut(biclique_gram(K[np.ix_(repeated, repeated)], m), LABELS[repeated], literal=True)
    )


@pytest.mark.parametrize("m", [2, 4, 6])
def test_the_literal_multiway_objective_sums_inside_the_cluster(m):
    labels, weights = np.array([0, 0, 1, 1, 1, 2]), WEIGHTS[:6]
    small = K[:6, :6]
    for w in (weights, np.ones(6)):
        expected = oracles.literal_multiway_objective(small, m, labels, w)
        assert literal_kernel_kmeans_objective(small, labels, m, w) == pytest.approx(expected)
    assert literal_kernel_kmeans_objective(TiledGram(KERNEL, X[:6], dtype=float), labels, m) == pytest.approx(expected)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_literal_tensor_objective_sums_inside_the_cluster(m):
    labels, weights = np.array([0, 0, 1, 1, 1]), WEIGHTS[:5]
    tensor = oracles.symmetric_tensor(K[:5, :5], m)
    expected = oracles.literal_tensor_objective(tensor, labels, weights)
    assert literal_tensor_kmeans_objective(tensor, labels, weights) == pytest.approx(expected)


def test_the_papers_multiway_objective_read_literally_is_another_number():
    labels, weights = np.array([0, 0, 1, 1, 1, 0]), WEIGHTS[:6]
    small = K[:6, :6]
    literal = oracles.literal_multiway_objective(small, 4, labels, weights)
    matrix = weighted_kernel_kmeans_objective(biclique_gram(small, 4, scaled=True), labels, weights)
    assert abs(literal - matrix) > 0.1 * abs(matrix)
    # At order 2 there are no inner sums, and the two agree.
    assert oracles.literal_multiway_objective(small, 2, labels, weights) == pytest.approx(
        weighted_kernel_kmeans_objective(small, labels, weights)
    )


def test_weighted_tensor_kmeans_matrix_form_and_literal_form():
    labels, weights = np.array([0, 0, 1, 1]), WEIGHTS[:4]
    tensor = oracles.symmetric_tensor(K[:4, :4], 3)
    A = contract(tensor, (0, 1))
    Y, root = indicator_matrix(labels, weights), np.sqrt(weights)
    M = root[:, None] * A * root
    mine = weighted_tensor_kmeans_objective(tensor, labels, weights)
    assert mine == pytest.approx(np.trace(M) - np.trace(Y.T @ M @ Y))
    assert abs(oracles.literal_tensor_objective(tensor, labels, weights) - mine) > 0.1 * abs(mine)


def test_weighted_tensor_kmeans_without_a_tensor():
    labels, weights = np.array([0, 0, 1, 1]), WEIGHTS[:4]
    for m in (3, 4):
        tensor = oracles.symmetric_tensor(K[:4, :4], m)
        gram = SymmetricGram(DenseGram(K[:4, :4]), m, np.ones(4))
        assert weighted_tensor_kmeans_objective(gram, labels, weights) * 4.0 ** (m - 2) == pytest.approx(
            weighted_tensor_kmeans_objective(tensor, labels, weights)
        )


def test_operators_give_the_same_without_storing_k():
    rows = RNG.normal(size=(700, 3))
    labels = np.arange(700) % 4
    dense = KERNEL.block(rows, rows)
    for gram in (DenseGram(dense), TiledGram(KERNEL, rows, dtype=float)):
        assert k_way_normalized_cut(gram, labels, 4) == pytest.approx(k_way_normalized_cut(dense, labels, 4))
        assert weighted_kernel_kmeans_objective(gram, labels) == pytest.approx(
            weighted_kernel_kmeans_objective(dense, labels)
        )


test_refused_with_a_reason = refusals(
    (lambda: normalized_cut(K, LABELS), DataError, "two parts, labels have 3"),
    (lambda: k_way_normalized_cut(K, LABELS[:5]), DataError, "one entry for each row, 12"),
    (lambda: literal_k_way_normalized_cut(K, np.zeros(12, int), 4), DataError, "at least two parts"),
    (lambda: literal_kernel_kmeans_objective(K, LABELS, 3), ParameterError, "must be even"),
    (lambda: weighted_kernel_kmeans_objective(K, LABELS, LABELS / 1.0), DataError, "positive in total in every"),
)


# The paper's table of objectives, graph (m = 2) beside hypergraph (m = 4, 6), row by row


@pytest.mark.parametrize("m", [2, 4])
def test_table_of_objectives_k_way_cut_counts_pairs_inside_a_half_too(m):
    # Σ_e w(e) |e ∩ V_j| |e ∖ V_j| over all tuples is 2h² cut(K^(m)) + 2h(h−1) cut(A_g): Algorithm 1 is the cut of
    # K^(m), the first term, and the two are one thing at m = 2 only.
    small, labels, h = K[:5, :5], np.array([0, 0, 1, 1, 1]), m // 2
    tensor = gram_tensor(small, m)
    inside = labels == 0
    literal = 0.0
    for index in np.ndindex(*tensor.shape):
        count = sum(inside[i] for i in index)
        literal += tensor[index] * count * (m - count)

    def cut(A):
        return A[inside][:, ~inside].sum()

    expected = 2 * h**2 * cut(biclique_gram(small, m, scaled=True))
    if m > 2:
        expected += 2 * h * (h - 1) * cut(contract(tensor, (0, 1)))
    assert literal == pytest.approx(expected)


@pytest.mark.parametrize("m", [2, 4, 6])
def test_table_of_objectives_spectral_clustering_relaxes_the_cut(m):
    values = oracles.algorithm_1(K, m)[0]
    bound = 3 - values[:3].sum()
    cuts = [k_way_normalized_cut(K, np.random.default_rng(s).permutation(LABELS), m) for s in range(50)]
    assert bound <= min(cuts) + 1e-12
