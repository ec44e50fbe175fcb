"""What the spectral estimators share: the ways of holding K, the embedding, ``transform``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from biclique._typing import FloatArray, Rows
from biclique.cluster.estimator import KernelEstimator, is_source
from biclique.device.torch_tiles import check_device_kernel, check_device_precision
from biclique.exceptions import DataError, ParameterError
from biclique.fit.checks import (
    PRECOMPUTED,
    check_device_name,
    check_fast,
    check_solver_parameters,
    check_values,
    check_weights,
    is_neighbors,
)
from biclique.fit.cost import Cost, estimate_neighbors
from biclique.fit.exact import ExactFit, SolverOptions, Spectrum
from biclique.fit.graphs import NeighborFit, fit_neighbors, graph_bytes
from biclique.fit.on_device import DeviceFit, estimate_device, fit_device
from biclique.fit.rank import check_map_on_device
from biclique.fit.three_passes import (
    ArrayRows,
    ChunkRows,
    DeviceRows,
    FactoredFit,
    FactoredSearch,
    FactoredTrial,
    RowSource,
    estimate_fit,
)
from biclique.gram import FACTORED, Choice, choose_gram, exact_features
from biclique.io import open_chunks
from biclique.kernels import Kernel, check_rows_for_kernel, make_kernel
from biclique.rows.distinct import digests
from biclique.runtime.memory import parse_memory_limit
from biclique.runtime.namespace import on_host, to_host
from biclique.runtime.threads import single_threaded_blas

FITTED = ("_fitted", "_training", "_assignment", "_vertex_labels", "_n_features_out")
"""What a fit leaves besides the attributes that end in an underscore."""


class SpectralBase(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """The fitted embedding and ``transform``; subclasses choose the columns and what to do with them."""

    _fitted: Spectrum | FactoredFit | NeighborFit | DeviceFit
    embedding_: FloatArray

    def _output(self, embedding: FloatArray) -> FloatArray:
        """The columns that the user sees."""
        return embedding

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_solver_parameters(self)
        check_device_name(self.device)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    # Fit: three ways to hold K, and what is left to do with each embedding

    def _fit(self, X: Any, sample_weight: Any) -> int:
        """Fit by the way that the affinity, the rows and ``gram`` ask for; returns the number of vertices.

        A fit that fails leaves the model as it was.
        """
        before = dict(self.__dict__)
        try:
            self._check_parameters()
            self._forget()
            return self._fit_some_way(X, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit_some_way(self, X: Any, sample_weight: Any) -> int:
        device = self._device_of(X)
        if is_source(X):
            source = self._read_source(X, sample_weight)
            return self._fit_factored(source, self._choose_for_source(source.n_columns))
        X, weights = self._checked(X, sample_weight, keep=True)
        if device is not None:
            self._check_device(X, device)
        if device is not None and self.gram in FACTORED:
            return self._fit_factored(DeviceRows(X, weights, device), Choice(self.gram, f"as asked for, on {device}"))
        if device is not None:
            return self._fit_device(X, weights, device)
        if is_neighbors(self.affinity):
            return self._fit_neighbors(X, weights)
        choice = self._choose_factored(X)
        if choice is not None:
            check_rows_for_kernel(self.affinity, X)
            return self._fit_factored(ArrayRows(X, weights), choice)
        return self._fit_exact(X, weights)

    def _device_of(self, X: Any) -> Any:
        """The device that is asked for: by name, or by a tensor, which stays where it is."""
        device = X.device if self.device is None and not on_host(X) else self.device
        check_fast(self.precision, device)
        return device

    def _forget(self) -> None:
        """Drop what an earlier fit has left."""
        for name in [name for name in vars(self) if name.endswith("_") or name in FITTED]:
            delattr(self, name)

    def _fit_exact(self, X: Rows, weights: FloatArray) -> int:
        with self._working() as progress:
            options = SolverOptions(self.eigen_solver, self.eigen_tol, self.max_iter, self.precision)
            fit = self._solve(X, weights, self._n_columns(), options, progress)
            spectrum, vertices = fit.solved.spectrum, fit.prepared.vertices
            self._fitted, self._training = spectrum, spectrum.training
            self.embedding_ = self._output(spectrum.embed_vertices(X, vertices.index, self.n_jobs))
            self._finish_exact(X, fit)
            self._store_spectrum(spectrum.eigenvalues, spectrum.residuals, fit.solved.cut.n_passes)
        fewer_rows = vertices.n < getattr(self, "n_clusters", 0)
        fit.warn(self._n_columns(), self._n_groups(), fewer_rows=fewer_rows)
        return vertices.n

    def _fit_factored(self, source: RowSource, choice: Choice) -> int:
        names = getattr(self, "feature_names_in_", None)
        with self._working() as progress:
            search = FactoredSearch(
                self,
                source,
                choice.name,
                self._n_columns(),
                self._n_groups(),
                progress,
                names,
                assign=getattr(self, "_assign_factored", None),
            )
            tried = search.run()
            fitted, spectrum = tried.fit, tried.fit.spectrum
            self._fitted = fitted
            if tried.finished is not None and tried.finished.embedding is not None:
                self.embedding_ = self._output(tried.finished.embedding)
            self._finish_factored(tried)
            missing = self._n_columns() - 1 - len(spectrum.values)
            self._store_spectrum(np.pad(spectrum.values, (0, missing)), np.pad(spectrum.residuals, (0, missing)), 3)
        self._store_choices(
            choice,
            gamma=fitted.gamma,
            order=fitted.order,
            order_reason=fitted.order_reason,
            precision=str(spectrum.map.dtype),
            rank=spectrum.map.size,
            error=fitted.error,
        )
        return len(fitted.pool.distinct)

    def _fit_device(self, X: Rows, weights: FloatArray, device: Any) -> int:
        with self._working() as progress:
            fitted = fit_device(self, X, weights, self._n_columns(), self._n_groups(), progress, device)
            self._fitted = fitted
            self._finish_device(weights, fitted)
            facts = fitted.facts
            self._store_spectrum(facts["eigenvalues"], facts["residuals"], facts["n_passes"])
            self.embedding_ = self._output(to_host(fitted.rows))
        self._store_choices(
            Choice(facts["gram"], facts["reason"]),
            gamma=facts["gamma"],
            order=facts["order"],
            order_reason=facts["order_reason"],
            precision=facts["precision"],
            rank=None,
            error=None,
        )
        return len(X)

    def _check_device(self, X: Rows, device: Any) -> None:
        """What a device cannot do."""
        way_out = "leave device at None" if on_host(X) else "pass X.cpu().numpy() and leave device at None"
        if is_neighbors(self.affinity) or self.affinity == "precomputed" or not self._pointwise():
            raise ParameterError(
                f"device={str(device)!r} works with a kernel by name, modelling='biclique' and "
                f"assign_labels='kmeans', 'cluster_qr' or 'discretize': {way_out} for the rest."
            )
        if sparse.issparse(X):
            raise DataError("device= needs dense rows: pass X.toarray(), or leave device at None.")
        check_device_precision(self.precision, device)
        if self.gram in FACTORED:
            check_map_on_device(self, self.gram, self._bare_kernel(), X.shape[1])
        else:
            check_device_kernel(self._bare_kernel())

    def _fit_neighbors(self, X: Rows, weights: FloatArray) -> int:
        with self._working() as progress:
            fitted = fit_neighbors(self, X, weights, self._n_columns(), getattr(self, "n_clusters", None), progress)
            self._fitted = fitted
            self.embedding_ = self._output(fitted.embed_vertices(X, fitted.vertices.index))
            self._finish_neighbors(X, fitted)
            self._store_spectrum(fitted.eigenvalues, fitted.residuals, fitted.n_passes)
        self._store_choices(
            Choice("neighbors", fitted.search),
            gamma=fitted.gamma,
            order=fitted.order,
            order_reason=fitted.order_reason,
            precision="float64",
            rank=None,
            error=None,
        )
        return fitted.vertices.n

    def _finish_exact(self, X: Rows, fit: ExactFit) -> None:
        """What a subclass does with the embedding of an exact K."""

    def _finish_factored(self, tried: FactoredTrial) -> None:
        """What a subclass does with the fit of a factored K."""

    def _is_tested(self) -> bool:
        """Whether the labels by which an order is tested are those asked for."""
        return False

    def _finish_neighbors(self, X: Rows, fitted: NeighborFit) -> None:
        """What a subclass does with the embedding of a neighbour graph."""

    def _finish_device(self, weights: FloatArray, fitted: DeviceFit) -> None:
        """What a subclass does with an embedding on a device."""

    def _store_spectrum(self, eigenvalues: FloatArray, residuals: FloatArray, n_passes: int) -> None:
        self.eigenvalues_, self.residuals_ = eigenvalues, residuals
        self.n_passes_ = self.n_iter_ = n_passes
        self._n_features_out = self._output(np.empty((0, self._n_columns()))).shape[1]

    def estimate_cost(self, X: Any, sample_weight: Any = None) -> Cost:
        """Time and memory that ``fit`` would take, from the speed of a few blocks of these rows; nothing is fitted.

        On a GPU, which need not be there, the time is that of an NVIDIA H200 (``docs/performance.md``), with PyTorch's
        tiles where the device is not CUDA's or has no fused kernel for what is asked.

        Returns
        -------
        Cost
            With ``seconds``, ``bytes``, ``gram`` and ``rows``, and where a device is asked for ``device`` and
            ``device_bytes``; printed, a sentence.
        """
        model = clone(self)  # a fitted model keeps what it learned of its columns
        model._check_parameters()
        columns, device = model._n_columns(), model._device_of(X)
        if is_source(X):
            source = model._read_source(X, sample_weight)
            return estimate_fit(model, source, model._choose_for_source(source.n_columns).name, columns)
        rows, weights = model._checked(X, sample_weight, keep=True)
        if device is not None:
            model._check_device(rows, device)
            if model.gram in FACTORED:
                return estimate_fit(model, ArrayRows(rows, weights), model.gram, columns, device)
            return estimate_device(model, rows, model._bare_kernel(), columns, device)
        if is_neighbors(model.affinity):
            n, d = rows.shape
            seconds = estimate_neighbors(n, 1 if model.affinity in PRECOMPUTED else d, columns)
            return Cost("neighbors", n, seconds, graph_bytes(model, rows, columns))
        choice = model._choose_factored(rows)
        if choice is not None:
            return estimate_fit(model, ArrayRows(rows, weights), choice.name, columns)
        return super().estimate_cost(X, sample_weight)

    # Which way

    def _pointwise(self) -> bool:
        """Whether all that is asked for comes from sums over rows, in three passes."""
        return self.modelling == "biclique" and getattr(self, "assign_labels", "") != "kernel_kmeans"

    def _choose_factored(self, X: Rows) -> Choice | None:
        """The choice, where it is a factored K and three passes do; None for the exact way."""
        if not self._pointwise() or (isinstance(self.affinity, str) and self.affinity == "precomputed"):
            return None
        choice = choose_gram(self.gram, self._bare_kernel(), X, parse_memory_limit(self.memory_limit))
        if choice.name not in FACTORED:
            return None
        if self.gram == "auto" and choice.name == "nystroem" and _many_repeats(X):
            return None  # equal rows are fitted once: exact may do after all
        return choice

    def _bare_kernel(self) -> Kernel:
        return make_kernel(
            self.affinity, gamma=None, degree=self.degree, coef0=self.coef0, kernel_params=self.kernel_params
        )

    def _choose_for_source(self, n_columns: int) -> Choice:
        """How K is held for rows that are read in chunks."""
        if is_neighbors(self.affinity) or self.affinity == "precomputed":
            raise ParameterError(f"affinity={self.affinity!r} needs X in memory: load the rows, or use affinity='rbf'.")
        if not self._pointwise():
            raise ParameterError(
                "rows in chunks work with modelling='biclique' and with assign_labels='kmeans', 'cluster_qr' or "
                "'discretize': what was asked for needs X in memory."
            )
        if self.gram in ("dense", "tiled"):
            raise ParameterError(f"gram={self.gram!r} needs X in memory: load the rows, or use gram='nystroem'.")
        if self.gram != "auto":
            return Choice(self.gram, "as asked for")
        return exact_features(self._bare_kernel(), n_columns) or Choice(
            "nystroem", "approximate: the rows are read in chunks"
        )

    def _read_source(self, X: Any, sample_weight: Any) -> RowSource:
        if self.device is not None:
            raise ParameterError(f"device={self.device!r} needs X in memory: load the rows, or leave device at None.")
        source = open_chunks(X, memory_limit=self.memory_limit)
        source.require_labels(self.memory_limit)
        self.n_features_in_ = source.n_columns
        self.__dict__.pop("feature_names_in_", None)
        if source.columns is not None:
            self.feature_names_in_ = np.asarray(source.columns, dtype=object)
        weights = None
        if sample_weight is not None:
            n = source.n_rows
            weights = check_weights(sample_weight, np.size(sample_weight) if n is None else n)
        return ChunkRows(source, weights, self.affinity)

    # New rows

    def _chunks_of(self, X: Any) -> Iterator[Rows]:
        """Rows to embed: one array, checked, or the chunks of a source."""
        if not is_source(X):
            yield self._read(X, reset=False, keep=getattr(self._fitted, "on_device", False))
            return
        if not isinstance(self._fitted, FactoredFit):
            raise DataError(f"a model with gram_={self.gram_!r} takes rows in memory: pass the chunks one by one.")
        source = open_chunks(X, memory_limit=self.memory_limit)
        if source.n_columns != self.n_features_in_:
            raise DataError(
                f"{source.name} has {source.n_columns} columns, the model was fitted with {self.n_features_in_}."
            )
        known = getattr(self, "feature_names_in_", None)
        if known is not None and source.columns is not None and list(known) != list(source.columns):
            at = next(j for j, (a, b) in enumerate(zip(known, source.columns, strict=True)) if a != b)
            raise DataError(
                f"{source.name}: column {at} is {source.columns[at]!r}, and was {known[at]!r} when the model was "
                "fitted: put the columns in that order."
            )
        done = 0
        for rows in source.chunks():
            check_values(rows, source.columns, first_row=done)
            yield rows
            done += len(rows)

    def _embed(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        with single_threaded_blas():
            return np.concatenate([self._fitted.embed(rows, self.n_jobs) for rows in self._chunks_of(X)])

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
        return self.embedding_ if hasattr(self, "embedding_") else self.transform(X)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _many_repeats(X: Rows) -> bool:
    """Whether most of a few thousand rows are equal to another."""
    rows = X[:: max(X.shape[0] // 4096, 1)]
    return bool(len(np.unique(digests(rows))) < 0.5 * rows.shape[0])
