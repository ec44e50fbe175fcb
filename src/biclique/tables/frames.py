"""Any table as a pandas frame whose columns are numbers, booleans, dates or texts."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray
from biclique.exceptions import TableError, optional
from biclique.tables.text_form import PLAIN, Kind, TextForm, is_missing, meaning_of

DASK = "tables larger than memory, Dask collections and Zarr need Dask: pip install '.[dask]' in a clone of biclique"
INSTALL = "tables are read with pandas and pyarrow: pip install '.[tables]' in a clone of biclique"
"""The sentences about packages that are not installed."""
KINDS: dict[str, Kind] = {"i": "number", "u": "number", "f": "number", "b": "boolean", "M": "date"}
"""What a column holds, by the kind of its dtype; everything else is text."""
INFERRED: dict[str, Kind] = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal", "empty"), "number"),
    "boolean": "boolean",
    **dict.fromkeys(("date", "datetime", "datetime64"), "date"),
}
"""What a column of Python's objects holds, by pandas' word for it; everything else is text."""
DTYPES: dict[Kind, Any] = {"number": np.float64, "boolean": "boolean", "date": "datetime64[us]", "text": object}
"""How the values of each kind are stored."""


def pandas() -> Any:
    """The package pandas."""
    return optional("pandas", INSTALL)


def pyarrow(module: str = "pyarrow") -> Any:
    """The package pyarrow, or a module of it."""
    return optional(module, INSTALL)


def dask(module: str = "dask") -> Any:
    """The package Dask, or a module of what comes with it."""
    return optional(module, DASK)


def as_frame(X: Any, name: str = "X") -> Any:
    """A frame of any library, or a two-dimensional array, as a pandas frame with names of type str.

    The columns of an array are called "0", "1", … A frame whose ``attrs["settled"]`` is True is one already.
    """
    if getattr(X, "attrs", {}).get("settled"):
        return X
    if hasattr(X, "get_columns"):
        X = X.to_arrow()
    if hasattr(X, "column_names"):
        X = from_arrow(X)
    if not hasattr(X, "iloc"):
        X = np.asarray(X)
        X = pandas().DataFrame(X.astype(X.dtype.newbyteorder("="), copy=False))  # pandas takes no other byte order
    name = X.attrs.get("name", name)
    names = [str(column) for column in X.columns]
    check_names(name, names)
    columns = {column: normal(X.iloc[:, j]) for j, column in enumerate(names)}
    frame = pandas().DataFrame(columns, index=X.index, copy=False)
    frame.attrs = {**X.attrs, "name": name}
    return frame


def check_names(name: str, columns: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    for column, count in Counter(columns).items():
        if count > 1 and not column:
            raise TableError(
                f"{name}: its first line lacks names of {count} of {len(columns)} columns. If it is a title, delete "
                "the lines above the names."
            )
        if count > 1:
            raise TableError(f"{name}: column name {column!r} appears {count} times; rename it.")


def from_arrow(table: Any) -> Any:
    """An Arrow table as a pandas frame whose columns keep their types."""

    def dtype(kind: Any) -> Any:
        return None if pyarrow().types.is_floating(kind) else pandas().ArrowDtype(kind)  # Arrow's NaN is no gap

    return table.to_pandas(types_mapper=dtype, ignore_metadata=True)


def kind_of(column: Any) -> Kind:
    """What a normal column holds, or one of this dtype."""
    dtype = getattr(column, "dtype", column)
    return KINDS.get(getattr(dtype, "kind", "O"), "text")


def normal(series: Any) -> Any:
    """A column as numbers, booleans, dates without a zone, or texts with None for gaps and words such as NA."""
    pd = pandas()
    kind = kind_of(series)
    if kind == "date":
        return series if series.dt.tz is None else series.dt.tz_convert("UTC").dt.tz_localize(None)
    if kind != "text":
        return series
    series = series.astype(object)
    inferred = pd.api.types.infer_dtype(series, skipna=True)
    found = INFERRED.get(inferred, "text")
    if found == "date":
        return pd.to_datetime(series, utc=True).dt.tz_localize(None)
    if found != "text":
        return series.where(series.notna(), None).astype(DTYPES[found])
    texts = series if inferred == "string" else series.map(str, na_action="ignore")
    return settled(texts, None)


def settled(series: Any, form: TextForm | None = PLAIN, *, numbers: bool = False) -> Any:
    """A column of texts as what all of them mean: booleans, dates, amounts such as $1,200, or texts.

    With ``numbers`` also as numbers, without a form as texts. Fields that stand for a missing value become one.
    """
    if kind_of(series) != "text":
        return series
    values = values_of(series.to_numpy(dtype=object), form, numbers)
    return pandas().Series(values, index=series.index, name=series.name, dtype=values.dtype)


def values_of(texts: NDArray[Any], form: TextForm | None, numbers: bool) -> Any:
    """What an array of texts means, as ``settled`` says it: an array of NumPy, of pandas for booleans."""
    codes, found = pandas().factorize(texts)
    fields = [str(field) for field in found]
    present = [field for field in fields if not is_missing(field)]
    kind, values = meaning_of(present, form, numbers)
    known = dict(zip(present, values, strict=True))
    table = np.array([*map(known.get, fields), None], dtype=object if kind == "boolean" else DTYPES[kind])
    return pandas().array(table[codes], dtype="boolean") if kind == "boolean" else table[codes]


def frame_of(columns: Mapping[str, Any]) -> Any:
    """A frame of arrays: those of Python's objects stay objects, which pandas would take for its own texts."""
    pd = pandas()
    kept = {name: pd.Series(values, dtype=object) for name, values in columns.items() if values.dtype == object}
    return pd.DataFrame({**columns, **kept}, copy=False)


# Values


def numbers_of(series: Any) -> FloatArray:
    """float64 with NaN for gaps; dates are days since 1970-01-01 with their fraction."""
    if kind_of(series) == "date":
        series = series.astype("datetime64[us]")
        return np.asarray((series.to_numpy() - np.datetime64(0, "us")) / np.timedelta64(1, "D"), dtype=np.float64)
    with np.errstate(invalid="ignore"):  # damaged files have NaN of kinds that cannot be cast
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def levels_of(series: Any) -> NDArray[Any]:
    """The values as texts, None for gaps: 1.0 is "1", a date is "2024-12-31", a boolean "true" or "false"."""
    kind = kind_of(series)
    codes, values = pandas().factorize(series)
    texts = np.array([*(level(value, kind) for value in values), None], dtype=object)
    return np.asarray(texts[codes])


def level(value: Any, kind: Kind) -> str:
    """A value as a text."""
    if kind == "boolean":
        return str(bool(value)).lower()
    if kind == "date":
        return str(np.datetime64(value, "us")).removesuffix("T00:00:00.000000")
    if kind == "number" and float(value).is_integer() and abs(value) < 2**63:
        return str(int(value))
    return str(value) if kind == "text" else repr(float(value))


def texts_of(series: Any) -> list[str]:
    """The values as texts, empty for gaps; texts as they are."""
    return ["" if text is None else text for text in levels_of(series).tolist()]


def with_texts(frame: Any, names: Collection[str]) -> Any:
    """The frame, in which these columns become texts, such as ids."""
    for name in names:
        if name in frame.columns:
            frame[name] = pandas().Series(texts_of(frame[name]), frame.index, object)
    return frame
