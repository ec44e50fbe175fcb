"""order="auto" of kernels: the least order that leaves no tiny cluster, else the one whose smallest is largest."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

from biclique import BicliqueSpectralClustering


def outliers(n_far, seed=0):
    """Two groups, and rows far from everything and from each other."""
    random = np.random.default_rng(seed)
    angles = np.linspace(0.3, 6, n_far)
    far = 12 * np.column_stack([np.cos(angles), np.sin(angles)]) * np.linspace(1, 2, n_far)[:, None]
    return np.concatenate([random.normal(size=(80, 2)), random.normal(size=(80, 2)) + [4, 0], far])


DATA = {
    "blobs": (make_blobs(200, centers=3, random_state=0)[0], 3, {}),
    "three outliers": (outliers(3), 2, {"gamma": 0.3}),
    "twenty outliers": (outliers(20), 2, {"gamma": 0.3}),
    "only outliers": (10.0 * np.arange(24)[:, None] ** 1.5 * [1, 0], 3, {"gamma": 1.0}),
    "four groups": (outliers(8, 3), 4, {"gamma": 0.1, "row_normalize": True}),
}
WAYS = {
    "dense": {},
    "tiled": {"gram": "tiled", "precision": "float64", "eigen_tol": 1e-8},
    "landmarks": {"gram": "nystroem", "rank": 24, "precision": "float64"},
    "kernel k-means": {"assign_labels": "kernel_kmeans"},
    "symmetric": {"modelling": "symmetric"},
}


def fitted(X, k, **parameters):
    return BicliqueSpectralClustering(k, affinity="rbf", random_state=0, **parameters).fit(X)


def smallest(model, k):
    return np.bincount(model.labels_, minlength=k).min()


@pytest.mark.filterwarnings("ignore::biclique.exceptions.BicliqueWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", DATA)
def test_the_order_is_that_of_a_loop(name, way):
    X, k, more = DATA[name]
    n = len(X)
    orders = (2, 3, 4) if way == "symmetric" else (2, 2.05, 2.1, 2.25, 2.5, 3, 4)
    tried = {}
    for order in orders:
        tried[order] = fitted(X, k, order=order, **more, **WAYS[way])
        if smallest(tried[order], k) >= np.sqrt(n / k):
            break
    sizes = [smallest(model, k) for model in tried.values()]
    expected = list(tried)[int(np.argmax(sizes))]
    model = fitted(X, k, **more, **WAYS[way])
    assert model.order_ == expected
    assert np.array_equal(model.labels_, tried[expected].labels_)
    assert model.order_reason_.count("smallest cluster") == len(tried)
    assert tried[expected].order_reason_ == "as asked for"


def test_both_ends_of_the_rule_are_met():
    found = {name: fitted(X, k, **more) for name, (X, k, more) in DATA.items()}
    assert found["blobs"].order_ == 2
    assert found["twenty outliers"].order_ > 2
    X, k, _ = DATA["only outliers"]
    assert smallest(found["only outliers"], k) < np.sqrt(len(X) / k)


ROWS = DATA["twenty outliers"][0]


@pytest.mark.parametrize(
    ("X", "parameters"),
    [
        (ROWS, {"affinity": "neighborhoods"}),
        (ROWS, {"affinity": "nearest_neighbors"}),
        (rbf_kernel(ROWS, gamma=0.3), {"affinity": "precomputed"}),  # whose kernel is cut at a higher order
        (rbf_kernel(DATA["only outliers"][0], gamma=1.0), {"affinity": "precomputed", "modelling": "symmetric"}),
        (kneighbors_graph(ROWS, 8, mode="distance"), {"affinity": "precomputed_nearest_neighbors", "n_neighbors": 8}),
    ],
    ids=["neighborhoods", "graph", "given", "given, symmetric", "given graph"],
)
@pytest.mark.filterwarnings("ignore::biclique.exceptions.BicliqueWarning")
def test_graphs_neighborhoods_and_what_is_given_have_order_2(X, parameters):
    """A drop-in for scikit-learn."""
    model, asked = (
        BicliqueSpectralClustering(2, order=order, random_state=0, **parameters).fit(X) for order in ("auto", 2)
    )
    assert model.order_ == 2
    assert np.array_equal(model.labels_, asked.labels_)
