"""How often labels change after a change of the rows that should not matter, beside k-means with ten starts.

    python benchmarks/robustness.py --data FOLDER              # 46 public sets, 14 generated sets, 120 tables
    python benchmarks/robustness.py                            # without the public sets
    python benchmarks/robustness.py --tables                   # the 120 tables alone
    python benchmarks/robustness.py --data FOLDER --every 10   # every tenth of them

The sets are in batteries.py, the public ones with at most 1,000 rows. A deviation is that of a column. Labels have
changed if the adjusted Rand index of both fits, on the rows in common, is below 0.95. Both fits have random_state=0.
The 120 tables have columns of 0 and 1: there one row moves by 1e-9 deviations, or one gap is filled by a mean.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from batteries import MOST_ROWS, Case, Method, few_generated, kmeans, ours, public, zero_one_tables
from sklearn.metrics import adjusted_rand_score

CHANGED = 0.95
METHODS: dict[str, Method] = {"biclique": ours, "k-means": kmeans}
Changed = tuple[np.ndarray, np.ndarray | slice]
"""Rows after a change, and their places before it."""
Change = Callable[[np.ndarray, np.random.Generator], Changed]
SAME = slice(None)


def dropped(X: np.ndarray, random: np.random.Generator) -> Changed:
    rows = np.sort(random.choice(len(X), len(X) - max(len(X) // 100, 1), replace=False))
    return X[rows], rows


def shuffled(X: np.ndarray, random: np.random.Generator) -> Changed:
    rows = random.permutation(len(X))
    return X[rows], rows


def moved(X: np.ndarray, random: np.random.Generator) -> Changed:
    """One row moved by 1e-9 deviations in every column."""
    out = X.copy()
    out[random.integers(len(X))] += 1e-9 * X.std(axis=0)
    return out, SAME


def filled(X: np.ndarray, random: np.random.Generator) -> Changed:
    """One entry of the last column, which has 0 and 1, replaced by the mean of the others."""
    out, row = X.copy(), random.integers(len(X))
    out[row, -1] = np.delete(X[:, -1], row).mean()
    return out, SAME


CHANGES: dict[str, Change] = {
    "jitter of 1e-3 deviations": lambda X, random: (X + 1e-3 * X.std(axis=0) * random.normal(size=X.shape), SAME),
    "1 % of rows dropped": dropped,
    "rows shuffled": shuffled,
    "units × 3.7": lambda X, _: (3.7 * X, SAME),
    "float32": lambda X, _: (X.astype(np.float32), SAME),
    "X · 2": lambda X, _: (2 * X, SAME),
    "−X": lambda X, _: (-X, SAME),
    "columns reversed": lambda X, _: (X[:, ::-1].copy(), SAME),
    "a zero column added": lambda X, _: (np.column_stack([X, np.zeros(len(X))]), SAME),
}
ZERO_ONE: dict[str, Change] = {
    "0/1 columns: a row moved by 1e-9 deviations": moved,
    "0/1 columns: a gap filled by the mean": filled,
}


def agreements(case: Case, changes: dict[str, Change], labels_of: Method) -> list[float]:
    """The adjusted Rand index of the labels before and after every change."""
    k = case.counts[0]
    before, found = labels_of(case.X, k), []
    for change in changes.values():
        X, rows = change(case.X, np.random.default_rng(0))
        found.append(float(adjusted_rand_score(before[rows], labels_of(X, k))))
    return found


def print_changes(cases: list[Case], changes: dict[str, Change]) -> list[str]:
    """A line of the table for every change; returns the sets where labels of ours changed."""
    found = np.array([[agreements(case, changes, method) for method in METHODS.values()] for case in cases])
    for name, counts in zip(changes, (found < CHANGED).sum(axis=0).T, strict=True):
        print(f"| {name} | " + " | ".join(f"{count} of {len(cases)}" for count in counts) + " |", flush=True)
    return [
        f"{name}: {case.name}, {mine:.2f} (k-means {beside:.2f})"
        for j, name in enumerate(changes)
        for case, (mine, beside) in zip(cases, found[:, :, j], strict=True)
        if mine < CHANGED
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the public sets")
    parser.add_argument("--tables", action="store_true", help="the 120 tables with columns of 0 and 1 alone")
    parser.add_argument("--every", type=int, default=1, help="of so many sets, one is run")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| change | " + " | ".join(f"{method}, labels changed" for method in METHODS) + " |")
    print("| --- |" + " ---: |" * len(METHODS), flush=True)
    changed = []
    if not options.tables:
        cases = [*few_generated(), *(public(options.data, MOST_ROWS) if options.data else ())]
        changed += print_changes(cases[:: options.every], CHANGES)
    changed += print_changes(list(zero_one_tables())[:: options.every], ZERO_ONE)
    print("\nSets where the default changed, with the agreement of both fits:", *changed or ["none"], sep="\n- ")


if __name__ == "__main__":
    main()
