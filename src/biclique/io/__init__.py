"""Tables in, results out."""

from biclique.io.chunks import (
    CHUNK_ROWS,
    FORMATS,
    ChunkSource,
    TableFormat,
    find_format,
    formats,
    hold,
    listed,
    writers,
)
from biclique.io.fields import TextForm
from biclique.io.label_files import LabelWriter, check_output, write_labels
from biclique.io.prepare import TablePreparer
from biclique.io.roles import Roles, Table
from biclique.io.sources import ArrayChunks, FiniteChunks, ScaledChunks, column_moments
from biclique.io.tables import is_chunked, open_chunks, open_columns, read_columns, read_table
from biclique.io.typed_columns import Column, ColumnSource, TypedTable, as_columns
from biclique.runtime.namespace import is_dask
from biclique.tables.atomic_files import atomic_path, check_target, write_text

__all__ = [
    "CHUNK_ROWS",
    "FORMATS",
    "ArrayChunks",
    "ChunkSource",
    "Column",
    "ColumnSource",
    "FiniteChunks",
    "LabelWriter",
    "Roles",
    "ScaledChunks",
    "Table",
    "TableFormat",
    "TablePreparer",
    "TextForm",
    "TypedTable",
    "as_columns",
    "atomic_path",
    "check_output",
    "check_target",
    "column_moments",
    "find_format",
    "formats",
    "hold",
    "is_chunked",
    "is_dask",
    "listed",
    "open_chunks",
    "open_columns",
    "read_columns",
    "read_table",
    "write_labels",
    "write_text",
    "writers",
]
