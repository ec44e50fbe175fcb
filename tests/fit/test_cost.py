"""Estimates of time and memory, on the host and on a device."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

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
from biclique.kernels import KERNEL_NAMES, RBF, DirectRBF, Laplacian, Polynomial, make_kernel


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
