"""What a planned fit will take: the speed of a few tiles times the passes that a sample of the rows needs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from biclique.device.torch_tiles import device_type
from biclique.exceptions import BicliqueError, ParameterError
from biclique.features.maps import device_factored_bytes, factored_bytes, make_map
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
from biclique.fit.exact import search_some
from biclique.fit.low_rank import kind_of_map
from biclique.fit.plan import FACTORED_WAY, GRAPH, Plan, Planned
from biclique.io import CHUNK_ROWS
from biclique.progress import format_seconds
from biclique.rows.array import Pool, RowSource, Vertices
from biclique.runtime import count_threads, single_threaded_blas
from biclique.spectral import TEST_STARTS, OrderRule, solves_directly

ESTIMATE_RANK = 512
"""Of ``rank="auto"``, which is known only after a look at the data."""

SAMPLE = 2_048
"""Rows of the sample that says how many passes are needed, at most a quarter of all."""

STARTED_SHARE = 0.75
"""The share of the passes that is left if the solver starts from the eigenvectors of a few rows."""

LLOYD_STEPS = 12
"""Of one start of k-means, besides the drawing of centres, which tries 2 + ln k rows for each of them."""

DIRECT_PRODUCTS = 12
"""A full decomposition takes as long as so many n³ additions and multiplications of a matrix product."""


@dataclass(frozen=True)
class Effort:
    """Passes over K, and the orders that are tested."""

    passes: float
    tests: int


def with_seconds(planned: Planned, source: RowSource) -> Plan:
    """The plan with its time; nothing is fitted but a sample."""
    plan, pool = planned.plan, planned.pool
    if plan.way == FACTORED_WAY and pool is not None:
        return _factored(plan, source, pool)
    if plan.device is not None and pool is not None:
        return replace(plan, seconds=_on_device(plan, source, pool))
    if plan.way == GRAPH:
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
    rule = replace(OrderRule.of(some.weights, settings.n_groups, plan.orders), orders=plan.orders)
    effort = _effort(plan, some, rule)
    seconds = estimate_seconds(
        plan.kernel,
        some.data,
        n,
        gram=plan.gram,
        dtype=plan.dtype,
        columns=plan.block,
        n_jobs=settings.n_jobs,
        passes=effort.passes,
    )
    speed = products_per_second()
    if not plan.iterates and plan.n_vectors > 0:
        seconds += max(effort.tests, 1) * DIRECT_PRODUCTS * n**3 / speed
    assigning, k = settings.assigning, settings.n_groups
    starts = effort.tests * TEST_STARTS + (assigning.n_init if assigning.n_clusters is not None else 0)
    steps = LLOYD_STEPS + 2 + np.log(k)
    return float(seconds + starts * steps * n * k * settings.n_columns / speed)


def _effort(plan: Plan, some: Vertices, rule: OrderRule) -> Effort:
    """What the rows need, measured on a sample if that is possible."""
    usual = Effort(STARTED_PASSES if plan.start_rows else TYPICAL_PASSES, int(len(rule.orders) > 1))
    size = min(SAMPLE, plan.rows // 4)
    few = plan.kernel is None or plan.rank is not None or not plan.iterates
    if few or plan.kernel is None or solves_directly(size, plan.settings.n_columns):
        return usual
    with warnings.catch_warnings(action="ignore"), single_threaded_blas():
        try:
            search = search_some(plan.settings, plan.kernel, some, rule, plan.dtype, 0, size, None)
            found, _ = search.run(asked=len(rule.orders) == 1)
        except BicliqueError:  # the fit will say so
            return usual
    passes = found.result.cut.n_passes * (STARTED_SHARE if plan.start_rows else 1.0)
    return Effort(max(passes, usual.passes), max(search.n_tests, usual.tests))


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
    rank = ESTIMATE_RANK if isinstance(settings.holding.rank, str) else settings.holding.rank
    random = np.random.RandomState(0)
    made = make_map(kind, kernel, pool.rows[pool.distinct], rank, random=random, dtype=plan.dtype)
    kept = n * 8 * (settings.n_columns + 1) if source.in_memory else 4 * n
    if plan.device is None or device_type(plan.device) == "cpu":
        seconds = estimate_factored(made, pool.rows, n, settings.n_jobs)
    else:
        seconds = device_factored_seconds(made.size, n, d) + DEVICE_SECONDS_PER_ROW * n * settings.n_columns
    size = factored_bytes(made.size, CHUNK_ROWS, d) + kept
    if plan.device is None:
        return replace(plan, seconds=seconds, bytes=size)
    rows = n * (d * pool.rows.dtype.itemsize + 8 * settings.n_columns)
    there = rows + device_factored_bytes(made.size, made.dtype.itemsize)
    return replace(plan, seconds=seconds, bytes=size, device_bytes=there)
