"""Feature maps: κ(x, y) as an inner product of a few columns a row.

Everything that a factored K = ΦΦᵀ needs of its rows: the columns c(x) of a block of rows, and a small matrix T with
Φ = c(X) T. T is applied to sums over rows, never to the rows themselves: a pass costs no product with it. Rows on a
device (tensors) give columns there; what a map consists of is drawn and kept on the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import PolynomialCountSketch

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ParameterError
from biclique.kernels import Kernel, middle
from biclique.kernels.held import HeldRows
from biclique.runtime.namespace import as_dtype, float64, moved, namespace, on_host

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
    held: HeldRows | None = None
    """The landmarks, if there are any."""

    @classmethod
    @abstractmethod
    def make(
        cls, kernel: Kernel, pool: Rows, size: int, *, landmarks: str, random: np.random.RandomState, dtype: Any
    ) -> FeatureMap:
        """The map of a kernel, with ``size`` columns if it has a choice; the pool has distinct rows for landmarks."""

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

    def parts(self) -> IntArray:
        """The disconnected part of every landmark; all 0 if there are none, or K is connected."""
        return np.zeros(self.size, dtype=np.intp)

    def features(self, X: Rows) -> FloatArray:
        """φ(x) of every row, in float64."""
        return self.columns(X).astype(np.float64) @ self.lift(np.eye(self.rank))


class FourierMap(FeatureMap):
    """φ(x) = √(2/p) [cos⟨ω_j, x⟩, sin⟨ω_j, x⟩], j = 1..p/2: E⟨φ(x), φ(y)⟩ = κ(x, y) for a kernel of x − y.

    The kernel makes its frequencies (``Kernel.frequencies``) from rows of random orthogonal matrices, each stretched to
    the length of a normal vector: every row is standard normal, and together they are spread out better than
    independent ones.
    """

    def __init__(
        self, kernel: Kernel, pool: Rows, size: int, random: np.random.RandomState, dtype: Any = np.float32
    ) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.size = max(size // 2, 1) * 2
        self.offset = middle(_dense(pool[:1000]))  # phases are taken from the middle of the rows, which saves digits
        frequencies = kernel.frequencies(_orthogonal_rows(pool.shape[1], self.size // 2, random))
        if frequencies is None:
            raise ParameterError(f"the {kernel.name} kernel has no Fourier features.")
        self.frequencies: FloatArray = np.ascontiguousarray(frequencies.T, dtype=self.dtype)  # (d, p/2)

    @classmethod
    def make(
        cls,
        kernel: Kernel,
        pool: Rows,
        size: int,
        *,
        landmarks: str,  # noqa: ARG003
        random: np.random.RandomState,
        dtype: Any,
    ) -> FourierMap:
        return cls(kernel, pool, size, random, dtype)

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
    """φ(x) with ⟨φ(x), φ(y)⟩ = κ(x, y): the kernel's own ``exact_features``.

    They are x itself for linear, x/|x| for cosine, weighted monomials for polynomial.
    """

    exact = True

    def __init__(self, kernel: Kernel, n_columns: int, dtype: Any = np.float64) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        size = kernel.exact_columns(n_columns)
        if size is None:
            raise ParameterError(f"the {kernel.name} kernel has no exact feature map.")
        self.size = size

    @classmethod
    def make(
        cls,
        kernel: Kernel,
        pool: Rows,
        size: int,  # noqa: ARG003
        *,
        landmarks: str,  # noqa: ARG003
        random: np.random.RandomState,  # noqa: ARG003
        dtype: Any,
    ) -> ExactMap:
        return cls(kernel, pool.shape[1], dtype)

    def columns(self, X: Rows) -> FloatArray:
        X = self.kernel.rescaled(X)
        rows = sparse.csr_array(X, dtype=self.dtype) if sparse.issparse(X) else as_dtype(X, self.dtype)
        return self.kernel.exact_features(rows)


class SketchMap(FeatureMap):
    """φ(x) with E⟨φ(x), φ(y)⟩ = (γ⟨x, y⟩ + c)^q: scikit-learn's PolynomialCountSketch, for rows on the host."""

    def __init__(
        self, kernel: Kernel, n_columns: int, size: int, random: np.random.RandomState, dtype: Any = np.float64
    ) -> None:
        form = kernel.form
        if form is None or not has_sketch(kernel):
            raise ParameterError(f"the {kernel.name} kernel has no sketch.")
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.size = size
        self._sketch = PolynomialCountSketch(
            gamma=form.gamma, degree=int(form.degree), coef0=form.coef0, n_components=size, random_state=random
        ).fit(np.zeros((1, n_columns)))

    @classmethod
    def make(
        cls,
        kernel: Kernel,
        pool: Rows,
        size: int,
        *,
        landmarks: str,  # noqa: ARG003
        random: np.random.RandomState,
        dtype: Any,
    ) -> SketchMap:
        return cls(kernel, pool.shape[1], size, random, dtype)

    def columns(self, X: Rows) -> FloatArray:
        return np.asarray(self._sketch.transform(np.asarray(_dense(X), dtype=np.float64)), dtype=self.dtype)


def has_sketch(kernel: Kernel) -> bool:
    """Whether ``SketchMap`` knows the kernel."""
    return kernel.form is not None and kernel.form.function == "power"


def check_features(kernel: Kernel, n_columns: int) -> None:
    """Refuse a kernel that has no feature map."""
    if kernel.form is not None and kernel.form.coef0 < 0:
        raise ParameterError(
            f"gram='features' needs coef0 of at least 0, got {kernel.form.coef0:g}: use gram='nystroem'."
        )
    columns = kernel.exact_columns(n_columns)
    if columns is None and kernel.frequencies(np.zeros((1, n_columns))) is None:
        raise ParameterError(
            f"gram='features' knows rbf, laplacian, linear, cosine and polynomial of whole degree, not "
            f"{kernel.name!r}: use gram='nystroem', which takes every kernel."
        )
    if columns is not None and columns > MOST_EXACT_COLUMNS and not has_sketch(kernel):
        raise ParameterError(
            f"gram='features' for affinity={kernel.name!r} takes the {columns} columns of X as they are, at most "
            f"{MOST_EXACT_COLUMNS}: use gram='nystroem', or fewer columns (sklearn.decomposition.TruncatedSVD)."
        )


def _dense(X: Rows) -> FloatArray:
    return X.toarray() if sparse.issparse(X) else X  # type: ignore[no-any-return]
