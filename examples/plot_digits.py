"""
Handwritten digits
==================

1,797 images of 8 × 8 pixels, ten digits. Images of one digit form a curved surface, so neighbourhoods,
the default, are the right similarity. k-means and an rbf kernel are shown beside it.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.report import plot_clusters

digits = load_digits()
X, y = digits.data, digits.target

# %%
# Three ways
# ----------

model = BicliqueSpectralClustering(10, random_state=0)
methods = {
    "KMeans": KMeans(10, n_init=10, random_state=0),
    "biclique, rbf kernel": BicliqueSpectralClustering(10, affinity="rbf", random_state=0),
    "biclique, defaults": model,
}
for name, method in methods.items():
    print(f"{name:28} agreement with the digits {adjusted_rand_score(y, method.fit_predict(X)):.3f}")

# %%
# Typical and doubtful images
# ---------------------------
#
# ``representatives`` finds the most typical rows of each cluster, ``predict_proba`` the rows that lie
# between two clusters.

typical = model.representatives(X, per_cluster=6)
sure = model.predict_proba(X).max(axis=1)
figure, axes = plt.subplots(10, 13, figsize=(9, 7), constrained_layout=True)
for cluster, line in enumerate(axes):
    own = (model.labels_ == cluster).nonzero()[0]
    doubtful = own[sure[own].argsort()[:6]]
    for panel in line:
        panel.set_axis_off()
    for panel, row in zip([*line[:6], *line[7:]], [*typical[cluster], *doubtful], strict=True):
        panel.imshow(digits.images[row], cmap="gray_r")
axes[0, 2].set_title("six typical images", fontsize=10, loc="left")
axes[0, 9].set_title("six doubtful images", fontsize=10, loc="left")
plt.show()

# %%
# A map
# -----
#
# Images that are alike lie close together.

figure, axis = plt.subplots(figsize=(7, 5.5), constrained_layout=True)
plot_clusters(model, X, ax=axis)
plt.show()
