"""Memberships and numbers, in files and in other packages."""

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from biclique.hypergraph.hypergraph import Hypergraph

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,999}")


def from_memberships(
    edges: Iterable[Hashable],
    vertices: Iterable[Hashable],
    counts: Iterable[float],
    weights: Mapping[Any, float],
    order: Iterable[Hashable],
) -> Hypergraph:
    """From the edge, the vertex and the count of every incidence; a pair that comes twice adds up.

    Edges come in the order of ``weights``, vertices in ``order``.
    """
    edge_place = {edge: place for place, edge in enumerate(weights)}
    vertex_place = {vertex: place for place, vertex in enumerate(order)}
    rows = np.fromiter(map(edge_place.__getitem__, edges), dtype=np.int64)
    columns = np.fromiter(map(vertex_place.__getitem__, vertices), dtype=np.int64)
    values = np.fromiter(counts, dtype=float)
    members = sparse.coo_array((values, (rows, columns)), shape=(len(edge_place), len(vertex_place)))
    return Hypergraph(members, list(weights.values()), list(vertex_place), list(edge_place))


def memberships_of(hypergraph: Hypergraph) -> Iterator[tuple[Any, Any, float]]:
    """Edge, vertex and count of every incidence."""
    found = hypergraph.members.tocoo()
    edges = hypergraph.edge_names[found.row].tolist()
    vertices = hypergraph.vertex_names[found.col].tolist()
    return zip(edges, vertices, found.data.tolist(), strict=True)


def shortest(value: float) -> float | int:
    """The same number, as an integer if it is written shorter so."""
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def parse_number(text: str) -> float | None:
    """A finite number, or None."""
    value = float(text) if NUMBER.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None
