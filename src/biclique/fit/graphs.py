"""The way of neighbour graphs: their connected parts come first, then the cut of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.fit.exact import SolverOptions, solve_cut, solve_graph
from biclique.fit.fitted import Result
from biclique.fit.plan import Plan
from biclique.gram import CrossGram, NeighborGram, SparseGram, StoredCross
from biclique.progress import Progress
from biclique.rows.array import Vertices, find_rows
from biclique.runtime.arguments import check_random
from biclique.runtime.namespace import padded, unit_rows
from biclique.spectral import (
    Assignment,
    EigenResult,
    Extension,
    NormalizedCut,
    Parts,
    assign_sampled,
    one_each,
    parted_rotation,
)
from biclique.spectral.joining import LOOSE, Connected, connect, shares_of_parts
from biclique.spectral.solver import warn_unless_converged

DEFAULT_WEIGHTS = "rbf"


@dataclass
class Part:
    """A connected part of the graph: its cut and eigenpairs, and the columns of the embedding it has been given."""

    members: IntArray  # vertices, ascending
    cut: NormalizedCut
    pairs: EigenResult
    columns: range = range(1)
    extension: Extension | None = None

    def embed(self) -> FloatArray:
        """The rows of as many columns as the part has, (members, columns)."""
        self.extension, rows = Extension.fit(self.cut, self.pairs.first(len(self.columns) - 1), self.cut.gram.noise)
        return rows


class GraphFitted:
    """The fitted graph: parts with their columns of the embedding, a rule for labels, and what new rows need.

    The columns of a part are √S normalised and the leading eigenvectors of its own cut, zero outside it: at order 2,
    eigenvectors of the whole graph. Parts are found, not iterated for. In the embedding they are turned so that the
    first column is √S of all rows.
    """

    takes_chunks = False
    keeps_tensors = False

    def __init__(self, plan: Plan, connected: Connected, vertices: Vertices, parts: list[Part]) -> None:
        self.plan = plan
        self.gram, self.part_of = connected.gram, connected.joined.part_of
        self.usual_degree = connected.usual_degree
        self.vertices, self.parts = vertices, parts
        self.n_columns = plan.settings.n_columns
        self.assignment: Assignment | None = None
        self.rows: FloatArray = np.zeros((vertices.n, self.n_columns))
        first = 0
        for part, width in zip(parts, self._shares(self.n_columns), strict=True):
            part.columns = range(first, first + width)
            first += width
            self.rows[np.ix_(part.members, np.asarray(part.columns))] = part.embed()
        self.turn = self._turn()
        self.rows = self.rows @ self.turn

    def _shares(self, total: int) -> list[int]:
        return shares_of_parts([part.pairs.values for part in self.parts], total)

    def _turn(self) -> FloatArray:
        """From the parts' own columns to √S of all rows, the other combinations of parts, and eigenvectors in order."""
        turn = np.zeros((self.n_columns, self.n_columns))
        q = len(self.parts)
        turn[[part.columns[0] for part in self.parts], :q] = parted_rotation(
            np.array([part.cut.volume for part in self.parts])
        )
        own = [(-float(v), c) for p in self.parts for v, c in zip(p.pairs.values, p.columns[1:], strict=False)]
        for place, (_, column) in enumerate(sorted(own), start=q):
            turn[column, place] = 1.0
        return turn

    @property
    def eigenvalues(self) -> FloatArray:
        """1 for every part beyond the first, and those of the parts' own cuts, descending; zero where missing."""
        return self._in_order([p.pairs.values for p in self.parts], 1.0)

    @property
    def residuals(self) -> FloatArray:
        """Of the eigenvalues, in their order."""
        return self._in_order([p.pairs.residuals for p in self.parts], 0.0)

    def _in_order(self, of_parts: list[FloatArray], of_a_part: float) -> FloatArray:
        """Numbers of the eigenpairs that are used, by descending eigenvalue, in the length of ``eigenvalues_``."""

        def joined(values: list[FloatArray], beyond: float) -> FloatArray:
            used = [v[: len(p.columns) - 1] for v, p in zip(values, self.parts, strict=True)]
            return np.concatenate([np.full(len(self.parts) - 1, beyond), *used])

        order = np.argsort(-joined([p.pairs.values for p in self.parts], 1.0), kind="stable")
        found = joined(of_parts, of_a_part)[order][: self.n_columns - 1]
        return padded(found, self.n_columns - 1)

    @property
    def n_passes(self) -> int:
        return max(p.cut.n_passes for p in self.parts)

    def assign(self) -> Assignment:
        """Labels of the vertices."""
        settings, vertices = self.plan.settings, self.vertices
        n_clusters = settings.assigning.n_clusters or 1
        cut = None
        if settings.assigning.needs_cut:
            cut = self.parts[0].cut
            if len(self.parts) > 1:
                cut = NormalizedCut(self.gram, cut.order, vertices.weights, row_numbers=vertices.numbers)
        rows = self._scaled(self.rows)
        if vertices.n <= n_clusters and cut is None:
            self.assignment = one_each(rows)
            return self.assignment
        self.assignment = assign_sampled(
            settings.assigning.assign_labels,
            rows,
            vertices.weights,
            n_clusters,
            cut=cut,
            n_init=settings.assigning.n_init,
            random_state=check_random(settings.random_state),
            parts=self._parts(n_clusters),
        ).contiguous()
        return self.assignment

    def _parts(self, n_clusters: int) -> Parts | None:
        """Parts that no cluster spans, where there are columns enough to tell their clusters apart."""
        if len(self.parts) < 2 or self.n_columns < n_clusters:
            return None
        return Parts(self.part_of, tuple(self._shares(n_clusters)), np.arange(self.vertices.n))

    def _scaled(self, rows: FloatArray) -> FloatArray:
        return unit_rows(rows) if self.plan.settings.assigning.scales_rows else rows

    # New rows

    def find(self, X: Rows) -> IntArray:
        """Which vertex every row is, −1 where none; rows of a given graph are never known."""
        return np.full(X.shape[0], -1) if self.vertices.given else find_rows(self.vertices.digests, X)

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:  # noqa: ARG002
        """The embedding of any rows; a training row gets its own row back."""
        return self.embed_vertices(X, self.find(X))

    def embed_vertices(self, X: Rows, place: IntArray) -> FloatArray:
        """The embedding of rows that are vertices ``place``, −1 for new rows."""
        out = self.rows[place]
        new = np.flatnonzero(place < 0)
        if len(new):
            out[new] = self._extend(self._similarities(X[new]))
        return out

    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:  # noqa: ARG002
        """The labels of any rows."""
        return self.labels_of_vertices(X, self.find(X))

    def labels_of_vertices(self, X: Rows, place: IntArray) -> IntArray:
        """The labels of rows that are vertices ``place``, −1 for new rows."""
        if self.assignment is None:
            raise ValueError("no labels have been assigned")
        out = self.assignment.labels[place]
        new = np.flatnonzero(place < 0)
        if len(new):
            out[new] = self.assignment.rule.of_new(_NewRows(self, self._similarities(X[new])))[0]
        return out

    def _similarities(self, X: Rows) -> Any:
        """κ(y, x) of new rows, a sparse (n_new, n) matrix.

        A row with hardly any similarity is tied to its nearest, as such training rows are, and brought to a usual
        degree, which at order 2 changes nothing, and at higher orders keeps it from drifting to the trivial axis.
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
        n = self.vertices.n
        indicator = sparse.csr_array(
            (np.ones(n), (np.arange(n), self.part_of)),
            shape=(n, len(self.parts)),
        )
        nearest = np.asarray((K @ indicator).toarray().argmax(axis=1))
        out = np.zeros((K.shape[0], self.n_columns))
        for number, part in enumerate(self.parts):
            chosen = np.flatnonzero(nearest == number)
            if len(chosen) and part.extension is not None:
                cross = StoredCross(K[chosen][:, part.members], n_jobs=self.gram.n_jobs)
                out[np.ix_(chosen, np.asarray(part.columns))] = part.extension.embed(cross)
        return out @ self.turn


class _NewRows:
    """New rows as rules for labels see them, from a sparse matrix of their similarities."""

    def __init__(self, fitted: GraphFitted, K: sparse.csr_array) -> None:
        self.fitted, self.K = fitted, K

    def cross(self) -> CrossGram:
        return StoredCross(self.K)

    def embedded(self) -> tuple[FloatArray, np.ndarray]:
        return self.fitted._scaled(self.fitted._extend(self.K)), np.ones(self.K.shape[0], dtype=bool)


def fit_graph(plan: Plan, vertices: Vertices, X: Rows, random: np.random.RandomState, progress: Progress) -> Result:
    """The graph, its parts, the eigenpairs of each, and what all rows X get.

    ``order="auto"`` is 2.1, and 2 where order 2.1 lifts an eigenvalue above 1. No cut has one (at order 2 none is): the
    shrunken degrees then set apart dense from sparse regions, by more than the eigengap of the clusters.
    """
    settings = plan.settings
    order, auto = plan.orders[0], settings.cut.auto
    reason = "the rule for neighbour graphs" if auto else "as asked for"
    # The embedding's columns are all there is to tell parts apart by.
    graph = _make_graph(plan, vertices, random, progress)
    connected = connect(graph, vertices.weights, settings.n_groups, min(settings.n_groups, settings.n_columns))
    seed = int(random.randint(2**31))
    parts = _solve_parts(plan, connected, vertices, order, seed, progress)
    final = plan
    if auto and any((p.pairs.values > 1).any() for p in parts):
        reason = f"order {order:g} lifts an eigenvalue above 1, which no cut has: order 2 is taken"
        if progress.enabled:
            progress.say(reason)
        final = final.changed(reason)
        parts = _solve_parts(plan, connected, vertices, 2.0, seed, progress)
    for part in parts:
        warn_unless_converged(part.pairs)
    index = graph.index
    final = replace(
        final,
        gamma=graph.gamma if graph.weights == "rbf" else None,
        order=parts[0].cut.order,
        order_reason=reason,
        gram_reason="the graph is given" if index is None else f"{index.search_} search for neighbours",
    )
    fitted = GraphFitted(final, connected, vertices, parts)
    embedding = fitted.embed_vertices(X, vertices.index)
    labels, history = None, None
    if settings.assigning.n_clusters is not None:
        history = fitted.assign().cut_history
        labels = fitted.labels_of_vertices(X, vertices.index)
    return Result(fitted, vertices.n, embedding, labels, history)


def _solve_parts(
    plan: Plan, connected: Connected, vertices: Vertices, order: float, seed: int, progress: Progress
) -> list[Part]:
    """Every part with as many eigenpairs as it could get."""
    gram, joined = connected.gram, connected.joined
    n_parts, n_columns = joined.n_parts, plan.settings.n_columns
    parts = []
    for number in range(n_parts):
        members = np.flatnonzero(joined.part_of == number)
        K = gram.K if n_parts == 1 else gram.K[members][:, members]
        own = SparseGram(K, n_jobs=plan.settings.n_jobs)
        cut = NormalizedCut(own, order, vertices.weights[members], row_numbers=vertices.numbers[members])
        if progress.enabled:
            progress.say(f"part {number + 1} of {n_parts}: {len(members)} rows, {K.nnz} similarities, order {order:g}")
        k = min(n_columns - n_parts, len(members) - 1) if joined.whole[number] else 0
        parts.append(Part(members, cut, _solve(plan, cut, k, np.random.RandomState(seed), progress)))
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
