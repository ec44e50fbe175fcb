"""Every estimator: validate, compose, store."""

from biclique.cluster._checks import MODELLINGS
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.embedding import BicliqueSpectralEmbedding
from biclique.cluster.hypergraph import HypergraphSpectralClustering
from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans
from biclique.cluster.subspaces import InhomogeneousSubspaceClustering

__all__ = [
    "MODELLINGS",
    "BicliqueKernelKMeans",
    "BicliqueSpectralClustering",
    "BicliqueSpectralEmbedding",
    "HypergraphSpectralClustering",
    "InhomogeneousSubspaceClustering",
]
