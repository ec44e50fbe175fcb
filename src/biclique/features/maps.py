"""Feature maps: κ(x, y) as an inner product of a few columns a row.

Everything that a factored K = ΦΦᵀ needs of its rows: the columns c(x) of a block of rows, and a small matrix T with
Φ = c(X) T. T is applied to sums over rows, never to the rows themselves: a pass costs no product with it. Rows on a
device (tensors) give columns there; what a map consists of is drawn and kept on the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus
from sklearn.kernel_approximation import PolynomialCountSketch

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ParameterError
from biclique.kernels import HeldRows, Kernel, dense_product, middle
from biclique.runtime import PANEL, Pulse, Result, Tick, check_choice, run_groups, run_panels
from biclique.runtime.namespace import as_dtype, float64, full, full_float32, moved, namespace, on_host, to_host

MOST_EXACT_COLUMNS = 2048
"""Exact maps with more columns than this are left to sketches and landmarks."""


class FeatureMap(ABC):
    """κ(x, y) ≈ ⟨φ(x), φ(y)⟩ with φ(x) = c(x) T."""

    name: str = "features"
    exact: bool = False
    """Whether the inner products are those of the kernel itself, up to rounding."""
    by_name: bool = True
    """Whether ``gram`` asks for it by its name in ``FEATURE_MAPS``; else ``gram="features"`` chooses it."""
    has_landmarks: bool = False
    """Whether its columns are similarities to rows: then there cannot be more columns than distinct rows."""
    takes_tensors: bool = False
    """Whether rows on a device give columns there."""

    kernel: Kernel
    size: int
    """p: columns of c."""
    dtype: np.dtype[Any]
    held: HeldRows | None = None
    """The landmarks, if there are any."""
    is_sparse: bool = False
    """Whether columns are a CSR matrix on the host, wherever the rows lie."""
    n_negative: int = 0
    """Eigenvalues of κ of the landmarks that are negative by more than rounding, and were left out."""
    lowest: float = 0.0
    """The lowest of these, as a share of the largest."""

    @classmethod
    def make(
        cls,
        kernel: Kernel,  # noqa: ARG003
        pool: Rows,  # noqa: ARG003
        size: int,  # noqa: ARG003
        *,
        landmarks: str,  # noqa: ARG003
        random: np.random.RandomState,  # noqa: ARG003
        dtype: Any,  # noqa: ARG003
    ) -> FeatureMap:
        """The map of a kernel, with ``size`` columns if it has a choice; the pool has distinct rows for landmarks."""
        raise TypeError(f"{cls.__name__} is not made of a kernel")

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

    def for_rows(self) -> FeatureMap:
        """The same map for ``columns`` alone, as small as can be: what travels to other machines."""
        return self

    def features(self, X: Rows) -> FloatArray:
        """φ(x) of every row, in float64."""
        return self.columns(X).astype(np.float64) @ self.lift(np.eye(self.rank))


class FourierMap(FeatureMap):
    """φ(x) = √(2/p) [cos⟨ω_j, x⟩, sin⟨ω_j, x⟩], j = 1..p/2: E⟨φ(x), φ(y)⟩ = κ(x, y) for a kernel of x − y.

    The kernel makes its frequencies (``Kernel.frequencies``) from rows of random orthogonal matrices, each stretched to
    the length of a normal vector: every row is standard normal, and together they are spread out better than
    independent ones.
    """

    by_name = False
    takes_tensors = True

    def __init__(
        self, kernel: Kernel, pool: Rows, size: int, random: np.random.RandomState, dtype: Any = np.float32
    ) -> None:
        self.kernel, self.dtype, self.size = kernel, np.dtype(dtype), max(size // 2, 1) * 2
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
        runs.append(turn.T * np.sqrt(random.chisquare(d, size=width))[:, None])
    return np.concatenate(runs)[:count]


class ExactMap(FeatureMap):
    """φ(x) with ⟨φ(x), φ(y)⟩ = κ(x, y): the kernel's own ``exact_features``.

    They are x itself for linear, x/|x| for cosine, weighted monomials for polynomial.
    """

    exact = True
    by_name = False
    takes_tensors = True

    def __init__(self, kernel: Kernel, n_columns: int, dtype: Any = np.float64) -> None:
        size = kernel.exact_columns(n_columns)
        if size is None:
            raise ParameterError(f"the {kernel.name} kernel has no exact feature map.")
        self.kernel, self.dtype, self.size = kernel, np.dtype(dtype), size

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

    by_name = False

    def __init__(
        self, kernel: Kernel, n_columns: int, size: int, random: np.random.RandomState, dtype: Any = np.float64
    ) -> None:
        form = kernel.form
        if form is None or not has_sketch(kernel):
            raise ParameterError(f"the {kernel.name} kernel has no sketch.")
        self.kernel, self.dtype, self.size = kernel, np.dtype(dtype), size
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
    return X.toarray() if sparse.issparse(X) else X


def map_kind(gram: str, kernel: Kernel, n_columns: int, rank: int | str) -> str:
    """Which feature map holds K: a key of ``FEATURE_MAPS``; ``gram="features"`` leaves it to the kernel."""
    if gram in FEATURE_MAPS:
        return gram
    check_features(kernel, n_columns)
    columns = kernel.exact_columns(n_columns)
    if columns is None:
        return "fourier"
    most = MOST_EXACT_COLUMNS if isinstance(rank, str) else max(rank, n_columns)
    return "exact" if columns <= most or not has_sketch(kernel) else "sketch"


def make_map(
    kind: str,
    kernel: Kernel,
    pool: Rows,
    size: int,
    *,
    landmarks: str = "uniform",
    random: np.random.RandomState,
    dtype: Any = np.float32,
) -> FeatureMap:
    """The feature map of a kind, with ``size`` columns; landmarks come from a pool of distinct rows."""
    check_choice("a feature map", kind, FEATURE_MAPS)
    return FEATURE_MAPS[kind].make(kernel, pool, size, landmarks=landmarks, random=random, dtype=dtype)


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
    has_landmarks = takes_tensors = True
    held: HeldRows

    def __init__(self, kernel: Kernel, landmarks: Rows, dtype: Any = np.float32) -> None:
        self.kernel, self.dtype, self.size = kernel, np.dtype(dtype), landmarks.shape[0]
        self.held = HeldRows(kernel, landmarks, dtype)
        precise = self.held.rows.astype(np.float64)
        W = np.asarray(kernel.block(precise, precise), dtype=np.float64)
        values, vectors = np.linalg.eigh((W + W.T) / 2)
        least = smallest_eigenvalue(W, values, self.dtype)
        kept = values > least
        self.n_negative, self.lowest = int((values < -least).sum()), float(values[0] / max(values[-1], 1e-300))
        self._root: FloatArray = vectors[:, kept] / np.sqrt(values[kept])  # T, (p, r)
        self._right: Rows | None = self._right_side() if kernel.inner_product else None

    def _right_side(self) -> Rows:
        right = self.kernel.right(self.held.rows)
        return right.T.tocsr() if sparse.issparse(right) else np.ascontiguousarray(right.T)

    @classmethod
    def make(
        cls, kernel: Kernel, pool: Rows, size: int, *, landmarks: str, random: np.random.RandomState, dtype: Any
    ) -> NystroemMap:
        return cls(kernel, pool[choose_landmarks(landmarks, kernel, pool, size, random, dtype)], dtype)

    def for_rows(self) -> NystroemMap:
        light = copy(self)
        light._root, light._right = self._root[:0], None  # the second is made of the landmarks when it is needed
        return light

    def columns(self, X: Rows) -> FloatArray:
        rows = self.held.hold(X.tocsr() if sparse.issparse(X) else X)
        if self._right is None and self.kernel.inner_product:
            self._right = self._right_side()
        if not on_host(X):
            if not isinstance(self._right, np.ndarray):
                raise ParameterError(
                    "landmarks on a device need dense rows and a kernel of an inner product, not "
                    f"{self.kernel.name!r}: hold the rows on the host."
                )
            return self.kernel.finish(self.kernel.left(rows) @ moved(self._right, rows))
        if self._right is None:
            return np.asarray(self.kernel.block(rows, self.held.rows)).astype(self.dtype, copy=False)
        # Rounding cannot lift an exponent of rbf far above zero here: landmarks lie near the middle of all rows.
        return self.kernel.finish(dense_product(self.kernel.left(rows), self._right))

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
    scores = leverage_scores(pilots, pool, None, size / pool.shape[0])
    # Draws without replacement in proportion to the scores: the largest of u^(1/τ), in logarithms.
    keys = np.log(random.uniform(size=len(scores))) / np.maximum(scores, 1e-12)
    return np.argsort(-keys, kind="stable")[:size]


def leverage_scores(pilots: HeldRows, X: Rows, ridge: float | None, share: float) -> FloatArray:
    """τ(x) = min(1, (q/ν) [κ(x, x) − κ(x, Z)(W + νI)⁻¹κ(Z, x)]), pilots Z being a share q of the rows.

    With every row a pilot this is the diagonal of K(K + νI)⁻¹. A row that is like no pilot keeps all of κ(x, x). The
    ridge ν is the median |eigenvalue| of W unless given.
    """
    kernel = pilots.kernel
    W = np.asarray(kernel.block(pilots.rows, pilots.rows), dtype=np.float64)
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    ridge = max(float(np.median(np.abs(values))) if ridge is None else ridge, float(np.finfo(float).tiny))
    root = vectors / np.sqrt(np.maximum(values, 0.0) + ridge)
    scores = np.empty(X.shape[0])
    for top in range(0, X.shape[0], PANEL):
        rows = pilots.hold(X[top : top + PANEL])
        explained = ((kernel.block(rows, pilots.rows) @ root) ** 2).sum(axis=1)
        scores[top : top + PANEL] = kernel.diagonal(rows) - explained
    return np.clip(share / ridge * scores, 0.0, 1.0)


LANDMARKS: dict[str, Callable[..., IntArray]] = {"uniform": _uniform, "kmeans++": _spread, "leverage": _leverage}
"""The ways of choosing landmarks by name; validation and documentation read this table."""


FEATURE_MAPS: dict[str, type[FeatureMap]] = {
    "nystroem": NystroemMap,
    "exact": ExactMap,
    "fourier": FourierMap,
    "sketch": SketchMap,
}
"""The feature maps by kind; ``FeatureMap.make`` makes one."""


# Passes over the rows of a feature map: sums and products, nothing of size n × p kept


BLOCK_ENTRIES = 2**19
"""Entries of c(X) that are computed at once: a float32 block of 2 MiB, which stays in a core's cache."""

DEVICE_ENTRIES = 2**23
"""The same on a device: enough to fill it, few enough rows for their sums in float32."""

SPARSE_ROWS = 2**14
"""Rows whose sparse columns are computed at once."""

PRECISE_SIZE, PRECISE_ROWS = 128, 2**15
"""Matrices of at most so many columns, or of fewer rows, are products in float64 on the host, and take less time than
other steps then. Products of a block in float32 would depend on how rows are cut into blocks, and eigenvectors on that,
the more the closer eigenvalues are.
"""

SHORT_SUM = 16
"""Rows that a sum of the columns of many rows adds up in float32."""

LEAST_PANEL = 256
"""Rows of the shortest product in float32: each is followed by p × p additions in float64."""

PANEL_ENTRIES = 2**16
"""Entries of c(X) that become float64 at once: 512 KiB, which stay in a core's cache."""

GROUPS = 8
"""Partial sums of a pass: fixed, so that sums never depend on the number of threads."""


def factored_bytes(size: int, chunk_rows: int, n_columns: int) -> int:
    """Memory of a pass: partial sums of p × p, a chunk of rows, and a few blocks of columns."""
    return 8 * size * size * (GROUPS + 6) + 16 * chunk_rows * n_columns + 64 * BLOCK_ENTRIES


def device_factored_bytes(size: int, itemsize: int) -> int:
    """Memory of a pass on a device besides the rows: partial sums of p × p, and a few blocks of columns."""
    return 8 * size * size * (GROUPS + 2) + 4 * itemsize * max(DEVICE_ENTRIES, 64 * size)


def block_starts(feature_map: FeatureMap, X: Rows) -> range:
    """Where blocks of rows begin: by the sizes alone, never by the number of threads."""
    if feature_map.is_sparse:
        return range(0, X.shape[0], SPARSE_ROWS if on_host(X) else DEVICE_ENTRIES // 64)
    entries = BLOCK_ENTRIES if on_host(X) else DEVICE_ENTRIES
    return range(0, X.shape[0], max(entries // feature_map.size, 64))


def _placed(values: FloatArray, feature_map: FeatureMap, X: Rows) -> FloatArray:
    """Values in the map's precision, on the device of the rows."""
    if on_host(X) or feature_map.is_sparse:
        return np.ascontiguousarray(values, dtype=feature_map.dtype)
    return as_dtype(moved(values, X), feature_map.dtype)


def _factor(values: FloatArray, feature_map: FeatureMap, X: Rows) -> FloatArray:
    """What columns are multiplied with: in float64 on the host, in the map's precision on a device."""
    here = feature_map.is_sparse or on_host(X)
    return np.ascontiguousarray(values, dtype=np.float64) if here else _placed(values, feature_map, X)


def _precise_panels(columns: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Columns in float64, a few rows at a time, with their places. Each panel is written over by the next."""
    step = max(PANEL_ENTRIES // columns.shape[1], 16)
    room = np.empty((min(step, columns.shape[0]), columns.shape[1]))
    for top in range(0, columns.shape[0], step):
        panel = room[: min(step, columns.shape[0] - top)]
        np.copyto(panel, columns[top : top + step])
        yield slice(top, top + step), panel


def _product(columns: FloatArray, Q: FloatArray) -> FloatArray:
    """C Q in float64. Q may have large entries whose products cancel: float32 would not do, even if C has no more."""
    if sparse.issparse(columns):
        return np.asarray(columns @ Q)
    if not on_host(columns):
        return float64(columns @ Q)
    out = np.empty((columns.shape[0], Q.shape[1]))
    for place, panel in _precise_panels(columns):
        np.matmul(panel, Q, out=out[place])
    return out


def absolute_product(columns: FloatArray, sizes: FloatArray) -> FloatArray:
    """|C| sizes, shape (m,), products in the precision of C: a few rows at a time, which stay in a core's cache."""
    if sparse.issparse(columns):
        return np.asarray(abs(columns) @ sizes)
    if not on_host(columns):
        return float64(abs(columns) @ sizes)
    out, step = np.empty(columns.shape[0]), max(PANEL_ENTRIES // columns.shape[1], 16)
    room = np.empty((min(step, columns.shape[0]), columns.shape[1]), columns.dtype)
    for top in range(0, columns.shape[0], step):
        panel = np.abs(columns[top : top + step], out=room[: min(step, columns.shape[0] - top)])
        out[top : top + step] = panel @ sizes
    return out


def _add_sums(total: FloatArray, columns: FloatArray, V: FloatArray, n_rows: int) -> None:
    """Add Cᵀ V to a sum over ``n_rows`` rows in float64: if they are many, float32 products of few rows."""
    if sparse.issparse(columns):
        total += columns.T @ V
        return
    if not on_host(columns):
        total += columns.T @ V
        return
    whole = 0
    if n_rows >= PRECISE_ROWS:
        whole = columns.shape[0] // SHORT_SUM * SHORT_SUM
        factors = V[:whole].astype(columns.dtype).reshape(-1, SHORT_SUM, V.shape[1])
        sums = factors.transpose(0, 2, 1) @ columns[:whole].reshape(-1, SHORT_SUM, columns.shape[1])
        total += sums.sum(axis=0, dtype=np.float64).T
    for place, panel in _precise_panels(columns[whole:]):
        total += panel.T @ V[whole:][place]


def _panel_rows(n_columns: int, n_rows: int) -> int:
    """Rows whose products may be added up in float32, of ``n_rows`` in all; 0 if none.

    A product of L rows rounds by at most eps √L as a share of itself, and the errors of n/L products average out:
    eps L/√n as a share of their sum, so that L near √n leaves eps.
    """
    return 0 if n_columns <= PRECISE_SIZE or n_rows < PRECISE_ROWS else max(LEAST_PANEL, int(np.sqrt(n_rows)))


def _add_gram(total: FloatArray, columns: FloatArray, n_rows: int) -> None:
    """Add CᵀC to a sum over ``n_rows`` rows in float64: on the host in panels of rows, as ``_panel_rows`` says."""
    count = columns.shape[0]
    panel = _panel_rows(columns.shape[1], n_rows) if on_host(columns) else count
    if panel == 0:
        columns, panel = float64(columns), count
    panel = -(-count // max(count // max(panel, 1), 1))  # of equal lengths, at most twice as long
    for top in range(0, count, panel):
        rows = columns[top : top + panel]
        total += rows.T @ rows  # one array with itself: half the work, by NumPy's own choice


def _jobs(X: Rows, n_jobs: int | None) -> int | None:
    """Threads of a pass: one if a device does the work."""
    return n_jobs if on_host(X) else 1


def _digits(X: Rows) -> AbstractContextManager[None]:
    """Products in the precision of their factors: on a device a program may have allowed fewer digits."""
    return nullcontext() if on_host(X) else full_float32(namespace(X))


def column_sums(
    feature_map: FeatureMap,
    X: Rows,
    V: FloatArray,
    *,
    n_rows: int | None = None,
    n_jobs: int | None = None,
    tick: Tick | None = None,
) -> FloatArray:
    """c(X)ᵀ V, shape (p, b), in float64, summed in a fixed order; c is in the map's precision.

    ``n_rows`` is the number of all rows of the sum, if X has only some of them: if they are many (``PRECISE_ROWS``),
    products of a few rows are in the map's precision too. So are those of a block on a device. The sums are on the
    host, wherever the rows lie.
    """
    V = _factor(V, feature_map, X)

    def add(total: FloatArray, columns: FloatArray, place: slice) -> None:
        _add_sums(total, columns, V[place], n_rows or X.shape[0])

    return _summed(feature_map, X, V.shape[1], add, n_jobs, tick)


def weighted_gram(
    feature_map: FeatureMap,
    X: Rows,
    weigh: Callable[[FloatArray, slice], FloatArray],
    *,
    centre: FloatArray | None = None,
    n_rows: int | None = None,
    n_jobs: int | None = None,
) -> FloatArray:
    """Σ_x ω(x) (c(x) − a)(c(x) − a)ᵀ, shape (p, p), in float64; a is the ``centre``, zero if None.

    ``weigh`` gives √ω of a block from its columns and place. ``n_rows`` is the number of all rows of the sum, if X has
    only some of them. Products of many rows are in the map's precision, and short (``_panel_rows``): their rounding is
    a share of |c − a|², so a centre near all columns saves the digits that the columns have in common. The sums are on
    the host, wherever the rows lie.
    """
    middle = None if centre is None else _placed(centre, feature_map, X)

    def add(total: FloatArray, columns: FloatArray, place: slice) -> None:
        roots = as_dtype(weigh(columns, place)[:, None], feature_map.dtype)
        if middle is not None:
            columns -= middle
        columns *= roots
        _add_gram(total, columns, n_rows or X.shape[0])

    return _summed(feature_map, X, feature_map.size, add, n_jobs)


def _summed(
    feature_map: FeatureMap,
    X: Rows,
    width: int,
    add: Callable[[FloatArray, FloatArray, slice], None],
    n_jobs: int | None,
    tick: Tick | None = None,
) -> FloatArray:
    """A sum over the rows, shape (p, width), on the host: ``add`` takes partial sums, columns of a block, its place."""
    starts = block_starts(feature_map, X)

    def work(group: int, pulse: Pulse) -> FloatArray:
        total: FloatArray = full((feature_map.size, width), 0.0, X)
        for top in starts[group::GROUPS]:
            place = slice(top, top + starts.step)
            add(total, feature_map.columns(X[place]), place)
            pulse()
        return total

    groups = min(GROUPS, max(len(starts), 1))
    with _digits(X):
        parts = run_groups(work, groups, n_jobs=_jobs(X, n_jobs), total=len(starts), tick=tick)
        return to_host(sum(parts[1:], start=parts[0]))


def map_rows(
    feature_map: FeatureMap,
    X: Rows,
    Q: FloatArray,
    finish: Callable[..., Result],
    *,
    n_jobs: int | None = None,
    sizes: FloatArray | None = None,
) -> list[Result]:
    """``finish(c(X) Q)`` of every block of rows, in order and on their device, in float64.

    With ``sizes`` (p,) it is ``finish(c(X) Q, |c(X)| sizes)``: what the terms of a sum add up to if none cancels.
    """
    Q = _factor(Q, feature_map, X)
    sizes = None if sizes is None else _placed(sizes, feature_map, X)

    def work(place: slice) -> Result:
        columns = feature_map.columns(X[place])
        if sizes is None:
            return finish(_product(columns, Q))
        return finish(_product(columns, Q), absolute_product(columns, sizes))

    with _digits(X):
        return run_panels(work, X.shape[0], block_starts(feature_map, X).step, n_jobs=_jobs(X, n_jobs))


def map_product(feature_map: FeatureMap, X: Rows, Q: FloatArray, *, n_jobs: int | None = None) -> FloatArray:
    """c(X) Q, shape (n, b), in float64."""
    return stacked(map_rows(feature_map, X, Q, lambda product: product, n_jobs=n_jobs), (0, Q.shape[1]), X)


def stacked(blocks: list[FloatArray], empty: tuple[int, ...], X: Rows) -> FloatArray:
    """What blocks of X gave, one below the other; if X has no rows, an array of the ``empty`` shape."""
    return namespace(blocks[0]).concatenate(blocks) if blocks else full(empty, 0.0, X)


def squared_lengths(feature_map: FeatureMap, X: Rows, *, n_jobs: int | None = None) -> FloatArray:
    """|φ(x)|² of every row, shape (n,)."""
    if feature_map.is_sparse:
        columns: Any = feature_map.columns(X)
        return np.asarray(columns.power(2).sum(axis=1)).ravel()
    root = feature_map.lift(np.eye(feature_map.rank))
    xp = namespace(X)
    blocks = map_rows(feature_map, X, root, lambda features: xp.einsum("ij,ij->i", features, features), n_jobs=n_jobs)
    return stacked(blocks, (0,), X)
