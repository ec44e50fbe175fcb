"""Eigenpairs of one K at several orders, in one space of vectors.

Orders differ by S alone. With D = S/S₀ for the S₀ of a first cut, whose operator is B₀ and whose trivial vector is t₀,

    B v = λ v   is   B₀ z = λ D z,   v = D^(1/2) z,   t₀ᵀDz = 0.

So a space whose image under B₀ is known has Ritz pairs and residuals of every order, without a pass over K. A pass
multiplies the residuals of all orders together: they are much alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import eigh

from biclique._typing import FloatArray
from biclique.runtime.namespace import right_divide
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.solver import EARLY_PASSES, SPARE_COLUMNS, EigenResult, Report, RitzSpace, residual_target

WIDEST = 16
"""Columns of a block, or k + 4 if that is more: a pass with so many takes little longer than one with few."""

FIRST_BLOCKS = 3
"""Blocks of the first order's space that are taken over: with more, products of tall matrices cost more than passes."""

MOST_BLOCKS = 12
"""Blocks of the space at most: orders that have not converged then are solved one by one."""


def block_width(k: int) -> int:
    """The most columns of one pass."""
    return max(WIDEST, k + SPARE_COLUMNS)


class ManyOrders:
    """A space Q orthogonal to t₀, its image B₀Q, and the k leading eigenpairs of several orders in it.

    ``first`` is the cut that found ``space``.
    """

    def __init__(self, first: NormalizedCut, space: RitzSpace, k: int) -> None:
        self.first, self.k, self.n_passes = first, k, 0
        self.width = block_width(k)
        trivial = first.trivial
        start, image = space.rescaled(np.ones_like(trivial), FIRST_BLOCKS * self.width)
        self.basis, R = np.linalg.qr(start - trivial[:, None] * (trivial @ start))  # Q, (n, q)
        self.images = right_divide(image, R)  # B₀Q, (n, q)
        self.H = _bordered(np.empty((0, 0)), self.basis.T @ self.images)
        self.masses: dict[float, FloatArray] = {}

    def solve(
        self, cuts: Sequence[NormalizedCut], tol: float, noise: float, max_passes: int, report: Report | None = None
    ) -> list[EigenResult]:
        """The pairs of every cut: residuals at most ``tol`` × the eigengap, or 10 × ``noise`` if that is more.

        Pairs that have not converged ran out of passes, or the space is full.
        """
        columns = min(MOST_BLOCKS * self.width, len(self.basis) // 2)
        found: dict[float, EigenResult] = {}
        while True:
            residuals, worst, target = [], 0.0, 1.0
            for cut in cuts:
                if cut.order in found and found[cut.order].converged:
                    continue
                pairs, left = self._ritz_pairs(cut, tol, noise)
                found[cut.order] = pairs.first(self.k)
                largest = float(found[cut.order].residuals.max())
                if largest / pairs.target > worst / target:
                    worst, target = largest, pairs.target
                if not pairs.converged:
                    residuals.append(left / pairs.target)
            if report is not None:
                report(self.n_passes, worst, target)
            full = self.basis.shape[1] + self.width > columns
            if not residuals or full or self.n_passes >= max_passes:
                return [found[cut.order] for cut in cuts]
            self._extend(self._leading(np.column_stack(residuals)))

    def _ritz_pairs(self, cut: NormalizedCut, tol: float, noise: float) -> tuple[EigenResult, FloatArray]:
        """Ritz pairs of an order, the k wanted ones and some more, and D^(−1/2) (Bv − λv) of those to pursue.

        As in ``top_eigenpairs``, small residuals are not trusted within three passes if another pair may be among the
        first k. Then the others are pursued too.
        """
        k, Q, first = self.k, self.basis, self.first
        D = cut.shrunken / first.shrunken
        known = self.masses.get(cut.order, np.empty((0, 0)))
        self.masses[cut.order] = _bordered(known, Q.T @ (D[:, None] * Q[:, len(known) :]))  # QᵀDQ
        along, total = (D * first.trivial) @ Q, float(D @ first.trivial**2)
        mass = self.masses[cut.order] - np.outer(along, along / total)
        values, y = eigh(self.H, (mass + mass.T) / 2)
        values, y = values[::-1], y[:, ::-1][:, : k + SPARE_COLUMNS]
        target = residual_target(values, k, tol, noise)
        values, root = values[: y.shape[1]], np.sqrt(D)[:, None]
        vectors = root * (Q @ y - first.trivial[:, None] * (along @ y / total))
        images = self.images @ y / root
        images -= cut.trivial[:, None] * (cut.trivial @ images)
        left = images - vectors * values
        residuals = np.linalg.norm(left, axis=0)
        settled = first.n_passes > EARLY_PASSES or bool((values[k:] + residuals[k:] < values[k - 1]).all())
        converged = settled and bool((residuals[:k] <= target).all())
        pairs = EigenResult(values, vectors, images, residuals, self.n_passes, converged, target)
        return pairs, (left[:, :k] if settled else left) / root

    def _leading(self, block: FloatArray) -> FloatArray:
        """The leading left singular vectors of a block's part outside the space."""
        block = self._outside(block)
        squares, turn = np.linalg.eigh(block.T @ block)
        leading = turn[:, squares > 1e-14 * squares[-1]][:, -self.width :]
        return np.asarray(block @ leading)

    def _outside(self, block: FloatArray) -> FloatArray:
        """The part that is orthogonal to the space and to t₀."""
        block = block - self.basis @ (self.basis.T @ block)
        return block - self.first.trivial[:, None] * (self.first.trivial @ block)

    def _extend(self, block: FloatArray) -> None:
        """Take a block into the space: one pass over K."""
        for _ in range(2):  # rounding left by the first is removed by the second
            block = np.linalg.qr(self._outside(block))[0]
        image = self.first.matmat(block)
        self.n_passes += 1
        self.basis = np.column_stack([self.basis, block])
        self.images = np.column_stack([self.images, image])
        self.H = _bordered(self.H, self.basis.T @ image)


def _bordered(known: FloatArray, columns: FloatArray) -> FloatArray:
    """A symmetric matrix (q, q) from its first block and its last columns (q, b)."""
    m = len(known)
    corner = (columns[m:] + columns[m:].T) / 2
    return np.block([[known, columns[:m]], [columns[:m].T, corner]])
