"""Seconds to read tables: text against pandas, and how they grow with the number of fields.

``python benchmarks/read_table.py`` prints both. ``--peer`` prints the first table alone: 500,000 rows of 16 columns,
plain and packed by gzip, each beside ``pandas.read_csv`` of the same file, in turns, the best of seven. The last column
is the ratio of CPU seconds: it is the one to look at if other programs run.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from biclique.tables.reading import read_table

WIDE = [(4, columns) for columns in (1_000, 4_000, 16_000, 64_000)]
TALL = [(rows, 10) for rows in (10_000, 50_000, 100_000, 500_000)]
PEER = (500_000, 16)
REPEATS = 7


def write(path: Path, X: np.ndarray) -> None:
    names = ",".join(f"c{j}" for j in range(X.shape[1]))
    np.savetxt(path, X, fmt="%.6f", delimiter=",", header=names, comments="")


def seconds(readers: list[Callable[[], np.ndarray]], expected: np.ndarray) -> list[tuple[float, float]]:
    """The best wall and CPU seconds of each reader, which take turns, if what they read is right."""
    best = [(np.inf, np.inf)] * len(readers)
    for _ in range(REPEATS):
        for i, read in enumerate(readers):
            start, cpu = time.perf_counter(), time.process_time()
            found = read()
            wall, cpu = time.perf_counter() - start, time.process_time() - cpu
            best[i] = min(best[i][0], wall), min(best[i][1], cpu)
            if not np.array_equal(found, expected):
                raise SystemExit("what was read is not what was written")
    return best


def against_pandas(folder: Path) -> None:
    X = np.random.default_rng(0).normal(size=PEER).round(6)
    plain, packed = folder / "t.csv", folder / "t.csv.gz"
    write(plain, X)
    with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target)
    print(f"{PEER[0]} rows of {PEER[1]} columns, best of {REPEATS}")
    print(f"{'file':>9} {'ours [s]':>9} {'pandas [s]':>11} {'ratio':>6} {'of CPU':>7}")
    for path in (plain, packed):
        readers = [lambda path=path: pd.read_csv(path).to_numpy(), lambda path=path: read_table(path).X]
        (peer, peer_cpu), (wall, cpu) = seconds(readers, X)
        print(f"{path.name:>9} {wall:>9.3f} {peer:>11.3f} {wall / peer:>6.2f} {cpu / peer_cpu:>7.2f}")


def by_size(folder: Path) -> None:
    random = np.random.default_rng(0)
    print(f"{'rows':>8} {'columns':>8} {'.csv [s]':>10} {'.npy [s]':>10} {'.csv [us a field]':>18}")
    for rows, columns in WIDE + TALL:
        X = random.normal(size=(rows, columns)).round(6)
        text, array = folder / "s.csv", folder / "s.npy"
        write(text, X)
        np.save(array, X)
        rest = np.delete(X, 1, axis=1)
        readers = [
            lambda text=text: read_table(text, drop=["c1"]).X,
            lambda array=array: read_table(array, drop=["1"]).X,
        ]
        (csv, _), (npy, _) = seconds(readers, rest)
        print(f"{rows:>8} {columns:>8} {csv:>10.3f} {npy:>10.3f} {1e6 * csv / X.size:>18.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", action="store_true", help="only against pandas")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        against_pandas(Path(folder))
        if not options.peer:
            by_size(Path(folder))


if __name__ == "__main__":
    main()
