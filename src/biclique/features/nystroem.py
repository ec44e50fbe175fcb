"""Nyström: K seen through a few landmark rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ParameterError
from biclique.features.maps import FeatureMap
from biclique.kernels import Kernel, dense_product
from biclique.kernels.held import HeldRows
from biclique.neighbors.parts import search_parts
from biclique.runtime.namespace import moved, on_host
from biclique.runtime.threads import PANEL

FLOAT32_CUT, FLOAT64_CUT = 1e-7, 1e-12
"""Eigenvalues of κ(Z, Z) below this share of the largest are rounding in that precision, and are left out."""

SUMS_ERROR = 1e-3
"""What rounding in sums over rows may add to an eigenvalue of the cut, as a share of the largest one."""


class NystroemMap(FeatureMap):
    """φ(x) = κ(x, Z) W^(−1/2), W = κ(Z, Z): ⟨φ(x), φ(y)⟩ = κ(x, Z) W⁺ κ(Z, y), exact at the landmarks Z.

    Eigenvalues of W that are not positive, or only by rounding, are left out (``smallest_eigenvalue``).

    Rows on a device (tensors) give columns there, if the kernel is a function of an inner product whose ``left`` and
    ``finish`` take them; landmarks and T stay on the host.
    """

    name = "nystroem"
    held: HeldRows

    def __init__(self, kernel: Kernel, landmarks: Rows, dtype: Any = np.float32) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.size = landmarks.shape[0]
        self.held = HeldRows(kernel, landmarks, dtype)
        precise = self.held.rows.astype(np.float64)
        W = np.asarray(kernel.block(precise, precise), dtype=np.float64)
        values, vectors = np.linalg.eigh((W + W.T) / 2)
        kept = values > smallest_eigenvalue(W, values, self.dtype)
        self._root: FloatArray = vectors[:, kept] / np.sqrt(values[kept])  # T, (p, r)
        self._right: Rows = None
        if kernel.inner_product:
            right = kernel.right(self.held.rows)
            self._right = right.T.tocsr() if sparse.issparse(right) else np.ascontiguousarray(right.T)

    @classmethod
    def make(
        cls, kernel: Kernel, pool: Rows, size: int, *, landmarks: str, random: np.random.RandomState, dtype: Any
    ) -> NystroemMap:
        return cls(kernel, pool[choose_landmarks(landmarks, kernel, pool, size, random, dtype)], dtype)

    def columns(self, X: Rows) -> FloatArray:
        rows = self.held.hold(X.tocsr() if sparse.issparse(X) else X)
        if not on_host(X):
            return self._device_columns(rows)
        if self._right is None:
            return np.asarray(self.kernel.block(rows, self.held.rows)).astype(self.dtype, copy=False)
        # Rounding cannot lift an exponent of rbf far above zero here: landmarks lie near the middle of all rows.
        return self.kernel.finish(dense_product(self.kernel.left(rows), self._right))

    def _device_columns(self, rows: Rows) -> FloatArray:
        kernel = self.kernel
        if not isinstance(self._right, np.ndarray):
            raise ParameterError(
                f"landmarks on a device need dense rows and a kernel of an inner product, not {kernel.name!r}: hold "
                "the rows on the host."
            )
        return kernel.finish(kernel.left(rows) @ moved(self._right, rows))

    def parts(self) -> IntArray:
        """The disconnected part of every landmark."""
        rows = self.held.rows.astype(np.float64)
        K = np.asarray(self.kernel.block(rows, rows), dtype=np.float64)
        return search_parts(K, np.diagonal(K))

    def part_sizes(self) -> IntArray:
        """Landmarks of every disconnected part, largest first."""
        return np.sort(np.bincount(self.parts()))[::-1]

    @property
    def rank(self) -> int:
        return int(self._root.shape[1])

    def project(self, sums: FloatArray) -> FloatArray:
        return self._root.T @ sums

    def lift(self, coefficients: FloatArray) -> FloatArray:
        return self._root @ coefficients


def smallest_eigenvalue(W: FloatArray, values: FloatArray, dtype: Any) -> float:
    """Eigenvalues μ of W = κ(Z, Z) below this one are left out of W^(−1/2).

    The sums Σ c(x)c(x)ᵀ of columns less their mean have an error of eps |W − mean|² in the units of W, since landmarks
    are rows like any other, and W^(−1/2) on both sides divides it by μ. What is left of that must be small beside the
    eigenvalues that are wanted, of the size of |W − mean|. Leaving a direction out costs at most μ itself.
    """
    largest = float(values.max(initial=0.0))
    if largest <= 0:
        return 0.0
    eps = float(np.finfo(dtype).eps)
    share = FLOAT32_CUT if np.dtype(dtype) == np.float32 else FLOAT64_CUT
    spread = float(np.linalg.norm((W - W.mean(axis=0)) / largest))  # in this unit, whose squares do not vanish
    return largest * max(share, eps / SUMS_ERROR * spread)


def choose_landmarks(
    method: str, kernel: Kernel, pool: Rows, size: int, random: np.random.RandomState, dtype: Any = np.float64
) -> IntArray:
    """``size`` row numbers of a pool of distinct rows, ascending."""
    if pool.shape[0] <= size:
        return np.arange(pool.shape[0])
    return np.sort(LANDMARKS[method](kernel, pool, size, random, dtype))


def _uniform(kernel: Kernel, pool: Rows, size: int, random: np.random.RandomState, dtype: Any) -> IntArray:  # noqa: ARG001
    """Every row alike: as dense as the data."""
    return np.asarray(random.choice(pool.shape[0], size, replace=False))


def _spread(kernel: Kernel, pool: Rows, size: int, random: np.random.RandomState, dtype: Any) -> IntArray:  # noqa: ARG001
    """k-means++: each next one with probability as its squared distance to those chosen; spread out, outliers among."""
    chosen = np.unique(kmeans_plusplus(pool, size, random_state=random, n_local_trials=1)[1])
    rest = np.setdiff1d(np.arange(pool.shape[0]), chosen)  # where rows are so close that one was drawn twice
    return np.concatenate([chosen, random.choice(rest, size - len(chosen), replace=False)])


def _leverage(kernel: Kernel, pool: Rows, size: int, random: np.random.RandomState, dtype: Any) -> IntArray:
    """Ridge leverage scores, from as many uniform pilots: rows that others do not stand for are drawn more often."""
    pilots = HeldRows(kernel, pool[np.sort(_uniform(kernel, pool, size, random, dtype))], np.float64)
    W = np.asarray(kernel.block(pilots.rows, pilots.rows), dtype=np.float64)
    ridge = float(np.median(np.abs(np.linalg.eigvalsh((W + W.T) / 2))))
    scores = leverage_scores(pilots, pool, ridge, size / pool.shape[0])
    # Draws without replacement in proportion to the scores: the largest of u^(1/τ), in logarithms.
    keys = np.log(random.uniform(size=len(scores))) / np.maximum(scores, 1e-12)
    return np.argsort(-keys, kind="stable")[:size]


def leverage_scores(pilots: HeldRows, X: Rows, ridge: float, share: float) -> FloatArray:
    """τ(x) = min(1, (q/ν) [κ(x, x) − κ(x, Z)(W + νI)⁻¹κ(Z, x)]), pilots Z being a share q of the rows.

    With every row a pilot this is the diagonal of K(K + νI)⁻¹. A row that is like no pilot keeps all of κ(x, x).
    """
    kernel = pilots.kernel
    W = np.asarray(kernel.block(pilots.rows, pilots.rows), dtype=np.float64)
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    root = vectors / np.sqrt(np.maximum(values, 0.0) + max(ridge, float(np.finfo(float).tiny)))
    scores = np.empty(X.shape[0])
    for top in range(0, X.shape[0], PANEL):
        rows = pilots.hold(X[top : top + PANEL])
        explained = ((kernel.block(rows, pilots.rows) @ root) ** 2).sum(axis=1)
        scores[top : top + PANEL] = kernel.diagonal(rows) - explained
    return np.clip(share / max(ridge, float(np.finfo(float).tiny)) * scores, 0.0, 1.0)


LANDMARKS: dict[str, Callable[..., IntArray]] = {"uniform": _uniform, "kmeans++": _spread, "leverage": _leverage}
"""The ways of choosing landmarks by name; validation and documentation read this table."""
