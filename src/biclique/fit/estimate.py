"""What an exact fit will take: the speed of a few tiles times the passes that a sample of the rows needs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from biclique.exceptions import BicliqueError
from biclique.fit.cost import STARTED_PASSES, TYPICAL_PASSES, Cost, estimate_seconds, products_per_second
from biclique.fit.exact import asked_rule, search_some
from biclique.fit.prepare import Chosen, starts_from_few
from biclique.gram import FACTORED
from biclique.runtime.threads import single_threaded_blas
from biclique.spectral import block_columns, solves_directly
from biclique.spectral.order import TEST_STARTS, OrderRule

SAMPLE = 2_048
"""Rows of the sample that says how many passes are needed, at most a quarter of all."""

STARTED_SHARE = 0.75
"""Of these passes, where the solver starts from the eigenvectors of a few rows."""

LLOYD_STEPS = 12
"""Of one start of k-means, besides the drawing of centres, which tries 2 + ln k rows for each of them."""

DIRECT_PRODUCTS = 12
"""A full decomposition takes as long as so many n³ additions and multiplications of a matrix product."""


@dataclass(frozen=True)
class Effort:
    """Passes over K, and the orders that are tested."""

    passes: float
    tests: int


def estimate_exact(model: Any, chosen: Chosen, n_columns: int, n_clusters: int) -> Cost:
    """Time and memory of an exact fit; nothing is fitted but a sample."""
    vertices, kernel, plan = chosen.vertices, chosen.kernel, chosen.plan
    rule = asked_rule(model, chosen, n_clusters)
    effort = _effort(model, chosen, rule, n_columns)
    seconds = estimate_seconds(
        kernel,
        vertices.data,
        gram=plan.gram,
        dtype=plan.dtype,
        columns=block_columns(plan.n_vectors, vertices.n),
        n_jobs=model.n_jobs,
        passes=effort.passes,
    )
    speed = products_per_second()
    if not plan.iterates and plan.n_vectors > 0:
        seconds += max(effort.tests, 1) * DIRECT_PRODUCTS * vertices.n**3 / speed
    starts = effort.tests * TEST_STARTS + (getattr(model, "n_init", 0) if hasattr(model, "n_clusters") else 0)
    steps = LLOYD_STEPS + 2 + np.log(n_clusters)
    seconds += starts * steps * vertices.n * n_clusters * n_columns / speed
    return Cost(plan.gram, vertices.n, float(seconds), plan.gram_bytes + plan.basis_bytes)


def _effort(model: Any, chosen: Chosen, rule: OrderRule, n_columns: int) -> Effort:
    """What the rows ask for, seen on a sample where that is possible."""
    vertices, plan = chosen.vertices, chosen.plan
    started = starts_from_few(plan, vertices.n)
    usual = Effort(STARTED_PASSES if started else TYPICAL_PASSES, int(len(rule.orders) > 1))
    size = min(SAMPLE, vertices.n // 4)
    if chosen.kernel is None or plan.gram in FACTORED or not plan.iterates or solves_directly(size, n_columns):
        return usual
    with warnings.catch_warnings(), single_threaded_blas():
        warnings.simplefilter("ignore")
        try:
            search = search_some(model, chosen.kernel, vertices, rule, n_columns, plan.dtype, 0, size, "auto")
            found, _ = search.run(asked=len(rule.orders) == 1)
        except BicliqueError:  # the fit will say so
            return usual
    passes = found.result.cut.n_passes * (STARTED_SHARE if started else 1.0)
    return Effort(max(passes, usual.passes), max(search.n_tests, usual.tests))
