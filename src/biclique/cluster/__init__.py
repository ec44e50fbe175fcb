"""Every estimator: validate, compose, store."""

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.consensus import ConsensusClustering, consensus_labels
from biclique.cluster.embedding import BicliqueSpectralEmbedding
from biclique.cluster.hypergraph_clustering import HypergraphSpectralClustering
from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans
from biclique.cluster.subspace_clustering import InhomogeneousSubspaceClustering
from biclique.fit.settings import MODELLINGS

__all__ = [
    "MODELLINGS",
    "BicliqueKernelKMeans",
    "BicliqueSpectralClustering",
    "BicliqueSpectralEmbedding",
    "ConsensusClustering",
    "HypergraphSpectralClustering",
    "InhomogeneousSubspaceClustering",
    "consensus_labels",
]
