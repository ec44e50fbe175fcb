"""The order-m normalised cut as an operator, without ever forming K^(m).

For a Gram matrix K, multiplicities w and an order m ≥ 2 (math: Algorithm 1 of the paper),

    δ = K w,   ρ = wᵀ δ,   δ̄ = ρ / Σw,
    S = (2/m) δ + (1 − 2/m) δ̄,
    B = W^(1/2) S^(−1/2) (K − δδᵀ/ρ) S^(−1/2) W^(1/2).

The eigenpairs of D_m^(−1/2) K^(m) D_m^(−1/2), the matrix of the paper's Algorithm 1, are the trivial pair
(1, √(wS) normalised) and ((2/m)² λ, v) for every eigenpair (λ, v) of B with λ ≠ 0. The order enters through
S alone: it shrinks the degrees toward their mean. Order 2 is the normalised cut, order ∞ spectral
modularity.

A higher order keeps isolated rows from owning an eigenvector. Its price is that dense clusters are split. So
``order="auto"`` tries orders from 2 upward, and takes the first whose clusters all have √(n/k) rows.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from scipy.linalg import eigh

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DegreeError, ParameterError
from biclique.gram.operator import CrossGram, GramOperator
from biclique.runtime.namespace import float64, full, moved, namespace, row_slices, scalars, to_host
from biclique.spectral.solver import EigenResult

FAINT = 1e-8
"""A row whose degree is below this share of κ(x, x) is like no other row."""


class NormalizedCut:
    """S and B of a Gram operator and an order; the only place where the order appears.

    Building it costs one pass over K, which also multiplies ``probe`` (n, b): a start for the eigenvector
    solver whose image under B comes for free (``start`` and ``start_image``). ``row_numbers`` are the names of rows
    in error messages.

    All arrays are on the device of the operator's ``diagonal``, or on the host; weights and probe are moved there.
    """

    def __init__(
        self,
        gram: GramOperator,
        order: float,
        sample_weight: FloatArray | None = None,
        probe: FloatArray | None = None,
        row_numbers: IntArray | None = None,
    ) -> None:
        n = gram.n
        self._row_numbers = np.arange(n) if row_numbers is None else row_numbers
        self.gram, order = gram, check_order(order)
        diagonal = gram.diagonal()
        xp = namespace(diagonal)
        self.weights: FloatArray = (
            full((n,), 1.0, diagonal) if sample_weight is None else moved(float64(sample_weight), diagonal)
        )
        probe = full((n, 0), 0.0, diagonal) if probe is None else moved(probe, diagonal)
        product = float64(gram.matmat(xp.column_stack([self.weights, self.weights[:, None] * probe])))
        self.degrees: FloatArray = 1.0 * product[:, 0]  # δ; not a view, which would hold the rest
        root = float64(xp.sqrt(xp.abs(diagonal)))
        self.total, weight, reach = scalars(  # ρ, Σw, Σ w √K_ii
            self.weights @ self.degrees, self.weights.sum(), self.weights @ root
        )
        self.mean_degree = self.total / weight  # δ̄
        # Where values of both signs cancel, what is left of a sum may be rounding: |K_ij| ≤ √(K_ii K_jj). Sums of
        # values of one sign are right to a few digits less than the last, however small they are.
        noise = 0.0 if gram.nonnegative else 4 * float(np.finfo(gram.dtype).eps) * reach
        check_total(self.total, noise * reach)
        self._noise, self._root = noise, root
        self._apply(order)
        # With y = √(wS) p, the product B y needs only K(w p), which this pass has just computed.
        self.start: FloatArray = xp.sqrt(self.weights * self.shrunken)[:, None] * probe
        self.start_image = self._normalize(product[:, 1:], (self.weights * self.degrees) @ probe)
        self.n_passes = 1

    def _apply(self, order: float) -> None:
        """S, and what follows from it."""
        xp = namespace(self.weights)
        self.order = order
        self.shrunken: FloatArray = shrunken_degrees(self.degrees, self.mean_degree, order)  # S
        bad = (self.shrunken <= self._noise * self._root) & (self.shrunken <= 0.5 * self.mean_degree)
        self.volume, any_bad = scalars(self.weights @ self.shrunken, bad.any())
        if any_bad:
            self._refuse(to_host(bad))
        self._scale = xp.sqrt(self.weights) / xp.sqrt(self.shrunken)  # w/S may be too large for a float
        self.trivial: FloatArray = xp.sqrt(self.weights * self.shrunken / self.volume)

    def at_order(self, order: float, pairs: EigenResult | None = None, columns: int = 0) -> NormalizedCut:
        """The same K at another order: no pass over K.

        B becomes R^(−1/2) B R^(−1/2), R the ratio of the S. So eigenpairs of this cut give ``columns`` vectors to start
        from in R^(1/2) span(V), with their images: the pencil (Λ, VᵀRV) has their coordinates for its eigenvectors.
        """
        other = copy(self)
        other._apply(check_order(order))
        other.take_start()
        if pairs is not None:
            ratio, V = other.shrunken / self.shrunken, pairs.vectors
            root = namespace(V).sqrt(ratio)[:, None]
            mass = to_host(V.T @ (ratio[:, None] * V))
            turn = moved(eigh(np.diag(pairs.values), (mass + mass.T) / 2)[1][:, ::-1][:, :columns].copy(), V)
            other.start = other._without_trivial(root * (V @ turn))
            other.start_image = other._without_trivial((pairs.images @ turn) / root)
        return other

    def _without_trivial(self, block: FloatArray) -> FloatArray:
        """A block without its part along the trivial vector, (n, b)."""
        return block - self.trivial[:, None] * (self.trivial @ block)

    def take_start(self) -> tuple[FloatArray | None, FloatArray | None]:
        """The start and its image, which now belong to the caller and are not kept here; None if there is none."""
        start, image = self.start, self.start_image
        self.start = self.start_image = full((self.shape[0], 0), 0.0, self.like)
        return (start, image) if start.shape[1] else (None, None)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.gram.n, self.gram.n)

    @property
    def faint(self) -> float:
        """The degree up to which a row is like no other: ``FAINT`` of what a usual row has from itself."""
        return FAINT * scalars(self.weights @ self._root**2)[0] / self.shape[0]

    @property
    def like(self) -> FloatArray:
        """An array on the device on which this operator takes and returns arrays."""
        return self.trivial

    def matmat(self, V: FloatArray) -> FloatArray:
        """B @ V, shape (n, b). One pass over K."""
        self.n_passes += 1
        scaled = self._scale[:, None] * V
        return self._normalize(float64(self.gram.matmat(scaled)), self.degrees @ scaled)

    def _normalize(self, product: FloatArray, along_degrees: FloatArray) -> FloatArray:
        """W^(1/2) S^(−1/2) (product − δ along_degreesᵀ/ρ), kept orthogonal to the trivial vector."""
        along = along_degrees / self.total
        pieces = row_slices(product)
        for rows in pieces:
            product[rows] -= self.degrees[rows, None] * along
            product[rows] *= self._scale[rows, None]
        # B has no part along the trivial vector; what is there is rounding.
        along = self.trivial @ product
        for rows in pieces:
            product[rows] -= self.trivial[rows, None] * along
        return product

    def _refuse(self, bad: np.ndarray) -> NoReturn:
        lowest = to_host(self.shrunken)[bad].min()
        names = np.sort(self._row_numbers[bad])
        rows = ", ".join(str(i) for i in names[:5]) + (", …" if len(names) > 5 else "")
        raise DegreeError(
            f"{len(names)} of {len(bad)} rows have a degree that is not positive at order {self.order:g} "
            f"(rows {rows}; lowest {lowest:.3g}, mean degree {self.mean_degree:.3g}): use a higher "
            "order, affinity='rbf', or shift the data so that kernel values are positive (add -X.min() to X)."
        )


NULL_EIGENVALUE = 100
"""Eigenvalues below this many times the rounding of a product have no direction of their own."""


@dataclass(frozen=True)
class Extension:
    """The embedding as a function of a point.

    With u = v/√(wS) and δ(x) = Σ_j w_j κ(x, x_j), S(x) = (2/m) δ(x) + (1 − 2/m) δ̄,

        v(x) = [Σ_j w_j κ(x, x_j) u_j − δ(x) Σ_j w_j δ_j u_j / ρ] / (λ √S(x)),

    and the trivial column is √(S(x) / Σ_j w_j S_j). At a training row this is its row of the embedding.

    The coefficients lie where the cut's arrays do, and take a ``CrossGram`` of that kind; the rest is on the host.
    """

    order: float
    mean_degree: float
    volume: float
    values: FloatArray  # λ, (k,)
    informative: np.ndarray  # which λ are not null, (k,)
    coefficients: FloatArray  # [w, w u], (n, 1 + k)
    shift: FloatArray  # Σ_j w_j δ_j u_j / ρ, (k,)
    signs: FloatArray  # (k,)
    faint: float
    """A new row with a degree of no more is like no training row at all."""

    @classmethod
    def fit(cls, cut: NormalizedCut, pairs: EigenResult) -> tuple[Extension, FloatArray]:
        """The extension of eigenpairs of a cut, and the embedding (n, 1 + k) of its rows.

        The rows of the embedding are v_i/√w_i. v is taken one step further, to B v/λ, whose product is at
        hand: that is what the closed form gives at a training row even before v has converged fully.
        """
        weights = cut.weights
        xp = namespace(weights)
        root = xp.sqrt(weights)[:, None]
        u = pairs.vectors / xp.sqrt(weights * cut.shrunken)[:, None]
        # The trivial eigenvalue, 1, sets the scale of the rounding.
        informative = np.abs(pairs.values) > NULL_EIGENVALUE * cut.gram.noise
        safe = np.where(informative, pairs.values, 1.0)
        rows = xp.where(moved(informative, weights), pairs.images / root / moved(safe, weights), 0.0)
        signs = column_signs(rows, weights)
        extension = cls(
            order=cut.order,
            mean_degree=cut.mean_degree,
            volume=cut.volume,
            values=pairs.values,
            informative=informative,
            coefficients=xp.column_stack([weights, weights[:, None] * u]),
            shift=to_host((weights * cut.degrees) @ u / cut.total),
            signs=signs,
            faint=cut.faint,
        )
        trivial = xp.sqrt(cut.shrunken / cut.volume)
        return extension, xp.column_stack([trivial, rows * moved(signs, weights)])

    def to_host(self) -> Extension:
        """The same with its coefficients on the host, for a ``CrossGram`` there."""
        return replace(self, coefficients=to_host(self.coefficients))

    def degrees(self, trivial: FloatArray) -> FloatArray:
        """δ of rows, from their trivial column √(S/Σ w S); not a number at order infinity."""
        return unshrunken_degrees(trivial**2 * self.volume, self.mean_degree, self.order)

    def embed(self, cross: CrossGram) -> FloatArray:
        """The embedding of new rows, shape (n_new, 1 + k)."""
        return self.embed_seen(cross)[0]

    def embed_seen(self, cross: CrossGram) -> tuple[FloatArray, np.ndarray]:
        """The embedding of new rows, and, on the host, which of them are like any training row."""
        product = float64(cross.matmat(self.coefficients))
        xp = namespace(product)
        degrees = product[:, 0]
        shrunken = shrunken_degrees(degrees, self.mean_degree, self.order)
        # A point that no training row sees has S(x) = 0 at order 2, and all its coordinates tend to zero.
        if scalars((shrunken < 0).any())[0]:
            shrunken = to_host(shrunken)
            bad = np.flatnonzero(shrunken < 0)
            raise DegreeError(
                f"{len(bad)} of {len(shrunken)} new rows have a negative degree (first: {shrunken[bad[0]]:.3g} in row "
                f"{bad[0]}, counted from 0): they are unlike every training row under this kernel; shift them as the "
                "training data were, or use affinity='rbf'."
            )
        # Neither a point without a degree nor a null eigenvalue has a coordinate.
        known = self.informative & (self.values != 0)
        of_columns = moved(np.where(known, self.signs / np.where(known, self.values, 1.0), 0.0), product)
        of_rows = xp.where(shrunken > 0, 1.0 / xp.sqrt(xp.where(shrunken > 0, shrunken, 1.0)), 0.0)
        seen = np.abs(to_host(degrees)) > self.faint
        coordinates = product[:, 1:]  # changed in place: there may be very many rows
        coordinates -= degrees[:, None] * moved(self.shift, product)
        coordinates *= of_rows[:, None]
        coordinates *= of_columns
        product[:, 0] = xp.sqrt(shrunken / self.volume)
        return product, seen


def column_signs(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """±1 for every column so that Σ w v³ > 0; by its largest entry if that sum is 0. On the host."""
    xp = namespace(rows)
    sums = full((2, rows.shape[1]), 0.0, rows)
    for piece in row_slices(rows):
        cubes = rows[piece] * rows[piece] * rows[piece]  # a power takes ten times as long
        sums += xp.stack([weights[piece] @ cubes, weights[piece] @ xp.abs(cubes)])
    decisive, size = to_host(sums)
    for j in np.flatnonzero(np.abs(decisive) <= 1e-6 * size) if len(rows) else []:
        decisive[j] = scalars(rows[xp.argmax(xp.abs(rows[:, j])), j])[0]
    return np.where(decisive < 0, -1.0, 1.0)


def check_order(order: float) -> float:
    """A real order from 2 to infinity, or an error that says what is allowed."""
    if isinstance(order, bool) or not isinstance(order, (int, float, np.integer, np.floating)) or order != order:
        raise ParameterError(f"order must be a number from 2 to infinity, or 'auto', got {order!r}.")
    if order < 2:
        raise ParameterError(
            f"order must be at least 2, got {max(order, -1e308):g}: order 2 is the ordinary graph cut."
        )
    try:
        return float(order)
    except OverflowError as error:
        raise ParameterError("order is a whole number beyond 1e308: pass inf, which is the limit.") from error


def check_total(total: float, noise: float) -> None:
    """Refuse a sum of all of K that is not a number above zero and its rounding."""
    if not np.isfinite(total):
        raise DegreeError(
            "the kernel gives values that are not finite: scale the columns of X, lower gamma or degree, or check the "
            "affinity function."
        )
    if total <= noise:
        raise DegreeError(
            f"the kernel values sum to {total:.3g}, not above zero (or only by rounding), so there is no cut to "
            "normalise: use affinity='rbf', or shift the data so that kernel values are positive (add -X.min() to X)."
        )


def shrunken_degrees(degrees: FloatArray, mean_degree: float, order: float) -> FloatArray:
    """S = (2/m) δ + (1 − 2/m) δ̄; at m = ∞ every S is δ̄.

    The row sums of K^(m)/n^(m−2) are (m/2)² S: the order shrinks the degrees toward their mean.
    """
    share = 2.0 / order
    return share * degrees + (1.0 - share) * mean_degree


def unshrunken_degrees(shrunken: FloatArray, mean_degree: float, order: float) -> FloatArray:
    """δ = (m/2) S − (m/2 − 1) δ̄, the inverse of ``shrunken_degrees``; not a number at m = ∞, which has none."""
    if np.isinf(order):
        return np.full_like(shrunken, np.nan)
    return order / 2 * shrunken - (order / 2 - 1) * mean_degree


ORDERS = (2.0, 2.05, 2.1, 2.25, 2.5, 3.0, 4.0)
"""What ``order="auto"`` tries in turn for a kernel of rows."""

SYMMETRIC_ORDERS = (2.0, 3.0, 4.0)
"""The same for symmetric contractions, which have whole orders."""
