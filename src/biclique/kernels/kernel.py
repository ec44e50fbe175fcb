"""What a kernel is: parameters, a pure ``block`` and a ``diagonal``; its rows as they are held; its bandwidth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from biclique._typing import Array, FloatArray, IntArray, Rows
from biclique.exceptions import ParameterError
from biclique.runtime import PANEL, Pulse, draw_by_permutation, run_groups
from biclique.runtime.namespace import as_dtype, float64, moved, namespace, on_host, to_host

if TYPE_CHECKING:
    from biclique.kernels.gower import Columns

EXPONENTIAL = 32
"""What an exponential and the product with a block of vectors cost, in columns of X."""

DEAR_FACTOR = 8
"""What a column of X costs if a kernel is not a matrix product."""


class Form(NamedTuple):
    """κ as one of four functions. Code that computes such a function in its own way reads this, not the class.

    - ``"gauss"``: exp(−γ |x − y|²),
    - ``"manhattan"``: exp(−γ |x − y|₁),
    - ``"inner"``: ⟨x, y⟩, of rows scaled to length 1 if ``unit``,
    - ``"power"``: (γ⟨x, y⟩ + c)^q.
    """

    function: str
    gamma: float = 1.0
    coef0: float = 0.0  # c
    degree: float = 1.0  # q
    unit: bool = False


class Spectrum(NamedTuple):
    """A kernel of x − y by its frequencies: κ(z) = (2π)^(−d) ∫ κ̂(ω) exp(i⟨ω, z⟩) dω."""

    density: Callable[[FloatArray], FloatArray]
    """κ̂ as a function of |ω|²."""
    reach: Callable[[float], float]
    """|z| beyond which κ is below a share of κ(0)."""
    cutoff: Callable[[float], float]
    """|ω| beyond which κ̂ is below a share of its largest value."""


class Kernel(ABC):
    """A base kernel κ(x, y).

    Subclass it, write ``block``, and pass an instance as ``affinity``: a stored K, tiles, landmarks and chunks need no
    more. ``block`` must be pure and must return the same values whichever rows it is asked for together. All else here
    has a default; what a kernel can do besides (exact features, tiles on a device) is another method of it. To give a
    kernel a name, add its class to ``biclique.kernels.KERNELS``.
    """

    name: ClassVar[str] = "custom"
    has_gamma: ClassVar[bool] = False
    """The first parameter of the class is γ: the rules for the bandwidth choose it."""
    needs_nonnegative: ClassVar[bool] = False
    """κ is defined for rows without negative numbers alone."""
    accepts_sparse: ClassVar[bool] = False
    translation_invariant: ClassVar[bool] = False
    """κ(x + t, y + t) = κ(x, y): the Gram operator may centre the rows, which saves digits."""
    positive: ClassVar[bool] = False
    """κ(x, y) ≥ 0 for all rows: in sums of such values nothing cancels."""
    cheap: ClassVar[bool] = False
    """A block costs about one matrix product, so computing it again beats storing it."""
    inner_product: ClassVar[bool] = False
    """κ(x, y) = f(⟨l(x), r(y)⟩), with l, r and f in ``left``, ``right`` and ``finish``: see ``InnerProductKernel``."""
    on_device: ClassVar[bool] = False
    """``device_side`` and ``device_tile`` take tensors."""
    landmarks_on_device: ClassVar[bool] = False
    """``left`` and ``finish`` take tensors."""
    takes_gaps: ClassVar[bool] = False
    """κ leaves out NaN, which is a missing value; K may then have negative eigenvalues, which are clipped."""
    columns: Columns | None = None
    """What a fit knows of the columns, for a kernel that needs it."""
    euclidean: ClassVar[bool] = True
    """Rows are points: Euclidean distances between them have a meaning. Otherwise ``nearest`` finds near rows."""

    @classmethod
    def from_parameters(cls, *, gamma: float, coef0: float, degree: float) -> Kernel:  # noqa: ARG003
        """The kernel of an estimator's parameters, those that it has."""
        return cls(gamma) if cls.has_gamma else cls()  # type: ignore[call-arg]

    @property
    def label(self) -> str:
        """What messages call it."""
        return repr(self.name)

    def of_columns(self, columns: Columns) -> Kernel:  # noqa: ARG002
        """The kernel with what a fit knows of the columns, if it needs that: itself if not."""
        return self

    @abstractmethod
    def block(self, X: Rows, Y: Rows) -> FloatArray:
        """κ(x_i, y_j) for every row of X and of Y, shape (n_x, n_y)."""

    def diagonal(self, X: Rows) -> FloatArray:
        """κ(x_i, x_i), shape (n_x,)."""
        return np.array([self.block(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(X.shape[0])], dtype=float)

    def rescaled(self, X: Rows) -> Rows:
        """X, or rows with the same κ whose values fit float32 in any unit; called before rows are rounded."""
        return X

    def nonnegative(self, X: Rows) -> bool:  # noqa: ARG002
        """Whether κ(x, y) ≥ 0 for all pairs of these rows; False if that is not known."""
        return self.positive

    def float32_error(self, X: Rows) -> float:  # noqa: ARG002
        """A bound on the relative error of a value computed in float32, for the rows as they are held."""
        return float(np.finfo(np.float32).eps)

    def precise(self, X: Rows) -> Kernel:  # noqa: ARG002
        """The kernel itself, or one that keeps its digits, if even float64 loses them for these rows."""
        return self

    def dissimilarity(self, X: Rows) -> FloatArray | None:  # noqa: ARG002
        """q of all pairs, (n, n), if κ = exp(−γ q(x, y)); None for another function. The bandwidth rule asks for it."""
        return None

    def nearest(self, Y: Rows, X: Rows) -> tuple[FloatArray, IntArray]:  # noqa: ARG002
        """How far the nearest row of X is from every row of Y, and its number, if Euclidean distances do not tell."""
        raise TypeError(f"near rows of the {self.name} kernel are found by Euclidean distances.")

    def centre(self, X: FloatArray) -> FloatArray:
        """What is taken off dense rows before they are rounded, (d,), if κ is ``translation_invariant``."""
        return middle(X)

    def pairs(self, X: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
        """κ(x_{first_t}, x_{second_t}) for every t; as many evaluations as there are pairs."""
        out = np.empty(len(first))
        ranks = np.argsort(first, kind="stable")
        starts = np.flatnonzero(np.diff(first[ranks], prepend=-1))
        for run in np.split(ranks, starts[1:]):
            out[run] = self.block(X[first[run[:1]]], X[second[run]])[0]
        return out

    def cost_per_pair(self, n_columns: int) -> float:
        """What a value of κ and its product with a few vectors cost, in columns of a matrix product."""
        return n_columns + EXPONENTIAL if self.cheap else DEAR_FACTOR * n_columns + 4 * EXPONENTIAL

    def spectrum(self, n_columns: int) -> Spectrum | None:  # noqa: ARG002
        """The spectral density, if κ is a function of x − y whose density falls off fast; else None."""
        return None

    # Feature maps

    def exact_columns(self, n_columns: int) -> int | None:  # noqa: ARG002
        """Columns of ``exact_features``; None if κ is not an inner product of finitely many features."""
        return None

    def exact_features(self, X: Rows) -> FloatArray:  # noqa: ARG002
        """φ(x) with ⟨φ(x), φ(y)⟩ = κ(x, y), in the precision of X and on its device; a fresh, dense array."""
        raise TypeError(f"the {self.name} kernel has no exact feature map.")

    def frequencies(self, normal: FloatArray) -> FloatArray | None:  # noqa: ARG002
        """ω with E cos⟨ω, x − y⟩ = κ(x, y) from standard normal rows; None if κ is not such a function of x − y."""
        return None

    # Other ways to compute it

    @property
    def form(self) -> Form | None:
        """κ as a known function: fused products on a GPU and sketches have their own way with it. None for another."""
        return None

    def left(self, X: Rows) -> Rows:  # noqa: ARG002
        """l(x) for every row, shape (n, p)."""
        raise TypeError(f"the {self.name} kernel is not a function of an inner product: use block.")

    def right(self, X: Rows) -> Rows:  # noqa: ARG002
        """r(x) for every row, shape (n, p)."""
        raise TypeError(f"the {self.name} kernel is not a function of an inner product: use block.")

    def finish(self, inner: FloatArray) -> FloatArray:
        """f applied to inner products, in place."""
        return inner

    def device_side(self, X: Any) -> tuple[Any, Any]:
        """Rows on a device as ``device_tile`` takes them, and a number for every row, or None."""
        return X, None

    def device_tile(self, Y: Any, X: Any, y_own: Any, x_own: Any) -> Any:  # noqa: ARG002
        """κ(y_i, x_j), a fresh tensor; Y and X are rows of ``device_side``, ``y_own`` and ``x_own`` their numbers."""
        raise TypeError(f"the {self.name} kernel has no tiles on a device.")


class InnerProductKernel(Kernel):
    """A kernel of the form κ(x, y) = f(⟨l(x), r(y)⟩): one matrix product and one function a block.

    ``left`` and ``right`` compute l and r once for all rows; ``finish`` applies f in place. Everything
    that depends on one row alone (norms, scales, constants) is folded into l and r.
    """

    cheap = True
    inner_product = True

    @abstractmethod
    def left(self, X: Rows) -> Rows:
        """l(x) for every row, shape (n, p)."""

    @abstractmethod
    def right(self, X: Rows) -> Rows:
        """r(x) for every row, shape (n, p)."""

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        return self.finish(dense_product(self.left(X), self.right(Y).T))

    def diagonal(self, X: Rows) -> FloatArray:
        left, right = self.left(X), self.right(X)
        if sparse.issparse(left):
            inner = np.asarray(left.multiply(right).sum(axis=1), dtype=float).ravel()
        else:
            inner = row_products(left, right)
        return self.finish(inner)

    def pairs(self, X: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
        return self.finish(np.einsum("nd,nd->n", self.left(X[first]), self.right(X[second])))

    def device_tile(self, Y: Any, X: Any, y_own: Any, x_own: Any) -> Any:  # noqa: ARG002
        return self.finish(Y @ X.T)

    def float32_error(self, X: Rows) -> float:
        # What the cut sees is the spread around the mean; an offset of many spreads buries it under rounding.
        left = self.left(X)
        double = namespace(left).float64
        with np.errstate(over="ignore", invalid="ignore"):  # sums that are not finite are in need of float64 too
            total = float((left.multiply(left) if sparse.issparse(left) else left * left).sum(dtype=double))
            mean = to_host(left.mean(axis=0, dtype=double)).ravel()
            spread = total - left.shape[0] * float(mean @ mean)
        eps = float(np.finfo(np.float32).eps)
        if total < left.shape[0] * float(np.finfo(np.float32).tiny) / eps:
            return 1.0  # products that vanish in float32
        return eps * total / spread if spread > eps * total else 1.0


def none_negative(X: Rows) -> bool:
    """Whether no number of these rows is negative, nor missing."""
    return X.shape[0] == 0 or bool(X.min() >= 0)


def middle(X: FloatArray) -> FloatArray:
    """About the middle of dense rows, (d,): the median of a thousand of them, which no outlier moves."""
    return np.asarray(np.median(to_host(X[:: max(X.shape[0] // 1000, 1)]), axis=0), dtype=np.float64)


def row_products(X: Rows, Y: Rows) -> FloatArray:
    """⟨x_i, y_i⟩ of dense rows, (n,)."""
    if on_host(X):
        return np.einsum("ij,ij->i", X, Y)  # type: ignore[no-any-return]
    return (X * Y).sum(1)  # type: ignore[no-any-return]  # einsum would be a million small products


def dense_copy(X: Rows) -> FloatArray:
    """X as a fresh dense array, on its device."""
    return np.array(X.toarray() if sparse.issparse(X) else X) if on_host(X) else namespace(X).clone(X)


def dense_product(left: Rows, right: Rows) -> FloatArray:
    """left @ right as a dense array, for dense and sparse ones."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is an error of the caller's, with a cure
        product = left @ right
    return product.toarray() if sparse.issparse(product) else np.asarray(product)


DEVICE_ENTRIES = 2**26
"""How many numbers are converted to float64 at once when rows are centred on a device."""


class HeldRows:
    """A kernel and its training rows as they are stored: in one precision, centred if the kernel allows it.

    The expanded square |x|² − 2⟨x, y⟩ + |y|² loses digits far from the origin, so the middle of the rows is taken off
    first, in float64, for every kernel that does not see a translation. Rows on a device are held there; pickled ones
    are the host's. The caller's tensor is copied, because the caller may change it, unless ``owned`` says that it was
    made for this.
    """

    def __init__(self, kernel: Kernel, X: Rows, dtype: Any, *, owned: bool = False) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.offset: FloatArray | None = None
        if kernel.translation_invariant and not sparse.issparse(X):
            self.offset = kernel.centre(X)
        self.rows = self.hold(X)
        if self.rows is X and not owned and not on_host(X):
            self.rows = namespace(X).clone(X)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ if on_host(self.rows) else {**self.__dict__, "rows": to_host(self.rows)}

    def hold(self, X: Rows) -> Rows:
        """Other rows, treated as the training rows were."""
        X = self.kernel.rescaled(X)
        if sparse.issparse(X) and self.offset is None:
            return sparse.csr_array(X, dtype=self.dtype)
        if sparse.issparse(X):
            X = X.toarray()  # the training rows are dense, and counted from their middle
        if not on_host(X):
            return self._hold_there(X)
        if self.offset is None:
            return np.ascontiguousarray(X, dtype=self.dtype)
        out = np.empty(X.shape, dtype=self.dtype)
        return np.subtract(X, self.offset, out=out, casting="same_kind")  # in float64, rounded as it is stored

    def _hold_there(self, X: Array) -> Array:
        if self.offset is None:
            return as_dtype(X, self.dtype)
        offset, step = moved(self.offset, X), max(DEVICE_ENTRIES // X.shape[1], 1)
        out: Array = namespace(X).empty(X.shape, dtype=getattr(namespace(X), self.dtype.name), device=X.device)
        for top in range(0, X.shape[0], step):
            out[top : top + step] = float64(X[top : top + step]) - offset
        return out

    def some(self, members: IntArray) -> HeldRows:
        """Some of these rows, as they are held."""
        other = copy(self)
        other.rows = self.rows[members]
        return other

    def came_from(self, other: HeldRows) -> None:
        """These rows were held by another before: what that took off is taken off new rows too."""
        if self.offset is not None and other.offset is not None:
            self.offset = self.offset + other.offset

    def stacked(self, Y: Rows) -> Rows:
        """These rows, equal to the given ones up to rounding, and others below them."""
        if sparse.issparse(Y):
            return sparse.vstack([self.rows, Y], format="csr")
        rows = self.rows if self.offset is None else float64(self.rows) + moved(self.offset, self.rows)
        both: Array = namespace(Y).concatenate([moved(rows, Y), Y])
        return both

    def cross(self, Y: Rows, n_jobs: int | None = None) -> KernelCross:
        """κ(y, x) of new rows against these."""
        return KernelCross(self, Y, n_jobs=n_jobs)


class KernelCross:
    """κ(y, x) from a kernel and rows, a panel at a time."""

    def __init__(self, held: HeldRows, Y: Rows, *, n_jobs: int | None = None) -> None:
        self.held = held
        self.rows = held.hold(Y)
        self.n_jobs = n_jobs

    def matmat(self, V: FloatArray) -> FloatArray:
        kernel, training = self.held.kernel, self.held.rows
        V = np.asarray(V, dtype=self.held.dtype)
        out = np.empty((self.rows.shape[0], V.shape[1]))
        starts = range(0, out.shape[0], PANEL)

        def multiply(panel: int, pulse: Pulse) -> None:
            top = starts[panel]
            rows = self.rows[top : top + PANEL]
            total = np.zeros((rows.shape[0], V.shape[1]))
            for left in range(0, training.shape[0], PANEL):
                total += kernel.block(rows, training[left : left + PANEL]) @ V[left : left + PANEL]
                pulse()
            out[top : top + PANEL] = total

        run_groups(multiply, len(starts), n_jobs=self.n_jobs)
        return out

    def diagonal(self) -> FloatArray:
        return self.held.kernel.diagonal(self.rows)


SAMPLE = 1000
"""Distinct rows from which γ comes: more would make γ grow with n."""

NEIGHBOR = 7
"""γ="auto" looks at the distance to this neighbour."""

NEIGHBOR_FACTOR = 0.2
"""γ="auto" is this over the median of those squared distances."""

GAMMA_RULES = ("auto", "median", "scale")


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """The median of values repeated ``weights`` times (the mean of the two middle ones when even)."""
    ranks = np.argsort(values, kind="stable")
    values, cumulative = values[ranks], np.cumsum(weights[ranks])
    half = cumulative[-1] / 2
    low = int(np.searchsorted(cumulative, half * (1 - 1e-12)))
    high = int(np.searchsorted(cumulative, half * (1 + 1e-12)))
    return float((values[low] + values[min(high, len(values) - 1)]) / 2)


def bandwidth(
    rule: str,
    kernel: Kernel,
    X: Rows,
    weights: FloatArray,
    random_state: int | np.random.RandomState | None,
) -> float:
    """γ by a rule, for κ = exp(−γ q(x, y)), from distinct rows X with their multiplicities.

    - ``"auto"``: γ = 0.2 / median over rows of q to the 7th nearest neighbour,
    - ``"median"``: γ = 1 / median of q over pairs,
    - ``"scale"``: γ = 1 / (d · var X), as scikit-learn's support vector machines have it,

    the first two within a sample of at most 1,000 distinct rows, so that γ does not grow with n, medians
    weighted by multiplicity. If a row has fewer neighbours, the last one counts as its 7th. Distances of zero do not
    count (distinct rows may be too close for float64, or equal for q); if no 7th neighbour is at a positive distance,
    the median is over pairs. γ = 1 if no distance is positive. The polynomial and sigmoid kernels have no distance:
    their ``"auto"`` and ``"median"`` are 1/d, scikit-learn's own default.
    """
    if rule == "scale" and not kernel.euclidean:
        raise ParameterError(
            f"gamma='scale' is the variance of all numbers of X, which affinity={kernel.name!r} does not see: use "
            "gamma='auto' or 'median'."
        )
    if rule == "scale":
        spread = int(X.shape[1]) * _variance(X, weights)
        return 1.0 / spread if spread > 0 else 1.0
    if kernel.dissimilarity(_precise(X[:1])) is None:
        return 1.0 / int(X.shape[1])
    chosen = draw_by_permutation(X.shape[0], SAMPLE, random_state)
    n, weights = len(chosen), weights[chosen]
    if n < 2:
        return 1.0
    q = np.asarray(kernel.dissimilarity(_precise(X[chosen])))
    np.fill_diagonal(q, np.inf)
    factor = 1.0
    if rule == "auto":
        factor, kth = NEIGHBOR_FACTOR, min(NEIGHBOR, n - 1) - 1
        distances = np.partition(q, kth, axis=1)[:, kth]
    if rule == "median" or not (distances > 0).any():
        first, second = np.triu_indices(n, 1)
        distances, weights = q[first, second], weights[first] * weights[second]
    positive = distances > 0
    return factor / weighted_median(distances[positive], weights[positive]) if positive.any() else 1.0


def _precise(rows: Rows) -> Rows:
    return rows if sparse.issparse(rows) else np.array(rows, dtype=float)


def _variance(X: Rows, weights: FloatArray) -> float:
    """The variance of all entries of X, rows weighted by multiplicity."""
    if sparse.issparse(X):
        means, variances = mean_variance_axis(X.tocsr(), axis=0, weights=weights.astype(X.dtype))
        return float(variances.mean() + means.var())
    mean = float(np.average(X.mean(axis=1), weights=weights))
    return float(np.average(((X - mean) ** 2).mean(axis=1), weights=weights))
