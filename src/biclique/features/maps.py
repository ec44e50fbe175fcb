"""Feature maps: κ(x, y) as an inner product of a few columns a row.

Everything that a factored K = ΦΦᵀ needs of its rows: the columns c(x) of a block of rows, and a small matrix T with
Φ = c(X) T. T is applied to sums over rows, never to the rows themselves: a pass costs no product with it. Rows on a
device (tensors) give columns there; what a map consists of is drawn and kept on the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtr
from sklearn.kernel_approximation import PolynomialCountSketch

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ParameterError
from biclique.kernels import RBF, Cosine, DirectRBF, Kernel, Laplacian, Linear, Polynomial, middle
from biclique.kernels.held import HeldRows
from biclique.runtime.namespace import as_dtype, float64, full, moved, namespace, on_host

MOST_EXACT_COLUMNS = 2048
"""Exact maps with more columns than this are left to sketches and landmarks."""


class FeatureMap(ABC):
    """κ(x, y) ≈ ⟨φ(x), φ(y)⟩ with φ(x) = c(x) T."""

    name: str = "features"
    exact: bool = False
    """Whether the inner products are those of the kernel itself, up to rounding."""

    kernel: Kernel
    size: int
    """p: columns of c."""
    dtype: np.dtype[Any]

    landmarks: HeldRows | None = None
    """Rows through which K is seen, where there are such."""

    def parts(self) -> IntArray:
        """The disconnected part of every column; all 0 where nothing tells them apart."""
        return np.zeros(self.size, dtype=np.intp)

    @abstractmethod
    def columns(self, X: Rows) -> FloatArray:
        """c(x) of every row, shape (m, p), in the map's own precision; a fresh array."""

    def project(self, sums: FloatArray) -> FloatArray:
        """Tᵀ sums: from sums over rows of c to sums over rows of φ."""
        return sums

    def lift(self, coefficients: FloatArray) -> FloatArray:
        """T coefficients: what φ is multiplied with, as what c is multiplied with."""
        return coefficients

    @property
    def rank(self) -> int:
        """r: columns of φ."""
        return self.size

    def features(self, X: Rows) -> FloatArray:
        """φ(x) of every row, in float64."""
        return self.columns(X).astype(np.float64) @ self.lift(np.eye(self.rank))


class FourierMap(FeatureMap):
    """φ(x) = √(2/p) [cos⟨ω_j, x⟩, sin⟨ω_j, x⟩], j = 1..p/2: E⟨φ(x), φ(y)⟩ = κ(x, y) for a kernel of x − y.

    The frequencies of rbf are rows of random orthogonal matrices, each stretched to the length of a normal vector:
    every row is normal with variance 2γ, and together they are spread out better than independent ones. Those of
    laplacian are Cauchy of scale γ, the normal entries carried over through their distribution function.
    """

    def __init__(
        self, kernel: Kernel, pool: Rows, size: int, random: np.random.RandomState, dtype: Any = np.float32
    ) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.size = max(size // 2, 1) * 2
        self.offset = middle(_dense(pool[:1000]))  # phases are taken from the middle of the rows, which saves digits
        normal = _orthogonal_rows(pool.shape[1], self.size // 2, random)
        gamma = float(kernel.gamma)  # type: ignore[attr-defined]
        if isinstance(kernel, Laplacian):
            frequencies = gamma * np.tan(np.pi * (ndtr(normal) - 0.5))
        else:
            frequencies = np.sqrt(2 * gamma) * normal
        self.frequencies: FloatArray = np.ascontiguousarray(frequencies.T, dtype=self.dtype)  # (d, p/2)

    def columns(self, X: Rows) -> FloatArray:
        half = self.size // 2
        if not on_host(X):
            there = as_dtype(float64(X) - moved(self.offset, X), self.dtype) @ moved(self.frequencies, X)
            xp = namespace(X)
            return xp.concatenate([xp.cos(there), xp.sin(there)], axis=1).mul_(float(np.sqrt(1 / half)))  # type: ignore[no-any-return]
        rows = np.subtract(_dense(X), self.offset, dtype=np.float64).astype(self.dtype)
        phases = rows @ self.frequencies
        out = np.empty((rows.shape[0], self.size), dtype=self.dtype)
        np.cos(phases, out=out[:, :half])
        np.sin(phases, out=out[:, half:])
        out *= self.dtype.type(np.sqrt(1 / half))
        return out


def _orthogonal_rows(d: int, count: int, random: np.random.RandomState) -> FloatArray:
    """Rows that are each standard normal, and orthogonal to one another within every run of d, shape (count, d)."""
    runs, width = [], min(d, count)
    for _ in range(-(-count // width)):
        turn, triangle = np.linalg.qr(random.standard_normal((d, width)))
        turn *= np.where(np.diagonal(triangle) < 0, -1.0, 1.0)  # else the signs of LAPACK's factor would show
        lengths = np.sqrt(random.chisquare(d, size=width))
        runs.append(turn.T * lengths[:, None])
    return np.concatenate(runs)[:count]


class ExactMap(FeatureMap):
    """φ(x) with ⟨φ(x), φ(y)⟩ = κ(x, y): x itself for linear, x/|x| for cosine, weighted monomials for polynomial.

    (γ⟨x, y⟩ + c)^q = Σ_a (q choose a) Π_l (γ x_l y_l)^(a_l) c^(a_0), over monomials of degree q in d + 1 variables.
    """

    exact = True

    def __init__(self, kernel: Kernel, n_columns: int, dtype: Any = np.float64) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        size = exact_columns(kernel, n_columns)
        if size is None:
            raise ParameterError(f"the {kernel.name} kernel has no exact feature map.")
        self.size = size
        self._factors: IntArray = np.empty((0, size), dtype=np.intp)  # the variables of every monomial, (degree, p)
        self._scales: FloatArray = np.empty(0)
        if isinstance(kernel, Polynomial):
            degree = int(kernel.degree)
            monomials = list(combinations_with_replacement(range(n_columns + 1), degree))
            counts = [np.unique(m, return_counts=True)[1].tolist() for m in monomials]
            scales = np.sqrt([factorial(degree) / np.prod([factorial(c) for c in cs]) for cs in counts])
            self._factors, self._scales = np.array(monomials).T.copy(), scales.astype(self.dtype)

    def columns(self, X: Rows) -> FloatArray:
        kernel = self.kernel
        X = kernel.rescaled(X)
        rows = sparse.csr_array(X, dtype=self.dtype) if sparse.issparse(X) else as_dtype(X, self.dtype)
        if not isinstance(kernel, Polynomial):
            found = kernel.left(rows)  # type: ignore[attr-defined]
            return np.array(_dense(found), dtype=self.dtype) if on_host(X) else found.clone()
        rows = _dense(rows)
        constant = as_dtype(full((rows.shape[0], 1), float(np.sqrt(kernel.coef0)), rows), self.dtype)
        variables = namespace(rows).concatenate([constant, float(np.sqrt(kernel.gamma)) * rows], axis=1)
        out = variables[:, moved(self._factors[0], rows)] * moved(self._scales, rows)
        for factor in self._factors[1:]:
            out *= variables[:, moved(factor, rows)]
        return out  # type: ignore[no-any-return]


class SketchMap(FeatureMap):
    """φ(x) with E⟨φ(x), φ(y)⟩ = (γ⟨x, y⟩ + c)^q: scikit-learn's PolynomialCountSketch, for rows on the host."""

    def __init__(
        self, kernel: Polynomial, n_columns: int, size: int, random: np.random.RandomState, dtype: Any = np.float64
    ) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.size = size
        self._sketch = PolynomialCountSketch(
            gamma=kernel.gamma, degree=int(kernel.degree), coef0=kernel.coef0, n_components=size, random_state=random
        ).fit(np.zeros((1, n_columns)))

    def columns(self, X: Rows) -> FloatArray:
        return np.asarray(self._sketch.transform(np.asarray(_dense(X), dtype=np.float64)), dtype=self.dtype)


def exact_columns(kernel: Kernel, n_columns: int) -> int | None:
    """Columns of an exact feature map; None where there is none."""
    if isinstance(kernel, (Linear, Cosine)):
        return n_columns
    if isinstance(kernel, Polynomial) and kernel.degree == int(kernel.degree) and kernel.coef0 >= 0:
        return comb(n_columns + int(kernel.degree), int(kernel.degree))
    return None


def has_features(kernel: Kernel) -> bool:
    """Whether ``gram="features"`` knows the kernel."""
    return isinstance(kernel, (RBF, DirectRBF, Laplacian)) or exact_columns(kernel, 1) is not None


def check_features(kernel: Kernel, n_columns: int) -> None:
    """Refuse a kernel that has no feature map."""
    if isinstance(kernel, Polynomial) and kernel.coef0 < 0:
        raise ParameterError(f"gram='features' needs coef0 of at least 0, got {kernel.coef0:g}: use gram='nystroem'.")
    if not has_features(kernel):
        raise ParameterError(
            f"gram='features' knows rbf, laplacian, linear, cosine and polynomial of whole degree, not "
            f"{kernel.name!r}: use gram='nystroem', which takes every kernel."
        )
    if isinstance(kernel, (Linear, Cosine)) and n_columns > MOST_EXACT_COLUMNS:
        raise ParameterError(
            f"gram='features' for affinity={kernel.name!r} takes the {n_columns} columns of X as they are, at most "
            f"{MOST_EXACT_COLUMNS}: use gram='nystroem', or fewer columns (sklearn.decomposition.TruncatedSVD)."
        )


def _dense(X: Rows) -> FloatArray:
    return X.toarray() if sparse.issparse(X) else X  # type: ignore[no-any-return]
