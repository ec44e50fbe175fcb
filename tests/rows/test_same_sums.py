"""A fit does not depend on where its rows are cut: in memory, in chunks, on a device, or by Dask; at every rank.

The rows have no clusters, and the kernel is flat: eigenvalues lie close, and products with large coefficients cancel.
Sums and products in float32 would move the embedding by 1e-5 of its largest entry here.
"""

import numpy as np
import pytest

from biclique import BicliqueSpectralClustering
from biclique.io.chunks import IterableChunks
from tests.optional import Optional, needs

da, torch = Optional("dask.array"), Optional("torch")

RANKS = (64, 200, 512)


@pytest.fixture(scope="module")
def rows():
    random = np.random.RandomState(0)
    X, weights = random.normal(size=(1200, 5)), 10 ** random.uniform(-2, 2, size=1200)
    X.setflags(write=False)
    weights.setflags(write=False)
    return X, weights


@pytest.fixture(scope="module")
def expected(rows):
    """The fits of the array in memory, by rank; the same rows are drawn whatever the source."""
    return {rank: fitted(rank, *rows) for rank in RANKS}


def fitted(rank, X, weights, device=None):
    model = BicliqueSpectralClustering(
        3, gram="nystroem", rank=rank, order=4, gamma=1e-3, precision="float32", random_state=0, device=device
    )
    return model.fit(X, sample_weight=weights)


def assert_same(found, expected, tolerance):
    embedding = np.asarray(found.embedding_)
    np.testing.assert_allclose(embedding, expected.embedding_, atol=tolerance * np.abs(expected.embedding_).max())
    np.testing.assert_array_equal(np.asarray(found.labels_), expected.labels_)


@pytest.mark.parametrize("rank", RANKS)
def test_blocks_in_memory(rows, expected, rank, monkeypatch):
    monkeypatch.setattr("biclique.features.maps.BLOCK_ENTRIES", 100 * rank)
    assert_same(fitted(rank, *rows), expected[rank], 1e-6)


@pytest.mark.parametrize("rank", RANKS)
def test_chunks(rows, expected, rank):
    X, weights = rows
    found = fitted(rank, IterableChunks(lambda: iter(np.array_split(X, 11))), weights)
    found.embedding_ = found.transform(X)
    assert_same(found, expected[rank], 1e-6)


@needs("dask")
@pytest.mark.parametrize("rank", RANKS)
def test_dask(rows, expected, rank):
    X, weights = (da.from_array(given, chunks=(111, 5)[: given.ndim]) for given in rows)
    assert_same(fitted(rank, X, weights), expected[rank], 1e-6)


@needs("torch")
@pytest.mark.parametrize("rank", RANKS)
def test_tensors(rows, expected, rank, monkeypatch):
    X, weights = torch.tensor(rows[0]), rows[1]
    found = fitted(rank, X, weights, "cpu")
    assert_same(found, expected[rank], 5e-5)  # the columns themselves differ in their last bits
    monkeypatch.setattr("biclique.features.maps.DEVICE_ENTRIES", 100 * rank)
    assert_same(fitted(rank, X, weights, "cpu"), found, 1e-6)
