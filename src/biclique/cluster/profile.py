"""What sets a cluster apart."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, ParameterError


def profile_of(X: Any, labels: IntArray, n_clusters: int, categories: Sequence[str | int] | None) -> Any:
    """A frame of clusters by columns; a dictionary of columns if pandas is not installed."""
    columns = _columns(X)
    chosen = _chosen(columns, categories)
    out: dict[Hashable, FloatArray] = {}
    for name, values in columns.items():
        numbers = None if name in chosen else _numbers(values)
        if numbers is not None:
            out[name] = standardised_difference(numbers, labels, n_clusters)
        else:
            texts = np.array([str(value) for value in values.tolist()])
            for value in np.unique(texts):
                out[f"{name}={value}"] = share_difference(texts == value, labels, n_clusters)
    if find_spec("pandas") is None:
        return out
    pandas = import_module("pandas")
    return pandas.DataFrame(out, index=pandas.RangeIndex(n_clusters, name="cluster"))


def standardised_difference(values: FloatArray, labels: IntArray, n_clusters: int) -> FloatArray:
    """(mean − mean of the rest)/s, s² the pooled variance of both; missing values are left out; 0 if s = 0."""

    def of_groups(own: FloatArray, rest: FloatArray) -> float:
        free = len(own) + len(rest) - 2
        spread = own.var() * len(own) + rest.var() * len(rest)
        gap = float(own.mean() - rest.mean())
        if free < 1 or spread <= 0:
            return 0.0 if gap == 0 else float(np.copysign(np.inf, gap))
        return gap / float(np.sqrt(spread / free))

    there = ~np.isnan(values)
    return _of_clusters(values[there], labels[there], n_clusters, of_groups)


def share_difference(holds: np.ndarray, labels: IntArray, n_clusters: int) -> FloatArray:
    """The share of rows that have a value, minus that of the rest."""
    return _of_clusters(holds.astype(float), labels, n_clusters, lambda own, rest: float(own.mean() - rest.mean()))


def _of_clusters(
    values: FloatArray, labels: IntArray, n_clusters: int, compare: Callable[[FloatArray, FloatArray], float]
) -> FloatArray:
    """A comparison of every cluster with the rest; not a number if one of them has no rows."""
    out = np.full(n_clusters, np.nan)
    for cluster in range(n_clusters):
        own = labels == cluster
        if own.any() and not own.all():
            out[cluster] = compare(values[own], values[~own])
    return out


def _columns(X: Any) -> Mapping[Hashable, np.ndarray]:
    """The columns of a table by name, or by number."""
    if sparse.issparse(X):
        X = X.toarray()
    if hasattr(X, "columns") and hasattr(X, "dtypes"):  # pandas, polars
        return {name: np.asarray(X[name]) for name in X.columns}
    table = np.asarray(X)
    if table.ndim != 2:
        raise DataError(f"X must be a table of two dimensions, got {table.ndim}.")
    return {f"x{column}": table[:, column] for column in range(table.shape[1])}


def _numbers(values: np.ndarray) -> FloatArray | None:
    """A column as numbers, None for text and categories; True and False are numbers."""
    if values.dtype.kind in "biuf":
        return values.astype(float)
    return None


def _chosen(columns: Mapping[Hashable, np.ndarray], categories: Sequence[str | int] | None) -> Sequence[Hashable]:
    names = list(columns)
    chosen = []
    for given in [] if categories is None else list(categories):
        name: Hashable = given
        if isinstance(given, (int, np.integer)) and given not in columns and 0 <= given < len(names):
            name = names[int(given)]
        if name not in columns:
            raise ParameterError(f"categories has {given!r}, which is not a column: the columns are {names[:10]}.")
        chosen.append(name)
    return chosen
