"""The order-m normalised cut as an operator, without ever forming K^(m).

For a Gram matrix K, multiplicities w and an order m ≥ 2 (math: Algorithm 1 of the paper),

    δ = K w,   ρ = wᵀ δ,   δ̄ = ρ / Σw,
    S = (2/m) δ + (1 − 2/m) δ̄,
    B = W^(1/2) S^(−1/2) (K − δδᵀ/ρ) S^(−1/2) W^(1/2).

The eigenpairs of D_m^(−1/2) K^(m) D_m^(−1/2), the matrix of the paper's Algorithm 1, are the trivial pair
(1, √(wS) normalised) and ((2/m)² λ, v) for every eigenpair (λ, v) of B with λ ≠ 0. The order enters through
S alone: it shrinks the degrees toward their mean. Order 2 is the normalised cut, order ∞ spectral
modularity.
"""

from __future__ import annotations

from copy import copy
from typing import NoReturn

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DegreeError
from biclique.gram import GramOperator
from biclique.multiway import check_order, shrunken_degrees
from biclique.neighbors.parts import LINK
from biclique.runtime.namespace import float64, full, moved, namespace, scalars, to_host
from biclique.spectral.solver import Space


class NormalizedCut:
    """S and B of a Gram operator and an order; the only place where the order appears.

    Building it costs one pass over K, which also multiplies ``probe`` (n, b): a start for the eigenvector
    solver whose image under B comes for free (``start`` and ``start_image``). ``row_numbers`` are the names of rows
    in error messages.

    All arrays lie where the operator's ``diagonal`` does, on the host or on a device; weights and probe are moved.
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
        self.gram = gram
        self.order = check_order(order)
        diagonal = gram.diagonal()
        xp = namespace(diagonal)
        self.weights: FloatArray = (
            full((n,), 1.0, diagonal) if sample_weight is None else moved(float64(sample_weight), diagonal)
        )
        probe = full((n, 0), 0.0, diagonal) if probe is None else moved(probe, diagonal)
        product = float64(gram.matmat(xp.column_stack([self.weights, self.weights[:, None] * probe])))
        self.degrees: FloatArray = product[:, 0]  # δ
        root = float64(xp.sqrt(xp.abs(diagonal)))
        self.total, weight, reach = scalars(  # ρ, Σw, Σ w √K_ii
            self.weights @ self.degrees, self.weights.sum(), self.weights @ root
        )
        self.mean_degree = self.total / weight  # δ̄
        # Where values of both signs cancel, what is left of a sum may be rounding: |K_ij| ≤ √(K_ii K_jj). Sums of
        # values of one sign are right to a few digits less than the last, however small they are.
        noise = 0.0 if gram.nonnegative else 4 * float(np.finfo(gram.dtype).eps) * reach
        self._check_total(noise * reach)
        self._noise, self._root = noise, root
        self._apply(self.order)
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
        self._scale = xp.sqrt(self.weights / self.shrunken)
        self.trivial: FloatArray = xp.sqrt(self.weights * self.shrunken / self.volume)

    def at_order(self, order: float, space: Space | None = None, columns: int = 0) -> NormalizedCut:
        """The same K at another order: no pass over K.

        A space in which eigenvectors of this cut were found gives ``columns`` vectors to start from, with their images:
        B changes by S alone, so products carry over.
        """
        other = copy(self)
        other._apply(check_order(order))
        other.start, other.start_image = self.start[:, :0], self.start_image[:, :0]
        if space is not None:
            start, image = space.rescaled(other.shrunken / self.shrunken, columns)
            trivial = other.trivial
            other.start = start - trivial[:, None] * (trivial @ start)
            other.start_image = image - trivial[:, None] * (trivial @ image)
        return other

    def restricted(self, gram: GramOperator, members: IntArray) -> NormalizedCut:
        """The cut of rows that are linked to no others, at order 2: no pass over their K, which is ``gram``.

        Their degrees are what they are among all rows. So are the products with the start, but for a multiple of √(wS).
        """
        if self.order != 2:
            raise ValueError("degrees of higher orders are not those of a part")
        other = copy(self)
        other.gram, other._row_numbers = gram, self._row_numbers[members]
        other.weights, other.degrees, other._root = self.weights[members], self.degrees[members], self._root[members]
        other.total, weight = scalars(other.weights @ other.degrees, other.weights.sum())
        other.mean_degree = other.total / weight
        other._apply(2.0)
        trivial, image = other.trivial, self.start_image[members]
        other.start, other.start_image = self.start[members], image - trivial[:, None] * (trivial @ image)
        other.n_passes = 0
        return other

    @property
    def shape(self) -> tuple[int, int]:
        return (self.gram.n, self.gram.n)

    @property
    def faint(self) -> float:
        """The degree up to which a row is linked to no other: ``LINK`` of what a usual row has from itself."""
        return LINK * scalars(self.weights @ self._root**2)[0] / self.shape[0]

    @property
    def loneliest(self) -> float:
        """max_i B_ii = w_i (K_ii − δ_i²/ρ) / S_i: no less is the leading eigenvalue, which is then that row's alone."""
        own = self.weights * (self._root**2 - self.degrees * (self.degrees / self.total)) / self.shrunken
        return scalars(own.max())[0]

    @property
    def like(self) -> FloatArray:
        """An array that lies where this operator takes and returns them."""
        return self.trivial

    def matmat(self, V: FloatArray) -> FloatArray:
        """B @ V, shape (n, b). One pass over K."""
        self.n_passes += 1
        scaled = self._scale[:, None] * V
        return self._normalize(float64(self.gram.matmat(scaled)), self.degrees @ scaled)

    def _normalize(self, product: FloatArray, along_degrees: FloatArray) -> FloatArray:
        """W^(1/2) S^(−1/2) (product − δ along_degreesᵀ/ρ), kept orthogonal to the trivial vector."""
        product -= self.degrees[:, None] * (along_degrees / self.total)
        product *= self._scale[:, None]
        # B has no part along the trivial vector; what is there is rounding.
        product -= self.trivial[:, None] * (self.trivial @ product)
        return product

    def _check_total(self, noise: float) -> None:
        if not np.isfinite(self.total):
            raise DegreeError(
                "the kernel gives values that are not finite: scale the columns of X, lower gamma or degree, "
                "or check the affinity function."
            )
        if self.total <= noise:
            raise DegreeError(
                f"the kernel values sum to {self.total:.3g}, not above zero (or only by rounding), so there is "
                "no cut to normalise: use affinity='rbf', or shift the data so that kernel values are positive (add "
                "-X.min() to X)."
            )

    def _refuse(self, bad: np.ndarray) -> NoReturn:
        lowest = to_host(self.shrunken)[bad].min()
        names = np.sort(self._row_numbers[bad])
        rows = ", ".join(str(i) for i in names[:5]) + (", …" if len(names) > 5 else "")
        raise DegreeError(
            f"{len(names)} of {len(bad)} rows have a degree that is not positive at order {self.order:g} "
            f"(rows {rows}; lowest {lowest:.3g}, mean degree {self.mean_degree:.3g}): use a higher "
            "order, affinity='rbf', or shift the data so that kernel values are positive (add -X.min() to X)."
        )
