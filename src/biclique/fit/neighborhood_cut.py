"""The default: the cut of the hypergraph of neighbourhoods, in three passes over rows with r entries each.

With s = Φᵀw, δ = Φs, ρ = sᵀs, S the shrunken degrees and B the matrix of the cut (``spectral/cut.py``), B = AAᵀ for
A = W^(1/2) S^(−1/2) Φ (I − ssᵀ/ρ). So its eigenpairs come from the sparse p × p matrix G = Φᵀ W S⁻¹ Φ, without its part
along s.

At order 2 (S = δ), G s = s: G is the normalised adjacency of a graph on the landmarks, whose edges diag(s) G diag(s)
have the degrees s². Connected components of that graph are those of the hypergraph, and come first; the eigenpairs of
each are found by a factorisation of a small graph, and by multigrid of a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from biclique._typing import FloatArray, IntArray, Rows
from biclique.device.torch_tiles import place_rows
from biclique.exceptions import ParameterError
from biclique.features.device_neighborhoods import Tensor
from biclique.features.maps import FeatureMap, block_starts, sum_blocks
from biclique.features.neighborhoods import (
    DRAWN_ROWS,
    LANDMARKS,
    LANDMARKS_A_CLUSTER,
    NEIGHBORS,
    NeighborhoodMap,
    canonical_order,
    choose_landmarks,
    joined_components,
)
from biclique.fit.choose import OF_NEIGHBORHOODS, Chosen
from biclique.fit.low_rank import RowSums, SmallPairs
from biclique.fit.settings import Settings
from biclique.fit.three_passes import Mapped
from biclique.gram.sparse import SparseGram, scaled_graph
from biclique.kernels.gower import Columns, Gower
from biclique.progress import Progress
from biclique.rows.array import ArrayRows, Block, RowSource, Vertices, distinct_rows, drawn
from biclique.rows.checks import check_clusters_fit, warn_about_spread
from biclique.runtime.memory import release_pages, require_memory
from biclique.runtime.namespace import float64, moved, namespace, on_host, rows_on_host, to_host
from biclique.runtime.threads import run_panels
from biclique.spectral.components import parted_eigenpairs
from biclique.spectral.cut import NormalizedCut, check_order
from biclique.spectral.multigrid import graph_eigenpairs
from biclique.spectral.shift_invert import FACTORED, small_graph_eigenpairs
from biclique.spectral.solver import EigenResult, solves_directly, top_eigenpairs, warn_unless_converged

TOLERANCE = 1e-5
"""Residuals of eigenpairs, as a share of the eigengap, unless ``eigen_tol`` is given."""

BYTES_PER_ROW = 60
"""Of rows in memory: the landmarks of a row twice, its label, and what counts them."""


class KeptMap(FeatureMap):
    """φ(x) of rows that are φ(x) already, or the numbers of their landmarks: these are found once."""

    exact = is_sparse = True
    sparse_rows = 2**16

    def __init__(self, of_rows: NeighborhoodMap) -> None:
        self.of_rows, self.size, self.dtype = of_rows, of_rows.size, of_rows.dtype

    def columns(self, X: Rows) -> Any:
        return X if sparse.issparse(X) else self.of_rows.columns_of(X)


@dataclass
class FirstPass(RowSums):
    """s = Φᵀw, Σw, rows, and which landmarks are connected."""

    parts: IntArray  # (p,), the connected component of every landmark, −1 for one without rows

    @classmethod
    def of_block(cls, feature_map: FeatureMap, block: Block, n_jobs: int | None) -> Self:
        if not on_host(block.rows):
            phi: Any = feature_map.columns(block.rows)
            w = moved(float64(block.weights), block.rows)
            return cls(to_host(phi.sums(w)), float(w.sum()), len(w), joined_components(phi.links()))

        def add(total: FirstPass, phi: sparse.csr_array, place: slice) -> FirstPass:
            w = float64(block.weights[place])
            counted = phi if (w > 0).all() else phi[np.flatnonzero(w > 0)]
            total += FirstPass(phi.T @ w, float(w.sum()), len(w), joined_components(counted))
            return total

        p = feature_map.size
        found: Self = sum_blocks(feature_map, block.rows, lambda: cls(np.zeros(p), 0.0, 0, np.full(p, -1)), add, n_jobs)
        return found

    def __iadd__(self, other: Self) -> Self:
        super().__iadd__(other)
        if self.parts.max() < 0:
            self.parts = other.parts
        elif other.parts.max() >= 0:
            # A component of either side is like a row that has all its landmarks.
            self.parts = joined_components(sparse.vstack([_members(self.parts), _members(other.parts)]))
        return self


def _members(parts: IntArray) -> sparse.csr_array:
    """Which landmarks every component has, (components, p)."""
    used = np.flatnonzero(parts >= 0)
    return sparse.csr_array((np.ones(len(used)), (parts[used], used)), shape=(int(parts.max()) + 1, len(parts)))


def map_neighborhoods(
    settings: Settings, source: RowSource, random: np.random.RandomState, progress: Progress
) -> Mapped:
    """Landmarks and the neighbourhoods of rows among them."""
    n_jobs, k, n, rank = settings.n_jobs, settings.n_clusters, source.n_rows, settings.rank
    if not isinstance(rank, str) and rank < settings.n_groups:
        raise ParameterError(
            f"rank={rank} landmarks are fewer than the {settings.n_groups} clusters: use rank='auto' or more."
        )
    if k is not None and n:  # without rows, the draw says why
        check_clusters_fit(k, n, source.n_counted)
    if source.in_memory and n:
        landmarks = BYTES_PER_ROW if source.device is None else 0  # those of a tensor are on its device
        size = n * (landmarks + 8 * settings.n_columns)
        require_memory(size, f"neighbourhoods of {n} rows", "pass a Dask collection.")
    pool, numbers, place = draw_rows(settings, source, np.random.RandomState(random.randint(2**31)))
    if settings.kernel.euclidean:
        warn_about_spread(pool.data, source.names)
    like = None if source.device is None else place_rows(pool.data, source.device)
    found = landmark_map(settings, source.columns, pool, np.random.RandomState(random.randint(2**31)), like)
    if found.size < pool.n:
        place = None  # landmarks are centres
    found, rows, first = with_few_components(found, source, settings.n_groups, n_jobs, progress, place)
    chosen = Chosen(*OF_NEIGHBORHOODS, n, columns=source.columns, rank=found.size, n_neighbors=found.n_neighbors)

    def solve(G: sparse.csr_array, s: FloatArray, order: float, n_vectors: int) -> SmallPairs:
        n_vectors = min(n_vectors, found.size - 1)
        pairs = pairs_beside(G, s, first.parts, order, n_vectors, settings.tolerance(TOLERANCE))
        warn_unless_converged(pairs)
        informative = pairs.values > pairs.residuals + float(np.finfo(np.float64).eps)  # else it may be 0
        return SmallPairs(pairs.values, pairs.vectors, pairs.residuals, informative)

    pool_rows = rows.held[moved(numbers, rows.held)] if source.in_memory else found.landmark_numbers(pool.data)
    order = 2.0 if isinstance(settings.order, str) else check_order(settings.order)
    return Mapped(chosen, found, pool, pool_rows, rows, KeptMap(found), first, (order,), solve=solve)


# Landmarks


def landmark_count(settings: Settings) -> int:
    """How many landmarks are wanted at most."""
    if settings.rank == "auto":
        return max(LANDMARKS, LANDMARKS_A_CLUSTER * settings.n_groups)
    return 2**62 if isinstance(settings.rank, str) else settings.rank


def draw_rows(
    settings: Settings, source: RowSource, random: np.random.RandomState
) -> tuple[Vertices, IntArray, IntArray | None]:
    """Distinct rows that landmarks and clusters come from, in an order that does not depend on how they came.

    Also their numbers in the source, if it is in memory, and, if all of its rows are drawn, which of them each row is.
    """
    size = source.n_rows if settings.rank == "all" else DRAWN_ROWS * landmark_count(settings)
    if not source.in_memory:
        distinct = distinct_rows(*source.draw(size, random), met_again=False)
        return in_canonical_order(settings, distinct, source.columns), np.empty(0, dtype=np.intp), None
    chosen = drawn(source.weights, size, random)
    distinct = distinct_rows(rows_on_host(source.held, chosen), source.weights[chosen], met_again=False)
    found = in_canonical_order(settings, distinct, source.columns)
    place: IntArray | None = None
    if len(chosen) == source.n_rows:
        place = np.empty(source.n_rows, dtype=np.intp)
        place[found.numbers] = np.arange(found.n)
        place = place[distinct.numbers[distinct.index]]
    return found, chosen[found.numbers], place


def in_canonical_order(settings: Settings, distinct: Vertices, columns: Columns | None) -> Vertices:
    """Distinct rows in their canonical order: of unit rows for angles, of columns in one unit for Gower distances."""
    rows = distinct.data
    if settings.kernel.by_angle:
        rows = normalize(rows)
    if columns is not None:
        rows = (rows - np.nan_to_num(columns.low)) / np.where(columns.span > 0, columns.span, 1.0)
    return distinct.some(canonical_order(rows))


def landmark_map(
    settings: Settings,
    columns: Columns | None,
    pool: Vertices,
    random: np.random.RandomState,
    like: Tensor | None = None,
) -> NeighborhoodMap:
    """The neighbourhoods of landmarks: all drawn rows, their centres, or, if these have no meaning, some rows."""
    metric: str | Gower = settings.kernel.metric
    if metric == "gower":
        metric = settings.kernel.gower(columns)
    are_rows = metric != "euclidean" or sparse.issparse(pool.data)
    landmarks = choose_landmarks(
        pool.data, pool.weights, landmark_count(settings), random, are_rows=are_rows, n_jobs=settings.n_jobs, like=like
    )
    alone = landmarks.shape[0] <= settings.n_groups  # every landmark is a cluster
    return NeighborhoodMap(landmarks, 1 if alone else settings.n_neighbors or NEIGHBORS, metric)


def with_few_components(
    found: NeighborhoodMap,
    source: RowSource,
    n_clusters: int,
    n_jobs: int | None,
    progress: Progress,
    place: IntArray | None = None,
) -> tuple[NeighborhoodMap, RowSource, FirstPass]:
    """The hypergraph with r doubled until it has at most k connected components, φ of the rows, and their sums.

    ``place`` says which landmark every row is, if all are.
    """
    while True:
        progress.say(f"{found.size} landmarks, {found.n_neighbors} of them a row")
        rows = keep_columns(found, source, n_jobs, progress, place)
        first = FirstPass.of(KeptMap(found), rows, n_jobs, progress)
        few = first.parts.max() < n_clusters or n_clusters == 1
        if few or found.n_neighbors >= found.size:
            return found, rows, first
        found = found.with_neighbors(2 * found.n_neighbors)


def keep_columns(
    found: NeighborhoodMap, source: RowSource, n_jobs: int | None, progress: Progress, place: IntArray | None
) -> RowSource:
    """The numbers of the landmarks of all rows, found once; φ itself if all rows are landmarks.

    They take some 14 bytes a row, where the rows are. In memory and on a device they are one block, whose work threads
    share.
    """
    dtype = np.min_scalar_type(found.size)
    if not source.in_memory:
        return source.keep(found.landmark_numbers, found.n_neighbors, dtype, "nearest landmarks", progress)
    X = source.placed()
    weights = source.weights
    if not on_host(X):
        return ArrayRows(found.landmark_numbers(X), moved(float64(weights), X), block_rows=X.shape[0])
    if place is not None:
        return ArrayRows(found.columns_of(found.own_numbers()[place]), weights, block_rows=X.shape[0])
    tick = (lambda share: progress.share("search for the nearest landmarks", share)) if progress.enabled else None
    step = block_starts(found, X).step

    def search(place: slice) -> IntArray:
        numbers = found.landmark_numbers(X[place]).astype(dtype)
        release_pages(X[place])
        return numbers

    blocks = run_panels(search, X.shape[0], step, n_jobs=n_jobs, tick=tick)
    return ArrayRows(found.joined_numbers(blocks), weights, block_rows=X.shape[0])


# The small matrix


def landmark_pairs(G: sparse.csr_array, s: FloatArray, parts: IntArray, k: int, tol: float) -> EigenResult:
    """The leading eigenpairs of G beside s, at order 2: the cut of the graph diag(s) G diag(s), part by part."""
    used = np.flatnonzero(parts >= 0)
    if len(used) < len(parts):  # a centre that is in no neighbourhood has no coordinate
        found = landmark_pairs(sparse.csr_array(G[used][:, used]), s[used], parts[used], k, tol)
        vectors, images = np.zeros((2, len(parts), len(found.values)))
        vectors[used], images[used] = found.vectors, found.images
        return replace(found, vectors=vectors, images=images, space=None)
    cut = NormalizedCut(SparseGram(scaled_graph(G, s), n_jobs=1), 2.0)

    def solve(own: NormalizedCut, wanted: int) -> EigenResult:
        solver = small_graph_eigenpairs if own.shape[0] <= FACTORED else graph_eigenpairs
        return solver(own, wanted, tol=tol, random_state=0)

    return parted_eigenpairs(cut, parts, k, solve)


class _Deflated:
    """(I − uuᵀ) G (I − uuᵀ) for a unit vector u."""

    def __init__(self, G: sparse.csr_array | Tensor, unit: FloatArray) -> None:
        self.G, self.like, self.shape = G, unit, G.shape

    def matmat(self, V: FloatArray) -> FloatArray:
        product = self.G @ (V - self.like[:, None] * (self.like @ V))
        return product - self.like[:, None] * (self.like @ product)  # type: ignore[no-any-return]


def pairs_beside(
    G: sparse.csr_array | Tensor, s: FloatArray, parts: IntArray, order: float, k: int, tol: float
) -> EigenResult:
    """The leading eigenpairs of G beside s: at orders above 2, parts have no eigenvectors of their own."""
    unit = s / np.linalg.norm(s)
    if not on_host(G):
        if k > 0 and (order > 2 or parts.max() == 0) and not solves_directly(len(s), k):
            there = moved(unit, G)
            found = top_eigenpairs(_Deflated(G, there), k, tol=tol, deflate=there, random_state=0)
            if found.converged:
                return replace(found, vectors=to_host(found.vectors), images=to_host(found.images), space=None)
        first, second = to_host(namespace(G).nonzero(G)).T
        G = sparse.csr_array((to_host(G[moved(first, G), moved(second, G)]), (first, second)), shape=G.shape)
    if order == 2:
        return landmark_pairs(G, s, parts, k, tol)
    return top_eigenpairs(_Deflated(G, unit), k, tol=tol, deflate=unit, random_state=0)


# Of Φ in memory


def scaled_columns(phi: sparse.csr_array, weights: FloatArray, shrunken: FloatArray) -> sparse.csr_array:
    """A = W^(1/2) S^(−1/2) Φ."""
    scale = np.sqrt(weights / shrunken)
    return sparse.csr_array(sparse.dia_array((scale[None, :], [0]), shape=(len(scale),) * 2) @ phi)


def embedded_columns(
    phi: sparse.csr_array, weights: FloatArray, parts: IntArray, n_columns: int, tol: float
) -> tuple[FloatArray, FloatArray]:
    """The leading eigenvectors v/√w of B at order 2, the trivial one first, (n, n_columns), and their eigenvalues λ.

    If AᵀA y = λy, the eigenvector is v = A y/√λ.
    """
    s = phi.T @ weights
    degrees = phi @ s
    A = scaled_columns(phi, weights, degrees)
    pairs = landmark_pairs(sparse.csr_array(A.T @ A), s, parts, n_columns - 1, tol)
    found = (phi @ pairs.vectors) / np.sqrt(np.maximum(pairs.values, np.finfo(float).tiny))
    return np.column_stack([np.sqrt(degrees / (s @ s)), found / np.sqrt(degrees)[:, None]]), pairs.values


def map_of_vertices(
    settings: Settings, columns: Columns | None, vertices: Vertices, random: np.random.RandomState
) -> NeighborhoodMap:
    """The neighbourhoods of rows in memory."""
    found = landmark_map(settings, columns, in_canonical_order(settings, vertices, columns), random)
    source = ArrayRows(vertices.data, vertices.weights)
    return with_few_components(found, source, settings.n_groups, settings.n_jobs, Progress(False))[0]


def factored_pairs(cut: NormalizedCut, phi: sparse.csr_array, k: int, tol: float) -> EigenResult:
    """The k leading eigenpairs of B itself: v = A u / √λ for the pairs (λ, u) of AᵀA."""
    A = scaled_columns(phi, cut.weights, cut.shrunken)
    G = sparse.csr_array(A.T @ A)
    found = pairs_beside(G, phi.T @ cut.weights, joined_components(phi), cut.order, k, tol)
    vectors = (A @ found.vectors) / np.sqrt(np.maximum(found.values, np.finfo(float).tiny))
    images = cut.matmat(vectors)
    residuals = np.linalg.norm(images - vectors * found.values, axis=0)
    return replace(found, vectors=vectors, images=images, residuals=residuals, space=None)
