"""What the estimators share: parameters → Settings, X → rows, a fit, and the fitted attributes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, cast

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from biclique._typing import Array, Device, FloatArray, IntArray, Rows
from biclique.exceptions import ApproximationWarning, FewerClustersWarning, ParameterError, warn_user
from biclique.fit.exact_fitted import ExactPoints
from biclique.fit.fitted import Fitted, Training
from biclique.fit.given_rows import read_rows, read_weighted
from biclique.fit.kernel_columns import find_columns
from biclique.fit.settings import CONSTRAINTS, NEIGHBORHOODS, Check, KernelSettings, Settings, check_parameters
from biclique.fit.solve import fit_rows
from biclique.gram.sparse import NeighborGram
from biclique.kernels.gower import Columns
from biclique.kernels.kernel import Kernel
from biclique.kernels.named import check_rows_for_kernel
from biclique.progress import Progress
from biclique.rows.array import ArrayRows, Found, RowSource
from biclique.rows.array import Check as CheckRows
from biclique.rows.checks import category_columns
from biclique.runtime.memory import require_memory
from biclique.runtime.namespace import is_dask, on_host
from biclique.runtime.threads import single_threaded_blas

STORED = ("dense", "sparse", "neighbors")
"""What ``gram_`` is called if K is stored: then there is an ``affinity_matrix_``."""

FITTED = ("_fitted", "_n_features_out", "_lazy_sizes", "_similar", "_left_out")
"""What a fit leaves besides the attributes that end in an underscore; the last one, what a file leaves."""


class Estimator(BaseEstimator):
    """Parameters, checked; X, read; and a fit that fails leaves the model as it was."""

    _constraints: ClassVar[Mapping[str, Check]] = CONSTRAINTS
    _fitted: Fitted
    labels_: IntArray
    n_clusters_: int
    affinity_matrix_: Rows

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Say why an attribute does not exist, if a file left it out."""
            if name in vars(self).get("_left_out", ()):
                raise AttributeError(
                    f"{name} was left out when this {type(self).__name__} was saved: save it with include=[{name!r}], "
                    "or call predict or transform with the training rows."
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _n_columns(self) -> int | None:
        """Columns of the embedding, the trivial one among them; None for the rule of ``Settings``."""
        return None

    def _settings(self, **known: int | str) -> Settings:
        """The parameters, checked once; ``known`` is what a search has found for some of them."""
        parameters = self.get_params(deep=False)
        check_parameters(parameters, self._constraints)
        return Settings.of({**parameters, **known}, n_columns=self._n_columns())

    def __getstate__(self) -> dict[str, Any]:
        """A pickled model drops what is lazy, because the rows stay where they are, and the rows of the fit."""
        state = super().__getstate__().items()
        return {name: value for name, value in state if not is_dask(value) and name != "_similar"}

    def __dask_tokenize__(self) -> Any:
        """What a fit left counts: of a dataclass, Dask looks at the parameters alone."""
        from biclique.rows.dask_rows import token_of  # which imports Dask

        return type(self), token_of(vars(self))

    @contextmanager
    def _fitting(self) -> Iterator[Progress]:
        """One BLAS thread, progress if it is wanted, and a model that stays as it was if the fit fails."""
        before = dict(self.__dict__)
        try:
            for name in before:
                if name.endswith("_") or name in FITTED:
                    delattr(self, name)
            with single_threaded_blas(), Progress.of(self.verbose) as progress:
                yield progress
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    @property
    def _asked_for(self) -> int:
        """Clusters that were asked for, or selected."""
        selected: Any = getattr(self, "k_selection_", self)
        return int(selected.n_clusters)

    def _count_clusters(self, reason: str, n_distinct: float = np.inf) -> None:
        """Set ``n_clusters_``; warn if there are fewer than asked for, for ``reason`` or too few distinct rows."""
        lazy = hasattr(self, "_lazy_sizes")
        found = len(self._lazy_sizes) if lazy else int(self.labels_.max(initial=-1)) + 1
        self.n_clusters_ = found
        if found < self._asked_for:
            if n_distinct < self._asked_for:
                reason = f"X has only {n_distinct} distinct rows"
            warn_user(
                f"{found} cluster{'s' * (found != 1)} returned, {self._asked_for} asked for: {reason}; "
                f"labels run from 0 to {found - 1}.",
                FewerClustersWarning,
            )


@dataclass(eq=False, repr=False, kw_only=True)
class KernelEstimator(Estimator):
    """An estimator of rows and a kernel, a neighbour graph or a given matrix."""

    order: float | str = "auto"
    affinity: str | Kernel | Callable[..., float] = NEIGHBORHOODS
    gamma: float | str = "auto"
    degree: float = 3
    coef0: float = 1
    kernel_params: Mapping[str, Any] | None = None
    n_neighbors: int | None = None
    gram: str = "auto"
    rank: int | str = "auto"
    precision: str = "auto"
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _in_passes: ClassVar[bool] = False
    """Whether rows may be Dask's, or on a device."""

    # From X to rows

    def _check_of_new(self) -> CheckRows:
        """What new rows must have: values that the columns of the fit can have."""
        return partial(check_columns, self._fitted.chosen.columns, getattr(self, "feature_names_in_", None))

    def _source(self, settings: Settings, X: Any, sample_weight: Any, progress: Progress) -> RowSource:
        """Where the rows come from, with what a kernel must know of their columns."""
        device: Device | None = settings.device
        if self._in_passes and device is None and not on_host(X):
            device = X.device  # a tensor stays where it is
        source: RowSource
        if self._in_passes and is_dask(X):
            if settings.device is not None:
                raise ParameterError(
                    f"device={settings.device!r} needs X in memory: load the rows, or leave device at None."
                )
            check = partial(check_rows_for_kernel, settings.kernel.affinity)
            source = self._dask_rows(X, check, sample_weight, gram=settings.gram, reset=True)
        else:
            keep, k = device is not None, settings.n_clusters
            rows, weights = read_weighted(X, sample_weight, settings.kernel, self, n_clusters=k, keep=keep)
            source = ArrayRows(rows, weights, getattr(self, "feature_names_in_", None), device)
        if settings.kernel.takes_gaps and source.device is None:  # a device is refused by the fit
            source.columns = find_columns(settings, source, category_columns(X), progress)
        return source

    def _dask_rows(
        self, X: Any, check: CheckRows, sample_weight: Any = None, *, gram: str = "auto", reset: bool = False
    ) -> RowSource:
        """Rows of a Dask array or data frame; new ones must have the columns of the fit."""
        from biclique.rows.dask_rows import open_dask_rows  # which imports Dask

        source = open_dask_rows(X, sample_weight, check)
        validate_data(self, X if source.names is None else X._meta, reset=reset, skip_check_array=True)
        return source.for_gram(gram)

    def _of_rows(self, X: Any, function: Callable[[Rows], Found]) -> list[Found]:
        """A function of rows, checked: of one array, or of every chunk of Dask's rows."""
        check_is_fitted(self)
        if self._in_passes and is_dask(X):
            return self._dask_rows(X, self._check_of_new()).map(
                lambda block: function(block.rows), "new rows", Progress(False)
            )
        keep = self._in_passes and self._fitted.points.keeps_tensors
        with single_threaded_blas():
            rows = read_rows(X, self._fitted.settings.kernel, self, reset=False, keep=keep)
            self._check_of_new()(rows, range(rows.shape[0]))
            return [function(rows)]

    def _of_new(
        self, X: Any, function: Callable[[Fitted, Rows], Array], columns: int | None, dtype: DTypeLike
    ) -> Array:
        """An array of a row or of a number a row: at once for rows in memory, lazy for Dask's."""
        check_is_fitted(self)
        if not (self._in_passes and is_dask(X)):
            return self._of_rows(X, lambda rows: function(self._fitted, rows))[0]
        fitted = self._fitted.for_rows()
        return self._dask_rows(X, self._check_of_new()).later(lambda rows: function(fitted, rows), columns, dtype)

    # What a fit leaves

    def _store(self, fitted: Fitted, training: Training) -> None:
        """Labels and what was chosen, with a warning if it is an approximation that nobody asked for."""
        found = {"labels_": training.labels, "cut_history_": training.cut_history, "_lazy_sizes": training.sizes}
        self.__dict__.update({name: value for name, value in found.items() if value is not None})
        self._fitted, chosen = fitted, fitted.chosen
        self.gamma_, self.order_, self.order_reason_ = chosen.gamma, chosen.order, chosen.order_reason
        self.gram_, self.gram_reason_, self.precision_ = chosen.gram, chosen.gram_reason, chosen.precision
        self.rank_, self.approximation_ = chosen.rank, chosen.error
        if chosen.n_neighbors is not None:
            self.n_neighbors_ = chosen.n_neighbors
        if fitted.settings.gram == "auto" and chosen.error is not None and not chosen.error.counts_as_exact:
            warn_user(
                f"gram='auto' took gram={chosen.gram!r} of rank {chosen.rank} ({chosen.gram_reason}): {chosen.error}. "
                f"gram='tiled' is exact; gram={chosen.gram!r} takes this choice without a warning.",
                ApproximationWarning,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernel = KernelSettings(self.affinity, kernel_params=self.kernel_params)
        tags.input_tags.sparse = not kernel.takes_gaps
        tags.input_tags.allow_nan = kernel.takes_gaps
        tags.input_tags.pairwise = kernel.given
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """The fitted embedding and ``transform``; subclasses choose the columns and what to do with them."""

    modelling: str = "biclique"
    eigen_solver: str | None = None
    eigen_tol: float | str = "auto"
    device: Device | None = None

    _in_passes: ClassVar[bool] = True

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """``affinity_matrix_`` is made when it is asked for; a diagram of the model does not ask."""
            if name == "affinity_matrix_" and "_similar" in vars(self):
                return self._similarities(self._similar)
            return super().__getattr__(name)

    def _similarities(self, X: Rows) -> Rows:
        """K of the rows of the fit, (n, n): as it was given, of the graph, or computed again."""
        fitted, kernel = self._fitted, self._fitted.chosen.kernel
        if fitted.settings.kernel.neighbors:
            place, points = fitted.known.find(X), cast("ExactPoints", fitted.points)
            K: Rows = cast("NeighborGram", points.trained).K[place][:, place]
            return K
        if kernel is None:
            return X
        require_memory(8.0 * X.shape[0] ** 2, f"the affinity matrix of {X.shape[0]} rows", "fit a sample of the rows.")
        X = X.astype(np.float64)
        K = np.asarray(kernel.block(X, X))
        return (K + K.T) / 2

    def _output(self, embedding: FloatArray) -> FloatArray:
        """The columns that the user sees."""
        return embedding

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Embed the rows of X, and cluster them if clusters are asked for.

        Parameters
        ----------
        X : array, tensor, data frame, CSR matrix, Dask array or data frame of shape (n_samples, n_features)
            With ``affinity="precomputed"``: similarities of shape (n_samples, n_samples). Rows of a Dask array or data
            frame stay where they are; ``labels_`` and ``embedding_`` are lazy then (``docs/scale.md``).
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How often each row counts. Integer weights give what repeated rows would; a row of weight 0 does not
            count, but gets its row of the embedding and its label. Weights on a device are checked on the host.
        """
        settings = self._settings()
        with self._fitting() as progress:
            source = self._source(settings, X, sample_weight, progress)
            if source.note:
                progress.say(source.note)
            settings = self._selected(settings, source, progress)
            fitted, training = fit_rows(settings, source, progress)
            self._store(fitted, training)
            self.embedding_ = self._output(training.embedding)
            if fitted.chosen.gram in STORED:
                self._similar = source.held
            self._n_features_out = int(self.embedding_.shape[1])
            self.eigenvalues_, self.residuals_ = fitted.eigenvalues, fitted.residuals
            self.n_passes_ = self.n_iter_ = fitted.n_passes
        if settings.n_clusters is not None:
            self._count_clusters(settings.why_fewer, training.n_distinct)
        return self

    def _selected(self, settings: Settings, source: RowSource, progress: Progress) -> Settings:  # noqa: ARG002
        """Settings with what a search has found; as they are, unless a subclass searches."""
        return settings

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
        check_is_fitted(self)
        n_jobs, columns = self.n_jobs, self._fitted.settings.n_columns
        return self._output(self._of_new(X, lambda fitted, rows: fitted.embed(rows, n_jobs), columns, np.float64))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> FloatArray:  # noqa: ARG002
        """Fit, and return ``embedding_``."""
        return self.fit(X, sample_weight=sample_weight).embedding_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]  # ClusterMixin empties it
        return tags


class ClustererBase(ClusterMixin, KernelEstimator):
    """Labels of training rows by looking them up, of new rows by a rule."""

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> IntArray:
        """Fit, and return ``labels_``."""
        found: IntArray = self.fit(X, y, sample_weight=sample_weight).labels_
        return found

    def predict(self, X: Any) -> IntArray:
        """The cluster of rows: ``labels_`` for the training rows, the fitted rule for new ones.

        Parameters
        ----------
        X : array, tensor, data frame, CSR matrix, Dask array or data frame of shape (n_new, n_features)
            With ``affinity="precomputed"``: similarities of shape (n_new, n_train).

        Returns
        -------
        ndarray of shape (n_new,)
        """
        n_jobs = self.n_jobs
        return self._of_new(X, lambda fitted, rows: fitted.labels(rows, n_jobs), None, np.intp)


def check_columns(
    columns: Columns | None, names: Sequence[str] | None, rows: Rows, numbers: Sequence[int] | np.ndarray
) -> None:
    """Refuse categories and gaps that the columns of a fit cannot have."""
    if columns is not None and not sparse.issparse(rows):
        columns.check_rows(rows, numbers, names)
