"""Random row numbers without replacement, ascending.

There are two functions because each seed must keep drawing the rows that it always drew: they use the generator's
numbers differently, so neither can take the other's place.
"""

import numpy as np
from sklearn.utils import check_random_state

from biclique._typing import IntArray


def draw_by_permutation(n: int, size: int, random_state: int | np.random.RandomState | None) -> IntArray:
    """At most ``size`` of n row numbers, from a permutation of all n; all n if ``size`` is at least n."""
    if n <= size:
        return np.arange(n)
    return np.sort(check_random_state(random_state).choice(n, size, replace=False))


def draw_numbers(n: int, size: int, random: np.random.RandomState) -> IntArray:
    """At most ``size`` of n row numbers; memory grows with ``size``, not with n."""
    if size >= n:
        return np.arange(n)
    if 2 * size > n:
        stays = np.ones(n, dtype=bool)
        stays[draw_numbers(n, n - size, random)] = False
        return np.flatnonzero(stays)
    drawn = np.empty(0, dtype=np.intp)
    while len(drawn) < size:  # at most half are taken: what is missing halves, at least, every time
        more = random.randint(0, n, size=size - len(drawn), dtype=np.int64)
        drawn = np.sort(np.append(drawn, more))
        drawn = drawn[np.diff(drawn, prepend=-1) > 0]
    return drawn
