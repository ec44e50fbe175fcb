"""The command line: parse, call, print."""

from __future__ import annotations

import argparse
import io
import signal
import sys
import threading
from collections.abc import Sequence

from biclique import __version__
from biclique.cli import hypergraph, reproduce, table
from biclique.cli.common import (
    EXIT_DATA,
    EXIT_FAILURE,
    EXIT_INTERRUPT,
    EXIT_MEMORY,
    EXIT_OK,
    EXIT_TERMINATED,
    EXIT_USAGE,
)
from biclique.exceptions import BicliqueError, DataError, MemoryLimitError, ParameterError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console without Greek letters shows "?" for them
    options = _parser().parse_args(arguments)
    if threading.current_thread() is threading.main_thread():
        # As an exception, so that no half-written file stays behind.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written", EXIT_INTERRUPT)
    except BrokenPipeError:
        return EXIT_OK  # whoever read our output has seen enough
    except MemoryLimitError as error:
        return _fail(str(error), EXIT_MEMORY)
    except (ParameterError, NotImplementedError) as error:
        return _fail(str(error), EXIT_USAGE)
    except (DataError, ValueError) as error:
        return _fail(str(error), EXIT_DATA)
    except OSError as error:
        return _fail(error.strerror if error.strerror and error.filename is None else str(error), EXIT_FAILURE)
    except BicliqueError as error:
        return _fail(str(error), EXIT_FAILURE)


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"biclique: error: {message}\n")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="biclique", description="Clustering through multi-way similarity.")
    parser.add_argument("--version", action="version", version=f"biclique {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    table.add_command(commands)
    hypergraph.add_command(commands)
    reproduce.add_command(commands)
    return parser
