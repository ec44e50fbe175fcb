"""A table of any columns made into numbers: scikit-learn's encoders, imputers and scalers, put together by names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from biclique._typing import FloatArray
from biclique.exceptions import Argument, DataError, ParameterError, TableError, TableWarning, optional, warn_user
from biclique.runtime import free_memory, require
from biclique.runtime.namespace import is_dask
from biclique.runtime.page_links import PageLink
from biclique.tables.frames import as_frame, kind_of, numbers_of, pandas, settled
from biclique.tables.preparer_sums import Sums
from biclique.tables.used_columns import (
    chosen_columns,
    first_gap,
    levels_as_fitted,
    listed_names,
    name_of,
    number_as_fitted,
    sorted_columns,
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
SCALERS = {"standard": StandardScaler, "robust": RobustScaler}
"""scikit-learn's scalers, by the value of ``scale``."""
WHOLE_TABLE = {
    "missing": ("median", "missing='median' needs every value of a column at once: use missing='mean'"),
    "scale": ("robust", "scale='robust' needs every value of a column at once: use scale='standard'"),
    "categorical": ("auto", "categorical='auto' needs a look at the whole table: name the columns"),
}
"""What a Dask frame cannot have, by parameter: its value, and the way out."""
DASK = "Dask frames need Dask: pip install 'biclique[dask]'"
"""The sentence about packages that are not installed."""
DROP = Argument("drop")
MISSING = Argument("missing")
MISSING_DROP = Argument("missing='drop'")
SCALE_NONE = Argument("scale='none'")


class TablePreparer(TransformerMixin, PageLink, BaseEstimator):
    """Turns a table with text, categories, dates, booleans and gaps into numbers.

    Takes pandas, polars and Arrow frames and arrays; gives float64. If a column can not be used as it is, one error
    lists all such columns, what each looks like, and a call that deals with them.

    A Dask frame is fitted in one pass over its partitions, and transformed partition by partition.

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
    imputer_, scaler_, encoder_, level_imputer_ : scikit-learn's transformers
        None if not needed.
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

    _page_module = "biclique.tables"
    imputer_: Any
    scaler_: Any
    level_imputer_: Any
    encoder_: Any

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
            return self._fit_partitions(X)
        self._fit(self._read(X, reset=True))
        return self

    def transform(self, X: Any) -> Any:
        """The table as numbers: numbers, missing indicators, levels. With missing="drop" it can have fewer rows."""
        check_is_fitted(self)
        if is_dask(X):
            names = self.get_feature_names_out()
            nothing = pandas().DataFrame(np.empty((0, len(names))), columns=names)
            return as_partitions(X).map_partitions(self._partition, meta=nothing)
        made, kept = self._transform(self._read(X, reset=False))
        warn_about_rows(kept)
        return self._packed(X, made, kept)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """``fit(X).transform(X)``, reading X once."""
        if is_dask(X):
            return self.fit(X, y).transform(X)
        frame = self._read(X, reset=True)
        self._fit(frame)
        made, kept = self._transform(frame)
        warn_about_rows(kept)
        return self._packed(X, made, kept)

    def transform_rows(self, X: Any) -> tuple[FloatArray, NDArray[np.bool_]]:
        """What ``transform`` gives as an array, and which rows of X these are.

        Columns are found by their names, in any order, and rows that are left out give no warning.
        """
        check_is_fitted(self)
        return self._transform(as_frame(X))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """``age``, ``age=(missing)`` for its indicator, ``color=red`` for a level."""
        check_is_fitted(self)
        before = getattr(self, "feature_names_in_", None)
        if input_features is None:
            names = before if before is not None else [f"x{j}" for j in range(self.n_features_in_)]
        else:
            names = np.asarray(input_features, dtype=object)
            if before is not None and not np.array_equal(names, before):
                raise ParameterError("input_features is not equal to feature_names_in_: leave it out.")
            if len(names) != self.n_features_in_:
                raise ParameterError(
                    "input_features should have length equal to number of features: "
                    f"{self.n_features_in_}, got {len(names)}."
                )
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
    def n_used(self) -> int:
        """The number of columns that are used."""
        return len(self.number_columns_) + len(self.category_columns_)

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
            return np.concatenate(computed(self.kept, as_partitions(X)))
        return self._kept(*self._columns(as_frame(X)))

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
            if reset or not hasattr(self, "feature_names_in_") or [c for c in frame.columns if c in used] != used:
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
        used = {*self.number_columns_, *self.category_columns_}
        return [name for name in self.names_ if name in used]

    def _choose(self, frame: Any, whole: bool = True) -> Any:
        """Sort the columns into numbers and categories, after a look at the parameters; the columns that are chosen."""
        for parameter, allowed in CHOICES.items():
            if getattr(self, parameter) not in allowed:
                got = getattr(self, parameter)
                raise ParameterError(f"{parameter} must be one of {', '.join(allowed)}, got {got!r}.")
        auto = isinstance(self.categorical, str) and self.categorical == "auto"
        asked = {
            "columns": None if self.columns is None else listed_names("columns", self.columns),
            "drop": listed_names("drop", self.drop),
            "categorical": [] if auto else listed_names("categorical", self.categorical),
        }
        self.names_ = list(frame.columns)
        names = chosen_columns(name_of(frame), self.names_, asked)
        categorical: Any = "auto" if auto else asked["categorical"]
        chosen = frame[names].copy(deep=False)
        for name in names:
            if auto or name not in categorical:
                chosen[name] = settled(chosen[name])
        defaults = type(self)().get_params()
        given = {name: value for name, value in self.get_params().items() if not np.array_equal(value, defaults[name])}
        with_names = hasattr(self, "feature_names_in_")
        numbers, categories = sorted_columns(chosen, categorical, given, with_names=with_names, whole=whole)
        self.number_columns_, self.category_columns_ = numbers, categories
        self.kinds_ = {name: kind_of(chosen[name]) for name in (*numbers, *categories)}
        return chosen

    def _columns(self, frame: Any) -> tuple[FloatArray, NDArray[Any]]:
        """Numbers (n, p) with NaN for gaps, and levels (n, q) with None for gaps, of the columns that ``fit`` used."""
        name = name_of(frame)
        absent = [column for column in self._used() if column not in frame.columns]
        if absent:
            shown = frame.columns.tolist()
            raise DataError(f"{name}: column {absent[0]!r} was used in fit and is not there; columns: {shown}.")
        X = np.empty((len(frame), len(self.number_columns_)))
        for j, column in enumerate(self.number_columns_):
            X[:, j] = numbers_of(number_as_fitted(settled(frame[column]), self.kinds_[column], name))
        L = np.empty((len(frame), len(self.category_columns_)), dtype=object)
        for j, column in enumerate(self.category_columns_):
            L[:, j] = levels_as_fitted(frame[column], self.kinds_[column])
        return X, L

    def _kept(self, X: FloatArray, L: NDArray[Any]) -> NDArray[np.bool_]:
        """Which rows stay."""
        if self.missing != "drop":
            return np.ones(len(X), dtype=bool)
        gaps = np.array([[level is None for level in row] for row in L.tolist()], dtype=bool).reshape(L.shape)
        return np.asarray(np.isfinite(X).all(axis=1) & ~gaps.any(axis=1))

    def _rows(self, frame: Any) -> tuple[FloatArray, NDArray[Any], NDArray[np.bool_]]:
        """Numbers and levels of the rows that are kept, and which these are. Infinite values are refused."""
        X, L = self._columns(frame)
        kept = self._kept(X, L)
        if not kept.all():
            X, L = X[kept], L[kept]
        infinite = np.isinf(X)
        if infinite.any():
            at, j = np.argwhere(infinite)[0]
            raise TableError(
                f"{name_of(frame)}: infinite value (inf) in row {np.flatnonzero(kept)[at] + 1}, column "
                f"{self.number_columns_[j]!r}: replace it, or leave such rows out with ",
                MISSING_DROP,
                ".",
            )
        return X, L, kept

    # Fitting

    def _fit(self, frame: Any) -> None:
        X, L, self.kept_ = self._rows(self._choose(frame))
        if not len(X):
            raise _only_gaps(frame)
        gaps = np.isnan(X).any(axis=0) & (self.missing == "indicator")
        self.indicated_ = [self.number_columns_[j] for j in np.flatnonzero(gaps)]
        self.imputer_ = self.scaler_ = self.level_imputer_ = self.encoder_ = None
        if X.shape[1] and self.missing in ("mean", "median", "indicator"):
            strategy = "median" if self.missing == "median" else "mean"
            self.imputer_ = SimpleImputer(strategy=strategy).fit(X)
            X = self.imputer_.transform(X)
        scaled = self._scaled()
        if scaled and self.scale != "none":
            with np.errstate(over="ignore", invalid="ignore"):
                scaler = SCALERS[self.scale](copy=False).fit(X[:, scaled])
            if not np.isfinite(getattr(scaler, "var_", scaler.scale_)).all():
                raise _too_large(frame)
            self.scaler_ = scaler
        if L.shape[1] and self.missing in ("mean", "median"):
            self.level_imputer_ = SimpleImputer(strategy="most_frequent", missing_values=None).fit(L)
            L = self.level_imputer_.transform(L)
        self._fit_levels([{*column.tolist()} for column in L.T])

    def _scaled(self) -> list[int]:
        """The places of numbers and dates among the columns that are used as numbers: booleans stay 0 and 1."""
        return [j for j, name in enumerate(self.number_columns_) if self.kinds_[name] != "boolean"]

    def _fit_levels(self, found: Sequence[set[str | None]]) -> None:
        """Levels in order; a gap, None, is the last of them unless it stays a gap."""
        self.levels_: dict[str, list[str | None]] = {}
        for name, values in zip(self.category_columns_, found, strict=True):
            gap = [None] if None in values and self.missing != "keep" else []
            self.levels_[name] = [*sorted(value for value in values if value is not None), *gap]
        if self.category_columns_ and self.encode == "one-hot":
            levels = [np.array(levels, dtype=object) for levels in self.levels_.values()]
            self.encoder_ = OneHotEncoder(categories=levels, handle_unknown="ignore", sparse_output=False)
            self.encoder_.fit(np.array([[some[0] for some in levels]], dtype=object))

    # Fitting a Dask frame: sums of each partition, added in their order

    def _fit_partitions(self, X: Any) -> Self:
        X = as_partitions(X)
        for parameter, (value, way_out) in WHOLE_TABLE.items():
            asked = getattr(self, parameter)
            if isinstance(asked, str) and asked == value:
                raise ParameterError(f"{way_out}, or read the table whole.")
        first = self._read(X.partitions[0].compute(), reset=True)
        self._choose(first, whole=X.npartitions == 1)
        sums = Sums.added(computed(self._sums, X))
        if not sums.n_rows:
            raise _only_gaps(first)
        names = [*self.number_columns_, *self.category_columns_]
        empty = [name for name, n in zip(names, sums.n_values, strict=True) if not n]
        if empty:
            raise TableError(f"{name_of(first)}: columns {', '.join(map(repr, empty))} have no value: ", DROP, " them.")
        self._learn(first, sums)
        return self

    def _sums(self, part: Any) -> Sums:
        frame = as_frame(part)
        if self.missing == "refuse":
            self._refuse_gaps(frame)
        X, L, _ = self._rows(frame)
        return Sums.of(X, L)

    def _learn(self, frame: Any, sums: Sums) -> None:
        """The transformers of scikit-learn, fitted to rows that have these sums."""
        self.imputer_ = self.scaler_ = self.level_imputer_ = self.encoder_ = None
        filled = self.missing in ("mean", "indicator")
        with_gaps = sums.counts < sums.n_rows
        self.indicated_ = [
            name
            for name, gaps in zip(self.number_columns_, with_gaps, strict=True)
            if gaps and self.missing == "indicator"
        ]
        if self.number_columns_ and filled:
            self.imputer_ = SimpleImputer(strategy="mean").fit(sums.means[None])
        scaled = self._scaled()
        if scaled and self.scale == "standard":
            rows = sums.n_rows if filled else sums.counts[scaled]  # filled values have deviation 0
            deviation = np.sqrt(sums.squares[scaled] / rows)
            if not np.isfinite(deviation).all():
                raise _too_large(frame)
            mean = sums.means[scaled]
            self.scaler_ = StandardScaler(copy=False).fit(np.array([mean - deviation, mean + deviation]))
        levels = [set(counts) for counts in sums.levels]
        if self.category_columns_ and self.missing == "mean":
            common = [min((-n, level) for level, n in c.items() if level is not None)[1] for c in sums.levels]
            fills = SimpleImputer(strategy="most_frequent", missing_values=None)
            self.level_imputer_ = fills.fit(np.array([common], dtype=object))
            levels = [values - {None} for values in levels]
        self._fit_levels(levels)

    def _partition(self, part: Any) -> Any:
        """A partition as numbers, with the index of its rows."""
        made, kept = self._transform(as_frame(part))
        return pandas().DataFrame(made, columns=self.get_feature_names_out(), index=part.index[kept])

    # Transforming

    def _refuse_gaps(self, frame: Any) -> None:
        used = frame[[name for name in self._used() if name in frame.columns]]
        gap = first_gap(used)
        if gap:
            raise DataError(f"{name_of(frame)}: {gap} (NaN); fit with another missing=, such as 'mean' or 'drop'.")

    def _transform(self, frame: Any) -> tuple[FloatArray, NDArray[np.bool_]]:
        if self.missing == "refuse":
            self._refuse_gaps(frame)
        n_out = len(self.get_feature_names_out())
        require(
            16 * len(frame) * n_out,
            free_memory(),
            f"{name_of(frame)}: {len(frame)} rows of {n_out} prepared columns",
            "leave out categories with many levels, or take fewer rows.",
        )
        X, L, kept = self._rows(frame)
        if not len(X):
            return np.empty((0, n_out)), kept
        gaps = np.isnan(X)
        indicated = [self.number_columns_.index(name) for name in self.indicated_]
        if self.missing == "indicator":
            self._warn_about_gaps(gaps)
        if self.imputer_ is not None:
            X = self.imputer_.transform(X)
        if self.scaler_ is not None:
            scaled = self._scaled()
            with np.errstate(over="ignore", invalid="ignore"):
                X[:, scaled] = self.scaler_.transform(X[:, scaled])
            if np.isinf(X).any() or (np.isnan(X) & ~gaps).any():
                raise _too_large(frame)
        return np.hstack([X, gaps[:, indicated].astype(float), self._encoded(L)]), kept

    def _encoded(self, L: NDArray[Any]) -> FloatArray:
        """Levels as columns of 0 and 1/√2, or by their number."""
        if not L.shape[1]:
            return np.empty(L.shape)
        if self.level_imputer_ is not None:
            L = self.level_imputer_.transform(L)
        for name, column in zip(self.category_columns_, L.T, strict=True):
            gap_is_known = [None] if self.missing == "keep" else []
            warn_about_levels(name, column.tolist(), [*self.levels_[name], *gap_is_known])
        if self.encoder_ is not None:
            return np.asarray(self.encoder_.transform(L) * ONE_HOT)
        codes = np.empty(L.shape)
        for j, name in enumerate(self.category_columns_):
            number = {None: np.nan, **{level: float(i) for i, level in enumerate(self.levels_[name])}}
            codes[:, j] = [number.get(level, len(self.levels_[name])) for level in L[:, j].tolist()]
        return codes

    def _warn_about_gaps(self, gaps: NDArray[np.bool_]) -> None:
        names = [self.number_columns_[j] for j in np.flatnonzero(gaps.any(axis=0))]
        new = [repr(name) for name in names if name not in self.indicated_]
        if new:
            warn_user(
                f"columns {', '.join(new)} had no gaps in fit: gaps are filled in, but have no indicator.", TableWarning
            )

    def _packed(self, X: Any, made: FloatArray, kept: NDArray[np.bool_]) -> Any:
        """As a frame with the right rows, if pandas is asked for and rows were left out; scikit-learn does the rest."""
        asked = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        if asked != "pandas" or kept.all() or not hasattr(X, "iloc"):
            return made
        return pandas().DataFrame(made, index=X.index[kept], columns=self.get_feature_names_out())


def as_partitions(X: Any) -> Any:
    """A collection of Dask as a frame; the columns of an array are called "0", "1", …"""
    if hasattr(X, "map_partitions"):
        return X
    frames = optional("dask.dataframe", DASK)
    return frames.from_dask_array(X.rechunk({1: -1}), columns=[str(j) for j in range(X.shape[1])])


def computed(function: Callable[[Any], Any], X: Any) -> Sequence[Any]:
    """The values of a function of every partition, in their order."""
    dask = optional("dask", DASK)
    return tuple(dask.compute(*(dask.delayed(function)(part) for part in X.to_delayed())))


def _only_gaps(frame: Any) -> TableError:
    return TableError(
        f"{name_of(frame)}: every row has a missing value; leave out columns with ",
        DROP,
        ", or use another ",
        MISSING,
        ".",
    )


def _too_large(frame: Any) -> DataError:
    return DataError(
        f"{name_of(frame)}: values too large to scale; rescale the columns first, or use ", SCALE_NONE, "."
    )
