"""The nearest rows by comparing every pair, in panels."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.kernels.kernel import dense_product, middle
from biclique.kernels.named import squared_norms
from biclique.runtime.threads import Pulse, Tick, count_threads, run_groups, single_threaded_blas

ENERGY = 0.94
"""Share of the variance that the leading directions of a first look hold."""

SHORT = 3
"""Leading directions are used where they are at most one in this many."""

WIDEST = 2048
"""Columns up to which the leading directions are looked for."""

FOLD = 8
"""A bound on the k-th smallest value looks at no fewer than this many times k minima."""

VALUES = 2**24
"""Bounds of one panel: 64 MiB in float32 a worker, whatever the number of rows (128 MiB at a million)."""

BYTES_PER_BOUND = 12
"""Of a panel: the bound itself, whether it is small enough, and what a bound on the k-th takes."""

PAIRS = 2**18
"""Float64 values of differences held at a time."""

TIED = 1e-10
"""Relative rounding of squared distances below which many rows may be called equally near."""

CLOSE = 1e-12
"""Relative gap below which two distances may be the same one, rounded differently."""

Pairs = tuple[IntArray, IntArray, FloatArray]
"""Rows of Y, rows of X, and their distances."""


def within_radius(gap: Any, radii: Any, rounding: float = CLOSE) -> Any:
    """d ≤ r (1 + ``rounding``): True if a distance is at most a radius, up to the rounding of distances.

    A radius is itself a rounded distance, perhaps measured in the other direction, by another program or on another
    CPU. Without the allowance, a row at the end of a list of neighbours would be lost by its last digit.
    """
    return gap <= radii * (1 + rounding)


def distances(X: Rows, Y: Rows, first: IntArray, second: IntArray) -> FloatArray:
    """|y_i − x_j| for pairs (i, j) of ``first`` and ``second``, from differences in float64.

    The same bits for (x, y) as for (y, x) and in whatever company: ties stay ties, and equal rows are at zero.
    """
    out = np.empty(len(first))
    step = max(PAIRS // max(int(X.shape[1]), 1), 1)
    for top in range(0, len(first), step):
        piece = slice(top, top + step)
        x, y = X[second[piece]], Y[first[piece]]
        if sparse.issparse(x):
            gap = x.astype(np.float64) - y.astype(np.float64)
            out[piece] = np.asarray(gap.multiply(gap).sum(axis=1)).ravel()
        else:
            apart = np.subtract(x, y, dtype=np.float64)
            out[piece] = np.square(apart, out=apart).sum(axis=1)
    return np.asarray(np.sqrt(out, out=out))


def leading_directions(X: FloatArray) -> FloatArray | None:
    """Orthonormal columns, (d, p), that hold ENERGY of the variance of a sample; None unless p ≤ d/3."""
    n, d = X.shape
    if not 32 <= d <= WIDEST or n <= 8 * d:
        return None
    sample = np.asarray(X[:: max(n // 5000, 1)], dtype=np.float64)
    with single_threaded_blas():
        values, vectors = np.linalg.eigh(np.cov(sample.T))
    shares = np.cumsum(values[::-1]) / max(values.sum(), np.finfo(float).tiny)
    p = int(np.searchsorted(shares, ENERGY)) + 1
    return np.ascontiguousarray(vectors[:, ::-1][:, :p]) if p * SHORT <= d else None


def reach(X: FloatArray, offset: FloatArray) -> float:
    """The largest |coordinate| of rows around an offset."""
    return float(np.maximum(np.max(X, axis=0) - offset, offset - np.min(X, axis=0)).max())


def panel_rows(n: int) -> int:
    """Rows that are compared with n rows in one piece of work."""
    return int(np.clip(VALUES // n, 32, 512))


def search_bytes(n: int, d: int, n_jobs: int | None) -> int:
    """Memory of the search among n dense rows: they themselves in float32 and float64, and every worker's panel."""
    return 12 * n * (d + 2) + BYTES_PER_BOUND * n * panel_rows(n) * count_threads(n_jobs)


class Level:
    """Lower bounds (1 − ε)(|x|² + |y|²) − 2⟨x, y⟩ ≤ |x − y|² s², in one precision, along p directions or all.

    What the p directions leave of a row is kept as one more coordinate, its length: as ||a| − |b|| ≤ |a − b|,
    shortened rows are no farther apart than whole ones. ε covers rounding; s, a power of two, brings the
    coordinates below 1, so that float32 does not overflow. The squares are two more coordinates, so that a bound
    is one inner product: of (−2y, 1, |y|²) and (x, |x|², 1).
    """

    def __init__(self, X: Rows, dtype: Any, directions: FloatArray | None) -> None:
        self.directions, self.dtype = directions, np.dtype(dtype)
        self.offset = np.zeros(1) if sparse.issparse(X) else middle(X)
        largest = float(abs(X).max()) if sparse.issparse(X) else reach(X, self.offset)
        self.scale = float(2.0 ** -np.ceil(np.log2(largest))) if largest > 0 else 1.0
        self.slack = 4 * float(np.finfo(self.dtype).eps) * (4 + np.sqrt(X.shape[1]))
        rows, squares = self._held(X)
        ones = np.ones_like(squares)
        self.rows = self._beside(rows, squares, ones)
        self.largest = float(squares.max(initial=0.0))

    def rounding(self, Y: Rows) -> FloatArray:
        """How far the bounds of each row of Y can be below the truth, (n_new, 1)."""
        return np.asarray(2 * self.slack * (self._held(Y)[1] + self.largest))[:, None]

    def bounds(self, Y: Rows, held: threading.local) -> FloatArray | None:
        """The lower bounds of rows Y against every row of X; None where Y is too far out for the precision."""
        rows, squares = self._held(Y)
        if not np.isfinite(squares).all():
            return None
        left = self._beside(-2 * rows, np.ones_like(squares), squares)
        if sparse.issparse(left):
            return dense_product(left, self.rows.T)
        shape = (Y.shape[0], self.rows.shape[0])
        last = getattr(held, "bounds", None)
        if last is None or last.dtype != self.dtype or last.shape[0] < shape[0]:
            last = held.bounds = np.empty(shape, dtype=self.dtype)  # fresh pages cost more than the product
        return np.matmul(left, self.rows.T, out=last[: shape[0]])

    def _held(self, X: Rows) -> tuple[Rows, FloatArray]:
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
        leading = rows.astype(self.dtype) @ self.directions.astype(self.dtype)
        left = np.einsum("ij,ij->i", rows, rows) - np.einsum("ij,ij->i", leading, leading, dtype=np.float64)
        return np.column_stack([leading, np.sqrt(np.maximum(left, 0)).astype(self.dtype)])

    @staticmethod
    def _beside(rows: Rows, first: FloatArray, second: FloatArray) -> Rows:
        if sparse.issparse(rows):
            return sparse.csr_array(sparse.hstack([rows, first[:, None], second[:, None]]))
        return np.column_stack([rows, first, second])


class BruteForce:
    """Every pair of rows is bounded from below by a matrix product; what the bound leaves is measured exactly.

    A panel goes through the levels until few enough pairs are left: shortened rows in float32 (where a third of
    the directions hold most of the variance), whole rows in float32, whole rows in float64. Each gives the same
    answer; they differ in time alone.
    """

    def __init__(self, X: Rows, *, n_jobs: int | None = None) -> None:
        self.X, self.n_jobs = X, n_jobs
        self._lock = threading.Lock()
        self._scratch = threading.local()
        self._made: dict[int, Level] = {}
        self.settings: list[tuple[Any, FloatArray | None]] = [(np.float64, None)]
        if not sparse.issparse(X):
            directions = leading_directions(X)
            self.settings.insert(0, (np.float32, None))
            if directions is not None:
                self.settings.insert(0, (np.float32, directions))

    def _level(self, number: int) -> Level:
        with self._lock:  # workers meet here once a level
            if number not in self._made:
                self._made[number] = Level(self.X, *self.settings[number])
            return self._made[number]

    def nearest(self, Y: Rows, k: int, own: bool, tick: Tick | None = None) -> tuple[FloatArray, IntArray]:
        """The k nearest rows of X for each of Y by (distance, number); ``own``: Y is X, and a row is its own first."""
        out = np.empty((Y.shape[0], k)), np.empty((Y.shape[0], k), dtype=np.intp)

        def search(piece: slice) -> None:
            rows = Y[piece]
            first, second, gap = self._candidates(rows, k=k, own=np.arange(piece.start, piece.stop) if own else None)
            keys = np.where(second == first + piece.start, -1.0, gap) if own else gap
            order = np.lexsort((second, keys, first))
            starts = np.searchsorted(first, np.arange(rows.shape[0]))
            pick = order[starts[:, None] + np.arange(k)]
            out[0][piece], out[1][piece] = gap[pick], second[pick]

        self._run(search, Y.shape[0], tick)
        return out

    def within(self, Y: Rows, radii: FloatArray) -> Pairs:
        """Every pair with |y − x_j| ≤ r_j, up to rounding, by rows of Y."""

        def search(piece: slice) -> Pairs:
            first, second, gap = self._candidates(Y[piece], radii=radii)
            keep = within_radius(gap, radii[second])
            return first[keep] + piece.start, second[keep], gap[keep]

        found = self._run(search, Y.shape[0], None)
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))  # type: ignore[return-value]

    def _run(self, search: Any, n_rows: int, tick: Tick | None) -> list[Any]:
        panel = panel_rows(self.X.shape[0])
        starts = range(0, n_rows, panel)

        def work(number: int, pulse: Pulse) -> Any:
            with np.errstate(over="ignore", invalid="ignore"):  # far rows overflow float32, and go on to float64
                result = search(slice(starts[number], min(starts[number] + panel, n_rows)))
            pulse()
            return result

        self._scratch = threading.local()
        try:
            return run_groups(work, len(starts), n_jobs=self.n_jobs, total=len(starts), tick=tick)
        finally:
            self._scratch = threading.local()

    def _candidates(
        self, Y: Rows, *, k: int = 0, radii: FloatArray | None = None, own: IntArray | None = None
    ) -> Pairs:
        """Pairs by rows of Y, among them the k nearest with all ties, or all with |y − x_j| ≤ r_j.

        ``own`` are the numbers in X of the rows of Y, where these are rows of X.
        """
        most = Y.shape[0] * max(8 * k, 64, self.X.shape[0] // 128)
        for number in range(len(self.settings)):
            level = self._level(number)
            last = number + 1 == len(self.settings)
            most = most if not last else Y.shape[0] * self.X.shape[0]
            bounds = level.bounds(Y, self._scratch)
            if bounds is None:
                continue
            if radii is not None:
                limit = (radii * level.scale) ** 2 * (1 + 1e-6)
                found = self._below(Y, bounds, limit.astype(bounds.dtype), most, level if last else None)
            elif last:
                found = self._nearest_with_ties(Y, bounds, k, level, own)
            else:
                found = self._nearest_pairs(Y, bounds, k, most, level.scale)
            if found is not None:
                break
        return found  # type: ignore[return-value]

    def _nearest_with_ties(
        self, Y: Rows, bounds: FloatArray, k: int, level: Level, own: IntArray | None
    ) -> Pairs | None:
        """The same, where measuring all that may be as near as the k-th can take as long as n³.

        Rows of Y with more of those than 8k + 64, all within rounding, get the k nearest alone: those that are nearer
        for sure, and of the others the first by number.
        """
        if own is not None:
            bounds[np.arange(len(own)), own] = -np.inf
        band = 2 * level.rounding(Y)
        kth = np.partition(bounds, k - 1, axis=1)[:, k - 1 : k]
        tied = (np.count_nonzero(bounds <= kth + band, axis=1) > 8 * k + 64) & (band <= TIED * kth).ravel()
        if not tied.any():
            return self._nearest_pairs(Y, bounds, k, bounds.size, level.scale)
        rows = np.flatnonzero(tied)
        nearer = bounds[rows] < (kth - band)[rows]
        level_with = ~nearer & (bounds[rows] <= (kth + band)[rows])
        room = k - nearer.sum(axis=1, keepdims=True)
        chosen = nearer | (level_with & (np.cumsum(level_with, axis=1) <= room))
        place, second = np.nonzero(chosen)
        first, others = rows[place], np.flatnonzero(~tied)
        gap = distances(self.X, Y, first, second)
        if len(others):
            more = self._nearest_pairs(Y[others], bounds[others], k, bounds.size, level.scale)
            if more is None:
                return None
            first, second = np.append(first, others[more[0]]), np.append(second, more[1])
            gap = np.append(gap, more[2])
        order = np.argsort(first, kind="stable")
        return first[order], second[order], gap[order]

    def _nearest_pairs(self, Y: Rows, bounds: FloatArray, k: int, most: int, scale: float) -> Pairs | None:
        """First any k or more close rows, which say how far the k nearest can be; then all that may be as near."""
        found = self._below(Y, bounds, kth_smallest(bounds, k)[:, None], most)
        if found is None:
            return None
        first, _, gap = found
        order = np.lexsort((gap, first))
        starts = np.searchsorted(first, np.arange(Y.shape[0]))
        limit = (gap[order[starts + k - 1]] * scale) ** 2
        limit = (limit * (1 + 1e-6) + np.finfo(bounds.dtype).tiny).astype(bounds.dtype)
        return self._below(Y, bounds, limit[:, None], most)

    def _below(
        self, Y: Rows, bounds: FloatArray, limit: FloatArray, most: int, last: Level | None = None
    ) -> Pairs | None:
        """The pairs whose bound is not above a limit, measured; None where they are too many.

        With the ``last`` level, distances of many pairs are taken from bounds that are right to ten digits.
        """
        mask = bounds <= limit
        count = np.count_nonzero(mask)
        if count > most:
            return None
        first, second = np.divmod(np.flatnonzero(mask), bounds.shape[1])
        if last is None or count <= 64 * bounds.shape[0]:
            return first, second, distances(self.X, Y, first, second)
        found, rounding = bounds[first, second], last.rounding(Y).ravel()[first]
        gap = np.sqrt(np.maximum(found + rounding / 2, 0)) / last.scale
        unsure = np.flatnonzero(rounding > TIED * found)
        gap[unsure] = distances(self.X, Y, first[unsure], second[unsure])
        return first, second, gap


def kth_smallest(values: FloatArray, k: int) -> FloatArray:
    """No less than the k-th smallest value of each row, and close to it: the k-th smallest of minima of groups."""
    n = values.shape[1]
    folds = min(n // (FOLD * k), 64)
    if folds > 1:
        width = n // folds
        least = values[:, :width].copy()
        for top in range(width, folds * width, width):
            np.minimum(least, values[:, top : top + width], out=least)
        values = least
    return np.asarray(np.partition(values, k - 1, axis=1)[:, k - 1])
