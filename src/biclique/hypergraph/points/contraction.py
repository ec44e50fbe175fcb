"""The contraction of a modelling to a similarity matrix: triples exactly, the dot product at every order."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from biclique._typing import FloatArray
from biclique.exceptions import ParameterError
from biclique.hypergraph.points.modellings import (
    GeneralizedDot,
    Modelling,
    RandomState,
    make_modelling,
    modelling_values,
)
from biclique.hypergraph.points.triples import GROUPS, TRIPLES, sum_triples
from biclique.hypergraph.points.tuples import check_points, check_weights
from biclique.runtime.arguments import check_jobs
from biclique.runtime.memory import parse_memory_limit, require
from biclique.runtime.threads import single_threaded_blas

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
    dot = isinstance(chosen, GeneralizedDot)
    require(
        8 * (3 * n * n + 4 * max(order - 1, 2) * n * d) if dot else 8 * ((GROUPS + 4) * n * n + 2 * n * d),
        parse_memory_limit(memory_limit),
        f"modelling_gram of {n} rows",
        "use fewer rows, or sample_hyperedges.",
    )
    if isinstance(chosen, GeneralizedDot):
        return _dot_gram(X, order, chosen.repeats)
    if order == 2:
        first, second = np.triu_indices(n, 1)
        gram = np.zeros((n, n))
        gram[first, second] = modelling_values(X, np.column_stack([first, second]), chosen, n_jobs=n_jobs)
        return gram + gram.T
    if order > 3 or type(chosen) not in TRIPLES:
        raise ParameterError(
            f"order={order} of modelling={chosen.name!r} has no exact contraction (order 3 of the named ones has): "
            "sample its tuples with sample_hyperedges."
        )
    return sum_triples(n, TRIPLES[type(chosen)](chosen, X, n_jobs), n_jobs)


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
