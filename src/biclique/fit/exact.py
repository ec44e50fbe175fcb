"""The exact way: kernel → Gram operator → cut → eigenpairs → embedding → labels, on the host or on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import MemoryLimitError
from biclique.fit.exact_fitted import ExactFit, ExactFitted, Solved, assign_exact
from biclique.fit.holding import Prepared, hold, hold_on_device
from biclique.fit.plan import FINE_TOLERANCE, QUICK_TOLERANCE, Plan, Planned, choose_gram, make_gram
from biclique.fit.settings import FACTORED, Settings
from biclique.fit.sifting import leave_out_dust
from biclique.gram import (
    GridError,
    dense_bytes,
    link_small_parts,
    tiled_bytes,
)
from biclique.kernels import Kernel
from biclique.multiway import SymmetricGram
from biclique.progress import Progress
from biclique.rows.array import RowSource, Vertices
from biclique.runtime import check_random, draw_numbers
from biclique.runtime.namespace import on_host, padded, unit_rows
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
    Linked,
    ManyOrders,
    NormalizedCut,
    OrderRule,
    Parts,
    PointClusters,
    Progressing,
    Rounding,
    assign_in_place,
    block_columns,
    block_width,
    columns_within,
    counted_shares,
    dense_eigenpairs,
    direct_bytes,
    graph_eigenpairs,
    join_parts,
    least_order,
    parted_eigenpairs,
    round_points,
    scipy_eigenpairs,
    shares_of_parts,
    solves_directly,
    top_eigenpairs,
)

__all__ = [
    "ExactFit",
    "ExactFitted",
    "ExactSearch",
    "Solved",
    "SolverOptions",
    "assign_exact",
    "hold_or_change",
    "proposed",
    "search_some",
    "solve_cut",
    "solve_exact",
    "solve_graph",
]

STORED_SAMPLE = 1_000
"""Up to so many rows of a sample, K is stored."""

GLANCE_STARTS = 0
"""Random starts of the first k-means on eigenvectors that are being found: that there is no dust shows early."""

DECOMPOSED, ROWS_A_PASS = 2_048, 20
"""Up to so many rows the matrix is decomposed if passes do not find the eigenpairs (long chains). For a stored K a pass
for every 20 rows is enough: that is about as many as a decomposition takes."""

ALL_PASSES = 100
"""The same for a K that is not stored."""

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
    spare: float = np.inf
    """Bytes that a decomposition may take."""

    @classmethod
    def of(cls, plan: Plan) -> SolverOptions:
        solving = plan.settings.solving
        tol = FINE_TOLERANCE if plan.tolerance is None else plan.tolerance
        graph_tol = QUICK_TOLERANCE if isinstance(solving.eigen_tol, str) else tol
        return cls(solving.eigen_solver, tol, graph_tol, solving.max_iter, spare=plan.spare)

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
    n, most = cut.shape[0], options.max_passes
    worth = n // ROWS_A_PASS if cut.gram.passes_are_cheap else max(most, ALL_PASSES)
    if n > DECOMPOSED or direct_bytes(n) > options.spare:
        worth = most + 1
    found = top_eigenpairs(
        cut,
        k,
        tol=options.tol,
        max_iter=min(most, worth),
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
    if found.converged or found.n_passes < worth:
        return found
    with suppress(MemoryLimitError):  # of tiles and so many vectors
        whole = dense_eigenpairs(cut, k, cut.trivial)
        return replace(whole, n_passes=found.n_passes + 1)
    return found


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
        prepared = hold_on_device(plan, source, weights, random, progress)
    else:
        plan, prepared = hold_or_change(plan, planned.vertices, random, progress)
        if source.spread is not None:
            prepared = replace(prepared, base=prepared.base.spread_over(source.spread))
    search = ExactSearch(settings, prepared, rule, SolverOptions.of(plan), progress)
    found, reason = search.run(asked=not settings.cut.auto)
    base = prepared.base
    decided: dict[str, Any] = {"error": prepared.error}
    if plan.rank is not None:
        decided["rank"] = base.rank
    if plan.device is not None:
        decided |= {"gram_reason": f"{plan.gram_reason} by {base.engine}", "gram": base.name}
        decided["precision"] = plan.precision if plan.precision == "fast" else str(base.dtype)
    final = replace(plan, **decided).at_order(found.order, reason).changed(found.note)
    left_out: IntArray | None = None
    if found.note and planned.vertices is not None:
        left_out = np.flatnonzero((planned.vertices.index >= 0) & (search.prepared.vertices.index < 0))
    nearby = planned.nearby if left_out is None else None
    return ExactFit(final, search.prepared, found.result, search.dust, left_out, nearby)


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
    few = vertices
    if vertices.n > size:
        few = vertices.some(draw_numbers(vertices.n, size, np.random.RandomState(seed)))
    held = "tiled" if kernel.cheap and few.n > STORED_SAMPLE else "dense"
    # Small enough to be made whatever the memory limit: all rows were allowed.
    limit = 2 * dense_bytes(size) + tiled_bytes(size, few.data.shape[1], size, np.float64)
    gram = make_gram(held, kernel, few.data, dtype=dtype, n_jobs=settings.n_jobs, memory_limit=limit)
    n_vectors = min(settings.n_columns, few.n) - 1
    probe: FloatArray | None = None
    if not solves_directly(few.n, n_vectors):
        probe = np.random.RandomState(seed).standard_normal((few.n, block_columns(n_vectors, few.n)))
    prepared = Prepared(few, gram, np.random.RandomState(seed), settings.cut.symmetric, probe, kernel=kernel)
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
        self.iterates = prepared.probe is not None
        self.hold(prepared)
        draws = seed is None and on_host(prepared.base.like)
        self.seed = int(prepared.random.randint(2**31)) if draws else seed or 0
        self.n_tests = 0

    def hold(self, prepared: Prepared) -> None:
        """Go on with this K: parts of another are forgotten."""
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
        found, dust = self.tried(order, last)
        return leave_out_dust(self, found, dust) if order == 2 and len(dust) else found

    def tried(
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
        if found.result.tested is None:
            return found, np.empty(0, dtype=np.intp)
        if self.rule.passes(found):  # and may do so although an eigenvector is wasted on a few rows
            return found, self.rule.live_on_dust(solved.pairs.vectors, solved.cut.weights, self.rule.total)
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
        return self._kmeans(unit_rows(rows), parts)

    def glance(self, rows: FloatArray) -> IntArray:
        """The labels of a test with a few starts."""
        return self._kmeans(unit_rows(rows), None, GLANCE_STARTS).labels

    def rounded(self, solved: Solved, linked: Linked | None = None) -> IntArray:
        """The labels of a fit: as tested, or from rows as they are, or, where links are given, as a fit has them."""
        tested = self.test(solved.rows, solved.parts) if solved.tested is None else solved.tested
        if not self.settings.assigning.either_way:
            return tested.labels
        vertices, k = self.prepared.vertices, self.rule.n_clusters

        def assign(rows: FloatArray) -> Assignment:
            return self._kmeans(rows, solved.parts)

        values = padded(solved.pairs.values, self.n_columns - 1)
        rounding = Rounding(solved.rows, values, vertices.weights, k, assign, TEST_STARTS)

        def links() -> Linked | None:
            return linked if solved.parts is None else None

        own = rounding.clusters(tested, links)[0].labels
        if linked is None or sparse.issparse(vertices.data):
            return own
        points = PointClusters(vertices.data, vertices.weights, k, 0)
        other, _ = round_points(rounding, points, solved.cut, own, links, np.random.RandomState(0))
        return own if other is None else other.labels

    def _kmeans(self, rows: FloatArray, parts: Parts | None, n_starts: int = TEST_STARTS) -> Assignment:
        return assign_in_place(
            "kmeans",
            rows,
            self.prepared.vertices.weights,
            self.rule.n_clusters,
            n_init=n_starts,
            random_state=check_random(deepcopy(self.settings.random_state)),
            parts=parts,
        )

    @property
    def block(self) -> int:
        return block_columns(self.n_vectors, self.n)

    def _cut(self, order: float, last: Attempt[Solved] | None, columns: int = 0) -> NormalizedCut:
        if last is None or self.prepared.symmetric:
            return self._first_cut(order)
        before = last.result
        cut = before.cut.at_order(order, before.pairs.space, max(columns, self.block))
        # The basis is large, and has done its work.
        object.__setattr__(before.pairs, "space", None)
        return cut

    def _first_cut(self, order: float) -> NormalizedCut:
        """The cut of K: one pass, which multiplies the probe too."""
        prepared = self.prepared
        base, vertices, probe = prepared.base, prepared.vertices, prepared.probe
        if not prepared.symmetric:
            if base.nonnegative:  # degrees that are positive are so at every order: this is the only cut
                object.__setattr__(prepared, "probe", None)
            return NormalizedCut(base, order, vertices.weights, probe, vertices.numbers)
        gram = SymmetricGram(base, int(order), vertices.weights)
        # The contraction already has the order in it: what is left is its ordinary normalised cut.
        cut = NormalizedCut(gram, 2, vertices.weights, probe, vertices.numbers)
        cut.n_passes += 1  # the one for the degrees of K
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
            self._found = self.prepared.base.parts(cut.degrees, cut.weights, random, columns=self.block)
            kernel, inexact = self.prepared.kernel, self.prepared.base.error is not None
            if inexact and kernel is not None and self._found.max() > 0:  # such products miss faint links
                near, n_columns = self.prepared.near, self.prepared.vertices.data.shape[1]
                self._found = link_small_parts(kernel, n_columns, self._found, near.nearest_parts, ASKED)
        return self._found

    @property
    def dust(self) -> float:
        """The share of the weight in parts that are too small for a cluster, if parts were searched for."""
        if self._found is None or self._found.max() == 0:
            return 0.0
        weights = self.prepared.vertices.weights
        small = counted_shares(self._found, weights) < self.rule.least
        return float(weights[small[self._found]].sum() / weights.sum())

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
            labels = self.search.glance(rows)
            smallest = rule.smallest(labels, weights)
            if smallest < rule.least:  # a few starts may have missed better clusters
                labels = self.search.test(rows).labels
                smallest = rule.smallest(labels, weights)
            self.smallest = smallest if smallest < rule.least else np.inf
            self.dust = rule.in_dust(labels, weights)
        return self.smallest < rule.least
