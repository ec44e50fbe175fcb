"""The search for nearest rows, and sparse graphs of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from itertools import chain
from math import log2
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError, optional
from biclique.kernels.gower import Gower
from biclique.kernels.kernel import Kernel, middle
from biclique.neighbors.pairs import (
    CLOSE,
    PANEL_ROWS,
    VALUES,
    Pairs,
    PairSearch,
    by_distance,
    distances,
    unit_scale,
    within_radius,
)
from biclique.runtime.arguments import check_random
from biclique.runtime.threads import Tick, count_threads, run_panels

TREE_COLUMNS = 16
"""Columns beyond which a k-d tree looks at nearly all rows."""

EXACT_SECONDS = 30.0
"""Estimated time, on two cores, up to which ``"auto"`` searches exactly."""

PIECE = 2**16
"""Neighbours that one thread asks for at a time; between two pieces Ctrl-C is heard."""

WIDEN = 8
"""How many times k rows are looked at first for those that have a new row near them."""

LINKS = 16
"""Links a row in the approximate index."""

BREADTH = 80
"""Candidates that are kept while the approximate index is built."""

EFFORT = 64
"""Candidates that are kept while it is searched (at least 2k)."""


def exact_seconds(n: int, d: int) -> float:
    """Seconds for all n rows, exactly, on two cores: a row takes 1.5·1.4^d (n/50000)^0.3 µs or n(1 + d/80) ns.

    Brute force is counted with 200 columns at most: with more, a fraction of the directions is usually enough.
    """
    if uses_tree(n, d):
        return float(1.5e-6 * n * 1.4**d * (n / 50_000) ** 0.3)
    return 1e-9 * n * n * (1 + min(d, 200) / 80)


def uses_tree(n: int, d: int) -> bool:
    """Whether the exact search of n dense rows in d columns takes the k-d tree: it looks at some 1.4^d of them.

    Measured on one core, µs for a row with its 8 nearest of 4,000 (``benchmarks/neighbors.py``): in 2 columns tree 1.0,
    tournament 2.6; in 4 columns 2.6 and 2.7; in 16 columns 30 and 3.3, scikit-learn's ArgKmin 11, faiss' flat index 5.
    """
    return d <= max(2.0, min(2 * log2(max(n, 1)) - 20.5, TREE_COLUMNS))


def search_bytes(n: int, d: int, n_jobs: int | None) -> int:
    """Memory of the search among n dense rows: they themselves in float32 and float64, and every worker's panel."""
    return 12 * n * (d + 2) + 12 * n * int(np.clip(VALUES // n, 32, PANEL_ROWS)) * count_threads(n_jobs)


class NeighborIndex:
    """The k rows x_j with the smallest |y − x_j|, by (distance, j), for dense rows or a CSR matrix.

    ``search_`` is how: ``"tree"`` and ``"brute"`` are exact, ties included; ``"approximate"`` (faiss, the extra
    ``[neighbors]``) may miss some rows, but the distances it gives are exact. ``"auto"`` is exact while the
    estimate for all n rows is below half a minute on two cores, or if the extra is missing. The bits do not
    depend on ``n_jobs``. All ties are looked at, so merge rows that come many times. If brute force meets more than 8k
    + 64 rows that are as near as the k-th to ten digits, these count as equally near.

    With an ``order`` of the rows, equally near ones come by their place in it. An approximate search ignores it.
    """

    def __init__(
        self,
        X: Rows,
        *,
        search: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        order: IntArray | None = None,
    ) -> None:
        self.rows = _checked(X)
        self.n, self.d = int(self.rows.shape[0]), int(self.rows.shape[1])
        self.n_jobs = n_jobs
        self.seed = int(check_random(random_state).randint(2**31 - 1))
        self.search_ = self._choose(search)
        self.order: IntArray = np.arange(self.n) if order is None or self.search_ == "approximate" else order

    def _choose(self, search: str) -> str:
        dense = not sparse.issparse(self.rows)
        if search == "approximate" and not dense:
            raise DataError("search='approximate' needs dense rows, got a sparse matrix: take search='exact'.")
        slow = dense and exact_seconds(self.n, self.d) > EXACT_SECONDS
        if search == "approximate" or (search == "auto" and slow and find_spec("faiss") is not None):
            return "approximate"
        return "tree" if dense and uses_tree(self.n, self.d) else "brute"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_searcher"}

    def query(self, Y: Rows | None, k: int, tick: Tick | None = None) -> tuple[FloatArray, IntArray]:
        """Distances, ascending, and numbers of the k nearest rows (all if there are fewer), shape (n_new, k).

        ``Y=None`` asks for the rows themselves: each then comes first in its own list, at distance 0, even if it has
        copies.
        """
        k = min(k, self.n)
        rows, searcher = self.rows if Y is None else self.like_rows(Y), self._searcher
        gap, near = np.empty((rows.shape[0], k)), np.empty((rows.shape[0], k), dtype=np.intp)
        places = np.argsort(self.order) if Y is None else None

        def search(piece: slice) -> None:
            own = None if places is None else places[piece]
            gap[piece], found = searcher.nearest(rows[piece], own, k)
            near[piece] = self.order[found]

        run_panels(search, rows.shape[0], self._step(k), n_jobs=self.n_jobs, tick=tick)
        return gap, near

    def nearest_set(self, Y: Rows, k: int, tie: float, rounding: FloatArray | float) -> tuple[IntArray, np.ndarray]:
        """Numbers of the k nearest rows in any order, (n_new, k), and for which rows of Y these are certain.

        They are if every other row is farther than the k-th by more than a share ``tie`` of its distance and by more
        than ``rounding``, one for all rows or for each. That needs no distances, so it takes less time than ``query``.
        ``n_jobs`` is not used.
        """
        Y = self.like_rows(Y)
        near, certain = np.empty((Y.shape[0], k), dtype=np.intp), np.ones(Y.shape[0], dtype=bool)
        if k >= self.n:
            near[:] = np.arange(k)
            return near, certain
        searcher, step, rounding = self._searcher, self._step(k), np.broadcast_to(rounding, len(near))
        if isinstance(searcher, LinkSearch):
            raise TypeError("an approximate search is certain of nothing")
        for top in range(0, Y.shape[0], step):
            piece = slice(top, top + step)
            low, high, found = searcher.bracketed(Y[piece], k + 1)
            near[piece] = self.order[found[:, :k]]
            certain[piece] = low[:, k] > high[:, k - 1] * (1 + tie) + rounding[piece]
        return near, certain

    def within(self, Y: Rows, k: int, radii: FloatArray) -> Pairs:
        """All pairs with |y_i − x_j| ≤ r_j, up to rounding: rows of Y ascending, rows of X.

        All with an exact index. An approximate one looks at the 8k nearest rows of each y, and misses those
        that have y near them while y has 8k others nearer.
        """
        Y, searcher = self.like_rows(Y), self._searcher
        if isinstance(searcher, LinkSearch):
            gap, near = self.query(Y, WIDEN * k)
            first, place = np.nonzero(within_radius(gap, radii[near]))
            return first, near[first, place]

        def search(piece: slice) -> IntArray:
            first, place = searcher.within(Y[piece], radii[self.order])
            return np.stack([first + piece.start, self.order[place]])

        first, second = np.concatenate(run_panels(search, Y.shape[0], self._step(k), n_jobs=self.n_jobs), axis=1)
        return first, second

    def like_rows(self, Y: Rows) -> Rows:
        """Other rows, dense or sparse as the indexed ones are."""
        if sparse.issparse(self.rows):
            return sparse.csr_array(Y)
        return _checked(Y.toarray() if sparse.issparse(Y) else Y)

    @cached_property
    def _searcher(self) -> TreeSearch | PairSearch | LinkSearch:
        if self.search_ == "tree":
            return TreeSearch(np.asarray(self._ordered_rows))
        if self.search_ == "brute":
            return PairSearch(self._ordered_rows)
        return LinkSearch(np.asarray(self.rows), self.seed)

    @property
    def _ordered_rows(self) -> Rows:
        in_order = np.array_equal(self.order, np.arange(self.n))
        return self.rows if in_order else self.rows[self.order]

    def _step(self, k: int) -> int:
        """Rows of one piece of a search."""
        return self._searcher.step or max(PIECE // (k + 1), 1)


def nearest_row(kernel: Kernel | None, Y: Rows, X: Rows, n_jobs: int | None) -> IntArray:
    """The number of the nearest row of X for every row of Y, by Gower distances for that kernel, else Euclidean."""
    if isinstance(kernel, Gower):
        return kernel.nearest(Y, X, 1)[1][:, 0]
    return NeighborIndex(X, search="exact", n_jobs=n_jobs).query(Y, 1)[1][:, 0]


class TreeSearch:
    """The nearest rows in few columns, by SciPy's k-d tree."""

    step: int | None = None

    def __init__(self, X: FloatArray) -> None:
        self.X = X
        # Splits at the middle of a cell: a median would take O(n) time a level and stall on many equal values.
        self.tree = cKDTree(X, balanced_tree=False)

    def nearest(self, Y: FloatArray, own: IntArray | None, k: int, most: int = 0) -> tuple[FloatArray, IntArray]:
        """As ``PairSearch.nearest``; rows whose k-th distance may be a tie are asked again for more.

        By one thread, not by SciPy's (``workers``): after Ctrl-C these go on writing into arrays that are gone, and the
        process dies.
        """
        most = min(max(most, k + 1), len(self.X))
        near = self.tree.query(Y, np.arange(1, most + 1), workers=1)[1]
        gap, near = ordered(self.X, Y, own, near)
        if most < len(self.X):
            tied = np.flatnonzero(within_radius(gap[:, -1], gap[:, k - 1]))
            pieces = -(-4 * most * len(tied) // PIECE)
            for part in np.array_split(tied, max(pieces, 1)) if len(tied) else []:
                again = None if own is None else own[part]
                gap[part, :k], near[part, :k] = self.nearest(Y[part], again, k, 4 * most)
        return gap[:, :k], near[:, :k]

    def bracketed(self, Y: FloatArray, count: int) -> tuple[FloatArray, FloatArray, IntArray]:
        """As ``PairSearch.bracketed``."""
        gap, near = self.tree.query(Y, np.arange(1, count + 1), workers=1)
        return gap, gap, near

    def within(self, Y: FloatArray, radii: FloatArray) -> Pairs:
        """As ``PairSearch.within``, by a tree of Y, for the rows x_j whose ball reaches into the box around Y."""
        reach = radii[:, None] * (1 + 2 * CLOSE)  # the tree rounds by itself: a little wider, and measured
        near = np.flatnonzero(((self.X - reach <= Y.max(axis=0)) & (self.X + reach >= Y.min(axis=0))).all(axis=1))
        balls = cKDTree(Y).query_ball_point(self.X[near], reach[near, 0], workers=1)
        first, second = np.fromiter(chain.from_iterable(balls), dtype=np.intp), np.repeat(near, [*map(len, balls)])
        keep = within_radius(distances(self.X, Y, first, second), radii[second])
        order = np.argsort(first[keep], kind="stable")
        return first[keep][order], second[keep][order]


class LinkSearch:
    """Most of the nearest rows, by a graph of links to near rows in layers (HNSW, of faiss)."""

    step: int | None = None

    def __init__(self, X: FloatArray, seed: int) -> None:
        self.faiss = optional(
            "faiss", "search='approximate' needs faiss: pip install '.[neighbors]' in a clone of biclique"
        )
        self.X, self.offset = X, middle(X)
        self.scale = unit_scale(X, self.offset)
        self.index = self.faiss.IndexHNSWFlat(X.shape[1], LINKS)
        self.index.hnsw.efConstruction = BREADTH
        self.index.hnsw.rng = self.faiss.RandomGenerator(seed)
        with self._one_thread():  # with more it differs every time
            self.index.add(self._moved(X))  # in one piece: in several, a tenth of the neighbours was missed

    def _moved(self, Y: FloatArray) -> FloatArray:
        return np.ascontiguousarray((Y - self.offset) * self.scale, dtype=np.float32)

    @contextmanager
    def _one_thread(self) -> Iterator[None]:
        before = self.faiss.omp_get_max_threads()
        self.faiss.omp_set_num_threads(1)
        try:
            yield
        finally:
            self.faiss.omp_set_num_threads(before)

    def nearest(self, Y: FloatArray, own: IntArray | None, k: int) -> tuple[FloatArray, IntArray]:
        """As ``PairSearch.nearest``, which finds the rows to which fewer than k links lead."""
        self.index.hnsw.efSearch = max(EFFORT, 2 * k)
        with self._one_thread():
            near = self.index.search(self._moved(Y), k)[1]
        short = np.flatnonzero((near < 0).any(axis=1))
        if len(short):
            near[short] = PairSearch(self.X).nearest(Y[short], None, k)[1]
        if own is not None:  # many copies, or rounding to float32, may have left no place for the row itself
            lost = np.flatnonzero((near != own[:, None]).all(axis=1))
            near[lost, -1] = own[lost]
        return ordered(self.X, Y, own, near)


def ordered(X: FloatArray, Y: FloatArray, own: IntArray | None, near: IntArray) -> tuple[FloatArray, IntArray]:
    """Found rows by (distance, number), distances measured anew; a row itself before its copies."""
    near = np.asarray(near, dtype=np.intp)
    gap = distances(X, Y, np.repeat(np.arange(len(Y)), near.shape[1]), near.ravel()).reshape(near.shape)
    return by_distance(gap, near, own)


def _checked(X: Rows) -> Rows:
    """Rows as they are stored: contiguous float32 or float64, not copied if they are so already."""
    if sparse.issparse(X):
        return sparse.csr_array(X)
    return np.ascontiguousarray(X, dtype=X.dtype if X.dtype == np.float32 else np.float64)


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
