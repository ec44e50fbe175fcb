"""The ways to store or compute an exact K of a kernel, by name."""

from __future__ import annotations

from collections.abc import Callable

from biclique.gram.dense import DenseGram
from biclique.gram.fourier import FourierGram
from biclique.gram.operator import GramOperator
from biclique.gram.tiled import TiledGram

GRAMS: dict[str, Callable[..., GramOperator]] = {
    "dense": DenseGram.from_kernel,
    "tiled": TiledGram,
    "fourier": FourierGram,
}
"""What makes K of a kernel and rows, with ``dtype``, ``n_jobs`` and ``tick``; settings and the command line read it."""
