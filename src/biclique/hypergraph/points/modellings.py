"""The paper's comparison modellings: the weight of every m-tuple of distinct points, straight from the definitions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations, product
from math import comb
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, ParameterError
from biclique.hypergraph.build import number_array
from biclique.kernels.gamma_rules import GAMMA_RULES, bandwidth
from biclique.kernels.kernel import Kernel, pair_values
from biclique.kernels.named import GAMMA_KERNELS, KERNEL_NAMES, check_rows_for_kernel, make_kernel
from biclique.runtime.arguments import check_choice, check_count, check_flag, check_jobs, check_number, check_random
from biclique.runtime.threads import run_panels

# Tuples of points


CHUNK_NUMBERS = 2**18
"""Coordinates in memory at once while weights are computed."""

LARGEST = 1e120
"""Magnitudes of X up to here, and from its inverse, can be squared and divided by."""

RANKED_SETS = 2**62
"""Up to here the sets of m vertices can be numbered; with more, drawing one twice is all but impossible."""


def check_points(X: Any) -> FloatArray:
    """Rows of points as a finite float64 table, with numbers that can be squared."""
    if sparse.issparse(X):
        raise DataError("X must be dense for modellings of tuples, got a sparse matrix: pass X.toarray().")
    table = number_array(X, "X", 2)
    if not table.shape[1]:
        raise DataError(f"X must be a table of shape (n, d), d of at least 1, got shape {table.shape}.")
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise DataError(
            f"X must be finite, got {table[row, column]} in row {row}, column {column}, counted from 0: fill or drop "
            "it."
        )
    largest = float(np.abs(table).max(initial=0))
    if largest and not 1 / LARGEST <= largest <= LARGEST:
        raise DataError(
            f"X has {largest:.3g} as its largest magnitude, and its squares leave the range of numbers: rescale X to "
            f"between {1 / LARGEST:g} and {LARGEST:g}, such as X / {largest:.3g}."
        )
    return table


def check_weights(weights: FloatArray, what: str) -> FloatArray:
    """Weights that are all finite."""
    if not np.isfinite(weights).all():
        raise DataError(
            f"{what} has weights that are not finite: rescale X, or change the affinity if it is a function of yours."
        )
    return weights


def draw_tuples(n: int, m: int, size: int, random: np.random.RandomState) -> IntArray:
    """``size`` tuples of m distinct numbers below n, each uniform and in a random order; shape (size, m)."""
    chosen = np.empty((size, m), dtype=np.intp)
    for place in range(m):  # Floyd's: a number met before is replaced by the largest one allowed so far
        last = n - m + place
        number = random.randint(0, last + 1, size=size)
        met = (chosen[:, :place] == number[:, None]).any(axis=1)
        chosen[:, place] = np.where(met, last, number)
    return shuffled(chosen, random)


def draw_sets(n: int, m: int, size: int, random: np.random.RandomState) -> IntArray:
    """Tuples of distinct numbers below n, no set of them twice, each in a random order; shape (size, m).

    Sets are drawn, those met before dropped and drawn again; from more than half of all sets, all are permuted. The
    memory grows with ``size`` either way.
    """
    n_sets = comb(n, m)
    if size > n_sets:
        raise ParameterError(
            f"n_edges={size} is more than the {n_sets} sets of {m} among {n} points: ask for at most {n_sets}, or pass "
            "replace=True."
        )
    if n_sets > RANKED_SETS:
        return draw_tuples(n, m, size, random)
    if 2 * size > n_sets:
        ranks = random.permutation(n_sets)[:size]
    else:
        ranks = random.randint(n_sets, size=size, dtype=np.int64)
        while len(first := np.unique(ranks, return_index=True)[1]) < size:
            again = random.randint(n_sets, size=size - len(first), dtype=np.int64)
            ranks = np.concatenate([ranks[np.sort(first)], again])
    return shuffled(unranked_sets(ranks, n, m), random)


def unranked_sets(ranks: IntArray, n: int, m: int) -> IntArray:
    """The sets v_m > … > v_1 with Σ_t C(v_t, t) = rank: every set of m numbers below n once; shape (N, m)."""
    left = ranks.copy()
    sets = np.empty((len(ranks), m), dtype=np.intp)
    for t in range(m, 0, -1):
        below = np.array([min(comb(v, t), RANKED_SETS) for v in range(n)], dtype=np.int64)
        sets[:, t - 1] = np.searchsorted(below, left, side="right") - 1
        left -= below[sets[:, t - 1]]
    return sets


def joined_tuples(draws: IntArray, n: int) -> IntArray:
    """Every draw with every other point as the last; shape (n_draws · (n − size), size + 1)."""
    others = np.ones((len(draws), n), dtype=bool)
    np.put_along_axis(others, draws, False, axis=1)
    draw, other = np.nonzero(others)
    return np.column_stack([draws[draw], other])


def shuffled(tuples: IntArray, random: np.random.RandomState) -> IntArray:
    """Every row in a random order of its own."""
    return np.take_along_axis(tuples, random.random_sample(tuples.shape).argsort(axis=1), axis=1)


def in_chunks(values: Callable[[IntArray], FloatArray], tuples: IntArray, d: int, *, n_jobs: int | None) -> FloatArray:
    """``values(tuples)`` in pieces that fit the cache, over threads."""
    step = max(CHUNK_NUMBERS // (tuples.shape[1] * d), 1)
    found = run_panels(lambda part: values(tuples[part]), len(tuples), step, n_jobs=n_jobs)
    return np.concatenate([np.empty(0), *found])


def span_distances(points: FloatArray) -> FloatArray:
    """dist(x_v, affine span of the other points of the tuple) for every v, from points (N, m, d); shape (N, m).

    A span of points that coincide, or lie in fewer dimensions than they could, has its true dimension.
    """
    n_tuples, m, d = points.shape
    distances = np.empty((n_tuples, m))
    for v in range(m):
        others = np.delete(points, v, axis=1)
        beside = points[:, v] - others[:, 0]
        if m > 2:
            _, singular, axes = np.linalg.svd(others[:, 1:] - others[:, :1], full_matrices=False)
            along = np.einsum("nrd,nd->nr", axes, beside)
            along[singular <= max(m, d) * np.finfo(float).eps * singular[:, :1]] = 0
            beside -= np.einsum("nr,nrd->nd", along, axes)
        distances[:, v] = np.sqrt(np.einsum("nd,nd->n", beside, beside))
    return distances


# The modellings


GAMMA_SAMPLE = 2000
"""Tuples drawn for the automatic γ of a modelling of distances."""

GAMMA_FACTOR = 3.0
"""A typical tuple gets the weight e⁻³ by the automatic γ: small beside the tuples that are nearly flat."""

RandomState = int | np.random.RandomState | None


@dataclass(frozen=True)
class Modelling(ABC):
    """The weight w(x_1, …, x_m) of a tuple of points: a few parameters and ``weights``.

    Subclass it for a modelling of your own, and pass an instance wherever a name is taken.
    """

    name: ClassVar[str] = "custom"
    symmetric: ClassVar[bool] = True
    """Whether the weight is the same for every order of the points."""

    @abstractmethod
    def weights(self, X: FloatArray, tuples: IntArray) -> FloatArray:
        """w of every row of ``tuples`` (N, m), indices into the rows of X; shape (N,)."""

    def check_order(self, order: int) -> None:  # noqa: B027
        """Refuse an order that the modelling has no meaning for."""

    def fitted(self, X: FloatArray, order: int, random_state: RandomState) -> "Modelling":  # noqa: ARG002
        """The same with every ``"auto"`` replaced by a number."""
        return self


def _check_gamma(gamma: object, rules: tuple[str, ...]) -> None:
    positive = isinstance(gamma, Real) and not isinstance(gamma, bool) and 0 < float(gamma) < np.inf
    if not positive and gamma not in rules:
        raise ParameterError(
            f"gamma must be a positive number or one of {', '.join(map(repr, rules))}, got {gamma!r}: 'auto' chooses "
            "it from the data."
        )


def _chosen_gamma(gamma: float, name: str) -> float:
    """A γ that came from the data; the caller never gave it, so what is wrong is the data."""
    if not 0 < gamma < np.inf:
        raise DataError(
            f"gamma='auto' finds no scale for modelling={name!r}: most points lie too close together for numbers to "
            "tell them apart. Rescale X, or give gamma as a number."
        )
    return gamma


def gamma_number(gamma: float | str) -> float:
    if isinstance(gamma, str):
        raise ParameterError(f"gamma={gamma!r} must be a number by now: use make_modelling, which sees the data.")
    return float(gamma)


@dataclass(frozen=True)
class _OfKernel(Modelling):
    """A function of κ(x_i, x_j) over pairs of the tuple's points; γ by the rules of ``biclique.kernels``."""

    affinity: str | Kernel | Callable[..., float] = "rbf"
    gamma: float | str = "auto"
    degree: float = 3
    coef0: float = 1
    kernel_params: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_gamma(self.gamma, GAMMA_RULES)
        known = self.affinity in KERNEL_NAMES if isinstance(self.affinity, str) else callable(self.affinity)
        if not known and not isinstance(self.affinity, Kernel):
            raise ParameterError(
                f"affinity must be one of {', '.join(map(repr, KERNEL_NAMES))}, a function of two rows or a "
                f"biclique.kernels.Kernel, got {self.affinity!r}."
            )
        check_number("degree", self.degree)
        check_number("coef0", self.coef0)

    def fitted(self, X: FloatArray, order: int, random_state: RandomState) -> Modelling:  # noqa: ARG002
        check_rows_for_kernel(self.affinity, X)
        if not isinstance(self.gamma, str):
            return self
        if not isinstance(self.affinity, str) or self.affinity not in GAMMA_KERNELS:
            return replace(self, gamma=1.0)
        rows, counts = np.unique(X, axis=0, return_counts=True)
        bare, weights = make_kernel(self.affinity, gamma=None), counts.astype(float)
        gamma = bandwidth(self.gamma, bare, rows, weights, check_random(random_state))
        return replace(self, gamma=_chosen_gamma(gamma, self.name))

    @property
    def kernel(self) -> Kernel:
        """κ; γ must be a number by now."""
        return make_kernel(
            self.affinity,
            gamma=gamma_number(self.gamma),
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
        )


@dataclass(frozen=True)
class MaxKernel(_OfKernel):
    """w = max_{i<j} κ(x_i, x_j)."""

    name = "max"

    def weights(self, X: FloatArray, tuples: IntArray) -> FloatArray:
        pairs = combinations(range(tuples.shape[1]), 2)
        return np.asarray(np.max([pair_values(self.kernel, X, tuples[:, i], tuples[:, j]) for i, j in pairs], axis=0))


@dataclass(frozen=True)
class BicliqueWeights(_OfKernel):
    """w = κ^(m)(x_1..x_h ; x_{h+1}..x_m) = Σ_γ Σ_ν κ(x_γ, x_{h+ν}), h = m/2: the halves of the tuple (Eq. 4).

    Not the same for every order of the points. Its contraction is ``biclique_gram``, for any n.
    """

    name = "biclique"
    symmetric = False

    def check_order(self, order: int) -> None:
        if order % 2:
            raise ParameterError(f"order must be even for modelling='biclique', got {order}: it has two halves.")

    def weights(self, X: FloatArray, tuples: IntArray) -> FloatArray:
        kernel, m = self.kernel, tuples.shape[1]
        pairs = product(range(m // 2), range(m // 2, m))
        return np.asarray(sum(pair_values(kernel, X, tuples[:, i], tuples[:, j]) for i, j in pairs))


@dataclass(frozen=True)
class _OfDistance(Modelling):
    """w = exp(−γ q(x_1, …, x_m)); ``gamma="auto"`` is 3 / median of q over 2,000 tuples drawn from all points."""

    translation_invariant: ClassVar[bool] = True
    power: ClassVar[int] = 1
    """q grows with this power of the length of the points."""
    gamma: float | str = "auto"

    def __post_init__(self) -> None:
        _check_gamma(self.gamma, ("auto",))

    @abstractmethod
    def exponent(self, points: FloatArray) -> FloatArray:
        """q of every tuple, from its points (N, m, d); shape (N,)."""

    def weights(self, X: FloatArray, tuples: IntArray) -> FloatArray:
        return np.asarray(np.exp(-gamma_number(self.gamma) * self.exponent(X[tuples])))

    def fitted(self, X: FloatArray, order: int, random_state: RandomState) -> Modelling:
        if not isinstance(self.gamma, str):
            return self
        tuples = draw_tuples(len(X), order, GAMMA_SAMPLE, check_random(random_state))
        typical = float(np.median(in_chunks(lambda part: self.exponent(X[part]), tuples, X.shape[1], n_jobs=1)))
        size = float(np.abs(X - X.mean(axis=0) if self.translation_invariant else X).max())
        if typical ** (1 / self.power) <= 1e-13 * order * size:  # lengths are known to 1e-16 of the largest
            raise DataError(
                f"gamma='auto' finds no scale for modelling={self.name!r}: most tuples of {order} points in "
                f"{X.shape[1]} dimensions are flat already. Lower order, or give gamma as a number."
            )
        return replace(self, gamma=_chosen_gamma(GAMMA_FACTOR / typical, self.name))


@dataclass(frozen=True)
class AffineEigenvalue(_OfDistance):
    """w = exp(−γ λ₁), λ₁ the smallest eigenvalue of the m × m matrix ⟨x_i, x_j⟩, not centred (the paper's appendix).

    It is the square of the smallest singular value of the points, computed so, which keeps its digits far from the
    origin.
    """

    name = "affine_eigenvalue"
    translation_invariant = False
    power = 2

    def exponent(self, points: FloatArray) -> FloatArray:
        if points.shape[2] < points.shape[1]:
            return np.zeros(len(points))
        return np.asarray(np.linalg.svd(points, compute_uv=False)[:, -1] ** 2)


@dataclass(frozen=True)
class AffineDistance(_OfDistance):
    """w = exp(−γ mean_i dist(x_i, F)), F the affine subspace that fits the tuple best (the paper's main text).

    Best by least squares of the distances themselves; ``dimension`` is m − 2 by default, 0 is the mean point. If the
    tuple is as wide in two directions (an equilateral triangle), every best subspace is as good, and one is taken.
    """

    name = "affine_distance"
    dimension: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dimension is not None:
            check_count("dimension", self.dimension, least=0)

    def check_order(self, order: int) -> None:
        if self.dimension is not None and self.dimension > order - 2:
            raise ParameterError(
                f"dimension must be at most order − 2 = {order - 2}, got {self.dimension}: {order} points lie in a "
                "larger subspace anyway. Raise the order."
            )

    def exponent(self, points: FloatArray) -> FloatArray:
        dimension = points.shape[1] - 2 if self.dimension is None else self.dimension
        left, singular, _ = np.linalg.svd(points - points.mean(axis=1, keepdims=True), full_matrices=False)
        beside = left[:, :, dimension:] * singular[:, None, dimension:]
        return np.asarray(np.sqrt(np.einsum("nir,nir->ni", beside, beside)).mean(axis=1))


@dataclass(frozen=True)
class VertexDistance(_OfDistance):
    """w = exp(−γ Σ_v dist(v, affine span of the others)), the paper's d^{H−2}; ``squared`` distances as an option."""

    name = "vertex_distance"
    squared: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("squared", self.squared)

    @property
    def power(self) -> int:  # type: ignore[override]
        return 2 if self.squared else 1

    def exponent(self, points: FloatArray) -> FloatArray:
        distances = span_distances(points)
        return np.asarray((distances**2 if self.squared else distances).sum(axis=1))


@dataclass(frozen=True)
class GeneralizedDot(Modelling):
    """w = Σ_l Π_i x_il, the dot product of m points; ``repeats`` lets a point stand in a tuple more than once."""

    name = "dot"
    repeats: bool = False

    def __post_init__(self) -> None:
        check_flag("repeats", self.repeats)

    def weights(self, X: FloatArray, tuples: IntArray) -> FloatArray:
        products = X[tuples[:, 0]]
        for place in range(1, tuples.shape[1]):
            products *= X[tuples[:, place]]
        return np.asarray(products.sum(axis=1))


POINT_MODELLINGS: dict[str, type[Modelling]] = {
    kind.name: kind
    for kind in (BicliqueWeights, MaxKernel, AffineEigenvalue, AffineDistance, VertexDistance, GeneralizedDot)
}
"""The modellings by name; validation, documentation and tests read this table."""


def make_modelling(
    modelling: str | Modelling, X: FloatArray, order: int, *, random_state: RandomState = None, **options: Any
) -> Modelling:
    """The modelling for a name and its options, with every ``"auto"`` replaced by a number from the data.

    >>> from biclique.hypergraph import make_modelling
    >>> make_modelling("vertex_distance", [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 3, gamma=2.0)
    VertexDistance(gamma=2.0, squared=False)
    """
    if isinstance(modelling, Modelling):
        if options:
            raise ParameterError(f"{', '.join(options)} given beside a modelling object: set them in the object.")
        chosen = modelling
    else:
        check_choice("modelling", modelling, POINT_MODELLINGS)
        allowed = [field.name for field in fields(POINT_MODELLINGS[modelling])]
        for option in options:
            if option not in allowed:
                raise ParameterError(f"modelling={modelling!r} has no option {option!r}: it has {', '.join(allowed)}.")
        chosen = POINT_MODELLINGS[modelling](**options)
    order = check_count("order", order, least=2)
    random = check_random(random_state)
    chosen.check_order(order)
    X = check_points(X)
    if len(X) < order and not getattr(chosen, "repeats", False):
        raise DataError(f"X has {len(X)} rows, but a tuple of order {order} needs {order} distinct ones: lower order.")
    return chosen.fitted(X, order, random)


def modelling_values(
    X: FloatArray,
    tuples: IntArray,
    modelling: str | Modelling,
    *,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> FloatArray:
    """w(x_{t_1}, …, x_{t_m}) of every tuple t of distinct points, by its definition; shape (N,).

    Parameters
    ----------
    X : array of shape (n, d)
    tuples : integer array of shape (N, m)
        Indices of rows of X, m ≥ 2.
    modelling : str or Modelling
        A name of ``POINT_MODELLINGS``, whose parameters are given as ``options``, or an object.
    n_jobs : int, optional
        Threads; the values are the same for every number.
    random_state : int or RandomState, optional
        For ``gamma="auto"`` alone.

    >>> from biclique.hypergraph import modelling_values
    >>> modelling_values([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]], [[0, 1, 2]], "vertex_distance", gamma=0.1)
    array([0.39...])
    """
    X = check_points(X)
    check_jobs(n_jobs)
    try:
        tuples = np.asarray(tuples)
        _, order = tuples.shape
    except ValueError as error:
        raise DataError(f"tuples must be whole numbers of shape (N, m), m ≥ 2: {error}.") from error
    if tuples.dtype.kind not in "iu" or order < 2:
        raise DataError(f"tuples must be whole numbers of shape (N, m), m ≥ 2, got {tuples.dtype} for m = {order}.")
    chosen = make_modelling(modelling, X, order, random_state=random_state, **options)
    if tuples.size and not 0 <= tuples.min() <= tuples.max() < len(X):
        raise DataError(f"tuples must hold row numbers from 0 to {len(X) - 1}, got {tuples.min()} to {tuples.max()}.")
    repeated = np.flatnonzero((np.diff(np.sort(tuples, axis=1), axis=1) == 0).any(axis=1))
    if len(repeated) and not getattr(chosen, "repeats", False):
        raise DataError(f"tuples must hold distinct rows, but tuple {repeated[0]} is {tuples[repeated[0]].tolist()}.")
    weights = in_chunks(lambda part: chosen.weights(X, part), tuples, X.shape[1], n_jobs=n_jobs)
    return check_weights(weights, f"modelling={chosen.name!r}")
