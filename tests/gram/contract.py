"""The contract of every Gram operator, as one class of tests.

An operator is held to it by a subclass with ``create`` and ``dense`` (see ``test_operators.py``):

    class TestMine(GramContract):
        def create(self, n_jobs=None):
            return MyGram(X, n_jobs=n_jobs), X
        def dense(self):
            return ...  # the same K, by its definition
"""

import pickle
from abc import ABC, abstractmethod

import numpy as np
import pytest
from scipy import sparse

from biclique.runtime.namespace import namespace, to_host
from tests.calls import refuses
from tests.conftest import frozen


def vectors(n, b, seed=2):
    return frozen(np.random.default_rng(seed).normal(size=(n, b)))


def as_array(X):
    return X.toarray() if sparse.issparse(X) else to_host(X)


class GramContract(ABC):
    tolerance = 1e-12
    """The largest error of a product, relative to Σ_j |κ| |v|."""
    is_graph = False
    """Whether ``graph`` gives K, for multigrid; else it is None."""
    keeps_rows = True
    """Whether ``training`` gives what a model keeps; else it is None."""
    sees_parts = False
    """Whether ``parts`` tells the groups of ``far`` apart; else it is None."""

    far = None
    """A method that gives the operator of 30 rows and, far from them, 20 others."""

    @abstractmethod
    def create(self, n_jobs=None):
        """The operator, and rows whose ``cross`` is K itself: the training rows. None if there are no such rows."""

    @abstractmethod
    def dense(self):
        """The same K as an array, by its definition."""

    def off(self, product, K, V):
        product = to_host(product)
        assert product.dtype == np.float64
        assert product.shape == (len(K), V.shape[1])
        return np.abs(product - K @ V).max() / (np.abs(K) @ np.abs(V)).max()

    def test_what_it_says_about_itself(self):
        gram, _ = self.create()
        n = len(self.dense())
        assert gram.n == n
        assert gram.dtype in (np.dtype(np.float32), np.dtype(np.float64))
        assert isinstance(gram.name, str)
        for fact in (gram.passes_are_cheap, gram.nonnegative):
            assert isinstance(fact, bool)
        assert isinstance(gram.noise, float)
        assert gram.noise >= np.finfo(gram.dtype).eps
        assert self.dense().min() >= 0 or not gram.nonnegative

    @pytest.mark.parametrize("b", [1, 17])
    def test_products_are_those_of_the_dense_form(self, b):
        (gram, _), K = self.create(), self.dense()
        V = vectors(len(K), b)
        assert self.off(gram.matmat(V), K, V) < self.tolerance
        assert self.off(gram.matmat(np.asfortranarray(V)), K, V) < self.tolerance
        assert np.array_equal(to_host(gram.matmat(V)), to_host(gram.matmat(V)))

    def test_diagonal(self):
        (gram, _), K = self.create(), self.dense()
        found = gram.diagonal()
        assert namespace(found) is namespace(gram.like)
        np.testing.assert_allclose(to_host(found), np.diagonal(K), rtol=0, atol=self.tolerance * np.abs(K).max())

    def test_bits_do_not_depend_on_threads(self):
        V = vectors(len(self.dense()), 5)
        products = [to_host(self.create(n_jobs)[0].matmat(V)) for n_jobs in (1, 2, 3, 7)]
        for product in products[1:]:
            assert np.array_equal(products[0], product)

    def test_the_training_rows_as_new_rows_give_the_matrix(self):
        (gram, rows), K = self.create(), self.dense()
        if rows is None:
            pytest.skip("no rows are compared with the training rows")
        V = vectors(len(K), 5)
        assert self.off(gram.cross(rows).matmat(V), K, V) < self.tolerance

    def test_a_graph_is_k_without_negative_entries(self):
        (gram, _), K = self.create(), self.dense()
        found = gram.graph()
        assert (found is not None) == self.is_graph
        if self.is_graph:
            assert sparse.issparse(found)
            assert found.data.min() >= 0
            np.testing.assert_allclose(found.toarray(), K, rtol=0, atol=self.tolerance * np.abs(K).max())

    def test_some_of_the_rows(self):
        (gram, _), K = self.create(), self.dense()
        members = np.arange(gram.n)[::-3].copy()
        if not self.sees_parts:
            refuses(NotImplementedError, "has no parts", gram.restricted, members)
            return
        V = vectors(len(members), 3)
        assert self.off(gram.restricted(members).matmat(V), K[np.ix_(members, members)], V) < self.tolerance

    def test_what_a_model_keeps_meets_new_rows_as_the_operator_does(self):
        gram, rows = self.create()
        kept = gram.training()
        assert (kept is not None) == self.keeps_rows
        if kept is None:
            return
        V = vectors(gram.n, 4)
        expected = to_host(gram.cross(rows).matmat(V))
        again = pickle.loads(pickle.dumps(kept))
        for found in (kept, again):
            np.testing.assert_allclose(found.cross(rows).matmat(V), expected, rtol=0, atol=self.tolerance * gram.n)
            assert np.array_equal(found.cross(rows, n_jobs=2).matmat(V), found.cross(rows, n_jobs=1).matmat(V))
            assert found.rows.shape[0] == gram.n
            assert np.array_equal(as_array(found.hold(rows)), as_array(found.rows))

    def test_parts(self):
        gram = self.create()[0] if self.far is None else self.far()
        found = gram.parts()
        assert (found is not None) == self.sees_parts
        if self.sees_parts:
            assert found.dtype.kind == "i"
            assert np.bincount(found).tolist() == [30, 20]
