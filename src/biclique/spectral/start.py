"""A start for the eigenvector solver from the cut of a few rows: it saves passes over all of them."""

from __future__ import annotations

from biclique._typing import FloatArray, Rows
from biclique.exceptions import DegreeError
from biclique.gram import GramOperator
from biclique.io import CHUNK_ROWS
from biclique.namespace import namespace
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.extend import Extension
from biclique.spectral.solver import top_eigenpairs

TOLERANCE = 0.1
"""Of the few rows' eigenvectors, as a share of their eigengap: the few are not all."""
STAYS = 1e-3
"""The share of the random start that stays, so that no direction is left out that the few rows do not have."""
SMALLEST = 1e-300


def start_from_few(
    probe: FloatArray, few: GramOperator, rows: Rows, order: float, weights: FloatArray, seed: int
) -> FloatArray:
    """A random ``probe`` (n, b) with the b eigenvectors of the cut of ``few`` rows, extended to all n ``rows``.

    The solver starts from √(wS) p, so p = v(x)/√S(x), up to scale the coordinates over the trivial one. Where the few
    rows have no cut of their own, as under kernels with negative values, the probe is returned as it is.
    """
    try:
        cut = NormalizedCut(few, order, weights)
        columns = min(probe.shape[1], few.n - 1)
        pairs = top_eigenpairs(cut, columns, tol=TOLERANCE, deflate=cut.trivial, random_state=seed)
        extension, _ = Extension.fit(cut, pairs, few.noise)
        tops = range(0, rows.shape[0], CHUNK_ROWS)
        parts = [extension.embed(few.cross(rows[top : top + CHUNK_ROWS])) for top in tops]
    except DegreeError:
        return probe
    xp = namespace(parts[0])
    found = xp.concatenate(parts)
    found = found[:, 1:] / xp.clip(found[:, :1], SMALLEST, None)
    found = xp.where(xp.isfinite(found), found, 0.0)
    sizes = xp.sqrt((found * found).mean(0))
    usable = xp.isfinite(sizes) & (sizes > 0)
    found = xp.where(usable, found / xp.where(usable, sizes, 1.0), 0.0)
    kept = xp.where(usable, STAYS, 1.0)
    columns = found.shape[1]
    return xp.concatenate([found + kept * probe[:, :columns], probe[:, columns:]], axis=1)  # type: ignore[no-any-return]
