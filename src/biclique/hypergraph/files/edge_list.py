"""Hypergraphs as edge lists in CSV or TSV."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np

from biclique.exceptions import DataError, ParameterError, TableError, printable
from biclique.hypergraph.files.lines import NUMBER, WHOLE, from_memberships, parse_number, shortest
from biclique.hypergraph.hypergraph import Hypergraph

DELIMITERS = {" ": "spaces", "\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}
EDGE_WORDS = ("edge", "hyperedge", "edge_id")
VERTEX_WORDS = ("vertex", "node", "vertices", "node_id")
LIKELY_EDGES = (*EDGE_WORDS, "paper", "group")
LIKELY_VERTICES = (*VERTEX_WORDS, "author", "authors", "member", "members")
OTHER_WORDS = ("weight", "count", "source", "target", "year", "id", ".*_id")
HEADER_WORD = re.compile("|".join((*LIKELY_EDGES, *LIKELY_VERTICES, *OTHER_WORDS)), re.IGNORECASE)
LIST_MARKS = ";|"
"""What stands between the names of a list inside a field, and hardly ever inside a name."""

FEW_LINES = 3
"""Lines below a header from which on columns that share no name say that this is a table."""

FIRST_LINE = re.compile(r"\S[^\r\n]*")
UNWRITABLE = re.compile("[\0\r\ud800-\udfff]")

Row = tuple[str, ...]


@dataclass(frozen=True)
class Columns:
    """The arguments of ``read_hypergraph`` about the columns of an edge list."""

    edge: str | int | None = None
    vertex: str | int | None = None
    weight: str | int | None = None
    separator: str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        for option, column in self.named().items():
            if isinstance(column, bool) or not isinstance(column, (str, int)):
                raise ParameterError(f"{option} must be the name of a column or its number from 0, got {column!r}.")
        separator = self.separator
        if separator is not None and not (isinstance(separator, str) and re.fullmatch('[^"\r\n]+', separator)):
            raise ParameterError(
                f"separator must be the text between the names of a list, such as ';', without quotes and line ends, "
                f"got {separator!r}."
            )

    def named(self) -> dict[str, str | int]:
        """The columns that were named, by the name of the argument."""
        given = {"edge_column": self.edge, "vertex_column": self.vertex, "weight_column": self.weight}
        return {option: column for option, column in given.items() if column is not None}

    def given(self) -> list[str]:
        """The arguments that were given."""
        others = {"separator": self.separator, "header": self.header}
        return [*self.named(), *(option for option, value in others.items() if value is not None)]


NO_COLUMNS = Columns()


def parse_edge_list(text: str, name: str, delimiter: str | None = None, columns: Columns = NO_COLUMNS) -> Hypergraph:
    """An edge list in one of two layouts; the named columns say which one, or else the first line.

    Table: one row for each vertex in an edge. Its columns are named by ``columns``, and then only those are read; or
    the header has ``edge`` and ``vertex`` (or words like them), and perhaps ``weight`` of the edge and ``count``, how
    often the vertex is in the edge.

    - A pair that comes twice counts twice.
    - The weight may stand in any row of its edge, or in several if it is the same.
    - A row without an edge names a vertex, one without a vertex names an edge.
    - With a separator the vertices' field is a list of names. If there is no column for the edges, a row is an edge.

    Otherwise: one edge a line, its vertices between delimiters, or between separators. A vertex named twice counts
    twice. A first line that looks like a header (``suspect_header``) is an error, unless ``columns.header`` says that
    it is one (then it is left out) or that it is not.

    The delimiter of a ``.csv`` file is the most frequent of comma, semicolon and tab in the first line that is not
    blank; for named columns it may be a bar. Names that are all whole numbers become integers. Integer vertices are
    sorted, others come in the order in which they are first seen; if rows without an edge name every vertex, their
    order counts. White space around a field is dropped.
    """
    found = FIRST_LINE.search(text)
    line = "" if found is None else found.group()
    most = delimiter or max(",;\t", key=line.count)
    if columns.named():
        return _parse_table(*_rows(text, name, _table_delimiter(line, most, columns)), name, columns)
    rows, lines = _rows(text, name, most)
    words = {cell.lower() for cell in rows[0]}
    known = not (words.isdisjoint(EDGE_WORDS) or words.isdisjoint(VERTEX_WORDS))
    if known and columns.header is not False:
        return _parse_table(rows, lines, name, columns)
    if columns.separator is not None:
        if len(columns.separator) > 1:
            raise ParameterError(
                f"separator must be one character between the vertices of a line, got {columns.separator!r}; longer "
                "ones are for lists in a column: name it with --vertex-column (vertex_column=)."
            )
        rows, lines = _rows(text, name, columns.separator)
    if columns.header:
        rows, lines = rows[1:], lines[1:]
        if not rows:
            raise TableError(f"{name}: there is nothing below the header.")
    if columns.separator is None:
        _refuse_other_delimiters(rows, lines, most, name)
    if columns.header is None:
        _refuse_header(rows, lines, name)
    return _parse_lines(rows, lines, name)


def _rows(text: str, name: str, delimiter: str) -> tuple[list[Row], list[int]]:
    """The lines that are not blank as fields, and their numbers."""
    spaced = delimiter == " "  # then several in a row are one
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=not spaced, strict=True)
    rows: list[Row] = []  # tuples, which the garbage collector does not walk through again and again
    lines: list[int] = []
    try:
        for row in reader:
            fields = tuple(filter(None, row)) if spaced else tuple(map(str.strip, row))
            if any(fields):
                rows.append(fields)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise TableError(f"{name}: line {reader.line_num}: not a table ({printable(error)}).") from error
    if not rows:
        raise TableError(f"{name}: the file is empty.")
    return rows, lines


def _table_delimiter(line: str, most: str, columns: Columns) -> str:
    """The delimiter at which the first line has all columns that are named by text, else the usual one."""
    wanted = {column for column in columns.named().values() if isinstance(column, str)}
    if columns.header is False:
        return most
    for delimiter in (most, *sorted(",;\t|", key=line.count, reverse=True)):
        if delimiter == columns.separator and delimiter not in line:
            continue  # a header of one column, above lists
        with suppress(csv.Error):
            first = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
            if wanted <= {cell.strip() for cell in first}:
                return delimiter
    return most


# A header that nobody announced, and other delimiters


def suspect_header(rows: Sequence[Row]) -> tuple[str, str] | None:
    """Why the first line looks like a header, and the options that would read the table; or None.

    Its fields must be distinct, no numbers, and occur nowhere below. Then one of these is enough:

    - All fields below are whole numbers.
    - One of its words is known (``edge``, ``weight``, ``author``, ``…_id``, …), and two lines are below.
    - Two lines of as many fields are below, and two fields of a column hold a semicolon or a bar: lists of names.
    - Two lines of as many fields are below, and a column holds numbers only.
    - Three lines of as many fields are below, no name occurs in two columns, and each line shares a name with another.
      In a list of edges a vertex may stand in any place, so that names meet in several columns.
    """
    first, below = rows[0], rows[1:]
    own = [cell for cell in first if cell]
    if not below or not own or any(map(NUMBER.fullmatch, own)):
        return None
    if all(WHOLE.fullmatch(cell) for cell in chain.from_iterable(below) if cell):
        return "above whole numbers", _options(first)
    if len(below) < 2 or len(set(own)) < len(own) or not set(own).isdisjoint(chain.from_iterable(below)):
        return None
    word = next(filter(HEADER_WORD.fullmatch, own), None)
    even = len(first) > 1 and all(len(row) == len(first) for row in below)
    if not even:
        return None if word is None else (f"with the word {word!r}", _options(first))

    columns = [[cell for cell in column if cell] for column in zip(*below, strict=True)]
    numeric = [j for j, cells in enumerate(columns) if cells and all(map(NUMBER.fullmatch, cells))]
    for mark in LIST_MARKS:
        lists = [j for j, cells in enumerate(columns) if first[j] and sum(mark in cell for cell in cells) > 1]
        if lists and not any(mark in cell for cell in first):
            reason = f"above lists with {DELIMITERS[mark]} ({first[lists[0]]!r})"
            return reason, f"{_options(first, numeric, lists[0])} --separator '{mark}'"
    if word is not None:
        return f"with the word {word!r}", _options(first, numeric)
    named = [first[j] for j in numeric if first[j]]
    if named:
        return f"above a column of numbers ({named[0]!r})", _options(first, numeric)
    times = [Counter(cells) for cells in columns]
    apart = len(set().union(*times)) == sum(map(len, times))
    shared = {cell for counts in times for cell, count in counts.items() if count > 1}
    if len(below) >= FEW_LINES and apart and not any(shared.isdisjoint(row) for row in below):
        return "above columns that share no name", _options(first)
    return None


def _options(first: Row, numeric: Sequence[int] = (), vertex: int | None = None) -> str:
    """Options that would read the table: columns by words that are likely, else the first two without numbers."""
    words = [cell.lower() for cell in first]
    if {"source", "target"} <= set(words):
        return "--header yes"
    rest = sorted((j for j, word in enumerate(words) if word and j != vertex), key=lambda j: j in numeric)
    edge = next((j for j in rest if words[j] in LIKELY_EDGES), None)
    if vertex is None:
        vertex = next((j for j in rest if words[j] in LIKELY_VERTICES), None)
    free = iter(j for j in rest if j not in (edge, vertex))
    edge = next(free, None) if edge is None else edge
    vertex = next(free, None) if vertex is None else vertex
    named = {"--edge-column": edge, "--vertex-column": vertex}
    return " ".join(f"{option} {quoted(first[j])}" for option, j in named.items() if j is not None)


def quoted(text: str) -> str:
    """A text as it is typed in a shell, on one line."""
    return shlex.quote(text if text.isprintable() else text.encode("unicode_escape").decode())


def _refuse_header(rows: list[Row], lines: list[int], name: str) -> None:
    """An error if the first line looks like a header: it would be read as an edge."""
    found = suspect_header(rows)
    if found is not None:
        reason, options = found
        raise TableError(
            f"{name}: line {lines[0]} looks like a header {reason}, but has no columns 'edge' and 'vertex'. "
            f"Say what it holds, as in: biclique hypergraph info {quoted(name)} {options} (in Python "
            "edge_column=, vertex_column=, separator=, header=). If a line is an edge: --header yes leaves line "
            f"{lines[0]} out, --no-header keeps it."
        )


def _refuse_other_delimiters(rows: list[Row], lines: list[int], delimiter: str, name: str) -> None:
    """An error if every line is one field with another delimiter inside.

    Spaces and commas may be parts of names: they must be in every line, or between whole numbers.
    """
    if any(any(row[1:]) for row in rows):
        return
    for other, plural in DELIMITERS.items():
        inside = [other in row[0] for row in rows]
        if other == delimiter or not any(inside):
            continue
        whole = all(WHOLE.fullmatch(part.strip()) for row in rows for part in row[0].split(other) if part)
        if all(inside) or whole or other in ";\t|":
            listed = f"--vertex-column {quoted(rows[0][0])} " if not inside[0] and all(inside[1:]) and not whole else ""
            shown, usual = (f"'{mark}'".replace("\t", r"\t") for mark in (other, delimiter))
            raise TableError(
                f"{name}: line {lines[inside.index(True)]}: every line is one field between {DELIMITERS[delimiter]}, "
                f"but has {plural} inside: separate fields by {DELIMITERS[delimiter]}, or say what stands between "
                f"names, {listed}--separator {shown}. If {plural} are parts of names: --separator {usual} (in Python "
                "separator=)."
            )


# One edge a line


def _parse_lines(rows: list[Row], lines: list[int], name: str) -> Hypergraph:
    edges = [_filled(row, f"{name}: line {number}: field") for row, number in zip(rows, lines, strict=True)]
    names = _names(chain.from_iterable(edges))
    return Hypergraph.from_edges([names[text] for text in edge] for edge in edges)


def _filled(fields: Row, where: str) -> Row:
    """Fields without the empty ones at the end; an empty one inside is an error."""
    filled = fields[: max((place for place, field in enumerate(fields, 1) if field), default=0)]
    if "" in filled:
        raise TableError(f"{where} {filled.index('') + 1} is empty.")
    return filled


# One membership a row


def _find_places(first: Row, columns: Columns, name: str) -> tuple[int, int | None, int | None, int | None]:
    """The places of vertex, edge, weight and count in a row; None for a column that does not exist.

    Columns that were not named are found by the words that are known. ``weight`` and ``count`` are read without being
    named only if neither the edges' nor the vertices' column is named.
    """
    names = [str(j) for j in range(len(first))] if columns.header is False else list(first)
    shown = ", ".join(repr(cell[:80]) for cell in names[:20]) + (", …" if len(names) > 20 else "")

    def place(option: str, column: str | int | None, words: Sequence[str]) -> int | None:
        if column is None:
            found = [j for j, cell in enumerate(names) if cell.lower() in words]
            if len(found) > 1:
                both = " and ".join(repr(names[j]) for j in found[:2])
                raise TableError(f"{name}: the header has both {both}: rename one of them.")
            return found[0] if found else None
        found = [j for j, cell in enumerate(names) if column in (j, cell)]
        if len(found) != 1:
            problem = f"appears {len(found)} times: rename it" if found else "does not exist"
            hint = " Without a header, say --no-header: columns are numbers from 0."
            raise TableError(
                f"{name}: {option} (--{option.replace('_', '-')}) names column {column!r}, which {problem}; "
                f"columns: {shown}.{'' if found or columns.header is False else hint}"
            )
        return found[0]

    named = columns.named()
    plain = columns.edge is None and columns.vertex is None
    edge = place("edge_column", columns.edge, EDGE_WORDS)
    vertex = place("vertex_column", columns.vertex, VERTEX_WORDS)
    weight = place("weight_column", columns.weight, ("weight",) if plain else ())
    places = {"edge_column": edge, "vertex_column": vertex, "weight_column": weight}
    if len({places[option] for option in named}) < len(named):
        raise ParameterError(f"{', '.join(named)} must name different columns, got {named}.")
    if edge == vertex:  # a named column has the word for the other one
        edge, vertex = (edge, None) if columns.vertex is None else (None, vertex)
    if vertex is None:
        raise TableError(
            f"{name}: which column holds the vertices? Name it with --vertex-column (vertex_column=); columns: {shown}."
        )
    if edge is None and columns.separator is None:
        raise TableError(
            f"{name}: one vertex on each line needs the edges' column, --edge-column (edge_column=); columns: "
            f"{shown}. If a line is an edge and {names[vertex]!r} a list, say what stands between its names, such as "
            "--separator ';' (separator=)."
        )
    return vertex, edge, weight, place("", None, ("count",) if plain else ())


def _parse_table(rows: list[Row], lines: list[int], name: str, columns: Columns) -> Hypergraph:
    """Columns with names or numbers."""
    vertex, edge, weight, count = _find_places(rows[0], columns, name)
    width, first = len(rows[0]), "first line" if columns.header is False else "header"
    if columns.header is not False:
        rows, lines = rows[1:], lines[1:]
    weights: dict[str, float | None] = {}  # of every edge
    vertices: dict[str, None] = {}
    alone: dict[str, None] = {}  # vertices that have a row without an edge
    entries: list[tuple[str, str, float]] = []
    for at, (line, row) in enumerate(zip(lines, rows, strict=True)):
        where = f"{name}: line {line}:"
        if len(row) != width:
            raise TableError(f"{where} {len(row)} fields, the {first} has {width}.")
        owner = str(at) if edge is None else row[edge]
        members: Row = (row[vertex],) if row[vertex] else ()
        if columns.separator is not None:
            members = _filled(tuple(map(str.strip, row[vertex].split(columns.separator))), f"{where} name")
        own_weight = None if weight is None else _number(row[weight], f"{where} the weight")
        times = None if count is None else _number(row[count], f"{where} the count")
        if owner == "" or not members or times is not None:
            _check_membership(owner, members, own_weight, times, where)
        vertices.update(dict.fromkeys(members))
        if owner == "":
            alone.update(dict.fromkeys(members))
            continue
        known = weights.setdefault(owner, own_weight)
        if known is None:
            weights[owner] = own_weight
        elif own_weight is not None and own_weight != known:
            shown = f"{shortest(known)} above and {shortest(own_weight)} here"
            raise TableError(f"{where} edge {owner!r} has weight {shown}.")
        entries.extend((owner, member, 1.0 if times is None else times) for member in members)

    names = _names(alone if len(alone) == len(vertices) else vertices)  # rows of their own may name every vertex
    order = list(names.values())
    if len(alone) < len(vertices) and isinstance(order[0], int):
        order.sort()
    edge_names = _names(weights)
    return from_memberships(
        ((edge_names[owner], names[member], times) for owner, member, times in entries),
        {edge_names[owner]: 1.0 if own is None else own for owner, own in weights.items()},
        order,
    )


def _check_membership(owner: str, members: Row, weight: float | None, times: float | None, where: str) -> None:
    for wrong, reason in (
        (owner == "" and not members, "neither an edge nor a vertex"),
        (owner == "" and (weight, times) != (None, None), "a vertex without an edge has no weight and no count"),
        (not members and times is not None, "an edge without a vertex has no count"),
        (times is not None and times < 0, "the count must be 0 or more"),
    ):
        if wrong:
            raise TableError(f"{where} {reason}.")


def _number(text: str, what: str) -> float | None:
    """A number, None for an empty field."""
    value = parse_number(text) if text else None
    if text and value is None:
        raise TableError(f"{what} must be a finite number, got {text[:80]!r}.")
    return value


def _names(texts: Iterable[str]) -> dict[str, Any]:
    """Each text once and its name: integers if all are whole numbers in their usual spelling, else the texts."""
    distinct = dict.fromkeys(texts)
    whole = all(map(WHOLE.fullmatch, distinct))
    return {text: int(text) if whole else text for text in distinct}


# Writing


def format_edge_list(hypergraph: Hypergraph, delimiter: str = ",") -> str:
    """The long layout, with ``weight`` and ``count`` if one of them differs from 1.

    Names must be all integers or all text, for vertices and for edges. Text that would come back as something else is
    refused: names that all look like whole numbers, an empty one, one with white space around it.
    """
    members = hypergraph.members
    vertices = _checked_names(hypergraph.vertex_names, "vertex")
    edges = _checked_names(hypergraph.edge_names, "edge")
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
    names = [vertices[i] for i in members.indices.tolist()]
    counts = [[shortest(count)] if with_counts else [] for count in members.data.tolist()]
    for e, (start, end) in enumerate(pairwise(members.indptr.tolist())):
        weight = [shortest(hypergraph.weights.item(e))] if with_weights else []
        if start == end:
            writer.writerow([edges[e], "", *weight, *[""] * with_counts])
        writer.writerows([edges[e], names[i], *weight, *counts[i]] for i in range(start, end))
    writer.writerows(["", vertices[i], *padding] for i in alone)
    return stream.getvalue()


def _checked_names(names: Any, what: str) -> list[str]:
    """Names as they are written; each kind that would not come back as it was is an error."""
    listed = names.tolist()
    advice = "write .json, or give others with hypergraph.renamed"
    kinds = set(map(type, listed))
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
    if list(_names(texts).values()) != listed:
        raise DataError(
            f"the {what} names are text that looks like whole numbers, such as {texts[0]!r}, and would come back as "
            f"integers: {advice}."
        )
    return texts
