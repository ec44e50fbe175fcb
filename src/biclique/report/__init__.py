"""Results as a page to send, as plots, and in words."""

from biclique.report.plots import (
    plot_affinity,
    plot_clusters,
    plot_eigenvalues,
    plot_order_path,
    plot_profile,
    plot_selection,
)
from biclique.report.summary import Summary

__all__ = [
    "Summary",
    "plot_affinity",
    "plot_clusters",
    "plot_eigenvalues",
    "plot_order_path",
    "plot_profile",
    "plot_selection",
]
