"""Tuples of points: drawing them, and what is computed for many of them at once."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, ParameterError
from biclique.runtime.threads import Pulse, run_groups

CHUNK_NUMBERS = 2**18
"""Coordinates held at once while weights are computed."""

LARGEST = 1e120
"""Magnitudes of X up to here, and from its inverse, can be squared and divided by."""

RANKED_SETS = 2**62
"""Up to here the sets of m vertices can be numbered; with more, drawing one twice is all but impossible."""


def check_points(X: Any) -> FloatArray:
    """Rows of points as a finite float64 table, with numbers that can be squared."""
    if sparse.issparse(X):
        raise DataError("X must be dense for modellings of tuples, got a sparse matrix: pass X.toarray().")
    try:
        table = np.asarray(X)
        if table.dtype.kind == "c":
            raise DataError("X must hold real numbers, got complex ones: pass X.real, or real and imaginary columns.")
        if table.dtype.kind in "Mm":
            raise DataError(f"X must hold numbers, got dates or times ({table.dtype}): turn them into numbers first.")
        table = table.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"X must be a table of numbers with rows of one length: {error}.") from error
    if table.ndim != 2 or not table.shape[1]:
        raise DataError(f"X must be a table of shape (n, d), d of at least 1, got shape {table.shape}.")
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise DataError(f"X must be finite, got {table[row, column]} in row {row}, column {column}: fill or drop it.")
    largest = float(np.abs(table).max(initial=0))
    if largest and not 1 / LARGEST <= largest <= LARGEST:
        raise DataError(
            f"X has {largest:.3g} as its largest magnitude, and its squares leave the range of numbers: rescale X to "
            f"between {1 / LARGEST:g} and {LARGEST:g}, such as X / {largest:.3g}."
        )
    return np.asarray(table)


def check_weights(weights: FloatArray, what: str) -> FloatArray:
    """Weights that are all finite."""
    if not np.isfinite(weights).all():
        raise DataError(
            f"{what} has weights that are not finite: rescale X, or change the affinity if it is a function of yours."
        )
    return weights


def draw_tuples(n: int, m: int, size: int, random: np.random.RandomState) -> IntArray:
    """``size`` tuples of m distinct numbers below n, each uniform and in a random order; shape (size, m)."""
    chosen = np.empty((size, m), dtype=np.intp)
    for place in range(m):  # Floyd's: a number met before is replaced by the largest one allowed so far
        last = n - m + place
        number = random.randint(0, last + 1, size=size)
        met = (chosen[:, :place] == number[:, None]).any(axis=1)
        chosen[:, place] = np.where(met, last, number)
    return shuffled(chosen, random)


def draw_sets(n: int, m: int, size: int, random: np.random.RandomState) -> IntArray:
    """Tuples of distinct numbers below n, no set of them twice, each in a random order; shape (size, m).

    Sets are drawn, those met before dropped and drawn again; from more than half of all sets, all are permuted. The
    memory grows with ``size`` either way.
    """
    n_sets = comb(n, m)
    if size > n_sets:
        raise ParameterError(
            f"n_edges={size} is more than the {n_sets} sets of {m} among {n} points: ask for at most {n_sets}, or pass "
            "replace=True."
        )
    if n_sets > RANKED_SETS:
        return _distinct_rows(lambda count: draw_tuples(n, m, count, random), size, lambda rows: np.sort(rows, axis=1))
    if 2 * size > n_sets:
        ranks = random.permutation(n_sets)[:size]
    else:
        ranks = _distinct_rows(
            lambda count: random.randint(n_sets, size=count, dtype=np.int64), size, lambda rows: rows
        )
    return shuffled(unranked_sets(ranks, n, m), random)


def _distinct_rows(draw: Callable[[int], IntArray], size: int, key: Callable[[IntArray], IntArray]) -> IntArray:
    """``size`` rows of which no two have the same key, in the order in which they were drawn."""
    rows = draw(size)
    while True:
        kept = np.sort(np.unique(key(rows), axis=0, return_index=True)[1])
        if len(kept) == size:
            return rows
        rows = np.concatenate([rows[kept], draw(size - len(kept))])


def unranked_sets(ranks: IntArray, n: int, m: int) -> IntArray:
    """The sets v_m > … > v_1 with Σ_t C(v_t, t) = rank: every set of m numbers below n once; shape (N, m)."""
    left = ranks.copy()
    sets = np.empty((len(ranks), m), dtype=np.intp)
    for t in range(m, 0, -1):
        below = np.array([min(comb(v, t), RANKED_SETS) for v in range(n)], dtype=np.int64)
        sets[:, t - 1] = np.searchsorted(below, left, side="right") - 1
        left -= below[sets[:, t - 1]]
    return sets


def joined_tuples(draws: IntArray, n: int) -> IntArray:
    """Every draw with every other point as the last; shape (n_draws · (n − size), size + 1)."""
    others = np.ones((len(draws), n), dtype=bool)
    np.put_along_axis(others, draws, False, axis=1)
    draw, other = np.nonzero(others)
    return np.column_stack([draws[draw], other])


def shuffled(tuples: IntArray, random: np.random.RandomState) -> IntArray:
    """Every row in a random order of its own."""
    return np.take_along_axis(tuples, random.random_sample(tuples.shape).argsort(axis=1), axis=1)


def in_chunks(values: Callable[[IntArray], FloatArray], tuples: IntArray, d: int, *, n_jobs: int | None) -> FloatArray:
    """``values(tuples)`` in pieces that fit the cache, over threads."""
    step = max(CHUNK_NUMBERS // (tuples.shape[1] * d), 1)
    out = np.empty(len(tuples))

    def fill(chunk: int, pulse: Pulse) -> None:
        part = slice(chunk * step, (chunk + 1) * step)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is an error of the caller's
            out[part] = values(tuples[part])
        pulse()

    run_groups(fill, -(-len(tuples) // step), n_jobs=n_jobs)
    return out


def span_distances(points: FloatArray) -> FloatArray:
    """dist(x_v, affine span of the other points of the tuple) for every v, from points (N, m, d); shape (N, m).

    A span of points that coincide, or lie in fewer dimensions than they could, has its true dimension.
    """
    n_tuples, m, d = points.shape
    distances = np.empty((n_tuples, m))
    for v in range(m):
        others = np.delete(points, v, axis=1)
        beside = points[:, v] - others[:, 0]
        if m > 2:
            _, singular, axes = np.linalg.svd(others[:, 1:] - others[:, :1], full_matrices=False)
            along = np.einsum("nrd,nd->nr", axes, beside)
            along[singular <= max(m, d) * np.finfo(float).eps * singular[:, :1]] = 0
            beside -= np.einsum("nr,nrd->nd", along, axes)
        distances[:, v] = np.sqrt(np.einsum("nd,nd->n", beside, beside))
    return distances
