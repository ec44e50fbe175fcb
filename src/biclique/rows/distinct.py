"""Distinct rows with multiplicities: the form in which every estimator fits.

Equal rows are the same vertex counted several times, so they are fitted once with their total weight. Repeated
rows and integer weights are then the same thing by construction, and so are permuted rows, since
distinct rows are put into an order of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows

DIGEST_BYTES = 16


@dataclass(frozen=True)
class DistinctRows:
    """Distinct rows of positive weight, in the order of their digests."""

    rows: Rows  # (n_distinct, d)
    weights: FloatArray  # (n_distinct,)
    index: IntArray  # row i of the input is distinct row index[i]; −1 where only rows of weight zero are like it
    digests: np.ndarray  # (n_distinct,), ascending
    numbers: IntArray  # (n_distinct,), where each stands first in the input


def digests(X: Rows) -> np.ndarray:
    """A 16-byte digest of every row, equal just where rows are equal, shape (n,)."""
    if sparse.issparse(X):
        X = X.tocsr(copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        bounds = X.indptr
        pieces = (X.indices[a:b].astype(np.int64).tobytes() + X.data[a:b].tobytes() for a, b in pairwise(bounds))
    else:
        # −0.0 + 0.0 is 0.0: equal numbers must have equal bytes.
        pieces = ((row + 0.0).tobytes() for row in np.ascontiguousarray(X))
    joined = b"".join(blake2b(piece, digest_size=DIGEST_BYTES).digest() for piece in pieces)
    return np.frombuffer(joined, dtype=f"V{DIGEST_BYTES}")


def distinct_rows(X: Rows, weights: FloatArray) -> DistinctRows:
    """The distinct rows of X with their total weights."""
    totals, index, found, numbers = _distinct(X, weights)
    return DistinctRows(X[numbers], totals, index, found, numbers)


def _distinct(X: Rows, weights: FloatArray) -> tuple[FloatArray, IntArray, np.ndarray, IntArray]:
    """Total weights, the index of every row, digests and numbers, in the order of the digests."""
    keys = digests(X)
    positive = weights > 0
    found, first, inverse = np.unique(keys[positive], return_index=True, return_inverse=True)
    index = _places(found, keys)  # a row of weight 0 that equals one that counts is that one
    totals = np.zeros(len(found))
    np.add.at(totals, inverse, weights[positive])
    return totals, index, found, np.flatnonzero(positive)[first]


@dataclass(frozen=True)
class GivenRows:
    """Distinct rows of positive weight of a given matrix, in the order in which they come."""

    weights: FloatArray  # (n_distinct,)
    index: IntArray  # as of ``DistinctRows``
    digests: np.ndarray  # (n_distinct,), ascending
    places: IntArray  # (n_distinct,), the distinct row of each digest
    numbers: IntArray  # (n_distinct,), ascending: where each stands first in the input


def distinct_given(K: Rows, weights: FloatArray) -> GivenRows:
    """The distinct rows of a symmetric matrix: rows that are alike to all rows, and so to each other, are equal."""
    totals, index, found, numbers = _distinct(K, weights)
    order = np.argsort(numbers)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return GivenRows(totals[order], np.where(index < 0, -1, places[index]), found, places, numbers[order])


def find_rows(known: np.ndarray, X: Any) -> IntArray:
    """Which known digest every row has, −1 where none."""
    if len(known) == 0 or X.shape[0] == 0:
        return np.full(X.shape[0], -1)
    return _places(known, digests(X))


def _places(known: np.ndarray, keys: np.ndarray) -> IntArray:
    """Where every key stands in an ascending array, −1 where it does not."""
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, place, -1)
