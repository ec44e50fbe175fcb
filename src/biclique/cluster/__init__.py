"""Every estimator: validate, compose, store."""

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.embedding import BicliqueSpectralEmbedding
from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans

__all__ = ["BicliqueKernelKMeans", "BicliqueSpectralClustering", "BicliqueSpectralEmbedding"]
