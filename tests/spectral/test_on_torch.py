"""The spectral half on PyTorch's tensors against the same code on NumPy's arrays."""

from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from biclique.exceptions import DegreeError
from biclique.features.maps import ExactMap, NystroemMap
from biclique.fit.low_rank import factored_spectrum
from biclique.gram.dense import DenseGram, StoredCross
from biclique.gram.torch_gram import TorchGram
from biclique.kernels import RBF, Linear
from biclique.rows.array import ArrayRows
from biclique.runtime.namespace import to_host
from biclique.spectral.assign import START_ROWS, assign_in_place, assign_sampled, lloyd_steps
from biclique.spectral.cut import Extension, NormalizedCut
from biclique.spectral.solver import DIRECT_BELOW, top_eigenpairs
from tests.conftest import frozen
from tests.oracles import projector

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

GAMMA = 0.3
SMALL, LARGE = 200, DIRECT_BELOW + 388


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of PyTorch, NumPy and scikit-learn would wait for one another's cores."""
    with threadpool_limits(1):
        yield


def points(n):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)) + 5 * rng.integers(0, 3, (n, 1)) * np.array([1.0, -0.5, 0.2])


def gram_of(n):
    X = points(n)
    K = RBF(GAMMA).block(X, X)
    return (K + K.T) / 2


def on_device(X, kernel=None, precision="float64"):
    return TorchGram(kernel or RBF(GAMMA), X, device="cpu", precision=precision)


def weights_of(n, weighted):
    return frozen(np.random.default_rng(1).integers(1, 5, n).astype(float)) if weighted else None


def probe_of(n):
    return frozen(np.random.default_rng(2).normal(size=(n, 8)))


def solved(gram, order, weights, probe, **options):
    cut = NormalizedCut(gram, order, weights, probe)
    if probe is not None:
        options |= {"start": cut.start, "start_image": cut.start_image}
    return cut, top_eigenpairs(cut, 4, deflate=cut.trivial, random_state=0, **options)


@pytest.mark.parametrize("n", [SMALL, LARGE])
@pytest.mark.parametrize("order", [2, 4, np.inf])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("probed", [False, True])
def test_tensors_give_what_arrays_give(n, order, weighted, probed):
    K, weights = gram_of(n), weights_of(n, weighted)
    probe = probe_of(n) if probed else None
    cut, pairs = solved(DenseGram(K), order, weights, probe, tol=1e-10)
    there, found = solved(on_device(points(n)), order, weights, probe, tol=1e-10)
    assert isinstance(found.vectors, torch.Tensor)
    assert isinstance(found.images, torch.Tensor)
    assert isinstance(found.values, np.ndarray)
    assert isinstance(found.residuals, np.ndarray)
    np.testing.assert_allclose(to_host(there.shrunken), cut.shrunken, rtol=1e-12)
    np.testing.assert_allclose([there.total, there.volume, there.mean_degree], [cut.total, cut.volume, cut.mean_degree])
    np.testing.assert_allclose(found.values, pairs.values, atol=1e-10)
    np.testing.assert_allclose(projector(to_host(found.vectors)), projector(pairs.vectors), atol=1e-8)
    assert (found.n_passes, there.n_passes, found.converged) == (pairs.n_passes, cut.n_passes, True)

    extension, rows = Extension.fit(cut, pairs)
    moved_extension, moved_rows = Extension.fit(there, found)
    assert isinstance(moved_rows, torch.Tensor)
    np.testing.assert_allclose(to_host(moved_rows), rows, atol=1e-7)
    new = points(60)[::-1] + 0.1
    stored = StoredCross(RBF(GAMMA).block(new, points(n)))
    expected = extension.embed(stored)
    np.testing.assert_allclose(to_host(moved_extension.embed(there.gram.cross(new))), expected, atol=1e-7)
    np.testing.assert_allclose(moved_extension.to_host().embed(stored), expected, atol=1e-7)

    for name in ("kmeans", "cluster_qr", "discretize"):
        options = {"cut": None, "n_init": 3, "random_state": 0}
        here = assign_sampled(name, rows, cut.weights, 3, **options)
        labels = assign_sampled(name, moved_rows, there.weights, 3, **options).labels
        assert isinstance(labels, torch.Tensor)
        np.testing.assert_array_equal(to_host(labels), here.labels)


def test_products_in_float32_reach_their_own_noise():
    K, noise = gram_of(LARGE), float(np.finfo(np.float32).eps)
    _, exact = solved(DenseGram(K), 4, None, None)
    cut, found = solved(on_device(points(LARGE), precision="float32"), 4, None, None, noise=noise, tol=1e-8)
    assert cut.degrees.dtype == found.vectors.dtype == torch.float64
    assert found.converged
    assert found.target >= 10 * noise
    np.testing.assert_allclose(found.values, exact.values, atol=1e-5)
    np.testing.assert_allclose(projector(to_host(found.vectors)), projector(exact.vectors), atol=1e-3)
    gram = to_host(found.vectors.T @ found.vectors)
    np.testing.assert_allclose(gram, np.eye(4), atol=1e-12)


@pytest.mark.parametrize("values", [np.zeros(700), np.ones(700), np.r_[1.0, 0.5, np.zeros(698)]])
def test_blocks_that_lose_directions_are_filled_up(values):
    diagonal = torch.tensor(values)
    operator = SimpleNamespace(like=diagonal, shape=(700, 700), matmat=lambda V: diagonal[:, None] * V)
    found = top_eigenpairs(operator, 4, random_state=0)
    np.testing.assert_allclose(found.values, np.sort(values)[::-1][:4], atol=1e-10)
    np.testing.assert_allclose(to_host(found.vectors.T @ found.vectors), np.eye(4), atol=1e-10)


def test_nothing_of_the_rows_size_comes_to_the_host_while_solving(monkeypatch):
    sizes = []

    def counted(x):
        sizes.append(x.numel() if isinstance(x, torch.Tensor) else 0)
        return to_host(x)

    for module in ("cut", "solver"):
        monkeypatch.setattr(f"biclique.spectral.{module}.to_host", counted)
    cut, pairs = solved(on_device(points(LARGE)), 4, None, probe_of(LARGE))
    Extension.fit(cut, pairs)
    assert pairs.n_passes > 3
    assert max(sizes) <= (4 + 4) ** 2 * 13
    # Three reads a pass: new columns of H, and the cosines of the next block twice.
    assert len(sizes) <= 3 * pairs.n_passes + 5


@pytest.mark.parametrize("n", [500, 30_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_kmeans_on_tensors_is_kmeans_on_arrays(n, weighted, monkeypatch):
    monkeypatch.setattr("biclique.spectral.rounding.BLOCK_ENTRIES", 10_000)  # several blocks
    rows = points(n)
    weights = weights_of(n, weighted) if weighted else np.ones(n)
    options = {"n_init": 3, "random_state": 0}
    start = assign_sampled("kmeans", rows, weights, 3, cut=None, sample_rows=START_ROWS, **options)
    here = lloyd_steps(rows, weights, start, 10)
    there = assign_in_place("kmeans", torch.tensor(rows), weights, 3, **options)
    np.testing.assert_array_equal(there.labels, here.labels)
    np.testing.assert_allclose(there.rule.centres, here.rule.centres, rtol=1e-9)
    np.testing.assert_array_equal(there.rule.labels(rows), here.labels)  # one rule for both kinds of rows
    means = [np.average(rows[here.labels == j], axis=0, weights=weights[here.labels == j]) for j in range(3)]
    np.testing.assert_allclose(here.rule.centres, means, atol=1e-3)


@pytest.mark.parametrize("order", [2, 4, np.inf])
@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-9), (np.float32, 2e-3)])
def test_landmarks_on_tensors_are_landmarks_on_arrays(order, dtype, close, monkeypatch):
    monkeypatch.setattr("biclique.features.maps.DEVICE_ENTRIES", 20_000)  # several blocks
    X, w = points(3000), weights_of(3000, True)
    landmarks = NystroemMap(RBF(GAMMA), X[:60], dtype)

    def spectrum(rows, weights):
        found = factored_spectrum(landmarks, ArrayRows(rows, weights, block_rows=1700), order, 3, length=1.0)
        return found.with_signs(found.embed_seen(rows[:500])[0], weights[:500])

    here, there = spectrum(X, w), torch.tensor(X)
    embedded = here.embed_seen(X)[0]
    scale = np.abs(embedded).max()
    for weights in (w, torch.tensor(w)):
        found = spectrum(there, weights)
        np.testing.assert_allclose(found.values, here.values, atol=close / 10)
        rows = found.embed_seen(there)[0]
        assert isinstance(rows, torch.Tensor)
        for again in (to_host(rows), found.embed_seen(X)[0]):  # one map for both kinds of rows
            np.testing.assert_allclose(again / scale, embedded / scale, atol=close)
        assert found.embed_seen(there[:0])[0].shape == (0, 4)


def test_negative_degrees_of_tensors_are_counted_as_those_of_arrays():
    X = np.random.default_rng(0).normal(size=(3000, 4)) + 1
    landmarks, messages = NystroemMap(Linear(), X[:10], np.float64), []
    for rows in (X, torch.tensor(X)):
        with pytest.raises(DegreeError, match=r"of 3000 rows") as error:
            factored_spectrum(landmarks, ArrayRows(rows, np.ones(3000)), 2, 3, length=1.0)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_passes_keep_their_digits_where_a_program_allows_fewer():
    seen = []

    class Spying(ExactMap):
        def columns(self, X):
            seen.append(torch.get_float32_matmul_precision())
            return super().columns(X)

    torch.set_float32_matmul_precision("medium")
    try:
        rows = torch.tensor(abs(points(50)))
        found = factored_spectrum(Spying(Linear(), 3, np.float32), ArrayRows(rows, np.ones(50)), 4, 1, length=1.0)
        found.embed_seen(rows)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert set(seen) == {"highest"}


def test_bad_degrees_are_named_as_on_the_host():
    signs = np.array([[1.0], [1], [-1], [1], [1]])
    for gram in (DenseGram(signs @ signs.T), on_device(signs, Linear())):
        with pytest.raises(DegreeError, match=r"1 of 5 rows .* order 2 \(rows 2; lowest -3.*rbf"):
            NormalizedCut(gram, 2)
    with pytest.raises(DegreeError, match="not finite"):
        NormalizedCut(on_device(np.full((3, 1), 1e200), Linear()), 4)
    cut, pairs = solved(on_device(points(SMALL) + 20, Linear()), 2, None, None)
    with pytest.raises(DegreeError, match=r"1 of 2 new rows .*first: .* in row 1"):
        Extension.fit(cut, pairs)[0].embed(cut.gram.cross(np.array([[20.0] * 3, [-20.0] * 3])))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float32", "float64", "int8"])
def test_every_precision_comes_to_the_host(name):
    x = torch.tensor([[0.5, -2.0], [3.0, 0.0]]).to(getattr(torch, name))
    found = to_host(x)
    assert found.dtype == (name if hasattr(np, name) else np.float32)
    np.testing.assert_array_equal(found, x.to(torch.float64).numpy())


def test_views_with_a_sign_come_to_the_host():
    z = torch.tensor([[1 + 2j, 3 - 4j]])
    assert to_host(z.conj().imag).tolist() == [[-2.0, 4.0]]  # stored as it is, with a bit that says it is negative
    assert to_host(z.conj()).tolist() == [[1 - 2j, 3 + 4j]]
