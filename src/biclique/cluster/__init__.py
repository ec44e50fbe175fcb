"""Every estimator: validate, compose, store."""

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.embedding import BicliqueSpectralEmbedding

__all__ = ["BicliqueSpectralClustering", "BicliqueSpectralEmbedding"]
