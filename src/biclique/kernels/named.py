"""The kernels that have a name, and the wrapper around a user's function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    chi2_kernel,
    manhattan_distances,
    pairwise_kernels,
)
from sklearn.preprocessing import normalize
from sklearn.utils.sparsefuncs import inplace_csr_row_scale

from biclique._typing import FloatArray, Rows
from biclique.exceptions import DataError, ParameterError
from biclique.kernels.kernel import InnerProductKernel, Kernel, dense_product, middle, none_negative, row_products
from biclique.runtime.arguments import check_number
from biclique.runtime.namespace import float64, full, largest_size, namespace, on_host, scalars


def squared_norms(X: Rows) -> FloatArray:
    """|x|² of every row, shape (n,)."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=X.dtype).ravel()
    return row_products(X, X)


def _scaled_with(X: Rows, scale: float, extra: int) -> Rows:
    """scale · X with room for more columns on its right, where X is dense."""
    if sparse.issparse(X):
        return X * X.dtype.type(scale)
    if not on_host(X):
        out = X.new_empty((X.shape[0], X.shape[1] + extra))
        out[:, : X.shape[1]] = X * scale
        return out
    out = np.empty((X.shape[0], X.shape[1] + extra), dtype=X.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        np.multiply(X, X.dtype.type(scale), out=out[:, : X.shape[1]])
    return out


def _fill(X: Rows, columns: list[FloatArray | float]) -> Rows:
    """X with its last columns filled, or, where X is sparse, added."""
    if sparse.issparse(X):
        full = (np.broadcast_to(np.asarray(c, dtype=X.dtype), X.shape[0]) for c in columns)
        return sparse.hstack([X, *(sparse.csr_array(c[:, None]) for c in full)], format="csr", dtype=X.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for place, column in enumerate(columns):
            X[:, X.shape[1] - len(columns) + place] = column
    return X


def _near_one(X: Rows) -> Rows:
    """Every row times a power of two, which rounds nothing, such that its largest |value| is near 1."""
    if sparse.issparse(X):
        X = sparse.csr_array(X, copy=True, dtype=X.dtype if X.dtype.kind == "f" else float)
        inplace_csr_row_scale(X, _power_near_one(abs(X).max(axis=1).toarray().ravel()))
        return X
    largest = np.abs(X).max(axis=1) if on_host(X) else X.abs().amax(1)
    return X * _power_near_one(largest)[:, None]


def _power_near_one(largest: FloatArray) -> FloatArray:
    """2^−e with 2^(e−1) ≤ largest < 2^e; 1 for 0. At the very ends of the range, the nearest power that is finite."""
    xp = namespace(largest)
    part, e = xp.frexp(largest)
    most = int(np.log2(float(xp.finfo(part.dtype).max))) - 8
    return xp.ldexp(xp.ones_like(part), -xp.clip(e, -most, most))  # type: ignore[no-any-return]


DIRECT_ERROR = 1e-6
"""Above this bound on the error of a value in float64, distances are taken from differences."""


class RBF(InnerProductKernel):
    """κ(x, y) = exp(−γ |x − y|²)."""

    name = "rbf"
    accepts_sparse = True
    translation_invariant = True
    positive = True

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    # With z = √γ x: −γ|x − y|² = ⟨[2z_x, −|z_x|², −1], [z_y, 1, |z_y|²]⟩, so the whole exponent is one matrix
    # product; scaling first keeps every term near one, whatever the units of x.
    def left(self, X: Rows) -> Rows:
        Z = _scaled_with(X, 2 * float(np.sqrt(self.gamma)), 2)
        return _fill(Z, [-squared_norms(Z[:, : X.shape[1]]) / 4, -1.0])  # halving and doubling are exact

    def right(self, X: Rows) -> Rows:
        Z = _scaled_with(X, float(np.sqrt(self.gamma)), 2)
        return _fill(Z, [1.0, squared_norms(Z[:, : X.shape[1]])])

    def finish(self, inner: FloatArray) -> FloatArray:
        return namespace(inner).exp(inner, out=inner)  # type: ignore[no-any-return]

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        # Rounding can lift the exponent above zero, far above it for new rows far from the training rows. (Tiles of
        # training rows are held in a precision for which it cannot, and do without: a fifth faster.)
        inner = dense_product(self.left(X), self.right(Y).T)
        np.minimum(inner, 0, out=inner)
        return self.finish(inner)

    def diagonal(self, X: Rows) -> FloatArray:
        return full((X.shape[0],), 1.0, X)  # type: ignore[no-any-return]

    def float32_error(self, X: Rows) -> float:
        # The exponent is a difference of terms as large as γ|x|²: its absolute error is the kernel's relative one. And
        # where all values are near 1, what tells rows apart is 1 − κ, of the size of γ times their spread.
        norms = float64(squared_norms(X))
        mean, most = scalars(norms.mean(), norms.max()) if len(norms) else (0.0, 0.0)
        spread = self.gamma * mean
        eps = float(np.finfo(np.float32).eps)
        if spread < float(np.finfo(np.float32).tiny) * self.gamma:
            return 1.0  # differences that vanish in float32
        return eps * max(4.0, 4 * self.gamma * most, 1 / spread)


class DirectRBF(Kernel):
    """κ(x, y) = exp(−γ |x − y|²) from differences, where the expanded square would lose its digits: slower, exact."""

    name = "rbf"
    translation_invariant = True
    positive = True

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.exp(-self.gamma * cdist(X, Y, "sqeuclidean")))

    def diagonal(self, X: Rows) -> FloatArray:
        return full((X.shape[0],), 1.0, X)  # type: ignore[no-any-return]

    def float32_error(self, X: Rows) -> float:  # noqa: ARG002
        return 1.0  # rows so far apart do not fit float32


def precise_rbf(kernel: RBF, X: Rows) -> Kernel:
    """The kernel itself, or ``DirectRBF`` where rows lie so far apart that even float64 would show.

    The expanded square has an absolute error of about eps · γ|x|², x counted from the middle of the rows.
    """
    if sparse.issparse(X):
        return kernel
    centre = middle(X)
    farthest = max(float(np.abs(X.max(axis=0) - centre).max()), float(np.abs(X.min(axis=0) - centre).max()))
    error = 4 * float(np.finfo(np.float64).eps) * kernel.gamma * farthest**2 * X.shape[1]
    return DirectRBF(kernel.gamma) if error > DIRECT_ERROR else kernel


class Linear(InnerProductKernel):
    """κ(x, y) = ⟨x, y⟩."""

    name = "linear"
    accepts_sparse = True

    def left(self, X: Rows) -> Rows:
        return X

    right = left

    def nonnegative(self, X: Rows) -> bool:
        return none_negative(X)


class Cosine(InnerProductKernel):
    """κ(x, y) = ⟨x, y⟩ / (|x| |y|), zero for a zero row."""

    name = "cosine"
    accepts_sparse = True

    def rescaled(self, X: Rows) -> Rows:
        return _near_one(X)

    def left(self, X: Rows) -> Rows:
        X = _near_one(X)  # else squares would vanish or overflow
        if not on_host(X):
            lengths = namespace(X).linalg.vector_norm(X, dim=1, keepdim=True)
            return X / lengths.masked_fill(lengths == 0, 1.0)
        return normalize(X)

    right = left

    def nonnegative(self, X: Rows) -> bool:
        return none_negative(X)


class _Affine(InnerProductKernel):
    """A function of γ⟨x, y⟩ + c."""

    def __init__(self, gamma: float, coef0: float) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    def left(self, X: Rows) -> Rows:
        return _fill(_scaled_with(X, self.gamma, 1), [1.0])

    def right(self, X: Rows) -> Rows:
        return _fill(_scaled_with(X, 1.0, 1), [self.coef0])

    def nonnegative(self, X: Rows) -> bool:
        # Powers and tanh of what is not negative are not negative.
        return self.gamma >= 0 and self.coef0 >= 0 and none_negative(X)


class Polynomial(_Affine):
    """κ(x, y) = (γ⟨x, y⟩ + c)^degree."""

    name = "polynomial"

    def __init__(self, gamma: float, coef0: float, degree: float) -> None:
        super().__init__(gamma, coef0)
        self.degree = degree

    def finish(self, inner: FloatArray) -> FloatArray:
        degree = self.degree
        host = on_host(inner)
        with np.errstate(over="ignore", invalid="ignore"):
            if degree > 16 or degree != int(degree):
                return np.power(inner, degree, out=inner) if host else inner.pow_(degree)  # type: ignore[attr-defined]
            # A whole power by multiplication: the general power function is some twenty times slower.
            base = inner.copy() if host else inner.clone()  # type: ignore[attr-defined]
            for _ in range(int(degree) - 1):
                inner *= base
            return inner

    def nonnegative(self, X: Rows) -> bool:
        return self.degree % 2 == 0 or super().nonnegative(X)

    def float32_error(self, X: Rows) -> float:
        return max(self.degree, 1.0) * super().float32_error(X)


class Sigmoid(_Affine):
    """κ(x, y) = tanh(γ⟨x, y⟩ + c)."""

    name = "sigmoid"

    def finish(self, inner: FloatArray) -> FloatArray:
        return np.tanh(inner, out=inner)

    def float32_error(self, X: Rows) -> float:  # noqa: ARG002
        return 1.0  # near ±1 float32 has no digits left for what tells rows apart


def _error_of_exponential(exponent: float) -> float:
    """The error of exp(−a) in float32, a being about ``exponent``: what tells rows apart is 1 − κ, of the size of a."""
    eps = float(np.finfo(np.float32).eps)
    return eps * max(1.0, 1 / exponent) if exponent > eps else 1.0


class Laplacian(Kernel):
    """κ(x, y) = exp(−γ |x − y|₁)."""

    name = "laplacian"
    translation_invariant = True
    positive = True

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        distances: FloatArray = manhattan_distances(X, Y)
        with np.errstate(over="ignore", invalid="ignore"):
            distances *= -self.gamma
            return np.exp(distances, out=distances)

    def diagonal(self, X: Rows) -> FloatArray:
        return full((X.shape[0],), 1.0, X)  # type: ignore[no-any-return]

    def float32_error(self, X: Rows) -> float:
        if self.gamma > float(np.finfo(np.float32).max) or largest_size(X) < 1e6 * float(np.finfo(np.float32).tiny):
            return 1.0  # differences that vanish in float32
        xp = namespace(X)
        return _error_of_exponential(self.gamma * X.shape[1] * scalars(xp.abs(X).mean(dtype=xp.float64))[0])


def _writeable(X: Rows) -> Rows:
    """X itself, or a copy of a read-only one: scikit-learn's compiled χ² takes no read-only arrays."""
    return X if X.flags.writeable else X.copy()


class Chi2(Kernel):
    """κ(x, y) = exp(−γ Σ_l (x_l − y_l)² / (x_l + y_l)), for non-negative rows."""

    name = "chi2"
    positive = True

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(chi2_kernel(_writeable(X), _writeable(Y), gamma=self.gamma))

    def diagonal(self, X: Rows) -> FloatArray:
        return np.ones(X.shape[0])

    def float32_error(self, X: Rows) -> float:
        float32 = np.finfo(np.float32)
        if self.gamma > float(float32.max) or largest_size(X) ** 2 < float(float32.tiny / float32.eps):
            return 1.0  # squares that vanish in float32
        X = np.asarray(X, dtype=np.float64)
        return _error_of_exponential(-self.gamma * float(additive_chi2_kernel(X, X.mean(axis=0)[None]).mean()))


class AdditiveChi2(Kernel):
    """κ(x, y) = −Σ_l (x_l − y_l)² / (x_l + y_l), for non-negative rows.

    Never positive, so the degrees are not either: clustering with it ends in a ``DegreeError``.
    """

    name = "additive_chi2"

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        return np.asarray(additive_chi2_kernel(_writeable(X), _writeable(Y)))

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


GAMMA_KERNELS = frozenset({"rbf", "laplacian", "chi2", "polynomial", "poly", "sigmoid"})
"""The names of kernels that have a γ."""

NON_NEGATIVE_KERNELS = frozenset({"chi2", "additive_chi2"})

KERNEL_NAMES = (
    "rbf",
    "laplacian",
    "polynomial",
    "poly",
    "linear",
    "cosine",
    "sigmoid",
    "chi2",
    "additive_chi2",
)
"""Every name that scikit-learn's ``pairwise_kernels`` knows."""


def make_kernel(
    affinity: str | Kernel | Callable[..., float],
    *,
    gamma: float | None,
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """The kernel for a name, a ``Kernel`` or a function of two rows; γ must be a number by now."""
    if isinstance(affinity, Kernel):
        return affinity
    for name, value in (("gamma", gamma), ("degree", degree), ("coef0", coef0)):
        if value is not None:
            check_number(name, value)
    if callable(affinity):
        return Function(affinity, kernel_params or {})
    constructors: dict[str, Callable[[float], Kernel]] = {
        "rbf": RBF,
        "laplacian": Laplacian,
        "polynomial": lambda g: Polynomial(g, coef0, degree),
        "poly": lambda g: Polynomial(g, coef0, degree),
        "linear": lambda _: Linear(),
        "cosine": lambda _: Cosine(),
        "sigmoid": lambda g: Sigmoid(g, coef0),
        "chi2": Chi2,
        "additive_chi2": lambda _: AdditiveChi2(),
    }
    if affinity not in constructors:
        raise ParameterError(
            f"affinity must be one of {', '.join(KERNEL_NAMES)}, 'precomputed', a function of two rows "
            f"or a biclique.kernels.Kernel, got {affinity!r}."
        )
    return constructors[affinity](1.0 if gamma is None else gamma)


def check_rows_for_kernel(affinity: object, X: Rows, numbers: Sequence[int] | np.ndarray | None = None) -> None:
    """Refuse rows that a named kernel is not defined on; ``numbers`` are theirs, where they are part of more."""
    if isinstance(affinity, str) and affinity in NON_NEGATIVE_KERNELS and X.size and X.min() < 0:
        row, column = np.argwhere(X < 0)[0]
        number = row if numbers is None else numbers[row]
        raise DataError(
            f"affinity={affinity!r} needs non-negative X, got {X[row, column]:g} in row {number}, column {column}: "
            "shift the column, or use affinity='rbf'."
        )
