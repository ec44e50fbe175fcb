"""The pages put our estimator in the place of HDBSCAN in BERTopic. The stub makes the calls that BERTopic makes."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from biclique import BicliqueSpectralClustering


class Topics:
    """The steps of BERTopic that see its clusterer, for embeddings that are reduced already."""

    def __init__(self, hdbscan_model):
        self.hdbscan_model = hdbscan_model
        self.outliers = None

    def fit_transform(self, embeddings, y=None):
        self.hdbscan_model.fit(embeddings, y=y)
        topics = self.hdbscan_model.labels_
        self.outliers = -1 in set(topics)
        # Topics are counted, and those of the largest clusters come first.
        sizes = {topic: int((topics == topic).sum()) for topic in set(topics)}
        self.order = sorted(sizes, key=lambda topic: -sizes[topic])
        probabilities = getattr(self.hdbscan_model, "probabilities_", None)
        return [self.order.index(topic) for topic in topics], probabilities

    def transform(self, embeddings):
        found = self.hdbscan_model.predict(embeddings)
        return [self.order.index(topic) for topic in found]


@pytest.mark.parametrize("n_clusters", [4, "select"])
def test_every_document_gets_a_topic_and_new_ones_the_same(n_clusters):
    X, truth = make_blobs([90, 60, 50, 40], 5, cluster_std=0.7, center_box=(-15, 15), random_state=2)
    X = X.astype(np.float32)  # as UMAP gives them
    clusters = BicliqueSpectralClustering(n_clusters, affinity="nearest_neighbors", random_state=0)
    model = Topics(hdbscan_model=clusters)
    topics, probabilities = model.fit_transform(X)
    assert probabilities is None
    assert not model.outliers
    assert topics == truth.tolist()
    assert model.transform(X[:20]) == topics[:20]
    assert clusters.predict_proba(X[:5]).shape == (5, 4)
