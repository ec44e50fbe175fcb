"""The command line: parse, call, print.

Nothing is imported here but what Python has imported already: Ctrl-C must be heard from the first line on.
"""

import os
import sys


def main(arguments: list[str] | None = None, *, alone: bool = False) -> int:
    """Run the command line and return its exit code. Wrong options and --help raise SystemExit, as argparse does.

    ``alone``: as the only thing that this process does.
    """
    try:
        from biclique.cli.run import run

        return run(sys.argv[1:] if arguments is None else arguments, alone=alone)
    except KeyboardInterrupt:  # before there was a handler
        if sys.stderr is not None:
            sys.stderr.write("biclique: error: interrupted; nothing was written\n")
        if alone:
            os._exit(130)
        return 130


def command() -> int:
    """What the shell calls."""
    return main(alone=True)
