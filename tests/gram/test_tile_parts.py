import numpy as np
import pytest
from scipy import sparse

from biclique.gram import DenseGram, SparseGram, TiledGram, tile_parts
from biclique.kernels import RBF


def groups(*sizes, apart=100.0):
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(size, 2)) + np.array([apart * i, 0]) for i, size in enumerate(sizes)])


def operators(X, gamma=0.2):
    kernel = RBF(gamma)
    yield DenseGram.from_kernel(kernel, X, memory_limit=2**30)
    yield TiledGram(kernel, X)
    yield SparseGram(sparse.csr_array(np.where(kernel.block(X, X) > 1e-8, kernel.block(X, X), 0)))


def part_sizes(gram, degrees, weights, random_state, columns=32):
    """Rows of every part, largest first."""
    return np.sort(np.bincount(gram.parts(degrees, weights, random_state, columns)))[::-1]


@pytest.mark.parametrize("sizes", [(200,), (150, 100), (300, 40, 1), (1500, 200, 1, 1)])
def test_parts_are_found_by_every_operator(sizes):
    X = groups(*sizes)
    X = X[np.random.default_rng(1).permutation(len(X))]
    for gram in operators(X):
        degrees = gram.matmat(np.ones((len(X), 1)))[:, 0]
        found = part_sizes(gram, degrees, np.ones(len(X)), 0)
        # An outlier of a normal group may be cut off too: only the large parts are certain.
        assert found[0] == pytest.approx(sizes[0], abs=5)
        assert (len(found) == 1) == (len(sizes) == 1)


def test_a_sample_that_falls_apart_does_not_raise_a_false_alarm():
    # A thread of 3,000 points, linked one to the next, but not within a sample of 1,000.
    X = np.column_stack([np.arange(3000.0), np.zeros(3000)])
    gram = TiledGram(RBF(2.0), X)
    degrees = gram.matmat(np.ones((3000, 1)))[:, 0]
    assert part_sizes(gram, degrees, np.ones(3000), 0).tolist() == [3000]


def test_stored_zeros_and_whispers_of_a_sparse_matrix_are_no_links():
    block = np.kron(np.eye(3), np.ones((4, 4)))
    K = sparse.csr_array(np.where(block > 0, block, 1e-12))
    K.data[K.data < 1] *= np.arange(int((K.data < 1).sum())) % 2  # half of the whispers stored as zeros
    gram = SparseGram(K)
    assert part_sizes(gram, block.sum(axis=1), np.ones(12), 0).tolist() == [4, 4, 4]


def test_every_point_on_its_own():
    X = groups(*[1] * 40)
    for gram in operators(X):
        degrees = gram.matmat(np.ones((40, 1)))[:, 0]
        assert part_sizes(gram, degrees, np.ones(40), 0).tolist() == [1] * 40


def test_large_and_small_parts_of_weighted_tiles():
    sizes = (1900, 1500, 400, 30, 3, 2)  # three are large, the others are checked by their rows
    random = np.random.default_rng(2)
    centres = 100 * np.repeat(np.arange(6.0), sizes)
    X = np.column_stack([centres + random.uniform(-2, 2, len(centres)), random.uniform(-2, 2, len(centres))])
    weights = random.integers(1, 5, len(X)).astype(float)
    gram = TiledGram(RBF(0.2), X)
    degrees = gram.matmat(weights[:, None])[:, 0]
    passes = []
    plain, gram.matmat = gram.matmat, lambda V: passes.append(V.shape[1]) or plain(V)
    assert part_sizes(gram, degrees, weights, 0).tolist() == list(sizes)
    assert passes == [2]


@pytest.mark.parametrize("columns", [2, 4])  # with a tree and without
def test_the_mass_of_small_parts_is_its_definition(columns, monkeypatch):
    monkeypatch.setattr(tile_parts, "FEW_AT_ONCE", 7)
    random = np.random.default_rng(5)
    X = random.uniform(0, 12, (700, columns))
    parts = np.concatenate([[0] * 600, random.integers(1, 6, 100)])
    weights = random.uniform(0.1, 3, 700)
    gram = TiledGram(RBF(3.0), X, dtype=np.float64)
    rest = random.permutation(700)
    small = np.arange(6) > 0
    found = tile_parts._mass_of_few(gram, rest, parts[rest], small, weights)
    K = weights[:, None] * RBF(3.0).block(X, X) * weights
    exact = np.array([[K[np.ix_(parts == i, parts == j)].sum() for j in range(6)] for i in range(6)])
    np.testing.assert_allclose(found[1:], exact[1:], rtol=1e-5, atol=1e-7)
    assert not found[0].any()


def test_sparse_groups_beside_dense_ones_are_parts():
    # Of the sparse groups a sample holds rows that see no other; they belong to no group until all rows are asked.
    random = np.random.default_rng(4)
    dense = [random.uniform(-1, 1, (2000, 2)) + (40 * i, 0) for i in range(3)]
    grid = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), axis=-1).reshape(-1, 2)
    sparser = [2.2 * grid + random.uniform(-0.2, 0.2, (100, 2)) + (80 * i, 100) for i in range(5)]
    X = np.concatenate([*dense, *sparser, [[500.0, 500.0]]])
    gram = TiledGram(RBF(1.0), X, dtype=np.float32)
    degrees = gram.matmat(np.ones((len(X), 1)))[:, 0]
    assert part_sizes(gram, degrees, np.ones(len(X)), 0, columns=7).tolist() == [2000] * 3 + [100] * 5 + [1]
