"""A fit does not depend on where its rows are cut: in memory or by Dask; at every rank.

The rows have no clusters, and the kernel of the landmarks is flat: eigenvalues lie close, and products with large
coefficients cancel. Sums and products in float32 would move the embedding by 1e-4 of its largest entry there.
"""

import numpy as np
import pytest

from biclique import BicliqueSpectralClustering
from biclique.features import maps
from tests.optional import Optional, needs

da = Optional("dask.array")

RANKS = (64, 200, 512)
KINDS = [*((rank, "rbf") for rank in RANKS), (200, "neighborhoods"), ("auto", "neighborhoods")]
TOLERANCE = 1e-6
"""As a share of the largest entry of the embedding."""


@pytest.fixture(scope="module")
def rows():
    random = np.random.RandomState(0)
    X, weights = random.uniform(size=(1200, 2)), 10 ** random.uniform(-2, 2, size=1200)
    X.setflags(write=False)
    weights.setflags(write=False)
    return X, weights


@pytest.fixture(scope="module")
def expected(rows):
    """The fits of the array in memory; the same rows are drawn whatever the source."""
    return {kind: fitted(*kind, *rows) for kind in KINDS}


def fitted(rank, affinity, X, weights):
    options = {"gram": "nystroem", "order": 4, "gamma": 1e-3, "precision": "float32", "row_normalize": True}
    model = BicliqueSpectralClustering(
        3, affinity=affinity, rank=rank, random_state=0, **(options if affinity == "rbf" else {})
    )
    return model.fit(X, sample_weight=weights)


def assert_same(found, expected, tolerance=TOLERANCE):
    largest = np.abs(expected.embedding_).max()
    np.testing.assert_allclose(np.asarray(found.embedding_), expected.embedding_, atol=tolerance * largest)
    np.testing.assert_array_equal(np.asarray(found.labels_), expected.labels_)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_in_memory(rows, expected, kind, monkeypatch):
    monkeypatch.setattr(maps, "BLOCK_ENTRIES", 100 * expected[kind].rank_)
    assert_same(fitted(*kind, *rows), expected[kind])


@needs("dask")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", [37, 500])
def test_dask(rows, expected, kind, chunk):
    X, weights = (da.from_array(given, chunks=(chunk, 2)[: given.ndim]) for given in rows)
    assert_same(fitted(*kind, X, weights), expected[kind])


@needs("dask")
def test_dask_of_many_rows(rows, expected, monkeypatch):
    """Short products in float32, as of many rows; of few rows the rounding does not average out."""
    monkeypatch.setattr(maps, "PRECISE_ROWS", 0)
    monkeypatch.setattr(maps, "LEAST_ROWS", 1)
    X, weights = (da.from_array(given, chunks=(111, 2)[: given.ndim]) for given in rows)
    assert_same(fitted(200, "rbf", X, weights), expected[200, "rbf"], 1e-5)
