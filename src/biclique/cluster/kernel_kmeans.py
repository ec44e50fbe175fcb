"""Weighted kernel k-means: a local search that lowers the order-m normalised cut itself."""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.cluster.estimator import ClustererBase
from biclique.exceptions import ParameterError, SolverWarning, warn_user
from biclique.fit.choose import check_source
from biclique.fit.exact import CutEmbedding, ExactCuts
from biclique.fit.exact_fitted import fit_exact
from biclique.fit.settings import CONSTRAINTS, Check, Settings
from biclique.progress import Progress
from biclique.rows.array import Vertices
from biclique.rows.checks import check_weights
from biclique.runtime.arguments import MOST_STARTS, check_choice, check_count, check_random
from biclique.runtime.namespace import unit_rows
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.lloyd import (
    KernelKMeansProblem,
    KernelKMeansResult,
    kernel_kmeans,
    plus_plus_start,
    random_start,
)
from biclique.spectral.rounding import Assignment, kmeans

NO_WEIGHT = 1e-12
"""A weight of zero counts as this share of the largest: the row has no say, but a place."""


def _weights(name: str, value: object) -> None:
    if isinstance(value, str):
        check_choice(name, value, ("cut", "paper"))


@dataclass(eq=False, repr=False)
class BicliqueKernelKMeans(ClustererBase):
    """Weighted kernel k-means whose objective is the order-m normalised cut.

    With weights S = (2/m) δ + (1 − 2/m) δ̄ and the kernel S⁻¹ (K − δδᵀ/ρ) S⁻¹, the objective J of weighted kernel
    k-means and the cut are one thing: kNCut_m = k − 1 − (2/m)² (trace − J). Lloyd steps never raise it when K is
    semi-definite; for other K the diagonal is shifted, which moves J by a constant. A step costs one pass over K, which
    is never stored if ``gram`` is "tiled".

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
        space (one pass for each centre).
    n_init : int, default=1
        Random starts of which the best counts; for "spectral", the starts of its k-means.
    max_iter : int, default=100
        Most Lloyd steps.
    affinity, gamma, degree, coef0, kernel_params, n_neighbors, gram, rank, precision, n_jobs, random_state, verbose :
        As in ``BicliqueSpectralClustering``, without neighbour graphs.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
        Clusters that were found.
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

    _constraints: ClassVar[Mapping[str, Check]] = {
        **CONSTRAINTS,
        "init": partial(check_choice, allowed=("spectral", "random", "k-means++")),
        "weights": _weights,
        "n_init": partial(check_count, most=MOST_STARTS),
    }

    n_clusters: int = 8
    _: KW_ONLY
    weights: str | FloatArray = "cut"
    init: str = "spectral"
    n_init: int = 1
    max_iter: int = 100

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Cluster the rows of X.

        Parameters
        ----------
        X : array, data frame or CSR matrix of shape (n_samples, n_features)
            With ``affinity="precomputed"``: similarities of shape (n_samples, n_samples).
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How often each row counts; 0 leaves it out of the fit.
        """
        settings = self._settings()
        with self._fitting() as progress:
            source = self._source(settings, X, sample_weight, progress)
            check_source(settings, source)
            best: list[KernelKMeansResult] = []

            def label(found: CutEmbedding, cuts: ExactCuts) -> Assignment:
                best.append(self._search(found, cuts, source.weights, progress))
                return Assignment(best[0].labels, best[0].rule, best[0].history)

            fitted, training = fit_exact(settings, source, progress, label)
            self._store(fitted, training)
            result = best[0]
            self.cut_, self.shift_, self.n_iter_ = float(result.history[-1]), result.shift, max(result.n_iter, 1)
        if not result.converged:
            warn_user(
                f"rows still moved after {result.n_iter} steps (objective {self.cut_:.6g}); raise max_iter.",
                SolverWarning,
            )
        self._count_clusters("clusters ran empty", training.n_distinct)
        return self

    def _search(
        self, found: CutEmbedding, cuts: ExactCuts, multiplicities: FloatArray, progress: Progress
    ) -> KernelKMeansResult:
        """The best of Lloyd's steps from every start."""
        paper = isinstance(self.weights, str) and self.weights == "paper" and np.isfinite(found.cut.order)
        factor = (2 / found.cut.order) ** 2 if paper else 1.0  # from J with K and 1/S to the paper's J'
        weights = self._vertex_weights(found.cut, cuts.vertices, multiplicities)
        problem = KernelKMeansProblem(found.cut, weights, factor=factor)
        results = [
            kernel_kmeans(
                problem,
                start,
                min(self.n_clusters, cuts.vertices.n),
                max_iter=self.max_iter,
                random_state=cuts.random,
                report=lambda step, value: progress.say(f"step {step}: objective {value:.6g}"),
            )
            for start in list(self._starts(found, problem, cuts))
        ]
        return min(results, key=lambda one: one.history[-1])

    def _starts(self, found: CutEmbedding, problem: KernelKMeansProblem, cuts: ExactCuts) -> Iterator[IntArray]:
        n, k, random = cuts.vertices.n, self.n_clusters, cuts.random
        if n <= k:
            yield np.arange(n)
        elif self.init == "spectral":
            rows, seed = unit_rows(found.rows), check_random(cuts.settings.random_state)
            yield kmeans(rows, found.cut.weights, k, n_init=self.n_init, random_state=seed).labels
        else:
            for _ in range(self.n_init):
                yield random_start(n, k, random) if self.init == "random" else plus_plus_start(problem, k, random)

    def _vertex_weights(self, cut: NormalizedCut, vertices: Vertices, multiplicities: FloatArray) -> FloatArray | None:
        """The weights v of plain weighted kernel k-means, one for each vertex; None for the cut."""
        if isinstance(self.weights, str):
            return None if self.weights == "cut" else 1.0 / cut.shrunken
        index, counted = vertices.index, vertices.index >= 0
        given = check_weights(self.weights, len(index), "weights")
        # Equal rows with different weights: their weighted mean, so that the total stays.
        sums = np.bincount(index[counted], (multiplicities * given)[counted], minlength=vertices.n)
        means = sums / vertices.weights
        return np.asarray(np.maximum(means, NO_WEIGHT * means.max()))

    def _n_columns(self) -> int:
        # For a random start the cut alone is needed.
        return self.n_clusters if self.init == "spectral" or self.order == "auto" else 1

    def _settings(self, **known: int | str) -> Settings:
        settings = super()._settings(assign_labels="kernel_kmeans", **known)  # steps are passes over K
        if settings.kernel.neighbors:
            raise ParameterError(
                f"affinity={self.affinity!r} works with BicliqueSpectralClustering (with assign_labels='kernel_kmeans' "
                "for this search); here pass a symmetric neighbour graph with affinity='precomputed'."
            )
        return settings
