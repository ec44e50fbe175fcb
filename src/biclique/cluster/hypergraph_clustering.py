"""Spectral clustering of given hyperedges."""

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy import sparse
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from biclique._typing import IntArray
from biclique.cluster.estimator import Estimator
from biclique.exceptions import DataError, DisconnectedWarning, warn_user
from biclique.fit.given_rows import read_array
from biclique.fit.hypergraphs import NO_CLUSTER, fit_hypergraph
from biclique.fit.settings import CONSTRAINTS, Check, an_order
from biclique.hypergraph import SPLITTINGS, ExpansionGram, Hypergraph, as_hypergraph, distortion, find_expansion
from biclique.hypergraph.expansions import AnyExpansion
from biclique.multiway import k_way_normalized_cut
from biclique.rows.checks import check_values
from biclique.runtime.arguments import check_flag
from biclique.runtime.threads import single_threaded_blas

FAINT = 1e-13
"""Degrees below this share of the largest are rounding."""


@dataclass(eq=False, repr=False)
class HypergraphSpectralClustering(ClusterMixin, Estimator):
    """Cluster the vertices of a hypergraph by the normalised cut of an expansion.

    The hypergraph is expanded to a graph on its vertices (never formed as a matrix), and the leading eigenvectors of
    that graph's normalised cut are clustered. Connected components are found first, with a warning; a vertex that
    shares no edge with another gets the label −1.

    Parameters
    ----------
    n_clusters : int, default 8
    expansion : {"star", "clique", "normalized_clique", "contraction"} or function, default "star"
        How an edge e of weight w becomes pairs: "star" w/|e| for each (Zhou, Huang and Schölkopf), "clique" w,
        "normalized_clique" w/(|e| − 1), "contraction" that of the adjacency tensor (Ghoshdastidar and Dukkipati). For
        edges of one size all four give the same clusters at order 2. A function w(j, s), the cost of an edge of s
        vertices with j on one side, is approximated by pairs (Li and Milenkovic); ``distortion_`` says how well.
    order : float, default 2
        Shrinks the degrees toward their mean as for points: 2 is the normalised cut, larger orders keep vertices
        of low degree from owning an eigenvector; up to inf.
    n_components : int, optional
        Columns of the embedding, ``n_clusters`` by default.
    row_normalize : bool, default True
        Scale the rows of the embedding to length 1, so that vertices of low and of high degree count alike.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "kernel_kmeans"}, default "kmeans"
    n_init : int or "auto", default "auto"
        Starts of k-means: 10 for up to 10 clusters, then fewer.
    random_state : int, RandomState or None
    eigen_tol : float or "auto"
        Angle to the true eigenvectors that is asked for; "auto" is 1e-8.
    n_jobs : int, optional
        Threads; every core by default. The result does not depend on it.
    verbose : int, default 0

    Attributes
    ----------
    labels_ : ndarray of shape (n_vertices,)
    n_clusters_ : int
        Clusters that were found.
    embedding_ : ndarray of shape (n_vertices, n_components)
        √S normalised, then the leading eigenvectors of B, before the rows are scaled; zero for vertices without
        a cluster.
    eigenvalues_, residuals_ : ndarray of shape (n_components − 1,)
    cut_ : float
        The normalised cut of the labels, at this order, over the vertices that have a cluster.
    part_sizes_ : ndarray
        Vertices of each connected component of two or more, largest first.
    distortion_ : float
        For a splitting function: the most by which pairs charge too much for cutting an edge; 1 otherwise.
    vertex_names_ : ndarray of shape (n_vertices,)
    order_ : float
    cut_history_ : ndarray
        With "kernel_kmeans": the cut after k-means and after every step.
    n_passes_, n_iter_ : int

    Examples
    --------
    >>> from biclique import Hypergraph, HypergraphSpectralClustering
    >>> baskets = Hypergraph.from_edges([["tea", "milk", "sugar"], ["milk", "sugar"], ["tea", "sugar"],
    ...                                  ["nails", "saw", "glue"], ["saw", "glue"], ["tea", "glue"]])
    >>> model = HypergraphSpectralClustering(n_clusters=2, random_state=0).fit(baskets)
    >>> [sorted(group) for group in model.clusters()]
    [['milk', 'sugar', 'tea'], ['glue', 'nails', 'saw']]
    """

    _constraints: ClassVar[Mapping[str, Check]] = {
        **CONSTRAINTS,
        "order": an_order,
        "row_normalize": check_flag,
        "expansion": lambda _, value: find_expansion(cast("AnyExpansion", value)),
    }

    n_clusters: int = 8
    _: KW_ONLY
    expansion: AnyExpansion = "star"
    order: float = 2
    n_components: int | None = None
    row_normalize: bool = True
    assign_labels: str = "kmeans"
    n_init: int | str = "auto"
    random_state: int | np.random.RandomState | None = None
    eigen_tol: float | str = "auto"
    n_jobs: int | None = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Cluster vertices.

        Parameters
        ----------
        X : Hypergraph, incidence matrix, or a hypergraph of XGI, HyperNetX or hypergraphx
            An incidence matrix is vertices by edges: an array, a sparse matrix or a data frame.
        y : ignored
        """
        settings = self._settings()
        with self._fitting() as progress:
            hypergraph = self._read(X)
            parts = hypergraph.components()
            together = np.bincount(parts)[parts] > 1  # vertices that share an edge with another
            joined = int(together.sum())
            if joined < max(self.n_clusters, 2):
                raise DataError(
                    f"{joined} of {hypergraph.n_vertices} vertices share an edge with another, fewer than "
                    f"n_clusters={self.n_clusters}: ask for fewer clusters, or check the hypergraph."
                )
            inner = hypergraph if together.all() else hypergraph.keeping_edges(np.flatnonzero(together))
            largest = float(np.abs(inner.weights).max(initial=0.0)) or 1.0  # cuts do not depend on their scale
            gram = ExpansionGram(inner.with_weights(inner.weights / largest), self.expansion, n_jobs=self.n_jobs)
            _check_degrees(gram, hypergraph.vertex_names[together])
            self._fitted, training = fit_hypergraph(settings, inner, gram, progress)
            self.order_ = self._fitted.chosen.order
            self.n_passes_ = self.n_iter_ = self._fitted.n_passes
            self.labels_ = np.full(len(together), NO_CLUSTER)
            self.labels_[together] = cast("IntArray", training.labels)
            self.embedding_ = np.zeros((len(together), settings.n_columns))
            self.embedding_[together] = training.embedding
            self.eigenvalues_, self.residuals_ = self._fitted.eigenvalues, self._fitted.residuals
            if training.cut_history is not None:
                self.cut_history_ = training.cut_history
            self.part_sizes_ = np.bincount(parts[together])
            self.cut_ = k_way_normalized_cut(gram, self.labels_[together], self.order_)
            self.distortion_ = 1.0
            if callable(self.expansion) or self.expansion in SPLITTINGS:
                self.distortion_ = max(distortion(self.expansion, int(size)) for size in np.unique(inner.edge_sizes))
            self.vertex_names_ = hypergraph.vertex_names
            self.n_features_in_ = hypergraph.n_edges
        self._warn(hypergraph, joined)
        return self

    def predict(self, X: Any) -> IntArray:
        """The cluster of new vertices, from the training edges they join; −1 for one that joins none.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_edges)
            How often each new vertex is in each training edge. Edges keep the sizes they had.
        """
        check_is_fitted(self)
        if isinstance(X, Hypergraph):
            raise DataError(
                "predict takes rows of the incidence matrix, one for each new vertex: pass hypergraph.incidence."
            )
        X = self._validated(X, reset=False)
        with single_threaded_blas():
            return self._fitted.labels(X, self.n_jobs)

    def clusters(self) -> list[list[Any]]:
        """The names of the vertices of every cluster, in the order of the labels."""
        check_is_fitted(self)
        return [self.vertex_names_[self.labels_ == label].tolist() for label in range(self.labels_.max() + 1)]

    # Checks

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """An incidence matrix, checked."""
        X = read_array(X, self, reset=reset, accept_sparse="csr", dtype=np.float64)
        check_values(X, getattr(self, "feature_names_in_", None), squared=False)
        values = X.data if sparse.issparse(X) else X
        if values.size and values.min() < 0:
            raise DataError(
                f"Negative values in data passed to {type(self).__name__}: X is an incidence matrix, vertices by "
                "edges, of how often each vertex is in each edge; for points use BicliqueSpectralClustering."
            )
        return X

    def _read(self, X: Any) -> Hypergraph:
        if isinstance(X, (list, tuple, dict, str, os.PathLike)) and not sparse.issparse(X):
            raise DataError(
                f"X is a {type(X).__name__}, which could be edges, an incidence matrix or a file: pass "
                "Hypergraph.from_edges(X), Hypergraph.from_dict(X), numpy.asarray(X) or read_hypergraph(X)."
            )
        if sparse.issparse(X) or hasattr(X, "__array__"):
            checked = self._validated(X, reset=True)
            names = list(X.index) if hasattr(X, "iloc") else None
            hypergraph = Hypergraph.from_incidence(checked, vertex_names=names)
        else:
            hypergraph = X if isinstance(X, Hypergraph) else as_hypergraph(X)
        if (hypergraph.weights < 0).any():
            edge = int(np.argmin(hypergraph.weights))
            raise DataError(
                f"edge weights must not be negative, edge {hypergraph.edge_names.item(edge)!r} has "
                f"{hypergraph.weights[edge]:g}: shift the weights, or leave such edges out."
            )
        return hypergraph

    def _warn(self, hypergraph: Hypergraph, joined: int) -> None:
        n, sizes = hypergraph.n_vertices, self.part_sizes_
        alone = n - joined
        if alone:
            warn_user(
                f"{alone} of {n} vertices share no edge with another: they have label {NO_CLUSTER}.",
                DisconnectedWarning,
            )
        if len(sizes) > 1:
            shown = ", ".join(map(str, sizes[:5])) + (", …" if len(sizes) > 5 else "")
            grouping = "nothing shows which of them belong together"
            if self.order_ == 2 and len(sizes) >= self.n_clusters and not self._fitted.settings.needs_cut:
                grouping = "they are grouped whole, so that nothing is cut"
            warn_user(
                f"the hypergraph falls into {len(sizes)} connected components ({shown} of {n} vertices): {grouping}. "
                "To cluster the largest one alone, fit hypergraph.largest_component(). order=4 splits large "
                "components before small ones get a cluster of their own.",
                DisconnectedWarning,
            )
        self._count_clusters(f"the embedding has no more groups for assign_labels={self.assign_labels!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _check_degrees(gram: ExpansionGram, names: np.ndarray) -> None:
    """Refuse degrees so small that they would be lost in the rounding of the largest."""
    degrees = gram.degrees()
    faint = np.flatnonzero(degrees <= FAINT * degrees.max())
    if len(faint):
        raise DataError(
            f"{len(faint)} of {gram.n} vertices, such as {names.item(faint[0])!r}, have a degree of at most "
            f"{degrees[faint].max() / max(degrees.max(), np.finfo(float).tiny):.1e} of the largest, "
            "less than rounding: leave the lightest edges out, or compress the weights (such as by their logarithm)."
        )
