"""A higher γ than that of its rule, where the clusters would cut across what neighbours hold together.

γ="auto" is 0.2 over the median squared distance to the 7th nearest neighbour, in a sample of at most 1,000 distinct
rows. Link each of them to its 7 nearest neighbours. The share of its links that leave a cluster, as a mean over
clusters, needs no labels:

    (1/k) Σ_j (1 − links inside j / links of j).

If 4 times that γ gives the sample clusters with at most half of it, γ was too low to tell them apart, as with two rings
of a few hundred rows. It is also taken if the share is lower by two standard errors, still is after the clusters of
both are chosen as those of all rows will be (``spectral/rounding.py``), these are not nearly the same, and no more rows
have nine tenths of their degree from themselves than may be left out. 16 times is compared with the best so far in the
same way, unless hardly any links are shared.
A higher γ must do at order 2: one that needs a higher order leaves too many rows like no other. If 4 times was taken
for half of the links, 16 times is not tried with too many such rows.

To cut across a ring takes few links. So if neighbours form at least k solid parts and clusters split one, every γ is
tried, however few links they share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DisconnectedWarning, warn_user
from biclique.fit.exact import ExactSearch, Solved, search_some
from biclique.fit.plan import QUICK_TOLERANCE, ChosenKernel
from biclique.fit.settings import Settings
from biclique.fit.sifting import LONE
from biclique.kernels import NEIGHBOR, Kernel, Nearby, neighbor_links
from biclique.rows.array import Vertices
from biclique.runtime import parse_memory_limit, single_threaded_blas
from biclique.spectral import FEW_LINKS, HALF, Linked, OrderRule, counted_shares, share_fewer

BYTES_A_PAIR = 128
"""Memory of a fit of the sample: about twice of what was seen at once."""

FACTORS = (4.0, 16.0)
"""What γ is multiplied by, one after the other. At 64 times, κ to the 7th neighbour would be 3e-6: nearly nothing."""

TWICE = 2.0
"""A cluster at a higher γ must have this many times the least share, unless one was smaller before."""

SAME = 0.8
"""Clusters that agree so much (adjusted Rand index) are the same with another border. A higher γ follows the links of
the sample more closely, which is no reason to take it. 0.6 does the same."""

ROWS_A_CLUSTER = 2 * (NEIGHBOR + 1)
"""With fewer rows of the sample for each cluster, links say little."""


def finer_gamma(settings: Settings, chosen: ChosenKernel, some: Vertices, nearby: Nearby, seed: int) -> ChosenKernel:
    """The same kernel, with the γ whose clusters of these rows keep neighbours together."""
    limit = parse_memory_limit(settings.holding.memory_limit)
    if some.n < ROWS_A_CLUSTER * settings.n_groups or BYTES_A_PAIR * some.n**2 > limit:
        return chosen
    links = neighbor_links(nearby)
    if links is None:
        return chosen
    with single_threaded_blas():  # once: to hold it takes as long as a small product
        return _finest(_Trial(settings, some, links, seed), chosen)


def _finest(trial: _Trial, chosen: ChosenKernel) -> ChosenKernel:
    """The first γ, or the higher one whose clusters of the trial's rows share fewest links."""
    settings, some = trial.settings, trial.some
    if chosen.kernel is None or chosen.gamma is None:
        raise TypeError("a kernel with a bandwidth is needed")
    search = trial.search(chosen.kernel)
    if trial.falls_apart(search):
        return chosen
    best = trial.fit(search)
    first, split = trial.shared(best.labels), trial.cuts_across(best.labels)
    if first <= FEW_LINKS and not split:
        return chosen
    # A higher γ may cut off loose rows: clusters that are nearly dust must not be new.
    needed = max(trial.rule.least, min(TWICE * trial.rule.least, trial.rule.smallest(best.labels, some.weights)))
    least, halved, raised = first, first, chosen
    for factor in FACTORS:
        gamma = factor * chosen.gamma
        kernel = settings.kernel.kernel(gamma).precise(some.data)
        search = trial.search(kernel, (2.0,))
        scattered = trial.scatters(search)
        if halved < first and scattered:
            break
        other = trial.fit(search)
        share = trial.shared(other.labels)
        half = share <= min(HALF * halved, least)
        better = half or (not scattered and trial.better(other, best))
        if better and trial.rule.smallest(other.labels, some.weights) >= needed:
            best, least, halved, split = other, share, share if half else halved, trial.cuts_across(other.labels)
            told = f"{least:.2g} of the links to {NEIGHBOR} nearest neighbours lead to another cluster"
            raised = ChosenKernel(kernel, gamma, f"{factor:g} × {chosen.gamma:.4g}: {told}, with that γ {first:.2g}")
        if least <= FEW_LINKS and not split:
            break
    if split and least > FEW_LINKS:
        warn_user(
            f"clusters cut across the parts that rows and their {NEIGHBOR} nearest neighbours form, at gamma="
            f"{raised.gamma:.3g} and at up to {FACTORS[-1]:g} times {chosen.gamma:.3g}: use "
            "affinity='nearest_neighbors', which keeps such parts whole, or give gamma.",
            DisconnectedWarning,
        )
    return raised


def cut_across(labels: IntArray, parts: IntArray, weights: FloatArray, rule: OrderRule) -> bool:
    """Whether a part is split: two clusters have enough of its rows for a cluster each."""
    n_parts, k = int(parts.max()) + 1, rule.n_clusters
    shared = counted_shares(parts * k + labels, weights, n_parts * k).reshape(n_parts, k)
    return bool(((shared >= rule.least).sum(axis=1) > 1).any())


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit of the sample."""

    search: ExactSearch
    solved: Solved
    labels: IntArray


@dataclass(frozen=True, eq=False)
class _Trial:
    """Fits of a sample whose neighbours are linked."""

    settings: Settings
    some: Vertices
    links: sparse.csr_array
    seed: int

    @cached_property
    def rule(self) -> OrderRule:
        return OrderRule.of(self.some.weights, self.settings.n_groups, self.settings.cut.orders)

    @cached_property
    def linked(self) -> Linked:
        return Linked(np.arange(self.some.n), self.links)

    @cached_property
    def parts(self) -> IntArray:
        """The parts that neighbours form."""
        return np.asarray(sparse.csgraph.connected_components(self.links, directed=False)[1], dtype=np.intp)

    def search(self, kernel: Kernel, orders: tuple[float, ...] | None = None) -> ExactSearch:
        """The search for an order, among these or all, with this kernel. It stores K."""
        some, rule = self.some, self.rule if orders is None else replace(self.rule, orders=orders)
        return search_some(self.settings, kernel, some, rule, np.dtype(np.float64), self.seed, some.n, QUICK_TOLERANCE)

    def falls_apart(self, search: ExactSearch) -> bool:
        """Whether K itself falls into as many parts as there are clusters: none of them is split."""
        weights = self.some.weights
        return self.rule.n_solid(search.prepared.base.parts(weights, weights, None), weights) >= self.rule.n_clusters

    def scatters(self, search: ExactSearch) -> bool:
        """Whether more rows have nearly all their degree from themselves than may be left out."""
        K, weights = search.prepared.base.stored(), self.some.weights
        lone = np.flatnonzero(weights * np.diagonal(K) > LONE * (K @ weights))
        return self.rule.share_of(lone, weights) > self.rule.least

    def fit(self, search: ExactSearch) -> _Fit:
        """The clusters that a kernel gives."""
        solved = search.run(asked=not self.settings.cut.auto)[0].result
        return _Fit(search, solved, self._of_all(search, search.rounded(solved)))

    def rounded(self, fit: _Fit) -> IntArray:
        """The clusters that links choose among those that a kernel gives, as those of all rows are chosen."""
        stays = fit.search.prepared.vertices.index >= 0
        linked = self.linked if stays.all() else Linked(np.arange(int(stays.sum())), self.links[stays][:, stays])
        return self._of_all(fit.search, fit.search.rounded(fit.solved, linked))

    def _of_all(self, search: ExactSearch, found: IntArray) -> IntArray:
        """Rows that were left out go where most of their neighbours are."""
        stays = search.prepared.vertices.index >= 0
        if stays.all():
            return found
        labels = np.full(self.some.n, -1)
        labels[stays] = found
        counts = self.links[~stays] @ np.eye(self.rule.n_clusters + 1)[labels]  # the last column: rows left out
        labels[~stays] = np.argmax(counts[:, :-1], axis=1)
        return labels

    def shared(self, labels: IntArray) -> float:
        return self.linked.shared(labels, self.rule.n_clusters)[0]

    def better(self, other: _Fit, best: _Fit) -> bool:
        """Whether these are other clusters, and clearly share fewer links, also as rounded."""
        k, linked = self.rule.n_clusters, self.linked
        if not share_fewer(linked, other.labels, k, *linked.shared(best.labels, k)):
            return False
        new, old = self.rounded(other), self.rounded(best)
        return adjusted_rand_score(new, old) < SAME and share_fewer(linked, new, k, *linked.shared(old, k))

    def cuts_across(self, labels: IntArray) -> bool:
        """Whether neighbours form at least as many solid parts as there are clusters, and clusters split one."""
        solid = self.rule.n_solid(self.parts, self.some.weights)
        return solid >= self.rule.n_clusters and cut_across(labels, self.parts, self.some.weights, self.rule)
