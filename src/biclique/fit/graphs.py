"""The way of neighbour graphs: their connected parts come first, then the cut of each."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.fit.exact import SolverOptions, solve_cut, solve_graph
from biclique.fit.plan import Plan, Result
from biclique.gram import NeighborGram, SparseGram, StoredCross
from biclique.progress import Progress
from biclique.rows.array import Vertices, find_rows, known_or_new
from biclique.runtime import check_random
from biclique.runtime.namespace import padded, unit_rows
from biclique.spectral import (
    LOOSE,
    TEST_STARTS,
    Assignment,
    Attempt,
    Connected,
    EigenResult,
    Extension,
    NewRows,
    NormalizedCut,
    OrderRule,
    Parts,
    Rounding,
    Rule,
    Seen,
    assign_sampled,
    connect,
    least_order,
    one_each,
    parted_rotation,
    shares_of_parts,
    warn_unless_converged,
)

DEFAULT_WEIGHTS = "rbf"


@dataclass(frozen=True)
class SolvedPart:
    """A connected part of the graph: its cut and eigenpairs."""

    members: IntArray  # vertices, ascending
    cut: NormalizedCut
    pairs: EigenResult


@dataclass(frozen=True)
class Part:
    """A connected part of the graph: its vertices, its columns of the embedding, and these as functions of a point."""

    members: IntArray
    columns: IntArray
    extension: Extension


class GraphFitted:
    """The fitted graph: parts with their columns of the embedding, a rule for labels, and what new rows need.

    The columns of a part are √S normalised and the leading eigenvectors of its own cut, zero outside it: at order 2,
    eigenvectors of the whole graph. Parts are found, not iterated for. In the embedding they are turned so that the
    first column is √S of all rows.
    """

    takes_chunks = False
    keeps_tensors = False

    def __init__(self, plan: Plan, connected: Connected, vertices: Vertices, solved: list[SolvedPart]) -> None:
        self.plan = plan
        self.gram, self.part_of = connected.gram, connected.joined.part_of
        self.usual_degree = connected.usual_degree
        self.digests = vertices.digests  # none for a given graph, whose rows are never known
        self.n_columns = plan.settings.n_columns
        self.n_passes = max(part.cut.n_passes for part in solved)
        self.table: IntArray | None = None  # (n_vertices,), labels
        self.rule: Rule | None = None
        self.seen: Seen | None = None  # rows for probabilities
        self.parts: list[Part] = []
        own = np.zeros((vertices.n, self.n_columns))
        first = 0
        for part, width in zip(solved, _shares(solved, self.n_columns), strict=True):
            columns = np.arange(first, first + width)
            first += width
            extension, rows = Extension.fit(part.cut, part.pairs.first(width - 1), part.cut.gram.noise)
            own[np.ix_(part.members, columns)] = rows
            self.parts.append(Part(part.members, columns, extension))
        self.turn = self._turn(solved)
        self.rows: FloatArray = own @ self.turn
        self.eigenvalues = self._in_order(solved, [part.pairs.values for part in solved], 1.0)
        self.residuals = self._in_order(solved, [part.pairs.residuals for part in solved], 0.0)

    def _turn(self, solved: list[SolvedPart]) -> FloatArray:
        """From the parts' own columns to √S of all rows, the other combinations of parts, and eigenvectors in order."""
        turn = np.zeros((self.n_columns, self.n_columns))
        q = len(self.parts)
        turn[[part.columns[0] for part in self.parts], :q] = parted_rotation(
            np.array([part.cut.volume for part in solved])
        )
        pairs = zip(solved, self.parts, strict=True)
        own = [(-float(v), c) for s, p in pairs for v, c in zip(s.pairs.values, p.columns[1:], strict=False)]
        for place, (_, column) in enumerate(sorted(own), start=q):
            turn[column, place] = 1.0
        return turn

    def _in_order(self, solved: list[SolvedPart], of_parts: list[FloatArray], of_a_part: float) -> FloatArray:
        """Numbers of the eigenpairs that are used, by descending eigenvalue; zero if there are no more.

        Every part beyond the first has an eigenvalue of 1, and ``of_a_part`` as its number.
        """

        def joined(values: list[FloatArray], beyond: float) -> FloatArray:
            used = [v[: len(p.columns) - 1] for v, p in zip(values, self.parts, strict=True)]
            return np.concatenate([np.full(len(self.parts) - 1, beyond), *used])

        order = np.argsort(-joined([p.pairs.values for p in solved], 1.0), kind="stable")
        found = joined(of_parts, of_a_part)[order][: self.n_columns - 1]
        return padded(found, self.n_columns - 1)

    def test(self, vertices: Vertices, solved: list[SolvedPart], n_clusters: int) -> Assignment:
        """The clusters by which an order is tested: unit rows, ten starts."""
        return assign_sampled(
            "kmeans",
            unit_rows(self.rows),
            vertices.weights,
            n_clusters,
            cut=None,
            n_init=TEST_STARTS,
            random_state=check_random(deepcopy(self.plan.settings.random_state)),
            parts=self._parts(solved, n_clusters),
        )

    def assign(self, vertices: Vertices, solved: list[SolvedPart], tested: Assignment | None = None) -> Assignment:
        """Labels of the vertices; those by which the order was tested, if these are asked for."""
        settings = self.plan.settings
        n_clusters = settings.assigning.n_clusters or 1
        cut = None
        if settings.assigning.needs_cut:
            cut = solved[0].cut
            if len(solved) > 1:
                cut = NormalizedCut(self.gram, cut.order, vertices.weights, row_numbers=vertices.numbers)
        assigning = settings.assigning

        def assign(rows: FloatArray) -> Assignment:
            return assign_sampled(
                assigning.assign_labels,
                rows,
                vertices.weights,
                n_clusters,
                cut=cut,
                n_init=assigning.n_init,
                random_state=check_random(deepcopy(settings.random_state)),
                parts=self._parts(solved, n_clusters),
            )

        tested = tested if assigning.as_tested else None
        if vertices.n <= n_clusters and cut is None:
            found = one_each(self._scaled(self.rows))
        elif assigning.either_way:
            weights = vertices.weights
            rounding = Rounding(self.rows, self.eigenvalues, weights, n_clusters, assign, assigning.n_init)
            found, reason = rounding.clusters(tested)
            self.plan = self.plan.with_rows_as_they_are(reason) if reason else self.plan
        else:
            found = assign(self._scaled(self.rows)) if tested is None else tested
        found = found.contiguous()
        self.table, self.rule = found.labels, found.rule
        self.seen = Seen.of(self.rows, found.labels, vertices.weights, self.eigenvalues)
        self.n_passes = max(part.cut.n_passes for part in solved)
        return found

    def _parts(self, solved: list[SolvedPart], n_clusters: int) -> Parts | None:
        """Parts that no cluster spans, if there are enough columns to tell their clusters apart."""
        if len(solved) < 2 or self.n_columns < n_clusters:
            return None
        return Parts(self.part_of, tuple(_shares(solved, n_clusters)), np.arange(len(self.rows)))

    def _scaled(self, rows: FloatArray) -> FloatArray:
        return unit_rows(rows) if self.plan.settings.assigning.scales_rows else rows

    # New rows

    def find(self, X: Rows) -> IntArray:
        """Which vertex every row is, −1 for none; rows of a given graph are never known."""
        return find_rows(self.digests, X)

    def for_rows(self) -> GraphFitted:
        return self

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:  # noqa: ARG002
        """The embedding of any rows; a training row gets its own row back."""
        return self.embed_vertices(X, self.find(X))

    def embed_vertices(self, X: Rows, place: IntArray) -> FloatArray:
        """The embedding of rows that are vertices ``place``, −1 for new rows."""
        return known_or_new(self.rows, place, X, lambda new: self._extend(self._similarities(new)))

    def degrees(self, embedded: FloatArray) -> FloatArray:
        """δ of rows: each part has shrunk its degrees toward a mean of its own."""
        own = embedded @ self.turn.T
        firsts = own[:, [part.columns[0] for part in self.parts]]  # a row is zero in all parts but its own
        place = np.abs(firsts).argmax(axis=1)
        out = np.empty(len(embedded))
        for number, part in enumerate(self.parts):
            out[place == number] = part.extension.degrees(firsts[place == number, number])
        return out

    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:  # noqa: ARG002
        """The labels of any rows."""
        return self.labels_of_vertices(X, self.find(X))

    def labels_of_vertices(self, X: Rows, place: IntArray) -> IntArray:
        """The labels of rows that are vertices ``place``, −1 for new rows."""
        if self.table is None or self.rule is None:
            raise ValueError("no labels have been assigned")
        rule = self.rule

        def of_new(rows: Rows) -> IntArray:
            K = self._similarities(rows)
            everywhere = np.ones(K.shape[0], dtype=bool)
            new = NewRows(lambda: StoredCross(K), lambda: (self._scaled(self._extend(K)), everywhere))
            return rule.of_new(new)[0]

        return known_or_new(self.table, place, X, of_new)

    def _similarities(self, X: Rows) -> Any:
        """κ(y, x) of new rows, a sparse (n_new, n) matrix.

        A row with hardly any similarity is tied to its nearest row, as such training rows are, and gets a usual degree.
        At order 2 that changes nothing. At higher orders it keeps the row from drifting to the trivial axis.
        """
        index = self.gram.index
        if index is not None and sparse.issparse(X) != sparse.issparse(index.rows):
            X = X.toarray() if sparse.issparse(X) else sparse.csr_array(X)
        K = self.gram.cross(X).K
        degrees = np.asarray(K.sum(axis=1)).ravel()
        loose = np.flatnonzero(degrees < LOOSE * self.usual_degree)
        if not len(loose) or index is None:
            return K
        gap, nearest = (found[:, 0] for found in index.query(X[loose], 1))
        loose, nearest = loose[gap > 0], nearest[gap > 0]  # a training row has its own ties
        K = K + sparse.csr_array((np.full(len(loose), 0.5), (loose, nearest)), shape=K.shape)
        scale = np.ones(K.shape[0])
        scale[loose] = self.usual_degree / (degrees[loose] + 0.5)
        return sparse.csr_array(sparse.dia_array((scale[None, :], [0]), shape=(len(scale),) * 2) @ K)

    def _extend(self, K: sparse.csr_array) -> FloatArray:
        """The closed form, each row in the part that it is most similar to."""
        n = len(self.rows)
        indicator = sparse.csr_array(
            (np.ones(n), (np.arange(n), self.part_of)),
            shape=(n, len(self.parts)),
        )
        nearest = np.asarray((K @ indicator).toarray().argmax(axis=1))
        out = np.zeros((K.shape[0], self.n_columns))
        for number, part in enumerate(self.parts):
            chosen = np.flatnonzero(nearest == number)
            if len(chosen):
                cross = StoredCross(K[chosen][:, part.members], n_jobs=self.gram.n_jobs)
                out[np.ix_(chosen, part.columns)] = part.extension.embed(cross)
        return out @ self.turn


def fit_graph(plan: Plan, vertices: Vertices, X: Rows, random: np.random.RandomState, progress: Progress) -> Result:
    """The graph, its parts, the eigenpairs of each, and what all rows X get."""
    found = GraphSearch(plan, vertices, random, progress).run()
    parts, fitted = found.parts, found.fitted
    for part in parts:
        warn_unless_converged(part.pairs)
    embedding = fitted.embed_vertices(X, vertices.index)
    labels, history = None, None
    if plan.settings.assigning.n_clusters is not None:
        history = fitted.assign(vertices, parts, found.tested).cut_history
        labels = fitted.labels_of_vertices(X, vertices.index)
    return Result(fitted, vertices.n, embedding, labels, history)


@dataclass(frozen=True)
class FoundGraph:
    """A graph at one order: its parts, the fit, and the clusters by which the order was tested, if it was."""

    parts: list[SolvedPart]
    fitted: GraphFitted
    tested: Assignment | None


class GraphSearch:
    """One graph and its parts, cut at one order after the other."""

    def __init__(self, plan: Plan, vertices: Vertices, random: np.random.RandomState, progress: Progress) -> None:
        self.plan, self.vertices, self.progress = plan, vertices, progress
        groups, n_columns = plan.settings.n_groups, plan.settings.n_columns
        self.graph = _make_graph(plan, vertices, random, progress)
        # The embedding's columns are all there is to tell parts apart by.
        self.connected = connect(self.graph, vertices.weights, groups, min(groups, n_columns))
        self.rule = OrderRule.of(vertices.weights, groups, plan.orders)
        self.seed = int(random.randint(2**31))

    def at(self, order: float) -> list[SolvedPart]:
        """Every part with its eigenpairs at an order."""
        return _solve_parts(self.plan, self.connected, self.vertices, order, self.seed, self.progress)

    def run(self) -> FoundGraph:
        """The parts at the order asked for, or at that of the rule, and the final plan.

        ``order="auto"`` is the least of 2 and 2.1 that leaves no cluster of dust. Order 2.1 is refused if it gives an
        eigenvalue above 1. A cut has no such eigenvalue (order 2 never gives one): the shrunken degrees then set apart
        dense from sparse regions, by more than the eigengap of the clusters.
        """
        if self.plan.settings.cut.auto:
            best, reason = least_order(self.rule, self._try)
            found = best.result
        else:
            found, reason = self._found(self.at(self.plan.orders[0])), "as asked for"
        graph, index = self.graph, self.graph.index
        found.fitted.plan = replace(
            self.plan,
            gamma=graph.gamma if graph.weights == "rbf" else None,
            order=found.parts[0].cut.order,
            order_reason=reason,
            gram_reason="the graph is given" if index is None else f"{index.search_} search for neighbours",
        )
        return found

    def _found(self, parts: list[SolvedPart]) -> FoundGraph:
        return FoundGraph(parts, GraphFitted(self.plan, self.connected, self.vertices, parts), None)

    def _try(self, order: float, last: Attempt[FoundGraph] | None) -> Attempt[FoundGraph]:
        if last is not None:
            self.progress.say(f"order {last.order:g} leaves a cluster of dust: order {order:g} is tried")
        found = self._found(self.at(order))
        if self.vertices.n <= self.rule.n_clusters:
            return Attempt(order, 0.0, found)
        tested = found.fitted.test(self.vertices, found.parts, self.rule.n_clusters)
        smallest = self.rule.smallest(tested.labels, self.vertices.weights)
        lifted = any((part.pairs.values > 1).any() for part in found.parts)
        refused = "an eigenvalue above 1, which no cut has" if lifted else ""
        return Attempt(order, smallest, replace(found, tested=tested), refused)


def _shares(parts: list[SolvedPart], total: int) -> list[int]:
    """How many columns, or clusters, every part gets."""
    return shares_of_parts([part.pairs.values for part in parts], total)


def _solve_parts(
    plan: Plan, connected: Connected, vertices: Vertices, order: float, seed: int, progress: Progress
) -> list[SolvedPart]:
    """Every part with as many eigenpairs as it could get."""
    gram, joined = connected.gram, connected.joined
    n_parts, n_columns = joined.n_parts, plan.settings.n_columns
    parts = []
    for number in range(n_parts):
        members = np.flatnonzero(joined.part_of == number)
        K = gram.K if n_parts == 1 else gram.K[members][:, members]
        own = SparseGram(K, n_jobs=plan.settings.n_jobs)
        cut = NormalizedCut(own, order, vertices.weights[members], row_numbers=vertices.numbers[members])
        progress.say(f"part {number + 1} of {n_parts}: {len(members)} rows, {K.nnz} similarities, order {order:g}")
        k = min(n_columns - n_parts, len(members) - 1) if joined.whole[number] else 0
        parts.append(SolvedPart(members, cut, _solve(plan, cut, k, np.random.RandomState(seed), progress)))
    return parts


def _make_graph(plan: Plan, vertices: Vertices, random: np.random.RandomState, progress: Progress) -> NeighborGram:
    settings = plan.settings
    holding, n_jobs = settings.holding, settings.n_jobs
    weights = DEFAULT_WEIGHTS if holding.neighbor_weights == "auto" else holding.neighbor_weights
    if vertices.given:
        return NeighborGram.from_graph(vertices.data, holding.n_neighbors, weights, plan.gamma, n_jobs=n_jobs)
    return NeighborGram.from_rows(
        vertices.data,
        holding.n_neighbors,
        weights,
        plan.gamma,
        n_jobs=n_jobs,
        tick=progress.tick if progress.enabled else None,
        random_state=random,
    )


def _solve(plan: Plan, cut: NormalizedCut, k: int, random: np.random.RandomState, progress: Progress) -> EigenResult:
    """The k leading eigenpairs of a part, to a share of the eigengap."""
    if k < 1:
        return EigenResult.none(cut.trivial)
    options = SolverOptions.of(plan)
    if options.multigrid:
        return solve_graph(cut, k, replace(options, graph_tol=options.tol), random, progress)
    return solve_cut(cut, k, options, random, progress)
