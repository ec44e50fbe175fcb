"""Tables in, numbers and labels out."""

from biclique.tables.preparer import TablePreparer
from biclique.tables.reading import read_table

__all__ = ["TablePreparer", "read_table"]
