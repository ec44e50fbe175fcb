"""Clusters of the points themselves are taken if they share clearly fewer links than those of the eigenvectors."""

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

import biclique
from biclique import BicliqueSpectralClustering
from tests import oracles


def noisy(columns, seed=0):
    """Three clusters in two columns, and columns of noise; all z-scored."""
    random = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [300, 200, 100])
    X = np.array([[0, 0], [6.0, 0], [0, 6.0]])[y] + random.normal(size=(600, 2))
    return scale(np.column_stack([X, random.normal(size=(600, columns))])), y


@pytest.mark.parametrize("gram", ["dense", "tiled"])
@pytest.mark.parametrize("seed", range(3))
def test_columns_of_noise(gram, seed):
    X, y = noisy(13, seed)
    model = BicliqueSpectralClustering(3, gram=gram, random_state=0).fit(X)
    scaled = BicliqueSpectralClustering(3, gram=gram, row_normalize=True, random_state=0).fit(X)
    assert adjusted_rand_score(y, scaled.labels_) < 0.5 < 0.9 < adjusted_rand_score(y, model.labels_)
    # By the definition: the cut is lower, and what clusters share is what the plan says.
    K = rbf_kernel(X, gamma=model.gamma_)
    assert model.order_ == scaled.order_ == 2
    held = [2 - oracles.k_way_cut(K, one.labels_) for one in (model, scaled)]
    assert held[0] > 1.05 * held[1]
    assert held[0] <= model.eigenvalues_.sum()
    A = oracles.neighbor_links(((X[:, None] - X) ** 2).sum(axis=2))
    assert f"{oracles.links_leaving(A, model.labels_):.2g} of the links to nearest neighbours lead" in str(model.plan_)


def test_new_rows_and_saved_models(tmp_path):
    X, _ = noisy(13)
    model = BicliqueSpectralClustering(3, random_state=0).fit(X)
    assert "k-means of the rows" in str(model.plan_)
    assert (model.predict(X) == model.labels_).all()
    near = X + 1e-9
    assert (model.predict(near) == model.labels_).mean() > 0.99
    chances = model.predict_proba(near)
    assert np.allclose(chances.sum(axis=1), 1)
    assert (chances.argmax(axis=1) == model.predict(near)).all()
    biclique.save(model, tmp_path / "saved.biclique")
    assert (biclique.load(tmp_path / "saved.biclique").predict(near) == model.predict(near)).all()


@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_points_far_from_the_origin(offset):
    X, y = noisy(13)
    assert adjusted_rand_score(y, BicliqueSpectralClustering(3, random_state=0).fit(X + offset).labels_) > 0.9


@pytest.mark.parametrize("made", ["blobs", "wine"])
def test_elsewhere_the_embedding_decides(made):
    X = make_blobs(600, centers=4, random_state=0)[0] if made == "blobs" else scale(load_wine().data)
    assert "k-means of the rows" not in str(BicliqueSpectralClustering(4, random_state=0).fit(X).plan_)


def test_weights_are_repeated_rows():
    X, _ = noisy(13)
    weights = np.where(np.arange(600) % 3 == 0, 2.0, 1.0)
    model = BicliqueSpectralClustering(3, gamma=0.02, random_state=0).fit(X, sample_weight=weights)
    repeated = BicliqueSpectralClustering(3, gamma=0.02, random_state=0).fit(np.repeat(X, weights.astype(int), axis=0))
    assert "k-means of the rows" in str(model.plan_)
    assert (model.labels_ == repeated.predict(X)).all()
