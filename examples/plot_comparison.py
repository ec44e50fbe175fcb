"""
Clustering methods side by side
===============================

Five methods on six sets of points in the plane: curved shapes, unequal sizes, outliers. No
method gets a parameter that was chosen with labels. All but HDBSCAN get the true number
of clusters.

The number in each panel is the adjusted Rand index with the true groups: 1 is perfect, 0 is chance.
Outliers are drawn as crosses and not counted.

The first four sets are scaled to unit variance. The other two are as they are.
"""

from __future__ import annotations

import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from biclique import BicliqueSpectralClustering

Rows = NDArray[np.float64]
Labels = NDArray[np.int64]
COLOURS = np.array(["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"])

# %%
# The sets
# --------
#
# Rows with the true group −1 are outliers.


def sets() -> dict[str, tuple[Rows, Labels]]:
    random = np.random.default_rng(0)
    tilted, tilt = make_blobs(400, random_state=170)
    shapes: dict[str, tuple[Rows, Labels]] = {
        "circles": make_circles(400, factor=0.5, noise=0.05, random_state=0),
        "moons": make_moons(400, noise=0.05, random_state=0),
        "tilted": (tilted @ [[0.6, -0.6], [-0.4, 0.8]], tilt),
        "spreads": make_blobs(400, cluster_std=[1.0, 2.5, 0.5], random_state=170),
    }
    found = {name: (StandardScaler().fit_transform(X), y) for name, (X, y) in shapes.items()}
    found["sizes 340, 40, 20"] = make_blobs([340, 40, 20], centers=[[0, 0], [6, 6], [6, -6]], random_state=0)
    X, y = make_blobs(380, centers=[[0, 0], [6, 0], [3, 5]], random_state=0)
    middle, half = (X.max(axis=0) + X.min(axis=0)) / 2, np.ptp(X, axis=0) / 2
    outliers = random.uniform(middle - 3 * half, middle + 3 * half, (20, 2))
    found["5 % outliers"] = (np.concatenate([X, outliers]), np.concatenate([y, np.full(20, -1)]))
    return found


# %%
# The methods
# -----------
#
# biclique's defaults cut a hypergraph of neighbourhoods. ``affinity="rbf"`` is the paper's Algorithm 1.


def methods(k: int) -> dict[str, Any]:
    return {
        "KMeans": KMeans(k, n_init=10, random_state=0),
        "SpectralClustering\n(scikit-learn)": SpectralClustering(k, random_state=0),
        "HDBSCAN\n(scikit-learn)": HDBSCAN(copy=True),
        "biclique\ndefaults": BicliqueSpectralClustering(k, random_state=0),
        'biclique\naffinity="rbf"': BicliqueSpectralClustering(k, affinity="rbf", random_state=0),
    }


# %%
# The picture
# -----------


def draw() -> None:
    data = sets()
    _, axes = plt.subplots(len(data), 5, figsize=(9.0, 1.72 * len(data)), constrained_layout=True)
    for number, (line, (name, (X, truth))) in enumerate(zip(axes, data.items(), strict=True)):
        line[0].set_ylabel(name, fontsize=10)
        inside = truth >= 0
        for panel, (title, model) in zip(line, methods(len(set(truth[inside]))).items(), strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # scikit-learn says that the graph is not connected
                labels = model.fit_predict(X)
            agreement = round(adjusted_rand_score(truth[inside], labels[inside]), 2) + 0.0
            print(f"{name:18} {title.replace(chr(10), ' '):34} {agreement:.2f}")
            colours = np.where(labels < 0, "#555555", COLOURS[labels % len(COLOURS)])
            panel.scatter(*X[inside].T, s=4, c=colours[inside])
            panel.scatter(*X[~inside].T, s=12, c=colours[~inside], marker="x", linewidths=0.8)
            panel.text(0.98, 0.03, f"{agreement:.2f}", transform=panel.transAxes, ha="right", fontsize=10)
            low, high = panel.get_ylim()
            panel.set(xticks=[], yticks=[], ylim=(low - 0.12 * (high - low), high))  # room for the number
            if number == 0:
                panel.set_title(title, fontsize=10)


draw()
plt.show()

# %%
# What to see
# -----------
#
# - k-means cuts curved shapes, because it looks for round groups of similar size.
# - scikit-learn's spectral clustering gives clusters to outliers: its order is fixed at 2.
# - HDBSCAN finds its own number of clusters and calls rows noise (grey), which lowers its number here.
# - biclique with defaults handles curved shapes, sizes and outliers.
# - An rbf kernel has one width for all rows, and by the rule for it the circles are missed. ``order="auto"``
#   keeps outliers from being clusters: it takes an order whose clusters all have √(n/k) rows, here 12.
