"""Nearest rows in many columns: a matrix product bounds all pairs from below, the few that are left are measured.

The smallest bounds of a row are found by a tournament, because the k smallest of n numbers lie in those k groups whose
minima are smallest. Nearly all of its work is minima of whole arrays, while a panel of bounds is in the cache.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.kernels.kernel import beside, dense_product, middle, squared_norms
from biclique.runtime.threads import single_threaded_blas

ENERGY = 0.94
"""Share of the variance that the leading directions of a first look hold."""

SHORT = 3
"""Leading directions are used if they are at most one in this many."""

WIDEST = 2048
"""Columns up to which the leading directions are looked for."""

DIRECTED_ROWS = 2**11
"""Rows from which leading directions are looked for: among fewer, whole bounds are quicker."""

FAN = 8
"""Numbers in one group of a tournament."""

SPARE = 4
"""Bounds beyond the k smallest that are looked at: the last of them is nearly always above the k-th distance."""

SPARE_DIRECTED = 48
"""The same for bounds along leading directions, which lie farther below the distances."""

DIRECTED_SHARE = 256
"""If the rows are many, one in so many is looked at: to bound a row again takes longer."""

VALUES = 2**24
"""Bounds of one panel: 64 MiB in float32 for each worker (128 MiB at a million rows)."""

PANEL_ROWS = 256
"""Most rows of one panel: beside some thousand rows, their bounds stay in a core's cache."""

DIFFERENCES = 2**18
"""Float64 values of differences in memory at a time."""

TIED = 1e-10
"""Relative rounding of squared distances below which many rows may be called equally near."""

CLOSE = 1e-12
"""Relative gap below which two distances may be the same one, rounded differently."""

Pairs = tuple[IntArray, IntArray]
"""Rows of Y, ascending, and rows of X."""

Nearest = Callable[[Rows, IntArray | None, int], tuple[FloatArray, IntArray]]
"""Distances and numbers of the k nearest rows of X, of rows Y whose numbers in X may be known."""


def within_radius(gap: FloatArray, radii: FloatArray, rounding: float = CLOSE) -> np.ndarray:
    """d ≤ r (1 + ``rounding``): True if a distance is at most a radius, up to the rounding of distances.

    A radius is itself a rounded distance, perhaps measured in the other direction, by another program or on another
    CPU. Without the allowance, a row at the end of a list of neighbours would be lost by its last digit.
    """
    return np.asarray(gap <= radii * (1 + rounding))


def distances(X: Rows, Y: Rows, first: IntArray, second: IntArray) -> FloatArray:
    """|y_i − x_j| for pairs (i, j) of ``first`` and ``second``, from differences in float64.

    The same bits for (x, y) as for (y, x), whichever rows are measured with them: ties stay ties, and equal rows are at
    zero.
    """
    squares = np.empty(len(first))
    step = max(DIFFERENCES // int(X.shape[1]), 1)
    for top in range(0, len(first), step):
        piece = slice(top, top + step)
        x, y = X[second[piece]], Y[first[piece]]
        if sparse.issparse(x):
            squares[piece] = squared_norms(x.astype(np.float64) - y.astype(np.float64))
        else:
            apart = np.subtract(x, y, dtype=np.float64)
            squares[piece] = np.square(apart, out=apart).sum(axis=1)
    return np.sqrt(squares)


def by_distance(gap: FloatArray, near: IntArray, own: IntArray | None) -> tuple[FloatArray, IntArray]:
    """Distances and rows, row by row by (distance, number); a row itself, whose number is in ``own``, first."""
    keys = gap if own is None else np.where(near == own[:, None], -1.0, gap)
    order = np.lexsort((near, keys), axis=-1)
    return np.take_along_axis(gap, order, axis=1), np.take_along_axis(near, order, axis=1)


def leading_directions(X: FloatArray) -> FloatArray | None:
    """Orthonormal columns, (d, p), that hold ENERGY of the variance of a sample; None unless p ≤ d/3."""
    n, d = X.shape
    if not 32 <= d <= WIDEST or n < DIRECTED_ROWS:
        return None
    with single_threaded_blas():
        values, vectors = np.linalg.eigh(np.cov(X[:: max(n // 5000, 1)].T, dtype=np.float64))
    shares = np.cumsum(values[::-1]) / max(values.sum(), np.finfo(float).tiny)
    p = int(np.searchsorted(shares, ENERGY)) + 1
    return vectors[:, ::-1][:, :p] if p * SHORT <= d else None


def unit_scale(X: Rows, offset: FloatArray) -> float:
    """The power of two that brings every |x − offset| below 1."""
    low, high = (X.min(), X.max()) if sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))
    largest = float(np.maximum(high - offset, offset - low).max())
    return float(2.0 ** -np.ceil(np.log2(largest))) if largest > 0 else 1.0


class Bounds:
    """Lower bounds (1 − ε)(|x|² + |y|²) − 2⟨x, y⟩ ≤ |x − y|² s², in one precision, along p directions or all.

    What the p directions leave of a row is kept as one more coordinate, its length: as ||a| − |b|| ≤ |a − b|,
    shortened rows are no farther apart than whole ones. ε covers rounding; s, a power of two, brings the
    coordinates below 1, so that float32 does not overflow. The squares are two more coordinates, so that a bound
    is one inner product: of (−2x, 1, |x|²) and (y, |y|², 1).
    """

    def __init__(self, X: Rows, dtype: DTypeLike, directions: FloatArray | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self.directions = None if directions is None else np.ascontiguousarray(directions, dtype=dtype)
        self.offset = np.zeros(1) if sparse.issparse(X) else middle(X)
        self.scale = unit_scale(X, self.offset)
        self.slack = 4 * float(np.finfo(self.dtype).eps) * (4 + np.sqrt(X.shape[1]))
        rows, squares = self._prepared(X)
        self._left = beside(-2 * rows, 1.0, squares)
        self._largest = float(squares.max(initial=0.0))
        self._scratch = threading.local()

    def rounding(self, Y: Rows) -> FloatArray:
        """How far the bounds of each row of Y can be below the truth, (n_new,)."""
        return np.asarray(2 * self.slack * (self._prepared(Y)[1] + self._largest))

    def squared(self, radii: FloatArray) -> FloatArray:
        """What bounds of pairs at these distances do not exceed."""
        limit = (radii * self.scale) ** 2 * (1 + 1e-6) + np.finfo(self.dtype).tiny
        return np.asarray(limit, dtype=self.dtype)

    def of(self, Y: Rows) -> FloatArray:
        """The bounds of every row of X against rows Y, (n, n_new); not finite if Y is too far out for the precision."""
        return self._filled(*self._prepared(Y))[: self._left.shape[0]]

    def nearest(self, Y: Rows, count: int) -> tuple[FloatArray, FloatArray, IntArray]:
        """For the ``count`` smallest bounds: the distances lie between (n_new, count) each, ascending; numbers of rows.

        What has no bound among these is no nearer than the last of the lower distances. Bounds along some directions
        say nothing on how far a row is at most.
        """
        rows, squares = self._prepared(Y)
        low, high, near = smallest(self._filled(rows, squares), count)
        # |x|² ≤ 2|y|² + 2|x − y|², so that ε(|x|² + |y|²) is not more than ε(3|y|² + 2|x − y|²).
        high = (high.astype(np.float64) + 8 * self.slack * squares[:, None]) / (1 - 4 * self.slack)
        return np.sqrt(low.astype(np.float64)) / self.scale, np.sqrt(high) / self.scale, near

    def _filled(self, rows: Rows, squares: FloatArray) -> FloatArray:
        """The bounds, and infinity below them up to whole groups of a tournament.

        They are written over by the next call of the same thread: fresh pages take longer than the product.
        """
        n, shape = self._left.shape[0], (-(-self._left.shape[0] // FAN**2) * FAN**2, rows.shape[0])
        right = beside(rows, squares, 1.0).T
        room: FloatArray | None = getattr(self._scratch, "room", None)
        if room is None or room.shape != shape:
            room = self._scratch.room = np.full(shape, np.inf, dtype=self.dtype)
        if sparse.issparse(right):
            room[:n] = dense_product(self._left, right)
        else:
            np.matmul(self._left, right, out=room[:n])
        return room

    def _prepared(self, X: Rows) -> tuple[Rows, FloatArray]:
        """Rows, moved, scaled and shortened, and (1 − ε) times the squares of their lengths."""
        if sparse.issparse(X):
            rows: Rows = X.astype(np.float64) * self.scale
        else:
            rows = np.concatenate([self._shortened(X[top : top + 4096]) for top in range(0, X.shape[0], 4096)])
        return rows, ((1 - self.slack) * squared_norms(rows)).astype(self.dtype)

    def _shortened(self, X: FloatArray) -> FloatArray:
        rows = (X - self.offset) * self.scale
        if self.directions is None:
            return rows.astype(self.dtype)
        leading = rows.astype(self.dtype) @ self.directions
        left = np.einsum("ij,ij->i", rows, rows) - np.einsum("ij,ij->i", leading, leading, dtype=np.float64)
        return np.column_stack([leading, np.sqrt(np.maximum(left, 0)).astype(self.dtype)])


class PairSearch:
    """The nearest rows among all pairs.

    A panel of rows is bounded in float32, along the leading directions if a third of them holds most of the variance.
    Rows for which that leaves too many pairs are bounded along all directions, then in float64. All give the same
    answer.
    """

    def __init__(self, X: Rows) -> None:
        self.X = X
        self.step = int(np.clip(VALUES // X.shape[0], 32, PANEL_ROWS))
        self._rough = Bounds(X, np.float64) if sparse.issparse(X) else Bounds(X, np.float32, leading_directions(X))
        self._whole: dict[DTypeLike, Bounds] = {}
        self._lock = threading.Lock()

    def nearest(self, Y: Rows, own: IntArray | None, k: int) -> tuple[FloatArray, IntArray]:
        """Distances and numbers of the k nearest rows of X, by (distance, number), (n_new, k).

        ``own`` are the numbers in X of the rows of Y, if these are rows of X: each then comes first.
        """
        if self._rough.directions is None:
            return self._nearest_by(self._rough, SPARE, self._nearest_of_many, Y, own, k)
        spare = max(SPARE_DIRECTED, self.X.shape[0] // DIRECTED_SHARE)
        return self._nearest_by(self._rough, spare, self._nearest_in_float32, Y, own, k)

    def _nearest_in_float32(self, Y: Rows, own: IntArray | None, k: int) -> tuple[FloatArray, IntArray]:
        """The same along all directions."""
        return self._nearest_by(self._along_all(np.float32), SPARE, self._nearest_of_many, Y, own, k)

    def _nearest_by(
        self, bounds: Bounds, spare: int, finer: Nearest, Y: Rows, own: IntArray | None, k: int
    ) -> tuple[FloatArray, IntArray]:
        """The same by some bounds, and for rows that these leave in doubt by a finer search."""
        low, _, near = bounds.nearest(Y, min(k + spare, self.X.shape[0]))
        gap = np.full(near.shape, np.inf)
        measured = np.zeros(near.shape, dtype=bool)
        measured[:, :k] = True
        self._measure(gap, Y, near, measured)
        self._measure(gap, Y, near, ~measured & (low <= gap[:, :k].max(axis=1, keepdims=True)))
        gap, near = by_distance(gap, near, own)
        gap, near = gap[:, :k], near[:, :k]
        unsure = np.flatnonzero(~(low[:, -1] > gap[:, -1]))
        if len(unsure) and low.shape[1] < self.X.shape[0]:
            gap[unsure], near[unsure] = finer(Y[unsure], None if own is None else own[unsure], k)
        return gap, near

    def _measure(self, gap: FloatArray, Y: Rows, near: IntArray, chosen: np.ndarray) -> None:
        first, place = np.nonzero(chosen)
        gap[first, place] = distances(self.X, Y, first, near[first, place])

    def bracketed(self, Y: Rows, count: int) -> tuple[FloatArray, FloatArray, IntArray]:
        """What the distances to the ``count`` nearest rows lie between, (n_new, count) each, and their numbers."""
        if self._rough.directions is None:
            return self._rough.nearest(Y, count)
        gap, near = self.nearest(Y, None, count)
        return gap, gap, near

    def _nearest_of_many(self, Y: Rows, own: IntArray | None, k: int) -> tuple[FloatArray, IntArray]:
        """The same in float64. Of many rows that are as near as the k-th to ten digits, the first k by number."""
        level = self._along_all(np.float64)
        bounds = np.ascontiguousarray(level.of(Y).T)
        if own is not None:
            bounds[np.arange(len(own)), own] = -np.inf
        band = 2 * level.rounding(Y)[:, None]
        kth = np.partition(bounds, k - 1, axis=1)[:, k - 1 : k]
        mask = bounds <= kth + band
        crowded = np.flatnonzero((np.count_nonzero(mask, axis=1) > 8 * k + 64) & (band <= TIED * kth).ravel())
        tied = mask[crowded] & (bounds[crowded] >= (kth - band)[crowded])
        mask[crowded] &= ~tied | (np.cumsum(tied, axis=1) <= k)
        first, second = np.divmod(np.flatnonzero(mask), mask.shape[1])
        gap = distances(self.X, Y, first, second)
        keys = gap if own is None else np.where(second == own[first], -1.0, gap)
        order = np.lexsort((second, keys, first))
        pick = order[np.searchsorted(first, np.arange(Y.shape[0]))[:, None] + np.arange(k)]
        return gap[pick], second[pick]

    def within(self, Y: Rows, radii: FloatArray) -> Pairs:
        """Every pair with |y_i − x_j| ≤ r_j, up to rounding."""
        n = self.X.shape[0]
        mask = self._rough.of(Y) <= self._rough.squared(radii)[:, None]
        if not np.count_nonzero(mask) <= Y.shape[0] * max(
            64, n // 128
        ):  # to measure them takes longer than finer bounds
            return self._fine_within(Y, radii)
        first, second = np.nonzero(mask.T)
        keep = within_radius(distances(self.X, Y, first, second), radii[second])
        return first[keep], second[keep]

    def _fine_within(self, Y: Rows, radii: FloatArray) -> Pairs:
        """The same in float64: pairs whose bound has ten digits are not measured, as they may be very many."""
        level = self._along_all(np.float64)
        bounds = level.of(Y).T
        first, second = np.nonzero(bounds <= level.squared(radii))
        squares, rounding = bounds[first, second], level.rounding(Y)[first]
        gap = np.sqrt(np.maximum(squares + rounding / 2, 0)) / level.scale
        unsure = np.flatnonzero(rounding > TIED * squares)
        gap[unsure] = distances(self.X, Y, first[unsure], second[unsure])
        keep = within_radius(gap, radii[second])
        return first[keep], second[keep]

    def _along_all(self, dtype: DTypeLike) -> Bounds:
        """Bounds along all directions."""
        with self._lock:  # workers meet here
            if dtype not in self._whole:
                self._whole[dtype] = Bounds(self.X, dtype)
            return self._whole[dtype]


def smallest(values: FloatArray, count: int) -> tuple[FloatArray, FloatArray, IntArray]:
    """The ``count`` smallest values of every column, ascending, (n_columns, count): rounded down, up, and their rows.

    Values below zero count as zero. The number of rows is a multiple of 64, or a tournament has no rounds.
    """
    levels = [values]
    while len(levels[-1]) > FAN * count and len(levels[-1]) % FAN == 0:
        levels.append(levels[-1].reshape(FAN, -1, values.shape[1]).min(axis=0))
    low, high, places = _sorted_with_places(levels[-1].T, count)
    columns = np.arange(values.shape[1])[:, None]
    for level, minima in zip(levels[-2::-1], levels[:0:-1], strict=True):
        members = (places[:, None, :] + len(minima) * np.arange(FAN)[:, None]).reshape(len(places), -1)
        low, high, found = _sorted_with_places(level.ravel().take(members * level.shape[1] + columns), count)
        places = np.take_along_axis(members, found, axis=1)
    return low, high, places


def _sorted_with_places(values: FloatArray, count: int) -> tuple[FloatArray, FloatArray, IntArray]:
    """The same of every row: its place takes the last bits of a number, because numbers alone sort five times faster.

    Numbers that are not negative have the order of their bits.
    """
    sortable = np.maximum(values, 0, order="C")
    keys: IntArray = sortable.view(np.int32 if values.dtype == np.float32 else np.int64)
    last = (1 << (values.shape[1] - 1).bit_length()) - 1
    keys &= ~last
    keys |= np.arange(values.shape[1], dtype=keys.dtype)
    keys.sort(axis=1)
    keys = keys[:, :count]
    return (keys & ~last).view(values.dtype), (keys | last).view(values.dtype), (keys & last).astype(np.intp)
