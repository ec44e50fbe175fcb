"""Seconds of a piece of work, and of a matrix product to compare machines by."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """The least seconds of several runs."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def product_seconds() -> float:
    """A 4000³ float32 matrix product, best of three."""
    A = np.random.default_rng(0).standard_normal((4000, 4000), dtype=np.float32)
    return best_of(3, lambda: A @ A)
