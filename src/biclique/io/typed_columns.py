"""Tables as people have them: named columns of numbers, booleans, dates and texts.

``read_columns`` (``io/tables.py``) reads such a table from a file, ``open_columns`` in chunks, and ``as_columns`` makes
one of a frame in memory. Booleans are 0 and 1 everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray
from biclique.exceptions import Argument, DataError
from biclique.io.arrow import find_pyarrow, import_pyarrow
from biclique.io.fields import Kind, is_missing, text_array
from biclique.io.roles import as_texts, numbered


@dataclass(frozen=True)
class Column:
    """One column.

    ``values`` of shape (n,) are:

    - number: float64, NaN if missing,
    - boolean: float64, 0 or 1, NaN if missing,
    - date: datetime64[us] in UTC, NaT if missing,
    - text: objects of type str as the file has them, "" for a null.
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    digits: tuple[str, ...] | None = None
    """Whole numbers beyond 2⁵³ as they are, which float64 rounds: ids need every digit."""

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which values are missing. In texts also words for that, such as NA and ?, in small or large letters."""
        if self.kind != "text":
            return np.asarray(np.isnat(self.values) if self.kind == "date" else np.isnan(self.values))
        known = {text: is_missing(text) for text in set(self.values.tolist())}
        return np.array([known[text] for text in self.values.tolist()], dtype=bool)

    @classmethod
    def joined(cls, parts: Sequence[Column]) -> Column:
        """Parts of a column, one below the other."""
        first = parts[0]
        digits = None
        if any(part.digits is not None for part in parts):
            digits = tuple(
                text
                for part in parts
                for text in part.digits or ("" if x != x else str(int(x)) for x in part.values.tolist())
            )
        return cls(first.name, first.kind, np.concatenate([part.values for part in parts]), digits)

    @property
    def numbers(self) -> FloatArray | None:
        """The values as float64 if they are numbers or booleans; None for others."""
        return self.values if self.kind in ("number", "boolean") else None


@dataclass(frozen=True)
class TypedTable:
    """Columns of equal length, and where they come from; a whole table or some consecutive rows of one."""

    name: str
    columns: tuple[Column, ...]
    n_rows: int
    first_row: int = 0  # the number of the first row in the whole table, counting from 0
    lines: Sequence[int] = field(default_factory=tuple)  # of a text file, for messages

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @property
    def kinds(self) -> dict[str, Kind]:
        """What each column holds, by its name."""
        return {column.name: column.kind for column in self.columns}

    def column(self, name: str) -> Column:
        """The column of this name."""
        return self.columns[self.names.index(name)]

    def column_chunks(self, rows: int) -> Iterator[TypedTable]:
        """The same in pieces of at most ``rows`` rows: a table is a ``ColumnSource``."""
        for start in range(0, self.n_rows, rows):
            some = slice(start, min(start + rows, self.n_rows))
            columns = tuple(
                Column(c.name, c.kind, c.values[some], None if c.digits is None else c.digits[some])
                for c in self.columns
            )
            yield TypedTable(self.name, columns, some.stop - start, self.first_row + start, self.lines[some])


class ColumnSource(Protocol):
    """A table of typed columns that is passed over in chunks; the kinds are those of the whole table."""

    @property
    def name(self) -> str:
        """The file, for messages."""

    @property
    def kinds(self) -> dict[str, Kind]:
        """What each column holds, by its name, in the order of the file."""

    @property
    def n_rows(self) -> int | None:
        """The number of rows; never None once it is open."""

    def column_chunks(self, rows: int) -> Iterator[TypedTable]:
        """One fresh pass over tables of at most ``rows`` rows, with these kinds."""


DECIMAL, ENCODING, DATE_ORDER = Argument("decimal=','"), Argument("encoding=…"), Argument("date_order=…")
HEADER, NO_HEADER = "header=True", Argument("header=False")


# Frames and arrays in memory


def as_columns(X: Any, name: str = "X") -> TypedTable:
    """The typed columns of a pandas, polars or Arrow frame, or of a two-dimensional array."""
    if hasattr(X, "dtypes") and hasattr(X, "iloc"):
        columns = [_of_pandas(str(key), X.iloc[:, j]) for j, key in enumerate(X.columns)]
    elif hasattr(X, "column_names") and hasattr(X, "schema"):
        columns = [of_arrow(str(key), X.column(j)) for j, key in enumerate(X.column_names)]
    elif hasattr(X, "get_columns") and hasattr(X, "to_arrow") and find_pyarrow() is not None:
        return as_columns(X.to_arrow(), name)
    elif hasattr(X, "get_columns"):
        columns = [_of_values(series.name, series.to_list()) for series in X.get_columns()]
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise DataError(f"{name}: needs two dimensions (rows, columns), got shape {array.shape}.")
        columns = [_of_array(key, array[:, j]) for j, key in enumerate(numbered(array.shape[1]))]
    return TypedTable(name, tuple(columns), len(columns[0].values) if columns else 0)


def _of_array(name: str, values: NDArray[Any]) -> Column:
    kind = values.dtype.kind
    if kind in "fiub":
        digits = _digits(values.tolist()) if kind in "iu" else None
        return Column(name, "boolean" if kind == "b" else "number", values.astype(float), digits)
    if kind == "M":
        return Column(name, "date", values.astype("datetime64[us]"))
    return _of_values(name, values.tolist())


def _of_pandas(name: str, series: Any) -> Column:
    kind = getattr(series.dtype, "kind", "O")
    if kind in "fiub":
        values = series.to_numpy(dtype=float, na_value=np.nan)
        digits = _digits(series.tolist()) if kind in "iu" and _large(values) else None
        return Column(name, "boolean" if kind == "b" else "number", values, digits)
    if kind == "M":
        plain = series.dt.tz_convert(None) if getattr(series.dt, "tz", None) is not None else series
        return Column(name, "date", plain.to_numpy(dtype="datetime64[us]"))
    return _of_values(name, series.astype(object).where(series.notna(), None).tolist())


def arrow_kind(kind: Any) -> Kind:
    """What a type of Arrow holds. Lists, structures and times of day are shown as texts."""
    types = import_pyarrow().types
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return "number"
    return "date" if types.is_date(kind) or types.is_timestamp(kind) else "text"


def of_arrow(name: str, column: Any) -> Column:
    """A column of Arrow: an array or a chunked array."""
    pyarrow, kind = import_pyarrow(), arrow_kind(column.type)
    if kind == "text":
        return Column(name, kind, text_array(as_texts(column.to_pylist())))
    if kind == "date":
        times = column.cast(pyarrow.timestamp("us"), safe=False)
        return Column(name, kind, np.asarray(times.to_numpy(zero_copy_only=False)).astype("datetime64[us]"))
    values = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    whole = pyarrow.types.is_integer(column.type) and _large(values)
    return Column(name, kind, values, _digits(column.to_pylist()) if whole else None)


def _large(values: FloatArray) -> bool:
    """Whether there are whole numbers that float64 may have rounded."""
    return bool((np.abs(values) >= 2.0**53).any())


def _digits(values: list[Any]) -> tuple[str, ...] | None:
    """Whole numbers as texts, empty if missing, if any of them is large."""
    texts = tuple("" if value is None or value != value else str(value) for value in values)
    return texts if any(len(text.lstrip("-")) >= 16 for text in texts) else None


def _of_values(name: str, values: list[Any]) -> Column:
    """A column of Python's objects: of the kind that all of them are, missing ones (None, NaN) apart."""
    present = [value for value in values if value is not None and value == value]
    if present and all(isinstance(value, (bool, np.bool_)) for value in present):
        return Column(name, "boolean", np.array([_float(value) for value in values]))
    if all(isinstance(value, (Real, Decimal)) and not isinstance(value, (bool, np.bool_)) for value in present):
        return Column(name, "number", np.array([_float(value) for value in values]))
    if all(isinstance(value, (date, np.datetime64)) for value in present):
        whole = [value if value is not None and value == value else "NaT" for value in values]
        return Column(name, "date", np.array([np.datetime64(_utc(value), "us") for value in whole]))
    return Column(name, "text", text_array(as_texts(values)))


def _float(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _utc(value: Any) -> Any:
    offset = value.utcoffset() if getattr(value, "tzinfo", None) is not None else None
    return value if offset is None else (value - offset).replace(tzinfo=None)
