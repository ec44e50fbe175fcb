"""Clustering through multi-way similarity."""

from biclique.cluster import BicliqueKernelKMeans, BicliqueSpectralClustering, BicliqueSpectralEmbedding

__all__ = ["BicliqueKernelKMeans", "BicliqueSpectralClustering", "BicliqueSpectralEmbedding", "__version__"]

__version__ = "0.1.0"
