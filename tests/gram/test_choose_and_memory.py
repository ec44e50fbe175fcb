import tracemalloc
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from biclique.exceptions import DataError, MemoryLimitError, ParameterError
from biclique.fit import cost
from biclique.fit.cost import (
    FUSED_PICOSECONDS,
    TORCH_PICOSECONDS,
    Cost,
    device_bytes,
    device_factored_seconds,
    device_seconds,
    estimate_seconds,
)
from biclique.gram import DenseGram, TiledGram, checked_matrix, checked_sparse, choose_gram, choose_precision
from biclique.gram.tiled import tiled_bytes
from biclique.kernels import (
    KERNEL_NAMES,
    RBF,
    Chi2,
    DirectRBF,
    Function,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    make_kernel,
)
from biclique.runtime.memory import format_bytes, free_memory, parse_memory_limit

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4GB", 4 * GIB),
        ("1.5 GiB", 1.5 * GIB),
        ("512m", 2**29),
        (1000, 1000),
        ("2T", 2**41),
        ("7", 7),
        (np.int64(9), 9),
    ],
)
def test_memory_limits_are_read(text, size):
    assert parse_memory_limit(text) == size


@pytest.mark.parametrize("text", ["lots", "", -1, 0, True, "0GB", "4 apples", float("inf")])
def test_bad_memory_limits_are_refused(text):
    with pytest.raises(ParameterError, match="memory_limit must be 'auto', a number of bytes or text like '4GB'"):
        parse_memory_limit(text)


def test_auto_is_about_half_of_what_is_free():
    assert 0 < parse_memory_limit("auto") <= free_memory()


def test_bytes_read_well():
    assert [format_bytes(b) for b in (12, 8 * 200_000**2, 3 * 2**40)] == ["12 B", "298 GiB", "3 TiB"]


def test_dense_is_refused_before_anything_is_allocated():
    X = np.zeros((200_000, 1))
    tracemalloc.start()
    with pytest.raises(
        MemoryLimitError, match=r"gram='dense' for 200000 distinct rows needs 298 GiB, limit 16 GiB: use "
    ):
        DenseGram.from_kernel(RBF(1.0), X, memory_limit=16 * GIB)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_tiled_is_refused_when_its_vectors_do_not_fit():
    gram = TiledGram(RBF(1.0), np.zeros((2000, 2)), memory_limit=10 * 2**20)
    with pytest.raises(MemoryLimitError, match=r"gram='tiled' for 2000 distinct rows and 500 vectors needs .* MiB"):
        gram.matmat(np.zeros((2000, 500)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiled_stays_within_what_it_says(dtype):
    X = np.random.default_rng(0).normal(size=(4000, 16))
    V = np.ones((4000, 14))
    tracemalloc.start()
    gram = TiledGram(RBF(0.1), X, dtype=dtype)
    gram.matmat(V)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * tiled_bytes(4000, 16, 14, dtype) + 2**20
    assert peak < 4000 * 4000 * 4 / 2  # far from the matrix itself


class Cheap(Kernel):
    cheap = True

    def block(self, X, Y):
        return X @ Y.T


@pytest.mark.parametrize(
    ("kernel", "n", "limit", "expected"),
    [
        (RBF(1.0), 1000, GIB, "dense"),
        (RBF(1.0), 5000, GIB, "tiled"),
        (RBF(1.0), 4000, 2**20, "tiled"),
        (Laplacian(1.0), 5000, GIB, "dense"),
        (Laplacian(1.0), 50_000, GIB, "tiled"),
        (Cheap(), 5000, GIB, "tiled"),
        (RBF(1.0), 120_000, GIB, "tiled"),
        (RBF(1.0), 200_000, GIB, "nystroem"),
        (Laplacian(1.0), 100_000, GIB, "nystroem"),
        (Function(min, {}), 5000, GIB, "dense"),
        (Function(min, {}), 6000, GIB, "nystroem"),
        (Linear(), 4000, GIB, "dense"),
        (Linear(), 5000, GIB, "features"),
    ],
)
def test_auto_chooses_by_rows_kernel_and_memory(kernel, n, limit, expected):
    choice = choose_gram("auto", kernel, n, np.zeros((n, 1)), limit)
    assert choice.name == expected
    assert choice.reason.startswith("approximate: exact tiles" if expected == "nystroem" else "exact: ")
    assert choose_gram("dense", kernel, n, np.zeros((n, 1)), limit).name == "dense"


def test_auto_weighs_columns_too():
    wide, long = np.zeros((30_000, 784), dtype=np.float32), np.zeros((30_000, 16), dtype=np.float32)
    assert choose_gram("auto", RBF(1.0), wide.shape[0], wide, GIB).name == "nystroem"
    assert choose_gram("auto", RBF(1.0), long.shape[0], long, GIB).name == "tiled"
    # Wider than it is long: an inner product of the columns would be no shorter.
    assert choose_gram("auto", Linear(), 5000, np.zeros((5000, 6000), dtype=np.float32), GIB).name == "tiled"


def test_precision_is_float32_until_its_rounding_shows():
    X = np.random.default_rng(0).normal(size=(100, 3))
    assert choose_precision("auto", RBF(1.0), X) == np.float32
    assert choose_precision("auto", RBF(1e5), X) == np.float64
    assert choose_precision("auto", RBF(1.0), X + 1e6) == np.float32  # centring takes the offset away
    assert choose_precision("auto", Linear(), X + 1e4) == np.float64
    assert choose_precision("float32", RBF(1e3), X) == np.float32
    with pytest.raises(
        ParameterError, match=r"precision='float32' would give kernel values off by 0\.\d: rows lie too far"
    ):
        choose_precision("float32", RBF(1e5), X)


@pytest.mark.parametrize("make", [RBF, Laplacian, Chi2])
def test_precision_where_all_values_are_near_one(make):
    X = np.random.default_rng(0).random((100, 3))
    assert choose_precision("auto", make(1.0), X) == np.float32
    assert choose_precision("auto", make(1e-2), X) == np.float32
    assert choose_precision("auto", make(1e-6), X) == np.float64
    with pytest.raises(ParameterError, match="or its values too close together"):
        choose_precision("float32", make(1e-7), X)


@pytest.mark.parametrize("kernel", [Linear(), Laplacian(1e60), Chi2(1e60)])
def test_precision_where_float32_vanishes(kernel):
    X = np.random.default_rng(0).random((100, 3))
    assert choose_precision("auto", kernel, X * 1e-60) == np.float64
    assert choose_precision("auto", Linear(), X * 1e-10) == np.float32


def test_given_matrices_must_be_symmetric():
    K = np.eye(600)
    K[3, 550] = 0.5
    for check, matrix in ((checked_matrix, K), (checked_sparse, sparse.csr_array(K))):
        with pytest.raises(DataError, match=r"symmetric matrix, but entries \(\d+, \d+\).* differ by 0.5"):
            check(matrix)
    K[550, 3] = 0.5 + 1e-8
    for check, matrix in ((checked_matrix, K), (checked_sparse, sparse.csr_array(K))):
        fixed = check(matrix)
        assert (fixed != fixed.T).sum() == 0


@pytest.mark.parametrize("gram", ["dense", "tiled"])
def test_cost_grows_with_the_square_of_the_rows(gram):
    X = np.random.default_rng(0).normal(size=(8000, 4))
    small, large = (
        estimate_seconds(RBF(1.0), X[:n], n, gram=gram, dtype=np.float32, columns=8, n_jobs=1) for n in (2000, 8000)
    )
    assert 4 < large / small < 64
    assert str(Cost(gram, 8000, 36.2, 2**31)) == f"8000 rows, gram={gram!r}: about 36 s and 2 GiB"


PERFORMANCE = (Path(__file__).parents[2] / "docs" / "performance.md").read_text()


def test_the_speed_of_a_device_is_the_measured_one():
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PERFORMANCE.splitlines() if "|" in line]
    found = 0
    for name, d, b, precision, speed, *_ in (row for row in rows if row[0] in KERNEL_NAMES):
        kernel = make_kernel(name, gamma=0.1)
        if precision.startswith("torch"):
            value, column = TORCH_PICOSECONDS
            seconds = 1e-12 * (value + column * int(d))
        elif precision in FUSED_PICOSECONDS:
            seconds = device_seconds(kernel, 1, int(d), columns=int(b), passes=1, precision=precision)
        else:
            continue
        assert 1 / 1.6 < seconds * float(speed) < 1.6, (name, d, b, precision)
        found += 1
    assert found > 20


def test_what_a_device_takes_grows():
    facts = {"columns": 14, "passes": 5}
    rbf = device_seconds(RBF(1.0), 1000, 16, **facts)
    assert device_seconds(RBF(1.0), 3000, 16, **facts) == pytest.approx(9 * rbf)
    assert device_seconds(Laplacian(1.0), 1000, 16, **facts) > 3 * rbf
    assert device_seconds(RBF(1.0), 1000, 16, columns=65, passes=5) > 2 * rbf
    assert device_seconds(RBF(1.0), 1000, 513, **facts) > 3 * device_seconds(RBF(1.0), 1000, 512, **facts)
    assert device_factored_seconds(1024, 1000, 16) > 2 * device_factored_seconds(512, 1000, 16)
    tiles = import_module("biclique.device.triton_tiles")
    assert (cost.MOST_FUSED, cost.MOST_VECTORS) == (tiles.MOST_COLUMNS, tiles.MOST_VECTORS)
    told = str(Cost("cuda", 8000, 36.2, 2**20, "cuda:1", 2**31))
    assert told == "8000 rows, gram='cuda': about 36 s, 2 GiB on cuda:1 and 1 MiB on the host"


def test_what_is_not_fused_has_the_speed_of_torch():
    facts = {"columns": 14, "passes": 5}
    value, column = TORCH_PICOSECONDS
    torch = 5 * 1e-12 * (value + column * 16) * 1000**2
    for device in ("mps", "xpu:1"):
        assert device_seconds(RBF(1.0), 1000, 16, device=device, **facts) == pytest.approx(torch)
    for kernel in (DirectRBF(1.0), Polynomial(1.0, 1.0, 2.5), Polynomial(1.0, 1.0, 15)):
        assert device_seconds(kernel, 1000, 16, **facts) == pytest.approx(torch)
    assert device_seconds(Polynomial(1.0, 1.0, 3), 1000, 16, device="cuda:1", **facts) < torch / 10
    assert device_seconds(RBF(1.0), 1000, 16, precision="float64", **facts) == pytest.approx(2 * torch)


@pytest.mark.parametrize(
    ("d", "side"), [(1, 64), (5, 64), (6, 128), (10, 128), (11, 64), (16, 64), (17, 128), (64, 256), (65, 512)]
)
def test_what_a_product_on_a_device_holds(d, side):
    for columns, vectors in ((1, 16), (16, 16), (17, 32), (33, 64), (200, 64)):
        assert device_bytes(RBF(1.0), 1000, d, columns=columns) == 1000 * (side + 32 * vectors)
    assert device_bytes(Laplacian(1.0), 1000, d, columns=16) == 1000 * (4 * d + 512)
    tiles = import_module("biclique.device.triton_tiles")
    assert side == 4 * tiles.pad_columns(3 * d if 3 * d <= 32 else d)
    for device, tile in (("cpu", 1024), ("mps", 8192)):
        there = device_bytes(RBF(1.0), 10_000, d, columns=16, device=device)
        assert there == 10_000 * (4 * (d + 1) + 20 * 16) + 12 * tile**2
        assert device_bytes(RBF(1.0), 10_000, d, columns=16, device=device, precision="float64") > 1.5 * there


def test_cost_of_a_given_matrix_counts_its_entries():
    K = sparse.csr_array((np.random.default_rng(0).random((1000, 1000)) < 0.01).astype(float))
    facts = {"gram": "sparse", "dtype": float, "columns": 8, "n_jobs": 1}
    assert estimate_seconds(None, K, K.shape[0], **facts) < 0.1 * estimate_seconds(
        None, K.toarray(), K.shape[0], **{**facts, "gram": "dense"}
    )
