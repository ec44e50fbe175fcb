"""What both searches share: a seed that is fixed, random halves, and fits in threads that Ctrl-C may end."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from threadpoolctl import ThreadpoolController

from biclique._typing import IntArray
from biclique.progress import Progress
from biclique.runtime import Pulse, run_groups


def random_halves(n: int, n_halves: int, random: np.random.RandomState) -> tuple[IntArray, ...]:
    """Numbers of the rows of random halves, both sides of one split after the other."""
    half, found = n // 2, list[IntArray]()
    while len(found) < n_halves:
        order = random.permutation(n)
        found += [np.sort(order[:half]), np.sort(order[half : 2 * half])]
    return tuple(found[:n_halves])


def run_silently(
    work: Callable[[int, Pulse], None], n_fits: int, total: int, n_jobs: int | None, progress: Progress, told: str
) -> bool:
    """Do every piece of work in threads, without a warning; False if Ctrl-C ended it."""
    pools = ThreadpoolController()

    def alone(number: int, pulse: Pulse) -> None:
        with pools.limit(limits=1):  # OpenMP counts threads by the thread that asks
            work(number, pulse)

    tick = None
    if progress.enabled:

        def tick(share: float) -> None:
            progress.share(told, share)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # threads share the filters
            run_groups(alone, n_fits, n_jobs=n_jobs, total=total, tick=tick)
    except KeyboardInterrupt:
        return False
    return True
