"""What the estimators share: input, the prepared cut, labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils.validation import check_is_fitted

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ApproximationWarning, DataError, FewerClustersWarning, warn_user
from biclique.fit import prepare as _prepare
from biclique.fit.checks import (
    PRECOMPUTED,
    check_clusters_fit,
    check_kernel_parameters,
    check_numbers_there,
    check_values,
    check_weights,
    is_neighbors,
    read_array,
    stand_in,
)
from biclique.fit.cost import Cost
from biclique.fit.estimate import estimate_exact
from biclique.fit.exact import ExactFit, SolverOptions, fit_exact
from biclique.fit.prepare import Chosen, TrainingRows, choose, choose_kernel, find_vertices, make_plan
from biclique.gram import Choice
from biclique.io import is_chunked
from biclique.kernels import KERNEL_NAMES, Kernel, make_kernel
from biclique.progress import Progress
from biclique.runtime.namespace import as_dtype, float64, on_host, to_host
from biclique.runtime.threads import single_threaded_blas
from biclique.spectral import ApproximationError


class KernelEstimator(BaseEstimator):
    """Validation and preparation: from X to a cut."""

    _training: TrainingRows

    def _n_columns(self) -> int:
        """Columns of the embedding, the trivial one among them."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_kernel_parameters(self)

    def _read(self, X: Any, *, reset: bool, keep: bool = False) -> Rows:
        """X as a float array or CSR matrix, checked; with ``keep`` a tensor stays one, where it lies."""
        if is_source(X) or callable(X) or isinstance(X, Iterator):
            raise DataError(
                f"X is a {type(X).__name__}, and rows in memory are needed here: load them (numpy.load), or fit "
                "BicliqueSpectralClustering or BicliqueSpectralEmbedding on biclique.io.open_chunks(X)."
            )
        pairwise = isinstance(self.affinity, str) and self.affinity in PRECOMPUTED
        check_numbers_there(X, "X")
        tensor = None if on_host(X) else X.detach()
        if tensor is not None:
            X = stand_in(tensor) if keep else to_host(tensor)
        X = read_array(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        if tensor is not None and keep:
            X = _as_float(tensor)
        check_values(X, getattr(self, "feature_names_in_", None), squared=not pairwise)
        if pairwise and reset and X.shape[0] != X.shape[1]:
            kind = "similarities" if self.affinity == "precomputed" else "distances"
            raise DataError(
                f"affinity={self.affinity!r} needs a square matrix of {kind}, got X of shape {X.shape}: leave "
                "affinity at 'rbf' for a table of features."
            )
        if sparse.issparse(X) and not pairwise:
            self._check_sparse()
        return X

    def _check_sparse(self) -> None:
        affinity = self.affinity
        if is_neighbors(affinity):
            return
        accepts = isinstance(affinity, (str, Kernel)) and make_kernel(affinity, gamma=None).accepts_sparse
        if not accepts:
            names = [name for name in KERNEL_NAMES if make_kernel(name, gamma=None).accepts_sparse]
            raise DataError(
                f"sparse X works with affinity {', '.join(map(repr, names))}, not with {affinity!r}: use one of these, "
                "or pass X.toarray()."
            )

    def _checked(self, X: Any, sample_weight: Any, *, keep: bool = False) -> tuple[Rows, FloatArray]:
        """Parameters, rows and weights, checked; with ``keep`` rows that are a tensor stay one."""
        self._check_parameters()
        X = self._read(X, reset=True, keep=keep)
        weights = check_weights(sample_weight, X.shape[0])
        if hasattr(self, "n_clusters"):
            check_clusters_fit(self.n_clusters, X.shape[0], int((weights > 0).sum()))
        return X, weights

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_training")

    @contextmanager
    def _working(self) -> Iterator[Progress]:
        """BLAS held to one thread, and progress shown where it is wanted."""
        with single_threaded_blas(), Progress(bool(self.verbose)) as progress:
            yield progress

    def _n_groups(self) -> int:
        """Clusters by which the order is chosen: for an embedding, as many as it has columns."""
        return int(getattr(self, "n_clusters", 0)) or self._n_columns()

    def _solve(
        self, X: Rows, weights: FloatArray, n_columns: int, options: SolverOptions, progress: Progress
    ) -> ExactFit:
        """Solve the cut of checked rows, and store what was chosen."""
        chosen = choose(self, X, weights, n_columns - 1)
        if progress.enabled:
            cost = estimate_exact(self, chosen, n_columns, self._n_groups())
            if cost.seconds > _prepare.LONG_SECONDS:
                progress.say(str(cost))
        fit = fit_exact(self, chosen, n_columns, self._n_groups(), options, progress)
        prepared = fit.prepared
        held = getattr(prepared.base, "map", None)
        self._store_choices(
            Choice(prepared.base.name, prepared.reason),
            gamma=prepared.gamma,
            order=fit.order,
            order_reason=fit.order_reason,
            precision=str(prepared.base.dtype),
            rank=None if held is None else held.size,
            error=prepared.error,
        )
        return fit

    def _store_choices(
        self,
        choice: Choice,
        *,
        gamma: float | None,
        order: float,
        order_reason: str,
        precision: str,
        rank: int | None,
        error: ApproximationError | None,
    ) -> None:
        """What was chosen, and a warning where that is an approximation that nobody asked for."""
        self.gamma_, self.order_, self.precision_ = gamma, order, precision
        self.order_reason_ = order_reason
        self.gram_, self.gram_reason_ = choice.name, choice.reason
        self.rank_, self.approximation_ = rank, error
        if self.gram == "auto" and error is not None:
            warn_user(
                f"gram='auto' took gram={choice.name!r} of rank {rank} ({choice.reason}): {error}. "
                f"gram='tiled' is exact; gram={choice.name!r} takes this choice without a warning.",
                ApproximationWarning,
            )

    def estimate_cost(self, X: Any, sample_weight: Any = None) -> Cost:
        """Time and memory that ``fit`` would take: the speed of a few tiles times the passes that a sample needs.

        Returns
        -------
        Cost
            With ``seconds``, ``bytes``, ``gram`` and ``rows`` (distinct ones); printed, a sentence.
        """
        model = clone(self)  # a fitted model keeps what it learned of its columns
        X, weights = model._checked(X, sample_weight)
        vertices = find_vertices(model, X, weights)
        random = np.random.RandomState(0)
        kernel, gamma = choose_kernel(model, vertices, random)
        plan = make_plan(model, vertices, kernel, max(min(model._n_columns(), vertices.n) - 1, 1))
        chosen = Chosen(vertices, kernel, gamma, plan, random)
        return estimate_exact(model, chosen, model._n_columns(), model._n_groups())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.affinity, str) and self.affinity in PRECOMPUTED
        return tags


class ClustererBase(ClusterMixin, KernelEstimator):
    """Labels of training rows by looking them up, of new rows by a rule of the subclass."""

    n_clusters: int
    labels_: IntArray
    _vertex_labels: IntArray

    def _new_labels(self, X: Rows) -> IntArray:
        """The labels of rows that are no training rows."""
        raise NotImplementedError

    def _look_up(self, X: Rows, place: IntArray) -> IntArray:
        """The labels of rows that are vertices ``place``; −1 stands for new rows."""
        return np.asarray(self._training.known_or_new(self._vertex_labels, place, X, self._new_labels))

    def _warn_about_fewer(self, n_vertices: int, reason: str) -> None:
        found = len(np.unique(self.labels_))
        if found < self.n_clusters:
            if n_vertices < self.n_clusters:
                reason = f"X has only {n_vertices} distinct rows"
            warn_user(
                f"{found} clusters returned, {self.n_clusters} asked for: {reason}; labels run from 0 to {found - 1}.",
                FewerClustersWarning,
            )

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> IntArray:
        """Fit, and return ``labels_``."""
        return np.asarray(self.fit(X, y, sample_weight=sample_weight).labels_)

    def predict(self, X: Any) -> IntArray:
        """The cluster of rows: ``labels_`` for the training rows, the fitted rule for new ones.

        Parameters
        ----------
        X : array, data frame or CSR matrix of shape (n_new, n_features)
            With ``affinity="precomputed"``: similarities of shape (n_new, n_train).

        Returns
        -------
        ndarray of shape (n_new,)
        """
        check_is_fitted(self)
        X = self._training.match(self._read(X, reset=False))
        with single_threaded_blas():
            return self._look_up(X, self._training.find(X))


def _as_float(tensor: Any) -> Any:
    """A tensor as float32 or float64: itself, or the smaller of the two that holds it exactly."""
    if tensor.itemsize <= 2:
        return as_dtype(tensor, np.float32)
    return tensor if tensor.is_floating_point() else float64(tensor)


def is_source(X: Any) -> bool:
    """Whether X is something to read rows from in chunks: a source, a file or a Zarr array."""
    return is_chunked(X)
