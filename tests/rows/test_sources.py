"""Every row source keeps the contract: one class each."""

import numpy as np
import pytest
from scipy import sparse

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.progress import Progress
from biclique.rows import array
from biclique.rows.array import ArrayRows
from tests import oracles
from tests.optional import needs
from tests.rows.contract import RowContract


def ones_for(X, weights):
    return np.ones(len(X)) if weights is None else weights


class TestArray(RowContract):
    names = ("a", "b", "c")

    def create(self, X, weights):
        return ArrayRows(X, ones_for(X, weights), self.names)


class TestSparseArray(RowContract):
    def create(self, X, weights):
        return ArrayRows(sparse.csr_array(X), ones_for(X, weights))


@needs("torch")
class TestDevice(RowContract):
    def create(self, X, weights):
        return ArrayRows(X, ones_for(X, weights), device="cpu")


class TestTensor(TestDevice):
    def create(self, X, weights):
        import torch

        return ArrayRows(torch.tensor(X), ones_for(X, weights), device="cpu")


class TestPieces(RowContract):
    def create(self, X, weights):
        return ArrayRows(X, ones_for(X, weights), block_rows=99)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_memory_map_is_not_copied(tmp_path, dtype):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(100, 3)).astype(dtype))
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = BicliqueSpectralClustering(2)
    source = model._source(model._settings(), X, None, Progress(False))
    assert np.shares_memory(source.held, X)
    blocks = source.map(lambda block: np.shares_memory(block.rows, X), "test", Progress(False))
    assert blocks == [True]


def test_rows_are_found_again_by_their_values_and_precision():
    random = np.random.default_rng(0)
    X = random.integers(-2, 3, size=(400, 2)) * 0.1
    X[7], X[8] = -0.0, 0.0
    weights = random.integers(0, 3, 400).astype(float)
    vertices = array.distinct_rows(X, weights)
    known = vertices.index >= 0
    assert vertices.n == len(np.unique(X[weights > 0], axis=0))
    np.testing.assert_array_equal(vertices.data[vertices.index[known]], X[known])
    np.testing.assert_allclose(vertices.weights.sum(), weights.sum())
    np.testing.assert_array_equal(array.find_rows(vertices.digests, X), vertices.index)
    assert (array.find_rows(vertices.digests, X.astype(np.float32)) == -1).all()
    assert (array.find_rows(vertices.digests, X + 0.05) == -1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_digests_are_those_of_single_rows(monkeypatch, dtype):
    monkeypatch.setattr(array, "ROWS_AT_ONCE", 4)
    X = np.random.default_rng(0).integers(-1, 2, size=(20, 6)).astype(dtype) * dtype(-0.1)  # with −0.0
    for rows in (X[:9], X[:8], X[:1], X[:0], np.asfortranarray(X), X[::2, 1:3]):
        assert [one.tobytes() for one in array.digests(rows)] == oracles.row_digests(rows)
