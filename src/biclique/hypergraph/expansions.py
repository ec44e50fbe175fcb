"""A hypergraph as a graph on its vertices: expansions as operators, which never form the n × n matrix.

With H the multiplicities (vertices by edges), c one coefficient an edge, and sizes |e| that count repeated vertices,

    A = H C Hᵀ                      every pair of places in an edge, a place with itself included (star), or
    A = H C Hᵀ − diag(H c)          every pair of two different places (the others).

| expansion | c(e) | row sums of A |
| --- | --- | --- |
| star | w/|e| | Σ_e w μ |
| clique | w | Σ_e w μ (|e| − 1) |
| normalized_clique | w/(|e| − 1) | Σ_e w μ |
| contraction | w (|e| − 2)!/Π μ! | that of the symmetric tensor with w at every arrangement of e (the paper's A_g) |
| a splitting function w(j, s) | w · max_j w(j, s)/(j(s − j)) | Σ_e c μ (|e| − 1) |

The cut of an expansion is Cut(V₁, V₂) = Σ_e c(e) |e ∩ V₁| |e ∩ V₂| = fᵀLf, L = D − A, f the indicator of V₁. For an
m-uniform hypergraph L_clique = m L_star = (m − 1) L_normalized, and A_contraction = (m − 2)! A_clique without repeats:
all four then have the same eigenvectors after normalising.

A splitting function w(j, s) is the cost of an edge of s vertices with j of them on one side, w(j, s) = w(s − j, s). A
graph on the edge's vertices with one weight p for every pair cuts it at p · j(s − j), and

    p = max_j w(j, s)/(j(s − j))

is the least p that never charges less than w. The most it charges too much, max_j p · j(s − j)/w(j, s), is the
distortion; it is 1 exactly for multiples of j(s − j).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.special import gammaln

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError, DegreeError, ParameterError
from biclique.gram.operator import Cross, CrossGram, GramOperator
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.multiway.objectives import check_two_parts, literal_sum
from biclique.runtime.arguments import check_choice
from biclique.runtime.memory import require_memory
from biclique.runtime.threads import panel_product

# Splitting functions


SplittingFunction = Callable[[int, int], float]
"""w(j, s) for 0 < j < s."""


def all_or_nothing(j: int, s: int) -> float:  # noqa: ARG001
    """w = 1: every cut edge costs the same."""
    return 1.0


def smaller_side(j: int, s: int) -> float:
    """w = min(j, s − j): the vertices to move until the edge is whole."""
    return float(min(j, s - j))


def product_of_sides(j: int, s: int) -> float:
    """w = j(s − j)/s: the star's, and the paper's Eq. 8."""
    return j * (s - j) / s


SPLITTINGS: dict[str, SplittingFunction] = {
    "all_or_nothing": all_or_nothing,
    "smaller_side": smaller_side,
    "product_of_sides": product_of_sides,
}
"""Splitting functions by name."""


def find_splitting(splitting: str | SplittingFunction) -> SplittingFunction:
    """A splitting function by its name, or a user's own."""
    if callable(splitting):
        return splitting
    if not isinstance(splitting, str) or splitting not in SPLITTINGS:
        raise ParameterError(
            f"splitting must be one of {', '.join(map(repr, SPLITTINGS))}, or a function w(j, s) of the vertices on "
            f"one side and of the edge's size, got {splitting!r}."
        )
    return SPLITTINGS[splitting]


def splitting_costs(splitting: str | SplittingFunction, size: int) -> FloatArray:
    """w(1, s), …, w(s − 1, s), checked: finite, not negative, the same from both sides."""
    function = find_splitting(splitting)
    if not isinstance(size, (int, np.integer)) or size < 1:
        raise ParameterError(f"the size of an edge must be a whole number from 1, got {size!r}.")
    try:
        costs = np.array([float(function(j, size)) for j in range(1, size)])
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"a splitting function w(j, s) must return a number for every 0 < j < s: {error}."
        ) from error
    if not np.isfinite(costs).all() or (costs < 0).any():
        j = 1 + int(np.flatnonzero(~np.isfinite(costs) | (costs < 0))[0])
        raise ParameterError(
            f"a splitting function must be finite and not negative, got w({j}, {size}) = {costs[j - 1]}."
        )
    if not np.allclose(costs, costs[::-1], rtol=1e-9):
        j = 1 + int(np.argmax(np.abs(costs - costs[::-1])))
        raise ParameterError(
            f"a splitting function must be the same from both sides, got w({j}, {size}) = {costs[j - 1]:g} and "
            f"w({size - j}, {size}) = {costs[size - j - 1]:g}."
        )
    return costs


def _pairs(size: int) -> FloatArray:
    """j(s − j) for j = 1, …, s − 1."""
    j = np.arange(1, size)
    return np.asarray(j * (size - j), dtype=float)


def pair_weight(splitting: str | SplittingFunction, size: int) -> float:
    """p = max_j w(j, s)/(j(s − j)): the weight of every pair of an edge of this size; 0 below two vertices."""
    return float((splitting_costs(splitting, size) / _pairs(size)).max()) if size >= 2 else 0.0


def distortion(splitting: str | SplittingFunction, size: int) -> float:
    """max_j p · j(s − j)/w(j, s): the most by which the pairs charge too much; infinite if w is 0 and p is not."""
    if size < 2:
        return 1.0
    costs, charged = splitting_costs(splitting, size), pair_weight(splitting, size) * _pairs(size)
    if not charged.any():
        return 1.0
    with np.errstate(divide="ignore"):
        most = float((charged / costs).max())
    return most if most > 1 + 1e-12 else 1.0  # what is left of rounding is none


# Expansions


PANEL = 8192
"""Rows of one piece of work. Fixed, so that sums never depend on the number of threads."""

LARGEST_CONTRACTED = 100
"""Edges beyond this size have factorials that leave the range of floating-point numbers."""


@dataclass(frozen=True)
class Expansion:
    """c(e) of a hypergraph, and whether a place is paired with itself."""

    name: str
    coefficients: Callable[[Hypergraph], FloatArray]
    own_place: bool = False


def _contraction(hypergraph: Hypergraph) -> FloatArray:
    sizes = hypergraph.edge_sizes
    if sizes.max(initial=0) > LARGEST_CONTRACTED:
        raise ParameterError(
            f"expansion='contraction' multiplies by (|e| − 2)!, too large for an edge of {sizes.max():g} vertices (at "
            f"most {LARGEST_CONTRACTED}): use 'clique', which is the same up to scale for edges of one size."
        )
    arrangements = gammaln(np.maximum(sizes - 1, 1))
    if hypergraph.has_repeats:
        members = hypergraph.members
        logs = sparse.csr_array((gammaln(members.data + 1), members.indices, members.indptr), shape=members.shape)
        arrangements = arrangements - np.asarray(logs.sum(axis=1))
    return np.where(sizes >= 2, hypergraph.weights * np.exp(arrangements), 0.0)


def _divided(weights: FloatArray, sizes: FloatArray) -> FloatArray:
    """w/s, and 0 for edges that have no pairs."""
    return np.divide(weights, sizes, out=np.zeros_like(sizes), where=sizes > 0)


EXPANSIONS: dict[str, Expansion] = {
    "star": Expansion("star", lambda h: _divided(h.weights, h.edge_sizes), own_place=True),
    "clique": Expansion("clique", lambda h: h.weights),
    "normalized_clique": Expansion("normalized_clique", lambda h: _divided(h.weights, h.edge_sizes - 1)),
    "contraction": Expansion("contraction", _contraction),
}
"""The expansions by name; validation, the command line and the tests read this table."""


AnyExpansion = str | Expansion | SplittingFunction


def find_expansion(expansion: AnyExpansion) -> Expansion:
    """An expansion by name, a splitting function turned into one, or one as it is."""
    if isinstance(expansion, Expansion):
        return expansion
    if callable(expansion) or (isinstance(expansion, str) and expansion in SPLITTINGS):
        splitting = find_splitting(expansion)

        def coefficients(hypergraph: Hypergraph) -> FloatArray:
            sizes, place = np.unique(hypergraph.edge_sizes, return_inverse=True)
            return np.asarray(hypergraph.weights * np.array([pair_weight(splitting, int(s)) for s in sizes])[place])

        return Expansion(getattr(splitting, "__name__", "splitting"), coefficients)
    if not isinstance(expansion, str) or expansion not in EXPANSIONS:
        raise ParameterError(
            f"expansion must be one of {', '.join(map(repr, [*EXPANSIONS, *SPLITTINGS]))}, or a splitting function "
            f"w(j, s) of the vertices on one side and of the edge's size, got {expansion!r}."
        )
    return EXPANSIONS[expansion]


class ExpansionGram(GramOperator):
    """A of an expansion, stored as H and c: a product costs two passes over the incidences."""

    dtype = np.dtype(np.float64)
    nonnegative = False  # nothing is known of the signs of edge weights

    def __init__(self, hypergraph: Hypergraph, expansion: AnyExpansion = "star", *, n_jobs: int | None = None) -> None:
        found = find_expansion(expansion)
        if not found.own_place and not hypergraph.has_whole_counts:
            raise DataError(
                f"expansion={found.name!r} counts pairs of places in an edge, so multiplicities must be whole numbers: "
                "use expansion='star', or round the incidence matrix."
            )
        self.name, self.own_place = found.name, found.own_place
        self.n, self.n_jobs, self.hypergraph = hypergraph.n_vertices, n_jobs, hypergraph
        self.coefficients = np.asarray(found.coefficients(hypergraph), dtype=float)  # c
        # What a place's pair with itself adds to the diagonal of H C Hᵀ, taken off again.
        self._off = np.zeros(self.n) if found.own_place else -(self.coefficients @ hypergraph.members)
        with np.errstate(over="ignore", invalid="ignore"):
            self._degrees = np.asarray((self.coefficients * hypergraph.edge_sizes) @ hypergraph.members + self._off)
            finite = np.isfinite(self._degrees).all() and np.isfinite(np.abs(self._degrees).sum())
        if not finite:
            raise DataError(
                f"edge weights of up to {np.abs(hypergraph.weights).max():.3g} overflow when they are summed: divide "
                "the weights by the largest."
            )

    def matmat(self, V: FloatArray) -> FloatArray:
        out = panel_product(self.hypergraph.incidence, self.to_edges(V), n_jobs=self.n_jobs, panel=PANEL)
        return out if self.own_place else out + self._off[:, None] * V

    def to_edges(self, V: FloatArray) -> FloatArray:
        """C Hᵀ V, shape (n_edges, b)."""
        return self.coefficients[:, None] * panel_product(self.hypergraph.members, V, n_jobs=self.n_jobs, panel=PANEL)

    def diagonal(self) -> FloatArray:
        members = self.hypergraph.members
        squares = sparse.csr_array((members.data**2, members.indices, members.indptr), shape=members.shape)
        return np.asarray(self.coefficients @ squares + self._off)

    def degrees(self) -> FloatArray:
        """Row sums of A, shape (n,)."""
        return self._degrees

    def cross(self, Y: Rows) -> CrossGram:
        """New vertices against the training vertices: κ(y, x) = Σ_e c(e) μ_y(e) μ_x(e), over the edges y joins."""
        new = sparse.csr_array(Y, dtype=np.float64)

        def matmat(V: FloatArray) -> FloatArray:
            return panel_product(new, self.to_edges(V), n_jobs=self.n_jobs, panel=PANEL)

        def diagonal() -> FloatArray:
            own = new.multiply(new) if self.own_place else new.multiply(new) - new
            return np.asarray(own @ self.coefficients)

        return Cross(matmat, diagonal)

    def parts(self) -> IntArray:
        """The connected component of every vertex."""
        return self.hypergraph.components()

    def restricted(self, members: IntArray) -> "ExpansionGram":
        """A of some vertices; edges keep their place and their coefficient, however many of their vertices are left."""
        same = Expansion(self.name, lambda _: self.coefficients, self.own_place)
        return ExpansionGram(self.hypergraph.keeping_edges(members), same, n_jobs=self.n_jobs)

    def matrix(self) -> sparse.csr_array:
        """A as a sparse matrix, for edges that are small; refused if it would not fit the free memory."""
        members = self.hypergraph.members
        sizes = np.diff(members.indptr).astype(float)
        require_memory(
            2 * 16 * min(float(sizes @ sizes), float(self.n) ** 2),
            f"the {self.name} matrix of edges of up to {int(sizes.max(initial=0))} vertices",
            "the operator needs no matrix: use matmat.",
        )
        A = sparse.csr_array(self.hypergraph.incidence @ sparse.diags_array(self.coefficients) @ members)
        A = A + sparse.diags_array(self._off)
        A = sparse.csr_array((A + A.T) / 2)  # equal up to rounding already
        if not self.own_place and not self.hypergraph.has_repeats:
            A = A - sparse.diags_array(A.diagonal())  # what cancels to rounding is zero
        A.eliminate_zeros()
        return A

    def graph(self) -> sparse.csr_array | None:
        A = self.matrix()
        return A if A.data.min(initial=0.0) >= 0 else None


LAPLACIANS = {"unnormalized": 0.0, "symmetric": -0.5, "random_walk": -1.0}
"""Kinds, and the power of the degrees that A is multiplied with from the left."""


def laplacian(
    hypergraph: Hypergraph, expansion: AnyExpansion = "star", *, kind: str = "symmetric", n_jobs: int | None = None
) -> LinearOperator:
    """L = D − A ("unnormalized"), I − D^(−1/2) A D^(−1/2) ("symmetric") or I − D⁻¹ A ("random_walk").

    D has the row sums of A. A SciPy linear operator, which never forms the matrix. The symmetric one of the star is
    Zhou, Huang and Schölkopf's. A vertex without degree has a row and a column of zeros.
    """
    check_choice("kind", kind, LAPLACIANS)
    gram = ExpansionGram(hypergraph, expansion, n_jobs=n_jobs)
    degrees = gram.degrees()
    if (degrees < 0).any() and kind != "unnormalized":
        raise DataError(f"{int((degrees < 0).sum())} vertices have a negative degree: use kind='unnormalized'.")
    present, power = degrees > 0, LAPLACIANS[kind]
    left = np.power(degrees, power, out=np.zeros(gram.n), where=present) if power else np.ones(gram.n)
    right = left if kind == "symmetric" else np.ones(gram.n)
    middle = present.astype(float) if power else degrees

    def times_gram(V: FloatArray) -> FloatArray:
        return gram.matmat(V.reshape(gram.n, -1)).reshape(V.shape)

    shape = (gram.n, gram.n)
    A = LinearOperator(shape, times_gram, rmatvec=times_gram, matmat=times_gram, rmatmat=times_gram, dtype=np.float64)
    D, before, after = (aslinearoperator(sparse.diags_array(entries)) for entries in (middle, left, right))
    return D - before @ A @ after


# Cuts of a partition, for every expansion, in one pass over the incidences


def _parts(hypergraph: Hypergraph, labels: Any, expansion: AnyExpansion) -> tuple[FloatArray, FloatArray]:
    """Cut(V_j, V∖V_j) and vol(V_j) of every part, in the order of their names."""
    codes, k = part_codes(hypergraph, labels)
    gram = ExpansionGram(hypergraph, expansion)
    inside = sparse.csr_array((np.ones(gram.n), (np.arange(gram.n), codes)), shape=(gram.n, k))
    counts = sparse.coo_array(hypergraph.members @ inside)  # |e ∩ V_j|, one entry where e and V_j meet
    rest = hypergraph.edge_sizes[counts.row] - counts.data
    cuts = np.bincount(counts.col, gram.coefficients[counts.row] * counts.data * rest, minlength=k)
    return np.asarray(cuts), np.bincount(codes, gram.degrees(), minlength=k).astype(float)


def _check_hypergraph(hypergraph: object) -> None:
    if not isinstance(hypergraph, Hypergraph):
        raise DataError(f"a Hypergraph is needed, got a {type(hypergraph).__name__}: use Hypergraph.from_incidence.")


def part_codes(hypergraph: Hypergraph, labels: Any) -> tuple[IntArray, int]:
    """The number of every vertex's part, in the order of their names, and how many parts there are."""
    _check_hypergraph(hypergraph)
    try:
        names, codes = np.unique(np.asarray(labels), return_inverse=True)
    except TypeError as error:
        raise DataError(f"labels must be of one kind, numbers or text: {error}.") from error
    if codes.shape != (hypergraph.n_vertices,):
        raise DataError(
            f"labels must have one entry for each vertex, {hypergraph.n_vertices}, got shape {codes.shape}."
        )
    return codes, len(names)


def cut(hypergraph: Hypergraph, labels: Any, expansion: AnyExpansion = "star") -> float:
    """Cut = Σ_e c(e) Σ_{i<j} |e ∩ V_i| |e ∩ V_j|: for two parts the paper's Eq. 8."""
    return float(_parts(hypergraph, labels, expansion)[0].sum() / 2)


def normalized_cut(hypergraph: Hypergraph, labels: Any, expansion: AnyExpansion = "star") -> float:
    """NCut(V₁, V₂) = Cut(V₁, V₂) (1/vol V₁ + 1/vol V₂) of two parts."""
    check_two_parts(labels)
    return k_way_normalized_cut(hypergraph, labels, expansion)


def k_way_normalized_cut(hypergraph: Hypergraph, labels: Any, expansion: AnyExpansion = "star") -> float:
    """kNCut = Σ_j Cut(V_j, V∖V_j)/vol(V_j) of k parts (the paper's Eq. 9)."""
    return float(_ratios(hypergraph, labels, expansion)[0].sum())


def literal_k_way_normalized_cut(hypergraph: Hypergraph, labels: Any, expansion: AnyExpansion = "star") -> float:
    """Σ_j Cut(V_j, V∖V_j) (1/vol(V_j) + 1/vol(V∖V_j)), the paper's Eq. 9 as printed.

    The trace form below that equation has no volume of the rest, and neither has ``k_way_normalized_cut``. For two
    parts this is twice that number, for more parts another objective.
    """
    return literal_sum(*_ratios(hypergraph, labels, expansion))


def _ratios(hypergraph: Hypergraph, labels: Any, expansion: AnyExpansion) -> tuple[FloatArray, FloatArray]:
    """Cut(V_j, V∖V_j)/vol(V_j) and vol(V_j) of every part."""
    cuts, volumes = _parts(hypergraph, labels, expansion)
    if (volumes <= 0).any():
        raise DegreeError(
            f"{int((volumes <= 0).sum())} of {len(volumes)} parts have no positive volume: leave out vertices that are "
            "in no edge (hypergraph.isolated())."
        )
    return cuts / volumes, volumes


def literal_incidence(hypergraph: Hypergraph) -> Any:
    """h(v, e) = √μ(v, e), μ how often v is in e: the paper's index matrix H as printed, shape (n_vertices, n_edges).

    A sparse matrix. With it fᵀ(D_v − H W Hᵀ/m)f is not Eq. 8's cut if a vertex is in an edge more than once. With
    H = μ, ``hypergraph.incidence``, it is, and the rest of this package uses that.
    """
    _check_hypergraph(hypergraph)
    return np.sqrt(hypergraph.incidence)
