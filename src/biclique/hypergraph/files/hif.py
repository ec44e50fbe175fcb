"""The Hypergraph Interchange Format (HIF), version 0.1.0: JSON with incidences, nodes and edges."""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray
from biclique.exceptions import DataError, TableError
from biclique.hypergraph.files.lines import decimal, numbered
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.runtime.arguments import is_finite

SECTIONS = ("network-type", "metadata", "incidences", "nodes", "edges")
NETWORK_TYPES = ("undirected", "directed", "asc")
KINDS = {dict: "an object", list: "an array", str: "text", bool: "a boolean", type(None): "null"}


def parse_hif(text: str, name: str) -> Hypergraph:
    """``{"incidences": [{"edge": …, "node": …}, …], "nodes": [{"node": …}, …], "edges": [{"edge": …}, …]}``.

    The weight of an edge is ``weight``, or without it ``attrs.weight`` (XGI's) or ``attr.weight``, the weight of an
    incidence how often the vertex is in the edge; a pair that comes twice adds up. Nodes come in the order of
    ``nodes``, then as they are first seen, and edges likewise; nodes without incidences are isolated vertices, edges
    without are empty. The ids 1 and "1" differ. A key that comes twice in an object is an error.

    In a directed file heads and tails are both members, and a node that is both counts twice; directions are not kept.
    In a simplicial complex (``asc``) the faces listed are the edges. The weights of nodes, attributes, metadata, and
    further keys inside an item, which files in circulation have, are not kept.
    """
    document = _load(text, name)
    if not isinstance(document, dict):
        raise TableError(f"{name}: a HIF file must be an object with the key 'incidences', got {_kind(document)}.")
    for key in document:
        if key not in SECTIONS:
            raise TableError(f"{name}: unknown key {key[:80]!r}; allowed are {', '.join(SECTIONS)}.")
    if "incidences" not in document:
        raise TableError(f"{name}: the key 'incidences' is missing; an array without items will do.")
    if document.get("network-type", "undirected") not in NETWORK_TYPES:
        raise TableError(f"{name}: network-type must be one of {', '.join(NETWORK_TYPES)}.")
    if not isinstance(document.get("metadata", {}), dict):
        raise TableError(f"{name}: metadata must be an object, got {_kind(document['metadata'])}.")
    incidences, nodes, edges = (_Items(document, section, name) for section in ("incidences", "nodes", "edges"))
    for at, item in enumerate(incidences.items):
        if item.get("direction", "head") not in ("head", "tail"):
            incidences.refuse(at, "direction", "'head' or 'tail'", item["direction"])

    columns, vertex_names = numbered(chain(nodes.ids("node"), incidences.ids("node")))
    rows, edge_names = numbered(chain(edges.ids("edge"), incidences.ids("edge")))
    nodes.weights()  # checked, and not kept
    counts = incidences.weights()
    for at in np.flatnonzero(counts < 0).tolist():
        incidences.refuse(at, "weight", "0 or more", incidences.items[at]["weight"])
    listed, pairs = rows[: len(edges.items)], (rows[len(edges.items) :], columns[len(nodes.items) :])
    members = sparse.coo_array((counts, pairs), shape=(len(edge_names), len(vertex_names)))
    given = edges.weights()
    weights = np.ones(len(edge_names))
    weights[listed] = given
    for at in np.flatnonzero(weights[listed] != given).tolist():
        raise edges.error(at, "", "comes again with another weight; list every edge once")
    return Hypergraph(members, weights, vertex_names, edge_names)


def _load(text: str, name: str) -> Any:
    def refuse(literal: str) -> NoReturn:  # NaN or Infinity, which Python's reader takes and JSON does not have
        raise TableError(f"{name}: not JSON: {literal} is not a JSON number; leave it out or write null.")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise TableError(f"{name}: an object has the key {repeated[:80]!r} twice: keep one of them.")
        return found

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise TableError(f"{name}: not JSON: {error.msg} in line {error.lineno}, column {error.colno}.") from error
    except TableError:
        raise
    except RecursionError as error:
        raise TableError(f"{name}: objects or arrays are nested too deeply to be read.") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise TableError(f"{name}: a number cannot be read ({error}).") from error


def _kind(value: Any) -> str:
    return KINDS.get(type(value), "a number")


class _Items:
    """The items of a section, which are objects; errors say ``file: section[at].key``."""

    def __init__(self, document: dict[str, Any], section: str, name: str) -> None:
        self.section, self.name = section, name
        self.items: list[dict[str, Any]] = document.get(section, [])
        if not isinstance(self.items, list):
            raise TableError(f"{name}: {section} must be an array, got {_kind(self.items)}.")
        for at, item in enumerate(self.items):
            if not isinstance(item, dict):
                self.refuse(at, "", "an object", item)
            for key in ("attrs", "attr"):  # "attr" in older files
                if not isinstance(item.get(key, {}), dict):
                    self.refuse(at, key, "an object", item[key])

    def error(self, at: int, key: str, reason: str) -> TableError:
        return TableError(f"{self.name}: {self.section}[{at}]{key and '.'}{key} {reason}.")

    def refuse(self, at: int, key: str, allowed: str, value: Any) -> NoReturn:
        shown = _kind(value) if isinstance(value, (dict, list)) else json.dumps(value)
        raise self.error(at, key, f"must be {allowed}, got {shown[:80]}")

    def ids(self, key: str) -> list[str | int]:
        """The ids of the items: text or integers."""
        ids = [item.get(key) for item in self.items]
        for at, value in enumerate(ids):
            if isinstance(value, float) and value.is_integer():
                ids[at] = int(value)  # 1.0 is an integer in JSON
            elif key not in self.items[at]:
                raise self.error(at, key, "is missing")
            elif type(value) not in (str, int):
                self.refuse(at, key, "text or a whole number", value)
        return ids  # type: ignore[return-value]

    def weights(self) -> FloatArray:
        """The weights of the items, 1 if there is none: finite numbers."""
        found = [_weight_of(item, attributes=self.section == "edges") for item in self.items]
        for at, (value, key) in enumerate(found):
            if type(value) not in (int, float) or not is_finite(value):
                shown = "a number too large" if type(value) in (int, float) else _kind(value)
                raise self.error(at, key, f"must be a finite number, got {shown}")
        return np.array([value for value, _ in found], dtype=float)


def _weight_of(item: dict[str, Any], *, attributes: bool) -> tuple[Any, str]:
    """The weight of an item, and the key that it stood at."""
    if "weight" not in item and attributes:
        for place in ("attrs", "attr"):
            weight = item.get(place, {}).get("weight")
            if weight is not None:
                return weight, f"{place}.weight"
    return item.get("weight", 1), "weight"


def format_hif(hypergraph: Hypergraph) -> str:
    """The text that ``parse_hif`` reads, one item a line; names must be text or integers.

    Weights are written for all edges, or all incidences, if one of them differs from 1; those of edges also as
    ``attrs.weight``, which XGI reads.
    """
    members = hypergraph.members
    vertices = _quoted(hypergraph.vertex_names, "vertex")
    edges = _quoted(hypergraph.edge_names, "edge")
    edge_items = [f'{{"edge": {edge}' for edge in edges]
    if (hypergraph.weights != 1).any():
        texts = map(decimal, hypergraph.weights.tolist())
        edge_items = [
            f'{item}, "weight": {weight}, "attrs": {{"weight": {weight}}}'
            for item, weight in zip(edge_items, texts, strict=True)
        ]
    rows = np.repeat(np.arange(len(edges)), np.diff(members.indptr)).tolist()
    pairs = zip(rows, members.indices.tolist(), strict=True)
    incidences = [f'{{"edge": {edges[row]}, "node": {vertices[column]}' for row, column in pairs]
    if (members.data != 1).any():
        texts = map(decimal, members.data.tolist())
        incidences = [f'{item}, "weight": {count}' for item, count in zip(incidences, texts, strict=True)]
    sections = {"nodes": [f'{{"node": {vertex}' for vertex in vertices], "edges": edge_items, "incidences": incidences}
    parts = ['{\n"network-type": "undirected"']
    for section, items in sections.items():
        body = "\n" + "},\n".join(items) + "}\n" if items else ""
        parts.append(f',\n"{section}": [{body}]')
    return "".join([*parts, "\n}\n"])


def _quoted(names: Any, what: str) -> list[str]:
    """Names as JSON."""
    quoted = []
    for name in names.tolist():
        number = isinstance(name, (int, np.integer)) and not isinstance(name, bool)
        if not (number or isinstance(name, str)):
            raise DataError(
                f"a HIF file needs {what} names that are text or integers, got {name!r} ({type(name).__name__}): give "
                f"others with hypergraph.renamed({what}_names=…)."
            )
        try:
            quoted.append(json.dumps(int(name) if number else str(name)))
        except ValueError as error:
            raise DataError(f"an integer {what} name has too many digits to be written.") from error
    return quoted
