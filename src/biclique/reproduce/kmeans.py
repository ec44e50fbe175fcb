"""Many runs of plain k-means at once, as the paper's repeats need: one k-means++ start each."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from biclique._typing import FloatArray, IntArray

MOST_STEPS = 100


def repeated_kmeans(rows: FloatArray, k: int, n_repeats: int, random: np.random.RandomState) -> IntArray:
    """Labels of ``n_repeats`` runs, shape (n_repeats, n).

    A run starts from k-means++ and steps until no label changes, at most 100 times; an empty cluster takes the point
    that is farthest from its centre.
    """
    n = len(rows)
    centres = _plus_plus(rows, k, n_repeats, random)  # (R, k, d)
    labels = np.full((n_repeats, n), -1)
    active = np.arange(n_repeats)
    for _ in range(MOST_STEPS):
        distances = _squared_distances(rows, centres[active])  # (A, n, k)
        found = distances.argmin(axis=2)
        moved = (found != labels[active]).any(axis=1)
        labels[active] = found
        active = active[moved]
        if not len(active):
            break
        centres[active] = _means(rows, found[moved], k, distances[moved])
    return labels


def _squared_distances(rows: FloatArray, centres: FloatArray) -> FloatArray:
    """|x_i − c_rj|², shape (R, n, k)."""
    inner = np.einsum("nd,rkd->rnk", rows, centres, optimize=True)
    lengths = np.einsum("rkd,rkd->rk", centres, centres)
    return np.asarray(np.einsum("nd,nd->n", rows, rows)[None, :, None] - 2 * inner + lengths[:, None, :])


def _plus_plus(rows: FloatArray, k: int, n_repeats: int, random: np.random.RandomState) -> FloatArray:
    """Starts drawn with probability proportional to the squared distance to the nearest one so far."""
    n, d = rows.shape
    centres = np.empty((n_repeats, k, d))
    centres[:, 0] = rows[random.randint(n, size=n_repeats)]
    nearest = np.full((n_repeats, n), np.inf)
    for j in range(1, k):
        latest = np.maximum(_squared_distances(rows, centres[:, j - 1 : j])[:, :, 0], 0.0)
        nearest = np.minimum(nearest, latest)
        totals = np.cumsum(nearest, axis=1)
        # Where all points coincide with a start already, any will do.
        drawn = random.random_sample(n_repeats) * totals[:, -1]
        chosen = np.minimum((totals < drawn[:, None]).sum(axis=1), n - 1)
        centres[:, j] = rows[chosen]
    return centres


def _means(rows: FloatArray, labels: IntArray, k: int, distances: FloatArray) -> FloatArray:
    """The means of clusters, shape (R, k, d)."""
    n_runs, n = labels.shape
    cells = (labels + k * np.arange(n_runs)[:, None]).ravel()
    counts = np.bincount(cells, minlength=n_runs * k)
    means = np.empty((n_runs * k, rows.shape[1]))
    for column in range(rows.shape[1]):
        means[:, column] = np.bincount(cells, np.tile(rows[:, column], n_runs), minlength=n_runs * k)
    means /= np.maximum(counts, 1)[:, None]
    for cell in np.flatnonzero(counts == 0):
        run = cell // k
        own = distances[run][np.arange(n), labels[run]]
        means[cell] = rows[int(own.argmax())]
    return means.reshape(n_runs, k, -1)


def error_rates(truth: IntArray, labels: IntArray, k: int) -> FloatArray:
    """The share of points outside the best matching of clusters and classes, for every run, shape (R,)."""
    n_runs, n = labels.shape
    cells = ((k * np.arange(n_runs)[:, None] + labels) * k + truth).ravel()
    counts = np.bincount(cells, minlength=n_runs * k * k).reshape(n_runs, k, k)
    best = np.max([counts[:, np.arange(k), list(order)].sum(axis=1) for order in permutations(range(k))], axis=0)
    return np.asarray(1 - best / n)
