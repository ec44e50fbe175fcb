"""How a table is written as text, and what a field of it means: a number, true or false, a date, nothing, or text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray
from biclique.exceptions import ParameterError

Kind: TypeAlias = Literal["number", "boolean", "date", "text"]
"""What all fields of a column are, apart from missing ones."""

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
ODD = re.compile(r"[^\t\r\n -~]|_")  # float() reads 1_2 and digits of every script, but no table means numbers by them
BOOLEANS = {"true": 1.0, "false": 0.0}
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?")
TIME = r"(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z?)?"
DATE = re.compile(rf"\d{{4}}([-/])\d\d\1\d\d{TIME}", re.ASCII)
YEAR_LAST = re.compile(rf"(\d\d?)([-/.])(\d\d?)\2(\d{{4}})({TIME})", re.ASCII)
DATE_ORDERS = ("day", "month")
NOTHING = float("nan")


@dataclass(frozen=True)
class TextForm:
    """How a table is written as text.

    ``header``: whether the first line holds names; None: it does unless all of its fields are numbers.
    ``delimiter``: "" takes the most frequent one of comma, semicolon, tab and bar in the first line.
    ``date_order``: "day" reads 31/12/2020 as a date, "month" 12/31/2020; 2020-12-31 is one always.
    """

    header: bool | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    delimiter: str = ""
    date_order: str = ""

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise ParameterError(f"decimal must be '.' or ',', got {self.decimal!r}.")
        if self.date_order not in ("", *DATE_ORDERS):
            raise ParameterError(f"date_order must be 'day', 'month' or '' (neither), got {self.date_order!r}.")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise ParameterError(
                f"encoding {self.encoding!r} is not known; common ones are utf-8, latin-1, cp1252 and utf-16."
            ) from None


PLAIN = TextForm()


def is_missing(cell: str) -> bool:
    """Whether a field of a table says that there is no value."""
    return cell.strip().lower() in MISSING


def as_number(cell: str, decimal: str = ".") -> float | None:
    """A field as a number (NaN if missing), or None for other text.

    With a decimal comma a point is not a part of a number: 1.500 may mean 1500.
    """
    text = cell
    if decimal != ".":
        text = "x" if "." in cell else cell.replace(decimal, ".")
    try:
        if not ODD.search(text):
            return float(text)
    except ValueError:
        pass
    return NOTHING if is_missing(cell) else None


def as_boolean(cell: str) -> float | None:
    """1 for true and 0 for false, in small or large letters; NaN if missing, or None for other text."""
    return BOOLEANS.get(cell.strip().lower(), NOTHING if is_missing(cell) else None)


def as_date(cell: str, order: str = "") -> np.datetime64 | None:
    """A date as in 2020-12-31 or 2020/12/31, with or without a time; NaT if missing, or None for other text.

    With an order also 31/12/2020 ("day") or 12/31/2020 ("month"), or with points or dashes. A time without a zone
    counts as UTC, and so does one that ends in Z.
    """
    text = cell.strip()
    if order and (written := YEAR_LAST.fullmatch(text)):
        day, _, month, year, time = written.groups()
        if order == "month":
            day, month = month, day
        text = f"{year}-{month:0>2}-{day:0>2}{time}"
    try:
        if DATE.fullmatch(text):
            return np.datetime64(text.removesuffix("Z").replace("/", "-").replace(" ", "T"), "us")
    except ValueError:  # the 31st of February
        pass
    return np.datetime64("NaT", "us") if is_missing(cell) else None


def date_orders(cells: Iterable[str]) -> tuple[str, ...]:
    """What may come first in these dates, such as 01/02/2020: all orders that read every one. Others have none."""
    present = [cell for cell in cells if not is_missing(cell)]
    if not present or not YEAR_LAST.fullmatch(present[0].strip()):
        return ()
    return tuple(order for order in DATE_ORDERS if all(as_date(cell, order) is not None for cell in present))


def kind_of(cells: Iterable[str], form: TextForm = PLAIN) -> Kind | None:
    """What all of these fields are: the first kind that takes every one; None if all are missing."""
    present = {cell for cell in cells if not is_missing(cell)}
    if not present:
        return None
    if all(as_number(cell, form.decimal) is not None for cell in present):
        return "number"
    if all(as_boolean(cell) is not None for cell in present):
        return "boolean"
    return "date" if all(as_date(cell, form.date_order) is not None for cell in present) else "text"


def joined(one: Kind | None, other: Kind | None) -> Kind | None:
    """The kind of a column whose parts have these kinds: text if they differ; None is a missing value."""
    if one is None or other is None:
        return one or other
    return one if one == other else "text"


def values_of(cells: Sequence[str], kind: Kind, form: TextForm = PLAIN) -> NDArray[Any] | int:
    """The values of fields of one kind; if a field is of another kind, its place instead."""
    if kind == "text":
        return text_array(cells)
    if kind == "number":
        return numbers_of(cells, form.decimal)
    known = {cell: as_boolean(cell) if kind == "boolean" else as_date(cell, form.date_order) for cell in set(cells)}
    if None in known.values():
        return next(i for i, cell in enumerate(cells) if known[cell] is None)
    return np.array([known[cell] for cell in cells], dtype=float if kind == "boolean" else "datetime64[us]")


def numbers_of(cells: Sequence[str], decimal: str = ".") -> FloatArray | int:
    """Fields as numbers, NaN if missing; if one is not a number, its place instead."""
    try:
        if decimal == "." and not ODD.search("".join(cells)):
            return np.array([float(cell) for cell in cells], dtype=float)
    except ValueError:
        pass
    values = [as_number(cell, decimal) for cell in cells]
    if None in values:
        return values.index(None)
    return np.array(values, dtype=float)


def text_array(texts: Sequence[Any]) -> NDArray[Any]:
    """Texts, or what stands for missing ones, as an array of objects."""
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array
