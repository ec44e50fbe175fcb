"""K stored as a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from biclique._typing import FloatArray, IntArray, Rows
from biclique.gram.dense import LINK, StoredCross, check_asymmetry
from biclique.gram.operator import CHECKED_AT_ONCE, CrossGram, GramOperator
from biclique.runtime.threads import given_panel, panel_product


class SparseGram(GramOperator):
    """K as a compressed sparse row matrix."""

    name = "sparse"
    dtype = np.dtype(np.float64)

    def __init__(self, K: Rows, *, n_jobs: int | None = None) -> None:
        self.K = sparse.csr_array(K, dtype=np.float64)
        self.n = self.K.shape[0]
        self.n_jobs = n_jobs
        self.is_graph = self.nonnegative

    @property
    def nonnegative(self) -> bool:
        return bool(self.K.data.min(initial=0.0) >= 0)

    def matmat(self, V: FloatArray) -> FloatArray:
        return panel_product(self.K, V, n_jobs=self.n_jobs)

    def diagonal(self) -> FloatArray:
        return np.asarray(self.K.diagonal())

    def stored(self, memory_limit: int | str = "auto") -> Any:  # noqa: ARG002
        return self.K

    def parts(
        self,
        degrees: FloatArray,  # noqa: ARG002
        weights: FloatArray,  # noqa: ARG002
        random: int | np.random.RandomState | None,  # noqa: ARG002
        columns: int = CHECKED_AT_ONCE,  # noqa: ARG002
    ) -> IntArray:
        K = self.K.tocoo()
        root = np.sqrt(np.abs(self.diagonal()))
        strong = np.abs(K.data) > LINK * root[K.row] * root[K.col]
        links = sparse.coo_array((K.data[strong], (K.row[strong], K.col[strong])), shape=K.shape).tocsr()
        return np.asarray(connected_components(links, directed=False)[1], dtype=np.intp)

    def restricted(self, members: IntArray) -> SparseGram:
        return SparseGram(self.K[members][:, members], n_jobs=self.n_jobs)

    def cross(self, Y: Rows) -> CrossGram:
        return StoredCross(Y, n_jobs=self.n_jobs)


GIVEN_BYTES = 200
"""Of every stored entry of a given matrix: copies, its transpose, the parts and the levels of multigrid (measured)."""


def given_bytes(K: Rows) -> int:
    """Memory that a given matrix takes beside itself: a copy in float64 where it is none, and pieces of work."""
    if sparse.issparse(K):
        return GIVEN_BYTES * int(K.nnz)
    copy = 0 if K.dtype == np.float64 else 8 * K.shape[0] ** 2
    return copy + 4 * 8 * given_panel(K.shape[0]) * int(K.shape[0])


def checked_sparse(K: Rows) -> sparse.csr_array:
    """A given sparse matrix, checked as the dense one is."""
    given = sparse.csr_array(K, dtype=np.float64)
    gap = abs(given - given.T).tocoo()
    if gap.nnz:
        largest = int(gap.data.argmax())
        where = (int(gap.row[largest]), int(gap.col[largest]))
        check_asymmetry(float(gap.data[largest]), float(abs(given).max()), where)
    return given if not gap.nnz else sparse.csr_array((given + given.T) / 2)
