"""Golden results of a commit and of the working tree, compared: ``python -m tests.golden --base COMMIT``."""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.golden.compare import differences
from tests.golden.record import Record

ROOT = Path(__file__).parents[2]


def run_tree(tree: Path, options: argparse.Namespace) -> dict[str, Record]:
    """The records of all cases with the source of ``tree``; the cases are always those of the working tree."""
    start = time.perf_counter()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(ROOT)]),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{part}.pickle" for part in range(options.jobs)]
        # The Python of a virtual environment is a link, which must stay one.
        command = [os.path.abspath(options.python), "-m", "tests.golden.worker", str(tree)]
        started = [
            subprocess.Popen([*command, str(file), options.only, f"{part}/{len(files)}"], env=environment, cwd=folder)
            for part, file in enumerate(files)
        ]
        if any([process.wait() for process in started]):
            raise SystemExit(f"the cases did not run to their end with the source of {tree}")
        records = {name: record for file in files for name, record in pickle.loads(file.read_bytes()).items()}
    print(f"{tree}: {len(records)} cases in {time.perf_counter() - start:.0f} s", flush=True)
    return records


def compare_trees(options: argparse.Namespace) -> int:
    """Print one line a difference and a summary; 1 if a case differs."""
    archived = ["git", "archive", f"{options.base}^{{commit}}", "src"]
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(archived, cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        old = run_tree(Path(folder), options)
    new = run_tree(ROOT, options)
    changed: set[str] = set()
    for case in old:
        for name, how in differences(old[case], new[case]):
            print(f"{case}: {name} {how}")
            changed.add(case)
    print(f"{len(old)} cases: {len(changed)} differ")
    return int(bool(changed))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__.splitlines()[0])
    parser.add_argument("--base", metavar="COMMIT", required=True, help="compare the working tree with this commit")
    parser.add_argument("--only", metavar="PATTERN", default="*", help="cases whose name matches, such as 'device*'")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--python", default=sys.executable, help="the Python that runs the cases, such as that of torch"
    )
    return compare_trees(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
