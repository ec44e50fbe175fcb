"""The exact way for given hyperedges: their expansion is the Gram operator, their connected components are known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from biclique._typing import FloatArray, Rows
from biclique.exceptions import MemoryLimitError, SolverWarning, warn_user
from biclique.fit.choose import Chosen
from biclique.fit.exact import ExactCuts, draw_start, solve_cut
from biclique.fit.exact_fitted import ExactPoints, fitted_cut
from biclique.fit.fitted import Fitted, Training
from biclique.fit.settings import Settings
from biclique.gram.operator import CrossGram
from biclique.gram.sparse import SparseGram
from biclique.hypergraph import ExpansionGram, Hypergraph
from biclique.neighbors.index import components
from biclique.progress import Progress
from biclique.rows.array import Vertices
from biclique.runtime.arguments import check_random
from biclique.runtime.memory import require_memory
from biclique.spectral.cut import NormalizedCut, check_order
from biclique.spectral.multigrid import graph_eigenpairs
from biclique.spectral.solver import (
    EigenResult,
    basis_bytes,
    direct_bytes,
    solves_directly,
    warn_unless_converged,
)

DIGITS = 8
"""Digits of the embedding that count: solvers are asked for as many."""

FIRST_PASSES = 40
"""Passes after which multigrid is tried: few hypergraphs need as many."""

MOST_PASSES = 1_000
"""Most passes over the incidences, if multigrid does not fit the memory."""

NO_CLUSTER = -1
"""The label of a vertex that shares no edge with another."""


class HypergraphCuts(ExactCuts):
    """By passes, or by multigrid if these do not end and the matrix fits memory.

    Long, thin hypergraphs need thousands of passes, and their expansion has few entries.
    """

    def solve_connected(self, cut: NormalizedCut, k: int, random: np.random.RandomState) -> EigenResult:
        pairs = solve_cut(cut, k, random, self.progress, tol=self.tol, max_passes=FIRST_PASSES)
        if pairs.converged:
            return pairs
        try:
            graph = cut.gram.graph()
        except MemoryLimitError as error:
            graph = None
            warn_user(
                f"{pairs.n_passes} passes were not enough, and multigrid, which long and thin hypergraphs need, does "
                f"not fit: {error} Up to {MOST_PASSES} passes follow.",
                SolverWarning,
            )
        if graph is None or components(graph).max() > 0:
            return solve_cut(cut, k, random, self.progress, tol=self.tol, max_passes=MOST_PASSES)
        return graph_eigenpairs(
            NormalizedCut(SparseGram(graph, n_jobs=self.settings.n_jobs), cut.order, cut.weights),
            k,
            tol=self.graph_tol,
            max_iter=MOST_PASSES,
            random_state=random,
            report=self.progress.passed,
        )


@dataclass(frozen=True, kw_only=True)
class HypergraphPoints(ExactPoints):
    """The closed form of the embedding of new vertices, from the training edges they join."""

    gram: ExpansionGram
    given: bool = True

    def cross(self, X: Rows, n_jobs: int | None = None) -> CrossGram:  # noqa: ARG002
        return self.gram.cross(X)

    def scaled(self, rows: FloatArray, unit: bool) -> FloatArray:
        """Rows of length 1, or of mean length 1; rounded, so that rows that are equal in truth are equal."""
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not unit:
            lengths = np.full_like(lengths, 1 / np.sqrt(self.gram.n))
        return np.asarray(np.round(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0), DIGITS))


def fit_hypergraph(
    settings: Settings, hypergraph: Hypergraph, gram: ExpansionGram, progress: Progress
) -> tuple[Fitted, Training]:
    """Solve the cut of an expansion, in which every vertex shares an edge with another.

    New rows are new vertices, and have the label −1 if they join no edge.
    """
    n, k = gram.n, min(settings.n_columns, gram.n) - 1
    needed = direct_bytes(n) if k < 1 or solves_directly(n, k) else basis_bytes(n, k)
    require_memory(needed, f"{k} eigenvectors of {n} vertices", "ask for fewer clusters.")
    settings = settings.seeded()
    random, order = check_random(settings.random_state), check_order(float(settings.order))
    vertices = Vertices.of_rows(hypergraph.incidence, np.ones(n), given=True)
    probe = draw_start(settings, vertices, gram, None, order, random)
    chosen = Chosen(gram.name, "an expansion, multiplied edge by edge", n, order=order, order_reason="as asked for")
    cuts = HypergraphCuts(settings, vertices, gram, chosen, (order,), random, progress, probe)
    found = cuts.at(order)
    warn_unless_converged(found.pairs)
    points = HypergraphPoints(extension=replace(found.extension, faint=0.0), gram=gram)
    assignment = cuts.assign(found, points.scaled(found.rows, settings.scales_rows))
    fitted = fitted_cut(settings, chosen, found, points)
    fitted.rule, fitted.unlike = assignment.rule, NO_CLUSTER
    return fitted, Training(n, found.rows, assignment.labels, assignment.cut_history)
