"""X as rows: what users have, read and checked for estimators and for functions."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from biclique._typing import FloatArray, Rows
from biclique.exceptions import DataError
from biclique.fit.settings import KernelSettings
from biclique.rows.checks import (
    check_clusters_fit,
    check_given,
    check_values,
    check_weights,
    one_gap,
    stand_in,
    where_no_number,
)
from biclique.runtime.memory import require_memory
from biclique.runtime.namespace import as_dtype, float64, is_dask, namespace, on_host, to_host

NEIGHBORHOODS = KernelSettings()
"""Functions that are not asked for a kernel cut the hypergraph of neighbourhoods."""


def read_rows(
    X: Any,
    kernel: KernelSettings = NEIGHBORHOODS,
    model: BaseEstimator | None = None,
    *,
    reset: bool = True,
    keep: bool = False,
) -> Rows:
    """X as a float array or CSR matrix, checked; with ``keep`` a tensor stays a tensor on its device.

    An estimator knows the names of the columns of its fit, unless ``reset``; a function has none.
    """
    if is_dask(X) or callable(X) or isinstance(X, Iterator):
        raise DataError(
            f"X is a {type(X).__name__}, and rows in memory are needed here: load them, or fit "
            "BicliqueSpectralClustering or BicliqueSpectralEmbedding on a Dask array or data frame."
        )
    tensor = None if on_host(X) else X.detach()
    if tensor is not None:
        check_given(tensor)
        X = stand_in(tensor) if keep else to_host(tensor)
    gaps = kernel.takes_gaps
    encoder = "OrdinalEncoder" if gaps else "OneHotEncoder"
    dtypes = [np.float64, np.float32]
    rows: Rows = read_array(X, model, reset=reset, accept_sparse="csr", dtype=dtypes, encoder=encoder)
    if tensor is not None and keep:
        if tensor.itemsize <= 2:  # the smaller one of float32 and float64 that has all values exactly
            rows = as_dtype(tensor, np.float32)
        else:
            rows = tensor if namespace(tensor).is_floating_point(tensor) else float64(tensor)
    names, index = getattr(model, "feature_names_in_", None), getattr(X, "index", None) if hasattr(X, "iloc") else None
    check_values(rows, names, squared=not kernel.given, gaps=gaps, index=index)
    if sparse.issparse(rows):
        rows = _sparse_or_dense(rows, kernel)
    elif gaps and isinstance(rows, np.ndarray):
        rows = one_gap(rows)
    if kernel.given and reset and rows.shape[0] != rows.shape[1]:
        kind = "distances" if kernel.neighbors else "similarities"
        raise DataError(
            f"affinity={kernel.affinity!r} needs a square matrix of {kind}, got X of shape {rows.shape}: leave "
            "affinity at its default for a table of features."
        )
    return rows


def read_weighted(
    X: Any,
    sample_weight: Any,
    kernel: KernelSettings = NEIGHBORHOODS,
    model: BaseEstimator | None = None,
    *,
    n_clusters: int | None = None,
    keep: bool = False,
) -> tuple[Rows, FloatArray]:
    """The rows of a fit and their weights; there must be as many rows that count as clusters."""
    rows = read_rows(X, kernel, model, keep=keep)
    weights = check_weights(sample_weight, rows.shape[0])
    if n_clusters is not None:
        check_clusters_fit(n_clusters, rows.shape[0], int((weights > 0).sum()))
    return rows, weights


def read_array(
    X: Any,
    model: BaseEstimator | None = None,
    *,
    reset: bool,
    accept_sparse: str | bool = False,
    dtype: DTypeLike | list[DTypeLike],
    encoder: str = "OneHotEncoder",
) -> Any:
    """X as an array or a CSR matrix of numbers, by scikit-learn's checks of shapes and names.

    Text and dates are errors of our own.
    """
    check_given(X)
    try:
        return validate_data(
            model or BaseEstimator(),
            X,
            reset=reset,
            accept_sparse=accept_sparse,
            dtype=dtype,
            ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
            estimator=model,
        )
    except OverflowError as error:
        raise DataError(f"X has a whole number beyond 1e308{where_no_number(X)}: rescale or drop it.") from error
    except ValueError as error:
        if not str(error).startswith(("could not convert", "Cannot cast")):
            raise
        raise DataError(
            f"X holds text ({error}){where_no_number(X)}: drop such columns, or turn them into numbers first "
            f"(biclique.tables.TablePreparer, sklearn.preprocessing.{encoder})."
        ) from error


def _sparse_or_dense(X: Rows, kernel: KernelSettings) -> Rows:
    """Sparse rows, dense for a kernel that is computed from dense ones; refused for gower."""
    if kernel.takes_gaps:
        works = "the metrics 'euclidean' and 'cosine'" if kernel.neighborhoods else "affinity 'rbf' or another"
        raise DataError(f"sparse X works with {works}, not with {kernel.measure}: choose one, or pass X.toarray().")
    if not kernel.of_rows or kernel.kernel().accepts_sparse:
        return X
    what = f"affinity={kernel.affinity!r} of sparse X as dense rows"
    require_memory(X.dtype.itemsize * X.shape[0] * X.shape[1], what, "use affinity='rbf', 'linear' or 'cosine'.")
    return np.asarray(sparse.csr_array(X).toarray())
