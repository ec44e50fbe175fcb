"""Every kind of fitted model keeps the contract."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

from biclique import BicliqueSpectralClustering, Hypergraph, HypergraphSpectralClustering
from biclique.kernels import RBF
from tests.fit.contract import FittedContract
from tests.optional import needs


def groups():
    """Three groups, some rows twice, and new rows beside some."""
    random = np.random.default_rng(1)
    X = np.repeat([[0.0, 0, 4], [0, 4, 0], [4, 0, 0]], 40, axis=0) + random.uniform(0, 1.5, (120, 3))
    X[5], X[77] = X[6], X[78]
    X.setflags(write=False)
    return X, X[::9] + 1e-3


class OfRows(FittedContract):
    parameters = {}  # noqa: RUF012

    def create(self):
        X, new = groups()
        return BicliqueSpectralClustering(3, random_state=0, **self.parameters).fit(X), X, new


RBF_KERNEL = {"affinity": "rbf"}
WAYS = {
    "default": {},
    "centres": {"rank": 40, "order": 3, "assign_labels": "cluster_qr"},
    "neighbourhoods of categories": {"kernel_params": {"metric": "gower"}, "n_neighbors": 5},
    "neighbourhoods and their rule": {"assign_labels": "kernel_kmeans"},
    "dense": RBF_KERNEL,
    "tiled": {**RBF_KERNEL, "gram": "tiled", "order": 4},
    "the rule of kernel k-means": {**RBF_KERNEL, "assign_labels": "kernel_kmeans"},
    "symmetric": {**RBF_KERNEL, "modelling": "symmetric", "order": 3, "assign_labels": "discretize"},
    "a factored operator": {**RBF_KERNEL, "modelling": "symmetric", "gram": "nystroem", "rank": 40},
    "landmarks": {**RBF_KERNEL, "gram": "nystroem", "rank": 40},
    "features": {**RBF_KERNEL, "gram": "features", "rank": 64, "assign_labels": "cluster_qr", "order": 4},
    "graph": {"affinity": "nearest_neighbors"},
    "connected graph": {"affinity": "nearest_neighbors", "n_neighbors": 60, "assign_labels": "kernel_kmeans"},
}


class TestRows(OfRows):
    @pytest.fixture(autouse=True, params=WAYS)
    def way(self, request):
        self.parameters = WAYS[request.param]


class TestSparseRows(FittedContract):
    def create(self):
        X, new = (sparse.csr_array(np.where(rows > 1.6, rows, 0.1)) for rows in groups())
        return BicliqueSpectralClustering(3, affinity="cosine", random_state=0).fit(X), X, new


class TestGiven(FittedContract):
    def create(self):
        X, new = groups()
        K = RBF(0.3).block(X, X)
        K = (K + K.T) / 2
        model = BicliqueSpectralClustering(3, affinity="precomputed", order=4, random_state=0)
        return model.fit(K), K, RBF(0.3).block(new, X)


class TestGivenGraph(FittedContract):
    tolerance = 1e-6

    def create(self):
        X, new = groups()
        X = np.delete(X, [5, 77], axis=0)  # of equal rows, all get the row of the first
        near = kneighbors_graph(X, 10, mode="distance", include_self=True)
        model = BicliqueSpectralClustering(3, affinity="precomputed_nearest_neighbors", random_state=0).fit(near)
        return model, near, sparse.csr_array(np.linalg.norm(new[:, None] - X, axis=2))


class TestHypergraph(FittedContract):
    tolerance = 1e-6

    def create(self):
        random = np.random.default_rng(3)
        edges = [9 * group + random.choice(9, 3, replace=False) for group in range(3) for _ in range(25)]
        hypergraph = Hypergraph.from_edges([*edges, [0, 9], [9, 18]])
        model = HypergraphSpectralClustering(3, random_state=0).fit(hypergraph)
        return model, hypergraph.incidence, hypergraph.incidence[::4]


class TestSparseNeighborhoods(FittedContract):
    def create(self):
        X, new = (sparse.csr_array(np.where(rows > 1.6, rows, 0.1)) for rows in groups())
        model = BicliqueSpectralClustering(3, kernel_params={"metric": "cosine"}, random_state=0)
        return model.fit(X), X, new


@needs("torch")
class TestDefaultOnDevice(OfRows):
    parameters = {"device": "cpu"}  # noqa: RUF012
    tolerance = 1e-15  # sums of the same numbers by another library
    keeps_tensors = True


@needs("torch")
class TestDevice(OfRows):
    parameters = {**RBF_KERNEL, "device": "cpu"}  # noqa: RUF012
    tolerance = 1e-4
    keeps_tensors = True
    exact_copies = False


@needs("torch")
class TestLandmarksOnDevice(OfRows):
    parameters = {**RBF_KERNEL, "device": "cpu", "gram": "nystroem", "rank": 40}  # noqa: RUF012
    tolerance = 1e-4
    keeps_tensors = True
