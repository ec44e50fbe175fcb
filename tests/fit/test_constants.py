"""Of all module constants few can change the labels of a default fit, and those are listed.

All the others are changed at once, and fits of five kinds must give the same labels.
"""

import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

from biclique import BicliqueSpectralClustering
from biclique.kernels import Gower
from tests.optional import Optional, needs

pytestmark = [needs("dask"), needs("pandas")]
dask, da, pd = Optional("dask"), Optional("dask.array"), Optional("pandas")

CLUSTERS = "choice about clusters"
LABELS = "numerics that can change labels"

MOST_OF_LABELS, MOST_OF_CLUSTERS = 12, 4

OF_LABELS = {
    "features.neighborhoods.NEIGHBORS": (CLUSTERS, "r: landmarks of a row."),
    "features.neighborhoods.LANDMARKS": (CLUSTERS, "The resolution: clusters of a few landmarks are merged."),
    "features.neighborhoods.FLOOR": (CLUSTERS, "The least weight of a hyperedge, for heavy tails."),
    "features.neighborhoods.LANDMARKS_A_CLUSTER": (LABELS, "More landmarks if there are more than 200 clusters."),
    "features.neighborhoods.DRAWN_ROWS": (LABELS, "Rows that centres are means of, and that k-means sees."),
    "features.neighborhoods.LLOYD_STEPS": (LABELS, "Where centres are, if rows are more than landmarks."),
    "features.neighborhoods.TIE": (LABELS, "Distances that count as equal."),
    "features.neighborhoods.MOST_TIED": (LABELS, "How many equally near landmarks a row may have."),
    "fit.neighborhood_cut.TOLERANCE": (LABELS, "How accurate eigenpairs are."),
    "spectral.rounding.SAMPLE_ROWS": (LABELS, "Of more drawn rows, so many make the centres of k-means."),
    "spectral.rounding.STARTS": (CLUSTERS, "Starts of k-means; fewer if there are more than ten clusters."),
    "spectral.rounding.TIE": (LABELS, "By how much another start of k-means must be better than the first."),
}
"""All others are for speed, memory, refusals, warnings and messages, and for the rounding of what is equal in truth."""

# Five kinds of fits


def labels_of(X, **parameters):
    return np.asarray(BicliqueSpectralClustering(3, random_state=0, **parameters).fit(X).labels_)


def rows(n, d):
    return make_blobs(n, d, centers=4 * np.eye(3, d), random_state=0)[0]


def of_few_rows():
    return labels_of(rows(150, 4))


def of_more_rows_than_landmarks():
    return labels_of(rows(6000, 3))


def of_dask_rows():
    with dask.config.set(scheduler="sync"):
        return labels_of(da.from_array(rows(3000, 3), chunks=(500, 3)))


def of_sparse_rows():
    random = np.random.default_rng(0)
    words = random.random((600, 60)) < np.where(np.arange(60) // 20 == np.arange(600)[:, None] % 3, 0.3, 0.05)
    words[np.arange(600), np.arange(600) % 60] = True
    return labels_of(sparse.csr_array(words.astype(float)), kernel_params={"metric": "cosine"})


def of_a_mixed_table():
    random, y = np.random.default_rng(0), np.arange(300) % 3
    table = pd.DataFrame({"size": random.normal(size=300) + 2 * y, "age": random.normal(size=300) - y})
    table["kind"] = pd.Categorical((y + (random.random(300) < 0.1)) % 3)
    return labels_of(table, kernel_params={"metric": Gower("from_dtype")})


FITS = [of_few_rows, of_more_rows_than_landmarks, of_dask_rows, of_sparse_rows, of_a_mixed_table]


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def modules():
    """What the fits have imported of the package, by name without ``biclique``."""
    return {name[9:]: vars(module) for name, module in sys.modules.items() if name.startswith("biclique.")}


def test_few_constants_can_change_labels():
    for name in OF_LABELS:
        module, own = name.rsplit(".", 1)
        assert is_number(modules()[module][own])
    kinds = [kind for kind, _ in OF_LABELS.values()]
    assert kinds.count(CLUSTERS) <= MOST_OF_CLUSTERS
    assert kinds.count(CLUSTERS) + kinds.count(LABELS) <= MOST_OF_LABELS


def changed(value, more):
    """Whole numbers halved or doubled, others a tenth less or more."""
    if isinstance(value, int):
        return 2 * value if more else max(value // 2, 1)
    return value * (1.1 if more else 0.9)


@pytest.mark.parametrize("more", [False, True])
def test_all_other_constants_do_not_change_labels(more, monkeypatch):
    before = [fit() for fit in FITS]
    listed = {(name.rsplit(".")[-1], modules()[name.rpartition(".")[0]][name.rsplit(".")[-1]]) for name in OF_LABELS}
    for module in modules().values():
        for name, value in list(module.items()):
            if name.isupper() and is_number(value) and (name, value) not in listed:
                monkeypatch.setitem(module, name, changed(value, more))
    for fit, expected in zip(FITS, before, strict=True):
        np.testing.assert_array_equal(fit(), expected, err_msg=fit.__name__)
