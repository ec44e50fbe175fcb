"""Nearest rows in many columns: a matrix product bounds all pairs from below, the few that are left are measured."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.kernels.kernel import dense_product, middle, squared_norms
from biclique.runtime.threads import single_threaded_blas

ENERGY = 0.94
"""Share of the variance that the leading directions of a first look hold."""

SHORT = 3
"""Leading directions are used if they are at most one in this many."""

WIDEST = 2048
"""Columns up to which the leading directions are looked for."""

FOLD = 8
"""A bound on the k-th smallest value looks at no fewer than this many times k minima."""

VALUES = 2**24
"""Bounds of one panel: 64 MiB in float32 for each worker (128 MiB at a million rows)."""

DIFFERENCES = 2**18
"""Float64 values of differences in memory at a time."""

TIED = 1e-10
"""Relative rounding of squared distances below which many rows may be called equally near."""

CLOSE = 1e-12
"""Relative gap below which two distances may be the same one, rounded differently."""

Pairs = tuple[IntArray, IntArray]
"""Rows of Y, ascending, and rows of X."""


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


def leading_directions(X: FloatArray) -> FloatArray | None:
    """Orthonormal columns, (d, p), that hold ENERGY of the variance of a sample; None unless p ≤ d/3."""
    n, d = X.shape
    if not 32 <= d <= WIDEST or n <= 8 * d:
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
    is one inner product: of (−2y, 1, |y|²) and (x, |x|², 1).
    """

    def __init__(self, X: Rows, dtype: DTypeLike, directions: FloatArray | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self.directions = None if directions is None else np.ascontiguousarray(directions, dtype=dtype)
        self.offset = np.zeros(1) if sparse.issparse(X) else middle(X)
        self.scale = unit_scale(X, self.offset)
        self.slack = 4 * float(np.finfo(self.dtype).eps) * (4 + np.sqrt(X.shape[1]))
        rows, squares = self._prepared(X)
        self._right = _beside(rows, squares, np.ones_like(squares)).T
        self._largest = float(squares.max(initial=0.0))
        self._scratch = threading.local()

    def rounding(self, Y: Rows) -> FloatArray:
        """How far the bounds of each row of Y can be below the truth, (n_new, 1)."""
        return np.asarray(2 * self.slack * (self._prepared(Y)[1] + self._largest))[:, None]

    def squared(self, radii: FloatArray) -> FloatArray:
        """What bounds of pairs at these distances do not exceed."""
        limit = (radii * self.scale) ** 2 * (1 + 1e-6) + np.finfo(self.dtype).tiny
        return np.asarray(limit, dtype=self.dtype)

    def of(self, Y: Rows) -> FloatArray | None:
        """The bounds of rows Y against every row of X, (n_new, n); None if Y is too far out for the precision.

        They are written over by the next call of the same thread: fresh pages take longer than the product.
        """
        rows, squares = self._prepared(Y)
        if not np.isfinite(squares).all():
            return None
        left = _beside(-2 * rows, np.ones_like(squares), squares)
        if sparse.issparse(left):
            return dense_product(left, self._right)
        room = getattr(self._scratch, "room", None)
        if room is None or len(room) < len(left):
            room = self._scratch.room = np.empty((len(left), self._right.shape[1]), dtype=self.dtype)
        return np.matmul(left, self._right, out=room[: len(left)])

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


def _beside(rows: Rows, first: FloatArray, second: FloatArray) -> Rows:
    """Rows with two more columns."""
    if sparse.issparse(rows):
        return sparse.csr_array(sparse.hstack([rows, first[:, None], second[:, None]]))
    return np.column_stack([rows, first, second])


class PairSearch:
    """The nearest rows among all pairs.

    A panel of rows is bounded in float32, along the leading directions if a third of them holds most of the variance.
    If that leaves too many pairs, it is bounded in float64. Both give the same answer.
    """

    def __init__(self, X: Rows) -> None:
        self.X = X
        self.step = int(np.clip(VALUES // X.shape[0], 32, 512))
        self._rough = Bounds(X, np.float64) if sparse.issparse(X) else Bounds(X, np.float32, leading_directions(X))
        self._fine: Bounds | None = None
        self._lock = threading.Lock()

    def nearest(self, Y: Rows, own: IntArray | None, k: int) -> tuple[FloatArray, IntArray]:
        """Distances and numbers of the k nearest rows of X, by (distance, number), (n_new, k).

        ``own`` are the numbers in X of the rows of Y, if these are rows of X: each then comes first.
        """
        first, second = self._rough_pairs(Y, k) or self._fine_pairs(Y, own, k)
        gap = distances(self.X, Y, first, second)
        keys = gap if own is None else np.where(second == own[first], -1.0, gap)
        order = np.lexsort((second, keys, first))
        starts = np.searchsorted(first, np.arange(Y.shape[0]))
        pick = order[starts[:, None] + np.arange(k)]
        return gap[pick], second[pick]

    def _rough_pairs(self, Y: Rows, k: int) -> Pairs | None:
        """Pairs, among them the k nearest rows with all ties; None if they are too many.

        First any k or more close rows, which tell how far the k nearest can be; then all that may be as near.
        """
        bounds = self._rough.of(Y)
        if bounds is None:
            return None
        close = self._at_most(bounds, kth_smallest(bounds, k)[:, None], k)
        if close is None:
            return None
        gap = distances(self.X, Y, *close)
        starts = np.searchsorted(close[0], np.arange(Y.shape[0]))
        kth = gap[np.lexsort((gap, close[0]))[starts + k - 1]]
        return self._at_most(bounds, self._rough.squared(kth)[:, None], k)

    def _fine_pairs(self, Y: Rows, own: IntArray | None, k: int) -> Pairs:
        """The same in float64. Of many rows that are as near as the k-th to ten digits, the first k by number."""
        level = self._precise()
        bounds = np.asarray(level.of(Y))
        if own is not None:
            bounds[np.arange(len(own)), own] = -np.inf
        band = 2 * level.rounding(Y)
        kth = np.partition(bounds, k - 1, axis=1)[:, k - 1 : k]
        mask = bounds <= kth + band
        crowded = np.flatnonzero((np.count_nonzero(mask, axis=1) > 8 * k + 64) & (band <= TIED * kth).ravel())
        tied = mask[crowded] & (bounds[crowded] >= (kth - band)[crowded])
        mask[crowded] &= ~tied | (np.cumsum(tied, axis=1) <= k)
        return np.divmod(np.flatnonzero(mask), mask.shape[1])

    def within(self, Y: Rows, radii: FloatArray) -> Pairs:
        """Every pair with |y_i − x_j| ≤ r_j, up to rounding."""
        bounds = self._rough.of(Y)
        pairs = None if bounds is None else self._at_most(bounds, self._rough.squared(radii), 1)
        if pairs is None:
            return self._fine_within(Y, radii)
        keep = within_radius(distances(self.X, Y, *pairs), radii[pairs[1]])
        return pairs[0][keep], pairs[1][keep]

    def _fine_within(self, Y: Rows, radii: FloatArray) -> Pairs:
        """The same in float64: pairs whose bound has ten digits are not measured, as they may be very many."""
        level = self._precise()
        bounds = np.asarray(level.of(Y))
        first, second = np.nonzero(bounds <= level.squared(radii))
        squares, rounding = bounds[first, second], level.rounding(Y)[first, 0]
        gap = np.sqrt(np.maximum(squares + rounding / 2, 0)) / level.scale
        unsure = np.flatnonzero(rounding > TIED * squares)
        gap[unsure] = distances(self.X, Y, first[unsure], second[unsure])
        keep = within_radius(gap, radii[second])
        return first[keep], second[keep]

    def _precise(self) -> Bounds:
        with self._lock:  # workers meet here
            if self._fine is None:
                self._fine = Bounds(self.X, np.float64)
            return self._fine

    def _at_most(self, bounds: FloatArray, limit: FloatArray, k: int) -> Pairs | None:
        """The pairs whose bound is not above a limit; None if to measure them takes longer than finer bounds."""
        mask = bounds <= limit
        if np.count_nonzero(mask) > len(bounds) * max(8 * k, 64, bounds.shape[1] // 128):
            return None
        return np.divmod(np.flatnonzero(mask), bounds.shape[1])


def kth_smallest(values: FloatArray, k: int) -> FloatArray:
    """No less than the k-th smallest value of each row, and close to it: the k-th smallest of minima of groups."""
    n = values.shape[1]
    folds = min(n // (FOLD * k), 64)
    if folds > 1:
        values = values[:, : n - n % folds].reshape(len(values), folds, -1).min(axis=1)
    return np.asarray(np.partition(values, k - 1, axis=1)[:, k - 1])
