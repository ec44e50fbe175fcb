"""The cut of a factored K against the dense solution of the same K, and the estimate of its error."""

import numpy as np
import pytest

from biclique.exceptions import DegreeError
from biclique.features.maps import ExactMap, FourierMap, NystroemMap
from biclique.fit.low_rank import approximation_error, factored_spectrum
from biclique.gram.dense import DenseGram
from biclique.kernels import RBF, Laplacian, Linear
from biclique.rows.array import ArrayRows
from biclique.spectral.cut import Extension, NormalizedCut
from biclique.spectral.solver import top_eigenpairs
from tests.data import normal as rows

N = 400


def in_chunks(X, weights, size):
    return ArrayRows(X, weights, block_rows=size)


@pytest.mark.parametrize("order", [2, 2.1, 4, 20, np.inf])
@pytest.mark.parametrize("weighted", [False, True])
def test_eigenpairs_and_embedding_are_those_of_the_dense_matrix(order, weighted):
    X = rows()
    w = np.random.default_rng(1).integers(1, 4, N).astype(float) if weighted else np.ones(N)
    feature_map = NystroemMap(RBF(0.3), X[:50], np.float64)
    Phi = feature_map.features(X)
    cut = NormalizedCut(DenseGram(Phi @ Phi.T), order, w)
    pairs = top_eigenpairs(cut, 4, deflate=cut.trivial)
    _, expected = Extension.fit(cut, pairs)
    found = factored_spectrum(feature_map, in_chunks(X, w, 77), order, 4, length=1.0)
    found = found.with_signs(found.embed_seen(X)[0], w)
    np.testing.assert_allclose(found.values, pairs.values, rtol=1e-10)
    np.testing.assert_allclose(found.embed_seen(X)[0], expected, atol=1e-8)
    assert found.n_rows == N
    assert found.unseen == 0
    np.testing.assert_allclose(found.residuals, 0, atol=1e-12)


def test_the_docstrings_formula():
    # B = AAᵀ with A = W^(1/2) S^(−1/2) Φ (I − ssᵀ/ρ), and the rows of the embedding as they stand there.
    X, w, order = rows(60), np.random.default_rng(1).uniform(0.5, 2, 60), 4.0
    feature_map = FourierMap(RBF(0.3), X, 20, np.random.RandomState(0), np.float64)
    Phi = feature_map.features(X)
    s = Phi.T @ w
    delta, rho = Phi @ s, s @ s
    S = (2 / order) * delta + (1 - 2 / order) * rho / w.sum()
    A = np.sqrt(w / S)[:, None] * (Phi - np.outer(delta / rho, s))
    K = Phi @ Phi.T
    B = np.sqrt(w / S)[:, None] * (K - np.outer(delta, delta) / rho) * np.sqrt(w / S)
    np.testing.assert_allclose(A @ A.T, B, atol=1e-12)
    values, U = np.linalg.eigh(A.T @ A)
    values, U = values[::-1][:3], U[:, ::-1][:, :3]
    embedded = (Phi - np.outer(delta / rho, s)) @ U / np.sqrt(values) / np.sqrt(S)[:, None]
    found = factored_spectrum(feature_map, in_chunks(X, w, 60), order, 3, length=1.0)
    ours = found.embed_seen(X)[0]
    np.testing.assert_allclose(found.values, values, rtol=1e-10)
    np.testing.assert_allclose(np.abs(ours[:, 1:]), np.abs(embedded), atol=1e-9)
    np.testing.assert_allclose(ours[:, 0], np.sqrt(S / rho), atol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(1e-3), RBF(1e-2), RBF(0.1), Laplacian(1e-3), Laplacian(1e-2)])
def test_float32_invents_no_eigenvalue(kernel):
    X, w = rows(1500), np.ones(1500)
    values = [
        factored_spectrum(NystroemMap(kernel, X[:200], dtype), in_chunks(X, w, 1500), 4, 8, length=1.0).values
        for dtype in (np.float32, np.float64)
    ]
    np.testing.assert_allclose(values[0], values[1], atol=1e-3 * values[1][0])


def test_unseen_rows_are_counted_and_finite():
    X = np.concatenate([rows(), np.full((3, 3), 1e3)])
    feature_map = NystroemMap(RBF(0.3), X[:50], np.float64)
    found = factored_spectrum(feature_map, in_chunks(X, np.ones(len(X)), 100), 2, 3, length=1.0)
    assert found.unseen == 3
    embedded = found.embed_seen(X)[0]
    assert np.isfinite(embedded).all()
    assert np.abs(embedded[-3:]).max() < 1e-6
    assert factored_spectrum(feature_map, in_chunks(X, np.ones(len(X)), 100), 4, 3, length=1.0).unseen == 0


def test_degrees_that_are_not_positive_are_refused():
    X = rows()
    centred = X - X.mean(axis=0)
    with pytest.raises(DegreeError, match=r"the kernel values sum to .* not above zero"):
        factored_spectrum(ExactMap(Linear(), 3), in_chunks(centred, np.ones(N), 99), 4, 2, length=1.7)
    shifted = X + [1.0, 0, 0]
    first = int(np.flatnonzero(shifted @ shifted.sum(axis=0) < 0)[0])
    message = rf"\d+ of 400 rows have a degree that is not positive at order 2 \(first row {first};"
    with pytest.raises(DegreeError, match=message):
        factored_spectrum(ExactMap(Linear(), 3), in_chunks(shifted, np.ones(N), 99), 2, 2, length=1.7)


def test_errors_against_the_exact_kernel():
    X, kernel = rows(300), RBF(0.3)

    def error_of(landmarks):
        return approximation_error(kernel, NystroemMap(kernel, landmarks, np.float64), X, np.ones(300), 4.0, 3, 0)

    assert max(error_of(X).eigenvalues, error_of(X).kernel) < 1e-6
    errors = [error_of(rows(p, seed=5)) for p in (5, 20, 80)]
    assert errors[0].eigenvalues > errors[1].eigenvalues > errors[2].eigenvalues
    assert str(errors[0]).startswith("eigenvalues within ")
    K, features = kernel.block(X, X), NystroemMap(kernel, rows(5, seed=5), np.float64).features(X)
    assert errors[0].kernel == pytest.approx(np.linalg.norm(features @ features.T - K) / np.linalg.norm(K))
    # A map of one feature finds one eigenvalue, and one that sees nothing of the rows none.
    exact = top_eigenpairs(NormalizedCut(DenseGram(K), 4.0), 3).values
    assert error_of(rows(2, seed=5)).eigenvalues >= exact[1] / exact[0] - 1e-9
    assert error_of(rows(5) + 100).eigenvalues == 1.0


@pytest.mark.parametrize("order", [2, 2.1])
def test_a_light_row_beside_five_million(order):
    """Rounding of a degree is a share of its own terms, not of the number of rows."""
    X = np.concatenate([rows(2000), np.full((1, 3), 50.0)])
    w = np.append(np.full(2000, 2500.0), 1.0)
    found = [
        factored_spectrum(NystroemMap(RBF(0.3), X[-100:], dtype), in_chunks(X, w, 500), order, 3, length=1.0)
        for dtype in (np.float32, np.float64)
    ]
    assert [f.unseen for f in found] == [0, 0]
    np.testing.assert_allclose(found[0].values, found[1].values, rtol=5e-3)  # float32 leaves directions out
    np.testing.assert_allclose(found[0].embed_seen(X)[0][-1] ** 2, found[1].embed_seen(X)[0][-1] ** 2, atol=1e-4)
    if order == 2:
        assert found[0].values[0] == pytest.approx(1, abs=1e-5)
