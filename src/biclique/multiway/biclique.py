"""The biclique kernel, its Gram matrix, its features and its degrees, all in O(n²)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from biclique._typing import FloatArray, Rows
from biclique.exceptions import DataError, ParameterError
from biclique.kernels.kernel import Kernel
from biclique.kernels.named import make_kernel
from biclique.spectral.cut import check_order, shrunken_degrees


def power_of_count(n: int, order: float) -> float:
    """n^(m−2), the factor that ``scaled`` multiplies by."""
    try:
        return float(float(n) ** (order - 2))
    except OverflowError as error:
        raise ParameterError(
            f"order={order:g} with scaled=True multiplies by {n}^{order - 2:g}, which is too large for a float: "
            "leave scaled out."
        ) from error


def check_even_order(order: float) -> int:
    """An even whole order from 2: two halves of m/2 points."""
    if check_order(order) % 2:
        raise ParameterError(
            f"order must be even here, got {order:g}: the biclique kernel splits its points into two halves. Odd "
            "orders have the symmetric model (symmetric_kernel, symmetric_gram)."
        )
    return int(order)


def check_finite_order(order: float) -> float:
    """A real order from 2, infinity left out: K^(m) grows without bound there."""
    if np.isinf(check_order(order)):
        raise ParameterError(
            "order must be finite here: K^(m) grows without bound; its cut has a limit (order=inf there)."
        )
    return float(order)


def square(K: FloatArray, name: str = "K") -> FloatArray:
    """A square matrix as a float array."""
    K = np.asarray(K, dtype=float)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise DataError(f"{name} must be a square matrix, got shape {K.shape}.")
    return K


def biclique_kernel(kernel: Kernel | Callable[..., float], first: Rows, second: Rows) -> float:
    """κ^(m)(x₁..x_h ; t₁..t_h) = Σ_γ Σ_ν κ(x_γ, t_ν), the multi-way similarity of 2h = m points (the paper's Eq. 4).

    Parameters
    ----------
    kernel : Kernel, or a function of two points
        Base kernel κ.
    first, second : arrays of shape (h, d)
        The two halves.

    >>> from biclique.kernels.named import Linear
    >>> from biclique.multiway import biclique_kernel
    >>> biclique_kernel(Linear(), [[1.0], [2.0]], [[3.0], [4.0]])
    21.0
    """
    x, t = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if x.ndim != 2 or x.shape != t.shape:
        raise DataError(f"the two halves must be tables of one shape (h, d), got {x.shape} and {t.shape}.")
    return float(make_kernel(kernel, gamma=None).block(x, t).sum())


def biclique_gram(K: FloatArray, order: float, *, scaled: bool = False) -> FloatArray:
    """K^(m)/n^(m−2) = K + (c/n)(δ1ᵀ + 1δᵀ) + (c²/n²) ρ 11ᵀ = P K P with c = (m − 2)/2, P = I + (c/n) 11ᵀ.

    The contraction of the Gram tensor that keeps the first mode of each half (Lemma 1, Eqs. 6 and 7), in O(n²). The
    paper's Eq. 3 garbles the indices of the modes; its proof uses these. Any real order makes sense.

    Parameters
    ----------
    scaled : bool
        Multiply by n^(m−2), so that the result is the contraction itself.
    """
    K, order = square(K), check_finite_order(order)
    n, c = len(K), (order - 2) / 2
    degrees = K.sum(axis=1)
    gram = K + (c / n) * (degrees[:, None] + degrees[None, :]) + (c / n) ** 2 * degrees.sum()
    return np.asarray(gram * power_of_count(n, order) if scaled else gram)


def base_gram(Km: FloatArray, order: float, *, scaled: bool = False) -> FloatArray:
    """K = P⁻¹ (K^(m)/n^(m−2)) P⁻¹ with P⁻¹ = I − (c/(n(1 + c))) 11ᵀ: the one K behind a K^(m) (Prop. 1).

    ``scaled`` says that ``Km`` carries the factor n^(m−2).
    """
    Km, order = square(Km, "Km"), check_finite_order(order)
    n, c = len(Km), (order - 2) / 2
    if scaled:
        Km = Km / power_of_count(n, order)
    r = -c / (n * (1 + c))
    rows, columns = Km.sum(axis=1), Km.sum(axis=0)
    return np.asarray(Km + r * (rows[:, None] + columns[None, :]) + r**2 * rows.sum())


def biclique_features(features: FloatArray, order: float) -> FloatArray:
    """ψ'_i = ψ_i + c · mean(ψ), c = (m − 2)/2: from features of K, K = ΦΦᵀ, to those of K^(m)/n^(m−2) (Lemma 1)."""
    features = np.asarray(features, dtype=float)
    return np.asarray(features + (check_finite_order(order) - 2) / 2 * features.mean(axis=0))


def biclique_degrees(degrees: FloatArray, order: float, *, scaled: bool = False) -> FloatArray:
    """The row sums of K^(m)/n^(m−2) from those of K, (m/2)² S, in O(n); ``scaled`` multiplies by n^(m−2)."""
    order = check_finite_order(order)
    degrees = np.asarray(degrees, dtype=float)
    factor = power_of_count(len(degrees), order) if scaled else 1.0
    return factor * (order / 2) ** 2 * shrunken_degrees(degrees, float(degrees.mean()), order)
