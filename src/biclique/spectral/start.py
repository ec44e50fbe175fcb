"""A start for the eigenvector solver from the cut of a few rows: it saves passes over all of them.

A few rows know nothing of a small group that they do not contain, and at order 2 such a group can own a leading
eigenvector. Residuals do not show that it is missing. Two things keep it in the start:

- Rows that the few do not see join them. The similarities to the few rows tell which rows these are.
- The last columns of the start are random throughout, of the same size in every direction. The solver declares no
  convergence in its first passes while such a direction could still turn out to be a leading one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DegreeError
from biclique.gram.operator import GramOperator
from biclique.runtime.namespace import PIECE_ROWS, float64, moved, namespace, on_host, scalars, to_host
from biclique.spectral.cut import Extension, NormalizedCut
from biclique.spectral.solver import SPARE_COLUMNS, top_eigenpairs

TOLERANCE = 0.1
"""Of the few rows' eigenvectors, as a share of their eigengap: the few are not all."""

STAYS = 1e-3
"""The share of the random start that stays in every column."""

GUARDS = 2
"""Columns that stay random throughout: one alone can be almost orthogonal to what is missing, two hardly ever are."""


def start_from_few(
    probe: FloatArray,
    gram: GramOperator,
    make: Callable[[Rows], GramOperator],
    rows: Rows,
    some: IntArray,
    weights: FloatArray,
    order: float,
    seed: int,
) -> FloatArray:
    """A random ``probe`` (n, b) with eigenvectors of the cut of ``some`` of the rows, extended to all of them.

    ``make`` gives K of other rows as ``gram`` is K of all rows.

    The result has b columns, and up to ``SPARE_COLUMNS`` more if there are rows that the few do not see.

    A row x is not seen by the few rows if they give it less than the similarity of one of them, S(x) < κ(x, x) W/n_few,
    or less than its own, S(x) < κ(x, x) w(x). (S(x) is scaled to the total weight W of all rows.) Such rows join the
    few, the least seen first, at most as many as the few are. A group that goes unnoticed then has g rows of which none
    was drawn, and g n_few/n > λ/(1 − λ) for its eigenvalue λ: the chance of that is about exp(−λ/(1 − λ)).

    The solver starts from y = √(wS) p, so p = v(x)/√S(x), up to scale the coordinates over the trivial one. If the few
    rows have no cut of their own, as under kernels with negative values, the probe is returned as it is.

    With 30,000 rows in tiles it saves three of six passes and 40 % of a fit.
    """
    width, total = probe.shape[1], float(weights.sum())
    heavy = weights[some] * (total / float(weights[some].sum()))  # the few stand for all
    few = make(_taken(rows, some))
    columns = min(width, few.n - 1)
    try:
        found, shrunken = _extended(few, rows, order, heavy, columns, seed)
        all_weights, own = moved(weights, found), float64(gram.diagonal())  # own is κ(x, x)
        unseen = _unseen(shrunken, own * namespace(own).clip(all_weights, total / few.n, None), few.n)
        if len(unseen):
            few = make(_taken(rows, np.concatenate([some, unseen])))
            if columns == width:  # the joined rows' eigenvectors would push others out of the block
                columns = min(width + min(width, SPARE_COLUMNS), few.n - 1)
            heavy = np.concatenate([heavy, weights[unseen]])
            found, shrunken = _extended(few, rows, order, heavy, columns, seed)
    except DegreeError:
        return probe
    xp = namespace(found)
    # √(wS) of y, where a row counts for itself at least: random columns are to be of one size in y, not in p.
    scale = xp.sqrt(all_weights * xp.maximum(shrunken, own * all_weights))
    scale = xp.where(scale > 0, scale, 1.0)[:, None]
    random = probe[:, np.arange(columns) % width] / scale
    known = found[:, 1:] / xp.where(found[:, :1] > 0, found[:, :1], 1.0)
    known = xp.where(xp.isfinite(known), known, 0.0)
    sizes = xp.sqrt(((scale * known) ** 2).mean(axis=0))
    known = known / xp.where(sizes > 0, sizes, 1.0) + xp.where(sizes > 0, STAYS, 1.0) * random
    if columns >= width > SPARE_COLUMNS:
        known[:, -GUARDS:] = probe[:, -GUARDS:] / scale
    return xp.concatenate([known, probe[:, columns:]], axis=1)  # type: ignore[no-any-return]


def _extended(
    few: GramOperator, rows: Rows, order: float, weights: FloatArray, columns: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Eigenvectors of the cut of a few rows, extended to all rows (n, 1 + b), and S(x) of all rows."""
    cut = NormalizedCut(few, order, weights)
    pairs = top_eigenpairs(cut, columns, tol=TOLERANCE, deflate=cut.trivial, random_state=seed)
    extension, _ = Extension.fit(cut, pairs)
    tops = range(0, rows.shape[0], PIECE_ROWS)
    pieces = [extension.embed(few.cross(rows[top : top + PIECE_ROWS])) for top in tops]
    found = namespace(pieces[0]).concatenate(pieces)
    return found, cut.volume * found[:, 0] ** 2


def _taken(rows: Rows, numbers: IntArray) -> Rows:
    """Some rows, where they lie."""
    return rows[numbers if on_host(rows) else moved(numbers, rows)]


def _unseen(shrunken: FloatArray, least: FloatArray, most: int) -> IntArray:
    """The numbers of rows whose S(x) is below the ``least``, ascending; of more than ``most`` those least seen."""
    if not scalars((shrunken < least).any())[0]:
        return np.empty(0, dtype=np.intp)
    share = to_host(shrunken) / to_host(least)
    order = np.argsort(share, kind="stable")[:most]
    return np.sort(order[share[order] < 1])
