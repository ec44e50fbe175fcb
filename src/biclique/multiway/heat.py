"""Heat kernels of m/2 variables: the discrete Laplacian and its energy in O(n²).

With Δ = −div grad, points x₁..x_n, h = m/2 and a decomposable function f(x) = Σ_γ f'(x_γ) of h points,

    G_t(x, y) = (4πt)^(−d/2) exp(−|x − y|²/4t),   H_t(x; y) = Σ_γ Σ_ν G_t(x_γ, y_ν),
    L f(x) = −Σ_y H_t(x; y) f(y) + Σ_y H_t(x; y) f(x) / h,   y over all n^h tuples.

d is the dimension of the manifold, not of the space around it.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError, MemoryLimitError, ParameterError
from biclique.kernels.held import HeldRows
from biclique.kernels.named import RBF
from biclique.multiway.biclique import biclique_kernel, check_even_order

MOST_TUPLES = 10**6
"""Pairs of tuples over which the definition is summed at most."""
MEAN_ZERO = 1e-9
"""Means up to this share of the largest value are rounding."""


class HeatKernel(RBF):
    """G_t(x, y) = (4πt)^(−d/2) exp(−|x − y|²/4t), the Gaussian as a heat kernel; d is the manifold's dimension."""

    name = "heat"
    formula = None  # type: ignore[assignment]

    def __init__(self, t: float, dimension: int) -> None:
        if not t > 0:
            raise ParameterError(f"t must be positive, got {t!r}.")
        if dimension < 1:
            raise ParameterError(f"dimension must be at least 1, got {dimension!r}: that of the manifold.")
        super().__init__(1 / (4 * t))
        self.t, self.dimension = t, dimension
        self.factor = (4 * np.pi * t) ** (-dimension / 2)

    def finish(self, inner: FloatArray) -> FloatArray:
        inner = super().finish(inner)
        inner *= self.factor
        return inner

    def diagonal(self, X: Rows) -> FloatArray:
        return np.full(X.shape[0], self.factor)


def biclique_heat_kernel(first: Rows, second: Rows, t: float, dimension: int) -> float:
    """H_t^(m)(x; y) = Σ_γ Σ_ν G_t(x_γ, y_ν): the biclique kernel with a heat kernel as its base."""
    return biclique_kernel(HeatKernel(t, dimension), first, second)


def heat_limit(f: FloatArray, tuples: IntArray, volume: float) -> FloatArray:
    """lim_{t→0} ∫ H_t^(m)(x; y) f(y) dμ(y) = h vol^(h−1) f(x) + h²(h−1) vol^(h−2) ∫ f' dμ, f(x) = Σ_γ f'(x_γ).

    The left side of Prop. 3, for n points spread evenly over a manifold of this volume, where ∫ f' dμ = (vol/n) Σ f'.
    The right side is f(x)/h times ``heat_mass_limit``. The two are equal if f' has mean zero, which the paper's
    constraint ⟨f, c1⟩ = 0 demands. Before the limit the integral is (vol/n)^h Σ_y H_t(x; y) f(y), which is
    ``(volume / n) ** h * HeatLaplacian(X, t, m, dimension).average(f, tuples)``.

    Parameters
    ----------
    f : array of shape (n,)
        f' at every point.
    tuples : array of shape (p, h)
        Row numbers of the points x₁..x_h.
    volume : float
        Of the manifold: 2π for the unit circle.
    """
    f, tuples = np.asarray(f, dtype=float), np.asarray(tuples)
    if f.ndim != 1 or tuples.ndim != 2 or tuples.dtype.kind not in "iu":
        raise DataError(f"f must have shape (n,) and tuples row numbers (p, h), got {f.shape} and {tuples.shape}.")
    h = tuples.shape[1]
    own = h * volume ** (h - 1) * f[tuples].sum(axis=1)
    return np.asarray(own + h**2 * (h - 1) * float(volume) ** (h - 2) * volume * f.mean())


def heat_mass_limit(order: int, volume: float) -> float:
    """lim_{t→0} ∫ H_t^(m)(x; y) dμ(y) = h² vol^(h−1), h = m/2: with it Prop. 3 reads h vol^(h−1) f(x)."""
    h = check_even_order(order) // 2
    return float(h**2 * volume ** (h - 1))


def heat_flow(X: Rows, f: FloatArray, t: float, order: int, dimension: int, volume: float) -> FloatArray:
    """u' of U(t, x) = ∫ H_t^(m)(x; y) f(y) dμ(y)/(h vol^(h−1)) = Σ_γ u'(x_γ): the heat equation's solution, U(0) = f.

    H_t^(m) is a heat kernel up to h vol^(h−1) on decomposable functions of mean zero: u' is close to e^(−tΔ) f', so
    that eigenfunctions shrink by e^(−λt), and two short times make a long one. Points should lie evenly on a
    homogeneous manifold, as in Theorem 2. O(n²): the integral is the sum over all tuples of points, n^h of them.

    Parameters
    ----------
    X, t, order, dimension :
        As in ``HeatLaplacian``.
    f : array of shape (n,)
        f' at every point, of mean zero.
    volume : float
        Of the manifold.
    """
    f, laplacian = np.asarray(f, dtype=float), HeatLaplacian(X, t, order, dimension)
    if abs(f.mean()) > MEAN_ZERO * np.abs(f).max(initial=0.0):
        raise DataError(
            f"f must have mean zero, got {f.mean():.3g}: pass f - f.mean(). H_t^(m) multiplies a constant by another "
            "factor than h vol^(h−1)."
        )
    n, h = laplacian.n, laplacian.half
    # On tuples of one repeated point U(t, x) = h u'(x).
    integral = (volume / n) ** h * laplacian.average(f, np.repeat(np.arange(n)[:, None], h, axis=1))
    return np.asarray(integral / (h * volume ** (h - 1)) / h)


class HeatLaplacian:
    """The discrete Laplacian L^(m)_{t,n} of n points, applied to decomposable functions.

    One pass over G gives g = G1 and G f'; after that a tuple costs O(m); the definition costs n^(m/2).

    Parameters
    ----------
    X : array of shape (n, d')
        Points on the manifold, in the space around it.
    t : float
        Time.
    order : even int
        m; functions are of m/2 points.
    dimension : int
        Of the manifold.
    """

    def __init__(self, X: Rows, t: float, order: int, dimension: int) -> None:
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or len(X) == 0:
            raise DataError(f"X must be a table of points, got shape {X.shape}.")
        self._X, self.n, self.half = X, len(X), check_even_order(order) // 2
        self.kernel = HeatKernel(t, dimension)
        self._cross = HeldRows(self.kernel, X, np.float64).cross(X)
        self._sums: FloatArray = self._cross.matmat(np.ones((self.n, 1)))[:, 0]  # g

    def _values(self, f: FloatArray) -> FloatArray:
        """f' as an array of one value a point."""
        f = np.asarray(f, dtype=float)
        if f.shape != (self.n,):
            raise DataError(f"f must have one value for each point, shape ({self.n},), got {f.shape}.")
        return f

    def _tuples(self, tuples: IntArray) -> IntArray:
        tuples = np.asarray(tuples)
        if tuples.ndim != 2 or tuples.shape[1] != self.half or tuples.dtype.kind not in "iu":
            raise DataError(f"tuples must be row numbers of shape (p, {self.half}), got {tuples.dtype} {tuples.shape}.")
        return tuples

    def average(self, f: FloatArray, tuples: IntArray) -> FloatArray:
        """Σ_y H_t(x; y) f(y) = h n^(h−1) Σ_γ (G f')(x_γ) + h(h−1) n^(h−2) F Σ_γ g(x_γ), for tuples of row numbers."""
        f, tuples, n, h = self._values(f), self._tuples(tuples), float(self.n), self.half
        smoothed = self._cross.matmat(f[:, None])[:, 0]
        first = h * n ** (h - 1) * smoothed[tuples].sum(axis=1)
        return np.asarray(first + h * (h - 1) * n ** (h - 2) * float(f.sum()) * self._sums[tuples].sum(axis=1))

    def apply(self, f: FloatArray, tuples: IntArray) -> FloatArray:
        """L f(x) = n^(h−1) (Σ_γ g(x_γ)) (Σ_γ f'(x_γ)) − Σ_y H_t(x; y) f(y), for tuples of row numbers, shape (p, h).

        ``f`` (n,) holds f' at every point. With constant g and F = 0 this is h copies of the one-variable
        Laplacian, h n^(h−1) Σ_γ (g f' − G f')(x_γ).
        """
        f, tuples = self._values(f), self._tuples(tuples)
        own = float(self.n) ** (self.half - 1) * self._sums[tuples].sum(axis=1) * f[tuples].sum(axis=1)
        return np.asarray(own - self.average(f, tuples))

    def by_definition(self, f: FloatArray, tuples: IntArray) -> FloatArray:
        """The same by enumerating all n^h tuples y: for checks on a few points."""
        f, tuples = self._values(f), self._tuples(tuples)
        count = self.n**self.half * len(tuples)
        if count > MOST_TUPLES:
            raise MemoryLimitError(
                f"the definition enumerates {count} pairs of tuples, limit {MOST_TUPLES}: use apply."
            )
        out = np.zeros(len(tuples))
        for place, x in enumerate(tuples):
            for y in product(range(self.n), repeat=self.half):
                heat = biclique_kernel(self.kernel, self._X[x], self._X[list(y)])
                out[place] += heat * (f[x].sum() / self.half - f[list(y)].sum())
        return out

    def energy(self, f: FloatArray) -> float:
        """S₂(H_t, f) = Σ_x f(x) L f(x) over all n^h tuples x, in O(n²).

        The paper prints Σ_x Σ_y L f(x) f(y), which factorises into (Σ L f)(Σ f) and is zero for mean-zero f.
        """
        f, n, h, g = self._values(f), float(self.n), self.half, self._sums
        smoothed, total = self._cross.matmat(f[:, None])[:, 0], float(f.sum())
        pairs = h * n ** (h - 1)
        apart = h * (h - 1) * n ** (h - 2)

        def double(p: FloatArray, q: FloatArray) -> float:  # Σ_x (Σ_γ p)(Σ_γ q)
            return float(pairs * (p @ q) + apart * p.sum() * q.sum())

        triple = pairs * float(g @ f**2) + apart * (2 * float(g @ f) * total + float(f @ f) * float(g.sum()))
        triple += h * (h - 1) * (h - 2) * n ** (h - 3) * float(g.sum()) * total**2
        return n ** (h - 1) * triple - pairs * double(smoothed, f) - apart * total * double(g, f)

    def factor(self, volume: float) -> float:
        """vol(M)/(h n^h t): what takes L f to Δf on a homogeneous manifold (Theorem 2 with its constant).

        The paper has C/(n t) with some constant C; for m ≥ 4 the power of n is h.
        """
        return volume / (self.half * float(self.n) ** self.half * self.kernel.t)
