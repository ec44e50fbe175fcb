"""What each column of a table looks like, and one error about all that are not numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from biclique.exceptions import TableError, printable
from biclique.io.fields import THOUSANDS, Kind, date_orders, kind_of, text_array, values_of
from biclique.io.typed_columns import Column

Look: TypeAlias = Literal["number", "boolean", "date", "category", "id", "text", "mostly missing"]

MOST_LEVELS = 100
"""A text with more levels is not taken as a category by itself: each level is a column of the prepared table."""
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")
SIGNS = set("%$€£¥")
SIGNED = re.compile(r"[+-]?[$€£¥]? ?[+-]?[0-9][0-9.,]* ?[%$€£¥]?")
COMMAS = "numbers with a decimal comma"
POINTS = "numbers as texts (with a decimal comma a point is refused: it may mean thousands)"
ORDER_WORDS = {
    ("day",): "date written day/month/year",
    ("month",): "date written month/day/year",
    ("day", "month"): "date with the day or the month first",
}
NOTHING_LEFT = "No column would be left: write the values as numbers, or save the table in another way."
SHOWN_LEVELS = 4
SHOWN_LETTERS = 30


def settled(column: Column) -> Column:
    """A column of texts that are all dates or all true and false, as such; any other column as it is."""
    if column.kind != "text":
        return column
    cells = column.values.tolist()
    kind = kind_of(cells)
    if kind not in ("date", "boolean"):
        return column
    return Column(column.name, kind, np.asarray(values_of(cells, kind)))


def levels_of(column: Column) -> NDArray[Any]:
    """The values as texts, None if missing: 1.0 is "1", a date is "2024-12-31", a boolean "true" or "false"."""
    gaps = column.missing
    texts = np.empty(len(gaps), dtype=object)
    present = np.flatnonzero(~gaps)
    if column.kind == "text":
        texts[present] = column.values[present]
        return texts
    distinct, places = np.unique(column.values[present], return_inverse=True)
    texts[present] = text_array([_level(value, column.kind) for value in distinct])[places]
    return texts


def texts_of(column: Column) -> list[str]:
    """The values as texts, empty if missing; texts as they are."""
    if column.kind == "text":
        return [str(text) for text in column.values.tolist()]
    if column.digits is not None:
        return list(column.digits)
    return ["" if text is None else text for text in levels_of(column).tolist()]


def _level(value: Any, kind: Kind) -> str:
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "date":
        return str(value).removesuffix("T00:00:00.000000")
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


# What columns look like


@dataclass(frozen=True)
class Looks:
    """What a column looks like, in words and numbers."""

    name: str
    kind: Kind
    look: Look
    words: str
    n_rows: int
    n_missing: int
    n_levels: int  # of texts
    orders: tuple[str, ...] = ()  # of dates such as 01/02/2020: what may come first


def look_at(column: Column) -> Looks:
    """What a column looks like.

    - mostly missing: more than half of its values,
    - date: also a text of dates such as 31/12/2020,
    - category: a text of at most 100 levels that come twice each on average,
    - text: numbers, more than half of them, among which there are others,
    - id: a text whose values nearly all differ, most of them without spaces; numbers that count the rows; different
      whole numbers in a column whose name ends in "id"; a column without a name,
    - text: any other text.
    """
    gaps = column.missing
    n, n_missing = len(gaps), int(gaps.sum())
    present = column.values[~gaps]
    levels = Counter(present.tolist()) if column.kind == "text" else Counter()
    if n_missing == n:
        return Looks(column.name, column.kind, "mostly missing", f"missing in every row ({n})", n, n, 0)
    look, words = _look(column, present, levels)
    if 2 * n_missing > n:
        look, words = "mostly missing", f"mostly missing: {n_missing} of {n}; the others: {words}"
    elif n_missing:
        words += f"; {n_missing} of {n} missing"
    orders = date_orders(levels) if look == "date" else ()
    return Looks(column.name, column.kind, look, words, n, n_missing, len(levels), orders)


def _look(column: Column, present: NDArray[Any], levels: Counter[str]) -> tuple[Look, str]:
    if column.kind == "text":
        spoilt = _spoilt_numbers(column, levels)
        if spoilt:
            return "text", spoilt
        if orders := date_orders(levels):
            sure = f"say so with date_order={orders[0]!r}"
            way = sure if len(orders) == 1 else "see whether date_order='day' or 'month' is right"
            telling = next((text for text in levels if date_orders([text]) == orders), present[0])
            return "date", f"{ORDER_WORDS[orders]}, such as {_short(telling)}: {way}"
        look = _look_of_texts(levels, len(present))
        if look != "category" and (decorated := _decorated_numbers(levels)):
            return "text", decorated
        if look != "category":
            return look, f"{look}: {len(levels)} different, such as {_short(present[0])}"
        common = [f"{_short(text)} {count}" for text, count in levels.most_common(SHOWN_LEVELS)]
        more = f" and {len(levels) - SHOWN_LEVELS} more" if len(levels) > SHOWN_LEVELS else ""
        return look, f"category: {counted(len(levels), 'level')} ({', '.join(common)}{more})"
    if column.kind == "date":
        return "date", f"date: {_day(present.min())} to {_day(present.max())}"
    if column.kind == "number" and counts_rows(column):
        return "id", f"id: counts the rows from {_level(present[0], 'number')}"
    if column.kind == "number" and column.name.lower().endswith("id") and _all_differ(present):
        return "id", f"id: {len(present)} different whole numbers, such as {_level(present[0], 'number')}"
    return ("id", f"no name: {column.kind}") if column.name == "" else (column.kind, column.kind)


def _spoilt_numbers(column: Column, levels: Counter[str]) -> str:
    """What is wrong with numbers of which some cannot be read; empty for other texts.

    The decimal sign that the file was read with is not known here, and nothing that is said depends on it.
    """
    wrong = {text for text in levels if kind_of([text]) != "number"}
    comma = {text for text in wrong if DECIMAL_COMMA.fullmatch(text.strip())}
    grouped = {text for text in wrong if THOUSANDS.fullmatch(text.strip())}
    point = {text for text in levels if "." in text} - wrong
    other = wrong - comma - grouped
    n, n_other = sum(levels.values()), sum(levels[text] for text in other)
    if 2 * (n - n_other) <= n or not (wrong or point):
        return ""

    def first(some: set[str]) -> tuple[int, str]:
        return next((i, _short(text)) for i, text in enumerate(column.values.tolist()) if text in some)

    decimal, thousands = comma - grouped, grouped - comma  # "1,000" can be either
    if other:
        row, text = first(other)
        return f"numbers{' with commas' * bool(comma)}, but for {n_other} of {n}: {text} in row {row} (from 0)"
    if decimal and (point or thousands):
        return f"numbers written in several ways, such as {first(decimal)[1]} and {first(point | thousands)[1]}"
    if decimal:
        return f"{COMMAS}, such as {first(decimal)[1]}: say so with decimal=','"
    if grouped:
        either = "" if point or thousands else "; if it is a decimal comma, say so with decimal=','"
        return f"numbers with thousands separators, such as {first(grouped)[1]}: write them without{either}"
    return f"{POINTS}, such as {first(point)[1]}"


def _decorated_numbers(levels: Counter[str]) -> str:
    """What is wrong with texts that are numbers with a sign, or several numbers each; empty for other texts."""
    if any(set(text) & SIGNS for text in levels) and all(SIGNED.fullmatch(text.strip()) for text in levels):
        return f"numbers with a sign, such as {_short(next(iter(levels)))}: write them without"
    if all(len(text.split()) > 1 and kind_of(text.split()) == "number" for text in levels):
        return f"numbers between spaces, such as {_short(next(iter(levels)))}: put commas between them"
    return ""


def counts_rows(column: Column) -> bool:
    """Whether a column of numbers only counts the rows: each is the one before plus 1."""
    values = column.values
    return len(values) > 2 and bool(values[0] == np.rint(values[0])) and bool((np.diff(values) == 1).all())


def _all_differ(values: NDArray[Any]) -> bool:
    return bool((values == np.rint(values)).all()) and len(np.unique(values)) == len(values)


def _look_of_texts(levels: Counter[str], n: int) -> Look:
    if len(levels) <= min(MOST_LEVELS, max(n // 2, 1)):
        return "category"
    spaced = sum(any(letter.isspace() for letter in text.strip()) for text in levels)
    return "id" if 2 * spaced <= len(levels) and 10 * len(levels) >= 9 * n else "text"


def _day(moment: np.datetime64) -> str:
    return str(moment.astype("datetime64[D]"))


def _short(text: str) -> str:
    return printable(repr(text if len(text) <= SHOWN_LETTERS else text[: SHOWN_LETTERS - 1] + "…"))


def counted(n: int, word: str) -> str:
    """``1 level``, ``2 levels``."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


# One error about all columns


@dataclass
class Advice:
    """What to do about columns: names by the option that deals with them, and options with one value."""

    id: list[str] = field(default_factory=list)
    drop: list[str] = field(default_factory=list)
    categorical: list[str] = field(default_factory=list)
    decimal: list[str] = field(default_factory=list)
    """Numbers with a decimal comma: a matter of how the file is read."""
    year_last: list[str] = field(default_factory=list)
    """Dates such as 31/12/2020, whose order is a matter of how the file is read, too."""
    date_order: str | None = None
    dates: str | None = None
    missing: str | None = None

    def leaves_nothing(self, names: Collection[str]) -> bool:
        """Whether no column of these is left."""
        return {*names} <= {*self.id, *self.drop}

    def python(self, given: dict[str, Any]) -> str:
        """A call to paste; ``given`` are the parameters that were set before."""
        call = dict(given)
        away = [*self.id, *self.drop, *self.decimal, *self.year_last]
        if away:
            call["drop"] = [*call.get("drop", ()), *away]
        if self.categorical:
            before = call.get("categorical", ())
            call["categorical"] = self.categorical if isinstance(before, str) else [*before, *self.categorical]
        call |= {name: value for name, value in (("dates", self.dates), ("missing", self.missing)) if value is not None}
        return f"TablePreparer({', '.join(f'{name}={value!r}' for name, value in call.items())})"


class ColumnsError(TableError):
    """Columns that cannot be used as they are: which, what they look like, and what deals with all of them.

    Without a call, nothing but another table does.
    """

    def __init__(self, told: str, call: str, advice: Advice) -> None:
        super().__init__(told, f"\nThis deals with all of them:\n  {call}" if call else f"\n{NOTHING_LEFT}")
        self.told, self.advice, self.hopeless = told, advice, not call
        self._made_of = told, call, advice

    def __reduce__(self) -> tuple[Any, ...]:
        return ColumnsError, self._made_of


def describe(name: str, problems: Sequence[Looks], n_columns: int, first_gap: str = "") -> str:
    """The columns, one a line."""
    gaps = sum(found.n_missing > 0 for found in problems)
    other = sum(found.kind not in ("number", "boolean") for found in problems)
    what = [f"{other} {'is' if other == 1 else 'are'} not numbers"] * bool(other)
    what += [f"{gaps} {'has' if gaps == 1 else 'have'} missing values (NaN)"] * bool(gaps)
    first = f", the first {first_gap}" if gaps and first_gap else ""
    width = min(max(len(_plain(found.name)) for found in problems), SHOWN_LETTERS)
    lines = [f"  {_plain(found.name):<{width}}  {found.words}" for found in problems]
    about = " and ".join(what) or f"{len(problems)} should not be used as they are"
    return "\n".join([f"{name}: of {counted(n_columns, 'column')}, {about}{first}:", *lines])


def _plain(name: str) -> str:
    return printable(name) or "''"


def advise(problems: Sequence[Looks], handled: Collection[str] = (), fill: bool = True) -> Advice:
    """What deals with all of these columns; ``handled`` are categories already, ``fill`` is for gaps too."""
    orders = [found.orders for found in problems if found.orders]
    order = min(orders, key=len)[0] if orders else None  # of a column that leaves no choice, if there is one
    ways = [(_way(found, handled, order), found) for found in problems]
    gaps = any(way == "missing" or (found.n_missing and way not in ("id", "drop")) for way, found in ways)

    def named(way: str) -> list[str]:
        return [found.name for one, found in ways if one == way]

    return Advice(
        id=named("id"),
        drop=named("drop"),
        categorical=named("categorical"),
        decimal=named("decimal"),
        year_last=named("year_last"),
        date_order=order if named("year_last") else None,
        dates="ordinal" if named("dates") else None,
        missing="mean" if fill and gaps else None,
    )


def _way(found: Looks, handled: Collection[str], order: str | None) -> str:
    """The option that deals with a column; "" if nothing is wrong but its gaps."""
    if found.name in handled and found.n_missing < found.n_rows:
        return "missing"
    if found.orders:
        return "year_last" if order in found.orders else "drop"
    if found.words.startswith(COMMAS):
        return "decimal"
    if found.look in ("text", "mostly missing") or (found.look == "category" and found.n_levels < 2):
        return "drop"
    return {"id": "id", "category": "categorical", "date": "dates"}.get(found.look, "")
