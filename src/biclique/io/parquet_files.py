"""Parquet: the feature columns of a file, or of a folder of files, a batch of rows at a time; and labels written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique.exceptions import BicliqueError, TableError
from biclique.io.arrow import import_pyarrow
from biclique.io.chunks import (
    CHUNK_ROWS,
    TEXT_BYTES,
    DType,
    FileChunks,
    Raw,
    check_table_size,
    guard,
    line,
    stamp,
    working_dtype,
)
from biclique.io.fields import Kind, TextForm
from biclique.io.roles import A_ROLE, DROP, Roles, as_texts, check_names, feature_columns
from biclique.io.typed_columns import Column, TypedTable, arrow_kind, of_arrow
from biclique.runtime import Tick

GROUP_ROWS = 2**20  # rows of a group in a file that is written
BUFFER = 2**18  # bytes read ahead of each column


class ParquetChunks(FileChunks):
    """The feature columns of a Parquet file, a batch of rows at a time; nulls are NaN.

    With ``folders`` also those of a folder of files with the same columns, in the order of their names. pyarrow reads
    ahead there, so folders are for tables that fit memory. Extension types are refused: what they mean is up to code
    that a file can name.
    """

    def __init__(
        self, path: Path, roles: Roles | None = None, memory_limit: object = "auto", *, folders: bool = False
    ) -> None:
        import_pyarrow()
        self._folder = folders
        super().__init__(path, memory_limit)
        with self._opened() as file:
            self._schema = file.schema_arrow
            self._n_rows = file.metadata.num_rows
        self.columns, self.dtype = self._features(self._schema, roles or Roles())
        self.n_columns = len(self.columns)
        self._check_rows()

    def _features(self, schema: Any, roles: Roles) -> tuple[list[str], DType]:
        """The names of the feature columns, and a type that fits all of them."""
        names = list(schema.names)
        columns = [names[j] for j in feature_columns(self.name, names, roles)]
        kinds = {name: schema.field(j).type for j, name in enumerate(names)}
        for name in (roles.label, roles.id):
            if name is not None:
                self._refuse_extension(name, kinds[name])
        return columns, np.result_type(np.float32, *{self._kind(name, kinds[name]) for name in columns})

    def _kind(self, name: str, kind: Any) -> DType:
        types = import_pyarrow().types
        self._refuse_extension(name, kind)
        if types.is_decimal(kind):
            return np.dtype(np.float64)
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
            return working_dtype(np.dtype(kind.to_pandas_dtype())) or np.dtype(np.float64)
        raise TableError(
            f"{self.name}: column {name!r} holds {line(kind)}, not numbers. If it holds classes or names, say so with ",
            *A_ROLE,
            ".",
        )

    def _refuse_extension(self, name: str, kind: Any) -> None:
        found = _extension_in(import_pyarrow(), kind)
        if found is not None:
            raise TableError(
                f"{self.name}: column {name!r} holds the extension type {line(found)}, which is not read; store it as "
                f"{line(found.storage_type)}, or leave it out with ",
                DROP,
                ".",
            )

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        pyarrow = import_pyarrow()
        if getattr(pyarrow.lib, "_py_extension_type_auto_load", False):
            raise TableError(
                f"{self.name}: not read, because pyarrow was told to run code that files hold; call "
                "pyarrow.PyExtensionType.set_auto_load(False) first."
            )
        with guard(self.name):
            self._check_same(stamp(self._path, self._stamp))
            try:
                with self._open(pyarrow) as file:
                    yield file
            except (BicliqueError, MemoryError, FileNotFoundError, Warning):
                raise
            except Exception as error:  # also what Python makes of texts and dates that are damaged
                raise TableError(f"{self.name}: not a readable Parquet file ({line(error)}).") from error

    def _open(self, pyarrow: Any) -> Any:
        if self._path.is_dir():
            return _open_folder(self._path)
        return pyarrow.parquet.ParquetFile(
            self._path,
            pre_buffer=False,  # True, the default, ends up holding the whole file in memory
            buffer_size=BUFFER,
            page_checksum_verification=True,
        )

    def texts(self, name: str) -> Iterator[list[str]]:
        """One fresh pass over any column of the file, as texts."""
        with self._opened() as file:
            for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=[name]):
                yield as_texts(batch.column(0).to_pylist())

    def _pieces(self, rows: int) -> Iterator[Raw]:
        columns = self.columns or []
        rows = max(1, min(rows, self._n_rows or 0))
        self._check_memory(rows, 2 * self.n_columns * self.dtype.itemsize)
        with self._opened() as file:
            if not file.schema_arrow.equals(self._schema):
                raise TableError(f"{self.name}: the file has other columns than when it was opened; open it again.")
            buffer = np.empty((rows, self.n_columns), dtype=self.dtype)
            for batch in file.iter_batches(batch_size=rows, columns=columns):
                out = buffer[: batch.num_rows]
                for j, name in enumerate(columns):
                    out[:, j] = self._numbers(batch.column(name))
                yield out

    def _numbers(self, column: Any) -> Raw:
        """A column as floats: NaN for nulls, and the nearest float64 of large integers and of decimals."""
        pyarrow = import_pyarrow()
        floats: Raw = column.cast(pyarrow.from_numpy_dtype(self.dtype), safe=False).to_numpy(zero_copy_only=False)
        return floats


class ParquetColumns(ParquetChunks):
    """Every column of a file, of any type, with its kind."""

    def __init__(
        self,
        path: Path,
        form: TextForm,  # noqa: ARG002
        memory_limit: int,
        tick: Tick | None = None,  # noqa: ARG002
        *,
        folders: bool = False,
    ) -> None:
        super().__init__(path, Roles(), memory_limit, folders=folders)

    def _features(self, schema: Any, roles: Roles) -> tuple[list[str], DType]:  # noqa: ARG002
        names = list(schema.names)
        check_names(self.name, names)
        self._kinds = {}
        for j, name in enumerate(names):
            self._refuse_extension(name, schema.field(j).type)
            self._kinds[name] = arrow_kind(schema.field(j).type)
        return names, np.dtype(np.float64)

    @property
    def kinds(self) -> dict[str, Kind]:
        """What each column holds, by its name."""
        return self._kinds

    def column_chunks(self, rows: int) -> Iterator[TypedTable]:
        """One fresh pass over tables of at most ``rows`` rows."""
        texts = sum(kind == "text" for kind in self._kinds.values())
        size = min(rows, self._n_rows or 0)
        self._check_memory(size, 16 * (self.n_columns - texts) + 2 * TEXT_BYTES * texts)
        done = 0
        with self._opened() as file:
            if not file.schema_arrow.equals(self._schema):
                raise TableError(f"{self.name}: the file has other columns than when it was opened; open it again.")
            for batch in file.iter_batches(batch_size=rows, columns=list(self._kinds)):
                columns = tuple(of_arrow(name, batch.column(name)) for name in self._kinds)
                yield TypedTable(self.name, columns, batch.num_rows, done)
                done += batch.num_rows

    def whole(self) -> TypedTable:
        """All of it."""
        n, texts = self._n_rows or 0, sum(kind == "text" for kind in self._kinds.values())
        check_table_size(self.name, n, self.n_columns - texts, texts, self.memory_limit)
        parts = list(self.column_chunks(self.block_rows))
        columns = tuple(Column.joined([part.columns[j] for part in parts]) for j in range(self.n_columns))
        return TypedTable(self.name, columns, n)


def read_parquet_columns(path: Path, form: TextForm, limit: int, tick: Tick | None = None) -> TypedTable:
    """Every column of a file or of a folder of files."""
    return ParquetColumns(path, form, limit, tick, folders=True).whole()


def _open_folder(path: Path) -> AbstractContextManager[Any]:
    """A folder, with the names that a ParquetFile has."""
    dataset = import_module("pyarrow.dataset")
    options = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    data = dataset.dataset(
        path,
        format=dataset.ParquetFileFormat(default_fragment_scan_options=options),
        partitioning=dataset.HivePartitioning.discover(infer_dictionary=True),
    )
    metadata = SimpleNamespace(num_rows=data.count_rows())
    return nullcontext(SimpleNamespace(schema_arrow=data.schema, metadata=metadata, iter_batches=data.to_batches))


def _extension_in(pyarrow: Any, kind: Any) -> Any:
    """An extension type, alone or inside lists and structures, or None."""
    if isinstance(kind, pyarrow.BaseExtensionType):
        return kind
    if pyarrow.types.is_dictionary(kind):
        return _extension_in(pyarrow, kind.value_type)
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    return next((found for found in (_extension_in(pyarrow, k) for k in inner) if found is not None), None)


class ParquetSink:
    """Two columns, in groups of rows of the size that pyarrow makes."""

    with_ids = True

    def __init__(self, path: Path, names: tuple[str, str]) -> None:
        self._pa = import_pyarrow()
        self._path, self._names = path, names
        self._writer: Any = None
        self._waiting: Any = None  # fewer rows than a group

    def write(
        self, keys: NDArray[Any] | list[str], labels: NDArray[Any], kept: NDArray[np.bool_] | None = None
    ) -> None:
        keys = self._pa.array(keys) if isinstance(keys, np.ndarray) else self._pa.array(keys, type=self._pa.string())
        arrays = [keys, self._pa.array(labels, mask=None if kept is None else ~kept)]
        if self._waiting is None:
            table = self._pa.table(arrays, names=list(self._names))
        else:
            schema = self._waiting.schema
            columns = [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)]
            table = self._pa.concat_tables([self._waiting, self._pa.table(columns, schema=schema)])
        whole = len(table) - len(table) % GROUP_ROWS
        if whole:
            self._put(table[:whole])
        self._waiting = table[whole:]

    def _put(self, table: Any) -> None:
        if self._writer is None:
            self._writer = self._pa.parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table.combine_chunks(), row_group_size=GROUP_ROWS)

    def close(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            if self._waiting is None:
                self.write(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
            if len(self._waiting) or self._writer is None:
                self._put(self._waiting)
        if self._writer is not None:
            with suppress(OSError) if kind is not None else nullcontext():
                self._writer.close()
