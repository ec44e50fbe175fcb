"""Every row, looked at once: its label, how sure that is, and which rows are drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.fit.fitted import Fitted
from biclique.neighbors.index import members_of
from biclique.report.shown_columns import PIECE, Sums
from biclique.runtime.namespace import on_host, to_host, unit_rows
from biclique.selection import CountResult

MOST_POINTS = 20_000
"""Points that are drawn."""

LEAST_POINTS = 200
"""Points of every cluster that are drawn at least, if it has them."""

UNSURE = 0.5
"""A row fits nowhere well if its best probability is below this."""

FAINT = 0.1
"""A row fits nowhere well if its degree is below this share of its cluster's median."""

HARD = 0.1
"""Two clusters are hard to tell apart if this share of their rows is expected to belong to the other one."""


@dataclass(frozen=True)
class Subject:
    """What a report asks of a fitted model."""

    kind: str  # the name of its class
    parameters: Mapping[str, object]  # those that are not the defaults
    fitted: Fitted
    n_clusters: int
    names: Sequence[str] | None  # of the columns of the fit
    of_rows: Callable[[Any, Callable[[Rows], Any]], list[Any]]
    """A function of every piece of X, which is read and checked as for ``predict``."""
    stability: Callable[[Rows, IntArray, int], FloatArray]
    """``cluster_stability`` of some rows with their labels, by so many halves."""
    counted: CountResult | None = None
    n_jobs: int | None = None

    @property
    def given(self) -> bool:
        """Whether X is a matrix of similarities or distances."""
        return self.fitted.settings.kernel.given

    @property
    def asked(self) -> object:
        """The number of clusters that was asked for."""
        asked = self.parameters.get("n_clusters", self.n_clusters)
        return asked if self.counted is None else self.n_clusters


@dataclass(frozen=True)
class Facts:
    """What is known of every row, and sums over rows."""

    labels: IntArray  # (n,)
    best: FloatArray  # (n,), the probability of the label; float32
    degrees: FloatArray  # (n,), float32; not a number if they are not known
    mixed: FloatArray  # (k, k): sum over the rows of a cluster of the probability of another

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @cached_property
    def sizes(self) -> IntArray:
        return np.bincount(self.labels, minlength=len(self.mixed))

    @cached_property
    def sure(self) -> FloatArray:
        """The mean probability of every cluster's rows, (k,)."""
        return np.asarray(np.bincount(self.labels, self.best, len(self.mixed)) / np.maximum(self.sizes, 1))

    @cached_property
    def faint(self) -> np.ndarray:
        """Rows whose degree is below a tenth of their cluster's median; none if degrees are not known."""
        out = np.zeros(self.n_rows, dtype=bool)
        for own in members_of(self.labels):
            if len(own) and not np.isnan(self.degrees[own]).any():
                out[own] = self.degrees[own] < FAINT * np.median(self.degrees[own])
        return out

    @cached_property
    def nowhere(self) -> np.ndarray:
        """Rows that fit nowhere well."""
        return np.asarray((self.best < UNSURE) | self.faint)

    @property
    def overlap(self) -> FloatArray:
        """Of the rows of two clusters, the share that is expected to belong to the other one, (k, k)."""
        found = (self.mixed + self.mixed.T) / np.maximum(self.sizes[:, None] + self.sizes, 1)
        np.fill_diagonal(found, 0.0)
        return np.asarray(found)

    def hard_pairs(self) -> list[tuple[int, int, float]]:
        """Pairs of clusters that are hard to tell apart, the worst first."""
        overlap = self.overlap
        pairs = np.argwhere(np.triu(overlap >= HARD)).tolist()
        return sorted(((a, b, float(overlap[a, b])) for a, b in pairs), key=lambda pair: -pair[2])


def look(subject: Subject, X: Any, sums: Sums | None) -> Facts:
    """One pass over the rows; ``sums`` adds up the columns of X, if those are to be shown."""

    def of_rows(rows: Rows) -> list[Facts]:
        return [_look(subject, rows[top : top + PIECE], sums) for top in range(0, rows.shape[0], PIECE)]

    found = list(chain.from_iterable(subject.of_rows(X, of_rows)))
    labels, best, degrees = zip(*((one.labels, one.best, one.degrees) for one in found), strict=True)
    mixed = np.sum([one.mixed for one in found], axis=0)
    return Facts(np.concatenate(labels), np.concatenate(best), np.concatenate(degrees), mixed)


def _look(subject: Subject, rows: Rows, sums: Sums | None) -> Facts:
    fitted, k = subject.fitted, subject.n_clusters
    embedded = fitted.embed(rows, subject.n_jobs)
    labels = fitted.labels(rows, subject.n_jobs)
    mixed = np.zeros((k, k))
    best: FloatArray = np.ones(len(labels))
    if fitted.seen is not None:
        probabilities = fitted.seen.probabilities(embedded, labels)
        inside = sparse.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))), shape=(k, len(labels)))
        mixed[:, : probabilities.shape[1]] = inside @ probabilities
        best = np.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
    if sums is not None:
        sums.add(rows if on_host(rows) else to_host(rows), labels)
    return Facts(labels, best.astype(np.float32), fitted.degrees(embedded).astype(np.float32), mixed)


def thinned(labels: IntArray, n_clusters: int, most: int, least: int, random: np.random.RandomState) -> IntArray:
    """Numbers of at most ``most`` rows, ascending: of every cluster min(size, least), the others at random.

    If there are more clusters than most/least, of every cluster most/n_clusters rows. If there are more clusters than
    ``most``, one row of so many of them.
    """
    n, sizes = len(labels), np.bincount(labels, minlength=n_clusters)
    if n <= most:
        return np.arange(n)
    order, place = random.permutation(n), np.empty(n, dtype=np.intp)
    place[np.argsort(labels[order], kind="stable")] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    late = np.minimum(place, max(1, min(least, most // n_clusters)))  # its place in its cluster, as far as that counts
    return np.sort(order[np.argsort(late, kind="stable")[:most]])


def picked(subject: Subject, X: Any, chosen: IntArray) -> Rows:
    """The rows of X with these numbers, ascending, as the model reads them: another pass."""
    start = 0

    def of_rows(rows: Rows) -> Rows:
        nonlocal start
        own = chosen[np.searchsorted(chosen, start) : np.searchsorted(chosen, start + rows.shape[0])] - start
        start += rows.shape[0]
        return rows[own]

    pieces = subject.of_rows(X, of_rows)
    return sparse.vstack(pieces, format="csr") if sparse.issparse(pieces[0]) else np.concatenate(pieces)


def typical_rows(embedding: FloatArray, labels: IntArray, n_clusters: int, per_cluster: int) -> list[IntArray]:
    """Rows nearest to the mean of their cluster among unit rows of the embedding, nearest first, distinct."""
    rows = unit_rows(embedding)
    out: list[IntArray] = []
    for cluster in range(n_clusters):
        own = np.flatnonzero(labels == cluster)
        distinct = np.sort(own[np.unique(rows[own], axis=0, return_index=True)[1]])
        mean = rows[own].sum(axis=0) / max(len(own), 1)
        # Rounded: rows that are equally near in truth come in the order of their numbers on every CPU.
        gaps = np.round(np.linalg.norm(rows[distinct] - mean, axis=1), 9)
        out.append(distinct[np.argsort(gaps, kind="stable")[:per_cluster]])
    return out
