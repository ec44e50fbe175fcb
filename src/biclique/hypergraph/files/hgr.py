"""Hypergraphs as hMetis .hgr files."""

from itertools import chain

import numpy as np
from scipy import sparse

from biclique.exceptions import DataError
from biclique.hypergraph.files.lines import WHOLE, parse_number, shortest
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.runtime.memory import require_memory

SPARE_VERTICES = 10**6
"""Isolated vertices that a header may announce, beside a hundred for every vertex in an edge."""

BYTES_PER_VERTEX = 64
"""Of the arrays that have an entry for every vertex, while names are checked."""

LARGEST_TOTAL = 10**8
"""Vertices that a file may name, repeated ones each time."""


def parse_hgr(text: str) -> Hypergraph:
    """``n_edges n_vertices [fmt]``, then one edge on each line, its vertices counted from 1; % starts a comment line.

    fmt 1: the weight of the edge comes first on its line; 10: ``n_vertices`` lines with vertex weights follow; 11 is
    both. Vertices are named 1, …, n_vertices. A vertex twice on a line counts twice. Vertex weights are checked and
    dropped.
    """
    lines = [
        (number, tuple(line.split()))  # tuples, which the garbage collector does not walk through again and again
        for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1)
        if line.strip() and not line.lstrip().startswith("%")
    ]
    if not lines:
        raise DataError("the file is empty.")
    (head, header), body = lines[0], lines[1:]
    n_edges, n_vertices, edge_weights, vertex_weights = _hgr_header(head, header)
    expected = n_edges + (n_vertices if vertex_weights else 0)
    if len(body) < expected:
        raise DataError(
            f"the file ends at line {lines[-1][0]}: the header announces {expected} lines, got {len(body)}; "
            "blank lines do not count, as the format has no edges without vertices."
        )
    if len(body) > expected:
        raise DataError(f"line {body[expected][0]} is one too many: the header announces {expected} lines.")
    announced = f"line {head} announces {n_vertices} vertices"
    if n_vertices > SPARE_VERTICES + 100 * sum(len(fields) for _, fields in body):
        raise DataError(f"{announced}, far more than the edges hold: is it right?")
    require_memory(BYTES_PER_VERTEX * n_vertices, f"{announced}, which", "is that number right?")
    for number, fields in body[n_edges:]:
        if len(fields) != 1:
            raise DataError(f"line {number} must be the weight of one vertex, got {len(fields)} fields.")
        _hgr_weight(fields[0], number)

    weights = np.ones(n_edges)
    edges: list[tuple[str, ...]] = []
    known: set[str] = set()
    for edge, (number, fields) in enumerate(body[:n_edges]):
        if edge_weights:
            weights[edge], fields = _hgr_weight(fields[0], number), fields[1:]
        if not fields:
            raise DataError(f"line {number} has a weight and no vertices.")
        for vertex in fields:
            if vertex not in known and not (WHOLE.fullmatch(vertex) and 1 <= int(vertex) <= n_vertices):
                raise DataError(
                    f"line {number}: vertices must be whole numbers from 1 to {n_vertices}, got {vertex[:80]!r}."
                )
        known.update(fields)
        edges.append(fields)
    indices = np.array(list(map(int, chain.from_iterable(edges))), dtype=np.int64) - 1
    indptr = np.cumsum([0, *map(len, edges)])
    counts = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(n_edges, n_vertices))
    return Hypergraph(counts, weights, np.arange(1, n_vertices + 1))


def _hgr_header(number: int, fields: tuple[str, ...]) -> tuple[int, int, bool, bool]:
    """Edges, vertices, and whether edges and vertices have weights."""
    if len(fields) not in (2, 3) or not all(field.isascii() and field.isdigit() for field in fields):
        raise DataError(f"line {number} must be 'n_edges n_vertices [fmt]', got {' '.join(fields)[:80]!r}.")
    if max(map(len, fields)) > 18:
        raise DataError(f"line {number} announces more edges or vertices than fit into memory.")
    kind = int(fields[2]) if len(fields) == 3 else 0
    if kind not in (0, 1, 10, 11):
        raise DataError(f"line {number}: the format code must be 1, 10 or 11, got {fields[2]!r}.")
    return int(fields[0]), int(fields[1]), kind % 10 == 1, kind >= 10


def _hgr_weight(field: str, number: int) -> float:
    value = parse_number(field)
    if value is None or value < 0:
        raise DataError(f"line {number}: weights must be numbers, 0 or more, got {field[:80]!r}.")
    return value


def format_hgr(hypergraph: Hypergraph) -> str:
    """The text that ``parse_hgr`` reads; vertices by their position from 1, so names are lost.

    Edge weights are written if one differs from 1, and vertices that repeat are repeated, up to 10⁸ in all.
    """
    members, weights = hypergraph.members, hypergraph.weights
    if not hypergraph.has_whole_counts:
        raise DataError("an .hgr file holds whole multiplicities only: write .json or .csv.")
    if (weights < 0).any():
        raise DataError("an .hgr file holds no negative weights: write .json or .csv.")
    empty = np.flatnonzero(np.diff(members.indptr) == 0)
    if len(empty):
        raise DataError(
            f"an .hgr file holds no edges without vertices, and {len(empty)} have none, the first being "
            f"{hypergraph.edge_names.item(empty[0])!r}: drop them with "
            "hypergraph.restricted(range(hypergraph.n_vertices)), or write .json or .csv."
        )
    total = float(members.data.sum())
    if total > LARGEST_TOTAL:
        raise DataError(
            f"an .hgr file names a vertex as often as it is in its edge, {total:.3g} times in all, which is more than "
            f"{LARGEST_TOTAL:.0e}: write .json or .csv, which hold the numbers."
        )
    header, places = f"{hypergraph.n_edges} {hypergraph.n_vertices}", range(1, hypergraph.n_vertices + 1)
    lines = [" ".join(map(str, edge)) for edge in hypergraph.renamed(vertex_names=places).edges()]
    if (weights != 1).any():
        header += " 1"
        lines = [f"{shortest(weight)} {line}" for weight, line in zip(weights.tolist(), lines, strict=True)]
    return "\n".join([header, *lines, ""])
