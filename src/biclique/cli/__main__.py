"""``python -m biclique.cli``."""

import sys

from biclique.cli import command

if __name__ == "__main__":
    sys.exit(command())
