"""The search for nearest rows, and sparse graphs of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError, optional
from biclique.kernels import dense_product, middle, squared_norms
from biclique.runtime import (
    Tick,
    check_choice,
    check_count,
    check_jobs,
    check_random,
    count_threads,
    run_panels,
    single_threaded_blas,
)

# All pairs, in panels


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

BYTES_PER_BOUND = 12
"""Of a panel: the bound itself, whether it is small enough, and what a bound on the k-th takes."""

PAIRS = 2**18
"""Float64 values of differences in memory at a time."""

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

    The same bits for (x, y) as for (y, x), whichever rows are measured with them: ties stay ties, and equal rows are at
    zero.
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
        self.rows = self._beside(rows, squares, np.ones_like(squares))
        self.largest = float(squares.max(initial=0.0))

    def rounding(self, Y: Rows) -> FloatArray:
        """How far the bounds of each row of Y can be below the truth, (n_new, 1)."""
        return np.asarray(2 * self.slack * (self._held(Y)[1] + self.largest))[:, None]

    def bounds(self, Y: Rows, held: threading.local) -> FloatArray | None:
        """The lower bounds of rows Y against every row of X; None if Y is too far out for the precision."""
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
        self._lock, self._scratch = threading.Lock(), threading.local()
        self._made: dict[int, Level] = {}
        directions = None if sparse.issparse(X) else leading_directions(X)
        shortened: list[tuple[Any, FloatArray | None]] = [] if directions is None else [(np.float32, directions)]
        self.settings = [*shortened, *([] if sparse.issparse(X) else [(np.float32, None)]), (np.float64, None)]

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
        try:  # far rows overflow float32, and go on to float64
            return run_panels(search, n_rows, panel_rows(self.X.shape[0]), n_jobs=self.n_jobs, tick=tick)
        finally:
            self._scratch = threading.local()

    def _candidates(
        self, Y: Rows, *, k: int = 0, radii: FloatArray | None = None, own: IntArray | None = None
    ) -> Pairs:
        """Pairs by rows of Y, among them the k nearest with all ties, or all with |y − x_j| ≤ r_j.

        ``own`` are the numbers in X of the rows of Y, if these are rows of X.
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
        """The same, for data on which measuring all rows that may be as near as the k-th could take as long as n³.

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
        """The pairs whose bound is not above a limit, measured; None if they are too many.

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


# The index


SEARCHES = ("auto", "exact", "approximate")

TREE_COLUMNS = 12
"""Columns up to which the k-d tree beats brute force even without clusters (from 2·10⁵ rows on: up to 16)."""

EXACT_SECONDS = 30.0
"""Estimated time, on two cores, up to which ``"auto"`` searches exactly."""

BLOCK = 2**21
"""Neighbours asked for at a time; a block is also one step of progress."""

PIECE = 2**16
"""Neighbours that one thread asks for at a time; between two pieces Ctrl-C is heard."""

BALLS = 1024
"""Balls that one thread asks for at a time."""

WIDEN = 8
"""How many times k candidates the approximate index gives when it looks for rows that have y near them."""

LINKS, BREADTH, EFFORT = 16, 80, 64
"""The approximate index: links a row, candidates kept while it is built, and while it is searched (at least 2k)."""


def import_faiss() -> Any:
    """faiss, or the line that installs it."""
    return optional("faiss", "search='approximate' needs faiss: pip install 'biclique[neighbors]'")


def exact_seconds(n: int, d: int) -> float:
    """Seconds for all n rows, exactly, on two cores: a row takes 1.5·1.4^d (n/50000)^0.3 µs or n(1 + d/80) ns.

    Brute force is counted with 200 columns at most: with more, a fraction of the directions is usually enough.
    """
    if uses_tree(n, d):
        return float(1.5e-6 * n * 1.4**d * (n / 50_000) ** 0.3)
    return 1e-9 * n * n * (1 + min(d, 200) / 80)


def uses_tree(n: int, d: int) -> bool:
    """Whether the exact search of n dense rows in d columns takes the k-d tree."""
    return d <= (TREE_COLUMNS if n < 200_000 else 16)


class NeighborIndex:
    """The k rows x_j with the smallest |y − x_j|, by (distance, j), for dense rows or a CSR matrix.

    ``search_`` says how: ``"tree"`` and ``"brute"`` are exact, ties included; ``"approximate"`` (faiss, the extra
    ``[neighbors]``) may miss some rows, but the distances it gives are exact. ``"auto"`` is exact while the
    estimate for all n rows is below half a minute on two cores, or if the extra is missing. The bits do not
    depend on ``n_jobs``. All ties are looked at, so merge rows that come many times. If brute force meets more than 8k
    + 64 rows that are as near as the k-th to ten digits, these count as equally near.
    """

    def __init__(
        self,
        X: Rows,
        *,
        search: str = "auto",
        n_jobs: int | None = None,
        tick: Tick | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        check_choice("search", search, SEARCHES)
        check_jobs(n_jobs)
        self.rows = _checked("X", X)
        self.n, self.d = int(self.rows.shape[0]), int(self.rows.shape[1])
        if self.n == 0 or self.d == 0:
            raise DataError(f"X must have at least one row and one column, got shape {(self.n, self.d)}.")
        self.n_jobs, self._tick = n_jobs, tick
        self.seed = int(check_random(random_state).randint(2**31 - 1))
        self.search_ = self._choose(search)
        self._built: Any = None

    def _choose(self, search: str) -> str:
        dense = not sparse.issparse(self.rows)
        if search == "approximate":
            if not dense:
                raise DataError("search='approximate' needs dense rows, got a sparse matrix: take search='exact'.")
            import_faiss()
            return "approximate"
        slow = exact_seconds(self.n, self.d) > EXACT_SECONDS
        if search == "auto" and dense and slow and find_spec("faiss") is not None:
            return "approximate"
        return "tree" if dense and uses_tree(self.n, self.d) else "brute"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_built": None, "_tick": None}  # rebuilt from the rows when next needed

    def finish(self) -> None:
        """Tell no more progress: the search of all rows is over."""
        self._tick = None

    def query(self, Y: Rows | None, k: int) -> tuple[FloatArray, IntArray]:
        """Distances, ascending, and numbers of the k nearest rows (all if there are fewer), shape (n_new, k).

        ``Y=None`` asks for the rows themselves: each then comes first in its own list, at distance 0, even if it has
        copies.
        """
        k = min(check_count("k", k), self.n)
        own = Y is None
        Y = self.rows if Y is None else self._fitting(Y)
        if self.search_ == "brute":
            return self._index().nearest(Y, k, own, self._tick)  # type: ignore[no-any-return]
        out = np.empty((Y.shape[0], k)), np.empty((Y.shape[0], k), dtype=np.intp)
        step = max(BLOCK // (k + 1), 1)
        for top in range(0, Y.shape[0], step):
            rows = np.arange(top, min(top + step, Y.shape[0]))
            find = self._tree_block if self.search_ == "tree" else self._approximate_block
            out[0][rows], out[1][rows] = find(np.asarray(Y), rows, k, own)
            if self._tick is not None:
                self._tick((top + len(rows)) / Y.shape[0])
        return out

    def within(self, Y: Rows, k: int, radii: FloatArray) -> Pairs:
        """All pairs with |y_i − x_j| ≤ r_j, up to rounding: rows of Y ascending, rows of X, distances.

        All with an exact index. An approximate one looks at the 8k nearest rows of each y, and misses those
        that have y near them while y has 8k others nearer.
        """
        Y = self._fitting(Y)
        if self.search_ == "brute":
            return self._index().within(Y, radii)  # type: ignore[no-any-return]
        gap, near = self.query(Y, WIDEN * k)
        first = np.repeat(np.arange(Y.shape[0]), near.shape[1])
        second, gap, last = near.ravel(), gap.ravel(), gap[:, -1]
        keep = within_radius(gap, radii[second])
        first, second, gap = first[keep], second[keep], gap[keep]
        if self.search_ == "tree" and near.shape[1] < self.n:
            far = self._ball_pairs(Y, np.flatnonzero(within_radius(last.min(), radii)), radii)
            beyond = distances(self.rows, Y, *far)
            keep = within_radius(beyond, radii[far[1]]) & (beyond >= last[far[0]] * (1 - CLOSE))
            first, second = np.concatenate([first, far[0][keep]]), np.concatenate([second, far[1][keep]])
            gap = np.concatenate([gap, beyond[keep]])
            keys, where = np.unique(first * self.n + second, return_index=True)  # each pair once, ascending
            first, second, gap = keys // self.n, keys % self.n, gap[where]
        return first, second, gap

    def _ball_pairs(self, Y: Rows, wide: IntArray, radii: FloatArray) -> tuple[IntArray, IntArray]:
        """Pairs (i, j) with y_i in the ball of x_j, for the rows j whose ball may reach past the nearest of any y."""
        if not len(wide):
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        reach_of = radii[wide] * (1 + 2 * CLOSE)  # the tree rounds by itself: a little wider, and measured after
        tree = cKDTree(Y)

        def search(piece: slice) -> list[list[int]]:
            return list(tree.query_ball_point(self.rows[wide[piece]], reach_of[piece], workers=1, return_sorted=True))

        balls = list(chain.from_iterable(run_panels(search, len(wide), BALLS, n_jobs=self.n_jobs)))
        counts = np.fromiter(map(len, balls), dtype=np.intp, count=len(wide))
        found = np.fromiter(chain.from_iterable(balls), dtype=np.intp, count=int(counts.sum()))
        return found, np.repeat(wide, counts)

    def _fitting(self, Y: Rows) -> Rows:
        Y = _checked("Y", Y)
        if Y.shape[1] != self.d:
            raise DataError(f"Y must have the {self.d} columns of the rows that were indexed, got {Y.shape[1]}.")
        if sparse.issparse(Y) != sparse.issparse(self.rows):
            kinds = ("a sparse matrix", "a dense array")
            want, got = kinds if sparse.issparse(self.rows) else kinds[::-1]
            raise DataError(f"Y must be {want}, as the rows that were indexed, got {got}.")
        return Y

    def _index(self) -> Any:
        if self._built is None:
            build = {
                # Splits at the middle of a cell: a median would take O(n) time a level and stall on many equal values.
                "tree": lambda: cKDTree(self.rows, balanced_tree=False),
                "brute": lambda: BruteForce(self.rows, n_jobs=self.n_jobs),
                "approximate": self._build_approximate,
            }
            self._built = build[self.search_]()
        return self._built

    def _tree_block(self, Y: FloatArray, rows: IntArray, k: int, own: bool) -> tuple[FloatArray, IntArray]:
        """A block of rows by the tree; rows whose k-th distance may be a tie are asked again for more."""
        gaps, nears = np.empty((len(rows), k)), np.empty((len(rows), k), dtype=np.intp)
        open_, m = np.arange(len(rows)), min(k + 1, self.n)
        while len(open_):
            step, still = max(BLOCK // m, 1), []
            for top in range(0, len(open_), step):
                part = open_[top : top + step]
                near = self._tree_query(Y[rows[part]], m)
                gap, near = self._ordered(Y, rows[part], near, own)
                gaps[part], nears[part] = gap[:, :k], near[:, :k]
                if m < self.n:
                    still.append(part[within_radius(gap[:, -1], gap[:, k - 1])])
            open_ = np.concatenate(still) if still else open_[:0]
            m = min(4 * m, self.n)
        return gaps, nears

    def _tree_query(self, Y: FloatArray, m: int) -> IntArray:
        """Numbers of the m nearest rows, by the tree's own rounding.

        Our own threads, not SciPy's (``workers``): after Ctrl-C these go on writing into arrays that are gone, and the
        process dies.
        """
        tree, ranks = self._index(), np.arange(1, m + 1)

        def search(piece: slice) -> IntArray:
            return np.asarray(tree.query(Y[piece], ranks, workers=1)[1])

        return np.concatenate(run_panels(search, len(Y), max(PIECE // m, 1), n_jobs=self.n_jobs))

    def _ordered(self, Y: Rows, rows: IntArray, near: IntArray, own: bool) -> tuple[FloatArray, IntArray]:
        """Found rows by (distance, number), distances measured anew; a row itself before its copies."""
        near = np.asarray(near, dtype=np.intp)
        gap = distances(self.rows, Y, np.repeat(rows, near.shape[1]), near.ravel()).reshape(near.shape)
        keys = np.where(near == rows[:, None], -1.0, gap) if own else gap
        order = np.lexsort((near, keys), axis=-1)
        return np.take_along_axis(gap, order, axis=1), np.take_along_axis(near, order, axis=1)

    def _build_approximate(self) -> Any:
        """A graph of links to near rows, in layers (HNSW), built by one thread: with more it differs every time."""
        faiss = import_faiss()
        rows = np.asarray(self.rows)
        self._offset = middle(rows)
        largest = reach(rows, self._offset)
        self._unit = float(2.0 ** -np.ceil(np.log2(largest))) if largest > 0 else 1.0
        index = faiss.IndexHNSWFlat(self.d, LINKS)
        index.hnsw.efConstruction = BREADTH
        index.hnsw.rng = faiss.RandomGenerator(self.seed)
        with _faiss_threads(faiss, 1):
            index.add(self._moved(rows))  # in one piece: in several, a tenth of the neighbours was missed
        return index

    def _moved(self, Y: FloatArray) -> FloatArray:
        return np.ascontiguousarray((Y - self._offset) * self._unit, dtype=np.float32)

    def _approximate_block(self, Y: FloatArray, rows: IntArray, k: int, own: bool) -> tuple[FloatArray, IntArray]:
        """A block of rows by the graph; if it leads to fewer than k rows, by brute force."""
        index = self._index()
        index.hnsw.efSearch = max(EFFORT, 2 * k)
        with _faiss_threads(import_faiss(), self.n_jobs):
            near = index.search(self._moved(Y[rows]), k)[1]
        short = np.flatnonzero((near < 0).any(axis=1))
        if len(short):
            near[short] = BruteForce(self.rows, n_jobs=self.n_jobs).nearest(Y[rows[short]], k, False)[1]
        if own:  # many copies, or rounding to float32, may have left no place for the row itself
            lost = np.flatnonzero((near != rows[:, None]).all(axis=1))
            near[lost, -1] = rows[lost]
        return self._ordered(Y, rows, near, own)


@contextmanager
def _faiss_threads(faiss: Any, n_jobs: int | None) -> Iterator[None]:
    """Hold faiss to a number of threads, and put its own back."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count_threads(n_jobs))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _checked(name: str, X: Rows) -> Rows:
    """Rows as they are stored: contiguous float32 or float64, not copied if they are so already."""
    if sparse.issparse(X):
        return sparse.csr_array(X)
    X = np.asarray(X)
    if X.ndim != 2:
        raise DataError(f"{name} must have two dimensions, rows and columns, got shape {X.shape}.")
    return np.ascontiguousarray(X, dtype=X.dtype if X.dtype == np.float32 else np.float64)


# Sparse graphs of rows: parts, loops and ties


def components(K: Any) -> IntArray:
    """The connected component of every row: 0, 1, …"""
    return np.asarray(connected_components(K, directed=False)[1], dtype=np.intp)


def members_of(labels: IntArray) -> list[IntArray]:
    """The rows of every part."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def without_loops(K: Any) -> Any:
    """K with a zero diagonal, except in rows that have nothing else.

    A row's similarity to itself holds it back: one with faint edges and a loop of 1 would own an eigenvector.
    """
    own = K.diagonal()
    loops = np.where(np.asarray(K.sum(axis=1)).ravel() - own > 0, own, 0.0)
    K = sparse.csr_array(K - sparse.csr_array(sparse.dia_array((loops[None, :], [0]), shape=K.shape)))
    K.eliminate_zeros()
    return K


def _with_transpose(A: Any) -> Any:
    """A + Aᵀ, with as few copies as CSR arithmetic needs."""
    A.sort_indices()
    return A + sparse.csr_array(A.T)
