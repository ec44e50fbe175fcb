"""Several numbers of clusters from one embedding: coarse, middle and fine labels of the same rows."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import ParameterError
from biclique.fit.given_rows import read_weighted
from biclique.rows.array import distinct_rows
from biclique.runtime.arguments import check_count, check_flag
from biclique.runtime.namespace import unit_rows
from biclique.runtime.threads import single_threaded_blas
from biclique.selection.one_embedding import OneEmbedding, steady_kmeans
from biclique.spectral.rounding import weighted_means


def layers(X: Any, numbers: Sequence[int], *, nested: bool = False, sample_weight: Any = None) -> IntArray:
    """Cluster rows into several numbers of clusters at once, from one embedding.

    Parameters
    ----------
    X : array, data frame or CSR matrix of shape (n_samples, n_features)
    numbers : sequence of int
        Numbers of clusters, such as ``[5, 20, 80]``.
    nested : bool, default=False
        True: every cluster lies inside one cluster of each smaller number. The finest labels are then the same as
        without, and coarser clusters are made of finer ones.
    sample_weight : array of shape (n_samples,), optional
        How often each row counts.

    Returns
    -------
    ndarray of shape (n_samples, len(numbers))
        Column j has the labels for ``numbers[j]`` clusters; a row of weight 0 that is like no other has the label −1.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from biclique.selection import layers
    >>> X = make_blobs(200, centers=[[0, 0], [0, 9], [50, 0], [50, 9]], random_state=0)[0]
    >>> layers(X, [2, 4], nested=True).max(axis=0)
    array([1, 3])
    """
    check_flag("nested", nested)
    wanted = [check_count("numbers", one) for one in ([] if isinstance(numbers, (str, bytes)) else numbers)]
    if not wanted:
        raise ParameterError(f"numbers must be whole numbers from 1, at least one, got {numbers!r}.")
    vertices = distinct_rows(*read_weighted(X, sample_weight, n_clusters=max(wanted)))
    # Warnings about parts of the graph: near ones are one cluster in a coarse layer.
    with single_threaded_blas(), warnings.catch_warnings(action="ignore"):
        embedding = OneEmbedding(vertices.data, vertices.weights, max(wanted))
        found = nested_labels(embedding, wanted) if nested else {k: embedding.labels(k) for k in wanted}
    table = np.column_stack([found[k] for k in wanted])
    return np.where((vertices.index >= 0)[:, None], table[vertices.index], -1)


def nested_labels(embedding: OneEmbedding, numbers: Sequence[int]) -> dict[int, IntArray]:
    """Labels for every number: the finest by k-means, every coarser one by k-means of the finer clusters' means."""
    finest, *coarser = sorted(set(numbers), reverse=True)
    labels = embedding.labels(finest)
    found = {finest: labels}
    for k in coarser:
        sizes: FloatArray = np.bincount(labels, embedding.weights).astype(float)
        means = weighted_means(embedding.scaled(k), embedding.weights, labels, len(sizes))[0]
        labels = found[k] = steady_kmeans(unit_rows(means), sizes, min(k, len(sizes)))[labels]
    return found
