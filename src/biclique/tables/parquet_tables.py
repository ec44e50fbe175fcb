"""Parquet files, and folders of them."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from biclique.exceptions import TableError, printable
from biclique.tables.frames import from_arrow, pyarrow
from biclique.tables.parts import Parts
from biclique.tables.text_form import TextForm


def read_parquet(path: Path, form: TextForm, texts: Collection[str]) -> Any:  # noqa: ARG001
    """The whole table as a frame."""
    dataset = open_parquet(path)
    table = dataset.read(columns=columns_of(dataset.schema, texts))
    check_rows(path, rows_of(path, dataset), table.num_rows)
    return from_arrow(table)


def open_groups(path: Path, form: TextForm, texts: Collection[str]) -> Parts:  # noqa: ARG001
    """The groups of rows of a file, or of a folder of files."""
    dataset = open_parquet(path)
    rows_of(path, dataset)
    schema, columns = dataset.schema, columns_of(dataset.schema, texts)
    groups = [group for fragment in dataset.fragments for group in fragment.split_by_row_group()]
    if not groups:
        raise TableError(f"{printable(path)}: the table has no rows.")
    places = [(Path(group.path), group, schema, columns) for group in groups]
    return read_group, places, from_arrow(schema.empty_table().select(columns))


def read_group(path: Path, group: Any, schema: Any, columns: list[str]) -> Any:
    """One group of rows as a frame."""
    table = group.to_table(schema=schema, columns=columns)
    check_rows(path, sum(part.num_rows for part in group.row_groups), table.num_rows)
    return from_arrow(table)


def open_parquet(path: Path) -> Any:
    """A file or a folder of files, whose columns are not read yet."""
    return pyarrow("pyarrow.parquet").ParquetDataset(path, page_checksum_verification=True)


def rows_of(path: Path, dataset: Any) -> int:
    """The rows that the footers promise, if each says the same of the file and of its groups."""
    total = 0
    for fragment in dataset.fragments:
        footer = fragment.metadata
        check_rows(path, footer.num_rows, sum(footer.row_group(i).num_rows for i in range(footer.num_row_groups)))
        total += footer.num_rows
    return total


def check_rows(path: Path, promised: int, found: int) -> None:
    """Refuse a file whose footer lies."""
    if promised != found:
        raise TableError(f"{printable(path)}: its footer promises {promised} rows, it has {found}: write it again.")


def columns_of(schema: Any, texts: Collection[str]) -> list[str]:
    """The names of the columns: an index of pandas is none of them, unless ``texts`` names it, as ids."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in index or name in texts]
