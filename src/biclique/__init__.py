"""Clustering through multi-way similarity."""

from biclique.cluster import (
    BicliqueKernelKMeans,
    BicliqueSpectralClustering,
    BicliqueSpectralEmbedding,
    HypergraphSpectralClustering,
    InhomogeneousSubspaceClustering,
)
from biclique.hypergraph import Hypergraph

__all__ = [
    "BicliqueKernelKMeans",
    "BicliqueSpectralClustering",
    "BicliqueSpectralEmbedding",
    "Hypergraph",
    "HypergraphSpectralClustering",
    "InhomogeneousSubspaceClustering",
    "__version__",
]

__version__ = "0.1.0"
