import os
import re
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pytest
from numpy.lib import format as npy
from sklearn.base import clone

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import DataError, MissingExtraError, ParameterError, TableError
from biclique.io import (
    ChunkSource,
    Roles,
    ScaledChunks,
    column_moments,
    is_chunked,
    open_chunks,
    read_table,
    zarr_files,
)
from biclique.runtime.draws import draw_numbers
from tests.optional import Optional, needs

pd = Optional("pandas")
pl = Optional("polars")
pa = Optional("pyarrow")
pq = Optional("pyarrow.parquet")


def rows(n, d=3, dtype=np.float32, seed=0):
    X = (np.random.RandomState(seed).randn(n, d) * 50).astype(dtype)
    X.setflags(write=False)
    return X


def whole(source, size=64, **options):
    return np.concatenate([np.array(chunk) for chunk in source.chunks(size, **options)])


def use_up(source, size=64):
    for _ in source.chunks(size):
        pass


# Each of these holds the rows of an array in another way.


def as_array(X, folder):
    return X


def as_strided(X, folder):
    wide = np.repeat(np.repeat(X, 2, axis=1), 2, axis=0)
    return wide[::2, ::2]


def as_memmap(X, folder):
    np.save(folder / "map.npy", X)
    return np.load(folder / "map.npy", mmap_mode="r")


def as_frame(X, folder):
    return pd.DataFrame(X)


def as_npy(X, folder):
    np.save(folder / "rows.npy", X)
    return folder / "rows.npy"


def as_fortran_npy(X, folder):
    np.save(folder / "fortran.npy", np.asfortranarray(X))
    return str(folder / "fortran.npy")


def as_npy_2(X, folder):
    with (folder / "two.npy").open("wb") as file:
        npy.write_array(file, X, version=(2, 0))
    return folder / "two.npy"


def as_big_endian_npy(X, folder):
    np.save(folder / "big.npy", X.astype(X.dtype.newbyteorder(">")))
    return folder / "big.npy"


def as_parquet(X, folder):
    table = pa.table({f"c{j}": X[:, j] for j in range(X.shape[1])})
    pq.write_table(table, folder / "rows.parquet", row_group_size=70)
    return folder / "rows.parquet"


def as_zarr(X, folder):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(folder / "rows.zarr", shape=X.shape, chunks=(29, 2), dtype=X.dtype)
    array[:] = X
    return folder / "rows.zarr"


def as_open_zarr(X, folder):
    return pytest.importorskip("zarr").open(as_zarr(X, folder), mode="r")


def as_sharded_zarr(X, folder):
    zarr = pytest.importorskip("zarr")
    shape = (58, X.shape[1])
    array = zarr.create_array(folder / "s.zarr", shape=X.shape, chunks=(29, X.shape[1]), shards=shape, dtype=X.dtype)
    array[:] = X
    return folder / "s.zarr"


def as_list(X, folder):
    return [X[:0], X[:1], X[1:40], X[40:40], X[40:]]


def as_function(X, folder):
    return lambda: (X[start : start + 37] for start in range(0, len(X), 37))


def as_frames(X, folder):
    return [pd.DataFrame(X[:50]), pl.DataFrame(X[50:], schema=[str(j) for j in range(X.shape[1])], orient="row")]


class Fresh:
    def __init__(self, X):
        self.X = X

    def __iter__(self):
        return iter(np.array_split(self.X, 5))


def as_object(X, folder):
    return Fresh(X)


ARRAYS = [as_array, as_strided, as_memmap, as_frame]
FILES = [as_npy, as_fortran_npy, as_npy_2, as_big_endian_npy, as_parquet, as_zarr, as_open_zarr, as_sharded_zarr]
ITERABLES = [as_list, as_function, as_frames, as_object]
EVERY = ARRAYS + FILES + ITERABLES


@pytest.mark.parametrize("hold", EVERY)
def test_every_source_gives_the_rows_of_the_array(hold, tmp_path):
    for n, d, size, dtype in [
        (200, 3, 64, np.float32),
        (192, 3, 64, np.float64),
        (150, 1, 7, np.float32),
        (90, 4, 1, np.float64),
        (60, 2, 1000, np.float32),
    ]:
        folder = tmp_path / f"{n}"
        folder.mkdir()
        X = rows(n, d, dtype)
        before = X.copy()
        source = open_chunks(hold(X, folder))
        assert isinstance(source, ChunkSource)
        assert (source.n_columns, source.dtype) == (d, dtype)
        assert source.n_rows == (None if hold in ITERABLES else n)
        for check in (True, False):
            pieces = []
            for chunk in source.chunks(size, check_finite=check):
                assert chunk.flags.c_contiguous
                assert chunk.dtype == dtype
                pieces.append(np.array(chunk))
            assert [len(piece) for piece in pieces[:-1]] == [size] * (len(pieces) - 1)
            assert np.array_equal(np.concatenate(pieces), X)
        assert source.n_rows == n
        assert np.array_equal(X, before)


@pytest.mark.parametrize("hold", [as_array, as_npy, as_fortran_npy, as_zarr, as_list])
@pytest.mark.parametrize(
    ("dtype", "working"),
    [
        ("?", "f4"),
        ("u1", "f4"),
        ("i2", "f4"),
        ("u2", "f4"),
        ("f2", "f4"),
        ("i4", "f8"),
        ("i8", "f8"),
        ("u8", "f8"),
        ("f8", "f8"),
    ],
)
def test_numbers_become_the_smallest_float_that_holds_them(hold, dtype, working, tmp_path):
    X = np.random.RandomState(1).randint(0, 2 if dtype == "?" else 200, (70, 3)).astype(dtype)
    source = open_chunks(hold(X, tmp_path))
    assert source.dtype == np.dtype(working)
    assert np.array_equal(whole(source), X)
    assert source.sample(5, np.random.RandomState(0)).dtype == source.dtype


def test_chunks_of_an_array_are_views_that_cannot_be_written():
    X = np.ones((10, 2))
    chunks = list(open_chunks(X).chunks(5))
    assert all(np.shares_memory(chunk, X) and not chunk.flags.writeable for chunk in chunks)
    assert X.flags.writeable
    listed = next(open_chunks([X]).chunks(5))
    assert np.shares_memory(listed, X)
    assert not listed.flags.writeable


@pytest.mark.parametrize("hold", EVERY)
def test_passes_may_be_left_and_run_side_by_side(hold, tmp_path):
    source = open_chunks(hold(rows(300), tmp_path))
    next(source.chunks(10))
    for a, b in zip(source.chunks(64), source.chunks(64), strict=True):
        assert np.array_equal(a, b)


def test_a_source_is_opened_as_it_is():
    source = open_chunks(rows(5))
    assert open_chunks(source) is source
    with pytest.raises(ParameterError, match="rows must be a whole number of at least 1"):
        source.chunks(0)
    with pytest.raises(ParameterError, match="size must be"):
        source.sample(0, np.random.RandomState(0))


# Samples


@pytest.mark.parametrize("hold", EVERY)
def test_samples_are_rows_in_order_and_follow_the_seed(hold, tmp_path):
    X = np.arange(500, dtype=np.float32)[:, None] * [1, 2, 3]
    source = open_chunks(hold(X.astype(np.float32), tmp_path))
    sample = source.sample(60, np.random.RandomState(4))
    assert sample.shape == (60, 3)
    assert (np.diff(sample[:, 0]) > 0).all()
    assert np.array_equal(sample[:, 2], 3 * sample[:, 0])
    assert np.array_equal(source.sample(60, np.random.RandomState(4)), sample)
    assert not np.array_equal(source.sample(60, np.random.RandomState(5)), sample)
    for size in (499, 500, 10_000):
        assert source.sample(size, np.random.RandomState(0)).shape == (min(size, 500), 3)
    assert source.n_rows == 500


@pytest.mark.parametrize("hold", [as_array, as_function])
@pytest.mark.parametrize("size", [5, 30])
def test_samples_are_uniform(hold, size, tmp_path, monkeypatch):
    monkeypatch.setattr("biclique.io.chunks.CHUNK_ROWS", 16)
    source = open_chunks(hold(np.arange(40.0)[:, None], tmp_path))
    random = np.random.RandomState(0)
    counts = np.zeros(40)
    for _ in range(1500):
        counts[source.sample(size, random)[:, 0].astype(int)] += 1
    share = size / 40
    spread = (counts - 1500 * share) / np.sqrt(1500 * share * (1 - share))
    assert np.abs(spread).max() < 4
    assert 0.5 < spread.std() < 1.5


def test_single_rows_of_a_large_npy_file_are_read_alone(tmp_path, monkeypatch):
    X = rows(60_000, 16)
    source = open_chunks(as_npy(X, tmp_path))
    monkeypatch.setattr(source, "_pieces", None)
    sample = source.sample(20, np.random.RandomState(2))
    assert np.array_equal(sample, X[draw_numbers(60_000, 20, np.random.RandomState(2))])
    big = open_chunks(as_big_endian_npy(X, tmp_path))
    assert np.array_equal(big.sample(20, np.random.RandomState(2)), sample)


def test_a_draw_takes_no_memory_of_all_rows():
    drawn = draw_numbers(10**15, 1000, np.random.RandomState(0))
    assert len(np.unique(drawn)) == 1000
    assert drawn.max() > 10**14


def test_samples_refuse_nan(tmp_path):
    X = np.zeros((50, 2))
    X[7, 1] = np.nan
    for hold in (as_array, as_npy, as_list):
        with pytest.raises(DataError, match=r"missing value \(NaN\) in row [78] "):
            open_chunks(hold(X, tmp_path)).sample(50, np.random.RandomState(0))


# Files that are broken


def refused(message, source, kind=TableError, **options):
    with pytest.raises(kind, match=message) as caught:
        use_up(open_chunks(source, **options))
    assert type(caught.value) is kind


@needs("pyarrow")
def test_paths_that_are_no_chunked_tables(tmp_path):
    for name in ("t.npz",):
        refused("cannot be read in chunks; convert it to CSV, TSV, .npy or Parquet, or read it whole", tmp_path / name)
    refused("unknown kind of table; to be read in chunks its name must end in", tmp_path / "t.xls")
    for name in ("none.npy", "none.parquet"):
        refused(f"{name}: no such file", tmp_path / name)
    for name in ("folder.npy", "folder.parquet"):
        (tmp_path / name).mkdir()
        refused(f"{name}: is a folder, not a file", str(tmp_path / name))


def test_npy_files_that_hold_no_table(tmp_path):
    path = tmp_path / "a.npy"
    for array, message in [
        (np.zeros(4), r"needs two dimensions \(rows, columns\), got 1 \(shape \(4,\)\)"),
        (np.zeros((2, 2, 2)), "got 3"),
        (np.zeros((2, 2), dtype=complex), "holds complex128, not real numbers"),
        (np.array([["a", "b"]]), "holds <U1, not real numbers"),
        (np.zeros((2, 2), dtype="f4,f8"), "not real numbers"),
        (np.zeros((0, 2)), "no rows"),
        (np.zeros((2, 0)), "no feature columns"),
    ]:
        np.save(path, array)
        refused(message, path)
    np.save(path, np.array([[{}]], dtype=object), allow_pickle=True)
    refused("Python objects, which are never unpickled", path)


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY", b"not an array at all", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'"]
)
def test_files_that_are_no_npy(content, tmp_path):
    (tmp_path / "a.npy").write_bytes(content)
    refused("a.npy: not a readable NumPy file", tmp_path / "a.npy")


def test_npy_of_an_unknown_version(tmp_path):
    path = as_npy(rows(3), tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:6] + b"\x03" + content[7:])
    refused("version 3.0, not 1.0 or 2.0", path)
    path.write_bytes(content[:6] + b"\x09" + content[7:])
    refused("npy: ", path)


def test_a_short_npy_file_is_refused_when_opened_and_when_read(tmp_path):
    X = rows(1000)
    path = as_npy(X, tmp_path)
    source = open_chunks(path)
    size = path.stat().st_size
    os.truncate(path, size - 30)
    refused("ends early: its header promises 1000 rows, it holds 997", path)
    with pytest.raises(TableError, match="ends early: its header promises 1000 rows, it holds 997"):
        use_up(source)
    path = as_npy(X, tmp_path)
    chunks = source.chunks(10)
    next(chunks)
    os.truncate(path, size // 2)
    with pytest.raises(TableError, match="ends early: its header promises 1000 rows, it holds 4"):
        list(chunks)
    path = as_fortran_npy(X, tmp_path)
    os.truncate(path, size - 30)
    refused("ends early: its header promises 12000 bytes of numbers, it holds 11970", path)
    (tmp_path / "rows.npy").unlink()
    with pytest.raises(TableError, match="no such file"):
        use_up(source)


def test_files_that_change_between_passes(tmp_path):
    for hold in (as_npy, as_parquet):
        source = open_chunks(hold(rows(100), tmp_path))
        use_up(source)
        hold(rows(120), tmp_path)
        with pytest.raises(TableError, match=r"the file has \d+ bytes and had \d+ when it was opened; leave it"):
            use_up(source)
    source = open_chunks(as_npy(rows(100, 4), tmp_path))
    as_npy(rows(200, 2), tmp_path)
    with pytest.raises(TableError, match=re.escape("holds (200, 2) of float32 now and held (100, 4)")):
        use_up(source)


def test_bytes_of_files_may_be_anything(tmp_path):
    random = np.random.RandomState(0)
    X = rows(300, 2)
    for hold in (as_npy, as_parquet):
        path = hold(X, tmp_path)
        good = np.frombuffer(path.read_bytes(), dtype=np.uint8)
        for trial in range(60):
            broken = good[: random.randint(len(good))].copy() if trial % 3 == 0 else good.copy()
            places = (
                random.randint(0, len(broken) if trial % 2 else min(128, len(broken)), size=3) if len(broken) else []
            )
            broken[places] = random.randint(0, 256, size=len(places))
            path.write_bytes(broken.tobytes())
            with suppress(TableError):
                use_up(open_chunks(path))


# Parquet


def test_parquet_columns_of_every_kind(tmp_path):
    table = pa.table(
        {
            "name": ["a", "b", "c"],
            "flag": [True, False, True],
            "small": pa.array([1, 2, 3], pa.int16()),
            "half": pa.array(np.array([1, 2, 3], dtype=np.float16)),
            "class": ["x", "x", "y"],
            "money": pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("3.00")]),
            "large": pa.array([2**53 + 1, -(2**60), 0], pa.int64()),
        }
    )
    path = tmp_path / "t.pq"
    pq.write_table(table, path)
    source = open_chunks(path, roles=Roles(label="class", id="name", drop=["money", "large"]))
    assert (source.columns, source.dtype) == (["flag", "small", "half"], np.float32)
    assert whole(source).tolist() == [[1, 1, 1], [0, 2, 2], [1, 3, 3]]
    source = open_chunks(path, roles=Roles(label="class", id="name"))
    assert source.dtype == np.float64
    assert whole(source)[:, 3].tolist() == [1.5, 2.25, 3]
    assert whole(source)[:, 4].tolist() == [2.0**53, -(2.0**60), 0]
    refused("column 'name' holds string, not numbers. If it holds classes or names, say so with", path)
    refused(r"Roles\(id=…\) names column 'nme', which does not exist", path, roles=Roles(id="nme"))
    refused("no feature columns are left", path, roles=Roles(drop=table.column_names))


def test_nulls_of_parquet_are_nan(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1.0, 2.0, 3.0], "b": pa.array([1, None, 3], pa.int32())}), path)
    refused(
        r"missing value \(NaN\) in row 2 \(counting from 1\), column 'b'; every value must be a finite number", path
    )
    assert np.isnan(whole(open_chunks(path), check_finite=False)).tolist() == [[False] * 2, [False, True], [False] * 2]
    pq.write_table(pa.table({"a": pa.array([], pa.float32())}), path)
    refused("the table has no rows", path)


def test_broken_parquet_files(tmp_path):
    path = as_parquet(rows(1000), tmp_path)
    content = path.read_bytes()
    for broken in (b"", content[:-20], b"PAR1", b"hello" * 10):
        path.write_bytes(broken)
        refused("rows.parquet: not a readable Parquet file", path)
    pq.write_table(pa.table({"a": rows(1000)[:, 0]}), path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[1000:1010] = b"0123456789"
    path.write_bytes(content)
    refused("rows.parquet: not a readable Parquet file", path)


# Zarr


def test_broken_zarr_arrays(tmp_path):
    zarr = pytest.importorskip("zarr")
    refused("none.zarr: no such folder", tmp_path / "none.zarr")
    (tmp_path / "file.zarr").write_text("")
    refused("is a file; a Zarr array is a folder", tmp_path / "file.zarr")
    (tmp_path / "empty.zarr").mkdir()
    refused("not a readable Zarr array", tmp_path / "empty.zarr")
    group = zarr.open_group(tmp_path / "group.zarr", mode="w")
    group.create_array("X", shape=(4, 2), dtype="f4")[:] = 1
    refused(r"is a Zarr group of 1 arrays; pass one of its arrays: pass .*group.zarr.X", tmp_path / "group.zarr")
    assert whole(open_chunks(tmp_path / "group.zarr" / "X")).tolist() == [[1, 1]] * 4
    zarr.create_array(tmp_path / "flat.zarr", shape=(4,), dtype="f4")
    refused("needs two dimensions", tmp_path / "flat.zarr")
    zarr.create_array(tmp_path / "no.zarr", shape=(0, 4), dtype="f4")
    refused("no rows", tmp_path / "no.zarr")
    path = as_zarr(rows(100), tmp_path)
    source, opened = open_chunks(path), zarr.open(path, mode="r")
    (path / "c" / "2" / "0").write_bytes(b"garbage")
    refused(r"rows 59 to 100 \(counting from 1\) cannot be read .* is damaged", path)
    with pytest.raises(TableError, match="is damaged"):
        source.sample(99, np.random.RandomState(0))
    refused("zarr array: rows .* cannot be read", opened, DataError)
    (path / "zarr.json").write_text("{")
    with pytest.raises(TableError, match="not a readable Zarr array"):
        use_up(source)


def test_a_zarr_array_that_grows(tmp_path):
    zarr = pytest.importorskip("zarr")
    path = as_zarr(rows(100), tmp_path)
    source = open_chunks(path)
    use_up(source)
    zarr.open(path, mode="r+").resize((120, 3))
    with pytest.raises(TableError, match=re.escape("has the shape (120, 3) now and had (100, 3)")):
        use_up(source)


def test_tall_chunks_of_zarr_are_cut_where_they_are_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(zarr_files, "SLAB_BYTES", 120)
    X = rows(100)
    source = open_chunks(as_zarr(X, tmp_path))
    assert np.array_equal(whole(source, 8), X)
    assert len(source.sample(30, np.random.RandomState(0))) == 30


def test_arrays_that_work_like_zarr():
    class Lazy:
        shape, chunks, dtype = (100, 3), None, np.dtype("f4")

        def __getitem__(self, item):
            return rows(100)[item]

    assert np.array_equal(whole(open_chunks(Lazy())), rows(100))
    assert len(open_chunks(Lazy()).sample(7, np.random.RandomState(0))) == 7
    Lazy.shape = (np.nan, 3)
    refused("has no known shape", Lazy(), DataError)


class Stored:
    """An array in a file of its own, as h5py has it."""

    def __init__(self, X, chunks=None):
        self._X, self.shape, self.dtype, self.chunks = X, X.shape, X.dtype, chunks

    def __getitem__(self, item):
        return self._X[item]


def test_what_is_read_in_chunks(tmp_path):
    X = rows(100)
    for source in (open_chunks(X), "t.csv", tmp_path, Stored(X), Stored(X, (10, 3))):
        assert is_chunked(source)
    for source in (X, X.tolist(), pd.DataFrame(X), [X], lambda: iter([X])):
        assert not is_chunked(source)

    class Calculating(Stored):  # Dask's and xarray's arrays have chunks, too
        __array_ufunc__ = None

    assert not is_chunked(Calculating(X))


def test_stored_arrays_are_fitted_in_chunks():
    X = np.repeat([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]], 50, axis=0) + rows(100)
    model = BicliqueSpectralClustering(2, rank=20, random_state=0)
    expected = clone(model).fit(open_chunks(X)).eigenvalues_
    assert np.array_equal(model.fit(Stored(X)).eigenvalues_, expected)


def test_zarr_is_read_whole(tmp_path):
    X = rows(100)
    table = read_table(as_zarr(X, tmp_path), Roles(label="1"))
    assert np.array_equal(table.X, X[:, [0, 2]])
    assert table.labels == [str(x) for x in X[:, 1].tolist()]
    with pytest.raises(TableError, match="no such folder"):
        read_table(tmp_path / "none.zarr")


def test_zarr_that_is_not_installed(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("biclique.exceptions.import_module", missing)
    with pytest.raises(MissingExtraError, match="pip install 'zarr>=3'"):
        open_chunks(tmp_path / "a.zarr")


# Chunks in Python


def test_chunks_that_can_be_read_only_once():
    message = (
        "can be read only once, and several passes are needed; pass a function that returns a fresh generator, or a l"
    )
    X = rows(10)
    generator = (X for _ in range(3))
    for source in (generator, iter([X]), lambda: generator):
        refused(message, source, DataError)


def test_chunks_unlike_the_first():
    X = rows(10)
    for later, message in [
        (rows(5, 4), r"chunks: chunk 2 \(from row 10, counting from 0\) has 4 columns, the first has 3"),
        (rows(5, 3, np.float64), r"chunk 2 .* holds float64 .* first is read as float32; .*astype\(np.float32\)"),
        (
            np.zeros(3, dtype=np.float32),
            "chunk 2: needs two dimensions .* got 1 .* a whole table is passed as one array",
        ),
        (np.array([["a", "b", "c"]]), "chunk 2: holds <U1, not real numbers; leave out columns of text"),
        (np.array([[None, 1, 2]]), "chunk 2: holds object"),
        ([[1, 2], [3]], "chunk 2: list is not a table of numbers"),
        (5.0, "chunk 2: needs two dimensions"),
        (np.array(5.0), "chunk 2: needs two dimensions"),
    ]:
        refused(message, [X, X[:0], later], DataError)
        refused(message.split(" .*")[0], lambda later=later: iter([X, X[:0], later]), DataError)
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    refused(
        "has column 'b' where the first has 'a'; put the columns in one order", [frame, frame[["b", "a"]]], DataError
    )


def test_first_chunks_that_cannot_be_used():
    sparse = pytest.importorskip("scipy.sparse")
    refused("chunk 0: needs two dimensions", [[1.0, 2.0], [3.0, 4.0]], DataError)
    refused("chunk 0: holds object, not real numbers", [pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})], DataError)
    refused("chunk 0: is a sparse matrix", [sparse.eye(3).tocsr()], DataError)
    refused("array: is a sparse matrix", sparse.eye(3).tocsr(), DataError)
    refused("has masked values", np.ma.masked_equal(np.eye(2), 1), DataError)
    refused("the function returned int", lambda: 3, DataError)
    refused("cannot read rows from int", 3, DataError)
    for empty in ([], [rows(0)], lambda: iter(()), rows(0)):
        refused("the source has no rows", empty, DataError)
    refused("needs two dimensions", np.zeros(3), DataError)
    refused("no feature columns", np.zeros((3, 0)), DataError)
    refused("holds complex128", np.zeros((3, 1), dtype=complex), DataError)


def test_another_number_of_rows_in_a_later_pass():
    parts = [rows(10), rows(20)]
    for change, message in [
        (lambda: parts.append(rows(5)), "at least 35 rows came in this pass, 30 before"),
        (parts.clear, "0 rows"),
    ]:
        source = open_chunks(parts)
        use_up(source)
        change()
        with pytest.raises(DataError, match=message):
            use_up(source)
        parts[:] = [rows(10), rows(20)]


def test_frames_of_other_packages():
    X = rows(20, 2)
    for make in (
        lambda X: pd.DataFrame(X, columns=["a", "b"]),
        lambda X: pl.DataFrame(X, schema=["a", "b"]),
        lambda X: pa.table({"a": X[:, 0], "b": X[:, 1]}),
    ):
        for source in (open_chunks(make(X)), open_chunks([make(X[:7]), make(X[7:])])):
            assert (source.columns, source.dtype) == (["a", "b"], np.float32)
            assert np.array_equal(whole(source), X)


def test_a_generator_is_closed_when_a_pass_is_left():
    closed = []

    def generator():
        try:
            yield rows(10)
            yield rows(10)
        finally:
            closed.append(True)

    source = open_chunks(generator)
    assert len(closed) == 1
    chunks = source.chunks(5)
    next(chunks)
    del chunks
    assert len(closed) == 2


# Values that are no numbers


@pytest.mark.parametrize("hold", EVERY)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_named(hold, value, tmp_path):
    X = rows(200).copy()
    X[137, 1] = value
    source = open_chunks(hold(X, tmp_path))
    what = "missing value (NaN)" if np.isnan(value) else "infinite value"
    of_file = isinstance(source._error(""), TableError)
    row = "138 (counting from 1)" if of_file else "137 (counting from 0)"
    column = "1 (counting from 0)" if source.columns is None else repr(source.columns[1])
    with pytest.raises(DataError, match=re.escape(f"{source.name}: {what} in row {row}, column {column}; every value")):
        use_up(source)
    assert np.array_equal(whole(source, check_finite=False), X, equal_nan=True)


def test_large_values_are_finite():
    X = np.full((100, 2), 3e38, dtype=np.float32)
    assert np.array_equal(whole(open_chunks(X)), X)


# Columns, scaling, moments


@pytest.mark.parametrize("hold", [as_npy, as_array, as_list, as_zarr])
def test_columns_with_a_role_are_left_out(hold, tmp_path):
    X = rows(100, 4).copy()
    X[3, 1] = np.nan
    source = open_chunks(hold(X, tmp_path), roles=Roles(drop=["1"]))
    assert (source.n_columns, source.columns) == (3, ["0", "2", "3"])
    assert np.array_equal(whole(source), X[:, [0, 2, 3]])
    assert source.sample(100, np.random.RandomState(0)).shape == (100, 3)


def test_roles_name_columns_that_are_there():
    X = rows(100, 4)
    refused(r"Roles\(drop=…\) names column '7', which does not exist", X, roles=Roles(drop=["7"]))
    refused("no feature columns are left", X[:, :1], DataError, roles=Roles(label="0"))
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert open_chunks(frame, roles=Roles(label="b")).columns == ["a", "c", "d"]


@pytest.mark.parametrize("hold", [as_array, as_npy, as_function])
def test_scaled_rows(hold, tmp_path):
    X = rows(200)
    source = ScaledChunks(open_chunks(hold(X, tmp_path)), [1.0, 2.0, 3.0], np.array([0.5, 2.0, 0.0]))
    expected = (X - np.float32([1, 2, 3])) * np.float32([0.5, 2, 0])
    assert source.dtype == np.float32
    for chunk, start in zip(source.chunks(64), range(0, 200, 64), strict=True):
        assert chunk.flags.c_contiguous
        assert chunk.dtype == np.float32
        assert np.array_equal(chunk, expected[start : start + 64])
    assert source.n_rows == 200
    inner = open_chunks(hold(X, tmp_path)).sample(9, np.random.RandomState(1))
    again = source.sample(9, np.random.RandomState(1))
    assert np.array_equal(again, (inner - np.float32([1, 2, 3])) * np.float32([0.5, 2, 0]))


def test_scaled_rows_are_checked():
    X = np.ones((5, 2), dtype=np.float32)
    with pytest.raises(
        ParameterError, match=r"offset must hold 2 finite numbers of float32, one for each column; got shape \(3,"
    ):
        ScaledChunks(open_chunks(X), [1, 2, 3], [1, 1])
    with pytest.raises(ParameterError, match=r"factor must hold 2 finite numbers of float32.* with NaN or infinity"):
        ScaledChunks(open_chunks(X), [1, 2], [1, 1e300])
    with pytest.raises(DataError, match="infinite value in row 0"):
        use_up(ScaledChunks(open_chunks(X * 1e30), [0, 0], [1e30, 1]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments(dtype):
    random = np.random.RandomState(0)
    X = (random.randn(150_000, 4) * [1, 0, 1e-3, 5] + [0, 0.1, 1000, 1e5]).astype(dtype)
    shares = []
    mean, std, n = column_moments(open_chunks(X), tick=shares.append)
    exact = X.astype(np.longdouble)
    assert n == 150_000
    assert mean.dtype == std.dtype == np.float64
    assert np.allclose(mean, exact.mean(axis=0).astype(float), rtol=1e-13, atol=1e-13)
    assert np.allclose(std, exact.std(axis=0).astype(float), rtol=1e-11, atol=1e-15)
    assert std[1] == 0
    assert mean[1] == X[0, 1]
    assert shares == [pytest.approx(65_536 * i / 150_000) for i in (1, 2)] + [1]


def test_moments_are_the_same_whatever_holds_the_rows(tmp_path):
    X = rows(100_000)
    expected = column_moments(open_chunks(X))
    for hold in (as_npy, as_parquet, as_function):
        if hold is as_parquet:
            pq.write_table(
                pa.table({f"c{j}": X[:, j] for j in range(3)}), tmp_path / "x.parquet", row_group_size=33_333
            )
        source = open_chunks(tmp_path / "x.parquet" if hold is as_parquet else hold(X, tmp_path))
        for ours, theirs in zip(column_moments(source), expected, strict=True):
            assert np.array_equal(ours, theirs)


def test_moments_of_values_that_are_too_large():
    with pytest.raises(DataError, match=r"values of column 1 .* are too large for their variance"):
        column_moments(open_chunks(np.array([[0.0, -1e300], [1.0, 1e300]])))
