"""Which column of an edge list is what, and when a first line looks like a header that nobody announced."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from biclique.exceptions import ParameterError, TableError
from biclique.hypergraph.files.lines import NUMBER
from biclique.runtime.arguments import check_flag

WHOLE = re.compile(r"0|-?[1-9][0-9]{0,999}")
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

MOST_ALONE = 0.2
"""If a larger share of the lines has names that occur nowhere else, a first line of that kind says nothing."""

Row = tuple[str, ...]


@dataclass(frozen=True)
class Columns:
    """What ``read_hypergraph`` was told about the columns of an edge list."""

    edge: str | int | None = None
    vertex: str | int | None = None
    weight: str | int | None = None
    separator: str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        for option, column in self.named().items():
            if isinstance(column, bool) or not isinstance(column, (str, int)):
                raise ParameterError(f"{option} must be the name of a column or its number from 0, got {column!r}.")
        if self.header is not None:
            check_flag("header", self.header)
            object.__setattr__(self, "header", bool(self.header))  # NumPy's booleans too
        separator = self.separator
        if separator is not None and (
            not isinstance(separator, str) or re.search('["\r\n]', separator) or not separator
        ):
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


@dataclass(frozen=True)
class Places:
    """The place of each column in a line; None for one that is not there."""

    edge: int | None
    vertex: int
    weight: int | None
    count: int | None


def is_known_header(first: Row) -> bool:
    """Whether a line has a word for the edge and one for the vertex."""
    words = {cell.lower() for cell in first}
    return not (words.isdisjoint(EDGE_WORDS) or words.isdisjoint(VERTEX_WORDS))


def find_places(first: Row, columns: Columns, name: str) -> Places:
    """The places of the columns that were named; of the others by the words that are known.

    ``weight`` and ``count`` are read without being named only if neither the edges' nor the vertices' column is named.
    """
    names = [str(j) for j in range(len(first))] if columns.header is False else list(first)
    words = [cell.lower() for cell in names]

    def place(option: str, column: str | int) -> int:
        found = [j for j, cell in enumerate(names) if column in (j, cell)]
        if len(found) != 1:
            problem = f"appears {len(found)} times" if found else "is not there"
            way = ": rename it" if found else ""
            number = (
                "" if columns.header is False else " Without a header, say --no-header: columns are numbers from 0."
            )
            raise TableError(
                f"{name}: {_spelled(option)} names column {column!r}, which {problem}{way}; columns: {_shown(names)}."
                f"{'' if found else number}"
            )
        return found[0]

    def known(*candidates: str) -> int | None:
        for word in candidates:
            if words.count(word) > 1:
                raise TableError(f"{name}: column {word!r} appears {words.count(word)} times in the header.")
        found = [word for word in candidates if word in words]
        if len(found) > 1:
            raise TableError(f"{name}: the header has both {found[0]!r} and {found[1]!r}: rename one of them.")
        return words.index(found[0]) if found else None

    places = {option: place(option, column) for option, column in columns.named().items()}
    if len(set(places.values())) < len(places):
        raise ParameterError(f"{', '.join(places)} must name different columns, got {columns.named()}.")
    plain = columns.edge is None and columns.vertex is None
    vertex = places.get("vertex_column", known(*VERTEX_WORDS) if columns.vertex is None else None)
    edge = places.get("edge_column", known(*EDGE_WORDS) if columns.edge is None else None)
    if edge is not None and edge == vertex:  # a word for the one was named as the other
        edge, vertex = (edge, None) if columns.vertex is None else (None, vertex)
    if vertex is None:
        raise TableError(
            f"{name}: which column holds the vertices? Name it with --vertex-column (vertex_column=); columns: "
            f"{_shown(names)}."
        )
    if edge is None and columns.separator is None:
        raise TableError(
            f"{name}: one vertex a line needs the edges' column, --edge-column (edge_column=); columns: "
            f"{_shown(names)}. If a line is an edge and {names[vertex]!r} a list, say what stands between its names, "
            "such as --separator ';' (separator=)."
        )
    count = known("count") if plain else None
    return Places(edge, vertex, places.get("weight_column", known("weight") if plain else None), count)


def _spelled(option: str) -> str:
    """``edge_column (--edge-column)``."""
    return f"{option} (--{option.replace('_', '-')})"


def _shown(names: Sequence[str]) -> str:
    return ", ".join(repr(cell[:80]) for cell in names[:20]) + (", …" if len(names) > 20 else "")


# A header that nobody announced


@dataclass(frozen=True)
class Suspicion:
    """Why a first line looks like a header, and the options that would read the table."""

    reason: str
    options: str


def suspect_header(rows: Sequence[Row]) -> Suspicion | None:
    """Why the first line looks like a header, or None.

    Always: all fields below are whole numbers, and none of its own is. Otherwise at least two lines must be below it,
    and its own fields must be names that differ and occur nowhere else. Then one of these is enough:

    - one of its words is known (``edge``, ``weight``, ``author``, ``…_id``, …).
    - Every line has as many fields, and a column below holds numbers only.
    - Every line has as many fields, and two fields of a column below hold a semicolon or a bar: lists of names.
    - Every line has as many fields, at least three are below, no name occurs in two columns, and at most a fifth of the
      lines below stand alone like this one. In a list of edges a vertex may stand in any place, so that names meet in
      several columns; and in a sparse one any line may be alone, the first too.
    """
    first, below = rows[0], rows[1:]
    own = [cell for cell in first if cell]
    if not below or not own:
        return None
    if not any(map(WHOLE.fullmatch, own)) and all(WHOLE.fullmatch(cell) for row in below for cell in row if cell):
        return Suspicion("above whole numbers", _options(first, []))
    if len(below) < 2 or len(set(own)) < len(own) or any(map(NUMBER.fullmatch, own)):
        return None
    if not set(own).isdisjoint(chain.from_iterable(below)):
        return None
    word = next(filter(HEADER_WORD.fullmatch, own), None)
    if len(first) < 2 or any(len(row) != len(first) for row in below):
        return None if word is None else Suspicion(f"with the word {word!r}", _options(first, []))
    columns = [[cell for cell in column if cell] for column in zip(*below, strict=True)]
    numeric = [j for j, cells in enumerate(columns) if cells and all(map(NUMBER.fullmatch, cells))]
    for mark in LIST_MARKS:
        lists = [j for j, cells in enumerate(columns) if sum(mark in cell for cell in cells) > 1 and first[j]]
        if lists and not any(mark in cell for cell in first):
            reason = f"above lists with {DELIMITERS[mark]} ({first[lists[0]]!r})"
            return Suspicion(reason, f"{_options(first, numeric, lists[0])} --separator {quoted_separator(mark)}")
    options = _options(first, numeric)
    if word is not None:
        return Suspicion(f"with the word {word!r}", options)
    for j in numeric:
        if first[j]:
            return Suspicion(f"above a column of numbers ({first[j]!r})", options)
    if len(below) >= FEW_LINES and _share_no_name(columns):
        once = {cell for cells in columns for cell, count in Counter(cells).items() if count == 1}
        alone = sum(once.issuperset(filter(None, row)) for row in below)
        if alone <= MOST_ALONE * len(below):
            return Suspicion("above columns that share no name", options)
    return None


def _share_no_name(columns: Sequence[Sequence[str]]) -> bool:
    """Whether no name occurs in two columns."""
    distinct = [set(cells) for cells in columns]
    return len(set().union(*distinct)) == sum(map(len, distinct))


def _options(first: Row, numeric: Sequence[int], vertex: int | None = None) -> str:
    """Options that would read the table: columns by words that are likely, else the first two without numbers."""
    words = [cell.lower() for cell in first]
    if {"source", "target"} <= set(words):
        return "--header yes"
    order = sorted((j for j, word in enumerate(words) if word), key=lambda j: j in numeric)
    if vertex is None:
        vertex = next((j for j in order if words[j] in LIKELY_VERTICES), None)
    edge = next((j for j in order if words[j] in LIKELY_EDGES and j != vertex), None)
    rest = [j for j in order if j not in (edge, vertex)]
    edge = rest.pop(0) if edge is None and rest else edge
    vertex = rest.pop(0) if vertex is None and rest else vertex
    named = {"--edge-column": edge, "--vertex-column": vertex}
    return " ".join(f"{option} {quoted(first[j])}" for option, j in named.items() if j is not None)


def quoted(text: str) -> str:
    """A text as it is typed in a shell, on one line."""
    return shlex.quote(text if text.isprintable() else text.encode("unicode_escape").decode())


def quoted_separator(separator: str) -> str:
    """A separator in quotes: ';' or ',' or '\\t'."""
    return f"'{separator}'".replace("\t", r"\t")
