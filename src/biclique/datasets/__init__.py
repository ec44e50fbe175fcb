"""Loaders for data sets."""

from biclique.datasets.home import data_home
from biclique.datasets.paper import (
    SHIPPED,
    Hopkins155,
    load_hopkins155,
    load_iris,
    load_ovarian,
    load_shipped,
    load_spine,
)

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
