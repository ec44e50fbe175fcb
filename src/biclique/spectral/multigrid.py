"""The largest eigenpairs of B for a sparse, connected graph: LOBPCG with a multigrid cycle.

On the neighbour graph of long, thin clusters eigenvalues crowd at the top (gaps of 1e-7 and less), and a Krylov
space of B alone needs thousands of passes. Without its rank-one term, B is C = W^(1/2) S^(−1/2) K S^(−1/2) W^(1/2),
and for μ just above the wanted eigenvalues μI − C is a graph Laplacian but for its diagonal: what Krylov
finds hard in it is smooth along edges, and shows on a much smaller graph. Every level is the same problem,

    (K_l − d_l d_lᵀ) x = λ M_l x,   K_(l+1) = PᵀK_l P,   M_(l+1) = PᵀM_l P,   d_(l+1) = Pᵀd_l,

with K_0 = C, M_0 = I and K_0 − d_0 d_0ᵀ = B. The coarsest is decomposed; its vectors, carried up and
improved on every level, start the iteration on B, inside which one cycle over the levels stands for (μI − B)⁻¹.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.csgraph import reverse_cuthill_mckee
from sklearn.utils import check_random_state

from biclique._typing import FloatArray, IntArray
from biclique.gram.sparse import scaled_graph
from biclique.runtime.threads import single_threaded_blas
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.solver import (
    RESOLVED_GAP,
    EigenResult,
    Report,
    dense_eigenpairs,
    solves_directly,
    top_eigenpairs,
)

SPARE = 3
"""Columns beyond the k wanted: the first shows the eigengap, the others speed convergence."""

NOISE = 1e-12
"""Nothing below this share of the largest eigenvalue is asked of residuals: rounding, as the cycle enlarges it."""

COARSEST = 400
"""Vertices of a graph that is coarsened no further."""

DECOMPOSED = 2000
"""Vertices of the largest graph that is decomposed if coarsening got stuck above ``COARSEST``."""

STRONG = 0.1
"""Vertices are put together along edges of at least this share of the heaviest edge of either end."""

HUB = 8
"""A vertex with so many times the mean number of neighbours is kept by itself: it would join what is far apart."""

FILL = 0.75
"""A smoothed coarse graph with more than this share of the fine one's entries is built without smoothing."""

SMOOTHING = 1.8
"""Step of the prolongation's smoothing, in units of 1/|D⁻¹A| with D the sums of absolute values of rows."""

NULL_SWEEPS = 5
"""Steps that fit the near-null vector of a level to its diagonal."""

DAMPED = 0.1
"""The smoother damps what lies between this share of the largest eigenvalue of D⁻¹A and that eigenvalue."""

LEVEL_STEPS = 5
"""Iterations on every level between the coarsest and B."""

PROBES = 6
"""Random vectors that look for an eigenvector which no coarse graph showed."""

PROBE_STEPS = 8
"""Iterations of these vectors."""

SHIFT = 0.5
"""μ lies above the largest eigenvalue by this share of the spread of the block's."""

Product = Callable[[FloatArray], FloatArray]


def graph_eigenpairs(
    cut: NormalizedCut,
    k: int,
    *,
    tol: float = 0.1,
    max_iter: int = 100,
    random_state: int | np.random.RandomState | None = None,
    report: Report | None = None,
) -> EigenResult:
    """The k algebraically largest eigenpairs of B, for a connected graph with nonnegative weights (``SparseGram``).

    Pairs count as converged when every residual |B v − λ v| is at most ``tol`` × (λ_k − λ_(k+1) − r_(k+1)), where
    r_(k+1) is the residual of the first pair not wanted: the eigengap, less what is not known of it. The gap has
    no floor but rounding: residuals of ``NOISE`` × λ_1 always do. If λ_k = λ_(k+1), the pairs are then accurate and
    count as converged. Which k vectors of the larger eigenspace they are is arbitrary.

    ``max_iter`` bounds the iterations on B, each one product with k + 3 columns; ``n_passes`` counts these, the
    start and a last product, which gives ``images`` and true residuals. Graphs that do not coarsen (nearly all
    vertices hang on hubs) go to ``top_eigenpairs``.
    """
    n = cut.shape[0]
    with single_threaded_blas():
        if solves_directly(n, k):
            return dense_eigenpairs(cut, k, cut.trivial)
        random = check_random_state(random_state)
        # Neighbours get neighbouring numbers: products are three times as quick for rows in random order.
        K = cut.gram.graph()
        if K is None:
            raise TypeError("multigrid needs a sparse K without negative entries")
        order = reverse_cuthill_mckee(K, symmetric_mode=True)
        levels = _hierarchy(cut, K, order, k + SPARE, random)
        if levels[-1].n > DECOMPOSED:
            return _krylov(cut, k, tol, max_iter, random, report)
        block = _nested(levels, cut.trivial[order][:, None], k, tol, max_iter, random, report)
        vectors = np.empty((n, k))
        vectors[order] = block.vectors[:, :k]
        cut.n_passes += block.steps + 1
        images = cut.matmat(vectors)
    values = block.values[:k].copy()
    residuals = np.linalg.norm(images - vectors * values, axis=0)
    converged = bool(residuals.max(initial=0.0) <= block.target)
    return EigenResult(values, vectors, images, residuals, block.steps + 2, converged, block.target)


def _krylov(
    cut: NormalizedCut, k: int, tol: float, max_iter: int, random: np.random.RandomState, report: Report | None
) -> EigenResult:
    """``top_eigenpairs``, converged only if the gap it went by was not its floor."""
    found = top_eigenpairs(cut, k, tol=tol, max_iter=max_iter, deflate=cut.trivial, random_state=random, report=report)
    scale = float(np.abs(found.values).max(initial=0.0))
    resolved = found.target > 1.01 * tol * RESOLVED_GAP * scale
    exact = bool(found.residuals.max(initial=0.0) <= NOISE * scale)
    return replace(found, converged=found.converged and (resolved or exact))


# --- the levels ---------------------------------------------------------------------------------------------------


@dataclass
class _Level:
    """(K − ddᵀ) x = λ M x on one graph."""

    K: sparse.csr_array
    M: sparse.csr_array
    d: FloatArray
    null: FloatArray
    """Nearly the vector of the largest eigenvalue of K x = λ M x: what the next level must hold."""
    P: sparse.csr_array | None = None
    """From the next level to this one."""

    @property
    def n(self) -> int:
        return int(self.K.shape[0])

    def matmat(self, V: FloatArray) -> FloatArray:
        """(K − ddᵀ) V."""
        return np.asarray(self.K @ V - np.outer(self.d, self.d @ V))

    def mass(self, V: FloatArray) -> FloatArray:
        """M V."""
        return np.asarray(self.M @ V)

    def shifted(self, mu: float) -> Any:
        """μM − K."""
        return (mu * self.M - self.K).tocsr()


def _hierarchy(
    cut: NormalizedCut, K: sparse.csr_array, order: IntArray, columns: int, random: np.random.RandomState
) -> list[_Level]:
    """Levels from B, its rows in the given order, down to a graph that is decomposed."""
    scale = np.sqrt(cut.weights / cut.shrunken)[order]
    C = scaled_graph(K[order][:, order], scale)
    C.sort_indices()
    identity = sparse.eye_array(len(order), format="csr")
    levels = [_Level(C, identity, scale * cut.degrees[order] / np.sqrt(cut.total), cut.trivial[order])]
    while levels[-1].n > max(COARSEST, 8 * columns):
        coarser = _coarsened(levels[-1], columns, random)
        if coarser is None:
            break
        levels.append(coarser)
    return levels


def _coarsened(level: _Level, columns: int, random: np.random.RandomState) -> _Level | None:
    """PᵀKP, PᵀMP and Pᵀd for P = (I − ω D⁻¹(μM − K)) T, T the near-null vector cut into aggregates."""
    g = level.null
    A = level.shifted(float(g @ (level.K @ g)) / float(g @ (level.M @ g)))
    step = SMOOTHING / abs(A).sum(axis=1)
    for _ in range(NULL_SWEEPS):
        g = g - step * (A @ g)
    strong, hubs = _strong_edges(level.K)
    labels = _aggregates(strong, random)
    n, size = len(labels), int(labels.max()) + 1
    if size > 0.7 * n or size < 2 * columns:
        return None
    # The scale of a coarse unknown is free; this one makes the next near-null vector all ones.
    T = sparse.csr_array((g, labels, np.arange(n + 1)), shape=(n, size))
    step[hubs] = 0.0  # a hub's row would tie all its neighbours' aggregates to each other
    P = (T - sparse.diags_array(step) @ (A @ T)).tocsr()
    sample = P.T.tocsr()[random.choice(size, min(size, 50), replace=False)]
    if (sample @ level.K @ P).nnz * size > FILL * level.K.nnz * sample.shape[0] and size > COARSEST:
        P = T
    level.P = P
    R = P.T.tocsr()
    return _Level((R @ (level.K @ P)).tocsr(), (R @ (level.M @ P)).tocsr(), R @ level.d, np.ones(size))


def _strong_edges(K: sparse.csr_array) -> tuple[sparse.csr_array, IntArray]:
    """The edges along which vertices may be put together, with all loops, and the hubs, which have none."""
    counts = np.diff(K.indptr)
    rows = np.repeat(np.arange(K.shape[0], dtype=K.indices.dtype), counts)
    loops = rows == K.indices
    sizes = np.abs(K.data)
    sizes[loops] = 0.0
    heaviest = np.maximum.reduceat(sizes, K.indptr[:-1])
    hub = counts > HUB * counts.mean()
    keep = sizes >= STRONG * np.minimum(heaviest[rows], heaviest[K.indices])
    keep &= ~loops & ~hub[rows] & ~hub[K.indices]
    graph = sparse.csr_array((keep[keep], (rows[keep], K.indices[keep])), shape=K.shape)
    return (graph + sparse.eye_array(K.shape[0], dtype=bool, format="csr")).tocsr(), np.flatnonzero(hub)


def _aggregates(graph: sparse.csr_array, random: np.random.RandomState) -> IntArray:
    """Numbers of aggregates: roots more than two edges apart, as many as fit, with what lies around them.

    A vertex becomes a root when its rank is the largest within two edges, and is out when a root is there (Luby's
    algorithm on the square of the graph). Roots are marked n + 1, vertices that are out 0.
    """
    n = graph.shape[0]

    def neighbourhood_max(values: IntArray) -> IntArray:
        return np.asarray(np.maximum.reduceat(values[graph.indices], graph.indptr[:-1]))

    rank = random.permutation(n) + 1
    undecided = np.ones(n, dtype=bool)
    while undecided.any():
        best = neighbourhood_max(neighbourhood_max(rank))
        rank[undecided & (best > n)] = 0
        rank[undecided & (best == rank)] = n + 1
        undecided = (rank > 0) & (rank <= n)
    labels = np.where(rank > n, np.cumsum(rank > n), 0)
    for _ in range(2):
        labels = np.where(labels > 0, labels, neighbourhood_max(labels))
    return labels - 1


class _Cycle:
    """V ↦ about (μM − K + ddᵀ)⁻¹ V on the first of some levels: one symmetric V-cycle."""

    def __init__(self, levels: list[_Level], mu: float) -> None:
        self.A = [level.shifted(mu) for level in levels]
        self.P = [level.P for level in levels[:-1] if level.P is not None]
        self.R = [P.T.tocsr() for P in self.P]
        # Sums of absolute values bound D⁻¹A by one for certain; estimates of its norm miss rare, local vectors.
        self.inverse = [1 / abs(A).sum(axis=1)[:, None] for A in self.A[:-1]]
        # Only here is ddᵀ of weight: it takes away one smooth vector, near which μM − K alone is singular or negative.
        last = self.A[-1].toarray() + np.outer(levels[-1].d, levels[-1].d)
        values, self.vectors = np.linalg.eigh((last + last.T) / 2)
        sizes = np.abs(values)
        self.values = np.maximum(sizes, 1e-12 * sizes.max())

    def __call__(self, V: FloatArray, at: int = 0) -> FloatArray:
        if at == len(self.P):
            return np.asarray(self.vectors @ ((self.vectors.T @ V) / self.values[:, None]))
        X = self._smoothed(at, V, None)
        X += self.P[at] @ self(self.R[at] @ (V - self.A[at] @ X), at + 1)
        return self._smoothed(at, V, X)

    def _smoothed(self, at: int, V: FloatArray, X: FloatArray | None) -> FloatArray:
        """Two Chebyshev steps of A X = V for the eigenvalues of D⁻¹A from ``DAMPED`` to 1."""
        centre, radius = (1 + DAMPED) / 2, (1 - DAMPED) / 2
        first = self.inverse[at] * (V if X is None else V - self.A[at] @ X)
        first /= centre
        X = first.copy() if X is None else X + first
        ratio = (radius / centre) ** 2 / 2
        second = self.inverse[at] * (V - self.A[at] @ X)
        second /= centre
        second += ratio * first
        X += second / (1 - ratio)
        return X


# --- the iteration ------------------------------------------------------------------------------------------------


@dataclass
class _Block:
    """The largest Ritz pairs, descending, after so many steps."""

    values: FloatArray
    vectors: FloatArray
    target: float
    steps: int


def _nested(
    levels: list[_Level],
    trivial: FloatArray,
    k: int,
    tol: float,
    max_iter: int,
    random: np.random.RandomState,
    report: Report | None,
) -> _Block:
    """The pairs of the coarsest level, improved on every level up to B, with what they missed."""
    last = levels[-1]
    dense = last.matmat(np.eye(last.n))
    values, X = eigh((dense + dense.T) / 2, last.M.toarray())
    values, X = values[::-1][: k + SPARE], np.ascontiguousarray(X[:, ::-1][:, : k + SPARE])
    for number in range(len(levels) - 2, 0, -1):
        level = levels[number]
        cycle = _Cycle(levels[number:], _shift(values))
        locked = np.empty((level.n, 0))
        block = _lobpcg(level.matmat, level.mass, cycle, level.P @ X, locked, k, 0.0, LEVEL_STEPS, None)
        values, X = block.values, block.vectors
    cycle = _Cycle(levels, _shift(values))
    X = X if levels[0].P is None else levels[0].P @ X
    block = _lobpcg(levels[0].matmat, _unit_mass, cycle, X, trivial, k, tol, max_iter, report)
    missed = _missed(levels[0].matmat, cycle, block, trivial, k, random)
    while missed is not None and block.steps < max_iter:
        X = np.hstack([block.vectors, missed])
        again = _lobpcg(levels[0].matmat, _unit_mass, cycle, X, trivial, k, tol, max_iter - block.steps, report)
        block = replace(again, steps=again.steps + block.steps + PROBE_STEPS)
        missed = _missed(levels[0].matmat, cycle, block, trivial, k, random)
    return block


def _missed(
    matmat: Product, cycle: Product, block: _Block, trivial: FloatArray, k: int, random: np.random.RandomState
) -> FloatArray | None:
    """Vectors orthogonal to the block with a larger Ritz value than its k-th; None if a random start finds none.

    Small residuals say that pairs are eigenpairs, not that they are the largest. A vector of few vertices, as heavy
    tails have, may be in no coarse graph.
    """
    known = np.hstack([trivial, block.vectors])
    start = random.normal(size=(len(known), PROBES))
    found = _lobpcg(matmat, _unit_mass, cycle, start, known, 1, 0.0, PROBE_STEPS, None)
    return found.vectors if found.values[0] > block.values[k - 1] + block.target else None


def _unit_mass(V: FloatArray) -> FloatArray:
    """M V on the graph itself."""
    return V


def _shift(values: FloatArray) -> float:
    return float(values[0] + SHIFT * (values[0] - values[-1]) + NOISE * abs(values[0]))


def _lobpcg(
    matmat: Product,
    mass: Product,
    cycle: Product,
    X: FloatArray,
    locked: FloatArray,
    k: int,
    tol: float,
    max_iter: int,
    report: Report | None,
) -> _Block:
    """Rayleigh–Ritz on span(X, directions of the last step, cycle(A X − M X Λ)), again and again.

    The basis stays orthonormal in M: the directions are taken orthogonal to X in coordinates, where that costs nothing,
    and only the new block is orthogonalised at length and multiplied. ``locked`` is a vector to stay orthogonal to.
    """
    b = X.shape[1]
    basis = _orthonormal(X, locked, mass)
    images = matmat(basis)
    steps = 0
    while True:
        H = basis.T @ images
        values, C = np.linalg.eigh((H + H.T) / 2)
        values, C = values[::-1][:b], C[:, ::-1][:, :b]
        X, AX = basis @ C, images @ C
        residual = AX - mass(X) * values
        norms = np.linalg.norm(residual, axis=0)
        gap = float(values[k - 1] - values[k] - norms[k])
        target = max(tol * gap, NOISE * float(np.abs(values).max()))
        worst = float(norms[:k].max())
        if report is not None:
            report(steps + 1, worst, target)
        if worst <= target or steps >= max_iter:
            return _Block(values, X, target, steps)
        Q = _directions(C, b)
        basis, images = np.hstack([X, basis @ Q]), np.hstack([AX, images @ Q])
        W = _orthonormal(cycle(residual), np.hstack([locked, basis]), mass)
        basis, images = np.hstack([basis, W]), np.hstack([images, matmat(W)])
        steps += 1


def _directions(C: FloatArray, b: int) -> FloatArray:
    """Coordinates of the last step: C without its part in the old X, orthonormal and orthogonal to C."""
    moved = C.copy()
    moved[:b] = 0.0
    U, sizes, _ = np.linalg.svd(moved - C @ (C.T @ moved), full_matrices=False)
    U = U[:, sizes > 1e-14]
    return np.asarray(np.linalg.qr(U - C @ (C.T @ U))[0])


def _orthonormal(V: FloatArray, against: FloatArray, mass: Product) -> FloatArray:
    """An M-orthonormal basis of V less its part in ``against``; directions lost in rounding are left out."""
    for _ in range(3):  # what cancels in one round is noise to the next
        V = V - against @ (against.T @ mass(V))
        G = V.T @ mass(V)
        scale = 1 / np.sqrt(np.maximum(np.diagonal(G), np.finfo(float).tiny))
        values, turn = np.linalg.eigh(G * np.outer(scale, scale))
        keep = values > 1e-14 * values.max(initial=0.0)
        V = V @ (scale[:, None] * turn[:, keep] / np.sqrt(values[keep]))
    return V
