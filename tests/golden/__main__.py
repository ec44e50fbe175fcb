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

from tests.golden.record import Record, differences

ROOT = Path(__file__).parents[2]


def run_tree(tree: Path, options: argparse.Namespace) -> dict[str, Record]:
    """The records of all cases with the source of ``tree``; the cases are always those of the working tree."""
    start = time.perf_counter()
    paths = os.pathsep.join([str(tree / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    # The Python of a virtual environment is a link, which must stay one.
    command = [os.path.abspath(options.python), "-m", "tests.golden.worker", str(tree), options.only]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{part}.pickle" for part in range(options.jobs)]
        started = [
            subprocess.Popen([*command, str(file), f"{part}/{len(files)}"], env=environment, cwd=folder)
            for part, file in enumerate(files)
        ]
        if any([process.wait() for process in started]):
            raise SystemExit(f"the cases did not run to their end with the source of {tree}")
        records = {name: record for file in files for name, record in pickle.loads(file.read_bytes()).items()}
    print(f"{tree}: {len(records)} cases in {time.perf_counter() - start:.0f} s", flush=True)
    return records


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
    print(f"{len(old)} cases: {len({case for case, _, _ in found})} differ")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
