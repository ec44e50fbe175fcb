"""The contraction of a modelling to a similarity matrix: triples exactly, the dot product at every order.

Triples i < j < k are visited by their middle point j, a rectangle of (i, k) each, in pieces that fit the cache: every
triple once, in O(n³) time, for n²/2 numbers a thread and no tensor.
"""

from collections.abc import Callable
from functools import reduce
from math import factorial
from operator import iadd
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist, squareform

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import ParameterError
from biclique.gram.dense import DenseGram
from biclique.hypergraph.points.modellings import (
    AffineDistance,
    AffineEigenvalue,
    GeneralizedDot,
    MaxKernel,
    Modelling,
    RandomState,
    VertexDistance,
    check_points,
    check_weights,
    gamma_number,
    make_modelling,
    modelling_values,
)
from biclique.kernels.named import precise_kernel
from biclique.runtime.arguments import check_jobs
from biclique.runtime.memory import require_memory
from biclique.runtime.threads import Pulse, run_groups, single_threaded_blas

# All triples


GROUPS = 8
"""Groups of middle points, each with a sum of its own; never a function of the number of threads."""

PIECE = 6144
"""Triples at once: the arrays of a formula stay in the second cache."""

TINY = 1e-150
"""Added to denominators that can be zero together with their numerators; distances are scaled to at most 1."""

FLAT = 1e-8
"""Triangles with (2A)² below this share of abc(a + b + c) lose digits by their sides; their points are looked at."""

Weigh = Callable[[int, slice, slice], FloatArray]
"""(j, rows i, columns k) → the weights of triples i < j < k, shape (rows, columns)."""


def sum_triples(n: int, weigh: Weigh, n_jobs: int | None) -> FloatArray:
    """A_ij = Σ_{k≠i,j} w_ijk, zero diagonal; shape (n, n)."""

    def add_up(group: int, pulse: Pulse) -> FloatArray:
        total = np.zeros((n, n))
        for j in range(1 + group, n - 1, GROUPS):
            k = slice(j + 1, n)
            step = max(PIECE // (n - 1 - j), 1)
            for top in range(0, j, step):
                i = slice(top, min(top + step, j))
                weights = weigh(j, i, k)
                total[i, j] += weights.sum(axis=1)
                total[j, k] += weights.sum(axis=0)
                total[i, k] += weights
            pulse()
        return total

    upper = reduce(iadd, run_groups(add_up, GROUPS, n_jobs=n_jobs, total=max(n - 2, 1)))
    return np.asarray(upper + upper.T)


def _max_triples(model: MaxKernel, X: FloatArray) -> Weigh:
    with np.errstate(over="ignore", invalid="ignore"):  # which holds for this thread alone
        K = DenseGram.from_kernel(precise_kernel(model.kernel, X), X, n_jobs=1).K
    check_weights(K, "modelling='max'")
    return lambda j, i, k: np.maximum(np.maximum(K[i, k], K[i, j, None]), K[j, k])


def _rate(gamma: float | str, scale: float) -> float:
    """−γ times the unit of the scaled exponent, which is a few at most, kept finite."""
    return max(-gamma_number(gamma) * scale, -1e300)


class _Triangles:
    """The sides of all triangles of points, and their areas to the last digits that the points have.

    ``sides`` are |x_i − x_j| from differences in units of ``unit``, a power of two, so that none is longer than 1.
    """

    def __init__(self, X: FloatArray) -> None:
        D = np.asarray(cdist(X, X))
        self.unit = float(2.0 ** np.ceil(np.log2(D.max() or 1.0)))
        self.columns = np.ascontiguousarray(X.T) / self.unit  # (d, n)
        self.sides = D / self.unit

    def sixteen_squared_areas(self, j: int, i: slice, k: slice) -> FloatArray:
        """16A² = (a + b + c)(a + b − c)(c − (a − b))(c + (a − b)), Heron's; nearly flat ones from the points."""
        a, b, c = self.sides[i, j, None], self.sides[j, k], self.sides[i, k]
        both, apart = a + b, a - b
        around = both + c
        squares = around * (both - c) * (c - apart) * (c + apart)
        flat = squares < around * c * (a * (4 * FLAT)) * b
        if flat.any():
            row, column = np.nonzero(flat)
            squares[row, column] = self._from_points(row + i.start, j, column + k.start)
        return np.asarray(np.maximum(squares, 0, out=squares))

    def _from_points(self, i: IntArray, j: int, k: IntArray) -> FloatArray:
        """16A² = 4|p|²|q − (⟨p, q⟩/|p|²)p|², p = x_i − x_j and q = x_k − x_j.

        q = x_k − x_i if this side is the shortest: the error is about eps |p||q|, so that no height is wrong by more
        than eps times a side beside it.
        """
        shortest = self.sides[i, k] < np.minimum(self.sides[i, j], self.sides[j, k])
        x, y, z = self.columns[:, i], self.columns[:, j, None], self.columns[:, k]
        p = x - y  # (d, N)
        q = z - np.where(shortest, x, y)
        length = np.einsum("dn,dn->n", p, p)
        share = sum(along * beside for along, beside in zip(p, q, strict=True)) / (length + TINY)
        height = sum((beside - share * along) ** 2 for along, beside in zip(p, q, strict=True))
        return np.asarray((2 * np.sqrt(length) * np.sqrt(height)) ** 2)


def _vertex_triples(model: VertexDistance, X: FloatArray) -> Weigh:
    """Heights 2A/side; if a side has no length, the span of its ends is a point, and the sum is the longest side."""
    triangles = _Triangles(X)
    D = triangles.sides
    inverse = np.divide(1.0, D, out=np.zeros_like(D), where=D > 0)
    coincide = bool(np.count_nonzero(D) < len(X) * (len(X) - 1))
    rate = _rate(model.gamma, triangles.unit**model.power)

    def weigh(j: int, i: slice, k: slice) -> FloatArray:
        a, b, c = D[i, j, None], D[j, k], D[i, k]
        # No height is longer than a side beside it: 2A is at most the product of any two sides.
        doubled = np.sqrt(triangles.sixteen_squared_areas(j, i, k)) / 2
        doubled = np.minimum(np.minimum(doubled, a * b), np.minimum(a, b) * c)
        of_a, of_b, of_c = inverse[i, j, None], inverse[j, k], inverse[i, k]
        if model.squared:
            total = (doubled * of_c) ** 2 + (doubled * of_a) ** 2 + (doubled * of_b) ** 2
        else:
            total = doubled * (of_a + of_b + of_c)
        if coincide:
            total = np.where((a == 0) | (b == 0) | (c == 0), np.maximum(np.maximum(a, b), c) ** model.power, total)
        return np.asarray(np.exp(rate * total))

    return weigh


def _affine_distance_triples(model: AffineDistance, X: FloatArray) -> Weigh:
    """The mean distance of three points to their best line, (2/3)√(μ₂ z²), from the squares of their sides.

    T = μ₁ + μ₂ = (a² + b² + c²)/3 and μ₁μ₂ = 4A²/3 for the two eigenvalues of the centred points; Δ = μ₁ − μ₂ with
    Δ² = (2/9)((a² − b²)² + (b² − c²)² + (c² − a²)²); z² = (Δ + max(a², b², c²) − T)/(3Δ) is the largest squared entry
    of the unit vector that belongs to μ₂, whose entries add up to 0, so that it is from 1/2 to 2/3. To the mean point
    (dimension 0) the squared distances are (2T − a²)/3, and so on.
    """
    triangles = _Triangles(X)
    S = triangles.sides**2
    rate = _rate(model.gamma, triangles.unit)

    def to_line(j: int, i: slice, k: slice) -> FloatArray:
        a, b, c = S[i, j, None], S[j, k], S[i, k]
        trace = (a + b + c) * (1 / 3)
        gap = np.sqrt((2 / 9) * ((a - b) ** 2 + (a - c) ** 2 + (b - c) ** 2))
        widest = np.maximum(np.maximum(a, b), c) - trace
        widest = np.maximum(np.minimum(widest, gap), gap / 2)  # z² is from 1/2 to 2/3
        areas = triangles.sixteen_squared_areas(j, i, k)
        squares = areas * (widest + gap + 2 * TINY) / (trace + gap + TINY) / (gap + TINY)  # 18 μ₂z²
        return np.asarray(np.exp((rate * (2 / 3) / np.sqrt(18)) * np.sqrt(squares)))

    def to_point(j: int, i: slice, k: slice) -> FloatArray:
        a, b, c = S[i, j, None], S[j, k], S[i, k]
        doubled = (2 / 3) * (a + b + c)
        lengths = [np.sqrt(np.maximum(doubled - side, 0)) for side in (a, b, c)]
        return np.asarray(np.exp(rate / (3 * np.sqrt(3)) * (lengths[0] + lengths[1] + lengths[2])))

    return to_point if model.dimension == 0 else to_line


def _eigenvalue_triples(model: AffineEigenvalue, X: FloatArray) -> Weigh:
    """exp(−γλ_min) of the 3 × 3 matrices of inner products."""
    with single_threaded_blas():
        G = X @ X.T
    largest = float(G.diagonal().max()) or 1.0
    G /= largest
    rate = _rate(model.gamma, largest)
    norms = G.diagonal().copy()

    def weigh(j: int, i: slice, k: slice) -> FloatArray:
        smallest = smallest_eigenvalues((norms[i, None], norms[j], norms[k]), (G[i, j, None], G[i, k], G[j, k]))
        return np.asarray(np.exp(rate * np.maximum(smallest, 0)))

    return weigh


def smallest_eigenvalues(
    diagonal: tuple[FloatArray, FloatArray, FloatArray], beside: tuple[FloatArray, FloatArray, FloatArray]
) -> FloatArray:
    """λ_min = q + 2p cos(φ + 2π/3) of symmetric 3 × 3 matrices (a₁₁, a₂₂, a₃₃), (a₁₂, a₁₃, a₂₃), to eps · λ_max.

    q = tr/3, B = (A − qI)/p with |B|² = 6, r = det(B)/2 = cos 3φ. The angle comes from both its cosine and its sine,
    3φ = atan2(|V|/√6, r) with V = B² − 2I − rB: the cosine alone loses half the digits where two eigenvalues are
    close, which is the usual case here.
    """
    q = (diagonal[0] + diagonal[2] + diagonal[1]) * (1 / 3)
    b11, b22, b33 = (entry - q for entry in diagonal)
    b12, b13, b23 = beside
    p = np.sqrt((2 * (b12 * b12 + b13 * b13 + b23 * b23) + b11 * b11 + b22 * b22 + b33 * b33) * (1 / 6))
    inverse = 1 / (p + TINY)
    b11, b22, b33, b12, b13, b23 = (entry * inverse for entry in (b11, b22, b33, b12, b13, b23))
    s12, s13, s23 = b12 * b12, b13 * b13, b23 * b23
    r = (b11 * (b22 * b33 - s23) - b22 * s13 - b33 * s12) / 2 + b12 * b13 * b23
    v11 = b11 * (b11 - r) + s12 + s13 - 2
    v22 = b22 * (b22 - r) + s12 + s23 - 2
    v33 = b33 * (b33 - r) + s13 + s23 - 2
    v12 = b12 * (b33 + r) - b13 * b23  # up to its sign, like the next two
    v13 = b13 * (b22 + r) - b12 * b23
    v23 = b23 * (b11 + r) - b12 * b13
    squares = (v11 * v11 + v22 * v22 + v33 * v33) / 2 + v12 * v12 + v13 * v13 + v23 * v23  # |V|²/2
    return np.asarray(q + 2 * p * np.cos(np.arctan2(np.sqrt(squares * (1 / 3)), r) * (1 / 3) + 2 * np.pi / 3))


TRIPLES: dict[type[Modelling], Callable[[Any, FloatArray], Weigh]] = {
    MaxKernel: _max_triples,
    AffineEigenvalue: _eigenvalue_triples,
    AffineDistance: _affine_distance_triples,
    VertexDistance: _vertex_triples,
}
"""How to weigh all triples of a modelling."""


# Any modelling


LARGEST_FACTORIAL = 170
"""170! is the last one in the range of floats."""


def modelling_gram(
    X: FloatArray,
    modelling: str | Modelling,
    *,
    order: int = 3,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> FloatArray:
    """A_ij = Σ_{k_3, …, k_m} w(x_i, x_j, x_{k_3}, …, x_{k_m}) over ordered choices, all m indices distinct; (n, n).

    The contraction of the tensor of weights to two modes, with a zero diagonal; (m − 2)! times the clique expansion
    of the hypergraph of all tuples. Exact at orders 2 and 3, and for the dot product at every order. It is a
    similarity matrix: hand it to a cut as ``affinity="precomputed"``.

    Parameters
    ----------
    X : array of shape (n, d)
    modelling : str or Modelling
        A name of ``POINT_MODELLINGS``, whose parameters are given as ``options``, or an object.
    order : int
        m. Above 3 only the dot product has a closed form; the others are sampled with ``sample_hyperedges``.
    n_jobs : int, optional
        Threads; the result is the same bit by bit for every number.
    random_state : int or RandomState, optional
        For ``gamma="auto"`` alone.

    Notes
    -----
    Triples of ``affine_eigenvalue`` come from inner products: λ_min is right up to about 1e-16 of the largest
    eigenvalue, so that data far from the origin lose digits that ``modelling_values`` keeps.

    >>> from biclique.hypergraph import modelling_gram
    >>> modelling_gram([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "dot")
    array([[ 0., 63., 63.],
           [63.,  0., 63.],
           [63., 63.,  0.]])
    """
    X = check_points(X)
    check_jobs(n_jobs)
    chosen = make_modelling(modelling, X, order, random_state=random_state, **options)
    n, d = X.shape
    if not chosen.symmetric:
        raise ParameterError(
            f"modelling={chosen.name!r} depends on the order of its points: its contraction is biclique_gram, O(n²)."
        )
    is_dot = isinstance(chosen, GeneralizedDot)
    numbers = 3 * n * n + 4 * max(order - 1, 2) * n * d if is_dot else (GROUPS + 4) * n * n + 2 * n * d
    require_memory(8 * numbers, f"modelling_gram of {n} rows", "use fewer rows, or sample_hyperedges.")
    if isinstance(chosen, GeneralizedDot):
        return _dot_gram(X, order, chosen.repeats)
    if order == 2:
        pairs = np.column_stack(np.triu_indices(n, 1))
        return np.asarray(squareform(modelling_values(X, pairs, chosen, n_jobs=n_jobs)))
    if order > 3 or type(chosen) not in TRIPLES:
        raise ParameterError(
            f"order={order} of modelling={chosen.name!r} has no exact contraction (order 3 of the named ones has): "
            "sample its tuples with sample_hyperedges."
        )
    return sum_triples(n, TRIPLES[type(chosen)](chosen, X), n_jobs)


def _dot_gram(X: FloatArray, order: int, repeats: bool) -> FloatArray:
    """(m−2)! Σ_l x_il x_jl e_{m−2}(column l without points i and j) off the diagonal, e_r elementary symmetric.

    With repeats allowed it is X diag((Σ_k x_k)^{m−2}) Xᵀ, diagonal and all.
    """
    rest = order - 2
    if rest > LARGEST_FACTORIAL and not repeats:
        raise ParameterError(
            f"order must be at most {LARGEST_FACTORIAL + 2} for modelling='dot', got {order}: (order − 2)! is beyond "
            "the range of numbers. Pass repeats=True, or sample_hyperedges."
        )
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        gram = (X * X.sum(axis=0) ** rest) @ X.T if repeats else _left_out(X, rest) * factorial(rest)
        gram = (gram + gram.T) / 2
    if not repeats:
        np.fill_diagonal(gram, 0)
    return check_weights(np.asarray(gram), "modelling='dot'")


def _left_out(X: FloatArray, rest: int) -> FloatArray:
    """Σ_l x_il x_jl e_r(column l without i and j), i < j, by sums and products alone; O(n² d m) time, O(n d m) memory.

    e_r = Σ_a e_a(points before j but i) e_{r−a}(points after j); the first grows with j for all i at once.
    """
    n, d = X.shape
    after = np.zeros((n, rest + 1, d))
    after[n - 1, 0] = 1
    for j in range(n - 1, 0, -1):
        after[j - 1] = after[j]
        after[j - 1, 1:] += X[j] * after[j, :-1]
    before = np.zeros((rest + 1, n, d))  # before[a, i]: e_a of the points before j without i
    whole = np.zeros((rest + 1, d))
    whole[0] = 1
    gram = np.zeros((n, n))
    for j in range(n):
        for a in range(rest + 1):
            gram[:j, j] += (before[a, :j] * X[:j]) @ (X[j] * after[j, rest - a])
        for a in range(rest, 0, -1):
            before[a, :j] += X[j] * before[a - 1, :j]
        before[:, j] = whole
        whole[1:] += X[j] * whole[:-1]
    return gram + gram.T
