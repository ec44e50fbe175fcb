"""``python -m biclique.cli``."""

import sys

from biclique.cli import main

if __name__ == "__main__":
    sys.exit(main())
