"""The largest eigenpairs of a symmetric operator, by block Krylov with thick restarts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import check_random_state

from biclique._typing import FloatArray
from biclique.exceptions import GapsWarning, RankWarning, SolverWarning, warn_user
from biclique.runtime.namespace import (
    empty_columns,
    float64,
    full,
    identity,
    moved,
    to_host,
)

DIRECT_BELOW = 512
"""Up to here the whole matrix is made and decomposed: quicker than iterating, and exact."""

FEW = 10
"""One pair of so many is few: LAPACK's solver for a few is quicker."""

SPARE_COLUMNS = 4
"""A block has this many columns more than pairs wanted: they show the eigengap, and speed convergence."""

RESOLVED_GAP = 1e-3
"""A gap below this share of the largest eigenvalue does not tighten the tolerance any more."""

BASIS_BLOCKS = 12
"""Blocks kept before a restart."""

EARLY_PASSES = 3
"""Up to here a start that knows most of the eigenvectors can converge before a missing one shows."""

WORST_START = 1e6
"""A start whose columns are more alike than this condition number is multiplied again."""

ORTHOGONAL = 0.5
"""Columns whose cosines have no eigenvalue below this are orthonormal to rounding after one more turn."""

MOST_ROUNDS = 6
"""Turns of a block at most: two are usual, four if directions are missing."""


class Operator(Protocol):
    """What the solver needs of a symmetric operator; ``like`` is an array on its device."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def like(self) -> FloatArray: ...

    def matmat(self, V: FloatArray) -> FloatArray: ...


@dataclass(frozen=True)
class EigenResult:
    """The k algebraically largest eigenpairs, descending; always k of them.

    ``vectors`` and ``images`` are on the operator's device, all else on the host.
    """

    values: FloatArray  # (k,)
    vectors: FloatArray  # (n, k), orthonormal
    images: FloatArray  # (n, k), the operator times ``vectors``
    residuals: FloatArray  # (k,), |B v − λ v|
    n_passes: int
    converged: bool
    target: float
    """The residual that was asked for: the tolerance times the eigengap."""
    space: EigenResult | None = None
    """These pairs and the next ones, kept on request: another order starts from them."""

    @classmethod
    def none(cls, like: FloatArray) -> EigenResult:
        """No pairs at all, of vectors on the device of ``like`` (n,)."""
        empty = like[:, None][:, :0]
        return cls(np.empty(0), empty, empty, np.empty(0), 0, True, 0.0)

    def first(self, k: int) -> EigenResult:
        """The first k of them."""
        return replace(
            self,
            values=self.values[:k],
            vectors=self.vectors[:, :k],
            images=self.images[:, :k],
            residuals=self.residuals[:k],
        )


Report = Callable[[int, float, float], None]
"""Called after every pass: passes so far, worst residual, target."""


def block_columns(k: int, n: int) -> int:
    """Columns of one block for k wanted pairs."""
    return min(k + SPARE_COLUMNS, n)


def basis_bytes(n: int, k: int) -> int:
    """Memory of a whole basis, the next block and its product."""
    return 8 * n * block_columns(k, n) * (BASIS_BLOCKS + 3)


def direct_bytes(n: int) -> int:
    """Memory of a full decomposition: the matrix, its product, two copies and the eigenvectors."""
    return 5 * 8 * n * n


def solves_directly(n: int, k: int) -> bool:
    """Whether k pairs of an n × n operator come from one full decomposition."""
    return n <= max(DIRECT_BELOW, 6 * block_columns(k, n))


def top_eigenpairs(
    operator: Operator,
    k: int,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    noise: float = float(np.finfo(float).eps),
    start: FloatArray | None = None,
    start_image: FloatArray | None = None,
    deflate: FloatArray | None = None,
    random_state: int | np.random.RandomState | None = None,
    report: Report | None = None,
    keep_space: bool = False,
) -> EigenResult:
    """The k algebraically largest eigenpairs of a symmetric operator.

    Pairs count as converged when every residual |B v − λ v| is at most ``tol`` × (λ_k − λ_(k+1)): the angle
    between the computed and the true invariant subspace is then at most about ``tol``. ``noise`` is the
    rounding of a product with a unit vector, below which no residual can be asked for.

    Residuals say that pairs are eigenpairs, not that they are the largest. If they are small within three passes, one
    more pass is made if a further Ritz value θ with residual r has θ + r ≥ λ_k: it could still be among the k.

    ``start`` (n, b) is the first block, ``start_image`` the operator times it if that is known already (this saves a
    pass). If the start is wider than k + 4 columns, so are the other blocks. ``deflate`` (n,) is a unit eigenvector
    with eigenvalue zero that is not wanted: without it, it would stand before negative eigenvalues. With ``keep_space``
    the result holds the pairs of a restart too.

    The basis is on the operator's device, as ``operator.like`` says. Small matrices are decomposed on the host;
    on a device a pass waits for it three times.
    """
    n = operator.shape[0]
    like = operator.like
    deflate = None if deflate is None else moved(deflate, like)
    if solves_directly(n, k):
        return dense_eigenpairs(operator, k, deflate)
    solver = BlockKrylov(operator, k, deflate, random_state)
    solver.begin(start, start_image)
    doubted = False
    while True:
        state = solver.ritz()
        target = residual_target(state.values, k, tol, noise)
        worst = float(state.residuals.max(initial=0.0))
        if report is not None:
            report(solver.n_passes, worst, target)
        done = worst <= target
        doubt = done and not doubted and not state.settled and solver.n_passes <= EARLY_PASSES
        doubted = doubted or doubt
        over = solver.n_passes >= max_iter
        if (done and not doubt) or over:
            found = solver.result(state, solver.kept if keep_space else k, done, target)
            return replace(found.first(k), space=found if keep_space else None)
        if solver.full:
            solver.restart(state)
        solver.extend()


def residual_target(values: FloatArray, k: int, tol: float, noise: float) -> float:
    """``tol`` × (λ_k − λ_(k+1)) for values in descending order; never below 10 × ``noise``."""
    gap = float(values[k - 1] - values[k]) if len(values) > k else 0.0
    scale = float(np.abs(values).max(initial=0.0))
    return max(tol * max(gap, RESOLVED_GAP * scale), 10 * noise)


def dense_eigenpairs(operator: Operator, k: int, deflate: FloatArray | None = None) -> EigenResult:
    """The k algebraically largest eigenpairs of a small operator, whose matrix is made by one pass with n columns.

    For at most a tenth of the pairs, LAPACK's solver for a few is tried first, which takes a third of the time. It has
    returned fewer than asked for, without an error, if eigenvalues crowd. So what it returns is checked. Otherwise the
    matrix is decomposed whole.
    """
    like = operator.like
    matrix = to_host(float64(operator.matmat(identity(operator.shape[0], like))))
    matrix = (matrix + matrix.T) / 2
    lowered = matrix
    if deflate is not None:
        deflate = to_host(deflate)
        bound = float(np.linalg.norm(matrix))
        lowered = matrix - 2 * (bound + np.finfo(float).tiny) * np.outer(deflate, deflate)
    values, vectors = _few_pairs(lowered, k) or np.linalg.eigh(lowered)
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    images = matrix @ vectors
    residuals = np.linalg.norm(images - vectors * values, axis=0)
    return EigenResult(values, moved(vectors, like), moved(images, like), residuals, 1, True, float("nan"))


def _few_pairs(matrix: FloatArray, k: int) -> tuple[FloatArray, FloatArray] | None:
    """The k algebraically largest eigenpairs, ascending; None if these are many, or not what LAPACK returns."""
    n = len(matrix)
    if FEW * k > n:
        return None
    try:
        values, vectors = eigh(matrix, subset_by_index=(n - k, n - 1), check_finite=False)
    except (np.linalg.LinAlgError, ValueError):
        return None
    if vectors.shape != (n, k):
        return None
    rounding = 100 * n * float(np.finfo(float).eps)
    skew = np.abs(vectors.T @ vectors - np.eye(k)).max()
    residual = np.linalg.norm(matrix @ vectors - vectors * values, axis=0).max()
    return (values, vectors) if skew <= rounding and residual <= rounding * np.linalg.norm(matrix) else None


@dataclass
class _Ritz:
    """Ritz pairs of the current basis, descending."""

    values: FloatArray
    coordinates: FloatArray
    residuals: FloatArray  # of the first k
    settled: bool
    """Whether no other pair can be among the first k, by the residual it has."""


class BlockKrylov:
    """Block Lanczos with full reorthogonalisation and thick restarts.

    Q (n, q) is an orthonormal basis whose last block has not been multiplied yet; H = QᵀBQ over the part
    that has. The recurrence B Q = Q H + (next block) C holds to rounding, so residuals cost no pass. Q and the next
    block are on the device of ``like``, H and C on the host.
    """

    def __init__(
        self,
        operator: Operator,
        k: int,
        deflate: FloatArray | None,
        random_state: int | np.random.RandomState | None,
    ) -> None:
        self.operator, self.k, self.like = operator, k, operator.like
        self.n = operator.shape[0]
        self.b = block_columns(k, self.n)
        self.random = check_random_state(random_state)
        self.capacity = min(BASIS_BLOCKS * self.b, self.n - self.b)
        # Columns side by side in memory: pages are taken only as the basis grows, and it is never copied. The first is
        # the vector that is not wanted.
        self._first = 0 if deflate is None else 1
        self._columns: FloatArray = empty_columns(self.n, self._first + self.capacity, self.like)
        if deflate is not None:
            self._columns[:, 0] = deflate
        self._filled = 0
        self.H: FloatArray = np.empty((0, 0))
        self.next: FloatArray = full((self.n, 0), 0.0, self.like)
        self.coupling: FloatArray = np.empty((0, 0))  # C: next block against the basis, (b, q)
        self.n_passes = 0

    @property
    def basis(self) -> FloatArray:
        return self._columns[:, self._first : self._first + self._filled]

    @property
    def full(self) -> bool:
        return self._filled + self.b > self.capacity

    @property
    def kept(self) -> int:
        """Ritz pairs that a restart keeps."""
        return min(self.k + 2 * self.b, self.capacity - self.b)

    def begin(self, start: FloatArray | None, image: FloatArray | None) -> None:
        """The first block, and its product."""
        if start is None:
            start, image = self._random(self.b), None
        self.b = max(self.b, start.shape[1])
        block, R = self._orthonormal(moved(start, self.like))
        if image is None or np.linalg.cond(R) > WORST_START:
            self.next = block
            self.extend()
        else:
            # B Q = (B start) R⁻¹: the image of the orthonormalised block without another pass.
            self.n_passes += 1
            self._absorb(block, moved(image, self.like) @ moved(np.linalg.inv(R), self.like))

    def extend(self) -> None:
        """Multiply the next block and take it into the basis: one pass."""
        image = float64(self.operator.matmat(self.next))
        self.n_passes += 1
        self._absorb(self.next, image)

    def _absorb(self, block: FloatArray, image: FloatArray) -> None:
        q, b = self._filled, block.shape[1]
        self._filled += b
        self.basis[:, q:] = block
        along = self.basis.T @ image
        image = image - self.basis @ along
        columns = to_host(along)
        H = np.empty((q + b, q + b))
        H[:q, :q] = self.H
        H[:, q:] = columns
        H[q:, :q] = columns[:q].T
        H[q:, q:] = (columns[q:] + columns[q:].T) / 2
        self.H = H
        self.next, R = self._orthonormal(image)
        self.coupling = np.zeros((b, q + b))
        self.coupling[:, q:] = R

    def _orthonormal(self, block: FloatArray) -> tuple[FloatArray, FloatArray]:
        """An orthonormal block Q orthogonal to the basis, with block = Q R; R is on the host.

        Columns are scaled to length 1, turned onto the eigenvectors of their cosines, and divided by the roots of the
        eigenvalues, until the cosines are those of an orthonormal block (Stathopoulos and Wu 2002): products of tall
        matrices alone, quicker than QR. Directions that are missing are drawn at random.
        """
        avoided = self._columns[:, : self._first + self._filled]
        R = np.eye(block.shape[1])
        for _ in range(MOST_ROUNDS):
            block = block - avoided @ (avoided.T @ block)
            product = to_host(block.T @ block)
            sizes = np.sqrt(np.diagonal(product))
            lost = sizes <= 1e-13 * max(float(sizes.max()), float(np.abs(self.H).max(initial=0.0)))
            if lost.any():
                R[lost] = 0.0
                block[:, np.flatnonzero(lost).tolist()] = self._random(int(lost.sum()))
                continue
            cosines, turn = np.linalg.eigh(product / np.outer(sizes, sizes))
            lengths = np.sqrt(np.maximum(cosines, np.finfo(float).eps))
            block = block @ moved(turn / sizes[:, None] / lengths, self.like)
            R = lengths[:, None] * (turn.T @ (sizes[:, None] * R))
            if cosines[0] > ORTHOGONAL:
                break
        return block, R

    def _random(self, columns: int) -> FloatArray:
        """Normal columns of length about 1, drawn on the host: the same for every device."""
        return moved(self.random.standard_normal((self.n, columns)) / np.sqrt(self.n), self.like)

    def ritz(self) -> _Ritz:
        values, vectors = np.linalg.eigh(self.H)
        values, vectors = values[::-1], vectors[:, ::-1]
        k = self.k
        residuals = np.linalg.norm(self.coupling @ vectors, axis=0)
        settled = bool((values[k:] + residuals[k:] < values[k - 1]).all())
        return _Ritz(values, vectors, residuals[:k], settled)

    def restart(self, state: _Ritz) -> None:
        """Keep the best Ritz vectors, and go on from there."""
        coordinates = state.coordinates[:, : self.kept]
        kept = self.basis @ moved(coordinates, self.like)
        self._filled = self.kept
        self.basis[:] = kept
        self.coupling = self.coupling @ coordinates
        self.H = np.diag(state.values[: self.kept])

    def result(self, state: _Ritz, count: int, converged: bool, target: float) -> EigenResult:
        """So many of the pairs, with the residuals of the first k."""
        coordinates = state.coordinates[:, :count]
        vectors = self.basis @ moved(coordinates, self.like)
        values = state.values[:count].copy()
        images = vectors * moved(values, self.like) + self.next @ moved(self.coupling @ coordinates, self.like)
        return EigenResult(values, vectors, images, state.residuals, self.n_passes, converged, target)


def warn_unless_converged(pairs: EigenResult) -> None:
    """Say how many eigenpairs missed the tolerance, and by how much."""
    above = int((pairs.residuals > pairs.target).sum())
    if not pairs.converged and above:
        warn_user(
            f"{above} of {len(pairs.values)} eigenpairs above tol (worst residual {pairs.residuals.max():.1e} > "
            f"{pairs.target:.1e}) after {pairs.n_passes} passes; raise eigen_tol.",
            SolverWarning,
        )


def warn_about_null_columns(informative: np.ndarray, n_columns: int) -> None:
    """Say how many columns of an embedding are zero because K has too few eigenvalues that are not."""
    found = int(informative.sum()) + 1  # and the trivial one
    if found < n_columns:
        warn_user(
            f"the kernel gives {found} informative columns, {n_columns} were asked for: the rest of the embedding is "
            "zero; use another affinity or fewer clusters.",
            RankWarning,
        )


def warn_about_clipped(count: int, total: int, lowest: float, what: str) -> None:
    """Say how many negative eigenvalues were taken as 0, if any; ``lowest`` is a share of the largest."""
    if count:
        warn_user(
            f"{count} of {total} eigenvalues of {what} are negative (lowest {lowest:.2g} of the largest), because gaps "
            "in X make K indefinite, and were taken as 0: fill gaps or leave out columns with many, or ask for fewer "
            "clusters.",
            GapsWarning,
        )
