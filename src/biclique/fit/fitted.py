"""Fitted: what a model keeps of a fit, and what the rows of the fit got."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.fit.choose import Chosen
from biclique.fit.settings import Settings
from biclique.gram.operator import CrossGram
from biclique.kernels.kernel import Kernel
from biclique.rows.array import find_rows, known_or_new, with_zeros
from biclique.runtime.namespace import padded, to_host, unit_rows
from biclique.spectral.lloyd import NewRows
from biclique.spectral.membership import Seen
from biclique.spectral.rounding import Rule


class Points(ABC):
    """The embedding as a function of a point. It can be pickled."""

    keeps_tensors: bool = False
    """Whether new rows that are a tensor are embedded on their device."""

    @abstractmethod
    def embed_seen(self, X: Rows, n_jobs: int | None = None) -> tuple[FloatArray, np.ndarray]:
        """The embedding of rows, (n, 1 + k), and, on the host, which of them are like any training row."""

    @abstractmethod
    def degrees(self, trivial: FloatArray) -> FloatArray:
        """δ of rows, from their trivial column."""

    def cross(self, X: Rows, n_jobs: int | None = None) -> CrossGram:  # noqa: ARG002
        """New rows against the training rows, for rules that need more than the embedding."""
        raise TypeError("a factored K is not multiplied by new rows")

    def match(self, X: Rows) -> Rows:
        """New rows in the form in which the training rows came."""
        return X

    @abstractmethod
    def nearest(self, X: Rows, unseen: IntArray, kernel: Kernel | None, n_jobs: int | None) -> IntArray | None:
        """Which known row is nearest to some rows; None if distances are not known."""

    def scaled(self, rows: FloatArray, unit: bool) -> FloatArray:
        """Rows of the embedding as rules for labels take them: of length 1, or as they are."""
        return unit_rows(rows) if unit else rows

    def for_rows(self) -> Self:
        """The same, as small as can be."""
        return self


@dataclass(frozen=True)
class Known:
    """Rows whose results are looked up: the vertices of an exact fit. Of landmarks, labels alone are known."""

    digests: np.ndarray = field(default_factory=lambda: np.empty(0))  # ascending
    places: IntArray | None = None  # for a given matrix: the vertex of each digest
    rows: FloatArray = field(default_factory=lambda: np.empty((0, 0)))  # the embedding; () if none can be met again
    labels: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    of_graph: bool = False
    """Whether rows are those of a graph of distances."""

    def find(self, X: Rows) -> IntArray:
        """Which vertex every row is, −1 for none; in a given matrix, by its similarities to all rows."""
        found = find_rows(self.digests, with_zeros(X) if self.of_graph else X)
        return found if self.places is None else np.where(found < 0, -1, self.places[found])


@dataclass(kw_only=True)
class Fitted:
    """A fitted embedding, and the rule for labels if labels were asked for: arrays, numbers and kernels."""

    settings: Settings
    """What was asked for."""
    chosen: Chosen
    """What was chosen, and why."""
    eigenvalues: FloatArray  # (n_columns − 1,), of B, descending; zero if there are no more
    residuals: FloatArray  # (n_columns − 1,)
    n_passes: int
    """Over K, or over the rows of a factored one."""
    points: Points
    known: Known = field(default_factory=Known)
    rule: Rule | None = None
    seen: Seen | None = None
    """Training rows for probabilities, if labels were asked for."""
    unlike: int | None = None
    """The label of rows that are like no training row; None for that of the nearest."""

    def for_rows(self) -> Self:
        """The same, as small as can be, to embed and label rows elsewhere."""
        return replace(self, points=self.points.for_rows(), seen=None)

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of any rows, (n, n_columns), on the host; a training row gets its own row back."""
        X = self.points.match(X)
        place = self.known.find(X)
        return known_or_new(self.known.rows, place, X, lambda new: to_host(self.embed_new(new, n_jobs)[0]))

    def embed_new(self, X: Rows, n_jobs: int | None) -> tuple[FloatArray, np.ndarray]:
        """The embedding of new rows, on their device, and which of them are like any training row."""
        rows, seen = self.points.embed_seen(X, n_jobs)
        return padded(rows, self.settings.n_columns), seen

    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:
        """The labels of any rows; a row that is like no training row takes the label of its nearest."""
        X = self.points.match(X)
        return self.labels_at(self.known.find(X), X, n_jobs)

    def labels_at(self, place: IntArray, X: Rows, n_jobs: int | None) -> IntArray:
        """The labels of known rows ``place``, and of new rows of X where that is −1."""
        return known_or_new(self.known.labels, place, X, lambda new: self.labels_of_new(new, n_jobs))

    def labels_of_new(
        self, X: Rows, n_jobs: int | None, embedded: tuple[FloatArray, np.ndarray] | None = None
    ) -> IntArray:
        """The labels of new rows; ``embedded`` is what ``embed_new`` gives for them, if that was asked for already."""
        if self.rule is None:
            raise ValueError("no labels have been assigned")

        def scaled() -> tuple[FloatArray, np.ndarray]:
            rows, seen = embedded or self.embed_new(X, n_jobs)
            return self.points.scaled(rows, self.settings.scales_rows), seen

        found, seen = self.rule.of_new(NewRows(lambda: self.points.cross(X, n_jobs), scaled))
        labels, unseen = to_host(found), np.flatnonzero(~seen)
        if self.unlike is not None:
            labels[unseen] = self.unlike
        elif len(unseen) and (nearest := self.points.nearest(X, unseen, self.chosen.kernel, n_jobs)) is not None:
            labels[unseen] = self.known.labels[nearest]
        return labels

    def degrees(self, embedded: FloatArray) -> FloatArray:
        """δ of rows, from their embedding (n, n_columns): similarity to all training rows; NaN at order infinity."""
        return self.points.degrees(embedded[:, 0])


@dataclass(frozen=True)
class Training:
    """What the rows of the fit got. Of Dask's rows, embedding and labels are lazy collections."""

    n_distinct: int
    embedding: FloatArray  # (n, n_columns)
    labels: IntArray | None = None
    cut_history: FloatArray | None = None
    sizes: tuple[int, ...] | None = None
    """Rows of the clusters that have any, if labels are lazy."""
