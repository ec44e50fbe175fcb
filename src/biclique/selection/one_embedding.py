"""One embedding of some rows that serves every number of clusters: a neighbour graph, made one piece, at order 2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from biclique._typing import FloatArray, IntArray, Rows
from biclique.gram import NeighborGram, SparseGram
from biclique.neighbors.index import NeighborIndex, components
from biclique.runtime.namespace import unit_rows
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.joining import WEAK, connect
from biclique.spectral.multigrid import graph_eigenpairs

GRAPH_NEIGHBORS = 10
"""Neighbours of a row, itself counted: the graph that did best alone at a known number of clusters."""

GRAPH_WEIGHTS = "self_tuning"

MOST_DENSE = 2_000
"""Rows up to which B is decomposed as a dense matrix, in about a second."""

EIGEN_TOL = 0.01
"""Of multigrid: residuals fall below this share of the eigengap."""

LLOYD_STEPS = 100
"""Steps of k-means; a handful is usual."""


@dataclass(frozen=True)
class OneEmbedding:
    """Eigenvectors of one graph: the first k columns are the embedding for k clusters."""

    rows: FloatArray  # (n, columns); the first column is √degree, normalised
    values: FloatArray  # (columns − 1,), eigenvalues of B, descending
    weights: FloatArray  # (n,)

    @classmethod
    def of(cls, rows: Rows, weights: FloatArray, n_columns: int, graph: str = GRAPH_WEIGHTS) -> OneEmbedding:
        """The leading eigenvectors of D^(−1/2) K D^(−1/2), K the neighbour graph of the rows as one piece."""
        K = connected_graph(rows, weights, n_columns, graph)
        n = K.shape[0]
        k = min(n_columns, n) - 1
        cut = NormalizedCut(SparseGram(K, n_jobs=1), 2.0, weights)
        root = np.sqrt(weights)
        trivial = np.asarray(cut.trivial)
        values: FloatArray = np.empty(0)
        vectors: FloatArray = np.empty((n, 0))
        if k > 0 and n > MOST_DENSE:
            found = graph_eigenpairs(cut, k, tol=EIGEN_TOL, max_iter=100, random_state=np.random.RandomState(0))
            values, vectors = found.values, found.vectors
        elif k > 0:
            scale = root / np.sqrt(cut.shrunken)
            B = scale[:, None] * K.toarray() * scale
            B -= np.outer(trivial, trivial)  # the trivial pair has the eigenvalue 1
            values, vectors = (part[..., ::-1] for part in eigh(B, subset_by_index=(n - k, n - 1)))
        return cls(np.column_stack([trivial, vectors]) / root[:, None], values, weights)

    def scaled(self, n_clusters: int) -> FloatArray:
        """The rows for so many clusters: the first columns, scaled to length 1."""
        return unit_rows(self.rows[:, :n_clusters])

    def labels(self, n_clusters: int) -> IntArray:
        """k-means of the rows for k clusters; nothing random."""
        return steady_kmeans(self.scaled(n_clusters), self.weights, n_clusters)


def steady_kmeans(rows: FloatArray, weights: FloatArray, n_clusters: int) -> IntArray:
    """k-means from rows that lie far from each other; nothing random; labels 0, 1, … without gaps."""
    n = len(rows)
    labels = np.argmin(_squares(rows, rows[_far_rows(rows, n_clusters)]), axis=1)
    weighted = weights[:, None] * rows
    for _ in range(LLOYD_STEPS):
        member = sparse.csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, n_clusters))
        sizes = np.bincount(labels, weights, n_clusters)
        centres = np.asarray(member.T @ weighted) / np.where(sizes > 0, sizes, 1.0)[:, None]
        new = np.argmin(np.where(sizes > 0, _squares(rows, centres), np.inf), axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
    return np.unique(labels, return_inverse=True)[1]


def connected_graph(rows: Rows, weights: FloatArray, most_clusters: int, graph: str) -> sparse.csr_array:
    """The neighbour graph without loops; dust is tied to the rest, and parts to their nearest parts.

    A tie between parts weighs ½ r_i r_j / |x_i − x_j|², r the distance to the last neighbour: parts that are nearer to
    each other are tied more. So for few clusters near parts are one.
    """
    gram = _graph(rows, graph)
    K = connect(gram, weights, most_clusters, most_clusters).gram.K
    i, j, gaps = shortest_ties(rows, components(K, WEAK))
    tie = 0.5 * np.minimum(gram.radii[i] * gram.radii[j] / gaps**2, 1.0)
    ties = sparse.csr_array((tie, (i, j)), shape=K.shape)
    return sparse.csr_array(K + ties + ties.T)


def count_parts(rows: Rows, weights: FloatArray, most: int) -> int:
    """The largest number k ≤ ``most`` for which k parts of the neighbour graph have √(n/k) rows or more; at least 1."""
    sizes = np.sort(np.bincount(components(_graph(rows, GRAPH_WEIGHTS).K, WEAK), weights))[::-1][:most]
    enough = sizes >= np.sqrt(weights.sum() / np.arange(1, len(sizes) + 1))
    return int(np.flatnonzero(enough).max(initial=0)) + 1


def _graph(rows: Rows, graph: str) -> NeighborGram:
    search = "exact" if rows.shape[0] <= MOST_DENSE else "auto"
    return NeighborGram.from_rows(rows, GRAPH_NEIGHBORS, graph, search=search, n_jobs=1)


def shortest_ties(rows: Rows, part_of: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """The shortest connections that make one piece of all parts: their ends and lengths, one less than parts."""
    first, second, gaps = [], [], []
    while part_of.max(initial=0) > 0:
        inner, outer = np.flatnonzero(part_of == 0), np.flatnonzero(part_of != 0)
        gap, near = NeighborIndex(rows[inner], search="exact", n_jobs=1).query(rows[outer], 1)
        best = int(np.argmin(gap[:, 0]))
        first.append(inner[near[best, 0]])
        second.append(outer[best])
        gaps.append(float(gap[best, 0]))
        joined = np.where(part_of == part_of[outer[best]], 0, part_of)
        part_of = np.unique(joined, return_inverse=True)[1]
    return np.array(first, dtype=np.intp), np.array(second, dtype=np.intp), np.array(gaps, dtype=float)


def _squares(rows: FloatArray, centres: FloatArray) -> FloatArray:
    """|x − c|² up to |x|², (n, k)."""
    return np.asarray(np.einsum("ij,ij->i", centres, centres) - 2 * rows @ centres.T)


def _far_rows(rows: FloatArray, k: int) -> IntArray:
    """k rows, each farthest from the span of those before; the first row is the first."""
    rest, found = rows.copy(), list[int]()
    for _ in range(k):
        lengths = np.einsum("ij,ij->i", rest, rest)
        found.append(int(np.round(lengths, 9).argmax()))
        if lengths[found[-1]] > 1e-12:
            direction = rest[found[-1]] / np.sqrt(lengths[found[-1]])
            rest -= np.outer(rest @ direction, direction)
    return np.array(found)
