"""A table of any columns made into numbers: a transformer of scikit-learn."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from biclique._typing import FloatArray
from biclique.exceptions import DataError, ParameterError, TableError
from biclique.runtime.arguments import check_choice
from biclique.runtime.memory import require_memory
from biclique.runtime.namespace import is_dask
from biclique.tables.diagnosis import first_gap
from biclique.tables.frames import as_frame, dask, kind_of, pandas, settled
from biclique.tables.parts import of_parts
from biclique.tables.used_columns import (
    is_auto,
    levels_as_fitted,
    listed_names,
    name_of,
    number_as_fitted,
    shown_names,
    sorted_columns,
    warn_about_empty,
    warn_about_gaps,
    warn_about_levels,
    warn_about_rows,
)

ONE_HOT = np.sqrt(0.5)
"""Two different levels are 1 apart: (1/√2)² + (1/√2)² = 1."""
CHOICES = {
    "missing": ("refuse", "drop", "mean", "median", "indicator", "keep"),
    "dates": ("refuse", "ordinal", "drop"),
    "scale": ("standard", "robust", "none"),
    "encode": ("one-hot", "codes"),
}
"""The values of parameters that are one of a few words."""
WHOLE_TABLE = {
    "missing": ("median", "missing='median' needs every value of a column at once: use missing='mean'"),
    "scale": ("robust", "scale='robust' needs every value of a column at once: use scale='standard'"),
    "categorical": ("auto", "categorical='auto' needs a look at the whole table: name the columns"),
}
"""What a Dask frame cannot have, by parameter: its value, and the way out."""
ROUNDING = 16
"""Units in the last place of the middle: a column that deviates less is a constant with rounding errors."""


def _standard(values: FloatArray) -> tuple[Any, Any]:
    """Mean and standard deviation; 1 or more for a constant column, however far from 0."""
    mean, deviation = np.nanmean(values), np.nanstd(values)
    rounding = ROUNDING * np.spacing(np.abs(mean))
    return mean, deviation if deviation > rounding else max(rounding, 1.0)


def _robust(values: FloatArray) -> tuple[Any, Any]:
    """Median and distance of the quartiles; 1 or more for a constant column, however far from 0."""
    low, median, high = np.nanpercentile(values, (25, 50, 75))
    rounding = ROUNDING * np.spacing(np.abs(median))
    return median, high - low if high - low > rounding else max(rounding, 1.0)


def _mean(values: FloatArray) -> Any:
    """The mean, inf if the sum overflows; rounding does not take it beyond the values: equal ones have theirs."""
    mean = np.nanmean(values)
    return mean if np.isinf(mean) else mean.clip(np.nanmin(values), np.nanmax(values))


SCALES: dict[str, Callable[[FloatArray], tuple[Any, Any]]] = {
    "standard": _standard,
    "robust": _robust,
    "none": lambda values: (0.0, 1.0),  # noqa: ARG005
}
"""What is subtracted from a column, and what it is divided by, by the value of ``scale``."""
OTHER_ORDER = (
    "The feature names should match those that were passed during fit.\n"
    "Feature names must be in the same order as they were in fit.\n"
    "X[[name for name in preparer.names_ if name in X]] puts them so."
)
"""The first lines are scikit-learn's, which its checks of estimators expect."""
FILLS: dict[str, Callable[[FloatArray], Any]] = {"mean": _mean, "median": np.nanmedian, "indicator": _mean}
"""What replaces missing numbers of a column, by the value of ``missing``."""


class TablePreparer(TransformerMixin, BaseEstimator):
    """Turns a table with text, categories, dates, booleans and gaps into numbers.

    Takes pandas, polars and Arrow frames and arrays; gives float64. If a column can not be used as it is, one error
    lists all such columns, what each looks like, and a call that deals with them.

    A Dask frame is fitted in one pass over its partitions, and transformed partition by partition.

    Errors count the rows of the table from 1.

    Parameters
    ----------
    columns : list of names, optional
        The columns to use; all others are ignored. For arrays: their numbers.
    drop : list of names, default=()
        Columns to leave out.
    categorical : list of names or "auto", default=()
        Columns whose values are levels. Each level is a column of 0 and 1/√2: two rows with different levels are 1
        apart in squared distance, for all levels alike. "auto" takes texts of at most 100 levels that come twice each
        on average. A level that was not seen in ``fit`` is 0 in all of these columns, with a warning.
    missing : {"refuse", "drop", "mean", "median", "indicator", "keep"}, default="refuse"
        What becomes of missing values.

        - "refuse": an error.
        - "drop": such rows are left out. ``kept_`` and ``kept(X)`` say which rows stay, and ``in_place`` puts labels
          back where they belong.
        - "mean", "median": filled in with that of the column. Categories get their most frequent level.
        - "indicator": filled in with the mean, and one more column is 1 if a value was missing. For categories
          "missing" is a level.
        - "keep": stays missing (NaN), for ``affinity="gower"``.
    dates : {"refuse", "ordinal", "drop"}, default="refuse"
        "ordinal": days since 1970-01-01, scaled as numbers are.
    scale : {"standard", "robust", "none"}, default="standard"
        Of numbers and dates. "standard": mean 0 and variance 1. "robust": by median and quartiles. Booleans stay 0
        and 1: two rows that differ are 1 apart in squared distance, as with categories.
    encode : {"one-hot", "codes"}, default="one-hot"
        "codes": a category is one column of whole numbers, 0 for its first level; a level that was not seen in ``fit``
        has the number after the last. This is for ``Gower(categorical=preparer.categorical_places_)``.

    Attributes
    ----------
    number_columns_, category_columns_ : list of names
        The columns that are used as numbers and as categories.
    levels_ : dict
        The levels of each category; None stands for a missing value.
    kept_ : array of shape (n_samples,)
        Which rows of ``fit`` were used.
    fill_, center_, scale_ : arrays of shape (len(number_columns_),)
        What replaces missing values (NaN if nothing does), what is subtracted, and what numbers are divided by.
    common_ : dict
        The level that replaces missing values of each category, if one does.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from biclique.tables import TablePreparer
    >>> table = np.array([[1.0, "red"], [3.0, "blue"]], dtype=object)
    >>> preparer = TablePreparer(categorical=[1]).fit(table)
    >>> preparer.get_feature_names_out().tolist()
    ['x0', 'x1=blue', 'x1=red']
    >>> preparer.transform(table).round(3).tolist()
    [[-1.0, 0.0, 0.707], [1.0, 0.707, 0.0]]
    """

    def __init__(
        self,
        *,
        columns: Sequence[str | int] | None = None,
        drop: Sequence[str | int] = (),
        categorical: Sequence[str | int] | Literal["auto"] = (),
        missing: str = "refuse",
        dates: str = "refuse",
        scale: str = "standard",
        encode: str = "one-hot",
    ) -> None:
        self.columns = columns
        self.drop = drop
        self.categorical = categorical
        self.missing = missing
        self.dates = dates
        self.scale = scale
        self.encode = encode

    # scikit-learn's methods

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn what to do with each column."""
        if is_dask(X):
            self._fit_partitions(as_partitions(X))
        else:
            frame = self._read(X, reset=True)
            numbers, levels, self.kept_ = self._cells(self._choose(frame))
            gaps = np.asarray(np.isnan(numbers).any(axis=0))
            self._learn(name_of(frame), numbers, gaps, [Counter(column.tolist()) for column in levels.T])
        return self

    def transform(self, X: Any) -> Any:
        """The table as numbers: numbers, missing indicators, levels. With missing="drop" it can have fewer rows."""
        check_is_fitted(self)
        if is_dask(X):
            names = self.get_feature_names_out()
            nothing = pandas().DataFrame(np.empty((0, len(names))), columns=names)
            return as_partitions(X).map_partitions(self._partition, meta=nothing)
        return self._packed(X, *self._transform(self._read(X, reset=False)))

    def transform_rows(self, X: Any) -> tuple[FloatArray, NDArray[np.bool_]]:
        """What ``transform`` gives as an array, and which rows of X these are.

        Columns are found by their names, in any order, and rows that are left out give no warning.
        """
        check_is_fitted(self)
        return self._transform(as_frame(X))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """``age``, ``age=(missing)`` for its indicator, ``color=red`` for a level."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        shown = dict(zip(self.names_, names, strict=True))
        made = [shown[name] for name in self.number_columns_]
        made += [f"{shown[name]}=(missing)" for name in self.indicated_]
        for name in self.category_columns_:
            levels = ["(missing)" if level is None else level for level in self.levels_[name]]
            made += [shown[name]] if self.encode == "codes" else [f"{shown[name]}={level}" for level in levels]
        return np.asarray(made, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "refuse"
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    @property
    def categorical_places_(self) -> list[int]:
        """The places of categories among the columns that are made, with ``encode="codes"``."""
        first = len(self.number_columns_) + len(self.indicated_)
        return list(range(first, first + len(self.category_columns_))) if self.encode == "codes" else []

    # Rows left out

    def kept(self, X: Any) -> NDArray[np.bool_]:
        """Which rows ``transform`` keeps: with missing="drop" those whose values are all there and finite."""
        check_is_fitted(self)
        if is_dask(X):
            return np.concatenate(of_parts(self.kept, as_partitions(X)))
        if self.missing != "drop":
            return np.ones(len(X), dtype=bool)
        return self._cells(as_frame(X))[2]

    def in_place(self, labels: ArrayLike, kept: NDArray[np.bool_] | None = None, fill: int = -1) -> NDArray[Any]:
        """One label for every row of the table, ``fill`` for rows left out; by default of the rows of ``fit``."""
        check_is_fitted(self)
        known = getattr(self, "kept_", None) if kept is None else kept  # not known of partitions
        if known is None:
            raise DataError("this preparer does not know the rows of fit: pass kept(X) of the X that has these labels.")
        mask, values = np.asarray(known, dtype=bool), np.asarray(labels)
        if len(values) != mask.sum():
            raise DataError(
                f"{len(values)} labels came for {int(mask.sum())} rows that were kept; pass kept(X) of the X."
            )
        full = np.full(len(mask), fill, dtype=np.result_type(values.dtype, np.min_scalar_type(fill)))
        full[mask] = values
        return full

    # Reading X

    def _read(self, X: Any, reset: bool) -> Any:
        """X as a frame; names and their number are checked as in scikit-learn."""
        if hasattr(X, "column_names") and hasattr(X, "schema"):
            X = as_frame(X)
        if hasattr(X, "columns") and hasattr(X, "dtypes"):
            frame = as_frame(X)
            used = [] if reset else self._used()
            found = [name for name in frame.columns if name in used]
            known = hasattr(self, "feature_names_in_")
            if known and not reset and found != used and {*found} == {*used}:
                raise DataError(OTHER_ORDER)
            if reset or not known or found != used:
                validate_data(self, X, reset=reset, skip_check_array=True)
        else:
            cells = np.array(X, dtype=object) if isinstance(X, list) else X
            frame = as_frame(validate_data(self, cells, reset=reset, dtype=None, ensure_all_finite=False))
        if 0 in frame.shape:
            raise DataError(
                f"{name_of(frame)}: 0 rows or columns (shape={frame.shape}); at least 1 of each is required."
            )
        return frame

    def _used(self) -> list[str]:
        """The names of the columns that are used, in the order of ``fit``."""
        return [name for name in self.names_ if name in self.kinds_]

    def _choose(self, frame: Any, whole: bool = True) -> Any:
        """Sort the columns into numbers and categories, after a look at the parameters; the columns that are chosen."""
        for parameter, allowed in CHOICES.items():
            check_choice(parameter, getattr(self, parameter), allowed)
        name, self.names_ = name_of(frame), list(frame.columns)
        listed = partial(listed_names, name, columns=self.names_)
        categorical = [] if is_auto(self.categorical) else listed("categorical", self.categorical)
        columns = self.names_ if self.columns is None else listed("columns", self.columns)
        away = {*listed("drop", self.drop)}
        names = list(dict.fromkeys(column for column in columns if column not in away))
        chosen = frame[names].copy(deep=False)
        for column in names:
            if column not in categorical and not frame.attrs.get("settled"):
                chosen[column] = settled(chosen[column])
        defaults = type(self)().get_params()
        given = {name: value for name, value in self.get_params().items() if not np.array_equal(value, defaults[name])}
        with_names = hasattr(self, "feature_names_in_")
        numbers, categories = sorted_columns(chosen, categorical, given, with_names=with_names, whole=whole)
        self.number_columns_, self.category_columns_ = numbers, categories
        kinds = dict(zip(chosen.columns, map(kind_of, chosen.dtypes), strict=True))
        self.kinds_ = {name: kinds[name] for name in (*numbers, *categories)}
        return chosen

    def _cells(self, frame: Any) -> tuple[FloatArray, NDArray[Any], NDArray[np.bool_]]:
        """Of the columns that ``fit`` used, in the rows that stay: numbers, levels, and which rows these are.

        Numbers (n, p) have NaN for gaps, levels (n, q) None. Infinite values are refused, and gaps if they have to be.
        """
        name, used = name_of(frame), self._used()
        absent = [column for column in used if column not in frame.columns]
        if absent:
            shown = shown_names(frame.columns)
            raise DataError(f"{name}: column {absent[0]!r} was used in fit and is not there; columns: {shown}.")
        if self.missing == "refuse" and (gap := first_gap(frame[used])):
            n = int(frame[used].isna().any(axis=1).sum())
            raise DataError(
                f"{name}: {gap} (NaN), {n} of {len(frame)} rows have one: leave such rows out with missing='drop', or "
                "fit with missing='mean'."
            )
        X = np.empty((len(frame), len(self.number_columns_)))
        for j, column in enumerate(self.number_columns_):
            X[:, j] = number_as_fitted(frame[column], self.kinds_[column], name)
        L = np.empty((len(frame), len(self.category_columns_)), dtype=object)
        for j, column in enumerate(self.category_columns_):
            L[:, j] = levels_as_fitted(frame[column], self.kinds_[column])
        kept = np.ones(len(frame), dtype=bool)
        if self.missing == "drop":
            kept = np.isfinite(X).all(axis=1) & ~pandas().isna(L).any(axis=1)
            X, L = X[kept], L[kept]
        if np.isinf(X).any():
            at, j = np.argwhere(np.isinf(X))[0]
            raise TableError(
                f"{name}: infinite value (inf) in row {at + 1}, column {self.number_columns_[j]!r}: replace it, or "
                "leave such rows out with missing='drop'."
            )
        return X, L, kept

    # Fitting

    def _fit_partitions(self, X: Any) -> None:
        """From sums of each partition."""
        for parameter, (value, way_out) in WHOLE_TABLE.items():
            if np.array_equal(getattr(self, parameter), value):
                raise ParameterError(f"{way_out}, or read the table whole.")
        first = self._read(X.partitions[0].compute(), reset=True)
        name = name_of(self._choose(first, whole=X.npartitions == 1))
        sizes, counts, means, squares, levels = zip(*of_parts(self._sums, X), strict=True)
        n_rows, total = sum(sizes), np.sum(counts, axis=0)
        found: list[Counter[str | None]] = [sum(of_column, Counter()) for of_column in zip(*levels, strict=True)]
        n_values = [*total.tolist(), *(count.total() - count[None] for count in found)]
        names = [*self.number_columns_, *self.category_columns_]
        empty = [column for column, n in zip(names, n_values, strict=True) if not n]
        if n_rows and empty:
            raise TableError(f"{name}: columns {shown_names(empty)} have no value: leave them out with drop=….")
        # Two rows, mean ± deviation, have the mean and the variance of all. Of values filled in, the deviation is 0.
        mean = (np.array(counts) * means).sum(axis=0) / np.maximum(total, 1)
        squared = np.sum(squares, axis=0) + (counts * (means - mean) ** 2).sum(axis=0)
        n = np.full(len(total), n_rows) if self.missing in FILLS else total
        deviation = np.sqrt(squared / np.maximum(n, 1))
        rows = np.array([mean - deviation, mean + deviation])[: 2 * bool(n_rows)]
        self._learn(name, rows, total < n_rows, found)

    def _sums(self, part: Any) -> tuple[int, FloatArray, FloatArray, FloatArray, list[Counter[str | None]]]:
        """Rows; number of values, mean and Σ (x − mean)² of every column of numbers; how often every level comes."""
        X, L, _ = self._cells(as_frame(part))
        counts, means, squares = np.zeros((3, X.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            for j, column in enumerate(X.T):  # one at a time: copies of all would be the most memory of a pass
                values = column[~np.isnan(column)]
                if len(values):
                    counts[j], means[j] = len(values), values.mean()
                    squares[j] = ((values - means[j]) ** 2).sum()
        return len(X), counts, means, squares, [Counter(column.tolist()) for column in L.T]

    def _learn(self, name: str, X: FloatArray, gaps: NDArray[np.bool_], levels: Sequence[Counter[str | None]]) -> None:
        """What replaces gaps and what scales, of rows, of columns that have ``gaps``, and of counts of levels."""
        if not len(X):
            raise TableError(f"{name}: every row has a missing value; leave out columns with drop=….")
        self.indicated_ = [self.number_columns_[j] for j in np.flatnonzero(gaps) if self.missing == "indicator"]
        self.fill_, self.center_, self.scale_ = np.outer([np.nan, 0, 1], np.ones(X.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            for j, column in enumerate(X.T):
                if self.missing in FILLS:
                    self.fill_[j] = FILLS[self.missing](column)
                    column = np.where(np.isnan(column), self.fill_[j], column)
                if self.kinds_[self.number_columns_[j]] != "boolean":  # which stay 0 and 1
                    self.center_[j], self.scale_[j] = SCALES[self.scale](column)
        known = self.fill_ if self.missing in FILLS else self.center_
        _check_size(name, self.number_columns_, np.isfinite([known, self.center_, self.scale_]))
        self.levels_: dict[str, list[str | None]] = {}
        self.common_: dict[str, str] = {}
        for category, counts in zip(self.category_columns_, levels, strict=True):
            present = sorted(level for level in counts if level is not None)
            is_level = None in counts and self.missing not in ("mean", "median", "keep")
            self.levels_[category] = [*present, *[None] * is_level]
            if self.missing in ("mean", "median"):
                self.common_[category] = max(present, key=counts.__getitem__)

    def _partition(self, part: Any) -> Any:
        """A partition as numbers, with the index of its rows."""
        made, kept = self._transform(as_frame(part))
        return pandas().DataFrame(made, columns=self.get_feature_names_out(), index=part.index[kept])

    # Transforming

    def _transform(self, frame: Any) -> tuple[FloatArray, NDArray[np.bool_]]:
        X, L, kept = self._cells(frame)
        n_out = len(self.get_feature_names_out())
        require_memory(
            16 * len(frame) * n_out,
            f"{name_of(frame)}: {len(frame)} rows of {n_out} prepared columns",
            "leave out categories with many levels, or take fewer rows.",
        )
        gaps = np.isnan(X)
        if self.missing in FILLS and len(frame) > 1:  # one row may lack a value
            without = np.hstack([gaps, pandas().isna(L)]).all(axis=0)
            names = np.array([*self.number_columns_, *self.category_columns_], dtype=object)
            warn_about_empty(name_of(frame), names[without].tolist(), len(frame))
        indicated = [self.number_columns_.index(name) for name in self.indicated_]
        if self.missing == "indicator":
            with_gaps = [self.number_columns_[j] for j in np.flatnonzero(gaps.any(axis=0))]
            warn_about_gaps([name for name in with_gaps if name not in self.indicated_])
        np.copyto(X, self.fill_, where=gaps)
        with np.errstate(over="ignore", invalid="ignore"):
            X -= self.center_
            X /= self.scale_
        _check_size(name_of(frame), self.number_columns_, np.isfinite(X) | gaps)
        if n_out > X.shape[1]:
            X = np.hstack([X, gaps[:, indicated], *map(self._encoded, self.category_columns_, L.T)])
        return X, kept

    def _encoded(self, name: str, values: NDArray[Any]) -> FloatArray:
        """A category as columns of 0 and 1/√2, or as one of the numbers of its levels."""
        known = self.levels_[name]
        codes = {level: float(j) for j, level in enumerate(known)}
        if self.missing == "keep":
            codes[None] = np.nan
        elif name in self.common_:
            codes[None] = codes[self.common_[name]]
        levels = values.tolist()
        warn_about_levels(name, levels, codes)
        found = np.array([codes.get(level, len(known)) for level in levels])[:, np.newaxis]
        return found if self.encode == "codes" else ONE_HOT * (found == np.arange(len(known)))

    def _packed(self, X: Any, made: FloatArray, kept: NDArray[np.bool_]) -> Any:
        """As a frame with the right rows, if pandas is asked for and rows were left out; scikit-learn does the rest."""
        warn_about_rows(kept)
        asked = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        if asked != "pandas" or kept.all() or not hasattr(X, "iloc"):
            return made
        return pandas().DataFrame(made, index=X.index[kept], columns=self.get_feature_names_out())


def as_partitions(X: Any) -> Any:
    """A collection of Dask as a frame; the columns of an array are called "0", "1", …"""
    if hasattr(X, "map_partitions"):
        return X
    return dask("dask.dataframe").from_dask_array(X.rechunk({1: -1}), columns=[str(j) for j in range(X.shape[1])])


def _check_size(name: str, columns: Sequence[str], fits: NDArray[np.bool_]) -> None:
    """Refuse a table if a number of a column, or of what was learnt of it, does not fit float64."""
    fit = fits.all(axis=0)
    if not fit.all():
        raise DataError(
            f"{name}: column {columns[int(fit.argmin())]!r} has values too large to scale: divide it by a power of 10 "
            "first, such as 1e200, or leave it out with drop=…."
        )
