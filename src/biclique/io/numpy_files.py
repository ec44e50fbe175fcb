"""NumPy's files: .npy and .npz whole, and .npy written. In chunks, .npy is read by ``chunks.py``."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from biclique.exceptions import BicliqueError, DataError, TableError, printable
from biclique.io.chunks import (
    HEADER_BYTES,
    Header,
    check_table_size,
    held,
    line,
    open_npy,
    read_header,
)
from biclique.io.fields import TextForm
from biclique.io.roles import Roles, Table, as_texts, feature_columns, numbered
from biclique.runtime import Tick


def read_numpy(path: Path, roles: Roles, limit: int, form: TextForm, tick: Tick | None = None) -> Table:
    """The table of a .npy or .npz file: its first bytes tell which, not its name."""
    with path.open("rb") as stream:
        beginning = stream.read(HEADER_BYTES)
    if beginning.startswith(b"PK"):
        return _read_npz(path, roles, limit)
    _needs_numbers(printable(path), read_header(printable(path), beginning))
    return held(open_npy)(path, roles, limit, form, tick)


# .npz


def _needs_numbers(name: str, header: Header) -> None:
    """Refuse an array that is not a table."""
    if len(header.shape) != 2 or header.dtype.kind not in "fiub":
        raise TableError(
            f"{name}: needs a two-dimensional array of numbers, got {len(header.shape)} dimensions of "
            f"{printable(header.dtype)}."
        )


def _read_npz(path: Path, roles: Roles, limit: int) -> Table:
    """The table of an .npz file; of its other arrays only those with a role are read."""
    name = printable(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _Archive(name, archive, limit).table(roles)
    except (BicliqueError, MemoryError, OSError):
        raise
    except Exception as error:  # zipfile and its decompressors raise what they like
        raise TableError(f"{name}: not a readable NumPy file ({line(error)}).") from error


class _Archive:
    """The arrays of an open .npz file."""

    def __init__(self, name: str, archive: zipfile.ZipFile, limit: int) -> None:
        self.name, self._archive, self._limit = name, archive, limit
        self._members = {m.filename.removesuffix(".npy"): m for m in archive.infolist() if not m.is_dir()}
        self._headers: dict[str, Header] = {}

    def table(self, roles: Roles) -> Table:
        """The array called X, or the only two-dimensional one, with the arrays that have a role."""
        key = self._table_key()
        header = self._header(key)
        _needs_numbers(self.name, header)
        n, width = header.shape
        with_role = [c for c in (roles.label, roles.id) if c is not None]
        extra = [c for c in with_role if c in self._members and c != key and self._header(c).shape == (n,)]
        needed = header.n_bytes + sum(2 * self._header(c).n_bytes for c in extra)
        check_table_size(self.name, n, width, len(with_role), self._limit, needed)
        columns = numbered(width)
        features = [j for j in feature_columns(self.name, columns + list(dict.fromkeys(extra)), roles) if j < width]
        X = self._array(key)

        def texts(wanted: str | None) -> list[str] | None:
            if wanted is None:
                return None
            values = self._array(wanted) if wanted in extra else X[:, columns.index(wanted)]
            return as_texts(values.tolist())

        values = X if len(features) == width else X[:, features]
        return Table(
            self.name,
            np.asarray(values, dtype=float),
            [columns[j] for j in features],
            np.arange(n),
            n,
            texts(roles.label),
            texts(roles.id),
        )

    def _table_key(self) -> str:
        if "X" in self._members:
            return "X"
        tables = [key for key in self._members if self._has_two_dimensions(key)]
        if len(tables) != 1:
            shown = sorted(self._members)[:20]
            raise TableError(
                f"{self.name}: needs an array called X or one two-dimensional array; it has {shown}"
                f"{' and more' if len(self._members) > 20 else ''}."
            )
        return tables[0]

    def _has_two_dimensions(self, key: str) -> bool:
        try:
            return len(self._header(key).shape) == 2
        except TableError:  # of an array that is not needed
            return False

    @contextmanager
    def _opened(self, key: str) -> Iterator[IO[bytes]]:
        member = self._members[key]
        if member.flag_bits & 1:
            raise TableError(f"{self.name}: the array {key!r} is encrypted; save it without a password.")
        with self._archive.open(member) as stream:
            yield stream

    def _header(self, key: str) -> Header:
        if key not in self._headers:
            with self._opened(key) as stream:
                self._headers[key] = read_header(f"{self.name}: the array {key!r}", stream.read(HEADER_BYTES))
        return self._headers[key]

    def _array(self, key: str) -> Any:
        """The numbers that the header promises, and no byte more is unpacked."""
        header, size = self._header(key), self._members[key].file_size
        if size - header.start != header.n_bytes:
            raise TableError(
                f"{self.name}: the array {key!r} has {size - header.start} bytes, its header promises "
                f"{header.n_bytes}; write it again."
            )
        raw = np.empty(header.n_bytes, dtype=np.uint8)
        done = 0
        with self._opened(key) as stream:
            stream.read(header.start)
            while piece := stream.read(2**20):  # at the end the checksum is compared
                raw[done : done + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
                done += len(piece)
        if done < header.n_bytes:
            raise TableError(f"{self.name}: the array {key!r} ends early; write it again.")
        return raw.view(header.dtype).reshape(header.shape, order="F" if header.fortran else "C")


class NpySink:
    """Labels as int64, behind a header that is written again when their number is known."""

    with_ids = False

    def __init__(self, path: Path, names: tuple[str, str]) -> None:  # noqa: ARG002
        self._file = path.open("wb")
        self._n_rows = 0
        self._start = self._header()

    def _header(self) -> int:
        self._file.seek(0)
        npy.write_array_header_1_0(
            self._file, {"descr": "<i8", "fortran_order": False, "shape": (self._n_rows,)}
        )  # numpy leaves room for the first axis to grow
        return self._file.tell()

    def write(self, keys: object, labels: NDArray[Any], kept: NDArray[np.bool_] | None = None) -> None:  # noqa: ARG002
        labels = labels if kept is None else np.where(kept, labels, -1)
        self._file.write(np.ascontiguousarray(labels, dtype="<i8").data)
        self._n_rows += len(labels)

    def close(self, kind: type[BaseException] | None, *_: object) -> None:
        with suppress(OSError) if kind is not None else nullcontext(), self._file:
            if kind is None and self._header() != self._start:
                raise DataError("this numpy leaves no room in the header of a .npy file; write another kind of file.")
