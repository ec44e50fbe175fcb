"""Settings and the number of clusters chosen by the data without labels, and the reason in words."""

from biclique.selection.candidates import Candidate, make_candidates
from biclique.selection.count_result import CountResult
from biclique.selection.count_search import select_n_clusters
from biclique.selection.layers import layers
from biclique.selection.order_path import OrderPath, order_path
from biclique.selection.result import SelectionResult
from biclique.selection.settings_search import select_settings
from biclique.selection.structure import Structure, find_structure

__all__ = [
    "Candidate",
    "CountResult",
    "OrderPath",
    "SelectionResult",
    "Structure",
    "find_structure",
    "layers",
    "make_candidates",
    "order_path",
    "select_n_clusters",
    "select_settings",
]
