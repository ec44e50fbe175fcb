"""k-means of rows that stay where they are: starts on a sample on the host, Lloyd steps over all rows in place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.runtime.namespace import float64, full, identity, moved, namespace, on_host, scalars, to_host
from biclique.spectral.assign import ASSIGNERS, BLOCK_ENTRIES, Assignment, NearestCentre, assign_sampled, sorted_order
from biclique.spectral.cut import NormalizedCut

START_ROWS = 5_000
"""Rows of the sample: only a start, which the steps over all rows improve."""

LLOYD_STEPS = 10
"""Steps over all rows: centres of a sample are so near that few rows move after the first."""


def device_kmeans(
    embedding: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    cut: NormalizedCut | None = None,
    n_init: int,
    random_state: int | np.random.RandomState | None,
    steps: int = LLOYD_STEPS,
) -> Assignment:
    """Weighted k-means: the best start of a sample, then Lloyd steps over all rows until no label moves.

    A sample of rows travels to the host, nothing else of their size; labels stay with the rows. A step waits for the
    device twice. ``steps=0`` is ``assign_sampled``.
    """
    start = assign_sampled(
        "kmeans",
        embedding,
        weights,
        n_clusters,
        cut=cut,
        n_init=n_init,
        random_state=random_state,
        sample_rows=START_ROWS,
    )
    labels, rule = start.labels, start.pointwise
    weights = moved(float64(weights), embedding)
    for _ in range(steps):
        centres = _means(embedding, weights, labels, rule.centres)  # type: ignore[attr-defined]
        rule = NearestCentre(centres[sorted_order(centres)])
        before, labels = labels, rule.labels(embedding)
        if not scalars((labels != before).any())[0]:
            break
    return Assignment(labels, rule)


def _means(rows: FloatArray, weights: FloatArray, labels: IntArray, centres: FloatArray) -> FloatArray:
    """The weighted mean of every cluster, on the host; an empty one keeps its centre.

    Sums are products with an indicator matrix, a block of rows at a time: adding by index would add in any order on a
    device, and give other bits every time.
    """
    k = len(centres)
    xp = namespace(rows)
    sums = full((k, rows.shape[1] + 1), 0.0, rows)
    unit = identity(k, rows)
    step = max(BLOCK_ENTRIES // k, 1)
    for top in range(0, len(rows), step):
        place = slice(top, top + step)
        ones = full((len(rows[place]), 1), 1.0, rows)
        sums += unit[labels[place]].T @ (weights[place, None] * xp.concatenate([ones, float64(rows[place])], axis=1))
    found = to_host(sums)
    present = found[:, 0] > 0
    return np.where(present[:, None], found[:, 1:] / np.where(present, found[:, 0], 1.0)[:, None], centres)


def assign_in_place(
    name: str,
    rows: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    cut: NormalizedCut | None = None,
    **options: Any,
) -> Assignment:
    """Labels, on the host, of rows wherever they lie: ``options`` are those of an assigner."""
    if on_host(rows):
        return ASSIGNERS[name](rows, weights, n_clusters, cut=cut, **options)
    options.pop("parts", None)  # nobody looks for parts on a device
    if name == "kmeans":
        found = device_kmeans(rows, weights, n_clusters, cut=cut, **options)
    else:
        found = assign_sampled(name, rows, weights, n_clusters, cut=cut, **options)
    return replace(found, labels=to_host(found.labels).astype(np.intp))
