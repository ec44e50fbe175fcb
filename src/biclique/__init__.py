"""Clustering through multi-way similarity."""

from biclique.cluster import BicliqueKernelKMeans, BicliqueSpectralClustering, BicliqueSpectralEmbedding
from biclique.hypergraph import Hypergraph

__all__ = [
    "BicliqueKernelKMeans",
    "BicliqueSpectralClustering",
    "BicliqueSpectralEmbedding",
    "Hypergraph",
    "__version__",
]

__version__ = "0.1.0"
