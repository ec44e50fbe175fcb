"""Eigenpairs of the order-2 cut of a K that falls into parts: known for the parts, solved inside each of them.

Where there is no similarity between parts, B is block diagonal but for the rank-one term. √(wS) on any union of parts
is an eigenvector of K's normalisation with eigenvalue 1, and eigenvectors of a part's own cut, zero elsewhere, are
eigenvectors of the whole. So parts need no iteration, and crowds of eigenvalues at 1 do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.solver import EigenResult

Solve = Callable[[IntArray, int], EigenResult]
"""The leading eigenpairs of the cut of some rows alone."""


@dataclass(frozen=True)
class PartedPairs:
    """Eigenpairs of the whole, and the eigenvalues that each part has of its own."""

    pairs: EigenResult
    values_of_parts: list[FloatArray]


def parted_rotation(volumes: FloatArray) -> FloatArray:
    """A reflection of the parts' own vectors, (q, q), after which the first one is √(wS) of all rows, normalised."""
    first = np.sqrt(volumes / volumes.sum())
    away = first - np.eye(len(volumes))[0]
    length = float(away @ away)
    return np.eye(len(volumes)) - (2 * np.outer(away, away) / length if length > 0 else 0.0)


def part_vectors(cut: NormalizedCut, part_of: IntArray) -> FloatArray:
    """Orthonormal vectors that span the parts' √(wS), (n, q); the first is the trivial one."""
    volumes = np.bincount(part_of, cut.weights * cut.shrunken).astype(float)
    of_parts = parted_rotation(volumes) / np.sqrt(volumes)[:, None]
    return np.asarray(np.sqrt(cut.weights * cut.shrunken)[:, None] * of_parts[part_of])


def parted_eigenpairs(
    cut: NormalizedCut, part_of: IntArray, cores: Sequence[IntArray], k: int, solve: Solve
) -> PartedPairs:
    """The k leading eigenpairs of B at order 2: q − 1 of the parts, and the largest of the parts' own.

    ``cores`` are the rows of each part whose own cut is solved; none for a part that is not to be cut. The product with
    all vectors, one pass, gives true residuals.
    """
    n, q = len(part_of), len(cores)
    known = part_vectors(cut, part_of)[:, 1 : k + 1]
    own: list[EigenResult] = []
    for members in cores:
        wanted = min(k + 1 - q, len(members) - 1)
        own.append(solve(members, wanted) if wanted > 0 else EigenResult.none(np.empty(len(members))))
    ranked = sorted((-float(value), part, j) for part, found in enumerate(own) for j, value in enumerate(found.values))
    inner = np.zeros((n, min(len(ranked), max(k + 1 - q, 0))))
    for column, (_, part, j) in enumerate(ranked[: inner.shape[1]]):
        inner[cores[part], column] = own[part].vectors[:, j]
    vectors = np.column_stack([known, inner])
    images = cut.matmat(vectors)
    values = np.einsum("ij,ij->j", vectors, images)
    residuals = np.linalg.norm(images - vectors * values, axis=0)
    passes = max((found.n_passes for found in own), default=0)
    cut.n_passes += passes
    target = max((found.target for found in own if len(found.values)), default=0.0)
    pairs = EigenResult(
        values, vectors, images, residuals, passes + 1, all(found.converged for found in own), float(target)
    )
    return PartedPairs(pairs, [found.values for found in own])
