"""The contract of every row source, as one class of tests.

A source is held to it by a subclass with ``create`` (see ``test_sources.py``):

    class TestMine(RowContract):
        def create(self, X, weights):
            return MySource(X, weights)
"""

from abc import ABC, abstractmethod

import numpy as np
import pytest
from scipy import sparse

from biclique.progress import Progress
from biclique.runtime.namespace import on_host, to_host

QUIET = Progress(False)


def as_array(rows):
    return rows.toarray() if sparse.issparse(rows) else np.array(to_host(rows))


class RowContract(ABC):
    rows, columns = 700, 3
    names = None
    """Of the columns."""
    keeps_weights = True
    """Whether all weights are in memory at once."""

    @abstractmethod
    def create(self, X, weights):
        """A source of the rows of X, an array; ``weights`` are theirs, or None."""

    @pytest.fixture
    def X(self):
        """Distinct rows: the first column is the number of a row."""
        X = np.random.default_rng(0).random((self.rows, self.columns))
        X[:, 0] = np.arange(self.rows)
        X.setflags(write=False)
        return X

    @pytest.fixture
    def weights(self):
        """Multiplicities; a third of the rows does not count."""
        return np.arange(self.rows) % 3 / 2.0

    def blocks(self, source):
        """One pass, as arrays: rows, weights, and the numbers of the first ones."""
        found = source.map(
            lambda block: (as_array(block.rows), np.array(to_host(block.weights)), block.start), "test", QUIET
        )
        rows, weights, starts = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(weights), list(starts), [len(piece) for piece in rows]

    def test_what_it_says_about_itself(self, X, weights):
        source = self.create(X, weights)
        assert source.n_columns == self.columns
        assert source.n_rows == self.rows
        assert source.names == self.names
        assert isinstance(source.in_memory, bool)
        assert not self.keeps_weights or np.array_equal(source.weights, weights)
        assert source.n_counted == (weights > 0).sum()

    def test_a_pass_has_every_row_once_and_in_order(self, X, weights):
        source = self.create(X, weights)
        for _ in range(2):  # as often as is asked
            rows, found, starts, lengths = self.blocks(source)
            assert np.array_equal(rows, X)
            assert np.array_equal(found, weights)
            assert starts == np.cumsum([0, *lengths[:-1]]).tolist()
            assert min(lengths) > 0

    def test_without_weights_every_row_counts_once(self, X):
        source = self.create(X, None)
        assert np.array_equal(self.blocks(source)[1], np.ones(self.rows))
        assert source.n_counted == self.rows
        assert np.array_equal(source.draw(10, np.random.RandomState(0))[1], np.ones(10))

    def test_sums(self, X, weights):
        source = self.create(X, weights)

        def of_block(block):
            return np.array(to_host(block.weights)) @ as_array(block.rows)

        once, again = (source.sum(of_block, "test", QUIET) for _ in range(2))
        np.testing.assert_allclose(once, weights @ X, rtol=1e-12)
        assert np.array_equal(once, again)

    @pytest.mark.parametrize("weighted", [True, False])
    def test_draws(self, X, weights, weighted):
        source = self.create(X, weights if weighted else None)
        counted = np.flatnonzero(weights) if weighted else np.arange(self.rows)
        rows, found = source.draw(50, np.random.RandomState(3))
        assert on_host(rows)
        assert isinstance(found, np.ndarray)
        rows = as_array(rows)
        numbers = rows[:, 0].astype(int)
        assert rows.shape == (50, self.columns)
        assert (np.diff(numbers) > 0).all()  # none twice, in their order
        assert np.isin(numbers, counted).all()
        assert np.array_equal(rows, X[numbers])
        assert np.array_equal(found, weights[numbers] if weighted else np.ones(50))
        again = self.create(X, weights if weighted else None).draw(50, np.random.RandomState(3))[0]
        assert np.array_equal(as_array(again), rows)
        all_of_them = as_array(source.draw(10 * self.rows, np.random.RandomState(3))[0])
        assert np.array_equal(all_of_them, X[counted])

    def test_draws_are_even(self, X):
        source, random = self.create(X, None), np.random.RandomState(0)
        drawn = np.concatenate([as_array(source.draw(70, random)[0])[:, 0] for _ in range(40)]).astype(int)
        tenths = np.bincount(drawn * 10 // self.rows, minlength=10)
        assert np.abs(tenths - 280).max() < 5 * np.sqrt(280)

    def test_rows_in_memory_are_held(self, X, weights):
        source = self.create(X, weights)
        if not source.in_memory:
            with pytest.raises(TypeError, match="rows in memory are needed"):
                _ = source.held
            return
        assert np.array_equal(as_array(source.held), X)
        assert np.array_equal(as_array(source.placed()), X)
