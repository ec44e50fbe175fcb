"""The connected parts of a neighbour graph, and what becomes of loose rows and of parts too small for a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DisconnectedWarning, warn_user
from biclique.gram import NeighborGram, components, members_of, nearest_among, with_ties, without_loops

LOOSE = 0.25
"""A row with less than this share of the usual degree has hardly any similarity to others."""

WEAK = 5e-4
"""Edges of less are no links between parts: with the default γ, rows six times as far apart as is usual."""

DUST = 0.05
"""A part with neighbours in others is dust below this share of an average cluster."""

CLOSED_DUST = 0.001
"""The same for a part whose rows have all their neighbours among themselves."""

FEW = 8
"""Parts of about the least size, of which the one nearest to another goes first."""

ASKED = 1000
"""Rows of a part that are asked for their nearest outside."""


@dataclass(frozen=True)
class Connected:
    """A graph whose parts are ready to be solved."""

    gram: NeighborGram
    part_of: IntArray
    whole: np.ndarray  # by part: whether it is connected; where not, parts share it that were too many
    usual_degree: float

    @property
    def n_parts(self) -> int:
        return len(self.whole)


def connect(gram: NeighborGram, weights: FloatArray, most: int) -> Connected:
    """The graph in at most so many parts, without loops, its loose rows and its dust tied to others.

    1. A loose row is tied to the nearest row that is not, of the same closed part (where lists of neighbours lead).
       What similarity such rows have is mostly to each other, and they would be clusters by themselves. One tie a row
       adds no way between two clusters that their own edges do not have.
    2. Parts are what edges above ``WEAK`` connect. Dust is tied, by all of its rows, to the one part that is nearest.
    3. Parts beyond ``most`` share one with their nearest, the smallest first, without an edge.
    """
    closed = components(gram.K)  # every pair of neighbours has an edge, however faint
    K = without_loops(gram.K)
    degrees = np.asarray(K.sum(axis=1)).ravel()
    if gram.index is not None:
        K = _tie_loose_rows(gram, K, degrees, closed)
    found = components(K, WEAK)
    K, found = _tie_dust(gram, K, found, closed, weights, most)
    part_of, whole = _share(gram, K, found, weights, most)
    return Connected(gram.with_graph(K), part_of, whole, float(np.median(degrees)))


def _tie_loose_rows(gram: NeighborGram, K: Any, degrees: FloatArray, closed: IntArray) -> Any:
    usual = np.array([np.median(degrees[members]) for members in members_of(closed)])
    loose = degrees < LOOSE * usual[closed]
    for part in np.unique(closed[loose]):
        rows = np.flatnonzero(loose & (closed == part))
        solid = np.flatnonzero(~loose & (closed == part))
        K = with_ties(K, rows, nearest_among(gram.index, rows, solid)[0])  # type: ignore[arg-type]
    return K


def _tie_dust(
    gram: NeighborGram, K: Any, found: IntArray, closed: IntArray, weights: FloatArray, most: int
) -> tuple[Any, IntArray]:
    """K with every part that is dust tied to one that is not, and the parts left."""
    sizes = np.bincount(found, weights)
    owner = np.zeros(len(sizes), dtype=np.intp)
    owner[found] = closed
    shared = np.bincount(owner)[owner] > 1  # with other parts of the same closed part
    average = weights.sum() / most
    dust = sizes < np.where(shared, DUST, CLOSED_DUST) * average
    if not dust.any() or dust.all():
        return K, found
    rows, solid = np.flatnonzero(dust[found]), np.flatnonzero(~dust[found])
    if gram.index is not None:
        near, gap = nearest_among(gram.index, rows, solid)
        near = _one_part_each(found, rows, near, gap)
    else:
        near = _most_similar(K, found, rows, solid)
    target = np.arange(len(sizes))
    target[found[rows]] = found[near]
    return with_ties(K, rows, near), np.unique(target[found], return_inverse=True)[1]


def _one_part_each(found: IntArray, rows: IntArray, near: IntArray, gap: FloatArray) -> IntArray:
    """The partner of every row: its nearest, or, where that is of another part, the one nearest to its part.

    So a small part never ties two others together.
    """
    order = np.lexsort((rows, gap))[::-1]
    anchor = np.full(int(found.max()) + 1, -1)
    anchor[found[rows[order]]] = near[order]  # the nearest is written last
    tied = anchor[found[rows]]
    return np.where(found[near] == found[tied], near, tied)


def _most_similar(K: Any, found: IntArray, rows: IntArray, solid: IntArray) -> IntArray:
    """The partner of every row of a given graph: a central one of the most similar part, or of the largest."""
    n_parts = int(found.max()) + 1
    degrees = np.asarray(K.sum(axis=1)).ravel()
    central = np.full(n_parts, -1)
    order = solid[np.argsort(degrees[solid], kind="stable")]
    central[found[order]] = order
    allowed = np.flatnonzero(central >= 0)
    indicator = sparse.csr_array((np.ones(len(found)), (np.arange(len(found)), found)), shape=(len(found), n_parts))
    between = (indicator.T @ K @ indicator).tocsr()[:, allowed]
    largest = np.bincount(found, minlength=n_parts)[allowed].argmax()
    seen = np.asarray(between.max(axis=1).toarray()).ravel() > 0
    target = allowed[np.where(seen, np.asarray(between.argmax(axis=1)).ravel(), largest)]
    return np.asarray(central[target[found[rows]]])


def _share(gram: NeighborGram, K: Any, found: IntArray, weights: FloatArray, most: int) -> tuple[IntArray, np.ndarray]:
    """Parts put together, a small one into its nearest, until there are at most ``most``; and which are whole."""
    sizes: FloatArray = np.bincount(found, weights).astype(float)
    before, part_of = sizes, found
    pieces = np.ones(len(sizes), dtype=int)
    while len(sizes) > most:
        small = np.argsort(sizes, kind="stable")[:FEW]
        small = small[sizes[small] < 2 * sizes[small[0]]]
        nearest = [(*_nearest_part(gram, K, part_of, int(part), sizes), int(part)) for part in small]
        _, target, smallest = min(nearest)
        pieces[target] += pieces[smallest]
        part_of = np.unique(np.where(part_of == smallest, target, part_of), return_inverse=True)[1]
        pieces, sizes = np.delete(pieces, smallest), np.bincount(part_of, weights).astype(float)
    if len(before) > most:
        shown = ", ".join(f"{size:g}" for size in np.sort(before)[::-1][:5]) + (", …" if len(before) > 5 else "")
        warn_user(
            f"the neighbour graph falls into {len(before)} connected parts ({shown} of {gram.n} rows), more than the "
            f"{most} that were asked for: the nearest are put together. If parts belong together, a larger "
            "n_neighbors connects them; if not, ask for more.",
            DisconnectedWarning,
        )
    return part_of, pieces == 1


def _nearest_part(gram: NeighborGram, K: Any, part_of: IntArray, part: int, sizes: FloatArray) -> tuple[float, int]:
    """The distance to the nearest part, and that part; in a given graph the most similar one, or the smallest."""
    inside = np.flatnonzero(part_of == part)
    if gram.index is not None:
        asked = inside[:: max(len(inside) // ASKED, 1)]
        near, gap = nearest_among(gram.index, asked, np.flatnonzero(part_of != part))
        return float(gap.min()), int(part_of[near[gap.argmin()]])
    toward = np.bincount(part_of, np.asarray(K[inside].sum(axis=0)).ravel(), len(sizes))
    toward[part] = 0.0
    if toward.any():
        return -float(toward.max()), int(np.argmax(toward))
    return 0.0, int(np.argmin(np.where(np.arange(len(sizes)) == part, np.inf, sizes)))
