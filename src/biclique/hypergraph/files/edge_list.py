"""Hypergraphs as edge lists in CSV or TSV."""

import csv
import io
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any

from biclique.exceptions import DataError, ParameterError, printable
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

Line = tuple[int, Row]
"""The number of a line that is not blank, and its fields."""

Membership = tuple[int, str | int, str, str, str]
"""A line, and its edge, vertex, weight of the edge and count of the vertex; empty where the line has none."""


@dataclass(frozen=True)
class Columns:
    """The arguments of ``read_hypergraph`` about the columns of an edge list."""

    edge_column: str | int | None = None
    vertex_column: str | int | None = None
    weight_column: str | int | None = None
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

    def given(self) -> list[str]:
        """The names of the arguments that were given."""
        return [option for option, value in vars(self).items() if value is not None]

    def named(self) -> dict[str, str | int]:
        """The columns that were named, by the name of the argument."""
        return {option: vars(self)[option] for option in self.given() if option.endswith("column")}


NO_COLUMNS = Columns()


def parse_edge_list(
    text: str, delimiter: str | None = None, columns: Columns = NO_COLUMNS, name: str = "FILE"
) -> Hypergraph:
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
        most = _table_delimiter(line, most, columns)
    lines = _lines(text, most)
    words = {cell.lower() for cell in lines[0][1]}
    known = not (words.isdisjoint(EDGE_WORDS) or words.isdisjoint(VERTEX_WORDS))
    if columns.named() or (known and columns.header is not False):
        return _assembled(_table(lines, columns))
    if columns.separator is not None:
        if len(columns.separator) > 1:
            raise ParameterError(
                f"separator must be one character between the vertices of a line, got {columns.separator!r}; longer "
                "ones are for lists in a column: name it with --vertex-column (vertex_column=)."
            )
        lines = _lines(text, columns.separator)
    if columns.header:
        del lines[0]
        if not lines:
            raise DataError("there is nothing below the header.")
    if columns.separator is None:
        _refuse_other_delimiters(lines, most)
    if columns.header is None:
        _refuse_header(lines, name)
    filled = ((number, _filled(row, number, "field")) for number, row in lines)
    return _assembled((number, edge, vertex, "", "") for edge, (number, row) in enumerate(filled) for vertex in row)


def _lines(text: str, delimiter: str) -> list[Line]:
    """The lines that are not blank."""
    spaced = delimiter == " "  # then several in a row are one
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=not spaced, strict=True)
    lines: list[Line] = []  # of tuples, which the garbage collector does not walk through again and again
    try:
        for row in reader:
            fields = tuple(filter(None, row)) if spaced else tuple(map(str.strip, row))
            if any(fields):
                lines.append((reader.line_num, fields))
    except csv.Error as error:
        raise DataError(f"line {reader.line_num}: not a table ({printable(error)}).") from error
    if not lines:
        raise DataError("the file is empty.")
    return lines


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


def _filled(fields: Row, line: int, what: str) -> Row:
    """Fields without the empty ones at the end; an empty one inside is an error."""
    if "" not in fields:
        return fields
    filled = fields[: max((place for place, field in enumerate(fields, 1) if field), default=0)]
    if "" in filled:
        raise DataError(f"line {line}: {what} {filled.index('') + 1} is empty.")
    return filled


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
    own = list(filter(None, first))
    times = Counter(filter(None, chain.from_iterable(below)))
    if not own or not times or any(map(NUMBER.fullmatch, own)):
        return None
    if all(map(WHOLE.fullmatch, times)):
        return "above whole numbers", _options(first)
    if len(below) < 2 or len(set(own)) < len(own) or not times.keys().isdisjoint(own):
        return None
    even = len(first) > 1 and all(len(row) == len(first) for row in below)
    columns = [list(filter(None, cells)) for cells in zip(*below, strict=True)] if even else []
    numeric = [j for j, cells in enumerate(columns) if cells and all(map(NUMBER.fullmatch, cells))]
    for mark in LIST_MARKS:
        lists = [j for j, cells in enumerate(columns) if first[j] and sum(mark in cell for cell in cells) > 1]
        if lists and not any(mark in cell for cell in first):
            reason = f"above lists with {DELIMITERS[mark]} ({first[lists[0]]!r})"
            return reason, f"{_options(first, numeric, lists[0])} --separator '{mark}'"
    word = next(filter(HEADER_WORD.fullmatch, own), None)
    if word is not None:
        return f"with the word {word!r}", _options(first, numeric)
    named = [first[j] for j in numeric if first[j]]
    if named:
        return f"above a column of numbers ({named[0]!r})", _options(first, numeric)
    apart = sum(len(set(cells)) for cells in columns) == len(times)
    if len(below) >= FEW_LINES and apart and all(any(times[cell] > 1 for cell in row) for row in below):
        return "above columns that share no name", _options(first)
    return None


def _options(first: Row, numeric: Sequence[int] = (), vertex: int | None = None) -> str:
    """Options that would read the table: columns by words that are likely, else the first two without numbers."""
    words = [cell.lower() for cell in first]
    if {"source", "target"} <= set(words):
        return "--header yes"
    free = sorted((j for j, word in enumerate(words) if word and j != vertex), key=lambda j: j in numeric)
    likely_edges = [j for j in free if words[j] not in LIKELY_VERTICES]
    edge = min(likely_edges, key=lambda j: words[j] not in LIKELY_EDGES, default=None)
    if vertex is None:
        others = [j for j in free if j != edge]
        vertex = min(others, key=lambda j: words[j] not in LIKELY_VERTICES, default=None)
    named = {"--edge-column": edge, "--vertex-column": vertex}
    return " ".join(f"{option} {quoted(first[j])}" for option, j in named.items() if j is not None)


def quoted(text: str) -> str:
    """A text as it is typed in a shell, on one line."""
    return shlex.quote(text if text.isprintable() else text.encode("unicode_escape").decode())


def _refuse_header(lines: list[Line], name: str) -> None:
    """An error if the first line looks like a header: it would be read as an edge."""
    found = suspect_header([row for _, row in lines])
    if found is not None:
        reason, options = found
        number = lines[0][0]
        raise DataError(
            f"line {number} looks like a header {reason}, but has no columns 'edge' and 'vertex'. Say what it holds, "
            f"as in: biclique hypergraph info {quoted(name)} {options} (in Python edge_column=, vertex_column=, "
            f"separator=, header=). If a line is an edge: --header yes leaves line {number} out, --no-header keeps it."
        )


def _refuse_other_delimiters(lines: list[Line], delimiter: str) -> None:
    """An error if every line is one field with another delimiter inside.

    Spaces and commas may be parts of names: they must be in every line, or between whole numbers.
    """
    if any(any(row[1:]) for _, row in lines):
        return
    fields = [row[0] for _, row in lines]
    for other, plural in DELIMITERS.items():
        inside = [other in field for field in fields]
        if other == delimiter or not any(inside):
            continue
        whole = all(WHOLE.fullmatch(part.strip()) for field in fields for part in field.split(other) if part)
        if all(inside) or whole or other in ";\t|":
            listed = f"--vertex-column {quoted(fields[0])} " if not inside[0] and all(inside[1:]) and not whole else ""
            shown, usual = (f"'{mark}'".replace("\t", r"\t") for mark in (other, delimiter))
            raise DataError(
                f"line {lines[inside.index(True)][0]}: every line is one field between {DELIMITERS[delimiter]}, but "
                f"has {plural} inside: separate fields by {DELIMITERS[delimiter]}, or say what stands between names, "
                f"{listed}--separator {shown}. If {plural} are parts of names: --separator {usual} (in Python "
                "separator=)."
            )


# A table


def _table(lines: list[Line], columns: Columns) -> Iterator[Membership]:
    """What the rows of a table say, whose columns have names or numbers."""
    first = lines[0][1]
    vertex, edge, weight, count = _find_places(first, columns)
    below, what = (lines, "first line") if columns.header is False else (lines[1:], "header")
    for number, (line, row) in enumerate(below):
        if len(row) != len(first):
            raise DataError(f"line {line}: {len(row)} fields, the {what} has {len(first)}.")
        members: Row = (row[vertex],)
        if columns.separator is not None:
            fields = tuple(map(str.strip, row[vertex].split(columns.separator)))
            members = _filled(fields, line, "name") or ("",)
        owner = number if edge is None else row[edge]
        of_edge = "" if weight is None else row[weight]
        of_vertex = "" if count is None else row[count]
        for member in members:
            yield line, owner, member, of_edge, of_vertex


def _find_places(first: Row, columns: Columns) -> tuple[int, int | None, int | None, int | None]:
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
                raise DataError(f"the header has both {both}: rename one of them.")
            return found[0] if found else None
        found = [j for j, cell in enumerate(names) if column in (j, cell)]
        if len(found) != 1:
            problem = f"appears {len(found)} times: rename it" if found else "does not exist"
            hint = " Without a header, say --no-header: columns are numbers from 0."
            raise DataError(
                f"{option} (--{option.replace('_', '-')}) names column {column!r}, which {problem}; "
                f"columns: {shown}.{'' if found or columns.header is False else hint}"
            )
        return found[0]

    named = columns.named()
    plain = columns.edge_column is None and columns.vertex_column is None
    edge = place("edge_column", columns.edge_column, EDGE_WORDS)
    vertex = place("vertex_column", columns.vertex_column, VERTEX_WORDS)
    weight = place("weight_column", columns.weight_column, ("weight",) if plain else ())
    places = {"edge_column": edge, "vertex_column": vertex, "weight_column": weight}
    if len({places[option] for option in named}) < len(named):
        raise ParameterError(f"{', '.join(named)} must name different columns, got {named}.")
    if edge == vertex:  # a named column has the word for the other one
        edge, vertex = (edge, None) if columns.vertex_column is None else (None, vertex)
    if vertex is None:
        raise DataError(
            f"which column holds the vertices? Name it with --vertex-column (vertex_column=); columns: {shown}."
        )
    if edge is None and columns.separator is None:
        raise DataError(
            f"one vertex on each line needs the edges' column, --edge-column (edge_column=); columns: "
            f"{shown}. If a line is an edge and {names[vertex]!r} a list, say what stands between its names, such as "
            "--separator ';' (separator=)."
        )
    return vertex, edge, weight, place("", None, ("count",) if plain else ())


# From rows to a hypergraph


def _assembled(memberships: Iterable[Membership]) -> Hypergraph:
    """From the memberships of all lines; each of their fields may be missing."""
    weights: dict[str | int, float | None] = {}
    order: dict[str, None] = {}
    alone: dict[str, None] = {}
    edges, vertices, counts = [], [], []
    for line, edge, vertex, of_edge, of_vertex in memberships:
        weight = _number(of_edge, "weight", line) if of_edge else None
        count = _number(of_vertex, "count", line) if of_vertex else None
        if edge == "":
            if not vertex:
                raise DataError(f"line {line}: neither an edge nor a vertex.")
            if weight is not None or count is not None:
                raise DataError(f"line {line}: a vertex without an edge has no weight and no count.")
            order[vertex] = alone[vertex] = None
            continue
        before = weights.setdefault(edge, weight)
        if before is None:
            weights[edge] = weight
        elif weight not in (None, before):
            shown = f"{shortest(before)} above and {shortest(weight)} here"
            raise DataError(f"line {line}: edge {edge!r} has weight {shown}.")
        if vertex:
            if count is not None and count < 0:
                raise DataError(f"line {line}: the count must be 0 or more.")
            order[vertex] = None
            edges.append(edge)
            vertices.append(vertex)
            counts.append(1.0 if count is None else count)
        elif count is not None:
            raise DataError(f"line {line}: an edge without a vertex has no count.")
    names = list(alone if len(alone) == len(order) else order)
    if len(alone) < len(order) and isinstance(_names(names)[0], int):
        names.sort(key=int)
    known = {edge: 1.0 if weight is None else weight for edge, weight in weights.items()}
    found = from_memberships(edges, vertices, counts, known, names)
    return found.renamed(vertex_names=_names(names), edge_names=_names(list(known)))


def _number(field: str, what: str, line: int) -> float:
    value = parse_number(field)
    if value is None:
        raise DataError(f"line {line}: the {what} must be a finite number, got {field[:80]!r}.")
    return value


def _names(names: Sequence[str | int]) -> list[str] | list[int]:
    """Integers if all are, or are whole numbers in their usual spelling; else as they are."""
    texts = list(map(str, names))
    return list(map(int, texts)) if all(map(WHOLE.fullmatch, texts)) else texts


# Writing


def format_edge_list(hypergraph: Hypergraph, delimiter: str = ",") -> str:
    """The long layout, with ``weight`` and ``count`` if one of them differs from 1.

    Names must be all integers or all text, for vertices and for edges. Text that would come back as something else is
    refused: names that all look like whole numbers, an empty one, one with white space around it.
    """
    members, weights = hypergraph.members, hypergraph.weights
    vertices = _checked_names(hypergraph.vertex_names, "vertex")
    edges = _checked_names(hypergraph.edge_names, "edge")
    indices, counts, ends = (array.tolist() for array in (members.indices, members.data, members.indptr))
    rows: list[tuple[Any, ...]] = []
    for edge, weight, (start, end) in zip(edges, map(shortest, weights.tolist()), pairwise(ends), strict=True):
        inside: list[tuple[Any, ...]] = [
            (edge, vertices[indices[at]], weight, shortest(counts[at])) for at in range(start, end)
        ]
        rows += inside or [(edge, "", weight, "")]

    # Vertices that are in no edge have rows of their own at the end, or all have them at the top to keep their order.
    seen = dict.fromkeys(vertices[place] for place in indices)
    order = list(seen | dict.fromkeys(vertices))
    if vertices and not isinstance(hypergraph.vertex_names[0], str):
        order.sort(key=int)
    if order == vertices:
        rows += [("", vertex, "", "") for vertex in vertices if vertex not in seen]
    else:
        rows = [("", vertex, "", "") for vertex in vertices] + rows
    shown = [True, True, bool((weights != 1).any()), bool((members.data != 1).any())]
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    kept = [place for place, wanted in enumerate(shown) if wanted]
    writer.writerows(map(itemgetter(*kept), [("edge", "vertex", "weight", "count"), *rows]))
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
    if _names(texts) != listed:
        raise DataError(
            f"the {what} names are text that looks like whole numbers, such as {texts[0]!r}, and would come back as "
            f"integers: {advice}."
        )
    return texts
