"""The comparison modellings of triples at n = 500: seconds, memory and agreement with the definition, in one run.

    python benchmarks/modellings.py [--rows 500] [--dimensions 4 60] [--flat]

--flat puts all points on one line up to 1e-8: the slowest case of the two distances, which are then computed from the
coordinates of every triple.

Seconds are the best of three, with a 4000³ float32 matrix product timed in the same process. Memory is the most that
the arrays of one call hold at once, beside the size of one n × n matrix. Agreement is the largest difference between
sampled entries A_ij and the sum of the weights of their n − 2 triples by the definition, relative to the entry.
"""

from __future__ import annotations

import argparse
import tracemalloc

import numpy as np
from timing import best_of, product_seconds

from biclique.hypergraph.points.contraction import modelling_gram
from biclique.hypergraph.points.modellings import POINT_MODELLINGS, Modelling, make_modelling, modelling_values

ENTRIES = 20


def disagreement(X: np.ndarray, modelling: Modelling, gram: np.ndarray) -> float:
    """The largest relative error of sampled entries."""
    n, worst = len(X), 0.0
    rng = np.random.default_rng(1)
    for _ in range(ENTRIES):
        i, j = rng.choice(n, 2, replace=False)
        others = np.setdiff1d(np.arange(n), [i, j])
        triples = np.column_stack([np.full(n - 2, i), np.full(n - 2, j), others])
        weights = modelling_values(X, triples, modelling)
        worst = max(worst, abs(gram[i, j] - weights.sum()) / np.abs(weights).sum())
    return worst


def peak_bytes(X: np.ndarray, modelling: Modelling) -> int:
    tracemalloc.start()
    modelling_gram(X, modelling)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[4, 60])
    parser.add_argument("--flat", action="store_true")
    arguments = parser.parse_args()
    n = arguments.rows
    print(f"n = {n}, {n * (n - 1) * (n - 2) // 6:,} triples, 4000³ product {product_seconds():.3f} s")
    print(f"{'modelling':<18} {'d':>4} {'seconds':>8} {'memory':>9} {'n × n':>8} {'disagreement':>13}")
    for d in arguments.dimensions:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d))
        if arguments.flat:
            X = np.outer(X[:, 0], rng.standard_normal(d)) + 1e-8 * X
        for name, kind in POINT_MODELLINGS.items():
            if not kind.symmetric:
                continue  # its contraction is biclique_gram
            if arguments.flat and "distance" not in name:
                continue
            modelling = make_modelling(name, X, 3, random_state=0)
            seconds = best_of(3, lambda X=X, modelling=modelling: modelling_gram(X, modelling))
            error = disagreement(X, modelling, modelling_gram(X, modelling))
            peak = peak_bytes(X, modelling) / 2**20
            print(f"{name:<18} {d:>4} {seconds:>8.3f} {peak:>5.1f} MiB {8 * n * n / 2**20:>4.1f} MiB {error:>13.1e}")


if __name__ == "__main__":
    main()
