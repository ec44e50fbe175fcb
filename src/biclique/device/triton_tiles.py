"""K V in one Triton kernel: inner products, the kernel function and the product with V, no tile in device memory.

Imported only if Triton is installed and asked for. ``FusedTiles`` describes what is computed.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from math import ceil, log, log2, sqrt
from typing import Any

from biclique._typing import Rows
from biclique.device import hopper_tiles
from biclique.device.hopper_tiles import column_sizes, jit, tl, triton, two_halves
from biclique.device.torch_tiles import (
    CHUNK,
    FEWEST_VECTORS,
    LIFT,
    MOST_COLUMNS,
    MOST_VECTORS,
    can_fuse,
    in_pieces,
    lie_beside,
    pad_size,
)
from biclique.exceptions import BicliqueWarning, ParameterError, warn_user
from biclique.kernels.kernel import Kernel
from biclique.runtime.memory import format_bytes
from biclique.runtime.namespace import largest_size, on_host
from biclique.runtime.threads import Tick

LINEAR, POWER, GAUSS, MANHATTAN = 0, 1, 2, 3
"""The functions of a tile: S, (cS + l_i r_j)^q, 2^(cS + l_i + r_j), 2^(14 − |x_i − y_j|₁)."""
KINDS = {"inner": LINEAR, "power": POWER, "gauss": GAUSS, "manhattan": MANHATTAN}
"""The function of a tile for every ``Form`` of a kernel."""

LN2 = log(2)
MOST_FOLDED = 12.0
"""Up to this |z_j|²/2, the column's factor 2^(−|z_j|²/2) of rbf goes to V, not to the exponent: an addition less."""
SPLIT_FAST = 32
"""Up to so many columns "fast" splits rbf's rows all the same: it costs a tenth there, and saves half the error."""
PAD = 256
"""Rows are padded to a multiple of this with zeros, which V's zeros silence: no tile needs a mask."""
PROGRAMS = 4096
"""With fewer blocks of rows than this the columns are split too, so that every multiprocessor has work."""
EVALUATIONS_A_LAUNCH, LAUNCH_ROWS = 2**40, 2**18
"""About half a second on an H200, or these rows: how often progress is told and an interrupt is heard."""


@jit  # type: ignore[untyped-decorator,unused-ignore]
def fused_product(  # type: ignore[no-untyped-def]
    LH, LL, RH, RL, left, right, VH, VL, out, first, rows, n_left, n_right, per_split, scale,
    D: tl.constexpr, DK: tl.constexpr, B: tl.constexpr, KIND: tl.constexpr, DEGREE: tl.constexpr,
    TERMS: tl.constexpr, P_SPLIT: tl.constexpr, CLAMP: tl.constexpr, FOLD: tl.constexpr,
    BI: tl.constexpr, BJ: tl.constexpr, RUN: tl.constexpr,
):  # fmt: skip
    """out[s, i] = Σ_j f(⟨L_i, R_j⟩) V_j over the columns j of split s; one program has BI rows and one split."""
    place = tl.program_id(0).to(tl.int64) * BI  # in the output of this launch
    top = first + place
    j = tl.program_id(1).to(tl.int64) * per_split  # 64 bits: j · D and j · B pass 2³¹
    tiles = (tl.minimum(n_right - j, per_split) // BJ).to(tl.int32)
    at_i = tl.arange(0, BI)
    at_j = tl.arange(0, BJ)
    at_k = tl.arange(0, DK)
    at_b = tl.arange(0, B)
    i_k = at_i[:, None] * D + at_k[None, :]
    j_k = at_j[:, None] * D + at_k[None, :]
    j_b = at_j[:, None] * B + at_b[None, :]
    if KIND == 1 or KIND == 2:
        l_i = tl.load(left + top + at_i)
    if KIND != 3 and D == DK:  # rows that fit stay on the chip for the whole pass
        lh = tl.load(LH + top * D + i_k)
        if TERMS == 3:
            ll = tl.load(LL + top * D + i_k)
    total = tl.zeros((BI, B), dtype=tl.float32)
    for start in range(0, tiles, RUN):
        # Tensor cores truncate as they accumulate; a short run loses little, and runs are added by rounded sums.
        run = tl.zeros((BI, B), dtype=tl.float32)
        for _ in range(tl.minimum(tiles - start, RUN)):
            vh = tl.load(VH + j * B + j_b)
            vl = tl.load(VL + j * B + j_b)
            if KIND == 3:
                p = tl.full((BI, BJ), 14.0, dtype=tl.float32)
                x_k = LH + top
                y_k = RH + j
                for _k in range(D):
                    p -= tl.abs(tl.load(x_k + at_i)[:, None] - tl.load(y_k + at_j)[None, :])
                    x_k += n_left
                    y_k += n_right
                p = tl.exp2(p)
            else:
                if D == DK:
                    rh = tl.load(RH + j * D + j_k)
                    if TERMS == 3:  # the small products first: they are truncated against a small sum
                        rl = tl.load(RL + j * D + j_k)
                        s = tl.dot(ll, tl.trans(rh))
                        s = tl.dot(lh, tl.trans(rl), s)
                        s = tl.dot(lh, tl.trans(rh), s)
                    else:
                        s = tl.dot(lh, tl.trans(rh))
                else:
                    s = tl.zeros((BI, BJ), dtype=tl.float32)
                    for k in range(0, D, DK):
                        ch = tl.load(LH + top * D + i_k + k)
                        rh = tl.load(RH + j * D + j_k + k)
                        if TERMS == 3:
                            cl = tl.load(LL + top * D + i_k + k)
                            rl = tl.load(RL + j * D + j_k + k)
                            part = tl.dot(cl, tl.trans(rh))
                            part = tl.dot(ch, tl.trans(rl), part)
                            s += tl.dot(ch, tl.trans(rh), part)
                        else:
                            s = tl.dot(ch, tl.trans(rh), s)
                if KIND == 0:
                    p = s
                elif KIND == 1:
                    base = s * scale + l_i[:, None] * tl.load(right + j + at_j)[None, :]
                    p = base
                    for _q in tl.static_range(DEGREE - 1):
                        p = p * base
                else:
                    p = s * scale + l_i[:, None]
                    if not FOLD:
                        p += tl.load(right + j + at_j)[None, :]
                    if CLAMP:
                        p = tl.minimum(p, 14.0)
                    p = tl.exp2(p)
            if P_SPLIT:  # by a mask: the two halves are then packed two at a time, which a rounded hi is not
                short = (p.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)
                run = tl.dot((p - short).to(tl.float16), vh, run)
                ph = short.to(tl.float16)
            else:
                ph = p.to(tl.float16)
            run = tl.dot(ph, vl, run)
            run = tl.dot(ph, vh, run)
            j += BJ
        total += run
    base_out = out + (tl.program_id(1).to(tl.int64) * rows + place) * B
    tl.store(base_out + at_i[:, None] * B + at_b[None, :], total)


@dataclass(frozen=True)
class Tile:
    """How the kernel is cut: rows and columns of a tile, tiles of a run, warps and stages."""

    rows: int = 128
    columns: int = 64
    run: int = 8
    warps: int = 4
    stages: int = 3
    split_p: bool = True
    """κ as two halves in the product with V: its rounding, 1e-4 for each value, then never shows, for any signs of V.
    """
    fold: bool = True


def choose_tile(d: int, precision: str) -> Tile:
    """The tile for d padded columns: whole rows of many columns, in halves, want more reuse."""
    split = precision == "float32"
    return Tile(128, 128, 4, 8, 3) if split and d > CHUNK else Tile(split_p=split)


@dataclass(frozen=True)
class Side:
    """Rows as one side of the kernel takes them: halves hi + lo ≈ ``scale`` · l(x), and what belongs to a row."""

    n: int
    padded: int
    hi: Any
    lo: Any
    extra: Any
    """float32 (padded,): −|z|²/2 of rbf, √|c|/r of a polynomial."""
    factor: Any
    """float64 (n,) by which the row's values of κ are multiplied in the end, or None."""
    scale: float
    most: float = 0.0
    """The largest |z|²/2 of rbf."""
    mirrored: bool = False
    """Whether these are the rows of the right side too, laid out for the left."""


class FusedTiles:
    """Σ_j κ(y_i, x_j) V_j in one kernel; a tile of κ lives in registers and is forgotten.

    Every kernel is brought to numbers that half precision holds. rbf: z = √(2γ log₂e) x, scaled by a power of two, and
    κ = 2^(⟨z_i, z_j⟩ − |z_i|²/2 − |z_j|²/2). linear, cosine, polynomial: κ = (r_i r_j)^q (⟨u_i, u_j⟩ + a_i a_j)^q with
    r² = γ|x|² + |c|, u = √γ x/r, a = √|c|/r: the bracket is at most one, and the powers of r go to V and to the result.
    A number is kept as two halves, hi + lo, 22 bits; a product of two is hi·hi + hi·lo + lo·hi on the tensor cores,
    summed in float32. Norms are those of hi + lo itself, so κ(x, x) = 1 up to the sums. V is scaled by columns.
    "fast" keeps hi alone of κ, and of rbf's z where there are many columns: 2e-4 a value, less what averages out in
    the sum over j. Few columns (3d ≤ 32) are laid side by side, [lo, hi, hi]·[hi, lo, hi]: one product for
    three. laplacian sums |x_l − y_l| in float32, without tensor cores: 2d operations a value.

    Splits of the columns are summed in their order, in float64: the bits depend on the sizes alone.
    """

    def __init__(self, kernel: Kernel, device: Any, *, precision: str = "float32", tile: Tile | None = None) -> None:
        form = kernel.form
        if form is None or not can_fuse(kernel):
            raise ParameterError(
                f"engine='triton' has no fused {kernel.name} kernel with these parameters (rbf, laplacian, linear, "
                "cosine, polynomial of whole degree 1 to 14): use engine='torch' or the CPU."
            )
        self.torch = import_module("torch")
        self.device = self.torch.device(device)
        self.form, self.precision, self.tile = form, precision, tile
        self.kind, self.degree = KINDS[form.function], int(form.degree)
        self._smaller: dict[Tile, Tile] = {}
        self._halves: Any = None
        if self.kind == GAUSS and hopper_tiles.can_use_both_halves(self.torch, self.device):
            self._halves = hopper_tiles.BothHalvesTiles(self.torch, self.device)

    # -- rows -------------------------------------------------------------------------------------------------------

    def side(self, rows: Rows, *, right: bool) -> Side:
        """Held rows, (n, d), on the device as one side of the kernel."""
        torch = self.torch
        n, d = rows.shape
        if d > MOST_COLUMNS:
            raise ParameterError(
                f"engine='triton' takes at most {MOST_COLUMNS} columns, got {d}: use engine='torch', or fewer columns."
            )
        padded = ceil(max(n, 1) / PAD) * PAD
        chunk = max(2**26 // max(d, 1), 1)  # float64 copies of one piece, not of all rows
        if self.kind == MANHATTAN:
            hi = torch.zeros((d, padded), dtype=torch.float32, device=self.device)
            rate = float(self.form.gamma) / LN2
            for i in range(0, n, chunk):
                x = self._up(rows[i : i + chunk])
                hi[:, i : i + len(x)] = (x * rate).T
            return Side(n, padded, hi, hi, hi, None, 1.0)
        beside = lie_beside(d)
        width = pad_size(3 * d if beside else d)
        # Without an exponential lo costs little, and a power multiplies the error of its base.
        both = not beside and (self.precision == "float32" or self.kind != GAUSS or d <= SPLIT_FAST)
        hi = torch.zeros((padded, width), dtype=torch.float16, device=self.device)
        lo = torch.zeros((padded, width), dtype=torch.float16, device=self.device) if both else hi
        extra = torch.zeros(padded, dtype=torch.float32, device=self.device)
        factor = torch.empty(n, dtype=torch.float64, device=self.device) if self.kind != GAUSS else None
        most = 0.0
        rate, scale = self._scale(rows)
        for i in range(0, n, chunk):
            z = self._up(rows[i : i + chunk])
            piece = slice(i, i + len(z))
            if factor is not None:
                z, extra[piece], factor[piece] = self._unit(z, right)
            else:
                z *= rate
            z *= scale
            z_hi, z_lo = two_halves(z)
            if beside:
                hi[piece, :d], hi[piece, d : 2 * d] = (z_hi, z_lo) if right else (z_lo, z_hi)
                hi[piece, 2 * d : 3 * d] = z_hi
            else:
                hi[piece, :d] = z_hi
                if both:
                    lo[piece, :d] = z_lo
            if self.kind == GAUSS:
                # The norm of what is multiplied: without lo in "fast", without the product lo·lo elsewhere.
                held = z_hi.double()
                norms = (held * held).sum(1)
                if beside or both:
                    norms += 2 * (held * z_lo.double()).sum(1)
                norms /= 2 * scale**2
                most = max(most, float(norms.max()))
                extra[piece] = (-norms).clamp_(min=-1e30)
        return Side(n, padded, hi, lo, extra, factor, scale, most)

    def mirror(self, right: Side, rows: Rows) -> Side:
        """The same rows as the left side: the same tensors, unless their order or their sign says which side it is."""
        beside = lie_beside(rows.shape[1]) and self.kind != MANHATTAN
        return replace(self.side(rows, right=False), mirrored=True) if beside or self.form.coef0 < 0 else right

    def _up(self, rows: Rows) -> Any:
        if not on_host(rows):
            return self.torch.asarray(rows, dtype=self.torch.float64, device=self.device, copy=True)
        return self.torch.tensor(rows, device=self.device).to(self.torch.float64)

    def _scale(self, rows: Rows) -> tuple[float, float]:
        """√(2γ log₂e) of rbf, and the power of two that brings the rows into the range of half precision."""
        if self.kind != GAUSS:
            return 1.0, 2.0 ** (LIFT // 2)
        rate = sqrt(2 * float(self.form.gamma) / LN2)
        largest = rate * largest_size(rows)
        # Up to 4, hi + lo has 22 bits or an absolute error of 2⁻²⁵ as it is, and the product needs no factor.
        return rate, 2.0 ** (LIFT - 1 - ceil(log2(largest))) if 4 < largest < float("inf") else 1.0

    def _unit(self, x: Any, right: bool) -> tuple[Any, Any, Any]:
        """u, a and r^q of rows: κ = (r_i r_j)^q (⟨u_i, u_j⟩ + a_i a_j)^q."""
        torch, gamma, c = self.torch, self.form.gamma, self.form.coef0
        r = (gamma * (x * x).sum(1) + abs(c)).sqrt_()
        safe = torch.where(r > 0, r, torch.ones_like(r))
        u = x * (sqrt(gamma) / safe)[:, None]
        lift = 2.0 ** (LIFT // self.degree / 2)
        a = lift * sqrt(abs(c)) / safe * (-1 if right and c < 0 else 1)
        factor = (r > 0).double() if self.form.unit else r**self.degree
        return u, a.to(torch.float32), factor

    # -- products ---------------------------------------------------------------------------------------------------

    def product(self, left: Side, right: Side, V: Any, *, clamp: bool, tick: Tick | None = None) -> Any:
        """κ(left, right) @ V, float64 on the device."""
        torch = self.torch
        width = V.shape[1]
        out = torch.empty((left.n, width), dtype=torch.float64, device=self.device)

        def multiply(columns: slice) -> None:
            first, share = columns.start / width, (columns.stop - columns.start) / width
            tell = None if tick is None else lambda done: tick(first + share * done)
            some, found = V[:, columns], out[:, columns]
            if not self._both_halves(left, right, some, found, clamp, tell):
                self._columns(left, right, some, found, clamp, tell)

        size = format_bytes(12 * FEWEST_VECTORS * (left.padded + right.padded))
        needed = f"a product of {left.n} × {right.n} kernel values with {FEWEST_VECTORS} vectors (about {size})"
        most = min(MOST_VECTORS, pad_size(width))
        in_pieces(width, most, FEWEST_VECTORS, multiply, self.device, needed)
        return out

    def _uses_both_halves(self, left: Side, right: Side) -> bool:
        """Whether each tile can serve both halves: rows with themselves, and 2^⟨z_i, z_j⟩ in range by itself."""
        return (
            self._halves is not None
            and self.tile is None
            and (left is right or left.mirrored)
            and right.scale == 1.0
            and right.most <= hopper_tiles.MOST_NORM
            and right.hi.shape[1] <= hopper_tiles.MOST_COLUMNS
            and right.n >= hopper_tiles.FEWEST_ROWS
        )

    def _both_halves(self, left: Side, right: Side, V: Any, out: Any, clamp: bool, tick: Tick | None) -> bool:
        """K V from half of the tiles; False if the sides, V, the memory, Triton or the GPU do not allow it."""
        if V.shape[1] > hopper_tiles.VECTORS or clamp or not self._uses_both_halves(left, right):
            return False
        try:
            found = self._halves.product(left, right, V, split_p=self.precision == "float32", tick=tick)
        except self.torch.cuda.OutOfMemoryError:  # one half at a time takes less
            self.torch.cuda.empty_cache()
            return False
        except hopper_tiles.NotTakenError as error:
            self._halves = None
            warn_user(
                "this Triton or this GPU does not take the kernel that uses each tile for both halves of K, so fits "
                f"take up to a third longer ({str(error).splitlines()[0] if str(error) else 'no reason given'}).",
                BicliqueWarning,
            )
            return False
        if found is not None:
            out[:] = found
        return found is not None

    def _columns(self, left: Side, right: Side, V: Any, out: Any, clamp: bool, tick: Tick | None) -> None:
        torch = self.torch
        b = pad_size(V.shape[1])
        d = left.hi.shape[self.kind != MANHATTAN]
        tile = self.tile or choose_tile(0 if self.kind == MANHATTAN else d, self.precision)
        fold = tile.fold and self.kind == GAUSS and not clamp and right.most <= MOST_FOLDED
        factor = right.extra[: right.n].double().exp2_() if fold else right.factor
        scaled = V.to(torch.float64) if factor is None else V * factor[:, None]
        sizes = column_sizes(scaled)
        scaled = scaled / sizes
        v_hi, v_lo = torch.zeros((2, right.padded, b), dtype=torch.float16, device=self.device)
        v_hi[: right.n, : V.shape[1]], v_lo[: right.n, : V.shape[1]] = two_halves(scaled)
        del scaled
        lifted: float = self.degree * (LIFT // self.degree) if self.kind == POWER else LIFT
        if fold:  # 2^(|z_j|²/2) must not lift a value out of range
            lifted -= float(ceil(right.most))
        extra = left.extra + lifted if self.kind == GAUSS else left.extra
        sizes *= 2.0**-lifted
        scale = 1.0 / (left.scale * right.scale)
        if self.kind == POWER:
            scale *= 2.0 ** (LIFT // self.degree)
        # A half that is not kept apart is the same tensor as the other.
        sides = (left.hi, left.lo, right.hi, right.lo, extra, right.extra, v_hi, v_lo)
        per_launch = max(EVALUATIONS_A_LAUNCH // right.padded // PAD * PAD, LAUNCH_ROWS)
        for first in range(0, left.padded, per_launch):
            rows = min(per_launch, left.padded - first)
            splits, per_split = split_columns(rows, right.padded, tile)
            partial = torch.empty((splits, rows, b), dtype=torch.float32, device=self.device)
            numbers = (first, rows, left.padded, right.padded, per_split, scale)
            self._launch(
                (rows // tile.rows, splits), (*sides, partial, *numbers), tile,
                D=d, DK=16 if self.kind == MANHATTAN else min(d, CHUNK), B=b, KIND=self.kind, DEGREE=self.degree,
                TERMS=3 if left.lo is not left.hi else 1, CLAMP=clamp, FOLD=fold,
            )  # fmt: skip
            last = min(first + rows, left.n)
            total = partial[0, : last - first, : V.shape[1]].double()
            for split in range(1, splits):
                total += partial[split, : last - first, : V.shape[1]]
            total *= sizes
            if left.factor is not None:
                total *= left.factor[first:last, None]
            out[first:last] = total
            if tick is not None:
                if self.device.type == "cuda":
                    torch.cuda.synchronize(self.device)
                tick(last / max(left.n, 1))

    def _launch(self, grid: tuple[int, int], given: tuple[Any, ...], asked: Tile, **options: Any) -> None:
        """The kernel with the tile that was asked for, or a smaller one on a chip with less shared memory."""
        # Triton launches on torch's current device.
        on = self.torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()
        tile = self._smaller.get(asked, asked)
        while True:
            try:
                with on:
                    fused_product[grid](
                        *given, **options, P_SPLIT=tile.split_p, BI=tile.rows, BJ=tile.columns, RUN=tile.run,
                        num_warps=tile.warps, num_stages=tile.stages, enable_fp_fusion=True,
                    )  # fmt: skip
                return
            except triton.runtime.errors.OutOfResources as error:
                if tile.stages > 1:
                    tile = replace(tile, stages=tile.stages - 1)
                elif tile.columns > 16:
                    tile = replace(tile, columns=tile.columns // 2, run=tile.run * 2)
                else:
                    raise ParameterError(
                        f"the fused kernel for {options['D']} columns does not fit this GPU's multiprocessors: use "
                        "engine='torch'."
                    ) from error
                self._smaller[asked] = tile


def split_columns(rows: int, columns: int, tile: Tile) -> tuple[int, int]:
    """How many splits of the columns, and how many columns each: whole runs, by the sizes alone."""
    step = tile.columns * tile.run
    runs = ceil(columns / step)
    splits = min(ceil(PROGRAMS * tile.rows / rows), runs)
    per_split = ceil(runs / splits) * step
    return ceil(columns / per_split), per_split
