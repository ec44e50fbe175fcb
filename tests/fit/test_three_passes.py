"""The estimators with an approximate or exactly factored K, on rows in memory and in chunks."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans
from biclique.exceptions import (
    ApproximationWarning,
    ParameterError,
    RankWarning,
)
from tests.case_names import without_address


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(6000, n_features=6, centers=5, cluster_std=1.5, center_box=(-6, 6), random_state=0)
    X.setflags(write=False)
    return X, y


def fitted(X, n_clusters=5, sample_weight=None, **parameters):
    settings = {"affinity": "rbf", "gram": "nystroem", "random_state": 0, **parameters}
    return BicliqueSpectralClustering(n_clusters, **settings).fit(X, sample_weight=sample_weight)


@pytest.fixture(scope="module")
def exactly(blobs):
    """Exact fits of the blobs, each done once."""
    return functools.cache(lambda **parameters: fitted(blobs[0], gram="tiled", **parameters))


@pytest.mark.parametrize("gram", ["nystroem", "features"])
@pytest.mark.parametrize("order", [2, np.inf])
def test_agrees_with_the_exact_solution(blobs, exactly, gram, order):
    X, _ = blobs
    exact = exactly(order=order)
    ours = fitted(X, gram=gram, rank=1000, gamma=exact.gamma_, order=order)
    assert ours.gram_ == gram
    assert adjusted_rand_score(exact.labels_, ours.labels_) > 0.98
    tolerance = 0.02 if gram == "nystroem" else 0.1
    np.testing.assert_allclose(ours.eigenvalues_, exact.eigenvalues_, atol=tolerance * exact.eigenvalues_[0])


def own(x, y):
    return np.exp(-0.05 * ((x - y) ** 2).sum())


@pytest.mark.parametrize("held", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "way",
    [{"gamma": 0.05}, {"gamma": 0.05, "modelling": "symmetric", "order": 3}, {"affinity": "cosine"}, {"affinity": own}],
    ids=without_address,
)
def test_all_rows_as_landmarks_are_exact(way, held):
    if way.get("affinity") is own and held is not np.asarray:
        pytest.skip("a function takes dense rows")
    X = held(make_blobs(150, n_features=4, centers=3, center_box=(2, 12), random_state=1)[0])
    exact, ours = fitted(X, 3, gram="dense", **way), fitted(X, 3, rank=150, precision="float64", **way)
    np.testing.assert_allclose(ours.eigenvalues_, exact.eigenvalues_, atol=1e-8)
    np.testing.assert_allclose(ours.embedding_, exact.embedding_, atol=1e-6)
    assert np.array_equal(ours.labels_, exact.labels_)


EXACT = [("linear", 3), ("cosine", 3), ("polynomial", 2), ("polynomial", 3)]


@pytest.mark.parametrize(
    ("affinity", "degree", "held"),
    [*((*kernel, np.asarray) for kernel in EXACT), *((*kernel, sparse.csr_array) for kernel in EXACT[:2])],
)
def test_exact_features_are_exact(affinity, degree, held):
    X = held(make_blobs(500, n_features=3, centers=3, center_box=(2, 12), random_state=1)[0])
    settings = {"affinity": affinity, "degree": degree, "precision": "float64", "row_normalize": True}
    exact, ours = fitted(X, 3, gram="dense", **settings), fitted(X, 3, gram="features", **settings)
    assert ours.approximation_ is None
    np.testing.assert_allclose(ours.eigenvalues_, exact.eigenvalues_, atol=1e-9)
    assert np.array_equal(ours.labels_, exact.labels_)


@pytest.mark.parametrize("affinity", ["polynomial", "linear", "cosine"])
def test_landmarks_of_kernels_with_a_large_mean(blobs, affinity):
    X = blobs[0][:2000].astype(np.float32) + 12
    exact = fitted(X, gram="dense", affinity=affinity)
    ours = fitted(X, affinity=affinity, rank=200)
    assert ours.precision_ == "float64"
    np.testing.assert_allclose(ours.eigenvalues_, exact.eigenvalues_, rtol=0.02, atol=1e-6)


def gap(ours, exact):
    """max |λ̂ − λ| / λ_1, as ``approximation_`` has it."""
    return np.abs(ours.eigenvalues_ - exact.eigenvalues_).max() / exact.eigenvalues_[0]


@given(
    st.sampled_from(["rbf", "laplacian"]),
    st.floats(-4, 1),
    st.sampled_from([2, 4, np.inf]),
    st.sampled_from([20, 100, 250]),
    st.integers(0, 1000),
)
@hypothesis_settings(max_examples=25, deadline=None, derandomize=True)
@pytest.mark.filterwarnings("ignore::biclique.exceptions.BicliqueWarning")
def test_the_reported_error_is_that_of_the_fit(affinity, log_gamma, order, rank, seed):
    """``approximation_.eigenvalues`` is how far those in float32 are from the exact ones, as a share of the first."""
    d = 2 + seed % 6
    X, _ = make_blobs(500, n_features=d, centers=4, random_state=seed)
    settings = {"affinity": affinity, "gamma": 10**log_gamma, "order": order}
    ours = fitted(X, 4, rank=rank, precision="float32", **settings)
    reported = ours.approximation_.eigenvalues
    assert ours.approximation_.n_rows == 500
    assert reported == pytest.approx(gap(ours, fitted(X, 4, gram="dense", **settings)), rel=0.01, abs=1e-4)


@pytest.mark.parametrize("settings", [{"gram": "features"}, {"rank": 50}, {"gram": "dense"}])
def test_null_columns_have_a_warning(settings):
    X = np.random.default_rng(0).normal(size=(300, 2)) + 8  # linear: two columns, one of them trivial
    with pytest.warns(RankWarning, match="the kernel gives 2 informative columns, 4 were asked for"):
        model = fitted(X, 4, affinity="linear", **settings)
    assert (np.abs(model.embedding_).max(axis=0) > 0).tolist() == [True, True, False, False]


@pytest.mark.once
def test_kernel_kmeans(blobs, exactly):
    X, _ = blobs
    search = BicliqueKernelKMeans(5, affinity="rbf", gram="nystroem", rank=200, random_state=0).fit(X)
    assert search.gram_ == "nystroem"
    assert search.rank_ == 200
    assert (np.diff(search.cut_history_) <= 1e-6).all()
    assert adjusted_rand_score(search.labels_, exactly().labels_) > 0.95
    assert np.array_equal(search.predict(X), search.labels_)


# Bad input


def test_equal_rows_are_one_landmark(blobs):
    few = np.repeat(blobs[0][:20], 20, axis=0)
    assert fitted(few, 3).rank_ == 20
    with pytest.raises(ParameterError, match="rank=50 is more than the 20 distinct rows there are"):
        fitted(few, rank=50)


def test_unseen_rows_have_a_warning(blobs):
    X = np.concatenate([blobs[0], np.full((2, 6), 500.0)])
    with pytest.warns(ApproximationWarning, match="2 of 6002 rows are like no landmark"):
        fitted(X, order=2, rank=100, random_state=1)


@pytest.mark.parametrize("rank", ["auto", 200])
def test_float32_landmarks_where_all_values_are_near_one(rank, monkeypatch):
    monkeypatch.setattr("biclique.features.maps.PRECISE_SIZE", 0)  # sums in float32, as of many columns and rows
    monkeypatch.setattr("biclique.features.maps.PRECISE_ROWS", 0)
    X, y = make_blobs(600, n_features=2, centers=3, random_state=0)
    settings = {"affinity": "laplacian", "gamma": 1e-3}
    exact, ours = fitted(X, 3, gram="dense", **settings), fitted(X, 3, rank=rank, precision="float32", **settings)
    assert max(gap(ours, exact), ours.approximation_.eigenvalues) < 0.01
    assert adjusted_rand_score(ours.labels_, exact.labels_) > 0.97
    assert adjusted_rand_score(ours.labels_, y) == pytest.approx(adjusted_rand_score(exact.labels_, y), abs=0.02)
