"""How far a clustering is from known classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix


def clustering_error(truth: Any, labels: Any) -> float:
    """The share of rows that are wrong under the best one-to-one matching of clusters to classes.

    >>> from biclique.scores import clustering_error
    >>> clustering_error(["a", "a", "b", "b"], [1, 1, 0, 1])
    0.25
    """
    counts = contingency_matrix(np.asarray(truth), np.asarray(labels))
    rows, columns = linear_sum_assignment(-counts)
    return 1.0 - float(counts[rows, columns].sum()) / float(counts.sum())
