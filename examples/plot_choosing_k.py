"""
How many clusters?
==================

``n_clusters="select"`` tries 2 to 20 clusters. It takes the largest number that random halves
of the rows find again. It also says if there is nothing to find.
"""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from biclique import BicliqueSpectralClustering
from biclique.selection import select_n_clusters

COLOURS = np.array(["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#000000"])

# %%
# Five groups
# -----------

X, y = make_blobs(400, centers=5, cluster_std=0.9, random_state=3)
model = BicliqueSpectralClustering("select", random_state=0).fit(X)
print(model.k_selection_.summary())

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
model.k_selection_.plot(left)
left.set_title(f"chosen: {model.n_clusters_} clusters")
right.scatter(*X.T, s=6, c=COLOURS[model.labels_])
right.set(xticks=[], yticks=[], title="the labels")
plt.show()

# %%
# No groups
# ---------
#
# A search always finds some number. For one round cloud, ``has_structure_`` is False, and a
# ``StructureWarning`` says why.

cloud = np.random.default_rng(0).normal(size=(400, 2))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    nothing = BicliqueSpectralClustering("select", random_state=0).fit(cloud)
print("structure:", nothing.has_structure_)
print(caught[-1].message)

# %%
# Close groups
# ------------
#
# The closer the groups, the less can be known: the best stability falls, and at last no structure
# is seen.

figure, axes = plt.subplots(2, 3, figsize=(9, 5), constrained_layout=True)
for (above, below), distance in zip(axes.T, (6.0, 3.6, 2.4), strict=True):
    centres = distance * np.array([[0, 0], [1, 0], [0.5, 0.87]])
    close, _ = make_blobs(300, centers=centres, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = select_n_clusters(close, 8, random_state=0)
        labels = BicliqueSpectralClustering(found.n_clusters, random_state=0).fit_predict(close)
    found.plot(below)
    below.set_ylim(0.3, 1.03)
    above.scatter(*close.T, s=6, c=COLOURS[labels])
    seen = "structure" if found.has_structure else "no structure"
    above.set(xticks=[], yticks=[], title=f"{distance:g} σ apart: {seen},\n{found.n_clusters} clusters")
plt.show()
