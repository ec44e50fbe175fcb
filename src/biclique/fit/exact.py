"""The exact way: kernel → Gram operator → cut → eigenpairs → embedding → labels, on the host or on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError, DisconnectedWarning, RankWarning, warn_user
from biclique.fit.low_rank import check_rank, choose_map, pool_size
from biclique.fit.plan import FINE_TOLERANCE, QUICK_TOLERANCE, Plan, Planned, Result, choose_gram, make_gram
from biclique.fit.settings import FACTORED, Settings
from biclique.gram import (
    LINK,
    CrossGram,
    DenseGram,
    FactoredGram,
    GramOperator,
    GridError,
    MeasuredError,
    SparseGram,
    StoredCross,
    TorchGram,
    TrainedRows,
    dense_bytes,
    tiled_bytes,
)
from biclique.io import CHUNK_ROWS
from biclique.kernels import Kernel
from biclique.multiway import SymmetricGram
from biclique.neighbors.index import NeighborIndex
from biclique.progress import Progress
from biclique.rows.array import Pool, RowSource, Vertices, find_rows
from biclique.runtime import check_random, draw_by_permutation, draw_numbers
from biclique.runtime.namespace import moved, on_host, padded, to_host, unit_rows
from biclique.spectral import (
    ASKED,
    BASIS_BLOCKS,
    DEAR_PROPOSAL_ROWS,
    NULL_EIGENVALUE,
    PROPOSAL_ROWS,
    SEEN_TOLERANCE,
    TEST_STARTS,
    TRY_ALL,
    Assignment,
    Attempt,
    Dust,
    EigenResult,
    Extension,
    GiveUp,
    Joined,
    ManyOrders,
    MostSimilar,
    Nearness,
    NewRows,
    NormalizedCut,
    OrderRule,
    Parts,
    Progressing,
    Rule,
    Seen,
    assign_in_place,
    block_columns,
    block_width,
    columns_within,
    graph_eigenpairs,
    join_parts,
    least_order,
    near_rows,
    one_each,
    parted_eigenpairs,
    parts_cure,
    scipy_eigenpairs,
    shares_of_parts,
    start_from_few,
    top_eigenpairs,
    warn_about_clipped,
    warn_about_null_columns,
    warn_unless_converged,
)

MUCH_DUST = 0.1
"""From this share of the weight on, rows that are like hardly any other are hardly all outliers: a warning."""


MOST_SIFTINGS, SIFTING_PASSES = 10, 20
"""How often rows may be left out at order 2, and, of many rows, the passes for all that."""


LONE = 0.9
"""A row with more than this share of its degree from itself is like hardly any other."""


STORED_SAMPLE = 1_000
"""Up to so many rows of a sample, K is stored."""


PROPOSAL_TOLERANCE = 0.05
"""Of eigenpairs of the sample that proposes an order, as a share of the eigengap."""


@dataclass(frozen=True)
class SolverOptions:
    """How eigenpairs are found."""

    name: str | None = None
    tol: float = FINE_TOLERANCE
    graph_tol: float = QUICK_TOLERANCE
    """Of multigrid."""
    max_passes: int = 100
    give_up: GiveUp | None = None
    """Ends the search for eigenvectors that nobody will want."""
    floor: float = -np.inf
    """Eigenvalues below this need not be found."""

    @classmethod
    def of(cls, plan: Plan) -> SolverOptions:
        solving = plan.settings.solving
        tol = FINE_TOLERANCE if plan.tolerance is None else plan.tolerance
        graph_tol = QUICK_TOLERANCE if isinstance(solving.eigen_tol, str) else tol
        return cls(solving.eigen_solver, tol, graph_tol, solving.max_iter)

    @property
    def multigrid(self) -> bool:
        """Whether a graph is solved by multigrid."""
        return self.name in (None, "auto", "amg")


def solve_graph(
    cut: NormalizedCut, k: int, options: SolverOptions, random: np.random.RandomState, progress: Progress
) -> EigenResult:
    """The k leading eigenpairs of a connected graph, by multigrid."""
    return graph_eigenpairs(
        cut, k, tol=options.graph_tol, max_iter=options.max_passes, random_state=random, report=progress.passed
    )


def solve_cut(
    cut: NormalizedCut,
    k: int,
    options: SolverOptions,
    random: np.random.RandomState,
    progress: Progress,
    *,
    basis_blocks: int = BASIS_BLOCKS,
    keep_space: bool = False,
) -> EigenResult:
    """The k leading eigenpairs of B, by the solver that was asked for."""
    noise = cut.gram.noise
    if k < 1:
        return EigenResult.none(cut.trivial)
    if options.name in ("arpack", "lobpcg"):
        return scipy_eigenpairs(
            cut,
            k,
            options.name,
            tol=options.tol,
            max_iter=options.max_passes,
            start=cut.take_start()[0],
            deflate=cut.trivial,
            random_state=random,
            noise=noise,
        )
    return top_eigenpairs(
        cut,
        k,
        tol=options.tol,
        max_iter=options.max_passes,
        noise=noise,
        take_start=cut.take_start,
        deflate=cut.trivial,
        basis_blocks=basis_blocks,
        random_state=random,
        report=progress.passed,
        keep_space=keep_space,
        give_up=options.give_up,
        floor=options.floor,
        n_jobs=cut.gram.n_jobs,
    )


@dataclass(frozen=True)
class Prepared:
    """The Gram operator of the rows, ready to be cut at any order."""

    vertices: Vertices
    base: GramOperator
    random: np.random.RandomState
    symmetric: bool = False
    probe: FloatArray | None = None
    """A start for the solver, multiplied in the pass that gives the degrees."""
    basis_blocks: int = BASIS_BLOCKS
    error: MeasuredError | None = None
    """Of an approximate K."""
    nearness: Callable[[], Nearness] | None = None
    """How near parts are to each other, if neither rows nor similarities can tell."""
    kernel: Kernel | None = None
    spare: float = np.inf
    """Bytes of the memory limit that the plan does not need."""

    def cut(self, order: float) -> NormalizedCut:
        """The normalised cut: one pass over K, which multiplies the probe too."""
        vertices, probe = self.vertices, self.probe
        if not self.symmetric:
            if self.base.nonnegative:  # degrees that are positive are so at every order: this is the only cut
                object.__setattr__(self, "probe", None)
            return NormalizedCut(self.base, order, vertices.weights, probe, vertices.numbers)
        gram = SymmetricGram(self.base, int(order), vertices.weights)
        # The contraction already has the order in it: what is left is its ordinary normalised cut.
        cut = NormalizedCut(gram, 2, vertices.weights, probe, vertices.numbers)
        cut.n_passes += 1  # the one for the degrees of K
        return cut

    @property
    def may_leave_out(self) -> bool:
        """Whether a few rows can be left out: they are met again as new rows are."""
        known = self.kernel is not None or self.vertices.given
        possible = self.base.chooses_rows and on_host(self.base.like) and not self.symmetric and self.nearness is None
        needed = self.base.bytes_for(self.vertices.n, self.vertices.data.shape[1], 0, self.base.dtype)
        return known and possible and needed <= self.spare

    def without(self, left_out: IntArray, probe: FloatArray | None) -> Prepared:
        """The same for all rows but a few; ``probe`` is a start for the others."""
        vertices = self.vertices.without(left_out)
        if vertices.given:
            base = given_gram(vertices.data, self.base.n_jobs)
        else:
            base = self.base.restricted(np.delete(np.arange(self.vertices.n), left_out))
        return replace(self, vertices=vertices, base=base, probe=probe)

    @property
    def near(self) -> Nearness:
        """How near rows are to each other."""
        vertices = self.vertices
        if self.nearness is not None:
            return self.nearness()
        return MostSimilar(vertices.data, vertices.weights) if vertices.given else near_rows(vertices.data, self.kernel)


def hold_or_change(
    plan: Plan, vertices: Vertices, random: np.random.RandomState, progress: Progress
) -> tuple[Plan, Prepared]:
    """Hold K as planned, or, if "auto" planned a grid that does not hold all rows, in another way."""
    try:
        return plan, hold(plan, vertices, random, progress)
    except GridError as error:
        if plan.settings.holding.gram != "auto" or plan.kernel is None:
            raise
        choice = choose_gram("auto", plan.kernel, vertices.n, vertices.data, plan.memory_limit, grids=False)
        rank = plan.settings.holding.rank if choice.name in FACTORED else None
        plan = replace(plan, gram=choice.name, gram_reason=choice.reason, rank=rank)
        plan = plan.changed(f"gram={choice.name!r} instead of 'fourier': {error}")
        return plan, hold(plan, vertices, random, progress)


def hold(plan: Plan, vertices: Vertices, random: np.random.RandomState, progress: Progress) -> Prepared:
    """Hold K as planned; the first of the plan's orders is the first one that will be asked for."""
    symmetric = plan.settings.cut.symmetric
    if symmetric and vertices.given and (vertices.index < 0).any():
        raise DataError(
            "modelling='symmetric' with affinity='precomputed' cannot label rows of weight 0, since κ(y, y) of "
            "rows outside the fit is not known: leave those rows and columns out of the matrix."
        )
    base, error = _hold(plan, vertices, random, progress)
    probe: FloatArray | None = None
    if plan.iterates:
        probe = random.standard_normal((vertices.n, block_columns(plan.n_vectors, vertices.n)))
        if plan.kernel is not None and plan.start_rows:
            seed = int(random.randint(2**31))
            some = draw_numbers(vertices.n, plan.start_rows, np.random.RandomState(seed))
            few = make_gram(
                plan.gram,
                plan.kernel,
                vertices.data[some],
                dtype=plan.dtype,
                n_jobs=plan.settings.n_jobs,
                memory_limit=plan.memory_limit,
            )
            weights = vertices.weights
            probe = start_from_few(probe, few, vertices.data, plan.orders[0], weights[some], seed, weights)
    spare = plan.memory_limit - plan.bytes
    return Prepared(vertices, base, random, symmetric, probe, plan.basis_blocks, error, kernel=plan.kernel, spare=spare)


def given_gram(K: Rows, n_jobs: int | None) -> GramOperator:
    """K that was given, dense or sparse."""
    return SparseGram(K, n_jobs=n_jobs) if sparse.issparse(K) else DenseGram(K, n_jobs=n_jobs)


def _hold(
    plan: Plan, vertices: Vertices, random: np.random.RandomState, progress: Progress
) -> tuple[GramOperator, MeasuredError | None]:
    tick = progress.tick if progress.enabled else None
    n_jobs = plan.settings.n_jobs
    if plan.kernel is None:
        return given_gram(vertices.data, n_jobs), None
    if plan.rank is not None:
        check_rank(plan.settings.holding.rank, vertices.n, what="distinct rows")
        found = choose_map(plan, _pool(plan, vertices, random), random)
        return FactoredGram(found.map, vertices.data, n_jobs=n_jobs, tick=tick), found.error
    gram = make_gram(
        plan.gram,
        plan.kernel,
        vertices.data,
        dtype=plan.dtype,
        n_jobs=n_jobs,
        memory_limit=plan.memory_limit,
        tick=tick,
    )
    gram.weigh(vertices.weights)
    return gram, gram.error


def _pool(plan: Plan, vertices: Vertices, random: np.random.RandomState) -> Pool:
    """Distinct rows from which a feature map is chosen."""
    chosen = draw_by_permutation(vertices.n, pool_size(plan.settings.holding.rank), random)
    weights = vertices.weights[chosen]
    return Pool(vertices.data[chosen], weights, np.arange(len(chosen)), weights)


def _hold_on_device(
    plan: Plan, source: RowSource, weights: FloatArray, random: np.random.RandomState, progress: Progress
) -> Prepared:
    """K of all rows on a device; equal rows are not made one."""
    if plan.kernel is None:
        raise TypeError("a device computes a kernel")
    X, owned = source.placed()
    n = plan.rows
    facts: dict[str, Any] = {"device": plan.device, "precision": plan.precision}
    tick = progress.tick if progress.enabled else None
    gram = TorchGram(plan.kernel, X, tick=tick, owned=owned, **facts)
    probe = None
    if plan.iterates:
        seed = int(random.randint(2**31))
        probe = gram.normal((n, plan.block), seed)
        if plan.start_rows:
            some = draw_numbers(n, plan.start_rows, np.random.RandomState(seed))
            few = TorchGram(plan.kernel, X[moved(some, X)], **facts)
            probe = start_from_few(probe, few, X, plan.orders[0], weights[some], seed, weights)
    # The operator holds what it needs of the rows.
    everyone: IntArray = np.arange(n)
    vertices = Vertices(np.empty((0, X.shape[1])), weights, everyone, np.empty(0), everyone)
    return Prepared(vertices, gram, random, probe=probe)


@dataclass(frozen=True)
class Solved:
    """A cut with its eigenpairs and the embedding made of them."""

    cut: NormalizedCut
    pairs: EigenResult
    extension: Extension
    rows: FloatArray  # (n, n_columns), the trivial column first
    eigenvalues: FloatArray  # (n_columns − 1,)
    residuals: FloatArray
    parts: Parts | None = None
    """The parts of K, if it has any: no cluster may span two of them."""
    joined: Joined | None = None
    tested: Assignment | None = None
    """The clusters by which the order was tested."""
    left_early: bool = False
    """Whether eigenpairs are unfinished because the order was seen not to do."""
    clipped: int = 0
    """Eigenvalues that were negative and are taken as 0: columns of zeros."""
    lowest: float = 0.0
    """The lowest of these, as a share of the largest."""


@dataclass(frozen=True)
class ExactFit:
    """An exact fit at the order that was asked for, or found."""

    plan: Plan
    prepared: Prepared
    solved: Solved
    dust: float = 0.0
    """The share of the weight in parts of K that are too small for a cluster."""
    left_out: IntArray | None = None
    """Rows that count and were left out, if any were."""

    def warn(self, n_clusters: int) -> None:
        """Say what is wrong with the parts and the eigenpairs."""
        gamma, given = self.plan.gamma, self.prepared.vertices.given
        n_columns, n = self.plan.settings.n_columns, self.plan.rows
        if self.dust >= MUCH_DUST and n_clusters > 1:
            at = "" if gamma is None else f" at gamma={gamma:.3g}"
            cure = "" if given else ", use affinity='nearest_neighbors' or a lower gamma"
            warn_user(
                f"{self.dust:.0%} of the rows are like hardly any other row{at}, and form no clusters of their own: if "
                f"they are clusters of lower density{cure or ', make their similarities larger'}.",
                DisconnectedWarning,
            )
        if self.solved.joined is not None:
            what = "the matrix" if given else "the kernel"
            cure = "If the wrong ones are, ask for more clusters." if given else parts_cure(gamma)
            self.solved.joined.warn(
                min(n_clusters, n_columns),
                f"{what} falls into {{n}} disconnected parts ({{shown}} of {n} distinct rows)",
                cure,
            )
        pairs, informative = self.solved.pairs, self.solved.extension.informative
        warn_unless_converged(pairs)
        negative = int((pairs.values[informative] < 0).sum())
        if negative:
            warn_user(
                f"{negative} of {len(pairs.values)} eigenvalues are negative (lowest {pairs.values.min():.2g}): the "
                "kernel's contraction is indefinite, and those columns set apart what is similar; ask for fewer "
                "clusters, or use another affinity or order.",
                RankWarning,
            )
        warn_about_clipped(self.solved.clipped, len(pairs.values), self.solved.lowest, "the cut")
        if n >= (self.plan.settings.assigning.n_clusters or 0):  # with fewer rows enough is said
            warn_about_null_columns(informative, n_columns)


def solve_exact(planned: Planned, source: RowSource, random: np.random.RandomState, progress: Progress) -> ExactFit:
    """Solve the cut as planned, at the order that is asked for or that the data ask for."""
    plan, settings = planned.plan, planned.plan.settings
    weights = source.weights if planned.vertices is None else planned.vertices.weights
    if weights is None:
        weights = np.ones(plan.rows)
    rule = replace(OrderRule.of(weights, settings.n_groups, plan.orders), orders=plan.orders)
    some = planned.vertices if planned.pool is None else planned.pool.vertices
    if len(rule.orders) > 1 and plan.rows > TRY_ALL and plan.kernel is not None and some is not None:
        rule = proposed(settings, plan.kernel, some, rule, plan.dtype, random)
        plan = replace(plan, orders=rule.orders)
    if planned.vertices is None:
        prepared = _hold_on_device(plan, source, weights, random, progress)
    else:
        plan, prepared = hold_or_change(plan, planned.vertices, random, progress)
        if source.spread is not None:
            prepared = replace(prepared, base=prepared.base.spread_over(source.spread))
    search = ExactSearch(settings, prepared, rule, SolverOptions.of(plan), progress)
    found, reason = search.run(asked=not settings.cut.auto)
    base = prepared.base
    decided: dict[str, Any] = {"order": found.order, "order_reason": reason, "error": prepared.error}
    if plan.rank is not None:
        decided["rank"] = base.rank
    if plan.device is not None:
        decided |= {"gram_reason": f"{plan.gram_reason} by {base.engine}", "gram": base.name}
        decided["precision"] = plan.precision if plan.precision == "fast" else str(base.dtype)
    final = replace(plan, **decided)
    if settings.cut.auto and found.order != plan.orders[0]:
        final = final.changed(f"order {found.order:g} instead of {plan.orders[0]:g}: {reason}")
    if found.note:
        final = final.changed(found.note)
    left_out: IntArray | None = None
    if found.note and planned.vertices is not None:
        left_out = np.flatnonzero((planned.vertices.index >= 0) & (search.prepared.vertices.index < 0))
    return ExactFit(final, search.prepared, found.result, search.dust, left_out)


def proposed(
    settings: Settings,
    kernel: Kernel,
    vertices: Vertices,
    rule: OrderRule,
    dtype: np.dtype[Any],
    random: np.random.RandomState,
) -> OrderRule:
    """The rule from the order on that a sample of the distinct rows ends at, scaled to all of them."""
    seed = int(deepcopy(random).randint(2**31))  # what is drawn after must be what a given order draws
    size = PROPOSAL_ROWS if kernel.cheap else DEAR_PROPOSAL_ROWS
    search = search_some(settings, kernel, vertices, rule, dtype, seed, size, PROPOSAL_TOLERANCE)
    found, reason = search.run(asked=False)
    n_few = search.prepared.vertices.n
    told = () if found.order == rule.orders[0] else (f"a sample of {n_few} rows proposes {found.order:g} ({reason})",)
    return replace(rule, orders=rule.scaled(found.order, n_few / rule.effective_rows), told=told)


def search_some(
    settings: Settings,
    kernel: Kernel,
    vertices: Vertices,
    rule: OrderRule,
    dtype: np.dtype[Any],
    seed: int,
    size: int,
    tol: float | None,
) -> ExactSearch:
    """The search among ``size`` of the distinct rows; without a tolerance, that of a fit."""
    few = vertices.some(draw_numbers(vertices.n, size, np.random.RandomState(seed)))
    held = "tiled" if kernel.cheap and few.n > STORED_SAMPLE else "dense"
    # Small enough to be made whatever the memory limit: all rows were allowed.
    limit = 2 * dense_bytes(size) + tiled_bytes(size, few.data.shape[1], size, np.float64)
    gram = make_gram(held, kernel, few.data, dtype=dtype, n_jobs=settings.n_jobs, memory_limit=limit)
    n_vectors = min(settings.n_columns, few.n) - 1
    prepared = Prepared(
        few,
        gram,
        np.random.RandomState(seed),
        settings.cut.symmetric,
        np.random.RandomState(seed).standard_normal((few.n, block_columns(n_vectors, few.n))),
        kernel=kernel,
    )
    # What a cluster must hold is a share of all rows: a sample is to tell what these will do.
    of_sample = replace(OrderRule.of(few.weights, rule.n_clusters, rule.orders), least=rule.least)
    tolerance = FINE_TOLERANCE if gram.passes_are_cheap else QUICK_TOLERANCE
    options = SolverOptions(tol=tolerance if tol is None else tol)
    return ExactSearch(settings, prepared, of_sample, options, Progress(False))


class ExactSearch:
    """Fits of one K at one order after the other."""

    def __init__(
        self,
        settings: Settings,
        prepared: Prepared,
        rule: OrderRule,
        options: SolverOptions,
        progress: Progress,
        seed: int | None = None,
    ) -> None:
        self.settings, self.rule = settings, rule
        self.n_columns, self.options, self.progress = settings.n_columns, options, progress
        self._iterates = prepared.probe is not None
        self._hold(prepared)
        draws = seed is None and on_host(prepared.base.like)
        self.seed = int(prepared.random.randint(2**31)) if draws else seed or 0
        self.n_tests = 0

    def _hold(self, prepared: Prepared) -> None:
        self.prepared, self.n = prepared, prepared.base.n
        self.n_vectors = min(self.n_columns, self.n) - 1
        self._found: IntArray | None = None

    def run(self, *, asked: bool) -> tuple[Attempt[Solved], str]:
        """The fit at the order asked for, or at the least one that passes."""
        if not asked:
            found, reason = least_order(self.rule, self.attempt)
            object.__setattr__(found.result.pairs, "space", None)  # no other order starts from it
            if found.result.left_early:  # the best of those that do not do
                cut = found.result.cut.at_order(found.result.cut.order)
                solved = self._tested(self._solve(cut, found.order, self.options))
                found = replace(found, result=solved)
            return found, reason
        order = self.rule.orders[0]
        solved = self._solve(self._cut(order, None), order, self.options)
        return Attempt(order, 0.0, solved), "as asked for"

    def at(self, order: float, last: Attempt[Solved] | None, columns: int = 0) -> Attempt[Solved]:
        """A fit at an order, in full, from what the one before it found: so many vectors of that, or a block."""
        return Attempt(order, 0.0, self._solve(self._cut(order, last, columns), order, self.options))

    def attempt(self, order: float, last: Attempt[Solved] | None) -> Attempt[Solved]:
        """A fit at one order. It stops early if its clusters are dust, as for most orders that are tried.

        At order 2, a few rows of dust may also be left out.
        """
        return self._sifted(*self._try(order, last))

    def _sifted(self, first: Attempt[Solved], dust: IntArray) -> Attempt[Solved]:
        """An attempt, or, at order 2, that of the rows that are left when its dust is left out.

        That is done a few times, while all the dust is less than a cluster. If there is dust still, all rows are back.
        """
        many = self.n > PROPOSAL_ROWS  # whose passes are dear: no more is begun than can succeed
        if first.order != 2 or not self.prepared.may_leave_out or (many and self._lone(first) > 2 * self.rule.least):
            return first
        found, prepared = first, self.prepared
        passes = SIFTING_PASSES if many else MOST_SIFTINGS * self.options.max_passes
        left_out: IntArray = np.empty(0, dtype=np.intp)
        stays: IntArray = np.arange(self.n)
        for _ in range(MOST_SIFTINGS):
            left_out = np.append(left_out, stays[dust])
            share = float(prepared.vertices.weights[left_out].sum()) / self.rule.total
            if not len(dust) or share > self.rule.least or passes <= 0:
                break
            probe, stays = self._start(found.result, dust), np.delete(stays, dust)
            self._hold(prepared)  # what was left of it is let go before less is made
            self._hold(prepared.without(left_out, probe))
            found, dust = self._try(first.order, None, passes)
            passes -= found.result.cut.n_passes
            few = f"{share * self.rule.total:.4g} of {self.rule.total:.6g} rows, like hardly any other, left out"
            sifted = replace(found, note=few, smallest=found.smallest * (1 - share))
            if self.rule.passes(sifted) and (found.result.pairs.converged or not many):
                return sifted
        if self.prepared is not prepared:
            self._hold(prepared)
        return first

    def _lone(self, attempt: Attempt[Solved]) -> float:
        """The share of the weight of rows whose degree is nearly all their own."""
        cut = attempt.result.cut
        return float(cut.weights[cut.own_values > LONE].sum() / cut.weights.sum())

    def _start(self, solved: Solved, left_out: IntArray) -> FloatArray | None:
        """What the search without some rows starts from: the vectors that were found, and some at random."""
        if not self._iterates:
            return None
        vectors, cut = solved.pairs.vectors, solved.cut
        known = vectors / np.sqrt(cut.weights * cut.shrunken)[:, None]
        more = max(self._block - vectors.shape[1], 0)
        scale = float(np.abs(known).mean()) if known.size else 1.0
        others = np.random.RandomState(self.seed).standard_normal((self.n, more)) * scale
        return np.delete(np.column_stack([known, others]), left_out, axis=0)

    def _try(
        self, order: float, last: Attempt[Solved] | None, most: int | None = None
    ) -> tuple[Attempt[Solved], IntArray]:
        """A fit at one order, stopped early if its clusters are dust, and the rows of that dust."""
        cut = self._cut(order, last)
        watch = _Watch(self, cut, whole=on_host(cut.like))
        most = self.options.max_passes if most is None else min(most, self.options.max_passes)
        solved = self._solve(cut, order, replace(self.options, give_up=watch, max_passes=most))
        if watch.refused or watch.smallest < self.rule.least:
            left = replace(solved, left_early=True)
            return Attempt(order, watch.smallest, left, watch.refused), watch.dust
        found = self._attempt(order, self._tested(solved))
        if found.result.tested is None or self.rule.passes(found):
            return found, np.empty(0, dtype=np.intp)
        return found, self.rule.in_dust(found.result.tested.labels, self.prepared.vertices.weights)

    def _attempt(self, order: float, solved: Solved) -> Attempt[Solved]:
        labels = np.zeros(1, dtype=np.intp) if solved.tested is None else solved.tested.labels
        weights = np.ones(1) if solved.tested is None else self.prepared.vertices.weights
        return Attempt(order, self.rule.smallest(labels, weights), solved)

    def _tested(self, solved: Solved) -> Solved:
        """With the clusters by which an order is tested."""
        if self.n <= self.rule.n_clusters:
            return solved
        return replace(solved, tested=self.test(solved.rows, solved.parts))

    def test(self, rows: FloatArray, parts: Parts | None = None) -> Assignment:
        """The clusters by which an order is tested: unit rows, ten starts."""
        self.n_tests += 1
        return assign_in_place(
            "kmeans",
            unit_rows(rows),
            self.prepared.vertices.weights,
            self.rule.n_clusters,
            n_init=TEST_STARTS,
            random_state=check_random(deepcopy(self.settings.random_state)),
            parts=parts,
        )

    @property
    def _block(self) -> int:
        return block_columns(self.n_vectors, self.n)

    def _cut(self, order: float, last: Attempt[Solved] | None, columns: int = 0) -> NormalizedCut:
        if last is None or self.prepared.symmetric:
            return self.prepared.cut(order)
        before = last.result
        cut = before.cut.at_order(order, before.pairs.space, max(columns, self._block))
        # The basis is large, and has done its work.
        object.__setattr__(before.pairs, "space", None)
        return cut

    def together(self, orders: Sequence[float], budget: int) -> dict[float, Solved]:
        """Fits at several orders, in full and in one space of vectors that takes at most so many bytes.

        Where there is no such space, every order starts from the one before.
        """
        ahead = sorted(dict.fromkeys(orders), key=lambda order: order != 2)  # which may fall into parts
        last = self.at(ahead[0], None)
        found = {ahead[0]: last.result}
        space, columns = last.result.pairs.space, columns_within(self.n, self.n_vectors, budget)
        if space is not None and columns and not self.prepared.symmetric:
            first, options = last.result.cut, self.options
            cuts = [first.at_order(order) for order in ahead[1:]]
            solver = ManyOrders(first, space, cuts, self.n_vectors, columns)
            if solver.knows_enough:
                object.__setattr__(last.result.pairs, "space", None)  # large, and has done its work
                pairs = solver.solve(options.tol, first.gram.noise, options.max_passes, self.progress.passed)
                return found | {cut.order: self._embedded(cut, own) for cut, own in zip(cuts, pairs, strict=True)}
        for order in ahead[1:]:
            last = self.at(order, last, block_width(self.n_vectors))
            found[order] = last.result
        return found

    def _solve(self, cut: NormalizedCut, order: float, options: SolverOptions) -> Solved:
        if order == 2 and self.n_vectors > 0 and not self.prepared.symmetric and self._parts(cut).max() > 0:
            return self._embedded(cut, *self._solve_parts(cut, options))
        return self._embedded(cut, self._solve_connected(cut, self.n_vectors, options, self.prepared.random))

    def _embedded(
        self, cut: NormalizedCut, pairs: EigenResult, parts: Parts | None = None, joined: Joined | None = None
    ) -> Solved:
        """The embedding that eigenpairs give."""
        clipped, lowest = 0, 0.0
        if self.settings.kernel.takes_gaps and not self.prepared.symmetric:  # gaps can make K indefinite
            clipped = int((pairs.values < -NULL_EIGENVALUE * cut.gram.noise).sum())
            lowest = float(pairs.values.min(initial=0.0))  # the largest is the trivial one, 1
            pairs = replace(pairs, values=np.maximum(pairs.values, 0.0))
        extension, rows = Extension.fit(cut, pairs, cut.gram.noise)
        values, residuals = pairs.values, pairs.residuals
        if joined is not None:  # parts that joined others have no column, but an eigenvalue of 1 each
            others = int(self._parts(cut).max()) + 1 - joined.n_parts
            values, residuals = (np.append(x, np.full(others, own)) for x, own in ((values, 1.0), (residuals, 0.0)))
            ranked = np.argsort(-values, kind="stable")[: len(pairs.values)]
            values, residuals = values[ranked], residuals[ranked]
        n_columns = self.n_columns
        embedded = padded(rows, n_columns), padded(values, n_columns - 1), padded(residuals, n_columns - 1)
        return Solved(cut, pairs, extension, *embedded, parts, joined, clipped=clipped, lowest=lowest)

    def _parts(self, cut: NormalizedCut) -> IntArray:
        """The parts that K falls into, searched for once."""
        if self._found is None:
            random = np.random.RandomState(self.seed)
            self._found = self.prepared.base.parts(cut.degrees, cut.weights, random, columns=self._block)
            if self.prepared.base.error is not None:  # products that are not exact miss faint links
                self._found = self._linked(self._found)
        return self._found

    def _linked(self, parts: IntArray) -> IntArray:
        """Small parts that are linked to another become one with it, as where K is stored."""
        kernel, n_columns = self.prepared.kernel, self.prepared.vertices.data.shape[1]
        if kernel is None or not kernel.euclidean or parts.max() == 0:
            return parts
        near = self.prepared.near
        while True:
            sizes = np.bincount(parts)
            asked = np.flatnonzero((sizes <= ASKED) & (np.arange(len(sizes)) != sizes.argmax()))
            if not len(asked):
                return parts
            gaps, targets = near.nearest_parts(parts, asked)
            apart = np.zeros((len(gaps), n_columns))
            apart[:, 0] = gaps
            close = kernel.block(apart, np.zeros((1, n_columns)))[:, 0] > LINK * kernel.diagonal(apart)
            if not close.any():
                return parts
            links = sparse.coo_array((np.ones(int(close.sum())), (asked[close], targets[close])), (len(sizes),) * 2)
            parts = np.asarray(sparse.csgraph.connected_components(links, directed=False)[1], dtype=np.intp)[parts]

    @property
    def dust(self) -> float:
        """The share of the weight in parts that are too small for a cluster, if parts were searched for."""
        if self._found is None or self._found.max() == 0:
            return 0.0
        weights = self.prepared.vertices.weights
        shares = np.bincount(self._found, weights) / weights.sum()
        return float(shares[shares < self.rule.least].sum())

    def _solve_connected(
        self, cut: NormalizedCut, k: int, options: SolverOptions, random: np.random.RandomState
    ) -> EigenResult:
        """The eigenpairs of the whole cut, or of that of a part."""
        whole = cut.gram is self.prepared.base
        if k > 0 and cut.gram.is_graph and options.multigrid and not (whole and self._parts(cut).max() > 0):
            return solve_graph(cut, k, options, random, self.progress)
        blocks = self.prepared.basis_blocks
        if not whole and not self.prepared.symmetric:  # a part may have as much memory as the whole
            blocks = min(blocks * self.n // max(cut.shape[0], 1), BASIS_BLOCKS)
        keep = len(self.rule.orders) > 1  # another order may start from what this one found
        return solve_cut(cut, k, options, random, self.progress, basis_blocks=blocks, keep_space=keep)

    def _solve_parts(self, cut: NormalizedCut, options: SolverOptions) -> tuple[EigenResult, Parts | None, Joined]:
        """The eigenpairs of parts, and which rows belong to which; see ``spectral/joining.py``."""
        k, near = self.rule.n_clusters, self.prepared.near
        joined = join_parts(self._parts(cut), self.prepared.vertices.weights, k, min(k, self.n_columns), near)

        def solve(members: IntArray, wanted: int, floor: float) -> EigenResult:
            random = np.random.RandomState(self.seed)
            own = cut.restricted(self.prepared.base.restricted(members), members)
            if members is cores[-1]:
                cut.take_start()  # of which nothing is needed any more
            watch = options.give_up
            watch = watch.inside(own, members) if isinstance(watch, _Watch) else None
            inside = replace(options, give_up=watch, floor=floor)
            return self._solve_connected(own, wanted, inside, random)

        none = np.empty(0, dtype=np.intp)
        cores = [joined.core(part) if joined.whole[part] else none for part in range(joined.n_parts)]
        found = parted_eigenpairs(cut, joined.part_of, cores, self.n_vectors, solve)
        if self.n_columns < k:
            return found.pairs, None, joined  # too few columns to tell what each part's clusters are
        shares = shares_of_parts(found.values_of_parts, k)
        return found.pairs, Parts(joined.part_of, tuple(shares), joined.like(near)), joined


class _Watch:
    """Looks at eigenvectors while they are being found, and stops the search if they live on dust."""

    def __init__(self, search: ExactSearch, cut: NormalizedCut, *, whole: bool = True) -> None:
        self.search, self.whole = search, whole
        self.refused = ""
        self.smallest = np.inf
        self.dust: IntArray = np.empty(0, dtype=np.intp)
        """The rows of dust, once they were seen."""
        self._cut, self._dust = cut, Dust(search.rule, cut, float(search.prepared.vertices.weights.sum()))
        self._tested = False
        self._owner: _Watch = self
        self._members: IntArray = np.arange(cut.shape[0])

    def inside(self, cut: NormalizedCut, members: IntArray) -> _Watch:
        """The same for the cut of a part, whose clusters say nothing by themselves."""
        other = _Watch(self.search, cut, whole=False)
        other._owner, other._members = self, members
        return other

    def __call__(self, now: Progressing, vectors: Callable[[], FloatArray]) -> bool:
        self._owner.refused = self._dust(now, vectors)
        if self._owner.refused:
            self._owner.smallest = 0.0
            self._owner.dust = self._members[self._dust.rows]
            return True
        rule, cut, weights = self.search.rule, self._cut, self.search.prepared.vertices.weights
        if self.whole and now.share <= SEEN_TOLERANCE and not self._tested:
            self._tested = True
            rows = np.column_stack([cut.trivial, vectors()]) / np.sqrt(cut.weights)[:, None]
            labels = self.search.test(rows).labels
            smallest = rule.smallest(labels, weights)
            self.smallest = smallest if smallest < rule.least else np.inf
            self.dust = rule.in_dust(labels, weights)
        return self.smallest < rule.least


@dataclass
class ExactFitted:
    """Training rows as new ones meet them, the closed form of the embedding, and the rule for labels."""

    plan: Plan
    eigenvalues: FloatArray
    residuals: FloatArray
    n_passes: int
    extension: Extension
    rows: FloatArray  # (n_vertices, n_columns), the embedding; () where no row can be met again
    digests: np.ndarray  # of the vertices, ascending
    places: IntArray | None  # for a given matrix: the vertex of each digest
    kept: IntArray | None  # for a given matrix: the columns of vertices, where not all are
    trained: TrainedRows | None
    live: GramOperator | None = None
    """On a device: the operator, which a copy that was pickled goes on without, on the host."""
    table: IntArray | None = None  # (n_vertices,), labels
    rule: Rule | None = None
    takes_chunks: bool = False
    seen: Seen | None = None
    """Rows for probabilities."""

    @classmethod
    def of(cls, fit: ExactFit, assignment: Assignment | None = None) -> ExactFitted:
        """What is kept of a fit."""
        solved, vertices = fit.solved, fit.prepared.vertices
        gram, digests = solved.cut.gram, vertices.digests
        trained = gram.training()
        if trained is None and fit.prepared.symmetric:
            digests = digests[:0]  # no rows can be met again: κ(y, y) is not known
        return cls(
            plan=fit.plan,
            eigenvalues=solved.eigenvalues,
            residuals=solved.residuals,
            n_passes=solved.cut.n_passes,
            extension=solved.extension,
            rows=to_host(solved.rows if len(digests) or trained is None else solved.rows[:0]),
            digests=digests,
            places=vertices.places,
            kept=vertices.kept,
            trained=trained,
            live=None if on_host(gram.like) else gram,
            table=None if assignment is None else assignment.labels,
            rule=None if assignment is None else assignment.rule,
            seen=None
            if assignment is None
            else Seen.of(solved.rows, assignment.labels, vertices.weights, solved.eigenvalues),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "extension": self.extension.to_host(), "live": None}

    @property
    def keeps_tensors(self) -> bool:
        return self.live is not None

    def match(self, X: Rows) -> Rows:
        """New rows in the form in which the training rows came, dense or sparse."""
        if self.trained is None or sparse.issparse(X) == sparse.issparse(self.trained.rows):
            return X
        return X.toarray() if sparse.issparse(X) else sparse.csr_array(X)

    def find(self, X: Rows) -> IntArray:
        """Which vertex every row is, −1 for none; in a given matrix, by its similarities to all rows."""
        found = find_rows(self.digests, X)
        return found if self.places is None else np.where(found < 0, -1, self.places[found])

    def for_rows(self) -> ExactFitted:
        return self

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        X = self.match(X)
        return self.embed_vertices(X, self.find(X), n_jobs)

    def embed_vertices(self, X: Rows, place: IntArray, n_jobs: int | None) -> FloatArray:
        """The embedding of rows that are vertices ``place``, −1 for new rows; a vertex gets its own row."""
        return known_or_new(self.rows, place, X, lambda new: self.extend(new, n_jobs))

    def extend(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of new rows, by the closed form."""
        n_columns = len(self.eigenvalues) + 1
        found = [to_host(self.extension.embed(self.cross(rows, n_jobs))) for rows in _chunks(X, self.live is None)]
        return padded(np.concatenate(found), n_columns) if found else np.empty((0, n_columns))

    def degrees(self, embedded: FloatArray) -> FloatArray:
        return self.extension.degrees(embedded[:, 0])

    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:
        X = self.match(X)
        return self.labels_of_vertices(X, self.find(X), n_jobs)

    def labels_of_vertices(self, X: Rows, place: IntArray, n_jobs: int | None) -> IntArray:
        """The labels of rows that are vertices ``place``, −1 for new rows."""
        if self.table is None:
            raise ValueError("no labels have been assigned")
        return known_or_new(self.table, place, X, lambda new: self._new_labels(new, n_jobs))

    def _new_labels(self, X: Rows, n_jobs: int | None) -> IntArray:
        if self.rule is None or self.table is None:
            raise ValueError("no labels have been assigned")
        out = [np.empty(0, dtype=np.intp)]
        for rows in _chunks(X, self.live is None):
            labels, seen = self.rule.of_new(self._new_rows(rows, n_jobs))
            labels = to_host(labels)
            unseen = np.flatnonzero(~seen)
            near = self._nearest(rows, unseen, n_jobs) if len(unseen) else None
            if near is not None:
                labels[unseen] = self.table[near]
            out.append(labels)
        return np.concatenate(out)

    def _new_rows(self, X: Rows, n_jobs: int | None) -> NewRows:
        """New rows as rules for labels see them."""

        def embedded() -> tuple[FloatArray, np.ndarray]:
            rows, seen = self.extension.embed_seen(self.cross(X, n_jobs))
            rows = padded(to_host(rows), len(self.eigenvalues) + 1)
            return unit_rows(rows) if self.plan.settings.assigning.scales_rows else rows, seen

        return NewRows(lambda: self.cross(X, n_jobs), embedded)

    def _nearest(self, X: Rows, unseen: IntArray, n_jobs: int | None) -> IntArray | None:
        """The vertex that is nearest to some rows, by distance; None for a given matrix, which has none."""
        if self.trained is None:
            return None
        asked, rows = self.trained.hold(X[unseen] if on_host(X) else X[moved(unseen, X)]), self.trained.rows
        if not sparse.issparse(rows):
            asked, rows = to_host(asked), to_host(rows)
        kernel = self.plan.kernel
        if kernel is not None and not kernel.euclidean:
            return kernel.nearest(asked, rows)[1]
        return NeighborIndex(rows, search="exact", n_jobs=n_jobs).query(asked, 1)[1][:, 0]

    def cross(self, X: Rows, n_jobs: int | None) -> CrossGram:
        """New rows against the vertices."""
        if self.live is not None:
            return self.live.cross(X)
        if self.trained is not None:
            return self.trained.cross(X, n_jobs=n_jobs)
        cross = StoredCross(X if self.kept is None else X[:, self.kept], n_jobs=n_jobs)
        if self.plan.settings.cut.symmetric:
            cross.diagonal()  # which is needed, and says that it is not known
        return cross


def _chunks(X: Rows, whole: bool) -> list[Rows]:
    """Rows of one array in pieces whose similarities fit a device; on the host all at once."""
    if whole or X.shape[0] <= CHUNK_ROWS:
        return [X] if X.shape[0] else []
    return [X[top : top + CHUNK_ROWS] for top in range(0, X.shape[0], CHUNK_ROWS)]


def known_or_new(table: np.ndarray, place: IntArray, X: Rows, of_new: Callable[[Rows], np.ndarray]) -> np.ndarray:
    """What the table holds for vertices ``place``, and ``of_new`` of the rows of X where that is −1."""
    new = np.flatnonzero(place < 0)
    if len(new) == len(place):
        return of_new(X)
    out = table[place]
    if len(new):
        out[new] = of_new(X[new])
    return out


def assign_exact(fit: ExactFit, n_clusters: int) -> Assignment:
    """The labels of the vertices."""
    settings, solved = fit.plan.settings, fit.solved
    rows = unit_rows(solved.rows) if settings.assigning.scales_rows else solved.rows
    if fit.plan.rows <= n_clusters and on_host(rows):
        assignment = one_each(rows, solved.cut if settings.assigning.needs_cut else None)
    elif solved.tested is not None and settings.assigning.as_tested:
        assignment = solved.tested
    else:
        assignment = assign_in_place(
            settings.assigning.assign_labels,
            rows,
            fit.prepared.vertices.weights,
            n_clusters,
            cut=solved.cut,
            n_init=settings.assigning.n_init,
            random_state=check_random(settings.random_state),
            parts=solved.parts,
        )
    return assignment.contiguous()


def finish_exact(fit: ExactFit, X: Rows) -> Result:
    """The labels of the vertices, if they are asked for, and what all rows X get."""
    settings, vertices, solved = fit.plan.settings, fit.prepared.vertices, fit.solved
    n_clusters, n = settings.assigning.n_clusters, fit.plan.rows
    assignment = None if n_clusters is None else assign_exact(fit, n_clusters)
    fitted = ExactFitted.of(fit, assignment)
    everywhere = not on_host(solved.rows)  # no row was made one with another
    embedding = to_host(solved.rows) if everywhere else fitted.embed_vertices(X, vertices.index, settings.n_jobs)
    labels = None
    if assignment is not None:
        labels = assignment.labels if everywhere else fitted.labels_of_vertices(X, vertices.index, settings.n_jobs)
    history = None if assignment is None else assignment.cut_history
    return Result(fitted, n, embedding, labels, history, left_out=fit.left_out)
