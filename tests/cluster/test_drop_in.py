"""What scikit-learn's SpectralClustering takes is taken with its meaning."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.exceptions import MemoryLimitError

RNG = np.random.default_rng(0)
ROWS = np.abs(RNG.normal(size=(60, 3))) + np.repeat([[0.0, 4.0, 0.0], [4.0, 0.0, 4.0]], 30, axis=0)


def fit(X=ROWS, **parameters):
    return BicliqueSpectralClustering(2, random_state=0, **{"affinity": "rbf", "order": 2, **parameters}).fit(X)


@pytest.mark.parametrize("gram", ["dense", "tiled", "nystroem"])
@pytest.mark.parametrize(
    "affinity", ["laplacian", "polynomial", "sigmoid", "chi2", "cosine", lambda a, b: float(a @ b)]
)
def test_sparse_rows_give_the_labels_of_dense_ones(affinity, gram):
    gamma = {"gamma": 0.01} if affinity == "sigmoid" else {}
    dense, rows = fit(affinity=affinity, gram=gram, **gamma), sparse.csr_array(ROWS)
    found = fit(rows, affinity=affinity, gram=gram, **gamma)
    assert adjusted_rand_score(found.labels_, dense.labels_) == 1
    assert np.array_equal(found.predict(rows), found.labels_)


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


def test_degree_zero_is_the_constant_one():
    from biclique.kernels import KERNELS

    kernel = KERNELS["polynomial"](0.5, 2.0, 0)
    np.testing.assert_array_equal(kernel.block(ROWS, ROWS), np.ones((60, 60)))


def test_amg_is_accepted_for_kernels():
    assert np.array_equal(fit(eigen_solver="amg").labels_, fit().labels_)
