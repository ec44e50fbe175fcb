"""A higher γ than that of its rule, where the clusters would cut across what neighbours hold together.

γ="auto" is 0.2 over the median squared distance to the 7th nearest neighbour, in a sample of at most 1,000 distinct
rows. Link each of them to its 7 nearest neighbours, and call a part of that graph solid if it is large enough for a
cluster. Exactly k solid parts are what most people would call the clusters. If a fit of the sample splits one, γ is too
low to tell them apart, as with two rings of a few hundred rows: 4 and 16 times that γ are tried in turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DisconnectedWarning, warn_user
from biclique.fit.exact import search_some
from biclique.fit.plan import ChosenKernel
from biclique.fit.settings import Settings
from biclique.gram import search_parts
from biclique.kernels import NEIGHBOR, Kernel
from biclique.rows.array import Vertices
from biclique.spectral import OrderRule

FACTORS = (4.0, 16.0)
"""What γ is multiplied by, one after the other. At 64 times, κ to the 7th neighbour would be 3e-6: nearly nothing."""


def finer_gamma(settings: Settings, chosen: ChosenKernel, some: Vertices, parts: IntArray, seed: int) -> ChosenKernel:
    """The same kernel with the least γ whose clusters of these rows leave their parts whole."""
    if chosen.kernel is None or chosen.gamma is None:
        raise TypeError("a kernel with a bandwidth is needed")
    trial = _Trial(settings, some, parts, seed)
    if trial.leaves_whole(chosen.kernel):
        return chosen
    told = f"clusters cut across the parts that rows and their {NEIGHBOR} nearest neighbours form"
    for factor in FACTORS:
        gamma = factor * chosen.gamma
        kernel = settings.kernel.kernel(gamma).precise(some.data)
        if trial.leaves_whole(kernel):
            return ChosenKernel(kernel, gamma, f"{factor:g} × {chosen.gamma:.4g}, with which {told}")
    warn_user(
        f"{told}, at gamma={chosen.gamma:.3g} and at up to {FACTORS[-1]:g} times that: use "
        "affinity='nearest_neighbors', which keeps such parts whole, or give gamma.",
        DisconnectedWarning,
    )
    return chosen


def cut_across(labels: IntArray, parts: IntArray, weights: FloatArray, rule: OrderRule) -> bool:
    """Whether a part is split: two clusters have enough of its rows for a cluster each."""
    shared = np.zeros((int(parts.max()) + 1, rule.n_clusters))
    np.add.at(shared, (parts, labels), weights)
    return bool(((shared >= rule.least * weights.sum()).sum(axis=1) > 1).any())


@dataclass(frozen=True)
class _Trial:
    """Fits of a sample, whose neighbours form parts."""

    settings: Settings
    some: Vertices
    parts: IntArray
    seed: int

    def leaves_whole(self, kernel: Kernel) -> bool:
        """Whether the clusters that a kernel gives split no part."""
        some, settings = self.some, self.settings
        rule = OrderRule.of(some.weights, settings.n_groups, settings.cut.orders)
        K = np.asarray(kernel.block(some.data, some.data), dtype=np.float64)
        if rule.n_solid(search_parts(K, np.diagonal(K)), some.weights) >= rule.n_clusters:
            return True  # K itself falls into as many parts, and none of them is split
        search = search_some(settings, kernel, some, rule, np.dtype(np.float64), self.seed, some.n, None)
        solved = search.run(asked=not settings.cut.auto)[0].result
        tested = search.test(solved.rows, solved.parts) if solved.tested is None else solved.tested
        stays = search.prepared.vertices.index >= 0  # rows that were left out have no labels
        return not cut_across(tested.labels, self.parts[stays], some.weights[stays], rule)
