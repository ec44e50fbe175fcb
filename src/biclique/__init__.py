"""Clustering through multi-way similarity."""

from biclique.cluster import BicliqueSpectralClustering, BicliqueSpectralEmbedding

__all__ = ["BicliqueSpectralClustering", "BicliqueSpectralEmbedding", "__version__"]

__version__ = "0.1.0"
