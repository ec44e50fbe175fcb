"""Tables: CSV, Excel, .npy, .npz, Parquet and Zarr, whole and in parts."""

import gzip
import tempfile
import warnings
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np
from scipy import sparse

from biclique.exceptions import BicliqueError, TableWarning
from biclique.tables.frames import texts_of
from biclique.tables.preparer import TablePreparer
from biclique.tables.reading import open_lazily, read_frame
from tests.fuzz.campaign import Reader
from tests.fuzz.mutate import KINDS, members_of, npy_bytes, zipped

X = np.random.default_rng(0).normal(size=(40, 3)).round(3)


# Readers


def whole(path):
    """As a frame with ids, and as numbers if it has some."""
    frame = read_frame(path, texts=["name"])
    warnings.simplefilter("ignore", TableWarning)
    try:
        TablePreparer(categorical="auto", missing="drop", dates="ordinal").fit(frame)
    except BicliqueError as error:
        lines = str(error).splitlines()
        if not all(line.isprintable() for line in lines):
            raise RuntimeError(f"the message is not printable: {lines!r}") from error


def both(path):
    """Whole and in parts: what both read must be equal."""
    whole(path)
    found, made = read_frame(path), open_lazily(path).compute(scheduler="sync")
    if any(texts_of(found[name]) != texts_of(made[name]) for name in found.columns):
        raise RuntimeError("whole and in parts differ")


# Whole files


def texts():
    plain = "x,y,kind\n" + "".join(f"{i},{i * 0.5},{'ab'[i % 2]}\n" for i in range(40))
    full = "name,x,kind,y\n" + "".join(f'"n {i}",{i}e-1,{"ab"[i % 2]},{-i}.5\n' for i in range(40))
    quoted = '"long name";"a;b"\n' + "".join(f'"{i}";{i / 3}\n' for i in range(20))
    gaps = "0\t1\t2\n" + "".join(f"{i}\t{'NA' if i == 3 else i}\t{i}\r\n" for i in range(20))
    return [text.encode() for text in (plain, full, quoted, gaps, "1,2\n3,4\n")]


def packed_texts():
    return [gzip.compress(text) for text in texts()]


def npy():
    arrays = [X, np.asfortranarray(X), X.astype("f4"), X.astype(">i8"), X.astype("u1"), X > 0]
    return [npy_bytes(array) for array in arrays]


def npz():
    names = np.array([f"n{i}" for i in range(40)])
    several = {"X": X, "kind": np.arange(40) % 2, "name": names}
    archives = [{f"{name}.npy": npy_bytes(array) for name, array in several.items()}]
    archives.append({"only.npy": npy_bytes(X.astype("f4"))})
    for kind in ("csr", "csc", "coo"):
        file = BytesIO()
        sparse.save_npz(file, sparse.csr_array(np.where(X > 0, X, 0)).asformat(kind))
        archives.append(members_of(file.getvalue()))
    return [zipped(members, kind) for kind in KINDS for members in archives]


def parquet():
    import pandas as pd

    names = [f"n{i}" if i else None for i in range(40)]
    kinds = [["a", "b", None][i % 3] for i in range(40)]
    frames = [
        pd.DataFrame({"0": X[:, 0], "1": X[:, 1]}),
        pd.DataFrame({"name": names, "x": X[:, 0], "kind": kinds, "i": 2**60 + np.arange(40)}),
        pd.DataFrame({"x": X[:, 0].astype("f4"), "flag": X[:, 1] > 0, "1": np.arange(40, dtype="i1")}),
    ]
    options = ({"compression": None}, {"compression": "zstd"}, {"use_dictionary": False})
    return [frame.to_parquet(index=False, row_group_size=15, **how) for frame in frames for how in options]


def zarr():
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
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for number, options in enumerate(kinds):
            path = Path(folder) / f"{number}.zarr"
            zarr.create_array(path, shape=X.shape, chunks=(15, 3), dtype="<f8", **options)[:] = X
            made.append({str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()})
    return made


def excel():
    import pandas as pd

    file = BytesIO()
    frame = pd.DataFrame({"name": [f"n{i}" for i in range(40)], "x": X[:, 0], "day": pd.Timestamp("2024-01-31")})
    frame.to_excel(file, index=False)
    return [file.getvalue()]


TABLES = {
    "csv": Reader(texts, both, "table.csv"),
    "csv.gz": Reader(packed_texts, whole, "table.csv.gz"),
    "npy": Reader(npy, both, "table.npy"),
    "npz": Reader(npz, whole, "table.npz"),
    "parquet": Reader(parquet, both, "table.parquet"),
    "xlsx": Reader(excel, whole, "table.xlsx"),
}
if find_spec("zarr") is not None:
    TABLES["zarr"] = Reader(zarr, both, "table.zarr", folder=True)
