"""Feature maps against the kernels they stand for, and the factored operator against its dense form."""

from functools import partial

import numpy as np
import pytest

from biclique.exceptions import ParameterError
from biclique.features.maps import (
    ExactMap,
    FourierMap,
    NystroemMap,
    SketchMap,
    column_sums,
    exact_columns,
    make_map,
    map_kind,
    map_product,
    weighted_gram,
)
from biclique.kernels import RBF, Cosine, Function, Laplacian, Linear, Polynomial, Sigmoid
from tests import oracles
from tests.calls import refusals
from tests.data import normal as rows

N = 400


MAPS = {
    "nystroem float64": lambda X: NystroemMap(RBF(0.4), X[:90], np.float64),
    "nystroem float32": lambda X: NystroemMap(RBF(0.4), X[:90], np.float32),
    "nystroem laplacian": lambda X: NystroemMap(Laplacian(0.4), X[:90], np.float32),
    "nystroem polynomial": lambda X: NystroemMap(Polynomial(0.3, 1.0, 2), X[:90], np.float64),
    "fourier": lambda X: FourierMap(RBF(0.4), X, 120, np.random.RandomState(0), np.float32),
    "fourier laplacian": lambda X: FourierMap(Laplacian(0.4), X, 121, np.random.RandomState(0), np.float64),
    "exact": lambda X: ExactMap(Polynomial(0.3, 1.0, 3), X.shape[1], np.float64),
    "sketch": lambda X: SketchMap(Polynomial(0.3, 1.0, 3), X, 64, np.random.RandomState(0)),
}


@pytest.fixture(params=MAPS)
def feature_map(request):
    return MAPS[request.param](rows())


def test_sums_over_rows(feature_map):
    X, w = rows(), np.random.default_rng(3).uniform(0.5, 2, N)
    C = feature_map.columns(X).astype(float)
    sums = column_sums(feature_map, X, w[:, None], n_jobs=2)
    np.testing.assert_allclose(sums[:, 0], C.T @ w, rtol=1e-4, atol=1e-4 * np.abs(C).sum(axis=0).max())
    for given, centre in ((None, 0.0), (C.mean(axis=0), C.mean(axis=0))):
        gram = weighted_gram(feature_map, X, lambda columns, place: np.sqrt(w[place]), centre=given, n_jobs=2)
        expected = ((C - centre) * w[:, None]).T @ (C - centre)
        np.testing.assert_allclose(gram, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_nystroem_is_its_definition():
    X, kernel = rows(60), RBF(0.7)
    features = NystroemMap(kernel, X[:12], np.float64).features(X)
    expected = oracles.nystroem(lambda x, y: np.exp(-0.7 * ((x - y) ** 2).sum()), X, X[:12])
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-10)
    # Exact at the landmarks, and everywhere when every row is one.
    np.testing.assert_allclose((features @ features.T)[:12, :12], kernel.block(X[:12], X[:12]), atol=1e-10)
    whole = NystroemMap(kernel, X, np.float64).features(X)
    np.testing.assert_allclose(whole @ whole.T, kernel.block(X, X), atol=1e-9)


def test_nystroem_keeps_the_positive_part_of_an_indefinite_kernel():
    X = rows(40)
    kernel = Sigmoid(0.8, -0.5)
    features = NystroemMap(kernel, X, np.float64).features(X)
    values, vectors = np.linalg.eigh(kernel.block(X, X))
    assert values[0] < -0.1
    positive = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(features @ features.T, positive, atol=1e-8)


@pytest.mark.once
@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(0.3)])
def test_random_features_are_unbiased_with_the_expected_spread(kernel):
    X = rows(25)
    errors = [
        (f := FourierMap(kernel, X, 200, np.random.RandomState(seed), np.float64).features(X)) @ f.T
        - kernel.block(X, X)
        for seed in range(100)
    ]
    mean = np.mean(errors, axis=0)
    # 100 frequencies have a deviation of at most 1/√(2·100) each; the mean of 100 draws, a tenth of that.
    assert np.std(errors) < 0.071
    assert np.abs(mean).max() < 5 * 0.071 / np.sqrt(100)
    assert np.abs(np.diagonal(mean)).max() < 1e-12  # cos² + sin²


def test_orthogonal_frequencies_are_better_than_independent_ones():
    X, kernel = rows(60, d=12), RBF(0.05)
    K = kernel.block(X, X)

    def error(frequencies):
        phases = X @ frequencies
        f = np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / np.sqrt(frequencies.shape[1])
        return np.mean((f @ f.T - K) ** 2)

    ours = np.mean(
        [error(FourierMap(kernel, X, 48, np.random.RandomState(seed), np.float64).frequencies) for seed in range(60)]
    )
    independent = np.mean(
        [error(np.sqrt(0.1) * np.random.default_rng(seed).normal(size=(12, 24))) for seed in range(60)]
    )
    assert ours < 0.8 * independent


@pytest.mark.parametrize(
    ("kernel", "columns"),
    [(Linear(), 3), (Cosine(), 3), (Polynomial(0.3, 1.0, 2), 10), (Polynomial(2.0, 0.0, 3), 20)],
)
def test_exact_maps_are_exact(kernel, columns):
    X = rows(50)
    features = ExactMap(kernel, 3, np.float64).features(X)
    assert features.shape[1] == exact_columns(kernel, 3) == columns
    np.testing.assert_allclose(features @ features.T, kernel.block(X, X), atol=1e-10)


def test_a_sketch_is_unbiased():
    X, kernel = rows(20, d=8), Polynomial(0.2, 1.0, 3)
    K = kernel.block(X, X)
    errors = [(f := SketchMap(kernel, X, 64, np.random.RandomState(seed)).features(X)) @ f.T - K for seed in range(300)]
    spread = np.std(errors, axis=0)
    assert spread.max() > 0.01  # it is a sketch
    assert (np.abs(np.mean(errors, axis=0)) < 5 * spread / np.sqrt(300) + 1e-12).all()


def test_a_sketch_follows_neither_the_order_nor_the_signs_of_columns():
    X, kernel = rows(20, d=8), Polynomial(0.2, 1.0, 3)
    found = SketchMap(kernel, X, 64, np.random.RandomState(0)).features(X)
    for changed in (-X, X[:, ::-1], X * np.where(np.arange(8) % 2, 1.0, -1.0)):
        np.testing.assert_allclose(SketchMap(kernel, changed, 64, np.random.RandomState(0)).features(changed), found)


def test_far_from_the_origin_columns_keep_their_digits():
    X = rows()
    near, far = (NystroemMap(RBF(0.5), X[:50] + t, np.float32).columns(X + t) for t in (0.0, 1e4))
    np.testing.assert_allclose(near, far, atol=2e-3)
    near, far = (
        FourierMap(RBF(0.5), X + t, 40, np.random.RandomState(0), np.float32).columns(X + t) for t in (0.0, 1e4)
    )
    np.testing.assert_allclose(near, far, atol=2e-3)


def test_landmarks_are_distinct_rows_and_follow_the_random_state():
    X = rows(500)
    first, again = (make_map("nystroem", RBF(0.4), X, 60, random=np.random.RandomState(0)) for _ in range(2))
    assert len(np.unique(first.held.rows, axis=0)) == 60
    assert np.array_equal(first.held.rows, again.held.rows)
    few = make_map("nystroem", RBF(0.4), X[:50], 60, random=np.random.RandomState(0))
    assert few.size == 50


def test_which_map():
    assert map_kind("nystroem", Linear(), 3, "auto") == "nystroem"
    assert map_kind("features", RBF(1.0), 3, "auto") == "fourier"
    assert map_kind("features", Cosine(), 3, "auto") == "exact"
    assert map_kind("features", Polynomial(1.0, 1.0, 3), 3, "auto") == "exact"
    assert map_kind("features", Polynomial(1.0, 1.0, 3), 300, "auto") == "sketch"
    assert map_kind("features", Polynomial(1.0, 1.0, 3), 10, 100) == "sketch"  # 286 columns would be exact
    assert isinstance(
        make_map("sketch", Polynomial(1.0, 1.0, 3), rows(), 50, random=np.random.RandomState(0)), SketchMap
    )


test_kernels_without_features_are_refused = refusals(
    (partial(map_kind, "features", Sigmoid(1.0, 0.0), 3, "auto"), ParameterError, "rbf, .* not 'sigmoid': use gram"),
    (partial(map_kind, "features", Function(min, {}), 3, "auto"), ParameterError, "not 'function'"),
    (partial(map_kind, "features", Polynomial(1.0, -1.0, 3), 3, "auto"), ParameterError, "coef0 of at least 0, got -1"),
    (partial(map_kind, "features", Linear(), 5000, "auto"), ParameterError, "the 5000 columns of X .*, at most 2048"),
    (partial(ExactMap, RBF(1.0), 3), ParameterError, "has no exact feature map"),
)


def test_large_coefficients_that_cancel_keep_the_digits_of_the_columns():
    X = rows(500)
    feature_map = NystroemMap(RBF(1e-3), X[:60], np.float32)
    Q = 1e4 * np.linalg.qr(np.random.RandomState(0).normal(size=(60, 3)))[0]
    expected = feature_map.columns(X).astype(float) @ Q
    np.testing.assert_allclose(map_product(feature_map, X, Q), expected, rtol=0, atol=1e-8)
