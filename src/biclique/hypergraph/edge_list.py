"""Hypergraphs as edge lists in CSV or TSV."""

from __future__ import annotations

import csv
import io
import re
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, TableError
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.hypergraph.text import decimal, numbered, parse_number

WHOLE = re.compile(r"0|-?[1-9][0-9]{0,999}")
FIRST_LINE = re.compile(r"[^\r\n]*\S[^\r\n]*")
DELIMITERS = {" ": "spaces", "\t": "tabs", ",": "commas", ";": "semicolons"}
EDGE_WORDS = ("edge", "hyperedge", "edge_id")
VERTEX_WORDS = ("vertex", "node", "vertices", "node_id")
UNWRITABLE = re.compile("[\0\r\ud800-\udfff]")


def parse_edge_list(text: str, name: str, delimiter: str | None = None) -> Hypergraph:
    """An edge list in one of two layouts; which one, the first line says.

    Long: a header with ``edge`` (or ``hyperedge``, ``edge_id``) and ``vertex`` (or ``node``, ``vertices``,
    ``node_id``), and perhaps ``weight``, the weight of the edge, and ``count``, how often the vertex is in the edge;
    other columns are left aside. One row for each vertex in an edge. The weight may stand in any row of its edge, or in
    several if it is the same. A row without an edge names a vertex, one without a vertex names an edge.

    Otherwise: one edge a line, its vertices separated by the delimiter; a vertex named twice counts twice. A header of
    other words, such as ``paper,author``, is then an edge like every line, and every row below it too: nothing tells
    it from names. Rename its columns to ``edge`` and ``vertex``. Above whole numbers it is an error.

    The delimiter of a ``.csv`` file is the most frequent of comma, semicolon and tab in the first line that is not
    blank. Lines that are one field each with another delimiter inside are an error.

    Names that are all whole numbers become integers; one that is not (007 is not) makes all of them text. Integer
    vertices are sorted, others come in the order in which they are first seen; where rows without an edge name every
    vertex, their order counts. White space around a field is dropped.
    """
    found = FIRST_LINE.search(text)
    delimiter = delimiter or max(",;\t", key=("" if found is None else found[0]).count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    rows: list[tuple[str, ...]] = []  # tuples, which the garbage collector does not walk through again and again
    lines: list[int] = []
    try:
        for row in reader:
            fields = tuple(map(str.strip, row))
            if any(fields):
                rows.append(fields)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise TableError(f"{name}: line {reader.line_num}: not a table ({error}).") from error
    if not rows:
        raise TableError(f"{name}: the file is empty.")
    header = [field.lower() for field in rows[0]]
    if not (set(EDGE_WORDS).isdisjoint(header) or set(VERTEX_WORDS).isdisjoint(header)):
        return _parse_long(header, rows[1:], lines[1:], name)
    _refuse_other_delimiters(rows, lines, delimiter, name)
    return _parse_lines(rows, lines, name)


def _refuse_other_delimiters(rows: list[tuple[str, ...]], lines: list[int], delimiter: str, name: str) -> None:
    """An error where every line is one field, and each holds another delimiter or all are whole numbers between it."""
    if any(any(row[1:]) for row in rows):
        return
    for other, plural in DELIMITERS.items():
        inside = [other in row[0] for row in rows]
        if other == delimiter or not any(inside):
            continue
        if all(inside) or all(WHOLE.fullmatch(part.strip()) for row in rows for part in row[0].split(other) if part):
            raise TableError(
                f"{name}: line {lines[inside.index(True)]}: every line is one field between {DELIMITERS[delimiter]}, "
                f"but has {plural} inside: separate fields by {DELIMITERS[delimiter]}; if these are names with "
                f"{plural}, use a header with 'edge' and 'vertex'."
            )


def _parse_lines(rows: list[tuple[str, ...]], lines: list[int], name: str) -> Hypergraph:
    """One edge a line."""
    for at, row in enumerate(rows):
        if "" in row:
            filled = max(place for place, field in enumerate(row, 1) if field)
            rows[at] = row[:filled]
            if "" in rows[at]:
                raise TableError(f"{name}: line {lines[at]}: field {row.index('') + 1} is empty.")
    codes, texts = numbered(chain.from_iterable(rows))
    names = _typed(texts)
    if isinstance(names[0], str) and len(rows) > 1:
        other = {text for text in texts if not WHOLE.fullmatch(text)}
        if other == set(rows[0]) and not other.intersection(chain.from_iterable(rows[1:])):
            raise TableError(
                f"{name}: line {lines[0]} looks like a header above whole numbers, but has no columns 'edge' and "
                "'vertex': rename them, or remove the line if every line is an edge."
            )
    codes, names = _sorted_integers(codes, names)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    members = sparse.csr_array((np.ones(len(codes)), codes, indptr), shape=(len(rows), len(names)))
    return Hypergraph(members, vertex_names=names)


def _parse_long(header: list[str], rows: list[tuple[str, ...]], lines: list[int], name: str) -> Hypergraph:
    """One row a vertex in an edge."""

    def bad(at: Any, reason: str) -> TableError:
        return TableError(f"{name}: line {lines[int(at)]}: {reason}.")

    for column in (*EDGE_WORDS, *VERTEX_WORDS, "weight", "count"):
        if header.count(column) > 1:
            raise TableError(f"{name}: column {column!r} appears {header.count(column)} times in the header.")
    edge_words, vertex_words = ([word for word in words if word in header] for words in (EDGE_WORDS, VERTEX_WORDS))
    for words in (edge_words, vertex_words):
        if len(words) > 1:
            raise TableError(f"{name}: the header has both {words[0]!r} and {words[1]!r}: rename one of them.")
    for at, row in enumerate(rows):
        if len(row) != len(header):
            raise bad(at, f"{len(row)} fields, the header has {len(header)}")

    def cells(column: str) -> list[str]:
        place = header.index(column) if column in header else None
        return [""] * len(rows) if place is None else [row[place] for row in rows]

    edges, edge_names = _numbered_cells(cells(edge_words[0]))
    vertices, vertex_names = _numbered_cells(cells(vertex_words[0]))
    weights, counts = _numbers(cells("weight"), "weight", bad), _numbers(cells("count"), "count", bad)
    alone, inside = edges < 0, (edges >= 0) & (vertices >= 0)
    for wrong, reason in (
        (alone & (vertices < 0), "neither an edge nor a vertex"),
        (alone & ~(np.isnan(weights) & np.isnan(counts)), "a vertex without an edge has no weight and no count"),
        ((vertices < 0) & ~np.isnan(counts), "an edge without a vertex has no count"),
        (counts < 0, "the count must be 0 or more"),
    ):
        if wrong.any():
            raise bad(np.flatnonzero(wrong)[0], reason)
    given = np.flatnonzero(~np.isnan(weights))
    edge_weights = np.ones(len(edge_names))
    edge_weights[edges[given[::-1]]] = weights[given[::-1]]  # the first one stays
    differs = given[edge_weights[edges[given]] != weights[given]]
    if len(differs):
        at = differs[0]
        first = decimal(float(edge_weights[edges[at]]))
        raise bad(at, f"edge {edge_names[edges[at]]!r} has weight {first} above and {decimal(float(weights[at]))} here")
    vertices, names = _vertex_order(vertices, _typed(vertex_names), vertices[alone])
    members = sparse.coo_array(
        (np.where(np.isnan(counts), 1.0, counts)[inside], (edges[inside], vertices[inside])),
        shape=(len(edge_names), len(names)),
    )
    return Hypergraph(members.tocsr(), edge_weights, names, _typed(edge_names))


def _numbered_cells(cells: list[str]) -> tuple[IntArray, list[str]]:
    """Names by number; an empty field is −1."""
    codes, names = numbered(cells)
    if "" in names:
        blank = names.index("")
        names.pop(blank)
        codes = np.where(codes == blank, -1, codes - (codes > blank))
    return codes, names


def _numbers(cells: list[str], column: str, bad: Any) -> FloatArray:
    """Numbers; an empty field is NaN."""
    codes, texts = numbered(cells)
    values = [np.nan if text == "" else parse_number(text) for text in texts]
    if None in values:
        wrong = values.index(None)
        raise bad(np.flatnonzero(codes == wrong)[0], f"the {column} must be a finite number, got {texts[wrong][:80]!r}")
    return np.array(values, dtype=float)[codes]


def _typed(texts: list[str]) -> list[Any]:
    """Integers where all are whole numbers in their usual spelling, else the texts."""
    return list(map(int, texts)) if all(map(WHOLE.fullmatch, texts)) else texts


def _vertex_order(codes: IntArray, names: list[Any], listed: IntArray) -> tuple[IntArray, list[Any]]:
    """Vertices in the order of their own rows where these name all of them, else in the usual order."""
    order = list(dict.fromkeys(listed.tolist()))
    if len(order) == len(names):
        return _reordered(codes, names, order)
    return _sorted_integers(codes, names)


def _sorted_integers(codes: IntArray, names: list[Any]) -> tuple[IntArray, list[Any]]:
    if names and isinstance(names[0], int):
        return _reordered(codes, names, sorted(range(len(names)), key=names.__getitem__))
    return codes, names


def _reordered(codes: IntArray, names: list[Any], order: list[int]) -> tuple[IntArray, list[Any]]:
    place = np.full(len(order) + 1, -1)  # the last one for the code −1
    place[order] = np.arange(len(order))
    return place[codes], [names[i] for i in order]


def format_edge_list(hypergraph: Hypergraph, delimiter: str = ",") -> str:
    """The long layout, with ``weight`` and ``count`` where one of them differs from 1.

    Names must be all integers or all text, for vertices and for edges. Text that would come back as something else is
    refused: names that all look like whole numbers, an empty one, one with white space around it.
    """
    members = hypergraph.members
    vertices = _checked_names(hypergraph.vertex_names, "vertex")
    edges = _checked_names(hypergraph.edge_names, "edge")
    weights = list(map(decimal, hypergraph.weights.tolist()))
    with_weights, with_counts = bool((hypergraph.weights != 1).any()), bool((members.data != 1).any())
    padding = [""] * (with_weights + with_counts)
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["edge", "vertex", *["weight"] * with_weights, *["count"] * with_counts])

    alone = np.flatnonzero(np.bincount(members.indices, minlength=len(vertices)) == 0).tolist()
    seen = list(dict.fromkeys(chain(members.indices.tolist(), alone)))
    if vertices and not isinstance(hypergraph.vertex_names[0], str):
        seen.sort(key=hypergraph.vertex_names.__getitem__)
    if seen != list(range(len(vertices))):
        writer.writerows(["", name, *padding] for name in vertices)
        alone = []
    ends = members.indptr.tolist()
    names = [vertices[i] for i in members.indices.tolist()]
    counts = list(map(decimal, members.data.tolist())) if with_counts else []
    for e, edge in enumerate(edges):
        start, end = ends[e], ends[e + 1]
        weight = [weights[e]] if with_weights else []
        if start == end:
            writer.writerow([edge, "", *weight, *[""] * with_counts])
        elif with_counts:
            writer.writerows([edge, names[i], *weight, counts[i]] for i in range(start, end))
        else:
            writer.writerows([edge, names[i], *weight] for i in range(start, end))
    writer.writerows(["", vertices[i], *padding] for i in alone)
    return stream.getvalue()


def _checked_names(names: Any, what: str) -> list[str]:
    """Names as they are written; each kind that would not come back as it was is an error."""
    listed = names.tolist()
    advice = "write .json, or give others with hypergraph.renamed"
    kinds = {
        int if isinstance(name, (int, np.integer)) and not isinstance(name, bool) else type(name) for name in listed
    }
    if not (kinds <= {int} or all(issubclass(kind, str) for kind in kinds)):
        shown = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(f"an edge list needs {what} names that are all integers or all text, got {shown}: {advice}.")
    for name in listed:
        if isinstance(name, str) and not (name and name == name.strip() and not UNWRITABLE.search(name)):
            raise DataError(
                f"{what} name {name[:80]!r} cannot be written: a field is not empty, starts and ends with no white "
                f"space and holds no NUL and no carriage return; {advice}."
            )
    try:
        texts = [str(name) for name in listed]
    except ValueError as error:
        raise DataError(f"an integer {what} name has too many digits to be written: {advice}.") from error
    if _typed(texts) != listed:
        raise DataError(
            f"the {what} names are text that looks like whole numbers, such as {texts[0]!r}, and would come back as "
            f"integers: {advice}."
        )
    return texts
