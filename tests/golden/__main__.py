"""Golden results of a commit and of the working tree, compared: ``python -m tests.golden --base COMMIT``."""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path

import biclique
from tests.golden.cases import CASES
from tests.golden.record import Record, differences, run_case

ROOT = Path(__file__).parents[2]


def write_records(tree: Path, pattern: str, part: int, parts: int, file: Path) -> None:
    """The records of a share of the cases, in a process of its own."""
    if not Path(biclique.__file__).resolve().is_relative_to(tree.resolve()):
        raise SystemExit(f"biclique comes from {biclique.__file__}, not from {tree}: the environment hides PYTHONPATH")
    chosen = [case for case in CASES.values() if fnmatchcase(case.name, pattern) and not case.lacks()]
    file.write_bytes(pickle.dumps({case.name: run_case(case) for case in chosen[part::parts]}))


def run_tree(tree: Path, options: argparse.Namespace) -> dict[str, Record]:
    """The records of all cases with the source of ``tree``; the cases are always those of the working tree."""
    paths = os.pathsep.join([str(tree / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    # The Python of a virtual environment is a link, which must stay one.
    command = [os.path.abspath(options.python), "-m", "tests.golden", "--worker", str(tree), options.only]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{part}.pickle" for part in range(options.jobs)]
        started = [
            subprocess.Popen([*command, str(part), str(len(files)), str(file)], env=environment, cwd=folder)
            for part, file in enumerate(files)
        ]
        if any([process.wait() for process in started]):
            raise SystemExit(f"the cases did not run to their end with the source of {tree}")
        return {name: record for file in files for name, record in pickle.loads(file.read_bytes()).items()}


def main() -> int:
    """Print one line a difference and a summary; 1 if a case differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--base", metavar="COMMIT", required=True, help="compare the working tree with this commit")
    parser.add_argument("--only", metavar="PATTERN", default="*", help="cases whose name matches, such as 'device*'")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--python", default=sys.executable, help="that runs the cases, such as that of torch")
    options = parser.parse_args()
    archived = ["git", "archive", f"{options.base}^{{commit}}", "src"]
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(archived, cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        old = run_tree(Path(folder), options)
    new = run_tree(ROOT, options)
    found = [(case, name, how) for case in old for name, how in differences(old[case], new[case])]
    for case, name, how in found:
        print(f"{case}: {name} {how}")
    print(f"{len(old)} of {len(CASES)} cases ran: {len({case for case, _, _ in found})} differ")
    return int(bool(found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        tree, pattern, part, parts, file = sys.argv[2:]
        write_records(Path(tree), pattern, int(part), int(parts), Path(file))
    else:
        sys.exit(main())
