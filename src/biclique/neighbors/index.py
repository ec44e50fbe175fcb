"""The search for nearest rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError, MissingExtraError
from biclique.kernels.kernel import middle
from biclique.neighbors.brute import CLOSE, BruteForce, Pairs, distances, reach, within_radius
from biclique.runtime.arguments import check_choice, check_count, check_jobs, check_random
from biclique.runtime.threads import Pulse, Result, Tick, count_threads, run_groups

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
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError("search='approximate' needs faiss: pip install 'biclique[neighbors]'") from error
    return faiss


def exact_seconds(n: int, d: int) -> float:
    """Seconds for all n rows, exactly, on two cores: a row takes 1.5·1.4^d (n/50000)^0.3 µs or n(1 + d/80) ns.

    Brute force is counted with 200 columns at most: where there are more, a fraction of the directions mostly does.
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
    estimate for all n rows is below half a minute on two cores, or where the extra is missing. The bits do not
    depend on ``n_jobs``. Ties are followed to their end, so merge rows that come many times; where brute force meets
    more than 8k + 64 rows that are as near as the k-th to ten digits, these count as equally near.
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
        self.n_jobs = n_jobs
        self.seed = int(check_random(random_state).randint(2**31 - 1))
        self.search_ = self._choose(search)
        self._tick = tick
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
        """Distances, ascending, and numbers of the k nearest rows (all where there are fewer), shape (n_new, k).

        ``Y=None`` asks for the rows themselves: each then comes first in its own list, at distance 0, whatever
        copies it has.
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
            first, second, gap = _distinct(first, second, gap, self.n)
        return first, second, gap

    def _ball_pairs(self, Y: Rows, wide: IntArray, radii: FloatArray) -> tuple[IntArray, IntArray]:
        """Pairs (i, j) with y_i in the ball of x_j, for the rows j whose ball may reach past the nearest of any y."""
        if not len(wide):
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        reach_of = radii[wide] * (1 + 2 * CLOSE)  # the tree rounds by itself: a little wider, and measured after
        tree = cKDTree(Y)

        def search(piece: slice) -> list[list[int]]:
            return list(tree.query_ball_point(self.rows[wide[piece]], reach_of[piece], workers=1, return_sorted=True))

        balls = list(chain.from_iterable(self._in_pieces(search, len(wide), BALLS)))
        counts = np.fromiter(map(len, balls), dtype=np.intp, count=len(wide))
        found = np.fromiter(chain.from_iterable(balls), dtype=np.intp, count=int(counts.sum()))
        return found, np.repeat(wide, counts)

    def _in_pieces(self, search: Callable[[slice], Result], n: int, size: int) -> list[Result]:
        """A search of the tree for pieces of n rows, on our own threads.

        Not on SciPy's (``workers``): after Ctrl-C these go on writing into arrays that are gone, and the process dies.
        """
        tops = range(0, n, size)

        def work(number: int, pulse: Pulse) -> Result:
            pulse()
            return search(slice(tops[number], min(tops[number] + size, n)))

        return run_groups(work, len(tops), n_jobs=self.n_jobs)

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
            if self.search_ == "tree":
                # Splits at the middle of a cell: a median would take O(n) time a level and stall on many equal values.
                self._built = cKDTree(self.rows, balanced_tree=False)
            elif self.search_ == "brute":
                self._built = BruteForce(self.rows, n_jobs=self.n_jobs)
            else:
                self._built = self._build_approximate()
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
        """Numbers of the m nearest rows, by the tree's own rounding."""
        tree = self._index()
        found = self._in_pieces(
            lambda piece: tree.query(Y[piece], np.arange(1, m + 1), workers=1)[1], len(Y), max(PIECE // m, 1)
        )
        return np.concatenate(found)

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
        """A block of rows by the graph; where it leads to fewer than k rows, by brute force."""
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
    """Rows as they are held: contiguous float32 or float64, not copied where they are so already."""
    if sparse.issparse(X):
        return sparse.csr_array(X)
    X = np.asarray(X)
    if X.ndim != 2:
        raise DataError(f"{name} must have two dimensions, rows and columns, got shape {X.shape}.")
    return np.ascontiguousarray(X, dtype=X.dtype if X.dtype == np.float32 else np.float64)


def _distinct(first: IntArray, second: IntArray, gap: FloatArray, n: int) -> Pairs:
    """Pairs, each once, ascending."""
    keys, where = np.unique(first * n + second, return_index=True)
    return keys // n, keys % n, gap[where]
