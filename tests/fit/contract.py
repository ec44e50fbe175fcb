"""The contract of every fitted model, as one class of tests.

A way of fitting is held to it by a subclass with ``create`` (see ``test_fitted.py``):

    class TestMine(FittedContract):
        def create(self):
            return model.fit(X), X, new
"""

import pickle
import warnings
from abc import ABC, abstractmethod

import numpy as np
import pytest
from scipy import sparse

from biclique.exceptions import BicliqueWarning
from biclique.fit.fitted import Fitted


class FittedContract(ABC):
    tolerance = 0.0
    """Of the embedding of training rows, where they are not looked up."""
    keeps_tensors = False
    exact_copies = True
    """Whether a copy, which is the host's, gives the same bits."""

    @abstractmethod
    def create(self):
        """A fitted estimator, its training rows, and new rows like some of them."""

    @pytest.fixture
    def made(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BicliqueWarning)
            model, X, new = self.create()
        return model, model._fitted, X, new

    def test_training_rows_get_their_own_row_of_the_embedding(self, made):
        model, fitted, X, _ = made
        n_columns = fitted.settings.n_columns
        found = fitted.embed(X, 1)
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.float64
        assert found.shape == (X.shape[0], n_columns)
        np.testing.assert_allclose(found, model.embedding_, rtol=0, atol=self.tolerance)

    def test_training_rows_get_their_own_label(self, made):
        model, fitted, X, _ = made
        found = fitted.labels(X, 1)
        assert isinstance(found, np.ndarray)
        assert found.dtype.kind == "i"
        assert np.array_equal(found, model.labels_)
        assert np.array_equal(np.unique(found), np.arange(fitted.settings.n_clusters))

    def test_eigenvalues_and_residuals(self, made):
        model, fitted, _, _ = made
        n_columns = fitted.settings.n_columns
        for found, stored in ((fitted.eigenvalues, model.eigenvalues_), (fitted.residuals, model.residuals_)):
            assert found.shape == (n_columns - 1,)
            assert np.isfinite(found).all()
            assert np.array_equal(found, stored)
        assert (np.diff(fitted.eigenvalues) <= 0).all()
        assert (fitted.residuals >= 0).all()

    def test_what_it_says_about_itself(self, made):
        model, fitted, _, _ = made
        assert isinstance(fitted, Fitted)
        assert fitted.settings.random_state == 0
        assert fitted.chosen.order == model.order_
        assert fitted.chosen.gram_reason
        assert fitted.n_passes == model.n_passes_ >= 1
        assert fitted.points.keeps_tensors == self.keeps_tensors

    def test_rows_do_not_see_each_other(self, made):
        _, fitted, X, new = made
        labels = fitted.labels(new, 1)
        assert labels.shape == (new.shape[0],)
        assert np.array_equal(fitted.labels(new[::-1], 1), labels[::-1])
        np.testing.assert_allclose(fitted.embed(new[::-1], 1), fitted.embed(new, 1)[::-1], rtol=0, atol=1e-6)
        both = sparse.vstack([X, new], format="csr") if sparse.issparse(X) else np.concatenate([X, new])
        assert np.array_equal(fitted.labels(both, 1)[X.shape[0] :], labels)

    def test_threads_do_not_show(self, made):
        _, fitted, X, new = made
        for rows in (X, new):
            assert np.array_equal(fitted.embed(rows, 1), fitted.embed(rows, 2))

    def test_a_pickled_copy(self, made):
        _, fitted, X, new = made
        again = pickle.loads(pickle.dumps(fitted))
        if self.exact_copies:
            assert np.array_equal(again.eigenvalues, fitted.eigenvalues)
            for rows in (X, new):
                assert np.array_equal(again.embed(rows, 1), fitted.embed(rows, 1))
                assert np.array_equal(again.labels(rows, 1), fitted.labels(rows, 1))
            return
        assert not again.points.keeps_tensors
        assert np.array_equal(again.labels(new, 1), fitted.labels(new, 1))
        np.testing.assert_allclose(again.embed(new, 1), fitted.embed(new, 1), rtol=0, atol=1e-4)
