"""What sets a cluster apart."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, ParameterError
from biclique.report.shown_columns import Sums, effects_of


def profile_of(X: Any, labels: IntArray, n_clusters: int, categories: Sequence[str | int] | None) -> Any:
    """A frame of clusters by columns; a dictionary of columns if pandas is not installed."""
    columns = _columns(X)
    chosen = _chosen(columns, categories)
    out: dict[Hashable, FloatArray] = {}
    for name, values in columns.items():
        if name not in chosen and values.dtype.kind in "biuf":  # True and False are numbers
            out[name] = effects_of(values[:, None], labels, n_clusters)[:, 0]
        else:
            levels, codes = np.unique([str(value) for value in values.tolist()], return_inverse=True)
            shares = Sums.of_levels(codes, len(levels), labels, n_clusters)
            out |= {
                f"{name}={level}": gaps
                for level, gaps in zip(levels, (shares.means - shares.other_means).T, strict=True)
            }
    if find_spec("pandas") is None:
        return out
    pandas = import_module("pandas")
    return pandas.DataFrame(out, index=pandas.RangeIndex(n_clusters, name="cluster"))


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
