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
from biclique.spectral.solver import EigenResult, RitzSpace, Space

Solve = Callable[[IntArray, int], EigenResult]
"""The leading eigenpairs of the cut of some rows alone."""


@dataclass(frozen=True)
class PartedPairs:
    """Eigenpairs of the whole, and the eigenvalues that each part has of its own."""

    pairs: EigenResult
    values_of_parts: list[FloatArray]


@dataclass(frozen=True)
class PartedSpace:
    """The parts' own vectors, eigenvalue 1, and a space inside each part that was solved."""

    known: FloatArray  # (n, q − 1)
    inside: list[tuple[IntArray, Space]]

    def rescaled(self, ratio: FloatArray, columns: int) -> tuple[FloatArray, FloatArray]:
        """As ``RitzSpace.rescaled``: the leading vectors of all pieces, of one length, and their images."""
        root = np.sqrt(ratio)[:, None]
        everywhere: IntArray = np.arange(len(ratio))
        pieces: list[tuple[IntArray, FloatArray, FloatArray]] = [(everywhere, root * self.known, self.known / root)]
        pieces += [(members, *space.rescaled(ratio[members], columns)) for members, space in self.inside]
        lengths = [np.linalg.norm(start, axis=0) for _, start, _ in pieces]
        values = [
            np.einsum("ij,ij->j", start, image) / size**2
            for (_, start, image), size in zip(pieces, lengths, strict=True)
        ]
        ranked = sorted((-float(x), piece, j) for piece, own in enumerate(values) for j, x in enumerate(own))[:columns]
        starts, images = np.zeros((2, len(ratio), len(ranked)))
        for column, (_, piece, j) in enumerate(ranked):
            members, start, image = pieces[piece]
            starts[members, column] = start[:, j] / lengths[piece][j]
            images[members, column] = image[:, j] / lengths[piece][j]
        return starts, images


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
    all vectors, one pass, gives true residuals; none is spent on a search that was given up.
    """
    n, q = len(part_of), len(cores)
    known = part_vectors(cut, part_of)[:, 1 : k + 1]
    own: list[EigenResult] = []
    for members in cores:
        wanted = min(k + 1 - q, len(members) - 1)
        own.append(solve(members, wanted) if wanted > 0 else EigenResult.none(np.empty(len(members))))
    ranked = sorted((-float(value), part, j) for part, found in enumerate(own) for j, value in enumerate(found.values))
    chosen = ranked[: max(k + 1 - q, 0)]
    vectors, images = np.zeros((2, n, known.shape[1] + len(chosen)))
    vectors[:, : known.shape[1]] = images[:, : known.shape[1]] = known
    for column, (_, part, j) in enumerate(chosen, start=known.shape[1]):
        vectors[cores[part], column] = own[part].vectors[:, j]
        images[cores[part], column] = own[part].images[:, j]
    finished = all(found.converged for found in own)
    if finished:
        images = cut.matmat(vectors)
    values = np.einsum("ij,ij->j", vectors, images)
    residuals = np.linalg.norm(images - vectors * values, axis=0)
    passes = max((found.n_passes for found in own), default=0)
    cut.n_passes += passes
    target = max((found.target for found in own if len(found.values)), default=0.0)
    inside = [
        (members, found.space or RitzSpace.of_pairs(found))
        for members, found in zip(cores, own, strict=True)
        if len(found.values)
    ]
    pairs = EigenResult(
        values, vectors, images, residuals, passes + finished, finished, float(target), PartedSpace(known, inside)
    )
    return PartedPairs(pairs, [found.values for found in own])
