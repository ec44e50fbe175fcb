"""The contract of every row source, and what those in memory keep besides."""

import numpy as np
import pytest
from scipy import sparse

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.progress import Progress
from biclique.rows import array
from biclique.rows.array import ArrayRows
from biclique.runtime.namespace import on_host, to_host
from tests import oracles
from tests.optional import Optional, needs

da, torch, dask_rows = Optional("dask.array"), Optional("torch"), Optional("biclique.rows.dask_rows")
QUIET = Progress(False)
N, D, NAMES = 700, 3, ("a", "b", "c")


def in_memory(X, weights, *more, **options):
    return ArrayRows(X, np.ones(N) if weights is None else weights, *more, **options)


def of_dask(X, weights, lengths=(300, 1, 0, 399)):
    """In chunks; NaN stands for lengths that Dask does not know."""

    def cut(values):
        chunks = da.from_array(values, chunks=((300, 1, 0, 399), *((width,) for width in values.shape[1:])))
        return chunks.map_blocks(lambda block: block, chunks=(lengths, *chunks.chunks[1:]), dtype=float)

    return dask_rows.open_dask_rows(cut(X), None if weights is None else cut(weights), lambda rows, numbers: None)


SOURCES = {
    "array": (lambda X, weights: in_memory(X, weights, NAMES), ()),
    "sparse": (lambda X, weights: in_memory(sparse.csr_array(X), weights), ()),
    "pieces": (lambda X, weights: in_memory(X, weights, block_rows=99), ()),
    "device": (lambda X, weights: in_memory(X, weights, device="cpu"), needs("torch")),
    "tensor": (lambda X, weights: in_memory(torch.tensor(X), weights, device="cpu"), needs("torch")),
    "chunks": (of_dask, needs("dask")),
    "chunks of unknown lengths": (lambda X, weights: of_dask(X, weights, (np.nan,) * 4), needs("dask")),
}
"""What makes a source of rows and weights, which may be None; and the package that it needs."""


@pytest.fixture(params=[pytest.param(make, id=name, marks=marks) for name, (make, marks) in SOURCES.items()])
def create(request):
    return request.param


@pytest.fixture
def X():
    """Distinct rows: the first column is the number of a row."""
    X = np.random.default_rng(0).random((N, D))
    X[:, 0] = np.arange(N)
    X.setflags(write=False)
    return X


WEIGHTS = np.arange(N) % 3 / 2.0
"""Multiplicities; a third of the rows does not count."""
WEIGHTS.setflags(write=False)


def as_array(rows):
    return rows.toarray() if sparse.issparse(rows) else np.array(to_host(rows))


def blocks(source):
    """One pass, as arrays: rows, weights, and the numbers of the first ones."""
    found = source.map(
        lambda block: (as_array(block.rows), np.array(to_host(block.weights)), block.start), "test", QUIET
    )
    rows, weights, starts = zip(*found, strict=True)
    return np.concatenate(rows), np.concatenate(weights), list(starts), [len(piece) for piece in rows]


def test_what_it_says_about_itself(create, X):
    source = create(X, WEIGHTS)
    assert (source.n_rows, source.n_columns) == (N, D)
    assert source.names == (NAMES if create is SOURCES["array"][0] else None)
    assert source.n_counted == (WEIGHTS > 0).sum()
    if not source.in_memory:
        with pytest.raises(TypeError, match="rows in memory are needed"):
            _ = source.held
        return
    assert np.array_equal(source.weights, WEIGHTS)
    assert np.array_equal(as_array(source.held), X)
    assert np.array_equal(as_array(source.placed()), X)


def test_a_pass_has_every_row_once_and_in_order(create, X):
    source = create(X, WEIGHTS)
    for _ in range(2):  # as often as is asked
        rows, found, starts, lengths = blocks(source)
        assert np.array_equal(rows, X)
        assert np.array_equal(found, WEIGHTS)
        assert starts == np.cumsum([0, *lengths[:-1]]).tolist()
        assert min(lengths) > 0


def test_without_weights_every_row_counts_once(create, X):
    source = create(X, None)
    assert np.array_equal(blocks(source)[1], np.ones(N))
    assert source.n_counted == N
    assert np.array_equal(source.draw(10, np.random.RandomState(0))[1], np.ones(10))


def test_sums(create, X):
    source = create(X, WEIGHTS)

    def of_block(block):
        return np.array(to_host(block.weights)) @ as_array(block.rows)

    once, again = (source.sum(of_block, "test", QUIET) for _ in range(2))
    np.testing.assert_allclose(once, WEIGHTS @ X, rtol=1e-12)
    assert np.array_equal(once, again)


@pytest.mark.parametrize("weights", [WEIGHTS, None], ids=["weighted", "plain"])
def test_draws(create, X, weights):
    source = create(X, weights)
    counted = np.arange(N) if weights is None else np.flatnonzero(weights)
    rows, found = source.draw(50, np.random.RandomState(3))
    assert on_host(rows)
    assert isinstance(found, np.ndarray)
    rows = as_array(rows)
    numbers = rows[:, 0].astype(int)
    assert rows.shape == (50, D)
    assert (np.diff(numbers) > 0).all()  # none twice, in their order
    assert np.isin(numbers, counted).all()
    assert np.array_equal(rows, X[numbers])
    assert np.array_equal(found, np.ones(50) if weights is None else weights[numbers])
    again = create(X, weights).draw(50, np.random.RandomState(3))[0]
    assert np.array_equal(as_array(again), rows)
    all_of_them = as_array(source.draw(10 * N, np.random.RandomState(3))[0])
    assert np.array_equal(all_of_them, X[counted])


def test_draws_are_even(create, X):
    source, random = create(X, None), np.random.RandomState(0)
    drawn = np.concatenate([as_array(source.draw(70, random)[0])[:, 0] for _ in range(40)]).astype(int)
    tenths = np.bincount(drawn * 10 // N, minlength=10)
    assert np.abs(tenths - 280).max() < 5 * np.sqrt(280)


# Rows in memory


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_memory_map_is_not_copied(tmp_path, dtype):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(100, 3)).astype(dtype))
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = BicliqueSpectralClustering(2)
    source = model._source(model._settings(), X, None, QUIET)
    assert np.shares_memory(source.held, X)
    blocks = source.map(lambda block: np.shares_memory(block.rows, X), "test", QUIET)
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
