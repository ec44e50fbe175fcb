"""Options about a table: which columns are used, and as what; and a command that deals with all of them."""

import csv
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from biclique.cli.opened_tables import INPUT
from biclique.cli.options import Options, option, output_file, switch, table_option
from biclique.exceptions import DataError, ParameterError, printable
from biclique.tables.atomic_files import check_target
from biclique.tables.diagnosis import Advice
from biclique.tables.preparer import CHOICES, TablePreparer
from biclique.tables.text_form import DATE_ORDERS, TextForm
from biclique.tables.used_columns import listed_names
from biclique.tables.writing import ENDINGS, check_output

names_option = partial(table_option, default=(), action="append", metavar="NAME")
SEVERAL = "several: NAME,NAME or the option again"
HEADER = {"auto": None, "yes": True, "no": False}
TEXT_CHOICES = {"header": tuple(HEADER), "decimal": (".", ","), "date_order": DATE_ORDERS, "encoding": ()}
"""Options about text, and their values; encodings have names by the hundred."""


@dataclass(frozen=True, kw_only=True)
class SavedModel(Options):
    """A model for the rows of a table."""

    model: str = option("file that --save or biclique.save wrote, such as model.skops", metavar="MODEL", reads=True)
    missing: str | None = table_option(
        "drop: leave out rows with missing values. What a model was fitted with, such as mean, needs no option",
        "--missing",
        choices=("refuse", "drop"),
        also=("the same as --missing drop", "--drop-missing", "drop"),
    )


@dataclass(frozen=True, kw_only=True)
class TableOptions(Options):
    """A table, the columns that name its rows, and how it is written if it is a text file."""

    table: str = option("table of rows, with the columns of the fit; - for standard input", metavar="TABLE", reads=True)
    id: tuple[str, ...] = names_option(
        f"column that names the rows: left out, written beside the labels ({SEVERAL})", "--id"
    )
    header: str | None = table_option(
        "whether a text file's first line holds names (auto: unless all of them are numbers)",
        "--header",
        choices=TEXT_CHOICES["header"],
    )
    decimal: str | None = table_option("decimal sign of a text file", "--decimal", choices=TEXT_CHOICES["decimal"])
    date_order: str | None = table_option(
        "what comes first in dates of a text file such as 01/02/2020 (2020-02-01 needs no order)",
        "--date-order",
        choices=TEXT_CHOICES["date_order"],
    )
    encoding: str | None = table_option("of a text file, such as latin-1", "--encoding", metavar="NAME")
    sheet: str = table_option("sheet of an Excel file (default: the first)", "--sheet", default="", metavar="NAME")

    @property
    def shown_table(self) -> str:
        """What messages call the table."""
        return INPUT if self.table == "-" else self.table

    @property
    def written(self) -> dict[str, str]:
        """How a text file is written, as far as options say so; a model is saved with them."""
        return {name: value for name in TEXT_CHOICES if (value := getattr(self, name)) is not None}

    def form(self, fitted: Mapping[str, str] | None = None) -> TextForm:
        """How a text file is written: by the options, else as the table of the fit."""
        found: dict[str, Any] = {**(fitted or {}), **self.written}
        return TextForm(**{**found, "header": HEADER[found.get("header", "auto")], "sheet": self.sheet})

    def names(self, name: str, columns: Sequence[str]) -> list[str]:
        """The columns that an option such as ``id`` names."""
        value = getattr(self, name)
        given = value if isinstance(value, tuple) else () if value is None else (value,)
        return names_of(printable(self.shown_table), self.flags()[name], given, columns)

    def ids(self, columns: Sequence[str], known: Sequence[Any] = ()) -> list[str]:
        """The columns that name the rows: by the option, else those of the fit."""
        return self.names("id", columns) or [name for name in columns if name in known]


@dataclass(frozen=True, kw_only=True)
class Labelling(TableOptions):
    """Where labels go."""

    output: str | None = option(
        f"write one label per row to FILE ({', '.join(ENDINGS)}); - is standard output",
        "-o",
        "--output",
        type=output_file,
        writes=check_output,
    )
    append: bool = switch(
        "write the whole table to FILE, with columns for the label of each row and its probability", "--append"
    )

    def check(self) -> None:
        if self.append and not self.output:
            raise ParameterError("--append needs a file to write to: -o FILE.")
        super().check()
        if self.output is not None and self.append:
            check_output(self.output, several=True)

    def ids(self, columns: Sequence[str], known: Sequence[Any] = ()) -> list[str]:
        found = super().ids(columns, known)
        if len(found) > 1 and self.output and not self.folder:
            check_output(self.output, several=True)
        return found


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(Labelling):
    """What the columns of a table to cluster are for."""

    columns: tuple[str, ...] = names_option(f"use these columns alone ({SEVERAL})", "--columns")
    drop: tuple[str, ...] = names_option(f"columns to leave out ({SEVERAL})", "--drop")
    weight: str | None = table_option("column that says how often a row counts: left out", "--weight", metavar="NAME")
    label: str | None = table_option(
        "column of known classes: left out, used for an error rate", "--label", "--label-column", metavar="NAME"
    )
    categorical: tuple[str, ...] = names_option(
        f"columns whose values are levels; auto: all texts that look so ({SEVERAL})", "--categorical"
    )
    missing: str | None = table_option(
        "missing values: leave out such rows, fill in the mean or median of the column (of categories the most "
        "frequent level), or the mean with a column more that says so, or keep them, for --metric gower (default: "
        "refuse; with gower: keep)",
        "--missing",
        choices=CHOICES["missing"],
        also=("the same as --missing drop", "--drop-missing", "drop"),
    )
    dates: str | None = table_option("columns of dates: as days, or left out", "--dates", choices=CHOICES["dates"])
    scale: str | None = table_option(
        "standard: mean 0, variance 1 (default); robust: by median and quartiles; none: as they are, always for "
        "gower, which divides by ranges",
        "--scale",
        choices=CHOICES["scale"],
    )

    def preparer(self, names: Sequence[str], *, leave_out: Sequence[str], codes: bool) -> TablePreparer:
        """What makes numbers of the columns; ``codes`` if the model compares levels and leaves gaps out itself."""
        away = list(dict.fromkeys([*self.names("drop", names), *leave_out]))
        chosen = [name for name in self.names("columns", names) if name not in away]
        auto = self.categorical == ("auto",) and "auto" not in names
        given = {"missing": self.missing, "dates": self.dates, "scale": self.scale}
        if codes:
            given |= {"missing": self.missing or "keep", "scale": "none", "encode": "codes"}
        return TablePreparer(
            columns=chosen if self.columns else None,
            drop=[] if self.columns else away,
            categorical="auto" if auto else self.names("categorical", names),
            **{name: value for name, value in given.items() if value is not None},
        )


def check_page(path: str) -> None:
    """Refuse a report that could not be written."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise DataError(f"cannot write {path}: the name of a report must end in .html.")
    check_target(path)


def possible_names(values: Sequence[str]) -> list[str]:
    """All names that the values of an option may stand for, before the columns are known."""
    return [name for value in values for name in (value, *_split(value))]


def _split(value: str) -> list[str]:
    return [part.strip() for part in next(csv.reader([value]), [""])]


def names_of(table: str, option: str, values: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns that the values of an option name: each is a name, or several with commas between."""
    names: list[str] = []
    for value in values:
        names += [value] if value in columns else _split(value)
    return list(dict.fromkeys(listed_names(table, option, names, columns)))


def command(arguments: Sequence[str], advice: Advice) -> str:
    """The command that was given, with options that deal with all columns: to paste."""
    words = ["biclique", *arguments]
    for flag, names in (("--id", advice.id), ("--drop", advice.drop), ("--categorical", advice.categorical)):
        plain = [name for name in names if name and "," not in name and '"' not in name and name == name.strip()]
        for value in [",".join(plain)] * bool(plain) + [name for name in names if name not in plain]:
            words += [f"{flag}={value}"] if value.startswith("-") else [flag, value]
    choices = {
        "--decimal": "," if advice.decimal else None,
        "--date-order": advice.date_order,
        "--dates": "ordinal" if advice.year_last else advice.dates,
        "--missing": advice.missing,
    }
    words += [word for flag, choice in choices.items() if choice is not None for word in (flag, choice)]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
