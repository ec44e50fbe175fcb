"""What the columns of a table are for, and a table in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import Argument, TableError
from biclique.runtime import all_finite

LABEL, ID, DROP = Argument("Roles(label=…)"), Argument("Roles(id=…)"), Argument("Roles(drop=…)")
NAMELESS_ID, NAMELESS_DROP = Argument("Roles(id='')"), Argument("Roles(drop=[''])")
DROP_MISSING = Argument("drop_missing=True")
A_ROLE = (LABEL, ", ", ID, " or ", DROP)
MOST_NAMED = 20


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for; all others are features."""

    label: str | None = None
    id: str | None = None
    drop: Sequence[str] = ()


@dataclass(frozen=True)
class Table:
    """Features, and the label and id of every row if there are such columns."""

    name: str
    X: FloatArray  # (n, d)
    columns: list[str]
    rows: IntArray  # (n,), numbers of the rows kept, counting from 0
    n_rows: int  # rows in the file
    labels: list[str] | None = None
    ids: list[str] | None = None
    lines: Sequence[int] = ()  # of a text file, for messages
    notes: tuple[str, ...] = ()  # what may have been meant otherwise


def as_texts(values: Iterable[object]) -> list[str]:
    """Ids and classes as texts; the text of a missing one (null, NaN) is empty, as in a CSV file."""
    return ["" if value is None or value != value else str(value) for value in values]


def numbered(n_columns: int) -> list[str]:
    """The names of columns that have none: "0", "1", …"""
    return [str(j) for j in range(n_columns)]


def check_names(name: str, columns: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    counts = Counter(columns)
    doubled = min((c for c, count in counts.items() if count > 1), default=None)
    if doubled is not None:
        raise TableError(f"{name}: column name {doubled!r} appears {counts[doubled]} times; rename it.")


def first_names(columns: Sequence[str]) -> str:
    """The first names of a list, which may be long: ``'a', 'b', …``."""
    return ", ".join(map(repr, columns[:MOST_NAMED])) + (", …" if len(columns) > MOST_NAMED else "")


def absent_column(name: str, argument: str, absent: str, columns: Sequence[str]) -> TableError:
    """The error about a column that was named and does not exist."""
    shown = first_names(columns)
    return TableError(f"{name}: ", argument, f" names column {absent!r}, which does not exist; columns: {shown}.")


def feature_columns(name: str, columns: Sequence[str], roles: Roles) -> list[int]:
    """The places of the columns that are features, after checking that those with a role exist."""
    check_names(name, columns)
    known, taken = {*columns}, {roles.label, roles.id, *roles.drop}
    for role, wanted in [(LABEL, roles.label), (ID, roles.id), *((DROP, c) for c in roles.drop)]:
        if wanted is not None and wanted not in known:
            raise absent_column(name, role, wanted, columns)
    if "" in known and "" not in taken:
        raise TableError(
            f"{name}: column {columns.index('') + 1} has no name. If it numbers the rows, say so with ",
            NAMELESS_ID,
            ", or leave it out with ",
            NAMELESS_DROP,
            ".",
        )
    return [j for j, c in enumerate(columns) if c not in taken]


def checked(table: Table, drop_missing: bool | None) -> Table:
    """Values that are not numbers are named, or their rows left out. A missing label or id is not such a value.

    ``drop_missing=None`` keeps them.
    """
    if table.X.shape[1] == 0:
        raise TableError(f"{table.name}: no feature columns are left; drop fewer columns.")
    if table.X.shape[0] == 0:
        raise TableError(f"{table.name}: the table has no rows.")
    if drop_missing is None or all_finite(table.X):
        return table
    good = np.asarray(np.isfinite(table.X).all(axis=1))
    if not drop_missing:
        row = int(np.argmin(good))
        column = int(np.argmin(np.isfinite(table.X[row])))
        what = "missing value" if np.isnan(table.X[row, column]) else "infinite value"
        line = f" (line {table.lines[row]})" if table.lines else ""
        raise TableError(
            f"{table.name}: {what} in row {row + 1}{line}, column {table.columns[column]!r}; {int((~good).sum())} of "
            f"{len(good)} rows have one. Leave those rows out with ",
            DROP_MISSING,
            ", or a column with ",
            DROP,
            ".",
        )
    if not good.any():
        raise TableError(f"{table.name}: every row has a missing value; leave out columns with ", DROP, ".")
    kept = np.flatnonzero(good).tolist()
    return Table(
        table.name,
        table.X[kept],
        table.columns,
        table.rows[kept],
        table.n_rows,
        None if table.labels is None else [table.labels[i] for i in kept],
        None if table.ids is None else [table.ids[i] for i in kept],
        [table.lines[i] for i in kept] if table.lines else (),
        table.notes,
    )
