"""Where the points of the map lie: by similarity, and by the columns themselves."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds
from sklearn.impute import SimpleImputer

from biclique._typing import FloatArray, Rows
from biclique.report.shown_columns import Columns
from biclique.runtime.namespace import padded, unit_rows

RESOLUTION = 256
"""Places across the map that can be told apart."""
FEW_PLACES = 0.25
"""A map with fewer places than this share of the rows does not come first."""


@dataclass(frozen=True)
class View:
    """Two coordinates of every drawn row."""

    name: str
    axes: tuple[str, str]
    places: FloatArray  # (n, 2)
    even: bool = True  # whether both axes have one scale


def views_of(rows: Rows, embedded: FloatArray, columns: Columns, *, given: bool, raw: bool) -> list[View]:
    """By similarity, and by the columns: two as they are, of more the principal components."""
    by_similarity = View("by similarity", ("", ""), principal(unit_rows(embedded)))
    if given:
        return [by_similarity]
    if rows.shape[1] == 2 and not sparse.issparse(rows):
        first, second = columns.names if len(columns.names) == 2 else ("", "")
        places = columns.numbers if first and not raw else rows
        return [View("the two columns", (first, second), filled(places), even=False), by_similarity]
    by_columns = View("by the columns (two principal components)", ("", ""), principal(rows))
    span = max(float(np.ptp(by_similarity.places, axis=0).max()), np.finfo(float).tiny)
    apart = np.unique(np.round(by_similarity.places / span * RESOLUTION), axis=0)
    # If clusters are connected components, rows of one are equal by similarity.
    if embedded.shape[1] < 3 or len(apart) < FEW_PLACES * rows.shape[0]:
        return [by_columns, by_similarity]
    return [by_similarity, by_columns]


def principal(rows: Rows) -> FloatArray:
    """The two leading principal components of rows, (n, 2); of sparse rows not centred."""
    table: Any = rows
    if not sparse.issparse(rows):
        table = filled(rows)
        table -= table.mean(axis=0)
    least = min(table.shape)
    if least < 4 or not abs(table).max():
        dense = table.toarray() if sparse.issparse(table) else table
        left, values = np.linalg.svd(dense, full_matrices=False)[:2]
    else:
        left, values, _ = svds(table.astype(float), k=2, v0=np.linspace(1, 2, least))
        left, values = left[:, ::-1], values[::-1]
    places = padded(left[:, :2] * values[:2], 2)
    return np.asarray(places * np.where((places**3).sum(axis=0) < 0, -1.0, 1.0))  # the same picture on every machine


def filled(rows: Rows) -> FloatArray:
    """Missing values replaced by the mean of their column, 0 if it has none."""
    table = np.asarray(rows, dtype=float)
    finite = np.where(np.isfinite(table), table, np.nan)
    return np.asarray(SimpleImputer(keep_empty_features=True).fit_transform(finite))
