"""Weighted k-means of few rows, all starts at once.

scikit-learn's k-means takes most of its time to begin if there are a few hundred rows. Here a step is one product for
all starts together. Starts are those that scikit-learn's ``KMeans`` would draw from the same random numbers, and so
are the clusters, up to rounding.
"""

from __future__ import annotations

import numpy as np

from biclique._typing import FloatArray, IntArray

FEW_ENTRIES = 10_000
"""Rows times clusters up to which this is quicker than scikit-learn's k-means."""

STEPS, SHIFT = 300, 1e-8
"""Most Lloyd steps, and the squared shift of centres that ends them, as a share of the variance of a column."""


def spread_starts(
    rows: FloatArray, weights: FloatArray, n_clusters: int, n_starts: int, random: np.random.RandomState
) -> IntArray:
    """Rows to start from, (n_starts, n_clusters), by greedy k-means++.

    Each next row is drawn by weight times squared distance to the rows before it. Of 2 + ⌊log k⌋ such rows, the one
    that leaves the least of that sum is taken.
    """
    n, trials = len(rows), 2 + int(np.log(n_clusters))
    first, later = np.empty(n_starts), np.empty((n_starts, n_clusters - 1, trials))
    for start in range(n_starts):
        first[start] = random.random_sample()
        later[start] = random.uniform(size=(n_clusters - 1, trials))
    odds = np.cumsum(weights / weights.sum())
    chosen = np.empty((n_starts, n_clusters), dtype=np.intp)
    chosen[:, 0] = np.searchsorted(odds / odds[-1], first, side="right")
    squares, each = np.einsum("ij,ij->i", rows, rows), np.arange(n_starts)

    def distances(places: IntArray) -> FloatArray:
        """Squared distances of all rows to some, (…, n)."""
        product = rows[places] @ rows.T
        found: FloatArray = np.maximum(squares + squares[places][..., None] - 2 * product, 0.0)
        return found

    nearest = distances(chosen[:, 0])  # (n_starts, n)
    left = nearest @ weights
    for centre in range(1, n_clusters):
        marks, sums = later[:, centre - 1] * left[:, None], np.cumsum(weights * nearest, axis=1)
        drawn = np.empty(marks.shape, dtype=np.intp)
        for start in range(n_starts):
            drawn[start] = np.minimum(np.searchsorted(sums[start], marks[start]), n - 1)
        closer = np.minimum(distances(drawn), nearest[:, None])  # (n_starts, trials, n)
        potentials = closer @ weights
        best = np.argmin(potentials, axis=1)
        chosen[:, centre], nearest, left = drawn[each, best], closer[each, best], potentials[each, best]
    return chosen


def lloyd_together(
    rows: FloatArray, weights: FloatArray, centres: FloatArray
) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Centres where Lloyd steps from each start end, (s, k, columns), their inertias (s,), and which starts ended well.

    A start in which a cluster loses all its rows ends there.
    """
    k, centres = centres.shape[1], np.array(centres)
    weighted = np.column_stack([weights[:, None] * rows, weights])
    labels = np.full((len(centres), len(rows)), -1)
    well = np.ones(len(centres), dtype=bool)
    live, enough = np.arange(len(centres)), SHIFT * float(rows.var(axis=0).mean())
    for _ in range(STEPS):
        before = centres[live]
        nearest = _nearest(rows, before)
        sums = (nearest[:, None] == np.arange(k)[:, None]).astype(float) @ weighted
        whole = (sums[:, :, -1] > 0).all(axis=1)
        well[live] = whole
        moves = whole & (nearest != labels[live]).any(axis=1)
        labels[live], live = nearest, live[moves]
        centres[live] = sums[moves, :, :-1] / sums[moves, :, -1:]
        live = live[((centres[live] - before[moves]) ** 2).sum(axis=(1, 2)) > enough]
        if not len(live):
            break
    labels = _nearest(rows, centres)
    inertias = [float(weights @ ((rows - c[own]) ** 2).sum(axis=1)) for c, own in zip(centres, labels, strict=True)]
    return centres, np.array(inertias), well


def _nearest(rows: FloatArray, centres: FloatArray) -> IntArray:
    """The nearest centre of every start to every row, (s, n)."""
    scores: FloatArray = np.einsum("skd,skd->sk", centres, centres)[:, :, None] - 2 * (centres @ rows.T)
    return np.asarray(np.argmin(scores, axis=1))
