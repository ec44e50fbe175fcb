"""
Image segmentation
==================

Each pixel is a row: its colour and its place. The hypergraph of their neighbourhoods is cut into
regions.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image

from biclique import BicliqueSpectralClustering

image = load_sample_image("flower.jpg")[40:400:4, 120:600:4] / 255
height, width, _ = image.shape
print(f"{height} × {width} pixels")

# %%
# Rows: colour and place
# ----------------------
#
# The factor of the place says how much nearness counts beside colour.

down, right = np.mgrid[:height, :width]
place = np.column_stack([down.ravel(), right.ravel()]) / width
rows = np.column_stack([image.reshape(-1, 3), 0.5 * place])

# %%
# Two methods, four regions
# -------------------------

methods = {
    "KMeans": KMeans(4, n_init=3, random_state=0),
    "biclique": BicliqueSpectralClustering(4, random_state=0),
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3), constrained_layout=True)
axes[0].imshow(image)
axes[0].set_title("image")
for panel, (name, model) in zip(axes[1:], methods.items(), strict=True):
    regions = model.fit_predict(rows).reshape(height, width)
    means = np.array([image[regions == region].mean(axis=0) for region in range(4)])
    panel.imshow(means[regions])
    for region in range(4):
        panel.contour(regions == region, levels=[0.5], colors="white", linewidths=0.6)
    panel.set_title(name)
for panel in axes:
    panel.set_axis_off()
plt.show()

# %%
# New pixels
# ----------
#
# ``predict`` labels pixels that were not among the training rows. So a model of a small image can
# segment a large one.

large = load_sample_image("flower.jpg")[40:400:2, 120:600:2] / 255
down, right = np.mgrid[: large.shape[0], : large.shape[1]]
place = np.column_stack([down.ravel(), right.ravel()]) / large.shape[1]
labels = methods["biclique"].predict(np.column_stack([large.reshape(-1, 3), 0.5 * place]))
regions = labels.reshape(large.shape[:2])
figure, axis = plt.subplots(figsize=(5, 3.8), constrained_layout=True)
axis.imshow(np.array([large[regions == region].mean(axis=0) for region in range(4)])[regions])
for region in range(4):
    axis.contour(regions == region, levels=[0.5], colors="white", linewidths=0.6)
axis.set_title(f"{large.shape[0]} × {large.shape[1]} pixels, labelled by predict")
axis.set_axis_off()
plt.show()
