"""Which columns a TablePreparer uses, and as what: chosen by name, sorted into numbers and categories, or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray
from biclique.exceptions import Argument, DataError, ParameterError, TableError, TableWarning, printable, warn_user
from biclique.tables.diagnosis import ColumnsError, advise, counted, counts_rows, describe, look_at
from biclique.tables.frames import DTYPES, kind_of, levels_of, numbers_of, settled, texts_of
from biclique.tables.text_form import Kind, as_number

DATE_ORDER = Argument("date_order=…")
DECIMAL = Argument("decimal=','")
MOST_NAMED = 20
"""Columns that a message names."""
SHOWN = 5
"""Rows or levels that a warning names."""


def name_of(frame: Any) -> str:
    """What messages call a table: its file, or X."""
    return str(frame.attrs.get("name", "X"))


def absent_column(name: str, argument: str, absent: str, columns: Sequence[str]) -> TableError:
    """The error about a column that was named and does not exist."""
    shown = ", ".join(map(repr, columns[:MOST_NAMED])) + (", …" if len(columns) > MOST_NAMED else "")
    return TableError(f"{name}: ", argument, f" names column {absent!r}, which does not exist; columns: {shown}.")


def listed_names(argument: str, value: Sequence[str | int] | None) -> list[str]:
    """Names that came as an argument; a single text is refused, because its letters would be names."""
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray, type(None))):
        raise ParameterError(f"{argument} must be a list of names of columns, got {value!r}: write [{value!r}].")
    return [str(name) for name in (() if value is None else value)]


def chosen_columns(name: str, names: Sequence[str], asked: Mapping[str, Sequence[str] | None]) -> list[str]:
    """The names of the columns to use; all names in ``asked``, by parameter, must exist."""
    known = set(names)
    for argument, wanted in asked.items():
        for column in wanted or ():
            if column not in known:
                raise absent_column(name, argument, column, names)
    columns = asked["columns"]
    away = set(asked["drop"] or ())
    kept = [column for column in (names if columns is None else columns) if column not in away]
    if not kept:
        raise TableError(f"{name}: no feature columns are left; drop fewer columns.")
    return list(dict.fromkeys(kept))


def sorted_columns(
    frame: Any,
    categorical: Collection[str] | Literal["auto"],
    parameters: Mapping[str, Any],
    *,
    with_names: bool,
    whole: bool = True,
) -> tuple[list[str], list[str]]:
    """The names of columns that are used as numbers, and of categories; one error about all that can be neither.

    ``parameters`` are those of a TablePreparer that differ from the defaults. If the frame is not the ``whole`` table,
    a column is not refused for its gaps.
    """
    missing, dates = parameters.get("missing", "refuse"), parameters.get("dates", "refuse")
    numbers: list[str] = []
    categories: list[str] = []
    problems: list[str] = []
    for name, column in frame.items():
        kind = kind_of(column)
        if kind == "date" and dates == "drop" and name not in categorical:
            continue
        looks_so = categorical == "auto" and kind == "text" and look_at(column).look == "category"
        is_category = name in categorical or looks_so
        unusable = not is_category and (kind == "text" or (kind == "date" and dates == "refuse"))
        gaps = column.isna()
        has_gaps = whole and (gaps.all() or (missing == "refuse" and gaps.any()))
        if unusable or has_gaps or name == "":
            problems.append(name)
        (categories if is_category else numbers).append(name)
    if problems:
        ids = [name for name in numbers if kind_of(frame[name]) == "number" and look_at(frame[name]).look == "id"]
        looks = [look_at(frame[name]) for name in frame.columns if name in problems or name in ids]
        advice = advise(looks, categories, fill=missing == "refuse")
        shown = name_of(frame) if whole else f"{name_of(frame)} (its first {len(frame)} rows)"
        description = describe(shown, looks, frame.shape[1], first_gap(frame[problems]))
        nothing_left = {*frame.columns} <= {*advice.id, *advice.drop}
        raise ColumnsError(description, "" if nothing_left else advice.python(dict(parameters)), advice)
    if not numbers and not categories:
        raise TableError(f"{name_of(frame)}: no feature columns are left; drop fewer columns, or use dates='ordinal'.")
    if with_names:
        warn_about_ids(frame[numbers], whole)
    return numbers, categories


def first_gap(frame: Any) -> str:
    """Where the first missing value is; nothing if there is none."""
    gaps = frame.isna().to_numpy()
    rows = gaps.any(axis=1)
    if not rows.any():
        return ""
    row = int(rows.argmax())
    return f"missing value in row {row + 1}, column {frame.columns[gaps[row].argmax()]!r}"


def weights_of(column: Any, kept: NDArray[np.bool_], name: str) -> FloatArray:
    """The weights of the rows that are kept: finite numbers, none below 0."""
    values = numbers_of(column) if kind_of(column) in ("number", "boolean") else np.full(len(column), -1.0)
    bad = kept & ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        row = int(bad.argmax())
        raise TableError(
            f"{name}: row {row + 1}, column {column.name!r}: a weight is a number from 0 on, got "
            f"{texts_of(column.iloc[row : row + 1])[0]!r}."
        )
    return values[kept]


# Columns of other tables, as those of fit


def number_as_fitted(column: Any, fitted: Kind, name: str) -> Any:
    """A column of another table that is used as numbers, if it holds what it held in ``fit``."""
    kind, present = kind_of(column), column.dropna()
    if kind == fitted or (fitted == "number" and kind == "boolean") or not len(present):
        return column
    other = present[~present.isin((0, 1))]
    if fitted == "boolean" and kind == "number" and not len(other):
        return column
    texts = texts_of(other)
    odd = [text for text in texts if fitted != "number" or as_number(text) is None]
    odd = [text for text in odd if as_number(text, ",") is None] or odd  # wrong with either decimal sign
    raise DataError(
        f"{name}: column {column.name!r} held {fitted}s in fit and holds {kind}s now, such as "
        f"{printable(repr((odd or texts)[0]))}: mend the values, or say how they are written with ",
        DECIMAL,
        " or ",
        DATE_ORDER,
        ", or fit again.",
    )


def levels_as_fitted(column: Any, fitted: Kind) -> NDArray[Any]:
    """The levels of a category, written as in ``fit``: 1, 1.0 and "1.0" are the same if they were numbers there."""
    if fitted in ("number", "boolean") and kind_of(column) != fitted:
        column = settled(column, numbers=True)
        is_number = kind_of(column) in ("number", "boolean")
        if is_number and (fitted == "number" or column.dropna().isin((0, 1)).all()):
            column = column.astype(float).astype(DTYPES[fitted])
    return levels_of(column)


# Warnings


def warn_about_ids(frame: Any, whole: bool) -> None:
    """Name columns that look like ids and are used as numbers; if not ``whole``, these are their first rows."""
    seen = "" if whole else f" in its first {len(frame)} rows"
    for name, column in frame.items():
        if kind_of(column) != "number":
            continue
        if counts_rows(column):
            warn_user(
                f"column {name!r} only counts the rows{seen}: leave it out unless it says something about them.",
                TableWarning,
            )
        elif name.lower().endswith("id") and look_at(column).look == "id":
            warn_user(
                f"column {name!r} looks like an id (different whole numbers{seen}), and is used as a number: leave it "
                "out unless it says something about the rows.",
                TableWarning,
            )


def warn_about_rows(kept: NDArray[np.bool_]) -> None:
    """Name rows that were left out."""
    gone = np.flatnonzero(~kept)
    if len(gone):
        some = ", ".join(map(str, gone[:SHOWN])) + (", …" if len(gone) > SHOWN else "")
        warn_user(
            f"missing='drop' left out {len(gone)} of {len(kept)} rows (counting from 0: {some}); kept(X) says which "
            "stay, and in_place(labels, kept) puts labels back.",
            TableWarning,
        )


def warn_about_gaps(names: Sequence[str], known: Collection[str]) -> None:
    """Name columns of numbers that have gaps and had none in ``fit``."""
    new = [repr(name) for name in names if name not in known]
    if new:
        warn_user(
            f"columns {', '.join(new)} had no gaps in fit: gaps are filled in, but have no indicator.", TableWarning
        )


def warn_about_levels(name: str, levels: Sequence[str | None], known: Collection[str | None]) -> None:
    """Name levels of a category that ``fit`` did not see."""
    counts = Counter(levels)
    unseen = [found for found in counts if found not in known]
    if unseen:
        some = ", ".join(printable(repr(found)) for found in unseen[:SHOWN]) + (", …" if len(unseen) > SHOWN else "")
        rows = sum(counts[found] for found in unseen)
        warn_user(
            f"column {name!r} has {counted(len(unseen), 'level')} that fit did not see, in {rows} of {len(levels)} "
            f"rows: {some}; they are as far from all known levels.",
            TableWarning,
        )
