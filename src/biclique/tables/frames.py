"""Any table as a pandas frame whose columns are numbers, booleans, dates or texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray
from biclique.exceptions import DataError, TableError, optional
from biclique.tables.text_form import PLAIN, Kind, TextForm, as_amount, as_boolean, as_date, as_number, is_missing

INSTALL = "tables are read with pandas and pyarrow: pip install 'biclique[tables]'"
"""The sentence about packages that are not installed."""
DAY = np.timedelta64(1, "D")
"""The unit of dates as numbers."""
INFERRED: dict[str, Kind] = {
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "boolean": "boolean",
    "date": "date",
    "datetime": "date",
    "datetime64": "date",
    "empty": "number",
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


def as_frame(X: Any, name: str = "X") -> Any:
    """A frame of any library, or a two-dimensional array, as a pandas frame with names of type str.

    The columns of an array are called "0", "1", …
    """
    pd = pandas()
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        frame = from_arrow(X)
    elif hasattr(X, "get_columns"):
        frame = from_arrow(X.to_arrow())
    elif hasattr(X, "iloc"):
        frame = X
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise DataError(f"{name}: needs two dimensions (rows, columns), got shape {array.shape}.")
        frame = pd.DataFrame(array)
    names = [str(column) for column in frame.columns]
    attributes = {"name": name, **getattr(X, "attrs", {})}
    check_names(attributes["name"], names)
    columns = {column: normal(frame.iloc[:, j]) for j, column in enumerate(names)}
    made = pd.DataFrame(columns, index=frame.index, copy=False)
    made.attrs = attributes
    return made


def check_names(name: str, columns: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    for column, count in Counter(columns).items():
        if count > 1:
            raise TableError(f"{name}: column name {column!r} appears {count} times; rename it.")


def from_arrow(table: Any) -> Any:
    """An Arrow table as a pandas frame; whole numbers and booleans with gaps keep their type."""
    pd, pa = pandas(), pyarrow()
    types = {pa.bool_(): pd.BooleanDtype()}
    for size in (8, 16, 32, 64):
        types[getattr(pa, f"int{size}")()] = getattr(pd, f"Int{size}Dtype")()
        types[getattr(pa, f"uint{size}")()] = getattr(pd, f"UInt{size}Dtype")()
    return table.to_pandas(types_mapper=types.get, date_as_object=False, ignore_metadata=True)


def normal(series: Any) -> Any:
    """A column as numbers, booleans, dates without a zone, or texts with None for gaps and words such as NA."""
    pd = pandas()
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    kind = getattr(series.dtype, "kind", "O")
    if kind in "iufb":
        return series
    if kind == "M":
        return series if series.dt.tz is None else series.dt.tz_convert(None)
    found = INFERRED.get(pd.api.types.infer_dtype(series, skipna=True), "text")
    if found == "date":
        return pd.to_datetime(series, utc=True).dt.tz_convert(None)
    if found != "text":
        return series.astype(object).where(series.notna(), None).astype(DTYPES[found])
    codes, levels = pd.factorize(series.astype(object))
    texts = np.array([*(None if is_missing(str(level)) else str(level) for level in levels), None], dtype=object)
    return pd.Series(texts[codes], index=series.index, name=series.name, dtype=object)


def kind_of(series: Any) -> Kind:
    """What a normal column holds."""
    kinds: dict[str, Kind] = {"i": "number", "u": "number", "f": "number", "b": "boolean", "M": "date"}
    return kinds.get(series.dtype.kind, "text")


# Texts that mean something else


def settled(series: Any, form: TextForm = PLAIN, *, numbers: bool = False) -> Any:
    """A column of texts as what all of them mean: booleans, dates, amounts such as $1,200, or texts.

    With ``numbers`` also as numbers. Fields that stand for a missing value become one.
    """
    if kind_of(series) != "text":
        return series
    pd = pandas()
    codes, levels = pd.factorize(series)
    kind, values = meaning([str(level) for level in levels], form, numbers)
    table = np.array([*values, None], dtype=object if kind == "boolean" else DTYPES[kind])
    return pd.Series(table[codes], index=series.index, name=series.name, dtype=DTYPES[kind])


def meaning(texts: Sequence[str], form: TextForm, numbers: bool) -> tuple[Kind, list[Any]]:
    """The first kind that takes every text, and their values, None for missing ones."""
    gaps = [is_missing(text) for text in texts]
    present = [text for text, gap in zip(texts, gaps, strict=True) if not gap]
    readers: list[tuple[Kind, Callable[[str], Any]]] = [
        ("boolean", as_boolean),
        ("date", partial(as_date, order=form.date_order)),
    ]
    if numbers or not present:
        readers.insert(0, ("number", partial(as_number, decimal=form.decimal)))
    amounts = [amount for text in present[:1] if (amount := as_amount(text, form.decimal)) is not None]
    if amounts:
        sign = amounts[0][0]
        readers.append(("number", lambda text: _amount(text, sign, form.decimal)))
    for kind, read in readers:
        found = _read_all(present, read)
        if found is not None:
            values = iter(found)
            return kind, [None if gap else next(values) for gap in gaps]
    return "text", [None if gap else text for text, gap in zip(texts, gaps, strict=True)]


def _amount(text: str, sign: str, decimal: str) -> float | None:
    """The number of an amount with this sign."""
    found = as_amount(text, decimal)
    return found[1] if found is not None and found[0] == sign else None


def _read_all(texts: Sequence[str], read: Callable[[str], Any]) -> list[Any] | None:
    """The values of all texts; None as soon as one of them cannot be read."""
    values = []
    for text in texts:
        value = read(text)
        if value is None:
            return None
        values.append(value)
    return values


# Values


def numbers_of(series: Any) -> FloatArray:
    """float64 with NaN for gaps; dates are days since 1970-01-01 with their fraction."""
    if kind_of(series) == "date":
        days = (series.to_numpy(dtype="datetime64[us]") - np.datetime64(0, "us")) / DAY
        return np.asarray(days, dtype=np.float64)
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def levels_of(series: Any) -> NDArray[Any]:
    """The values as texts, None for gaps: 1.0 is "1", a date is "2024-12-31", a boolean "true" or "false"."""
    kind = kind_of(series)
    codes, values = pandas().factorize(series)
    texts = np.empty(len(values) + 1, dtype=object)
    for i, value in enumerate(values):
        texts[i] = str(value) if kind == "text" else level(value, kind)
    return np.asarray(texts[codes])


def level(value: Any, kind: Kind) -> str:
    """A value that is not a text, as a text."""
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "date":
        return str(np.datetime64(value, "us")).removesuffix("T00:00:00.000000")
    if isinstance(value, (int, np.integer)):
        return str(value)
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def texts_of(series: Any) -> list[str]:
    """The values as texts, empty for gaps; texts as they are."""
    if kind_of(series) == "text":
        return [str(text) for text in series.astype(object).where(series.notna(), "").tolist()]
    return ["" if text is None else text for text in levels_of(series).tolist()]
