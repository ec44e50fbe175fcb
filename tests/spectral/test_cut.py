import numpy as np
import pytest

from biclique import BicliqueSpectralClustering
from biclique.exceptions import DegreeError
from biclique.gram.dense import DenseGram, StoredCross
from biclique.gram.tiled import TiledGram
from biclique.kernels import RBF, Columns, Linear
from biclique.kernels.named import KERNEL_NAMES, make_kernel
from biclique.spectral.cut import Extension, NormalizedCut
from biclique.spectral.solver import top_eigenpairs
from tests import oracles
from tests.calls import refuses
from tests.oracles import algorithm_1, contracted, contracted_gram, extended, gram_tensor, modularity, projector

USABLE = sorted(set(KERNEL_NAMES) - {"additive_chi2", "poly"})  # additive_chi2 is never positive


def symmetric_matrix(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A + A.T


def cut_of(K, order, weights=None):
    return NormalizedCut(DenseGram(K), order, weights)


def matrix_of(cut):
    return cut.matmat(np.eye(cut.shape[0]))


@pytest.mark.parametrize("m", [2, 4, 6])
def test_contraction_of_the_tensor_and_its_degrees_are_the_closed_form(m):
    signed = symmetric_matrix(5)
    for K in (signed, np.abs(signed)):
        contraction = contracted(gram_tensor(K, m)) / 5 ** (m - 2)
        np.testing.assert_allclose(contraction, contracted_gram(K, m))
    np.testing.assert_allclose(contraction.sum(axis=1), (m / 2) ** 2 * cut_of(K, m).shrunken)


@pytest.fixture(params=USABLE)
def kernel_matrix(request, blobs):
    X = blobs[0][:120]
    K = make_kernel(request.param, gamma=0.05, columns=Columns.of(X)).block(X, X)
    return (K + K.T) / 2


@pytest.mark.parametrize("order", [2, 2.5, 4, 20, 1000])
def test_eigenpairs_are_those_of_algorithm_1(order, kernel_matrix):
    K = kernel_matrix
    cut = cut_of(K, order)
    values, vectors = np.linalg.eigh(matrix_of(cut))
    values, vectors = values[::-1], vectors[:, ::-1]
    expected, expected_vectors = algorithm_1(K, order)
    assert expected[0] == pytest.approx(1)
    np.testing.assert_allclose(np.abs(expected_vectors[:, 0]), cut.trivial, atol=1e-10)
    k = 3
    np.testing.assert_allclose((2 / order) ** 2 * values[:k], expected[1 : k + 1], rtol=1e-8, atol=1e-12)
    if values[k - 1] - values[k] > 1e-3 and values[k - 1] > 1e-6:
        difference = projector(vectors[:, :k]) - projector(expected_vectors[:, 1 : k + 1])
        assert np.linalg.norm(difference, 2) < 1e-5 * order


def test_infinite_order_is_modularity(kernel_matrix):
    cut = cut_of(kernel_matrix, np.inf)
    values = np.linalg.eigvalsh(matrix_of(cut))[::-1]
    np.testing.assert_allclose(values[:5] * cut.mean_degree, modularity(kernel_matrix)[0][:5], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("order", [2, 4, np.inf])
def test_the_first_pass_multiplies_a_start_for_free(order):
    K = np.abs(symmetric_matrix(30))
    probe = np.random.default_rng(3).normal(size=(30, 4))
    cut = NormalizedCut(DenseGram(K), order, np.arange(1.0, 31.0), probe)
    assert cut.n_passes == 1
    np.testing.assert_allclose(cut.start_image, cut.matmat(cut.start), atol=1e-10)
    assert cut.n_passes == 2


def test_rows_without_a_positive_degree_are_named():
    K = np.ones((5, 5))
    K[2] = K[:, 2] = -1
    K[2, 2] = 1
    refuses(DegreeError, r"1 of 5 rows .* order 2 \(rows 2; lowest -3.*rbf", cut_of, K, 2)
    assert (cut_of(K, 20).shrunken > 0).all()  # the condition is on S, not on δ


@pytest.mark.parametrize("order", [2, 4])
def test_weights_may_span_eight_orders_of_magnitude(order):
    """Where no value is negative nothing cancels: a light row far away has a degree, however heavy the others are."""
    X = np.random.default_rng(0).normal(size=(300, 2))
    X[-1] = 50
    weights = np.full(300, 1e4)
    weights[-3:] = 1e-4
    gram = TiledGram(make_kernel("rbf", gamma=0.5), X, dtype=np.float32)
    cut = NormalizedCut(gram, order, weights)
    K = make_kernel("rbf", gamma=0.5).block(X, X)
    np.testing.assert_allclose(cut.shrunken, NormalizedCut(DenseGram(K), order, weights).shrunken, rtol=1e-5)
    degrees = K @ weights
    np.testing.assert_allclose(cut.degrees, degrees, rtol=1e-5)
    assert degrees[-1] == pytest.approx(1e-4)


def test_values_of_both_signs_that_cancel_are_rounding():
    """The last row is orthogonal to the sum of all: what is left of its degree is rounding, and refused."""
    X = np.random.default_rng(0).normal(size=(500, 3)) + [10, 0, 0]
    X = np.concatenate([X, [[0, -X[:, 1].sum(), 0]]])
    with pytest.raises(DegreeError, match=r"rows have a degree that is not positive at order 2 \(rows .*500"):
        NormalizedCut(TiledGram(make_kernel("linear", gamma=None), X, dtype=np.float32), 2)


def test_a_total_that_is_not_positive_is_refused():
    X = np.random.default_rng(0).normal(size=(20, 2))
    X -= X.mean(axis=0)
    K = X @ X.T - 0.01
    refuses(DegreeError, r"sum to .*not above zero.*affinity='rbf'", cut_of, K, 4)
    refuses(DegreeError, "not finite", cut_of, np.full((3, 3), np.inf), 4)


def test_a_degree_near_the_smallest_number():
    K = np.abs(symmetric_matrix(8))
    K[0], K[:, 0] = 0, 0
    K[0, 0] = 1e-310  # its reciprocal is no float64
    cut = cut_of(K, 2)
    assert np.isfinite(matrix_of(cut)).all()
    # Row 0 is a part of its own, with eigenvalue 1 beside the trivial vector of the whole.
    np.testing.assert_allclose(np.linalg.eigvalsh(matrix_of(cut)).max(), 1, atol=1e-9)


# Which order


@pytest.mark.parametrize("n_far", [0, 1, 4])
def test_a_fit_takes_the_order_of_the_definition(n_far):
    random = np.random.default_rng(0)
    groups = [random.normal(size=(60, 2)), random.normal(size=(40, 2)) + 4]
    X = np.concatenate([*groups, 9 * random.normal(size=(n_far, 2))])
    model = BicliqueSpectralClustering(2, affinity="rbf", gamma=0.5, random_state=0).fit(X)
    expected = oracles.least_order(np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)), 2)
    assert model.order_ == expected
    assert (expected > 2) == (n_far > 0)


# The extension to new rows


def fitted(order, weights, n=40, k=3):
    X = np.random.default_rng(0).normal(size=(n, 3))
    gram = DenseGram.from_kernel(RBF(0.3), X)
    cut = NormalizedCut(gram, order, weights)
    pairs = top_eigenpairs(cut, k, deflate=cut.trivial)
    extension, rows = Extension.fit(cut, pairs)
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
    extension, rows = Extension.fit(cut, pairs)
    np.testing.assert_allclose(extension.embed(gram.cross(X[:200])), rows[:200], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("order", [2, 4])
def test_null_eigenvalues_give_columns_of_zeros(order):
    X = np.random.default_rng(0).normal(size=(30, 2)) + 5
    gram = DenseGram.from_kernel(Linear(), X)  # rank 2: the third pair is null
    cut = NormalizedCut(gram, order)
    extension, rows = Extension.fit(cut, top_eigenpairs(cut, 5, deflate=cut.trivial))
    assert extension.informative.sum() <= 2
    assert (rows[:, 1:][:, ~extension.informative] == 0).all()
    assert (extension.embed(gram.cross(X + 0.1))[:, 1:][:, ~extension.informative] == 0).all()


def test_a_point_that_nothing_sees_is_embedded_at_zero():
    for order in (2, 4):
        _, gram, _, _, extension, _ = fitted(order, np.ones(40))
        row = extension.embed(gram.cross(np.full((1, 3), 1e3)))
        assert (row[0, 0] > 0) == (order > 2)
        assert (row[0, 1:] == 0).all()


def test_a_negative_degree_of_a_new_row_is_refused():
    extension = fitted(2, np.ones(40))[4]
    with pytest.raises(DegreeError, match=r"1 of 2 new rows .* \(first: -40 in row 1, counted from 0\)"):
        extension.embed(StoredCross(np.array([[1.0] * 40, [-1.0] * 40])))
