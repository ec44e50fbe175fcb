"""One run of the command line, from its arguments to its exit code; every error becomes one line."""

import argparse
import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from typing import Any, NoReturn

import biclique.cli.signals as signals
from biclique import __version__
from biclique.cli.output import EXIT_CODES, EXIT_FAILURE, EXIT_OK, EXIT_SIGNAL, EXIT_USAGE, block, fail, flush, printed

COMMANDS = {
    "cluster": "cluster the rows of a table",
    "predict": "label new rows with a saved model",
    "report": "write a page about a saved model and a table",
    "hypergraph": "cluster, convert or describe a hypergraph",
    "reproduce": "regenerate the paper's tables and figures",
    "info": "versions, threads, BLAS, CPU, devices, extras and memory",
}
"""Each is a module of this folder."""
EXAMPLES = """\
  biclique cluster customers.csv -k 5 -o labels.csv        cluster the rows of a table
  biclique cluster customers.csv -k select                 without knowing the number of clusters
  biclique cluster customers.csv -k 5 --save m.skops       keep the model,
  biclique predict m.skops new.csv -o labels.csv           and label new rows with it
  biclique hypergraph cluster papers.csv -k 3              cluster what is tied by groups, such as authors
  biclique info                                            what this machine has
"""
OVERVIEW = f"""\
biclique clusters the rows of a table, or the vertices of a hypergraph. What people do:

{EXAMPLES}
biclique COMMAND --help has every option and examples;
commands: {", ".join(COMMANDS)}."""


def run(arguments: Sequence[str], *, alone: bool = False) -> int:
    """The exit code. Wrong options and --help raise SystemExit, as argparse does.

    ``alone``: as the only thing that this process does, so that it listens to signals.
    """
    if not alone:
        return _guarded(arguments)
    signals.listen()
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # closed: the next file that is opened must not become standard output
            os.open(os.devnull, os.O_RDWR)
    try:
        return _guarded(arguments)
    finally:
        signals.ignore()


def _guarded(arguments: Sequence[str]) -> int:
    """Run with streams that can be written to, and turn every error into its line and exit code."""
    closed = sys.stdout is None
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(sys.stdout or nowhere),
        redirect_stderr(sys.stderr or nowhere),
    ):
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a console without Greek letters shows "?" for them
        try:
            try:
                if arguments:
                    given = vars(make_parser(arguments[0]).parse_args(arguments))
                    given.pop("command").work(arguments, given, closed)
                else:
                    block(OVERVIEW)
            finally:
                if sys.exc_info()[0] in (None, SystemExit):
                    flush()
        except SystemExit:
            raise
        except BaseException as error:
            code = _explain(error)
            _flush_or_drop()
            return code
    return EXIT_OK


class _Parser(argparse.ArgumentParser):
    """argparse repeats what it was given, prints all options before an error, and says nothing if it cannot print."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """A word that a command does not know is an error of this command, not of ``biclique``."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"{self.prog}: error: {printed(message)}; usage: {self.prog} --help\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            block(message.removesuffix("\n"), file or sys.stderr)


def make_parser(word: str) -> argparse.ArgumentParser:
    """The parser. Only the command of this word is imported, and has its options."""
    parser = _Parser(
        prog="biclique",
        description="Clustering through multi-way similarity.",
        epilog=f"examples:\n{EXAMPLES}\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"biclique {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == word:
            import_module(f"biclique.cli.{name}_command").add_to(command)
    return parser


def _flush_or_drop() -> None:
    """Python flushes again at the end, and would complain in its own words: give it a place that takes everything."""
    try:
        flush()
    except OSError:
        with suppress(Exception), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


# Errors


def _explain(error: BaseException) -> int:
    """Say what went wrong, and return the exit code. Notes of an error are lines of their own."""
    outcome = signals.outcome()
    if isinstance(error, KeyboardInterrupt):  # of Python, which listens if we are not alone
        return fail(f"interrupted; {outcome or 'nothing was written'}", EXIT_SIGNAL + signal.SIGINT)
    if isinstance(error, BrokenPipeError):
        return EXIT_OK  # whoever read our output has seen enough
    try:
        from biclique.cli.error_words import TRACEBACK, in_words
    except ImportError:
        return fail(f"cannot start ({error}): install again with pip install biclique", EXIT_FAILURE)
    if os.environ.get(TRACEBACK):
        with suppress(OSError):
            traceback.print_exception(error)
    message, code = in_words(error)
    return fail(f"{message}; {outcome}" if outcome else message, code, getattr(error, "__notes__", []))
