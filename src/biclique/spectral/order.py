"""The order, chosen by the data: the least one that leaves no cluster of dust.

The order keeps isolated rows from owning an eigenvector, and its price is that dense clusters are split. So it is
turned only as far as the data ask: orders are tried in turn, and the first is taken whose k clusters (k-means with ten
starts on unit rows of the embedding) all hold at least 1/√(n_e k) of the weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DegreeError
from biclique.runtime.namespace import moved, to_host
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.solver import Progressing

ORDERS = (2.0, 2.05, 2.1, 2.25, 2.5, 3.0, 4.0)
SYMMETRIC_ORDERS = (2.0, 3.0, 4.0)

NEIGHBOR_ORDER = 2.1
"""For neighbour graphs: hardly more than the ordinary cut, which follows curved shapes."""

TEST_STARTS = 10
"""Starts of the k-means by which an order is tested, whatever ``n_init`` is."""

TRY_ALL = 30_000
"""Up to so many distinct rows order 2 is tried on all of them; with more, a sample proposes an order."""

PROPOSAL_ROWS, DEAR_PROPOSAL_ROWS = 4_096, 2_048
"""Rows of that sample; the second where a kernel value is dear."""

PATIENCE = 5
"""Passes before eigenvectors are looked at, whether they live on dust."""

SLOWEST = 0.75
"""A Ritz value that rises by more than this share of its last rise is taken to rise by this share."""

SEEN_TOLERANCE = 0.1
"""Residuals over the eigengap at which clusters are looked at for the first time: dust shows early."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Attempt(Generic[Result]):
    """A fit at one order."""

    order: float
    smallest: float
    """The share of the weight of its smallest cluster: 0 where one is empty."""
    result: Result
    refused: str = ""
    """Why it does not do, whatever its clusters are."""


@dataclass(frozen=True)
class OrderRule:
    """Which orders, and what a cluster must hold."""

    orders: tuple[float, ...]
    n_clusters: int
    least: float
    total: float
    """The weight of all rows: their number, where weights are 1."""
    told: tuple[str, ...] = ()
    """What ruled lower orders out already."""

    @classmethod
    def of(cls, weights: FloatArray, n_clusters: int, orders: Sequence[float]) -> OrderRule:
        """The rule for distinct rows with these weights; order 2 alone where there is nothing to tell apart."""
        if n_clusters < 2 or len(weights) <= n_clusters:
            orders = orders[:1]
        return cls(tuple(orders), n_clusters, least_share(weights, n_clusters), float(weights.sum()))

    def smallest(self, labels: IntArray, weights: FloatArray) -> float:
        """The share of the smallest of the k clusters."""
        return float(np.bincount(labels, weights, self.n_clusters).min() / weights.sum())

    def passes(self, attempt: Attempt[Result]) -> bool:
        """Whether an attempt does."""
        return not attempt.refused and attempt.smallest >= self.least

    def lives_on_dust(self, vectors: FloatArray, weights: FloatArray, total: float) -> bool:
        """Whether any of some vectors has its weight on fewer rows than two clusters need: 1/Σ v⁴ rows of n.

        Where eigenvalues crowd because of isolated rows, passes without end would go into telling these apart.
        """
        peak = to_host((vectors**4 / moved(weights, vectors)[:, None]).sum(0)).max(initial=0.0)
        return float(peak) * 2 * self.least * total > 1

    def rows(self, share: float) -> float:
        """A share of the weight as a number of rows."""
        return share * self.total


class Dust:
    """Whether the eigenvectors that are being found are of dust; asked after every pass, says why.

    - A vector has its weight on fewer rows than two clusters need.
    - A single row i is worth an eigenvalue of at least B_ii, and the k-th Ritz value will hardly get there: it stands
      below, by more than twice what it still rises if it goes on as in the last two passes. That row's eigenvector will
      then be among the k.
    """

    def __init__(self, rule: OrderRule, cut: NormalizedCut, total: float) -> None:
        self.rule, self.cut, self.total = rule, cut, total
        self._loneliest = cut.loneliest
        self._before, self._rise = -np.inf, 0.0

    def __call__(self, now: Progressing, vectors: Callable[[], FloatArray]) -> str:
        rise, self._before = now.least - self._before, now.least
        # Rises are about a geometric series.
        slower = min(rise / self._rise, SLOWEST) if min(rise, self._rise) > 0 else SLOWEST
        self._rise = rise
        if now.passes < PATIENCE:
            return ""
        if self._loneliest > now.least + 2 * rise * slower / (1 - slower):
            return "a single row owns an eigenvector"
        if self.rule.lives_on_dust(vectors(), self.cut.weights, self.total):
            return "an eigenvector lives on too few rows"
        return ""


def least_order(
    rule: OrderRule, attempt: Callable[[float, Attempt[Result] | None], Attempt[Result]]
) -> tuple[Attempt[Result], str]:
    """The first attempt that passes, and the sizes that ruled lower orders out.

    If none does: the one whose smallest cluster is largest, the lower order at a tie. ``attempt`` is given the one
    before it.
    """
    best: Attempt[Result] | None = None
    last: Attempt[Result] | None = None
    error: DegreeError | None = None
    told = list(rule.told)
    needed = f"{rule.rows(rule.least):.1f} rows needed"
    for order in rule.orders:
        try:
            last = attempt(order, last)
        except DegreeError as found:
            error = found
            told.append(f"order {order:g}: degrees that are not positive")
            continue
        size = f"smallest cluster {rule.rows(last.smallest):.4g} of {rule.total:.6g} rows"
        if len(rule.orders) == 1:
            return last, "; ".join([*told, f"order {order:g}: {size}"])
        if rule.passes(last):
            return last, "; ".join([*told, f"order {order:g}: {size}"]) + f" ({needed})"
        told.append(f"order {order:g}: {last.refused or size}")
        if best is None or (not last.refused, last.smallest) > (not best.refused, best.smallest * (1 + 1e-12)):
            best = last
    if best is None:
        raise error or DegreeError("no order was tried")
    return best, "; ".join(told) + f" ({needed}): none does, and order {best.order:g} has the largest smallest cluster"


EDGE = 1e-3
"""A share that misses the least one by less than this, relative to it, does not: rounding must decide nothing."""


def effective_rows(weights: FloatArray) -> float:
    """n_e = (Σw)² / Σw²: the number of rows, where all weights are equal."""
    return float(weights.sum()) ** 2 / float(weights @ weights)


def least_share(weights: FloatArray, n_clusters: int) -> float:
    """1/√(n_e k): the share of the weight below which a cluster is dust, √(n/k) rows of n."""
    return float((1 - EDGE) / np.sqrt(effective_rows(weights) * n_clusters))
