"""Inhomogeneous cuts: an edge's cost depends on which of its vertices are cut off (Li and Milenkovic, 2017).

Costs of cutting off one vertex become weights of pairs, a graph that can be cut as usual. For an edge of s ≥ 3 vertices
with costs w_v the pair weights of least norm are

    p_vu = (w_v + w_u)/(s − 2) − Σ_x w_x/((s − 1)(s − 2)),

which give Σ_u p_vu = w_v back. They can be negative, so the sum over all edges is clipped at zero.

A cut with any splitting function w_e is Cut(V₁) = Σ_e w_e(e ∩ V₁). The paper's κ_inh(e; V) = w_e(e ∩ V) and its
contraction K_inh(i, j; V), the sum of κ_inh over the pairs of places that hold i and j, are here as objectives of a
partition.

Affine subspaces are found by their protocol: an edge is p = d + 1 points drawn together, which span an affine subspace
of dimension d, and one more point. Cutting a vertex off costs exp(−dist²/σ), dist its distance to the affine span of
the others; only the pairs of a drawn point and the other one are linked.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, DegreeError, ParameterError
from biclique.hypergraph.build import number_array
from biclique.hypergraph.expansions import (
    Expansion,
    ExpansionGram,
    SplittingFunction,
    find_splitting,
    part_codes,
    splitting_costs,
)
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.hypergraph.points.modellings import span_distances
from biclique.kernels.kernel import Kernel, pair_values

MOST_SIZE = 1000
"""Pairs of one edge are formed, so edges stay below this."""

BATCH_PAIRS = 4_000_000
"""Pairs of vertices of the edges that a function of costs sees at once."""


def pair_weights(costs: FloatArray) -> FloatArray:
    """p_vu = (w_v + w_u)/(s − 2) − Σ_x w_x/((s − 1)(s − 2)), zero for v = u; shape (…, s) to (…, s, s).

    For two vertices, which have one pair, the mean of the two costs.
    """
    costs = np.asarray(costs, dtype=float)
    if costs.ndim == 0:
        raise DataError("costs must have one entry for every vertex of an edge, got a single number.")
    s = costs.shape[-1]
    if s < 2:
        return np.zeros((*costs.shape, s))
    both = costs[..., :, None] + costs[..., None, :]
    mean = costs.sum(axis=-1)[..., None, None] / (s - 1)
    weights = both / 2 if s == 2 else (both - mean) / (s - 2)
    return np.asarray(np.where(np.eye(s, dtype=bool), 0.0, weights))


def cost_graph(hypergraph: Hypergraph, costs: Any) -> Any:
    """The graph of one-vertex costs: pair weights of every edge, times w(e), summed, clipped at zero; sparse, (n, n).

    Parameters
    ----------
    hypergraph : Hypergraph
        Without repeated vertices.
    costs : array of shape (n_incidences,) or (n_edges, m), or a function
        The cost of cutting each vertex off its edge, in the order of ``hypergraph.members`` (edge by edge, vertices
        ascending); (n_edges, m) for a uniform hypergraph. A function is called with the vertex numbers of edges of
        one size, (N, s), and returns their costs, (N, s).
    """
    members = hypergraph.members
    if hypergraph.has_repeats or not hypergraph.has_whole_counts:
        raise DataError("one-vertex costs need edges without repeated vertices: each must be in an edge once.")
    sizes = np.diff(members.indptr)
    if sizes.max(initial=0) > MOST_SIZE:
        raise DataError(
            f"an edge has {sizes.max()} vertices: one-vertex costs form all its pairs, at most {MOST_SIZE}."
        )
    if callable(costs):
        found = _called_costs(hypergraph, costs)
    else:
        found = number_array(np.ravel(np.asarray(costs, dtype=object)), "costs", 1)
    if len(found) != hypergraph.n_incidences:
        raise DataError(
            f"costs must have one entry for every vertex of every edge, {hypergraph.n_incidences}, got shape "
            f"{np.shape(costs)}."
        )
    if not np.isfinite(found).all():
        raise DataError("costs must be finite.")
    C = sparse.csr_array((found, members.indices, members.indptr), shape=members.shape)
    spare = np.maximum(sizes - 2, 1)
    share = np.where(sizes == 2, 0.5, 1 / spare)  # of w_v + w_u in the weight of the pair
    mean = np.where(sizes == 2, 0.0, C.sum(axis=1) / (np.maximum(sizes - 1, 1) * spare))
    of_one = sparse.diags_array(share) @ C - sparse.diags_array(mean / 2) @ members
    half = of_one.T @ sparse.diags_array(hypergraph.weights) @ members
    total = sparse.csr_array(half + half.T).maximum(0)
    total = total - sparse.diags_array(total.diagonal())
    total.eliminate_zeros()
    return total


def _called_costs(hypergraph: Hypergraph, costs: Callable[[IntArray], FloatArray]) -> FloatArray:
    """The costs by a function, which sees edges of one size, as many at a time as memory likes."""
    members = hypergraph.members
    sizes = np.diff(members.indptr)
    found = np.zeros(members.nnz)
    for s in np.unique(sizes[sizes >= 2]).tolist():
        edges = np.flatnonzero(sizes == s)
        for batch in np.array_split(edges, 1 + len(edges) * s * s // BATCH_PAIRS):
            places = members.indptr[batch][:, None] + np.arange(s)
            values = np.asarray(costs(members.indices[places]), dtype=float)
            if values.shape != places.shape:
                raise DataError(f"costs must have shape {places.shape} for edges of size {s}, got {values.shape}.")
            found[places] = values
    return found


def subspace_costs(X: FloatArray, gamma: float) -> Callable[[IntArray], FloatArray]:
    """d^inh: w_v = exp(−γ dist²(v, affine span of e∖v)), as a function of tuples for ``cost_graph``."""
    points = np.asarray(X, dtype=float)
    return lambda tuples: np.exp(-gamma * span_distances(points[tuples]) ** 2)


def kernel_costs(X: FloatArray, kernel: Kernel) -> Callable[[IntArray], FloatArray]:
    """The paper's own splitting: w_v = Σ_{u∈e∖v} κ(x_v, x_u), as a function of tuples for ``cost_graph``."""

    def costs(tuples: IntArray) -> FloatArray:
        out = np.zeros(tuples.shape)
        for a, b in combinations(range(tuples.shape[1]), 2):
            values = pair_values(kernel, X, tuples[:, a], tuples[:, b])
            out[:, a] += values
            out[:, b] += values
        return out

    return costs


# Objectives of a partition


@dataclass(frozen=True)
class SubsetSplitting:
    """w_e(inside) of any kind: a function of the vertices of e on one side and of all of e, as tuples of numbers."""

    function: Callable[[tuple[int, ...], tuple[int, ...]], float]


AnySplitting = str | SplittingFunction | SubsetSplitting


def inhomogeneous_kernel(hypergraph: Hypergraph, part: Any, splitting: AnySplitting) -> FloatArray:
    """κ_inh(e; V) = w_e(e ∩ V) of every edge, times its weight, shape (n_edges,); zero if V does not split e."""
    inside = _mask(hypergraph, part).tolist()
    cost = _cost_of_subsets(splitting)
    if not hypergraph.has_whole_counts:
        raise DataError("a splitting function counts vertices: multiplicities must be whole numbers.")
    costs = np.zeros(hypergraph.n_edges)
    for e, edge in enumerate(_edges_of_numbers(hypergraph)):
        own = tuple(v for v in edge if inside[v])
        if 0 < len(own) < len(edge):
            costs[e] = cost(own, edge)
    if not np.isfinite(costs).all():
        raise ParameterError("a splitting function must be finite.")
    return np.asarray(hypergraph.weights * costs)


def _cost_of_subsets(splitting: AnySplitting) -> Callable[[tuple[int, ...], tuple[int, ...]], float]:
    """w_e(inside) of a part of an edge, which is neither empty nor all of it."""
    if isinstance(splitting, SubsetSplitting):
        return splitting.function
    costs = cache(partial(splitting_costs, find_splitting(splitting)))
    return lambda inside, edge: costs(len(edge))[len(inside) - 1]


def _edges_of_numbers(hypergraph: Hypergraph) -> Iterator[tuple[Any, ...]]:
    """The vertices of every edge as numbers, repeated as often as they count."""
    return map(tuple, Hypergraph(hypergraph.members, hypergraph.weights).edges())


def _mask(hypergraph: Hypergraph, part: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """A part as a mask; 0 and 1 will do."""
    inside = np.asarray(part)
    if inside.shape != (hypergraph.n_vertices,):
        raise DataError(f"part must be a mask of {hypergraph.n_vertices} vertices, got shape {inside.shape}.")
    if inside.dtype.kind not in "biuf" or not np.isin(inside, (0, 1)).all():
        raise DataError("part must be a mask, True (or 1) for the vertices in it and False (or 0) for the others.")
    return inside.astype(bool)


def inhomogeneous_contraction(
    hypergraph: Hypergraph, part: Any, splitting: AnySplitting, *, per_pair: bool = False
) -> ExpansionGram:
    """K_inh(i, j; V) = Σ_e κ_inh(e; V) · (pairs of different places of e that hold i and j), as an operator.

    The paper sums over ordered tuples, which multiplies this by (m − 2)!. Summed over i ∈ V, j ∉ V it counts every cut
    edge |e ∩ V| |e ∖ V| times; with ``per_pair`` each edge is divided by that number, and the sum is the cut itself, as
    the paper's rewriting has it: Σ_{i∈V, j∉V} K_inh(i, j; V) = Cut(V).
    """
    costs = inhomogeneous_kernel(hypergraph, part, splitting)
    if per_pair:
        here = hypergraph.members @ _mask(hypergraph, part).astype(float)
        pairs = here * (hypergraph.edge_sizes - here)
        costs = np.divide(costs, pairs, out=np.zeros_like(costs), where=pairs > 0)
    return ExpansionGram(hypergraph, Expansion("inhomogeneous", lambda _: costs))


def inhomogeneous_cut(hypergraph: Hypergraph, labels: Any, splitting: AnySplitting) -> float:
    """Σ_j Σ_e w_e(e ∩ V_j)/2 over the parts: for two parts Cut(V₁) = Σ_e w_e(e ∩ V₁)."""
    codes, k = part_codes(hypergraph, labels)
    return float(sum(inhomogeneous_kernel(hypergraph, codes == j, splitting).sum() for j in range(k)) / 2)


def inhomogeneous_normalized_cut(hypergraph: Hypergraph, labels: Any, splitting: AnySplitting) -> float:
    """Σ_j Cut(V_j)/vol(V_j), vol the sum over V_j of what cutting each vertex off alone costs (Li and Milenkovic)."""
    codes, k = part_codes(hypergraph, labels)
    volumes = np.bincount(codes, _one_vertex_degrees(hypergraph, splitting), minlength=k)
    if (volumes <= 0).any():
        raise DegreeError("a part has no positive volume: nothing is paid for cutting off any of its vertices.")
    cuts = np.array([inhomogeneous_kernel(hypergraph, codes == j, splitting).sum() for j in range(k)])
    return float((cuts / volumes).sum())


def _one_vertex_degrees(hypergraph: Hypergraph, splitting: AnySplitting) -> FloatArray:
    """Σ_{e∋v} w_e({v}), v as often as it is in e, shape (n,)."""
    cost = _cost_of_subsets(splitting)
    degrees = np.zeros(hypergraph.n_vertices)
    for weight, edge in zip(hypergraph.weights, _edges_of_numbers(hypergraph), strict=True):
        for v, times in Counter(edge).items():
            if times < len(edge):
                degrees[v] += weight * cost((v,) * times, edge)
    return degrees


def inhomogeneous_kmeans_objective(
    hypergraph: Hypergraph,
    labels: Any,
    splitting: AnySplitting,
    weights: FloatArray | None = None,
    *,
    per_pair: bool = False,
) -> float:
    """J' = Σ_j [ Σ_{i∈j} w_i K_j(i, i) − Σ_{i,l∈j} w_i w_l K_j(i, l)/s_j ], K_j = K_inh(·, ·; V_j), s_j = Σ_{i∈j} w_i.

    The paper's weighted k-means with the inhomogeneous weights in the place of the kernel, in its matrix form.
    """
    codes, k = part_codes(hypergraph, labels)
    w = np.ones(hypergraph.n_vertices) if weights is None else np.asarray(weights, dtype=float)
    if w.shape != (hypergraph.n_vertices,) or (np.bincount(codes, w, minlength=k) <= 0).any():
        raise DataError(f"weights must be {hypergraph.n_vertices} numbers, positive in total in every cluster.")
    total = 0.0
    for j in range(k):
        contraction = inhomogeneous_contraction(hypergraph, codes == j, splitting, per_pair=per_pair)
        weighted = w * (codes == j)
        within = float(weighted @ contraction.matmat(weighted[:, None])[:, 0])
        total += float(weighted @ contraction.diagonal()) - within / float(weighted.sum())
    return total


# Affine subspaces


RANK = 1e-10
"""Directions below this share of the largest do not count."""


def draw_together(labels: IntArray, size: int, n_draws: int, random: np.random.RandomState) -> IntArray:
    """``n_draws`` sets of points of one cluster each, shape (n_draws, size).

    A cluster is drawn as often as its share of the points; one with fewer points than ``size`` draws from all.
    """
    n = len(labels)
    members = {label: np.flatnonzero(labels == label) for label in np.unique(labels).tolist()}
    draws = np.empty((n_draws, size), dtype=np.intp)
    for i, first in enumerate(random.randint(n, size=n_draws)):
        inside = members[int(labels[first])]
        draws[i] = random.choice(inside if len(inside) >= size else n, size, replace=False)
    return draws


def edge_distances(X: FloatArray, draws: IntArray) -> FloatArray:
    """dist² of every vertex of every edge to the affine span of the others, shape (n_draws, p + 1, n).

    Entry [i, j, y] for j < p is that of the j-th drawn point in the edge draws[i] ∪ {y}, entry [i, p, y] that of y
    itself. With r another drawn point, U an orthonormal basis of the directions from r to the remaining ones, b and y'
    the parts of x_j − r and y − r that are orthogonal to U,

        dist²(x_j) = |b|² − ⟨b, y'⟩²/|y'|²,   dist²(y) = |y'|² − ⟨b, y'⟩²/|b|²,

    so that all of them come from one matrix product. If y is a drawn point itself, the entries mean nothing.
    """
    n, d = X.shape
    n_draws, p = draws.shape
    out = np.empty((n_draws, p + 1, n))
    squares = np.einsum("nd,nd->n", X, X)
    for j in range(p):
        others = [(j + step) % p for step in range(1, p)]
        base = X[draws[:, others[0]]]  # r, (n_draws, d)
        basis = _directions(X[draws[:, others[1:]]] - base[:, None, :])  # (n_draws, p − 2, d)
        b = X[draws[:, j]] - base
        b = b - np.einsum("ikd,ik->id", basis, np.einsum("ikd,id->ik", basis, b))
        frame = np.concatenate([basis, b[:, None, :], base[:, None, :]], axis=1)  # (n_draws, p, d)
        product = (X @ frame.reshape(-1, d).T).T.reshape(n_draws, p, n)
        from_base = np.einsum("ikd,id->ik", frame, base)
        distance = np.maximum(squares + from_base[:, -1:] - 2 * product[:, -1], 0.0)  # |y − r|²
        along = product[:, :-1] - from_base[:, :-1, None]  # ⟨frame, y − r⟩
        beside = np.maximum(distance - (along[:, :-1] ** 2).sum(axis=1), 0.0)  # |y'|²
        length = np.einsum("id,id->i", b, b)[:, None]
        inner = along[:, -1] ** 2
        out[:, j] = length - np.divide(inner, beside, out=np.zeros_like(inner), where=beside > RANK * distance)
        if j == p - 1:
            scale = np.broadcast_to(length, inner.shape)
            out[:, p] = beside - np.divide(inner, scale, out=np.zeros_like(inner), where=scale > 0)
    return np.maximum(out, 0.0, out=out)


def _directions(vectors: FloatArray) -> FloatArray:
    """An orthonormal basis of the rows of every matrix of a stack, zero rows if they are dependent."""
    if vectors.shape[1] == 0:
        return vectors
    _, singular, right = np.linalg.svd(vectors, full_matrices=False)
    kept = singular > RANK * singular[:, :1]
    return np.asarray(np.where(kept[:, :, None], right, 0.0))


def linked_pairs(costs: FloatArray, draws: IntArray) -> FloatArray:
    """The weights of pairs (drawn, other), summed over edges, symmetric, clipped at zero; dense, (n, n).

    costs has the shape of ``edge_distances``. As in the authors' programme the pair of a drawn point v with the other
    point y of an edge of s = p + 1 vertices has w_v/(s − 2) + w_y/(s − 1) − Σ_x w_x/((s − 1)(s − 2)).
    """
    n_draws, p = draws.shape
    n = costs.shape[2]
    drawn = costs[:, :p]
    # For p = 1 there are no two drawn points, and an edge is a pair.
    spare = max(p - 1, 1)
    pairs = drawn / spare + (costs[:, p] / p - costs.sum(axis=1) / (p * spare))[:, None, :]
    pairs[np.arange(n_draws)[:, None], :, draws] = 0.0  # a drawn point is no other point
    A = np.zeros((n, n))
    np.add.at(A, draws.ravel(), pairs.reshape(n_draws * p, n))
    A = A + A.T
    np.fill_diagonal(A, 0.0)
    return np.maximum(A, 0.0, out=A)


@dataclass(frozen=True)
class AffineSubspace:
    """The affine subspace of dimension d or less that fits points best."""

    origin: FloatArray  # (n_features,)
    basis: FloatArray  # (≤ d, n_features), orthonormal rows
    residual: float
    """The points' total squared distance to it."""

    def squared_distances(self, X: FloatArray) -> FloatArray:
        """dist² of rows, shape (n,)."""
        centred = X - self.origin
        rest = centred - (centred @ self.basis.T) @ self.basis
        return np.asarray(np.einsum("nd,nd->n", rest, rest))


def fit_subspaces(X: FloatArray, labels: IntArray, dimension: int) -> list[AffineSubspace]:
    """The subspace of every cluster, in the order of the labels.

    Total least squares: the mean, and the leading right singular vectors of the centred rows.
    """
    found = []
    for label in np.unique(labels):
        rows = X[labels == label]
        origin = rows.mean(axis=0)
        _, singular, right = np.linalg.svd(rows - origin, full_matrices=False)
        found.append(AffineSubspace(origin, right[:dimension], float((singular[dimension:] ** 2).sum())))
    return found
