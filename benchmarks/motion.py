"""Five Hopkins155 sequences: inhomogeneous subspace clustering beside the biclique model and the other modellings.

    python benchmarks/motion.py --data FOLDER [--all]

FOLDER (or the environment variable BICLIQUE_DATA) holds hopkins155.npz with ``<name>/X`` and ``<name>/y``. Nothing sees
the labels but the error rate. The five are the first of each kind in the alphabet: checkerboard with three and with two
motions, articulated, traffic with three and with two motions. --all runs the first two columns on all 155, with the
total squared residual to 3-dimensional affine subspaces of the partition found by the protocol and of the true one.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from timing import product_seconds

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.hypergraph_clustering import HypergraphSpectralClustering
from biclique.cluster.subspace_clustering import InhomogeneousSubspaceClustering
from biclique.exceptions import BicliqueWarning
from biclique.hypergraph import cost_graph, fit_subspaces, kernel_costs, sample_hyperedges, subspace_costs
from biclique.kernels import RBF
from biclique.kernels.gamma_rules import bandwidth
from biclique.kernels.named import make_kernel
from biclique.scores import clustering_error

SEQUENCES = ("1R2RC", "1R2RCR_g12", "arm", "cars10", "cars1")
EDGES = 20_000


def biclique(X: np.ndarray, k: int) -> np.ndarray:
    return BicliqueSpectralClustering(k, random_state=0).fit(X).labels_


def inhomogeneous(X: np.ndarray, k: int) -> np.ndarray:
    return InhomogeneousSubspaceClustering(k, random_state=0).fit(X).labels_


def sampled_subspaces(X: np.ndarray, k: int) -> np.ndarray:
    """d^inh on uniform edges of four points, one round: what the paper's table samples, without its labels."""
    edges = sample_hyperedges(X, EDGES, order=4, modelling="vertex_distance", squared=True, random_state=0)
    gamma = 3 / np.median(-np.log(np.maximum(edges.weights, 1e-300)))
    graph = cost_graph(edges.with_weights(np.ones(edges.n_edges)), subspace_costs(X, gamma))
    model = BicliqueSpectralClustering(k, affinity="precomputed", order=2, random_state=0)
    return model.fit(graph).labels_


def own_splitting(X: np.ndarray, k: int) -> np.ndarray:
    """The paper's own splitting function, w_v = Σ κ(x_v, x_j), on uniform edges of four points."""
    gamma = bandwidth("auto", make_kernel("rbf", gamma=None), X, np.ones(len(X)), 0)
    edges = sample_hyperedges(X, EDGES, order=4, gamma=gamma, random_state=0)
    graph = cost_graph(edges.with_weights(np.ones(edges.n_edges)), kernel_costs(X, RBF(gamma)))
    model = BicliqueSpectralClustering(k, affinity="precomputed", order=2, random_state=0)
    return model.fit(graph).labels_


def sampled_biclique(X: np.ndarray, k: int) -> np.ndarray:
    """The star cut of sampled biclique edges of four points."""
    edges = sample_hyperedges(X, EDGES, order=4, random_state=0)
    return HypergraphSpectralClustering(k, random_state=0).fit(edges).labels_


METHODS = {
    "biclique": biclique,
    "inhomogeneous, protocol": inhomogeneous,
    "d^inh, sampled": sampled_subspaces,
    "own splitting, sampled": own_splitting,
    "biclique edges, sampled": sampled_biclique,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("BICLIQUE_DATA"))
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    if options.data is None:
        parser.error("give --data FOLDER, or set BICLIQUE_DATA")
    data = np.load(Path(options.data) / "hopkins155.npz")
    names = sorted({key.split("/")[0] for key in data.files}) if options.all else SEQUENCES
    methods = dict(list(METHODS.items())[:2]) if options.all else METHODS
    print(f"4000³ product {product_seconds():.3f} s; error rate, seconds (one run, random_state=0)")
    print(f"{'sequence':<16} {'n':>4} {'k':>2}" + "".join(f"  {name:>24}" for name in methods))
    errors: dict[str, list[float]] = {name: [] for name in methods}
    motions = []
    for sequence in names:
        X, y = data[f"{sequence}/X"], data[f"{sequence}/y"]
        motions.append(len(np.unique(y)))
        line = f"{sequence:<16} {len(X):>4} {motions[-1]:>2}"
        for name, method in methods.items():
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", BicliqueWarning)
                labels = method(X, motions[-1])
            errors[name].append(clustering_error(y, labels))
            line += f"  {errors[name][-1]:>14.4f} {time.perf_counter() - start:>7.1f} s"
        if options.all:
            found, true = (sum(s.residual for s in fit_subspaces(X, part, 3)) for part in (labels, y))
            line += f"  residual {found:.4f}, true {true:.4f}"
        print(line, flush=True)
    for k in sorted(set(motions)):
        chosen = np.array(motions) == k
        means = "".join(f"  {np.mean(np.array(e)[chosen]):>14.4f}          " for e in errors.values())
        print(f"{'mean':<16} {int(chosen.sum()):>4} {k:>2}{means}")
    print(f"{'mean':<16} {len(motions):>4}   " + "".join(f"  {np.mean(e):>14.4f}          " for e in errors.values()))


if __name__ == "__main__":
    main()
