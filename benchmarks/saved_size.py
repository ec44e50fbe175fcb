"""Sizes of saved models: landmarks against exact fits. ``python benchmarks/saved_size.py [rows]``."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import biclique


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    random = np.random.default_rng(0)
    print(f"{'fit':34s} {'rows':>9s} {'file':>10s} {'save':>7s} {'load':>7s}")
    for name, rows, parameters in [
        ("rbf, 1,000 landmarks, k = 4", n, {"gram": "nystroem", "rank": 1000}),
        ("laplacian, 1,000 landmarks, k = 4", n, {"gram": "nystroem", "rank": 1000, "affinity": "laplacian"}),
        ("rbf, exact, k = 4", min(n, 5000), {"gram": "dense"}),
    ]:
        X = random.normal(size=(rows, 10)) + 8 * np.eye(10)[:4][random.integers(0, 4, rows)]
        model = biclique.BicliqueSpectralClustering(4, order=2, random_state=0, **parameters).fit(X)
        with tempfile.TemporaryDirectory() as folder:
            path, start = Path(folder) / "m.skops", time.perf_counter()
            biclique.save(model, path)
            middle = time.perf_counter()
            again = biclique.load(path)
            end = time.perf_counter()
            size = path.stat().st_size
        if not np.array_equal(again.predict(X[:1000]), model.predict(X[:1000])):
            sys.exit("predictions differ after the round trip")
        times = f"{middle - start:6.2f}s {end - middle:6.2f}s"
        print(f"{name:34s} {rows:9d} {size / 1e6:7.2f} MB {times}", flush=True)


if __name__ == "__main__":
    main()
