"""The data sets that come with scikit-learn, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn import datasets

SHIPPED: dict[str, Callable[[], Any]] = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
    "linnerud": datasets.load_linnerud,
}


def load_shipped(name: str) -> Any:
    """A scikit-learn Bunch; ``target_names`` is None where the target is not a class."""
    bunch = SHIPPED[name]()
    if name in ("diabetes", "linnerud"):
        bunch.target_names = None
    return bunch
