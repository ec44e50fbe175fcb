"""From an estimator and its input to a cut: kernel → Gram operator → normalised cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError, ParameterError
from biclique.features.passes import factored_bytes
from biclique.fit.checks import PRECOMPUTED, warn_about_spread
from biclique.fit.rank import RANKS, Pool, check_rank, choose_map, pool_size
from biclique.gram import (
    FACTORED,
    GIVEN_WAY_OUT,
    CrossGram,
    DenseGram,
    FactoredGram,
    GramOperator,
    SparseGram,
    StoredCross,
    TrainedRows,
    checked_matrix,
    checked_sparse,
    choose_gram,
    dense_bytes,
    factored_precision,
    given_bytes,
    make_gram,
    tiled_bytes,
)
from biclique.io import draw_numbers
from biclique.kernels import (
    GAMMA_KERNELS,
    Kernel,
    bandwidth,
    check_rows_for_kernel,
    draw_rows,
    make_kernel,
)
from biclique.multiway import SymmetricGram, SymmetricShift, check_order
from biclique.neighbors.index import NeighborIndex
from biclique.progress import Progress
from biclique.rows.distinct import distinct_given, distinct_rows, find_rows
from biclique.runtime.arguments import check_random
from biclique.runtime.memory import data_bytes, parse_memory_limit, require
from biclique.spectral import (
    BASIS_BLOCKS,
    FEWEST_BLOCKS,
    ApproximationError,
    NormalizedCut,
    basis_bytes,
    block_columns,
    blocks_within,
    direct_bytes,
    solves_directly,
    start_from_few,
)
from biclique.spectral.order import ORDERS, SYMMETRIC_ORDERS

START_FROM, START_ROWS = 30_000, 2_048
"""From so many rows on the solver starts from the eigenvectors of so few."""

LONG_SECONDS = 10.0


@dataclass(frozen=True)
class Vertices:
    """What the Gram operator is built on: distinct rows (or a given matrix) and their multiplicities."""

    data: Rows  # distinct rows, or the given matrix of the rows that count
    weights: FloatArray
    index: np.ndarray  # (n,), −1 where a row does not count
    digests: np.ndarray  # of distinct rows, ascending; () for a given graph of distances
    numbers: IntArray  # where each vertex stands first in the input
    given: bool
    kept: np.ndarray | None  # for a given matrix: the columns of vertices, where not all are
    places: IntArray | None = None  # for a given matrix: the vertex of each digest

    @property
    def n(self) -> int:
        return int(self.data.shape[0])


@dataclass(frozen=True)
class TrainingRows:
    """What a fitted estimator keeps of its training rows: enough to know them again and to meet new ones."""

    digests: np.ndarray
    kept: np.ndarray | None
    held: TrainedRows | None
    shift: SymmetricShift | None
    places: IntArray | None = None

    def match(self, X: Rows) -> Rows:
        """New rows in the form in which the training rows came, dense or sparse."""
        if self.held is None or sparse.issparse(X) == sparse.issparse(self.held.rows):
            return X
        return X.toarray() if sparse.issparse(X) else sparse.csr_array(X)

    def find(self, X: Rows) -> IntArray:
        """Which vertex every row is, −1 where none; of a given matrix, by its similarities to all rows."""
        found = find_rows(self.digests, X)
        return found if self.places is None else np.where(found < 0, -1, self.places[found])

    @staticmethod
    def known_or_new(table: Any, place: IntArray, X: Rows, of_new: Callable[[Rows], Any]) -> Any:
        """What the table holds for vertices ``place``, and ``of_new`` of the rows of X where that is −1."""
        out = table[place]
        new = np.flatnonzero(place < 0)
        if len(new):
            out[new] = of_new(X if len(new) == len(place) else X[new])
        return out

    def cross(self, X: Rows, n_jobs: int | None) -> CrossGram:
        """New rows against the vertices."""
        if self.held is None:
            cross: CrossGram = StoredCross(X if self.kept is None else X[:, self.kept], n_jobs=n_jobs)
        else:
            cross = self.held.cross(X, n_jobs=n_jobs)
        return cross if self.shift is None else self.shift.cross(cross)

    def nearest(self, X: Rows, n_jobs: int | None) -> IntArray | None:
        """The vertex that is nearest to every row, by distance; None for a given matrix, which has none."""
        if self.held is None:
            return None
        rows = self.held.hold(X)
        return NeighborIndex(self.held.rows, search="exact", n_jobs=n_jobs).query(rows, 1)[1][:, 0]

    def with_likeness(
        self, labels: IntArray, seen: np.ndarray, X: Rows, table: IntArray, n_jobs: int | None
    ) -> IntArray:
        """Labels of new rows, where those that are like no vertex take the label of the nearest one."""
        unseen = np.flatnonzero(~seen)
        near = self.nearest(X[unseen], n_jobs) if len(unseen) else None
        if near is not None:
            labels[unseen] = table[near]
        return labels


def orders_asked(model: Any) -> tuple[float, ...]:
    """The order asked for, or those that "auto" tries in turn."""
    if not (isinstance(model.order, str) and model.order == "auto"):
        return (check_order(model.order),)
    return SYMMETRIC_ORDERS if getattr(model, "modelling", "biclique") == "symmetric" else ORDERS


def pool_kernel(model: Any, pool: Pool, random: np.random.RandomState) -> tuple[Kernel, float | None]:
    """The kernel and its γ, chosen from the distinct rows of a pool."""
    numbers = np.arange(len(pool.distinct))
    vertices = Vertices(pool.rows[pool.distinct], pool.distinct_weights, numbers, np.empty(0), numbers, False, None)
    kernel, gamma = choose_kernel(model, vertices, random)
    if kernel is None:
        raise ParameterError(f"rows and a kernel are needed here, not affinity={model.affinity!r}.")
    return kernel, gamma


def find_vertices(model: Any, X: Rows, weights: FloatArray) -> Vertices:
    """Distinct rows with multiplicities; for a given matrix the rows that count."""
    if model.affinity not in PRECOMPUTED:
        found = distinct_rows(X, weights)
        return Vertices(found.rows, found.weights, found.index, found.digests, found.numbers, False, None)
    if model.affinity == "precomputed_nearest_neighbors":
        if (weights == 0).any():
            raise DataError(
                "affinity='precomputed_nearest_neighbors' takes no sample_weight of 0, since rows without a say are "
                "in the others' lists: leave those rows and columns out of the graph."
            )
        everyone: IntArray = np.arange(X.shape[0])
        return Vertices(X, weights, everyone, np.empty(0), everyone, True, None)  # distances need not be symmetric
    limit = parse_memory_limit(model.memory_limit)
    require(given_bytes(X), limit, f"work on the given {X.shape[0]} × {X.shape[1]} matrix", GIVEN_WAY_OUT)
    K = checked_sparse(X) if sparse.issparse(X) else checked_matrix(np.asarray(X, dtype=float), limit)
    rows = distinct_given(X, weights)
    kept = rows.numbers if len(rows.numbers) < X.shape[0] else None
    if kept is not None:
        what = f"a copy of the {len(kept)} distinct rows and columns of the given matrix"
        copied = 0 if K is X else data_bytes(K)
        require(copied + data_bytes(K) * (len(kept) / len(weights)) ** 2, limit, what, "raise memory_limit.")
        K = K[kept][:, kept] if sparse.issparse(K) else K[np.ix_(kept, kept)]
    return Vertices(K, rows.weights, rows.index, rows.digests, rows.numbers, True, kept, rows.places)


def choose_kernel(model: Any, vertices: Vertices, random: np.random.RandomState) -> tuple[Kernel | None, float | None]:
    """The kernel with its γ chosen, and that γ; neither for a given matrix."""
    affinity = model.affinity
    if vertices.given:
        return None, None
    gamma: float | None = None
    if isinstance(affinity, str) and affinity in GAMMA_KERNELS:
        rule = model.gamma
        gamma = (
            bandwidth(rule, affinity, vertices.data, vertices.weights, random) if isinstance(rule, str) else float(rule)
        )
    kernel = make_kernel(
        affinity, gamma=gamma, degree=model.degree, coef0=model.coef0, kernel_params=model.kernel_params
    )
    if not isinstance(affinity, str):
        _check_own_kernel(kernel, vertices)
    else:
        kernel = kernel.precise(vertices.data)
    return kernel, gamma


def _check_own_kernel(kernel: Kernel, vertices: Vertices) -> None:
    """A user's kernel must be symmetric and return one finite number a pair: seen on a few rows."""
    rows = vertices.data[:32]
    # Two arrays: scikit-learn asks a function for half of the pairs only when it is given one twice.
    block = np.asarray(kernel.block(rows, rows.copy()), dtype=float)
    if block.shape != (rows.shape[0],) * 2 or not np.isfinite(block).all():
        raise DataError(
            f"affinity must give a finite number for every pair of rows, got {block.shape} for {len(rows)}."
        )
    gap = np.abs(block - block.T)
    if gap.max() > 1e-6 * np.abs(block).max():
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        a, b = vertices.numbers[i], vertices.numbers[j]
        raise DataError(
            f"affinity must be symmetric, but rows {a} and {b} give {block[i, j]:.3g} one way and {block[j, i]:.3g} "
            "the other: use (f(x, y) + f(y, x)) / 2."
        )


@dataclass(frozen=True)
class Plan:
    """How K will be held and solved, decided before any of it is allocated."""

    gram: str
    reason: str
    dtype: Any
    n_vectors: int
    memory_limit: int
    gram_bytes: int
    basis_blocks: int
    basis_bytes: int
    iterates: bool
    """Whether eigenvectors come from passes rather than from one full decomposition."""


def make_plan(model: Any, vertices: Vertices, kernel: Kernel | None, n_vectors: int) -> Plan:
    """Choose how K is held, and how long a basis fits beside it; refuse what does not fit at all."""
    limit = parse_memory_limit(model.memory_limit)
    n, columns = vertices.n, block_columns(n_vectors, vertices.n)
    by_name = getattr(model, "eigen_solver", None) in ("arpack", "lobpcg")
    iterates = n_vectors > 0 and (by_name or not solves_directly(n, n_vectors))
    shortest = 0
    if iterates:
        shortest = basis_bytes(n, n_vectors, FEWEST_BLOCKS)
    elif n_vectors > 0:
        shortest = direct_bytes(n)
    dtype: Any = np.dtype(np.float64)
    if kernel is None:
        gram = "sparse" if sparse.issparse(vertices.data) else "dense"
        size = given_bytes(vertices.data)
        reason = "the matrix is given"
    else:
        held = data_bytes(vertices.data)
        choice = choose_gram(model.gram, kernel, vertices.data, limit - held - shortest)
        gram, reason = choice.name, choice.reason
        size = held + dense_bytes(n)
        if gram != "dense":
            dtype = factored_precision(model.precision, gram, kernel, vertices.data)
        if gram == "tiled":
            size = held + tiled_bytes(n, vertices.data.shape[1], columns, dtype)
        elif gram in FACTORED:
            rank = RANKS[-1] if isinstance(model.rank, str) else model.rank
            size = held + factored_bytes(rank, n, columns)
    blocks = blocks_within(n, n_vectors, limit - size)
    basis = basis_bytes(n, n_vectors, blocks) if iterates else shortest
    if not (gram == "dense" and kernel is not None and size > limit):  # which says so itself, with the way out
        require(
            size + basis,
            limit,
            f"gram={gram!r} for {n} distinct rows and {n_vectors} eigenvectors",
            "raise memory_limit, ask for fewer clusters, or fit a sample of the rows and predict the rest.",
        )
    return Plan(gram, reason, dtype, n_vectors, limit, size, blocks, basis, iterates)


@dataclass(frozen=True)
class Prepared:
    """The Gram operator of the rows, ready to be cut at any order, and what was chosen on the way."""

    vertices: Vertices
    gamma: float | None
    random: np.random.RandomState
    base: GramOperator
    symmetric: bool
    probe: FloatArray | None
    """A start for the solver, multiplied in the pass that gives the degrees."""
    basis_blocks: int = BASIS_BLOCKS
    reason: str = ""
    """Why K is held so."""
    error: ApproximationError | None = None
    """Of an approximate K."""

    def cut(self, order: float) -> NormalizedCut:
        """The normalised cut: one pass over K, which multiplies the probe too."""
        vertices = self.vertices
        if not self.symmetric:
            return NormalizedCut(self.base, order, vertices.weights, self.probe, vertices.numbers)
        gram = SymmetricGram(self.base, int(order), vertices.weights)
        # The contraction already has the order in it: what is left is its ordinary normalised cut.
        cut = NormalizedCut(gram, 2, vertices.weights, self.probe, vertices.numbers)
        cut.n_passes += 1  # the one for the degrees of K
        return cut

    def training(self, cut: NormalizedCut) -> TrainingRows:
        """What a model keeps of its rows."""
        shift = cut.gram.shift if isinstance(cut.gram, SymmetricGram) else None
        held, digests = self.base.training(), self.vertices.digests
        if held is None and shift is not None:
            digests = digests[:0]  # no rows can be met again: κ(y, y) is not known
        return TrainingRows(digests, self.vertices.kept, held, shift, self.vertices.places)


@dataclass(frozen=True)
class Chosen:
    """Rows, kernel and plan: all that is decided before K is held."""

    vertices: Vertices
    kernel: Kernel | None
    gamma: float | None
    plan: Plan
    random: np.random.RandomState


def choose(model: Any, X: Rows, weights: FloatArray, n_vectors: int) -> Chosen:
    """Choose the kernel and how K is held; nothing is computed yet."""
    random = check_random(model.random_state)
    vertices = find_vertices(model, X, weights)
    if not vertices.given:
        check_rows_for_kernel(model.affinity, X)
        warn_about_spread(X, getattr(model, "feature_names_in_", None))
    kernel, gamma = choose_kernel(model, vertices, random)
    plan = make_plan(model, vertices, kernel, min(n_vectors, vertices.n - 1))
    return Chosen(vertices, kernel, gamma, plan, random)


def hold(model: Any, chosen: Chosen, order: float, progress: Progress) -> Prepared:
    """Hold K as planned; ``order`` is the first one that will be asked for."""
    vertices, kernel, plan, random = chosen.vertices, chosen.kernel, chosen.plan, chosen.random
    symmetric = getattr(model, "modelling", "biclique") == "symmetric"
    if symmetric and vertices.given and (vertices.index < 0).any():
        raise DataError(
            "modelling='symmetric' with affinity='precomputed' cannot label rows of weight 0, since κ(y, y) of "
            "rows outside the fit is not known: leave those rows and columns out of the matrix."
        )
    base, error = _hold(model, vertices, kernel, plan, order, random, progress)
    probe: FloatArray | None = None
    if plan.iterates:
        probe = random.standard_normal((vertices.n, block_columns(plan.n_vectors, vertices.n)))
        if kernel is not None and starts_from_few(plan, vertices.n):
            probe = _start(model, vertices, kernel, plan, order, probe, int(random.randint(2**31)))
    return Prepared(
        vertices, chosen.gamma, random, base, symmetric, probe, plan.basis_blocks, reason=plan.reason, error=error
    )


def starts_from_few(plan: Plan, n: int) -> bool:
    """Whether passes cost so much that a start from a few rows pays: K is computed anew in each."""
    return plan.gram == "tiled" and n >= START_FROM


def _start(
    model: Any, vertices: Vertices, kernel: Kernel, plan: Plan, order: float, probe: FloatArray, seed: int
) -> FloatArray:
    """The solver's start from a few of the rows; with another modelling it is as good a start."""
    some = draw_numbers(vertices.n, START_ROWS, np.random.RandomState(seed))
    facts: dict[str, Any] = {"dtype": plan.dtype, "n_jobs": model.n_jobs, "memory_limit": plan.memory_limit}
    few = make_gram("tiled", kernel, vertices.data[some], **facts)
    return start_from_few(probe, few, vertices.data, order, vertices.weights[some], seed, vertices.weights)


def _hold(
    model: Any,
    vertices: Vertices,
    kernel: Kernel | None,
    plan: Plan,
    order: float,
    random: np.random.RandomState,
    progress: Progress,
) -> tuple[GramOperator, ApproximationError | None]:
    tick = progress.tick if progress.enabled else None
    if kernel is None:
        stored = SparseGram if plan.gram == "sparse" else DenseGram
        return stored(vertices.data, n_jobs=model.n_jobs), None
    if plan.gram in FACTORED:
        check_rank(model.rank, vertices.n, what="distinct rows")
        chosen = draw_rows(vertices.n, pool_size(model.rank), random)
        pool = Pool(vertices.data[chosen], vertices.weights[chosen], np.arange(len(chosen)), vertices.weights[chosen])
        found = choose_map(
            model, plan.gram, kernel, pool, order=order, k=plan.n_vectors, dtype=plan.dtype, random=random
        )
        return FactoredGram(found.map, vertices.data, n_jobs=model.n_jobs, tick=tick), found.error
    gram = make_gram(
        plan.gram,
        kernel,
        vertices.data,
        dtype=plan.dtype,
        n_jobs=model.n_jobs,
        memory_limit=plan.memory_limit,
        tick=tick,
    )
    return gram, None
