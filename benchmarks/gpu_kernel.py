"""Kernel evaluations a second on a GPU: the fused kernel, torch's tiles, and the limit of the exponential unit.

    PYTHONPATH=src python benchmarks/gpu_kernel.py [--n 262144] [--sweep 200] [--quick]

One pass of n rows evaluates κ n² times and multiplies by b vectors; a rate is the best of three passes, between two
synchronisations, the preparation of V and the sum of the splits included. Errors are against float64 on a sample of
rows, for V of mixed signs: |error| / |K V|, the strict one, and max |error| / max |K| |V|, what the tests of the
package use; and for V = |normal|, where nothing cancels and truncated sums would show. "1 half": where tiles serve both
halves of K, the same with one half at a time.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from biclique.gram.torch_gram import TorchGram
from biclique.kernels.named import make_kernel

SAMPLE = 256


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=262_144)
    parser.add_argument("--sweep", type=float, default=0, help="seconds for a sweep of tiles, one half of K at a time")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    arguments = parser.parse_args(given)
    if not torch.cuda.is_available():
        print("no CUDA device: nothing to measure here")
        return 1
    started = time.perf_counter()
    n = arguments.n // 10 if arguments.quick else arguments.n
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}, n = {n:,}", flush=True
    )
    limit = exponential_limit()
    print(f"exponential unit alone: {limit:.2e} exp2/s\n", flush=True)

    print(
        f"{'kernel':10} {'d':>4} {'b':>3} {'how':15} {'κ/s':>9} {'of exp2':>8} {'strict':>8} {'|K||V|':>8} {'V>0':>8}"
    )
    for d in (4, 16, 64, 256):
        data = Data(n, d)
        for b in (16, 32):
            for precision in ("float32", "fast"):
                gram = data.gram("triton", precision)
                report(data, b, limit, precision, gram)
                if b == 16 and gram._tiles._uses_both_halves(gram._left, gram._right):
                    gram._tiles._halves = None
                    report(data, b, limit, f"{precision}, 1 half", gram)
        fewer = Data(n // 4, d)  # some thirty times slower
        report(fewer, 16, limit, "torch fp32", Chunked(fewer))
    for name in ("laplacian", "polynomial", "linear", "cosine"):
        other = Data(n, 16, name)
        report(other, 16, limit, "float32", other.gram("triton", "float32"))
    for d, b in ((16, 64), (64, 64)):
        data = Data(n, d)
        report(data, b, limit, "float32", data.gram("triton", "float32"))
    data = Data(4 * n, 16)  # long sums
    report(data, 16, limit, f"n = {data.n:,}", data.gram("triton", "float32"))

    if not arguments.sweep:
        return 0
    print("\ntiles, best first (rows × columns, run, warps, stages; p: κ split; f: norms folded into V)")
    for d, b in ((16, 16), (16, 32), (64, 16), (4, 16), (256, 16)):
        sweep(Data(n, d), b, limit, started + arguments.sweep)
    print(f"\n{time.perf_counter() - started:.0f} s in all")
    return 0


class Data:
    """Normal rows in eight groups, as a clustering has them, with γ = 1/(2d), and exact rows of K V."""

    def __init__(self, n: int, d: int, name: str = "rbf") -> None:
        random = np.random.default_rng(0)
        centres = random.normal(size=(8, d))
        self.X = (centres[random.integers(8, size=n)] + random.normal(size=(n, d))).astype(np.float32)
        self.n, self.d, self.name = n, d, name
        self.gamma = 1 / (2 * d)
        self.kernel = make_kernel(name, gamma=self.gamma, degree=3, coef0=1.0)
        self.some = random.choice(n, SAMPLE, replace=False)
        self._exact: Any = None

    def gram(self, engine: str, precision: str) -> TorchGram:
        return TorchGram(self.kernel, self.X, device="cuda", engine=engine, precision=precision)

    def vectors(self, b: int) -> Any:
        return torch.randn((self.n, b), dtype=torch.float64, device="cuda", generator=seeded())

    def exact(self) -> Any:
        """κ of the sample against all rows, float64 on the GPU by torch: (SAMPLE, n)."""
        if self._exact is None:
            x = torch.tensor(self.X, dtype=torch.float64, device="cuda")
            y = x[torch.tensor(self.some, device="cuda")]
            if self.name == "laplacian":
                self._exact = torch.cdist(y, x, p=1).mul_(-self.gamma).exp_()
            elif self.name == "rbf":
                squares = (y * y).sum(1)[:, None] + (x * x).sum(1)[None] - 2 * y @ x.T
                self._exact = squares.clamp_(min=0).mul_(-self.gamma).exp_()
            elif self.name == "cosine":
                self._exact = (y / y.norm(dim=1, keepdim=True)) @ (x / x.norm(dim=1, keepdim=True)).T
            else:
                self._exact = y @ x.T
                if self.name == "polynomial":
                    self._exact = (self.gamma * self._exact + 1) ** 3
        return self._exact


class Chunked:
    """What one writes with torch alone: matmul, exp, matmul in tiles, float32."""

    def __init__(self, data: Data) -> None:
        self.z = torch.tensor(data.X - data.X.mean(0), device="cuda") * float(np.sqrt(data.gamma))
        self.norms = (self.z * self.z).sum(1)

    def matmat(self, V: Any) -> Any:
        V32 = V.float()
        out = torch.empty_like(V)
        for top in range(0, len(V), 16384):
            z, norms = self.z[top : top + 16384], self.norms[top : top + 16384, None]
            total = torch.zeros((len(z), V.shape[1]), dtype=torch.float64, device="cuda")
            for left in range(0, len(V), 16384):
                tile = z @ self.z[left : left + 16384].T
                tile.mul_(2).sub_(norms).sub_(self.norms[left : left + 16384]).exp_()
                total += tile @ V32[left : left + 16384]
            out[top : top + 16384] = total
        return out


def seeded() -> Any:
    return torch.Generator(device="cuda").manual_seed(1)


def best_of_three(function: Any) -> float:
    function()
    seconds = []
    for _ in range(3):
        torch.cuda.synchronize()
        before = time.perf_counter()
        function()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - before)
    return min(seconds)


def errors(data: Data, operator: Any, V: Any) -> tuple[float, float, float]:
    K = data.exact()
    some = torch.tensor(data.some, device="cuda")
    off = operator.matmat(V)[some] - K @ V
    strict = float(off.norm() / (K @ V).norm())
    bound = float((off.abs().amax(0) / (K.abs() @ V.abs()).amax(0)).max())
    W = V.abs()
    positive = float((operator.matmat(W)[some] - K @ W).norm() / (K @ W).norm())
    return strict, bound, positive


def report(data: Data, b: int, limit: float, how: str, operator: Any) -> None:
    V = data.vectors(b)
    try:
        rate = data.n**2 / best_of_three(lambda: operator.matmat(V))
        strict, bound, positive = errors(data, operator, V)
    except Exception as error:  # one configuration that fails must not cost the rest of a device call
        print(f"{data.name:10} {data.d:4} {b:3} {how:15} {type(error).__name__}: {str(error)[:90]}", flush=True)
        return
    line = f"{rate:9.2e} {rate / limit:8.0%} {strict:8.1e} {bound:8.1e} {positive:8.1e}"
    print(f"{data.name:10} {data.d:4} {b:3} {how:15} {line}", flush=True)


def sweep(data: Data, b: int, limit: float, deadline: float) -> None:
    """Time tile after tile, the likeliest first, and check the error of each."""
    from biclique.device.triton_tiles import Tile, choose_tile

    plain = Tile()
    if data.d <= 16:
        shapes = [(128, 32, 4, 3), (128, 64, 4, 3), (64, 64, 4, 3), (256, 32, 8, 3), (128, 32, 4, 2), (128, 32, 4, 4)]
        shapes += [(128, 64, 8, 3), (256, 64, 8, 3), (64, 32, 4, 3), (64, 128, 4, 2), (128, 128, 8, 3)]
    elif data.d <= 64:
        shapes = [(128, 32, 8, 3), (128, 64, 8, 3), (128, 32, 4, 3), (128, 64, 4, 2), (64, 64, 4, 3), (256, 32, 8, 2)]
        shapes += [(128, 128, 8, 2)]
    else:
        shapes = [(128, 64, 8, 3), (128, 128, 8, 2), (128, 128, 8, 3), (128, 64, 4, 3), (256, 64, 8, 2)]
    tiles = [
        replace(plain, rows=i, columns=j, warps=w, stages=s, run=run) for i, j, w, s in shapes for run in (512 // j,)
    ]
    first = tiles[0]
    tiles += [replace(first, run=run) for run in (4, 8, 32, 128)]  # how long a run may be before truncation shows
    tiles += [replace(first, fold=False), replace(first, split_p=False)]
    gram = data.gram("triton", "float32")
    V = data.vectors(b)
    found = []
    for tile in tiles:
        if time.perf_counter() > deadline:
            print(f"  d = {data.d}, b = {b}: out of time after {len(found)} of {len(tiles)}")
            break
        gram._tiles.tile = tile
        try:
            seconds = best_of_three(lambda: gram.matmat(V))
            found.append((seconds, tile, errors(data, gram, V)))
        except Exception as error:  # too much shared memory, most often
            print(f"  {describe(tile)} {type(error).__name__}: {str(error)[:80]}", flush=True)
    gram._tiles.tile = None
    chosen = choose_tile(gram._left.hi.shape[1], "float32")
    print(f"d = {data.d}, b = {b}; chosen by default: {describe(chosen)}")
    for seconds, tile, (strict, bound, positive) in sorted(found, key=lambda row: row[0]):
        rate = data.n**2 / seconds
        print(f"  {describe(tile)} {rate:9.2e} {rate / limit:6.0%}", end=" ")
        print(f"strict {strict:.1e} |K||V| {bound:.1e} V>0 {positive:.1e}")
    sys.stdout.flush()


def describe(tile: Any) -> str:
    marks = "".join(mark for mark, on in (("p", tile.split_p), ("f", tile.fold)) if on)
    return f"{tile.rows:3} × {tile.columns:3} run {tile.run:3} warps {tile.warps} stages {tile.stages} {marks or '-':3}"


@triton.jit
def only_exp2(out, rounds, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """8 values a thread, each exp2 of minus the one before, which stays in (0, 1]."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = at.to(tl.float32) * 1e-7
    for _ in range(rounds):
        x = tl.exp2(-x)
    tl.store(out + at, x)


def exponential_limit() -> float:
    """exp2 of registers and nothing else, evaluations a second."""
    grid, block, rounds = 132 * 32, 1024, 16384
    out = torch.empty(grid * block, device="cuda")
    return grid * block * rounds / best_of_three(lambda: only_exp2[(grid,)](out, rounds, BLOCK=block, num_warps=4))


if __name__ == "__main__":
    sys.exit(main())
