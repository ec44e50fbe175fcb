"""K on a device: torch's tiles on the CPU, the fused kernel in Triton's interpreter, both on a GPU where there is one.

The interpreter checks what is computed, not how tensor cores round: the error bars of the fused kernel count only
from the tests marked ``gpu``.
"""

import itertools
import pickle
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

from biclique.device import torch_tiles as cuda
from biclique.device.torch_tiles import TorchTiles, choose_engine
from biclique.exceptions import DataError, MemoryLimitError, MissingExtraError, ParameterError
from biclique.gram.torch_gram import TorchGram
from biclique.kernels import held
from biclique.kernels.held import HeldRows, float32_error
from biclique.kernels.named import DirectRBF, make_kernel
from biclique.runtime.namespace import to_host
from tests.calls import refuses
from tests.conftest import frozen
from tests.device import DEVICE, GPU, fused
from tests.gram.contract import vectors

torch = pytest.importorskip("torch", reason="needs the extra [gpu]: torch")

NAMES = ["rbf", "laplacian", "polynomial", "linear", "cosine"]
SIZES = [1, 2, 127, 128, 129, 300]
COLUMNS = [1, 3, 16, 17, 64, 100, 200, 512]
VECTORS = [1, 5, 16, 17, 33, 64, 70]
DEFAULT, FAST = 1e-5, 2e-4

gpu = pytest.mark.skipif(not GPU, reason="needs a CUDA device")


ENGINES = [("torch", "cpu"), pytest.param(("triton", DEVICE), marks=fused)]
if GPU:
    ENGINES.append(("torch", "cuda"))


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def rows(n=300, d=3, seed=0):
    return frozen(np.random.default_rng(seed).normal(size=(n, d)))


def named(name, d, degree=3):
    return make_kernel(name, gamma=1 / d, degree=degree, coef0=1.0)


def off(product, K, V):
    """The largest error of a product, against the largest Σ_j |κ| |v|, column by column."""
    exact, bound = K @ V, np.abs(K) @ np.abs(V)
    assert product.dtype == np.float64
    assert product.shape == exact.shape
    return np.max(np.abs(product - exact).max(axis=0) / bound.max(axis=0))


def strictly_off(product, K, V):
    """|error| / |product|, whatever cancels in the product."""
    return np.linalg.norm(product - K @ V) / np.linalg.norm(K @ V)


def check(kernel, X, V, Y, engine, precision="float32", tolerance=DEFAULT):
    engine, device = engine
    K, C = kernel.block(X, X), kernel.block(Y, X)
    gram = TorchGram(kernel, X, device=device, engine=engine, precision=precision)
    name = "cuda" if device == "cuda" else "torch"
    assert (gram.name, gram.n, gram.engine) == (name, len(X), engine)
    assert off(gram.matmat(V), K, V) < tolerance
    np.testing.assert_allclose(to_host(gram.diagonal()), np.diagonal(K), rtol=1e-5, atol=1e-6)
    cross = gram.cross(Y)
    assert off(cross.matmat(V), C, V) < tolerance
    np.testing.assert_allclose(cross.diagonal(), kernel.diagonal(Y), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("engine", "precision"),
    [(("torch", DEVICE), "float32"), *(pytest.param(("triton", DEVICE), p, marks=fused) for p in ("float32", "fast"))],
)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("n", "d", "b"), [(1, 3, 1), (129, 16, 17), (300, 200, 5)])
def test_tiles_are_the_dense_form(name, n, d, b, engine, precision):
    tolerance = DEFAULT if precision == "float32" else FAST if n > 1 else 2e-3  # nothing averages out over one row
    check(named(name, d), rows(n, d), vectors(n, b), rows(5, d, 1), engine, precision, tolerance)


@fused
@pytest.mark.parametrize(
    ("name", "n", "d", "b"),
    [
        *itertools.product(["rbf"], SIZES, [3], [3]),
        *itertools.product(["rbf", "polynomial"], [130], [*COLUMNS, 5, 6, 10, 11, 65], [3]),
        *itertools.product(["rbf"], [130], [4], VECTORS),
    ],
)
def test_the_fused_kernel_at_odd_sizes(name, n, d, b):
    check(named(name, d), rows(n, d), vectors(n, b), rows(2, d, 1), ("triton", DEVICE))


@fused
@pytest.mark.parametrize("name", NAMES)
def test_default_precision_holds_whatever_cancels(name):
    X, V = rows(300, 16), vectors(300, 16)
    kernel = named(name, 16)
    product = TorchGram(kernel, X, device=DEVICE, engine="triton").matmat(V)
    assert strictly_off(product, kernel.block(X, X), V) < 2e-6


@fused
def test_tiles_of_other_shapes_and_several_splits():
    tiles = pytest.importorskip("biclique.device.triton_tiles")
    X, V = rows(700, 7), vectors(700, 5)
    kernel = named("rbf", 7)
    K = kernel.block(X, X)
    gram = TorchGram(kernel, X, device=DEVICE, engine="triton")
    shape = tiles.Tile()
    for tile in (shape, replace(shape, rows=64, columns=64, run=1), replace(shape, run=3, fold=False)):
        assert tiles.split_columns(1024, 768, replace(tile, run=1))[0] > 1
        gram._tiles.tile = tile
        assert off(gram.matmat(V), K, V) < 2e-6
    gram._tiles.tile = replace(shape, split_p=False)
    assert off(gram.matmat(V), K, V) < FAST


@fused
def test_launches_in_pieces_tell_the_share_done(monkeypatch):
    tiles = pytest.importorskip("biclique.device.triton_tiles")
    monkeypatch.setattr(tiles, "EVALUATIONS_A_LAUNCH", 1)
    monkeypatch.setattr(tiles, "LAUNCH_ROWS", 256)
    told = []
    X, V = rows(600), vectors(600, 70)
    kernel = named("polynomial", 3, degree=2)
    gram = TorchGram(kernel, X, device=DEVICE, engine="triton", tick=told.append)
    assert off(gram.matmat(V), kernel.block(X, X), V) < DEFAULT
    assert len(told) == 6
    assert told == sorted(told)
    assert told[-1] == 1.0


# What is hard for few digits


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_far_from_the_origin(engine, name):
    kernel, V = named(name, 3), vectors(300, 3)
    K = kernel.block(rows(), rows())
    gram = TorchGram(kernel, rows() + 1e5, device=engine[1], engine=engine[0])
    assert off(gram.matmat(V), K, V) < DEFAULT
    far = gram.cross(rows(4, seed=1) + 1e7).matmat(V)  # new rows that are far from all others
    assert np.abs(far).max() < 1e-20


@pytest.mark.parametrize(("gamma", "tolerance"), [(1e-4, DEFAULT), (30.0, 5e-5), (1e4, 2e-2)])
def test_small_and_large_gamma(engine, gamma, tolerance):
    # Float32 knows the exponent to about eps · γ|x|², so the diagonal, all that is left of K, is off by as much.
    kernel, V = make_kernel("rbf", gamma=gamma), vectors(300, 3)
    gram = TorchGram(kernel, rows(), device=engine[1], engine=engine[0])
    assert off(gram.matmat(V), kernel.block(rows(), rows()), V) < tolerance


def test_tiles_are_float64_where_float32_cannot_hold_the_kernel():
    X, V = rows(), vectors(300, 3)
    for kernel in (make_kernel("rbf", gamma=1e5), DirectRBF(1e5)):
        gram = TorchGram(kernel, X, device=DEVICE)
        assert (gram.engine, gram.dtype) == ("torch", np.float64)
        assert off(gram.matmat(V), kernel.block(X, X), V) < 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_very_different_scales(engine, name):
    kernel = named(name, 3)
    V = vectors(300, 6) * [1e-6, 1e6, 1.0, 1e-30, 1e30, 0.0]
    K = kernel.block(rows(), rows())
    product = TorchGram(kernel, rows(), device=engine[1], engine=engine[0]).matmat(V)
    assert off(product[:, :5], K, V[:, :5]) < DEFAULT
    assert not product[:, 5].any()


@pytest.mark.parametrize("name", ["polynomial", "linear", "cosine"])
def test_rows_of_very_different_lengths(engine, name):
    decades = 1 if name == "polynomial" else 4  # the third power of a length spans three times as many
    X = rows(200, 4) * 10.0 ** np.linspace(-decades, decades, 200)[:, None]
    X[7] = 0
    kernel, V = named(name, 4), vectors(200, 3)
    K = kernel.block(X, X)
    product = TorchGram(kernel, X, device=engine[1], engine=engine[0]).matmat(V)
    assert off(product, K, V) < DEFAULT
    # Every row keeps its own digits, not only the longest.
    bound = np.abs(K) @ np.abs(V)
    assert np.max(np.abs(product - K @ V) / np.where(bound > 0, bound, 1)) < 5e-5


@pytest.mark.parametrize(("degree", "coef0"), [(1, 0.0), (2, -0.5), (5, 2.0)])
def test_polynomials(engine, degree, coef0):
    kernel = make_kernel("polynomial", gamma=0.3, degree=degree, coef0=coef0)
    check(kernel, rows(150), vectors(150, 3), rows(5, seed=1), engine)


# What goes in and comes out


def test_tensors_stay_on_the_device(engine):
    kernel, V = named("rbf", 3), vectors(300, 4)
    gram = TorchGram(kernel, rows(), device=engine[1], engine=engine[0])
    given = gram.matmat(V)
    for dtype in (torch.float64, torch.float32):
        tensor = torch.tensor(V, dtype=dtype, device=engine[1])
        product = gram.matmat(tensor)
        assert (product.dtype, product.device) == (torch.float64, tensor.device)
        np.testing.assert_allclose(product.cpu().numpy(), given, rtol=0, atol=1e-5 if dtype == torch.float32 else 0)
        assert gram.cross(rows(3, seed=1)).matmat(tensor).device == tensor.device


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_a_tensor_are_held_as_an_array_is(engine, name, dtype):
    engine, device = engine
    X, V = (rows(150, 5) + 3).astype(dtype), vectors(150, 4)
    tensor = torch.tensor(X, device=device)
    kernel = named(name, 5)
    here = TorchGram(kernel, X, device=device, engine=engine)
    there = TorchGram(kernel, tensor, device=device, engine=engine)
    assert isinstance(there.held.rows, torch.Tensor)
    assert (there.dtype, there.engine) == (here.dtype, here.engine)
    assert np.array_equal(to_host(there.held.rows), here.held.rows)
    assert np.array_equal(there.matmat(V), here.matmat(V))
    np.testing.assert_allclose(to_host(there.diagonal()), to_host(here.diagonal()), rtol=1e-6)
    for gram in (here, there):
        crosses = [gram.cross(Y) for Y in (X[::-3], tensor.flip(0)[::3])]
        assert np.array_equal(crosses[0].matmat(V), crosses[1].matmat(V))
        np.testing.assert_allclose(crosses[1].diagonal(), crosses[0].diagonal(), rtol=1e-6)
    assert np.array_equal(to_host(tensor), X)  # read, never written


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [0.0, 1e-15, 1.0, 1e3])
def test_tensors_call_for_the_same_precision(name, scale):
    X = rows(60, 4) * scale + (1e4 if name == "linear" else 0)
    kernel = named(name, 4)
    for dtype in (np.float32, np.float64):
        given = (X.astype(dtype), torch.tensor(X.astype(dtype), device=DEVICE))
        expected, found = (float32_error(HeldRows(kernel, one, np.float32), one) for one in given)
        assert found == pytest.approx(expected, rel=1e-2)


def test_a_tensor_is_copied_unless_it_is_owned():
    X = torch.tensor(rows(), dtype=torch.float32, device=DEVICE)
    for owned in (False, True):
        held = TorchGram(named("linear", 3), X, device=DEVICE, engine="torch", owned=owned).held.rows
        assert (held.data_ptr() == X.data_ptr()) is owned


def test_rows_are_centred_a_piece_at_a_time(monkeypatch):
    X = rows(100, 3) + 1e3
    whole = HeldRows(named("rbf", 3), torch.tensor(X), np.float32)
    monkeypatch.setattr(held, "DEVICE_ENTRIES", 20)
    pieces = HeldRows(named("rbf", 3), torch.tensor(X), np.float32)
    assert torch.equal(whole.rows, pieces.rows)
    again = pickle.loads(pickle.dumps(pieces))
    assert isinstance(again.rows, np.ndarray)
    assert np.array_equal(again.rows, HeldRows(named("rbf", 3), X, np.float32).rows)


@pytest.mark.parametrize("allowed_by", ["program", "backend"])
def test_programs_that_allow_tf32_do_not_lose_digits_and_keep_their_setting(allowed_by):
    matmul, before = torch.backends.cuda.matmul, torch.get_float32_matmul_precision()
    if allowed_by == "backend" and not hasattr(matmul, "fp32_precision"):
        pytest.skip("torch before 2.9")
    try:
        if allowed_by == "program":
            torch.set_float32_matmul_precision("medium")
        else:
            matmul.fp32_precision = "tf32"
        check(named("rbf", 16), rows(300, 16), vectors(300, 4), rows(5, 16, 1), ("torch", DEVICE))
        if allowed_by == "program":
            assert torch.get_float32_matmul_precision() == "medium"
        else:
            assert matmul.fp32_precision == "tf32"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("name", NAMES)
def test_float64_where_it_is_asked_for(name):
    gram = TorchGram(named(name, 3), rows(), device=DEVICE, precision="float64")
    assert (gram.engine, gram.dtype, gram.held.rows.dtype) == ("torch", np.float64, np.float64)
    check(named(name, 3), rows(), vectors(300, 5), rows(37, seed=1), ("torch", DEVICE), "float64", 1e-14)
    with pytest.raises(ParameterError, match="engine='triton' has no float64"):
        TorchGram(named(name, 3), rows(), device=DEVICE, precision="float64", engine="triton")


def test_float64_is_not_there_on_every_device(monkeypatch):
    monkeypatch.setattr(cuda, "open_device", lambda _, name: torch.device(name))
    with pytest.raises(ParameterError, match="device='mps' has no float64"):
        TorchGram(named("rbf", 3), rows(), device="mps", precision="float64")


RBF = named("rbf", 3)
FUSED = {"device": DEVICE, "engine": "triton"}


@pytest.mark.parametrize(
    ("kernel", "n_columns", "options", "message"),
    [
        (make_kernel("sigmoid", gamma=1.0), 3, {}, "device=None"),
        (make_kernel("chi2", gamma=1.0), 3, {}, "device=None"),
        (RBF, 3, {"precision": "best"}, "precision must be one of float32, fast"),
        (RBF, 3, {"engine": "cuda"}, "engine must be one of"),
        (RBF, 3, {"device": "tpu9"}, "device='tpu9' cannot be used here"),
        (RBF, 3, {"device": "meta"}, "device='meta' cannot be used here"),
        pytest.param(RBF, 513, FUSED, "at most 512 columns", marks=fused),
        pytest.param(named("polynomial", 3, degree=2.5), 3, FUSED, "whole degree", marks=fused),
    ],
)
def test_errors_name_the_way_out(kernel, n_columns, options, message):
    refuses(ParameterError, message, TorchGram, kernel, np.abs(rows(5, n_columns)), **{"device": "cpu", **options})


def test_rows_vectors_and_packages_that_are_not_there(monkeypatch):
    refuses(DataError, "dense rows", TorchGram, RBF, sparse.csr_array(rows()), device="cpu")
    refuses(DataError, "V must have 300 rows", TorchGram(RBF, rows(), device="cpu").matmat, vectors(299, 2))
    monkeypatch.setattr("biclique.exceptions.import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    refuses(MissingExtraError, r"\.\[gpu\]", TorchGram, RBF, rows(), device="cpu")


def test_the_engine_follows_the_device_and_the_kernel(monkeypatch):
    rbf, here, there = named("rbf", 3), torch.device("cpu"), torch.device("cuda")
    assert choose_engine("auto", rbf, here, 3, False) == "torch"
    assert choose_engine("auto", rbf, there, 3, True) == "torch"
    assert choose_engine("torch", rbf, there, 3, False) == "torch"
    if find_spec("triton") is not None:
        assert choose_engine("auto", rbf, there, 3, False) == "triton"
        assert choose_engine("auto", rbf, there, 513, False) == "torch"
        assert choose_engine("auto", named("polynomial", 3, degree=2.5), there, 3, False) == "torch"
    monkeypatch.setattr(cuda, "find_spec", lambda name: None)
    assert choose_engine("auto", rbf, there, 3, False) == "torch"
    refuses(MissingExtraError, "triton", choose_engine, "triton", rbf, there, 3, False)


# Out of memory


def refusing(monkeypatch, error, most):
    """The heights of tiles that are tried, where those of more than ``most`` rows are refused."""
    heights, whole = [], TorchTiles.tile

    def scarce(self, left, right, I, J):  # noqa: E741
        heights.append(I.stop - I.start)
        if heights[-1] > most:
            raise error
        return whole(self, left, right, I, J)

    monkeypatch.setattr(TorchTiles, "tile", scarce)
    return heights


@pytest.mark.parametrize("error", [torch.cuda.OutOfMemoryError(), RuntimeError("CPUAllocator: can't allocate memory")])
def test_out_of_memory_halves_the_tile(monkeypatch, error):
    kernel, X, V = named("rbf", 3), rows(700), vectors(700, 3)
    gram = TorchGram(kernel, X, device="cpu", engine="torch")
    heights = refusing(monkeypatch, error, 200)
    assert off(gram.matmat(V), kernel.block(X, X), V) < DEFAULT
    assert heights[:3] == [700, 350, 175]
    assert len(heights) == 2 + 4
    monkeypatch.undo()
    heights = refusing(monkeypatch, error, 0)
    refuses(MemoryLimitError, r"even for a tile of 64 .*device=None", gram.matmat, V)
    assert heights == [700, 350, 175, 87, 64]


def test_other_errors_are_not_taken_for_memory(monkeypatch):
    gram = TorchGram(named("rbf", 3), rows(), device="cpu", engine="torch")
    refusing(monkeypatch, RuntimeError("something else"), 0)
    refuses(RuntimeError, "something else", gram.matmat, vectors(300, 3))


def test_rows_that_do_not_fit_are_an_error_of_ours(monkeypatch):
    def full(*_, **__):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(TorchTiles, "side", full)
    with pytest.raises(MemoryLimitError, match="no memory left for the rows"):
        TorchGram(named("rbf", 3), rows(), device="cpu", engine="torch")


@fused
def test_the_fused_kernel_takes_fewer_vectors_when_memory_is_short(monkeypatch):
    tiles = pytest.importorskip("biclique.device.triton_tiles")
    kernel, X, V = named("rbf", 3), rows(130), vectors(130, 70)
    gram = TorchGram(kernel, X, device=DEVICE, engine="triton")
    widths, whole = [], tiles.FusedTiles._columns
    limit = 16

    def scarce(self, left, right, V, *rest):
        widths.append(V.shape[1])
        if widths[-1] > limit:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        whole(self, left, right, V, *rest)

    monkeypatch.setattr(tiles.FusedTiles, "_columns", scarce)
    assert off(gram.matmat(V), kernel.block(X, X), V) < DEFAULT
    assert widths == [64, 32, 16, 16, 16, 16, 6]
    limit = 0
    refuses(MemoryLimitError, "free some", gram.matmat, V)


@fused
def test_the_fused_kernel_shrinks_where_a_multiprocessor_has_less_shared_memory(monkeypatch):
    tiles = pytest.importorskip("biclique.device.triton_tiles")
    whole, tried, least = tiles.fused_product, [], 16

    class Scarce:
        def __getitem__(self, grid):
            def launch(*args, **options):
                tried.append((options["BJ"], options["num_stages"]))
                if options["BJ"] > least or options["num_stages"] > 1:
                    raise tiles.triton.runtime.errors.OutOfResources(2, 1, "shared memory")
                return whole[grid](*args, **options)

            return launch

    monkeypatch.setattr(tiles, "fused_product", Scarce())
    kernel, X, V = named("rbf", 3), rows(130), vectors(130, 3)
    gram = TorchGram(kernel, X, device=DEVICE, engine="triton")
    for _ in range(2):  # what did not fit is not tried again
        assert off(gram.matmat(V), kernel.block(X, X), V) < DEFAULT
    assert tried == [(64, 3), (64, 2), (64, 1), (32, 1), (16, 1), (16, 1)]
    least = 8
    refuses(ParameterError, "engine='torch'", gram.matmat, V)


# On a GPU: here the error bars count


@gpu
@fused
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("d", [4, 16, 64, 256])
def test_errors_on_the_device(name, d):
    n = 20_000
    X = torch.randn((n, d), dtype=torch.float64, generator=torch.Generator().manual_seed(0)).numpy()
    V = vectors(n, 16)
    kernel = named(name, d)
    some = np.random.default_rng(5).choice(n, 500, replace=False)
    K = kernel.block(X[some], X)
    for signs, W in (("mixed", V), ("positive", np.abs(V))):
        product = TorchGram(kernel, X, device="cuda", engine="triton").matmat(W)[some]
        assert strictly_off(product, K, W) < DEFAULT, signs
        product = TorchGram(kernel, X, device="cuda", engine="triton", precision="fast").matmat(W)[some]
        assert off(product, K, W) < FAST, signs


@gpu
@fused
def test_more_than_two_to_the_31_entries():
    if torch.cuda.mem_get_info()[0] < 24 * 2**30:
        pytest.skip("needs 24 GiB on the device")
    n, d = 2**22 + 300, 512
    X = np.zeros((n, d), dtype=np.float32)
    X[:, 0] = np.linspace(-1, 1, n)
    gram = TorchGram(make_kernel("linear", gamma=None), X, device="cuda", engine="triton")
    new = np.zeros((3, d), dtype=np.float32)
    new[:, 0] = [1, 2, 3]
    V = X[:, :1].astype(np.float64)
    exact = float((V**2).sum()) * new[:, :1]
    np.testing.assert_allclose(gram.cross(new).matmat(V), exact, rtol=1e-5)
