"""Options of the command line: one field of a frozen dataclass each, with its flags and its help.

The annotation of a field says how its text is read. An option that was not given is not there after parsing: the
dataclass has the default, and parameters of an estimator have none but its own.
"""

import argparse
import errno
import json
import os
import re
import shlex
import sys
import warnings
from argparse import SUPPRESS
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field, fields
from functools import partial
from inspect import formatannotation, signature
from pathlib import Path
from typing import Any, Self

from biclique.cli.output import EXIT_CODES, STDOUT, block, print_lines
from biclique.exceptions import BicliqueError, BicliqueWarning, DataError, ParameterError
from biclique.progress import PLAIN_SECONDS, start_clock
from biclique.spectral.assign import ASSIGNERS
from biclique.tables.atomic_files import files, is_stream

WORDS = {"True": "yes", "False": "no"}
"""Values of Python, as options have them."""
ADVICE = {
    "for example with sklearn.preprocessing.StandardScaler": "for example with --scale standard",
    "(sklearn.preprocessing.StandardScaler)": "(--scale standard)",
}
"""What the library advises, as the command line does it, if it scales columns."""
PYTHON_ALONE = " (add -X.min() to X)"
"""Advice that no option follows."""
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


def number_or_word(text: str) -> int | float | str:
    """``12``, ``2.5``, or a word such as ``auto``, which the estimator checks."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def whole_number(text: str) -> int:
    """``12``"""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs a whole number, such as 3, got {text!r}") from None


def number(text: str) -> float:
    """``2.5``"""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs a number, such as 0.5, got {text!r}") from None


READ: dict[str, dict[str, Any]] = {
    "bool": {"action": "store_true"},
    "int": {"type": whole_number, "metavar": "N"},
    "int | str": {"type": number_or_word, "metavar": "N"},
    "float": {"type": number},
    "float | str": {"type": number_or_word},
}
"""What argparse does with an option, by the annotation of its field without None."""


def option(
    help: str,
    *flags: str,
    default: Any = None,
    group: str = "",
    also: tuple[str, str, str] | None = None,
    reads: bool = False,
    writes: Callable[[str], None] | None = None,
    **how: Any,
) -> Any:
    """A field that is an option, or without flags a positional argument; ``how`` is for argparse.

    also: the help of another flag, the flag, and the value that it stands for.
    reads, writes: it is the name of a file that is read, or written if this function does not refuse it.
    """
    metadata = {"flags": flags, "group": group, "also": also, "reads": reads, "writes": writes}
    named = {"metavar": "FILE"} if reads or writes is not None else {}
    return field(default=default, metadata={**metadata, "how": {"help": help, **named, **how}})


switch = partial(option, default=False)
table_option = partial(option, group=TABLE)
model_option = partial(option, group=MODEL)
work_option = partial(option, group=WORK)


def _is_same(path: str, other: str) -> bool:
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def _without_folder(word: str) -> str:
    option, equals, value = word.rpartition("=")
    return f"{option}{equals}{Path(value).name}" if Path(value).is_absolute() else word


@dataclass(frozen=True, kw_only=True)
class Options:
    """What was asked for: read once, never changed."""

    arguments: tuple[str, ...]
    """The words of the command, without ``biclique``."""

    quiet = False
    json = False

    @property
    def folder(self) -> str | None:
        """The output, if it is not one file."""
        return None

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """From what argparse has found."""
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})

    def check(self) -> None:
        """Refuse, before any work, what cannot be done or written. No file is written over another of the command."""
        asked = [one for one in fields(self) if one.metadata]
        taken = [getattr(self, one.name) for one in asked if one.metadata["reads"]]
        for one in asked:
            path, check = getattr(self, one.name), one.metadata["writes"]
            if check is not None and path not in (None, self.folder):
                check(path)
                if not is_stream(path) and any(_is_same(path, other) for other in taken):
                    name = self.flags().get(one.name, one.name.upper())
                    raise ParameterError(f"{name} {path} is another file of this command: choose another name.")
                taken.append(path)

    @property
    def command(self) -> str:
        """The command for a page that others read: files without their folders, if these begin at the root."""
        return shlex.join(["biclique", *map(_without_folder, self.arguments)])

    @property
    def verbose(self) -> int:
        """Of estimators: on a terminal a bar, elsewhere a line in so many seconds."""
        return 0 if self.quiet else PLAIN_SECONDS

    def parameters(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Parameters of an estimator or another function that were given, by the options of the same names."""
        found = {name: getattr(self, name, None) for name in signature(function).parameters}
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def flags(cls) -> dict[str, str]:
        """The longest flag of every option, by the name of its field."""
        return {one.name: max(one.metadata["flags"], key=len) for one in fields(cls) if one.metadata.get("flags")}

    def in_words(self, text: str) -> str:
        """A message of the library in the words of the command line: ``gram='tiled'`` becomes ``--gram tiled``.

        What stands in quotes is somebody's text, such as the name of a column.
        """
        flags, names = self.flags(), "|".join(self.flags())
        switches = [one.name for one in fields(self) if one.type is bool]

        def given(found: re.Match[str]) -> str:
            value = "" if found[1] in switches else found[2] or WORDS.get(found[3], found[3]) or ""
            return f"{flags[found[1]]} {value}".rstrip()

        text = text.replace(PYTHON_ALONE, "")
        for python, option in ADVICE.items() if "scale" in flags else ():
            text = text.replace(python, option)
        text = re.sub(rf"(?<!['\w])({names})=(?:'([^']*)'|([\w.+-]*\w)|…)", given, text)
        text = re.sub(rf"^({names})(?= must)", lambda m: flags[m[1]], text)
        several = "|".join(name for name in flags if "_" in name)
        text = re.sub(rf"fit \w+\.({several})\(\)", lambda m: f"give {flags[m[1]]}", text)
        return re.sub(rf"(?<!['\w])({several})(?!['\w])", lambda m: flags[m[1]], text)


@dataclass(frozen=True, kw_only=True)
class Quiet(Options):
    """What can be silent."""

    quiet: bool = switch("print errors only", "-q", "--quiet", group=WORK)


@dataclass(frozen=True, kw_only=True)
class Json(Options):
    """What prints facts."""

    json: bool = switch("print the result as JSON", "--json", group=WORK)


@dataclass(frozen=True, kw_only=True)
class Assigning(Json, Quiet):
    """From the embedding to labels, and threads: the same for tables and hypergraphs."""

    assign_labels: str | None = model_option("from the embedding to labels", "--assign-labels", choices=ASSIGNERS)
    n_init: int | None = model_option("starts of k-means", "--n-init")
    random_state: int = model_option("of everything random (default: 0)", "--seed", default=0)
    eigen_tol: float | str | None = work_option("of eigenpairs, relative to the eigengap", "--tol")
    n_jobs: int | None = work_option("threads (default: every core)", "--jobs")


def output_file(text: str) -> str:
    """The name of a file, ``-`` for standard output."""
    return STDOUT if text == "-" else text


Facts = dict[str, Any]
"""What a command found, by stable keys: what ``--json`` prints."""
Warned = Callable[[], list[str]]
"""Gives the warnings until now, in the words of the command line."""


@dataclass(frozen=True)
class Command:
    """A word after ``biclique``: its options, what it does, and what it prints. Its help opens with their docstring."""

    options: type[Options]
    run: Callable[[Any, Warned], Facts]
    lines: Callable[[Facts], list[str]]
    examples: str
    estimator: Callable[..., Any] | None = None
    """Its signature has the defaults that the help names."""

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser the options of this command."""
        parser.description = self.options.__doc__
        parser.epilog = f"{self.examples}\n{EXIT_CODES}"
        parser.set_defaults(command=self)
        defaults = {} if self.estimator is None else signature(self.estimator).parameters
        asked = [one for one in fields(self.options) if one.metadata]
        used = {one.metadata["group"] for one in asked}
        groups: dict[str, Any] = {"": parser} | {
            name: parser.add_argument_group(name, text) for name, text in GROUPS.items() if name in used
        }
        for one in asked:
            flags, group = one.metadata["flags"], groups[one.metadata["group"]]
            kind = formatannotation(one.type).removesuffix(" | None")
            how = {"default": SUPPRESS, **READ.get(kind, {}), **one.metadata["how"]}
            default = defaults[one.name].default if one.name in defaults and one.default is None else None
            if default is not None and not how.get("required"):
                how["help"] += f" (default: {default})"
            group.add_argument(*flags, dest=one.name, **how) if flags else group.add_argument(one.name, **how)
            if one.metadata["also"] is not None:
                text, flag, const = one.metadata["also"]
                group.add_argument(flag, dest=one.name, action="store_const", const=const, default=SUPPRESS, help=text)

    def work(self, arguments: list[str], given: Mapping[str, Any], closed: bool) -> None:
        """Read the options, refuse what cannot be done, do the work, and print what was found.

        closed: standard output was closed before we came.
        """
        files.placed, files.partial, files.kept = None, None, ""
        start_clock()
        options = self.options.read({"arguments": arguments, **given})
        written = [getattr(options, one.name) for one in fields(options) if one.metadata.get("writes")]
        if closed and not (options.quiet or any(written)):
            raise OSError(errno.EBADF, "standard output is closed, and the result would be lost: write it to a file")
        to_stdout = getattr(options, "output", None) == STDOUT  # which then takes labels alone
        with warnings.catch_warnings(record=True, action="always", category=BicliqueWarning) as caught:

            def warned() -> list[str]:
                ours = [str(one.message) for one in caught if issubclass(one.category, BicliqueWarning)]
                return list(dict.fromkeys(map(options.in_words, ours)))

            try:
                with redirect_stdout(sys.stderr if to_stdout else sys.stdout):
                    try:
                        options.check()
                    except DataError as error:  # a wrong name of an output is a wrong option
                        raise ParameterError(str(error)) from error
                    facts = self.run(options, warned)
                    if options.json:
                        block(json.dumps(facts, indent=2, allow_nan=False))
                    elif not options.quiet:
                        texts = facts.get("warnings", warned())
                        print_lines([f"biclique: warning: {text}" for text in texts], sys.stderr)
                        print_lines(self.lines(facts))
            except BicliqueError as error:
                error.args = (options.in_words(str(error)),)
                raise
