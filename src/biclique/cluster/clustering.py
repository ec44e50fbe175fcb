"""Spectral clustering by the order-m normalised cut."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state

from biclique._typing import IntArray
from biclique.cluster._base import SpectralBase
from biclique.cluster._checks import check_choice, check_count
from biclique.exceptions import DataError, FewerClustersWarning
from biclique.gram import single_threaded_blas
from biclique.kernels import Kernel
from biclique.spectral import ASSIGNERS, NearestCentre, Rule


class BicliqueSpectralClustering(ClusterMixin, SpectralBase):
    """Cluster points through multi-way similarity.

    Points are the vertices of an m-uniform hypergraph whose weights come from the biclique kernel: the sum of a
    base kernel over all pairs across two halves of m points (Saito, AAAI-22). Its normalised cut is solved
    spectrally, and exactly: the order m only shrinks the degrees toward their mean, S = (2/m) δ + (1 − 2/m) δ̄, so
    every order costs the same as the ordinary graph cut, and neither the hypergraph nor, for large data, the
    n × n kernel matrix is ever formed. Higher orders keep isolated points from owning an eigenvector.

    Every parameter of ``sklearn.cluster.SpectralClustering`` is accepted with its meaning.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    order : "auto" or float from 2 to infinity, default="auto"
        Order m of the hypergraph; any real number. Order 2 is the ordinary normalised cut, ``numpy.inf``
        spectral modularity; "auto" is 4.
    affinity : str, callable or Kernel, default="rbf"
        Base kernel: "rbf", "laplacian", "polynomial" ("poly"), "linear", "cosine", "sigmoid", "chi2",
        "additive_chi2", "precomputed" (a symmetric similarity matrix, dense or sparse), a function of two rows, or a
        ``biclique.kernels.Kernel`` (the fast way to bring one's own).
    gamma : float, "auto", "median" or "scale", default="auto"
        Bandwidth of rbf, laplacian and chi2, and factor of polynomial and sigmoid. "auto" is 0.2 divided by the median
        squared distance to the 7th neighbour within at most 1,000 distinct rows.
    n_components : int, optional
        Columns of the embedding; ``n_clusters`` by default.
    assign_labels : {"kmeans", "cluster_qr", "discretize"}, default="kmeans"
        From the embedding to labels. The last two need as many components as clusters.
    n_init : int, default=10
        Starts of k-means. With 1: a single k-means++ start; with more, the first is deterministic.
    random_state : int, RandomState or None
        For the rows that choose gamma, the solver's start, and k-means. Fix it for equal results.
    eigen_solver : {None, "auto", "krylov", "arpack", "lobpcg"}
        None and "auto" decompose small problems whole and use block Krylov for the rest.
    eigen_tol : float or "auto", default="auto"
        Residuals must fall below this share of the gap between the eigenvalues wanted and the next one.
        "auto" is 1e-3 for float32 tiles and 1e-8 in float64. (For arpack and lobpcg: SciPy's own tolerance.)
    max_iter : int, default=100
        Most passes over K.
    degree, coef0 : float, default=3 and 1
        Of the polynomial kernel, and the constant of the sigmoid one.
    kernel_params : dict, optional
        Keyword arguments of a callable affinity.
    n_neighbors : int, default=10
        Kept for neighbour affinities, which are not available yet.
    gram : {"auto", "dense", "tiled"}, default="auto"
        How K is held: stored, or recomputed tile by tile in every pass. Both are exact. "auto" stores up to 4,096
        distinct rows, or more where a kernel value is dear and the matrix fits the memory limit.
    precision : {"auto", "float32", "float64"}, default="auto"
        Of tiles: "auto" is float32 unless its rounding would show. A stored K is always float64.
    memory_limit : "auto", int or str, default="auto"
        Bytes, or text like "4GB"; "auto" is half of what is free. Larger requests are refused before they start.
    n_jobs : int, optional
        Threads; None and -1 mean every core. Results do not depend on it.
    verbose : int, default=0
        1 shows a bar with passes, residual and time left, and an estimate before work of over 10 s.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    embedding_ : ndarray of shape (n_samples, n_components)
        √S normalised, then the leading eigenvectors of B.
    eigenvalues_, residuals_ : ndarray of shape (n_components - 1,)
        Of B = S^(−1/2) (K − δδᵀ/ρ) S^(−1/2), descending, and |B v − λ v|.
    gamma_, order_, gram_, precision_ :
        What was chosen.
    n_passes_, n_iter_ : int
        Passes over K that the fit took.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from biclique import BicliqueSpectralClustering
    >>> X = load_iris().data
    >>> model = BicliqueSpectralClustering(n_clusters=3, random_state=0).fit(X)
    >>> sorted(int((model.labels_ == j).sum()) for j in range(3))
    [42, 50, 58]
    >>> bool((model.predict(X) == model.labels_).all())
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        order: float | str = "auto",
        affinity: str | Kernel | Callable[..., float] = "rbf",
        gamma: float | str = "auto",
        n_components: int | None = None,
        assign_labels: str = "kmeans",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = None,
        eigen_solver: str | None = None,
        eigen_tol: float | str = "auto",
        max_iter: int = 100,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        n_neighbors: int = 10,
        gram: str = "auto",
        precision: str = "auto",
        memory_limit: int | str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.order = order
        self.affinity = affinity
        self.gamma = gamma
        self.n_components = n_components
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.random_state = random_state
        self.eigen_solver = eigen_solver
        self.eigen_tol = eigen_tol
        self.max_iter = max_iter
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_neighbors = n_neighbors
        self.gram = gram
        self.precision = precision
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array, data frame or CSR matrix of shape (n_samples, n_features)
            With ``affinity="precomputed"``: similarities of shape (n_samples, n_samples).
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How often each row counts. Integer weights give what repeated rows would; a row of weight 0 has no say, but
            gets a label.
        """
        del y
        embedding = self._fit_embedding(X, sample_weight)
        spectrum = self._spectrum
        n_vertices = len(spectrum.weights)
        with single_threaded_blas():
            if n_vertices <= self.n_clusters:
                # Every distinct row is a cluster of its own; nothing is left to assign.
                self._rule: Rule = NearestCentre(spectrum.rows)
            else:
                self._rule = ASSIGNERS[self.assign_labels](
                    spectrum.rows,
                    spectrum.weights,
                    self.n_clusters,
                    n_init=self.n_init,
                    random_state=check_random_state(self.random_state),
                )
            self.labels_ = self._rule.labels(embedding)
        self._warn_about_fewer(n_vertices)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> IntArray:
        """Fit, and return ``labels_``."""
        return self.fit(X, y, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> IntArray:
        """The cluster of new rows, by the closed-form extension of the embedding.

        Parameters
        ----------
        X : array, data frame or CSR matrix of shape (n_new, n_features)
            With ``affinity="precomputed"``: similarities of shape (n_new, n_train).

        Returns
        -------
        ndarray of shape (n_new,)
            ``labels_`` for the training rows.
        """
        embedding = self._embed(X)
        with single_threaded_blas():
            return self._rule.labels(embedding)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_clusters", self.n_clusters)
        check_count("n_init", self.n_init)
        check_choice("assign_labels", self.assign_labels, tuple(ASSIGNERS))
        if self.n_components is not None:
            check_count("n_components", self.n_components)

    def _check_rows(self, n: int, n_positive: int) -> None:
        if n_positive < self.n_clusters:
            counted = f"{n} rows" if n_positive == n else f"{n_positive} rows of positive weight (of {n})"
            raise DataError(
                f"X has {counted}, fewer than n_clusters={self.n_clusters}: ask for at most {n_positive} clusters."
            )

    def _n_columns(self) -> int:
        return self.n_components or self.n_clusters

    def _warn_about_fewer(self, n_vertices: int) -> None:
        found = len(np.unique(self.labels_))
        if found < self.n_clusters:
            if n_vertices < self.n_clusters:
                reason = f"X has only {n_vertices} distinct rows"
            elif self.assign_labels != "kmeans" and self._n_columns() < self.n_clusters:
                reason = f"assign_labels={self.assign_labels!r} gives at most n_components={self.n_components}"
            else:
                reason = f"the embedding has no more groups for assign_labels={self.assign_labels!r}"
            warnings.warn(
                f"{found} clusters returned, {self.n_clusters} asked for: {reason}; labels run from 0 to "
                f"{int(self.labels_.max())}.",
                FewerClustersWarning,
                stacklevel=3,
            )
