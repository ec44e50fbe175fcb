"""Spectral clustering of given hyperedges."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils.validation import check_is_fitted

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import (
    DataError,
    DisconnectedWarning,
    FewerClustersWarning,
    MemoryLimitError,
    ParameterError,
    SolverWarning,
    warn_user,
)
from biclique.fit.checks import check_tolerance, check_values, read_array
from biclique.fit.cost import Cost
from biclique.fit.exact import SolverOptions, solve_cut, solve_graph, warn_unless_converged
from biclique.gram import SparseGram
from biclique.hypergraph import SPLITTINGS, ExpansionGram, Hypergraph, as_hypergraph, distortion, find_expansion
from biclique.multiway import check_order, k_way_normalized_cut
from biclique.neighbors.graph import components
from biclique.progress import Progress
from biclique.runtime.arguments import MOST_STARTS, check_choice, check_count, check_flag, check_jobs, check_random
from biclique.runtime.memory import data_bytes, parse_memory_limit, require
from biclique.runtime.threads import single_threaded_blas
from biclique.spectral import (
    ASSIGNERS,
    BASIS_BLOCKS,
    EigenResult,
    Extension,
    KernelRule,
    NormalizedCut,
    Parts,
    basis_bytes,
    block_columns,
    blocks_within,
    direct_bytes,
    parted_eigenpairs,
    solves_directly,
)
from biclique.spectral.joining import LeastVolume, join_parts, shares_of_parts

DIGITS = 8
"""Digits of the embedding that count: solvers are asked for as many."""

FAINT = 1e-13
"""Degrees below this share of the largest are rounding."""

FIRST_PASSES = 40
"""Passes after which multigrid is tried: few hypergraphs need as many."""

USUAL_PASSES = 15
"""Of hypergraphs with clusters; long and thin ones have ``FIRST_PASSES`` and then multigrid."""

SECONDS_PER_ENTRY, SECONDS_PER_DISTANCE, SECONDS_PER_CUBE = 3e-8, 2e-7, 2e-9
"""Of an entry of the block in a pass, beside the product; of a vertex, a centre and a start of k-means; and of a full
decomposition, all on one core."""

SECONDS_AT_LEAST = 0.1
"""Of the smallest fit."""

NO_CLUSTER = -1
"""The label of a vertex that shares no edge with another."""


class HypergraphSpectralClustering(ClusterMixin, BaseEstimator):
    """Cluster the vertices of a hypergraph by the normalised cut of an expansion.

    The hypergraph is expanded to a graph on its vertices (never formed as a matrix), and the leading eigenvectors of
    that graph's normalised cut are clustered. Several connected parts are found first, exactly, and said; a vertex that
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
    n_init : int, default 10
    random_state : int, RandomState or None
    eigen_tol : float or "auto"
        Angle to the true eigenvectors that is asked for; "auto" is 1e-8.
    max_iter : int, default 1000
        Most passes over the incidences.
    memory_limit : int, str or "auto"
        Such as "4GB"; half of what is free by default.
    n_jobs : int, optional
        Threads; every core by default. The result does not depend on it.
    verbose : int, default 0

    Attributes
    ----------
    labels_ : ndarray of shape (n_vertices,)
    embedding_ : ndarray of shape (n_vertices, n_components)
        √S normalised, then the leading eigenvectors of B, before the rows are scaled; zero for vertices without
        a cluster.
    eigenvalues_, residuals_ : ndarray of shape (n_components − 1,)
    cut_ : float
        The normalised cut of the labels, at this order, over the vertices that have a cluster.
    part_sizes_ : ndarray
        Vertices of each connected part of two or more, largest first.
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

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        expansion: Any = "star",
        order: float = 2,
        n_components: int | None = None,
        row_normalize: bool = True,
        assign_labels: str = "kmeans",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = None,
        eigen_tol: float | str = "auto",
        max_iter: int = 1000,
        memory_limit: int | str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.expansion = expansion
        self.order = order
        self.n_components = n_components
        self.row_normalize = row_normalize
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.random_state = random_state
        self.eigen_tol = eigen_tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster vertices.

        Parameters
        ----------
        X : Hypergraph, incidence matrix, or a hypergraph of XGI, HyperNetX or hypergraphx
            An incidence matrix is vertices by edges: an array, a sparse matrix or a data frame.
        y : ignored
        """
        del y
        self._check_parameters()
        hypergraph = self._read(X)
        parts = hypergraph.components()
        together = np.bincount(parts)[parts] > 1  # vertices that share an edge with another
        joined = int(together.sum())
        if joined < max(self.n_clusters, 2):
            raise DataError(
                f"{joined} of {hypergraph.n_vertices} vertices share an edge with another, fewer than "
                f"n_clusters={self.n_clusters}: ask for fewer clusters, or check the hypergraph."
            )
        with single_threaded_blas(), Progress(bool(self.verbose)) as progress:
            self._fit_joined(hypergraph, parts, together, progress)
        self.vertex_names_ = hypergraph.vertex_names
        self.n_features_in_ = hypergraph.n_edges
        self._warn(hypergraph, joined)
        return self

    def _fit_joined(self, hypergraph: Hypergraph, parts: IntArray, together: np.ndarray, progress: Progress) -> None:
        random = check_random(self.random_state)
        inner = hypergraph if together.all() else _keeping_edges(hypergraph, together)
        parts = parts[together]
        self.part_sizes_ = np.bincount(parts)
        largest = float(np.abs(inner.weights).max())
        gram = ExpansionGram(inner.with_weights(inner.weights / largest), self.expansion, n_jobs=self.n_jobs)
        _check_degrees(gram, hypergraph.vertex_names[together])
        columns = self._n_columns()
        k = min(columns, gram.n) - 1
        blocks = self._basis_blocks(gram.n, k)
        cut = NormalizedCut(gram, self.order, probe=_probe(parts, k, random))
        in_parts = None
        if cut.order == 2 and k > 0 and len(self.part_sizes_) > 1:
            pairs, in_parts = self._solve_parts(cut, inner, parts, columns, k, random, progress)
        else:
            pairs = self._solve(cut, k, random, progress, blocks)
        warn_unless_converged(pairs)
        self._fitted_columns, self._fitted_normalize = columns, bool(self.row_normalize)
        self._extension, rows = Extension.fit(cut, pairs, float(np.finfo(float).eps))
        self._gram = gram
        rows = np.pad(rows, ((0, 0), (0, columns - rows.shape[1])))
        self._assignment = ASSIGNERS[self.assign_labels](
            self._scaled(rows),
            np.ones(gram.n),
            self.n_clusters,
            cut=cut,
            n_init=self.n_init,
            random_state=random,
            parts=in_parts,
        ).contiguous()
        self.labels_ = np.full(len(together), NO_CLUSTER)
        self.labels_[together] = self._assignment.labels
        self.embedding_ = np.zeros((len(together), columns))
        self.embedding_[together] = rows
        self.eigenvalues_ = np.pad(pairs.values, (0, columns - 1 - len(pairs.values)))
        self.residuals_ = np.pad(pairs.residuals, (0, columns - 1 - len(pairs.residuals)))
        self.order_ = cut.order
        self.cut_ = k_way_normalized_cut(gram, self._assignment.labels, cut.order)
        self.distortion_ = _distortion(self.expansion, inner)
        self.__dict__.pop("cut_history_", None)  # of an earlier fit
        if self._assignment.cut_history is not None:
            self.cut_history_ = self._assignment.cut_history
        self.n_passes_ = self.n_iter_ = cut.n_passes

    def _solve(
        self,
        cut: NormalizedCut,
        k: int,
        random: np.random.RandomState,
        progress: Progress,
        blocks: int = BASIS_BLOCKS,
    ) -> EigenResult:
        """The k leading eigenpairs: by passes, or by multigrid where these do not end and the matrix fits memory.

        Long, thin hypergraphs need thousands of passes, and their expansion has few entries.
        """
        options = SolverOptions(tol=self.eigen_tol, max_passes=min(self.max_iter, FIRST_PASSES))
        pairs = solve_cut(cut, k, options, random, progress, basis_blocks=blocks)
        if pairs.converged or self.max_iter <= FIRST_PASSES:
            return pairs
        options = replace(options, max_passes=self.max_iter)
        gram: Any = cut.gram
        try:
            stored = SparseGram(gram.matrix(self.memory_limit), n_jobs=self.n_jobs)
        except MemoryLimitError as error:
            stored = None
            warn_user(
                f"{pairs.n_passes} passes were not enough, and multigrid, which long and thin hypergraphs need, does "
                f"not fit: {error} Up to {self.max_iter} passes follow.",
                SolverWarning,
            )
        if stored is not None and stored.is_graph and components(stored.K).max() == 0:
            return solve_graph(NormalizedCut(stored, cut.order, cut.weights), k, options, random, progress)
        return solve_cut(cut, k, options, random, progress, basis_blocks=blocks)

    def _solve_parts(
        self,
        cut: NormalizedCut,
        inner: Hypergraph,
        parts: IntArray,
        columns: int,
        k: int,
        random: np.random.RandomState,
        progress: Progress,
    ) -> tuple[EigenResult, Parts | None]:
        """Connected parts, joined by the convention of ``cluster/_parts.py``, and the eigenpairs of each."""
        near = LeastVolume(cut.degrees)
        joined = join_parts(parts, cut.weights, self.n_clusters, min(self.n_clusters, columns), near)

        def solve(members: IntArray, wanted: int) -> EigenResult:
            kept = np.zeros(len(parts), dtype=bool)
            kept[members] = True
            own = ExpansionGram(
                _keeping_edges(inner, kept).with_weights(cut.gram.hypergraph.weights),  # type: ignore[attr-defined]
                self.expansion,
                n_jobs=self.n_jobs,
            )
            return self._solve(NormalizedCut(own, 2), wanted, random, progress)

        none = np.empty(0, dtype=np.intp)
        cores = [joined.core(part) if joined.whole[part] else none for part in range(joined.n_parts)]
        found = parted_eigenpairs(cut, joined.part_of, cores, k, solve)
        if columns < self.n_clusters:
            return found.pairs, None
        shares = shares_of_parts(found.values_of_parts, self.n_clusters)
        return found.pairs, Parts(joined.part_of, tuple(shares), joined.like(near))

    def _n_columns(self) -> int:
        return self.n_components or self.n_clusters

    def _basis_blocks(self, n: int, k: int) -> int:
        limit = parse_memory_limit(self.memory_limit)
        if solves_directly(n, k):
            needed, blocks = direct_bytes(n), 0
        else:
            blocks = blocks_within(n, k, limit)
            needed = basis_bytes(n, k, blocks)
        require(
            needed,
            limit,
            f"{k} eigenvectors of {n} vertices",
            "raise memory_limit, or ask for fewer clusters.",
        )
        return blocks

    def _scaled(self, rows: FloatArray) -> FloatArray:
        """Rows of length 1, or of mean length 1; rounded, so that rows that are equal in truth are equal."""
        rows = np.pad(rows, ((0, 0), (0, self._fitted_columns - rows.shape[1])))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not self._fitted_normalize:
            lengths = np.full_like(lengths, 1 / np.sqrt(self._gram.n))
        return np.asarray(np.round(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0), DIGITS))

    def estimate_cost(self, X: Any) -> Cost:
        """Time and memory that ``fit`` would take, from the speed of one pass over these incidences; nothing is fitted.

        Long, thin hypergraphs need more passes than are usual, and take longer.

        Returns
        -------
        Cost
            With ``seconds``, ``bytes``, ``gram`` (the expansion) and ``rows`` (the vertices); printed, a sentence.
        """
        model = clone(self)  # a fitted model keeps what it learned
        model._check_parameters()
        hypergraph = model._read(X)
        gram = ExpansionGram(hypergraph, model.expansion, n_jobs=model.n_jobs)
        n, k = gram.n, max(min(model._n_columns(), gram.n) - 1, 1)
        blocks = model._basis_blocks(n, k)
        held = 2 * data_bytes(hypergraph.members)
        start = time.perf_counter()
        with single_threaded_blas():
            gram.matmat(np.ones((n, block_columns(k, n))))
        once = time.perf_counter() - start
        labels = SECONDS_AT_LEAST + n * model.n_init * model.n_clusters * SECONDS_PER_DISTANCE
        if solves_directly(n, k):
            return Cost(gram.name, n, n**3 * SECONDS_PER_CUBE + labels, held + direct_bytes(n))
        seconds = USUAL_PASSES * (once + n * block_columns(k, n) * SECONDS_PER_ENTRY) + labels
        return Cost(gram.name, n, seconds, held + basis_bytes(n, k, blocks))

    def predict(self, X: Any) -> IntArray:
        """The cluster of new vertices, from the training edges they join; −1 for one that joins none.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_edges)
            How often each new vertex is in each training edge. Edges keep the sizes they had.
        """
        check_is_fitted(self)
        if isinstance(X, Hypergraph):
            raise DataError("predict takes rows of the incidence matrix, one a new vertex: pass hypergraph.incidence.")
        X = self._validated(X, reset=False)
        cross = self._gram.cross(X)
        with single_threaded_blas():
            seen = cross.matmat(np.ones((self._gram.n, 1)))[:, 0] > 0
            rule = self._assignment.rule
            if isinstance(rule, KernelRule):
                labels = rule.labels_of(cross)
            else:
                labels = rule.labels(self._scaled(self._extension.embed(cross)))
        return np.where(seen, labels, NO_CLUSTER)

    def clusters(self) -> list[list[Any]]:
        """The names of the vertices of every cluster, in the order of the labels."""
        check_is_fitted(self)
        return [self.vertex_names_[self.labels_ == label].tolist() for label in range(self.labels_.max() + 1)]

    # Checks

    def _check_parameters(self) -> None:
        check_count("n_clusters", self.n_clusters)
        check_count("n_init", self.n_init, most=MOST_STARTS)
        check_count("max_iter", self.max_iter)
        if self.n_components is not None:
            check_count("n_components", self.n_components)
        check_choice("assign_labels", self.assign_labels, tuple(ASSIGNERS))
        check_tolerance(self.eigen_tol)
        if isinstance(self.order, str):
            raise ParameterError(f"order must be a number from 2 to infinity, got {self.order!r}.")
        check_order(self.order)
        check_jobs(self.n_jobs)
        find_expansion(self.expansion)
        check_flag("row_normalize", self.row_normalize)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """An incidence matrix, checked."""
        X = read_array(self, X, reset=reset, accept_sparse="csr", dtype=np.float64)
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
            self.__dict__.pop("feature_names_in_", None)
            hypergraph = as_hypergraph(X)
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
            whole = self.order_ == 2 and len(sizes) >= self._n_columns() >= self.n_clusters
            said = "nothing tells which parts belong together"
            if whole:
                said = "they are grouped whole, so that nothing is cut"
            warn_user(
                f"the hypergraph falls into {len(sizes)} connected parts ({shown} of {n} vertices): {said}. To cluster "
                "the largest part alone, fit hypergraph.largest_component(); an order above 2 splits large parts "
                "before it spends a cluster on small ones.",
                DisconnectedWarning,
            )
        found = len(np.unique(self.labels_[self.labels_ >= 0]))
        if found < self.n_clusters:
            warn_user(
                f"{found} clusters returned, {self.n_clusters} asked for: the embedding has no more groups for "
                f"assign_labels={self.assign_labels!r}.",
                FewerClustersWarning,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _check_degrees(gram: ExpansionGram, names: Any) -> None:
    """Refuse degrees that rounding beside the largest would swallow."""
    degrees = gram.degrees()
    faint = np.flatnonzero(degrees <= FAINT * degrees.max())
    if len(faint):
        raise DataError(
            f"{len(faint)} of {gram.n} vertices, such as {names.item(faint[0])!r}, have a degree of at most "
            f"{degrees[faint].max() / max(degrees.max(), np.finfo(float).tiny):.1e} of the largest: nothing can be "
            "told apart by such edge weights; leave the lightest edges out, or compress the weights (such as by their "
            "logarithm)."
        )


def _keeping_edges(hypergraph: Hypergraph, kept: np.ndarray) -> Hypergraph:
    """On some vertices, with every edge in its place: columns of new vertices must still match."""
    return Hypergraph(hypergraph.members[:, np.flatnonzero(kept)], hypergraph.weights)


def _probe(parts: IntArray, k: int, random: np.random.RandomState) -> FloatArray | None:
    """A start for the solver: indicators of the connected parts, which are eigenvectors at order 2, then noise."""
    n = len(parts)
    if k < 1 or solves_directly(n, k):
        return None
    start = random.standard_normal((n, block_columns(k, n)))
    for part in range(min(int(parts.max()) + 1, k)):
        start[:, part] = parts == part
    return start


def _distortion(expansion: Any, hypergraph: Hypergraph) -> float:
    if not callable(expansion) and expansion not in SPLITTINGS:
        return 1.0
    return max((distortion(expansion, int(s)) for s in np.unique(hypergraph.edge_sizes)), default=1.0)
