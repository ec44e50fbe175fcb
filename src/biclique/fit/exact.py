"""The exact way: kernel → Gram operator → cut → eigenpairs → embedding → labels, on the host or on a device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import MemoryLimitError
from biclique.fit.exact_fitted import ExactFit, ExactFitted, Solved, assign_exact
from biclique.fit.holding import Prepared, hold, hold_on_device
from biclique.fit.neighborhood_cut import factored_pairs
from biclique.fit.plan import FINE_TOLERANCE, QUICK_TOLERANCE, Plan, Planned
from biclique.fit.settings import Settings
from biclique.multiway import SymmetricGram
from biclique.neighbors.index import members_of
from biclique.progress import Progress
from biclique.rows.array import RowSource
from biclique.runtime.namespace import on_host, padded
from biclique.spectral.alternatives import scipy_eigenpairs
from biclique.spectral.components import grouped, parted_eigenpairs
from biclique.spectral.cut import NULL_EIGENVALUE, Extension, NormalizedCut, cluster_shares, least_order
from biclique.spectral.many_orders import ManyOrders, block_width
from biclique.spectral.multigrid import graph_eigenpairs
from biclique.spectral.solver import (
    BASIS_BLOCKS,
    EigenResult,
    block_columns,
    dense_eigenpairs,
    direct_bytes,
    top_eigenpairs,
)

__all__ = [
    "ExactFit",
    "ExactFitted",
    "ExactSearch",
    "Solved",
    "SolverOptions",
    "assign_exact",
    "solve_cut",
    "solve_exact",
    "solve_graph",
]

DECOMPOSED = 2_048
"""Up to so many rows the matrix is decomposed if passes do not find the eigenpairs (long chains)."""

ROWS_A_PASS = 20
"""For a stored K, a pass for so many rows is enough before that: a decomposition takes about as many."""

ALL_PASSES = 100
"""The same for a K that is not stored."""


@dataclass(frozen=True)
class SolverOptions:
    """How eigenpairs are found."""

    name: str | None = None
    tol: float = FINE_TOLERANCE
    graph_tol: float = QUICK_TOLERANCE
    """Of multigrid."""
    max_passes: int = 100
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
    start, image = cut.take_start()
    found = top_eigenpairs(
        cut,
        k,
        tol=options.tol,
        max_iter=min(most, worth),
        noise=noise,
        start=start,
        start_image=image,
        deflate=cut.trivial,
        basis_blocks=basis_blocks,
        random_state=random,
        report=progress.passed,
        keep_space=keep_space,
    )
    if found.converged or found.n_passes < worth:
        return found
    with suppress(MemoryLimitError):  # of tiles and so many vectors
        whole = dense_eigenpairs(cut, k, cut.trivial)
        return replace(whole, n_passes=found.n_passes + 1)
    return found


def solve_exact(planned: Planned, source: RowSource, random: np.random.RandomState, progress: Progress) -> ExactFit:
    """Solve the cut as planned, at the order that is asked for, or at the least one without a tiny cluster."""
    plan, settings = planned.plan, planned.plan.settings
    weights = source.weights if planned.vertices is None else planned.vertices.weights
    if weights is None:
        weights = np.ones(plan.rows)
    if planned.vertices is None:
        prepared = hold_on_device(plan, source, weights, random, progress)
    else:
        prepared = hold(plan, planned.vertices, random, progress)
        if source.spread is not None:
            prepared = replace(prepared, base=prepared.base.spread_over(source.spread))
    search = ExactSearch(settings, prepared, plan.orders, SolverOptions.of(plan), progress)
    solved, reason = search.run()
    decided: dict[str, Any] = {"error": prepared.error, "order_reason": reason}
    if plan.rank is not None:
        decided["rank"] = prepared.base.rank
    if plan.device is not None:
        decided |= {"gram_reason": f"{plan.gram_reason} by {prepared.base.engine}", "gram": prepared.base.name}
        decided["precision"] = plan.precision if plan.precision == "fast" else str(prepared.base.dtype)
    return ExactFit(replace(plan, order=solved.order, **decided), prepared, solved)


class ExactSearch:
    """Fits of one K at one order after the other."""

    def __init__(
        self,
        settings: Settings,
        prepared: Prepared,
        orders: Sequence[float],
        options: SolverOptions,
        progress: Progress,
    ) -> None:
        self.settings, self.prepared, self.orders = settings, prepared, tuple(orders)
        self.options, self.progress = options, progress
        self.n, self.n_columns = prepared.base.n, settings.n_columns
        self.n_vectors = min(self.n_columns, self.n) - 1
        draws = on_host(prepared.base.like)
        self.seed = int(prepared.random.randint(2**31)) if draws else 0
        self._parts: IntArray | None = None

    def run(self) -> tuple[Solved, str]:
        """The fit at the order asked for, or at the least one without a tiny cluster; and why."""
        if len(self.orders) == 1:
            return self.at(self.orders[0], None), "as asked for" if not self.settings.cut.auto else "the only one"
        k, weights = self.settings.n_groups, self.prepared.vertices.weights
        last: Solved | None = None

        def attempt(order: float) -> tuple[FloatArray, int, Solved]:
            nonlocal last
            last = self.at(order, last)
            found = assign_exact(self.settings, last, k)
            last = replace(last, assignment=found)
            return cluster_shares(found.labels, weights, k), len(weights), last

        found = least_order(self.orders, k, attempt)
        return found.result, found.reason

    def at(self, order: float, last: Solved | None, columns: int = 0) -> Solved:
        """A fit at an order, from what the one before it found: so many vectors of that, or a block."""
        if last is None or self.prepared.symmetric:
            cut = self._first_cut(order)
        else:
            cut = last.cut.at_order(order, last.pairs.space, max(columns, block_columns(self.n_vectors, self.n)))
        parts = self.parts(cut) if order == 2 else None
        if parts is not None and parts.max() > 0:
            return self._embedded(cut, order, self._solve_parts(cut, parts), parts)
        return self._embedded(cut, order, self._solve_connected(cut, self.n_vectors, self.prepared.random))

    def together(self, orders: Sequence[float]) -> dict[float, Solved]:
        """Fits at several orders, in one space of vectors if there is one. Order 2 may fall into parts: it is last."""
        ahead = sorted(dict.fromkeys(orders), key=lambda order: order == 2)
        last = self.at(ahead[0], None)
        found = {ahead[0]: last}
        space, options = last.pairs.space, self.options
        if space is not None and not self.prepared.symmetric:
            cuts = [last.cut.at_order(order) for order in ahead[1:] if order != 2 or self.parts(last.cut) is None]
            solver = ManyOrders(last.cut, space, self.n_vectors)
            pairs = solver.solve(cuts, options.tol, last.cut.gram.noise, options.max_passes, self.progress.passed)
            for cut, own in zip(cuts, pairs, strict=True):
                if own.converged:
                    found[cut.order] = self._embedded(cut, cut.order, own)
        for order in ahead[1:]:
            if order not in found:
                last = found[order] = self.at(order, last, block_width(self.n_vectors))
        return found

    def _first_cut(self, order: float) -> NormalizedCut:
        """The cut of K: one pass, which multiplies the probe too."""
        prepared = self.prepared
        base, vertices, probe = prepared.base, prepared.vertices, prepared.probe
        if not prepared.symmetric:
            return NormalizedCut(base, order, vertices.weights, probe, vertices.numbers)
        gram = SymmetricGram(base, int(order), vertices.weights)
        # The contraction already has the order in it: what is left is its ordinary normalised cut.
        cut = NormalizedCut(gram, 2, vertices.weights, probe, vertices.numbers)
        cut.n_passes += 1  # the one for the degrees of K
        return cut

    def parts(self, cut: NormalizedCut) -> IntArray | None:
        """The connected component of every row, for a sparse K or a hypergraph; None for any other."""
        if self.n_vectors < 1 or self.prepared.symmetric or not cut.gram.has_parts:
            return None
        if self._parts is None:
            self._parts = self.prepared.base.parts()
        return self._parts

    def _embedded(self, cut: NormalizedCut, order: float, pairs: EigenResult, parts: IntArray | None = None) -> Solved:
        """The embedding that eigenpairs give."""
        clipped, lowest = 0, 0.0
        if self.settings.kernel.takes_gaps and not self.prepared.symmetric:  # gaps can make K indefinite
            clipped = int((pairs.values < -NULL_EIGENVALUE * cut.gram.noise).sum())
            lowest = float(pairs.values.min(initial=0.0))  # the largest is the trivial one, 1
            pairs = replace(pairs, values=np.maximum(pairs.values, 0.0))
        extension, rows = Extension.fit(cut, pairs, cut.gram.noise)
        n_columns = self.n_columns
        embedded = padded(rows, n_columns), padded(pairs.values, n_columns - 1), padded(pairs.residuals, n_columns - 1)
        return Solved(cut, order, pairs, extension, *embedded, parts, clipped=clipped, lowest=lowest)

    def _solve_connected(self, cut: NormalizedCut, k: int, random: np.random.RandomState) -> EigenResult:
        """The eigenpairs of the whole cut, or of that of a part."""
        phi = cut.gram.sparse_factor() if k > 0 else None
        if phi is not None:
            return factored_pairs(cut, phi, k, self.options.graph_tol)
        if k > 0 and cut.gram.is_graph and self.options.multigrid and not self.prepared.symmetric:
            parts = self.parts(cut) if cut.gram is self.prepared.base else None
            if parts is None or parts.max() == 0:
                return solve_graph(cut, k, self.options, random, self.progress)
        keep = len(self.orders) > 1  # another order may start from what this one found
        blocks = self.prepared.basis_blocks
        return solve_cut(cut, k, self.options, random, self.progress, basis_blocks=blocks, keep_space=keep)

    def _solve_parts(self, cut: NormalizedCut, parts: IntArray) -> EigenResult:
        """The eigenpairs of connected components; see ``spectral/components.py``."""
        volumes = cut.weights * cut.shrunken
        k = min(self.settings.n_groups, self.n_columns)
        if parts.max() + 1 >= k:
            parts = grouped(parts, volumes, k)[parts]

        def solve(members: IntArray, wanted: int) -> EigenResult:
            own = cut.restricted(self.prepared.base.restricted(members), members)
            return self._solve_connected(own, wanted, np.random.RandomState(self.seed))

        found = parted_eigenpairs(cut, parts, members_of(parts), self.n_vectors, solve)
        cut.take_start()  # of which nothing is needed any more
        return found
