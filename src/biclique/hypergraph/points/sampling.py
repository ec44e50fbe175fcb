"""Hypergraphs of sampled tuples of points, for orders at which all of them are too many: uniform or iterative."""

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, ParameterError
from biclique.gram.sparse import SparseGram
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.hypergraph.points.modellings import (
    Modelling,
    RandomState,
    check_points,
    draw_sets,
    draw_tuples,
    joined_tuples,
    make_modelling,
    modelling_values,
)
from biclique.multiway.objectives import k_way_normalized_cut
from biclique.runtime.arguments import check_choice, check_count, check_flag, check_random
from biclique.runtime.memory import require_memory
from biclique.runtime.namespace import unit_rows
from biclique.runtime.threads import single_threaded_blas
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.lloyd import by_first_appearance
from biclique.spectral.rounding import kmeans
from biclique.spectral.solver import top_eigenpairs

KMEANS_STARTS = 10
"""Starts of k-means in a round."""

EDGE_COPIES = 6
"""Numbers in memory at once for every point of every edge while a sample is drawn."""

ROUND_COPIES = 10
"""The same while a round is cut."""


@dataclass(frozen=True)
class IterativeSample:
    """The hyperedges of the best round, and the clusters found from them."""

    hypergraph: Hypergraph
    labels: IntArray  # (n,)
    n_rounds: int
    cuts: FloatArray
    """The normalised cut of every round's clusters; the lowest is the best round."""
    converged: bool
    """Whether the clusters stopped changing within ``max_rounds``."""


def sample_hyperedges(
    X: FloatArray,
    n_edges: int,
    *,
    order: int,
    modelling: str | Modelling = "biclique",
    method: str = "uniform",
    replace: bool = False,
    n_clusters: int | None = None,
    max_rounds: int = 10,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> Hypergraph:
    """(e_1, w(e_1)), …, (e_N, w(e_N)): sampled m-tuples of distinct points as a hypergraph on the n rows of X.

    With uniform tuples the clique expansion of the sample, times C(n, m) (m − 2)!/N, is ``modelling_gram`` on average.

    Parameters
    ----------
    X : array of shape (n, d)
    n_edges : int
        N. The iterative method makes n − m + 1 edges of every draw and takes as many whole draws as fit.
    order : int
        m, the number of points of an edge.
    modelling : str or Modelling
        A name of ``POINT_MODELLINGS``, whose parameters are given as ``options``, or an object. The default is the
        biclique kernel of the two halves of a tuple, κ^(m)(x_1..x_h ; x_{h+1}..x_m), for even orders, with random
        halves.
    method : {"uniform", "iterative"}
        Tuples drawn from all points alike, or within the clusters found so far (``iterative_sample``).
    replace : bool
        Whether uniform tuples may hold the same set of points twice; for the uniform method alone.
    n_clusters, max_rounds : int
        For the iterative method alone.
    n_jobs : int, optional
        Threads; the result is the same for every number.
    random_state : int or RandomState, optional
        The same gives the same edges.
    """
    check_choice("method", method, ("uniform", "iterative"))
    n_edges, order = check_count("n_edges", n_edges), check_count("order", order, least=2)
    check_flag("replace", replace)
    X, random = check_points(X), check_random(random_state)
    if method == "iterative":
        if replace:
            raise ParameterError("replace=True is for method='uniform' alone: method='iterative' draws by itself.")
        if n_clusters is None:
            raise ParameterError("method='iterative' needs n_clusters, the number of clusters to draw in, got None.")
        n_draws = n_edges // max(len(X) - order + 1, 1)
        if n_draws < 1:
            raise ParameterError(
                f"n_edges must be at least n − order + 1 = {len(X) - order + 1} for method='iterative', which joins "
                f"every draw with every other point, got {n_edges}: raise it, or use method='uniform'."
            )
        settings = {"order": order, "modelling": modelling, "max_rounds": max_rounds, "n_jobs": n_jobs, **options}
        return iterative_sample(X, n_clusters, n_draws=n_draws, random_state=random, **settings).hypergraph
    if n_clusters is not None:
        raise ParameterError(f"n_clusters={n_clusters!r} is for method='iterative' alone: leave it out.")
    chosen = make_modelling(modelling, X, order, random_state=random, **options)
    if len(X) < order:  # a modelling that allows repeats; edges hold distinct points all the same
        raise DataError(f"X has {len(X)} rows, but an edge of order {order} needs {order} distinct ones: lower order.")
    n_sets = comb(len(X), order)
    permuted = n_sets if not replace and n_edges <= n_sets < 2 * n_edges else 0
    needed = 8 * (n_edges * (EDGE_COPIES * order + 6) + permuted)
    require_memory(needed, f"a sample of {n_edges} edges of order {order}", "lower n_edges.")
    tuples = draw_tuples(len(X), order, n_edges, random) if replace else draw_sets(len(X), order, n_edges, random)
    return Hypergraph.from_edges(tuples, modelling_values(X, tuples, chosen, n_jobs=n_jobs), vertices=len(X))


def iterative_sample(
    X: FloatArray,
    n_clusters: int,
    *,
    n_draws: int,
    order: int,
    modelling: str | Modelling = "biclique",
    max_rounds: int = 10,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> IterativeSample:
    """W_uv = Σ w(S ∪ v) over draws S ∋ u of m − 1 points, cut, and S drawn again inside the clusters found.

    The iterative scheme of Ghoshdastidar and Dukkipati (JMLR 2017), close to Chen and Lerman's spectral curvature
    clustering. A round draws ``n_draws`` sets of m − 1 points, the same number in every cluster found so far (all
    points are one cluster at first; one with fewer than m − 1 points draws from all), joins each with every other
    point, and cuts the graph W + Wᵀ: k leading eigenvectors of its normalised matrix, rows of unit length, k-means. It
    ends when the clusters stay as they are. The round with the lowest normalised cut is returned: a choice without
    labels.

    Parameters
    ----------
    X : array of shape (n, d)
    n_clusters : int
    n_draws : int
        Draws a round; the hypergraph has n_draws · (n − order + 1) edges.
    order, modelling, n_jobs, random_state, **options
        As in ``sample_hyperedges``.
    max_rounds : int
    """
    X, random = check_points(X), check_random(random_state)
    n_draws, max_rounds = check_count("n_draws", n_draws), check_count("max_rounds", max_rounds)
    n, k = len(X), check_count("n_clusters", n_clusters)
    if n < k:
        raise DataError(f"X has {n} rows, fewer than n_clusters={k}: ask for at most {n} clusters.")
    chosen = make_modelling(modelling, X, order, random_state=random, **options)
    if n < order:
        raise DataError(f"X has {n} rows, but an edge of order {order} needs {order} distinct ones: lower order.")
    n_edges = n_draws * (n - order + 1)
    require_memory(
        n_draws * n + 8 * n_edges * (ROUND_COPIES * order + 6),
        f"a round of {n_edges} edges of order {order}",
        "lower n_draws (n_edges of sample_hyperedges).",
    )
    advice = "lower gamma" if hasattr(chosen, "gamma") else "shift X so that the weights are positive"

    labels: IntArray = np.zeros(n, dtype=np.intp)
    best: tuple[IntArray, IntArray, FloatArray] = (labels, labels[:, None], np.ones(n))
    best_rank = (0, np.inf)  # of no cluster: the first round is better
    cuts: list[float] = []
    converged = False
    with single_threaded_blas():
        while not converged and len(cuts) < max_rounds:
            tuples = joined_tuples(_draws_inside(labels, order - 1, n_draws, random), n)
            weights = modelling_values(X, tuples, chosen, n_jobs=n_jobs)
            gram = _linked(tuples, weights, n, n_jobs, advice)
            found = _cut(gram, k, random)
            cuts.append(k_way_normalized_cut(gram, found))
            unchanged = bool(len(cuts) > 1 and np.array_equal(by_first_appearance(labels), by_first_appearance(found)))
            converged, labels = k == 1 or unchanged, found
            rank = (-len(np.unique(found)), cuts[-1])  # fewer clusters have a lower cut for nothing
            if rank < best_rank:
                best, best_rank = (found, tuples, weights), rank
    labels, tuples, weights = best
    hypergraph = Hypergraph.from_edges(tuples, weights, vertices=n)
    return IterativeSample(hypergraph, labels, len(cuts), np.array(cuts), converged)


def _draws_inside(labels: IntArray, size: int, n_draws: int, random: np.random.RandomState) -> IntArray:
    """``n_draws`` tuples of distinct points, the same number (up to one) inside every cluster; (n_draws, size)."""
    names = np.unique(labels)
    shares = np.full(len(names), n_draws // len(names))
    shares[: n_draws % len(names)] += 1
    members = [np.flatnonzero(labels == name) for name in names]
    members = [inside if len(inside) >= size else np.arange(len(labels)) for inside in members]
    drawn = zip(members, shares.tolist(), strict=True)
    return np.concatenate([inside[draw_tuples(len(inside), size, share, random)] for inside, share in drawn])


def _linked(tuples: IntArray, weights: FloatArray, n: int, n_jobs: int | None, advice: str) -> SparseGram:
    """W + Wᵀ, W the weight of every edge at the pairs of its last point and each of the others."""
    size = tuples.shape[1] - 1
    pairs = (tuples[:, :-1].ravel(), np.repeat(tuples[:, -1], size))
    W = sparse.coo_array((np.repeat(weights, size), pairs), shape=(n, n)).tocsr()
    W = (W + W.T).tocsr()
    isolated = np.flatnonzero(np.asarray(W.sum(axis=1)).ravel() <= 0)
    if len(isolated):
        raise DataError(
            f"the sampled weights of {len(isolated)} of {n} points sum to nothing positive (first: row {isolated[0]}, "
            f"counted from 0): {advice}, or use a modelling with positive weights."
        )
    return SparseGram(W, n_jobs=n_jobs)


def _cut(gram: SparseGram, k: int, random: np.random.RandomState) -> IntArray:
    """k leading eigenvectors of the normalised matrix, rows of unit length, k-means."""
    if k == 1:
        return np.zeros(gram.n, dtype=np.intp)
    cut = NormalizedCut(gram, 2)
    pairs = top_eigenpairs(cut, min(k - 1, gram.n - 1), tol=1e-4, deflate=cut.trivial, random_state=random)
    embedding = unit_rows(np.column_stack([cut.trivial, pairs.vectors]))
    return kmeans(embedding, np.ones(gram.n), k, n_init=KMEANS_STARTS, random_state=random).labels
