"""The kernels that have a name, and the wrapper around a user's function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    euclidean_distances,
    manhattan_distances,
    pairwise_kernels,
)
from sklearn.preprocessing import normalize

from biclique._typing import FloatArray, Rows
from biclique.exceptions import DataError
from biclique.kernels.gamma_rules import NEIGHBOR
from biclique.kernels.gower import Columns, Gower
from biclique.kernels.held import near_one
from biclique.kernels.kernel import (
    ExponentialKernel,
    Form,
    InnerProductKernel,
    Kernel,
    beside,
    dense_product,
    middle,
    squared_norms,
)
from biclique.runtime.arguments import Names, check_choice, check_number
from biclique.runtime.namespace import namespace, on_host

DIRECT_ERROR = 1e-6
"""Above this bound on the error of a value in float64, distances are taken from differences."""

LOOKED_AT = 128
"""Rows whose distances to neighbours tell how small distances are."""


def scaled(X: Rows, factor: float) -> Rows:
    """factor · X."""
    with np.errstate(over="ignore", invalid="ignore"):
        return X * (X.dtype.type(factor) if on_host(X) else factor)


class DirectRBF(ExponentialKernel):
    """κ(x, y) = exp(−γ |x − y|²) from differences: slower, but exact if the expanded square would lose digits."""

    name = "rbf"
    formula = Form("gauss", direct=True)
    translation_invariant = True

    def distances(self, X: Rows, Y: Rows) -> FloatArray:
        return np.asarray(cdist(X, Y, "sqeuclidean"))

    def dissimilarity(self, X: Rows) -> FloatArray:
        """|x − y|² of all pairs, small ones to their last digits."""
        if sparse.issparse(X):
            return np.asarray(euclidean_distances(X, squared=True))
        centred = X - np.median(X, axis=0)
        q = np.asarray(euclidean_distances(centred, squared=True))
        # Small distances drown in the rounding of large rows, or of tight groups far apart: then sum differences.
        near, some = min(NEIGHBOR, len(q) - 1), q[:: len(q) // LOOKED_AT + 1]
        small = np.median(np.partition(some, near, axis=1)[:, near]) < 1e-6 * np.max(centred**2)
        return self.distances(centred, centred) if small else q


class RBF(DirectRBF, InnerProductKernel):
    """κ(x, y) = exp(−γ |x − y|²), the exponent by one matrix product."""

    accepts_sparse = True
    formula = Form("gauss")

    # With z = √γ x: −γ|x − y|² = ⟨[2z_x, −|z_x|², −1], [z_y, 1, |z_y|²]⟩, so the whole exponent is one matrix
    # product; scaling first keeps every term near one, whatever the units of x.
    def left(self, X: Rows) -> Rows:
        # Halving and doubling are exact.
        Z = scaled(X, 2 * float(np.sqrt(self.gamma)))
        return beside(Z, -squared_norms(Z) / 4, -1.0)

    def right(self, X: Rows) -> Rows:
        Z = scaled(X, float(np.sqrt(self.gamma)))
        return beside(Z, 1.0, squared_norms(Z))

    def finish(self, inner: FloatArray) -> FloatArray:
        return namespace(inner).exp(inner, out=inner)  # type: ignore[no-any-return]

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        # Rounding can lift the exponent above zero, far above it for new rows far from the training rows. (Tiles of
        # training rows are held in a precision for which it cannot, and do without: a fifth faster.)
        inner = dense_product(self.left(X), self.right(Y).T)
        np.minimum(inner, 0, out=inner)
        return self.finish(inner)


def precise_kernel(kernel: Kernel, X: Rows) -> Kernel:
    """The kernel itself, or ``DirectRBF`` if rows lie so far apart that even float64 would show.

    The expanded square has an absolute error of about eps · γ|x|², x counted from the middle of the rows.
    """
    if sparse.issparse(X) or kernel.form is None or kernel.form.function != "gauss":
        return kernel
    centre, gamma = middle(X), kernel.form.gamma
    farthest = max(float(np.abs(X.max(axis=0) - centre).max()), float(np.abs(X.min(axis=0) - centre).max()))
    error = 4 * float(np.finfo(np.float64).eps) * gamma * farthest**2 * X.shape[1]
    return DirectRBF(gamma) if error > DIRECT_ERROR else kernel


class Linear(InnerProductKernel):
    """κ(x, y) = ⟨x, y⟩."""

    name = "linear"
    accepts_sparse = True
    formula = Form("inner")

    def left(self, X: Rows) -> Rows:
        return X


class Cosine(InnerProductKernel):
    """κ(x, y) = ⟨x, y⟩ / (|x| |y|), zero for a zero row."""

    name = "cosine"
    accepts_sparse = True
    formula = Form("inner", unit=True)

    def left(self, X: Rows) -> Rows:
        X = near_one(X)  # else squares would vanish or overflow
        if on_host(X):
            return normalize(X)  # type: ignore[no-any-return]
        lengths = namespace(X).linalg.vector_norm(X, dim=1, keepdim=True)
        return X / lengths.masked_fill(lengths == 0, 1.0)  # type: ignore[no-any-return]


class _Affine(InnerProductKernel):
    """A function of γ⟨x, y⟩ + c."""

    def __init__(self, gamma: float, coef0: float) -> None:
        self.gamma, self.coef0 = gamma, coef0

    def left(self, X: Rows) -> Rows:
        return beside(scaled(X, self.gamma), 1.0)

    def right(self, X: Rows) -> Rows:
        return beside(X, self.coef0)


def power(base: FloatArray, degree: float) -> FloatArray:
    """base^degree, in place: a whole power by multiplication, as the general one is some twenty times slower."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not 1 <= degree <= 16 or degree != int(degree):
            base **= degree
            return base
        once = 1.0 * base
        for _ in range(int(degree) - 1):
            base *= once
    return base


class Polynomial(_Affine):
    """κ(x, y) = (γ⟨x, y⟩ + c)^degree."""

    name = "polynomial"
    formula = Form("power")

    def __init__(self, gamma: float, coef0: float, degree: float) -> None:
        super().__init__(gamma, coef0)
        self.degree, self.positive = degree, degree % 2 == 0

    def finish(self, inner: FloatArray) -> FloatArray:
        return power(inner, self.degree)


class Sigmoid(_Affine):
    """κ(x, y) = tanh(γ⟨x, y⟩ + c)."""

    name = "sigmoid"
    formula = Form("tanh")

    def finish(self, inner: FloatArray) -> FloatArray:
        return np.tanh(inner, out=inner)


class Laplacian(ExponentialKernel):
    """κ(x, y) = exp(−γ |x − y|₁)."""

    name = "laplacian"
    formula = Form("manhattan")
    translation_invariant = True

    def distances(self, X: Rows, Y: Rows) -> FloatArray:
        return np.asarray(manhattan_distances(X, Y))


def _additive_chi2(X: Rows, Y: Rows) -> FloatArray:
    """−Σ_l (x_l − y_l)² / (x_l + y_l); scikit-learn's compiled code takes no read-only arrays."""
    X, Y = (Z if Z.flags.writeable else Z.copy() for Z in (X, Y))
    return np.asarray(additive_chi2_kernel(X, Y))


class Chi2(ExponentialKernel):
    """κ(x, y) = exp(−γ Σ_l (x_l − y_l)² / (x_l + y_l)), for non-negative rows."""

    name = "chi2"
    needs_nonnegative = True

    def distances(self, X: Rows, Y: Rows) -> FloatArray:
        return -_additive_chi2(X, Y)


class AdditiveChi2(Kernel):
    """κ(x, y) = −Σ_l (x_l − y_l)² / (x_l + y_l), for non-negative rows.

    Never positive, so the degrees are not either: clustering with it ends in a ``DegreeError``.
    """

    name = "additive_chi2"
    needs_nonnegative = True

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        return _additive_chi2(X, Y)

    def diagonal(self, X: Rows) -> FloatArray:
        return np.zeros(X.shape[0])


class Function(Kernel):
    """A user's function of two rows that returns one number, as scikit-learn calls it: slow, pair by pair.

    For a fast one subclass ``Kernel`` and write ``block``.
    """

    name = "function"

    def __init__(self, function: Callable[..., float], parameters: Mapping[str, Any]) -> None:
        self.function = function
        self.parameters = dict(parameters)

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        return np.asarray(pairwise_kernels(X, Y, metric=self.function, **self.parameters), dtype=float)


KERNELS: dict[str, type[Kernel]] = {
    "rbf": RBF,
    "laplacian": Laplacian,
    "polynomial": Polynomial,
    "poly": Polynomial,
    "linear": Linear,
    "cosine": Cosine,
    "sigmoid": Sigmoid,
    "chi2": Chi2,
    "additive_chi2": AdditiveChi2,
    "gower": Gower,
}
"""The kernels by name: every name that scikit-learn's ``pairwise_kernels`` knows, and "gower". A class added here is
known to the estimators, the command line, the bandwidth rule and the checks."""

KERNEL_NAMES = KERNELS.keys()
"""The names, as the table stands now."""

GAMMA_KERNELS = Names(lambda: (name for name, kernel in KERNELS.items() if "gamma" in signature(kernel).parameters))
"""The names of kernels that have a γ."""


def needs_gamma(affinity: object) -> bool:
    """Whether γ comes from the estimator: for a name whose kernel has one, and for ``Gower`` without its own."""
    if isinstance(affinity, str):
        return affinity in GAMMA_KERNELS
    return isinstance(affinity, Gower) and affinity.gamma is None


def make_kernel(
    affinity: str | Kernel | Callable[..., float],
    *,
    gamma: float | None,
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
    columns: Columns | None = None,
) -> Kernel:
    """The kernel for a name, a ``Kernel`` or a function of two rows; γ must be a number by now.

    ``columns`` is what a fit knows of the columns of X, for ``Gower``.
    """
    if isinstance(affinity, Gower):
        return affinity.completed(1.0 if gamma is None else gamma, columns)
    if isinstance(affinity, Kernel):
        return affinity
    for name, value in (("gamma", gamma), ("degree", degree), ("coef0", coef0)):
        if value is not None:
            check_number(name, value)
    if callable(affinity):
        return Function(affinity, kernel_params or {})
    check_choice("affinity", affinity, KERNELS)
    kernel: Any = KERNELS[affinity]
    given = {"gamma": 1.0 if gamma is None else gamma, "coef0": coef0, "degree": degree, "columns": columns}
    return kernel(**{name: given[name] for name in signature(kernel).parameters if name in given})  # type: ignore[no-any-return]


def check_rows_for_kernel(affinity: object, X: Rows, numbers: Sequence[int] | np.ndarray | None = None) -> None:
    """Refuse rows that a named kernel is not defined on; ``numbers`` are their row numbers if X is a part."""
    kernel = KERNELS.get(affinity) if isinstance(affinity, str) else None
    if kernel is not None and kernel.needs_nonnegative and X.size and X.min() < 0:
        row, column = np.argwhere(X < 0)[0]
        number = row if numbers is None else numbers[row]
        raise DataError(
            f"affinity={affinity!r} needs non-negative X, got {X[row, column]:g} in row {number}, column {column}, "
            "counted from 0: shift the column, or use affinity='rbf'."
        )
