"""What is computed anew on some rows: their similarities, clusters at other orders, and stability."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, confusion_matrix

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import BicliqueError
from biclique.fit.choose import find_vertices
from biclique.fit.exact import ExactCuts
from biclique.progress import Progress
from biclique.report.rows import Subject
from biclique.rows.array import ArrayRows
from biclique.runtime.threads import single_threaded_blas

SAMPLE_ROWS = 1_000
"""Rows that are clustered anew."""

SAMPLE_LEAST = 20
"""Rows of every cluster that are clustered anew at least."""

ORDERS = (2.0, 2.1, 2.5, 3.0, 4.0, 8.0, 32.0, np.inf)
"""Orders that the slider shows, besides the model's own."""

CELLS = 160
"""Rows and columns of the picture of similarities."""


@dataclass(frozen=True)
class Path:
    """The same rows clustered at several orders; clusters are numbered as the most similar ones of the model."""

    orders: list[float]
    labels: IntArray  # (orders, rows)
    agreement: list[float]  # with the model's labels: adjusted Rand index
    own: int  # the place of the model's own order


@dataclass(frozen=True)
class Sampled:
    """What some rows gave; None with a reason in words."""

    cells: FloatArray | None = None  # (m, m), means of K over groups of rows of one cluster, ordered by cluster
    clusters: IntArray | None = None  # (m,), of every group
    path: Path | None = None
    reason: str = ""


def sample_again(subject: Subject, rows: Rows, labels: IntArray, *, path: bool = True) -> Sampled:
    """Similarities, and for a kernel a path over orders."""
    if len(labels) < 2:
        return Sampled(reason="there is only one row")
    settings, k = subject.fitted.settings, subject.n_clusters
    try:
        # Warnings of fits that nobody asked for by themselves are not shown.
        with single_threaded_blas(), warnings.catch_warnings(action="ignore"):
            cuts, index = _cuts(subject, rows)
            cells, clusters = groups_of(labels, k, CELLS)
            means = np.zeros((cuts.gram.n, len(cells)))
            for place, members in enumerate(cells):
                np.add.at(means[:, place], index[members], 1 / len(members))
            similarities = means.T @ cuts.gram.matmat(means)
            ordered = not (settings.kernel.neighborhoods or settings.kernel.neighbors or settings.symmetric)
            if not path or not ordered or k < 2 or cuts.gram.n <= k:
                return Sampled(similarities, clusters)
            return Sampled(similarities, clusters, _path(subject, cuts, index, labels))
    except (BicliqueError, ValueError, np.linalg.LinAlgError) as error:
        return Sampled(reason=f"these rows alone cannot be clustered: {error}")


def _cuts(subject: Subject, rows: Rows) -> tuple[ExactCuts, IntArray]:
    """K of the rows with the bandwidth of the fit, and the place of every row in it."""
    settings, chosen = subject.fitted.settings, subject.fitted.chosen
    settings = replace(
        settings,
        kernel=settings.kernel if chosen.gamma is None else replace(settings.kernel, gamma=chosen.gamma),
        n_columns=subject.n_clusters if settings.n_columns == settings.n_groups else settings.n_columns,
        modelling="biclique",
        order=2.0,
        gram="auto",
        rank="auto",
        device=None,
        precision="auto",
        n_clusters=subject.n_clusters,
        random_state=0,
    )
    source = ArrayRows(rows, np.ones(rows.shape[0]))
    source.columns = chosen.columns
    vertices = find_vertices(settings, source)
    orders, random = sorted({*ORDERS, chosen.order}), np.random.RandomState(0)
    return ExactCuts.of_rows(settings, source, vertices, random, Progress(False), orders), vertices.index


def _path(subject: Subject, cuts: ExactCuts, index: IntArray, labels: IntArray) -> Path:
    found, matched = None, []
    for order in cuts.orders:
        found = cuts.at(order, found)
        own = cuts.assign(found).labels[index]
        shared = confusion_matrix(own, labels, labels=np.arange(subject.n_clusters))
        matched.append(np.asarray(linear_sum_assignment(-shared)[1])[own])
    agreed = [float(adjusted_rand_score(labels, one)) for one in matched]
    return Path(list(cuts.orders), np.array(matched), agreed, cuts.orders.index(subject.fitted.chosen.order))


def groups_of(labels: IntArray, n_clusters: int, most: int) -> tuple[list[IntArray], IntArray]:
    """Row numbers in at most about ``most`` groups, by cluster, none of two clusters; and their clusters.

    If there are more than ``most`` clusters, these are the largest ones.
    """
    cells, clusters = [], []
    for cluster in np.sort(np.argsort(-np.bincount(labels, minlength=n_clusters), kind="stable")[:most]):
        own = np.flatnonzero(labels == cluster)
        if len(own):
            count = min(len(own), max(1, round(most * len(own) / len(labels))))
            cells += np.array_split(own, count)
            clusters += [cluster] * count
    return cells, np.array(clusters, dtype=np.intp)
