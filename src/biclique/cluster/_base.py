"""What the spectral estimators share: input, embedding, output."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from biclique._typing import FloatArray, Rows
from biclique.cluster._checks import check_shared_parameters, check_values, check_weights
from biclique.cluster._spectrum import Spectrum, choose_kernel, estimate, find_vertices, fit_spectrum, make_plan
from biclique.exceptions import DataError
from biclique.gram import Cost, single_threaded_blas
from biclique.kernels import KERNEL_NAMES, Kernel, make_kernel
from biclique.progress import Progress


class SpectralBase(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Validation, the fitted spectrum and ``transform``; subclasses choose the columns and what to do with them."""

    _spectrum: Spectrum
    embedding_: FloatArray

    def _n_columns(self) -> int:
        """Columns of the embedding, the trivial one among them."""
        raise NotImplementedError

    def _output(self, embedding: FloatArray) -> FloatArray:
        """The columns that the user sees."""
        return embedding

    def _check_parameters(self) -> None:
        check_shared_parameters(self)

    def _read(self, X: Any, *, reset: bool) -> Rows:
        """X as a float array or CSR matrix, checked."""
        pairwise = isinstance(self.affinity, str) and self.affinity == "precomputed"
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )
        check_values(X, getattr(self, "feature_names_in_", None))
        if pairwise and reset and X.shape[0] != X.shape[1]:
            raise DataError(
                f"affinity='precomputed' needs a square matrix of similarities, got X of shape {X.shape}: leave "
                "affinity at 'rbf' for a table of features."
            )
        if sparse.issparse(X) and not pairwise:
            self._check_sparse()
        return X

    def _check_sparse(self) -> None:
        affinity = self.affinity
        accepts = isinstance(affinity, (str, Kernel)) and make_kernel(affinity, gamma=None).accepts_sparse
        if not accepts:
            names = [name for name in KERNEL_NAMES if make_kernel(name, gamma=None).accepts_sparse]
            raise DataError(
                f"sparse X works with affinity {', '.join(map(repr, names))}, not with {affinity!r}: use one of these, "
                "or pass X.toarray()."
            )

    def _fit_embedding(self, X: Any, sample_weight: Any) -> FloatArray:
        """Fit the spectrum, store what was chosen, and return the embedding of the rows of X."""
        self._check_parameters()
        X = self._read(X, reset=True)
        weights = check_weights(sample_weight, X.shape[0])
        self._check_rows(X.shape[0], int((weights > 0).sum()))
        with single_threaded_blas(), Progress(bool(self.verbose)) as progress:
            spectrum = fit_spectrum(self, X, weights, self._n_columns(), progress)
            embedding = spectrum.rows[spectrum.index]
            left_out = np.flatnonzero(spectrum.index < 0)
            if len(left_out):
                embedding[left_out] = spectrum.embed(X[left_out], self.n_jobs)
        self._spectrum = spectrum
        self.gamma_ = spectrum.gamma
        self.order_ = spectrum.order
        self.gram_ = spectrum.gram
        self.precision_ = spectrum.precision
        self.eigenvalues_ = spectrum.eigenvalues
        self.residuals_ = spectrum.residuals
        self.n_passes_ = self.n_iter_ = spectrum.n_passes
        self.embedding_ = self._output(embedding)
        self._n_features_out = self.embedding_.shape[1]
        return np.asarray(embedding)

    def _check_rows(self, n: int, n_positive: int) -> None:
        """Refuse too few rows."""

    def _embed(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = self._read(X, reset=False)
        with single_threaded_blas():
            return self._spectrum.embed(X, self.n_jobs)

    def transform(self, X: Any) -> FloatArray:
        """The embedding of rows, by the closed-form extension; a training row gets its own row back.

        Parameters
        ----------
        X : array, data frame or CSR matrix of shape (n_new, n_features)
            With ``affinity="precomputed"``: similarities of shape (n_new, n_train).

        Returns
        -------
        ndarray of shape (n_new, n_columns)
        """
        return self._output(self._embed(X))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> FloatArray:
        """Fit, and return ``embedding_``."""
        del y
        self.fit(X, sample_weight=sample_weight)
        return self.embedding_

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        raise NotImplementedError

    def estimate_cost(self, X: Any, sample_weight: Any = None) -> Cost:
        """Time and memory that ``fit`` would take, from the speed of a few tiles of these rows; nothing is fitted.

        Returns
        -------
        Cost
            With ``seconds``, ``bytes``, ``gram`` and ``rows`` (distinct ones); printed, a sentence.
        """
        self._check_parameters()
        X = self._read(X, reset=True)
        vertices = find_vertices(self, X, check_weights(sample_weight, X.shape[0]))
        kernel, _ = choose_kernel(self, vertices, np.random.RandomState(0))
        n_vectors = max(min(self._n_columns(), vertices.n) - 1, 1)
        return estimate(self, vertices, kernel, make_plan(self, vertices, kernel, n_vectors))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.affinity, str) and self.affinity == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
