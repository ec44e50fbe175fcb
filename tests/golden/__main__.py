"""Golden results of a commit and of the working tree, compared: ``python -m tests.golden --base COMMIT``.

``python -m tests.golden --write`` makes ``stored.json`` anew. That is allowed only if results were meant to change; the
commit then says which and why. It is never a way to make a failing test pass.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatchcase
from pathlib import Path

from tests.golden.compare import differences
from tests.golden.record import Record

ROOT = Path(__file__).parents[2]

ALLOWED: dict[str, str] = {
    "*/neighbors: cost*": "the cost of a neighbour graph is that of the distinct rows, which are fitted",
    "shape/equal/*: cost*": "where all rows are equal, no eigenvector is sought",
    "shape/blobs/one cluster: cost*": "where one cluster is asked for, no eigenvector is sought",
    "kernel k-means/*/tiled: cost*": "where the start is random, no eigenvector is sought",
    "select/n_clusters/*: k_selection_.*": "fewer clusters than parts of the neighbour graph are left out",
    "*: rows_left_out_*": "the numbers of rows that were left out are new",
    "rare/*: warnings": "one warning about fewer clusters for every estimator, which says how labels run",
}
"""Differences that are meant: a pattern of ``case: value`` -> the reason. Empty it when they have landed."""


def run_tree(tree: Path, options: argparse.Namespace) -> dict[str, Record]:
    """The records of all cases with the source of ``tree``; the cases are always those of the working tree."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(ROOT)]),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{part}.pickle" for part in range(options.jobs)]
        started = [
            subprocess.Popen(
                [
                    options.python,
                    "-m",
                    "tests.golden.worker",
                    str(tree),
                    str(file),
                    options.only,
                    f"{part}/{len(files)}",
                ],
                env=environment,
                cwd=folder,
            )
            for part, file in enumerate(files)
        ]
        if any([process.wait() for process in started]):
            raise SystemExit(f"the cases did not run to their end with the source of {tree}")
        return {name: record for file in files for name, record in pickle.loads(file.read_bytes()).items()}


def compare_trees(options: argparse.Namespace) -> int:
    commit = subprocess.run(
        ["git", "rev-parse", "--verify", f"{options.base}^{{commit}}"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        old = _timed(f"base {commit[:10]}", Path(folder), options)
    new = _timed("working tree", ROOT, options)
    return report(old, new)


def _timed(name: str, tree: Path, options: argparse.Namespace) -> dict[str, Record]:
    start = time.perf_counter()
    records = run_tree(tree, options)
    print(f"{name}: {len(records)} cases in {time.perf_counter() - start:.0f} s", flush=True)
    return records


def report(old: dict[str, Record], new: dict[str, Record]) -> int:
    """Print one line a difference and a summary; 1 if any difference is not allowed."""
    changed, refused, allowed = set(), 0, 0
    for case in old:
        for name, how in differences(old[case], new[case]):
            place = f"{case}: {name}"
            reason = next((why for pattern, why in ALLOWED.items() if fnmatchcase(place, pattern)), None)
            print(f"{place} {how}" + (f" (allowed: {reason})" if reason else ""))
            changed.add(case)
            allowed += reason is not None
            refused += reason is None
    failed = sum("error" in record or "raises" in record for record in new.values())
    print(
        f"{len(old)} cases, {failed} of them refusals; {len(changed)} differ, in {refused + allowed} values, "
        f"{allowed} of these allowed"
    )
    return int(refused > 0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--base", metavar="COMMIT", help="compare the working tree with this commit")
    action.add_argument("--write", action="store_true", help="make stored.json anew from the working tree")
    parser.add_argument("--only", metavar="PATTERN", default="*", help="cases whose name matches, such as 'device*'")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--python", default=sys.executable, help="the Python that runs the cases, such as that of torch"
    )
    options = parser.parse_args()
    if options.write:
        from tests.golden.stored import write

        write()
        return 0
    return compare_trees(options)


if __name__ == "__main__":
    sys.exit(main())
