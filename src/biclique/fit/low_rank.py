"""A factored K = ΦΦᵀ: its map and rank, chosen on a pool of rows, and its cut by one small matrix.

With s = Φᵀw, δ = Φs, ρ = sᵀs and S as ever, B = AAᵀ for A = W^(1/2) S^(−1/2) Φ (I − ssᵀ/ρ), so that its eigenpairs come
from the r × r matrix AᵀA: exactly, in three passes over the rows (the sums s; the matrix; the embedding), whatever
the number of rows. Rows on a device are seen there, a block at a time; only sums (p × p) travel.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from biclique._typing import Array, FloatArray, IntArray, Rows
from biclique.exceptions import DegreeError, ParameterError
from biclique.features.maps import (
    FEATURE_MAPS,
    FeatureMap,
    absolute_product,
    column_sums,
    make_map,
    map_rows,
    stacked,
    weighted_gram,
)
from biclique.fit.choose import RANK, Chosen, kind_of_map
from biclique.fit.fitted import Points
from biclique.fit.settings import Settings
from biclique.gram.dense import DenseGram
from biclique.kernels.kernel import Kernel
from biclique.neighbors.index import nearest_row
from biclique.progress import Progress
from biclique.rows.array import ArrayRows, Block, RowSource, Vertices
from biclique.runtime.namespace import as_dtype, float64, moved, namespace, rows_on_host, scalars, to_host
from biclique.spectral.cut import (
    NULL_EIGENVALUE,
    NormalizedCut,
    check_total,
    column_signs,
    shrunken_degrees,
    unshrunken_degrees,
)
from biclique.spectral.solver import top_eigenpairs


@dataclass(frozen=True)
class FactoredSpectrum(Points):
    """The embedding as a function of a point: √(S(x)/ρ), then φ(x)(I − ssᵀ/ρ) U Λ^(−1/2) / √S(x).

    (λ, U) are eigenpairs of AᵀA. At a training row this is its row of the embedding, v_i/√w_i.
    """

    map: FeatureMap
    order: float
    total: float  # ρ, which is also Σ wS
    mean_degree: float  # δ̄
    values: FloatArray  # λ, (k,)
    informative: np.ndarray  # which λ are not null, (k,)
    residuals: FloatArray  # (k,)
    coefficients: FloatArray  # [T s, T (I − ssᵀ/ρ) U Λ^(−1/2)], (p, 1 + k)
    noise: float
    """A degree below this is nothing: rounding of a row's similarity to itself."""
    n_rows: int
    unseen: int
    """Training rows whose degree S is zero, up to rounding: no feature tells anything of them."""

    keeps_tensors: bool = False

    def embed_seen(self, X: Rows, n_jobs: int | None = None) -> tuple[FloatArray, np.ndarray]:
        """A row is seen if any feature tells something of it: its degree is not zero."""
        sizes = np.abs(self.coefficients[:, 0])
        blocks = map_rows(self.map, X, self.coefficients, self._normalized, n_jobs=n_jobs, sizes=sizes)
        rows = stacked([found for found, _ in blocks], (0, self.coefficients.shape[1]), X)
        return rows, np.concatenate([np.empty(0, dtype=bool), *(seen for _, seen in blocks)])

    @property
    def landmarks(self) -> Rows:
        """The landmarks as rows of the table; none if the map has none, or sees every row."""
        held = self.map.held
        if held is None:
            return np.empty((0, 1))
        return held.rows if held.offset is None else held.rows.astype(np.float64) + held.offset

    def nearest(self, X: Rows, unseen: IntArray, kernel: Kernel | None, n_jobs: int | None) -> IntArray | None:
        landmarks = self.map.held
        if landmarks is None:
            return None
        return nearest_row(kernel, landmarks.hold(rows_on_host(X, unseen)), landmarks.rows, n_jobs)

    def degrees(self, trivial: FloatArray) -> FloatArray:
        return unshrunken_degrees(trivial**2 * self.total, self.mean_degree, self.order)

    def for_rows(self) -> FactoredSpectrum:
        return replace(self, map=self.map.for_rows())

    def _normalized(self, rows: FloatArray, sizes: FloatArray) -> tuple[FloatArray, np.ndarray]:
        """c(X) Q of some rows, Q the coefficients, as their embedding; ``sizes`` is |c(X)| |q|, q its first column."""
        xp = namespace(rows)
        least = least_degree(sizes, self.map.dtype, self.noise, self.mean_degree)
        seen = to_host(abs(rows[:, 0]) > least)
        shrunken = xp.clip(shrunken_degrees(rows[:, 0], self.mean_degree, self.order), 0.0, None)
        rows[:, 0] = xp.sqrt(shrunken / self.total)
        divided = shrunken > least
        rows[:, 1:] *= xp.where(divided, 1.0 / xp.where(divided, xp.sqrt(shrunken), 1.0), 0.0)[:, None]
        return rows, seen

    def with_signs(self, embedded: FloatArray, weights: FloatArray) -> FactoredSpectrum:
        """The same, every eigenvector turned so that Σ w v³ > 0 over rows with this embedding, which is turned too."""
        signs = column_signs(embedded[:, 1:], moved(weights, embedded))
        embedded[:, 1:] *= moved(signs, embedded)
        turned = self.coefficients.copy()
        turned[:, 1:] *= signs
        return replace(self, coefficients=turned)


@dataclass
class RowSums:
    """What the first pass gives, the same for every order: c(X)ᵀw, Σw and the number of rows."""

    sums: FloatArray  # (p,)
    weight: float
    n_rows: int

    @classmethod
    def of(
        cls, feature_map: FeatureMap, source: RowSource, n_jobs: int | None = None, progress: Progress | None = None
    ) -> Self:
        """One pass over the rows."""
        light = feature_map.for_rows()
        return source.sum(lambda block: cls.of_block(light, block, n_jobs), "sums", progress or Progress())

    @classmethod
    def of_block(cls, feature_map: FeatureMap, block: Block, n_jobs: int | None) -> Self:
        """Of some of the rows."""
        sums = column_sums(feature_map, block.rows, block.weights[:, None], n_jobs=n_jobs)[:, 0]
        return cls(sums, float(block.weights.sum()), block.rows.shape[0])

    def __iadd__(self, other: Self) -> Self:
        self.sums += other.sums
        self.weight += other.weight
        self.n_rows += other.n_rows
        return self


def least_degree(sizes: FloatArray, dtype: np.dtype[Any], noise: float, mean_degree: float) -> FloatArray:
    """What S(x) must exceed to be more than rounding, for every row.

    δ(x) = Σ_j c_j(x) q_j rounds by eps Σ_j |c_j(x) q_j| = eps ``sizes``: that grows with the degree of the row itself,
    not with the number of rows.
    """
    xp = namespace(sizes)
    rounding = xp.clip(4 * float(np.finfo(dtype).eps) * sizes, noise, None)
    return xp.clip(rounding, None, 0.5 * mean_degree)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class SmallPairs:
    """Eigenpairs (λ, U) of AᵀA beside s, descending."""

    values: FloatArray  # (k,)
    vectors: FloatArray  # (r, k)
    residuals: FloatArray  # (k,)
    informative: np.ndarray  # which λ are not null, (k,)


def dense_pairs(products: FloatArray, s: FloatArray, k: int, feature_map: FeatureMap) -> SmallPairs:
    """The k leading eigenpairs of Tᵀ products T beside s, by a decomposition."""
    gram = feature_map.project(feature_map.project(products).T)
    # (I − ssᵀ/ρ) on both sides: what is left is orthogonal to the trivial vector.
    unit = s / np.sqrt(s @ s)
    gram = (gram + gram.T) / 2
    gram -= np.outer(unit, unit @ gram)
    gram -= np.outer(gram @ unit, unit)
    k = min(k, max(len(gram) - 1, 0))
    values, U = np.linalg.eigh((gram + gram.T) / 2)
    values, U = values[::-1][:k], U[:, ::-1][:, :k]
    residuals = np.linalg.norm(gram @ U - U * values, axis=0)
    return SmallPairs(values, U, residuals, values > NULL_EIGENVALUE * float(np.finfo(feature_map.dtype).eps))


Solve = Callable[[Any, FloatArray, float, int], SmallPairs]
"""The k leading eigenpairs of Cᵀ W S⁻¹ C beside s, at an order."""


def factored_spectrum(
    feature_map: FeatureMap,
    source: RowSource,
    order: float,
    k: int,
    *,
    length: float,
    first: RowSums | None = None,
    solve: Solve | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> FactoredSpectrum:
    """The k leading eigenpairs of B for K = ΦΦᵀ, in two passes; the embedding is a third, which is the caller's.

    ``length`` is a typical |φ(x)|, the scale of rounding: 0 if no terms cancel. ``first`` is what the first pass gave,
    if it was made for another order already. ``solve`` is by default a decomposition.
    """
    if first is None:
        first = RowSums.of(feature_map, source, n_jobs, progress)
    s = feature_map.project(first.sums)  # (r,)
    total = float(s @ s)  # ρ
    mean_degree = total / first.weight
    rounding = 4 * float(np.finfo(feature_map.dtype).eps) * length  # of |φ(x)|
    check_total(total, (rounding * first.weight) ** 2)  # s is a sum of φ(x)
    noise = rounding * length * first.weight / first.n_rows
    of_block = _second_pass(feature_map, first, feature_map.lift(s), mean_degree, order, noise, n_jobs)
    products = source.sum(of_block, "matrix", progress or Progress())
    numbers, degrees = products.without.T
    # An approximate K can have rows of a negative degree. Up to here it may be rounding, at the very worst.
    negative = degrees < -min(rounding * length * first.weight, 0.5 * mean_degree)
    if negative.any():
        cure = "use affinity='rbf', or shift the data so that kernel values are positive (add -X.min() to X)"
        if not feature_map.exact:
            cure = "use a higher rank or order, lower gamma, or gram='tiled' (exact)"
        raise DegreeError(
            f"{negative.sum()} of {first.n_rows} rows have a degree that is not positive at order {order:g} (first row "
            f"{numbers[negative].min():.0f}; lowest {degrees.min():.3g}, mean degree {mean_degree:.3g}): {cure}."
        )
    pairs = dense_pairs(products.gram, s, k, feature_map) if solve is None else solve(products.gram, s, order, k)
    scale = np.where(pairs.informative, 1 / np.sqrt(np.where(pairs.informative, pairs.values, 1.0)), 0.0)
    unit = s / np.sqrt(total)
    beside = (pairs.vectors - np.outer(unit, unit @ pairs.vectors)) * scale  # null eigenvalues as zeros
    return FactoredSpectrum(
        map=feature_map,
        order=order,
        total=total,
        mean_degree=mean_degree,
        values=pairs.values,
        informative=pairs.informative,
        residuals=pairs.residuals,
        coefficients=feature_map.lift(np.column_stack([s, beside])),
        noise=noise,
        n_rows=first.n_rows,
        unseen=len(numbers),
    )


@dataclass
class _Products:
    """What the second pass gives."""

    gram: Array  # Cᵀ W S⁻¹ C, (p, p), or a CSR matrix if columns are sparse
    without: FloatArray  # rows whose degree is zero or negative, (m, 2): number and degree

    def __iadd__(self, other: Self) -> Self:
        self.gram += other.gram
        self.without = np.concatenate([self.without, other.without])
        return self


def _second_pass(
    feature_map: FeatureMap,
    first: RowSums,
    trivial: FloatArray,
    mean_degree: float,
    order: float,
    noise: float,
    n_jobs: int | None,
) -> Callable[[Block], _Products]:
    """Cᵀ W S⁻¹ C of a block, for the columns C = c(X) less their mean, whose coefficients ``trivial`` give δ.

    The mean column is c of the trivial vector, which is projected out later: without it, less is rounded.
    """
    light, mean = feature_map.for_rows(), first.sums / first.weight

    def of_block(block: Block) -> _Products:
        without = [np.empty((0, 2))]  # threads add to it

        def weigh(columns: FloatArray, place: slice) -> FloatArray:
            """√(w/S) of rows, from their columns."""
            xp = namespace(block.rows)
            w = moved(float64(block.weights[place]), block.rows)
            coefficients = moved(as_dtype(trivial, light.dtype), block.rows)
            degrees, sizes = float64(columns @ coefficients), absolute_product(columns, abs(coefficients))
            shrunken = shrunken_degrees(degrees, mean_degree, order)
            seen = shrunken > least_degree(sizes, light.dtype, noise, mean_degree)
            if not scalars(seen.all())[0]:
                unseen = np.flatnonzero((to_host(w) > 0) & ~to_host(seen))
                without.append(np.column_stack([block.start + place.start + unseen, to_host(shrunken)[unseen]]))
            return xp.sqrt(xp.where(seen, w / xp.where(seen, shrunken, 1.0), 0.0))  # type: ignore[no-any-return]

        gram = weighted_gram(light, block.rows, weigh, centre=mean, n_rows=first.n_rows, n_jobs=n_jobs)
        return _Products(gram, np.concatenate(without))

    return of_block


# How far an approximate K is from the exact one, seen on a sample of rows


@dataclass(frozen=True)
class ApproximationError:
    """Errors of a factored K̂ against the exact K of the same sample of rows."""

    eigenvalues: float
    """max_i |λ̂_i − λ_i| / λ_1 over the eigenvalues of B that are used, λ̂ as a fit of the sample computes them.

    NaN if the exact K of the sample has no cut. If only K̂ has none, every λ̂ counts as 0.
    """
    kernel: float
    """|K̂ − K| / |K|, Frobenius norms."""
    n_rows: int
    """Rows of the sample."""
    counts_as_exact: bool = False

    def __str__(self) -> str:
        return (
            f"eigenvalues within {self.eigenvalues:.1e} of the exact ones and kernel values within {self.kernel:.1e}, "
            f"on a sample of {self.n_rows} rows"
        )

    def facts(self) -> dict[str, float]:
        return {"eigenvalues": self.eigenvalues, "kernel": self.kernel, "n_rows": self.n_rows}


def approximation_error(
    kernel: Kernel, feature_map: FeatureMap, rows: Rows, weights: FloatArray, order: float, k: int, seed: int
) -> ApproximationError:
    """The errors of ΦΦᵀ on a sample of rows.

    λ̂ come from the same sums in the same precision as those of a fit, so that their rounding counts too.
    """
    block = np.asarray(kernel.block(rows, rows), dtype=np.float64)
    K = (block + block.T) / 2
    k = min(k, len(K) - 1)
    features = feature_map.features(rows)
    unit = float(np.abs(K).max(initial=0.0)) or 1.0  # squares of tiny values would vanish
    size = float(np.linalg.norm(K / unit)) or 1.0  # of a kernel that vanishes, the error itself
    relative = float(np.linalg.norm((features @ features.T - K) / unit)) / size
    try:
        cut = NormalizedCut(DenseGram(K), order, weights)
    except DegreeError:
        return ApproximationError(float("nan"), relative, len(K))
    exact: FloatArray = np.empty(0)
    if k > 0:
        exact = top_eigenpairs(cut, k, tol=1e-4, deflate=cut.trivial, random_state=seed).values
    length = float(np.sqrt(np.abs(np.diagonal(K)).mean()))
    found = np.zeros(k)
    with suppress(DegreeError):
        values = factored_spectrum(feature_map, ArrayRows(rows, weights), order, k, length=length).values
        found[: len(values)] = values
    largest = float(exact.max(initial=0.0))
    gap = float(np.abs(found - exact).max(initial=0.0)) / largest if largest > 0 else 0.0
    return ApproximationError(gap, relative, len(K))


# Which feature map, and of which rank


POOL_ROWS = 20_000
"""Rows drawn to choose the bandwidth, the landmarks and the centres of k-means from."""

CHECK_ROWS = 2_000
"""Rows on which an approximation is compared with the exact kernel."""


def pool_size(rank: int | str) -> int:
    """How many rows to draw."""
    return POOL_ROWS if isinstance(rank, str) else max(POOL_ROWS, 4 * rank)


def choose_map(
    settings: Settings, chosen: Chosen, order: float, pool: Vertices, random: np.random.RandomState
) -> tuple[FeatureMap, ApproximationError | None]:
    """The feature map of the rank asked for, and how far it is from the kernel: None if it is the kernel itself."""
    kernel, dtype, n = chosen.kernel, chosen.dtype, pool.n
    if kernel is None:
        raise ParameterError(f"rows and a kernel are needed here, not affinity={settings.kernel.affinity!r}.")
    kind = kind_of_map(settings, chosen.gram, kernel, pool.data.shape[1])
    landmarks = FEATURE_MAPS[kind].has_landmarks
    available = n if landmarks else max(n, chosen.n_rows)
    if not isinstance(settings.rank, str) and settings.rank > available:
        raise ParameterError(
            f"rank={settings.rank} is more than the {available} {'distinct ' if landmarks else ''}rows there are: use "
            f"rank='auto', or a rank of at most {available}."
        )
    if FEATURE_MAPS[kind].exact:
        return make_map(kind, kernel, pool.data, 0, random=random, dtype=dtype), None
    compared = np.sort(random.permutation(n)[: min(CHECK_ROWS, max(n // 2, min(n, 2)))])
    seed = int(random.randint(2**31))
    size = (min(RANK, available) if landmarks else RANK) if isinstance(settings.rank, str) else settings.rank
    # At a landmark the approximation is exact: rows to compare on are none, where there are others.
    others = np.setdiff1d(np.arange(n), compared)
    rows = pool.data[others] if size <= len(others) else pool.data
    found = make_map(kind, kernel, rows, size, random=random, dtype=dtype)
    if n <= CHECK_ROWS:
        compared = np.arange(n)  # then the error is that of the fit, not of a sample
    exact_rows, weights = pool.data[compared].astype(np.float64), pool.weights[compared]
    k = settings.n_columns - 1
    return found, approximation_error(kernel, found, exact_rows, weights, order, k, seed)
