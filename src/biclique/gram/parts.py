"""Whether the kernel falls into parts that do not touch each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from biclique._typing import FloatArray, IntArray
from biclique.gram.base import GramOperator
from biclique.gram.cross import PANEL
from biclique.gram.dense import DenseGram
from biclique.gram.factored import FactoredGram
from biclique.gram.sparse import SparseGram
from biclique.gram.tiled import TiledGram
from biclique.kernels import draw_rows

LINK = 1e-8
"""Two rows touch when |κ(x, y)| is above this share of √(κ(x, x) κ(y, y))."""

MASS = 1e-6
"""Two parts touch when the similarity between them is above this share of the smaller one's degrees."""

SAMPLE = 1000
MOST_PARTS = 32


def part_sizes(
    gram: GramOperator,
    degrees: FloatArray,
    weights: FloatArray,
    random_state: int | np.random.RandomState | None,
    columns: int = MOST_PARTS,
) -> IntArray:
    """Rows of every part, largest first; a single number when the kernel is connected.

    Stored matrices are searched exactly. Tiles are sampled, and what the sample calls parts is then checked
    exactly, by products with at most ``columns`` vectors: parts reported are real, though small ones may be missed.
    """
    if isinstance(gram, SparseGram):
        labels = connected_components(_linked(gram), directed=False)[1]
    elif isinstance(gram, DenseGram):
        labels = search_parts(gram.K, gram.diagonal())
    elif isinstance(gram, FactoredGram):
        return np.array([gram.n])  # sums over rows cannot tell
    elif isinstance(gram, TiledGram):
        labels = _tiled_parts(gram, degrees, weights, random_state, columns)
    else:
        raise TypeError(f"no way to search {type(gram).__name__} for parts")
    return np.sort(np.bincount(labels))[::-1]


def _linked(gram: SparseGram) -> Any:
    """The entries of a sparse K that count as links."""
    K = gram.K.tocoo()
    root = np.sqrt(np.abs(gram.diagonal()))
    strong = np.abs(K.data) > LINK * root[K.row] * root[K.col]
    return sparse.coo_array((K.data[strong], (K.row[strong], K.col[strong])), shape=K.shape).tocsr()


def search_parts(K: FloatArray, diagonal: FloatArray) -> IntArray:
    """The part of every row of a stored K, by breadth-first search; a connected K is left early."""
    n = len(diagonal)
    root = np.sqrt(np.abs(diagonal))
    labels = np.full(n, -1)
    part = 0
    for seed in range(n):
        if labels[seed] >= 0:
            continue
        labels[seed] = part
        frontier = np.array([seed])
        while len(frontier) and (labels < 0).any():
            new = []
            for top in range(0, len(frontier), PANEL):
                rows, unseen = frontier[top : top + PANEL], np.flatnonzero(labels < 0)
                touching = np.abs(K[np.ix_(rows, unseen)]) > LINK * root[rows, None] * root[unseen]
                new.append(unseen[touching.any(axis=0)])
                labels[new[-1]] = part
            frontier = np.concatenate(new)
        part += 1
    return labels


def _tiled_parts(
    gram: TiledGram,
    degrees: FloatArray,
    weights: FloatArray,
    random_state: int | np.random.RandomState | None,
    columns: int,
) -> IntArray:
    own = weights * gram.diagonal()
    isolated = np.abs(degrees - own) <= MASS * np.abs(own)
    labels = np.zeros(gram.n, dtype=np.intp)
    rest = np.flatnonzero(~isolated)
    if len(rest):
        labels[rest] = _check_mass(gram, rest, _sampled_parts(gram, rest, random_state), weights, columns)
        labels[isolated] = labels.max() + 1 + np.arange(int(isolated.sum()))
    else:
        labels = np.arange(gram.n)
    return labels


def _sampled_parts(gram: TiledGram, rest: IntArray, random_state: int | np.random.RandomState | None) -> IntArray:
    """Parts of a sample, and every other row in the part of the sampled row it is most similar to."""
    rows, kernel = gram.held.rows, gram.kernel
    sample = rest[draw_rows(len(rest), SAMPLE, random_state)]
    block = kernel.block(rows[sample], rows[sample])
    parts = search_parts(np.asarray(block, dtype=float), np.diagonal(block).astype(float))
    # Many small parts: the rarest go together, which can only hide a gap, never invent one.
    common = np.argsort(-np.bincount(parts), kind="stable")[: MOST_PARTS - 1]
    renumber = np.full(parts.max() + 1, len(common))
    renumber[common] = np.arange(len(common))
    parts = renumber[parts]
    if parts.max() == 0:
        return np.zeros(len(rest), dtype=np.intp)
    nearest = [
        parts[np.argmax(np.abs(kernel.block(rows[rest[top : top + PANEL]], rows[sample])), axis=1)]
        for top in range(0, len(rest), PANEL)
    ]
    return np.concatenate(nearest)


def _check_mass(gram: TiledGram, rest: IntArray, parts: IntArray, weights: FloatArray, columns: int) -> IntArray:
    """Merge parts between which there is similarity after all: exact, a pass for so many parts."""
    n_parts = int(parts.max()) + 1
    if n_parts == 1:
        return parts
    indicator = np.zeros((gram.n, n_parts))
    indicator[rest, parts] = weights[rest]
    mass = np.empty((n_parts, n_parts))
    for left in range(0, n_parts, columns):
        chosen = indicator[:, left : left + columns]
        mass[:, left : left + columns] = indicator.T @ np.abs(gram.matmat(chosen))
    volume = np.maximum(np.diagonal(mass), np.finfo(float).tiny)
    touching = mass > MASS * np.minimum(volume[:, None], volume)
    merged = connected_components(sparse.csr_array(touching | touching.T), directed=False)[1]
    return np.asarray(merged[parts], dtype=np.intp)
