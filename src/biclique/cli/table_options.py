"""Options about the columns of a table: which are used, and as what; and a command that deals with all of them."""

from __future__ import annotations

import argparse
import csv
import os
import shlex
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from biclique.datasets import SHIPPED
from biclique.io import find_format
from biclique.io.columns import Advice
from biclique.io.fields import DATE_ORDERS, TextForm
from biclique.io.prepare import CHOICES
from biclique.io.roles import absent_column

SEVERAL = "several: NAME,NAME or the option again"
HEADER = {"auto": None, "yes": True, "no": False}
FORM: dict[str, Collection[str]] = {
    "header": HEADER,
    "decimal": (".", ","),
    "date_order": DATE_ORDERS,
    "encoding": (),
}
"""How a text file is written: the option, and its values; encodings have names by the hundred."""


def add_table_options(table: Any) -> None:
    """What columns are for. No option takes more than one word, except --drop, which gives the table back."""
    table.add_argument(
        "--columns", metavar="NAME", action="append", default=[], help=f"use these columns alone ({SEVERAL})"
    )
    table.add_argument(
        "--drop", metavar="NAME", nargs="+", action="append", default=[], help=f"columns to leave out ({SEVERAL})"
    )
    _add_id(table, f": left out, written beside the labels ({SEVERAL})")
    table.add_argument("--weight", metavar="NAME", help="column that says how often a row counts: left out")
    table.add_argument(
        "--label",
        "--label-column",
        dest="label_column",
        metavar="NAME",
        help="column of known classes: left out, used for an error rate",
    )
    table.add_argument(
        "--categorical",
        metavar="NAME",
        action="append",
        default=[],
        help=f"columns whose values are levels; auto: all texts that look so ({SEVERAL})",
    )
    table.add_argument(
        "--missing",
        choices=CHOICES["missing"],
        default="refuse",
        help="missing values: leave out such rows, fill in the mean or median of the column (of categories the most "
        "frequent level), or the mean with a column more that says so, or keep them, for --metric gower (default: "
        "refuse; with gower: keep)",
    )
    table.add_argument(
        "--drop-missing", dest="missing", action="store_const", const="drop", help="the same as --missing drop"
    )
    table.add_argument(
        "--dates",
        choices=CHOICES["dates"],
        default="refuse",
        help="columns of dates: as days, or left out (default: refuse)",
    )


def _add_id(table: Any, more: str) -> None:
    table.add_argument("--id", metavar="NAME", action="append", default=[], help=f"column that names the rows{more}")


def add_text_options(table: Any, *, of_new_rows: bool = False) -> None:
    """How a text file is written. An option that is not given is None: ``form_of`` has the defaults."""
    as_fitted = "as the table of the fit" if of_new_rows else ""
    table.add_argument(
        "--header",
        choices=FORM["header"],
        help="whether a text file's first line holds names "
        f"(default: {as_fitted or 'auto: unless all of them are numbers'})",
    )
    table.add_argument(
        "--decimal", choices=[".", ","], help=f"decimal sign of a text file (default: {as_fitted or '.'})"
    )
    table.add_argument(
        "--date-order",
        choices=FORM["date_order"],
        help="what comes first in dates of a text file such as 01/02/2020 (2020-02-01 needs no order"
        f"{'; default: ' * of_new_rows}{as_fitted})",
    )
    table.add_argument(
        "--encoding", metavar="NAME", help=f"of a text file, such as latin-1 (default: {as_fitted or 'utf-8'})"
    )


def add_new_row_options(parser: Any, dropped: str) -> None:
    """A table for a saved model: which rows get a name, which are left out, and how it is written."""
    _add_id(parser, f" (default: as in the fit; {SEVERAL})")
    parser.add_argument("--drop-missing", action="store_true", help=dropped)
    add_text_options(parser, of_new_rows=True)
    parser.add_argument(
        "--memory-limit", default="auto", metavar="SIZE", help="such as 4GB (default: half of what is free)"
    )


def form_of(options: argparse.Namespace) -> TextForm:
    """How a text file is written, by the options."""
    given = {name: value for name, value in given_form(options).items() if name != "header"}
    return TextForm(header=HEADER[options.header or "auto"], **given)


def given_form(options: argparse.Namespace) -> dict[str, str]:
    """Those options that were given; a model is saved with them."""
    return {name: value for name in FORM if (value := getattr(options, name)) is not None}


def take_form(options: argparse.Namespace, noted: object) -> list[str]:
    """Options that were not given, from those of the fit; what was taken, as words of a command.

    What is no value of such an option is left alone: the file of a model may come from anybody.
    """
    taken = []
    for name, value in noted.items() if isinstance(noted, Mapping) else ():
        if name in FORM and isinstance(value, str) and getattr(options, name) is None:
            if value not in FORM[name] and name != "encoding":
                continue
            setattr(options, name, value)
            taken.append(f"--{name.replace('_', '-')} {shlex.quote(value)}")
    return taken


def find_table(options: argparse.Namespace) -> None:
    """Take the name of the table back from ``--drop a b TABLE``, and make one list of what is to be dropped."""
    groups: list[list[str]] = options.drop
    if options.table is None:
        taken = next((group for group in groups if len(group) > 1 and is_table(group[-1])), None)
        if taken is None:
            options.fail("the following arguments are required: TABLE")
        else:
            options.table = taken.pop()
    options.drop = [name for group in groups for name in group]


def is_table(text: str) -> bool:
    """Whether a word names a table rather than a column: a data set, a file that exists, or a known ending."""
    return text.replace("-", "_") in SHIPPED or os.path.exists(text) or find_format(Path(text)) is not None


def names_of(table: str, option: str, values: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns that the values of an option name: each is a name, or several with commas between."""
    names: list[str] = []
    for value in values:
        parts = [value] if value in columns else [part.strip() for part in next(csv.reader([value]), [""])]
        absent = next((part for part in parts if part not in columns), None)
        if absent is not None:
            raise absent_column(table, option, absent, columns)
        names += parts
    return list(dict.fromkeys(names))


def command(arguments: Sequence[str], advice: Advice) -> str:
    """The command that was given, with options that deal with all columns: to paste."""
    words = ["biclique", *arguments]
    for option, names in (("--id", advice.id), ("--drop", advice.drop), ("--categorical", advice.categorical)):
        plain = [name for name in names if name and "," not in name and '"' not in name and name == name.strip()]
        for value in [",".join(plain)] * bool(plain) + [name for name in names if name not in plain]:
            words += [f"{option}={value}"] if value.startswith("-") else [option, value]
    choices = {
        "--decimal": "," if advice.decimal else None,
        "--date-order": advice.date_order,
        "--dates": "ordinal" if advice.year_last else advice.dates,
        "--missing": advice.missing,
    }
    for option, choice in choices.items():
        words += [option, choice] if choice is not None else []
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
