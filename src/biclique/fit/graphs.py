"""The fit of a neighbour graph: its connected parts come first, then the cut of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ParameterError
from biclique.fit.checks import warn_about_spread
from biclique.fit.exact import SolverOptions, scales_rows, solve_cut, unit_rows, warn_unless_converged
from biclique.fit.prepare import Vertices, find_vertices
from biclique.gram import NeighborGram, SparseGram, StoredCross
from biclique.multiway import check_order
from biclique.neighbors.brute import search_bytes
from biclique.neighbors.index import uses_tree
from biclique.progress import Progress
from biclique.rows.distinct import find_rows
from biclique.runtime.arguments import check_random
from biclique.runtime.memory import parse_memory_limit, require
from biclique.spectral import (
    Assignment,
    EigenResult,
    Extension,
    KernelRule,
    NormalizedCut,
    Parts,
    assign_sampled,
    graph_eigenpairs,
    one_each,
    parted_rotation,
)
from biclique.spectral.joining import LOOSE, Connected, connect, shares_of_parts
from biclique.spectral.order import NEIGHBOR_ORDER

GRAPH_TOLERANCE = 0.1
"""Residuals of eigenpairs, as a share of the eigengap."""

DEFAULT_WEIGHTS = "rbf"
USUAL_NEIGHBORS = 10
"""The default of n_neighbors: with fewer rows, all of them are neighbours."""

BYTES_PER_NEIGHBOR = 120
"""Of a graph while it is made, for every row and neighbour."""


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


class NeighborFit:
    """The fitted graph: parts with their columns of the embedding, a rule for labels, and what new rows need.

    The columns of a part are √S normalised and the leading eigenvectors of its own cut, zero outside it: at order 2,
    eigenvectors of the whole graph. Parts are found, not iterated for. In the embedding they are turned so that the
    first column is √S of all rows.
    """

    def __init__(
        self, connected: Connected, vertices: Vertices, parts: list[Part], n_columns: int, order_reason: str
    ) -> None:
        self.gram, self.part_of = connected.gram, connected.joined.part_of
        self.usual_degree = connected.usual_degree
        self.vertices, self.parts = vertices, parts
        self.n_columns = n_columns
        self.order, self.order_reason = parts[0].cut.order, order_reason
        self.gamma = self.gram.gamma if self.gram.weights == "rbf" else None
        self.normalize = True
        self.assignment: Assignment | None = None
        self.rows: FloatArray = np.zeros((vertices.n, n_columns))
        first = 0
        for part, width in zip(parts, self._shares(n_columns), strict=True):
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
    def search(self) -> str:
        """How neighbours were found."""
        index = self.gram.index
        return "the graph is given" if index is None else f"{index.search_} search for neighbours"

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
        return np.pad(found, (0, self.n_columns - 1 - len(found)))

    @property
    def n_passes(self) -> int:
        return max(p.cut.n_passes for p in self.parts)

    def assign(self, model: Any) -> Assignment:
        """Labels of the vertices."""
        self.normalize = scales_rows(model.row_normalize, model.assign_labels)
        cut = None
        if model.assign_labels == "kernel_kmeans":
            cut = self.parts[0].cut
            if len(self.parts) > 1:
                cut = NormalizedCut(self.gram, self.order, self.vertices.weights, row_numbers=self.vertices.numbers)
        rows = self._scaled(self.rows)
        if self.vertices.n <= model.n_clusters and cut is None:
            self.assignment = one_each(rows)
            return self.assignment
        self.assignment = assign_sampled(
            model.assign_labels,
            rows,
            self.vertices.weights,
            model.n_clusters,
            cut=cut,
            n_init=model.n_init,
            random_state=check_random(model.random_state),
            parts=self._parts(model.n_clusters),
        ).contiguous()
        return self.assignment

    def _parts(self, n_clusters: int) -> Parts | None:
        """Parts that no cluster spans, where there are columns enough to tell their clusters apart."""
        if len(self.parts) < 2 or self.n_columns < n_clusters:
            return None
        return Parts(self.part_of, tuple(self._shares(n_clusters)), np.arange(self.vertices.n))

    def _scaled(self, rows: FloatArray) -> FloatArray:
        return unit_rows(rows) if self.normalize else rows

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

    def labels(self, X: Rows, place: IntArray | None = None) -> IntArray:
        """The labels of any rows; ``place`` says which vertices they are, where that is known."""
        if self.assignment is None:
            raise ValueError("no labels have been assigned")
        place = self.find(X) if place is None else place
        out = self.assignment.labels[place]
        new = np.flatnonzero(place < 0)
        if len(new):
            K = self._similarities(X[new])
            rule = self.assignment.rule
            if isinstance(rule, KernelRule):
                out[new] = rule.labels_of(StoredCross(K))
            else:
                out[new] = rule.labels(self._scaled(self._extend(K)))
        return out

    def _similarities(self, X: Rows) -> Any:
        """κ(y, x) of new rows, a sparse (n_new, n) matrix.

        A row with hardly any similarity is tied to its nearest, as such training rows are, and brought to a usual
        degree, which at order 2 changes nothing, and at higher orders keeps it from drifting to the trivial axis.
        """
        index = self.gram.index
        if index is not None and sparse.issparse(X) != sparse.issparse(index.rows):
            X = X.toarray() if sparse.issparse(X) else sparse.csr_array(X)
        K: Any = self.gram.cross(X).K  # type: ignore[attr-defined]
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

    def _extend(self, K: Any) -> FloatArray:
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


def graph_bytes(model: Any, X: Rows, n_columns: int) -> int:
    """Memory of a graph while its neighbours are searched, or then while it is made, and of its eigenvectors."""
    n, d = int(X.shape[0]), int(X.shape[1])
    by_pairs = not (sparse.issparse(X) or uses_tree(n, d))
    search = search_bytes(n, d, model.n_jobs) if by_pairs else 0
    return max(search, BYTES_PER_NEIGHBOR * n * int(model.n_neighbors)) + 24 * 8 * n * (n_columns + 4)


def fit_neighbors(
    model: Any, X: Rows, weights: FloatArray, n_columns: int, n_clusters: int | None, progress: Progress
) -> NeighborFit:
    """The graph, its parts, and the eigenpairs of each.

    ``order="auto"`` is 2.1, and 2 where order 2.1 lifts an eigenvalue above 1. No cut has one (at order 2 none is): the
    shrunken degrees then set apart dense from sparse regions, by more than the eigengap of the clusters.
    """
    random = check_random(model.random_state)
    auto = model.order == "auto"
    order = NEIGHBOR_ORDER if auto else check_order(model.order)
    reason = "the rule for neighbour graphs" if auto else "as asked for"
    vertices = find_vertices(model, X, weights)
    if not vertices.given:
        warn_about_spread(X, getattr(model, "feature_names_in_", None))
    require(
        graph_bytes(model, vertices.data, n_columns),
        parse_memory_limit(model.memory_limit),
        f"affinity={model.affinity!r} for {vertices.n} distinct rows and {model.n_neighbors} neighbours",
        "raise memory_limit, lower n_neighbors, or use gram='nystroem' with affinity='rbf'.",
    )
    if model.n_neighbors > max(vertices.n, USUAL_NEIGHBORS):
        raise ParameterError(
            f"n_neighbors={model.n_neighbors} is more than the {vertices.n} distinct rows there are: use fewer, "
            f"such as {USUAL_NEIGHBORS}."
        )
    # The embedding's columns are all there is to tell parts apart by.
    most = min(n_clusters or n_columns, n_columns)
    graph = _make_graph(model, vertices, random, progress)
    connected = connect(graph, vertices.weights, n_clusters or n_columns, most)
    seed = int(random.randint(2**31))
    parts = _solve_parts(model, connected, vertices, order, n_columns, seed, progress)
    if auto and any((p.pairs.values > 1).any() for p in parts):
        reason = f"order {order:g} lifts an eigenvalue above 1, which no cut has: order 2 is taken"
        if progress.enabled:
            progress.say(reason)
        parts = _solve_parts(model, connected, vertices, 2.0, n_columns, seed, progress)
    for part in parts:
        warn_unless_converged(part.pairs)
    return NeighborFit(connected, vertices, parts, n_columns, reason)


def _solve_parts(
    model: Any,
    connected: Connected,
    vertices: Vertices,
    order: float,
    n_columns: int,
    seed: int,
    progress: Progress,
) -> list[Part]:
    """Every part with as many eigenpairs as it could get."""
    gram, joined = connected.gram, connected.joined
    n_parts = joined.n_parts
    parts = []
    for number in range(n_parts):
        members = np.flatnonzero(joined.part_of == number)
        K = gram.K if n_parts == 1 else gram.K[members][:, members]
        cut = NormalizedCut(
            SparseGram(K, n_jobs=model.n_jobs), order, vertices.weights[members], row_numbers=vertices.numbers[members]
        )
        if progress.enabled:
            progress.say(f"part {number + 1} of {n_parts}: {len(members)} rows, {K.nnz} similarities, order {order:g}")
        k = min(n_columns - n_parts, len(members) - 1) if joined.whole[number] else 0
        parts.append(Part(members, cut, _solve(model, cut, k, np.random.RandomState(seed), progress)))
    return parts


def _make_graph(model: Any, vertices: Vertices, random: np.random.RandomState, progress: Progress) -> NeighborGram:
    weights = DEFAULT_WEIGHTS if model.neighbor_weights == "auto" else model.neighbor_weights
    gamma = None if isinstance(model.gamma, str) else float(model.gamma)
    if vertices.given:
        return NeighborGram.from_graph(vertices.data, model.n_neighbors, weights, gamma, n_jobs=model.n_jobs)
    return NeighborGram.from_rows(
        vertices.data,
        model.n_neighbors,
        weights,
        gamma,
        n_jobs=model.n_jobs,
        tick=progress.tick if progress.enabled else None,
        random_state=random,
    )


def _solve(model: Any, cut: NormalizedCut, k: int, random: np.random.RandomState, progress: Progress) -> EigenResult:
    """The k leading eigenpairs of a part, to a share of the eigengap."""
    if k < 1:
        return EigenResult.none(cut.trivial)
    tol = GRAPH_TOLERANCE if isinstance(model.eigen_tol, str) else float(model.eigen_tol)
    if model.eigen_solver in (None, "auto", "amg"):
        return graph_eigenpairs(cut, k, tol=tol, max_iter=model.max_iter, random_state=random, report=progress.passed)
    return solve_cut(cut, k, SolverOptions(model.eigen_solver, tol, model.max_iter), random, progress)
