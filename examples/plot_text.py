"""
Text with tf-idf
================

The documents are the documentation strings of scikit-learn itself, so nothing is downloaded. The
true topic of a document is the module that it comes from. tf-idf gives sparse rows, which are taken as
they are. Angles between rows compare texts: ``metric`` is "cosine".
"""

from __future__ import annotations

import inspect
from importlib import import_module

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering

# %%
# Documents and topics
# --------------------

MODULES = ["cluster", "datasets", "decomposition", "ensemble", "linear_model", "metrics", "model_selection"]
documents: list[str] = []
topics: list[int] = []
for topic, name in enumerate(MODULES):
    module = import_module(f"sklearn.{name}")
    for public in module.__all__:
        text = inspect.getdoc(vars(module).get(public)) or ""
        if len(text) > 200:
            # Names of functions would give the topic away.
            documents.append(text.partition("Examples\n")[0].replace(name, ""))
            topics.append(topic)
print(f"{len(documents)} documents, {len(MODULES)} topics")

# %%
# Sparse rows, three methods
# --------------------------

vectorizer = TfidfVectorizer(stop_words="english", min_df=3, max_df=0.4, sublinear_tf=True)
X = vectorizer.fit_transform(documents)
angles = {"metric": "cosine"}
models = {
    "KMeans": KMeans(len(MODULES), n_init=10, random_state=0),
    "biclique, cosine kernel": BicliqueSpectralClustering(len(MODULES), affinity="cosine", random_state=0),
    "biclique, neighbourhoods": BicliqueSpectralClustering(len(MODULES), kernel_params=angles, random_state=0),
}
agreement = {name: adjusted_rand_score(topics, model.fit_predict(X)) for name, model in models.items()}
for name, value in agreement.items():
    print(f"{name:28} {value:.3f}")

# %%
# What the clusters are about
# ---------------------------
#
# The words whose mean weight is largest, compared with the other documents.

best = models[max(agreement, key=lambda name: agreement[name])]
words = vectorizer.get_feature_names_out()
for cluster in range(len(MODULES)):
    own = best.labels_ == cluster
    difference = np.asarray(X[own].mean(axis=0) - X[~own].mean(axis=0)).ravel()
    print(f"{cluster}: {', '.join(words[difference.argsort()[::-1][:7]])}")

table = np.zeros((len(MODULES), len(MODULES)), dtype=int)
np.add.at(table, (np.array(topics), best.labels_), 1)
figure, axis = plt.subplots(figsize=(6.5, 4.2), constrained_layout=True)
axis.imshow(table, cmap="Blues")
for (line, column), count in np.ndenumerate(table):
    if count:
        axis.text(column, line, str(count), ha="center", va="center", color="white" if count > 30 else "black")
axis.set_yticks(range(len(MODULES)), MODULES)
axis.set(xlabel="cluster", title="documents of each module in each cluster")
plt.show()
