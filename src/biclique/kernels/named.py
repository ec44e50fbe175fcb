"""The kernels that have a name, and the wrapper around a user's function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.special import ndtr
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    chi2_kernel,
    euclidean_distances,
    manhattan_distances,
    pairwise_kernels,
)
from sklearn.preprocessing import normalize
from sklearn.utils.sparsefuncs import inplace_csr_row_scale

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError, ParameterError
from biclique.kernels.gower import Gower
from biclique.kernels.kernel import (
    NEIGHBOR,
    Form,
    InnerProductKernel,
    Kernel,
    Spectrum,
    dense_copy,
    dense_product,
    middle,
    none_negative,
    row_products,
)
from biclique.runtime import Names, check_number
from biclique.runtime.namespace import float64, full, largest_size, moved, namespace, on_host, padded, scalars


def squared_norms(X: Rows) -> FloatArray:
    """|x|² of every row, shape (n,)."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=X.dtype).ravel()
    return row_products(X, X)


def _scaled_with(X: Rows, scale: float, extra: int) -> Rows:
    """scale · X; a dense X gets room for more columns on its right."""
    if sparse.issparse(X):
        return X * X.dtype.type(scale)
    if not on_host(X):
        return padded(X * scale, X.shape[1] + extra)
    out = np.empty((X.shape[0], X.shape[1] + extra), dtype=X.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        np.multiply(X, X.dtype.type(scale), out=out[:, : X.shape[1]])
    return out


def _fill(X: Rows, columns: list[FloatArray | float]) -> Rows:
    """X with its last columns filled; a sparse X gets these columns added."""
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
    xp = namespace(X)
    return X * _power_near_one(xp.amax(xp.abs(X), 1))[:, None]


def _power_near_one(largest: FloatArray) -> FloatArray:
    """2^−e with 2^(e−1) ≤ largest < 2^e; 1 for 0. At the very ends of the range, the nearest power that is finite."""
    xp = namespace(largest)
    part, e = xp.frexp(largest)
    most = int(np.log2(float(xp.finfo(part.dtype).max))) - 8
    return xp.ldexp(xp.ones_like(part), -xp.clip(e, -most, most))  # type: ignore[no-any-return]


DIRECT_ERROR = 1e-6
"""Above this bound on the error of a value in float64, distances are taken from differences."""


LOOKED_AT = 128
"""Rows whose distances to neighbours tell how small distances are."""


def squared_distances(X: Rows) -> FloatArray:
    """|x − y|² of all pairs, small ones to their last digits."""
    if sparse.issparse(X):
        return np.asarray(euclidean_distances(X, squared=True))
    centred = X - np.median(X, axis=0)
    q = np.asarray(euclidean_distances(centred, squared=True))
    # Small distances drown in the rounding of large rows (or of tight groups far apart): take them from differences.
    near, some = min(NEIGHBOR, len(q) - 1), q[:: len(q) // LOOKED_AT + 1]
    small = np.median(np.partition(some, near, axis=1)[:, near]) < 1e-6 * np.max(centred**2)
    return np.asarray(cdist(centred, centred, "sqeuclidean")) if small else q


class _Exponential(Kernel):
    """κ(x, y) = exp(−γ q(x, y)), q(x, x) = 0."""

    has_gamma = positive = True

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def diagonal(self, X: Rows) -> FloatArray:
        return full((X.shape[0],), 1.0, X)


class _Gauss(_Exponential):
    """What the two ways to compute exp(−γ |x − y|²) share."""

    name = "rbf"
    translation_invariant = on_device = True

    def spectrum(self, n_columns: int) -> Spectrum:
        """κ̂(ω) = (π/γ)^(d/2) exp(−|ω|²/(4γ))."""
        gamma, d = self.gamma, n_columns
        return Spectrum(
            density=lambda squared: (np.pi / gamma) ** (d / 2) * np.exp(-squared / (4 * gamma)),
            reach=lambda share: float(np.sqrt(-np.log(share) / gamma)),
            cutoff=lambda share: float(2 * np.sqrt(-np.log(share) * gamma)),
        )

    def dissimilarity(self, X: Rows) -> FloatArray:
        return squared_distances(X)

    def frequencies(self, normal: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(2 * float(self.gamma)) * normal)  # normal with variance 2γ

    def pairs(self, X: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
        gaps = X[first] - X[second]
        return np.asarray(np.exp(-self.gamma * np.einsum("nd,nd->n", gaps, gaps)))


class RBF(_Gauss, InnerProductKernel):
    """κ(x, y) = exp(−γ |x − y|²)."""

    accepts_sparse = landmarks_on_device = True

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

    @property
    def form(self) -> Form:
        return Form("gauss", self.gamma)

    def device_side(self, X: Any) -> tuple[Any, Any]:
        Z = X * float(np.sqrt(self.gamma))
        return Z, (Z * Z).sum(1)

    def device_tile(self, Y: Any, X: Any, y_own: Any, x_own: Any) -> Any:
        # Rounding can lift an exponent above zero.
        return self.finish((Y @ X.T).mul_(2).sub_(y_own[:, None]).sub_(x_own).clamp_(max=0))

    def precise(self, X: Rows) -> Kernel:
        """The kernel itself, or ``DirectRBF`` if rows lie so far apart that even float64 would show.

        The expanded square has an absolute error of about eps · γ|x|², x counted from the middle of the rows.
        """
        if sparse.issparse(X):
            return self
        centre = middle(X)
        farthest = max(float(np.abs(X.max(axis=0) - centre).max()), float(np.abs(X.min(axis=0) - centre).max()))
        error = 4 * float(np.finfo(np.float64).eps) * self.gamma * farthest**2 * X.shape[1]
        return DirectRBF(self.gamma) if error > DIRECT_ERROR else self

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


class DirectRBF(_Gauss):
    """κ(x, y) = exp(−γ |x − y|²) from differences: slower, but exact if the expanded square would lose digits."""

    @property
    def label(self) -> str:
        return "rbf of rows this far apart"

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.exp(-self.gamma * cdist(X, Y, "sqeuclidean")))

    def device_tile(self, Y: Any, X: Any, y_own: Any, x_own: Any) -> Any:  # noqa: ARG002
        gaps = namespace(X).cdist(Y, X, compute_mode="donot_use_mm_for_euclid_dist")
        return gaps.square_().mul_(-self.gamma).exp_()

    def float32_error(self, X: Rows) -> float:  # noqa: ARG002
        return 1.0  # rows so far apart do not fit float32


class _Bilinear(InnerProductKernel):
    """An inner product of the rows themselves, or of rows made from them: ``left`` is an exact feature map."""

    accepts_sparse = on_device = landmarks_on_device = True

    def right(self, X: Rows) -> Rows:
        return self.left(X)

    def nonnegative(self, X: Rows) -> bool:
        return none_negative(X)

    def exact_columns(self, n_columns: int) -> int:
        return n_columns

    def exact_features(self, X: Rows) -> FloatArray:
        return dense_copy(self.left(X))

    def device_side(self, X: Any) -> tuple[Any, Any]:
        return self.left(X), None


class Linear(_Bilinear):
    """κ(x, y) = ⟨x, y⟩."""

    name = "linear"

    @property
    def form(self) -> Form:
        return Form("inner")

    def left(self, X: Rows) -> Rows:
        return X


class Cosine(_Bilinear):
    """κ(x, y) = ⟨x, y⟩ / (|x| |y|), zero for a zero row."""

    name = "cosine"

    @property
    def form(self) -> Form:
        return Form("inner", unit=True)

    def rescaled(self, X: Rows) -> Rows:
        return _near_one(X)

    def left(self, X: Rows) -> Rows:
        X = _near_one(X)  # else squares would vanish or overflow
        if on_host(X):
            X = normalize(X)
        else:
            lengths = namespace(X).linalg.vector_norm(X, dim=1, keepdim=True)
            X = X / lengths.masked_fill(lengths == 0, 1.0)
        return X


class _Affine(InnerProductKernel):
    """A function of γ⟨x, y⟩ + c."""

    has_gamma = True

    @classmethod
    def from_parameters(cls, *, gamma: float, coef0: float, degree: float) -> Kernel:  # noqa: ARG003
        return cls(gamma, coef0)

    def __init__(self, gamma: float, coef0: float) -> None:
        self.gamma, self.coef0 = gamma, coef0

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
    on_device = landmarks_on_device = True

    @classmethod
    def from_parameters(cls, *, gamma: float, coef0: float, degree: float) -> Kernel:
        return cls(gamma, coef0, degree)

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

    @property
    def form(self) -> Form:
        return Form("power", self.gamma, self.coef0, self.degree)

    def device_tile(self, Y: Any, X: Any, y_own: Any, x_own: Any) -> Any:  # noqa: ARG002
        return self.finish((Y @ X.T).mul_(self.gamma).add_(self.coef0))

    def exact_columns(self, n_columns: int) -> int | None:
        if self.degree != int(self.degree) or self.coef0 < 0:
            return None
        return comb(n_columns + int(self.degree), int(self.degree))

    def exact_features(self, X: Rows) -> FloatArray:
        """Weighted monomials of degree q in d + 1 variables.

        (γ⟨x, y⟩ + c)^q = Σ_a (q choose a) Π_l (γ x_l y_l)^(a_l) c^(a_0).
        """
        X = X.toarray() if sparse.issparse(X) else X
        factors, scales = _monomials(X.shape[1], int(self.degree))
        constant = _as_rows(full((X.shape[0], 1), float(np.sqrt(self.coef0)), X), X)
        variables = namespace(X).concatenate([constant, float(np.sqrt(self.gamma)) * X], axis=1)
        out = variables[:, moved(factors[0], X)] * _as_rows(scales, X)
        for factor in factors[1:]:
            out *= variables[:, moved(factor, X)]
        return out  # type: ignore[no-any-return]

    def float32_error(self, X: Rows) -> float:
        return max(self.degree, 1.0) * super().float32_error(X)


@lru_cache(maxsize=8)
def _monomials(d: int, degree: int) -> tuple[IntArray, FloatArray]:
    """The variables of every monomial of d + 1 variables, (degree, p), and √(q choose a), (p,)."""
    monomials = list(combinations_with_replacement(range(d + 1), degree))
    counts = [np.unique(m, return_counts=True)[1].tolist() for m in monomials]
    scales = np.sqrt([factorial(degree) / np.prod([factorial(c) for c in cs]) for cs in counts])
    return np.array(monomials).T.copy(), scales


def _as_rows(values: FloatArray, X: Rows) -> Any:
    """Values in the precision of the rows, on their device."""
    return namespace(X).asarray(moved(values, X), dtype=X.dtype)


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


class Laplacian(_Exponential):
    """κ(x, y) = exp(−γ |x − y|₁)."""

    name = "laplacian"
    translation_invariant = on_device = True

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        distances: FloatArray = manhattan_distances(X, Y)
        with np.errstate(over="ignore", invalid="ignore"):
            distances *= -self.gamma
            return np.exp(distances, out=distances)

    def dissimilarity(self, X: Rows) -> FloatArray:
        return np.asarray(manhattan_distances(X))

    def frequencies(self, normal: FloatArray) -> FloatArray:
        # Cauchy of scale γ: the normal numbers carried over through their distribution function.
        return np.asarray(float(self.gamma) * np.tan(np.pi * (ndtr(normal) - 0.5)))

    @property
    def form(self) -> Form:
        return Form("manhattan", self.gamma)

    def device_tile(self, Y: Any, X: Any, y_own: Any, x_own: Any) -> Any:  # noqa: ARG002
        return namespace(X).cdist(Y, X, p=1).mul_(-self.gamma).exp_()

    def float32_error(self, X: Rows) -> float:
        if self.gamma > float(np.finfo(np.float32).max) or largest_size(X) < 1e6 * float(np.finfo(np.float32).tiny):
            return 1.0  # differences that vanish in float32
        xp = namespace(X)
        return _error_of_exponential(self.gamma * X.shape[1] * scalars(xp.abs(X).mean(dtype=xp.float64))[0])


def _writeable(X: Rows) -> Rows:
    """X itself, or a copy of a read-only one: scikit-learn's compiled χ² takes no read-only arrays."""
    return X if X.flags.writeable else X.copy()


class Chi2(_Exponential):
    """κ(x, y) = exp(−γ Σ_l (x_l − y_l)² / (x_l + y_l)), for non-negative rows."""

    name = "chi2"
    needs_nonnegative = True

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(chi2_kernel(_writeable(X), _writeable(Y), gamma=self.gamma))

    def dissimilarity(self, X: Rows) -> FloatArray:
        return np.asarray(-additive_chi2_kernel(X))

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
    needs_nonnegative = True

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        return np.asarray(additive_chi2_kernel(_writeable(X), _writeable(Y)))

    def diagonal(self, X: Rows) -> FloatArray:
        return np.zeros(X.shape[0])


FUNCTION_COLUMNS = 20_000
"""What a call of a user's function of two rows costs, in columns of X."""


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

    def cost_per_pair(self, n_columns: int) -> float:  # noqa: ARG002
        return FUNCTION_COLUMNS


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

GAMMA_KERNELS = Names(lambda: (name for name, kernel in KERNELS.items() if kernel.has_gamma))
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
) -> Kernel:
    """The kernel for a name, a ``Kernel`` or a function of two rows; γ must be a number by now."""
    if isinstance(affinity, Gower):
        return affinity.with_gamma(1.0 if gamma is None else gamma)
    if isinstance(affinity, Kernel):
        return affinity
    for name, value in (("gamma", gamma), ("degree", degree), ("coef0", coef0)):
        if value is not None:
            check_number(name, value)
    if callable(affinity):
        return Function(affinity, kernel_params or {})
    if affinity not in KERNELS:
        raise ParameterError(
            f"affinity must be one of {', '.join(KERNEL_NAMES)}, 'precomputed', a function of two rows "
            f"or a biclique.kernels.Kernel, got {affinity!r}."
        )
    return KERNELS[affinity].from_parameters(gamma=1.0 if gamma is None else gamma, coef0=coef0, degree=degree)


def check_rows_for_kernel(affinity: object, X: Rows, numbers: Sequence[int] | np.ndarray | None = None) -> None:
    """Refuse rows that a named kernel is not defined on; ``numbers`` are their row numbers if X is a part."""
    kernel = KERNELS.get(affinity) if isinstance(affinity, str) else None
    if kernel is not None and kernel.needs_nonnegative and X.size and X.min() < 0:
        row, column = np.argwhere(X < 0)[0]
        number = row if numbers is None else numbers[row]
        raise DataError(
            f"affinity={affinity!r} needs non-negative X, got {X[row, column]:g} in row {number}, column {column}: "
            "shift the column, or use affinity='rbf'."
        )
