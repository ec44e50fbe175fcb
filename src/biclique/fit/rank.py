"""Which feature map, and of which rank: chosen on a pool of rows, and compared there with the exact kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from biclique._typing import Rows
from biclique.exceptions import ApproximationWarning, ParameterError, warn_user
from biclique.features.maps import FEATURE_MAPS, MOST_EXACT_COLUMNS, FeatureMap, make_map, map_kind
from biclique.fit.settings import HoldingSettings
from biclique.kernels import Kernel
from biclique.rows.array import Pool
from biclique.spectral import ApproximationError, ExactSample

if TYPE_CHECKING:
    from biclique.fit.plan import Plan

POOL_ROWS = 20_000
"""Rows drawn to choose the bandwidth, the landmarks and the centres of k-means from."""

CHECK_ROWS = 2_000
"""Rows on which an approximation is compared with the exact kernel."""

RANKS = (128, 256, 512, 1024, 2048)
RANK_TOLERANCE = 0.01
"""``rank="auto"`` is the first of these ranks whose eigenvalues are this close to the exact ones on a sample."""


@dataclass(frozen=True)
class ChosenMap:
    """A feature map, and how far its inner products are from the kernel: None where they are the kernel."""

    map: FeatureMap
    error: ApproximationError | None


def pool_size(rank: int | str) -> int:
    """How many rows to draw."""
    return POOL_ROWS if isinstance(rank, str) else max(POOL_ROWS, 4 * rank)


def choose_map(plan: Plan, pool: Pool, random: np.random.RandomState) -> ChosenMap:
    """The feature map of the rank asked for, or of the first in ``RANKS``, within memory, that is good enough."""
    holding, gram, kernel, dtype, most = plan.settings.holding, plan.gram, plan.kernel, plan.dtype, plan.most_rank
    if kernel is None:
        raise TypeError("a feature map is of a kernel")
    kind = kind_of_map(holding, gram, kernel, pool.rows.shape[1])
    landmarks = FEATURE_MAPS[kind].has_landmarks
    if FEATURE_MAPS[kind].exact:
        return ChosenMap(make_map(kind, kernel, pool.rows, 0, random=random, dtype=dtype), None)
    auto = isinstance(holding.rank, str)
    available = pool.n_distinct
    if landmarks and not isinstance(holding.rank, str):
        _check_landmarks(holding.rank, available, pool.rows.shape[0])
    compared = np.sort(random.permutation(pool.rows.shape[0])[: min(CHECK_ROWS, max(pool.rows.shape[0] // 2, 2))])
    sample = ExactSample(
        kernel, _precise(pool.rows[compared]), pool.weights[compared], plan.orders[0], plan.n_vectors, random
    )
    # At a landmark the approximation is exact: rows to compare on are none, where there are others.
    others = np.setdiff1d(pool.distinct, compared)
    if not auto:
        sizes = [int(holding.rank)]
    else:
        # Of features there are never more than about twice the rows: K itself is smaller then.
        largest = available - 1 if landmarks else max(2 * available, RANKS[0])
        sizes = [r for r in RANKS if r <= min(most, largest)]
        if landmarks and available <= most:
            sizes.append(available)  # all of them: exact
    for size in sizes:
        rows = pool.rows[others if size <= len(others) else pool.distinct]
        chosen = make_map(kind, kernel, rows, size, landmarks=holding.landmarks, random=random, dtype=dtype)
        error = sample.error(chosen)
        if error.eigenvalues <= RANK_TOLERANCE:
            break
    if auto and not error.eigenvalues <= RANK_TOLERANCE:
        warn_user(
            f"gram={gram!r} of rank {chosen.size} has {error}, above the {RANK_TOLERANCE:g} that rank='auto' aims at: "
            "give a higher rank, lower gamma, or use gram='tiled' (exact).",
            ApproximationWarning,
        )
    return ChosenMap(chosen, error)


def kind_of_map(holding: HoldingSettings, gram: str, kernel: Kernel, n_columns: int) -> str:
    """Which feature map holds K. ``gram="auto"`` takes features only because they are exact, whatever the rank."""
    return map_kind(gram, kernel, n_columns, "auto" if holding.gram == "auto" else holding.rank)


def check_map_on_device(holding: HoldingSettings, gram: str, kernel: Kernel, n_columns: int) -> None:
    """Refuse a feature map that only the host computes: called with the bare kernel, and once it is chosen."""
    if gram == "nystroem" and not kernel.landmarks_on_device:
        exact = "gram='auto' (exact), or " if kernel.on_device else ""
        raise ParameterError(
            "landmarks on a device are for kernels of an inner product (rbf, polynomial, linear, cosine), not for "
            f"{kernel.label}: use {exact}the host (device=None, X as an array)."
        )
    kind = kind_of_map(holding, gram, kernel, n_columns)
    if kind == gram and not FEATURE_MAPS[kind].takes_tensors:
        raise ParameterError(f"gram={gram!r} is not there on a device: use gram='nystroem', or the host (device=None).")
    if not FEATURE_MAPS[kind].takes_tensors:
        columns = kernel.exact_columns(n_columns)
        exact = "rank='auto' (all of them, exact), " if columns is not None and columns <= MOST_EXACT_COLUMNS else ""
        raise ParameterError(
            f"gram='features' of {columns} monomials ({kernel.name}, {n_columns} columns) with rank={holding.rank!r} "
            f"is a sketch, which is not there on a device: use {exact}gram='nystroem', or the host (device=None)."
        )


def check_rank(rank: int | str, n_rows: int | None, *, held: bool = True, what: str = "rows") -> None:
    """Refuse more landmarks or features than rows."""
    if not isinstance(rank, str) and n_rows is not None and rank > n_rows:
        way_out = "use rank='auto', or gram='dense', which is exact and smaller" if held else "use rank='auto'"
        raise ParameterError(f"rank={rank} is more than the {n_rows} {what} there are: {way_out}.")


def _check_landmarks(rank: int, distinct: int, drawn: int) -> None:
    if rank > distinct:
        raise ParameterError(
            f"rank={rank} landmarks need as many distinct rows, and there are {distinct} among {drawn} rows: use "
            f"rank='auto', a rank of at most {distinct}, or gram='dense' (exact)."
        )


def _precise(rows: Rows) -> Rows:
    return rows.astype(np.float64) if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
