"""Every Gram operator keeps the contract: one class each."""

import pickle
import tracemalloc
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

from biclique.exceptions import ApproximationWarning
from biclique.features.maps import make_map
from biclique.features.neighborhoods import NeighborhoodMap
from biclique.gram.dense import DenseGram, checked_matrix
from biclique.gram.factored import FactoredGram
from biclique.gram.sparse import NeighborGram, SparseGram, checked_sparse
from biclique.gram.spread import SpreadTiles
from biclique.gram.tiled import TiledGram, tiled_bytes
from biclique.gram.torch_gram import TorchGram
from biclique.hypergraph import Hypergraph
from biclique.hypergraph.expansions import ExpansionGram
from biclique.kernels import RBF
from biclique.kernels.named import DirectRBF
from biclique.multiway import SymmetricGram, symmetric_gram
from tests import oracles
from tests.conftest import frozen
from tests.gram.contract import GramContract

X = frozen(np.random.default_rng(0).random((300, 3)))
GROUPS = frozen(np.concatenate([np.random.default_rng(1).random((n, 3)) + at for n, at in ((30, 0), (20, 50))]))


class OfRows(GramContract):
    """An operator that is made of a kernel and rows."""

    kernel = RBF(0.7)

    def of(self, rows, n_jobs=None):
        raise NotImplementedError

    def create(self, n_jobs=None):
        return self.of(X, n_jobs), X

    def dense(self):
        return self.kernel.block(X, X)

    def far(self):
        return self.of(GROUPS)


class TestDense(OfRows):
    def of(self, rows, n_jobs=None):
        return DenseGram.from_kernel(self.kernel, rows, n_jobs=n_jobs)


class TestGiven(OfRows):
    keeps_rows = False

    def of(self, rows, n_jobs=None):
        return DenseGram(self.kernel.block(rows, rows), n_jobs=n_jobs)

    def create(self, n_jobs=None):
        return self.of(X, n_jobs), self.dense()


class TestSparse(TestGiven):
    is_graph = sees_parts = True

    def of(self, rows, n_jobs=None):
        return SparseGram(sparse.csr_array(self.kernel.block(rows, rows)), n_jobs=n_jobs)

    def test_a_matrix_with_negative_entries_is_no_graph(self):
        assert SparseGram(sparse.csr_array(np.array([[1.0, -0.1], [-0.1, 1.0]]))).graph() is None


class TestTiled(OfRows):
    def of(self, rows, n_jobs=None):
        return TiledGram(self.kernel, rows, dtype=np.float64, n_jobs=n_jobs)


class HereAndNow:
    """Workers that are none: tasks run one after the other, on rows that were pickled."""

    n_threads = 1

    def keep(self, gram):
        self.gram = pickle.loads(pickle.dumps(gram))

    def add_pairs(self, product, V, n_blocks):
        found = {(i, j): product(self.gram, V, i, j) for i in range(n_blocks) for j in range(i, n_blocks)}
        return [sum(found[min(i, j), max(i, j)][int(j < i)] for j in range(n_blocks)) for i in range(n_blocks)]


class TestSpreadTiles(TestTiled):
    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch):
        monkeypatch.setattr("biclique.gram.spread.BLOCK_ROWS", 40)

    def of(self, rows, n_jobs=None):
        return SpreadTiles(super().of(rows, n_jobs), HereAndNow())


class TestTiledDirect(TestTiled):
    kernel = DirectRBF(0.7)


class TestNeighbors(OfRows):
    is_graph = sees_parts = True

    def of(self, rows, n_jobs=None):
        return NeighborGram.from_rows(rows, 12, n_jobs=n_jobs)

    def dense(self):
        gaps = ((X[:, None] - X) ** 2).sum(axis=2)
        near = np.argsort(gaps, axis=1, kind="stable")[:, :12]
        A = np.zeros((len(X), len(X)))
        np.put_along_axis(A, near, 1.0, axis=1)
        return (A + A.T) / 2


class OfMap(OfRows):
    """K = ΦΦᵀ: what is tested is the product, not how near it is to the kernel."""

    kind, size = "", 20

    def map(self, rows):
        random = np.random.RandomState(0)
        return make_map(self.kind, self.kernel, rows, self.size, random=random, dtype=np.float64)

    def of(self, rows, n_jobs=None):
        return FactoredGram(self.map(rows), rows, n_jobs=n_jobs)

    def dense(self):
        features = self.map(X).features(X)
        return features @ features.T


class TestLandmarks(OfMap):
    kind = "nystroem"


class TestNeighborhoods(OfMap):
    def map(self, rows):
        return NeighborhoodMap(rows[: len(X) // 3], 5)

    def dense(self):
        return oracles.neighborhood_kernel(X, X[: len(X) // 3], 5)


@pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra [gpu]: torch")
class TestTorch(OfRows):
    tolerance = 1e-5

    def of(self, rows, n_jobs=None):  # noqa: ARG002
        return TorchGram(self.kernel, rows, device="cpu")


class TestSymmetricModelling(OfRows):
    def of(self, rows, n_jobs=None):
        return SymmetricGram(TiledGram(self.kernel, rows, dtype=np.float64, n_jobs=n_jobs), 3, np.ones(rows.shape[0]))

    def dense(self):
        return symmetric_gram(self.kernel.block(X, X), 3)


class TestStarExpansion(GramContract):
    keeps_rows, is_graph, sees_parts = False, True, True
    expansion = "star"

    def hypergraph(self):
        members = np.random.default_rng(5).random((60, 40)) < 0.1  # edges by vertices
        return Hypergraph(members[members.sum(axis=1) > 1])

    def create(self, n_jobs=None):
        hypergraph = self.hypergraph()
        return ExpansionGram(hypergraph, self.expansion, n_jobs=n_jobs), hypergraph.incidence

    def dense(self):
        H = self.hypergraph().incidence.toarray()
        return H @ np.diag(1 / H.sum(axis=0)) @ H.T

    def far(self):
        edges = [[i, i + 1] for i in range(49) if i != 29]
        return ExpansionGram(Hypergraph.from_edges(edges), self.expansion)


class TestCliqueExpansion(TestStarExpansion):
    expansion = "clique"

    def create(self, n_jobs=None):
        return super().create(n_jobs)[0], None  # a vertex is not paired with itself, but with a new one like it

    def dense(self):
        H = self.hypergraph().incidence.toarray()
        return H @ H.T - np.diag(H.sum(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiled_stays_within_what_it_says(dtype):
    rows, V = np.random.default_rng(0).normal(size=(4000, 16)), np.ones((4000, 14))
    tracemalloc.start()
    TiledGram(RBF(0.1), rows, dtype=dtype).matmat(V)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * tiled_bytes(4000, 16, 14, dtype) + 2**20
    assert peak < 4000 * 4000 * 4 / 2  # far from the matrix itself


def test_given_matrices_are_made_symmetric():
    K = np.eye(600)
    K[3, 550] = 0.5
    for check, matrix in ((checked_matrix, K), (checked_sparse, sparse.csr_array(K))):
        with pytest.warns(ApproximationWarning, match=r"symmetric matrix, but entries \(\d+, \d+\).* differ by 0.5"):
            fixed = check(matrix)
        assert fixed[3, 550] == fixed[550, 3] == 0.25
    K[550, 3] = 0.5 + 1e-8
    for check, matrix in ((checked_matrix, K), (checked_sparse, sparse.csr_array(K))):
        fixed = check(matrix)
        assert (fixed != fixed.T).sum() == 0
