"""K V of rbf on a Hopper GPU, each tile of K used for both halves of the symmetric product.

Written in Gluon, Triton's lower level: it says itself where a tile lies and when a tensor-core product is waited for.
Imported only if Triton is installed and asked for. ``BothHalvesTiles`` describes what is computed.
"""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from math import ceil, sqrt
from typing import Any

from biclique.runtime.threads import Tick

# Without Triton the module can still be read, by tools that look at every file; nothing in it can be called.
triton: Any = import_module("triton") if find_spec("triton") is not None else None
tl: Any = import_module("triton.language") if triton is not None else None
jit: Any = triton.jit if triton is not None else (lambda function: function)
try:
    gluon: Any = import_module("triton.experimental.gluon")
    gl: Any = import_module("triton.experimental.gluon.language")
    hopper: Any = import_module("triton.experimental.gluon.language.nvidia.hopper")
    # By the names of Triton 3.9, or those of 3.6.
    fetch = getattr(hopper.async_copy, "async_load", None) or hopper.async_copy.async_copy_global_to_shared
    fetch_group, fetch_wait = hopper.async_copy.commit_group, hopper.async_copy.wait_group
    barrier = getattr(gl, "barrier", None) or gl.thread_barrier
    fence, mma = hopper.fence_async_shared, hopper.warpgroup_mma
    mma_begin, mma_wait = hopper.warpgroup_mma_init, hopper.warpgroup_mma_wait
    HAS_GLUON = True
except (ImportError, AttributeError):  # no Triton, or one without Gluon, or with another: nothing below is called then
    gluon = gl = hopper = None
    HAS_GLUON = False


def gluon_jit(function: Any) -> Any:
    """A kernel or a part of one, if Gluon is there; whole numbers that change from launch to launch stay numbers."""
    if not HAS_GLUON:
        return function
    varying = [name for name in ("first", "last", "per_split") if name in function.__code__.co_varnames]
    return gluon.jit(do_not_specialize=varying)(function)


ROWS, COLUMNS = 128, 64
"""A program's rows, in two halves of 64, and the columns of a tile."""
RUN = 8
"""Tiles that the tensor cores sum before float32 does."""
MOST_COLUMNS, VECTORS = 64, 16
"""More vectors want more registers than there are: one half of K at a time is faster then."""
MOST_NORM = 7.5
"""The largest |z|²/2: 2^⟨z_i, z_j⟩ then stays below the largest half-precision number."""
FEWEST_ROWS = 8192
LARGEST = 2.0**13
"""What the largest value of a column of V is brought to."""
FOLD_TILES = 256
"""Tiles of a launch: 16,384 columns a row. Sums between two launches must be exact in 24 bits twice."""
MOST_ROUNDING = 4e-6
"""Of a product, in the units of those sums. They are shares of max |V|: a V of few large rows may want more."""
ROUNDER = 1.5 * 2**23
"""So many units, added and taken away again, round a float32 to a multiple of the unit."""
PROGRAMS = 8192
EVALUATIONS_A_TICK = 2**39


@gluon_jit  # type: ignore[untyped-decorator,unused-ignore]
def _fetch_rows(rh, rl, RH, RL, j, j_d, slot, D: gl.constexpr, TERMS: gl.constexpr):  # type: ignore[no-untyped-def]
    """Begin to bring a tile's rows to the chip."""
    fetch(rh.index(slot), RH + j * D + j_d)
    if TERMS == 3:
        fetch(rl.index(slot), RL + j * D + j_d)


@gluon_jit  # type: ignore[untyped-decorator,unused-ignore]
def _fetch_vectors(v, V, j, j_b, slot, B: gl.constexpr):  # type: ignore[no-untyped-def]
    """The same of its vectors: what was begun before belongs to the same group."""
    fetch(v.index(slot), V + j * (2 * B) + j_b)
    fetch_group()


@gluon_jit  # type: ignore[untyped-decorator,unused-ignore]
def round_from(top, tile, BJ: gl.constexpr, n):  # type: ignore[no-untyped-def]
    """The first column of a tile, counted from row ``top`` round the n rows."""
    j = top + tile * BJ
    return gl.where(j >= n, j - n, j)


@gluon_jit  # type: ignore[untyped-decorator,unused-ignore]
def _inner(lh, ll, rh, rl, zero, TERMS: gl.constexpr):  # type: ignore[no-untyped-def]
    """⟨L, R⟩ of halves, begun: the small products first, they are truncated against a small sum."""
    if TERMS == 3:
        x = mma(ll, rh.permute((1, 0)), zero, use_acc=False, is_async=True)
        x = mma(lh, rl.permute((1, 0)), x, is_async=True)
        x = mma(lh, rh.permute((1, 0)), x, is_async=True)
    else:
        x = mma(lh, rh.permute((1, 0)), zero, use_acc=False, is_async=True)
    return x


@gluon_jit  # type: ignore[untyped-decorator,unused-ignore]
def _values(s, on_hi, on_lo, layout: gl.constexpr, P_SPLIT: gl.constexpr):  # type: ignore[no-untyped-def]
    """2^s as halves hi + lo, on the chip and in registers; split by a mask, so that both are packed two at a time."""
    p = gl.exp2(s)
    if P_SPLIT:
        short = (p.to(gl.int32, bitcast=True) & -8192).to(gl.float32, bitcast=True)
        lo = (p - short).to(gl.float16)
        on_lo.store(lo)
        hi = short.to(gl.float16)
    else:
        hi = p.to(gl.float16)
        lo = hi
    on_hi.store(hi)
    fence()
    return gl.convert_layout(hi, layout), gl.convert_layout(lo, layout)


@gluon_jit  # type: ignore[untyped-decorator,unused-ignore]
def _both(x, N: gl.constexpr, B: gl.constexpr, layout: gl.constexpr):  # type: ignore[no-untyped-def]
    """The sum of the products with hi and with lo of the vectors, which lie side by side."""
    hi, lo = gl.split(gl.permute(gl.reshape(x, (N, 2, B)), (0, 2, 1)))
    return gl.convert_layout(hi + lo, layout)


@gluon_jit  # type: ignore[untyped-decorator,unused-ignore]
def _rows_times(run, ph, pl, v, B: gl.constexpr, P_SPLIT: gl.constexpr):  # type: ignore[no-untyped-def]
    if P_SPLIT:
        run = mma(pl, v.slice(0, B, 1), run, is_async=True)
    run = mma(ph, v.slice(B, B, 1), run, is_async=True)
    return mma(ph, v.slice(0, B, 1), run, is_async=True)


@gluon_jit  # type: ignore[untyped-decorator,unused-ignore]
def _columns_times(hi, lo, w, side, P_SPLIT: gl.constexpr, FIRST: gl.constexpr):  # type: ignore[no-untyped-def]
    if P_SPLIT:
        side = mma(lo.permute((1, 0)), w, side, use_acc=not FIRST, is_async=True)
        side = mma(hi.permute((1, 0)), w, side, is_async=True)
    else:
        side = mma(hi.permute((1, 0)), w, side, use_acc=not FIRST, is_async=True)
    return side


@gluon_jit  # type: ignore[untyped-decorator,unused-ignore]
def _add_exactly(out, plane, y, coarse, fine):  # type: ignore[no-untyped-def]
    """y as a multiple of one unit and a multiple of a finer one: sums of such have no rounding, in any order."""
    hi = (y + coarse) - coarse
    lo = ((y - hi) + fine) - fine
    gl.atomic_add(out, hi, sem="relaxed")
    gl.atomic_add(out + plane, lo, sem="relaxed")


@gluon_jit  # type: ignore[untyped-decorator,unused-ignore]
def both_halves_product(  # type: ignore[no-untyped-def]
    LH, LL, RH, RL, V, factor, side_out, row_out, n, first, last, per_split, coarse, fine,
    D: gl.constexpr, B: gl.constexpr, TERMS: gl.constexpr, P_SPLIT: gl.constexpr,
    BI: gl.constexpr, BJ: gl.constexpr, RUN: gl.constexpr, S: gl.constexpr, ON_CHIP: gl.constexpr,
):  # fmt: skip
    """Tiles first to last of 128 rows I, the columns going round from I: rows and columns times V."""
    HALF: gl.constexpr = BI // 2
    square: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BJ, 16])
    one: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, B, 16])
    two: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 2 * B, 16])
    left: gl.constexpr = gl.DotOperandLayout(0, square, 2)
    values: gl.constexpr = gl.DotOperandLayout(0, one, 2)
    copy_d: gl.constexpr = gl.BlockedLayout([1, 8], [256 // D, D // 8], [4, 1], [1, 0])
    copy_b: gl.constexpr = gl.BlockedLayout([1, 8], [128 // B, B // 4], [4, 1], [1, 0])
    held_d: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BJ, D], gl.float16)
    held_b: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BJ, 2 * B], gl.float16)
    held_p: gl.constexpr = gl.NVMMASharedLayout.get_default_for([HALF, BJ], gl.float16)
    held_sum: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])

    block = gl.program_id(0)
    blocks = n // BI
    top = block.to(gl.int64) * BI
    count = (blocks - 1) // 2 + 1  # blocks of columns, its own the first; the opposite one is met by one of the two
    if (blocks % 2 == 0) and (block < blocks // 2):
        count += 1
    begin = first + gl.program_id(1) * per_split
    tiles = gl.minimum(gl.minimum(count * (BI // BJ), last) - begin, per_split)

    j_d = gl.arange(0, BJ, gl.SliceLayout(1, copy_d))[:, None] * D + gl.arange(0, D, gl.SliceLayout(0, copy_d))[None, :]
    j_b = gl.arange(0, BJ, gl.SliceLayout(1, copy_b))[:, None] * (2 * B)
    j_b += gl.arange(0, 2 * B, gl.SliceLayout(0, copy_b))[None, :]
    at = gl.arange(0, BJ, gl.SliceLayout(1, one))
    o_b = at[:, None] * B + gl.arange(0, B, gl.SliceLayout(0, one))[None, :]

    rh = gl.allocate_shared_memory(gl.float16, [S, BJ, D], held_d)
    rl = rh
    if TERMS == 3:
        rl = gl.allocate_shared_memory(gl.float16, [S, BJ, D], held_d)
    v = gl.allocate_shared_memory(gl.float16, [S, BJ, 2 * B], held_b)
    on_hi = gl.allocate_shared_memory(gl.float16, [HALF, BJ], held_p)
    on_lo = on_hi
    if P_SPLIT:
        on_lo = gl.allocate_shared_memory(gl.float16, [HALF, BJ], held_p)
    w0 = gl.allocate_shared_memory(gl.float16, [HALF, 2 * B], held_b, gl.load(V + top * (2 * B) + j_b))
    w1 = gl.allocate_shared_memory(gl.float16, [HALF, 2 * B], held_b, gl.load(V + (top + HALF) * (2 * B) + j_b))
    sums = gl.allocate_shared_memory(gl.float32, [2, HALF, B], held_sum)
    nothing = gl.zeros([HALF, B], gl.float32, one)
    sums.index(0).store(nothing)
    sums.index(1).store(nothing)
    if ON_CHIP:
        lh0 = gl.allocate_shared_memory(gl.float16, [HALF, D], held_d, gl.load(LH + top * D + j_d))
        lh1 = gl.allocate_shared_memory(gl.float16, [HALF, D], held_d, gl.load(LH + (top + HALF) * D + j_d))
        ll0 = lh0
        ll1 = lh1
        if TERMS == 3:
            ll0 = gl.allocate_shared_memory(gl.float16, [HALF, D], held_d, gl.load(LL + top * D + j_d))
            ll1 = gl.allocate_shared_memory(gl.float16, [HALF, D], held_d, gl.load(LL + (top + HALF) * D + j_d))
    else:
        i_d = gl.arange(0, HALF, gl.SliceLayout(1, left))[:, None] * D
        i_d += gl.arange(0, D, gl.SliceLayout(0, left))[None, :]
        lh0 = gl.load(LH + top * D + i_d)
        lh1 = gl.load(LH + (top + HALF) * D + i_d)
        ll0 = gl.load(LL + top * D + i_d)
        ll1 = gl.load(LL + (top + HALF) * D + i_d)

    for q in gl.static_range(S - 1):
        j = round_from(top, begin + q, BJ, n)
        _fetch_rows(rh, rl, RH, RL, j, j_d, q, D, TERMS)
        _fetch_vectors(v, V, j, j_b, q, B)
    fetch_wait(S - 2)
    fence()
    barrier()
    zero = gl.zeros([HALF, BJ], gl.float32, square)
    sided = gl.zeros([BJ, 2 * B], gl.float32, two)
    side = mma_begin(sided)
    ph = gl.zeros([HALF, BJ], gl.float16, values)
    pl = ph
    column = top
    weight = gl.zeros([BJ], gl.float32, gl.SliceLayout(1, one))
    for start in range(0, tiles, RUN):
        # Tensor cores truncate as they accumulate; a short run loses little, and runs are added by rounded sums.
        run0 = mma_begin(nothing)
        run1 = mma_begin(nothing)
        for t in range(start, gl.minimum(start + RUN, tiles)):
            slot = t % S
            x = _inner(lh0, ll0, rh.index(slot), rl.index(slot), zero, TERMS)
            s, rows, ph, pl, sided = mma_wait(0, deps=[x, run1, ph, pl, side])
            run1 = mma_begin(rows)
            barrier()  # all are done with the values and with the oldest tile on the chip
            ahead = t + S - 1
            j = round_from(top, begin + gl.minimum(ahead, tiles - 1), BJ, n)
            _fetch_rows(rh, rl, RH, RL, j, j_d, ahead % S, D, TERMS)
            y = _both(sided, BJ, B, one) * weight[:, None]
            _add_exactly(side_out + column * B + o_b, n.to(gl.int64) * B, y, coarse, fine)
            ph, pl = _values(s, on_hi, on_lo, values, P_SPLIT)
            run0 = _rows_times(run0, ph, pl, v.index(slot), B, P_SPLIT)
            barrier()
            side = _columns_times(on_hi, on_lo, w0, sided, P_SPLIT, True)
            _fetch_vectors(v, V, j, j_b, ahead % S, B)
            column = round_from(top, begin + t, BJ, n)
            # A block with itself has both halves already.
            weight = gl.load(factor + column + at) * gl.where((begin + t) * BJ < BI, 0.0, 1.0)

            x = _inner(lh1, ll1, rh.index(slot), rl.index(slot), zero, TERMS)
            s, rows, ph, pl, sided = mma_wait(0, deps=[x, run0, ph, pl, side])
            run0 = mma_begin(rows)
            barrier()
            fetch_wait(S - 2)
            ph, pl = _values(s, on_hi, on_lo, values, P_SPLIT)
            run1 = _rows_times(run1, ph, pl, v.index(slot), B, P_SPLIT)
            barrier()
            side = _columns_times(on_hi, on_lo, w1, mma_begin(sided), P_SPLIT, False)
        rows, ph, pl, sided = mma_wait(0, deps=[run1, ph, pl, side])
        side = mma_begin(sided)
        sums.index(1).store(sums.index(1).load(one) + rows)
        rows = mma_wait(0, deps=[run0])
        sums.index(0).store(sums.index(0).load(one) + rows)
    fetch_wait(0)
    y = _both(sided, BJ, B, one) * weight[:, None]
    _add_exactly(side_out + column * B + o_b, n.to(gl.int64) * B, y, coarse, fine)
    out = row_out + (gl.program_id(1).to(gl.int64) * n + top) * B + o_b
    gl.store(out, sums.index(0).load(one))
    gl.store(out + HALF * B, sums.index(1).load(one))


@jit  # type: ignore[untyped-decorator,unused-ignore]
def fold(total, side, row, factor, n, splits, B: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """total += side's two parts + factor · Σ row over the splits, in float64 and in this order; side = 0."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    plane = n.to(tl.int64) * B
    rows = tl.zeros((BLOCK,), dtype=tl.float64)
    for split in range(splits):
        rows += tl.load(row + split * plane + at).to(tl.float64)
    rows *= tl.load(factor + at // B).to(tl.float64)
    added = tl.load(side + at).to(tl.float64) + tl.load(side + plane + at).to(tl.float64)
    tl.store(total + at, tl.load(total + at) + (rows + added))
    tl.store(side + at, tl.zeros((BLOCK,), dtype=tl.float32))
    tl.store(side + plane + at, tl.zeros((BLOCK,), dtype=tl.float32))


class NotTakenError(Exception):
    """This Triton or this GPU does not take the kernel."""


class BothHalvesTiles:
    """K V for rbf, every tile of K computed once: P V for its rows, Pᵀ V for its columns.

    With z = √(2γ log₂e) x and f = 2^(−|z|²/2) it is κ_ij = f_i 2^⟨z_i, z_j⟩ f_j: one factor goes to V, one to the
    result, and what is left of κ is the exponential of a tensor-core product, with no other operation. Block I of 128
    rows meets the blocks I, I + 1, … half way round, so every pair of blocks is met once and all have the same work.

    What a tile adds to its columns is added in device memory, in whatever order tiles come; so that the bits do not
    depend on it, it is split into a multiple of one unit and a multiple of a finer one, of which float32 adds those of
    128 tiles, 16,384 rows, without rounding. After so many the two are taken to float64. The rest has a fixed order.
    """

    def __init__(self, torch: Any, device: Any) -> None:
        self.torch, self.device = torch, device
        self._runs = False

    def product(self, left: Any, right: Any, V: Any, *, split_p: bool, tick: Tick | None = None) -> Any:
        """K @ V, float64 on the device, for V of at most 16 columns; None if the units were too coarse for it."""
        torch = self.torch
        n, d, b, width = left.padded, left.hi.shape[1], VECTORS, V.shape[1]
        terms = 3 if left.lo is not left.hi else 1
        factor = left.extra.exp2()
        sizes = column_sizes(V)
        scaled = V / sizes * factor[: left.n, None].double()
        halves = torch.zeros((n, 2 * b), dtype=torch.float16, device=self.device)
        halves[: left.n, :width], halves[: left.n, b : b + width] = two_halves(scaled)
        del scaled
        blocks = n // ROWS
        tiles = (blocks // 2 + 1) * (ROWS // COLUMNS)
        splits = min(ceil(PROGRAMS / blocks), FOLD_TILES // (4 * RUN))
        per_split = ceil(min(FOLD_TILES, tiles) / splits / RUN) * RUN
        splits = ceil(min(FOLD_TILES, tiles) / per_split)
        coarse, fine = units(FOLD_TILES * COLUMNS)
        side = torch.zeros((2, n, b), dtype=torch.float32, device=self.device)
        row = torch.empty((splits, n, b), dtype=torch.float32, device=self.device)
        total = torch.zeros((n, b), dtype=torch.float64, device=self.device)
        told = 0
        with torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext():
            for first in range(0, tiles, FOLD_TILES):
                self._launch(
                    (blocks, splits),
                    (left.hi, left.lo, right.hi, right.lo, halves, factor, side, row, n, first),
                    (min(first + FOLD_TILES, tiles), per_split, coarse, fine),
                    {"D": d, "B": b, "TERMS": terms, "P_SPLIT": split_p, **choose_options(d, terms, split_p)},
                )
                fold[(n * b // 1024,)](
                    total, side, row, factor, n, splits, B=b, BLOCK=1024, num_warps=4, enable_fp_fusion=False
                )
                told += FOLD_TILES * COLUMNS * n
                if tick is not None and told >= EVALUATIONS_A_TICK:
                    if self.device.type == "cuda":
                        torch.cuda.synchronize(self.device)
                    tick(min((first + FOLD_TILES) / tiles, 1.0))
                    told = 0
        out = total[: left.n, :width] * sizes
        # Of the tiles of a column one half came from the side, each rounded to the finer unit; zeros were not.
        rounding = fine / ROUNDER * sqrt(n / ROWS / 2 / 12) * sizes
        size = (out * out).mean(0).sqrt()
        return out if bool(((rounding <= MOST_ROUNDING * size) | ~V.any(0)).all()) else None

    def _launch(self, grid: tuple[int, int], sides: tuple[Any, ...], sizes: tuple[Any, ...], options: Any) -> None:
        try:
            both_halves_product[grid](
                *sides, *sizes, BI=ROWS, BJ=COLUMNS, RUN=RUN, num_warps=4, enable_fp_fusion=True, **options
            )
        except Exception as error:  # Gluon is experimental: a Triton to come may refuse in any way
            if self._runs or isinstance(error, self.torch.cuda.OutOfMemoryError):
                raise
            raise NotTakenError(str(error)) from error
        self._runs = True


def two_halves(values: Any) -> tuple[Any, Any]:
    """Half-precision hi and lo, whose sum has 22 bits of the values, which are float64."""
    hi = values.half()
    return hi, (values - hi.double()).half()


def column_sizes(V: Any) -> Any:
    """What the columns of V are divided by, so that the largest value of each is ``LARGEST``; float64."""
    largest = V.abs().amax(0).double() if len(V) else V.new_zeros(V.shape[1]).double()
    return largest.where(largest > 0, 1.0) / LARGEST


def units(rows: int) -> tuple[float, float]:
    """What rounds to a multiple of one unit when added and taken away, and of a finer one: ``ROUNDER`` units each.

    Sums of ``rows`` values of at most ``LARGEST`` have at most 2²³ units; what is left over, at most half a unit from
    each of the ``rows`` / 128 tiles, has at most 2²³ of the finer ones: float32 counts to 2²⁴.
    """
    unit = rows * LARGEST / 2**23
    finer = rows / ROWS * unit / 2 / 2**23
    return ROUNDER * unit, ROUNDER * finer


def choose_options(d: int, terms: int, split_p: bool) -> dict[str, Any]:
    """Tiles on the chip at a time, where the rows' halves stay, and registers: what lets most programs run at once."""
    if d == 16:
        return {"S": 3, "ON_CHIP": False, "maxnreg": 168 if split_p else 128}
    if d == 32:
        return {"S": 3 if terms == 1 else 2, "ON_CHIP": True, "maxnreg": 168}
    return {"S": 2, "ON_CHIP": True}


def can_use_both_halves(torch: Any, device: Any) -> bool:
    """Whether this device and this Triton have what the kernel is written for."""
    if not HAS_GLUON or device.type != "cuda" or torch.version.hip is not None:
        return False
    return bool(torch.cuda.get_device_capability(device) == (9, 0))
