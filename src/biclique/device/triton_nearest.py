"""The nearest landmarks of rows in two Triton kernels: no array of rows × landmarks in the memory of the device.

Imported only if Triton is there. For rows x_i and landmarks z_j the numbers are b_ij = q_j − 2⟨x_i, z_j⟩, in float32;
q_j is |z_j|² or a little less. Landmarks lie in groups of eight. The first kernel keeps the least number of each group
of a row. The second takes the groups whose least numbers are smallest, computes the numbers of their members again, and
takes the smallest of these: the k smallest of all numbers are in the k groups whose minima are smallest.
"""

from __future__ import annotations

from typing import Any

from biclique.device.hopper_tiles import jit, tl, triton

FAN = 8
"""Landmarks in one group."""

PAD = 128
"""Landmarks are padded to a multiple of this, by some that are far from every row."""

MOST_PICKED = PAD // FAN
"""Numbers of a row that are found at most: there are always so many groups, and none may be picked twice."""

FAR = 1e38
"""The bound of a landmark that is not there."""

ROWS = 64
"""Rows of one program of the first kernel."""

COLUMNS = 16
"""Columns that are multiplied at a time."""

PICKED_ROWS = 8
"""Rows of one program of the second kernel."""


@jit  # type: ignore[untyped-decorator,unused-ignore]
def group_minima(  # type: ignore[no-untyped-def]
    X, Z, q, out, n, p, d, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FAN: tl.constexpr,
):  # fmt: skip
    """out[i, g] = the least bound of row i and the landmarks of group g; BM rows a program."""
    i = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    at_n, at_k, at_g = tl.arange(0, BN), tl.arange(0, BK), tl.arange(0, BN // FAN)
    groups = p // FAN
    for top in range(0, p, BN):
        j = top + at_n
        product = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, d, BK):
            inside = k + at_k < d
            x = tl.load(X + i[:, None] * d + k + at_k[None, :], mask=(i < n)[:, None] & inside[None, :], other=0.0)
            z = tl.load(Z + j[None, :] * d + k + at_k[:, None], mask=inside[:, None], other=0.0)
            product += tl.dot(x, z, input_precision="tf32x3")  # tensor cores truncate as they accumulate
        bounds = tl.load(q + j)[None, :] - 2.0 * product
        least = tl.min(tl.reshape(bounds, (BM, BN // FAN, FAN)), axis=2)
        tl.store(out + i[:, None] * groups + top // FAN + at_g[None, :], least, mask=(i < n)[:, None])


@jit  # type: ignore[untyped-decorator,unused-ignore]
def pick_smallest(  # type: ignore[no-untyped-def]
    minima, X, Z, q, low, near, n, groups, d,
    BM: tl.constexpr, G: tl.constexpr, BK: tl.constexpr, FAN: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """low, near[i, :COUNT] = the smallest bounds of row i, ascending, and their landmarks; BM rows a program."""
    i = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    at_g, at_f, at_k, at_c = tl.arange(0, G), tl.arange(0, FAN), tl.arange(0, BK), tl.arange(0, COUNT)
    there = (i < n)[:, None] & (at_g < groups)[None, :]
    least = tl.load(minima + i[:, None] * groups + at_g[None, :], mask=there, other=float("inf"))
    bounds = tl.zeros((BM, COUNT, FAN), dtype=tl.float32)
    members = tl.zeros((BM, COUNT, FAN), dtype=tl.int32)
    for c in tl.static_range(COUNT):
        group = tl.argmin(least, axis=1)
        least = tl.where(at_g[None, :] == group[:, None], float("inf"), least)
        j = group[:, None] * FAN + at_f[None, :]
        product = tl.zeros((BM, FAN), dtype=tl.float32)
        for k in range(0, d, BK):
            inside = k + at_k < d
            x = tl.load(X + i[:, None] * d + k + at_k[None, :], mask=(i < n)[:, None] & inside[None, :], other=0.0)
            z = tl.load(Z + j[:, :, None] * d + k + at_k[None, None, :], mask=inside[None, None, :], other=0.0)
            product += tl.sum(x[:, None, :] * z, axis=2)
        own = tl.load(q + j) - 2.0 * product
        bounds = tl.where(at_c[None, :, None] == c, own[:, None, :], bounds)
        members = tl.where(at_c[None, :, None] == c, j[:, None, :], members)
    bounds = tl.reshape(bounds, (BM, COUNT * FAN))
    members = tl.reshape(members, (BM, COUNT * FAN))
    at_m = tl.arange(0, COUNT * FAN)
    for c in tl.static_range(COUNT):
        place = tl.argmin(bounds, axis=1)
        chosen = at_m[None, :] == place[:, None]
        tl.store(low + i * COUNT + c, tl.min(bounds, axis=1), mask=i < n)
        tl.store(near + i * COUNT + c, tl.sum(tl.where(chosen, members, 0), axis=1), mask=i < n)
        bounds = tl.where(chosen, float("inf"), bounds)


def padded_landmarks(rows: Any, squares: Any) -> tuple[Any, Any]:
    """Landmarks (p, d) and their q (p,) in float32, padded to a multiple of ``PAD`` by some that are far away."""
    p = len(rows)
    size = triton.cdiv(p, PAD) * PAD
    Z, q = rows.new_zeros((size, rows.shape[1])), squares.new_full((size,), FAR)
    Z[:p], q[:p] = rows, squares
    return Z.float(), q.float()


def smallest_bounds(X: Any, Z: Any, q: Any, count: int) -> tuple[Any, Any]:
    """The ``count`` ≤ ``MOST_PICKED`` smallest q_j − 2⟨x_i, z_j⟩ of every row, ascending, and their j, (n, count).

    X (n, d) is contiguous and float32; Z and q come from ``padded_landmarks``.
    """
    (n, d), p = X.shape, len(Z)
    groups, picked = p // FAN, triton.next_power_of_2(count)
    minima = X.new_empty((n, groups))
    low, near = X.new_empty((n, picked)), X.new_empty((n, picked)).int()
    group_minima[(triton.cdiv(n, ROWS),)](X, Z, q, minima, n, p, d, ROWS, PAD, COLUMNS, FAN)
    pick_smallest[(triton.cdiv(n, PICKED_ROWS),)](
        minima, X, Z, q, low, near, n, groups, d,
        PICKED_ROWS, triton.next_power_of_2(groups), COLUMNS, FAN, picked,
    )  # fmt: skip
    return low[:, :count], near[:, :count]
