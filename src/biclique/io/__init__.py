"""Tables in, results out."""

from biclique.io.chunk_files import open_chunks
from biclique.io.chunks import ChunkSource, ScaledChunks, column_moments
from biclique.io.output import LabelWriter, atomic_path, check_output, write_labels, write_text
from biclique.io.tables import Roles, Table, read_table

__all__ = [
    "ChunkSource",
    "LabelWriter",
    "Roles",
    "ScaledChunks",
    "Table",
    "atomic_path",
    "check_output",
    "column_moments",
    "open_chunks",
    "read_table",
    "write_labels",
    "write_text",
]
