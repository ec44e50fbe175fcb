"""The contraction of a modelling to a similarity matrix: triples exactly, the dot product at every order."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from biclique._typing import FloatArray
from biclique.exceptions import ParameterError
from biclique.gram import parse_memory_limit, require, single_threaded_blas
from biclique.hypergraph.modellings import GeneralizedDot, Modelling, RandomState, make_modelling, modelling_values
from biclique.hypergraph.triples import GROUPS, TRIPLES, sum_triples
from biclique.hypergraph.tuples import check_points


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
    random_state : int, optional
        For ``gamma="auto"`` alone.

    Notes
    -----
    Distances within triples come from the lengths of their sides. For three points on a line they are zero up to about
    1e-8 of the longest side, not 1e-16.

    >>> modelling_gram([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "dot")
    array([[ 0., 63., 63.],
           [63.,  0., 63.],
           [63., 63.,  0.]])
    """
    X = check_points(X)
    chosen = make_modelling(modelling, X, order, random_state=random_state, **options)
    n = len(X)
    if not chosen.symmetric:
        raise ParameterError(
            f"modelling={chosen.name!r} depends on the order of its points: its contraction is biclique_gram, O(n²)."
        )
    require(
        8 * (GROUPS + 4) * n * n,
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
    """(m−2)! Σ_{a+b≤m−2} (−1)^{a+b} X^{∘(a+1)} diag(e_{m−2−a−b}) (X^{∘(b+1)})ᵀ off the diagonal.

    e_r(l) are the elementary symmetric polynomials of column l; without points i and j they are
    Σ_{a,b} (−x_il)^a (−x_jl)^b e_{r−a−b}(l). With repeats allowed it is X diag((Σ_k x_k)^{m−2}) Xᵀ, diagonal and all.
    """
    rest = order - 2
    with single_threaded_blas():
        if repeats:
            gram = (X * X.sum(axis=0) ** rest) @ X.T
            return np.asarray((gram + gram.T) / 2)
        elementary = np.zeros((rest + 1, X.shape[1]))
        elementary[0] = 1
        for x in X:
            elementary[1:] += x * elementary[:-1]
        powers = [X]
        for _ in range(rest):
            powers.append(powers[-1] * -X)  # (−1)^a X^{∘(a+1)}
        gram = np.zeros((len(X), len(X)))
        for a in range(rest + 1):
            right = sum(powers[b] * elementary[rest - a - b] for b in range(rest - a + 1))
            gram += powers[a] @ np.asarray(right).T
    gram = (gram + gram.T) * (factorial(rest) / 2)
    np.fill_diagonal(gram, 0)
    return gram
