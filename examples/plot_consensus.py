"""
Several partitions into one
===========================

Twenty runs of k-means with 20 to 49 clusters each all cut curved shapes in pieces, each in
another place. ``consensus_labels`` asks which rows stay together, and finds the shapes.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from biclique import consensus_labels

FOUR = ListedColormap(["#0072b2", "#e69f00", "#009e73", "#cc79a7"])

moons, moon = make_moons(350, noise=0.05, random_state=0)
rings, ring = make_circles(350, factor=0.45, noise=0.05, random_state=0)
X = np.concatenate([moons, rings + np.array([4.0, 0.2])])
truth = np.concatenate([moon, ring + 2])

# %%
# Twenty partitions, one consensus
# --------------------------------

random = np.random.default_rng(0)
numbers = random.integers(20, 50, 20)
partitions = np.column_stack(
    [KMeans(int(k), n_init=1, random_state=seed).fit_predict(X) for seed, k in enumerate(numbers)]
)
labels = consensus_labels(partitions, n_clusters=4, random_state=0)
alone = KMeans(4, n_init=10, random_state=0).fit_predict(X)
print(f"k-means with four clusters: {adjusted_rand_score(truth, alone):.3f}")
print(f"consensus of twenty:        {adjusted_rand_score(truth, labels):.3f}")

figure, axes = plt.subplots(2, 2, figsize=(9, 4.0), constrained_layout=True)
shown = {
    f"one run, {numbers[0]} clusters": partitions[:, 0],
    f"another run, {numbers[1]} clusters": partitions[:, 1],
    "k-means, 4 clusters": alone,
    "consensus of twenty runs": labels,
}
for panel, (title, colour) in zip(axes.ravel(), shown.items(), strict=True):
    panel.scatter(*X.T, s=5, c=colour, cmap=FOUR if colour.max() == 3 else "tab20")
    panel.set(xticks=[], yticks=[], aspect="equal")
    panel.set_title(title, fontsize=10)
plt.show()

# %%
# How often two rows are together
# -------------------------------
#
# The co-association matrix, rows in the order of the consensus. The function never makes it.

order = np.argsort(labels, kind="stable")
together = np.mean([np.equal.outer(one[order], one[order]) for one in partitions.T], axis=0)
figure, axis = plt.subplots(figsize=(5, 4.2), constrained_layout=True)
picture = axis.imshow(together, cmap="Blues")
figure.colorbar(picture, ax=axis, label="share of runs")
axis.set(xticks=[], yticks=[])
plt.show()
