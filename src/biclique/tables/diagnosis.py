"""What each column of a table looks like, and one error about all that cannot be used as they are."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from biclique._typing import FloatArray
from biclique.exceptions import TableError, printable
from biclique.tables.frames import kind_of, level, levels_of, numbers_of
from biclique.tables.text_form import SWAPPED, THOUSANDS, Kind, TextForm, as_amount, as_number, date_orders, meaning_of

Look: TypeAlias = Literal["number", "boolean", "date", "category", "id", "text", "decimal comma", "mostly missing"]

WAYS: dict[Look, str] = {
    "text": "drop",
    "mostly missing": "drop",
    "id": "id",
    "category": "categorical",
    "date": "dates",
    "decimal comma": "decimal",
}
"""The option that deals with a column, by its look; others need none."""
MOST_LEVELS = 100
"""Levels of a text that is taken as a category by itself: each level is a column of the prepared table."""
SHOWN_LEVELS = 4
"""Levels of a category that are named."""
SHOWN_LETTERS = 30
"""Letters of a text that are shown."""
EXACT = 2.0**53
"""From here on float64 does not have every whole number."""
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")
DECIMAL_COMMAS = TextForm(decimal=",")
ORDER_WORDS = {
    ("day",): "date written day/month/year",
    ("month",): "date written month/day/year",
    ("day", "month"): "date with the day or the month first",
}
"""Descriptions of dates such as 01/02/2020, by the orders that read them."""
NOTHING_LEFT = "No column would be left: write the values as numbers, or save the table in another way."
"""The sentence if the advice would drop every column."""
TOO_MANY = "These are too many columns to name in one call: choose those to use, or save the table in another way."
"""The sentence in place of a call that nobody could paste."""
MOST_PASTED = 1000
"""Columns that a call to paste names."""
MOST_NAMED = 20
"""Columns that a message names."""
MOST_DESCRIBED = 100
"""Columns of which an error says what they look like."""


class Looks(NamedTuple):
    """What a column looks like, and that in words."""

    look: Look
    words: str


class Column:
    """A column of a frame, which is looked at when somebody asks."""

    def __init__(self, frame: Any, name: str, kind: Kind, n_missing: int) -> None:
        self.frame, self.name, self.kind = frame, name, kind
        self.n_rows, self.n_missing = len(frame), n_missing

    @cached_property
    def levels(self) -> Counter[str]:
        """How often each text comes; empty for other columns."""
        return Counter(levels_of(self.frame[self.name].dropna()).tolist() if self.kind == "text" else ())

    @property
    def orders(self) -> tuple[str, ...]:
        """Of texts that are dates such as 01/02/2020: what may come first."""
        return date_orders(self.levels) if self.looks.look == "date" else ()

    @cached_property
    def looks(self) -> Looks:
        """What it looks like.

        - mostly missing: more than half of its values,
        - date: also a text of dates such as 31/12/2020,
        - category: a text of at most 100 levels that come twice each on average,
        - decimal comma: a text of numbers, some of which have one,
        - text: numbers, more than half of them, among which there are others,
        - id: a text whose values nearly all differ, most of them without spaces; numbers that count the rows; different
          whole numbers in a column whose name ends in "id"; a column without a name,
        - text: any other text.
        """
        n, n_missing, column = self.n_rows, self.n_missing, self.frame[self.name]
        if n_missing == n:
            return Looks("mostly missing", f"missing in every row ({n})")
        text = self.kind == "text"
        look, words = _look_of_texts(self.levels, column) if text else _look_of_values(column, self.kind)
        if 2 * n_missing > n:
            return Looks("mostly missing", f"mostly missing: {n_missing} of {n}; the others: {words}")
        return Looks(look, f"{words}; {n_missing} of {n} missing" if n_missing else words)


def columns_of(frame: Any) -> list[Column]:
    """All columns of a frame."""
    facts = zip(frame.columns, frame.dtypes, frame.isna().sum().tolist(), strict=True)
    return [Column(frame, name, kind_of(dtype), n_missing) for name, dtype, n_missing in facts]


def _look_of_values(column: Any, kind: Kind) -> Looks:
    """Of numbers, booleans and dates."""
    if kind == "date":
        return Looks("date", f"date: {column.min():%Y-%m-%d} to {column.max():%Y-%m-%d}")
    values = numbers_of(column)
    if kind == "number" and counts_rows(values):
        return Looks("id", f"id: counts the rows from {level(values[0], kind)}")
    present = values[~np.isnan(values)]
    if kind == "number" and column.name.lower().endswith("id") and (present == np.rint(present)).all():
        example = f"such as {level(present[0], kind)}"
        if len(np.unique(present)) == len(present):
            return Looks("id", f"id: {len(present)} different whole numbers, {example}")
        if (np.abs(present) >= EXACT).all():  # different ones may be equal after rounding
            return Looks("id", f"id: whole numbers beyond 2**53, {example}")
    return Looks("id", f"no name: {kind}") if column.name == "" else Looks(cast("Look", kind), kind)


def _look_of_texts(levels: Counter[str], column: Any) -> Looks:
    n, n_levels, first = levels.total(), len(levels), _short(next(iter(levels)))
    numbers = _look_of_numbers(levels, column)
    if numbers is not None:
        return numbers
    orders = date_orders(levels)
    if orders:
        sure = f"say so with date_order={orders[0]!r}"
        way = sure if len(orders) == 1 else "see whether date_order='day' or 'month' is right"
        example = next((text for text in levels if date_orders([text]) == orders), next(iter(levels)))
        return Looks("date", f"{ORDER_WORDS[orders]}, such as {_short(example)}: {way}")
    if n_levels <= min(MOST_LEVELS, max(n // 2, 1)):
        common = ", ".join(f"{_short(text)} {count}" for text, count in levels.most_common(SHOWN_LEVELS))
        more = f" and {n_levels - SHOWN_LEVELS} more" if n_levels > SHOWN_LEVELS else ""
        return Looks("category", f"category: {counted(n_levels, 'level')} ({common}{more})")
    if all(map(as_amount, levels)):
        return Looks("text", f"amounts with several signs, such as {first}: write them without")
    plain = [text for text in levels if as_number(text) is not None]
    if plain and all(as_amount(text) or as_number(text) is not None for text in levels):
        signed = next(text for text in levels if as_amount(text))
        both = f"amounts with a sign, such as {_short(signed)}, and without, such as {_short(plain[0])}"
        return Looks("text", f"{both}: write them alike")
    parts = [text.split() for text in levels]
    if all(len(some) > 1 and None not in map(as_number, some) for some in parts):
        return Looks("text", f"numbers between spaces, such as {first}: put commas between them")
    spaced = sum(len(some) > 1 for some in parts)
    look: Look = "id" if 2 * spaced <= n_levels and 10 * n_levels >= 9 * n else "text"
    return Looks(look, f"{look}: {n_levels} different, such as {first}")


def _look_of_numbers(levels: Counter[str], column: Any) -> Looks | None:
    """What is wrong with numbers of which some cannot be read; None for other texts.

    Nothing here depends on the decimal sign that the file was read with.
    """
    wrong = {text for text in levels if as_number(text) is None}
    comma = {text for text in wrong if DECIMAL_COMMA.fullmatch(text.strip())}
    grouped = {text for text in wrong if THOUSANDS.fullmatch(text.strip())}
    both = {text for text in wrong if "," in text and THOUSANDS.fullmatch(text.strip().translate(SWAPPED))}
    amounts = {text for text in wrong if as_amount(text) or as_amount(text, ",")}
    point = {text for text in levels if "." in text} - wrong
    other = wrong - comma - grouped - both - amounts
    n, n_other = levels.total(), sum(levels[text] for text in other)
    if 2 * n_other >= n or not (wrong or point):
        return None
    decimal, thousands = (comma - grouped) | both, grouped - comma  # "1,000" can be either
    sure = decimal | {text for text in amounts if not as_amount(text)}
    by_commas = sure and not other and meaning_of([*levels], DECIMAL_COMMAS, numbers=True)[0] == "number"
    if amounts and not (other or by_commas):
        return None

    def first(some: set[str]) -> str:
        return _short(next((text for text in levels if text in some), ""))

    commas = " with commas" if comma else ""
    row = int(column.isin(other).argmax()) + 1
    either = "" if point or thousands else "; if it is a decimal comma, say so with decimal=','"
    why = "with a decimal comma a point is refused: it may mean thousands"
    found: list[tuple[object, Look, str]] = [
        (other, "text", f"numbers{commas}, but for {n_other} of {n}: {first(other)} in row {row}{_gap_hint(other)}"),
        (by_commas, "decimal comma", f"numbers with a decimal comma, such as {first(sure)}: say so with decimal=','"),
        (decimal, "text", f"numbers written in several ways, such as {first(decimal)} and {first(point | thousands)}"),
        (grouped, "text", f"numbers with thousands separators, such as {first(grouped)}: write them without{either}"),
        (point, "text", f"numbers as texts ({why}), such as {first(point)}"),
    ]
    return next(Looks(look, words) for holds, look, words in found if holds)


def _gap_hint(words: Collection[str]) -> str:
    """What to do about words such as "unknown" or "-" among numbers; nothing if there is a digit in one of them."""
    if any(letter.isdigit() for word in words for letter in word):
        return ""
    shown = " or ".join(_short(word) for word in sorted(words)[:SHOWN_LEVELS])
    return f"; if {shown} stands for a gap, leave such fields empty"


def counts_rows(values: FloatArray) -> bool:
    """True for numbers that only count the rows: each is the one before plus 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        if len(values) < 3 or values[0] != np.rint(values[0]) or (np.diff(values[:3]) != 1).any():
            return False
        return bool((np.diff(values) == 1).all())


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
    """Dates such as 31/12/2020: their order is a matter of how the file is read, too."""
    date_order: str | None = None
    dates: str | None = None
    missing: str | None = None
    mostly_categories: bool = False
    """Whether more than half of the columns that are left are categories: Gower's distance is for those."""

    def python(self, given: dict[str, Any]) -> str:
        """A call to paste; ``given`` are the parameters that were set before."""
        call = dict(given)
        away = [*self.id, *self.drop, *self.decimal, *self.year_last]
        for name, more in (("drop", away), ("categorical", self.categorical)):
            if more:
                call[name] = [*call.get(name, ()), *more]
        call |= {name: value for name in ("dates", "missing") if (value := getattr(self, name)) is not None}
        return f"TablePreparer({', '.join(f'{name}={value!r}' for name, value in call.items())})"


class ColumnsError(TableError):
    """Columns that cannot be used as they are: which, what they look like, and what deals with all of them.

    If no call does, ``hopeless`` is the sentence that says why.
    """

    def __init__(self, description: str, hopeless: str, advice: Advice, call: str = "") -> None:
        super().__init__(description, hopeless, advice, call)
        self.description, self.hopeless, self.advice = description, hopeless, advice
        gone = [*advice.drop, *advice.decimal, *advice.year_last]
        self._way = hopeless or "\n".join(way_out(call, gone) + _way_of_dates(advice))

    def __str__(self) -> str:
        return f"{self.description}\n{self._way}"


def way_out(call: str, gone: Sequence[str]) -> list[str]:
    """Two lines: a sentence with the columns that are ``gone`` after this call, and the call."""
    shown = [printable(repr(name)) for name in gone[:MOST_NAMED]] + ["…"] * (len(gone) > MOST_NAMED)
    leaves_out = f"; it leaves out {', '.join(shown)}" if gone else ""
    return [f"This deals with all of them{leaves_out}:", f"  {call}"]


def _way_of_dates(advice: Advice) -> list[str]:
    """How Python makes dates of texts in a frame; the command line reads the file again."""
    if not advice.year_last:
        return []
    name, more = advice.year_last[0], ", dayfirst=True" if advice.date_order == "day" else ""
    return [f"To keep dates, make them first: X[{name!r}] = pandas.to_datetime(X[{name!r}]{more})"]


def first_gap(frame: Any) -> str:
    """Where the first missing value is; nothing if there is none."""
    for row, column in zip(*np.nonzero(frame.isna().to_numpy()), strict=True):
        return f"missing value in row {row + 1}, column {frame.columns[column]!r}"
    return ""


def describe(name: str, problems: Sequence[Column]) -> str:
    """These columns of a frame, one a line."""
    frame = problems[0].frame
    gaps = sum(found.n_missing > 0 for found in problems)
    other = sum(found.kind not in ("number", "boolean") for found in problems)
    what = [f"{other} {'is' if other == 1 else 'are'} not numbers"] * bool(other)
    what += [f"{gaps} {'has' if gaps == 1 else 'have'} missing values (NaN)"] * bool(gaps)
    unfit = "should not be used as it is" if len(problems) == 1 else "should not be used as they are"
    about = " and ".join(what) or f"{len(problems)} {unfit}"
    first = f", the first {first_gap(frame[[found.name for found in problems]])}" if gaps else ""
    shown = problems[:MOST_DESCRIBED]
    names = [printable(found.name) or "''" for found in shown]
    width = min(max(map(len, names)), SHOWN_LETTERS)
    lines = [f"  {column:<{width}}  {found.looks.words}" for column, found in zip(names, shown, strict=True)]
    if len(problems) > MOST_DESCRIBED:
        lines.append(f"  … and {len(problems) - MOST_DESCRIBED} more")
    return "\n".join([f"{name}: of {counted(frame.shape[1], 'column')}, {about}{first}:", *lines])


def advise(problems: Sequence[Column], handled: Collection[str] = (), fill: bool = True) -> Advice:
    """What deals with all of these columns; ``handled`` are categories already, ``fill`` is for gaps too."""
    orders = [found.orders for found in problems if found.orders]
    order = min(orders, key=len)[0] if orders else None  # of a column that leaves no choice, if there is one
    advice = Advice()
    for found in problems:
        way = WAYS.get(found.looks.look, "")
        if found.name in handled and found.n_missing < found.n_rows:
            way = ""
        elif found.orders:
            way = "year_last" if order in found.orders else "drop"
        elif way == "categorical" and len(found.levels) < 2:
            way = "drop"
        if way == "dates":
            advice.dates = "ordinal"
        elif way:
            getattr(advice, way).append(found.name)
        if fill and found.n_missing and way not in ("id", "drop"):
            advice.missing = "mean"
    advice.date_order = order if advice.year_last else None
    return advice
