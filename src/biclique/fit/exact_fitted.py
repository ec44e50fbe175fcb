"""What a model keeps of an exact fit: labels and the embedding of rows, old and new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.fit.choose import Chosen, find_vertices
from biclique.fit.exact import CutEmbedding, ExactCuts, assign
from biclique.fit.fitted import Fitted, Training
from biclique.fit.settings import Settings
from biclique.gram.dense import StoredCross
from biclique.gram.operator import CrossGram, GramOperator, TrainedRows
from biclique.neighbors.index import nearest_row
from biclique.progress import Progress
from biclique.rows.array import RowSource, find_rows, known_or_new
from biclique.rows.checks import warn_about_spread
from biclique.runtime.arguments import fixed_seed
from biclique.runtime.namespace import PIECE_ROWS, moved, on_host, padded, to_host, unit_rows
from biclique.spectral.cut import Extension
from biclique.spectral.lloyd import NewRows
from biclique.spectral.rounding import Assignment, Rule, Seen


def fit_exact(settings: Settings, source: RowSource, progress: Progress) -> tuple[ExactFitted, Training]:
    """The cut of an exact K, and what all rows get."""
    seed = fixed_seed(settings.random_state)
    cuts = exact_cuts(settings, source, np.random.RandomState(seed), progress)
    found, assignment, chosen = cuts.run(seed)
    if settings.n_clusters is None:
        assignment = None
    elif assignment is None:
        assignment = assign(settings, found, settings.n_clusters, seed)
    fitted = ExactFitted.of(cuts, found, chosen, assignment)
    training = fitted.training(found, source.held, cuts.vertices.index, assignment)
    found.warn(settings, settings.n_groups)
    return fitted, training


def exact_cuts(settings: Settings, source: RowSource, random: np.random.RandomState, progress: Progress) -> ExactCuts:
    """K of all rows that count, on the host or on a device, ready to be cut."""
    if not settings.kernel.given and settings.kernel.euclidean:
        warn_about_spread(source.held, source.names)
    if source.device is not None:
        return ExactCuts.on_device(settings, source, random, progress)
    weights = np.ones(source.held.shape[0]) if source.weights is None else source.weights
    vertices = find_vertices(settings, source.held, weights)
    return ExactCuts.of_rows(settings, source, vertices, random, progress)


@dataclass(kw_only=True)
class ExactFitted(Fitted):
    """Training rows as new ones meet them, the closed form of the embedding, and the rule for labels."""

    extension: Extension
    rows: FloatArray  # (n_vertices, n_columns), the embedding; () where no row can be met again
    digests: np.ndarray  # of the vertices, ascending
    places: IntArray | None  # for a given matrix: the vertex of each digest
    kept: IntArray | None  # for a given matrix: the columns of vertices, where not all are
    trained: TrainedRows | None
    live: GramOperator | None = None
    """On a device: the operator, which a copy that was pickled goes on without, on the host."""
    table: IntArray | None = None  # (n_vertices,), labels

    @classmethod
    def of(cls, cuts: ExactCuts, found: CutEmbedding, chosen: Chosen, assignment: Assignment | None) -> ExactFitted:
        """What is kept of a fit."""
        vertices, gram = cuts.vertices, found.cut.gram
        digests, trained = vertices.digests, gram.training()
        if trained is None and cuts.settings.symmetric:
            digests = digests[:0]  # no rows can be met again: κ(y, y) is not known
        rows = found.rows if len(digests) or trained is None or vertices.given else found.rows[:0]
        fitted = cls(
            settings=cuts.settings,
            chosen=chosen,
            eigenvalues=found.eigenvalues,
            residuals=found.residuals,
            n_passes=found.cut.n_passes,
            extension=found.extension,
            rows=to_host(rows),
            digests=digests,
            places=vertices.places,
            kept=vertices.kept,
            trained=trained,
            live=None if on_host(gram.like) else gram,
        )
        if assignment is not None:
            fitted.table, fitted.rule = assignment.labels, assignment.rule
            fitted.seen = Seen.of(found.rows, assignment.labels, vertices.weights, found.eigenvalues)
        return fitted

    def training(self, found: CutEmbedding, X: Rows, index: IntArray, assignment: Assignment | None) -> Training:
        """What all rows X of the fit get; row i is vertex ``index[i]``."""
        n_jobs = self.settings.n_jobs
        embedding = known_or_new(to_host(found.rows), index, X, lambda new: self.extend(new, n_jobs))
        if assignment is None:
            return Training(self.chosen.n_rows, embedding)
        return Training(self.chosen.n_rows, embedding, self.labels_at(index, X, n_jobs), assignment.cut_history)

    def labels_at(self, place: IntArray, X: Rows, n_jobs: int | None) -> IntArray:
        """The labels of vertices ``place``, and of new rows of X where that is −1."""
        rule, table = self.known_rule(), cast("IntArray", self.table)
        return known_or_new(table, place, X, lambda new: self._new_labels(rule, table, new, n_jobs))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "extension": self.extension.to_host(), "live": None}

    @property
    def keeps_tensors(self) -> bool:
        return self.live is not None

    def match(self, X: Rows) -> Rows:
        """New rows in the form in which the training rows came, dense or sparse."""
        if self.trained is None or self.settings.kernel.given:
            return X  # a matrix
        if sparse.issparse(X) == sparse.issparse(self.trained.rows):
            return X
        return X.toarray() if sparse.issparse(X) else sparse.csr_array(X)

    def find(self, X: Rows) -> IntArray:
        """Which vertex every row is, −1 for none; in a given matrix, by its similarities to all rows."""
        found = find_rows(self.digests, X)
        return found if self.places is None else np.where(found < 0, -1, self.places[found])

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        X = self.match(X)
        return known_or_new(self.rows, self.find(X), X, lambda new: self.extend(new, n_jobs))

    def extend(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of new rows, by the closed form."""
        n_columns = len(self.eigenvalues) + 1
        found = [to_host(self.extension.embed(self.cross(rows, n_jobs))) for rows in self._pieces(X)]
        return padded(np.concatenate(found), n_columns) if found else np.empty((0, n_columns))

    def degrees(self, embedded: FloatArray) -> FloatArray:
        return self.extension.degrees(embedded[:, 0])

    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:
        X = self.match(X)
        return self.labels_at(self.find(X), X, n_jobs)

    def _new_labels(self, rule: Rule, table: IntArray, X: Rows, n_jobs: int | None) -> IntArray:
        out = [np.empty(0, dtype=np.intp)]
        for rows in self._pieces(X):
            found, seen = rule.of_new(self._new_rows(rows, n_jobs))
            labels, unseen = to_host(found), np.flatnonzero(~seen)
            if len(unseen) and self.trained is not None and not self.settings.kernel.given:
                labels[unseen] = table[self._nearest(self.trained, rows, unseen, n_jobs)]
            out.append(labels)
        return np.concatenate(out)

    def _pieces(self, X: Rows) -> Iterator[Rows]:
        """Rows in pieces whose similarities fit a device; on the host all at once."""
        step = X.shape[0] if self.live is None else PIECE_ROWS
        for top in range(0, X.shape[0], max(step, 1)):
            yield X[top : top + step]

    def _new_rows(self, X: Rows, n_jobs: int | None) -> NewRows:
        """New rows as rules for labels see them."""

        def embedded() -> tuple[FloatArray, np.ndarray]:
            rows, seen = self.extension.embed_seen(self.cross(X, n_jobs))
            rows = padded(to_host(rows), len(self.eigenvalues) + 1)
            return unit_rows(rows) if self.settings.scales_rows else rows, seen

        return NewRows(lambda: self.cross(X, n_jobs), embedded)

    def _nearest(self, trained: TrainedRows, X: Rows, unseen: IntArray, n_jobs: int | None) -> IntArray:
        """The vertex that is nearest to some rows, by distance."""
        asked, rows = trained.hold(X[unseen] if on_host(X) else X[moved(unseen, X)]), trained.rows
        if not sparse.issparse(rows):
            asked, rows = to_host(asked), to_host(rows)
        return nearest_row(self.chosen.kernel, asked, rows, n_jobs)

    def cross(self, X: Rows, n_jobs: int | None) -> CrossGram:
        """New rows against the vertices."""
        if self.live is not None:
            return self.live.cross(X)
        if self.trained is not None:
            return self.trained.cross(X, n_jobs=n_jobs)
        cross = StoredCross(X if self.kept is None else X[:, self.kept], n_jobs=n_jobs)
        if self.settings.symmetric:
            cross.diagonal()  # which is needed, and says that it is not known
        return cross
