"""Seconds to read tables of many columns and of many rows: they grow in proportion to the number of fields.

``python benchmarks/read_table.py`` prints them for .csv and .npy files.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from biclique.io import Roles, read_table

WIDE = [(4, columns) for columns in (1_000, 4_000, 16_000, 64_000)]
TALL = [(rows, 10) for rows in (10_000, 50_000, 100_000, 500_000)]


def seconds(path: Path, roles: Roles, shape: tuple[int, int]) -> float:
    start = time.perf_counter()
    table = read_table(path, roles)
    taken = time.perf_counter() - start
    if table.X.shape != shape:
        raise SystemExit(f"{path.name}: read {table.X.shape}, not {shape}")
    return taken


def main() -> None:
    random = np.random.default_rng(0)
    print(f"{'rows':>8} {'columns':>8} {'.csv [s]':>10} {'.npy [s]':>10} {'.csv [us a field]':>18}")
    with tempfile.TemporaryDirectory() as folder:
        for rows, columns in WIDE + TALL:
            X = random.normal(size=(rows, columns)).round(6)
            text, array = Path(folder) / "t.csv", Path(folder) / "t.npy"
            names = ",".join(f"c{j}" for j in range(columns))
            np.savetxt(text, X, fmt="%.6f", delimiter=",", header=names, comments="")
            np.save(array, X)
            shape = (rows, columns - 1)
            csv, npy = seconds(text, Roles(drop=["c1"]), shape), seconds(array, Roles(drop=["1"]), shape)
            print(f"{rows:>8} {columns:>8} {csv:>10.3f} {npy:>10.3f} {1e6 * csv / X.size:>18.2f}")


if __name__ == "__main__":
    main()
