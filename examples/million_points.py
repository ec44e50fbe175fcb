"""
A million points
================

A ring around a core, two arcs and a small group: k-means beside the exact normalised cut of an rbf
kernel, computed through FFTs. It takes about half a minute, so the site shows a picture that was drawn before, and
``make docs-full`` draws it again.

.. image:: /images/million_points.png

``python examples/million_points.py --out picture.png`` writes the picture, ``--rows 20000`` takes fewer
points. It needs ``pip install '.[fourier,plot]'`` in a clone. Points are counted on a raster and drawn as
an image: a dot for every point would take longer than the clustering.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering

# sphinx_gallery_thumbnail_path = 'images/million_points.png'

SHARES = {"ring": 0.4, "core": 0.1, "upper arc": 0.22, "lower arc": 0.22, "small group": 0.06}
COLOURS = np.array([(0, 114, 178), (230, 159, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233)]) / 255
"""Of Okabe and Ito: they stay apart for colour-blind readers."""

RASTER = 500


def make_rows(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """A ring around a core, two arcs that reach into each other, and a small dense group."""
    random = np.random.default_rng(0)
    sizes = np.round(np.array(list(SHARES.values())) * n).astype(int)
    sizes[0] += n - sizes.sum()
    angle = random.uniform(0, 2 * np.pi, sizes[0])
    ring = 2.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    core = random.normal(size=(sizes[1], 2)) * 0.35
    arcs = [random.uniform(0, np.pi, size) for size in sizes[2:4]]
    upper = np.column_stack([6.5 + 2 * np.cos(arcs[0]), -0.2 + 2 * np.sin(arcs[0])])
    lower = np.column_stack([8.5 + 2 * np.cos(arcs[1]), 0.8 - 2 * np.sin(arcs[1])])
    small = random.normal(size=(sizes[4], 2)) * 0.15 + [4.2, 2.7]
    curved = [rows + random.normal(size=rows.shape) * 0.13 for rows in (ring, upper, lower)]
    rows = np.concatenate([curved[0], core, *curved[1:], small])
    return rows, np.repeat(np.arange(len(sizes)), sizes)


def draw(axes: Axes, rows: NDArray[Any], labels: NDArray[Any], title: str) -> None:
    """Every cell of the raster in the colour of its clusters, darker where there are more points."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    bounds = [[low[0], high[0]], [low[1], high[1]]]
    height = int(RASTER * (high[1] - low[1]) / (high[0] - low[0]))
    groups = [rows[labels == cluster] for cluster in range(len(COLOURS))]
    found = [np.histogram2d(own[:, 0], own[:, 1], bins=(RASTER, height), range=bounds)[0].T for own in groups]
    counts = np.stack(found, axis=-1)
    total = counts.sum(axis=-1, keepdims=True)
    colour = counts @ COLOURS / np.maximum(total, 1)
    ink = np.log1p(total) / np.log1p(np.quantile(total[total > 0], 0.98))
    axes.imshow(1 - np.clip(ink, 0, 1) * (1 - colour), origin="lower", extent=(low[0], high[0], low[1], high[1]))
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--out", type=Path, help="write the picture into this file")
    options = parser.parse_args()
    rows, truth = make_rows(options.rows)
    methods = {
        "k-means": KMeans(5, n_init=3, random_state=0),
        "biclique, gram='fourier'": BicliqueSpectralClustering(
            5, affinity="rbf", gram="fourier", row_normalize=True, random_state=0
        ),
    }
    figure, panels = plt.subplots(2, 1, figsize=(7, 7.2), constrained_layout=True)
    for panel, (name, model) in zip(panels, methods.items(), strict=True):
        start = time.perf_counter()
        labels = model.fit_predict(rows)
        seconds = time.perf_counter() - start
        title = f"{name}: {len(rows):,} points, agreement {adjusted_rand_score(truth, labels):.3f}"
        print(f"{title}, {seconds:.1f} s")
        draw(panel, rows, labels, title)
    if options.out:
        figure.savefig(options.out, dpi=110)
    plt.show()


if __name__ == "__main__":
    main()
