"""Tables in, results out."""

from biclique.io.output import atomic_path, check_output, write_labels, write_text
from biclique.io.tables import Roles, Table, read_table

__all__ = ["Roles", "Table", "atomic_path", "check_output", "read_table", "write_labels", "write_text"]
