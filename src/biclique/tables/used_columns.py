"""Which columns a TablePreparer uses, and as what: chosen by name, sorted into numbers and categories, or refused."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, ParameterError, TableError, TableWarning, printable, warn_user
from biclique.tables.diagnosis import (
    MOST_NAMED,
    MOST_PASTED,
    NOTHING_LEFT,
    TOO_MANY,
    Advice,
    Column,
    ColumnsError,
    advise,
    columns_of,
    counted,
    counts_rows,
    describe,
)
from biclique.tables.frames import DTYPES, kind_of, levels_of, numbers_of, settled, texts_of
from biclique.tables.text_form import Kind, as_number

SHOWN = 5
"""Rows or levels that a warning names."""


def name_of(frame: Any) -> str:
    """What messages call a table: its file, or X."""
    return str(frame.attrs.get("name", "X"))


def _some(words: Sequence[str], most: int = SHOWN) -> str:
    """The first words of a list, with … for the rest."""
    return ", ".join(words[:most]) + ", …" * (len(words) > most)


def shown_names(names: Sequence[str]) -> str:
    """Names of columns, as a message shows them."""
    return _some([repr(str(name)) for name in names[: MOST_NAMED + 1]], MOST_NAMED)


def listed_names(name: str, argument: str, value: Sequence[str | int] | None, columns: Sequence[str]) -> list[str]:
    """Names of columns that came as an argument; a single text is refused, because its letters would be names."""
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray, type(None))):
        raise ParameterError(f"{argument} must be a list of names of columns, got {value!r}: write [{value!r}].")
    names, known = [str(column) for column in (() if value is None else value)], {*columns}
    absent = [column for column in names if column not in known]
    if absent:
        shown = shown_names(columns)
        raise TableError(f"{name}: {argument} names column {absent[0]!r}, which does not exist; columns: {shown}.")
    return names


def is_auto(categorical: Sequence[str | int] | str) -> bool:
    """True if categories are to be found by their looks."""
    return isinstance(categorical, str) and categorical == "auto"


def sorted_columns(
    frame: Any,
    categorical: Collection[str],
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
    known = {*categorical} & {*frame.columns}
    found = columns_of(frame)
    if is_auto(parameters.get("categorical", ())):
        known |= {one.name for one in found if one.kind == "text" and one.looks.look == "category"}
    used = [one for one in found if one.name in known or one.kind != "date" or dates != "drop"]
    if not used:
        raise TableError(f"{name_of(frame)}: no feature columns are left; drop fewer columns, or use dates='ordinal'.")
    refused = {"text"} if dates == "ordinal" else {"text", "date"}

    def is_problem(one: Column) -> bool:
        if one.name == "" or (one.name not in known and one.kind in refused):
            return True
        return whole and (one.n_missing == one.n_rows or (missing == "refuse" and one.n_missing > 0))

    def is_id(one: Column) -> bool:
        return one.name not in known and one.kind == "number" and one.looks.look == "id"

    problems = [one for one in used if is_problem(one)]
    shown = name_of(frame) if whole else f"{name_of(frame)} (its first {len(frame)} rows)"
    if len(problems) > MOST_PASTED:
        raise ColumnsError(describe(shown, problems), TOO_MANY, Advice())
    if problems:
        about = [one for one in used if is_problem(one) or is_id(one)]
        advice = advise(about, known, fill=missing == "refuse")
        n_left = len(used) - len(advice.id) - len(advice.drop)
        advice.mostly_categories = 2 * len({*known, *advice.categorical}) > n_left
        hopeless = NOTHING_LEFT if {*frame.columns} <= {*advice.id, *advice.drop} else ""
        raise ColumnsError(describe(shown, about), hopeless, advice, advice.python(dict(parameters)))
    if with_names:
        warn_about_ids(frame[[one.name for one in used if is_id(one)]], whole)
    names = [one.name for one in used]
    return [name for name in names if name not in known], [name for name in names if name in known]


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


def number_as_fitted(column: Any, fitted: Kind, name: str) -> FloatArray:
    """A column of another table that is used as numbers, if it holds what it held in ``fit``."""
    if kind_of(column) == fitted:
        return numbers_of(column)
    column = settled(column)
    kind, present = kind_of(column), column.dropna()
    other = present[~present.isin((0, 1))]
    as_booleans = {kind, fitted} == {"number", "boolean"} and (fitted == "number" or not len(other))
    if kind == fitted or as_booleans or not len(present):
        return numbers_of(column)
    texts = texts_of(other)
    odd = [text for text in texts if fitted != "number" or as_number(text) is None]
    odd = [text for text in odd if as_number(text, ",") is None] or odd  # wrong with either decimal sign
    raise DataError(
        f"{name}: column {column.name!r} held {fitted}s in fit and holds {kind}s now, such as "
        f"{printable(repr((odd or texts)[0]))}: mend the values, or say how they are written with "
        "decimal=',' or date_order=…, or fit again."
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
        if counts_rows(numbers_of(column)):
            what, way = f"only counts the rows{seen}", "it says something about them"
        else:
            what = f"looks like an id (different whole numbers{seen}), and is used as a number"
            way = "it says something about the rows"
        warn_user(f"column {name!r} {what}: leave it out unless {way}.", TableWarning)


def warn_about_rows(kept: NDArray[np.bool_]) -> None:
    """Name rows that were left out."""
    gone = np.flatnonzero(~kept)
    if len(gone):
        some = _some([*map(str, gone[: SHOWN + 1])])
        warn_user(
            f"missing='drop' left out {len(gone)} of {len(kept)} rows (counting from 0: {some}); kept(X) says which "
            "stay, and in_place(labels, kept) puts labels back.",
            TableWarning,
        )


def warn_about_gaps(names: Sequence[str]) -> None:
    """Name columns of numbers that have gaps and had none in ``fit``."""
    if names:
        shown = shown_names(names)
        warn_user(f"columns {shown} had no gaps in fit: gaps are filled in, but have no indicator.", TableWarning)


def warn_about_empty(name: str, columns: Sequence[str], n_rows: int) -> None:
    """Name columns that have no value at all in some rows; ``fit`` had values."""
    if columns:
        shown = shown_names(columns)
        warn_user(f"{name}: columns {shown} have no value in any of {n_rows} rows: all are filled in.", TableWarning)


def warn_about_levels(name: str, levels: Sequence[str | None], known: Collection[str | None]) -> None:
    """Name levels of a category that ``fit`` did not see."""
    unseen = {level: count for level, count in Counter(levels).items() if level not in known}
    if unseen:
        some = _some([printable(repr(level)) for level in unseen])
        warn_user(
            f"column {name!r} has {counted(len(unseen), 'level')} that fit did not see, in {sum(unseen.values())} of "
            f"{len(levels)} rows: {some}; they are as far from all known levels.",
            TableWarning,
        )


def warn_about_clusters(frame: Any, names: Sequence[str], labels: IntArray) -> None:
    """Name clusters that are exactly one level of a category: all rows that have it, and no others."""
    for name in names:
        levels = levels_of(frame[name])
        pairs = Counter(zip(labels.tolist(), levels.tolist(), strict=True))
        of_label, of_level = Counter(label for label, _ in pairs), Counter(level for _, level in pairs)
        found = sorted((label, level) for label, level in pairs if of_label[label] == of_level[level] == 1 and level)
        if found:
            some = _some([f"cluster {label} is {name} = {printable(repr(level))}" for label, level in found])
            warn_user(f"{some}, all such rows and no others: leave that column out?", TableWarning)
