"""``python -m tests.fuzz [READER ...] --files 10000``: the campaigns, as long as wanted."""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path

from tests.fuzz.campaign import run
from tests.fuzz.readers import READERS

ROOM = 2**31
"""Bytes that a campaign may take beyond what the imports took: more is a MemoryError, which is a failure."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("readers", nargs="*", help=f"all by default: {', '.join(READERS)}")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, now + ROOM))
    failed = []
    for name in options.readers or READERS:
        with tempfile.TemporaryDirectory() as folder:
            failed.append(run(READERS[name], options.files, options.seed, Path(folder)).show(name))
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main())
