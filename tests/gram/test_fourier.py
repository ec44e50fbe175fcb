"""K through nonuniform FFTs: against the definition, over threads, and end to end beside exact tiles."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.exceptions import MissingExtraError, ParameterError
from biclique.gram import fourier
from biclique.gram.fourier import FourierGram, Grid, far_apart
from biclique.kernels import RBF
from tests.calls import refuses
from tests.gram.contract import GramContract, vectors

finufft = pytest.importorskip("finufft")


def spread_rows(d, seed=0):
    """Two groups far apart, five rows farther, and one row farther still."""
    random = np.random.default_rng(seed)
    groups = [random.normal(size=(300, d)), random.normal(size=(120, d)) + 30, random.normal(size=(5, d)) / 9 + 500]
    return np.concatenate([*groups, np.full((1, d), 9000.0)])


class TestFourier(GramContract):
    tolerance = 1e-5
    kernel = RBF(0.7)

    def rows(self):
        return np.random.default_rng(4).normal(size=(200, 2))

    def create(self, n_jobs=None):
        return FourierGram(self.kernel, self.rows(), n_jobs=n_jobs), self.rows()

    def dense(self):
        X = self.rows()
        return self.kernel.block(X, X)

    def far(self):
        random = np.random.default_rng(6)
        X = np.concatenate([random.normal(size=(30, 2)), random.normal(size=(20, 2)) + 100])
        return FourierGram(self.kernel, X)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("b", [1, 2, 5])
def test_products_are_those_of_the_matrix(d, b):
    X, kernel = spread_rows(d), RBF(0.7)
    gram, K, V = FourierGram(kernel, X), RBF(0.7).block(X, X), vectors(426, b)
    assert np.abs(gram.matmat(V) - K @ V).max() <= 2e-5 * np.abs(K @ V).max()
    # An error is measured relative to each row's own degree: isolated rows count as much as crowded ones.
    degrees = gram.matmat(np.ones((426, 1)))[:, 0]
    assert np.abs(degrees - K.sum(axis=1)).max() / K.sum(axis=1).min() < 1e-3
    assert (np.abs(degrees - K.sum(axis=1)) / K.sum(axis=1)).max() <= fourier.TARGET
    assert gram.error.product <= fourier.TARGET


@pytest.mark.parametrize("tolerance", [1e-6, 1e-10])
def test_the_docstrings_formula(tolerance):
    x, y, gamma = np.array([[0.3, -1.0]]), np.array([[1.1, 0.4]]), 1.3
    grid = Grid.of(gamma, np.concatenate([x, y]), tolerance)
    coefficients, total = grid.coefficients(gamma), 0.0
    for i, a in enumerate(range(-grid.highest[0], grid.highest[0] + 1)):
        for j, b in enumerate(range(-grid.highest[1], grid.highest[1] + 1)):
            angle = 2 * np.pi * (np.array([a, b]) / grid.sides) @ (x - y)[0]
            total += coefficients[i, j] * np.cos(angle)
    assert total == pytest.approx(RBF(gamma).block(x, y)[0, 0], abs=20 * tolerance)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_groups_are_what_the_reach_connects(d):
    X = np.random.default_rng(d).uniform(0, 40 if d > 1 else 400, size=(150, d))
    groups = far_apart(X, 3.0)
    assert sorted(np.concatenate(groups).tolist()) == list(range(150))
    label = np.empty(150, dtype=int)
    for number, some in enumerate(groups):
        label[some] = number
    gaps = np.abs(X[:, None] - X[None]).max(axis=2)
    apart = label[:, None] != label[None]
    assert gaps[apart].min() > 3.0  # rows of two groups are farther apart than that
    assert len(groups) > 1


@pytest.mark.parametrize("d", [1, 2, 3])
def test_new_rows_go_through_the_grid(monkeypatch, d):
    monkeypatch.setattr(fourier, "DIRECT_PAIRS", 10)
    X, V = spread_rows(d), vectors(426, 3)
    new = np.concatenate([spread_rows(d, 5)[::3] * 1.01, np.full((1, d), 3.5), np.full((1, d), 1e7)])
    cross = FourierGram(RBF(0.7), X).cross(new)
    exact = RBF(0.7).block(new, X) @ V
    assert np.abs(cross.matmat(V) - exact).max() < 1e-3
    np.testing.assert_array_equal(cross.diagonal(), np.ones(len(new)))


@pytest.mark.once
def test_new_rows_that_hardly_any_training_row_sees(monkeypatch):
    """A grid's error is that of the crowded places: rows far outside are computed by pairs, whatever the weights."""
    monkeypatch.setattr(fourier, "DIRECT_PAIRS", 10)
    X = make_blobs(3000, centers=3, random_state=1)[0]
    new = np.random.default_rng(0).uniform(X.min(axis=0) - 4, X.max(axis=0) + 4, size=(2000, 2))
    weights, gram = np.random.default_rng(2).uniform(1e-6, 2e-6, 3000), FourierGram(RBF(1.5), X)
    for given in (np.ones(3000), weights):
        gram.weigh(given)
        exact = RBF(1.5).block(new, X) @ given[:, None]
        assert (np.abs(gram.cross(new).matmat(given[:, None]) - exact) <= 1e-3 * exact).all()
    tiled, fast = (
        BicliqueSpectralClustering(
            3, affinity="rbf", gram=gram, gamma=1.5, order=2, precision="float64", random_state=0
        ).fit(X)
        for gram in ("tiled", "fourier")
    )
    np.testing.assert_allclose(fast.transform(new), tiled.transform(new), atol=1e-6)
    assert adjusted_rand_score(tiled.predict(new), fast.predict(new)) > 0.99


def test_many_boxes_of_few_rows():
    """Rows on a wide raster: boxes of one row, of three and of many."""
    random = np.random.default_rng(0)
    raster = np.stack(np.meshgrid(np.arange(20), np.arange(20)), axis=-1).reshape(-1, 2) * 50.0
    X = np.concatenate([raster, raster[:90] + 0.3, raster[:90] - 0.2, random.normal(size=(200, 2)) + 2000])
    kernel, V = RBF(0.7), vectors(len(X), 3)
    gram = FourierGram(kernel, random.permutation(X))
    K = kernel.block(gram.held.rows, gram.held.rows)
    np.testing.assert_allclose(gram.matmat(V), K @ V, atol=1e-4)
    new = X[::7] + 0.1
    fourier_cross = gram.training().by_grid(new, None).matmat(V)
    np.testing.assert_allclose(fourier_cross, gram.held.cross(new).matmat(V), atol=1e-4)


def test_heavy_rows_ask_for_more_digits():
    """The error of a product is that of its largest terms: one row of weight 10⁴ beside rows of weight 1."""
    X = np.concatenate([make_blobs(1500, 1, centers=4, random_state=0)[0], [[30.0]]])
    weights = np.ones(1501)
    weights[-1] = 1e4
    gram = FourierGram(RBF(0.02), X)
    gram.weigh(weights)
    exact = RBF(0.02).block(X, X) @ weights
    np.testing.assert_allclose(gram.matmat(weights[:, None])[:, 0], exact, rtol=1e-5)
    weights[-1] = 1e13
    with pytest.raises(ParameterError, match=r"above the 1e-05 that it promises: use gram='tiled' \(exact\)"):
        BicliqueSpectralClustering(4, affinity="rbf", gram="fourier", order=2, gamma=0.02).fit(X, sample_weight=weights)


def test_sparse_rows_are_rows():
    X = np.abs(spread_rows(2)[:420])
    X[:300:3, 0] = 0.0
    options = {"affinity": "rbf", "gram": "fourier", "gamma": 1.0, "random_state": 0}
    dense, held = (BicliqueSpectralClustering(2, **options).fit(rows) for rows in (X, sparse.csr_array(X)))
    np.testing.assert_array_equal(dense.labels_, held.labels_)
    stored = sparse.csr_array((X.ravel(), np.tile([0, 1], 420), np.arange(0, 841, 2)), shape=X.shape)  # with zeros
    for rows in (sparse.csr_array(X), stored, X):
        np.testing.assert_array_equal(held.predict(rows), held.labels_)
        np.testing.assert_allclose(held.transform(rows), held.embedding_, atol=1e-6)


def test_far_boxes_keep_their_digits():
    random = np.random.default_rng(0)
    for size in (40, 400):
        X = np.concatenate([random.normal(size=(500, 2)), random.normal(size=(size, 2)) + 1e7])
        gram = FourierGram(RBF(1.0), X)
        for place, exact in ((slice(500), X[:500]), (slice(500, None), X[500:] - 1e7)):
            degrees = RBF(1.0).block(exact, exact).sum(axis=1)
            np.testing.assert_allclose(gram.matmat(np.ones((len(X), 1)))[place, 0], degrees, rtol=1e-5)


def test_rows_that_spread_too_far_are_refused():
    line = np.stack(np.meshgrid(np.arange(3000) * 2.0, np.arange(4) * 2.0), axis=-1).reshape(-1, 2)
    model = BicliqueSpectralClustering(4, affinity="rbf", gram="fourier", order=2, gamma=1.0)
    with pytest.raises(fourier.GridError, match="rows spread too far for this bandwidth"):
        model.fit(np.concatenate([line, line[:, ::-1]]))
    with pytest.raises(ParameterError, match="rows spread too far for this bandwidth"):
        FourierGram(RBF(1e7), np.linspace(0, 1, 3000)[:, None] * [1, 1])


@pytest.mark.parametrize(
    ("affinity", "d", "message"),
    [
        ("laplacian", 2, "falls off fast, such as rbf, not 'laplacian'"),
        ("linear", 2, "not 'linear'"),
        ("rbf", 4, "at most 3 columns, X has 4"),
    ],
)
def test_what_it_cannot_do_is_refused(affinity, d, message):
    X = np.abs(np.random.default_rng(0).normal(size=(200, d)))
    refuses(ParameterError, message, BicliqueSpectralClustering(2, gram="fourier", affinity=affinity).fit, X)


def test_without_finufft_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("biclique.exceptions.import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[fourier\]'"):
        BicliqueSpectralClustering(2, affinity="rbf", gram="fourier").fit(np.random.default_rng(0).normal(size=(90, 2)))


@pytest.mark.parametrize("data", ["blobs", "moons", "unequal", "far apart"])
def test_fits_are_those_of_exact_tiles(data):
    random = np.random.default_rng(0)
    if data == "blobs":
        X, k = make_blobs(1200, n_features=3, centers=4, random_state=3)[0], 4
    elif data == "moons":
        X, k = make_moons(2000, noise=0.06, random_state=0)[0], 2
    elif data == "far apart":
        X, k = spread_rows(2), 4
    else:
        X = np.concatenate([random.normal(size=(1800, 2)), random.normal(size=(160, 2)) + 6])
        X, k = np.concatenate([X, random.normal(size=(40, 2)) + [6, -6]]), 3
    tiled, fast = (
        BicliqueSpectralClustering(k, affinity="rbf", gram=gram, precision="float64", random_state=0).fit(X)
        for gram in ("tiled", "fourier")
    )
    assert adjusted_rand_score(tiled.labels_, fast.labels_) >= 0.9999
    np.testing.assert_allclose(fast.eigenvalues_, tiled.eigenvalues_, atol=1e-5)
    assert fast.gram_ == "fourier"
    assert fast.approximation_.product <= fourier.TARGET
    assert (fast.predict(X) == fast.labels_).all()
    new = X[:50] + 1e-3
    assert adjusted_rand_score(fast.predict(new), tiled.predict(new)) > 0.97
