"""The largest eigenpairs of B for a small, sparse, connected graph: Lanczos on (σI − B)⁻¹, by a factorisation.

For σ just above the spectrum, eigenvalues that crowd at the top lie far apart in (σI − B)⁻¹, so a few products find
them. B = C − ddᵀ with C = W^(1/2) S^(−1/2) K S^(−1/2) W^(1/2) and d = W^(1/2) S^(−1/2) δ/√ρ. With A = σI − C, which is
sparse and positive definite, Sherman and Morrison give

    (A + ddᵀ)⁻¹ v = A⁻¹v − A⁻¹d (dᵀA⁻¹v) / (1 + dᵀA⁻¹d).

A graph of few vertices fills in little, and this is several times as quick as multigrid. Of larger ones it is not.

Lanczos (ARPACK) goes on from a single vector, and may miss some of the vectors of a multiple eigenvalue: that of a star
of a hundred equal arms. So it is asked once more for what is orthogonal to what it found. Block Krylov, which needs
twice the time, finds them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, splu
from sklearn.utils import check_random_state

from biclique._typing import FloatArray
from biclique.gram.sparse import scaled_graph
from biclique.runtime.threads import single_threaded_blas
from biclique.spectral.alternatives import arpack
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.multigrid import NOISE, graph_eigenpairs
from biclique.spectral.solver import EigenResult, block_columns, dense_eigenpairs, top_eigenpairs

FACTORED = 2_000
"""Vertices of the largest graph whose matrix is factored: beyond, in many columns, it would fill in."""

DECOMPOSED = 200
"""Vertices of the largest graph that is decomposed: that is as quick, and exact."""

ABOVE = 1e-6
"""How far σ lies above the bound of the eigenvalues, as a share of it."""

PROBED = 8
"""Vectors of the search for an eigenvector that ARPACK missed."""

PROBE_TOLERANCE = 1e-3
"""Relative accuracy of its eigenvalue: at 0.1 one that was missed hides behind others near it."""

INVERSE_TOLERANCE = 1e-8
"""Relative accuracy of eigenvalues and of eigenspaces of the inverse."""


class _Inverse:
    """V ↦ (σI − B)⁻¹ V."""

    def __init__(self, C: sparse.csr_array, d: FloatArray, sigma: float) -> None:
        self.shape, self.like = C.shape, d
        A = sigma * sparse.eye_array(len(d), format="csc") - C.tocsc()
        # A is positive definite: no pivot is needed, and the order is that of least fill.
        options = {"SymmetricMode": True}
        factors = splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, panel_size=1, options=options)
        self._solve = factors.solve
        self._d, self._of_d = d, self._solve(d)
        self._of_d /= 1 + d @ self._of_d

    def matmat(self, V: FloatArray) -> FloatArray:
        solved = self._solve(np.asfortranarray(V))
        return np.asarray(solved - np.outer(self._of_d, self._d @ solved))

    def beside(self, known: FloatArray) -> LinearOperator:
        """The same for a vector, on what is orthogonal to orthonormal columns, (n, b)."""

        def product(v: FloatArray) -> FloatArray:
            solved = self._solve(v - known @ (v @ known))
            solved -= self._of_d * (self._d @ solved)
            return np.asarray(solved - known @ (solved @ known))

        return LinearOperator(self.shape, matvec=product, dtype=np.float64)


def small_graph_eigenpairs(
    cut: NormalizedCut, k: int, *, tol: float, random_state: int | np.random.RandomState | None = None
) -> EigenResult:
    """The k algebraically largest eigenpairs of B, for a graph with nonnegative weights.

    ``tol`` and residuals are those of ``graph_eigenpairs``, to which pairs are left that are not found here.
    """
    n = cut.shape[0]
    K = cut.gram.graph()
    if n <= max(DECOMPOSED, 6 * block_columns(k, n)) or K is None:
        return dense_eigenpairs(cut, k, cut.trivial)
    scale = np.sqrt(cut.weights / cut.shrunken)
    C = scaled_graph(K, scale)
    with single_threaded_blas():
        bound = float(((C @ cut.trivial) / cut.trivial).max())  # of Collatz: every x > 0 gives one
        inverse = _Inverse(C, scale * cut.degrees / np.sqrt(cut.total), (1 + ABOVE) * bound)
        for vectors in _leading(inverse, cut.trivial, k + 1, check_random_state(random_state)):
            images = cut.matmat(vectors)
            values = np.einsum("ij,ij->j", vectors, images)
            residuals = np.linalg.norm(images - vectors * values, axis=0)
            target = max(tol * float(values[k - 1] - values[k] - residuals[k]), NOISE * abs(float(values[0])))
            if residuals[:k].max() <= target:
                return EigenResult(values, vectors, images, residuals, 2, True, target).first(k)
    return graph_eigenpairs(cut, k, tol=tol, random_state=random_state)


def _leading(inverse: _Inverse, trivial: FloatArray, k: int, random: np.random.RandomState) -> Iterator[FloatArray]:
    """The vectors of the k largest eigenvalues, by ARPACK if it misses none, and by block Krylov."""
    with suppress(ArpackError):
        values, vectors = arpack(inverse.beside(trivial[:, None]), k, random)
        rest = inverse.beside(np.column_stack([trivial, vectors]))
        if arpack(rest, 1, random, ncv=PROBED, tol=PROBE_TOLERANCE)[0][0] <= values[1] * (1 + INVERSE_TOLERANCE):
            yield vectors[:, ::-1]
    yield top_eigenpairs(inverse, k, tol=INVERSE_TOLERANCE, deflate=trivial, random_state=random).vectors
