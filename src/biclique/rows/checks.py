"""What is wrong with data, checked before any work is done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, time, timedelta
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, Rows
from biclique.exceptions import ColumnSpreadWarning, DataError, warn_user
from biclique.runtime.namespace import largest_size, namespace, on_host, to_host

LARGEST_VALUE = 1e18
"""Squares beyond this do not fit float32."""

SMALLEST_VALUE = 1e-100
"""Squares below this one's are as good as zero."""

MOST_SPREAD = 100.0

SPREAD_ROWS = 10_000

DATE_TYPES = re.compile("date|time|duration|period", re.IGNORECASE)
"""How the types of dates and spans of time begin in NumPy, pandas, polars and Arrow."""

CATEGORY_TYPES = ("category", "categorical", "enum")
"""How the types of categories begin in pandas and polars, in small letters."""

MOST_NAMED = 10


def column_name(names: Sequence[str] | None, column: int) -> str:
    """``column 2`` or ``column 2 ('petal length')``."""
    return f"column {column}" if names is None else f"column {column} ({names[column]!r})"


def check_given(X: Any) -> None:
    """Refuse what scikit-learn would take for rows or call by another name.

    These are the name of a file, a graph of networkx, a tensor without numbers, dates and masked values.
    """
    if isinstance(X, (str, bytes, PathLike)):
        excel = str(X).lower().endswith((".xlsx", ".xls", ".ods"))
        large = "pandas.read_csv, or with dask.dataframe.read_csv if it is larger than the memory"
        raise DataError(
            f"X is a path ({str(X)!r}), and rows are needed: read the table first, with "
            f"{'pandas.read_excel' if excel else large}."
        )
    if hasattr(X, "nodes") and hasattr(X, "adj"):
        raise DataError(
            f"X is a {type(X).__name__} of networkx, and a matrix is needed: pass networkx.to_scipy_sparse_array(X), "
            "with affinity='precomputed'."
        )
    check_numbers_there(X, "X")
    check_no_dates(X)
    check_no_mask(X, "X")


def check_no_dates(X: Any) -> None:
    """Refuse dates and spans of time, which NumPy would turn into counts of days or nanoseconds."""
    found = [name for name, kind, cells in _columns(X) if DATE_TYPES.match(kind) or any(map(_is_date, cells))]
    if found:
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        raise DataError(
            f"X holds dates or times in {', '.join(found[:MOST_NAMED])}{more}: drop such columns or turn them into "
            "numbers, such as days since the first date."
        )


def _is_date(cell: object) -> bool:
    return isinstance(cell, (date, time, timedelta, np.datetime64, np.timedelta64))


def _columns(X: Any) -> Iterator[tuple[str, str, Any]]:
    """Name, type and Python objects of every column that may hold dates; of a list, those of its first row."""
    if isinstance(X, (list, tuple)):
        first = X[0] if X and isinstance(X[0], (list, tuple)) else ()
        yield from ((column_name(None, j), "object", [cell]) for j, cell in enumerate(first))
    elif hasattr(X, "column_names") and hasattr(X, "schema"):  # Arrow
        yield from ((column_name(X.column_names, j), str(kind), ()) for j, kind in enumerate(X.schema.types))
    elif hasattr(X, "columns") and hasattr(X, "dtypes"):  # pandas, polars
        for j, kind in enumerate(map(str, X.dtypes)):
            cells = X.iloc[:, j] if kind == "object" and hasattr(X, "iloc") else ()
            yield column_name(list(X.columns), j), kind, cells
    elif getattr(getattr(X, "dtype", None), "kind", "") in ("M", "m", "O") and len(X.shape) == 2:
        yield from ((column_name(None, j), str(X.dtype), X[:, j]) for j in range(X.shape[1]))


def where_no_number(X: Any) -> str:
    """`` in column 1 ('town')``: the first column with text, or a whole number beyond floats; else nothing."""
    table = np.asarray(X, dtype=object)
    names = getattr(X, "column_names", getattr(X, "columns", None))
    for j in range(table.shape[1] if table.ndim == 2 else 0):
        if any(map(_is_no_number, table[:, j])):
            return f" in {column_name(None if names is None else list(names), j)}"
    return ""


def _is_no_number(cell: object) -> bool:
    if not isinstance(cell, (str, int)):
        return False
    try:
        float(cell)
    except (ValueError, OverflowError):
        return True
    return False


def category_columns(X: Any) -> np.ndarray | None:
    """Which columns of a frame of pandas or polars have the type of categories, (d,); None if X is not a frame."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return None
    return np.array([str(kind).lower().startswith(CATEGORY_TYPES) for kind in X.dtypes], dtype=bool)


def one_gap(X: FloatArray) -> FloatArray:
    """X with NaN of one pattern of bits: rows that are equal must have equal bytes."""
    missing = np.isnan(X)
    return np.where(missing, X.dtype.type(np.nan), X) if missing.any() else X


def check_no_mask(values: Any, name: str, first_row: int = 0) -> None:
    """Refuse masked values: as an array they would be the numbers under the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = first_row + int(np.argwhere(np.ma.getmaskarray(values))[0][0])
        raise DataError(
            f"{name} has masked values, the first in row {row}, counted from 0: fill them in with .filled(value), or "
            "leave those rows out."
        )


def stand_in(X: Any) -> Any:
    """An array with the shape of a tensor, for checks of the shape: it takes no memory, unless a check must fail."""
    if X.layout != namespace(X).strided:
        raise DataError(
            f"X is a tensor of layout {X.layout}, and dense rows are needed on a device: pass X.to_dense()."
        )
    if X.ndim != 2 or X.is_complex():
        return to_host(X)  # the message shows its numbers
    return np.broadcast_to(np.float32(0), X.shape)


def check_numbers_there(x: Any, name: str) -> None:
    """Refuse a tensor of PyTorch's device "meta"."""
    if not on_host(x) and x.is_meta:
        raise DataError(f"{name} is a meta tensor, which has a shape but no numbers: pass the tensor with its values.")


def check_values(
    X: Rows,
    names: Sequence[str] | None,
    *,
    squared: bool = True,
    first_row: int | None = None,
    gaps: bool = False,
    index: Any = None,
) -> None:
    """No NaN and no infinity; if values are squared, none whose square overflows or vanishes.

    With ``gaps`` NaN is allowed. The message names the first such place, with the label of its row in a frame's
    ``index``. ``first_row`` is the number of the first row if X is a part of the rows. Then it does not matter if all
    its values are tiny.
    """
    if gaps and isinstance(X, np.ndarray):
        X = np.where(np.isnan(X), X.dtype.type(0), X)
    largest = largest_size(X.data if sparse.issparse(X) else X)
    if squared and first_row is None and 0 < largest < SMALLEST_VALUE:
        raise DataError(
            f"X has no value beyond {largest:.3g}, and such squares vanish: rescale the columns, for example with "
            "sklearn.preprocessing.StandardScaler."
        )
    if largest <= LARGEST_VALUE or (not squared and np.isfinite(largest)):
        return
    entries = sparse.coo_array(X) if sparse.issparse(X) else None
    values = entries.data if entries is not None else X
    xp = namespace(values)  # a tensor is searched where it lies
    bad = ~xp.isfinite(values) if not np.isfinite(largest) else xp.abs(values) > LARGEST_VALUE
    first = int(xp.argmax(bad.view(xp.uint8)))  # the first one, row by row
    row, column = (entries.row[first], entries.col[first]) if entries is not None else divmod(first, X.shape[1])
    label = "" if index is None or index[row] == row else f" (index {index[row]})"
    where = f"row {row + (first_row or 0)}{label}, {column_name(names, int(column))}, counted from 0"
    value = float(entries.data[first] if entries is not None else X[row, column])
    if np.isnan(value):
        raise DataError(
            f"X contains NaN: {int(xp.isnan(values).sum())} missing values, the first in {where}. Drop those rows, "
            "fill them first (biclique.tables.TablePreparer), or use affinity='gower', which leaves them out."
        )
    if np.isinf(value):
        raise DataError(f"X contains infinity, the first in {where}: remove or replace such values.")
    raise DataError(
        f"X has values up to {largest:.3g} (first beyond {LARGEST_VALUE:g} in {where}), whose squares overflow: "
        "rescale the columns, for example with sklearn.preprocessing.StandardScaler."
    )


def warn_about_spread(X: Rows, names: Sequence[str] | None) -> None:
    """Warn when the columns' spreads (the width of their middle 95 %) are more than 100 × apart.

    Columns that are constant, or nearly so, carry next to nothing and are left out.
    """
    if sparse.issparse(X) or X.shape[1] < 2:
        return
    rows = to_host(X[:: max(X.shape[0] // SPREAD_ROWS, 1)])
    low, high = np.quantile(rows, [0.025, 0.975], axis=0)
    spread = np.asarray(high - low, dtype=float)
    varying = np.flatnonzero(spread > 1e-12 * np.maximum(np.abs(low), np.abs(high)))  # not constant but for rounding
    if len(varying) < 2:
        return
    wide = int(varying[np.argmax(spread[varying])])
    narrow = int(varying[np.argmin(spread[varying])])
    ratio = spread[wide] / spread[narrow]
    if ratio > MOST_SPREAD:
        warn_user(
            f"column spreads differ {ratio:.0f} ×: {column_name(names, wide)} spans {spread[wide]:.3g}, "
            f"{column_name(names, narrow)} {spread[narrow]:.3g}, so the first decides nearly every distance. Scale "
            "the columns first (sklearn.preprocessing.StandardScaler), unless they share a unit.",
            ColumnSpreadWarning,
        )


def check_weights(sample_weight: Any, n: int, name: str = "sample_weight") -> FloatArray:
    """Multiplicities: finite, none negative, not all zero. A single number or None means equal weights."""
    if sample_weight is None:
        return np.ones(n)
    check_numbers_there(sample_weight, name)
    check_no_mask(sample_weight, name)
    try:
        given = np.asarray(sample_weight if on_host(sample_weight) else to_host(sample_weight))
        weights = np.asarray(given, dtype=float if given.dtype.kind not in "mMc" else None)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name} must be numbers, one for each row, got {type(sample_weight).__name__} ({error})."
        ) from error
    if weights.dtype.kind in "mMc":  # NumPy would make numbers of dates
        raise DataError(f"{name} must be numbers, one for each row, got {weights.dtype}.")
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise DataError(f"{name} must have one number per row, shape ({n},), got shape {weights.shape}.")
    check_weight_values(weights, name)
    if not (weights > 0).any():
        raise DataError(f"{name} is zero in every row: at least one row must count.")
    unit = weight_unit(float(weights.max()), float(weights.mean()), name)
    return weights if unit == 1 else weights / unit


def weight_unit(largest: float, mean: float, name: str = "sample_weight") -> float:
    """What weights are divided by: their mean if they are of an unusual size, because only proportions count."""
    if largest < 1 / LARGEST_WEIGHT:
        raise DataError(f"{name} is at most {largest:.3g}, and its square is lost: {SCALE_WEIGHTS}.")
    return 1.0 if 1 / USUAL_WEIGHT < largest < USUAL_WEIGHT else mean


LARGEST_WEIGHT = 1e100

USUAL_WEIGHT = 1e12
"""Weights are divided by their mean if the largest is beyond this or below its inverse: float32 ends at 1e38."""

SCALE_WEIGHTS = "divide it by its mean, since only proportions count"


def check_weight_values(weights: FloatArray, name: str, first_row: int = 0) -> None:
    """Refuse weights that are not finite or below 0; rows are counted from ``first_row``."""
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise DataError(
            f"{name} must be finite and not negative, got {weights[bad[0]]:g} in row {first_row + int(bad[0])}, "
            "counted from 0: a weight counts how often a row is there; 0 leaves it out."
        )
    largest = float(weights.max(initial=0.0))
    if largest > LARGEST_WEIGHT:
        raise DataError(f"{name} is up to {largest:.3g}, and its square overflows: {SCALE_WEIGHTS}.")


def check_clusters_fit(n_clusters: int, n: int, n_positive: int) -> None:
    """Refuse fewer rows than clusters."""
    if n_positive < n_clusters:
        counted = f"{n} rows" if n_positive == n else f"{n_positive} rows of positive weight (of {n})"
        raise DataError(f"X has {counted}, fewer than n_clusters={n_clusters}: ask for at most {n_positive} clusters.")
