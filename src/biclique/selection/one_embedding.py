"""Embeddings of some rows for every number of clusters: the hypergraph of neighbourhoods, at order 2."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.features.neighborhoods import NEIGHBORS, NeighborhoodMap, joined_components
from biclique.fit.neighborhood_cut import landmark_pairs
from biclique.neighbors.index import NeighborIndex
from biclique.runtime.namespace import unit_rows

LLOYD_STEPS = 100
"""Steps of k-means; a handful is usual."""

EIGEN_TOL = 1e-3
"""Residuals of eigenpairs, as a share of the eigengap."""


class OneEmbedding:
    """Eigenvectors of the hypergraph of some rows: the first k columns are the embedding for k clusters.

    Every row is a landmark. As in a fit, r is doubled until there are no more connected components than clusters; so
    few clusters may have another hypergraph than many.
    """

    def __init__(self, rows: Rows, weights: FloatArray, n_columns: int, n_neighbors: int = NEIGHBORS) -> None:
        self.weights, self.n_columns = weights, min(n_columns, rows.shape[0])
        self.maps, self.parts = [NeighborhoodMap(rows, n_neighbors)], list[IntArray]()
        self._rows = rows
        self._columns = [self.maps[0].columns(rows)]
        self.parts.append(joined_components(self._columns[0]))
        self._embedded: dict[int, tuple[FloatArray, FloatArray]] = {}

    def _level(self, n_clusters: int) -> int:
        """Which hypergraph has at most so many components."""
        level = 0
        while self.parts[level].max() >= n_clusters and self.maps[level].n_neighbors < self.maps[level].size:
            level += 1
            if level == len(self.maps):
                self.maps.append(self.maps[-1].with_neighbors(2 * self.maps[-1].n_neighbors))
                self._columns.append(self.maps[-1].columns(self._rows))
                self.parts.append(joined_components(self._columns[-1]))
        return level

    def embedded(self, n_clusters: int) -> tuple[FloatArray, FloatArray]:
        """The rows (n, columns), the first column √degree, normalised; and the eigenvalues of B, descending."""
        level = self._level(n_clusters)
        if level not in self._embedded:
            self._embedded[level] = _solved(self._columns[level], self.weights, self.parts[level], self.n_columns)
        return self._embedded[level]

    @cached_property
    def rows(self) -> FloatArray:
        """The rows for as many clusters as there are columns."""
        return self.embedded(self.n_columns)[0]

    @cached_property
    def values(self) -> FloatArray:
        """The eigenvalues for as many clusters as there are columns."""
        return self.embedded(self.n_columns)[1]

    def scaled(self, n_clusters: int) -> FloatArray:
        """The rows for so many clusters: the first columns, scaled to length 1."""
        return unit_rows(self.embedded(n_clusters)[0][:, :n_clusters])

    def labels(self, n_clusters: int) -> IntArray:
        """k-means of the rows for k clusters; nothing random."""
        return steady_kmeans(self.scaled(n_clusters), self.weights, n_clusters)


def _solved(
    phi: sparse.csr_array, weights: FloatArray, parts: IntArray, n_columns: int
) -> tuple[FloatArray, FloatArray]:
    """The leading eigenvectors v/√w of B for K = ΦΦᵀ, (n, columns), and their eigenvalues."""
    s = phi.T @ weights
    degrees = phi @ s
    total = float(s @ s)
    scale = sparse.dia_array((np.sqrt(weights / degrees)[None, :], [0]), shape=(len(weights),) * 2)
    A = sparse.csr_array(scale @ phi)
    pairs = landmark_pairs(sparse.csr_array(A.T @ A), s, parts, n_columns - 1, EIGEN_TOL)
    found = (phi @ pairs.vectors) / np.sqrt(np.maximum(pairs.values, np.finfo(float).tiny))
    return np.column_stack([np.sqrt(degrees / total), found / np.sqrt(degrees)[:, None]]), pairs.values


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


def count_parts(parts: IntArray, weights: FloatArray, most: int) -> int:
    """The largest number k ≤ ``most`` for which k components have √(n/k) rows or more; at least 1."""
    sizes = np.sort(np.bincount(parts, weights))[::-1][:most]
    enough = sizes >= np.sqrt(weights.sum() / np.arange(1, len(sizes) + 1))
    return int(np.flatnonzero(enough).max(initial=0)) + 1


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
