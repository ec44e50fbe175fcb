"""Properties that hold for any data, searched for counter-examples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import ortho_group
from sklearn.metrics import adjusted_rand_score

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.spectral.assign import ASSIGNERS

pytestmark = pytest.mark.filterwarnings("ignore::biclique.exceptions.BicliqueWarning")

seeds = st.integers(0, 2**31 - 1)
orders = st.one_of(st.floats(2, 100), st.just(np.inf))
HELD = [{}, {"affinity": "rbf", "gamma": 0.5, "gram": "dense"}, {"affinity": "rbf", "gamma": 0.5, "gram": "tiled"}]
examples = settings(max_examples=25, deadline=None, derandomize=True)


def separated(seed, d=3, k=3):
    rng = np.random.default_rng(seed)
    centres = 12 * np.eye(k, d) + rng.normal(size=(k, d))
    return np.concatenate([rng.normal(size=(rng.integers(8, 25), d)) + centre for centre in centres])


def cluster(X, **parameters):
    return BicliqueSpectralClustering(3, random_state=0, **parameters).fit(X)


@given(seeds, orders, st.sampled_from(sorted(ASSIGNERS)), st.sampled_from(["neighborhoods", "rbf"]))
@examples
def test_permuted_rows_give_permuted_labels(seed, order, assign, affinity):
    X = separated(seed)
    shuffle = np.random.default_rng(seed).permutation(len(X))
    first = cluster(X, affinity=affinity, order=order, assign_labels=assign).labels_
    second = cluster(X[shuffle], affinity=affinity, order=order, assign_labels=assign).labels_
    assert adjusted_rand_score(first[shuffle], second) == 1


@given(seeds, orders, st.sampled_from(HELD))
@examples
def test_integer_weights_equal_repeated_rows(seed, order, held):
    X = np.random.default_rng(seed).normal(size=(30, 2))
    weights = np.random.default_rng(seed + 1).integers(0, 4, 30)
    weights[:3] = 1
    repeated = np.repeat(np.arange(30), weights)
    few = cluster(X, order=order, **held)
    few.fit(X, sample_weight=weights)
    many = cluster(X[repeated], order=order, **held)
    np.testing.assert_allclose(few.embedding_[repeated], many.embedding_, atol=1e-10)
    assert np.array_equal(few.labels_[repeated], many.labels_)


@given(seeds, orders, st.floats(-1e6, 1e6), st.sampled_from(["neighborhoods", "rbf"]))
@examples
def test_translation_and_rotation_change_nothing(seed, order, shift, affinity):
    X = separated(seed)
    rotation = ortho_group.rvs(3, random_state=seed)
    plain = cluster(X, affinity=affinity, order=order)
    moved = cluster(X @ rotation + shift, affinity=affinity, order=order)
    assert moved.gamma_ == (None if affinity == "neighborhoods" else pytest.approx(plain.gamma_, rel=1e-6))
    np.testing.assert_allclose(moved.eigenvalues_, plain.eigenvalues_, rtol=1e-5, atol=1e-8)
    assert adjusted_rand_score(plain.labels_, moved.labels_) == 1


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=4, max_size=30),
    orders,
    st.sampled_from(sorted(ASSIGNERS)),
    st.sampled_from(HELD),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_predicting_the_training_rows_returns_their_labels(points, order, assign, held):
    # Small whole numbers: many ties, duplicates and symmetries.
    X = np.array(points, dtype=float)
    model = cluster(X, order=order, assign_labels=assign, **held)
    assert np.array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-10)
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize("held", [np.asarray, np.float32, sparse.csr_array])
@pytest.mark.parametrize("gram", ["dense", "tiled", "nystroem", "features"])
@pytest.mark.parametrize("affinity", ["cosine", "linear"])
def test_the_unit_of_rows_does_not_matter(affinity, gram, held):
    """X·s has the same eigenvalues and labels as X for cosine and for linear, whose K is s² times as large."""
    X = np.abs(separated(0, d=4)) + 0.1
    settings = {"affinity": affinity, "gram": gram, "rank": 20 if gram == "nystroem" else "auto"}
    plain = cluster(held(X), **settings)
    for scale in (1e-90, 1e-30, 1e-18, 1e-7, 1e-6, 1e15):
        if held is np.float32 and scale < 1e-30:
            continue
        scaled = cluster(held(X * scale), **settings)
        np.testing.assert_allclose(scaled.eigenvalues_, plain.eigenvalues_, atol=1e-5)
        assert adjusted_rand_score(scaled.labels_, plain.labels_) == 1
        assert adjusted_rand_score(scaled.predict(held(X * scale)), plain.labels_) == 1


@pytest.mark.parametrize("gamma", [1e-6, 1e-8])
@pytest.mark.parametrize("affinity", ["rbf", "laplacian", "chi2"])
def test_tiles_are_exact_where_all_values_are_near_one(affinity, gamma):
    X = np.abs(separated(1))
    exact, tiled = (cluster(X, affinity=affinity, gamma=gamma, gram=gram) for gram in ("dense", "tiled"))
    np.testing.assert_allclose(tiled.eigenvalues_, exact.eigenvalues_, rtol=1e-5)
