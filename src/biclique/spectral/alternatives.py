"""SciPy's eigenvalue solvers behind the same contract, for those who ask for them by name."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, lobpcg
from sklearn.utils import check_random_state

from biclique._typing import FloatArray
from biclique.spectral.cut import column_signs
from biclique.spectral.solver import RESOLVED_GAP, EigenResult, Operator, block_columns

EPS = float(np.finfo(float).eps)

FIRST_SHARE = 1e-2
"""SciPy is asked for this share of the tolerance first, when the eigengap is not known yet."""

LOBPCG_STEPS = 20
"""Steps of lobpcg between two looks at the residuals: it would go on until the spare columns have converged as well."""


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
    noise: float = EPS,
) -> EigenResult:
    """The k algebraically largest eigenpairs by ``"arpack"`` or ``"lobpcg"``.

    ``tol`` and ``noise`` mean what they mean in ``top_eigenpairs``: every residual |B v − λ v| is to be at most
    ``tol`` × (λ_k − λ_(k+1)). SciPy's own tolerance has another meaning, and is lowered until that holds.
    ``max_iter`` is the number of lobpcg's steps, all together; arpack may restart n times as often.
    """
    n = operator.shape[0]
    random = check_random_state(random_state)
    if start is None or start.shape[1] == 0:
        start = random.standard_normal((n, block_columns(k, n)))
    lowered = _Lowered(operator, deflate)
    search = _Arpack(lowered, k, start, max_iter, random) if solver == "arpack" else _Lobpcg(lowered, start, max_iter)
    asked = max(FIRST_SHARE * tol, EPS)
    while True:
        with warnings.catch_warnings(action="ignore"):  # residuals are judged, and said, by our caller
            found = search.find(asked)
        values, vectors, images, residuals = _ritz_pairs(lowered, found)
        scale = float(np.abs(values).max(initial=0.0))
        gap = float(values[k - 1] - values[k]) if len(values) > k else 0.0
        target = max(tol * max(gap, RESOLVED_GAP * scale), 10 * noise)
        done = bool((residuals[:k] <= target).all())
        if done or search.spent or asked <= EPS:
            complete = done and search.complete
            return EigenResult(values, vectors, images, residuals, lowered.passes, complete, target).first(k)
        asked = max(min(0.1 * asked, 0.5 * target / max(scale, EPS)), EPS)


class _Lowered:
    """The operator with known eigenvectors moved far below all others, and a count of its products."""

    def __init__(self, operator: Operator, known: FloatArray) -> None:
        self.operator, self.n, self.passes = operator, operator.shape[0], 0
        self.known = known.reshape(self.n, -1)

    def matmat(self, V: FloatArray) -> FloatArray:
        """The operator itself times V."""
        self.passes += 1
        return self.operator.matmat(V.reshape(self.n, -1))

    def without(self, vectors: FloatArray) -> LinearOperator:
        """As SciPy takes it, with more vectors moved as well."""
        known = np.column_stack([self.known, vectors])

        def product(V: FloatArray) -> FloatArray:
            V = V.reshape(self.n, -1)
            return self.matmat(V) - 4 * known @ (known.T @ V)

        return LinearOperator((self.n, self.n), matvec=lambda v: product(v)[:, 0], matmat=product, dtype=np.float64)


class _Lobpcg:
    """A block of k + 4 columns, some steps at a time."""

    complete = True

    def __init__(self, lowered: _Lowered, start: FloatArray, max_iter: int) -> None:
        self.linear = lowered.without(np.empty((lowered.n, 0)))
        self.block, self.left = start, max_iter

    @property
    def spent(self) -> bool:
        return self.left <= 0

    def find(self, asked: float) -> FloatArray:
        steps = min(LOBPCG_STEPS, self.left)
        self.left -= steps
        self.block = lobpcg(self.linear, self.block, largest=True, tol=asked, maxiter=steps)[1]
        return self.block


class _Arpack:
    """Lanczos from one vector, which sees one direction of a multiple eigenvalue, or another only by rounding.

    So a second run, without the vectors found, looks for what the first has missed, until nothing larger is there.
    """

    def __init__(
        self, lowered: _Lowered, k: int, start: FloatArray, max_iter: int, random: np.random.RandomState
    ) -> None:
        self.lowered, self.start = lowered, start
        self.wanted = min(k + 1, lowered.n - 1)  # one more: it shows the eigengap
        seed = int(random.randint(2**31))
        self.options: dict[str, Any] = {"which": "LA", "maxiter": max_iter * lowered.n}
        self.options |= {"rng": seed} if "rng" in signature(eigsh).parameters else {}
        self.again = random.standard_normal(lowered.n)
        self.spent, self.complete = False, True

    def find(self, asked: float) -> FloatArray:
        values, found = self._run(np.empty((self.lowered.n, 0)), self.wanted, self.start[:, 0], asked)
        for _ in range(self.wanted):  # every run can add one of them
            if self.spent or found.shape[1] >= self.lowered.n - 1:
                break
            least = np.sort(values)[-self.wanted]
            value, vector = self._run(found, 1, self.again, asked)
            values, found = np.append(values, value), np.column_stack([found, vector])
            if not (value > least + 100 * EPS * np.abs(values).max()).any():
                break
        self.complete = not self.spent  # a run that gave up may have left out any pair
        return found if found.shape[1] >= self.wanted else np.column_stack([found, self.start])

    def _run(self, without: FloatArray, k: int, v0: FloatArray, asked: float) -> tuple[FloatArray, FloatArray]:
        try:
            values, vectors = eigsh(self.lowered.without(without), k, v0=v0, tol=asked, **self.options)
        except ArpackNoConvergence as error:
            self.spent = True
            return error.eigenvalues, error.eigenvectors
        return values, vectors


def _ritz_pairs(lowered: _Lowered, vectors: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The pairs within the span of some vectors, descending, with images and residuals: one pass."""
    basis = np.linalg.qr(vectors - lowered.known @ (lowered.known.T @ vectors))[0]
    product = lowered.matmat(basis)
    small = basis.T @ product
    values, turn = np.linalg.eigh((small + small.T) / 2)
    values, turn = values[::-1], turn[:, ::-1]
    found, images = basis @ turn, product @ turn
    signs = column_signs(found, np.ones(lowered.n))
    found, images = found * signs, images * signs
    return values, found, images, np.linalg.norm(images - found * values, axis=0)
