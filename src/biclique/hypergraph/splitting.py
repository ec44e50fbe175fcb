"""Cardinality-based splitting functions: what it costs to cut an edge, by how many of its vertices lie on one side.

A splitting function w(j, s) is the cost of an edge of s vertices with j of them on one side, w(j, s) = w(s − j, s). A
graph on the edge's vertices with one weight p for every pair cuts it at p · j(s − j), and

    p = max_j w(j, s)/(j(s − j))

is the least p that never charges less than w. The most it charges too much, max_j p · j(s − j)/w(j, s), is the
distortion; it is 1 exactly for multiples of j(s − j).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from biclique._typing import FloatArray
from biclique.exceptions import ParameterError

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
    if size < 2:
        return 0.0
    return float((splitting_costs(splitting, size) / _pairs(size)).max())


def distortion(splitting: str | SplittingFunction, size: int) -> float:
    """max_j p · j(s − j)/w(j, s): the most by which the pairs charge too much; infinite where w is 0 and p is not."""
    if size < 2:
        return 1.0
    costs, pairs = splitting_costs(splitting, size), _pairs(size)
    charged = (costs / pairs).max() * pairs
    if not charged.any():
        return 1.0
    with np.errstate(divide="ignore"):
        most = float((charged / costs).max())
    return most if most > 1 + 1e-12 else 1.0  # what is left of rounding is none
