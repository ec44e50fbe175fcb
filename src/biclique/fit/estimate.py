"""What a planned fit will take: the speed of a few tiles times the usual number of passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from biclique.device.torch_tiles import device_type
from biclique.exceptions import ParameterError
from biclique.features.maps import device_factored_bytes, factored_bytes, make_map
from biclique.features.neighborhoods import LANDMARKS
from biclique.fit.cost import (
    DEVICE_SECONDS_PER_ROW,
    STARTED_PASSES,
    TYPICAL_PASSES,
    device_factored_seconds,
    device_seconds,
    estimate_factored,
    estimate_neighbors,
    estimate_seconds,
    products_per_second,
    torch_cpu_seconds,
)
from biclique.fit.low_rank import kind_of_map, rank_of
from biclique.fit.plan import FACTORED_WAY, NEIGHBORHOODS, Plan, Planned
from biclique.progress import format_seconds
from biclique.rows.array import Pool, RowSource, Vertices
from biclique.runtime import count_threads
from biclique.runtime.namespace import PIECE_ROWS

SECONDS_AT_LEAST, SECONDS_PER_DISTANCE, DISTANCE_COLUMNS = 0.1, 1e-10, 30
"""Of neighbourhoods: of the smallest fit, and of a column of a distance between a row and a landmark, on one core. What
else a distance takes counts as so many columns."""

LLOYD_STEPS = 12
"""Of one start of k-means, besides the drawing of centres, which tries 2 + ln k rows for each of them."""

DIRECT_PRODUCTS = 12
"""A full decomposition takes as long as so many n³ additions and multiplications of a matrix product."""


def with_seconds(planned: Planned, source: RowSource) -> Plan:
    """The plan with its time; nothing is fitted."""
    plan, pool = planned.plan, planned.pool
    if plan.way == NEIGHBORHOODS:
        landmarks = LANDMARKS if isinstance(plan.rank, str) else plan.rank or 1
        distances = plan.rows * min(landmarks, plan.rows) * (source.n_columns + DISTANCE_COLUMNS)
        seconds = SECONDS_AT_LEAST + SECONDS_PER_DISTANCE * distances / count_threads(plan.settings.n_jobs)
        return replace(plan, seconds=seconds)
    if plan.way == FACTORED_WAY and pool is not None:
        return _factored(plan, source, pool)
    if plan.device is not None and pool is not None:
        return replace(plan, seconds=_on_device(plan, source, pool))
    if plan.settings.kernel.neighbors:
        d = 1 if plan.settings.kernel.given else source.n_columns
        return replace(plan, seconds=estimate_neighbors(plan.rows, d, plan.settings.n_columns))
    if planned.vertices is None:
        return plan
    return replace(plan, seconds=_exact(plan, planned.vertices))


def check_hours(plan: Plan, source: RowSource) -> Plan:
    """The plan with the time of all workers if they run it; refuse what would take more than ``max_hours``."""
    if source.spread is None or plan.seconds is None:
        return plan
    threads = source.spread.n_threads
    seconds = plan.seconds * count_threads(plan.settings.n_jobs) / threads
    most = plan.settings.holding.max_hours
    if seconds > 3600 * most:
        raise ParameterError(
            f"gram='tiled' of {plan.rows} rows would take about {format_seconds(seconds)} on {threads} threads of the "
            f"cluster, more than max_hours={most:g}: raise max_hours, add workers, or use gram='nystroem'."
        )
    return replace(plan, seconds=seconds)


def _exact(plan: Plan, some: Vertices) -> float:
    settings, n = plan.settings, plan.rows
    seconds = estimate_seconds(
        plan.kernel,
        some.data,
        n,
        gram=plan.gram,
        dtype=plan.dtype,
        columns=plan.block,
        n_jobs=settings.n_jobs,
        passes=STARTED_PASSES if plan.start_rows else TYPICAL_PASSES,
    )
    speed = products_per_second()
    if not plan.iterates and plan.n_vectors > 0:
        seconds += DIRECT_PRODUCTS * n**3 / speed
    assigning, k = settings.assigning, settings.n_groups
    starts = assigning.n_init if assigning.n_clusters is not None else 0
    steps = LLOYD_STEPS + 2 + np.log(k)
    return float(seconds + starts * steps * n * k * settings.n_columns / speed)


def _on_device(plan: Plan, source: RowSource, pool: Pool) -> float:
    if plan.kernel is None or plan.device is None:
        return 0.0
    n, passes = plan.rows, STARTED_PASSES if plan.start_rows else TYPICAL_PASSES
    if device_type(plan.device) == "cpu":
        return torch_cpu_seconds(plan.kernel, pool.rows, n, columns=plan.block, passes=passes, precision=plan.precision)
    there = device_seconds(
        plan.kernel,
        n,
        source.n_columns,
        columns=plan.block,
        passes=passes,
        precision=plan.precision,
        device=plan.device,
    )
    return there + DEVICE_SECONDS_PER_ROW * n * plan.settings.n_columns


def _factored(plan: Plan, source: RowSource, pool: Pool) -> Plan:
    """Three passes over the rows, from the speed of a block of them; on a GPU, from what is known of one."""
    settings, n, d, kernel = plan.settings, plan.rows, source.n_columns, plan.kernel_of_rows
    kind = kind_of_map(settings.holding, plan.gram, kernel, d)
    rank = rank_of(settings.holding, pool.n_distinct)
    random = np.random.RandomState(0)
    made = make_map(kind, kernel, pool.rows[pool.distinct], rank, random=random, dtype=plan.dtype)
    kept = n * 8 * (settings.n_columns + 1) if source.in_memory else 4 * n
    if plan.device is None or device_type(plan.device) == "cpu":
        seconds = estimate_factored(made, pool.rows, n, settings.n_jobs)
    else:
        seconds = device_factored_seconds(made.size, n, d) + DEVICE_SECONDS_PER_ROW * n * settings.n_columns
    size = factored_bytes(made.size, PIECE_ROWS, d) + kept
    if plan.device is None:
        return replace(plan, seconds=seconds, bytes=size)
    rows = n * (d * pool.rows.dtype.itemsize + 8 * settings.n_columns)
    there = rows + device_factored_bytes(made.size, made.dtype.itemsize)
    return replace(plan, seconds=seconds, bytes=size, device_bytes=there)
