"""The pages put our estimator in the place of HDBSCAN in BERTopic. These are the calls that BERTopic makes."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from biclique import BicliqueSpectralClustering


@pytest.mark.parametrize("n_clusters", [4, "select"])
def test_every_document_gets_a_topic_and_new_ones_the_same(n_clusters):
    X, truth = make_blobs([90, 60, 50, 40], 5, cluster_std=0.7, center_box=(-15, 15), random_state=2)
    X = X.astype(np.float32)  # as UMAP gives them
    model = BicliqueSpectralClustering(n_clusters, affinity="nearest_neighbors", random_state=0)
    model.fit(X, y=None)
    assert getattr(model, "probabilities_", None) is None
    assert -1 not in set(model.labels_)
    # Topics are counted, and those of the largest clusters come first.
    topic = np.argsort(np.argsort(-np.bincount(model.labels_)))
    assert topic[model.labels_].tolist() == truth.tolist()
    assert topic[model.predict(X[:20])].tolist() == truth[:20].tolist()
    assert model.predict_proba(X[:5]).shape == (5, 4)
