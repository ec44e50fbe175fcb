"""The hypergraph of neighbourhoods, the default: a feature map with r entries a row.

Landmarks z₁ … z_p stand for the rows. Every landmark has a hyperedge e_z = {x : z ∈ N(x)}, and a weight that says how
dense the landmarks are there:

    N(x) = the landmarks no farther from x than its r-th nearest one,
    w_z = max(exp(−ρ_z² / median of ρ²), 2⁻⁵²),   ρ_z the distance from z to its r-th nearest other landmark,
    κ(x, y) = Σ over z ∈ N(x) ∩ N(y) of w_z = ⟨φ(x), φ(y)⟩,   φ_z(x) = √w_z if z ∈ N(x), else 0.

So K = H W Hᵀ is the clique expansion of a weighted hypergraph, and a semi-definite base kernel like any other.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.preprocessing import normalize

from biclique._typing import FloatArray, IntArray, Rows
from biclique.features.device_neighborhoods import DeviceSearch, Incidence, Tensor, nearest_landmark
from biclique.features.maps import FeatureMap
from biclique.kernels.gower import Gower
from biclique.kernels.kernel import squared_norms
from biclique.neighbors.index import NeighborIndex, nearest_row
from biclique.runtime.namespace import (
    float64,
    moved,
    namespace,
    on_host,
    rows_on_host,
    to_host,
    unit_rows,
)

NEIGHBORS = 7
"""r: landmarks of a row. More of them help Gaussians in many columns, and hurt images."""

LANDMARKS = 4_000
"""Most landmarks: the resolution. Clusters of fewer than some 2 r landmarks (0.4 % of the rows) are merged."""

LANDMARKS_A_CLUSTER = 20
"""Landmarks for each cluster, if there are very many clusters."""

FLOOR = 2.0**-52
"""Least weight of a hyperedge: without it degrees vanish on heavy tails."""

DRAWN_ROWS = 10
"""Rows that are drawn for each landmark: centres are means of about so many."""

LLOYD_STEPS = 3
"""Steps that move drawn rows to the centres of the rows around them."""

TIE = 1e-9
"""Relative gap below which two distances count as equal: units, float32 and the order of rows must not matter."""

MOST_TIED = 4
"""A row has at most this many times r landmarks, however many are tied."""

METRICS = ("euclidean", "cosine", "gower")
"""What ``kernel_params={"metric": …}`` may be."""


class NeighborhoodMap(FeatureMap):
    """φ(x) with √w_z at the landmarks z of N(x): a sparse matrix of r entries a row, or more where distances tie.

    ``metric`` is Euclidean, the angle between rows (cosine), or a Gower kernel, whose distances count.
    """

    name = "neighborhoods"
    by_name = False
    exact = has_landmarks = takes_tensors = is_sparse = True

    def __init__(self, landmarks: Rows, n_neighbors: int = NEIGHBORS, metric: str | Gower = "euclidean") -> None:
        self.metric, self.dtype = metric, np.dtype(np.float64)
        self.landmarks = normalize(landmarks) if metric == "cosine" else landmarks
        self.size = p = int(landmarks.shape[0])
        columns = np.ones(landmarks.shape[1]) if sparse.issparse(landmarks) else np.ptp(landmarks, axis=0)
        self._varying = np.flatnonzero(columns)
        self._usual_size = 0.0 if isinstance(metric, Gower) else float(np.median(self._sizes(self.landmarks)))
        self._index: NeighborIndex | None = None
        self._nearest_to_landmarks: tuple[FloatArray, IntArray] | None = None
        self._set_neighbors(min(n_neighbors, max(1, p // 2)))

    def __getstate__(self) -> dict[str, Any]:
        # The index is made again of the landmarks when it is next needed.
        return {**self.__dict__, "_index": None, "_nearest_to_landmarks": None}

    def with_neighbors(self, n_neighbors: int) -> NeighborhoodMap:
        """The same landmarks with another r, of at most p."""
        other = copy(self)
        other._set_neighbors(min(n_neighbors, self.size))
        return other

    def _set_neighbors(self, n_neighbors: int) -> None:
        self.n_neighbors = n_neighbors
        near = self._nearest_to_landmarks = self._search_landmarks()
        self.edge_weights = edge_weights(near[0][:, -1])
        self._entries: FloatArray = np.sqrt(self.edge_weights)

    def columns(self, X: Rows) -> Any:
        """φ(x) of every row, (m, p): a CSR matrix, or of a tensor what stands for one on its device."""
        return self.columns_of(self.landmark_numbers(X))

    def columns_of(self, numbers: IntArray) -> Any:
        """φ of rows whose landmarks are known by their numbers."""
        if not on_host(numbers):
            return Incidence(numbers, moved(self._entries, numbers))
        member = numbers < self.size
        near, ends = numbers[member].astype(np.int32), np.append(0, np.cumsum(member.sum(axis=1)))
        return sparse.csr_array((self._entries[near], near, ends), shape=(len(numbers), self.size))

    def landmark_numbers(self, X: Rows) -> IntArray:
        """Numbers of the landmarks in N(x), ascending, (m, c); p stands behind those of a row that has fewer than c.

        Those of a tensor are on its device.
        """
        near, certain = self._nearest_set(X)
        xp = namespace(near)
        unsure: IntArray = to_host(xp.argwhere(~certain))[:, 0]
        if len(unsure):
            found = self._members_by_distance(rows_on_host(X, unsure))
            near = self._widened(near, found.shape[1])
            near[moved(unsure, near)] = moved(found, near)
        return near

    def joined_numbers(self, blocks: list[IntArray]) -> IntArray:
        """What ``landmark_numbers`` gave for blocks of rows, one below the other."""
        most = max(block.shape[1] for block in blocks)
        return np.concatenate([self._widened(block, most) for block in blocks])

    def _widened(self, numbers: IntArray, columns: int) -> IntArray:
        """With p in more columns, as behind the landmarks of a row that has fewer."""
        missing = columns - numbers.shape[1]
        behind = 0 * numbers[:, [0] * missing] + self.size
        return namespace(numbers).concatenate([numbers, behind], 1) if missing else numbers

    def _nearest_set(self, X: Rows) -> tuple[IntArray, np.ndarray]:
        """The r nearest landmarks of every row, ascending, (m, r), and for which rows these are certainly N(x)."""
        r = self.n_neighbors
        if isinstance(self.metric, Gower):
            return np.zeros((X.shape[0], r), dtype=np.int32), np.zeros(X.shape[0], dtype=bool)
        if on_host(X):
            near, certain = self._searched().nearest_set(self._rows(X), r, TIE, self._rounding(X))
            return np.sort(near.astype(np.int32), axis=1), certain
        search = DeviceSearch(np.asarray(self.landmarks), X)
        return search.in_pieces(X, r, lambda x: search.nearest_set(self._rows(x), r, TIE, self._rounding(x)))

    def _members_by_distance(self, X: Rows) -> IntArray:
        """N(x) as ``landmark_numbers`` gives it, from distances in float64."""
        return self._members(X, *self._nearest(X, min(self.n_neighbors + 1, self.size)))

    def own_numbers(self) -> IntArray:
        """``landmark_numbers`` of the landmarks themselves, from the search for their radii."""
        found = self._nearest_to_landmarks or self._search_landmarks()
        self._nearest_to_landmarks = None  # of many landmarks it is large
        return self._members(self.landmarks, *found)

    def _members(self, X: Rows, gap: FloatArray, near: IntArray) -> IntArray:
        """N(x) from the distances and numbers of the r + 1 nearest landmarks."""
        r, p, most = self.n_neighbors, self.size, min(MOST_TIED * self.n_neighbors, self.size)
        numbers = np.where(gap <= self._reach(X, gap), near, p)
        tied = np.flatnonzero(numbers[:, -1] < p)
        if len(tied) and near.shape[1] < p:
            numbers = np.pad(numbers, ((0, 0), (0, most - near.shape[1])), constant_values=p)
            numbers[tied] = self._tied_members(X[tied], most)
        numbers.sort(axis=1)
        return numbers[:, : int((numbers < p).sum(axis=1).max(initial=r))].astype(np.int32)

    def _reach(self, X: Rows, gap: FloatArray) -> FloatArray:
        """The distance up to which landmarks are members: that of the r-th, up to ties and the rounding of the rows."""
        return gap[:, self.n_neighbors - 1 : self.n_neighbors] * (1 + TIE) + self._rounding(X)[:, None]

    def _rounding(self, X: Rows) -> FloatArray:
        """How far the rounding of rows and of landmarks near them may move a distance, (m,): 4 ε of their size.

        A row far out has its own rounding. That of the others does not grow with it.
        """
        dtype = np.result_type(X.dtype, np.float32) if on_host(X) else X.dtype
        sizes = self._sizes(X) if self.metric == "euclidean" else moved(np.zeros(X.shape[0]), X)
        return 4 * float(namespace(X).finfo(dtype).eps) * sizes.clip(self._usual_size)

    def _sizes(self, X: Rows) -> FloatArray:
        """The largest entry of every row, (m,), in columns that vary: equal values have equal roundings."""
        if not len(self._varying):
            return moved(np.zeros(X.shape[0]), X)
        rows = X if len(self._varying) == X.shape[1] else X[:, self._varying]
        if sparse.issparse(rows):
            return np.asarray(sparse.csr_array(abs(rows)).max(axis=1).toarray().ravel(), dtype=np.float64)
        found: FloatArray = float64(namespace(X).linalg.norm(rows, np.inf, 1))
        return found

    def _tied_members(self, X: Rows, most: int) -> IntArray:
        """The same for rows with ties at the r-th place: the nearer landmarks, then the tied ones by number."""
        r = self.n_neighbors
        gap, near = self._nearest(X, min(MOST_TIED * most, self.size))
        reach = self._reach(X, gap)
        nearer, member = gap < 2 * gap[:, r - 1 : r] - reach, gap <= reach
        order = np.lexsort((near, ~nearer, ~member), axis=1)[:, :most]
        return np.take_along_axis(np.where(member, near, self.size), order, axis=1)

    def _search_landmarks(self) -> tuple[FloatArray, IntArray]:
        """Distances and numbers of the r + 1 landmarks nearest to each, itself first: the last of them is ρ_z away."""
        count = min(self.n_neighbors + 1, self.size)
        if isinstance(self.metric, Gower):
            return self._nearest(self.landmarks, count)
        return self._searched().query(None, count)

    def _nearest(self, X: Rows, count: int) -> tuple[FloatArray, IntArray]:
        """Distances, ascending, and numbers of the nearest landmarks, by (distance, number), (m, count)."""
        if isinstance(self.metric, Gower):
            return self.metric.nearest(X, self.landmarks, count)
        return self._searched().query(self._rows(X), count)

    def _rows(self, X: Rows) -> Rows:
        if self.metric != "cosine":
            return X
        return normalize(X) if on_host(X) else unit_rows(float64(X))

    def _searched(self) -> NeighborIndex:
        if self._index is None:
            self._index = NeighborIndex(self.landmarks, search="exact", n_jobs=1)
        return self._index


def edge_weights(radii: FloatArray) -> FloatArray:
    """w_z = max(exp(−ρ_z² / median of ρ²), 2⁻⁵²), (p,)."""
    largest = float(radii.max(initial=0.0)) or 1.0
    squares = (radii / largest) ** 2  # squares of the radii themselves may not fit
    middle = float(np.median(squares))
    if middle == 0:  # more than half of the landmarks have r others at no distance
        return np.where(squares > 0, FLOOR, 1.0)
    return np.asarray(np.maximum(np.exp(-squares / middle), FLOOR))


def joined_components(incidence: Any) -> IntArray:
    """The connected component of every column of an incidence matrix (rows × columns), −1 for a column without rows.

    Two columns are connected if a row has both. Components are numbered by their first column, so that the order of
    rows does not matter.
    """
    incidence = sparse.csr_array(incidence)
    p, counts = incidence.shape[1], np.diff(incidence.indptr)
    filled = counts > 0
    first = np.repeat(incidence.indices[incidence.indptr[:-1][filled]], counts[filled])
    edges = sparse.coo_array((np.ones(len(first), dtype=np.int8), (first, incidence.indices)), shape=(p, p))
    found = connected_components(edges, directed=False)[1]
    used = np.zeros(p, dtype=bool)
    used[incidence.indices] = True
    out = np.full(p, -1)
    out[used] = np.unique(found[used], return_inverse=True)[1]
    return out


def choose_landmarks(
    rows: Rows,
    weights: FloatArray,
    most: int,
    random: np.random.RandomState,
    *,
    are_rows: bool = False,
    n_jobs: int | None = None,
    like: Tensor | None = None,
) -> Rows:
    """At most so many landmarks for distinct rows: all of them, or centres of them, or some of them (``are_rows``).

    With a tensor ``like``, centres are searched on its device, and are the same.
    """
    n = rows.shape[0]
    if n <= most:
        return rows
    landmarks = rows[np.sort(random.choice(n, most, replace=False))]
    if are_rows:
        return landmarks
    for _ in range(LLOYD_STEPS):
        if like is None or len(landmarks) < 2:
            nearest = nearest_row(None, rows, landmarks, n_jobs)
        else:
            nearest = nearest_landmark(np.asarray(rows), np.asarray(landmarks), like)
        of_centres = sparse.csr_array((weights, (nearest, np.arange(n))), shape=(len(landmarks), n))
        volume = np.bincount(nearest, weights, len(landmarks))
        filled = volume > 0
        landmarks = (of_centres @ rows)[filled] / volume[filled, None]
    return landmarks


def canonical_order(rows: Rows) -> IntArray:
    """An order of distinct rows that neither units nor signs nor the order of columns change.

    Rows are sorted by their distance from the mean, ties by the distance from another one: that of the first half of
    the rows, weighted by their place in the order, as long as this parts any, then of all rows. What ties to the end is
    nearly symmetric, and is sorted by its columns. Sparse rows have the order of equal dense ones.
    """
    rows = _finite(rows)
    n = int(rows.shape[0])
    order = np.arange(n)
    starts = order == 0  # True for a row that is not tied with the one before it
    tied, last = _tied_places(starts), (n - 1) // 2
    while len(tied):
        group = np.cumsum(starts)
        weights = np.empty(n)
        weights[order] = np.maximum(group[last] + 1 - group, 0)
        squares = _squares_from(rows, rows.T @ weights / weights.sum())[order[tied]]
        within = np.lexsort((squares, group[tied]))
        order[tied] = order[tied][within]
        squares = squares[within]
        starts[tied[1:]] |= np.diff(squares) > TIE * np.maximum(squares[1:], np.median(squares))
        tied = _tied_places(starts)
        if starts.sum() == group[-1]:
            if last == n - 1:
                break
            last = n - 1
    if len(tied):
        order[tied] = order[tied][_order_by_columns(rows[order[tied]], np.cumsum(starts)[tied])]
    return order


def _finite(rows: Rows) -> Rows:
    """Rows in float64 with numbers in the place of gaps."""
    if sparse.issparse(rows):
        return sparse.csr_array(rows, dtype=np.float64)
    filled = np.asarray(rows, dtype=np.float64)
    return filled if np.isfinite(filled).all() else np.nan_to_num(filled)


def _tied_places(starts: np.ndarray) -> IntArray:
    """Places in an order where a row is tied with the one before or behind it."""
    same = ~starts[1:]
    return np.flatnonzero(np.append(same, False) | np.append(False, same))


def _squares_from(rows: Rows, centre: FloatArray) -> FloatArray:
    """|x − c|² of every row, (n,)."""
    if sparse.issparse(rows):
        found: FloatArray = squared_norms(rows) - 2 * (rows @ centre) + centre @ centre
        return found
    return squared_norms(rows - centre)


def _order_by_columns(rows: Rows, group: IntArray) -> IntArray:
    """The order of rows by (group, first column, second column, …)."""
    if not sparse.issparse(rows):
        return np.lexsort((*rows.T[::-1], group))
    rows = sparse.csr_array(rows, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    # The sooner a row has an entry, the larger it is if that is positive, the smaller if it is negative.
    sooner = np.sign(rows.data) * (rows.shape[1] - rows.indices)
    entries = [*zip(sooner.tolist(), rows.data.tolist(), strict=True)]
    ends = rows.indptr.tolist()
    keys = [
        (number, *entries[start:stop], (0.0, 0.0))
        for number, start, stop in zip(group.tolist(), ends[:-1], ends[1:], strict=True)
    ]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)
