"""
How sure is a label?
====================

``predict_proba`` gives the probability of each cluster, for training rows and for new ones.
``cluster_stability`` says which clusters are found again in random halves of the rows.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from biclique import BicliqueSpectralClustering

X, y = make_blobs(600, centers=[[0, 0], [3.4, 0], [1.5, 5]], random_state=0)
model = BicliqueSpectralClustering(3, random_state=0).fit(X)

# %%
# A map of the probabilities
# --------------------------
#
# The two lower groups overlap. Between them the labels are unsure (pale).

across, up = np.meshgrid(np.linspace(-4, 7.5, 90), np.linspace(-4, 8.5, 90))
grid = np.column_stack([across.ravel(), up.ravel()])
colours = np.array([(0, 114, 178), (230, 159, 0), (0, 158, 115)]) / 255
shares = model.predict_proba(grid)
figure, axis = plt.subplots(figsize=(6, 5), constrained_layout=True)
sure = (shares.max(axis=1, keepdims=True) - 1 / 3) / (2 / 3)
shade = 1 - 0.75 * sure * (1 - colours[shares.argmax(axis=1)])
axis.imshow(shade.reshape(90, 90, 3), origin="lower", extent=(-4, 7.5, -4, 8.5), aspect="auto")
axis.scatter(X[:, 0], X[:, 1], s=6, c=colours[model.labels_])
unsure = model.predict(X, reject_below=0.8) < 0
axis.scatter(X[unsure, 0], X[unsure, 1], s=30, facecolors="none", edgecolors="black", linewidths=0.7)
axis.set(xticks=[], yticks=[], title=f"{unsure.sum()} rows below 0.8 (circles)")
plt.show()

# %%
# Is each cluster real?
# ---------------------

for k in (3, 5):
    other = BicliqueSpectralClustering(k, random_state=0).fit(X)
    stable = other.cluster_stability(X, n_splits=5)
    print(f"{k} clusters, found again in halves: {', '.join(f'{value:.2f}' for value in np.sort(stable)[::-1])}")
