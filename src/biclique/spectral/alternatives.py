"""SciPy's eigenvalue solvers behind the same contract, for those who ask for them by name."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import LinAlgWarning
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, lobpcg
from sklearn.utils import check_random_state

from biclique._typing import FloatArray
from biclique.spectral.solver import EigenResult, Operator, block_columns


def scipy_eigenpairs(
    operator: Operator,
    k: int,
    solver: str,
    *,
    tol: float,
    max_iter: int,
    start: FloatArray | None,
    deflate: FloatArray,
    random_state: int | np.random.RandomState | None,
) -> EigenResult:
    """The k largest eigenpairs by ``"arpack"`` or ``"lobpcg"``, with tolerance and iterations as SciPy means them."""
    n = operator.shape[0]
    random = check_random_state(random_state)
    passes = 0

    def lowered(V: FloatArray) -> FloatArray:
        # The known pair, eigenvalue 0, is moved far below all the others.
        nonlocal passes
        passes += 1
        V = V.reshape(n, -1)
        return operator.matmat(V) - 4 * np.outer(deflate, deflate @ V)

    linear = LinearOperator((n, n), matvec=lambda v: lowered(v)[:, 0], matmat=lowered, dtype=np.float64)
    if start is None or start.shape[1] == 0:
        start = random.standard_normal((n, block_columns(k, n)))
    if solver == "arpack":
        try:
            values, vectors = eigsh(linear, k, which="LA", tol=tol, maxiter=max_iter * n, v0=start[:, 0])
        except ArpackNoConvergence as error:
            values, vectors = _ritz_pairs(np.column_stack([error.eigenvectors, start]), operator, k)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # residuals are judged, and said, by our caller
            warnings.simplefilter("ignore", LinAlgWarning)  # its last step, on residuals that are mere rounding
            values, vectors = lobpcg(linear, start, largest=True, tol=tol or None, maxiter=max_iter)
    order = np.argsort(values)[::-1][:k]
    values, vectors = values[order], np.linalg.qr(vectors[:, order])[0]
    images = operator.matmat(vectors)
    residuals = np.linalg.norm(images - vectors * values, axis=0)
    target = max(tol, 1e-5)
    return EigenResult(values, vectors, images, residuals, passes + 1, bool((residuals <= target).all()), target)


def _ritz_pairs(vectors: FloatArray, operator: Operator, k: int) -> tuple[FloatArray, FloatArray]:
    """The best k pairs within the span of some vectors."""
    basis = np.linalg.qr(vectors)[0]
    ritz, coordinates = np.linalg.eigh(basis.T @ operator.matmat(basis))
    return ritz[-k:], basis @ coordinates[:, -k:]
