"""The default on many rows: wherever they are, for any number of threads, with weights, and by every metric.

The definition itself is tested in ``tests/features/test_neighborhoods.py``.
"""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering, BicliqueSpectralEmbedding
from biclique.features.neighborhoods import LANDMARKS, NeighborhoodMap
from biclique.fit import neighborhood_cut
from biclique.fit.neighborhood_cut import landmark_count, landmark_pairs
from biclique.kernels import Gower
from tests import oracles
from tests.data import mixed
from tests.optional import Optional, needs

da = Optional("dask.array")
N, RANK = 60_000, 500


def fitted(X, k, sample_weight=None, **parameters):
    return BicliqueSpectralClustering(k, random_state=0, **parameters).fit(X, sample_weight=sample_weight)


def unequal(n, seed=0):
    """90, 8 and 2 % of the rows."""
    random = np.random.default_rng(seed)
    y = random.choice(3, n, p=[0.9, 0.08, 0.02])
    return random.normal(size=(n, 4)) + np.array([[0, 0, 0, 0], [5, 5, 0, 0], [5, -5, 0, 0]])[y], y


DATA = {
    "moons": (*make_moons(N, noise=0.1, random_state=0), 2),
    "blobs": (*make_blobs(N, n_features=8, centers=5, cluster_std=2.5, random_state=0), 5),
    "unequal": (*unequal(N), 3),
}


@pytest.fixture(scope="module", params=[("moons", False), ("blobs", False), ("unequal", True)], ids=str)
def held(request):
    """Rows, the fit of them in memory, and the gap below its eigenvalues."""
    name, exact = request.param
    X, y, k = DATA[name]
    if exact:
        X = np.round(X * 1024) / 1024  # multiples of 2⁻¹⁰
    model = fitted(X, k, rank=RANK)
    assert adjusted_rand_score(y, model.labels_) > 0.97
    assert np.array_equal(model.predict(X), model.labels_)
    values = BicliqueSpectralEmbedding(k + 1, rank=RANK, random_state=0).fit(X).eigenvalues_
    return X, k, model, values[-2] - values[-1], exact


def in_dask(X):
    return da.from_array(X, chunks=(3 * len(X) // 10, -1)), {}


def on_device(X):
    return X, {"device": "cpu"}


PLACES = [pytest.param(in_dask, marks=needs("dask")), pytest.param(on_device, marks=needs("torch"))]


@pytest.mark.parametrize("place", PLACES)
def test_it_does_not_matter_where_rows_are(held, place):
    X, k, model, gap, exact = held
    rows, settings = place(X)
    other = fitted(rows, k, rank=RANK, **settings)
    agreement = adjusted_rand_score(model.labels_, np.asarray(other.labels_))
    assert agreement == 1 if exact else agreement >= 0.9999
    assert (other.rank_, other.n_neighbors_, other.order_) == (model.rank_, model.n_neighbors_, 2.0)
    np.testing.assert_allclose(other.eigenvalues_, model.eigenvalues_, atol=1e-8)
    assert gap > 1e-4  # else the test says nothing
    U, V = (one.transform(X[:200]) * np.sqrt(N) for one in (model, other))  # of length √k or so
    np.testing.assert_allclose(U @ U.T, V @ V.T, rtol=0, atol=1e-5)
    assert np.array_equal(other.predict(X[:1000]), np.asarray(other.labels_[:1000]))


# Threads


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("place", [lambda X: (X, {}), *PLACES])
def test_bits_do_not_depend_on_threads(place, order):
    X = unequal(20_000)[0]
    rows, settings = place(X)
    first, *more = (fitted(rows, 3, rank=200, order=order, n_jobs=n_jobs, **settings) for n_jobs in (1, 2, 5))
    for other in more:
        assert np.array_equal(other.eigenvalues_, first.eigenvalues_)
        assert np.array_equal(np.asarray(other.labels_), np.asarray(first.labels_))
        assert np.array_equal(other.transform(X[:500]), first.transform(X[:500]))


# Weights


def test_weights_are_repeated_rows_with_centres():
    X, y = make_blobs(20_000, n_features=4, centers=3, random_state=3)
    counts = np.random.default_rng(1).integers(0, 4, len(X))
    weighted, repeated = fitted(X, 3, counts, rank=300), fitted(np.repeat(X, counts, axis=0), 3, rank=300)
    assert weighted.rank_ == repeated.rank_ == 300
    assert adjusted_rand_score(np.repeat(weighted.labels_, counts), repeated.labels_) > 0.99
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, atol=0.01)
    assert adjusted_rand_score(y[counts == 0], weighted.labels_[counts == 0]) > 0.97  # rows that do not count
    ones = fitted(X, 3, np.full(len(X), 7.0), rank=300)
    plain = fitted(X, 3, rank=300)
    assert np.array_equal(ones.labels_, plain.labels_)
    np.testing.assert_allclose(ones.eigenvalues_, plain.eigenvalues_, atol=1e-9)


# Metrics


@pytest.mark.filterwarnings("ignore::biclique.exceptions.ColumnSpreadWarning")
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("settings", [{"kernel_params": {"metric": "cosine"}}, {"affinity": "cosine"}], ids=str)
def test_lengths_of_rows_do_not_matter_by_angles(settings, stored):
    X = load_digits().data
    lengths = 2.0 ** np.random.RandomState(0).randint(-3, 4, (len(X), 1))
    first, second = (fitted(stored(rows), 10, **settings) for rows in (X, X * lengths))
    assert adjusted_rand_score(first.labels_, second.labels_) == 1


def texts(n, seed=0):
    """Counts of 60 words in n short texts of five kinds and of any length."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 5, n)
    own = np.arange(60) // 12 == y[:, None]
    return random.poisson(np.where(own, 1.0, 0.05) * random.uniform(0.5, 10, (n, 1))) + own * 1.0, y


@pytest.mark.parametrize("rank", ["auto", 300])
def test_cosine(rank):
    X, y = texts(900)
    settings = {"kernel_params": {"metric": "cosine"}, "rank": rank}
    dense, stored = fitted(X, 5, **settings), fitted(sparse.csr_array(X), 5, **settings)
    scaled = fitted(X * np.random.default_rng(1).uniform(1e-6, 1e6, (900, 1)), 5, **settings)
    for model in (dense, stored, scaled):
        assert model.rank_ == (900 if rank == "auto" else 300)
        assert adjusted_rand_score(y, model.labels_) > 0.99
    for rows in (X, sparse.csr_array(X), sparse.csr_matrix(X)):
        assert np.array_equal(dense.predict(rows), dense.labels_)
        assert np.array_equal(stored.predict(rows), stored.labels_)
    if rank == "auto":  # landmarks are the rows: the euclidean ones of rows of length 1
        unit = fitted(X / np.linalg.norm(X, axis=1, keepdims=True), 5)
        for model in (dense, stored, scaled):
            np.testing.assert_allclose(model.eigenvalues_, unit.eigenvalues_, atol=1e-6)
            assert adjusted_rand_score(model.labels_, unit.labels_) == 1


GOWER = {"kernel_params": {"metric": Gower([2, 3, 4])}}


@pytest.mark.filterwarnings("ignore::biclique.exceptions.GapsWarning")
def test_gower_by_its_definition():
    X, _ = mixed(70, gaps=0.1)
    model = fitted(X, 3, **GOWER)
    found = model._fitted.points.map
    assert isinstance(found, NeighborhoodMap)
    Z, r, ranges = found.landmarks, model.n_neighbors_, oracles.gower_ranges(X)
    assert len(Z) == len(X)
    categorical = [False, False, True, True, True]
    near = np.array([[oracles.gower_distance(x, z, ranges, categorical) for z in Z] for x in X])
    columns = found.columns(X).toarray()
    for own, row in zip(near, columns, strict=True):
        radius = np.sort(own)[r - 1]
        expected = set(np.flatnonzero(own <= radius * (1 + 1e-9)).tolist())
        members = set(np.flatnonzero(row).tolist())
        assert members == expected if len(expected) <= 4 * r else members <= expected
    between = np.array([[oracles.gower_distance(x, z, ranges, categorical) for z in Z] for x in Z])
    radii = np.sort(between, axis=1)[:, r]  # the landmark itself is its nearest
    np.testing.assert_allclose(
        found.edge_weights, np.maximum(np.exp(-(radii**2) / np.median(radii**2)), 2.0**-52), rtol=1e-9
    )


@needs("dask")
@pytest.mark.filterwarnings("ignore::biclique.exceptions.GapsWarning")
def test_gower_of_many_rows():
    X, y = mixed(6000, gaps=0.1)
    gaps = fitted(X, 3, rank=200, **GOWER)
    assert adjusted_rand_score(y, gaps.labels_) > 0.9
    assert np.array_equal(gaps.predict(X), gaps.labels_)
    X = np.nan_to_num(X)  # which are for rows in memory
    model = fitted(X, 3, rank=200, **GOWER)
    other = fitted(in_dask(X)[0], 3, rank=200, **GOWER)
    assert adjusted_rand_score(model.labels_, np.asarray(other.labels_)) == 1


# How many landmarks


def test_all_rows_are_landmarks():
    X, y = make_moons(5000, noise=0.1, random_state=0)
    X[:3] = X[3:6]
    model = fitted(X, 2, rank="all")
    assert (model.rank_, fitted(X, 2).rank_) == (4997, LANDMARKS)
    assert np.array_equal(np.unique(model._fitted.points.map.landmarks, axis=0), np.unique(X, axis=0))
    assert adjusted_rand_score(y, model.labels_) > 0.97
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.array_equal(model.labels_, fitted(X, 2, rank=4997).labels_)


def test_many_clusters_have_twenty_landmarks_each():
    counts = [landmark_count(BicliqueSpectralClustering(k)._settings()) for k in (2, 200, 201, 250)]
    assert counts == [4000, 4000, 4020, 5000]
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(201), 21)
    X = np.column_stack([y // 16, y % 16]) * 10.0 + random.normal(size=(len(y), 2))
    model = fitted(X, 201, n_init=1)
    assert LANDMARKS < model.rank_ <= 4020
    assert adjusted_rand_score(y, model.labels_) > 0.99


@pytest.mark.parametrize(("seed", "n", "rank"), [(32, 1500, "auto"), (351, 1500, "auto"), (206, 3000, 800)])
def test_eigenvectors_of_few_rows_are_not_missed(seed, n, rank, monkeypatch):
    """Rows of heavy tails have them: no coarse graph shows them, and residuals cannot tell."""
    exact = []

    def watched(G, s, *rest):
        unit = s / np.linalg.norm(s)
        dense = G.toarray() - np.outer(unit, unit @ G)
        exact.append(np.linalg.eigvalsh(dense - np.outer(dense @ unit, unit))[::-1])
        return landmark_pairs(G, s, *rest)

    monkeypatch.setattr(neighborhood_cut, "landmark_pairs", watched)
    X = np.random.default_rng(seed).standard_cauchy((n, 2))
    model = BicliqueSpectralClustering(4, rank=rank, random_state=0).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, exact[-1][:3], atol=1e-7)
