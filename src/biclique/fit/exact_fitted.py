"""One exact fit, and its embedding as a function of a point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.fit.choose import Chosen, cut_and_label, find_vertices
from biclique.fit.exact import CutEmbedding, ExactCuts
from biclique.fit.fitted import Fitted, Known, Points, Training
from biclique.fit.settings import Settings
from biclique.gram.dense import StoredCross
from biclique.gram.operator import CrossGram, GramOperator, TrainedRows
from biclique.kernels.kernel import Kernel
from biclique.neighbors.index import nearest_row
from biclique.progress import Progress
from biclique.rows.array import RowSource, known_or_new
from biclique.rows.checks import warn_about_spread
from biclique.runtime.arguments import check_random
from biclique.runtime.namespace import PIECE_ROWS, moved, on_host, padded, to_host
from biclique.spectral.cut import Extension
from biclique.spectral.membership import Seen
from biclique.spectral.rounding import Assignment


@dataclass(frozen=True, kw_only=True)
class ExactPoints(Points):
    """The closed form of the embedding, from similarities to the training rows."""

    extension: Extension
    trained: TrainedRows | None = None
    """What new rows are compared with; None if X is a matrix of similarities to them."""
    given: bool = False
    """Whether new rows are those of a matrix."""
    kept: IntArray | None = None
    """The columns of vertices in such a matrix, if not all of them are."""
    symmetric: bool = False
    is_sparse: bool = False
    """Whether the training rows came as a sparse matrix."""
    live: GramOperator | None = None
    """On a device: the operator, which a copy that was pickled goes on without, on the host."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "extension": self.extension.to_host(), "live": None}

    @property
    def keeps_tensors(self) -> bool:  # type: ignore[override]
        return self.live is not None

    def match(self, X: Rows) -> Rows:
        if self.given or sparse.issparse(X) == self.is_sparse:
            return X
        return X.toarray() if sparse.issparse(X) else sparse.csr_array(X)

    def embed_seen(self, X: Rows, n_jobs: int | None = None) -> tuple[FloatArray, np.ndarray]:
        n = X.shape[0]
        step = n if self.live is None else PIECE_ROWS  # similarities of so many rows fit a device
        pieces = [X[top : top + step] for top in range(0, n, max(step, 1))] or [X]
        rows, seen = zip(*(self.extension.embed_seen(self.cross(piece, n_jobs)) for piece in pieces), strict=True)
        return np.concatenate([to_host(found) for found in rows]), np.concatenate(seen)

    def degrees(self, trivial: FloatArray) -> FloatArray:
        return self.extension.degrees(trivial)

    def nearest(self, X: Rows, unseen: IntArray, kernel: Kernel | None, n_jobs: int | None) -> IntArray | None:
        if self.trained is None or self.given:
            return None
        asked, rows = self.trained.hold(X[unseen] if on_host(X) else X[moved(unseen, X)]), self.trained.rows
        if not sparse.issparse(rows):
            asked, rows = to_host(asked), to_host(rows)
        return nearest_row(kernel, asked, rows, n_jobs)

    def cross(self, X: Rows, n_jobs: int | None = None) -> CrossGram:
        if self.live is not None:
            return self.live.cross(X)
        if self.trained is not None:
            return self.trained.cross(X, n_jobs=n_jobs)
        cross = StoredCross(X if self.kept is None else X[:, self.kept], n_jobs=n_jobs)
        if self.symmetric:
            cross.diagonal()  # which is needed, and says that it is not known
        return cross


Label = Callable[[CutEmbedding, ExactCuts], Assignment]
"""Labels of the vertices of a cut."""


def fit_exact(
    settings: Settings, source: RowSource, progress: Progress, label: Label | None = None
) -> tuple[Fitted, Training]:
    """The cut of an exact K, and what all rows get; ``label`` assigns in another way than the settings say."""
    settings = settings.seeded()
    random, n_jobs = check_random(settings.random_state), settings.n_jobs
    if not settings.kernel.given and settings.kernel.euclidean:
        warn_about_spread(source.held, source.names)
    cuts = ExactCuts.of_rows(settings, source, find_vertices(settings, source), random, progress)
    vertices = cuts.vertices
    found, assignment, order, reason = cut_and_label(settings, cuts.orders, vertices.weights, cuts.at, cuts.assign)
    if label is not None:
        assignment = label(found, cuts)
    gram, trained, digests = found.cut.gram, found.cut.gram.training(), vertices.digests
    if trained is None and settings.symmetric:
        digests = digests[:0]  # no rows can be met again: κ(y, y) is not known
    rows = to_host(found.rows)
    lookups = bool(len(digests)) or trained is None or vertices.given
    graph = settings.kernel.given and settings.kernel.neighbors
    points = ExactPoints(
        extension=found.extension,
        trained=trained,
        given=settings.kernel.given,
        kept=vertices.kept,
        symmetric=settings.symmetric,
        is_sparse=sparse.issparse(source.held),
        live=None if on_host(gram.like) else gram,
    )
    chosen = replace(cuts.chosen, order=order, order_reason=reason)
    fitted = fitted_cut(settings, chosen, found, points)
    fitted.known = Known(digests, vertices.places, rows if lookups else rows[:0], of_graph=graph)
    embedding = known_or_new(rows, vertices.index, source.held, lambda new: to_host(fitted.embed_new(new, n_jobs)[0]))
    training = Training(vertices.n, embedding)
    if assignment is not None:
        fitted.rule, fitted.known = assignment.rule, replace(fitted.known, labels=assignment.labels)
        short = settings.kernel.neighborhoods
        labels, values = assignment.labels, found.eigenvalues
        fitted.seen = Seen.of(found.rows, labels, vertices.weights, values, order, short_steps=short)
        labels = fitted.labels_at(vertices.index, source.held, n_jobs)
        training = replace(training, labels=labels, cut_history=assignment.cut_history)
    found.warn(settings)
    return fitted, training


def fitted_cut(settings: Settings, chosen: Chosen, found: CutEmbedding, points: Points) -> Fitted:
    """What a model keeps of a cut, before labels."""
    return Fitted(
        settings=settings,
        chosen=chosen,
        eigenvalues=found.eigenvalues,
        residuals=padded(found.pairs.residuals, settings.n_columns - 1),
        n_passes=found.cut.n_passes,
        points=points,
    )
