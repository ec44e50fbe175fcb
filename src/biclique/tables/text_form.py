"""How a table is written as text, and what a field of it means: a number, true or false, a date, nothing, or text."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal, TypeAlias

import numpy as np

from biclique.exceptions import ParameterError

Kind: TypeAlias = Literal["number", "boolean", "date", "text"]
"""What all values of a column are, apart from missing ones."""

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
"""Fields that stand for a missing value, in small or large letters."""
BOOLEANS = {"true": True, "false": False}
"""Fields of booleans, in small or large letters."""
DATE_ORDERS = ("day", "month")
"""What may come first in dates such as 01/02/2020."""
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:inf|infinity)", re.ASCII | re.IGNORECASE)
SWAPPED = {ord(","): ".", ord("."): ","}
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?", re.ASCII)
SIGNED = re.compile(r"([+-]?)([$€£¥]?) ?([+-]?)(\d[\d.,]*) ?([%$€£¥]?)", re.ASCII)
TIME = r"(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z?)?"
DATE = re.compile(rf"\d{{4}}([-/])\d\d\1\d\d{TIME}", re.ASCII)
YEAR_LAST = re.compile(rf"(\d\d?)([-/.])(\d\d?)\2(\d{{4}})({TIME})", re.ASCII)


@dataclass(frozen=True)
class TextForm:
    """How a table is written as text.

    - ``header``: True if the first line holds names. None: it does unless all of its fields are numbers.
    - ``decimal``: "." or ",".
    - ``date_order``: "day" reads 31/12/2020 as a date, "month" 12/31/2020. 2020-12-31 is always a date.
    - ``encoding``: one of Python's, such as "latin-1". UTF-16 with a byte order mark is recognised.
    - ``sheet``: the name of a sheet of an Excel file; "" is the first.
    """

    header: bool | None = None
    decimal: str = "."
    date_order: str = ""
    encoding: str = "utf-8"
    sheet: str = ""

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise ParameterError(f"decimal must be '.' or ',', got {self.decimal!r}.")
        if self.date_order not in ("", *DATE_ORDERS):
            raise ParameterError(f"date_order must be 'day', 'month' or '' (neither), got {self.date_order!r}.")
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError):
            raise ParameterError(
                f"encoding {self.encoding!r} is not known; common ones are utf-8, latin-1, cp1252 and utf-16."
            ) from None


PLAIN = TextForm()
"""The usual form: points, UTF-8, a header if the first line has a text."""


# One field


def is_missing(field: str) -> bool:
    """True for a field that stands for a missing value."""
    return field.strip().lower() in MISSING


def as_number(field: str, decimal: str = ".") -> float | None:
    """A field as a number, or None.

    With a decimal comma a point is not a part of a number: 1.500 may mean 1500.
    """
    text = field.strip()
    if decimal == ",":
        text = "" if "." in text else text.replace(",", ".")
    return float(text) if NUMBER.fullmatch(text) else None


def as_grouped(field: str, decimal: str = ".") -> float | None:
    """A field with separators of thousands, such as 1,071.70, or without as a number, or None."""
    text = field.strip()
    digits = text.translate(SWAPPED) if decimal == "," else text
    return float(digits.replace(",", "")) if THOUSANDS.fullmatch(digits) else as_number(text, decimal)


def as_amount(field: str, decimal: str = ".") -> tuple[str, float] | None:
    """The sign and the number of a field such as 56%, $1,200 or 7 €, or None: 56% is 56."""
    found = SIGNED.fullmatch(field.strip())
    if found is None or bool(found[2]) == bool(found[5]) or (found[1] and found[3]):
        return None
    number = as_grouped(found[1] + found[3] + found[4], decimal)
    return None if number is None else (found[2] or found[5], number)


def as_date(field: str, order: str = "") -> np.datetime64 | None:
    """A field as a date, with or without a time, or None: 2020-12-31, 2020/12/31, and with an order 31/12/2020.

    A time without a zone counts as UTC, and so does one that ends in Z.
    """
    text = field.strip()
    if order and (written := YEAR_LAST.fullmatch(text)):
        day, _, month, year, time = written.groups()
        if order == "month":
            day, month = month, day
        text = f"{year}-{month:0>2}-{day:0>2}{time}"
    if not DATE.fullmatch(text):
        return None
    try:
        return np.datetime64(text.removesuffix("Z").replace("/", "-").replace(" ", "T"), "us")
    except ValueError:  # the 31st of February
        return None


# All fields of a column


def date_orders(fields: Iterable[str]) -> tuple[str, ...]:
    """The orders that read every one of these fields, dates such as 01/02/2020; none for other fields."""
    present = [field.strip() for field in fields if not is_missing(field)]
    if not present or not YEAR_LAST.fullmatch(present[0]):
        return ()
    return tuple(order for order in DATE_ORDERS if all(as_date(field, order) is not None for field in present))


def meaning_of(fields: Sequence[str], form: TextForm | None, numbers: bool) -> tuple[Kind, Sequence[Any]]:
    """What all fields of a column are, apart from missing ones, and their values; texts if they are nothing else.

    Amounts are numbers before or behind one sign, such as $. With ``numbers`` also numbers without a sign; thousands
    are separated in them if one of them has both separators: 1,071.70, but not 1,071 alone. A column without a field is
    one of numbers. Without a form all columns are texts.
    """
    if form is None:
        return "text", fields
    if not fields:
        return "number", fields
    sign, _ = as_amount(fields[0], form.decimal) or ("", 0.0)

    def amount(field: str) -> float | None:
        found = as_amount(field, form.decimal)
        return found[1] if found is not None and found[0] == sign else None

    readers: list[tuple[Kind, Callable[[str], Any]]] = [
        ("boolean", lambda field: BOOLEANS.get(field.strip().lower())),
        ("date", lambda field: as_date(field, form.date_order)),
        ("number", amount),
    ]
    if numbers:
        readers.insert(0, ("number", lambda field: as_number(field, form.decimal)))
        if any("," in field and "." in field for field in fields):
            readers.append(("number", lambda field: as_grouped(field, form.decimal)))
    for kind, read in readers:
        values = list(takewhile(lambda value: value is not None, map(read, fields)))
        if len(values) == len(fields):
            return kind, values
    return "text", fields
