"""Loaders for data sets."""

from biclique.datasets.home import data_home
from biclique.datasets.paper import Hopkins155, load_hopkins155, load_iris, load_ovarian, load_spine
from biclique.datasets.shipped import SHIPPED, load_shipped

__all__ = [
    "SHIPPED",
    "Hopkins155",
    "data_home",
    "load_hopkins155",
    "load_iris",
    "load_ovarian",
    "load_shipped",
    "load_spine",
]
