"""The comparison modellings by loops, straight from their definitions, one tuple at a time."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np

from tests.oracles import distance_to_span


def rbf(x, y):
    return np.exp(-0.4 * np.sum((x - y) ** 2))


def fitted_distances(points, dimension):
    """The distances of points to the affine subspace through their mean along their leading principal axes."""
    centred = points - points.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :dimension]
    return [float(np.linalg.norm(x - axes @ (axes.T @ x))) for x in centred]


def weight(name, points, *, gamma=1.0, squared=False, dimension=None, kernel=None):
    """w of one tuple of points (m, d)."""
    m = len(points)
    if name == "max":
        return max(kernel(x, y) for x, y in combinations(points, 2))
    if name == "biclique":
        return sum(kernel(x, t) for x in points[: m // 2] for t in points[m // 2 :])
    if name == "affine_eigenvalue":
        inner = np.array([[x @ y for y in points] for x in points])
        return np.exp(-gamma * max(np.linalg.eigvalsh(inner)[0], 0.0))
    if name == "affine_distance":
        return np.exp(-gamma * np.mean(fitted_distances(points, m - 2 if dimension is None else dimension)))
    if name == "vertex_distance":
        distances = [distance_to_span(points[v], np.delete(points, v, axis=0)) for v in range(m)]
        return np.exp(-gamma * sum(d**2 if squared else d for d in distances))
    if name == "dot":
        return sum(np.prod(points[:, column]) for column in range(points.shape[1]))
    raise ValueError(name)


def contraction(n, m, weigh, repeats=False):
    """A_ij = Σ over ordered choices of the other m − 2 indices of weigh(i, j, k_3, …), distinct unless ``repeats``."""
    A = np.zeros((n, n))
    choices = np.ndindex(*(n,) * m) if repeats else permutations(range(n), m)
    for index in choices:
        A[index[0], index[1]] += weigh(index)
    return A
