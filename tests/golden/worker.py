"""Runs a share of the cases: ``python -m tests.golden.worker TREE PATTERN FILE PART/PARTS``, from ``__main__.py``."""

from __future__ import annotations

import pickle
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import biclique
from tests.golden.cases import CASES
from tests.golden.record import run_case


def main(tree: str, pattern: str, file: str, share: str) -> None:
    if not Path(biclique.__file__).resolve().is_relative_to(Path(tree).resolve()):
        raise SystemExit(f"biclique comes from {biclique.__file__}, not from {tree}: the environment hides PYTHONPATH")
    part, parts = map(int, share.split("/"))
    chosen = [case for case in CASES.values() if fnmatchcase(case.name, pattern)]
    lacking = [case for case in chosen if case.lacks()]
    if lacking and part == 0:
        packages = sorted({package for case in lacking for package in case.lacks()})
        print(f"{len(lacking)} cases are skipped without {', '.join(packages)}", flush=True)
    chosen = [case for case in chosen if not case.lacks()]
    Path(file).write_bytes(pickle.dumps({case.name: run_case(case) for case in chosen[part::parts]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
