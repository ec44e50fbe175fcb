"""The command line: parse, call, print.

Nothing is imported here but what Python has imported already: Ctrl-C must be heard from the first line on.
"""

import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code. Wrong options and --help raise SystemExit, as argparse does."""
    try:
        from biclique.cli.run import run

        return run(arguments)
    except KeyboardInterrupt:  # before there was a handler
        if sys.stderr is not None:
            sys.stderr.write("biclique: error: interrupted; nothing was written\n")
        return 130


def command() -> int:
    """What the shell calls: ``main``, as the only thing that this process does."""
    try:
        from biclique.cli.run import run_process

        return run_process()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("biclique: error: interrupted; nothing was written\n")
        os._exit(130)
