"""How sure: probabilities of clusters, their stability, typical rows, and what sets a cluster apart."""

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from biclique._typing import Array, FloatArray, IntArray, Rows
from biclique.cluster.estimator import ClustererBase
from biclique.exceptions import DataError, ParameterError
from biclique.fit.fitted import Fitted
from biclique.kernels.gower import Gower
from biclique.runtime.arguments import check_count, check_number, check_random
from biclique.runtime.namespace import is_dask
from biclique.runtime.threads import single_threaded_blas
from biclique.spectral.membership import Seen

REJECTED = -1
"""The label of a row whose cluster is not sure enough."""


class HowSure(ClustererBase):
    """What a fitted clusterer with an embedding says about its labels. Nothing here runs inside ``fit``."""

    def predict(self, X: Any, reject_below: float | None = None) -> IntArray:
        """The cluster of rows: ``labels_`` for the training rows, the fitted rule for new ones.

        Parameters
        ----------
        X : array, tensor, data frame, CSR matrix, Dask array or data frame of shape (n_new, n_features)
            With ``affinity="precomputed"``: similarities of shape (n_new, n_train).
        reject_below : float from 0 to 1, optional
            Rows whose largest probability (``predict_proba``) is below this get the label −1.

        Returns
        -------
        ndarray of shape (n_new,)
        """
        if reject_below is None:
            return super().predict(X)
        check_number("reject_below", reject_below, least=0.0)
        if reject_below > 1:
            raise ParameterError(f"reject_below must be a probability from 0 to 1, got {reject_below!r}.")

        def sure(probabilities: FloatArray) -> IntArray:
            return np.where(probabilities.max(axis=1) < reject_below, REJECTED, probabilities.argmax(axis=1))

        return self._probabilities(X, sure)

    def predict_proba(self, X: Any) -> FloatArray:
        """The probability of every cluster for rows; the largest is that of ``predict``.

        Along the way from one cluster to another, the embedding of the training rows is stretched until one step of
        the kernel's random walk has the same length everywhere. There two normal distributions of one variance are
        fitted. Clusters that are many steps long, such as moons, get a boundary that is one step wide instead.
        If this would prefer another cluster than ``predict``, the two probabilities are equal, up to 1e-9.
        Of more than ten clusters, each is compared with those nearest to it; the others have the probability 0.
        ``docs/selection.md`` says how well this works, and when it does not.

        Parameters
        ----------
        X : as in ``predict``, but not sparse
            ``membership`` takes sparse rows too. scikit-learn's checks think that a model with ``predict_proba`` of
            sparse rows is a classifier.

        Returns
        -------
        ndarray of shape (n_new, number of clusters found)
            Rows sum to 1.
        """
        check_is_fitted(self)
        if sparse.issparse(X):
            raise DataError(
                f"predict_proba does not take sparse rows, got a {type(X).__name__}: use "
                f"membership(X, top={self._n_found()}), which gives the same probabilities, or pass X.toarray()."
            )
        return self._probabilities(X)

    def _probabilities(self, X: Any, label: Callable[[FloatArray], IntArray] | None = None) -> Array:
        """The probability of every cluster for rows, dense or sparse, or the labels that are made of them."""
        check_is_fitted(self)
        seen, n_jobs = cast("Seen", self._fitted.seen), self.n_jobs

        def of_rows(fitted: Fitted, rows: Rows) -> Array:
            found = seen.probabilities(fitted.embed(rows, n_jobs), fitted.labels(rows, n_jobs))
            return found if label is None else label(found)

        columns, dtype = (self._n_found(), np.float64) if label is None else (None, np.intp)
        return self._of_new(X, of_rows, columns, dtype)

    def how_sure(self) -> FloatArray:
        """The mean probability of each cluster for its own training rows, of which at most some 20,000 are looked at.

        Probabilities are as in ``predict_proba``. No kernel values are computed.

        Returns
        -------
        ndarray of shape (number of clusters found,)
            Not a number for a cluster without any of these rows.
        """
        check_is_fitted(self)
        seen, n_found = cast("Seen", self._fitted.seen), self._n_found()
        with single_threaded_blas():
            found = seen.probabilities(seen.rows, seen.labels)
            own = found[np.arange(len(seen.labels)), seen.labels]
        weights = np.bincount(seen.labels, seen.weights, minlength=n_found)
        sums = np.bincount(seen.labels, seen.weights * own, minlength=n_found)
        return np.where(weights > 0, sums / np.maximum(weights, np.finfo(float).tiny), np.nan)

    def membership(self, X: Any, top: int = 3) -> sparse.csr_array:
        """The ``top`` largest probabilities of every row, as a sparse matrix.

        Probabilities are as in ``predict_proba``; a row sums to less than 1 if there are more clusters.

        Parameters
        ----------
        X : as in ``predict``, dense or sparse
        top : int, default 3

        Returns
        -------
        scipy.sparse.csr_array of shape (n_new, number of clusters found)
        """
        check_count("top", top)
        if is_dask(X):
            raise DataError("membership gives one sparse matrix: use predict_proba(X), or pass a part of the rows.")
        probabilities = self._probabilities(X)
        n, k = probabilities.shape
        width = min(top, k)
        kept = np.sort(np.argsort(-probabilities, axis=1, kind="stable")[:, :width], axis=1)
        values = np.take_along_axis(probabilities, kept, axis=1)
        return sparse.csr_array((values.ravel(), kept.ravel(), np.arange(0, n * width + 1, width)), shape=(n, k))

    def cluster_stability(self, X: Any, n_splits: int = 20) -> FloatArray:
        """How well each cluster is found again in random halves of the rows: mean best Jaccard index (Hennig 2007).

        For every split, half of the rows are clustered anew with the same parameters. A cluster, on these rows, is
        compared with each of the new clusters: |A ∩ B| / |A ∪ B|, and the best is taken. Halves are asked for as many
        clusters as the fit found, also if it chose their number. Above 0.85 a cluster is usually called stable, below
        0.6 dissolved. This takes ``n_splits`` fits.

        Parameters
        ----------
        X : array, data frame or CSR matrix
            The rows of ``fit``, or others. Not for given matrices.
        n_splits : int, default 20

        Returns
        -------
        ndarray of shape (number of clusters found,)
            Not a number for a cluster that no half had a row of.
        """
        check_count("n_splits", n_splits)
        return self._stability(*self._labelled(X, "cluster_stability"), n_splits)

    def _stability(self, rows: Rows, labels: IntArray, n_splits: int) -> FloatArray:
        """The same for rows that were read, with their labels."""
        from biclique.selection.criteria import best_jaccard

        kernel, columns = self._fitted.settings.kernel, self._fitted.chosen.columns
        if kernel.given:
            raise DataError(
                f"cluster_stability needs rows, not affinity={kernel.affinity!r}: halves of a given matrix are to be "
                "cut out and fitted by hand."
            )
        half, k, n_found = rows.shape[0] // 2, self._asked_for, self._n_found()
        if half < max(k, 2):
            raise DataError(
                f"half of X has {half} rows, fewer than n_clusters={k}: pass at least {2 * max(k, 2)} rows."
            )
        asked: dict[str, Any] = {"n_clusters": k}  # halves are not searched again
        if columns is not None:  # by number: the rows have no names now
            gower = Gower(np.flatnonzero(columns.categorical), gamma=kernel.gower().gamma)
            asked |= {"kernel_params": {"metric": gower}} if kernel.neighborhoods else {"affinity": gower}
        random = check_random(self.random_state)
        seeds, found = random.randint(2**31, size=n_splits), np.empty((n_splits, n_found))
        with warnings.catch_warnings(action="ignore"):  # of fits that nobody asked for, and of clusters without rows
            for split, seed in enumerate(seeds.tolist()):
                chosen = np.sort(random.choice(len(labels), half, replace=False))
                model = clone(self).set_params(**asked, random_state=seed, verbose=0).fit(rows[chosen])
                own, ones = labels[chosen], np.ones(half)
                shares = best_jaccard(own, np.asarray(model.labels_), ones, n_found)
                found[split] = np.where(np.bincount(own, minlength=n_found) > 0, shares, np.nan)
            return np.asarray(np.nanmean(found, axis=0))

    def representatives(self, X: Any, per_cluster: int = 5) -> list[IntArray]:
        """The numbers of typical rows of each cluster.

        Typical are the rows nearest to the mean of the cluster's rows in the embedding, scaled to length 1, ties by row
        number. Equal rows stand for each other: only the first is named.

        Returns
        -------
        list of ndarray
            Row numbers of X, most typical first, one array a cluster; shorter if a cluster has fewer distinct rows.
        """
        from biclique.report.rows import typical_rows

        check_count("per_cluster", per_cluster)
        rows, labels = self._labelled(X, "representatives")
        with single_threaded_blas():
            embedded = self._fitted.embed(rows, self.n_jobs)
        return typical_rows(embedded, labels, self._n_found(), per_cluster)

    def profile(self, X: Any, categories: Sequence[str | int] | None = None) -> Any:
        """What sets each cluster apart: one number for every cluster and column.

        For numbers: (mean of the cluster − mean of the rest) / pooled standard deviation. For categories: the share of
        a value in the cluster minus its share in the rest, one column for each value, named ``column=value``.

        There are no p-values. The clusters were made from these columns, so a test of whether they differ in them would
        always say yes, also in noise.

        Parameters
        ----------
        X : array or data frame
            The rows of ``fit``. A frame may have columns besides those of the fit, also text: pass it with the columns
            of the fit by name. With an array as wide as that of ``fit``, labels are those of ``predict``; if it has as
            many rows as ``fit`` but other columns, labels are ``labels_``.
        categories : list of column names or numbers, optional
            Columns of codes that are not quantities. Columns of text and of pandas' category dtype always count as
            such.

        Returns
        -------
        pandas.DataFrame, clusters by columns; without pandas a dictionary of columns, each an array over the clusters.
        """
        from biclique.report.shown_columns import Columns, Sums

        check_is_fitted(self)
        labels, k = self._labels_for(X), self._n_found()
        columns = Columns.of(X, () if categories is None else categories)
        effects = Sums.of(columns.numbers, labels, k).effects
        out: dict[str, FloatArray] = dict(zip(columns.names, effects.T, strict=True))
        for one in columns.categories:
            shares = Sums.of_levels(one, labels, k)
            gaps = (shares.means - shares.other_means).T
            out |= {f"{one.name}={level}": gap for level, gap in zip(one.values, gaps, strict=True)}
        if find_spec("pandas") is None:
            return out
        pandas = import_module("pandas")
        return pandas.DataFrame(out, index=pandas.RangeIndex(k, name="cluster"))

    def _n_found(self) -> int:
        """Clusters that were found; at least as many as the rows that were kept have, whatever a file says."""
        return max(self.n_clusters_, int(cast("Seen", self._fitted.seen).labels.max()) + 1)

    def _labelled(self, X: Any, name: str) -> tuple[Rows, IntArray]:
        """Rows in memory and their labels."""
        check_is_fitted(self)
        if is_dask(X):
            raise DataError(f"{name} needs rows in memory: pass a part of them, such as X.blocks[0].compute().")
        return self._of_rows(X, lambda rows: (rows, self._fitted.labels(rows, self.n_jobs)))[0]

    def _labels_for(self, X: Any) -> IntArray:
        """Labels of a table that may hold other columns than the fit did."""
        known = list(getattr(self, "feature_names_in_", []))
        columns = list(getattr(X, "columns", []))
        if known and columns and columns != known and set(known) <= set(columns):
            return self.predict(X[known])
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
        if len(shape) == 2 and shape[1] == self.n_features_in_ and (not columns or columns == known):
            return self.predict(X)
        labels: IntArray = getattr(self, "labels_", np.empty(0, dtype=np.intp))
        if len(shape) == 2 and shape[0] == len(labels):
            return labels
        rows = f" and {len(labels)} rows" if len(labels) else ""
        raise DataError(
            f"X has shape {tuple(shape)}, the model was fitted with {self.n_features_in_} columns{rows}: pass the rows "
            "of fit, or a table with the columns of fit."
        )
