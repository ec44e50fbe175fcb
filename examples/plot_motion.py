"""
Motion segmentation
===================

Points on moving objects are tracked through a film. Which points belong to the same object? The
tracks of one rigid object lie near an affine subspace of at most three dimensions (Tomasi and
Kanade). The subspaces cross, so distances between tracks do not tell; hyperedges that measure
flatness do.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from biclique import BicliqueSpectralClustering, InhomogeneousSubspaceClustering
from biclique.scores import clustering_error

FRAMES = 24
random = np.random.default_rng(0)


# %%
# Two boxes and a background that the camera passes
# -------------------------------------------------


def film(points: NDArray[np.float64], spin: float, speed: tuple[float, float]) -> NDArray[np.float64]:
    """Places of points in every frame: they turn around a tilted axis and move; seen without perspective."""
    axis = np.array([0.3, 0.9, 0.3])
    axis /= np.linalg.norm(axis)
    cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    seen = []
    for frame in range(FRAMES):
        angle = spin * frame / FRAMES
        turn = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
        seen.append((points @ turn.T)[:, :2] + np.array(speed) * frame / FRAMES)
    return np.stack(seen, axis=1)


objects = [
    film(random.uniform([-1.5, -1, -2], [1.5, 1, 2], (90, 3)), 0.15, (-0.4, 0.0)),
    film(random.uniform(-0.5, 0.5, (60, 3)) + np.array([-0.5, 0, 0]), 1.0, (0.7, 0.3)),
    film(random.uniform(-0.4, 0.4, (50, 3)) + np.array([0.6, 0.2, 0]), -1.2, (-0.6, 0.4)),
]
truth = np.repeat([0, 1, 2], [len(tracks) for tracks in objects])
tracks = np.concatenate(objects) + 0.004 * random.normal(size=(len(truth), FRAMES, 2))
X = tracks.reshape(len(truth), -1)

# %%
# Three methods
# -------------
#
# The subspace method gets the dimension of the subspaces, three, and no labels.

models = {
    "KMeans": KMeans(3, n_init=10, random_state=0),
    "biclique, defaults": BicliqueSpectralClustering(3, random_state=0),
    "InhomogeneousSubspaceClustering": InhomogeneousSubspaceClustering(3, subspace_dim=3, random_state=0),
}
colours = np.array(["#0072b2", "#e69f00", "#009e73"])
figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), constrained_layout=True, sharex=True, sharey=True)
for panel, (name, model) in zip(axes, models.items(), strict=True):
    labels = model.fit_predict(X)
    error = clustering_error(truth, labels)
    print(f"{name:34} {100 * error:.1f} % of the tracks in the wrong group")
    for track, label in zip(tracks, labels, strict=True):
        panel.plot(*track.T, color=colours[label], linewidth=0.4)
        panel.scatter(*track[-1], s=6, color=colours[label])
    panel.set(xticks=[], yticks=[])
    panel.set_title(f"{name}\n{100 * error:.0f} % wrong", fontsize=10)
plt.show()
