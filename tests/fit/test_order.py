"""order="auto" of kernels: the least order that leaves no tiny cluster, else the one whose smallest is largest."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from biclique import BicliqueSpectralClustering
from biclique.exceptions import DegreeError
from biclique.spectral.cut import ORDERS, least_order


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


@pytest.mark.parametrize("seed", range(30))
def test_the_rule_itself(seed):
    random = np.random.default_rng(seed)
    k, n = int(random.integers(2, 6)), int(random.integers(10, 200))
    shares = {order: random.dirichlet(np.full(k, 0.6)) for order in ORDERS}
    asked = []

    def attempt(order):
        asked.append(order)
        return shares[order], n, f"fit at {order}"

    found = least_order(ORDERS, k, attempt)
    enough = [order for order in ORDERS if n * shares[order].min() >= np.sqrt(n / k)]
    best = enough[0] if enough else max(ORDERS, key=lambda order: shares[order].min())
    assert (found[0], found[2]) == (best, f"fit at {best}")
    assert asked == [order for order in ORDERS if not enough or order <= enough[0]]


def test_orders_whose_degrees_are_not_positive_are_passed_over():
    def attempt(order):
        if order < least:
            raise DegreeError(f"none at {order:g}")
        return np.array([0.5, 0.5]), 100, order

    least = 2.25
    found = least_order(ORDERS, 2, attempt)
    assert found[0] == 2.25
    assert found[1].startswith("order 2: degrees that are not positive; order 2.05: degrees that")
    least = 5
    with pytest.raises(DegreeError, match="no order from 2 to 4 can be taken: none at 4"):
        least_order(ORDERS, 2, attempt)


def test_weights_count_as_rows():
    X, k, more = DATA["twenty outliers"]
    counts = np.random.default_rng(0).integers(1, 4, len(X))
    settings = {"affinity": "rbf", "random_state": 0, **more}
    weighted = BicliqueSpectralClustering(k, **settings).fit(X, sample_weight=counts)
    repeated = BicliqueSpectralClustering(k, **settings).fit(np.repeat(X, counts, axis=0))
    assert weighted.order_ == repeated.order_
    assert np.array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)


@pytest.mark.parametrize("affinity", ["neighborhoods", "nearest_neighbors"])
def test_graphs_and_neighborhoods_have_order_2(affinity):
    X, k, _ = DATA["twenty outliers"]
    assert BicliqueSpectralClustering(k, affinity=affinity, random_state=0).fit(X).order_ == 2
