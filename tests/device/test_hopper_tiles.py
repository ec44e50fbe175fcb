"""Tiles used for both halves of K: what can be checked without a GPU, and the product itself where there is one."""

import os
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest

from biclique.device import hopper_tiles
from biclique.device.hopper_tiles import COLUMNS, FOLD_TILES, ROWS, units
from biclique.exceptions import BicliqueWarning
from biclique.gram.torch_gram import TorchGram
from biclique.kernels.named import make_kernel
from tests.device import DEVICE, GPU, fused
from tests.optional import Optional

ROWS_A_FOLD = FOLD_TILES * COLUMNS
torch = Optional("torch")
hopper = pytest.mark.skipif(
    not GPU or not hopper_tiles.can_use_both_halves(torch, torch.device(DEVICE)),
    reason="needs a Hopper GPU and Triton's Gluon",
)


def split_exactly(y, coarse, fine):
    hi = (y + coarse) - coarse
    return hi, ((y - hi) + fine) - fine


@pytest.mark.parametrize("signs", ["mixed", "positive"])
def test_sums_between_two_folds_are_exact_in_any_order(signs):
    coarse, fine = (np.float32(unit) for unit in units(ROWS_A_FOLD))
    random = np.random.default_rng(0)
    # As large as they get: 128 rows a tile, κ = 1 and |V| = 2¹³.
    y = random.uniform(0.5, 1, ROWS_A_FOLD // ROWS).astype(np.float32) * np.float32(ROWS * 2**13)
    if signs == "mixed":
        y *= random.choice([-1, 1], len(y)).astype(np.float32)
    hi, lo = split_exactly(y, coarse, fine)
    assert hi.dtype == lo.dtype == np.float32
    sums = set()
    for _ in range(50):
        order = random.permutation(len(y))
        sums.add((np.cumsum(hi[order])[-1], np.cumsum(lo[order])[-1]))
    assert len(sums) == 1
    ((total_hi, total_lo),) = sums
    assert float(total_hi) == hi.astype(float).sum()
    assert float(total_lo) == lo.astype(float).sum()
    finer = float(fine) / (1.5 * 2**23)
    assert abs(float(total_hi) + float(total_lo) - y.astype(float).sum()) <= len(y) * finer / 2
    assert finer < 2**13 * 2e-8  # of the largest value of V


@fused
def test_the_fold_adds_both_parts_and_the_rows_and_empties_the_parts():
    n, b, splits = 128, 16, 3
    random = np.random.default_rng(0)
    total, side = random.normal(size=(n, b)), random.normal(size=(2, n, b)).astype(np.float32)
    row, factor = random.normal(size=(splits, n, b)).astype(np.float32), random.uniform(size=n).astype(np.float32)
    expected = total + side.astype(float).sum(0) + factor[:, None].astype(float) * row.astype(float).sum(0)
    given = [torch.tensor(array, device=DEVICE) for array in (total, side, row, factor)]
    hopper_tiles.fold[(n * b // 1024,)](*given, n, splits, B=b, BLOCK=1024)
    np.testing.assert_allclose(given[0].cpu(), expected, rtol=1e-14, atol=1e-14)
    assert not given[1].any()


COMPILE = """
import sys
from biclique.device import hopper_tiles as tiles
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon._runtime import GluonASTSource

kernel = tiles.both_halves_product
types = dict.fromkeys(("LH", "LL", "RH", "RL", "V"), "*fp16")
types |= dict.fromkeys(("factor", "side_out", "row_out"), "*fp32")
types |= dict.fromkeys(("n", "first", "last", "per_split"), "i32") | dict.fromkeys(("coarse", "fine"), "fp32")
d, terms, split_p = (int(word) for word in sys.argv[1:])
options = tiles.choose_options(d, terms, bool(split_p))
backend = {"num_warps": 4, "enable_fp_fusion": True}
backend |= {"maxnreg": options.pop("maxnreg")} if "maxnreg" in options else {}
fixed = dict(D=d, B=tiles.VECTORS, TERMS=terms, P_SPLIT=bool(split_p), BI=tiles.ROWS, BJ=tiles.COLUMNS, RUN=tiles.RUN)
fixed |= options
signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
values = {(kernel.arg_names.index(name),): value for name, value in fixed.items()}
aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(kernel.arg_names) if types.get(name, "")[:1] == "*"}
made = compile(GluonASTSource(kernel, signature, values, aligned), target=GPUTarget("cuda", 90, 32), options=backend)
print("wgmma" in made.asm["ptx"], made.metadata.shared)
"""


@pytest.mark.skipif(not hopper_tiles.HAS_GLUON, reason="needs Triton's Gluon")
@pytest.mark.parametrize(("d", "terms", "split_p"), [(16, 3, 1), (32, 1, 1), (64, 3, 0)])
def test_the_kernel_compiles_for_hopper_without_a_gpu(d, terms, split_p, tmp_path):
    """With the options it is launched with; and what it wants of a multiprocessor is there, twice over."""
    away = ("TRITON_INTERPRET",)
    environment = {name: value for name, value in os.environ.items() if name not in away}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    command = [sys.executable, "-c", COMPILE, str(d), str(terms), str(split_p)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    tensor_cores, shared = done.stdout.split()
    assert tensor_cores == "True"
    assert 2 * int(shared) <= 227 * 1024


def by_definition(_self, grid, sides, sizes, options):
    """What the kernel does to its arguments, block by block and tile by tile."""
    lh, ll, rh, rl, halves, factor, side, row, n, first = (np.asarray(x) for x in sides)
    last, per_split, coarse, fine = sizes
    blocks, splits = grid
    assert blocks * ROWS == n
    left, right = lh.astype(float), rh.astype(float)
    if options["TERMS"] == 3:
        left, right = left + ll, right + rl
    V = halves[:, :16].astype(float) + halves[:, 16:]
    row[:splits] = 0
    for block in range(blocks):
        top = block * ROWS
        count = (blocks - 1) // 2 + 1 + (blocks % 2 == 0 and block < blocks // 2)
        I = slice(top, top + ROWS)  # noqa: E741
        for split in range(splits):
            begin = first + split * per_split
            for t in range(begin, min(count * ROWS // COLUMNS, last, begin + per_split)):
                j = (top + t * COLUMNS) % n
                J = slice(j, j + COLUMNS)
                P = np.exp2(left[I] @ right[J].T)
                row[split, I] += P @ V[J]
                if t * COLUMNS >= ROWS:
                    y = (factor[J, None] * (P.T @ V[I])).astype(np.float32)
                    hi, lo = split_exactly(y, np.float32(coarse), np.float32(fine))
                    side[0, J] += hi
                    side[1, J] += lo


@fused
@pytest.mark.skipif(GPU, reason="checks what is around the kernel, on the CPU")
@pytest.mark.parametrize(("n", "d", "b"), [(256, 3, 1), (700, 3, 16), (1100, 14, 5), (1100, 40, 16)])
def test_the_product_around_the_kernel(n, d, b, monkeypatch):
    """Scales, halves, launches, folds and the sums of columns, with the kernel's own part done by its definition."""
    both_halves(monkeypatch)
    X, V = rows(n, d), vectors(n, b)
    V[:, 0] *= 1e-20
    kernel = make_kernel("rbf", gamma=1 / (3 * d))
    gram = TorchGram(kernel, X, device="cpu", engine="triton")
    told = []
    monkeypatch.setattr(hopper_tiles, "EVALUATIONS_A_TICK", 1)
    gram.tick = told.append
    monkeypatch.setattr(gram._tiles, "_columns", None)  # not called
    exact = kernel.block(X.astype(float), X.astype(float)) @ V
    product = gram.matmat(V)
    assert np.abs(product - exact).max(0) / np.abs(exact).max(0) == pytest.approx(0, abs=2e-6)
    assert told == sorted(told)
    assert told[-1] == 1


@fused
@pytest.mark.skipif(GPU, reason="checks what is around the kernel, on the CPU")
def test_units_too_coarse_for_v_are_noticed(monkeypatch):
    """They are shares of max |V|: what they round is compared with the product."""
    both_halves(monkeypatch)
    X, V = rows(700, 40), vectors(700, 3)
    kernel = make_kernel("rbf", gamma=1 / 120)
    gram = TorchGram(kernel, X, device="cpu", engine="triton")
    asked, whole = [], gram._tiles._columns

    def columns(*args):
        asked.append(args[2].shape)
        whole(*args)

    monkeypatch.setattr(gram._tiles, "_columns", columns)
    exact = kernel.block(X.astype(float), X.astype(float)) @ V
    for limit, expected in ((hopper_tiles.MOST_ROUNDING, []), (0.0, [(700, 3)])):
        monkeypatch.setattr(hopper_tiles, "MOST_ROUNDING", limit)
        np.testing.assert_allclose(gram.matmat(V), exact, atol=1e-5 * np.abs(exact).max())
        assert asked == expected


def both_halves(monkeypatch):
    """The way of a Hopper GPU on the CPU, with several folds even for few rows."""
    for name, value in {"FEWEST_ROWS": 1, "FOLD_TILES": 8, "RUN": 1, "PROGRAMS": 20}.items():
        monkeypatch.setattr(hopper_tiles, name, value)
    monkeypatch.setattr(hopper_tiles, "can_use_both_halves", lambda *_: True)
    monkeypatch.setattr(hopper_tiles.BothHalvesTiles, "_launch", by_definition)


@fused
@pytest.mark.parametrize(("answer", "n_tries"), [("coarse", 2), ("full", 2), ("no such instruction", 1)])
def test_one_half_at_a_time_where_both_do_not_do(answer, n_tries, monkeypatch):
    """Units too coarse for V, or no memory: the next product is tried again. A kernel that is not taken is not."""
    tried = []

    class Halves:
        def product(self, *_args, **_options):
            tried.append(answer)
            if answer == "full":
                raise torch.cuda.OutOfMemoryError("CUDA out of memory")
            if answer != "coarse":
                raise hopper_tiles.NotTakenError(answer)

    monkeypatch.setattr(hopper_tiles, "FEWEST_ROWS", 1)
    monkeypatch.setattr(hopper_tiles, "can_use_both_halves", lambda *_: True)
    monkeypatch.setattr(hopper_tiles, "BothHalvesTiles", lambda *_: Halves())
    X, V = rows(130, 3), vectors(130, 5)
    kernel = make_kernel("rbf", gamma=0.2)
    gram = TorchGram(kernel, X, device=DEVICE, engine="triton")
    warned = pytest.warns(BicliqueWarning, match=answer) if n_tries == 1 else nullcontext()
    with warned:
        np.testing.assert_allclose(gram.matmat(V), kernel.block(X, X) @ V, atol=1e-4)
    np.testing.assert_allclose(gram.matmat(V), kernel.block(X, X) @ V, atol=1e-4)
    assert len(tried) == n_tries


@fused
def test_who_may_use_both_halves(monkeypatch):
    """The same rows on both sides, near enough for half precision, enough of them, and not new ones."""
    monkeypatch.setattr(hopper_tiles, "FEWEST_ROWS", 100)
    monkeypatch.setattr(hopper_tiles, "can_use_both_halves", lambda *_: True)

    def may(X, gamma=0.2, **options):
        gram = TorchGram(make_kernel("rbf", gamma=gamma), X, device=DEVICE, engine="triton", **options)
        return gram, gram._tiles._uses_both_halves(gram._left, gram._right)

    gram, symmetric = may(rows(130, 3))
    assert symmetric
    new = gram._tiles.side(gram.held.hold(rows(130, 3)), right=False)
    assert not gram._tiles._uses_both_halves(new, gram._right)
    assert may(rows(130, 20), gamma=1 / 40)[1]
    assert not may(rows(99, 3))[1]
    assert not may(rows(130, 65), gamma=1 / 130)[1]
    assert not may(rows(130, 3), gamma=5.0)[1]
    linear = TorchGram(make_kernel("linear", gamma=None), rows(130, 3), device=DEVICE, engine="triton")
    assert not linear._tiles._uses_both_halves(linear._left, linear._right)


def rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def vectors(n, b, seed=1):
    return np.random.default_rng(seed).normal(size=(n, b))


# On a Hopper GPU


def strictly_off(gram, kernel, X, V):
    some = np.random.default_rng(2).choice(len(X), 300, replace=False)
    exact = kernel.block(X[some].astype(float), X.astype(float)) @ V
    return np.linalg.norm(gram.matmat(V)[some] - exact) / np.linalg.norm(exact)


@hopper
@pytest.mark.parametrize("n", [8192, 8193, 8192 + 256, 33_000, 50_001])
@pytest.mark.parametrize(("d", "b"), [(1, 1), (3, 16), (10, 7), (11, 16), (16, 16), (17, 5), (40, 16), (64, 16)])
def test_both_halves_on_the_device(n, d, b):
    X, V = rows(n, d), vectors(n, b)
    V[:, 0] = np.abs(V[:, 0]) * 1e-20
    kernel = make_kernel("rbf", gamma=1 / (3 * d))
    for precision, most in (("float32", 1e-5), ("fast", 5e-4)):
        gram = TorchGram(kernel, X, device="cuda", precision=precision)
        assert gram._tiles._uses_both_halves(gram._left, gram._right) == (gram._right.most <= hopper_tiles.MOST_NORM)
        assert strictly_off(gram, kernel, X, V) < most, precision
        assert strictly_off(gram, kernel, X, np.abs(V)) < most / (1 if precision == "float32" else 4), precision


@hopper
def test_the_bits_do_not_depend_on_the_order_in_which_tiles_come():
    n = 100_000
    gram = TorchGram(make_kernel("rbf", gamma=1 / 32), rows(n, 16), device="cuda")
    assert gram._tiles._uses_both_halves(gram._left, gram._right)
    V = torch.tensor(vectors(n, 14), device="cuda")
    first = gram.matmat(V)
    assert all(torch.equal(first, gram.matmat(V)) for _ in range(5))


@hopper
def test_a_few_large_rows_of_v():
    """One row of V outweighs the rest ten thousand times, and hardly any other row sees it: one half at a time."""
    n = 32_768
    X = rows(n, 64)
    X *= np.sqrt(14 * np.log(2) / 2) / np.linalg.norm(X, axis=1, keepdims=True)
    X -= X.mean(0)
    kernel = make_kernel("rbf", gamma=1.0)
    V = vectors(n, 4)
    V[7] *= 1e4
    gram = TorchGram(kernel, X, device="cuda")
    assert gram._tiles._uses_both_halves(gram._left, gram._right)
    assert strictly_off(gram, kernel, X, V) < 1e-5


@hopper
def test_identity_like_kernels_and_zero_vectors():
    """Next to no similarity: what is left is V itself, to the finest unit."""
    n = 20_000
    X = np.zeros((n, 2), dtype=np.float32)
    X[:, 0], X[:, 1] = np.divmod(np.arange(n), 200)
    X -= X.mean(0)
    kernel = make_kernel("rbf", gamma=1e-3)
    V = vectors(n, 3)
    V[:, 1] = 0
    gram = TorchGram(kernel, X, device="cuda")
    product_ = gram.matmat(V)
    assert not product_[:, 1].any()
    assert strictly_off(gram, kernel, X, V) < 1e-5
