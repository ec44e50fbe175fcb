"""Naive loops written straight from the definitions, for small sizes; the fast paths are tested against these."""

from __future__ import annotations

from itertools import product

import numpy as np
from sklearn.cluster import KMeans


def gram_tensor(K, m):
    """The biclique kernel of every m-tuple of points: Σ_γ Σ_ν κ(x_γ, t_ν) over two halves of m/2 points."""
    n, h = len(K), m // 2
    tensor = np.zeros((n,) * m)
    for index in product(range(n), repeat=m):
        for i in index[:h]:
            for j in index[h:]:
                tensor[index] += K[i, j]
    return tensor


def contracted(tensor):
    """Sum over every mode but the first of each half."""
    m = tensor.ndim
    n, h = len(tensor), m // 2
    out = np.zeros((n, n))
    for index in product(range(n), repeat=m):
        out[index[0], index[h]] += tensor[index]
    return out


def contracted_gram(K, m):
    """K^(m)/n^(m−2) = K + (c/n)(δ1ᵀ + 1δᵀ) + (c²/n²) ρ 11ᵀ with c = (m − 2)/2, for any real m."""
    n, c = len(K), (m - 2) / 2
    degrees = K.sum(axis=1)
    return K + c / n * (degrees[:, None] + degrees[None, :]) + c**2 / n**2 * K.sum()


def algorithm_1(K, m):
    """Eigenvalues and eigenvectors, descending, of D_m^(−1/2) K^(m) D_m^(−1/2), the paper's Algorithm 1."""
    Km = contracted_gram(K, m)
    root = np.sqrt(Km.sum(axis=1))
    values, vectors = np.linalg.eigh(Km / root[:, None] / root[None, :])
    return values[::-1], vectors[:, ::-1]


def modularity(K):
    """The same for K − δδᵀ/ρ, the limit m = ∞ without its trivial pair."""
    degrees = K.sum(axis=1)
    values, vectors = np.linalg.eigh(K - np.outer(degrees, degrees) / K.sum())
    return values[::-1], vectors[:, ::-1]


def projector(V):
    """The orthogonal projector onto the span of columns."""
    Q = np.linalg.qr(V)[0]
    return Q @ Q.T


def partition(embedding, k):
    """Plain k-means on rows, from many starts."""
    return KMeans(k, n_init=50, random_state=0, tol=1e-10).fit_predict(embedding)


def neighbor_gamma(X, weights, factor=0.2, neighbor=7):
    """γ = factor / weighted median of the squared distance to the 7th neighbour, by loops over distinct rows."""
    values = []
    for i, x in enumerate(X):
        others = sorted(float(sum((x - y) ** 2)) for j, y in enumerate(X) if j != i)
        values += [others[min(neighbor, len(others)) - 1]] * int(weights[i])
    return factor / float(np.median(values))


def extended(K, cross, m, weights, u, values):
    """The closed-form embedding of new points, one loop a sum."""
    n_new, n = cross.shape
    degrees = np.array([sum(weights[j] * K[i, j] for j in range(n)) for i in range(n)])
    total = sum(weights[i] * degrees[i] for i in range(n))
    mean = total / sum(weights)
    out = np.zeros((n_new, len(values)))
    for a in range(n_new):
        degree = sum(weights[j] * cross[a, j] for j in range(n))
        shrunken = 2 / m * degree + (1 - 2 / m) * mean
        for c, value in enumerate(values):
            first = sum(weights[j] * cross[a, j] * u[j, c] for j in range(n))
            second = degree * sum(weights[j] * degrees[j] * u[j, c] for j in range(n)) / total
            out[a, c] = (first - second) / (value * np.sqrt(shrunken))
    return out


def order_2_like_sklearn(K, k):
    """scikit-learn's embedding at order 2: the diagonal zeroed, rows divided by √degree."""
    K = K - np.diag(np.diagonal(K))
    vectors = algorithm_1(K, 2)[1][:, :k]
    return vectors / np.sqrt(K.sum(axis=1))[:, None]
