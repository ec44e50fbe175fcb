"""The largest eigenpairs of B for a sparse, connected graph: LOBPCG under a multigrid cycle.

On the neighbour graph of long, thin clusters the eigenvalues crowd at the top (gaps of 1e-7 and less), and a
Krylov space of B alone needs thousands of passes. With C = W^(1/2) S^(−1/2) K S^(−1/2) W^(1/2) (B without its rank-one
term) and μ just above the wanted eigenvalues, μI − C is a graph Laplacian up to a diagonal: what is hard about it is smooth
along edges, and a hierarchy of ever smaller graphs resolves that. Every level is the same problem,

    (K_l − d_l d_lᵀ) x = λ M_l x,   K_(l+1) = PᵀK_l P,   M_(l+1) = PᵀM_l P,   d_(l+1) = Pᵀd_l,

with K_0 = C, M_0 = I and K_0 − d_0 d_0ᵀ = B. The coarsest is solved whole; its vectors, prolonged and improved level by level,
start the iteration on B, and one V-cycle of the levels approximates (μM − K)⁻¹ inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from sklearn.utils import check_random_state

from biclique._typing import FloatArray, IntArray

COARSEST = 400
SPARE = 3
STRONG = 0.1
import os

NULL_SWEEPS = int(os.environ.get("NS", 5))
SHIFT = float(os.environ.get("SH", 0.1))
DEG = int(os.environ.get("DEG", 2))
LEVEL_STEPS = 5
FILL = 0.75

Product = Callable[[FloatArray], FloatArray]


@dataclass
class _Level:
    K: Any
    M: Any
    d: FloatArray
    g: FloatArray
    P: Any = None

    @property
    def n(self) -> int:
        return int(self.K.shape[0])

    def matmat(self, V: FloatArray) -> FloatArray:
        return np.asarray(self.K @ V - np.outer(self.d, self.d @ V))


def _neighbour_max(G: Any, values: IntArray) -> IntArray:
    return np.maximum.reduceat(values[G.indices], G.indptr[:-1])


def _strong(K: Any) -> Any:
    rows = np.repeat(np.arange(K.shape[0]), np.diff(K.indptr))
    size = np.where(rows == K.indices, 0.0, np.abs(K.data))
    largest = np.maximum.reduceat(size, K.indptr[:-1])
    keep = (size >= STRONG * np.minimum(largest[rows], largest[K.indices])) | (rows == K.indices)
    indptr = np.concatenate([[0], np.cumsum(keep)])[K.indptr]
    return sparse.csr_array((np.ones(int(keep.sum()), dtype=np.int8), K.indices[keep], indptr), shape=K.shape)


def _aggregates(G: Any, random: np.random.RandomState) -> IntArray:
    n = G.shape[0]
    rank = random.permutation(n) + 1
    while True:
        best = np.maximum(rank, _neighbour_max(G, np.maximum(rank, _neighbour_max(G, rank))))
        open_ = (rank > 0) & (rank <= n)
        if not open_.any():
            break
        rank[open_ & (best > n)] = 0
        rank[open_ & (best == rank)] = n + 1
    roots = np.flatnonzero(rank > n)
    labels = np.zeros(n, dtype=np.intp)
    labels[roots] = np.arange(1, len(roots) + 1)
    for _ in range(2):
        labels = np.where(labels > 0, labels, _neighbour_max(G, labels))
    return labels - 1


def _largest(A: Any, inverse: FloatArray, random: np.random.RandomState) -> float:
    v = random.standard_normal(A.shape[0])
    size = 1.0
    for _ in range(10):
        v /= np.linalg.norm(v)
        v = inverse * (A @ v)
        size = float(np.linalg.norm(v))
    return 1.1 * size


def _coarsen(level: _Level, random: np.random.RandomState, info=None) -> _Level | None:
    K, M, g = level.K, level.M, level.g
    mu = float(g @ (K @ g)) / float(g @ (M @ g))
    A = (mu * M - K).tocsr()
    inverse = 1 / _diagonal(A)
    omega = float(os.environ.get('OM',4/3))
    for _ in range(NULL_SWEEPS):
        g = g - omega * inverse * (A @ g)
    labels = _aggregates(_strong(K), random)
    n, size = len(labels), int(labels.max()) + 1
    if size > 0.8 * n:
        return None
    T = sparse.csr_array((g, labels, np.arange(n + 1)), shape=(n, size))
    P = T - sparse.diags_array(omega * inverse) @ (A @ T)
    P = P.tocsr()
    P.sort_indices()
    sample = random.choice(size, min(size, 50), replace=False)
    R = P.T.tocsr()
    fill = (R[sample] @ K @ P).nnz / len(sample) * size
    if info:
        info(n, size, P.nnz / n, fill / K.nnz)
    if fill > FILL * K.nnz and size > COARSEST:
        P = T
    level.P = P
    R = P.T.tocsr()
    return _Level((R @ (K @ P)).tocsr(), (R @ (M @ P)).tocsr(), R @ level.d, np.ones(size))


def _diagonal(A: Any) -> FloatArray:
    """diag(A), but never less than a quarter of what else the row holds."""
    return abs(A).sum(axis=1)


class _Cycle:
    def __init__(self, levels: list[_Level], mu: float, random: np.random.RandomState, n_jobs: int | None) -> None:
        self.n_jobs = n_jobs
        self.A = [(mu * l.M - l.K).tocsr() for l in levels]
        self.P = [l.P for l in levels[:-1]]
        self.R = [l.P.T.tocsr() for l in levels[:-1]]
        self.inverse = []
        for A in self.A[:-1]:
            inverse = 1 / _diagonal(A)
            self.inverse.append(inverse[:, None])
        last = self.A[-1]
        values, vectors = np.linalg.eigh(last.toarray() + RK * np.outer(levels[-1].d, levels[-1].d))
        self.last = vectors, np.maximum(np.abs(values), 1e-12 * np.abs(values).max())

    def _times(self, A: Any, V: FloatArray) -> FloatArray:
        return A @ V

    def __call__(self, V: FloatArray, l: int = 0) -> FloatArray:
        if l == len(self.A) - 1:
            vectors, values = self.last
            return vectors @ ((vectors.T @ V) / values[:, None])
        A = self.A[l]
        X = self.smooth(l, None, V)
        X += self.P[l] @ self(self.R[l] @ (V - A @ X), l + 1)
        return self.smooth(l, X, V)

    def smooth(self, l, X, V):
        A, inverse = self.A[l], self.inverse[l]
        lo = float(os.environ.get('LO', 0.25)); hi = 1.0
        c, h = (hi + lo) / 2, (hi - lo) / 2
        step = None
        for i in range(DEG):
            R = V if X is None else V - A @ X
            Z = inverse * R
            if step is None:
                alpha = 1 / c
                step = Z * alpha
            else:
                beta = (h * alpha / 2) ** 2 * (2 if i == 1 else 1)
                alpha = 1 / (c - beta / alpha)
                step = beta * 0 + alpha * Z + (beta / prev_alpha * alpha) * step if False else alpha * Z + (alpha * beta / prev_alpha) * step
            prev_alpha = alpha
            X = step if X is None else X + step
        return X


def _orthonormal(V, mass, against=None):
    for _ in range(3):
        if against is not None:
            V = V - against @ (against.T @ mass(V))
        G = V.T @ mass(V)
        scale = 1 / np.sqrt(np.maximum(np.diagonal(G), 1e-300))
        values, vectors = np.linalg.eigh(G * np.outer(scale, scale))
        keep = values > 1e-14 * values.max()
        V = V @ (scale[:, None] * vectors[:, keep] / np.sqrt(values[keep]))
    return V


def _iterate(apply, mass, cycle, X, k, tol, steps, deflate, floor, log=None):
    """LOBPCG"""
    b = X.shape[1]
    X = _orthonormal(deflate(X), mass)
    AX = apply(X)
    S, AS = X, AX
    C = None
    it = 0
    while True:
        H = S.T @ AS
        values, C = np.linalg.eigh((H + H.T) / 2)
        values, C = values[::-1][:b], C[:, ::-1][:, :b]
        rest = C.copy()
        rest[:b] = 0
        rest -= C @ (C.T @ rest)
        X, AX = S @ C, AS @ C
        Rm = AX - mass(X) * values
        res = np.linalg.norm(Rm, axis=0)
        gap = max(values[k - 1] - values[k] - res[k], 0.0)
        target = max(tol * gap, floor)
        if log:
            log(it, (values[0] - values)[1:], res, gap)
        done = res[:k].max() <= target
        if done or it >= steps:
            return values, X, AX, res, done, target, it
        basis, images = X, AX
        if it:
            Q, _ = np.linalg.qr(rest)
            Q -= C @ (C.T @ Q)
            Q, _ = np.linalg.qr(Q)
            basis, images = np.hstack([X, S @ Q]), np.hstack([AX, AS @ Q])
        W = _orthonormal(deflate(cycle(Rm)), mass, basis)
        S = np.hstack([basis, W])
        AS = np.hstack([images, apply(W)])
        it += 1


def build(cut, random, info=None):
    scale = np.sqrt(cut.weights / cut.shrunken)
    D = sparse.diags_array(scale)
    C = (D @ cut.gram.K @ D).tocsr()
    n = C.shape[0]
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    o = reverse_cuthill_mckee(C, symmetric_mode=True)
    C = C[o][:, o]
    levels = [
        _Level(
            C,
            sparse.eye_array(n, format="csr"),
            (scale * cut.degrees / np.sqrt(cut.total))[o],
            cut.trivial[o] * np.sqrt(n),
        )
    ]
    while levels[-1].n > COARSEST:
        nxt = _coarsen(levels[-1], random, info)
        if nxt is None:
            break
        levels.append(nxt)
    return levels


def graph_eigenpairs(cut, k, *, tol=0.1, max_iter=100, random_state=None, report=None, log=None):
    import time

    t0 = time.time()
    n = cut.shape[0]
    random = check_random_state(random_state)
    levels = build(cut, random, (lambda *a: log("coarsen", *a)) if log else None)
    if log:
        log("setup", round(time.time() - t0, 2), [(l.n, round(l.K.nnz / l.n, 1)) for l in levels])
    last = levels[-1]
    b = k + SPARE
    matrix = last.K.toarray() - np.outer(last.d, last.d)
    values, X = eigh((matrix + matrix.T) / 2, last.M.toarray())
    values, X = values[::-1][:b], X[:, ::-1][:, :b]
    for l in range(len(levels) - 2, -1, -1):
        level = levels[l]
        mu = values[0] + SHIFT * (values[0] - values[-1])
        cycle = _Cycle(levels[l:], mu, random, cut.gram.n_jobs)
        X = level.P @ X
        if l:
            values, X, _, res, *_ = _iterate(
                level.matmat, lambda V: level.M @ V, cycle, X, k, tol, LEVEL_STEPS, lambda V: V, 0
            )
            if log:
                log("level", l, level.n, round(time.time() - t0, 2), 1 - values, res)
    t = levels[0].g / np.sqrt(n)
    out = _iterate(
        levels[0].matmat,
        lambda V: V,
        cycle,
        X,
        k,
        tol,
        max_iter,
        lambda V: V - np.outer(t, t @ V),
        1e-14,
        (lambda *a: log("fine", round(time.time() - t0, 2), *a)) if log else None,
    )
    return out
