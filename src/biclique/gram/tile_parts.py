"""What operators share that never store K; and whether K falls into parts that do not touch each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from biclique._typing import FloatArray, IntArray, Rows
from biclique.gram.dense import LINK, search_parts
from biclique.gram.operator import CHECKED_AT_ONCE, CrossGram, GramOperator, TrainedRows
from biclique.kernels import HeldRows, Kernel, Spectrum
from biclique.runtime import PANEL, Pulse, Tick, count_threads, draw_by_permutation, run_groups, run_panels

MASS = 1e-6
"""Two parts of float32 tiles touch when the similarity between them is above this share of the smaller's degrees."""

SAMPLE = 1000

TREE_COLUMNS = 3

MOST_PARTS = 2048

MOST_UNSEEN = 2000
"""Rows that join a sample because it does not see them."""

SMALL_PART, MOST_ROWS = 1 / 64, 1 / 8
"""A part of at most such a share of the rows is checked by its rows alone, all such parts of at most the second."""


FEW_AT_ONCE = 128
"""Rows of small parts that are multiplied with the rows near them."""

MOST_PAIRS = 4e9
"""Pairs of rows of small parts and all rows that are computed for this."""


class ComputedGram(GramOperator):
    """K of a kernel and rows that is computed anew in every pass, and never stored."""

    passes_are_cheap = False
    held: HeldRows

    def __init__(
        self,
        kernel: Kernel,
        X: Rows,
        *,
        dtype: DTypeLike = np.float32,
        n_jobs: int | None = None,
        memory_limit: float | None = None,
        tick: Tick | None = None,
    ) -> None:
        self.kernel, self.n, self.dtype = kernel, X.shape[0], np.dtype(dtype)
        self.n_jobs, self.tick, self._memory_limit = n_jobs, tick, np.inf if memory_limit is None else memory_limit

    @property
    def nonnegative(self) -> bool:
        return self.kernel.nonnegative(self.held.rows)

    def diagonal(self) -> FloatArray:
        return self.kernel.diagonal(self.held.rows)

    def training(self) -> TrainedRows:
        return self.held

    def cross(self, Y: Rows) -> CrossGram:
        return self.training().cross(Y, self.n_jobs)

    def parts(
        self,
        degrees: FloatArray,
        weights: FloatArray,
        random: int | np.random.RandomState | None,
        columns: int = CHECKED_AT_ONCE,
    ) -> IntArray:
        return tile_parts(self, degrees, weights, random, columns)

    def restricted(self, members: IntArray) -> Self:
        rows = self.held.rows[members]
        found = type(self)(self.kernel, rows, dtype=self.dtype, n_jobs=self.n_jobs, tick=self.tick)
        found.held.came_from(self.held)
        return found

    def with_rows(self, Y: Rows) -> Self:
        rows, limit = self.held.stacked(Y), self._memory_limit
        return type(self)(self.kernel, rows, dtype=self.dtype, n_jobs=self.n_jobs, memory_limit=limit)


def tile_parts(
    gram: ComputedGram,
    degrees: FloatArray,
    weights: FloatArray,
    random_state: int | np.random.RandomState | None,
    columns: int,
) -> IntArray:
    """The part of every row: 0, 1, …; all 0 when the kernel is connected.

    Rows are sampled, and what the sample and the rows it does not see call parts is then checked exactly, by products
    with at most ``columns`` vectors: parts reported are real. If there are more than ``MOST_PARTS``, or if small ones
    have more than an eighth of the rows (isolated rows not counted), the smallest are counted to the largest.
    """
    own = weights * gram.diagonal()
    isolated = np.abs(degrees - own) <= _least_mass(gram) * np.abs(own)
    labels = np.zeros(gram.n, dtype=np.intp)
    rest = np.flatnonzero(~isolated)
    if len(rest):
        sampled = _sampled_parts(gram, rest, random_state)
        labels[rest] = _check_mass(gram, rest, sampled, degrees, weights, columns)
        labels[isolated] = labels.max() + 1 + np.arange(int(isolated.sum()))
    else:
        labels = np.arange(gram.n)
    return labels


def _sampled_parts(gram: ComputedGram, rest: IntArray, random_state: int | np.random.RandomState | None) -> IntArray:
    """Parts of a sample and of the rows it does not see; every other row in the part of the one it is most similar to.

    A part of which nothing was drawn is seen by no row of the sample, so that its rows join it.
    """
    rows, kernel = gram.held.rows, gram.kernel
    sample = rest[draw_by_permutation(len(rest), SAMPLE, random_state)]
    nearest, linked = _most_similar(gram, rest, sample)
    unseen = rest[~linked][:MOST_UNSEEN]
    if len(unseen):
        sample = np.concatenate([sample, unseen])
        nearest, _ = _most_similar(gram, rest, sample)
    block = np.asarray(kernel.block(rows[sample], rows[sample]), dtype=float)
    return np.asarray(search_parts(block, np.diagonal(block))[nearest], dtype=np.intp)


def _most_similar(gram: ComputedGram, rest: IntArray, sample: IntArray) -> tuple[IntArray, np.ndarray]:
    """Which row of a sample every row is most similar to, and whether they are linked.

    A kernel that falls with the distance finds it in a tree of few columns, others by all similarities.
    """
    rows, kernel = gram.held.rows, gram.kernel
    spectrum = _tree_spectrum(gram)
    if spectrum is not None:
        distances, nearest = KDTree(rows[sample]).query(rows[rest], workers=count_threads(gram.n_jobs))
        return nearest, distances < spectrum.reach(LINK)
    root = np.sqrt(np.abs(gram.diagonal()))

    def search(panel: slice) -> tuple[IntArray, np.ndarray]:
        some = rest[panel]
        block = np.abs(kernel.block(rows[some], rows[sample]))
        linked = np.asarray((block > LINK * root[some, None] * root[sample]).any(axis=1))
        return np.argmax(block, axis=1), linked

    found = run_panels(search, len(rest), PANEL, n_jobs=gram.n_jobs)
    return np.concatenate([some for some, _ in found]), np.concatenate([some for _, some in found])


def _tree_spectrum(gram: ComputedGram) -> Spectrum | None:
    """How the kernel falls with the distance, if a tree of the rows can use that."""
    rows = gram.held.rows
    return None if sparse.issparse(rows) or rows.shape[1] > TREE_COLUMNS else gram.kernel.spectrum(rows.shape[1])


def _least_mass(gram: ComputedGram) -> float:
    """The share of a part's degrees that counts as a link: in float32 no less can be told from rounding."""
    return LINK if gram.dtype == np.float64 and gram.error is None else MASS


def _check_mass(
    gram: ComputedGram, rest: IntArray, parts: IntArray, degrees: FloatArray, weights: FloatArray, columns: int
) -> IntArray:
    """Merge parts between which there is similarity after all: exact.

    Parts of few rows are multiplied alone; of the others, so many share a pass. The largest has what is left
    of its degrees.
    """
    if parts.max() == 0:
        return parts
    parts = _at_most(parts, min(MOST_ROWS * len(rest), MOST_PAIRS / len(rest)))
    sizes = np.bincount(parts)
    largest = int(np.argmax(sizes))
    small = sizes <= SMALL_PART * len(rest)
    mass = _mass_of_few(gram, rest, parts, small, weights)  # a row for each part but the largest
    many = np.flatnonzero(~small & (np.arange(len(sizes)) != largest))
    for left in range(0, len(many), columns):
        chosen = many[left : left + columns]
        indicator = np.zeros((gram.n, len(chosen)))
        for column, part in enumerate(chosen):
            indicator[rest[parts == part], column] = weights[rest[parts == part]]
        touched = np.abs(gram.matmat(indicator))[rest] * weights[rest, None]
        mass[chosen] = [np.bincount(parts, column, len(sizes)) for column in touched.T]
    mass[largest, largest] = weights[rest] @ np.where(parts == largest, np.abs(degrees[rest]), 0.0)
    volume = np.maximum(np.diagonal(mass), np.finfo(float).tiny)
    touching = mass > _least_mass(gram) * np.minimum(volume[:, None], volume)
    merged = connected_components(sparse.csr_array(touching | touching.T), directed=False)[1]
    return np.asarray(merged[parts], dtype=np.intp)


def _at_most(parts: IntArray, rows: float) -> IntArray:
    """Parts numbered by size, largest first. If small ones have too many rows or are too many, the rarest are counted
    to the largest. That can only hide a gap, never invent one.
    """
    sizes = np.bincount(parts)
    ranked = np.argsort(-sizes, kind="stable")
    small = sizes[ranked] <= SMALL_PART * len(parts)
    kept = ~small | (np.cumsum(np.where(small, sizes[ranked], 0)) <= rows)
    kept[MOST_PARTS:] = False
    number = np.empty(len(sizes), dtype=np.intp)
    number[ranked] = np.where(kept, np.cumsum(kept) - 1, 0)
    return number[parts]


def _mass_of_few(
    gram: ComputedGram, rest: IntArray, parts: IntArray, small: np.ndarray, weights: FloatArray
) -> FloatArray:
    """Σ |κ| between every small part and every part, (n_parts, n_parts); zero in the rows of others."""
    order = np.argsort(parts, kind="stable")
    every, part_of = rest[order], parts[order]
    few, of_few = every[small[part_of]], part_of[small[part_of]]
    rows, kernel = gram.held.rows, gram.kernel
    reach = _reach_of_mass(gram, weights[rest])
    height = PANEL if reach is None else FEW_AT_ONCE
    if reach is not None and len(few) > height:
        # Those multiplied at once lie together, so that fewer rows are near them.
        ordered = np.lexsort((np.argsort(KDTree(rows[few]).indices), of_few))
        few, of_few = few[ordered], of_few[ordered]
    near = _near(rows, few, every, reach, count_threads(gram.n_jobs))
    every, part_of = every[near], part_of[near]
    tops = range(0, len(few), height)

    def add(panel: int, pulse: Pulse) -> FloatArray:
        some = slice(tops[panel], tops[panel] + height)
        inside, starts = np.unique(of_few[some], return_index=True)
        total = np.zeros((len(inside), len(small)))
        near = _near(rows, few[some], every, reach, 1)
        them, of_them = every[near], part_of[near]
        for left in range(0, len(them), PANEL):
            others = slice(left, left + PANEL)
            block = np.abs(kernel.block(rows[few[some]], rows[them[others]])) * weights[them[others]]
            block = np.add.reduceat(weights[few[some], None] * block, starts, axis=0)
            across, edges = np.unique(of_them[others], return_index=True)
            total[:, across] += np.add.reduceat(block, edges, axis=1)
            pulse()
        return total

    mass = np.zeros((len(small), len(small)))
    for top, total in zip(tops, run_groups(add, len(tops), n_jobs=gram.n_jobs), strict=True):
        mass[np.unique(of_few[top : top + height])] += total
    return mass


def _reach_of_mass(gram: ComputedGram, weights: FloatArray) -> float | None:
    """The distance from which on all rows together have less than a hundredth of the mass that makes a link.

    A part P has a volume of at least w(P) κ(0) times the least weight; rows beyond r add at most w(P) W κ(r) to its
    mass. None if no tree can use it.
    """
    spectrum, share = _tree_spectrum(gram), 0.01 * _least_mass(gram) * float(weights.min() / weights.sum())
    return None if spectrum is None else spectrum.reach(share)


def _near(rows: Rows, few: IntArray, every: IntArray, reach: float | None, workers: int) -> IntArray | slice:
    """Which of ``every`` row are within the reach of one of a few."""
    if reach is None or not len(few):
        return slice(None)
    distances, _ = KDTree(rows[few]).query(rows[every], distance_upper_bound=reach, workers=workers)
    return np.flatnonzero(np.isfinite(distances))


def link_small_parts(
    kernel: Kernel,
    n_columns: int,
    parts: IntArray,
    nearest: Callable[[IntArray, IntArray], tuple[FloatArray, IntArray]],
    most: int,
) -> IntArray:
    """Parts of at most so many rows that are linked to another become one with it, as if K were stored.

    ``nearest`` tells, of all parts and some of them, how far each of these is from its nearest part, and which that is.
    """
    while kernel.euclidean:
        sizes = np.bincount(parts)
        asked = np.flatnonzero((sizes <= most) & (np.arange(len(sizes)) != sizes.argmax()))
        if not len(asked):
            break
        gaps, targets = nearest(parts, asked)
        apart = np.zeros((len(gaps), n_columns))
        apart[:, 0] = gaps
        close = kernel.block(apart, np.zeros((1, n_columns)))[:, 0] > LINK * kernel.diagonal(apart)
        if not close.any():
            break
        links = sparse.coo_array((np.ones(int(close.sum())), (asked[close], targets[close])), (len(sizes),) * 2)
        parts = np.asarray(connected_components(links, directed=False)[1], dtype=np.intp)[parts]
    return parts
