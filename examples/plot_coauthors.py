"""
A given hypergraph: co-authors
==============================

A paper with all its authors is a hyperedge. Splitting it into pairs of authors would count a paper
of ten people 45 times. ``HypergraphSpectralClustering`` cuts the hypergraph itself. The papers here
are generated: four fields, papers of three to eight authors, some of them across fields.
"""

from __future__ import annotations

from collections.abc import Hashable

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from biclique import Hypergraph, HypergraphSpectralClustering

FIELDS = ["optics", "ecology", "history", "genetics"]
random = np.random.default_rng(1)
authors = [f"{field} {number}" for field in FIELDS for number in range(40)]
field_of = np.repeat(range(4), 40)

# %%
# Papers
# ------
#
# A few people write most papers, as in life. One author in six comes from another field.

fame = random.pareto(1.5, len(authors)) + 0.2
papers: dict[Hashable, list[str]] = {}
for number in range(420):
    near = np.where(field_of == number % 4, 1.0, 0.07) * fame
    size = min(2 + random.geometric(0.45), 8)
    chosen = random.choice(len(authors), size, replace=False, p=near / near.sum())
    papers[f"paper {number}"] = [authors[one] for one in chosen]
hypergraph = Hypergraph.from_dict(papers)
print(hypergraph)

# %%
# Groups of authors
# -----------------

model = HypergraphSpectralClustering(n_clusters=4, random_state=0).fit(hypergraph)
truth = [FIELDS.index(str(name).split()[0]) for name in model.vertex_names_]
print(f"agreement with the fields: {adjusted_rand_score(truth, model.labels_):.3f}")
for group in model.clusters():
    names, counts = np.unique([str(name).split()[0] for name in group], return_counts=True)
    print(f"{len(group)} authors:", ", ".join(f"{n} {name}" for n, name in zip(counts, names, strict=True)))

# %%
# Who wrote with whom
# -------------------
#
# Authors in the order of their groups. A dot is a pair that shares a paper, a dark one shares three or more.

place = {str(name): where for where, name in enumerate(model.vertex_names_)}
shared = np.zeros((len(place), len(place)))
for people in papers.values():
    rows = [place[name] for name in people]
    shared[np.ix_(rows, rows)] += 1
figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), constrained_layout=True)
mixed = random.permutation(len(place))
for panel, order, title in zip(
    axes, (mixed, np.argsort(model.labels_, kind="stable")), ("in any order", "in the order of the groups"), strict=True
):
    panel.imshow(np.minimum(shared[np.ix_(order, order)], 3), cmap="Blues")
    panel.set(xticks=[], yticks=[], title=title)
plt.show()

# %%
# A new author
# ------------
#
# ``predict`` takes the papers that a new person took part in: one column for each paper.

written = np.zeros((1, len(papers)))
written[0, [0, 4, 8]] = 1
print("papers 0, 4 and 8 are of field", FIELDS[0], "- new author's cluster:", model.predict(written)[0])
