"""What is wrong with arguments and data, said before any work is done."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import date, time, timedelta
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from biclique._typing import FloatArray, Rows
from biclique.exceptions import ColumnSpreadWarning, DataError, ParameterError, warn_user
from biclique.features.nystroem import LANDMARKS
from biclique.gram import FACTORED, GRAM_NAMES, NEIGHBOR_WEIGHTS, PRECISIONS
from biclique.kernels import GAMMA_RULES, KERNEL_NAMES, Kernel
from biclique.multiway import check_order
from biclique.runtime.arguments import check_choice, check_count, check_flag, check_jobs, check_number, is_finite
from biclique.runtime.namespace import largest_size, namespace, on_host, to_host

LARGEST_VALUE = 1e18
"""Squares beyond this do not fit float32."""

SMALLEST_VALUE = 1e-100
"""Squares below this one's are as good as zero."""

MOST_SPREAD = 100.0
SPREAD_ROWS = 10_000
EIGEN_SOLVERS = ("auto", "krylov", "arpack", "lobpcg", "amg")
MODELLINGS = ("biclique", "symmetric")
PRECOMPUTED = ("precomputed", "precomputed_nearest_neighbors")
DEVICES = ("cpu", "cuda", "mps", "xpu")
NEIGHBOR_AFFINITIES = ("nearest_neighbors", "precomputed_nearest_neighbors")
DATE_TYPES = re.compile("date|time|duration|period", re.IGNORECASE)
"""How the types of dates and spans of time begin in NumPy, pandas, polars and Arrow."""

DATE_CELLS = (date, time, timedelta, np.datetime64, np.timedelta64)
MOST_NAMED = 10


def check_gamma(gamma: object) -> None:
    """γ: a positive number or the name of a rule."""
    if isinstance(gamma, str):
        check_choice("gamma", gamma, GAMMA_RULES)
    elif isinstance(gamma, bool) or not isinstance(gamma, Real) or not is_finite(gamma) or not float(gamma) > 0:
        raise ParameterError(
            f"gamma must be a positive number or one of {', '.join(map(repr, GAMMA_RULES))}, got {gamma!r}: "
            "'auto' chooses it from the data."
        )


def check_tolerance(eigen_tol: object) -> None:
    """The tolerance of eigenpairs: "auto" or a number from 0."""
    if eigen_tol == "auto":
        return
    number = isinstance(eigen_tol, Real) and not isinstance(eigen_tol, bool) and is_finite(eigen_tol)
    if not number or not 0 <= float(eigen_tol) < 1:  # type: ignore[arg-type]
        raise ParameterError(f"eigen_tol must be 'auto' or a number from 0 to 1, got {eigen_tol!r}.")


def is_neighbors(affinity: object) -> bool:
    """Whether an affinity is a neighbour graph."""
    return isinstance(affinity, str) and affinity in NEIGHBOR_AFFINITIES


def check_rank_argument(rank: object) -> None:
    """The number of landmarks or features: "auto" or a whole number."""
    if isinstance(rank, (str, bool)) or not isinstance(rank, Integral) or int(rank) < 1:
        raise ParameterError(f"rank must be 'auto' or a whole number of at least 1, got {rank!r}.")


def check_kernel_parameters(model: Any) -> None:
    """The arguments that every estimator has."""
    affinity = model.affinity
    if isinstance(affinity, str):
        check_choice("affinity", affinity, (*KERNEL_NAMES, "precomputed", *NEIGHBOR_AFFINITIES))
    elif not (isinstance(affinity, Kernel) or callable(affinity)):
        raise ParameterError(
            f"affinity must be the name of a kernel, 'precomputed', a function of two rows or a "
            f"biclique.kernels.Kernel, got {affinity!r}."
        )
    if not (isinstance(model.order, str) and model.order == "auto"):
        check_order(model.order)
    check_gamma(model.gamma)
    check_number("degree", model.degree, least=1)
    check_number("coef0", model.coef0)
    check_choice("gram", model.gram, GRAM_NAMES)
    if not (isinstance(model.rank, str) and model.rank == "auto"):
        check_rank_argument(model.rank)
    check_choice("landmarks", model.landmarks, tuple(LANDMARKS))
    check_choice("precision", model.precision, PRECISIONS)
    if not hasattr(model, "device"):
        check_fast(model.precision, None)
    if model.gram in FACTORED and isinstance(affinity, str) and affinity in (*NEIGHBOR_AFFINITIES, "precomputed"):
        raise ParameterError(
            f"gram={model.gram!r} needs rows and a kernel, not affinity={affinity!r}: leave gram at 'auto', or use "
            "affinity='rbf'."
        )
    check_count("max_iter", model.max_iter)
    check_jobs(model.n_jobs)


def check_fast(precision: str, device: Any) -> None:
    """Half precision is a device's: the one asked for, or the one where X lies."""
    if precision == "fast" and device is None:
        raise ParameterError("precision='fast' is for device='cuda': use precision='auto' or 'float32' on the host.")


def check_device_name(device: Any) -> None:
    """Refuse what cannot be a device; whether it is there only torch can tell."""
    named = isinstance(device, str) and re.fullmatch(rf"({'|'.join(DEVICES)})(:\d+)?", device)
    kind: Any = getattr(sys.modules.get("torch"), "device", ())
    opened = isinstance(device, kind) and device.type != "meta"
    if not (device is None or named or opened):
        raise ParameterError(
            f"device must be None, {', '.join(map(repr, DEVICES))}, one of several by its number ('cuda:1') or a "
            f"torch.device that holds numbers, got {device!r}."
        )


def check_solver_parameters(model: Any) -> None:
    """The arguments that every spectral estimator has besides."""
    check_tolerance(model.eigen_tol)
    check_count("n_neighbors", model.n_neighbors)
    check_choice("modelling", model.modelling, MODELLINGS)
    if model.modelling == "symmetric" and model.order != "auto" and check_order(model.order) % 1 != 0:
        raise ParameterError(f"modelling='symmetric' needs a whole order, odd or even, got {model.order!r}.")
    check_choice("neighbor_weights", model.neighbor_weights, ("auto", *NEIGHBOR_WEIGHTS))
    if is_neighbors(model.affinity):
        _check_neighbor_parameters(model)
    normalize = getattr(model, "row_normalize", "auto")
    if not (isinstance(normalize, str) and normalize == "auto"):
        check_flag("row_normalize", normalize)
    if model.eigen_solver == "amg" and not (is_neighbors(model.affinity) or model.affinity == "precomputed"):
        raise ParameterError(
            "eigen_solver='amg' is for neighbour graphs (affinity='nearest_neighbors'), where it is the default: use "
            "eigen_solver='auto' here."
        )
    if model.eigen_solver is not None:
        check_choice("eigen_solver", model.eigen_solver, EIGEN_SOLVERS)


def _check_neighbor_parameters(model: Any) -> None:
    """What has no meaning for a neighbour graph."""
    if model.modelling != "biclique":
        raise ParameterError(
            f"modelling={model.modelling!r} works with kernels, not with affinity={model.affinity!r}: leave it at "
            "'biclique'."
        )
    if isinstance(model.gamma, str) and model.gamma != "auto":
        raise ParameterError(
            f"gamma must be 'auto' or a number with affinity={model.affinity!r}, got {model.gamma!r}: 'auto' is 0.2 "
            "over the median squared distance to the last neighbour."
        )


def check_clusters_fit(n_clusters: int, n: int, n_positive: int) -> None:
    """Refuse fewer rows than clusters."""
    if n_positive < n_clusters:
        counted = f"{n} rows" if n_positive == n else f"{n_positive} rows of positive weight (of {n})"
        raise DataError(f"X has {counted}, fewer than n_clusters={n_clusters}: ask for at most {n_positive} clusters.")


def column_name(names: Sequence[str] | None, column: int) -> str:
    """``column 2`` or ``column 2 ('petal length')``."""
    return f"column {column}" if names is None else f"column {column} ({names[column]!r})"


def check_no_dates(X: Any) -> None:
    """Refuse dates and spans of time, which NumPy would turn into counts of days or nanoseconds."""
    found = _date_columns(X)
    if found:
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        raise DataError(
            f"X holds dates or times in {', '.join(found[:MOST_NAMED])}{more}: drop such columns or turn them into "
            "numbers, such as days since the first date."
        )


def _date_columns(X: Any) -> list[str]:
    """The columns of dates: by their type, by their cells if these are Python objects, by the first row of a list."""
    if isinstance(X, (list, tuple)):
        first = X[0] if X and isinstance(X[0], (list, tuple)) else ()
        return [column_name(None, j) for j, cell in enumerate(first) if isinstance(cell, DATE_CELLS)]
    if hasattr(X, "column_names") and hasattr(X, "schema"):  # Arrow
        names, types = list(X.column_names), list(X.schema.types)
    elif hasattr(X, "columns") and hasattr(X, "dtypes"):  # pandas, polars
        names, types = list(X.columns), list(X.dtypes)
    else:
        kind = getattr(getattr(X, "dtype", None), "kind", "")
        if kind not in ("M", "m", "O") or len(X.shape) != 2:
            return []
        return [column_name(None, j) for j in range(X.shape[1]) if kind != "O" or _has_date(X[:, j])]
    return [
        column_name(names, j)
        for j, kind in enumerate(types)
        if DATE_TYPES.match(str(kind)) or (str(kind) == "object" and hasattr(X, "iloc") and _has_date(X.iloc[:, j]))
    ]


def _has_date(cells: Any) -> bool:
    return any(isinstance(cell, DATE_CELLS) for cell in cells)


def read_array(model: Any, X: Any, *, reset: bool, **options: Any) -> Any:
    """X as an array or a CSR matrix of numbers, by scikit-learn's checks of shapes and names.

    Text and dates are errors of our own.
    """
    check_no_dates(X)
    check_no_mask(X, "X")
    try:
        return validate_data(
            model, X, reset=reset, ensure_all_finite=False, ensure_min_samples=2 if reset else 1, **options
        )
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise DataError(
            f"X holds text ({error}): drop such columns, or turn them into numbers first "
            "(sklearn.preprocessing.OneHotEncoder)."
        ) from error


def check_no_mask(values: Any, name: str) -> None:
    """Refuse masked values: as an array they would be whatever lies under the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argwhere(np.ma.getmaskarray(values))[0][0])
        raise DataError(
            f"{name} has masked values, the first in row {row}: fill them in with .filled(value), or leave those rows "
            "out."
        )


def stand_in(X: Any) -> Any:
    """An array with the shape of a tensor, for checks of the shape: it takes no memory, but where these must fail."""
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


def check_values(X: Rows, names: Sequence[str] | None, *, squared: bool = True, first_row: int | None = None) -> None:
    """No NaN, no infinity, and, where values are squared, none whose square overflows or vanishes.

    The message names the first such place. ``first_row`` is the number of the first row where X is part of more: that
    all its values are tiny then says nothing.
    """
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
    where = f"row {row + (first_row or 0)}, {column_name(names, int(column))}"
    value = float(entries.data[first] if entries is not None else X[row, column])
    if np.isnan(value):
        raise DataError(
            f"X contains NaN: {int(xp.isnan(values).sum())} missing values, the first in {where}. Drop those rows, or "
            "fill them first (sklearn.impute.SimpleImputer)."
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
        weights = np.asarray(sample_weight if on_host(sample_weight) else to_host(sample_weight), dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers, one a row, got {type(sample_weight).__name__} ({error}).") from error
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise DataError(f"{name} must have one number a row, shape ({n},), got shape {weights.shape}.")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise DataError(
            f"{name} must be finite and not negative, got {weights[bad[0]]:g} in row {bad[0]}: a weight counts "
            "how often a row is there; 0 leaves it out."
        )
    if not (weights > 0).any():
        raise DataError(f"{name} is zero in every row: at least one row must count.")
    return weights
