"""Parquet files, and folders of them, as Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from biclique.exceptions import TableError, printable
from biclique.tables.frames import pyarrow


def open_parquet(path: Path) -> Any:
    """A file or a folder of files, whose columns are not read yet."""
    parquet = pyarrow("pyarrow.parquet")
    if getattr(pyarrow().lib, "_py_extension_type_auto_load", False):
        raise TableError(
            f"{printable(path)}: not read, because pyarrow is set to run code that files hold; call "
            "pyarrow.PyExtensionType.set_auto_load(False) first."
        )
    return parquet.ParquetDataset(path, page_checksum_verification=True)


def columns_of(path: Path, schema: Any) -> list[str]:
    """The names of the columns: an index of pandas is none of them. Extension types are refused."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    names = [name for name in schema.names if name not in index]
    for name in names:
        extension = _extension_in(schema.field(name).type)
        if extension is not None:
            raise TableError(
                f"{printable(path)}: column {name!r} holds the extension type {printable(extension)}, which is not "
                f"read; store it as {printable(extension.storage_type)}."
            )
    return names


def _extension_in(kind: Any) -> Any:
    """An extension type, alone or inside lists and structures, or None."""
    pa = pyarrow()
    if isinstance(kind, pa.BaseExtensionType):
        return kind
    if pa.types.is_dictionary(kind):
        return _extension_in(kind.value_type)
    for i in range(kind.num_fields):
        found = _extension_in(kind.field(i).type)
        if found is not None:
            return found
    return None


def read_parquet(path: Path, texts: Sequence[str] = ()) -> Any:
    """The whole table; columns in ``texts`` as texts."""
    dataset = open_parquet(path)
    return with_texts(dataset.read(columns=columns_of(path, dataset.schema)), texts)


def with_texts(table: Any, names: Sequence[str]) -> Any:
    """The same table with these columns as texts, empty for null: whole numbers keep every digit."""
    pa = pyarrow()
    for j, name in enumerate(table.column_names):
        if name in names:
            texts = ["" if value is None else str(value) for value in table.column(j).to_pylist()]
            table = table.set_column(j, name, pa.array(texts, pa.string()))
    return table
