"""The fit of a neighbour graph: its connected parts come first, then the cut of each."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.checks import check_random
from biclique.cluster._checks import warn_about_spread
from biclique.cluster._prepare import Vertices, choose_order, find_vertices
from biclique.cluster._rows import find_rows
from biclique.cluster._spectrum import SolverOptions, solve_cut, unit_rows, warn_unless_converged
from biclique.exceptions import DisconnectedWarning
from biclique.gram import NeighborGram, SparseGram, StoredCross, components, parse_memory_limit, require
from biclique.progress import Progress
from biclique.spectral import (
    Assignment,
    EigenResult,
    Extension,
    KernelRule,
    NormalizedCut,
    assign_sampled,
    graph_eigenpairs,
)

GRAPH_TOLERANCE = 0.1
"""Residuals of eigenpairs, as a share of the eigengap."""

DUST = 0.01
"""A part with fewer rows than this share of an average cluster is linked to its nearest rows, not left by itself."""

DEFAULT_WEIGHTS = "connectivity"
BYTES_PER_NEIGHBOR = 120
"""Of a graph while it is made, for every row and neighbour."""


@dataclass
class Part:
    """A connected part of the graph: its cut and eigenpairs, the columns and clusters it has been given."""

    members: IntArray  # vertices, ascending
    cut: NormalizedCut
    pairs: EigenResult
    columns: range = range(1)
    labels: range = range(1)
    extension: Extension | None = None
    rows: FloatArray = field(default_factory=lambda: np.empty((0, 0)))  # (members, columns)
    assignment: Assignment | None = None

    def embed(self) -> None:
        """The extension and the rows of as many columns as the part has."""
        kept = len(self.columns) - 1
        p = self.pairs
        pairs = EigenResult(
            p.values[:kept],
            p.vectors[:, :kept],
            p.images[:, :kept],
            p.residuals[:kept],
            p.n_passes,
            p.converged,
            p.target,
        )
        self.extension, self.rows = Extension.fit(self.cut, pairs, float(np.finfo(float).eps))


class NeighborFit:
    """The fitted graph: parts, each with its embedding and its rule for labels, and what new rows need."""

    def __init__(self, gram: NeighborGram, vertices: Vertices, order: float, n_columns: int) -> None:
        self.gram, self.vertices, self.order = gram, vertices, order
        self.n_columns = n_columns
        self.gamma = gram.gamma
        self.parts: list[Part] = []
        self.part_of: IntArray = np.zeros(vertices.n, dtype=np.intp)
        self.normalize = True
        self.rows: FloatArray = np.zeros((vertices.n, n_columns))
        self.vertex_labels: IntArray = np.zeros(vertices.n, dtype=np.intp)

    @property
    def search(self) -> str:
        """How neighbours were found."""
        index = self.gram.index
        return "the graph is given" if index is None else f"{index.search_} search for neighbours"

    @property
    def eigenvalues(self) -> FloatArray:
        """1 for every part beyond the first, then those of the parts' own cuts, descending; zero where missing."""
        inner = np.concatenate([p.pairs.values[: len(p.columns) - 1] for p in self.parts])
        found = np.concatenate([np.ones(len(self.parts) - 1), np.sort(inner)[::-1]])
        return self._padded(found)

    @property
    def residuals(self) -> FloatArray:
        inner = [p.pairs.residuals[: len(p.columns) - 1] for p in self.parts]
        order = np.argsort(-np.concatenate([p.pairs.values[: len(p.columns) - 1] for p in self.parts]), kind="stable")
        return self._padded(np.concatenate([np.zeros(len(self.parts) - 1), np.concatenate(inner)[order]]))

    def _padded(self, values: FloatArray) -> FloatArray:
        return np.pad(values[: self.n_columns - 1], (0, max(self.n_columns - 1 - len(values), 0)))

    @property
    def n_passes(self) -> int:
        return max(p.cut.n_passes for p in self.parts)

    def assign(self, model: Any) -> None:
        """Labels of every part by itself."""
        self.normalize = model.row_normalize is not False
        for part in self.parts:
            if len(part.labels) > 1:
                part.assignment = assign_sampled(
                    model.assign_labels,
                    self._scaled(part.rows),
                    part.cut.weights,
                    len(part.labels),
                    cut=part.cut,
                    n_init=model.n_init,
                    random_state=check_random(model.random_state),
                )
                self.vertex_labels[part.members] = part.labels.start + part.assignment.labels
            else:
                self.vertex_labels[part.members] = part.labels.start
        # An assigner may leave a cluster empty: labels have no gaps.
        found, self.vertex_labels = np.unique(self.vertex_labels, return_inverse=True)
        self.renumber = np.searchsorted(found, np.arange(max(model.n_clusters, int(found.max()) + 1)))

    def _scaled(self, rows: FloatArray) -> FloatArray:
        return unit_rows(rows) if self.normalize else rows

    # New rows

    def find(self, X: Rows) -> IntArray:
        """Which vertex every row is, −1 where none; rows of a given graph are never known."""
        return np.full(X.shape[0], -1) if self.vertices.given else find_rows(self.vertices.digests, X)

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:  # noqa: ARG002
        """The embedding of any rows."""
        place = self.find(X)
        out = self.rows[place]
        new = np.flatnonzero(place < 0)
        for part, rows, cross in self._crosses(X, new):
            out[rows] = 0.0
            out[np.ix_(rows, np.asarray(part.columns))] = part.extension.embed(cross)
        return out

    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:
        """The labels of any rows."""
        return self.labels_of(X, self.find(X), n_jobs)

    def labels_of(self, X: Rows, place: IntArray, n_jobs: int | None) -> IntArray:  # noqa: ARG002
        """The labels of rows that are vertices ``place``, −1 for new rows."""
        out = self.vertex_labels[place]
        for part, rows, cross in self._crosses(X, np.flatnonzero(place < 0)):
            labels = np.zeros(len(rows), dtype=np.intp)
            if part.assignment is not None:
                rule = part.assignment.rule
                if isinstance(rule, KernelRule):
                    labels = rule.labels_of(cross)
                else:
                    labels = rule.labels(self._scaled(part.extension.embed(cross)))
            out[rows] = self.renumber[part.labels.start + labels]
        return out

    def _crosses(self, X: Rows, new: IntArray) -> Any:
        """New rows by the part that they are most similar to, with their similarities to its rows."""
        if not len(new):
            return
        K: Any = self.gram.cross(X[new]).K  # type: ignore[attr-defined]
        indicator = sparse.csr_array(
            (np.ones(self.vertices.n), (np.arange(self.vertices.n), self.part_of)),
            shape=(self.vertices.n, len(self.parts)),
        )
        nearest = np.asarray((K @ indicator).toarray().argmax(axis=1))
        for number, part in enumerate(self.parts):
            chosen = np.flatnonzero(nearest == number)
            if len(chosen):
                yield part, new[chosen], StoredCross(K[chosen][:, part.members], n_jobs=self.gram.n_jobs)


def graph_bytes(n: int, n_neighbors: int, n_columns: int) -> int:
    """Memory of a graph while it is made, and of its eigenvectors."""
    return BYTES_PER_NEIGHBOR * n * n_neighbors + 24 * 8 * n * (n_columns + 4)


def fit_neighbors(
    model: Any, X: Rows, weights: FloatArray, n_columns: int, n_clusters: int, progress: Progress
) -> NeighborFit:
    """The graph, its parts, and the eigenpairs of each."""
    random = check_random(model.random_state)
    order = choose_order(model)
    vertices = find_vertices(model, X, weights)
    if not vertices.given:
        warn_about_spread(X, getattr(model, "feature_names_in_", None))
    require(
        graph_bytes(vertices.n, model.n_neighbors, n_columns),
        parse_memory_limit(model.memory_limit),
        f"affinity={model.affinity!r} for {vertices.n} distinct rows and {model.n_neighbors} neighbours",
        "raise memory_limit, lower n_neighbors, or use gram='nystroem' with affinity='rbf'.",
    )
    gram = _make_graph(model, vertices, random, progress)
    gram, part_of = _connect(gram, n_clusters)
    fitted = NeighborFit(gram, vertices, order, n_columns)
    fitted.part_of = part_of
    n_parts = int(part_of.max()) + 1
    wanted = max(n_columns, n_clusters) - n_parts
    for number in range(n_parts):
        members = np.flatnonzero(part_of == number)
        K = gram.K if n_parts == 1 else gram.K[members][:, members]
        cut = NormalizedCut(
            SparseGram(K, n_jobs=model.n_jobs), order, vertices.weights[members], row_numbers=vertices.numbers[members]
        )
        if progress.enabled:
            progress.say(f"part {number + 1} of {n_parts}: {len(members)} rows, {K.nnz} similarities")
        pairs = _solve(model, cut, min(wanted, len(members) - 1), random, progress)
        fitted.parts.append(Part(members, cut, pairs))
    _share_out(fitted, n_columns, n_clusters)
    return fitted


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


def _connect(gram: NeighborGram, n_clusters: int) -> tuple[NeighborGram, IntArray]:
    """The graph with at most as many parts as clusters, none of them dust; and the part of every vertex."""
    part_of = components(gram.K)
    sizes = np.sort(np.bincount(part_of))[::-1]
    dust = int(DUST * gram.n / n_clusters)
    if len(sizes) > n_clusters or sizes[-1] < dust:
        if gram.index is None:
            return gram, _grouped(part_of, n_clusters)
        before = sizes
        while len(sizes) > n_clusters or sizes[-1] < dust:
            beyond = int(sizes[n_clusters]) + 1 if len(sizes) > n_clusters else 0
            gram = gram.linked(max(dust, beyond))
            part_of = components(gram.K)
            sizes = np.sort(np.bincount(part_of))[::-1]
        _warn_about_links(before, sizes, gram.n)
    return gram, part_of


def _grouped(part_of: IntArray, n_groups: int) -> IntArray:
    """Parts of a given graph, put together whole: the largest first, each into the smallest group."""
    sizes = np.bincount(part_of)
    if len(sizes) <= n_groups:
        return part_of
    totals, group = np.zeros(n_groups), np.empty(len(sizes), dtype=np.intp)
    for part in np.argsort(-sizes, kind="stable"):
        group[part] = int(np.argmin(totals))
        totals[group[part]] += sizes[part]
    warnings.warn(
        f"the graph falls into {len(sizes)} connected parts, more than n_clusters={n_groups}: they are grouped whole, "
        "by size, since nothing tells which belong together. Give a graph with more neighbours.",
        DisconnectedWarning,
        stacklevel=6,
    )
    return group[part_of]


def _warn_about_links(before: IntArray, after: IntArray, n: int) -> None:
    shown = ", ".join(map(str, before[:5])) + (", …" if len(before) > 5 else "")
    left = "one" if len(after) == 1 else str(len(after))
    warnings.warn(
        f"the neighbour graph falls into {len(before)} connected parts ({shown} of {n} rows): those too small "
        f"for a cluster, or too many, were linked to their nearest rows outside, {left} left. More n_neighbors would "
        "connect them too.",
        DisconnectedWarning,
        stacklevel=6,
    )


def _solve(model: Any, cut: NormalizedCut, k: int, random: np.random.RandomState, progress: Progress) -> EigenResult:
    """The k leading eigenpairs of a part, to a share of the eigengap."""
    if k < 1:
        empty = np.empty((cut.shape[0], 0))
        return EigenResult(np.empty(0), empty, empty, np.empty(0), 0, True, 0.0)
    tol = GRAPH_TOLERANCE if isinstance(model.eigen_tol, str) else float(model.eigen_tol)
    if model.eigen_solver in (None, "auto", "amg"):
        pairs = graph_eigenpairs(cut, k, tol=tol, max_iter=model.max_iter, random_state=random, report=progress.passed)
    else:
        options = SolverOptions(model.eigen_solver, tol, model.max_iter)
        pairs = solve_cut(cut, k, options, random, progress)
    warn_unless_converged(pairs, stacklevel=7)
    return pairs


def _share_out(fitted: NeighborFit, n_columns: int, n_clusters: int) -> None:
    """Columns and clusters of every part: one each, and the rest by the largest eigenvalues of all parts."""
    parts = fitted.parts
    columns, labels = _shares(parts, n_columns), _shares(parts, n_clusters)
    at = first = 0
    for part, width, clusters in zip(parts, columns, labels, strict=True):
        part.columns, part.labels = range(at, at + width), range(first, first + clusters)
        at, first = at + width, first + clusters
        part.embed()
        shown = part.columns[: max(n_columns - part.columns.start, 0)]
        fitted.rows[np.ix_(part.members, np.asarray(shown, dtype=np.intp))] = part.rows[:, : len(shown)]


def _shares(parts: list[Part], total: int) -> list[int]:
    """How many of ``total`` each part gets."""
    shares = [1] * len(parts)
    pairs = [(-float(value), number) for number, part in enumerate(parts) for value in part.pairs.values]
    for _, number in sorted(pairs)[: max(total - len(parts), 0)]:
        shares[number] += 1
    return shares
