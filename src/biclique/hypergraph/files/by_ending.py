"""Hypergraphs in files: HIF, hMetis and edge lists, by the ending of the name."""

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from io import BufferedReader
from pathlib import Path

from biclique.exceptions import DataError, MemoryLimitError, ParameterError, TableError, printable
from biclique.hypergraph.files.edge_list import Columns, format_edge_list, parse_edge_list
from biclique.hypergraph.files.hgr import format_hgr, parse_hgr
from biclique.hypergraph.files.hif import format_hif, parse_hif
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.runtime.arguments import check_flag
from biclique.runtime.memory import format_bytes, require_memory
from biclique.tables.atomic_files import FULL, atomic_path

FORMATS: dict[str, tuple[Callable[..., Hypergraph], Callable[[Hypergraph], str]]] = {
    ".json": (parse_hif, format_hif),
    ".hif": (parse_hif, format_hif),
    ".hgr": (parse_hgr, format_hgr),
    ".csv": (parse_edge_list, format_edge_list),
    ".tsv": (partial(parse_edge_list, delimiter="\t"), partial(format_edge_list, delimiter="\t")),
}
"""The reader and the writer by the ending of the name."""

TABLES = (".csv", ".tsv")
"""Edge lists, whose columns can be named."""

MARKS = b',;|:"{[ \t'
"""Bytes after which a text may have a new field: each becomes an object of Python."""

BYTES_PER_BYTE = 8
"""Memory for each byte of a text while it is read."""

BYTES_PER_MARK = 100
"""Memory for each mark besides; files of very short names decide."""

BYTES_PER_LINE = 700
"""Memory for each line besides."""

PIECE = 2**20
"""Bytes that are read, or unpacked, at once."""


def read_hypergraph(
    path: str | os.PathLike[str],
    *,
    edge_column: str | int | None = None,
    vertex_column: str | int | None = None,
    weight_column: str | int | None = None,
    separator: str | None = None,
    header: bool | None = None,
) -> Hypergraph:
    """A hypergraph from a file; one that cannot be read is a TableError that names the place and the reason.

    ``.json`` and ``.hif`` are HIF, ``.hgr`` is hMetis, ``.csv`` and ``.tsv`` are edge lists; each may end in ``.gz``
    besides. What is read and what is not kept: ``hif.parse_hif``, ``hgr.parse_hgr``, ``edge_list.parse_edge_list``.

    The other arguments are for edge lists. A table with the header ``paper,author,year`` and one line for each author
    of a paper: ``read_hypergraph("papers.csv", edge_column="paper", vertex_column="author")``. A table with the header
    ``title,authors`` and one line for each paper, such as ``Cuts,Ann;Bob;Cy``:
    ``read_hypergraph("papers.csv", vertex_column="authors", separator=";")``.

    Parameters
    ----------
    path : str or path
    edge_column, vertex_column : str or int, optional
        The columns of the edges and of the vertices: names in the header, or numbers from 0. By default ``edge`` and
        ``vertex``, and a few words like them.
    weight_column : str or int, optional
        The column of the edges' weights, which must be the same in all lines of an edge. By default ``weight``, if
        neither ``edge_column`` nor ``vertex_column`` is given.
    separator : str, optional
        What stands between the names of a list in the vertices' column. Without ``edge_column`` each line is an edge
        then. In a file without named columns it stands between the vertices of a line.
    header : bool, optional
        Whether the first line holds the names of columns. False: it is data, and the columns are called "0", "1", … .
        By default it does if columns are named; otherwise one that looks like a header is an error.

    A file that needs more memory than is free, unpacked and as a hypergraph, is a MemoryLimitError.
    """
    if header is not None:
        check_flag("header", header)
        header = bool(header)  # NumPy's booleans too
    columns = Columns(edge_column, vertex_column, weight_column, separator, header)
    suffix = _suffix(path, TableError)
    given = columns.given()
    if given and suffix not in TABLES:
        raise ParameterError(f"{', '.join(given)}: for edge lists ({', '.join(TABLES)}) only, and {path} is not one.")
    name = printable(path)
    options = {"columns": columns, "name": name} if suffix in TABLES else {}
    try:
        return FORMATS[suffix][0](_text(path), **options)
    except DataError as error:
        raise TableError(f"{name}: {error}") from error
    except MemoryLimitError as error:
        raise MemoryLimitError(f"{name}: {error}") from error


def write_hypergraph(hypergraph: Hypergraph, path: str | os.PathLike[str]) -> None:
    """Write a hypergraph, by the ending of the name as in ``read_hypergraph``; a complete file or none.

    Through a symbolic link the file that it points to is written.

    HIF keeps everything if names are text or integers. Edge lists keep everything if names are all integers or all
    text. hMetis files keep no names. What a format cannot hold is a DataError, before a file is made.
    """
    if isinstance(path, Hypergraph):
        raise ParameterError("the hypergraph comes first, as in XGI: write_hypergraph(hypergraph, path).")
    suffix = _suffix(path, DataError)
    if not isinstance(hypergraph, Hypergraph):
        raise DataError(f"a Hypergraph is needed, got a {type(hypergraph).__name__}: make one with as_hypergraph.")
    content = FORMATS[suffix][1](hypergraph).encode("utf-8")
    if str(path).lower().endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    try:
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in FULL:
            raise  # a full disk says nothing about the hypergraph
        raise DataError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}).") from error


def _suffix(path: str | os.PathLike[str], kind: type[DataError]) -> str:
    """The ending of the name that says the format."""
    try:
        name = os.fspath(path)
    except TypeError as error:
        raise kind(f"a path is needed, got a {type(path).__name__}.") from error
    suffix = Path(str(name).lower().removesuffix(".gz")).suffix
    if suffix not in FORMATS:
        raise kind(f"{path}: unknown kind of hypergraph file; the name must end in one of {', '.join(FORMATS)}.")
    return suffix


def _text(path: str | os.PathLike[str]) -> str:
    """The text of a file."""
    try:
        with gzip.open(path) if str(path).lower().endswith(".gz") else Path(path).open("rb") as file:
            text = b"".join(_pieces(file)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"not a text file in UTF-8 (byte {error.start}).") from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DataError(f"cannot be read ({getattr(error, 'strerror', None) or error}).") from error
    if not text or text.isspace():
        raise DataError("the file is empty.")
    if "\0" in text:
        raise DataError(f"character {text.index(chr(0))} is a NUL; this is not a text file in UTF-8.")
    return text


def _pieces(file: gzip.GzipFile | BufferedReader) -> Iterator[bytes]:
    """The bytes of a file, unpacked piece by piece: it ends as soon as the hypergraph would not fit the memory."""
    size = needed = 0
    while piece := file.read(PIECE):
        size += len(piece)
        marks = len(piece) - len(piece.translate(None, MARKS))
        lines = max(piece.count(b"\n"), piece.count(b"\r"))
        needed += BYTES_PER_BYTE * len(piece) + BYTES_PER_MARK * marks + BYTES_PER_LINE * lines
        what = f"the hypergraph of the first {format_bytes(size)} of text"
        require_memory(needed, what, "read a part of the file.")
        yield piece
