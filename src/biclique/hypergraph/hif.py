"""The Hypergraph Interchange Format (HIF), version 0.1.0: JSON with incidences, nodes and edges."""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray
from biclique.exceptions import DataError, TableError
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.hypergraph.text import decimal, numbered

SECTIONS = ("network-type", "metadata", "incidences", "nodes", "edges")
NETWORK_TYPES = ("undirected", "directed", "asc")
KINDS = {dict: "an object", list: "an array", str: "text", bool: "a boolean", type(None): "null"}
NOT_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity)')


class _NotANumber(ValueError):
    """NaN or Infinity, which Python's reader takes and JSON does not have."""


def parse_hif(text: str, name: str) -> Hypergraph:
    """``{"incidences": [{"edge": …, "node": …}, …], "nodes": [{"node": …}, …], "edges": [{"edge": …}, …]}``.

    The weight of an edge is its weight (as XGI writes it, ``attrs.weight``, too), the weight of an incidence how often
    the vertex is in the edge; a pair that comes twice adds up. Nodes come in the order of ``nodes``, then as they are
    first seen, and edges likewise; nodes without incidences are isolated vertices, edges without are empty. The ids 1
    and "1" differ.

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
    incidences, nodes, edges = (_items(document, section, name) for section in ("incidences", "nodes", "edges"))
    for at, item in enumerate(incidences):
        if "direction" in item and item["direction"] not in ("head", "tail"):
            _refuse(name, f"incidences[{at}].direction", "'head' or 'tail'", item["direction"])

    node_ids, edge_ids = _ids(nodes, "nodes", "node", name), _ids(edges, "edges", "edge", name)
    columns, vertex_names = numbered(chain(node_ids, _ids(incidences, "incidences", "node", name)))
    rows, edge_names = numbered(chain(edge_ids, _ids(incidences, "incidences", "edge", name)))
    counts = _weights([item.get("weight", 1) for item in incidences], "incidences", name)
    if (counts < 0).any():
        at = int(np.flatnonzero(counts < 0)[0])
        _refuse(name, f"incidences[{at}].weight", "0 or more", incidences[at]["weight"])
    _weights([item.get("weight", 1) for item in nodes], "nodes", name)
    members = sparse.coo_array(
        (counts, (rows[len(edges) :], columns[len(nodes) :])), shape=(len(edge_names), len(vertex_names))
    )
    return Hypergraph(members.tocsr(), _edge_weights(edges, rows, len(edge_names), name), vertex_names, edge_names)


def _load(text: str, name: str) -> Any:
    def refuse(literal: str) -> NoReturn:
        raise _NotANumber(literal)

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise TableError(f"{name}: not JSON: {error.msg} in line {error.lineno}, column {error.colno}.") from error
    except _NotANumber as error:
        found = next((match for match in NOT_JSON.finditer(text) if match[1]), None)
        line = "" if found is None else f" in line {text.count(chr(10), 0, found.start()) + 1}"
        raise TableError(f"{name}: not JSON: {error}{line} is no JSON number; leave it out or write null.") from error
    except RecursionError as error:
        raise TableError(f"{name}: objects or arrays are nested too deeply to be read.") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise TableError(f"{name}: a number cannot be read ({error}).") from error


def _kind(value: Any) -> str:
    return KINDS.get(type(value), "a number")


def _refuse(name: str, where: str, allowed: str, value: Any) -> NoReturn:
    shown = _kind(value) if isinstance(value, (dict, list)) else json.dumps(value)
    raise TableError(f"{name}: {where} must be {allowed}, got {shown[:80]}.")


def _items(document: dict[str, Any], section: str, name: str) -> list[dict[str, Any]]:
    """The items of a section: objects whose ``attrs`` (``attr`` in older files) are objects."""
    items = document.get(section, [])
    if not isinstance(items, list):
        raise TableError(f"{name}: {section} must be an array, got {_kind(items)}.")
    if not set(map(type, items)) <= {dict}:
        at = next(at for at, item in enumerate(items) if not isinstance(item, dict))
        _refuse(name, f"{section}[{at}]", "an object", items[at])
    for key in ("attrs", "attr"):
        for at, item in enumerate(items):
            if key in item and not isinstance(item[key], dict):
                _refuse(name, f"{section}[{at}].{key}", "an object", item[key])
    return items


def _ids(items: list[dict[str, Any]], section: str, key: str, name: str) -> list[str | int]:
    """The ids of the items: text or integers."""
    ids = [item.get(key) for item in items]
    if not set(map(type, ids)) <= {str, int}:
        for at, value in enumerate(ids):
            if isinstance(value, float) and value.is_integer():
                ids[at] = int(value)  # 1.0 is an integer in JSON
            elif key not in items[at]:
                raise TableError(f"{name}: {section}[{at}].{key} is missing.")
            elif type(value) not in (str, int):
                _refuse(name, f"{section}[{at}].{key}", "text or a whole number", value)
    return ids  # type: ignore[return-value]


def _weights(values: list[Any], section: str, name: str) -> FloatArray:
    """Finite numbers."""
    try:
        if set(map(type, values)) <= {int, float}:
            numbers = np.array(values, dtype=float)
            if np.isfinite(numbers).all():
                return numbers
    except OverflowError:
        pass
    for at, value in enumerate(values):
        try:
            good = type(value) in (int, float) and np.isfinite(float(value))
        except OverflowError:
            good = False
        if not good:
            shown = "a number too large" if type(value) in (int, float) else _kind(value)
            raise TableError(f"{name}: {section}[{at}].weight must be a finite number, got {shown}.")
    return np.array(values, dtype=float)


def _edge_weights(edges: list[dict[str, Any]], rows: Any, n_edges: int, name: str) -> FloatArray:
    """The weights of all edges; one listed twice must have the same weight both times."""
    values = []
    for item in edges:
        value = item.get("weight")
        if "weight" not in item:
            value = item["attrs"].get("weight") if "attrs" in item else None
            value = value if type(value) in (int, float) else 1
        values.append(value)
    given = _weights(values, "edges", name)
    listed = rows[: len(edges)]
    weights = np.ones(n_edges)
    weights[listed] = given
    differs = np.flatnonzero(weights[listed] != given)
    if len(differs):
        at = int(differs[0])
        raise TableError(f"{name}: edges[{at}] comes again with another weight; list every edge once.")
    return weights


def format_hif(hypergraph: Hypergraph) -> str:
    """The text that ``parse_hif`` reads, one item a line; names must be text or integers.

    Weights are written for all edges, or all incidences, where one of them differs from 1.
    """
    members = hypergraph.members
    vertices = _quoted(hypergraph.vertex_names, "vertex")
    edges = _quoted(hypergraph.edge_names, "edge")
    edge_items = [f'{{"edge": {edge}' for edge in edges]
    if (hypergraph.weights != 1).any():
        texts = map(decimal, hypergraph.weights.tolist())
        edge_items = [f'{item}, "weight": {weight}' for item, weight in zip(edge_items, texts, strict=True)]
    rows = np.repeat(np.arange(len(edges)), np.diff(members.indptr)).tolist()
    pairs = zip(rows, members.indices.tolist(), strict=True)
    incidences = [f'{{"edge": {edges[row]}, "node": {vertices[column]}' for row, column in pairs]
    if (members.data != 1).any():
        texts = map(decimal, members.data.tolist())
        incidences = [f'{item}, "weight": {count}' for item, count in zip(incidences, texts, strict=True)]
    sections = {"nodes": [f'{{"node": {vertex}' for vertex in vertices], "edges": edge_items, "incidences": incidences}
    parts = ['{\n"network-type": "undirected"']
    for section, items in sections.items():
        parts.append(f',\n"{section}": [')
        parts.append("\n" + "},\n".join(items) + "}\n]" if items else "]")
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
