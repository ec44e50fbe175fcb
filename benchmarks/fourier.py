"""K through nonuniform FFTs beside tiles, landmarks and scikit-learn: seconds and agreement, in one run.

    python benchmarks/fourier.py                    # 10⁴, 2·10⁴, 10⁵ and 10⁶ rows
    python benchmarks/fourier.py --rows 10000000 --only moons --memory 8GB

Moons, circles, blobs in two and three columns, and 900/80/20 groups. Fits are the best of ``--repeats``; a 4000³
float32 product is timed beside them. The first lines are a pass of 14 vectors alone. Contenders that would take too
long or too much memory are left out (—). Beside tiles stands how far eigenvalues and labels are from theirs. At the end
stand all seconds in one table, with the adjusted Rand index in brackets, and the most memory that the process ever had.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from timing import product_seconds

from biclique import BicliqueSpectralClustering
from biclique.gram.fourier import FourierGram
from biclique.kernels import RBF
from biclique.kernels.gamma_rules import bandwidth
from biclique.kernels.named import make_kernel

VECTORS = 14
TILED_MOST, PEER_MOST, LANDMARKS_MOST = 20_000, 10_000, 10**6


def unequal(n: int) -> tuple[np.ndarray, np.ndarray]:
    sizes = [n - 2 * (n // 50) - 4 * (n // 50) + n // 50, 4 * (n // 50), n // 50]
    random = np.random.default_rng(0)
    rows = [random.normal(size=(s, 2)) + c for s, c in zip(sizes, ((0, 0), (6, 6), (6, -6)), strict=True)]
    return np.concatenate(rows), np.repeat([0, 1, 2], sizes)


DATA: dict[str, tuple[Callable[[int], tuple[np.ndarray, np.ndarray]], int]] = {
    "blobs, 2 columns": (lambda n: make_blobs(n, centers=5, random_state=1), 5),
    "blobs, 3 columns": (lambda n: make_blobs(n, n_features=3, centers=5, random_state=1), 5),
    "moons": (lambda n: make_moons(n, noise=0.05, random_state=0), 2),
    "circles": (lambda n: make_circles(n, noise=0.03, factor=0.5, random_state=0), 2),
    "900/80/20": (unequal, 3),
}


def best(work: Callable[[], object], repeats: int) -> tuple[float, object]:
    seconds, found = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), found


def contenders(n: int, k: int, gamma: float) -> dict[str, Callable[[np.ndarray], object] | None]:
    def ours(**options: object) -> Callable[[np.ndarray], object]:
        return lambda X: BicliqueSpectralClustering(k, affinity="rbf", random_state=0, **options).fit(X)

    peer = make_pipeline(Nystroem(gamma=gamma, n_components=300, random_state=0), KMeans(k, random_state=0))
    spectral = SpectralClustering(k, gamma=gamma, random_state=0)
    return {
        "fourier": ours(gram="fourier"),
        "tiled": ours(gram="tiled") if n <= TILED_MOST else None,
        "landmarks": ours(gram="nystroem") if n <= LANDMARKS_MOST else None,
        "sklearn Nystroem + KMeans": (lambda X: peer.fit_predict(X)) if n <= LANDMARKS_MOST else None,
        "sklearn SpectralClustering": (lambda X: spectral.fit_predict(X)) if n <= PEER_MOST else None,
        "sklearn KMeans": lambda X: KMeans(k, n_init=10, random_state=0).fit_predict(X),
    }


def labels_of(found: object) -> np.ndarray:
    return found.labels_ if isinstance(found, BicliqueSpectralClustering) else np.asarray(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**4, 2 * 10**4, 10**5, 10**6])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", default="", help="part of a data set's name")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for n in options.rows:
        unit = product_seconds()
        print(f"\n{n} rows; a 4000³ float32 product takes {unit:.2f} s")
        for name, (make, k) in DATA.items():
            if options.only not in name:
                continue
            X, y = make(n)
            gamma = bandwidth("auto", make_kernel("rbf", gamma=None), X, np.ones(n), 0)
            gram = FourierGram(RBF(gamma), X)
            V = np.random.default_rng(0).normal(size=(n, VECTORS))
            once = best(lambda gram=gram, V=V: gram.matmat(V), 3)[0]
            print(f"{name}: a pass of {VECTORS} vectors {once:.2f} s ({once / unit:.1f} products), {gram.error}")
            del gram, V
            fast, cells = None, []
            for contender, fit in contenders(n, k, gamma).items():
                if fit is None:
                    print(f"  {contender:28s}  —")
                    cells.append("—")
                    continue
                seconds, found = best(lambda fit=fit, X=X: fit(X), options.repeats)
                score = adjusted_rand_score(y, labels_of(found))
                each = f"{seconds / unit:5.1f} products, {seconds / n * 1e6:6.1f} µs a row"
                line = f"  {contender:28s}{seconds:8.1f} s ({each})"
                print(f"{line}, ARI {score:.4f}{beside(fast, found) if contender == 'tiled' else ''}", flush=True)
                fast = found if contender == "fourier" else fast
                cells.append(f"{seconds:.1f} ({score:.3f})")
            rows.append([str(n), name, f"{once:.2f}", f"{unit:.2f}", *cells])
    print("\nSeconds of whole fits with labels, and the adjusted Rand index")
    heads = ["rows", "data", f"one pass of {VECTORS} vectors", "product", *contenders(1, 2, 1.0)]
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(f"\nat most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def beside(fast: object, exact: object) -> str:
    """How far eigenvalues and labels are from those of exact tiles."""
    if not isinstance(fast, BicliqueSpectralClustering) or not isinstance(exact, BicliqueSpectralClustering):
        return ""
    apart = np.abs(fast.eigenvalues_ - exact.eigenvalues_).max()
    agreement = adjusted_rand_score(fast.labels_, exact.labels_)
    return f"; fourier's eigenvalues within {apart:.1e}, agreement of labels {agreement:.5f}"


if __name__ == "__main__":
    main()
