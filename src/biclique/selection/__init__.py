"""What is chosen without labels: the number of clusters, and what other orders would give."""

from biclique.selection.count_result import CountResult
from biclique.selection.count_search import select_n_clusters
from biclique.selection.layers import layers
from biclique.selection.order_path import OrderPath, order_path
from biclique.selection.structure import Structure, find_structure

__all__ = ["CountResult", "OrderPath", "Structure", "find_structure", "layers", "order_path", "select_n_clusters"]
