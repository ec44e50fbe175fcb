"""Eigenpairs of one K at several orders, in one space of vectors.

Orders differ by S alone. With D = S/S₀ for the S₀ of a first cut, whose operator is B₀ and whose trivial vector is t₀,

    B v = λ v   is   B₀ z = λ D z,   v = D^(1/2) z,   t₀ᵀDz = 0.

So a space whose image under B₀ is known has Ritz pairs and residuals of every order, without a pass over K. A pass
multiplies what is left over at all orders together: their residuals are much alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from biclique._typing import FloatArray
from biclique.runtime.namespace import right_divide
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.solver import EARLY_PASSES, RESOLVED_GAP, SPARE_COLUMNS, EigenResult, Report, Space

WIDEST = 16
"""Columns of a block, or k + 4 if that is more: a pass with so many takes little longer than one with few."""

MATTERS = 0.1
"""What is less than this share of the residual that is asked for is not pursued."""

FIRST_BLOCKS = 3
"""Blocks of the first order's space that are taken over: with more, products of tall matrices cost more than passes."""

MOST_BLOCKS = 12
"""Blocks of the space before it shrinks to the leading Ritz vectors of all orders."""

FEWEST_BLOCKS = 4
"""With room for fewer, orders are not solved together."""


def block_width(k: int) -> int:
    """The most columns of one pass."""
    return max(WIDEST, k + SPARE_COLUMNS)


def columns_within(n: int, k: int, budget: int) -> int:
    """Columns of the space that fit so many bytes, with their images and what is left over at the orders.

    0 if there are too few for anything.
    """
    width = block_width(k)
    columns = min(MOST_BLOCKS * width, (budget // (8 * n) - 10 * width) // 2, n // 2)
    return columns if columns >= FEWEST_BLOCKS * width else 0


@dataclass
class _Order:
    """One order: D, and what the space knows of it."""

    cut: NormalizedCut
    ratio: FloatArray  # D, (n,)
    mass: FloatArray  # QᵀDQ, (q, q)
    along: FloatArray  # QᵀDt₀, (q,)
    trivial: float  # t₀ᵀDt₀
    done: bool = False
    settled: bool = False
    found: EigenResult | None = None
    """The pairs when they were last looked at."""


class ManyOrders:
    """Cuts of one K at several orders, and the space Q in which their k leading eigenpairs are sought.

    ``first`` is the cut that found ``space``; ``columns`` is the most that Q may have.
    """

    def __init__(self, first: NormalizedCut, space: Space, cuts: Sequence[NormalizedCut], k: int, columns: int) -> None:
        self.first, self.k, self.columns = first, k, columns
        self.width, self.n_passes = block_width(k), 0
        start, image = space.rescaled(np.ones(len(first.trivial)), FIRST_BLOCKS * self.width)
        trivial = first.trivial
        Q, R = np.linalg.qr(start - trivial[:, None] * (trivial @ start))
        image = right_divide(image, R)
        H = Q.T @ image
        self.basis, self.images = Q, image
        self.H: FloatArray = (H + H.T) / 2
        self.orders = []
        for cut in cuts:
            ratio = cut.shrunken / first.shrunken
            weighted = ratio[:, None] * Q
            self.orders.append(_Order(cut, ratio, Q.T @ weighted, trivial @ weighted, float(ratio @ trivial**2)))

    @property
    def knows_enough(self) -> bool:
        """Whether there are more vectors to begin with than pairs wanted."""
        return bool(self.basis.shape[1] > self.k)

    def solve(self, tol: float, noise: float, max_passes: int, report: Report | None = None) -> list[EigenResult]:
        """The pairs of every order: residuals at most ``tol`` × the eigengap, or 10 × ``noise`` if that is more.

        As in ``top_eigenpairs``, residuals that are small within three passes, those of the first order with them, are
        doubted once, if another pair may be among the first k.
        """
        doubted = False
        while True:
            wanted, others, worst, target = self._left_over(tol, noise)
            doubt = not wanted and not doubted and self.first.n_passes <= EARLY_PASSES and bool(others)
            doubted = doubted or doubt
            if report is not None:
                report(self.n_passes, worst, target)
            if (not wanted and not doubt) or self.n_passes >= max_passes:
                return [one.found for one in self.orders if one.found is not None]
            self._extend(self._block(wanted, others))

    def _left_over(self, tol: float, noise: float) -> tuple[list[FloatArray], list[FloatArray], float, float]:
        """Of orders that are not done: residuals over their target; those of further pairs; the worst, its target."""
        wanted: list[FloatArray] = []
        others: list[FloatArray] = []
        worst, target = 0.0, 1.0
        for one, (pairs, left, settled) in self._looked_at(tol, noise):
            one.found, one.done, one.settled, k = pairs.first(self.k), pairs.converged, settled, self.k
            one.cut.n_passes = self.first.n_passes
            largest = float(pairs.residuals[:k].max())
            if largest / pairs.target > worst / target:
                worst, target = largest, pairs.target
            # In the coordinates of z, in which a power of B is D⁻¹B₀.
            left /= np.sqrt(one.ratio)[:, None] * pairs.target
            if not one.done:
                wanted.append(left[:, :k][:, pairs.residuals[:k] > MATTERS * pairs.target])
            if not (one.done and one.settled) and left.shape[1] > k:
                others.append(left[:, k:])
            wanted, others = _narrowed(wanted, 2 * self.width), _narrowed(others, 2 * self.width)
        return wanted, others, worst, target

    def _block(self, wanted: list[FloatArray], others: list[FloatArray]) -> FloatArray:
        """What the next pass multiplies: what matters of the wanted pairs, and k + 4 columns of the further ones."""
        nothing = self.basis[:, :0]
        block = _leading(self._outside(np.column_stack(wanted)), self.width, MATTERS) if wanted else nothing
        if not others:
            return block
        rest = self._outside(np.column_stack(others))
        rest -= block @ (block.T @ rest)
        fits = min(self.width - block.shape[1], self.k + SPARE_COLUMNS)
        return np.column_stack([block, _leading(rest, fits, 0.0)])

    def _outside(self, block: FloatArray) -> FloatArray:
        """The part that is orthogonal to the space and to t₀."""
        trivial = self.first.trivial
        for _ in range(2):
            block = block - self.basis @ (self.basis.T @ block)
            block -= trivial[:, None] * (trivial @ block)
        return block

    def _extend(self, block: FloatArray) -> None:
        """Take a block into the space: one pass over K."""
        if self.basis.shape[1] + block.shape[1] > self.columns:
            self._shrink()
        for _ in range(2):  # rounding left by the first is removed by the second
            block = np.linalg.qr(self._outside(block))[0]
        image = self.first.matmat(block)
        self.n_passes += 1
        Q, trivial = self.basis, self.first.trivial
        self.H = _bordered(self.H, Q.T @ image, block.T @ image)
        for one in self.orders:
            weighted = one.ratio[:, None] * block
            one.mass = _bordered(one.mass, Q.T @ weighted, block.T @ weighted)
            one.along = np.concatenate([one.along, trivial @ weighted])
        self.basis, self.images = np.column_stack([Q, block]), np.column_stack([self.images, image])

    def _shrink(self) -> None:
        """Keep the span of the leading Ritz vectors of all orders, in half of the columns."""
        kept = [self._coordinates(one)[1][:, : self.k + SPARE_COLUMNS] for one in self.orders]
        joined = np.column_stack([y / np.linalg.norm(y, axis=0) for y in kept])
        turn = np.linalg.svd(joined, full_matrices=False)[0][:, : self.columns // 2]
        self.basis, self.images, self.H = self.basis @ turn, self.images @ turn, turn.T @ self.H @ turn
        for one in self.orders:
            one.mass, one.along = turn.T @ one.mass @ turn, one.along @ turn

    def _coordinates(self, one: _Order) -> tuple[FloatArray, FloatArray]:
        """Ritz values of an order, descending, and y of z = Qy + (…) t₀, where t₀ᵀDz = 0."""
        mass = one.mass - np.outer(one.along, one.along / one.trivial)
        values, y = eigh(self.H, (mass + mass.T) / 2)
        return values[::-1], y[:, ::-1]

    def _looked_at(self, tol: float, noise: float) -> Iterator[tuple[_Order, tuple[EigenResult, FloatArray, bool]]]:
        """Every order that is not done, and its pairs: some orders together, since the space is large."""
        wanted, together = self.k + SPARE_COLUMNS, max(2 * self.width // (self.k + SPARE_COLUMNS), 1)
        orders = [one for one in self.orders if not (one.done and one.settled)]
        for start in range(0, len(orders), together):
            group = orders[start : start + together]
            found = [self._coordinates(one) for one in group]
            y = np.column_stack([y[:, :wanted] for _, y in found])
            inside, images, place = self.basis @ y, self.images @ y, 0
            for one, (values, own) in zip(group, found, strict=True):
                own = own[:, :wanted]
                mine, place = slice(place, place + own.shape[1]), place + own.shape[1]
                z = inside[:, mine] - self.first.trivial[:, None] * (one.along @ own / one.trivial)
                yield one, self._pairs(one, values, z, images[:, mine], tol, noise)

    def _pairs(
        self, one: _Order, values: FloatArray, z: FloatArray, images: FloatArray, tol: float, noise: float
    ) -> tuple[EigenResult, FloatArray, bool]:
        """Ritz pairs of an order, the k wanted ones and some more; Bv − λv; whether no others can be wanted.

        ``values`` are all its Ritz values, ``z`` the vectors of the leading ones, ``images`` B₀ of these.
        """
        k = self.k
        scale = float(np.abs(values).max())
        gap = float(values[k - 1] - values[k]) if len(values) > k else 0.0
        target = max(tol * max(gap, RESOLVED_GAP * scale), 10 * noise)
        values, root, trivial = values[: z.shape[1]], np.sqrt(one.ratio)[:, None], one.cut.trivial
        vectors, images = root * z, images / root
        images -= trivial[:, None] * (trivial @ images)
        left = images - vectors * values
        residuals = np.linalg.norm(left, axis=0)
        settled = bool((values[k:] + residuals[k:] < values[k - 1]).all())
        converged = bool((residuals[:k] <= target).all())
        return EigenResult(values, vectors, images, residuals, self.n_passes, converged, target), left, settled


def _bordered(old: FloatArray, side: FloatArray, corner: FloatArray) -> FloatArray:
    """[[old, side], [sideᵀ, corner]]."""
    return np.block([[old, side], [side.T, (corner + corner.T) / 2]])


def _leading(block: FloatArray, columns: int, above: float) -> FloatArray:
    """The leading left singular vectors, at least one, with singular values larger than ``above``."""
    squares, turn = np.linalg.eigh(block.T @ block)
    kept = np.flatnonzero(squares > max(above**2, 1e-14 * squares[-1]))[-columns:] if columns else np.arange(0)
    if columns and not len(kept):
        kept = np.array([len(squares) - 1])
    return np.linalg.qr(block @ turn[:, kept[::-1]])[0]


def _narrowed(blocks: list[FloatArray], columns: int) -> list[FloatArray]:
    """Blocks side by side; where they are too wide, their leading combinations."""
    if sum(block.shape[1] for block in blocks) <= columns:
        return blocks
    joined = np.column_stack(blocks)
    return [joined @ np.linalg.eigh(joined.T @ joined)[1][:, -(columns // 2) :]]
