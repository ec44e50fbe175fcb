"""Affine subspaces by inhomogeneous hyperedges: the pieces of Li and Milenkovic's protocol.

An edge is p = d + 1 points drawn together, which span an affine subspace of dimension d, and one more point. Cutting a
vertex off costs exp(−dist²/σ), dist its distance to the affine span of the others; only the pairs of a drawn point and
the other one are linked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biclique._typing import FloatArray, IntArray

RANK = 1e-10
"""Directions below this share of the largest are none."""


def draw_together(labels: IntArray, size: int, n_draws: int, random: np.random.RandomState) -> IntArray:
    """``n_draws`` sets of points of one cluster each, shape (n_draws, size).

    A cluster is drawn as often as its share of the points; one with fewer points than ``size`` draws from all.
    """
    n = len(labels)
    members = {label: np.flatnonzero(labels == label) for label in np.unique(labels).tolist()}
    draws = np.empty((n_draws, size), dtype=np.intp)
    for i, first in enumerate(random.randint(n, size=n_draws)):
        inside = members[int(labels[first])]
        draws[i] = random.choice(inside if len(inside) >= size else n, size, replace=False)
    return draws


def edge_distances(X: FloatArray, draws: IntArray) -> FloatArray:
    """dist² of every vertex of every edge to the affine span of the others, shape (n_draws, p + 1, n).

    Entry [i, j, y] for j < p is that of the j-th drawn point in the edge draws[i] ∪ {y}, entry [i, p, y] that of y
    itself. With r another drawn point, U an orthonormal basis of the directions from r to the remaining ones, b and y'
    the parts of x_j − r and y − r that are orthogonal to U,

        dist²(x_j) = |b|² − ⟨b, y'⟩²/|y'|²,   dist²(y) = |y'|² − ⟨b, y'⟩²/|b|²,

    so that all of them come from one matrix product. Where y is drawn itself, the entries mean nothing.
    """
    n, d = X.shape
    n_draws, p = draws.shape
    out = np.empty((n_draws, p + 1, n))
    squares = np.einsum("nd,nd->n", X, X)
    for j in range(p):
        others = [(j + step) % p for step in range(1, p)]
        base = X[draws[:, others[0]]]  # r, (n_draws, d)
        basis = _directions(X[draws[:, others[1:]]] - base[:, None, :])  # (n_draws, p − 2, d)
        b = X[draws[:, j]] - base
        b = b - np.einsum("ikd,ik->id", basis, np.einsum("ikd,id->ik", basis, b))
        frame = np.concatenate([basis, b[:, None, :], base[:, None, :]], axis=1)  # (n_draws, p, d)
        product = (X @ frame.reshape(-1, d).T).T.reshape(n_draws, p, n)
        from_base = np.einsum("ikd,id->ik", frame, base)
        distance = np.maximum(squares + from_base[:, -1:] - 2 * product[:, -1], 0.0)  # |y − r|²
        along = product[:, :-1] - from_base[:, :-1, None]  # ⟨frame, y − r⟩
        beside = np.maximum(distance - (along[:, :-1] ** 2).sum(axis=1), 0.0)  # |y'|²
        length = np.einsum("id,id->i", b, b)[:, None]
        inner = along[:, -1] ** 2
        out[:, j] = length - np.divide(inner, beside, out=np.zeros_like(inner), where=beside > RANK * distance)
        if j == p - 1:
            scale = np.broadcast_to(length, inner.shape)
            out[:, p] = beside - np.divide(inner, scale, out=np.zeros_like(inner), where=scale > 0)
    return np.maximum(out, 0.0, out=out)


def _directions(vectors: FloatArray) -> FloatArray:
    """An orthonormal basis of the rows of every matrix of a stack, zero rows where they are dependent."""
    if vectors.shape[1] == 0:
        return vectors
    _, singular, right = np.linalg.svd(vectors, full_matrices=False)
    kept = singular > RANK * singular[:, :1]
    return np.asarray(np.where(kept[:, :, None], right, 0.0))


def linked_pairs(costs: FloatArray, draws: IntArray) -> FloatArray:
    """The weights of pairs (drawn, other), summed over edges, symmetric, clipped at zero; dense, (n, n).

    costs has the shape of ``edge_distances``. As in the authors' programme the pair of a drawn point v with the other
    point y of an edge of s = p + 1 vertices has w_v/(s − 2) + w_y/(s − 1) − Σ_x w_x/((s − 1)(s − 2)).
    """
    n_draws, p = draws.shape
    n = costs.shape[2]
    drawn = costs[:, :p]
    # For p = 1 there are no two drawn points, and an edge is a pair.
    spare = max(p - 1, 1)
    pairs = drawn / spare + (costs[:, p] / p - costs.sum(axis=1) / (p * spare))[:, None, :]
    rows = np.arange(n_draws)[:, None]
    for j in range(p):
        pairs[rows, j, draws] = 0.0  # a drawn point is no other point
    A = np.zeros((n, n))
    np.add.at(A, draws.ravel(), pairs.reshape(n_draws * p, n))
    A = A + A.T
    np.fill_diagonal(A, 0.0)
    return np.maximum(A, 0.0, out=A)


@dataclass(frozen=True)
class AffineSubspace:
    """The affine subspace of dimension d or less that fits points best."""

    origin: FloatArray  # (n_features,)
    basis: FloatArray  # (≤ d, n_features), orthonormal rows
    residual: float
    """The points' total squared distance to it."""

    def squared_distances(self, X: FloatArray) -> FloatArray:
        """dist² of rows, shape (n,)."""
        centred = X - self.origin
        rest = centred - (centred @ self.basis.T) @ self.basis
        return np.asarray(np.einsum("nd,nd->n", rest, rest))


def fit_subspace(X: FloatArray, dimension: int) -> AffineSubspace:
    """Total least squares: the mean, and the leading right singular vectors of the centred rows."""
    origin = X.mean(axis=0)
    _, singular, right = np.linalg.svd(X - origin, full_matrices=False)
    return AffineSubspace(origin, right[:dimension], float((singular[dimension:] ** 2).sum()))


def fit_subspaces(X: FloatArray, labels: IntArray, dimension: int) -> list[AffineSubspace]:
    """The subspace of every cluster, in the order of the labels."""
    return [fit_subspace(X[labels == label], dimension) for label in np.unique(labels)]
