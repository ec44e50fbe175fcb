"""Small fitted models and hostile names for the tests of reports."""

from functools import cache

import numpy as np

from biclique import BicliqueSpectralClustering

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    '"><b>"',
    "javascript:alert(3)",
    "\u202eright to left\u200f",
    "long " * 2_000,
    "null\x00byte\x1b[31m",
    "'; alert(4); '",
    "{{data}} {{ title }}",
)
SURROGATE = "\ud800 alone"


@cache
def groups(n=40, columns=3):
    """Three groups along the first two columns, and a row far out."""
    random = np.random.default_rng(0)
    centres = np.zeros((3, columns))
    centres[1, 0] = centres[2, 1] = 6
    X = np.concatenate([random.normal(size=(n, columns)) + centre for centre in centres])
    X.setflags(write=False)
    return X


@cache
def fitted(n_clusters=3, **parameters):
    return BicliqueSpectralClustering(n_clusters, random_state=0, **parameters).fit(groups())


@cache
def given():
    """A model of a matrix of similarities, and that matrix."""
    X = groups()
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    return BicliqueSpectralClustering(3, affinity="precomputed", random_state=0).fit(K), K
