"""Tables: CSV, TSV, .npy, .npz, Parquet and Zarr, whole and in chunks."""

from __future__ import annotations

import gzip
import tempfile
import zipfile
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np

from biclique.exceptions import BicliqueError
from biclique.io import Roles, Table, hold, open_chunks, read_table
from tests.fuzz.campaign import Reader
from tests.fuzz.mutate import Files

LIMIT = 2**26  # bytes that a table may take
ROLES = [Roles(), Roles(label="kind", id="name"), Roles(label="1"), Roles(drop=["0"])]
X = np.random.default_rng(0).normal(size=(40, 3)).round(3)


# Readers


def whole(path: Path) -> list[Table | None]:
    """The table for each set of roles, or None where it is refused; if all are refused, the first reason is raised."""
    tables: list[Table | None] = []
    reasons: list[BicliqueError] = []
    for roles in ROLES:
        try:
            tables.append(read_table(path, roles, memory_limit=LIMIT))
        except BicliqueError as error:
            if not str(error).isprintable():
                raise
            tables.append(None)
            reasons.append(error)
    if len(reasons) == len(ROLES):
        raise reasons[0]
    return tables


def in_chunks(path: Path, roles: Roles) -> Table:
    """The same table from passes over chunks."""
    source = open_chunks(path, roles=roles, memory_limit=LIMIT)
    if (source.n_rows or 0) * source.n_columns > 10**6:
        raise BicliqueError("long enough")
    rows = np.concatenate([np.array(chunk) for chunk in source.chunks(7)])
    label, key = (
        None if name is None else [text for texts in source.texts(name) for text in texts]
        for name in (roles.label, roles.id)
    )
    return Table(source.name, rows, source.columns or [], np.arange(len(rows)), len(rows), label, key)


def both(path: Path) -> None:
    """Whole and in chunks: what both read must be equal."""
    streamed: list[Table | None] = []
    for roles in ROLES:
        try:
            streamed.append(in_chunks(path, roles))
        except BicliqueError as error:
            streamed.append(None)
            if not str(error).isprintable():
                raise
    for one, other in zip(whole(path), streamed, strict=True):
        if one is not None and other is not None:
            same = np.array_equal(one.X, other.X) and (one.labels, one.ids) == (other.labels, other.ids)
            if not same:
                raise RuntimeError(f"whole {one} and in chunks {other}")


def zarr_both(path: Path) -> None:
    """Whole and in chunks, for a folder."""
    streamed = in_chunks(path, Roles())
    table = hold(open_chunks(path, memory_limit=LIMIT), Roles(), memory_limit=LIMIT)
    if not np.array_equal(table.X, streamed.X):
        raise RuntimeError("whole and in chunks differ")


# Whole files


def texts() -> list[Files]:
    plain = "x,y,kind\n" + "".join(f"{i},{i * 0.5},{'ab'[i % 2]}\n" for i in range(40))
    full = "name,x,kind,y\n" + "".join(f'"n {i}",{i}e-1,{"ab"[i % 2]},{-i}.5\n' for i in range(40))
    quoted = '"long name";"a;b"\n' + "".join(f'"{i}";{i / 3}\n' for i in range(20))
    gaps = "0\t1\t2\n" + "".join(f"{i}\t{'NA' if i == 3 else i}\t{i}\r\n" for i in range(20))
    return [{"": text.encode()} for text in (plain, full, quoted, gaps, "1,2\n3,4\n")]


def zipped() -> list[Files]:
    return [{"": gzip.compress(files[""])} for files in texts()]


def npy() -> list[Files]:
    arrays = [X, np.asfortranarray(X), X.astype("f4"), X.astype(">i8"), X.astype("u1"), X > 0]
    return [{"": _bytes_of(array)} for array in arrays]


def _bytes_of(array: np.ndarray) -> bytes:
    file = BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz() -> list[Files]:
    names = np.array([f"n{i}" for i in range(40)])
    made: list[Files] = []
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        for arrays in ({"X": X, "kind": np.arange(40) % 2, "name": names}, {"only": X.astype("f4")}):
            file = BytesIO()
            with zipfile.ZipFile(file, "w", kind) as archive:
                for name, array in arrays.items():
                    archive.writestr(f"{name}.npy", _bytes_of(array))
            made.append({"": file.getvalue()})
    return made


def parquet() -> list[Files]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = pa.array([f"n{i}" if i else None for i in range(40)])
    kinds = pa.array([["a", "b", None][i % 3] for i in range(40)])
    whole_numbers = pa.array([2**60 + i for i in range(40)])
    tables = [
        pa.table({"0": X[:, 0], "1": X[:, 1]}),
        pa.table({"name": names, "x": X[:, 0], "kind": kinds, "i": whole_numbers}),
        pa.table({"x": X[:, 0].astype("f4"), "flag": X[:, 1] > 0, "1": pa.array(range(40), pa.int8())}),
    ]
    made: list[Files] = []
    for table in tables:
        for options in ({"compression": "none"}, {"compression": "zstd"}, {"use_dictionary": False}):
            file = BytesIO()
            pq.write_table(table, file, row_group_size=15, **options)
            made.append({"": file.getvalue()})
    return made


def zarr() -> list[Files]:
    import zarr
    from numcodecs import LZ4, Blosc, Delta, Zlib

    kinds = [
        {"zarr_format": 3},
        {"zarr_format": 3, "compressors": zarr.codecs.GzipCodec()},
        {"zarr_format": 3, "compressors": [zarr.codecs.BloscCodec(), zarr.codecs.Crc32cCodec()]},
        {"zarr_format": 3, "shards": (30, 3)},
        {"zarr_format": 2},
        {"zarr_format": 2, "compressors": Blosc()},
        {"zarr_format": 2, "compressors": Zlib(), "filters": [Delta("<f8")]},
        {"zarr_format": 2, "compressors": LZ4(), "order": "F"},
        {"zarr_format": 2, "compressors": None},
    ]
    made: list[Files] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, options in enumerate(kinds):
            path = Path(folder) / f"{number}.zarr"
            zarr.create_array(path, shape=X.shape, chunks=(15, 3), dtype="<f8", **options)[:] = X
            made.append({str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()})
    return made


READERS = {
    "csv": Reader(texts, both, "table.csv"),
    "csv.gz": Reader(zipped, both, "table.csv.gz"),
    "npy": Reader(npy, both, "table.npy"),
    "npz": Reader(npz, whole, "table.npz"),
}
if find_spec("pyarrow") is not None:
    READERS["parquet"] = Reader(parquet, both, "table.parquet")
if find_spec("zarr") is not None:
    READERS["zarr"] = Reader(zarr, zarr_both, "table.zarr", folder=True)
