"""
Unequal sizes and outliers: what the order does
===============================================

The ordinary normalised cut of a kernel (order 2) may give whole clusters to a few outliers. The order
is the paper's knob against that. ``order="auto"`` takes the least order without such clusters. The
default, neighbourhoods, needs no order: it stands beside.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.selection import order_path

X, y = make_blobs([260, 60, 40], centers=[[0, 0], [7, 0], [3.5, 6]], random_state=0)
outliers = np.random.default_rng(0).uniform(-20, 25, (40, 2))
rows = np.concatenate([X, outliers])

# %%
# The order that "auto" takes
# ---------------------------
#
# ``order_reason_`` says which orders were tried, and why they were not taken.

model = BicliqueSpectralClustering(n_clusters=3, affinity="rbf", gamma=0.1, random_state=0).fit(rows)
print("order:", model.order_)
print(model.order_reason_)

# %%
# Three orders of the kernel, and the default
# -------------------------------------------
#
# The default needs no order: in the hypergraph of neighbourhoods every row shares hyperedges with its
# neighbours, so a single row is never a cluster.

methods = {
    "rbf, order 2": BicliqueSpectralClustering(3, affinity="rbf", gamma=0.1, order=2, random_state=0),
    f"rbf, order {model.order_:g} (auto)": model,
    "rbf, order 4": BicliqueSpectralClustering(3, affinity="rbf", gamma=0.1, order=4, random_state=0),
    "the default": BicliqueSpectralClustering(3, random_state=0),
}
figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), constrained_layout=True, sharey=True)
colours = np.array(["#0072b2", "#e69f00", "#009e73"])
for panel, (name, method) in zip(axes, methods.items(), strict=True):
    labels = method.fit_predict(rows)
    agreement = adjusted_rand_score(y, labels[: len(y)])
    sizes = np.bincount(labels)
    colour = colours[np.argsort(np.argsort(-sizes))][labels]  # the largest cluster is blue in every panel
    panel.scatter(*X.T, s=8, c=colour[: len(y)])
    panel.scatter(*outliers.T, s=20, c=colour[len(y) :], marker="x")
    rest = ", ".join(map(str, np.sort(sizes)[::-1]))
    panel.set_title(f"{name}: {agreement:.2f}\nclusters of {rest} rows", fontsize=10)
    panel.set(xticks=[], yticks=[])
plt.show()

# %%
# All orders at once
# ------------------
#
# ``order_path`` makes the kernel matrix once. The smallest cluster jumps from a few outliers to a
# real group as the order grows.

orders = [2, 2.02, 2.05, 2.1, 2.2, 2.5, 3, 4, 6, 10]
path = order_path(rows, orders, n_clusters=3, affinity="rbf", gamma=0.1, random_state=0)
smallest = [np.bincount(labels).min() for labels in path.labels]
agreement = [adjusted_rand_score(y, labels[: len(y)]) for labels in path.labels]
figure, axes = plt.subplots(1, 2, figsize=(9, 3), constrained_layout=True)
for panel, values, text in zip(
    axes, (smallest, agreement), ("rows of the smallest cluster", "agreement with the groups"), strict=True
):
    panel.plot(range(len(orders)), values, marker="o", color="#0072b2")
    panel.set_xticks(range(len(orders)), [f"{order:g}" for order in orders])
    panel.set(xlabel="order", ylabel=text, ylim=(0, None))
plt.show()
