"""The largest eigenpairs of B for a small, sparse, connected graph: Krylov on (σI − B)⁻¹, by a factorisation.

For σ just above the spectrum, eigenvalues that crowd at the top lie far apart in (σI − B)⁻¹, so a few passes find them.
B = C − ddᵀ with C = W^(1/2) S^(−1/2) K S^(−1/2) W^(1/2) and d = W^(1/2) S^(−1/2) δ/√ρ. With A = σI − C, which is sparse
and positive definite, Sherman and Morrison give

    (A + ddᵀ)⁻¹ V = A⁻¹V − A⁻¹d (dᵀA⁻¹V) / (1 + dᵀA⁻¹d).

A graph of few vertices fills in little, and this is two to four times as quick as multigrid. Of larger ones it is not.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from biclique._typing import FloatArray
from biclique.runtime.threads import single_threaded_blas
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.multigrid import NOISE, graph_eigenpairs
from biclique.spectral.solver import EigenResult, dense_eigenpairs, solves_directly, top_eigenpairs

FACTORED = 2_000
"""Vertices of the largest graph whose matrix is factored: beyond, in many columns, it would fill in."""

ABOVE = 1e-6
"""How far σ lies above the bound of the eigenvalues, as a share of it."""

INVERSE_TOLERANCE = 1e-8
"""Angle to the eigenspace of the inverse."""


class _Inverse:
    """V ↦ (σI − B)⁻¹ V."""

    def __init__(self, C: sparse.csr_array, d: FloatArray, sigma: float) -> None:
        self.shape, self.like = C.shape, d
        A = sigma * sparse.eye_array(len(d), format="csc") - C.tocsc()
        # A is positive definite: no pivot is needed, and the order is that of least fill.
        factors = splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        self._solve = factors.solve
        self._d, self._of_d = d, self._solve(d)
        self._of_d /= 1 + d @ self._of_d

    def matmat(self, V: FloatArray) -> FloatArray:
        solved = self._solve(np.asfortranarray(V))
        return np.asarray(solved - np.outer(self._of_d, self._d @ solved))


def small_graph_eigenpairs(
    cut: NormalizedCut, k: int, *, tol: float, random_state: int | np.random.RandomState | None = None
) -> EigenResult:
    """The k algebraically largest eigenpairs of B, for a graph with nonnegative weights.

    ``tol`` and residuals are those of ``graph_eigenpairs``, to which pairs are left that are not found here.
    """
    n = cut.shape[0]
    K = cut.gram.graph()
    if solves_directly(n, k) or K is None:
        return dense_eigenpairs(cut, k, cut.trivial)
    scale = np.sqrt(cut.weights / cut.shrunken)
    C = K.copy()
    C.data = C.data * np.repeat(scale, np.diff(C.indptr)) * scale[C.indices]
    with single_threaded_blas():
        bound = float(((C @ cut.trivial) / cut.trivial).max())  # of Collatz: every x > 0 gives one
        inverse = _Inverse(C, scale * cut.degrees / np.sqrt(cut.total), (1 + ABOVE) * bound)
        found = top_eigenpairs(inverse, k + 1, tol=INVERSE_TOLERANCE, deflate=cut.trivial, random_state=random_state)
        images = cut.matmat(found.vectors)
    values = np.einsum("ij,ij->j", found.vectors, images)
    residuals = np.linalg.norm(images - found.vectors * values, axis=0)
    target = max(tol * float(values[k - 1] - values[k] - residuals[k]), NOISE * abs(float(values[0])))
    if residuals[:k].max() > target:
        return graph_eigenpairs(cut, k, tol=tol, random_state=random_state)
    return EigenResult(values, found.vectors, images, residuals, found.n_passes + 1, True, target).first(k)
