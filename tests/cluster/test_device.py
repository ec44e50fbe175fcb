"""The estimators on a device of PyTorch: its CPU here, a GPU where there is one."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering, BicliqueSpectralEmbedding
from biclique.cluster import _device
from biclique.exceptions import DataError, FewerClustersWarning, ParameterError, RankWarning

torch = pytest.importorskip("torch", reason="needs torch: make test-torch")

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(scope="module")
def blobs():
    random = np.random.default_rng(0)
    y = random.integers(0, 5, 3000)
    X = (random.uniform(-6, 6, (5, 8))[y] + random.normal(size=(3000, 8))).astype(np.float32)
    X.setflags(write=False)
    return X, y


def fitted(X, device, n_clusters=5, sample_weight=None, **parameters):
    model = BicliqueSpectralClustering(n_clusters, device=device, random_state=0, **parameters)
    return model.fit(X, sample_weight=sample_weight)


def host(X, n_clusters=5, **parameters):
    return BicliqueSpectralClustering(n_clusters, gram="dense", random_state=0, **parameters).fit(X)


@pytest.mark.parametrize("order", [2, 4, np.inf])
@pytest.mark.parametrize("affinity", ["rbf", "laplacian", "polynomial", "cosine"])
def test_the_same_partition_as_on_the_host(blobs, device, order, affinity):
    X = blobs[0] + 10 if affinity in ("polynomial", "cosine") else blobs[0]
    exact = host(X, affinity=affinity, order=order, gamma=0.02)
    ours = fitted(X, device, affinity=affinity, order=order, gamma=0.02, eigen_tol=1e-6)
    np.testing.assert_allclose(ours.eigenvalues_, exact.eigenvalues_, atol=1e-4 * exact.eigenvalues_[0])
    if affinity in ("rbf", "laplacian"):
        assert adjusted_rand_score(exact.labels_, ours.labels_) >= 0.999
    assert ours.gram_ == ("cuda" if device == "cuda" else "torch")
    assert ours.gram_reason_.startswith("exact: tiles on ")
    assert ours.approximation_ is None


def test_defaults_find_the_blobs(blobs, device):
    X, y = blobs
    model = fitted(X, device)
    assert adjusted_rand_score(y, model.labels_) > 0.99
    assert isinstance(model.labels_, np.ndarray)
    assert model.embedding_.shape == (3000, 5)
    assert np.array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-4)


@pytest.mark.parametrize("assign", ["cluster_qr", "discretize"])
def test_assigners(blobs, device, assign):
    model = fitted(blobs[0], device, assign_labels=assign)
    assert adjusted_rand_score(blobs[1], model.labels_) > 0.99
    assert np.array_equal(model.predict(blobs[0]), model.labels_)


def test_row_normalize(blobs, device):
    model = fitted(blobs[0], device, row_normalize=True)
    assert adjusted_rand_score(blobs[1], model.labels_) > 0.98
    assert np.array_equal(model.predict(blobs[0]), model.labels_)


def test_a_tensor_asks_for_its_device(blobs, device):
    X = torch.tensor(blobs[0], device=device)
    model = BicliqueSpectralClustering(5, random_state=0).fit(X)
    assert model.gram_ == ("cuda" if device == "cuda" else "torch")
    assert np.array_equal(model.labels_, fitted(blobs[0], device).labels_)
    assert np.array_equal(model.predict(X[:100]), model.labels_[:100])


def test_a_start_from_some_rows_changes_nothing(blobs, device, monkeypatch):
    plain = fitted(blobs[0], device, eigen_tol=1e-6)
    monkeypatch.setattr(_device, "START_FROM", 1000)
    monkeypatch.setattr(_device, "START_ROWS", 800)
    started = fitted(blobs[0], device, eigen_tol=1e-6)
    np.testing.assert_allclose(started.eigenvalues_, plain.eigenvalues_, rtol=1e-5)
    assert np.array_equal(started.labels_, plain.labels_)
    assert started.n_passes_ <= plain.n_passes_


def test_weights_are_repeated_rows(blobs, device):
    X = blobs[0][:1200]
    counts = np.random.default_rng(0).integers(1, 4, 1200)
    heavy = fitted(X, device, sample_weight=counts, gamma=0.02, eigen_tol=1e-6)
    repeated = host(np.repeat(X, counts, axis=0), gamma=0.02)
    np.testing.assert_allclose(heavy.eigenvalues_, repeated.eigenvalues_, rtol=1e-4)
    assert adjusted_rand_score(np.repeat(heavy.labels_, counts), repeated.labels_) > 0.999


def test_reproducible_and_kept(blobs, device):
    first, second = fitted(blobs[0], device), fitted(blobs[0], device)
    assert np.array_equal(first.embedding_, second.embedding_)
    again = pickle.loads(pickle.dumps(first))  # which goes on on the host
    assert np.array_equal(again.predict(blobs[0]), first.labels_)
    assert clone(first).get_params() == first.get_params()


def test_the_embedding(blobs, device):
    ours = BicliqueSpectralEmbedding(2, device=device, random_state=0, gamma=0.02, eigen_tol=1e-6).fit(blobs[0])
    exact = BicliqueSpectralEmbedding(2, gram="dense", random_state=0, gamma=0.02).fit(blobs[0])
    np.testing.assert_allclose(ours.embedding_, exact.embedding_, atol=1e-3 * np.abs(exact.embedding_).max())


@pytest.mark.parametrize("affinity", ["rbf", "polynomial", "cosine", "linear"])
def test_landmarks_on_a_device(blobs, device, affinity):
    X = blobs[0] + 12 if affinity != "rbf" else blobs[0]
    there = fitted(X, device, affinity=affinity, gram="nystroem", rank=100)
    here = fitted(X, None, affinity=affinity, gram="nystroem", rank=100)
    assert there.gram_ == "nystroem"
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-3, atol=1e-5)
    assert adjusted_rand_score(there.labels_, here.labels_) > 0.999
    assert np.array_equal(there.predict(X), there.labels_)
    again = pickle.loads(pickle.dumps(there))
    assert np.array_equal(again.predict(X), there.labels_)


def test_small_and_degenerate_data(device):
    X = np.random.default_rng(0).normal(size=(40, 3))
    assert len(np.unique(fitted(X, device, 3).labels_)) == 3
    assert fitted(X, device, 1).labels_.tolist() == [0] * 40
    with pytest.warns((RankWarning, FewerClustersWarning)):
        fitted(np.repeat(X[:2], 20, axis=0), device, 3)


def test_fast_is_for_a_device(blobs):
    with pytest.raises(ParameterError, match="precision='fast' is for device='cuda'"):
        fitted(blobs[0], None, precision="fast")
    assert adjusted_rand_score(fitted(blobs[0], "cpu", precision="fast").labels_, blobs[1]) > 0.99


def test_what_a_device_cannot_do(blobs):
    X, _ = blobs
    for parameters in (
        {"affinity": "nearest_neighbors"},
        {"modelling": "symmetric"},
        {"assign_labels": "kernel_kmeans"},
        {"gram": "features"},
    ):
        with pytest.raises(ParameterError, match="leave device at None"):
            fitted(X, "cpu", **parameters)
    with pytest.raises(ParameterError, match="the kernel 'sigmoid' is not there on a GPU"):
        fitted(X, "cpu", affinity="sigmoid")
    with pytest.raises(DataError, match="device= needs dense rows"):
        fitted(sparse.csr_array(X), "cpu")
    with pytest.raises(ParameterError, match="device='nowhere' cannot be used here"):
        fitted(X, "nowhere")
    with pytest.raises(ParameterError, match="sample_weight of 0"):
        fitted(X, "cpu", sample_weight=np.r_[0.0, np.ones(len(X) - 1)])
