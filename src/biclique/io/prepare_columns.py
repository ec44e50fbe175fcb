"""Which columns a TablePreparer uses, and as what: chosen by name, sorted into numbers and categories, or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray
from biclique.exceptions import Argument, DataError, ParameterError, TableError, TableWarning, printable, warn_user
from biclique.io.columns import ColumnsError, advise, counted, counts_rows, describe, levels_of, look_at, texts_of
from biclique.io.fields import Kind, as_boolean, as_number, date_orders, kind_of, text_array
from biclique.io.roles import absent_column
from biclique.io.typed_columns import DATE_ORDER, DECIMAL, Column, TypedTable

SCALE_NONE, MISSING_DROP = Argument("scale='none'"), Argument("missing='drop'")
DROP, MISSING = Argument("drop"), Argument("missing")
DAY = np.timedelta64(1, "D")
SHOWN = 5


def some_rows(column: Column, rows: NDArray[Any]) -> Column:
    """The same column with some of its rows."""
    return Column(column.name, column.kind, column.values[rows])


def as_numbers(column: Column) -> FloatArray:
    """float64; dates are days since 1970-01-01 with their fraction."""
    if column.kind == "date":
        return np.asarray((column.values - np.datetime64(0, "us")) / DAY, dtype=np.float64)
    return np.asarray(column.values, dtype=np.float64)


def listed_names(argument: str, value: Sequence[str | int] | None) -> list[str]:
    """Names that came as an argument; a lone text is refused, since its letters would be names."""
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray, type(None))):
        raise ParameterError(f"{argument} must be a list of names of columns, got {value!r}: write [{value!r}].")
    return [str(name) for name in (() if value is None else value)]


def selected(name: str, names: Sequence[str], columns: Sequence[str] | None, drop: Sequence[str]) -> list[str]:
    """The names of the columns to use, after checking that those that were named exist."""
    doubled = next((c for i, c in enumerate(names) if c in names[:i]), None) if len(set(names)) < len(names) else None
    if doubled is not None:
        raise TableError(f"{name}: column name {printable(repr(doubled))} appears more than once; rename it.")
    for argument, wanted in (("columns", columns or ()), ("drop", drop)):
        absent = next((c for c in wanted if c not in names), None)
        if absent is not None:
            raise absent_column(name, argument, absent, names)
    kept = [c for c in (names if columns is None else columns) if c not in drop]
    if not kept:
        raise TableError(f"{name}: no feature columns are left; drop fewer columns.")
    return list(dict.fromkeys(kept))


def sorted_columns(
    table: TypedTable,
    chosen: Sequence[Column],
    categorical: Collection[str] | Literal["auto"],
    parameters: Mapping[str, Any],
    with_names: bool,
    whole: bool = True,
) -> tuple[list[Column], list[Column]]:
    """Columns that are used as numbers, and categories; one error about all that can be neither.

    ``parameters`` are those of a TablePreparer that differ from the defaults. If the table is not ``whole``, a column
    is not refused for its gaps.
    """
    missing, dates = parameters.get("missing", "refuse"), parameters.get("dates", "refuse")
    numbers: list[Column] = []
    categories: list[Column] = []
    problems: list[Column] = []
    for column in chosen:
        is_text = column.kind == "text"
        if column.kind == "date" and dates == "drop" and column.name not in categorical:
            continue
        gaps = column.missing
        level = column.name in categorical or (categorical == "auto" and is_text and look_at(column).look == "category")
        unusable = not level and (is_text or (column.kind == "date" and dates == "refuse"))
        if unusable or column.name == "" or (whole and (gaps.all() or (missing == "refuse" and gaps.any()))):
            problems.append(column)
        (categories if level else numbers).append(column)
    if problems:
        bad = {column.name for column in problems}
        ids = [c for c in numbers if c.name not in bad and c.kind == "number" and look_at(c).look == "id"]
        looks = [look_at(column) for column in chosen if column.name in bad or column in ids]
        advice = advise(looks, [c.name for c in categories], fill=missing == "refuse")
        name = table.name if whole else f"{table.name} (its first {table.n_rows} rows)"
        told = describe(name, looks, len(chosen), first_gap(problems, table))
        nothing = advice.leaves_nothing([column.name for column in chosen])
        raise ColumnsError(told, "" if nothing else advice.python(dict(parameters)), advice)
    if not numbers and not categories:
        raise TableError(f"{table.name}: no feature columns are left; drop fewer columns, or use dates='ordinal'.")
    for told in about_ids(numbers, whole) if with_names else ():
        warn_user(told, TableWarning)
    return numbers, categories


def about_ids(columns: Sequence[Column], whole: bool = True) -> list[str]:
    """What to say of columns that look like ids and are used as numbers; if not whole, these are their first rows."""
    told = []
    for column in columns:
        seen = "" if whole else f" in its first {len(column.values)} rows"
        if column.kind == "number" and counts_rows(column):
            told.append(
                f"column {column.name!r} only counts the rows{seen}: leave it out unless it says something about them."
            )
        elif column.kind == "number" and look_at(column).look == "id":
            told.append(
                f"column {column.name!r} looks like an id (different whole numbers{seen}), and is used as a number: "
                "leave it out unless it says something about the rows."
            )
    return told


def first_gap(columns: Sequence[Column], table: TypedTable) -> str:
    """Where the first missing value is; nothing if there is none."""
    places = [(int(np.argmax(gaps)), c.name) for c in columns if (gaps := c.missing).any()]
    if not places:
        return ""
    row, name = min(places, key=lambda place: place[0])
    return f"missing value in {row_in_words(table, row)}, column {name!r}"


def row_in_words(table: TypedTable, row: int) -> str:
    """``row 5 (line 6)``."""
    line = f" (line {table.lines[row]})" if len(table.lines) else ""
    return f"row {table.first_row + row + 1}{line}"


def too_large(name: str) -> DataError:
    """The error about values whose scale is beyond float64."""
    return DataError(f"{name}: values too large to scale; rescale the columns first, or use ", SCALE_NONE, ".")


def weights_of(table: TypedTable, column: Column, kept: NDArray[np.bool_]) -> FloatArray:
    """The weights of the rows that are kept: finite numbers, none below 0."""
    values = column.numbers
    bad = np.ones(len(kept), dtype=bool) if values is None else ~(np.isfinite(values) & (values >= 0))
    bad &= kept
    if values is None or bad.any():
        row = int(np.argmax(bad))
        raise TableError(
            f"{table.name}: {row_in_words(table, row)}, column {column.name!r}: a weight is a number from 0 on, got "
            f"{texts_of(some_rows(column, np.array([row])))[0]!r}."
        )
    return values[kept]


# Columns of other tables, as those of fit


def number_as_fitted(table: TypedTable, column: Column, fitted: Kind) -> Column:
    """A column of another table that is used as numbers, if it holds what it held in ``fit``."""
    gaps = column.missing
    if column.kind == fitted or (fitted == "number" and column.kind == "boolean"):
        return column
    if fitted == "boolean" and column.kind == "number" and np.isin(column.values[~gaps], (0, 1)).all():
        return column
    if gaps.all():
        return Column(column.name, "number", np.full(len(gaps), np.nan))
    odd = [column.kind != "text" or kind_of([text]) != fitted for text in column.values.tolist()]
    if fitted == "number" and column.kind == "text":  # the decimal sign of the file is not known here
        worse = [no and as_number(text, ",") is None for no, text in zip(odd, column.values.tolist(), strict=True)]
        odd = worse if any(worse) else odd
    if column.kind == "number":
        odd = (~np.isin(column.values, (0, 1))).tolist()
    row = int(np.argmax(~gaps & odd))
    value = str(column.values[row])
    what = (
        f"{table.name}: column {column.name!r} held {fitted}s in fit and holds {column.kind}s now, such as "
        f"{printable(repr(value))} in {row_in_words(table, row)}: "
    )
    if fitted == "date" and date_orders([value]):
        raise DataError(what, "say whether the day or the month comes first with ", DATE_ORDER, ", or fit again.")
    if fitted == "number" and column.kind == "text" and as_number(value, ",") is not None:
        raise DataError(what, "say so with ", DECIMAL, " if it has a decimal comma, or fit again.")
    raise DataError(what, "mend the values, or fit again.")


def levels_as_fitted(column: Column, fitted: Kind) -> NDArray[Any]:
    """The levels of a category, written as in ``fit``: 1, 1.0 and "1.0" are the same if they were numbers there."""
    if fitted == "number" and column.kind == "boolean":
        column = Column(column.name, "number", column.values)
    elif fitted == "boolean" and column.kind == "number" and np.isin(column.values[~column.missing], (0, 1)).all():
        column = Column(column.name, "boolean", column.values)
    levels = levels_of(column)
    if column.kind != "text" or fitted not in ("number", "boolean"):
        return levels
    read = as_number if fitted == "number" else as_boolean
    known = {level: read(level) for level in set(levels.tolist()) if level is not None}
    plain = {level: levels_of(Column("", fitted, np.array([x])))[0] for level, x in known.items() if x is not None}
    return text_array([plain.get(level, level) for level in levels.tolist()])


# What is worth knowing


def warn_about_rows(kept: NDArray[np.bool_]) -> None:
    """Say which rows were left out."""
    gone = np.flatnonzero(~kept)
    if len(gone):
        some = ", ".join(map(str, gone[:SHOWN])) + (", …" if len(gone) > SHOWN else "")
        warn_user(
            f"missing='drop' left out {len(gone)} of {len(kept)} rows (counting from 0: {some}); kept(X) says which "
            "stay, and in_place(labels, kept) puts labels back.",
            TableWarning,
        )


def warn_about_gaps(names: Sequence[str]) -> None:
    """Say which columns have gaps that ``fit`` did not see."""
    if names:
        shown = ", ".join(map(repr, names))
        warn_user(f"columns {shown} had no gaps in fit: gaps are filled in, but have no indicator.", TableWarning)


def warn_about_levels(name: str, levels: Sequence[str | None], known: Collection[str | None]) -> None:
    """Say which levels of a category ``fit`` did not see."""
    counts = Counter(levels)
    unseen = [level for level in counts if level not in known]
    if unseen:
        some = ", ".join(printable(repr(level)) for level in unseen[:SHOWN]) + (", …" if len(unseen) > SHOWN else "")
        rows = sum(counts[level] for level in unseen)
        warn_user(
            f"column {name!r} has {counted(len(unseen), 'level')} that fit did not see, in {rows} of {len(levels)} "
            f"rows: {some}; they are as far from all known levels.",
            TableWarning,
        )
