"""K stored as a sparse matrix: given, or of nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError
from biclique.gram.dense import StoredCross, check_asymmetry
from biclique.gram.operator import Cross, CrossGram, GramOperator
from biclique.neighbors.index import NeighborIndex, components
from biclique.neighbors.pairs import Pairs, within_radius
from biclique.runtime.arguments import check_count
from biclique.runtime.threads import Tick, given_panel, panel_product


class SparseGram(GramOperator):
    """K as a compressed sparse row matrix."""

    name = "sparse"
    dtype = np.dtype(np.float64)

    def __init__(self, K: Rows, *, n_jobs: int | None = None) -> None:
        self.K = sparse.csr_array(K, dtype=np.float64)
        self.n, self.n_jobs = self.K.shape[0], n_jobs
        self.nonnegative = bool(self.K.data.min(initial=0.0) >= 0)

    def matmat(self, V: FloatArray) -> FloatArray:
        return panel_product(self.K, V, n_jobs=self.n_jobs)

    def diagonal(self) -> FloatArray:
        return np.asarray(self.K.diagonal())

    def graph(self) -> sparse.csr_array | None:
        return self.K if self.nonnegative else None

    def parts(self) -> IntArray:
        return components(self.K)

    def restricted(self, members: IntArray) -> SparseGram:
        return SparseGram(self.K[members][:, members], n_jobs=self.n_jobs)

    def cross(self, Y: Rows) -> CrossGram:
        return StoredCross(Y, n_jobs=self.n_jobs)


GIVEN_BYTES = 200
"""Of every stored entry of a given matrix: copies, its transpose, the parts and the levels of multigrid (measured)."""


def given_bytes(K: Rows) -> int:
    """Memory that a given matrix takes beside itself: a float64 copy unless it is float64, and working memory."""
    if sparse.issparse(K):
        return GIVEN_BYTES * int(K.nnz)
    copy = 0 if K.dtype == np.float64 else 8 * K.shape[0] ** 2
    return copy + 4 * 8 * given_panel(K.shape[0]) * int(K.shape[0])


def scaled_graph(G: sparse.csr_array, scale: FloatArray) -> sparse.csr_array:
    """diag(s) G diag(s)."""
    found = G.copy()
    found.data = found.data * np.repeat(scale, np.diff(found.indptr)) * scale[found.indices]
    return found


def checked_sparse(K: Rows) -> sparse.csr_array:
    """A given sparse matrix, checked as the dense one is."""
    given = sparse.csr_array(K, dtype=np.float64)
    gap = abs(given - given.T).tocoo()
    if not gap.nnz:
        return given
    largest = int(gap.data.argmax())
    where = (int(gap.row[largest]), int(gap.col[largest]))
    check_asymmetry(float(gap.data[largest]), float(abs(given).max()), where)
    return sparse.csr_array((given + given.T) / 2)


# K of nearest neighbours


PANEL = 16_384
"""Rows of one piece of a product: a row has few entries."""


class NeighborGram(SparseGram):
    """K = (A + Aᵀ)/2, with A_ij = 1 when x_j is among the k nearest rows of x_i, itself counted: scikit-learn's graph.

    Equally near rows are taken in an order of the rows, by default that of their numbers, the row itself first. Make
    one by ``from_rows`` or ``from_graph``. What new rows need stays: the index, and r_i = the distance to the k-th
    neighbour.
    """

    name = "neighbors"

    def __init__(
        self,
        K: Rows,
        *,
        n_neighbors: int,
        radii: FloatArray,
        index: NeighborIndex | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(K, n_jobs=n_jobs)
        self.n_neighbors, self.radii, self.index = n_neighbors, radii, index

    @classmethod
    def from_rows(
        cls,
        X: Rows,
        n_neighbors: int,
        search: str = "auto",
        n_jobs: int | None = None,
        tick: Tick | None = None,
        random_state: int | np.random.RandomState | None = 0,
        order: IntArray | None = None,
    ) -> NeighborGram:
        """K of the rows of X; all rows are neighbours if there are no more than ``n_neighbors``.

        Equally near rows are taken by their place in ``order``.
        """
        check_count("n_neighbors", n_neighbors)
        index = NeighborIndex(X, search=search, n_jobs=n_jobs, random_state=random_state, order=order)
        gap, near = index.query(None, n_neighbors, tick)
        return cls._made(gap, near, n_neighbors, index, n_jobs)

    @classmethod
    def from_graph(cls, G: Rows, n_neighbors: int, n_jobs: int | None = None) -> NeighborGram:
        """K of a sparse (n, n) graph of distances, such as ``kneighbors_graph(mode="distance")`` gives.

        A row's neighbours are the ``n_neighbors`` smallest of its stored entries, as in scikit-learn: a stored zero
        is a distance of 0, and the row itself is counted only if its own entry is stored.
        """
        check_count("n_neighbors", n_neighbors)
        if not sparse.issparse(G) or G.shape[0] != G.shape[1]:
            got = f"shape {G.shape}" if sparse.issparse(G) else type(G).__name__
            raise DataError(
                f"affinity='precomputed_nearest_neighbors' needs a sparse (n, n) matrix of distances as X, got {got}: "
                "sklearn.neighbors.kneighbors_graph(X, n_neighbors, mode='distance', include_self=True) gives one."
            )
        gap, near = _smallest(G, n_neighbors)
        return cls._made(gap, near, n_neighbors, None, n_jobs)

    @classmethod
    def _made(
        cls, gap: FloatArray, near: IntArray, n_neighbors: int, index: NeighborIndex | None, n_jobs: int | None
    ) -> NeighborGram:
        """K from lists of neighbours and their distances, (n, k)."""
        n, k = gap.shape
        start = np.arange(0, n * k + 1, k, dtype=np.int32 if n * k < 2**31 else np.int64)
        half = sparse.csr_array((np.full(n * k, 0.5), near.ravel().astype(np.int32), start), shape=(n, n))
        half.sort_indices()
        K = half + sparse.csr_array(half.T)
        return cls(K, n_neighbors=n_neighbors, radii=gap[:, -1].copy(), index=index, n_jobs=n_jobs)

    @property
    def rows(self) -> Rows:
        """The training rows; none for a given graph."""
        return np.empty((0, self.n)) if self.index is None else self.index.rows

    def hold(self, Y: Rows) -> Rows:
        """Other rows, dense or sparse as the training rows are."""
        return Y if self.index is None else self.index.like_rows(Y)

    def training(self) -> NeighborGram:
        return self

    def matmat(self, V: FloatArray) -> FloatArray:
        return panel_product(self.K, V, n_jobs=self.n_jobs, panel=PANEL)

    def cross(self, Y: Rows, n_jobs: int | None = None) -> CrossGram:  # noqa: ARG002
        """κ(y, x_j) = (a_j + b_j)/2: a_j = 1 for the k nearest rows of y, b_j = 1 if |y − x_j| ≤ r_j up to rounding.

        If y equals a training row, its row of K is given; the first of several equal rows. Exact with an exact index;
        see ``NeighborIndex.within`` for what an approximate one leaves out. For a given graph, Y is the (n_new, n)
        graph of distances to the training rows, and b is looked for in its entries; y then equals a training row if
        their distance is no more than rounding can leave of 0.
        """
        if self.index is None:
            gap, near, back = self._given_pairs(Y)
            rounding = _rounding(Y)
        else:
            gap, near = self.index.query(Y, self.n_neighbors)
            back = self.index.within(Y, self.n_neighbors, self.radii)
            rounding = 0.0  # our own distances of equal rows are 0
        listed = np.repeat(np.arange(len(near)), near.shape[1]), near.ravel()
        parts = [
            sparse.coo_array((np.full(len(first), 0.5), (first, second)), shape=(len(near), self.n)).tocsr()
            for first, second in (listed, back)
        ]
        equal = gap[:, 0] <= np.sqrt(rounding) * self.radii[near[:, 0]]
        K = self._equal_rows(sparse.csr_array(parts[0] + parts[1]), equal, near[:, 0])
        # κ(y, y) = 1, as a row is its own neighbour.
        return Cross(lambda V: panel_product(K, V, n_jobs=self.n_jobs, panel=PANEL), lambda: np.ones(len(near)))

    def _equal_rows(self, K: sparse.csr_array, equal: np.ndarray, nearest: IntArray) -> Any:
        """K(Y, X); if y equals a training row, the row of K of that one."""
        if not equal.any():
            return K
        stacked = sparse.vstack([K, self.K[nearest[equal]]], format="csr")
        return stacked[np.where(equal, len(equal) + np.cumsum(equal) - 1, np.arange(len(equal)))]

    def _given_pairs(self, G: Rows) -> tuple[FloatArray, IntArray, Pairs]:
        """Distances and numbers of the nearest training rows of new ones, and the pairs within a radius."""
        if not sparse.issparse(G) or G.shape[1] != self.n:
            got = f"shape {G.shape}" if sparse.issparse(G) else type(G).__name__
            raise DataError(
                f"new rows must come as a sparse (n_new, {self.n}) matrix of distances to the training rows with "
                f"affinity='precomputed_nearest_neighbors', got {got}: KNeighborsTransformer.transform gives one."
            )
        entries = sparse.coo_array(G)
        keep = within_radius(entries.data, self.radii[entries.col], _rounding(G))
        return *_smallest(G, self.n_neighbors), (entries.row[keep], entries.col[keep])


def _rounding(G: Rows) -> float:
    """√ε of the type of given distances: the relative error that their squares may have.

    How they were measured is not known. From |x|² + |y|² − 2⟨x, y⟩, as scikit-learn measures in many columns, a
    square is off by ε|x|², whatever its size: half of the digits are trusted.
    """
    return float(np.sqrt(np.finfo(np.result_type(G.dtype, np.float32)).eps))


def _smallest(G: Rows, k: int) -> tuple[FloatArray, IntArray]:
    """The k smallest stored entries of each row, ascending, ties as stored, and their columns, (n, k)."""
    graph = sparse.csr_array(G)
    counts, values = np.diff(graph.indptr), graph.data
    if graph.nnz and not (np.isfinite(values).all() and values.min() >= 0):
        raise DataError(f"distances of a graph must be finite and not negative, got {values.min()!r} among them.")
    if (counts < k).any():
        row = int((counts < k).argmax())
        raise DataError(
            f"n_neighbors={k}, but row {row} of the graph, counted from 0, has only {counts[row]} stored entries (the "
            "row itself counts if it is stored): give a graph with more neighbours, or a smaller n_neighbors."
        )
    order = np.lexsort((values, np.repeat(np.arange(graph.shape[0]), counts)))
    order = order[graph.indptr[:-1, None] + np.arange(k)]
    return np.asarray(values[order], dtype=np.float64), graph.indices[order].astype(np.intp)
