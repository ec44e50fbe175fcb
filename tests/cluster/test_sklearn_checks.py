"""scikit-learn's own estimator checks, none of them expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.embedding import BicliqueSpectralEmbedding
from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans

pytestmark = pytest.mark.filterwarnings("ignore::biclique.exceptions.BicliqueWarning")

# Every way of labelling, holding K and modelling is met once.
RBF = {"n_clusters": 3, "affinity": "rbf"}
ESTIMATORS = [
    BicliqueSpectralClustering(n_clusters=3),
    BicliqueSpectralClustering(n_clusters=3, assign_labels="kernel_kmeans", order=3),
    BicliqueSpectralClustering(n_clusters=3, rank=5, assign_labels="discretize"),
    BicliqueKernelKMeans(n_clusters=3),
    BicliqueSpectralEmbedding(),
    BicliqueSpectralClustering(**RBF),
    BicliqueSpectralClustering(**RBF, gram="tiled", assign_labels="cluster_qr", row_normalize=True),
    BicliqueSpectralClustering(**RBF, assign_labels="kernel_kmeans", modelling="symmetric", order=5),
    BicliqueKernelKMeans(**RBF, weights="paper", gram="tiled"),
    BicliqueSpectralEmbedding(affinity="rbf", gram="tiled", precision="float64", drop_first=False),
    BicliqueSpectralClustering(n_clusters=3, assign_labels="discretize", affinity="nearest_neighbors"),
    BicliqueSpectralEmbedding(affinity="nearest_neighbors"),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_compatible(estimator, check):
    check(estimator)
