"""Feature maps: κ(x, y) as an inner product of a few columns a row.

Everything that a factored K = ΦΦᵀ needs of its rows: the columns c(x) of a block of rows, and a small matrix T with
Φ = c(X) T. T is applied to sums over rows, never to the rows themselves: a pass costs no product with it. Rows on a
device (tensors) give columns there; what a map consists of is drawn and kept on the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import lru_cache, partial, reduce
from itertools import combinations_with_replacement
from math import comb, factorial
from operator import iadd
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtr
from sklearn.kernel_approximation import PolynomialCountSketch

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ParameterError
from biclique.kernels.held import HeldRows, in_range
from biclique.kernels.kernel import Form, InnerProductKernel, Kernel, dense_product, middle, squared_norms
from biclique.runtime.arguments import check_choice
from biclique.runtime.namespace import as_dtype, float64, full, full_float32, moved, namespace, on_host, to_host
from biclique.runtime.threads import Pulse, Result, Tick, each_group, run_panels

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
    _root: FloatArray | None = None
    """T, (p, r); None for the identity."""
    is_sparse: bool = False
    """Whether columns are a CSR matrix, or of a tensor what stands for one on its device."""
    sparse_rows: int = 2**14
    """Rows whose sparse columns are computed at once."""
    n_negative: int = 0
    """Eigenvalues of κ of the landmarks that are negative by more than rounding, and were left out."""
    lowest: float = 0.0
    """The lowest of these, as a share of the largest."""

    @classmethod
    def make(cls, kernel: Kernel, pool: Rows, size: int, **how: Any) -> FeatureMap:
        """The map of a kernel, with ``size`` columns if it has a choice; ``how`` is ``random`` and ``dtype``."""
        return cls(kernel, pool, size, **how)  # type: ignore[call-arg]

    @abstractmethod
    def columns(self, X: Rows) -> FloatArray:
        """c(x) of every row, shape (m, p), in the map's own precision; a fresh array."""

    def project(self, sums: FloatArray) -> FloatArray:
        """Tᵀ sums: from sums over rows of c to sums over rows of φ."""
        return sums if self._root is None else self._root.T @ sums

    def lift(self, coefficients: FloatArray) -> FloatArray:
        """T coefficients: what φ is multiplied with, as what c is multiplied with."""
        return coefficients if self._root is None else self._root @ coefficients

    @property
    def rank(self) -> int:
        """r: columns of φ."""
        return self.size if self._root is None else int(self._root.shape[1])

    def for_rows(self) -> FeatureMap:
        """The same map for ``columns`` alone, as small as can be: what travels to other machines."""
        if self._root is None:
            return self
        light = copy(self)
        light._root = self._root[:0]
        return light

    def features(self, X: Rows) -> FloatArray:
        """φ(x) of every row, in float64."""
        return self.columns(X).astype(np.float64) @ self.lift(np.eye(self.rank))


class FourierMap(FeatureMap):
    """φ(x) = √(2/p) [cos⟨ω_j, x⟩, sin⟨ω_j, x⟩], j = 1..p/2: E⟨φ(x), φ(y)⟩ = κ(x, y) for a kernel of x − y.

    Frequencies come from rows of random orthogonal matrices, each stretched to the length of a normal vector: every row
    is standard normal, and together they are spread out better than independent ones. Draws follow the values of the
    columns, so that their order and signs do not matter; another column, even of zeros, is another draw.
    """

    by_name = False
    takes_tensors = True

    def __init__(
        self, kernel: Kernel, pool: Rows, size: int, random: np.random.RandomState, dtype: Any = np.float32
    ) -> None:
        self.kernel, self.dtype, self.size = kernel, np.dtype(dtype), max(size // 2, 1) * 2
        some = _dense(pool[:1000])
        self.offset = middle(some)  # phases are taken from the middle of the rows, which saves digits
        order, signs = _columns_by_size(some - self.offset)
        normal = np.empty((self.size // 2, pool.shape[1]))
        normal[:, order] = _orthogonal_rows(pool.shape[1], self.size // 2, random)
        frequencies = _frequencies(kernel.form, normal * signs)
        self.frequencies: FloatArray = np.ascontiguousarray(frequencies.T, dtype=self.dtype)  # (d, p/2)

    def columns(self, X: Rows) -> FloatArray:
        phases = as_dtype(float64(_dense(X)) - moved(self.offset, X), self.dtype) @ moved(self.frequencies, X)
        xp = namespace(X)
        out: FloatArray = xp.concatenate([xp.cos(phases), xp.sin(phases)], axis=1)
        out *= float(np.sqrt(2 / self.size))
        return out


def _frequencies(form: Form | None, normal: FloatArray) -> FloatArray:
    """ω with E cos⟨ω, x − y⟩ = κ(x, y), from standard normal rows."""
    if form is not None and form.function == "gauss":
        return np.asarray(np.sqrt(2 * float(form.gamma)) * normal)  # normal with variance 2γ
    if form is not None and form.function == "manhattan":
        # Cauchy of scale γ: the normal numbers carried over through their distribution function.
        return np.asarray(float(form.gamma) * np.tan(np.pi * (ndtr(normal) - 0.5)))
    raise ParameterError("only the rbf and laplacian kernels have Fourier features.")


def _columns_by_size(centred: FloatArray) -> tuple[IntArray, FloatArray]:
    """An order and signs of columns for draws: those of their values, wherever they stand and however they point."""
    signs = np.where((centred**3).sum(axis=0) < 0, -1.0, 1.0)
    return np.lexsort(((centred**2).sum(axis=0), np.abs(centred).sum(axis=0))), signs


def _orthogonal_rows(d: int, count: int, random: np.random.RandomState) -> FloatArray:
    """Rows that are each standard normal, and orthogonal to one another within every run of d, shape (count, d)."""
    runs, width = [], min(d, count)
    for _ in range(-(-count // width)):
        turn, triangle = np.linalg.qr(random.standard_normal((d, width)))
        turn *= np.where(np.diagonal(triangle) < 0, -1.0, 1.0)  # else the signs of LAPACK's factor would show
        runs.append(turn.T * np.sqrt(random.chisquare(d, size=width))[:, None])
    return np.concatenate(runs)[:count]


class ExactMap(FeatureMap):
    """φ(x) with ⟨φ(x), φ(y)⟩ = κ(x, y): x itself for linear, x/|x| for cosine, weighted monomials for polynomial."""

    exact = True
    by_name = False
    takes_tensors = True

    @classmethod
    def make(cls, kernel: Kernel, pool: Rows, *_: int, **how: Any) -> ExactMap:
        return cls(kernel, pool.shape[1], how["dtype"])

    def __init__(self, kernel: Kernel, n_columns: int, dtype: Any = np.float64) -> None:
        size = exact_columns(kernel, n_columns)
        if size is None:
            raise ParameterError(f"the {kernel.name} kernel has no exact feature map.")
        self.kernel, self.dtype, self.size = kernel, np.dtype(dtype), size

    def columns(self, X: Rows) -> FloatArray:
        X = in_range(self.kernel, X)
        rows: Rows = sparse.csr_array(X, dtype=self.dtype) if sparse.issparse(X) else as_dtype(X, self.dtype)
        form = self.kernel.form
        if form is not None and form.function == "power":
            return _weighted_monomials(form, _dense(rows))
        if isinstance(self.kernel, InnerProductKernel):
            rows = self.kernel.left(rows)
        return 1.0 * _dense(rows)  # a fresh array


def exact_columns(kernel: Kernel, n_columns: int) -> int | None:
    """Columns of ``ExactMap``; None if κ is not known as an inner product of finitely many features."""
    form = kernel.form
    if form is not None and form.function == "inner":
        return n_columns
    if form is None or form.function != "power" or form.degree != int(form.degree) or form.coef0 < 0:
        return None
    return comb(n_columns + int(form.degree), int(form.degree))


def _weighted_monomials(form: Form, X: FloatArray) -> FloatArray:
    """(γ⟨x, y⟩ + c)^q = Σ_a (q choose a) Π_l (γ x_l y_l)^(a_l) c^(a_0): the roots of its terms, in d + 1 variables."""
    factors, scales = _monomials(X.shape[1], int(form.degree))
    xp = namespace(X)
    constant = xp.ones_like(X[:, :1]) * float(np.sqrt(form.coef0))
    variables = xp.concatenate([constant, float(np.sqrt(form.gamma)) * X], axis=1)
    out = xp.asarray(moved(scales, X), dtype=X.dtype) * variables[:, moved(factors[0], X)]
    for factor in factors[1:]:
        out *= variables[:, moved(factor, X)]
    return out  # type: ignore[no-any-return]


@lru_cache(maxsize=8)
def _monomials(d: int, degree: int) -> tuple[IntArray, FloatArray]:
    """The variables of every monomial of d + 1 variables, (degree, p), and √(q choose a), (p,)."""
    monomials = list(combinations_with_replacement(range(d + 1), degree))
    counts = [np.unique(m, return_counts=True)[1].tolist() for m in monomials]
    scales = np.sqrt([factorial(degree) / np.prod([factorial(c) for c in cs]) for cs in counts])
    return np.array(monomials).T.copy(), scales


class SketchMap(FeatureMap):
    """φ(x) with E⟨φ(x), φ(y)⟩ = (γ⟨x, y⟩ + c)^q: scikit-learn's PolynomialCountSketch, for rows on the host.

    Its draws follow the values of the columns, as those of ``FourierMap``.
    """

    by_name = False

    def __init__(
        self, kernel: Kernel, pool: Rows, size: int, random: np.random.RandomState, dtype: Any = np.float64
    ) -> None:
        form = kernel.form
        if form is None or form.function != "power":
            raise ParameterError(f"the {kernel.name} kernel has no sketch.")
        self.kernel, self.dtype, self.size = kernel, np.dtype(dtype), size
        self._sketch = PolynomialCountSketch(
            gamma=form.gamma, degree=int(form.degree), coef0=form.coef0, n_components=size, random_state=random
        ).fit(np.zeros((1, pool.shape[1])))
        self._order, signs = _columns_by_size(np.asarray(_dense(pool[:1000]), dtype=np.float64))
        self._signs = signs[self._order]

    def columns(self, X: Rows) -> FloatArray:
        ordered = np.asarray(_dense(X), dtype=np.float64)[:, self._order] * self._signs
        return np.asarray(self._sketch.transform(ordered), dtype=self.dtype)


def _dense(X: Rows) -> FloatArray:
    return X.toarray() if sparse.issparse(X) else X


def map_kind(gram: str, kernel: Kernel, n_columns: int, rank: int | str) -> str:
    """Which feature map holds K: a key of ``FEATURE_MAPS``; ``gram="features"`` leaves it to the kernel."""
    if gram in FEATURE_MAPS:
        return gram
    form, columns = kernel.form, exact_columns(kernel, n_columns)
    function = "" if form is None else form.function
    if function in ("gauss", "manhattan"):
        return "fourier"
    if form is not None and function == "power" and form.coef0 < 0:
        raise ParameterError(f"gram='features' needs coef0 of at least 0, got {form.coef0:g}: use gram='nystroem'.")
    if columns is None:
        raise ParameterError(
            f"gram='features' knows rbf, laplacian, linear, cosine and polynomial of whole degree, not "
            f"{kernel.name!r}: use gram='nystroem', which takes every kernel."
        )
    if function == "power":
        most = MOST_EXACT_COLUMNS if isinstance(rank, str) else max(rank, n_columns)
        return "exact" if columns <= most else "sketch"
    if columns > MOST_EXACT_COLUMNS:
        raise ParameterError(
            f"gram='features' for affinity={kernel.name!r} takes the {columns} columns of X as they are, at most "
            f"{MOST_EXACT_COLUMNS}: use gram='nystroem', or fewer columns (sklearn.decomposition.TruncatedSVD)."
        )
    return "exact"


def make_map(
    kind: str, kernel: Kernel, pool: Rows, size: int, *, random: np.random.RandomState, dtype: Any = np.float32
) -> FeatureMap:
    """The feature map of a kind, with ``size`` columns if it has a choice; landmarks are drawn from distinct rows."""
    check_choice("a feature map", kind, FEATURE_MAPS)
    return FEATURE_MAPS[kind].make(kernel, pool, size, random=random, dtype=dtype)


FLOAT32_CUT = 1e-7
"""Eigenvalues of κ(Z, Z) below this share of the largest are rounding in float32, and are left out."""

FLOAT64_CUT = 1e-12
"""The same in float64."""

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
        self._root = vectors[:, kept] / np.sqrt(values[kept])

    @classmethod
    def make(cls, kernel: Kernel, pool: Rows, size: int, **how: Any) -> NystroemMap:
        chosen = np.arange(pool.shape[0])
        if len(chosen) > size:
            chosen = np.sort(how["random"].choice(len(chosen), size, replace=False))
        return cls(kernel, pool[chosen], how["dtype"])

    def columns(self, X: Rows) -> FloatArray:
        rows = self.held.hold(X.tocsr() if sparse.issparse(X) else X)
        if isinstance(self.kernel, InnerProductKernel):
            # Rounding cannot lift an exponent of rbf far above zero here: landmarks lie near the middle of all rows.
            left, right = self.kernel.left(rows), self.held.right
            return self.kernel.finish(dense_product(left, right) if on_host(X) else left @ moved(right, rows))
        if not on_host(X):
            raise ParameterError(
                f"landmarks on a device need a kernel of an inner product, not {self.kernel.name!r}: hold the rows "
                "on the host."
            )
        return np.asarray(self.kernel.block(rows, self.held.rows)).astype(self.dtype, copy=False)


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


FEATURE_MAPS: dict[str, type[FeatureMap]] = {
    "nystroem": NystroemMap,
    "exact": ExactMap,
    "fourier": FourierMap,
    "sketch": SketchMap,
}
"""The feature maps by kind."""


# Passes over the rows of a feature map: sums and products, nothing of size n × p kept


BLOCK_ENTRIES = 2**19
"""Entries of c(X) that are computed at once: a float32 block of 2 MiB, which stays in a core's cache."""

DEVICE_ENTRIES = 2**23
"""The same on a device: enough to fill it, few enough rows for their sums in float32."""

PRECISE_SIZE = 128
"""Matrices of at most so many columns are products in float64 on the host: blocks of rows do not change these."""

PRECISE_ROWS = 2**15
"""The same for matrices of fewer rows than this."""

LEAST_ROWS = 256
"""Rows of the smallest block, and of a product in float32: each is followed by p × p additions in float64."""

GROUPS = 8
"""Partial sums of a pass: fixed, so that sums never depend on the number of threads."""


def block_starts(feature_map: FeatureMap, X: Rows) -> range:
    """Where blocks of rows begin: by the sizes alone, never by the number of threads."""
    if feature_map.is_sparse:
        return range(0, X.shape[0], feature_map.sparse_rows * (1 if on_host(X) else 64))
    entries = BLOCK_ENTRIES if on_host(X) else DEVICE_ENTRIES
    return range(0, X.shape[0], max(entries // feature_map.size, LEAST_ROWS))


def mapped_rows(feature_map: FeatureMap, X: Rows, n_columns: int) -> int:
    """Rows of which c(X) Q is computed at once: those of a block, or fewer if c(X) is sparse and Q has many columns."""
    step = block_starts(feature_map, X).step
    if feature_map.is_sparse and on_host(X):
        step = min(step, max(BLOCK_ENTRIES // n_columns, LEAST_ROWS))
    return step


def _factor(values: FloatArray, feature_map: FeatureMap, X: Rows) -> FloatArray:
    """What columns are multiplied with: in float64 on the host, in the map's precision on a device.

    It may have large entries whose products cancel: float32 would not do, even if columns have no more digits.
    """
    return float64(values) if on_host(X) else as_dtype(moved(values, X), feature_map.dtype)


def _precise(columns: FloatArray) -> FloatArray:
    """Columns as they are multiplied: dense ones in float64 on the host."""
    return float64(columns) if isinstance(columns, np.ndarray) else columns


def absolute_product(columns: FloatArray, sizes: FloatArray) -> FloatArray:
    """|C| sizes, shape (m,), products in the precision of C."""
    return float64(abs(columns) @ sizes)


def column_sums(
    feature_map: FeatureMap, X: Rows, V: FloatArray, *, n_jobs: int | None = None, tick: Tick | None = None
) -> FloatArray:
    """c(X)ᵀ V, shape (p, b), on the host, summed in float64 in a fixed order.

    c is in the map's precision, and so are the products of a block on a device.
    """
    V = _factor(V, feature_map, X)

    def add(total: FloatArray, columns: FloatArray, place: slice) -> FloatArray:
        total += _precise(columns).T @ V[place]
        return total

    start = partial(full, (feature_map.size, V.shape[1]), 0.0, X)
    return to_host(sum_blocks(feature_map, X, start, add, n_jobs, tick))


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
    only some of them. Products of many rows are in the map's precision, and short: L rows round by eps √L as a share of
    themselves, and the errors of n/L products average out: eps L/√n of their sum, which is near eps. This is a
    share of |c − a|², so a centre near all columns saves the digits that the columns have in common. The sums are on
    the host, wherever the rows lie. Those of sparse columns have no centre: they are a CSR matrix, or stay on a device.
    """
    p, dtype = feature_map.size, feature_map.dtype
    start: Callable[[], Any] = partial(full, (p, p), 0.0, X)
    if feature_map.is_sparse and on_host(X):
        start = partial(sparse.csr_array, (p, p))
    middle = None if centre is None or feature_map.is_sparse else as_dtype(moved(centre, X), dtype)
    precise = p <= PRECISE_SIZE or (n_rows or X.shape[0]) < PRECISE_ROWS

    def add(total: Any, columns: Any, place: slice) -> Any:
        roots = weigh(columns, place)
        if sparse.issparse(columns):
            columns = sparse.dia_array((roots[None, :], [0]), shape=(len(roots),) * 2) @ columns
            return total + columns.T @ columns
        if feature_map.is_sparse:
            return total + columns.gram(roots)
        if middle is not None:
            columns -= middle
        columns *= as_dtype(roots[:, None], dtype)
        step = LEAST_ROWS if on_host(columns) and not precise else columns.shape[0]
        for top in range(0, columns.shape[0], step):
            rows = _precise(columns[top : top + step]) if precise else columns[top : top + step]
            total += rows.T @ rows  # one array with itself: half the work, by NumPy's own choice
        return total

    found = sum_blocks(feature_map, X, start, add, n_jobs)
    return to_host(found) if not feature_map.is_sparse else found


def sum_blocks(
    feature_map: FeatureMap,
    X: Rows,
    start: Callable[[], Any],
    add: Callable[[Any, Any, slice], Any],
    n_jobs: int | None,
    tick: Tick | None = None,
) -> Any:
    """A sum over the rows, in an order that does not depend on the threads; one thread if a device does the work.

    ``add`` adds a block to a partial sum, given the block's columns and place, and returns the new sum. It may change
    the sum it is given, which ``start`` makes. Partial sums are added with ``+=``.
    """
    starts = block_starts(feature_map, X)

    def work(group: int, pulse: Pulse) -> Any:
        total = start()
        for top in starts[group::GROUPS]:
            place = slice(top, top + starts.step)
            total = add(total, feature_map.columns(X[place]), place)
            pulse()
        return total

    groups, jobs = min(GROUPS, max(len(starts), 1)), n_jobs if on_host(X) else 1
    with full_float32(namespace(X)):
        return reduce(iadd, each_group(work, groups, n_jobs=jobs, total=len(starts), tick=tick))


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
    if sizes is not None:
        sizes = as_dtype(moved(sizes, X), feature_map.dtype)

    def work(place: slice) -> Result:
        columns = feature_map.columns(X[place])
        product = float64(_precise(columns) @ Q)
        return finish(product) if sizes is None else finish(product, absolute_product(columns, sizes))

    step, jobs = mapped_rows(feature_map, X, Q.shape[1]), n_jobs if on_host(X) else 1
    with full_float32(namespace(X)):
        return run_panels(work, X.shape[0], step, n_jobs=jobs)


def map_product(feature_map: FeatureMap, X: Rows, Q: FloatArray, *, n_jobs: int | None = None) -> FloatArray:
    """c(X) Q, shape (n, b), in float64."""
    return stacked(map_rows(feature_map, X, Q, lambda product: product, n_jobs=n_jobs), (0, Q.shape[1]), X)


def stacked(blocks: list[FloatArray], empty: tuple[int, ...], X: Rows) -> FloatArray:
    """What blocks of X gave, one below the other; if X has no rows, an array of the ``empty`` shape."""
    return namespace(blocks[0]).concatenate(blocks) if blocks else full(empty, 0.0, X)


def squared_lengths(feature_map: FeatureMap, X: Rows, *, n_jobs: int | None = None) -> FloatArray:
    """|φ(x)|² of every row, shape (n,)."""
    if feature_map.is_sparse:
        return squared_norms(feature_map.columns(X))
    root = feature_map.lift(np.eye(feature_map.rank))
    return stacked(map_rows(feature_map, X, root, squared_norms, n_jobs=n_jobs), (0,), X)
