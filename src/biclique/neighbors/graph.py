"""Sparse graphs of rows: parts, loops and ties."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from biclique._typing import FloatArray, IntArray
from biclique.neighbors.index import NeighborIndex


def components(K: Any, weakest: float = 0.0) -> IntArray:
    """The part of every row: 0, 1, … for the parts that edges of more than ``weakest`` connect."""
    if K.nnz and K.data.min() <= weakest:
        K = sparse.csr_array((K.data > weakest, K.indices, K.indptr), shape=K.shape, copy=True)
        K.eliminate_zeros()  # in place, in a copy of its own
    return np.asarray(connected_components(K, directed=False)[1], dtype=np.intp)


def members_of(labels: IntArray) -> list[IntArray]:
    """The rows of every part."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def without_loops(K: Any) -> Any:
    """K with a zero diagonal, except in rows that have nothing else.

    A row's similarity to itself holds it back: one with faint edges and a loop of 1 would own an eigenvector.
    """
    own = K.diagonal()
    rest = np.asarray(K.sum(axis=1)).ravel() - own
    loops = np.where(rest > 0, own, 0.0)
    K = sparse.csr_array(K - sparse.csr_array(sparse.dia_array((loops[None, :], [0]), shape=K.shape)))
    K.eliminate_zeros()
    return K


def with_ties(K: Any, first: IntArray, second: IntArray) -> Any:
    """K + ½ Σ (E_ij + E_ji) over pairs of rows."""
    if not len(first):
        return K
    ends = (first.astype(K.indices.dtype), second.astype(K.indices.dtype))
    return K + _with_transpose(sparse.csr_array(sparse.coo_array((np.full(len(first), 0.5), ends), shape=K.shape)))


def nearest_among(index: NeighborIndex, rows: IntArray, others: IntArray) -> tuple[IntArray, FloatArray]:
    """For every row the nearest of the others, and how far it is."""
    search = NeighborIndex(index.rows[others], n_jobs=index.n_jobs, random_state=index.seed)
    gap, near = search.query(index.rows[rows], 1)
    return others[near[:, 0]], gap[:, 0]


def _with_transpose(A: Any) -> Any:
    """A + Aᵀ, with as few copies as CSR arithmetic needs."""
    A.sort_indices()
    back = sparse.csr_array(A.T)
    return A + back
