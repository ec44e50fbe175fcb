"""Weighted kernel k-means: a local search that lowers the order-m normalised cut itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.cluster.estimator import ClustererBase
from biclique.exceptions import ParameterError, SolverWarning, warn_user
from biclique.fit.checks import check_weights, is_neighbors
from biclique.fit.exact import ExactFit, SolverOptions, unit_rows
from biclique.kernels import Kernel
from biclique.runtime.arguments import MOST_STARTS, check_choice, check_count, check_random
from biclique.spectral import ASSIGNERS, KernelKMeansProblem, kernel_kmeans, plus_plus_start, random_start

STARTS = ("spectral", "random", "k-means++")
WEIGHTS = ("cut", "paper")
NO_WEIGHT = 1e-12
"""A weight of zero counts as this share of the largest: the row has no say, but a place."""


class BicliqueKernelKMeans(ClustererBase):
    """Weighted kernel k-means whose objective is the order-m normalised cut.

    With weights S = (2/m) δ + (1 − 2/m) δ̄ and the kernel S⁻¹ (K − δδᵀ/ρ) S⁻¹, the objective J of weighted kernel
    k-means and the cut are one thing: kNCut_m = k − 1 − (2/m)² (trace − J). Lloyd steps never raise it when K is
    semi-definite; for other K the diagonal is shifted, which moves J by a constant. A step costs one pass over K, which
    is never stored where ``gram`` is "tiled".

    Parameters
    ----------
    n_clusters : int, default=8
    order : "auto" or float from 2 to infinity, default="auto"
        Order m of the hypergraph; "auto" is the one that ``BicliqueSpectralClustering`` takes.
    weights : "cut", "paper" or array of shape (n_samples,), default="cut"
        "cut" is the above. "paper" is the paper's J' with K^(m) and the weights D_v⁻¹, D_v the row sums of K^(m): the
        same relaxation, but another objective. It is (2/m)² times J with K and the weights 1/S.
        An array gives the weights of plain weighted kernel k-means on K; the order does not matter then. A row of
        weight 0 has no say.
    init : {"spectral", "random", "k-means++"}, default="spectral"
        Where to start: the spectral solution (unit rows), a random partition, or rows drawn by distance in feature
        space (one pass a centre).
    n_init : int, default=1
        Random starts of which the best counts; for "spectral", the starts of its k-means.
    max_iter : int, default=100
        Most Lloyd steps.
    affinity, gamma, degree, coef0, kernel_params, gram, rank, landmarks, precision, memory_limit, n_jobs, \
random_state, verbose :
        As in ``BicliqueSpectralClustering``, without neighbour graphs.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    cut_history_ : ndarray
        The objective of the start and after every step, never rising: the order-m cut with ``weights="cut"``, J' with
        ``weights="paper"``, J with an array. At order infinity every cut is k − 1 and every J' is 0; the scaled limits
        −Σ_j (a_j − δ_j²/ρ)/S_j and (m/2)² J' are given instead.
    cut_ : float
        Its last value.
    shift_ : float
        What was added to the diagonal; 0 for semi-definite K. A shift has no meaning for new rows, so with an
        indefinite given matrix ``predict`` of the training block can differ from ``labels_``.
    n_iter_ : int
        Lloyd steps, at least 1.
    gamma_, order_, order_reason_, gram_, gram_reason_, precision_, rank_, approximation_ :
        What was chosen, and how good an approximation is.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from biclique import BicliqueKernelKMeans
    >>> model = BicliqueKernelKMeans(n_clusters=3, random_state=0).fit(load_iris().data)
    >>> bool(model.cut_history_[-1] <= model.cut_history_[0])
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        order: float | str = "auto",
        weights: str | FloatArray = "cut",
        init: str = "spectral",
        n_init: int = 1,
        max_iter: int = 100,
        affinity: str | Kernel | Callable[..., float] = "rbf",
        gamma: float | str = "auto",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        gram: str = "auto",
        rank: int | str = "auto",
        landmarks: str = "uniform",
        precision: str = "auto",
        memory_limit: int | str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.order = order
        self.weights = weights
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.affinity = affinity
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.gram = gram
        self.rank = rank
        self.landmarks = landmarks
        self.precision = precision
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array, data frame or CSR matrix of shape (n_samples, n_features)
            With ``affinity="precomputed"``: similarities of shape (n_samples, n_samples).
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How often each row counts; 0 leaves it out of the fit.
        """
        del y
        X, multiplicities = self._checked(X, sample_weight)
        with self._working() as progress:
            spectral = self.init == "spectral" or self.order == "auto"  # else the cut alone is needed
            options = SolverOptions(precision=self.precision)
            fit = self._solve(X, multiplicities, self._n_columns() if spectral else 1, options, progress)
            prepared, cut = fit.prepared, fit.solved.cut
            k = min(self.n_clusters, prepared.vertices.n)
            factor = 1.0
            if isinstance(self.weights, str) and self.weights == "paper" and np.isfinite(fit.order):
                factor = (2 / fit.order) ** 2  # from J with K and 1/S to the paper's J'
            problem = KernelKMeansProblem(cut, self._vertex_weights(fit, multiplicities), factor=factor)
            result = min(
                (
                    kernel_kmeans(
                        problem,
                        start,
                        k,
                        max_iter=self.max_iter,
                        random_state=prepared.random,
                        report=lambda step, value: progress.say(f"step {step}: objective {value:.6g}"),
                    )
                    for start in self._starts(fit, problem, k)
                ),
                key=lambda found: found.history[-1],
            )
            training = fit.solved.spectrum.training
            self._rule, self._training, self._vertex_labels = result.rule, training, result.labels
            self.labels_ = self._look_up(X, prepared.vertices.index)
            self.cut_history_, self.cut_ = result.history, float(result.history[-1])
            self.shift_, self.n_iter_ = result.shift, max(result.n_iter, 1)
        if self.init == "spectral":
            fit.warn(self._n_columns(), self.n_clusters, fewer_rows=prepared.vertices.n < self.n_clusters)
        if not result.converged:
            warn_user(
                f"rows still moved after {result.n_iter} steps (objective {self.cut_:.6g}); raise max_iter.",
                SolverWarning,
            )
        self._warn_about_fewer(prepared.vertices.n, "clusters ran empty")
        return self

    def _new_labels(self, X: Rows) -> IntArray:
        labels, seen = self._rule.labels_seen(self._training.cross(X, self.n_jobs))
        return self._training.with_likeness(labels, seen, X, self._vertex_labels, self.n_jobs)

    def _starts(self, fit: ExactFit, problem: KernelKMeansProblem, k: int) -> list[IntArray]:
        prepared = fit.prepared
        n = prepared.vertices.n
        if n <= k:
            return [np.arange(n)]
        if self.init == "spectral":
            assignment = ASSIGNERS["kmeans"](
                unit_rows(fit.solved.spectrum.rows),
                prepared.vertices.weights,
                k,
                n_init=self.n_init,
                random_state=check_random(self.random_state),
                parts=fit.solved.parts,
            )
            return [assignment.labels]
        if self.init == "random":
            return [random_start(n, k, prepared.random) for _ in range(self.n_init)]
        return [plus_plus_start(problem, k, prepared.random) for _ in range(self.n_init)]

    def _vertex_weights(self, fit: ExactFit, multiplicities: FloatArray) -> FloatArray | None:
        """The weights v of plain weighted kernel k-means, one a vertex; None for the cut."""
        if isinstance(self.weights, str):
            return None if self.weights == "cut" else 1.0 / fit.solved.cut.shrunken
        prepared = fit.prepared
        index = prepared.vertices.index
        given = check_weights(self.weights, len(index), "weights")
        counted = index >= 0
        # Equal rows with different weights: their weighted mean, so that the total stays.
        total = np.zeros(prepared.vertices.n)
        np.add.at(total, index[counted], (multiplicities * given)[counted])
        total /= prepared.vertices.weights
        return np.asarray(np.maximum(total, NO_WEIGHT * total.max()))

    def _n_columns(self) -> int:
        return self.n_clusters

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if is_neighbors(self.affinity):
            raise ParameterError(
                f"affinity={self.affinity!r} works with BicliqueSpectralClustering (with assign_labels='kernel_kmeans' "
                "for this search); here pass a symmetric neighbour graph with affinity='precomputed'."
            )
        check_count("n_clusters", self.n_clusters)
        check_count("n_init", self.n_init, most=MOST_STARTS)
        check_choice("init", self.init, STARTS)
        if isinstance(self.weights, str):
            check_choice("weights", self.weights, WEIGHTS)
