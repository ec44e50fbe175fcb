"""One run of the command line, from its arguments to its exit code; every error becomes one line."""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from typing import Any, NoReturn

import biclique.cli.signals as signals
from biclique import __version__
from biclique.cli.output import (
    EXIT_CODES,
    EXIT_DATA,
    EXIT_FAILURE,
    EXIT_MEMORY,
    EXIT_OK,
    EXIT_SIGNAL,
    EXIT_USAGE,
    STDOUT,
    block,
    fail,
    flush,
    printed,
)

TRACEBACK = "BICLIQUE_TRACEBACK"
"""The environment variable that shows where an error came from."""
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
examples:
  biclique cluster customers.csv -k 5 -o labels.csv        cluster the rows of a table
  biclique cluster customers.csv -k select                 without knowing the number of clusters
  biclique cluster customers.csv -k 5 --save m.skops       keep the model,
  biclique predict m.skops new.csv -o labels.csv           and label new rows with it
  biclique hypergraph cluster papers.csv -k 3              cluster what is tied by groups, such as authors
  biclique info                                            what this machine has
"""
OVERVIEW = f"""\
biclique clusters the rows of a table, or the vertices of a hypergraph. What people do:

{EXAMPLES.partition(chr(10))[2]}
biclique COMMAND --help has every option and examples;
commands: {", ".join(COMMANDS)}."""


def run(arguments: Sequence[str], *, alone: bool = False) -> int:
    """The exit code. Wrong options and --help raise SystemExit, as argparse does.

    ``alone``: as the only thing that this process does, so that nothing that comes later can spoil its exit code.
    """
    with signals.listening(alone=alone):
        if not alone:
            return _guarded(arguments)
        for number in range(3):
            try:
                os.fstat(number)
            except OSError:  # closed: the next file that is opened must not become standard output
                os.open(os.devnull, os.O_RDWR)
        code = _guarded(arguments)
    if code > EXIT_SIGNAL:
        os._exit(code)  # threads may be in the middle of a product: wait for none
    return code


def _guarded(arguments: Sequence[str]) -> int:
    with _standard_streams() as closed:
        try:
            try:
                code = _work(arguments, closed)
            finally:
                if sys.exc_info()[0] in (None, SystemExit):
                    flush()
        except SystemExit:
            raise
        except BaseException as error:
            signals.Heard.listening = False
            code = _explain(error)
            if code < EXIT_SIGNAL:  # a reader that was interrupted may read no more
                _flush_or_drop()
        return code


def _work(arguments: Sequence[str], closed: bool) -> int:
    if not arguments:
        block(OVERVIEW)
        return EXIT_OK
    parser = make_parser(arguments[0])
    given = vars(parser.parse_args(arguments))
    from biclique.exceptions import BicliqueError, DataError, ParameterError
    from biclique.progress import start_clock
    from biclique.tables.atomic_files import files

    files.placed = files.partial = None
    start_clock()
    command = given.pop("chosen")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    try:
        options = command.options.read({"arguments": tuple(arguments), **values})
    except argparse.ArgumentError as error:
        parser.error(str(error))
    if closed and not any(getattr(options, name, None) for name in ("output", "save", "target", "quiet", "report")):
        raise OSError(errno.EBADF, "standard output is closed, and the result would be lost: write it to a file")
    to_stdout = getattr(options, "output", None) == STDOUT
    with redirect_stdout(sys.stderr if to_stdout else sys.stdout):  # labels go to standard output alone
        try:
            try:
                options.check()
            except DataError as error:  # a wrong name of an output is a wrong option
                raise ParameterError(*error.args) from error
            return command.run(options) or EXIT_OK
        except BicliqueError as error:
            error.args = (options.explained(error),)
            raise


class _Parser(argparse.ArgumentParser):
    """argparse repeats what it was given, prints all options before an error, and says nothing if it cannot print."""

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
        epilog=f"{EXAMPLES}\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"biclique {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == word:
            import_module(f"biclique.cli.{name}_command").add_to(command)
    return parser


# Standard output and standard error


@contextmanager
def _standard_streams() -> Iterator[bool]:
    """Streams that can be written to, and whether standard output was closed."""
    closed = sys.stdout is None
    with ExitStack() as stack:
        for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
            if stream is None:
                nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                stack.enter_context(redirect(nowhere))
            elif isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a console without Greek letters shows "?" for them
        yield closed


def _flush_or_drop() -> None:
    """Python flushes again at the end, and would complain in its own words: give it a place that takes everything."""
    try:
        flush()
    except OSError:
        with suppress(Exception):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)


# Errors in words


def _explain(error: BaseException) -> int:
    """Say what went wrong, and return the exit code."""
    number = signals.Heard.number or (signal.SIGINT if isinstance(error, KeyboardInterrupt) else None)
    written = _written()
    if number is not None:  # an import that is interrupted can raise anything
        return fail(f"{signals.WORDS[number]}; {written or 'nothing was written'}", EXIT_SIGNAL + number)
    if isinstance(error, BrokenPipeError):
        return EXIT_OK  # whoever read our output has seen enough
    if os.environ.get(TRACEBACK):
        with suppress(OSError):
            traceback.print_exception(error)
    message, code = _in_words(error)
    return fail(f"{message}; {written}" if written else message, code)


def _written() -> str:
    """What became of the output; empty if there is none."""
    files = getattr(sys.modules.get("biclique.tables.atomic_files"), "files", None)
    if files is None:
        return ""
    files.discard()
    if files.placed is not None:
        return f"{files.placed} was written and is complete"
    return f"{files.partial} may have got a part of the output" if files.partial is not None else ""


def _in_words(error: BaseException) -> tuple[str, int]:
    try:
        from biclique.exceptions import BicliqueError, MemoryLimitError, ParameterError
    except ImportError:
        return f"cannot start ({error}): install again with pip install biclique", EXIT_FAILURE
    text = str(error)
    match error:
        case MemoryLimitError():
            return text, EXIT_MEMORY
        case MemoryError():
            why = f" ({text})" if text else ""
            return f"not enough memory{why}: take fewer rows or columns, or free some", EXIT_MEMORY
        case ParameterError() | NotImplementedError():
            return text, EXIT_USAGE
        case UnicodeEncodeError():
            return f"{error.object[error.start : error.end]!r} cannot be written as {error.encoding}", EXIT_DATA
        case ValueError():
            return text, EXIT_DATA
        case RecursionError():
            return "the data are nested too deeply to be read", EXIT_DATA
        case OverflowError():
            return f"a number in the options or the data is too large ({text})", EXIT_DATA
        case OSError():
            return (error.strerror if error.strerror and error.filename is None else text), EXIT_FAILURE
        case BicliqueError():
            return text, EXIT_FAILURE
        case _:
            what = f"{type(error).__name__}: {text}" if text else type(error).__name__
            return f"{what}; this is a bug; run with {TRACEBACK}=1 to see where", EXIT_FAILURE
