"""What scikit-learn's SpectralClustering takes is taken with its meaning."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import SpectralClustering
from sklearn.feature_extraction.image import img_to_graph
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from biclique import BicliqueSpectralClustering
from biclique.exceptions import ApproximationWarning, MemoryLimitError

RNG = np.random.default_rng(0)
ROWS = np.abs(RNG.normal(size=(60, 3))) + np.repeat([[0.0, 4.0, 0.0], [4.0, 0.0, 4.0]], 30, axis=0)


def fit(X=ROWS, **parameters):
    return BicliqueSpectralClustering(2, random_state=0, **{"affinity": "rbf", "order": 2, **parameters}).fit(X)


def test_sparse_rows_too_wide_to_be_dense_are_refused():
    with pytest.raises(
        MemoryLimitError, match=r"affinity='laplacian' of sparse X as dense rows needs .*affinity='rbf'"
    ):
        fit(sparse.csr_array((60, 2**40)) + 0, affinity="laplacian")


@pytest.mark.filterwarnings("ignore::biclique.exceptions.BicliqueWarning")
@pytest.mark.parametrize("gram", ["dense", "tiled"])
@pytest.mark.parametrize(
    "parameters", [{"gamma": 0}, {"affinity": "polynomial", "gamma": 0}, {"affinity": "polynomial", "degree": 0}]
)
def test_a_constant_kernel_makes_all_rows_alike(parameters, gram):
    model = fit(gram=gram, **parameters)
    assert model.labels_.shape == (60,)
    np.testing.assert_allclose(model.eigenvalues_, 0, atol=1e-6)


@pytest.mark.parametrize("held", [np.asarray, sparse.csr_array])
def test_an_asymmetric_matrix_is_made_symmetric_with_a_warning(held):
    K = rbf_kernel(ROWS, gamma=0.3)
    odd = K + np.triu(0.2 * K, 1)
    with pytest.warns(ApproximationWarning, match=r"entries \(\d+, \d+\) and .* differ by 0\.\d+: \(K \+ K\.T\) / 2"):
        found = fit(held(odd), affinity="precomputed")
    even = fit(held((odd + odd.T) / 2), affinity="precomputed")
    np.testing.assert_allclose(found.eigenvalues_, even.eigenvalues_)
    assert np.array_equal(found.labels_, even.labels_)
    assert np.array_equal(found.predict(held(odd)), found.labels_)


def test_the_affinity_matrix_is_scikit_learns():
    twice = np.concatenate([ROWS, ROWS[:5]])
    for X in (ROWS, twice):
        theirs = SpectralClustering(2, gamma=0.3, random_state=0).fit(X).affinity_matrix_
        model = fit(X, gamma=0.3)
        np.testing.assert_allclose(model.affinity_matrix_, theirs, atol=1e-12)
        again = pickle.loads(pickle.dumps(model))
        assert not hasattr(again, "affinity_matrix_")
        assert "_similar" not in vars(again)
    graph = {"affinity": "nearest_neighbors", "n_neighbors": 5}
    with warnings.catch_warnings(action="ignore"):  # its graph is not connected
        theirs = SpectralClustering(2, **graph).fit(ROWS).affinity_matrix_.toarray()
    ours = fit(**graph).affinity_matrix_.toarray()
    np.fill_diagonal(theirs, 0)  # loops are not cut
    np.testing.assert_array_equal(ours, theirs)
    K = rbf_kernel(ROWS)
    assert np.array_equal(fit(K, affinity="precomputed").affinity_matrix_, K)
    for way in ({"affinity": "neighborhoods"}, {"gram": "tiled"}):
        assert not hasattr(fit(**way), "affinity_matrix_")


def image_of_discs(size=60):
    """The graph of an image of nine bright discs on dark ground, as scikit-learn's example on coins makes it."""
    places = np.stack(np.meshgrid(np.arange(size), np.arange(size), indexing="ij"), axis=-1)
    middles = np.stack(np.meshgrid([10, 30, 50], [10, 30, 50]), axis=-1).reshape(-1, 2)
    away = np.linalg.norm(places[:, :, None] - middles, axis=-1).min(axis=2)
    image = np.where(away < 8, 1.0, 0.0) + 0.1 * np.random.default_rng(0).normal(size=(size, size))
    graph = img_to_graph(image)
    graph.data = np.exp(-10 * np.abs(graph.data) / graph.data.std()) + 1e-6
    return graph


def test_an_image_is_cut_as_in_scikit_learn():
    graph = image_of_discs()
    asked = {"affinity": "precomputed", "assign_labels": "discretize", "random_state": 0}
    theirs = SpectralClustering(12, eigen_solver="arpack", **asked).fit_predict(graph)
    ours = BicliqueSpectralClustering(12, **asked).fit_predict(graph)
    assert adjusted_rand_score(theirs, ours) > 0.95
