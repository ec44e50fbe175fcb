"""Options of the command line: one field of a frozen dataclass each, with its flags, its kind and its help.

An option that was not given is not there after parsing: the dataclass has the default, and parameters of an estimator
have none but its own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import warnings
from argparse import SUPPRESS
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from inspect import signature
from typing import Any, Generic, Self, TypeVar

from biclique.cli.output import EXIT_CODES, STDOUT, block, print_warnings
from biclique.exceptions import Argument, BicliqueError, BicliqueWarning, ParameterError
from biclique.progress import PLAIN_SECONDS
from biclique.spectral.assign import ASSIGNERS
from biclique.tables.atomic_files import is_stream

WORDS = {"True": "yes", "False": "no"}
"""Values of Python, as options have them."""
RAW = argparse.RawDescriptionHelpFormatter
MODEL = "the model"
WORK = "the work"
EDGE_LIST = "columns of an edge list"
TABLE = "the table"
GROUPS = {
    TABLE: None,
    EDGE_LIST: """\
For .csv and .tsv files whose columns are not called edge and vertex.

One line for each author of a paper, with the header paper,author,year:
  --edge-column paper --vertex-column author
One line for each paper, with the header title,authors and lists like Ann;Bob;Cy:
  --vertex-column authors --separator ';'
No header, the edge in the first column and the vertex in the second:
  --no-header --edge-column 0 --vertex-column 1
""",
    MODEL: None,
    WORK: None,
}
"""Headings of the help, in their order, with what stands below them."""


def option(
    *flags: str,
    default: Any = None,
    group: str = "",
    parameter: bool = False,
    also: tuple[str, str, str] | None = None,
    **how: Any,
) -> Any:
    """A field that is an option, or without flags a positional argument; ``how`` is for argparse.

    parameter: its value goes to the estimator, under the name of the field.
    also: another flag, the value that it stands for, and its help.
    """
    return field(
        default=default, metadata={"flags": flags, "group": group, "parameter": parameter, "also": also, "how": how}
    )


switch = partial(option, default=False, action="store_true")
table_option = partial(option, group=TABLE)
model_option = partial(option, group=MODEL, parameter=True)
work_option = partial(option, group=WORK, parameter=True)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What was asked for: read once, never changed."""

    arguments: tuple[str, ...]
    """The words of the command, without ``biclique``."""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """From what argparse has found."""
        return cls(**given)

    def check(self) -> None:
        """Refuse, before any work, what cannot be done or written."""

    @property
    def command(self) -> str:
        return shlex.join(["biclique", *self.arguments])

    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator that were given."""
        asked = [one.name for one in fields(self) if one.metadata.get("parameter")]
        return {name: getattr(self, name) for name in asked if getattr(self, name) is not None}

    @cached_property
    def flags(self) -> dict[str, str]:
        """The longest flag of every option, by the name of its field."""
        return {one.name: max(one.metadata["flags"], key=len) for one in fields(self) if one.metadata.get("flags")}

    def in_words(self, text: str) -> str:
        """A message of the library in the words of the command line: ``gram='tiled'`` becomes ``--gram tiled``.

        What stands in quotes is somebody's text, such as the name of a column.
        """
        flags, names = self.flags, "|".join(self.flags)
        switches = [one.name for one in fields(self) if one.metadata.get("how", {}).get("action") == "store_true"]

        def given(found: re.Match[str]) -> str:
            value = "" if found[1] in switches else found[2] or WORDS.get(found[3], found[3]) or ""
            return f"{flags[found[1]]} {value}".rstrip()

        text = re.sub(rf"(?<!['\w])({names})=(?:'([^']*)'|([\w.+-]*\w)|…)", given, text)
        text = re.sub(rf"^({names})(?= must)", lambda m: flags[m[1]], text)
        several = "|".join(name for name in flags if "_" in name)
        return re.sub(rf"(?<!['\w])({several})(?!['\w])", lambda m: flags[m[1]], text)

    def explained(self, error: BicliqueError) -> str:
        """The message of an error in the words of the command line."""
        parts = [self.flags.get(part, part) if isinstance(part, Argument) else str(part) for part in error.args]
        return self.in_words("".join(parts))

    @contextmanager
    def caught_messages(self) -> Iterator[list[str]]:
        """Our warnings as a list of texts, which is filled when the block ends."""
        messages: list[str] = []
        with warnings.catch_warnings(record=True, action="always", category=BicliqueWarning) as caught:
            yield messages
        texts = [str(one.message) for one in caught if issubclass(one.category, BicliqueWarning)]
        messages.extend(map(self.in_words, texts))


@dataclass(frozen=True, kw_only=True)
class Quiet(Options):
    quiet: bool = switch("-q", "--quiet", group=WORK, help="print errors only")

    @property
    def verbose(self) -> int:
        """Of estimators: on a terminal a bar, elsewhere a line in so many seconds."""
        return 0 if self.quiet else PLAIN_SECONDS


@dataclass(frozen=True, kw_only=True)
class Json(Options):
    json: bool = switch("--json", group=WORK, help="print the result as JSON")

    def show(self, facts: dict[str, Any], in_lines: Callable[[dict[str, Any]], None]) -> None:
        """Print the facts as JSON or in lines."""
        if self.json:
            block(json.dumps(facts, indent=2, allow_nan=False))
        else:
            in_lines(facts)


@dataclass(frozen=True, kw_only=True)
class Printing(Json, Quiet):
    """A result, with the warnings among its facts."""

    def show(self, facts: dict[str, Any], in_lines: Callable[[dict[str, Any]], None]) -> None:
        if self.quiet and not self.json:
            return
        if not self.json:
            print_warnings(facts["warnings"])
        super().show(facts, in_lines)


# Values


def number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def whole_or(*words: str) -> Callable[[str], int | str]:
    """A whole number, or one of these words."""

    def read(text: str) -> int | str:
        if text in words:
            return text
        if not text.removeprefix("-").isdecimal():
            raise argparse.ArgumentTypeError(f"must be a whole number{' or '.join(['', *words])}, got {text!r}")
        return int(text)

    return read


def seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2**32 - 1, got {text!r}")
    return int(text)


def output_file(text: str) -> str:
    return STDOUT if text == "-" else text


@dataclass(frozen=True, kw_only=True)
class Assigning(Printing):
    """From the embedding to labels, and threads: the same for tables and hypergraphs."""

    assign_labels: str | None = model_option("--assign-labels", choices=ASSIGNERS, help="from the embedding to labels")
    n_init: int | None = model_option("--n-init", type=int, metavar="N", help="starts of k-means")
    random_state: int = model_option("--seed", default=0, type=seed, help="of everything random (default: 0)")
    eigen_tol: float | str | None = work_option(
        "--tol", type=number_or_word, help="of eigenpairs, relative to the eigengap"
    )
    n_jobs: int | None = work_option("--jobs", type=int, metavar="N", help="threads (default: every core)")


def check_apart(what: str, path: str, *others: str | None) -> None:
    """Refuse to write over another file of the same command. Pipes and devices take several outputs."""
    for other in filter(None, () if is_stream(path) else others):
        same = os.path.realpath(path) == os.path.realpath(other)
        if same or (os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)):
            raise ParameterError(f"{what} {path} is another file of this command: choose another name.")


# Commands

O = TypeVar("O", bound=Options)  # noqa: E741


@dataclass(frozen=True)
class Command(Generic[O]):
    """A word after ``biclique``: its options, and what it does."""

    run: Callable[[O], int | None]
    options: type[O]
    description: str
    examples: str
    estimator: Callable[..., Any] | None = None
    """Its signature has the defaults that the help names."""

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        parser.description = self.description
        parser.epilog = f"{self.examples}\n{EXIT_CODES}"
        parser.set_defaults(chosen=self)
        defaults = {} if self.estimator is None else signature(self.estimator).parameters
        used = {one.metadata.get("group") for one in fields(self.options)}
        groups: dict[str, Any] = {"": parser} | {
            name: parser.add_argument_group(name, text) for name, text in GROUPS.items() if name in used
        }
        for one in fields(self.options):
            if "flags" not in one.metadata:
                continue
            how = {"default": SUPPRESS, **one.metadata["how"]}
            default = defaults[one.name].default if one.metadata["parameter"] and one.default is None else None
            if default is not None and not how.get("required"):
                how["help"] += f" (default: {default})"
            group, flags = groups[one.metadata["group"]], one.metadata["flags"]
            group.add_argument(*flags, dest=one.name, **how) if flags else group.add_argument(one.name, **how)
            if one.metadata["also"] is not None:
                flag, const, text = one.metadata["also"]
                group.add_argument(flag, dest=one.name, action="store_const", const=const, default=SUPPRESS, help=text)
