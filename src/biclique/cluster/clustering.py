"""Spectral clustering by the order-m normalised cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from biclique._typing import Device
from biclique.cluster.estimator import ClustererBase, SpectralEstimator
from biclique.cluster.reporting import Reporting
from biclique.fit.plan import Result
from biclique.fit.settings import COUNTING, SELECT, Categorical, Check, Settings
from biclique.kernels import Kernel
from biclique.progress import Progress
from biclique.rows.array import RowSource
from biclique.runtime.threads import single_threaded_blas
from biclique.selection import CountResult
from biclique.selection.count_search import search_count, warn_about_structure


class BicliqueSpectralClustering(Reporting, SpectralEstimator, ClustererBase):
    """Spectral clustering that outliers do not disturb: the order-m normalised cut of a kernel or graph.

    The order m is the one extra knob. Order 2 is the ordinary normalised cut. Higher orders stop isolated points from
    taking a cluster of their own. ``order="auto"`` raises it only as far as the data ask.

    Behind it: points are the vertices of an m-uniform hypergraph. Its weights come from the biclique kernel, the sum
    of a base kernel over all pairs across two halves of m points (Saito, AAAI-22). The order only shrinks the degrees
    toward their mean, S = (2/m) δ + (1 − 2/m) δ̄. So each order costs the same as the graph cut. The hypergraph is
    never formed, and for large data the n × n matrix is not either.

    Every parameter of ``sklearn.cluster.SpectralClustering`` is accepted with its meaning.

    Parameters
    ----------
    n_clusters : int or "select", default=8
        Number of clusters. "select" takes the largest one, from 2 to ``k_max``, that random halves of at most 1,000
        rows find again (``docs/selection.md``). Other parameters that are "select" are then selected for it.
    order : "auto", "select" or float from 2 to infinity, default="auto"
        Order m of the hypergraph; any real number. Order 2 is the ordinary normalised cut, ``numpy.inf`` spectral
        modularity. "auto" is the least of 2, 2.05, 2.1, 2.25, 2.5, 3 and 4 that leaves no cluster of dust: each cluster
        has at least √(n/k) rows (``docs/order.md``). A few rows that are like hardly any other may be left out for
        that, and are then labelled as new rows are. With very many rows smaller steps above 2 are tried too. For
        neighbour graphs "auto" is the first of 2 and 2.1 that does. "select" searches
        (``docs/selection.md``).
    modelling : {"biclique", "symmetric"}, default="biclique"
        How m points make an edge. "biclique": all pairs across two halves. "symmetric": all pairs; for whole orders,
        odd ones too. The symmetric contraction can be indefinite: the algebraically largest eigenvalues are taken, with
        a warning if any of them is negative.
    affinity : str, callable or Kernel, default="rbf"
        What makes rows similar:

        - a kernel: "rbf", "laplacian", "polynomial" ("poly"), "linear", "cosine", "sigmoid", "chi2" or "additive_chi2",
        - "gower": a kernel for tables of numbers and categories, NaN for gaps (``docs/mixed-tables.md``),
        - "nearest_neighbors": a neighbour graph, for curved shapes and many columns,
        - "precomputed": X is a symmetric similarity matrix, dense or sparse,
        - "precomputed_nearest_neighbors": X is a sparse graph of distances, as
          ``sklearn.neighbors.KNeighborsTransformer`` gives it,
        - a function of two rows, or, which is faster, a ``biclique.kernels.Kernel`` of your own,
        - "select": rbf or a neighbour graph, by a search on at most 1,000 rows (``docs/selection.md``).
          ``n_neighbors``, ``neighbor_weights`` and ``row_normalize`` are selected too if they have their defaults.

    gamma : float, "auto", "select", "median" or "scale", default="auto"
        Bandwidth of rbf, laplacian, chi2 and gower, and factor of polynomial and sigmoid. "auto" is 0.2 divided by the
        median squared distance to the 7th neighbour within at most 1,000 distinct rows (gower: the Gower distance), or
        4 or 16 times that if clusters then part fewer neighbours (docs/order.md).
        "select" searches among multiples of that.
    n_components : int, optional
        Columns of the embedding; ``n_clusters`` by default.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "kernel_kmeans"}, default="kmeans"
        From the embedding to labels. "cluster_qr" and "discretize" need as many components as clusters.
        "kernel_kmeans" goes on from k-means with steps that lower the order-m cut itself, one pass over K each.
    n_init : int, default=10
        Starts of k-means. With 1: a single k-means++ start; with more, the first is deterministic.
    random_state : int, RandomState or None
        For the rows that choose gamma, the solver's start, and k-means. Fix it for equal results.
    eigen_solver : {None, "auto", "krylov", "arpack", "lobpcg", "amg"}
        None and "auto" decompose small problems whole and use block Krylov for the rest; multigrid ("amg") for
        neighbour graphs and for given sparse matrices without negative entries. A factored K needs none: its
        eigenpairs come from one small matrix.
    eigen_tol : float or "auto", default="auto"
        Residuals must fall below this share of the gap between the eigenvalues wanted and the next one. "auto" is
        1e-8 for a stored K or with ``precision="float64"``, 1e-3 for tiles, which is plenty for labels, and 0.1 for
        neighbour graphs.
    max_iter : int, default=100
        Most passes over K. (For lobpcg its steps; arpack may restart n times as often.)
    degree, coef0 : float, default=3 and 1
        Of the polynomial kernel, and the constant of the sigmoid one.
    kernel_params : dict, optional
        Keyword arguments of a callable affinity.
    categorical_features : array of bool, int or str, "from_dtype" or None
        Columns of categories for ``affinity="gower"``: a mask, numbers, names of columns of a frame, or "from_dtype"
        for those of pandas' or polars' type of categories. Values are codes: whole numbers from 0, NaN for a missing
        value. None: all columns are numbers.
    n_neighbors : int, default=10
        Neighbours of a row in a neighbour graph, the row itself counted.
    neighbor_weights : {"auto", "connectivity", "rbf", "self_tuning"}, default="auto"
        Weights of a neighbour graph:

        - "connectivity": 1,
        - "rbf", which is "auto": exp(−γ|x − y|²), with γ = 0.2 / median squared distance to the last neighbour unless
          ``gamma`` is a number,
        - "self_tuning": exp(−|x − y|²/(σ_x σ_y)), σ the distance to the 7th neighbour.

    gram : {"auto", "dense", "tiled", "fourier", "nystroem", "features"}, default="auto"
        How K is stored or computed:

        - "dense": stored, exact,
        - "tiled": computed again in every pass, tile by tile, exact,
        - "fourier": by FFTs, for rbf on one to three columns (``pip install 'biclique[fourier]'``). The error is
          measured, and is below 1e-5 of each row's degree (``docs/fourier.md``).
        - "nystroem": approximately, as K ≈ ΦΦᵀ by landmark rows, for every kernel,
        - "features": as K ≈ ΦΦᵀ by features. For linear, cosine and polynomial kernels these are exact: the columns
          themselves, or monomials; a sketch of them if they are too many. For rbf and laplacian they are random.
        - "auto": stored up to 4,096 distinct rows, or more if the kernel is slow to compute and the matrix fits the
          memory limit; "fourier" from 10,000 rows on; features if they are exact and few; "nystroem", with a warning,
          if exact tiles would take more than about 12 s on two cores (some 110,000 rows in 16 columns); else "tiled".

        A neighbour graph is always a sparse matrix.
    rank : int or "auto", default="auto"
        Landmarks or random features. "auto" doubles from 128 to 2,048 until the eigenvalues of a sample of 2,000 rows
        are within 0.01 of the exact ones, relative to the largest.
    landmarks : {"uniform", "kmeans++", "leverage"}, default="uniform"
        How landmarks are drawn. "uniform": every row alike. "kmeans++": far from each other. "leverage": by ridge
        leverage scores, which prefer rows that are unlike the others.
    row_normalize : bool or "auto", default="auto"
        Scale rows of the embedding to length 1 before labels are assigned. "auto" is True, except for "cluster_qr",
        whose pivots are the longest rows. With "kmeans", "auto" also compares other clusters of the embedding and of X,
        and takes those that share clearly fewer links between nearest rows (``docs/order.md``). The paper's numbers
        need False. ``embedding_`` is not scaled.
    precision : {"auto", "float32", "float64", "fast"}, default="auto"
        Of tiles: "auto" is float32 unless its rounding would show. A stored K is always float64. "fast" is for a GPU:
        kernel values in half precision. "float64" takes the slower tiles of PyTorch there.
    memory_limit : "auto", int or str, default="auto"
        Bytes, or text like "4GB"; "auto" is half of what is free. Larger requests are refused before they start.
    device : str or torch.device, optional
        Where K is computed and the cut is solved. None is the host, "cuda" a GPU (``pip install 'biclique[gpu]'``).
        PyTorch has others: "cpu", "mps", "xpu". A number chooses among several, as in "cuda:1".

        - Rows must be dense, and the kernel one of rbf, laplacian, polynomial, linear and cosine. Landmarks do not work
          with laplacian.
        - Results are exact unless ``gram`` is "nystroem" or "features".
        - A tensor as X stays on its device, and asks for it. Only samples come to the host, to choose gamma and
          landmarks: at most 20,000 rows, or four for each landmark if ``rank`` is above 5,000.

    max_hours : float, default=24
        An exact fit on a Dask cluster (``gram="tiled"``) that would take longer is refused (``docs/cluster.md``).
    n_jobs : int, optional
        Threads; None and -1 mean every core. Results do not depend on it.
    verbose : int, default=0
        1 shows a bar with passes, residual and time left, and an estimate before work of over 10 s. If standard error
        is not a terminal, 1 prints one line for each pass, and a larger number one line in so many seconds.
    k_max : int, default=20
        The largest number of clusters that ``n_clusters="select"`` tries.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
        With ``n_clusters="select"``: the number of clusters that was selected.
    k_selection_ : CountResult
        With ``n_clusters="select"``: the stability of every number of clusters, the choice, the second, and the reason.
    has_structure_ : bool or None
        With ``n_clusters="select"``: whether the rows have structure at all; None if that was not tested.
    structure_reason_ : str
        Why.
    embedding_ : ndarray of shape (n_samples, n_components)
        √S normalised, then the leading eigenvectors of B. After a fit on a chunk source it does not exist:
        ``transform`` gives it.
    eigenvalues_, residuals_ : ndarray of shape (n_components - 1,)
        Of B = S^(−1/2) (K − δδᵀ/ρ) S^(−1/2), descending, and |B v − λ v|. If K falls into parts: 1 for every part
        beyond the first, dust that has no column of its own included, then those of the parts' own B. At order 2 these
        are eigenvalues of the whole B; for neighbour graphs at other orders they are not.
    selection_ : SelectionResult
        With any parameter "select": every candidate with its criteria, the choice, the second, and the reason.
    plan_ : Plan
        Every decision of the fit with its reason; printed, it explains the fit. ``plan(X)`` makes one without a fit.
    gamma_, order_, gram_, gram_reason_, precision_, rank_ :
        What was chosen, and why K is stored so; ``rank_`` is None if K is not factored.
    order_reason_ : str
        The sizes of clusters that ruled lower orders out, or "as asked for".
    rows_left_out_ : ndarray
        Numbers of the rows that order "auto" left out at order 2. A fit at order 2, with ``gamma_`` and a
        ``sample_weight`` of 0 for these rows, gives the same labels.
    approximation_ : ApproximationError or None
        How far an approximate K is from the exact one on a sample of rows: ``eigenvalues``, ``kernel``, ``n_rows``.
    cut_history_ : ndarray
        With "kernel_kmeans": the order-m normalised cut after k-means and after every step.
    n_passes_, n_iter_ : int
        Passes over K that the fit took.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from biclique import BicliqueSpectralClustering
    >>> X = load_iris().data
    >>> model = BicliqueSpectralClustering(n_clusters=3, random_state=0).fit(X)
    >>> sorted(int((model.labels_ == j).sum()) for j in range(3))
    [36, 50, 64]
    >>> bool((model.predict(X) == model.labels_).all())
    True
    """

    _constraints: ClassVar[Mapping[str, Check]] = COUNTING

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        order: float | str = "auto",
        modelling: str = "biclique",
        affinity: str | Kernel | Callable[..., float] = "neighborhoods",
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
        categorical_features: Categorical | None = None,
        n_neighbors: int | None = None,
        gram: str = "auto",
        rank: int | str = "auto",
        landmarks: str = "uniform",
        row_normalize: bool | str = "auto",
        precision: str = "auto",
        memory_limit: int | str = "auto",
        device: Device | None = None,
        max_hours: float = 24,
        n_jobs: int | None = None,
        verbose: int = 0,
        k_max: int = 20,
    ) -> None:
        self.n_clusters = n_clusters
        self.order = order
        self.modelling = modelling
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
        self.categorical_features = categorical_features
        self.n_neighbors = n_neighbors
        self.gram = gram
        self.rank = rank
        self.landmarks = landmarks
        self.row_normalize = row_normalize
        self.precision = precision
        self.memory_limit = memory_limit
        self.device = device
        self.max_hours = max_hours
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.k_max = k_max

    @property
    def _counting(self) -> bool:
        """Whether the number of clusters is to be selected."""
        return self.n_clusters == SELECT

    def _count(self, settings: Settings, source: RowSource, progress: Progress) -> tuple[Settings, CountResult]:
        """Settings with the number of clusters, and how it was found."""
        found = search_count(settings, source, progress, self.k_max)
        assigning = replace(settings.assigning, n_clusters=found.n_clusters)
        columns = self.n_components or found.n_clusters
        return replace(settings, assigning=assigning, n_columns=columns), found

    def _selected(self, settings: Settings, source: RowSource) -> tuple[Settings, str]:
        if not self._counting:
            return settings, ""
        with single_threaded_blas(), Progress.of(self.verbose) as progress:
            settings, counted = self._count(settings, source, progress)
        return settings, counted.told

    def _search(self, settings: Settings, source: RowSource, progress: Progress) -> Result:
        settings, self.k_selection_ = self._count(settings, source, progress)
        self.n_clusters_ = self.k_selection_.n_clusters
        self.has_structure_ = self.k_selection_.has_structure
        self.structure_reason_ = self.k_selection_.structure.reason
        selected = self.k_selection_.told
        progress.say(selected)
        warn_about_structure(self.k_selection_)
        return self._run(settings, source, progress, selected)
