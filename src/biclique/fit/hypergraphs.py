"""The exact way for given hyperedges: their expansion is the Gram operator, their connected parts are known."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import MemoryLimitError, SolverWarning, warn_user
from biclique.fit.exact import ExactSearch, SolverOptions, assign_exact, solve_cut, solve_graph
from biclique.fit.holding import Prepared
from biclique.fit.plan import EXACT, FINE_TOLERANCE, Plan, Result, plan_basis
from biclique.fit.settings import Settings
from biclique.gram import SparseGram
from biclique.hypergraph import ExpansionGram, Hypergraph
from biclique.neighbors.index import components
from biclique.progress import Progress
from biclique.rows.array import Vertices
from biclique.runtime import data_bytes, parse_memory_limit, single_threaded_blas
from biclique.runtime.namespace import padded
from biclique.spectral.cut import Extension, NormalizedCut
from biclique.spectral.lloyd import NewRows
from biclique.spectral.rounding import Rule, Seen
from biclique.spectral.solver import EigenResult, block_columns, warn_unless_converged

DIGITS = 8
"""Digits of the embedding that count: solvers are asked for as many."""

FIRST_PASSES = 40
"""Passes after which multigrid is tried: few hypergraphs need as many."""

USUAL_PASSES = 15
"""Of hypergraphs with clusters; long and thin ones have ``FIRST_PASSES`` and then multigrid."""

SECONDS_PER_ENTRY, SECONDS_PER_DISTANCE, SECONDS_PER_CUBE = 3e-8, 2e-7, 2e-9
"""Of an entry of the block in a pass, beside the product; of a vertex, a centre and a start of k-means; and of a full
decomposition, all on one core."""

SECONDS_AT_LEAST = 0.1
"""Of the smallest fit."""

NO_CLUSTER = -1
"""The label of a vertex that shares no edge with another."""


def plan_hypergraph(settings: Settings, gram: ExpansionGram) -> Plan:
    """How the cut of an expansion is solved; refuse what does not fit."""
    limit = parse_memory_limit(settings.holding.memory_limit)
    n, k = gram.n, min(settings.n_columns, gram.n) - 1
    basis = plan_basis(settings, n, k, limit, 0, f"{k} eigenvectors of {n} vertices", "or ask for fewer clusters.")
    return Plan(
        settings=settings,
        way=EXACT,
        rows=n,
        gram=gram.name,
        gram_reason="an expansion, multiplied edge by edge",
        memory_limit=limit,
        orders=settings.cut.orders,
        n_vectors=k,
        iterates=basis.iterates,
        tolerance=settings.solving.tolerance(FINE_TOLERANCE),
        basis_blocks=basis.blocks,
        bytes=2 * data_bytes(gram.hypergraph.members) + basis.bytes,
    )


def seconds_of_hypergraph(plan: Plan, gram: ExpansionGram) -> float:
    """Time of a fit, from the speed of one pass over the incidences."""
    n, assigning = plan.rows, plan.settings.assigning
    columns = block_columns(max(plan.n_vectors, 1), n)
    start = time.perf_counter()
    with single_threaded_blas():
        gram.matmat(np.ones((n, columns)))
    once = time.perf_counter() - start
    labels = SECONDS_AT_LEAST + n * assigning.n_init * (assigning.n_clusters or 1) * SECONDS_PER_DISTANCE
    if not plan.iterates:
        return n**3 * SECONDS_PER_CUBE + labels
    return USUAL_PASSES * (once + n * columns * SECONDS_PER_ENTRY) + labels


class HypergraphSearch(ExactSearch):
    """By passes, or by multigrid if these do not end and the matrix fits memory.

    Long, thin hypergraphs need thousands of passes, and their expansion has few entries.
    """

    def _solve_connected(self, cut: NormalizedCut, k: int, random: np.random.RandomState) -> EigenResult:
        blocks, options = self.prepared.basis_blocks, self.options
        few = replace(options, max_passes=min(options.max_passes, FIRST_PASSES))
        pairs = solve_cut(cut, k, few, random, self.progress, basis_blocks=blocks)
        if pairs.converged or options.max_passes <= FIRST_PASSES:
            return pairs
        graph = self._graph(cut, pairs, options.max_passes)
        if graph is not None and graph.is_graph and components(graph.stored()).max() == 0:
            return solve_graph(NormalizedCut(graph, cut.order, cut.weights), k, options, random, self.progress)
        return solve_cut(cut, k, options, random, self.progress, basis_blocks=blocks)

    def _graph(self, cut: NormalizedCut, pairs: EigenResult, most: int) -> SparseGram | None:
        """The expansion as a matrix, if it fits memory."""
        try:
            return SparseGram(cut.gram.stored(self.settings.holding.memory_limit), n_jobs=self.settings.n_jobs)
        except MemoryLimitError as error:
            warn_user(
                f"{pairs.n_passes} passes were not enough, and multigrid, which long and thin hypergraphs need, does "
                f"not fit: {error} Up to {most} passes follow.",
                SolverWarning,
            )
            return None


@dataclass
class HypergraphFitted:
    """The expansion, the closed form of the embedding, and the rule for labels; new rows are new vertices."""

    plan: Plan
    gram: ExpansionGram
    extension: Extension
    eigenvalues: FloatArray
    residuals: FloatArray
    n_passes: int
    rule: Rule | None = None
    takes_chunks: bool = False
    keeps_tensors: bool = False
    seen: Seen | None = None

    def for_rows(self) -> HypergraphFitted:
        return self

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:  # noqa: ARG002
        """The embedding of new vertices, from the training edges they join."""
        return padded(self.extension.embed(self.gram.cross(X)), self.plan.settings.n_columns)

    def degrees(self, embedded: FloatArray) -> FloatArray:
        return self.extension.degrees(embedded[:, 0])

    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:  # noqa: ARG002
        """The cluster of new vertices; −1 for one that joins no edge."""
        if self.rule is None:
            raise ValueError("no labels have been assigned")
        cross = self.gram.cross(X)

        def embedded() -> tuple[FloatArray, np.ndarray]:
            rows, seen = self.extension.embed_seen(cross)
            return self.scaled(padded(rows, self.plan.settings.n_columns)), seen

        joined = cross.matmat(np.ones((self.gram.n, 1)))[:, 0] > 0
        return np.where(joined, self.rule.of_new(NewRows(lambda: cross, embedded))[0], NO_CLUSTER)

    def scaled(self, rows: FloatArray) -> FloatArray:
        """Rows of length 1, or of mean length 1; rounded, so that rows that are equal in truth are equal."""
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not self.plan.settings.scales_rows:
            lengths = np.full_like(lengths, 1 / np.sqrt(self.gram.n))
        return np.asarray(np.round(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0), DIGITS))


def fit_hypergraph(
    settings: Settings,
    hypergraph: Hypergraph,
    gram: ExpansionGram,
    random: np.random.RandomState,
    progress: Progress,
) -> Result:
    """Solve the cut of an expansion, in which every vertex shares an edge with another."""
    plan = plan_hypergraph(settings, gram)
    n, order = gram.n, plan.orders[0]
    vertices = Vertices.as_they_are(hypergraph.incidence, np.ones(n), given=True)
    probe = _probe(gram.parts(), plan, random)
    prepared = Prepared(vertices, gram, random, probe=probe, basis_blocks=plan.basis_blocks)
    search = HypergraphSearch(settings, prepared, (order,), SolverOptions.of(plan), progress)
    solved, _ = search.run()
    warn_unless_converged(solved.pairs)
    fitted = HypergraphFitted(
        replace(plan, order=order, order_reason="as asked for"),
        gram,
        solved.extension,
        solved.eigenvalues,
        solved.residuals,
        solved.cut.n_passes,
    )
    found = assign_exact(settings, solved, settings.n_groups, fitted.scaled(solved.rows))
    fitted.rule, fitted.n_passes = found.rule, solved.cut.n_passes
    return Result(fitted, n, solved.rows, found.labels, found.cut_history)


def _probe(parts: IntArray, plan: Plan, random: np.random.RandomState) -> FloatArray | None:
    """A start for the solver: indicators of the connected parts, which are eigenvectors at order 2, then noise."""
    if not plan.iterates:
        return None
    start = random.standard_normal((plan.rows, plan.block))
    for part in range(min(int(parts.max()) + 1, plan.n_vectors)):
        start[:, part] = parts == part
    return start
