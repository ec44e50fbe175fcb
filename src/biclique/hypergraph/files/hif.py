"""The Hypergraph Interchange Format (HIF), version 0.1.0: JSON with incidences, nodes and edges."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

from biclique.exceptions import DataError
from biclique.hypergraph.files.lines import from_memberships, shortest
from biclique.hypergraph.hypergraph import Hypergraph

SECTIONS = ("network-type", "metadata", "incidences", "nodes", "edges")
NETWORK_TYPES = ("undirected", "directed", "asc")
ATTRIBUTES = ("attrs", "attr")
"""Keys of an item's attributes; the second in older files."""

LARGEST_BITS = 14_000
"""Of integer names: about 4,200 digits. Python writes and reads up to 4,300."""

KINDS = {dict: "an object", list: "an array", str: "text", bool: "a boolean", type(None): "null"}


def parse_hif(text: str) -> Hypergraph:
    """``{"incidences": [{"edge": …, "node": …}, …], "nodes": [{"node": …}, …], "edges": [{"edge": …}, …]}``.

    The weight of an edge is ``weight``, or without it ``attrs.weight`` (XGI's) or ``attr.weight``, the weight of an
    incidence how often the vertex is in the edge; a pair that comes twice adds up. Nodes come in the order of
    ``nodes``, then as they are first seen, and edges likewise; nodes without incidences are isolated vertices, edges
    without are empty. The ids 1 and "1" differ. A key that comes twice in an object is an error.

    In a directed file heads and tails are both members, and a node that is both counts twice; directions are not kept.
    In a simplicial complex (``asc``) the faces listed are the edges. The weights of nodes, attributes, metadata, and
    further keys inside an item, which files in circulation have, are not kept.
    """
    document = _load(text)
    if not isinstance(document, dict):
        raise DataError(f"a HIF file must be an object with the key 'incidences', got {_kind(document)}.")
    for key in document:
        if key not in SECTIONS:
            raise DataError(f"unknown key {key[:80]!r}; allowed are {', '.join(SECTIONS)}.")
    if "incidences" not in document:
        raise DataError("the key 'incidences' is missing; an array without items will do.")
    if document.get("network-type", "undirected") not in NETWORK_TYPES:
        raise DataError(f"network-type must be one of {', '.join(NETWORK_TYPES)}.")
    if not isinstance(document.get("metadata", {}), dict):
        raise DataError(f"metadata must be an object, got {_kind(document['metadata'])}.")

    order: dict[str | int, None] = {}
    for where, item in _items(document, "nodes"):
        order[_id(item, "node", where)] = None
        _weight(item, where)  # checked, and not kept
    weights: dict[str | int, float] = {}
    for where, item in _items(document, "edges"):
        edge, weight = _id(item, "edge", where), _edge_weight(item, where)
        if weights.setdefault(edge, weight) != weight:
            raise DataError(f"{where} comes again with another weight; list every edge once.")
    edges, vertices, counts = [], [], []
    for where, item in _items(document, "incidences"):
        if item.get("direction", "head") not in ("head", "tail"):
            raise DataError(f"{where}.direction must be 'head' or 'tail', got {_shown(item['direction'])}.")
        edges.append(_id(item, "edge", where))
        vertices.append(_id(item, "node", where))
        counts.append(_weight(item, where))
        if counts[-1] < 0:
            raise DataError(f"{where}.weight must be 0 or more, got {_shown(item['weight'])}.")
    every_edge = dict.fromkeys([*weights, *edges], 1.0) | weights
    return from_memberships(edges, vertices, counts, every_edge, order | dict.fromkeys(vertices))


def _load(text: str) -> Any:
    def refuse(literal: str) -> NoReturn:  # NaN or Infinity, which Python's reader takes and JSON does not have
        raise DataError(f"not JSON: {literal} is not a JSON number; leave it out or write null.")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise DataError(f"an object has the key {repeated[:80]!r} twice: keep one of them.")
        return found

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON: {error.msg} in line {error.lineno}, column {error.colno}.") from error
    except DataError:
        raise
    except RecursionError as error:
        raise DataError("objects or arrays are nested too deeply to be read.") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise DataError(f"a number cannot be read ({error}).") from error


def _kind(value: Any) -> str:
    return KINDS.get(type(value), "a number")


def _shown(value: Any) -> str:
    return _kind(value) if isinstance(value, (dict, list)) else json.dumps(value)[:80]


def _items(document: dict[str, Any], section: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The items of a section, each after its place: objects, whose attributes are objects."""
    items = document.get(section, [])
    if not isinstance(items, list):
        raise DataError(f"{section} must be an array, got {_kind(items)}.")
    for at, item in enumerate(items):
        where = f"{section}[{at}]"
        if not isinstance(item, dict):
            raise DataError(f"{where} must be an object, got {_shown(item)}.")
        for key in ATTRIBUTES:
            if not isinstance(item.get(key, {}), dict):
                raise DataError(f"{where}.{key} must be an object, got {_shown(item[key])}.")
        yield where, item


def _id(item: dict[str, Any], key: str, where: str) -> str | int:
    """The id of an item: text or an integer."""
    value = item.get(key)
    if type(value) is str or type(value) is int:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)  # 1.0 is an integer in JSON
    if key not in item:
        raise DataError(f"{where}.{key} is missing.")
    raise DataError(f"{where}.{key} must be text or a whole number, got {_shown(value)}.")


def _weight(item: dict[str, Any], where: str) -> float:
    """A finite number, 1 if there is none."""
    value = item.get("weight", 1)
    if type(value) not in (int, float):
        raise DataError(f"{where}.weight must be a finite number, got {_kind(value)}.")
    if not abs(value) <= sys.float_info.max:
        raise DataError(f"{where}.weight must be a finite number, got a number too large.")
    return float(value)


def _edge_weight(item: dict[str, Any], where: str) -> float:
    """The weight of an edge, which may be among its attributes."""
    for key in () if "weight" in item else ATTRIBUTES:
        if item.get(key, {}).get("weight") is not None:
            return _weight(item[key], f"{where}.{key}")
    return _weight(item, where)


def format_hif(hypergraph: Hypergraph) -> str:
    """The text that ``parse_hif`` reads, one item a line; names must be text or integers.

    Weights are written for all edges, or all incidences, if one of them differs from 1; those of edges also as
    ``attrs.weight``, which XGI reads.
    """
    vertices = _quoted_names(hypergraph.vertex_names, "vertex")
    edges = _quoted_names(hypergraph.edge_names, "edge")
    weights, members = hypergraph.weights, hypergraph.members.tocoo()
    of_edges, of_pairs = [""] * len(edges), [""] * members.nnz
    if (weights != 1).any():
        texts = map(shortest, weights.tolist())
        of_edges = [f', "weight": {weight}, "attrs": {{"weight": {weight}}}' for weight in texts]
    if (members.data != 1).any():
        of_pairs = [f', "weight": {count}' for count in map(shortest, members.data.tolist())]
    pairs = zip(members.row.tolist(), members.col.tolist(), of_pairs, strict=True)
    sections = {
        "nodes": [f'{{"node": {vertex}}}' for vertex in vertices],
        "edges": [f'{{"edge": {edge}{weight}}}' for edge, weight in zip(edges, of_edges, strict=True)],
        "incidences": [f'{{"edge": {edges[row]}, "node": {vertices[column]}{count}}}' for row, column, count in pairs],
    }
    text = '{\n"network-type": "undirected"'
    for section, items in sections.items():
        body = "\n" + ",\n".join(items) + "\n" if items else ""
        text += f',\n"{section}": [{body}]'
    return text + "\n}\n"


def _quoted_names(names: Any, what: str) -> list[str]:
    """Names as JSON holds them."""
    for name in names.tolist():
        if not isinstance(name, (int, str)) or isinstance(name, bool):
            raise DataError(
                f"a HIF file needs {what} names that are text or integers, got {name!r} ({type(name).__name__}): give "
                f"others with hypergraph.renamed({what}_names=…)."
            )
        if isinstance(name, int) and name.bit_length() > LARGEST_BITS:
            raise DataError(f"an integer {what} name has too many digits to be written.")
    return list(map(json.dumps, names.tolist()))
