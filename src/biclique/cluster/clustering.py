"""Spectral clustering by the order-m normalised cut."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from biclique.cluster.estimator import ClustererBase, SpectralEstimator
from biclique.cluster.reporting import Reporting
from biclique.fit.settings import COUNTING, SELECT, Check, Settings
from biclique.progress import Progress
from biclique.rows.array import RowSource


@dataclass(eq=False, repr=False)
class BicliqueSpectralClustering(Reporting, SpectralEstimator, ClustererBase):
    """Clustering by the normalised cut of a hypergraph of neighbourhoods, or of a kernel at any order.

    The default needs no bandwidth: some 4,000 landmarks stand for the rows, every landmark has a hyperedge of the
    rows that have it among their 7 nearest, and the hypergraph is cut (``docs/default.md``). It takes linear time.

    With a kernel (``affinity="rbf"``) it is Algorithm 1 of Saito (AAAI-22): points are the vertices of an m-uniform
    hypergraph, whose weights come from the biclique kernel, the sum of a base kernel over all pairs across two halves
    of m points. The order m only shrinks the degrees toward their mean, S = (2/m) δ + (1 − 2/m) δ̄. So each order costs
    the same as the graph cut, and the hypergraph is never formed.

    Every parameter of ``sklearn.cluster.SpectralClustering`` is accepted with its meaning; gamma needs a kernel
    (``affinity="rbf"``).

    Parameters
    ----------
    n_clusters : int or "select", default=8
        Number of clusters. "select" takes the largest one, from 2 to 20, that random halves of at most 2,000 rows find
        again (``docs/selection.md``); ``biclique.selection.select_n_clusters`` looks further.
    order : "auto" or float from 2 to infinity, default="auto"
        Order m of the hypergraph of a kernel; any real number. Order 2 is the ordinary normalised cut, ``numpy.inf``
        spectral modularity. "auto" is 2 for neighbourhoods, graphs and given matrices, as in scikit-learn. For kernels
        of rows it is the least of 2, 2.05, 2.1, 2.25, 2.5, 3 and 4 whose clusters all have at least √(n/k) rows, else
        the one whose smallest cluster is largest.
    modelling : {"biclique", "symmetric"}, default="biclique"
        How m points make an edge of a kernel. "biclique": all pairs across two halves. "symmetric": all pairs; for
        whole orders, odd ones too. The symmetric contraction can be indefinite: the algebraically largest eigenvalues
        are taken, with a warning if any of them is negative.
    affinity : str, callable or Kernel, default="neighborhoods"
        What makes rows similar:

        - "neighborhoods": landmarks that are near to both,
        - a kernel: "rbf", "laplacian", "polynomial" ("poly"), "linear", "cosine", "sigmoid", "chi2" or "additive_chi2",
        - "gower": a kernel for tables of numbers and categories, NaN for gaps (``docs/tables.md``),
        - "nearest_neighbors": scikit-learn's graph of nearest neighbours,
        - "precomputed": X is a symmetric similarity matrix, dense or sparse,
        - "precomputed_nearest_neighbors": X is a sparse graph of distances, as
          ``sklearn.neighbors.KNeighborsTransformer`` gives it,
        - a function of two rows, or, which is faster, a ``biclique.kernels.Kernel`` of your own.

    gamma : float, "auto", "median" or "scale", default="auto"
        Bandwidth of rbf, laplacian, chi2 and gower, and factor of polynomial and sigmoid. "auto" is 0.2 divided by the
        median squared distance to the 7th neighbour within at most 1,000 distinct rows (gower: the Gower distance).
    n_components : int, optional
        Columns of the embedding; ``n_clusters`` by default.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "kernel_kmeans"}, default="kmeans"
        From the embedding to labels. "cluster_qr" and "discretize" need as many components as clusters.
        "kernel_kmeans" goes on from k-means with steps that lower the order-m cut itself, one pass over K each.
    n_init : int or "auto", default="auto"
        Starts of k-means. With 1: a single k-means++ start; with more, the first is deterministic. "auto" is 10 for up
        to 10 clusters, 100/k for more, and the deterministic start alone for more than 50.
    random_state : int, RandomState or None
        For landmarks and k-means; with a kernel also for the rows that choose gamma and the solver's start. Fix it for
        equal results.
    eigen_solver : {None, "auto", "krylov", "arpack", "lobpcg", "amg"}
        None and "auto" decompose small problems whole and use block Krylov for the rest; multigrid ("amg") for
        neighbour graphs and for given sparse matrices without negative entries. Neighbourhoods, landmarks and features
        do not use it: their eigenpairs come from one matrix of the landmarks or features.
    eigen_tol : float or "auto", default="auto"
        Residuals must fall below this share of the gap between the eigenvalues wanted and the next one. "auto" is
        1e-5 for neighbourhoods, 1e-8 for a stored K or with ``precision="float64"``, and 1e-3 for tiles and neighbour
        graphs, which is plenty for labels.
    degree, coef0 : float, default=3 and 1
        Of the polynomial kernel, and the constant of the sigmoid one.
    kernel_params : dict, optional
        For neighbourhoods ``{"metric": "euclidean"}`` (the default), ``"cosine"``, ``"gower"`` or
        ``biclique.kernels.Gower(categorical=…)``, which names columns of categories. For a callable affinity its
        keyword arguments.
    n_neighbors : int, optional
        Landmarks of a row (7 by default), or neighbours of a row in a neighbour graph, the row itself counted (10). If
        the hypergraph has more connected components than clusters, it is doubled until it has not.
    gram : {"auto", "dense", "tiled", "fourier", "nystroem", "features"}, default="auto"
        How K is stored or computed:

        - "dense": stored, exact,
        - "tiled": computed again in every pass, tile by tile, exact,
        - "fourier": by FFTs, for rbf on one to three columns (extra ``[fourier]``). The error is
          measured, and is below 1e-5 of each row's degree (``docs/scale.md``).
        - "nystroem": approximately, as K ≈ ΦΦᵀ by landmark rows, for every kernel,
        - "features": as K ≈ ΦΦᵀ by features. For linear, cosine and polynomial kernels these are exact: the columns
          themselves, or monomials; a sketch of them if they are too many. For rbf and laplacian they are random.
        - "auto": stored up to 4,096 distinct rows, or 20,000 if the kernel is slow to compute; else "tiled".

        For kernels alone: neighbourhoods and graphs are always sparse.
    rank : int, "auto" or "all", default="auto"
        Landmarks of neighbourhoods: "auto" is 4,000, or 20 for each cluster if that is more; "all" takes every distinct
        row. Landmarks or random features of a kernel: "auto" is 1,000.
    row_normalize : bool or "auto", default="auto"
        Scale rows of the embedding to length 1 before labels are assigned. "auto" is True for neighbourhoods and
        neighbour graphs (not with "cluster_qr", whose pivots are the longest rows), and False for kernels and given
        matrices, as in the paper. ``embedding_`` is not scaled.
    precision : {"auto", "float32", "float64", "fast"}, default="auto"
        Of tiles: "auto" is float32 unless its rounding would show. A stored K is always float64. "fast" is for a GPU:
        kernel values in half precision. "float64" takes the slower tiles of PyTorch there.
    device : str or torch.device, optional
        Where K is computed and the cut is solved. None is the host, "cuda" a GPU (extra ``[gpu]``).
        PyTorch has others: "cpu", "mps", "xpu". A number chooses among several, as in "cuda:1".

        - Rows must be dense. Of neighbourhoods the device searches the nearest landmarks. Kernels may be rbf,
          laplacian, polynomial, linear and cosine. Landmarks of a kernel do not work with laplacian.
        - Results are exact unless ``gram`` is "nystroem" or "features".
        - A tensor as X stays on its device, and asks for it. Only samples come to the host, to choose gamma and
          landmarks, and the numbers of the landmarks of every row.

    n_jobs : int, optional
        Threads; None and -1 mean every core. Results do not depend on it.
    verbose : int, default=0
        1 shows a bar with passes, residual and time left. If standard error is not a terminal, 1 prints one line for
        each pass, and a larger number one line in so many seconds.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
        Clusters that were found.
    k_selection_ : CountResult
        With ``n_clusters="select"``: the stability of every number of clusters, the choice, the second, and the reason.
    has_structure_ : bool or None
        With ``n_clusters="select"``: whether the rows have structure at all; None if that was not tested.
    structure_reason_ : str
        Why.
    embedding_ : ndarray of shape (n_samples, n_components)
        √S normalised, then the leading eigenvectors of B.
    affinity_matrix_ : array or CSR matrix of shape (n_samples, n_samples)
        K, if it was stored (``gram_`` is "dense", "sparse" or "neighbors"). It is made when it is asked for, and not
        known to a copy that was saved or pickled.
    eigenvalues_, residuals_ : ndarray of shape (n_components - 1,)
        Of B = S^(−1/2) (K − δδᵀ/ρ) S^(−1/2), descending, and |B v − λ v|.
    gamma_, order_, gram_, gram_reason_, precision_, rank_ :
        What was chosen, and why K is stored so; ``rank_`` is None if K is not factored.
    order_reason_ : str
        The sizes of clusters that ruled lower orders out, or "as asked for".
    n_neighbors_ : int
        Landmarks of a row, of neighbourhoods.
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
    [47, 50, 53]
    >>> bool((model.predict(X) == model.labels_).all())
    True
    """

    _constraints: ClassVar[Mapping[str, Check]] = COUNTING

    n_clusters: int | str = 8
    _: KW_ONLY
    n_components: int | None = None
    assign_labels: str = "kmeans"
    n_init: int | str = "auto"
    row_normalize: bool | str = "auto"

    def _selected(self, settings: Settings, source: RowSource, progress: Progress) -> Settings:
        if self.n_clusters != SELECT:
            return settings
        from biclique.selection.count_search import search_count, warn_about_structure

        found = search_count(settings, source, progress)
        self.k_selection_ = found
        self.has_structure_, self.structure_reason_ = found.has_structure, found.structure.reason
        progress.say(found.explanation)
        warn_about_structure(found)
        return self._settings(n_clusters=found.n_clusters)
