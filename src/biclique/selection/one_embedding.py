"""Embeddings of some rows for every number of clusters: the hypergraph of neighbourhoods, at order 2."""

from functools import cached_property
from typing import Self

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.features.neighborhoods import NEIGHBORS, NeighborhoodMap, joined_components
from biclique.fit.neighborhood_cut import embedded_columns
from biclique.runtime.namespace import unit_rows
from biclique.spectral.assign import lloyd_steps
from biclique.spectral.rounding import NearestCentre, assigned, few_distinct_rows, spread_out_rows

LLOYD_STEPS = 100
"""Most steps of k-means; a handful is usual."""

EIGEN_TOL = 1e-3
"""Residuals of eigenpairs, as a share of the eigengap."""


class OneEmbedding:
    """Eigenvectors of the hypergraph of some rows: the first k columns are the embedding for k clusters.

    Every row is a landmark. As in a fit, r is doubled until there are no more connected components than clusters; so
    few clusters may have another hypergraph than many.
    """

    def __init__(
        self, rows: Rows, weights: FloatArray, n_columns: int, n_neighbors: int | NeighborhoodMap = NEIGHBORS
    ) -> None:
        self.rows, self.weights, self.n_columns = rows, weights, min(n_columns, rows.shape[0])
        self.map = NeighborhoodMap(rows, n_neighbors) if isinstance(n_neighbors, int) else n_neighbors
        self.columns = self.map.columns(rows)  # Φ, (n, n)
        self.parts: IntArray = joined_components(self.columns)
        """The connected component of every row."""

    @cached_property
    def _wider(self) -> Self:
        """The same rows with neighbourhoods of twice the size."""
        return type(self)(self.rows, self.weights, self.n_columns, self.map.with_neighbors(2 * self.map.n_neighbors))

    @cached_property
    def _pairs(self) -> tuple[FloatArray, FloatArray]:
        return embedded_columns(self.columns, self.weights, self.parts, self.n_columns, EIGEN_TOL)

    def embedded(self, n_clusters: int) -> tuple[FloatArray, FloatArray]:
        """The rows (n, columns), the first column √degree, normalised; and the eigenvalues of B, descending."""
        if self.parts.max() >= n_clusters and self.map.n_neighbors < self.map.size:
            return self._wider.embedded(n_clusters)
        return self._pairs

    def scaled(self, n_clusters: int) -> FloatArray:
        """The rows for so many clusters: the first columns, scaled to length 1."""
        return unit_rows(self.embedded(n_clusters)[0][:, :n_clusters])

    def labels(self, n_clusters: int) -> IntArray:
        """k-means of the rows for k clusters; nothing random."""
        return steady_kmeans(self.scaled(n_clusters), self.weights, n_clusters)


def steady_kmeans(rows: FloatArray, weights: FloatArray, n_clusters: int) -> IntArray:
    """k-means from rows that lie far from each other; nothing random; labels 0, 1, … without gaps."""
    centres = few_distinct_rows(rows, n_clusters)
    if centres is None:
        centres = rows[spread_out_rows(rows, n_clusters)]
    labels = lloyd_steps(rows, weights, assigned(NearestCentre(centres), rows), LLOYD_STEPS).labels
    return np.unique(labels, return_inverse=True)[1]


def count_parts(parts: IntArray, weights: FloatArray, most: int) -> int:
    """The largest number k ≤ ``most`` for which k components have √(n/k) rows or more; at least 1."""
    sizes = np.sort(np.bincount(parts, weights))[::-1][:most]
    enough = sizes >= np.sqrt(weights.sum() / np.arange(1, len(sizes) + 1))
    return int(np.flatnonzero(enough).max(initial=0)) + 1
