"""The estimators on a device of PyTorch: its CPU here, a GPU where there is one."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans
from biclique.exceptions import DataError, FewerClustersWarning, ParameterError, RankWarning
from biclique.fit import exact as _device
from biclique.fit import given_rows
from biclique.fit import low_rank as _features
from biclique.rows import checks as _checks
from tests.calls import refuses

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
    settings = {"affinity": "rbf", "device": device, "random_state": 0, **parameters}
    return BicliqueSpectralClustering(n_clusters, **settings).fit(X, sample_weight=sample_weight)


def host(X, n_clusters=5, **parameters):
    settings = {"affinity": "rbf", "gram": "dense", "random_state": 0, **parameters}
    return BicliqueSpectralClustering(n_clusters, **settings).fit(X)


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


WAYS = [
    {},
    {"affinity": "neighborhoods"},
    {"affinity": "neighborhoods", "rank": 60, "order": 3},
    {"affinity": "laplacian"},
    {"affinity": "polynomial"},
    {"affinity": "cosine"},
    {"gamma": "median"},
    {"gamma": "scale"},
    *({"gram": "nystroem", "rank": 60, "affinity": name} for name in ("rbf", "polynomial", "cosine", "linear")),
    {"gram": "features", "rank": 100},
    {"gram": "features", "rank": 100, "affinity": "laplacian"},
    {"gram": "features", "rank": 100, "precision": "float64"},
    *({"gram": "features", "affinity": name} for name in ("linear", "cosine")),
    {"gram": "features", "affinity": "polynomial", "degree": 2},
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_tensor_gives_what_its_array_gives(blobs, device, way, dtype):
    X = (blobs[0][:700] * 3 + 100).astype(dtype)
    given = torch.tensor(X, device=device)
    array, tensor = fitted(X, device, **way), fitted(given, None, **way)
    assert np.array_equal(given.cpu().numpy(), X)  # nothing is written into it
    here = fitted(X, None, **way)  # all 700 rows choose γ there too
    same = 1e-12 if dtype != np.float16 else 1e-6  # such tensors are float32, such arrays float64
    for other in (array, here):
        assert tensor.gamma_ == (None if other.gamma_ is None else pytest.approx(other.gamma_, rel=same))
    assert (tensor.precision_, tensor.n_features_in_) == (array.precision_, 8)
    np.testing.assert_allclose(tensor.eigenvalues_, array.eigenvalues_, rtol=same)
    assert np.array_equal(tensor.labels_, array.labels_)
    new = torch.tensor(X[::2], device=device)
    for model in (array, tensor, pickle.loads(pickle.dumps(tensor))):
        assert np.array_equal(model.predict(new), model.predict(X[::2]))
        np.testing.assert_allclose(model.transform(new), model.transform(X[::2]), atol=1e-6)
    if "gram" in way:
        assert (array.gram_, array.gram_reason_) == (way["gram"], f"as asked for, on {device}")
        assert (array.rank_, array.approximation_) == (here.rank_, here.approximation_)  # seen on the host
        rounding = {"rtol": 1e-3 if way["gram"] == "nystroem" else 0, "atol": 1e-5 * here.eigenvalues_[0]}
        np.testing.assert_allclose(array.eigenvalues_, here.eigenvalues_, **rounding)
        assert adjusted_rand_score(array.labels_, here.labels_) > 0.999


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "way",
    [{"affinity": name} for name in ("neighborhoods", "rbf", "linear", "cosine", "polynomial")]
    + [{"gram": "nystroem"}],
    ids=str,
)
def test_a_model_keeps_its_own_rows(blobs, device, way, dtype):
    X = blobs[0][:300].astype(dtype) + (12 if "affinity" in way else 0)
    tensor = torch.tensor(X, device=device)
    model = fitted(tensor, None, **way)
    before = model.transform(X)
    tensor.fill_(7.0)
    np.testing.assert_array_equal(model.transform(X), before)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).transform(X), before, atol=1e-4)


@pytest.fixture
def transfers(monkeypatch):
    """Shapes of what goes from the host to a device, and back; samples made small, so that all rows are more."""
    monkeypatch.setattr(_device, "CHOICE_ROWS", 200)
    monkeypatch.setattr(_features, "POOL_ROWS", 400)
    monkeypatch.setattr(_checks, "SPREAD_ROWS", 200)
    there, back = [], []
    tensor, numpy = torch.tensor, torch.Tensor.numpy

    def spy_tensor(values, *arguments, **options):
        there.append(np.shape(values))
        return tensor(values, *arguments, **options)

    def spy_numpy(values, *arguments, **options):
        back.append(tuple(values.shape))
        return numpy(values, *arguments, **options)

    monkeypatch.setattr(torch, "tensor", spy_tensor)
    monkeypatch.setattr(torch.Tensor, "numpy", spy_numpy)
    return there, back


@pytest.mark.parametrize(
    "way",
    [
        {"affinity": "neighborhoods", "rank": 50},
        *(
            {"gram": g, "affinity": a, "rank": 220}
            for g in ("auto", "nystroem", "features")
            for a in ("rbf", "polynomial")
        ),
    ],
    ids=str,
)
def test_rows_travel_once_and_a_tensor_not_at_all(blobs, device, transfers, monkeypatch, way):
    monkeypatch.setattr(_device, "DEVICE_START_FROM", 1000)  # which multiplies all rows once more
    monkeypatch.setattr(_device, "DEVICE_START_ROWS", 800)
    there, back = transfers
    X = np.hstack([blobs[0], blobs[0][:, :1]])  # nine columns: eight neighbours a row come back
    tensor = torch.as_tensor(X.copy(), device=device)
    model = fitted(tensor, None, **way)
    model.predict(tensor)
    assert (3000, 9) not in there
    assert max(n for n, *d in back if d == [9]) <= 1000
    fitted(X, device, **way)
    assert there.count((3000, 9)) == 1
    assert max(n for n, *d in back if d == [9]) <= 1000


@pytest.mark.parametrize(
    "bad",
    [
        np.ones(5),
        np.ones((2, 3, 4)),
        np.ones((1, 3)),
        np.ones((5, 0)),
        np.ones((5, 3), dtype=complex),
        np.array([[1.0, 2], [3, np.nan], [5, 6]]),
        np.array([[1.0, 2], [3, -np.inf], [5, np.nan]]),
        np.array([[1.0, 2], [3, -1e30], [5, 6]]),
        np.array([[1.0, 2], [3, 4], [5, 6]]) * 1e-150,
        np.ones((3, 2)),
    ],
    ids=lambda bad: str(bad.shape),
)
@pytest.mark.parametrize("way", [{"affinity": "neighborhoods"}, {}, {"gram": "nystroem"}], ids=str)
def test_bad_tensors_are_refused_as_bad_arrays_are(device, bad, way):
    texts = []
    for X, where in ((bad, device), (torch.tensor(bad, device=device), None)):
        with pytest.raises(ValueError, match=r"X|array|Complex") as caught:
            fitted(X, where, **way)
        texts.append((type(caught.value), str(caught.value)))
    assert texts[0] == texts[1]


def test_bad_values_are_found_where_they_lie(device, transfers):
    X = torch.zeros((3000, 8), device=device)
    for value, message in ((np.nan, "NaN: 2 missing values"), (np.inf, "infinity"), (1e30, r"\(first beyond 1e\+18")):
        X[70, 3], X[200, 1] = value, value
        refuses(DataError, rf"{message}.* in row 70, column 3", fitted, X.T.contiguous().T, None)
    assert not transfers[1]


def test_tensors_without_numbers(blobs):
    X, meta = blobs[0][:300], torch.empty((300, 8), device="meta")
    model = BicliqueSpectralClustering(5, random_state=0)
    for ask in (model.fit, model.fit(X).predict, BicliqueKernelKMeans(5).fit):
        refuses(DataError, "X is a meta tensor, which has a shape but no numbers", ask, meta)
    refuses(DataError, "sample_weight is a meta tensor", model.fit, X, sample_weight=meta[:, 0])
    for device in ("meta", torch.device("meta")):
        with pytest.raises(ParameterError, match=r"device must be None, .* holds numbers, got .*meta"):
            BicliqueSpectralClustering(5, device=device).fit(X)


SMALL = [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int8, torch.uint8, torch.int16]


@pytest.mark.parametrize("gram", ["auto", "nystroem"])
@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_small_numbers_are_held_in_float32(blobs, device, dtype, gram, monkeypatch):
    X = torch.tensor(blobs[0][:300] * 3 + 40, device=device).to(dtype)
    seen = []
    monkeypatch.setattr(given_rows, "check_values", lambda X, *_, **__: seen.append(X.dtype))
    weights = torch.ones(300, device=device).to(dtype)
    model = fitted(X, None, gram=gram, sample_weight=weights)
    assert seen == [torch.float32]
    assert np.array_equal(model.labels_, fitted(X.to(torch.float32), None, gram=gram).labels_)
    here = host(X.to(torch.float32).cpu().numpy())
    assert np.array_equal(here.predict(X), here.labels_)


def test_bad_new_rows_are_refused_too(blobs, device):
    model = fitted(torch.tensor(blobs[0][:300], device=device), None)
    with pytest.raises(ValueError, match="X has 3 features, but BicliqueSpectralClustering is expecting 8"):
        model.predict(torch.zeros((4, 3), device=device))
    with pytest.raises(DataError, match="X contains NaN: 1 missing values, the first in row 1, column 2"):
        model.predict(torch.tensor([[0.0] * 8, [0, 0, np.nan, 0, 0, 0, 0, 0]], device=device))
    refuses(DataError, r"pass X.to_dense\(\)", fitted, torch.eye(8, device=device).to_sparse(), None)


def test_rows_that_a_device_does_not_take(blobs):
    X = blobs[0][:300]
    for affinity in ("neighborhoods", "rbf"):
        refuses(DataError, "device= needs dense rows", fitted, sparse.csr_array(X), "cpu", affinity=affinity)
    with pytest.raises(ParameterError, match="sample_weight of 0 works without device="):
        fitted(X, "cpu", sample_weight=np.arange(300))
    with pytest.raises(ParameterError, match=r"landmarks on a device are .* use gram='auto'"):
        fitted(X.astype(float) * 1e12, "cpu", gram="nystroem", gamma=1e-10)


def test_tensors_where_no_device_works(blobs):
    X = blobs[0][:400]
    model = BicliqueSpectralClustering(5, random_state=0).fit(X)
    assert np.array_equal(model.predict(torch.tensor(X)), model.labels_)
    np.testing.assert_array_equal(model.transform(torch.tensor(X)), model.embedding_)
    with pytest.raises(ParameterError, match=r"pass X.cpu\(\).numpy\(\) and leave device at None"):
        fitted(torch.tensor(X), None, affinity="nearest_neighbors")
    labels = BicliqueKernelKMeans(5, random_state=0).fit(torch.tensor(X)).labels_
    assert np.array_equal(labels, BicliqueKernelKMeans(5, random_state=0).fit(X).labels_)


def test_weights_and_gradients_of_a_tensor(blobs, device):
    X, counts = blobs[0][:500], np.arange(500) % 3 + 1
    tensor = torch.tensor(X, device=device, requires_grad=True)
    for affinity in ("neighborhoods", "rbf"):
        model = fitted(tensor, None, affinity=affinity, sample_weight=torch.tensor(counts, device=device))
        assert np.array_equal(model.labels_, fitted(X, device, affinity=affinity, sample_weight=counts).labels_)


def test_a_start_from_some_rows_misses_no_group(blobs, device, monkeypatch):
    X = np.concatenate([blobs[0], np.full((3, 8), 1e3)])
    plain = fitted(X, device, order=2)
    monkeypatch.setattr(_device, "DEVICE_START_FROM", 1000)
    monkeypatch.setattr(_device, "DEVICE_START_ROWS", 300)
    assert plain.eigenvalues_[0] == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(fitted(X, device, order=2).eigenvalues_, plain.eigenvalues_, atol=1e-4)


@pytest.mark.parametrize("gram", ["auto", "nystroem"])
def test_arrays_that_run_backwards(blobs, device, gram):
    X = blobs[0][:500][::-1]
    assert np.array_equal(fitted(X, device, gram=gram).labels_, fitted(X.copy(), device, gram=gram).labels_)


@pytest.mark.parametrize("way", [{"gram": "auto"}, {"gram": "nystroem", "rank": 60}, {"gram": "features"}], ids=str)
def test_cosine_on_a_device_does_not_care_about_units(blobs, device, way):
    X = np.abs(blobs[0][:600]) + 8 * np.eye(5, 8, dtype=np.float32)[blobs[1][:600]]
    plain, *others = (
        fitted(torch.tensor(X * unit, device=device), None, affinity="cosine", **way) for unit in (1, 1e-30, 1e-7, 1e15)
    )
    for scaled in others:
        np.testing.assert_allclose(scaled.eigenvalues_, plain.eigenvalues_, atol=1e-5)
        assert adjusted_rand_score(scaled.labels_, plain.labels_) == 1


@pytest.mark.parametrize("affinity", ["neighborhoods", "rbf"])
def test_small_and_degenerate_data(device, affinity):
    X = np.random.default_rng(0).normal(size=(40, 3))
    assert len(np.unique(fitted(X, device, 3, affinity=affinity).labels_)) == 3
    assert fitted(X, device, 1, affinity=affinity).labels_.tolist() == [0] * 40
    with pytest.warns((RankWarning, FewerClustersWarning)):
        fitted(np.repeat(X[:2], 20, axis=0), device, 3, affinity=affinity)


def test_fast_is_for_a_device(blobs):
    X, y = blobs
    for rows, device in ((X, "cpu"), (torch.tensor(X), None)):
        assert adjusted_rand_score(fitted(rows, device, precision="fast").labels_, y) > 0.99
    with pytest.raises(ParameterError, match="precision='fast' is for device='cuda'"):
        BicliqueKernelKMeans(5, precision="fast").fit(X)


@pytest.mark.parametrize("affinity", ["rbf", "laplacian", "polynomial"])
def test_float64_is_what_the_host_gives(blobs, device, affinity):
    X = blobs[0][:1000] + (12 if affinity == "polynomial" else 0)
    exact = BicliqueSpectralClustering(5, gram="tiled", affinity=affinity, precision="float64", random_state=0).fit(X)
    ours = fitted(X, device, affinity=affinity, precision="float64")
    assert (ours.precision_, fitted(X, device, affinity=affinity, gamma=0.02).precision_) == ("float64", "float32")
    assert ours.gram_reason_.endswith(" by torch")
    np.testing.assert_allclose(ours.eigenvalues_, exact.eigenvalues_, atol=1e-12 * exact.eigenvalues_[0])
    assert ours.residuals_.max() < 1e-8  # the tolerance follows


def test_weights_are_repeated_rows(blobs, device):
    X, counts = blobs[0][:1200], np.random.default_rng(0).integers(1, 4, 1200)
    heavy = fitted(X, device, sample_weight=counts, gamma=0.02, eigen_tol=1e-6)
    repeated = host(np.repeat(X, counts, axis=0), gamma=0.02)
    np.testing.assert_allclose(heavy.eigenvalues_, repeated.eigenvalues_, rtol=1e-4)
    assert adjusted_rand_score(np.repeat(heavy.labels_, counts), repeated.labels_) > 0.999


@pytest.mark.parametrize(
    "own",
    [
        {"affinity": "neighborhoods"},
        {"assign_labels": "cluster_qr"},
        {"assign_labels": "discretize"},
        {"row_normalize": True},
        {"sample_weight": np.arange(3000) % 3 + 1},
    ],
    ids=str,
)
def test_groups_are_found_and_rows_get_their_labels_again(blobs, device, own):
    X, y = blobs
    model = fitted(X, device, **own)
    assert adjusted_rand_score(y, model.labels_) > 0.98
    assert np.array_equal(model.embedding_, fitted(X, device, **own).embedding_)
    assert np.array_equal(model.predict(X), model.labels_)
