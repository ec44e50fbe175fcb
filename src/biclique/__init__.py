"""Clustering through multi-way similarity."""

# Estimators are imported when they are first asked for. The command line can then hear Ctrl-C before NumPy, SciPy and
# scikit-learn are imported.

from importlib import import_module

__version__ = "0.2.0"

_MODULES = (
    "datasets",
    "exceptions",
    "hypergraph",
    "kernels",
    "multiway",
    "report",
    "scores",
    "selection",
    "tables",
)
"""Public modules, imported when they are first asked for."""

_HOMES = {
    "BicliqueKernelKMeans": "cluster.kernel_kmeans",
    "BicliqueSpectralClustering": "cluster.clustering",
    "BicliqueSpectralEmbedding": "cluster.embedding",
    "ConsensusClustering": "cluster.consensus",
    "Hypergraph": "hypergraph.hypergraph",
    "HypergraphSpectralClustering": "cluster.hypergraph_clustering",
    "InhomogeneousSubspaceClustering": "cluster.subspace_clustering",
    "consensus_labels": "cluster.consensus",
    "load": "models.saving",
    "read_hypergraph": "hypergraph.files.by_ending",
    "save": "models.saving",
    "write_hypergraph": "hypergraph.files.by_ending",
}
"""The file of every public name."""

__all__ = ["__version__", *_HOMES]

TYPE_CHECKING = False  # typing itself would take longer than everything else here
if TYPE_CHECKING:
    from biclique import datasets as datasets
    from biclique import exceptions as exceptions
    from biclique import hypergraph as hypergraph
    from biclique import kernels as kernels
    from biclique import multiway as multiway
    from biclique import report as report
    from biclique import scores as scores
    from biclique import selection as selection
    from biclique import tables as tables
    from biclique.cluster.clustering import BicliqueSpectralClustering as BicliqueSpectralClustering
    from biclique.cluster.consensus import ConsensusClustering as ConsensusClustering
    from biclique.cluster.consensus import consensus_labels as consensus_labels
    from biclique.cluster.embedding import BicliqueSpectralEmbedding as BicliqueSpectralEmbedding
    from biclique.cluster.hypergraph_clustering import HypergraphSpectralClustering as HypergraphSpectralClustering
    from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans as BicliqueKernelKMeans
    from biclique.cluster.subspace_clustering import InhomogeneousSubspaceClustering as InhomogeneousSubspaceClustering
    from biclique.hypergraph.files.by_ending import read_hypergraph as read_hypergraph
    from biclique.hypergraph.files.by_ending import write_hypergraph as write_hypergraph
    from biclique.hypergraph.hypergraph import Hypergraph as Hypergraph
    from biclique.models.saving import load as load
    from biclique.models.saving import save as save
else:  # type checkers would accept every name

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return import_module(f"biclique.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'biclique' has no attribute {name!r}")
        value = getattr(import_module(f"biclique.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
