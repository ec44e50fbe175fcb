"""Connected components: K falls into parts between which there is no similarity.

One convention for neighbourhoods, neighbour graphs, given sparse matrices and hypergraphs. k clusters are asked for.

1. If there are at least k components, they are grouped whole: nothing is cut. The k largest begin a group each, and
   every other one joins the group of the least volume, largest first.
2. If there are q < k, the eigenvectors of the order-2 cut are known for the components, and solved inside each of them:
   B is block diagonal but for the rank-one term. √(wS) on any union of components is an eigenvector of K's
   normalisation with eigenvalue 1, and eigenvectors of a component's own cut, zero elsewhere, are eigenvectors of the
   whole. So components need no iteration, and crowds of eigenvalues at 1 do no harm.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.neighbors.index import members_of
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.solver import EigenResult


def grouped(parts: IntArray, volumes: FloatArray, n_groups: int) -> IntArray:
    """The group of every component, (q,): whole components in at most so many groups of about the same volume."""
    totals = np.bincount(parts, volumes)
    group_of = np.empty(len(totals), dtype=np.intp)
    filled = np.zeros(min(n_groups, len(totals)))
    for rank, part in enumerate(np.argsort(-totals, kind="stable")):
        group = rank if rank < len(filled) else int(filled.argmin())
        group_of[part] = group
        filled[group] += totals[part]
    return group_of


Solve = Callable[[NormalizedCut, int], EigenResult]
"""So many leading eigenpairs of the cut of a connected component."""


def part_vectors(cut: NormalizedCut, part_of: IntArray) -> FloatArray:
    """Orthonormal vectors that span the parts' √(wS), (n, q); the first is the trivial one.

    They are the parts' own vectors after the reflection that takes the first of them to √(wS) of all rows.
    """
    volumes = np.bincount(part_of, cut.weights * cut.shrunken).astype(float)
    reflection = np.eye(len(volumes))
    away = np.sqrt(volumes / volumes.sum()) - reflection[0]
    if away.any():
        reflection -= 2 * np.outer(away, away) / float(away @ away)
    of_parts = reflection / np.sqrt(volumes)[:, None]
    return np.asarray(np.sqrt(cut.weights * cut.shrunken)[:, None] * of_parts[part_of])


def parted_eigenpairs(cut: NormalizedCut, part_of: IntArray, k: int, solve: Solve) -> EigenResult:
    """The k leading eigenpairs of B at order 2: q − 1 of the q parts, and the largest of the parts' own.

    The product with all vectors, one pass, gives true residuals.
    """
    if cut.order != 2:
        raise ValueError("degrees of higher orders are not those of a part")
    members_of_parts = members_of(part_of)
    n, q = len(part_of), len(members_of_parts)
    known = part_vectors(cut, part_of)[:, 1 : k + 1]
    own: list[EigenResult] = []
    for members in members_of_parts:
        wanted = min(k + 1 - q, len(members) - 1)
        if wanted > 0:
            inside = NormalizedCut(cut.gram.restricted(members), 2.0, cut.weights[members])
            own.append(solve(inside, wanted))
        else:
            own.append(EigenResult.none(np.empty(len(members))))
    ranked = sorted((-float(value), part, j) for part, found in enumerate(own) for j, value in enumerate(found.values))
    chosen = ranked[: max(k + 1 - q, 0)]
    vectors = np.zeros((n, known.shape[1] + len(chosen)))
    vectors[:, : known.shape[1]] = known
    for column, (_, part, j) in enumerate(chosen, start=known.shape[1]):
        vectors[members_of_parts[part], column] = own[part].vectors[:, j]
    images = cut.matmat(vectors)
    values = np.einsum("ij,ij->j", vectors, images)
    values[: known.shape[1]] = 1.0  # but for rounding
    order = np.argsort(-values, kind="stable")
    values, vectors, images = values[order], vectors[:, order], images[:, order]
    residuals = np.linalg.norm(images - vectors * values, axis=0)
    passes = max((found.n_passes for found in own), default=0)
    cut.n_passes += passes
    target = max((found.target for found in own if len(found.values)), default=0.0)
    finished = all(found.converged for found in own)
    return EigenResult(values, vectors, images, residuals, passes + 1, finished, float(target))
