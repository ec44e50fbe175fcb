"""Ways of assigning labels, by name, and which rows they see: all, a sample, or rows on a device.

Every assigner takes the embedding's rows, their multiplicities and, with ``needs_cut``, the cut they come from. It
returns labels and a rule: a small object that gives the label of a single new row. k-means itself is in
``rounding.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import svd
from sklearn.utils import check_random_state

from biclique._typing import FloatArray, IntArray, RandomState
from biclique.runtime.namespace import float64, moved, on_host, rows_on_host, scalars, to_host
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.lloyd import KernelKMeansProblem, kernel_kmeans
from biclique.spectral.rounding import (
    SAMPLE_ROWS,
    Assignment,
    LargestCoordinate,
    NearestCentre,
    assigned,
    by_sorted_centres,
    cluster_sums,
    kmeans,
    sorted_order,
    spread_out_rows,
    weighted_means,
)

DISCRETIZE_STEPS = 100
"""Most rotations of ``discretize``."""

START_ROWS = 5_000
"""Rows of the sample in which k-means on a device starts: steps over all rows improve it."""

LLOYD_STEPS = 10
"""Steps over all rows on a device: centres of a sample are so near that few rows move after the first."""

MANY_ROWS = 200_000
"""With more rows an assigner is fitted on a sample of them, because every step of k-means takes long."""


def cluster_qr(embedding: FloatArray, weights: FloatArray, n_clusters: int, **_unused: RandomState) -> Assignment:
    """Pivoted QR (Damle, Minden and Ying): nothing random, no iterations.

    k rows that span the embedding best are picked, and the embedding is turned so that they lie along the
    axes; a row's label is its largest coordinate in absolute value.
    """
    columns = embedding[:, :n_clusters]
    rotation = _pivot_rotation(columns)
    return by_sorted_centres(LargestCoordinate(rotation, absolute=True), embedding, weights)


def discretize(embedding: FloatArray, weights: FloatArray, n_clusters: int, **_unused: RandomState) -> Assignment:
    """The rotation that brings unit rows closest to indicators (Yu and Shi), from ``cluster_qr``'s."""
    columns = embedding[:, :n_clusters]
    norms = np.linalg.norm(columns, axis=1, keepdims=True)
    rows = np.divide(columns, norms, out=np.zeros_like(columns), where=norms > 0)
    rotation = _pivot_rotation(rows)
    objective = -np.inf
    for _ in range(DISCRETIZE_STEPS):
        labels = np.argmax(rows @ rotation, axis=1)
        left, singular, right = svd(cluster_sums(rows, weights, labels, rows.shape[1])[:, 1:])
        if singular.sum() <= objective * (1 + 1e-12):
            break
        objective = singular.sum()
        rotation = right.T @ left.T
    # A row's length does not move its largest coordinate, so the rule needs no norms.
    return by_sorted_centres(LargestCoordinate(rotation, absolute=False), embedding, weights)


def lowered_cut(
    embedding: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    cut: NormalizedCut,
    order: IntArray | None = None,
    n_init: int | str,
    random_state: int | np.random.RandomState | None,
) -> Assignment:
    """k-means, then Lloyd steps of weighted kernel k-means, which lower the order-m cut itself: one pass a step."""
    random = check_random_state(random_state)
    place = np.arange(len(embedding)) if order is None else order
    start = kmeans(embedding[place], weights[place], n_clusters, n_init=n_init, random_state=random)
    # Where k-means finds fewer groups, so does this: splitting one could only raise the cut.
    found, labels = np.unique(start.labels[np.argsort(place)], return_inverse=True)
    result = kernel_kmeans(KernelKMeansProblem(cut), labels, len(found), random_state=random)
    return Assignment(result.labels, result.rule, result.history)


@dataclass(frozen=True)
class Assigner:
    """A way of assigning labels, and what it needs."""

    assign: Callable[..., Assignment]
    """Of rows, weights and a number of clusters, with ``n_init`` and ``random_state``.

    With ``cut`` and the ``order`` for starts if it needs the cut.
    """
    needs_cut: bool = False
    """Whether labels, also those of new rows, need passes over K."""
    scales_rows: bool = True
    """Whether ``row_normalize="auto"`` is True. Pivoted QR starts from the longest row: among rows of one length,
    rounding would choose it."""
    spans_columns: bool = False
    """Whether there are at most as many clusters as columns."""


ASSIGNERS: dict[str, Assigner] = {
    "kmeans": Assigner(kmeans),
    "cluster_qr": Assigner(cluster_qr, scales_rows=False, spans_columns=True),
    "discretize": Assigner(discretize, spans_columns=True),
    "kernel_kmeans": Assigner(lowered_cut, needs_cut=True),
}
"""The ways of assigning labels by name; validation and documentation read this table."""


def assign_sampled(
    name: str,
    rows: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    cut: NormalizedCut | None,
    n_init: int | str,
    random_state: int | np.random.RandomState | None,
    sample_rows: int = SAMPLE_ROWS,
    order: IntArray | None = None,
    scale: Callable[[FloatArray], FloatArray] = lambda rows: rows,
    label_all: bool = True,
) -> Assignment:
    """An assigner for many rows: it is fitted on a sample, then its rule labels every row once.

    Of rows on a device only the sample travels; their labels stay there. Draws and starts follow ``order``, by default
    that of the rows. ``scale`` is applied to the rows first. Without ``label_all`` only the sample is labelled.
    """
    random = check_random_state(random_state)
    options: dict[str, Any] = {"n_init": n_init, "random_state": random}
    assigner = ASSIGNERS[name]
    if assigner.needs_cut:
        return assigner.assign(scale(rows), weights, n_clusters, cut=cut, order=order, **options)
    n = len(rows)
    place: IntArray = np.arange(n) if order is None else order
    if n > sample_rows:
        place = place[np.sort(random.choice(n, sample_rows, replace=False))]
    drawn: FloatArray = to_host(rows_on_host(rows, place))
    found = assigner.assign(scale(drawn), rows_on_host(weights, place), n_clusters, **options)
    if n > sample_rows and not label_all:
        return found
    if n > sample_rows or not on_host(rows):
        return assigned(found.pointwise, scale(rows))
    return replace(found, labels=found.labels[np.argsort(place)])


def one_each(rows: FloatArray, cut: NormalizedCut | None = None) -> Assignment:
    """Every distinct row a cluster of its own: nothing is left to assign. With a cut, its value is given."""
    order = np.lexsort(rows.T[::-1])
    labels = np.argsort(order)
    history = None if cut is None else kernel_kmeans(KernelKMeansProblem(cut), labels, len(rows)).history
    return Assignment(labels, NearestCentre(rows[order]), history)


def _pivot_rotation(rows: FloatArray) -> FloatArray:
    """The orthogonal matrix closest to carrying the pivot rows onto the axes, (columns, columns)."""
    pivots = spread_out_rows(rows, rows.shape[1])
    left, _, right = svd(rows[pivots].T)
    return np.asarray(left @ right)


def lloyd_steps(rows: FloatArray, weights: FloatArray, start: Assignment, most: int) -> Assignment:
    """So many steps of k-means over rows wherever they lie, or until no label moves."""
    labels, rule = start.labels, start.pointwise
    weights = moved(float64(weights), rows)
    for _ in range(most):
        centres = rule.centres  # type: ignore[attr-defined]
        means, present = weighted_means(rows, weights, labels, len(centres))
        centres = np.where(present[:, None], means, centres)
        rule = NearestCentre(centres[sorted_order(centres)])
        before, labels = labels, rule.labels(rows)
        if not scalars((labels != before).any())[0]:
            break
    return Assignment(labels, rule)


def assign_in_place(
    name: str,
    rows: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    cut: NormalizedCut | None = None,
    n_init: int | str,
    random_state: RandomState,
    order: IntArray | None = None,
) -> Assignment:
    """Labels, on the host, of rows wherever they lie.

    On a device a sample of rows travels to the host, nothing else of their size. Its k-means is improved over all rows.
    """
    improved, sample_rows = name == "kmeans" and not on_host(rows), SAMPLE_ROWS
    if improved:
        sample_rows = START_ROWS
    elif on_host(rows) and len(rows) <= MANY_ROWS:
        sample_rows = MANY_ROWS
    options: dict[str, Any] = {"cut": cut, "n_init": n_init, "random_state": random_state, "order": order}
    found = assign_sampled(name, rows, weights, n_clusters, sample_rows=sample_rows, **options)
    if improved:
        found = lloyd_steps(rows, weights, found, LLOYD_STEPS)
    return replace(found, labels=to_host(found.labels).astype(np.intp))
