"""Which feature map, and of which rank: chosen on a pool of rows, and compared there with the exact kernel."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.cluster._rows import digests
from biclique.exceptions import ApproximationWarning, ParameterError
from biclique.gram import FeatureMap, make_map, map_kind
from biclique.kernels import Kernel
from biclique.spectral import ApproximationError, ExactSample

POOL_ROWS = 20_000
"""Rows drawn to choose the bandwidth, the landmarks and the centres of k-means from."""

CHECK_ROWS = 2_000
"""Rows on which an approximation is compared with the exact kernel."""

RANKS = (128, 256, 512, 1024, 2048)
RANK_TOLERANCE = 0.01
"""``rank="auto"`` is the first of these ranks whose eigenvalues are this close to the exact ones on a sample."""


@dataclass(frozen=True)
class Pool:
    """Rows drawn at the start, from which everything is chosen that is not a sum over all rows."""

    rows: Rows
    weights: FloatArray
    distinct: IntArray  # where each of its distinct rows stands first, ascending

    @classmethod
    def of(cls, rows: Rows, weights: FloatArray) -> Pool:
        return cls(rows, weights, np.sort(np.unique(digests(rows), return_index=True)[1]))


@dataclass(frozen=True)
class ChosenMap:
    """A feature map, and how far its inner products are from the kernel: None where they are the kernel."""

    map: FeatureMap
    error: ApproximationError | None


def pool_size(rank: int | str) -> int:
    """How many rows to draw."""
    return POOL_ROWS if isinstance(rank, str) else max(POOL_ROWS, 4 * rank)


def choose_map(
    model: Any,
    gram: str,
    kernel: Kernel,
    pool: Pool,
    *,
    order: float,
    k: int,
    dtype: Any,
    random: np.random.RandomState,
    most: int = RANKS[-1],
) -> ChosenMap:
    """The feature map of the rank asked for, or of the first in ``RANKS``, up to ``most``, that is good enough."""
    kind = map_kind(gram, kernel, pool.rows.shape[1], model.rank)
    if kind == "exact":
        return ChosenMap(make_map(kind, kernel, pool.rows, 0, random=random, dtype=dtype), None)
    auto = isinstance(model.rank, str)
    if kind == "nystroem" and not auto:
        _check_landmarks(model.rank, len(pool.distinct), pool.rows.shape[0])
    compared = np.sort(random.permutation(pool.rows.shape[0])[:CHECK_ROWS])
    sample = ExactSample(kernel, _precise(pool.rows[compared]), pool.weights[compared], order, k, random)
    # At a landmark the approximation is exact: rows to compare on are none, where there are others.
    candidates = np.setdiff1d(pool.distinct, compared)
    if len(candidates) < (RANKS[0] if auto else model.rank):
        candidates = pool.distinct
    rows = pool.rows[candidates]
    sizes = [r for r in RANKS if r < len(candidates) and r <= most] or [len(candidates)] if auto else [int(model.rank)]
    for size in sizes:
        chosen = make_map(kind, kernel, rows, size, landmarks=model.landmarks, random=random, dtype=dtype)
        error = sample.error(chosen)
        if error.eigenvalues <= RANK_TOLERANCE:
            break
    if auto and not error.eigenvalues <= RANK_TOLERANCE:
        warnings.warn(
            f"gram={gram!r} of rank {chosen.size} has {error}, above the {RANK_TOLERANCE:g} that rank='auto' aims at: "
            "give a higher rank, lower gamma, or use gram='tiled' (exact).",
            ApproximationWarning,
            stacklevel=6,
        )
    return ChosenMap(chosen, error)


def check_rank(rank: int | str, n_rows: int | None) -> None:
    """Refuse more landmarks or features than rows."""
    if not isinstance(rank, str) and n_rows is not None and rank > n_rows:
        raise ParameterError(
            f"rank={rank} is more than the {n_rows} rows there are: use rank='auto', or gram='dense', which is exact "
            "and smaller."
        )


def _check_landmarks(rank: int, distinct: int, drawn: int) -> None:
    if rank > distinct:
        raise ParameterError(
            f"rank={rank} landmarks need as many distinct rows, and there are {distinct} among {drawn} rows: use "
            f"rank='auto', a rank of at most {distinct}, or gram='dense' (exact)."
        )


def _precise(rows: Rows) -> Rows:
    return rows.astype(np.float64) if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
