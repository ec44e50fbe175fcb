"""A table of any columns made into numbers: scikit-learn's encoders, imputers and scalers, put together by names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.utils.validation import check_is_fitted, validate_data

from biclique._typing import FloatArray
from biclique.exceptions import DataError, ParameterError, TableError
from biclique.io.columns import settled
from biclique.io.prepare_columns import (
    DROP,
    MISSING,
    MISSING_DROP,
    as_numbers,
    first_gap,
    levels_as_fitted,
    listed_names,
    number_as_fitted,
    row_in_words,
    selected,
    sorted_columns,
    too_large,
    warn_about_gaps,
    warn_about_levels,
    warn_about_rows,
)
from biclique.io.prepare_state import SCALERS, one_hot, restored, state_of, state_of_scale
from biclique.io.roles import absent_column
from biclique.io.typed_columns import Column, TypedTable, as_columns
from biclique.runtime import parse_memory_limit, require
from biclique.runtime.page_links import PageLink

ONE_HOT = np.sqrt(0.5)
"""Two different levels are 1 apart: (1/√2)² + (1/√2)² = 1."""
CHOICES = {
    "missing": ("refuse", "drop", "mean", "median", "indicator", "keep"),
    "dates": ("refuse", "ordinal", "drop"),
    "scale": ("standard", "robust", "none"),
    "encode": ("one-hot", "codes"),
}
FILLED = ("mean", "median", "indicator")


class TablePreparer(TransformerMixin, PageLink, BaseEstimator):
    """Turns a table with text, categories, dates, booleans and gaps into numbers.

    Takes pandas, polars and Arrow frames, ``TypedTable`` (``read_columns``) and arrays; gives float64. If a column can
    not be used as it is, one error lists all such columns, what each looks like, and a call that deals with them.

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
        has the number after the last. This is what ``affinity="gower"`` takes: ``categorical_places_`` are the columns
        for its ``categorical_features``.

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
    >>> from biclique.io import TablePreparer
    >>> table = np.array([[1.0, "red"], [3.0, "blue"]], dtype=object)
    >>> preparer = TablePreparer(categorical=[1]).fit(table)
    >>> preparer.get_feature_names_out().tolist()
    ['x0', 'x1=blue', 'x1=red']
    >>> preparer.transform(table).round(3).tolist()
    [[-1.0, 0.0, 0.707], [1.0, 0.707, 0.0]]
    """

    _page_module = "biclique.io"

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
        self._fit(self._read(X, reset=True))
        return self

    def transform(self, X: Any) -> Any:
        """The table as numbers: numbers, missing indicators, levels. With missing="drop" it can have fewer rows."""
        made, kept = self.transform_rows(X)
        warn_about_rows(kept)
        return self._packed(X, made, kept)

    def transform_rows(self, X: Any) -> tuple[FloatArray, NDArray[np.bool_]]:
        """What ``transform`` gives as an array, and which rows of X these are; rows that are left out give no warning
        here.
        """
        check_is_fitted(self)
        return self._transform(self._read(X, reset=False))

    def fit_transform(self, X: Any, y: Any = None) -> Any:  # noqa: ARG002
        """``fit(X).transform(X)``, reading X once."""
        table = self._read(X, reset=True)
        self._fit(table)
        made, kept = self._transform(table)
        warn_about_rows(kept)
        return self._packed(X, made, kept)

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

    # Rows left out

    def kept(self, X: Any) -> NDArray[np.bool_]:
        """Which rows ``transform`` keeps: with missing="drop" those whose values are all there and finite."""
        check_is_fitted(self)
        numbers, categories = self._columns(self._read(X, reset=False))
        return self._kept([*numbers, *categories])

    def in_place(self, labels: ArrayLike, kept: NDArray[np.bool_] | None = None, fill: int = -1) -> NDArray[Any]:
        """One label for every row of the table, ``fill`` for rows left out; by default of the rows of ``fit``."""
        check_is_fitted(self)
        known = getattr(self, "kept_", None) if kept is None else kept  # a restored preparer has no rows of fit
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

    # The work

    def _read(self, X: Any, reset: bool) -> TypedTable:
        """The typed columns of any table; names and their number are checked as in scikit-learn."""
        if isinstance(X, TypedTable) or (hasattr(X, "column_names") and hasattr(X, "schema")):
            table = X if isinstance(X, TypedTable) else as_columns(X)
            if reset:
                self.n_features_in_ = len(table.names)
                self.feature_names_in_ = np.asarray(table.names, dtype=object)
        elif hasattr(X, "columns") and hasattr(X, "dtypes"):
            table = as_columns(X)
            used = [] if reset else self._used()
            if reset or not hasattr(self, "feature_names_in_") or [c for c in table.names if c in used] != used:
                validate_data(self, X, reset=reset, skip_check_array=True)
        else:
            cells = np.array(X, dtype=object) if isinstance(X, list) else X
            table = as_columns(validate_data(self, cells, reset=reset, dtype=None, ensure_all_finite=False))
        if table.n_rows == 0 or not table.columns:
            shape = (table.n_rows, len(table.columns))
            raise DataError(f"{table.name}: 0 rows or columns (shape={shape}); at least 1 of each is required.")
        return table

    def _used(self) -> list[str]:
        """The names of the columns that are used, in the order of ``fit``."""
        used = {*self.number_columns_, *self.category_columns_}
        return [name for name in self.names_ if name in used]

    def _scaled_places(self) -> list[int]:
        """The places of numbers and dates among the columns that are used as numbers: booleans stay 0 and 1."""
        return [j for j, name in enumerate(self.number_columns_) if self.kinds_[name] != "boolean"]

    def _fit(self, table: TypedTable) -> None:
        chosen, categorical = self._choose(table.name, table.names)
        known = {column.name: column for column in table.columns}
        columns = [known[name] if name in categorical else settled(known[name]) for name in chosen]
        with_names = hasattr(self, "feature_names_in_")
        numbers, categories = sorted_columns(table, columns, categorical, self._given(), with_names)
        self._use(table.names, numbers, categories)
        self.kept_ = self._kept([*numbers, *categories])
        if not self.kept_.any():
            raise TableError(
                f"{table.name}: every row has a missing value; leave out columns with ",
                DROP,
                ", or use another ",
                MISSING,
                ".",
            )
        X, L = self._parts(table, numbers, categories, self.kept_)
        filling = self.missing in FILLED
        with_gaps = np.flatnonzero(np.isnan(X).any(axis=0)) if self.missing == "indicator" else ()
        self.indicated_ = [self.number_columns_[j] for j in with_gaps]
        self.imputer_ = self.scaler_ = self.level_imputer_ = self.encoder_ = None
        if X.shape[1]:
            if filling:
                strategy = "median" if self.missing == "median" else "mean"
                self.imputer_ = SimpleImputer(strategy=strategy).fit(X)
                X = self.imputer_.transform(X)
            scaled = self._scaled_places()
            if self.scale != "none" and scaled:
                self.scaler_ = SCALERS[self.scale](copy=False)
                with np.errstate(over="ignore", invalid="ignore"):
                    self.scaler_.fit(X[:, scaled])
                if not np.isfinite(getattr(self.scaler_, "var_", self.scaler_.scale_)).all():
                    raise too_large(table.name)
        if L.shape[1]:
            if self.missing in ("mean", "median"):
                self.level_imputer_ = SimpleImputer(strategy="most_frequent", missing_values=None).fit(L)
                L = self.level_imputer_.transform(L)
            if self.encode == "one-hot":
                self.encoder_ = one_hot("auto").fit(L)
        levels = [sorted_levels({*column.tolist()}, self.missing != "keep") for column in L.T]
        self.levels_ = dict(zip(self.category_columns_, levels, strict=True))

    def _choose(self, name: str, names: list[str]) -> tuple[list[str], list[str] | Literal["auto"]]:
        """The columns to use and the categories, by name, after a look at the parameters."""
        for parameter, allowed in CHOICES.items():
            if getattr(self, parameter) not in allowed:
                got = getattr(self, parameter)
                raise ParameterError(f"{parameter} must be one of {', '.join(allowed)}, got {got!r}.")
        wanted = None if self.columns is None else listed_names("columns", self.columns)
        drop = listed_names("drop", self.drop)
        if isinstance(self.categorical, str) and self.categorical == "auto":
            return selected(name, names, wanted, drop), "auto"
        categorical = listed_names("categorical", self.categorical)
        absent = next((c for c in categorical if c not in names), None)
        if absent is not None:
            raise absent_column(name, "categorical", absent, names)
        return selected(name, names, wanted, drop), categorical

    def _given(self) -> dict[str, Any]:
        """The parameters that differ from the defaults."""
        defaults = type(self)().get_params()
        return {name: value for name, value in self.get_params().items() if not np.array_equal(value, defaults[name])}

    def _use(self, names: list[str], numbers: Sequence[Column], categories: Sequence[Column]) -> None:
        self.names_ = names
        self.number_columns_ = [column.name for column in numbers]
        self.category_columns_ = [column.name for column in categories]
        self.kinds_ = {column.name: column.kind for column in (*numbers, *categories)}

    def _kept(self, columns: Sequence[Column]) -> NDArray[np.bool_]:
        kept = np.ones(len(columns[0].values), dtype=bool)
        for column in columns if self.missing == "drop" else ():
            kept &= ~column.missing
            if column.kind == "number" and column.name in self.number_columns_:
                kept &= np.isfinite(column.values)
        return kept

    def _columns(self, table: TypedTable) -> tuple[list[Column], list[Column]]:
        """The columns of another table that ``fit`` used: numbers and categories."""
        known = {column.name: column for column in table.columns}
        absent = next((name for name in self._used() if name not in known), None)
        if absent is not None:
            raise DataError(
                f"{table.name}: column {absent!r} was used in fit and is not there; columns: {table.names}."
            )
        numbers = [number_as_fitted(table, settled(known[name]), self.kinds_[name]) for name in self.number_columns_]
        return numbers, [known[name] for name in self.category_columns_]

    def _parts(
        self, table: TypedTable, numbers: Sequence[Column], categories: Sequence[Column], kept: NDArray[np.bool_]
    ) -> tuple[FloatArray, NDArray[Any]]:
        """Numbers (n, p) with NaN for gaps, and levels (n, q) with None for gaps, of the rows that are kept."""
        rows = slice(None) if kept.all() else kept
        X = np.empty((int(kept.sum()), len(numbers)))
        for j, column in enumerate(numbers):
            X[:, j] = as_numbers(column)[rows]
        L = np.empty((len(X), len(categories)), dtype=object)
        for j, column in enumerate(categories):
            L[:, j] = levels_as_fitted(column, self.kinds_[column.name])[rows]
        infinite = np.isinf(X)
        if infinite.any():
            at, j = np.argwhere(infinite)[0]
            row = row_in_words(table, int(np.flatnonzero(kept)[at]))
            raise TableError(
                f"{table.name}: infinite value (inf) in {row}, column {numbers[j].name!r}: replace it, or leave such "
                "rows out with ",
                MISSING_DROP,
                ".",
            )
        return X, L

    def _transform(self, table: TypedTable) -> tuple[FloatArray, NDArray[np.bool_]]:
        numbers, categories = self._columns(table)
        kept = self._kept([*numbers, *categories])
        gap = first_gap([*numbers, *categories], table) if self.missing == "refuse" else ""
        if gap:
            raise DataError(f"{table.name}: {gap} (NaN); fit with another missing=, such as 'mean' or 'drop'.")
        n_out = len(self.get_feature_names_out())
        require(
            16 * len(kept) * n_out,
            parse_memory_limit("auto"),
            f"{table.name}: {len(kept)} rows of {n_out} prepared columns",
            "leave out categories with many levels, or take fewer rows.",
        )
        X, L = self._parts(table, numbers, categories, kept)
        places = [self.number_columns_.index(name) for name in self.indicated_]
        gaps = np.isnan(X)
        if self.missing == "indicator":
            warn_about_gaps(
                [name for j, name in enumerate(self.number_columns_) if j not in places and gaps[:, j].any()]
            )
        if self.imputer_ is not None and len(X):
            X = self.imputer_.transform(X)
        if self.scaler_ is not None and len(X):
            scaled = self._scaled_places()
            with np.errstate(over="ignore", invalid="ignore"):
                X[:, scaled] = self.scaler_.transform(X[:, scaled])
            if np.isinf(X).any() or (np.isnan(X) & ~gaps).any():
                raise too_large(table.name)
        parts = [X, gaps[:, places].astype(float)]
        if L.shape[1] and len(L):
            if self.level_imputer_ is not None:
                L = self.level_imputer_.transform(L)
            for j, name in enumerate(self.category_columns_):
                gap_is_known = [None] if self.missing == "keep" else []
                warn_about_levels(name, L[:, j].tolist(), [*self.levels_[name], *gap_is_known])
            parts.append(self._codes(L) if self.encoder_ is None else self.encoder_.transform(L) * ONE_HOT)
        return np.hstack(parts) if len(kept) and kept.any() else np.empty((0, n_out)), kept

    def _codes(self, L: NDArray[Any]) -> FloatArray:
        """Levels by their number; unseen ones after the last; a gap is NaN if it is not a level."""
        made = np.empty(L.shape)
        for j, name in enumerate(self.category_columns_):
            number = {None: np.nan, **{level: float(i) for i, level in enumerate(self.levels_[name])}}
            made[:, j] = [number.get(level, len(self.levels_[name])) for level in L[:, j].tolist()]
        return made

    @property
    def categorical_places_(self) -> list[int]:
        """The places of categories among the columns that are made, with ``encode="codes"``."""
        first = len(self.number_columns_) + len(self.indicated_)
        return list(range(first, first + len(self.category_columns_))) if self.encode == "codes" else []

    def _packed(self, X: Any, made: FloatArray, kept: NDArray[np.bool_]) -> Any:
        """As a frame with the right rows, if pandas is asked for and rows were left out; scikit-learn does the rest."""
        asked = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        if asked != "pandas" or kept.all() or not hasattr(X, "iloc"):
            return made
        return type(X)(made, index=X.index[kept], columns=self.get_feature_names_out())

    # The state, without pickle

    def to_state(self) -> dict[str, Any]:
        """What ``fit`` learned: named arrays and plain values (text, numbers, lists), for ``from_state``."""
        check_is_fitted(self)
        return state_of(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """A fitted TablePreparer of a state; ``kept_``, about the rows of ``fit``, is not a part of it."""
        return restored(cls(), state)

    @classmethod
    def of_scale(
        cls,
        names: Sequence[str],
        scale: str = "none",
        offset: FloatArray | None = None,
        divisor: FloatArray | None = None,
    ) -> Self:
        """A fitted TablePreparer of number columns whose scale is known already."""
        return restored(cls(), state_of_scale(list(names), scale, offset, divisor))


def sorted_levels(found: Collection[str | None], gap_is_level: bool) -> list[str | None]:
    """The levels among different values, in order; a gap, None, is the last of them if it counts as one."""
    last: list[str | None] = [None] if gap_is_level and None in found else []
    return [*sorted(level for level in found if level is not None), *last]
