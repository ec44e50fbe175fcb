"""Settings chosen by the data without labels, and the reason in words."""

from biclique.selection.candidates import Candidate, make_candidates
from biclique.selection.order_path import OrderPath, order_path
from biclique.selection.result import SelectionResult
from biclique.selection.settings_search import select_settings

__all__ = ["Candidate", "OrderPath", "SelectionResult", "make_candidates", "order_path", "select_settings"]
