"""``python -m biclique``: the command line, also if the command itself is not on the path."""

import sys

from biclique.cli import command

if __name__ == "__main__":
    sys.exit(command())
