"""Tables in, results out."""

from biclique.io.chunk_files import column_texts, hold, is_chunk_file, is_zarr, open_chunks
from biclique.io.chunks import (
    CHUNK_ROWS,
    ArrayChunks,
    ChunkSource,
    FiniteChunks,
    ScaledChunks,
    column_moments,
)
from biclique.io.output import LabelWriter, atomic_path, check_output, check_target, write_labels, write_text
from biclique.io.roles import Roles, Table
from biclique.io.tables import read_table

__all__ = [
    "CHUNK_ROWS",
    "ArrayChunks",
    "ChunkSource",
    "FiniteChunks",
    "LabelWriter",
    "Roles",
    "ScaledChunks",
    "Table",
    "atomic_path",
    "check_output",
    "check_target",
    "column_moments",
    "column_texts",
    "hold",
    "is_chunk_file",
    "is_zarr",
    "open_chunks",
    "read_table",
    "write_labels",
    "write_text",
]
