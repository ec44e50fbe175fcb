"""The Hypergraph Interchange Format (HIF), version 0.1.0: JSON with incidences, nodes and edges."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray
from biclique.exceptions import DataError, TableError
from biclique.hypergraph.files.lines import decimal, line_around, line_number, numbered
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.runtime.arguments import is_finite

SECTIONS = ("network-type", "metadata", "incidences", "nodes", "edges")
NETWORK_TYPES = ("undirected", "directed", "asc")
KINDS = {dict: "an object", list: "an array", str: "text", bool: "a boolean", type(None): "null"}
SPACE = re.compile(r"[ \t\r\n]*")
NOT_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity)')


class _Repeated(dict[str, Any]):
    """An object of a file in which a key comes twice."""

    key = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = _Repeated(found)
    repeated.key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
    return repeated


class _Source:
    """The text of a file and its name, for errors that say where."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name

    def error(self, section: str, at: int, reason: str, key: str = "") -> TableError:
        """``name: line 7: section[at].key reason``."""
        where = f"line {line_number(self.text, self.place(section, at))}: {section}[{at}]"
        return TableError(f"{self.name}: {where}{key and '.'}{key} {reason}.")

    def refuse(self, section: str, at: int, key: str, allowed: str, value: Any) -> NoReturn:
        shown = _kind(value) if isinstance(value, (dict, list)) else json.dumps(value)
        raise self.error(section, at, f"must be {allowed}, got {shown[:80]}", key)

    def place(self, section: str, at: int) -> int:
        """Where the item begins, by going through the text once more; it is known to be JSON."""
        decoder = json.JSONDecoder()

        def skip(place: int) -> int:
            return SPACE.match(self.text, place).end()  # type: ignore[union-attr]

        place = skip(0)
        while self.text[place] != "}":
            found, place = decoder.raw_decode(self.text, skip(place + 1))
            place = skip(skip(place) + 1)  # the colon
            if found == section:
                break
            place = skip(decoder.raw_decode(self.text, place)[1])
        place = skip(place + 1)
        for _ in range(at):
            place = skip(skip(decoder.raw_decode(self.text, place)[1]) + 1)
        return place


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
    document, source = _load(text, name), _Source(text, name)
    if not isinstance(document, dict):
        raise TableError(f"{name}: a HIF file must be an object with the key 'incidences', got {_kind(document)}.")
    if isinstance(document, _Repeated):
        raise TableError(f"{name}: the key {document.key[:80]!r} comes twice: keep one of them.")
    for key in document:
        if key not in SECTIONS:
            raise TableError(f"{name}: unknown key {key[:80]!r}; allowed are {', '.join(SECTIONS)}.")
    if "incidences" not in document:
        raise TableError(f"{name}: the key 'incidences' is missing; an array without items will do.")
    if document.get("network-type", "undirected") not in NETWORK_TYPES:
        raise TableError(f"{name}: network-type must be one of {', '.join(NETWORK_TYPES)}.")
    if not isinstance(document.get("metadata", {}), dict):
        raise TableError(f"{name}: metadata must be an object, got {_kind(document['metadata'])}.")
    incidences, nodes, edges = (_items(document, section, source) for section in ("incidences", "nodes", "edges"))
    for at, item in enumerate(incidences):
        if "direction" in item and item["direction"] not in ("head", "tail"):
            source.refuse("incidences", at, "direction", "'head' or 'tail'", item["direction"])

    node_ids, edge_ids = _ids(nodes, "nodes", "node", source), _ids(edges, "edges", "edge", source)
    columns, vertex_names = numbered(chain(node_ids, _ids(incidences, "incidences", "node", source)))
    rows, edge_names = numbered(chain(edge_ids, _ids(incidences, "incidences", "edge", source)))
    counts = _weights([item.get("weight", 1) for item in incidences], "incidences", source)
    if (counts < 0).any():
        at = int(np.flatnonzero(counts < 0)[0])
        source.refuse("incidences", at, "weight", "0 or more", incidences[at]["weight"])
    _weights([item.get("weight", 1) for item in nodes], "nodes", source)
    rows_of, columns_of = rows[len(edges) :], columns[len(nodes) :]
    members = sparse.coo_array((counts, (rows_of, columns_of)), shape=(len(edge_names), len(vertex_names))).tocsr()
    if not np.isfinite(members.data).all():
        found = members.tocoo()
        first = np.flatnonzero(~np.isfinite(found.data))[0]
        same = (rows_of == found.row[first]) & (columns_of == found.col[first])
        reason = "is one too many: the weights of its pair add up to more than a number can hold"
        raise source.error("incidences", int(np.flatnonzero(same)[-1]), reason)
    return Hypergraph(members, _edge_weights(edges, rows, len(edge_names), source), vertex_names, edge_names)


def _load(text: str, name: str) -> Any:
    def refuse(literal: str) -> NoReturn:  # NaN or Infinity, which Python's reader takes and JSON does not have
        found = next((match for match in NOT_JSON.finditer(text) if match[1]), None)
        where = "" if found is None else f" in line {line_number(text, found.start())}"
        raise TableError(f"{name}: not JSON: {literal}{where} is not a JSON number; leave it out or write null.")

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        line, column = line_number(text, error.pos), error.pos - line_around(text, error.pos)[0] + 1
        raise TableError(f"{name}: not JSON: {error.msg} in line {line}, column {column}.") from error
    except TableError:
        raise
    except RecursionError as error:
        raise TableError(f"{name}: objects or arrays are nested too deeply to be read.") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise TableError(f"{name}: a number cannot be read ({error}).") from error


def _kind(value: Any) -> str:
    return "an object" if isinstance(value, dict) else KINDS.get(type(value), "a number")


def _items(document: dict[str, Any], section: str, source: _Source) -> list[dict[str, Any]]:
    """The items of a section: objects whose ``attrs`` (``attr`` in older files) are objects, no key twice."""
    items = document.get(section, [])
    if not isinstance(items, list):
        raise TableError(f"{source.name}: {section} must be an array, got {_kind(items)}.")
    if not set(map(type, items)) <= {dict}:
        for at, item in enumerate(items):
            if not isinstance(item, dict):
                source.refuse(section, at, "", "an object", item)
            if isinstance(item, _Repeated):
                raise source.error(section, at, f"has the key {item.key[:80]!r} twice: keep one of them")
    for key in ("attrs", "attr"):
        for at, item in enumerate(items):
            if key in item and type(item[key]) is not dict:
                if isinstance(item[key], _Repeated):
                    raise source.error(section, at, f"has the key {item[key].key[:80]!r} twice: keep one of them", key)
                source.refuse(section, at, key, "an object", item[key])
    return items


def _ids(items: list[dict[str, Any]], section: str, key: str, source: _Source) -> list[str | int]:
    """The ids of the items: text or integers."""
    ids = [item.get(key) for item in items]
    if not set(map(type, ids)) <= {str, int}:
        for at, value in enumerate(ids):
            if isinstance(value, float) and value.is_integer():
                ids[at] = int(value)  # 1.0 is an integer in JSON
            elif key not in items[at]:
                raise source.error(section, at, "is missing", key)
            elif type(value) not in (str, int):
                source.refuse(section, at, key, "text or a whole number", value)
    return ids  # type: ignore[return-value]


def _weights(values: list[Any], section: str, source: _Source, keys: list[str] | None = None) -> FloatArray:
    """Finite numbers; ``keys`` say where each stood, if not in ``weight``."""
    with suppress(OverflowError):
        if set(map(type, values)) <= {int, float}:
            numbers = np.array(values, dtype=float)
            if np.isfinite(numbers).all():
                return numbers
    at = next(at for at, value in enumerate(values) if type(value) not in (int, float) or not is_finite(value))
    shown = "a number too large" if type(values[at]) in (int, float) else _kind(values[at])
    raise source.error(section, at, f"must be a finite number, got {shown}", "weight" if keys is None else keys[at])


def _weight_of(item: dict[str, Any]) -> tuple[Any, str]:
    """The weight of an edge, and the key that it stood at."""
    if "weight" in item:
        return item["weight"], "weight"
    for place in ("attrs", "attr"):
        if place in item and item[place].get("weight") is not None:
            return item[place]["weight"], f"{place}.weight"
    return 1, "weight"


def _edge_weights(edges: list[dict[str, Any]], rows: Any, n_edges: int, source: _Source) -> FloatArray:
    """The weights of all edges; one listed twice must have the same weight both times."""
    found = [_weight_of(item) for item in edges]
    given = _weights([value for value, _ in found], "edges", source, [key for _, key in found])
    listed = rows[: len(edges)]
    weights = np.ones(n_edges)
    weights[listed] = given
    differs = np.flatnonzero(weights[listed] != given)
    if len(differs):
        raise source.error("edges", int(differs[0]), "comes again with another weight; list every edge once")
    return weights


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
