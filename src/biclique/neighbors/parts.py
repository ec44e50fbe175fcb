"""Parts of a stored matrix that do not touch each other."""

from __future__ import annotations

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.runtime.threads import given_panel

LINK = 1e-8
"""Two rows touch when |κ(x, y)| is above this share of √(κ(x, x) κ(y, y))."""


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
            step = given_panel(n)
            for top in range(0, len(frontier), step):
                rows, unseen = frontier[top : top + step], np.flatnonzero(labels < 0)
                touching = np.abs(K[np.ix_(rows, unseen)]) > LINK * root[rows, None] * root[unseen]
                new.append(unseen[touching.any(axis=0)])
                labels[new[-1]] = part
            frontier = np.concatenate(new)
        part += 1
    return labels
