"""scikit-learn's own estimator checks; two are not for every estimator."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.consensus import ConsensusClustering
from biclique.cluster.embedding import BicliqueSpectralEmbedding
from biclique.cluster.hypergraph_clustering import HypergraphSpectralClustering
from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans
from biclique.cluster.subspace_clustering import InhomogeneousSubspaceClustering

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
    ConsensusClustering(2),
]
SELDOM = [
    BicliqueSpectralClustering("select"),
    BicliqueSpectralClustering(**RBF, gram="nystroem", precision="float64"),
    BicliqueSpectralClustering(**RBF, gram="features", precision="float64"),
    BicliqueSpectralClustering(2, affinity="gower", n_init=1),
    BicliqueSpectralEmbedding(affinity="gower"),
    BicliqueKernelKMeans(2, affinity="gower"),
    BicliqueSpectralClustering(2, kernel_params={"metric": "gower"}, n_init=1),
    BicliqueSpectralEmbedding(kernel_params={"metric": "gower"}),
    BicliqueKernelKMeans(2, kernel_params={"metric": "gower"}),
    HypergraphSpectralClustering(2),
    InhomogeneousSubspaceClustering(2, subspace_dim=1, n_draws=40, n_rounds=2),
]


def not_for(estimator):
    """Checks that an estimator cannot pass, and why."""
    if isinstance(estimator, HypergraphSpectralClustering):
        return {"check_clustering": "feeds points with negative coordinates, which are no incidence matrix"}
    parameters = estimator.get_params()
    if "gower" in (parameters.get("affinity"), (parameters.get("kernel_params") or {}).get("metric")):
        # scikit-learn 1.6 asks this of every estimator.
        return {"check_sample_weight_equivalence_on_sparse_data": "gower takes no sparse rows"}
    return {}


@pytest.fixture(autouse=True)
def few_features(monkeypatch):
    """``rank="auto"`` of random features has as many as it says, however few the rows are: a second for each fit."""
    monkeypatch.setattr("biclique.fit.low_rank.RANK", 200)


@pytest.mark.parametrize("model", [BicliqueSpectralClustering(), BicliqueSpectralEmbedding()])
def test_the_dtype_of_transform_is_checked(model):
    names = [check.func.__name__ for _, check in estimator_checks_generator(model)]
    assert "check_transformer_preserve_dtypes" in names


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


@pytest.mark.once
@parametrize_with_checks(SELDOM, expected_failed_checks=not_for)
def test_more_estimators_are_compatible(estimator, check):
    check(estimator)
