"""Building and clustering hypergraphs, beside XGI and hypergraphx.

    python benchmarks/hypergraph.py

Building: 10⁶ edges of size 10 over 200,000 vertices, from integer lists and from strings (the peers: from integer
lists, at 10⁵ edges, and ours beside them). Clustering: planted groups; the peers' spectral methods at 2,000 vertices
(one run), ours there and at 200,000 (one run). Other seconds are the best of three, with a 4000³ float32 matrix product
timed in the same process.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
from sklearn.metrics import adjusted_rand_score
from timing import best_of, product_seconds

from biclique.cluster.hypergraph_clustering import HypergraphSpectralClustering
from biclique.hypergraph import to_hypergraphx, to_xgi
from biclique.hypergraph.hypergraph import Hypergraph

VERTICES, SIZE = 200_000, 10


def planted(n: int, n_edges: int, k: int, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Edges with 70 % of their vertices in one of k groups, and the groups."""
    random = np.random.default_rng(seed)
    group = random.integers(0, k, (n_edges, 1))
    inside = random.integers(0, n // k, (n_edges, size)) * k + group
    anywhere = random.integers(0, n, (n_edges, size))
    return np.where(random.random((n_edges, size)) < 0.7, inside, anywhere), np.arange(n) % k


def build() -> None:
    edges, _ = planted(VERTICES, 10**6, 10, SIZE)
    lists = edges.tolist()
    print(f"10⁶ edges of size {SIZE}, 4000³ product {product_seconds():.3f} s")
    for name, given in (("integer array", edges), ("integer lists", lists)):
        print(f"  {name:<14} {best_of(3, lambda g=given: Hypergraph.from_edges(g)):6.2f} s")
    strings = [[f"v{v}" for v in edge] for edge in lists]
    print(f"  {'strings':<14} {best_of(3, lambda: Hypergraph.from_edges(strings)):6.2f} s")
    tracemalloc.start()
    hypergraph = Hypergraph.from_edges(lists)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    n = hypergraph.n_incidences
    print(f"  memory: {held / n:.0f} bytes an incidence held, {peak / n:.0f} at the peak ({n} incidences)")
    few = lists[: 10**5]
    print("10⁵ edges from integer lists")
    print(f"  {'biclique':<14} {best_of(3, lambda: Hypergraph.from_edges(few)):6.2f} s")
    import hypergraphx
    import xgi

    print(f"  {'XGI':<14} {best_of(3, lambda: xgi.Hypergraph(few)):6.2f} s")
    print(f"  {'hypergraphx':<14} {best_of(3, lambda: hypergraphx.Hypergraph([tuple(e) for e in few])):6.2f} s")


def cluster() -> None:
    import xgi
    from hypergraphx.communities.hy_sc.model import HySC

    n, k = 2000, 5
    edges, truth = planted(n, 10_000, k, 5)
    hypergraph = Hypergraph.from_edges([sorted(set(e)) for e in edges.tolist()], vertices=n)
    theirs_x, theirs_h = to_xgi(hypergraph), to_hypergraphx(hypergraph, merge_equal_edges=True)
    order = np.array(theirs_h.get_mapping().classes_).astype(int)
    print(f"{n} vertices, 10,000 edges of size 5 or less, k = {k}, 4000³ product {product_seconds():.3f} s")
    found: dict[str, np.ndarray] = {}

    def ours() -> None:
        found["biclique"] = HypergraphSpectralClustering(k, random_state=0).fit(hypergraph).labels_

    def by_xgi() -> None:
        labels = xgi.communities.spectral_clustering(theirs_x, k, seed=0)
        found["XGI"] = np.array([labels[v] for v in range(n)])

    def by_hypergraphx() -> None:
        labels = np.empty(n, dtype=int)
        labels[order] = HySC(seed=0).fit(theirs_h, K=k).argmax(axis=1)
        found["hypergraphx"] = labels

    for name, run in (("biclique", ours), ("XGI", by_xgi), ("hypergraphx", by_hypergraphx)):
        seconds = best_of(3 if name == "biclique" else 1, run)
        print(f"  {name:<12} {seconds:7.2f} s  adjusted Rand index {adjusted_rand_score(truth, found[name]):.4f}")
    edges, truth = planted(VERTICES, 10**6, 10, SIZE)
    large = Hypergraph.from_edges(edges, vertices=VERTICES)
    model = HypergraphSpectralClustering(10, random_state=0)
    seconds = best_of(1, lambda: model.fit(large))
    print(f"{VERTICES} vertices, 10⁶ edges of size {SIZE}, k = 10: {seconds:.1f} s, {model.n_passes_} passes, ", end="")
    print(f"adjusted Rand index {adjusted_rand_score(truth, model.labels_):.4f} (one run)")


if __name__ == "__main__":
    build()
    cluster()
