"""Does an installed biclique work? Run by ``make smoke`` in an empty environment, outside the checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import biclique
from biclique import BicliqueSpectralClustering, Hypergraph, HypergraphSpectralClustering

random = np.random.default_rng(0)
X = np.concatenate([random.normal(size=(40, 2)), random.normal(size=(40, 2)) + 9])
model = BicliqueSpectralClustering(2, random_state=0).fit(X)
papers = Hypergraph.from_edges([["a", "b"], ["a", "b", "c"], ["d", "e"], ["e", "f", "d"], ["c", "d"]])
done = subprocess.run([Path(sys.executable).with_name("biclique"), "cluster", "iris", "-k", "3"], capture_output=True)
wrong = {
    "it is not the installed package": "site-packages" not in str(biclique.__file__),
    "labels": len(set(model.labels_[:40])) != 1 or model.labels_[0] == model.labels_[-1],
    "predict": model.predict(X).tolist() != model.labels_.tolist(),
    "hypergraph": len(HypergraphSpectralClustering(2, random_state=0).fit(papers).clusters()) != 2,
    "types": not (Path(biclique.__file__).parent / "py.typed").exists(),
    "the command": done.returncode != 0,
}
failed = [name for name, is_wrong in wrong.items() if is_wrong]
print(f"biclique {biclique.__version__}, Python {sys.version.split()[0]}:", ", ".join(failed) or "works")
sys.exit(1 if failed else 0)
