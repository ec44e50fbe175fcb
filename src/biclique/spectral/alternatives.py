"""SciPy's eigenvalue solvers behind the same contract, for those who ask for them by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from inspect import signature

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, lobpcg
from sklearn.utils import check_random_state

from biclique._typing import FloatArray
from biclique.spectral.cut import column_signs
from biclique.spectral.solver import EigenResult, Operator, block_columns, residual_target

LOBPCG_STEPS = 20
"""Steps of lobpcg between two looks at the residuals: it would go on until the spare columns have converged as well."""

TAKES_RNG = "rng" in signature(eigsh).parameters
"""Whether this SciPy draws vectors of its own in ``eigsh``."""


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
    noise: float = float(np.finfo(float).eps),
) -> EigenResult:
    """The k algebraically largest eigenpairs by ``"arpack"`` or ``"lobpcg"``.

    ``tol`` and ``noise`` mean what they mean in ``top_eigenpairs``, which SciPy's own tolerance does not: arpack is
    asked for all digits, and lobpcg goes on until residuals are small enough. ``max_iter`` is the number of lobpcg's
    steps, all together; arpack may restart n times as often.
    """
    n = operator.shape[0]
    random = check_random_state(random_state)
    if start is None or start.shape[1] == 0:
        start = random.standard_normal((n, block_columns(k, n)))
    passes = 0

    def lowered(V: FloatArray) -> FloatArray:
        """The vector that is not wanted has the eigenvalue −4, far below all others."""
        nonlocal passes
        passes += 1
        V = V.reshape(n, -1)
        return operator.matmat(V) - 4 * np.outer(deflate, deflate @ V)

    linear = LinearOperator((n, n), matvec=lambda v: lowered(v)[:, 0], matmat=lowered, dtype=np.float64)
    find = _arpack(linear, k, start, max_iter, random) if solver == "arpack" else _lobpcg(linear, start, max_iter)
    with warnings.catch_warnings(action="ignore"):  # our caller judges residuals, and warns
        for vectors in find:
            basis = np.linalg.qr(vectors - np.outer(deflate, deflate @ vectors))[0]
            images = lowered(basis)
            small = basis.T @ images
            values, turn = (part[..., ::-1] for part in np.linalg.eigh((small + small.T) / 2))
            basis, images = basis @ turn, images @ turn
            target = residual_target(values, k, tol, noise)
            residuals = np.linalg.norm(images - basis * values, axis=0)
            converged = bool((residuals[:k] <= target).all())
            if converged:
                break
    signs = column_signs(basis, np.ones(n))
    return EigenResult(values, basis * signs, images * signs, residuals, passes, converged, target).first(k)


def _lobpcg(linear: LinearOperator, block: FloatArray, max_iter: int) -> Iterator[FloatArray]:
    """Blocks of k + 4 columns, nearer and nearer to eigenvectors."""
    for done in range(0, max_iter, LOBPCG_STEPS):
        steps = min(LOBPCG_STEPS, max_iter - done)
        block = lobpcg(linear, block, largest=True, tol=np.finfo(float).eps, maxiter=steps)[1]
        yield block


def _arpack(
    linear: LinearOperator, k: int, start: FloatArray, max_iter: int, random: np.random.RandomState
) -> Iterator[FloatArray]:
    """The vectors of k + 1 pairs, of which the last shows the eigengap; with the start if arpack gives up."""
    n = linear.shape[0]
    try:
        yield arpack(linear, min(k + 1, n - 1), random, v0=start[:, 0], maxiter=max_iter * n)[1]
    except ArpackNoConvergence as error:
        yield np.column_stack([error.eigenvectors, start])


def arpack(
    linear: LinearOperator, k: int, random: np.random.RandomState, **options: float | FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The k algebraically largest eigenvalues, ascending, and their vectors, from a random start if none is given."""
    seed = int(random.randint(2**31))
    if TAKES_RNG:
        options["rng"] = seed
    if "v0" not in options:
        options["v0"] = random.standard_normal(linear.shape[0])
    values, vectors = eigsh(linear, k, which="LA", **options)
    return values, vectors
