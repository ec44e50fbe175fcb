"""Memberships and numbers, in files and in other packages."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from biclique.hypergraph.hypergraph import Hypergraph

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,999}")


def from_memberships(
    memberships: Iterable[tuple[Hashable, Hashable, float]],
    weights: Mapping[Any, float],
    vertices: Sequence[Hashable],
) -> Hypergraph:
    """From (edge, vertex, count): edges in the order of their weights, a pair that comes twice adds up."""
    edge_place = {edge: place for place, edge in enumerate(weights)}
    vertex_place = {vertex: place for place, vertex in enumerate(vertices)}
    entries = [(count, edge_place[edge], vertex_place[vertex]) for edge, vertex, count in memberships]
    counts, rows, columns = np.array(entries, dtype=float).reshape(-1, 3).T
    shape = (len(weights), len(vertices))
    members = sparse.coo_array((counts, (rows.astype(int), columns.astype(int))), shape=shape)
    return Hypergraph(members, list(weights.values()), vertices, list(weights))


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
