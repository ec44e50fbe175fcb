"""The contraction of a modelling to a similarity matrix: triples exactly, the dot product at every order.

Triples i < j < k are gone through by their middle point j, a rectangle of (i, k) each, in pieces that fit the cache:
every triple once, in contiguous memory, in O(n³) time, for n²/2 numbers a thread and no tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import factorial
from operator import iadd
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist, squareform

from biclique._typing import FloatArray
from biclique.exceptions import ParameterError
from biclique.gram import DenseGram
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
from biclique.runtime import Pulse, check_jobs, parse_memory_limit, require, run_groups, single_threaded_blas

# All triples


GROUPS = 8
"""Groups of middle points, each with a sum of its own; never a function of the number of threads."""

PIECE = 6144
"""Triples at once: about sixteen buffers of them stay in the second cache."""

TINY = 1e-150
"""Added to denominators that can be zero together with their numerators; distances are scaled to at most 1."""

FLAT = 1e-8
"""Triangles with (2A)² below this share of abc(a + b + c) lose digits by their sides; their points are looked at."""

Weigh = Callable[[int, slice, slice, FloatArray], FloatArray]
"""(j, rows i, columns k, buffers) → the weights of triples i < j < k, shape (rows, columns), in one of the buffers."""


def sum_triples(n: int, weigh: Weigh, n_jobs: int | None) -> FloatArray:
    """A_ij = Σ_{k≠i,j} w_ijk, zero diagonal; shape (n, n)."""

    def add_up(group: int, pulse: Pulse) -> FloatArray:
        total = np.zeros((n, n))
        buffers = np.empty((16, max(PIECE, n)))
        for j in range(1 + group, n - 1, GROUPS):
            width, k = n - 1 - j, slice(j + 1, n)
            step = max(PIECE // width, 1)
            for top in range(0, j, step):
                i = slice(top, min(top + step, j))
                count = i.stop - i.start
                weights = weigh(j, i, k, buffers[:, : count * width].reshape(16, count, width))
                total[i, j] += weights.sum(axis=1)
                total[j, k] += weights.sum(axis=0)
                total[i, k] += weights
            pulse()
        return total

    upper = reduce(iadd, run_groups(add_up, GROUPS, n_jobs=n_jobs, total=max(n - 2, 1)))
    return np.asarray(upper + upper.T)


def _max_triples(model: MaxKernel, X: FloatArray) -> Weigh:
    kernel = model.kernel.precise(X)
    with np.errstate(over="ignore", invalid="ignore"):  # which holds for this thread alone
        K = DenseGram.from_kernel(kernel, X, memory_limit=16 * len(X) ** 2, n_jobs=1).K
    check_weights(K, "modelling='max'")

    def weigh(j: int, i: slice, k: slice, buffers: FloatArray) -> FloatArray:
        out = buffers[0]
        np.maximum(K[i, k], K[i, j, None], out=out)
        return np.asarray(np.maximum(out, K[j, k], out=out))

    return weigh


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
        self.columns = np.ascontiguousarray(X.T) / self.unit
        self.sides = D / self.unit

    def sixteen_squared_areas(self, j: int, i: slice, k: slice, out: FloatArray, work: FloatArray) -> FloatArray:
        """16 A² = (a + b + c)(a + b − c)(c − (a − b))(c + (a − b)), Heron's; nearly flat ones from the points."""
        a, b, c = self.sides[i, j, None], self.sides[j, k], self.sides[i, k]
        around, bound, other = work[:3]
        np.add(a, b, out=around)
        np.subtract(around, c, out=out)
        around += c
        out *= around
        np.subtract(a, b, out=bound)
        np.subtract(c, bound, out=other)
        bound += c
        out *= other
        out *= bound
        np.multiply(around, c, out=bound)
        bound *= a * (4 * FLAT)
        bound *= b
        flat = np.less(out, bound)
        n_flat = int(np.count_nonzero(flat))
        if 8 * n_flat > flat.size:  # many: all of them, without gathering
            between = self.columns[:, None, k]
            exact = _four_areas(self.columns[:, i, None], self.columns[:, j, None, None], between, c < np.minimum(a, b))
            np.copyto(out, np.square(exact, out=exact), where=flat)
        elif n_flat:
            row, column = np.nonzero(flat)
            first, last = row + i.start, column + k.start
            a, b, c = self.sides[first, j], self.sides[j, last], self.sides[first, last]
            points = self.columns[:, first], self.columns[:, j, None], self.columns[:, last]
            out[row, column] = _four_areas(*points, c < np.minimum(a, b)) ** 2
        return np.asarray(np.maximum(out, 0, out=out))


def _four_areas(x: FloatArray, y: FloatArray, z: FloatArray, base: Any) -> FloatArray:
    """4A = 2|p||q − (⟨p, q⟩/|p|²)p| of triangles x, y, z, coordinate by coordinate, each (d, …).

    p = x − y and q = z − y, or q = z − x where ``base`` says that this side is the shortest: the error is about
    eps |p||q|, so that no height is wrong by more than eps times a side beside it.
    """
    p = x - y
    squares = np.einsum("d...,d...->...", p, p)
    inner = np.zeros(base.shape)
    for axis in range(len(p)):
        inner += (z[axis] - np.where(base, x[axis], y[axis])) * p[axis]
    inner /= squares + TINY
    rest = np.zeros(base.shape)
    for axis in range(len(p)):
        beside = z[axis] - np.where(base, x[axis], y[axis])
        beside -= inner * p[axis]
        rest += np.square(beside, out=beside)
    np.sqrt(rest, out=rest)
    rest *= 2 * np.sqrt(squares)
    return rest


def _vertex_triples(model: VertexDistance, X: FloatArray) -> Weigh:
    """Heights 2A/side; if a side has no length, the span of its ends is a point, and the sum is the longest side."""
    triangles = _Triangles(X)
    D = triangles.sides
    inverse = np.divide(1.0, D, out=np.zeros_like(D), where=D > 0)
    coincide = bool(np.count_nonzero(D) < len(X) * (len(X) - 1))
    power = model.power
    rate = _rate(model.gamma, triangles.unit**power)

    def weigh(j: int, i: slice, k: slice, buffers: FloatArray) -> FloatArray:
        c, total, out, work = buffers[0], buffers[1], buffers[2], buffers[3:]
        a, b = D[i, j, None], D[j, k]
        np.copyto(c, D[i, k])
        doubled = np.sqrt(triangles.sixteen_squared_areas(j, i, k, out, work), out=out)
        doubled *= 0.5
        # No height is longer than a side beside it: 2A is at most the product of any two sides.
        np.minimum(doubled, np.multiply(a, b, out=work[0]), out=doubled)
        np.minimum(a, b, out=work[0])
        work[0] *= c
        np.minimum(doubled, work[0], out=doubled)
        if model.squared:
            np.multiply(doubled, inverse[i, k], out=total)
            np.square(total, out=total)
            for side in (inverse[i, j, None], inverse[j, k]):
                np.multiply(doubled, side, out=work[0])
                total += np.square(work[0], out=work[0])
        else:
            np.add(inverse[i, j, None], inverse[j, k], out=total)
            total += inverse[i, k]
            total *= doubled
        if coincide:
            np.maximum(c, np.maximum(a, b), out=work[0])
            np.copyto(total, work[0] ** power, where=(c == 0) | (a == 0) | (b == 0))
        total *= rate
        return np.asarray(np.exp(total, out=total))

    return weigh


def _affine_distance_triples(model: AffineDistance, X: FloatArray) -> Weigh:
    """The mean distance of three points to their best line, (2/3)√(μ₂ z²), from the squares of their sides.

    T = μ₁ + μ₂ = (a² + b² + c²)/3 and μ₁μ₂ = 4A²/3 for the two eigenvalues of the centred points; Δ = μ₁ − μ₂ with
    Δ² = (2/9)((a² − b²)² + (b² − c²)² + (c² − a²)²); z² = (Δ + max(a², b², c²) − T)/(3Δ) is the largest squared entry
    of the unit vector that belongs to μ₂, whose entries add up to 0, so that it is from 1/2 to 2/3. To the mean point
    (dimension 0) the squared distances are (2T − a²)/3, and so on.
    """
    triangles = _Triangles(X)
    D = triangles.sides
    S = D * D
    rate = _rate(model.gamma, triangles.unit)

    def weigh_line(j: int, i: slice, k: slice, buffers: FloatArray) -> FloatArray:
        c, area, trace, gap, widest, work = *buffers[:5], buffers[5:]
        triangles.sixteen_squared_areas(j, i, k, area, work)
        a, b = S[i, j, None], S[j, k]
        np.copyto(c, S[i, k])
        np.add(a, b, out=trace)
        trace += c
        trace *= 1 / 3
        np.subtract(a, b, out=gap)
        np.square(gap, out=gap)
        for side in (a, b):
            np.subtract(side, c, out=work[0])
            gap += np.square(work[0], out=work[0])
        gap *= 2 / 9
        np.sqrt(gap, out=gap)
        np.maximum(a, b, out=widest)
        np.maximum(widest, c, out=widest)
        widest -= trace
        np.minimum(widest, gap, out=widest)
        np.maximum(widest, np.multiply(gap, 0.5, out=work[0]), out=widest)  # z² is from 1/2 to 2/3
        widest += gap
        widest += 2 * TINY
        area *= widest
        trace += gap
        trace += TINY
        area /= trace
        gap += TINY
        area /= gap
        np.sqrt(area, out=area)
        area *= rate * (2 / 3) / np.sqrt(18)
        return np.asarray(np.exp(area, out=area))

    def weigh_point(j: int, i: slice, k: slice, buffers: FloatArray) -> FloatArray:
        total, doubled, work = buffers[:3]
        a, b, c = S[i, j, None], S[j, k], S[i, k]
        np.add(a, b, out=doubled)
        doubled += c
        doubled *= 2 / 3
        total[:] = 0
        for side in (a, b, c):
            np.subtract(doubled, side, out=work)
            np.maximum(work, 0, out=work)
            total += np.sqrt(work, out=work)
        total *= rate / (3 * np.sqrt(3))
        return np.asarray(np.exp(total, out=total))

    return weigh_point if model.dimension == 0 else weigh_line


def _eigenvalue_triples(model: AffineEigenvalue, X: FloatArray) -> Weigh:
    """exp(−γλ_min) of the 3 × 3 matrices of inner products."""
    with single_threaded_blas():
        G = X @ X.T
    largest = float(G.diagonal().max()) or 1.0
    G /= largest
    rate = _rate(model.gamma, largest)
    norms = G.diagonal().copy()

    def weigh(j: int, i: slice, k: slice, buffers: FloatArray) -> FloatArray:
        out = smallest_eigenvalues((norms[i, None], norms[j], norms[k]), (G[i, j, None], G[i, k], G[j, k]), buffers)
        np.maximum(out, 0, out=out)
        out *= rate
        return np.asarray(np.exp(out, out=out))

    return weigh


def smallest_eigenvalues(
    diagonal: tuple[FloatArray, FloatArray, FloatArray],
    beside: tuple[FloatArray, FloatArray, FloatArray],
    buffers: FloatArray,
) -> FloatArray:
    """λ_min = q + 2p cos(φ + 2π/3) of symmetric 3 × 3 matrices (a₁₁, a₂₂, a₃₃), (a₁₂, a₁₃, a₂₃), to eps · λ_max.

    q = tr/3, B = (A − qI)/p with |B|² = 6, r = det(B)/2 = cos 3φ. The angle comes from both its cosine and its sine,
    3φ = atan2(|V|/√6, r) with V = B² − 2I − rB: the cosine alone loses half the digits where two eigenvalues are
    close, which is the usual case here. ``buffers`` are 16 arrays of the shape of the result.
    """
    b1, b2, b3, o12, o13, o23, s12, s13, s23, mean, scale, r, work, more, out, _ = buffers
    np.add(diagonal[0], diagonal[2], out=mean)
    mean += diagonal[1]
    mean *= 1 / 3
    scale[:] = 0
    for entry, row, square in zip((o12, o13, o23), beside, (s12, s13, s23), strict=True):
        np.copyto(entry, row)
        scale += np.square(entry, out=square)
    scale *= 2
    for entry, row in zip((b1, b2, b3), diagonal, strict=True):
        np.subtract(row, mean, out=entry)
        scale += np.square(entry, out=work)
    scale *= 1 / 6
    np.sqrt(scale, out=scale)
    np.divide(1.0, np.add(scale, TINY, out=work), out=work)
    for entry in (b1, b2, b3, o12, o13, o23):
        entry *= work
    for entry, square in zip((o12, o13, o23), (s12, s13, s23), strict=True):
        np.square(entry, out=square)
    # r = det(B)/2 = (b₁b₂b₃ − b₁o₂₃² − b₂o₁₃² − b₃o₁₂²)/2 + o₁₂o₁₃o₂₃
    np.multiply(b2, b3, out=r)
    r -= s23
    r *= b1
    for entry, square in ((b2, s13), (b3, s12)):
        r -= np.multiply(entry, square, out=work)
    r *= 0.5
    np.multiply(o12, o13, out=work)
    work *= o23
    r += work
    # |V|², entry by entry
    out[:] = 0
    for entry, first, second in ((b1, s12, s13), (b2, s12, s23), (b3, s13, s23)):
        np.subtract(entry, r, out=work)
        work *= entry
        work += first
        work += second
        work -= 2
        out += np.square(work, out=work)
    out *= 0.5
    for entry, first, second, other in ((o12, o13, o23, b3), (o13, o12, o23, b2), (o23, o12, o13, b1)):
        np.add(other, r, out=work)
        work *= entry
        work -= np.multiply(first, second, out=more)
        out += np.square(work, out=work)
    out *= 1 / 3  # (½ Σ diagonal² + Σ beside²) · 2/6
    np.sqrt(out, out=out)
    np.arctan2(out, r, out=out)
    out *= 1 / 3
    out += 2 * np.pi / 3
    np.cos(out, out=out)
    out *= scale
    out *= 2
    out += mean
    return np.asarray(out)


TRIPLES: dict[type[Modelling], Callable[[Any, FloatArray], Weigh]] = {
    MaxKernel: _max_triples,
    AffineEigenvalue: _eigenvalue_triples,
    AffineDistance: _affine_distance_triples,
    VertexDistance: _vertex_triples,
}
"""How to weigh all triples of a modelling."""


# Any modelling


LARGEST_FACTORIAL = 170
"""170! is the last one that a number can hold."""

CANCELLATION = 10.0
"""What the contraction of dot products may lose by taking points out of sums: one digit."""


def modelling_gram(
    X: FloatArray,
    modelling: str | Modelling,
    *,
    order: int = 3,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    memory_limit: object = "auto",
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

    memory_limit : "auto", number of bytes or text like "4GB"

    Notes
    -----
    Triples of ``affine_eigenvalue`` come from inner products: λ_min is right up to about 1e-16 of the largest
    eigenvalue, so that data far from the origin lose digits that ``modelling_values`` keeps.

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
    of_dot, of_triples = 3 * n * n + 4 * max(order - 1, 2) * n * d, (GROUPS + 4) * n * n + 2 * n * d
    require(
        8 * (of_dot if isinstance(chosen, GeneralizedDot) else of_triples),
        parse_memory_limit(memory_limit),
        f"modelling_gram of {n} rows",
        "use fewer rows, or sample_hyperedges.",
    )
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
        if repeats:
            gram = (X * X.sum(axis=0) ** rest) @ X.T
            return check_weights(np.asarray((gram + gram.T) / 2), "modelling='dot'")
        gram = _removed(X, rest) if rest == 0 or _can_remove(X, rest) else _left_out(X, rest)
        gram = (gram + gram.T) * (factorial(rest) / 2)
    np.fill_diagonal(gram, 0)
    return check_weights(gram, "modelling='dot'")


def _elementary(X: FloatArray, rest: int) -> FloatArray:
    """e_0, …, e_rest of every column; shape (rest + 1, d)."""
    elementary = np.zeros((rest + 1, X.shape[1]))
    elementary[0] = 1
    for x in X:
        elementary[1:] += x * elementary[:-1]
    return elementary


def _removed(X: FloatArray, rest: int) -> FloatArray:
    """Σ_{a+b≤r} (−1)^{a+b} X^{∘(a+1)} diag(e_{r−a−b}) (X^{∘(b+1)})ᵀ, r = m − 2: points taken out of all by products.

    Without points i and j, e_r is Σ_{a,b} (−x_i)^a (−x_j)^b e_{r−a−b}.
    """
    elementary = _elementary(X, rest)
    powers = [X]
    for _ in range(rest):
        powers.append(powers[-1] * -X)  # (−1)^a X^{∘(a+1)}
    gram = np.zeros((len(X), len(X)))
    for a in range(rest + 1):
        right = powers[0] * elementary[rest - a]
        for b in range(1, rest - a + 1):
            right += powers[b] * elementary[rest - a - b]
        gram += powers[a] @ right.T
    return gram


def _can_remove(X: FloatArray, rest: int) -> bool:
    """Whether taking points out cancels few digits: its terms against those left without the two largest points."""
    sizes = np.sort(np.abs(X), axis=0)
    elementary = _elementary(sizes, rest)
    terms = np.zeros(X.shape[1])
    for a in range(rest + 1):
        for b in range(rest - a + 1):
            terms += sizes[-1] ** a * sizes[-2] ** b * elementary[rest - a - b]
    return bool((terms <= CANCELLATION * _elementary(sizes[:-2], rest)[rest]).all())


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
