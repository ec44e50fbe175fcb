"""
The default: a hypergraph of neighbourhoods
===========================================

What ``BicliqueSpectralClustering(2).fit(X)`` builds of 30 points, and why it needs no bandwidth.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from biclique import BicliqueSpectralClustering
from biclique.features.neighborhoods import NeighborhoodMap

COLOURS = np.array(["#0072b2", "#e69f00", "#009e73"])

# %%
# 30 points
# ---------
#
# A dense group, a loose one, and one point far out.


def apart(random: np.random.Generator, count: int, radius: float) -> NDArray[np.float64]:
    """Points of a disk that keep a distance, so that a picture can show each."""
    found: list[NDArray[np.float64]] = []
    while len(found) < count:
        point = random.uniform(-radius, radius, 2)
        if np.linalg.norm(point) < radius and all(np.linalg.norm(point - p) > 0.3 * radius for p in found):
            found.append(point)
    return np.array(found)


random = np.random.default_rng(5)
X = np.concatenate([apart(random, 16, 0.9), apart(random, 13, 1.8) + np.array([4.4, 0]), [(7.8, 0.9)]])

# %%
# Neighbourhoods and hyperedges
# -----------------------------
#
# Every point is a landmark here. A point belongs to the neighbourhoods of its 7 nearest landmarks, and so each
# landmark has a hyperedge: the points that it is near to. Hyperedges of dense places are heavy.

graph = NeighborhoodMap(X)
members = graph.columns(X).toarray() > 0  # (n, p): x is in the hyperedge of z
weights = graph.edge_weights
labels = BicliqueSpectralClustering(2, random_state=0).fit_predict(X)
print(f"{members.shape[1]} hyperedges of {members.sum(axis=0).min()} to {members.sum(axis=0).max()} points")
print(f"weights from {weights.min():.2g} to {weights.max():.2g}")


def hull(panel: Axes, z: int, alpha: float, colour: str) -> None:
    rows = X[members[:, z]]
    if len(rows) > 2:
        corners = rows[ConvexHull(rows).vertices]
        panel.fill(*corners.T, facecolor=colour, alpha=alpha, edgecolor=colour)


figure, panels = plt.subplots(1, 3, figsize=(11, 2.45), constrained_layout=True, sharex=True, sharey=True)
middle = int(np.argmin(np.linalg.norm(X - X[16:].mean(axis=0), axis=1)))
for near in X[members[middle]]:
    panels[0].plot(*np.array([X[middle], near]).T, color="black", linewidth=0.8)
panels[0].scatter(*X.T, s=14, color="0.7")
panels[0].scatter(*X[members[middle]].T, s=26, color="black")
panels[0].scatter(*X[middle], s=90, marker="*", color="#d55e00", zorder=3)
panels[0].set_title("N(x): the 7 landmarks nearest to x (star)", fontsize=10)
for z in (int(np.argmax(weights)), middle):
    hull(panels[1], z, 0.15 + 0.6 * weights[z], "#0072b2")
    panels[1].scatter(*X[z], s=50, marker="D", color="#d55e00", zorder=3)
    rows = X[members[:, z]]
    panels[1].annotate(f"w = {weights[z]:.2f}", (rows[:, 0].mean(), rows[:, 1].min() - 0.35), ha="center", va="top")
panels[1].scatter(*X.T, s=14, color="black")
panels[1].set_title("two hyperedges: points whose N(x) has\nthis landmark (diamond)", fontsize=10)
for z in np.argsort(weights).tolist():
    hull(panels[2], z, 0.04 + 0.3 * weights[z], COLOURS[labels[z]])
panels[2].scatter(*X.T, s=14, color=COLOURS[labels])
panels[2].set_title("all 30 hyperedges, opacity by weight;\ncolours are the clusters", fontsize=10)
for panel in panels:
    panel.set(xticks=[], yticks=[], aspect="equal", xlim=(-1.5, 8.3), ylim=(-2.8, 2.1))
plt.show()

# %%
# What to see
# -----------
#
# - The cut separates the groups where few and light hyperedges have points of both.
# - The point far out is no cluster: it lies in 7 hyperedges, and its neighbours lie in most of them.
# - No distance enters but the order of the neighbours and, in the weights, the ratio to the median.
