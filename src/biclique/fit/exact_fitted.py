"""What an exact fit found, and what a model keeps of it: labels and the embedding of rows, old and new."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DisconnectedWarning, RankWarning, warn_user
from biclique.fit.holding import Prepared
from biclique.fit.plan import Plan, Result
from biclique.fit.settings import Settings
from biclique.gram import CrossGram, GramOperator, StoredCross, TrainedRows
from biclique.neighbors.index import NeighborIndex
from biclique.rows.array import find_rows, known_or_new
from biclique.runtime import check_random
from biclique.runtime.namespace import PIECE_ROWS, moved, on_host, padded, to_host, unit_rows
from biclique.spectral.assign import assign_in_place, one_each
from biclique.spectral.components import grouped
from biclique.spectral.cut import Extension, NormalizedCut
from biclique.spectral.lloyd import NewRows
from biclique.spectral.rounding import Assignment, LargestCoordinate, Rule, Seen, weighted_means
from biclique.spectral.solver import EigenResult, warn_about_clipped, warn_about_null_columns, warn_unless_converged


@dataclass(frozen=True)
class Solved:
    """A cut with its eigenpairs and the embedding made of them."""

    cut: NormalizedCut
    order: float
    pairs: EigenResult
    extension: Extension
    rows: FloatArray  # (n, n_columns), the trivial column first
    eigenvalues: FloatArray  # (n_columns − 1,)
    residuals: FloatArray
    parts: IntArray | None = None
    """The connected component of every row, if there are several."""
    assignment: Assignment | None = None
    """Its clusters, if these chose the order."""
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

    def warn(self, n_clusters: int) -> None:
        """Say what is wrong with connected components and eigenpairs."""
        n_columns, n, parts = self.plan.settings.n_columns, self.plan.rows, self.solved.parts
        if parts is not None and parts.max() + 1 > n_clusters:
            sizes = np.sort(np.bincount(parts, self.prepared.vertices.weights))[::-1]
            shown = ", ".join(f"{size:g}" for size in sizes[:5]) + (", …" if len(sizes) > 5 else "")
            warn_user(
                f"the graph has {len(sizes)} connected components ({shown} of {n} rows), more than the {n_clusters} "
                "clusters that were asked for: they are grouped whole, so that nothing is cut. Ask for more clusters, "
                "or connect the graph (a larger n_neighbors).",
                DisconnectedWarning,
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
            rows=to_host(solved.rows if len(digests) or trained is None or vertices.given else solved.rows[:0]),
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
        if self.trained is None or self.plan.settings.kernel.given:
            return X  # a matrix
        if sparse.issparse(X) == sparse.issparse(self.trained.rows):
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
            return unit_rows(rows) if self.plan.settings.scales_rows else rows, seen

        return NewRows(lambda: self.cross(X, n_jobs), embedded)

    def _nearest(self, X: Rows, unseen: IntArray, n_jobs: int | None) -> IntArray | None:
        """The vertex that is nearest to some rows, by distance; None for a given matrix, which has none."""
        if self.trained is None or self.plan.settings.kernel.given:
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
    if whole or X.shape[0] <= PIECE_ROWS:
        return [X] if X.shape[0] else []
    return [X[top : top + PIECE_ROWS] for top in range(0, X.shape[0], PIECE_ROWS)]


def assign_exact(settings: Settings, solved: Solved, n_clusters: int, rows: FloatArray | None = None) -> Assignment:
    """The labels of the vertices, by the assigner that is asked for; ``rows`` if they were scaled already."""
    assigning, weights = settings.assigning, solved.cut.weights
    if rows is None:
        rows = unit_rows(solved.rows) if settings.scales_rows else solved.rows
    n = rows.shape[0]
    if n <= n_clusters and on_host(rows):
        return one_each(rows, solved.cut if assigning.needs_cut else None).contiguous()
    if solved.parts is not None and solved.parts.max() + 1 >= n_clusters and not assigning.needs_cut:
        return _whole_parts(solved, solved.parts, n_clusters)
    return assign_in_place(
        assigning.assign_labels,
        rows,
        weights,
        n_clusters,
        cut=solved.cut,
        n_init=assigning.n_init,
        random_state=check_random(deepcopy(settings.random_state)),
    ).contiguous()


def _whole_parts(solved: Solved, parts: IntArray, n_clusters: int) -> Assignment:
    """At least k connected components: they are grouped whole, and new rows go where their direction is."""
    weights = solved.cut.weights
    labels = grouped(parts, weights * solved.cut.shrunken, n_clusters)[parts]
    means, _ = weighted_means(unit_rows(solved.rows), weights, labels, n_clusters)
    return Assignment(labels, LargestCoordinate(unit_rows(means).T, absolute=False)).contiguous()


def finish_exact(fit: ExactFit, X: Rows) -> Result:
    """What all rows X get."""
    settings, vertices, solved = fit.plan.settings, fit.prepared.vertices, fit.solved
    assignment, n_clusters = None, settings.assigning.n_clusters
    if n_clusters is not None:
        assignment = solved.assignment or assign_exact(settings, solved, n_clusters)
    fitted = ExactFitted.of(fit, assignment)
    everywhere = not on_host(solved.rows)  # no row was made one with another
    embedding = to_host(solved.rows) if everywhere else fitted.embed_vertices(X, vertices.index, settings.n_jobs)
    labels = None
    if assignment is not None:
        labels = assignment.labels if everywhere else fitted.labels_of_vertices(X, vertices.index, settings.n_jobs)
    history = None if assignment is None else assignment.cut_history
    return Result(fitted, fit.plan.rows, embedding, labels, history)
