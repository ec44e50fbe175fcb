"""Loaders for data sets."""

from biclique.datasets.shipped import SHIPPED, load_shipped

__all__ = ["SHIPPED", "load_shipped"]
