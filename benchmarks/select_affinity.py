"""Does affinity="select" gain over the default? Mean adjusted Rand index at the true number of clusters.

    python benchmarks/select_affinity.py --data FOLDER              # 40 generated tables and the 46 public sets
    python benchmarks/select_affinity.py                            # the 40 tables alone
    python benchmarks/select_affinity.py --data FOLDER --every 10   # every tenth of them

The 40 tables (`affinity_battery` of batteries.py) were written before any method was run on them, and stay as they are.
The public sets have at most 1,000 rows each. No method sees labels.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from batteries import MOST_ROWS, Case, Method, affinity_battery, kmeans, ours, print_scores, public

METHODS: dict[str, Method] = {"default": ours, "select": partial(ours, affinity="select"), "k-means": kmeans}


def print_gain(title: str, cases: list[Case]) -> None:
    """Scores, and the gain of the selection over the default."""
    print(f"\n## {title}\n")
    default, select, _ = print_scores(cases, METHODS).T
    print(f"select − default: {(select - default).mean():+.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the public sets")
    parser.add_argument("--every", type=int, default=1, help="of so many sets, one is run")
    options = parser.parse_args()
    print_gain("Generated tables", list(affinity_battery())[:: options.every])
    if options.data is not None:
        print_gain("Public sets", list(public(options.data, MOST_ROWS))[:: options.every])


if __name__ == "__main__":
    main()
