"""n_clusters "select" in the estimator."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.exceptions import ParameterError
from biclique.selection import select_n_clusters


@pytest.fixture(scope="module")
def corners():
    X, y = make_blobs(200, centers=[[0, 0], [9, 0], [0, 9], [9, 9]], random_state=0)
    X.setflags(write=False)
    return X, y


def test_the_number_is_selected_fitted_and_explained(corners):
    X, y = corners
    model = BicliqueSpectralClustering("select", random_state=0).fit(X)
    alone = select_n_clusters(X, random_state=0)
    assert model.n_clusters_ == alone.n_clusters == 4
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.k_selection_.reason == alone.reason
    assert model.has_structure_ is True
    assert model.structure_reason_ == alone.structure.reason
    assert model.n_clusters == "select"
    assert model.embedding_.shape == (200, 4)
    assert list(model.get_feature_names_out())[-1].endswith("3")
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    same = BicliqueSpectralClustering(4, random_state=0).fit(X)
    np.testing.assert_array_equal(same.labels_, model.labels_)
    assert same.n_clusters_ == 4
    assert not hasattr(same, "k_selection_")


@pytest.mark.filterwarnings("ignore::biclique.exceptions.BicliqueWarning")
@pytest.mark.parametrize("way", [{"kernel_params": {"metric": "cosine"}}, {"affinity": "cosine"}], ids=str)
def test_the_search_compares_rows_by_angle_if_the_fit_does(way):
    random = np.random.default_rng(0)
    angles = np.repeat([0.3, 1.3, 2.3], 50) + 0.05 * random.normal(size=150)
    lengths = random.choice([1.0, 40.0], 150)
    X = lengths[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    model = BicliqueSpectralClustering("select", random_state=0, **way).fit(X)
    assert model.n_clusters_ == 3
    alone = select_n_clusters(X, metric="cosine", random_state=0)
    assert alone.counted == model.k_selection_.counted
    assert alone.structure.reason == select_n_clusters(X, random_state=0).structure.reason


def test_sparse_rows_weights_and_a_number_of_columns(corners):
    X, weights = corners[0], (np.arange(200) % 3 > 0).astype(float)
    model = BicliqueSpectralClustering("select", n_components=6, random_state=0)
    assert model.fit(sparse.csr_array(X)).n_clusters_ == 4
    assert model.fit(X, sample_weight=weights).n_clusters_ == 4
    assert model.embedding_.shape == (200, 6)


def test_a_given_matrix_has_no_rows_to_search():
    with pytest.raises(ParameterError, match="needs rows"):
        BicliqueSpectralClustering("select", affinity="precomputed").fit(np.eye(60))
