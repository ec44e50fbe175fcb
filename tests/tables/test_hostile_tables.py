"""Files made to run code, to fill memory or to break the reader: each gives one printable line."""

import gzip
import json
import pickle
import struct
import zipfile

import numpy as np
import pytest
from scipy import sparse

from biclique.exceptions import BicliqueError, MemoryLimitError, TableError
from biclique.runtime import memory
from biclique.tables import diagnosis, text_tables
from biclique.tables.reading import open_lazily, read_frame, read_table
from tests.calls import refuses
from tests.optional import Optional, needs

pa, pq, zarr = Optional("pyarrow"), Optional("pyarrow.parquet"), Optional("zarr")

X = np.arange(12.0).reshape(4, 3)


def refused(message, path, kind=TableError, read=read_frame, **options):
    with pytest.raises(kind, match=message) as caught:
        read(path, **options)
    assert str(caught.value).isprintable()


# Code in data


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def test_nothing_is_ever_unpickled(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "t.npz", X=np.array([[Trap()]], dtype=object))
    refused("not a readable NumPy file", tmp_path / "t.npy")
    refused("none of Python's objects", tmp_path / "t.npz")


def put_zarr(folder, version=3, change=None, **options):
    array = zarr.create_array(folder, shape=X.shape, chunks=X.shape, dtype=X.dtype, zarr_format=version, **options)
    array[:] = X
    if change is not None:
        file = folder / ("zarr.json" if version == 3 else ".zarray")
        metadata = json.loads(file.read_text())
        change(metadata)
        file.write_text(json.dumps(metadata))
    return folder


@needs("zarr")
@pytest.mark.parametrize("codec", ["pickle", "msgpack2", "json2", "vlen-utf8", "\x1b[2J", 7])
def test_codecs_that_are_not_known_are_refused_before_they_run(codec, tmp_path):
    def compressor(metadata):
        metadata["compressor"] = {"id": codec}

    def objects(metadata):
        metadata.update(dtype="|O", filters=[{"id": codec}], compressor=None, fill_value=None)

    def codecs(metadata):
        metadata["codecs"] = [{"name": f"numcodecs.{codec}"}]

    for number, (version, change) in enumerate([(2, compressor), (2, objects), (3, codecs)]):
        path = put_zarr(tmp_path / f"{number}.zarr", version, change)
        for chunk in path.rglob("*0"):
            if chunk.is_file():
                chunk.write_bytes(pickle.dumps(Trap()))
        refused("its codec .* is not read, because codecs can run code", path)
        refuses(TableError, "is not read", open_lazily, path)


@needs("zarr")
def test_codecs_inside_shards_and_types_of_objects(tmp_path):
    def inside(metadata):
        metadata["codecs"][0]["configuration"]["codecs"][0]["name"] = "numcodecs.pickle"

    refused("its codec 'numcodecs.pickle'", put_zarr(tmp_path / "shard.zarr", 3, inside, shards=X.shape))
    refused("t", put_zarr(tmp_path / "o.zarr", 2, lambda metadata: metadata.update(dtype="|O", fill_value=None)))


@needs("zarr")
def test_zarr_codecs_that_are_known_are_read(tmp_path):
    numcodecs = pytest.importorskip("numcodecs")
    for number, compressor in enumerate([numcodecs.Blosc(), numcodecs.Zlib(), numcodecs.LZ4(), numcodecs.BZ2(), None]):
        path = put_zarr(tmp_path / f"{number}.zarr", 2, compressors=compressor, filters=[numcodecs.Delta("<f8")])
        assert np.array_equal(read_frame(path).to_numpy(), X)
    for number, codec in enumerate([zarr.codecs.GzipCodec(), zarr.codecs.BloscCodec(), zarr.codecs.ZstdCodec()]):
        path = put_zarr(tmp_path / f"three{number}.zarr", 3, compressors=[codec, zarr.codecs.Crc32cCodec()])
        assert np.array_equal(read_frame(path).to_numpy(), X)


@needs("pyarrow")
def test_extension_types_of_parquet_are_what_they_store(tmp_path):
    class Kind(pa.ExtensionType):
        def __init__(self):
            super().__init__(pa.float64(), "tests.kind")

        def __arrow_ext_serialize__(self):
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage, serialized):
            return cls()

    column = pa.ExtensionArray.from_storage(Kind(), pa.array([1.0, 2.0]))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": column, "b": [1.0, 2.0]}), path)
    pa.register_extension_type(Kind())
    try:
        assert read_table(path).X.tolist() == [[1, 1], [2, 2]]
    finally:
        pa.unregister_extension_type("tests.kind")


# Memory


def npy_bytes(shape, descr="<f8", numbers=b""):
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + numbers


def put_npz(path, kind=zipfile.ZIP_DEFLATED, **members):
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def test_headers_that_promise_more_than_there_is(tmp_path):
    (tmp_path / "t.npy").write_bytes(npy_bytes((10**12, 3), numbers=X.tobytes()))
    refused("not a readable NumPy file", tmp_path / "t.npy")
    promise = npy_bytes((10**6, 3), numbers=X.tobytes())
    refused("none of Python's objects; it has none", put_npz(tmp_path / "t.npz", X=promise))
    long = b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b" " * 2**20
    refused("needs an array called X", put_npz(tmp_path / "h.npz", X=long))


def test_tables_that_do_not_fit_the_memory(tmp_path, monkeypatch):
    np.save(tmp_path / "t.npy", np.zeros((1000, 50)))
    (tmp_path / "t.csv").write_text(("1," * 49 + "1\n") * 1000)
    pq.write_table(pa.table({"a": np.zeros(100_000)}), tmp_path / "t.parquet")
    put_npz(tmp_path / "t.npz", X=npy_bytes((1000, 50), numbers=bytes(400_000)))
    monkeypatch.setattr(memory, "free_memory", lambda: 100_000)
    for name in ("t.npy", "t.csv", "t.parquet", "t.npz"):
        refused("needs .* are free: ", tmp_path / name, MemoryLimitError)


def test_packed_text_that_fills_the_memory(tmp_path, monkeypatch):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"1,2\n" * 10**6))
    monkeypatch.setattr(text_tables, "free_memory", lambda: 4 * 10**6)
    refused("unpacks to more than 977 KiB", tmp_path / "t.csv.gz")
    monkeypatch.setattr(text_tables, "free_memory", lambda: 2**60)  # nothing of that size is allocated
    assert len(read_frame(tmp_path / "t.csv.gz")) == 10**6


@needs("zarr")
def test_zarr_arrays_that_are_only_metadata(tmp_path):
    tall = put_zarr(tmp_path / "tall.zarr", 3, lambda m: m.update(shape=[10**12, 3]))
    refused("the table in memory needs", tall, MemoryLimitError)
    huge = {"name": "regular", "configuration": {"chunk_shape": [10**9, 10**9]}}
    path = put_zarr(tmp_path / "chunk.zarr", 3, lambda m: m.update(chunk_grid=huge))
    refused("a chunk of shape .* needs", path, MemoryLimitError)
    path = put_zarr(tmp_path / "long.zarr", 3, lambda m: m.update(attributes={"a": "x" * 2**21}))
    refused("zarr.json has more than 1048576 bytes", path)
    path = put_zarr(tmp_path / "deep.zarr")
    (path / "zarr.json").write_text("[" * 10**5)
    refused("not a readable Zarr array", path)


# Damage


@pytest.mark.parametrize("code", [0xD800, 0x110000])
def test_ids_of_npz_files_that_are_not_unicode(code, tmp_path):
    np.savez(tmp_path / "t.npz", X=X, id=np.array([97, code, 98, 99], dtype=np.uint32).view("U1"))
    refused("not a readable NumPy file", tmp_path / "t.npz", read=read_table, id="id")


def strange_npz(path):
    """Archives that are encrypted or compressed in unknown ways, and arrays with headers of any kind."""
    content = put_npz(path, zipfile.ZIP_STORED, X=npy_bytes((4, 3), numbers=X.tobytes())).read_bytes()
    at = content.index(b"PK\x01\x02")
    for offset, value in [(8, 1), (10, 97), (10, 6)]:
        changed = bytearray(content)
        struct.pack_into("<H", changed, at + offset, value)
        struct.pack_into("<H", changed, offset - 2, value)
        yield bytes(changed)
    for header in ("(" * 9000, "{'descr': " + "-" * 9000, "'\n", "{'descr': '<f8', 'shape': (1e400,)}", "\0"):
        text = header.encode() + b"\n"
        yield put_npz(path, X=b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text).read_bytes()
    for inside in (b"no array", npy_bytes((4, -3)), npy_bytes((4, 10**30))):
        yield put_npz(path, X=inside).read_bytes()


def test_strange_npz_files_give_one_line(tmp_path):
    for content in strange_npz(tmp_path / "made.npz"):
        (tmp_path / "t.npz").write_bytes(content)
        refused(".", tmp_path / "t.npz", BicliqueError, read_table)


@needs("zarr")
def test_blosc_is_not_asked_to_read_beyond_the_end(tmp_path):
    path = put_zarr(tmp_path / "t.zarr", 2, compressors=pytest.importorskip("numcodecs").Blosc())
    content = bytearray((path / "0.0").read_bytes())
    for place in (4, 12):
        changed = content.copy()
        struct.pack_into("<I", changed, place, 2**31 - 1)
        (path / "0.0").write_bytes(changed)
        refused(r"its chunk 0\.0 is damaged", path)


def test_messages_are_printable(tmp_path):
    path = tmp_path / "a\nb\x1b.csv"
    path.write_text("x,y\n1\n")
    refused(r"a.nb.x1b.csv: row 1", path)
    refused("unknown kind", tmp_path / "a\n.xls")
    refused("no such file", tmp_path / "a\n.npy")


@needs("pyarrow")
def test_values_of_parquet_that_are_no_values(tmp_path):
    path = tmp_path / "t.parquet"
    kind = pa.struct([pa.field("a\nb\x1b", pa.int8())])
    pq.write_table(pa.table({"s\n": pa.array([None, {"a\nb\x1b": 1}], kind), "l": [[1], [2, 3]]}), path)
    refuses(TableError, "2 are not numbers", read_table, path)


def put_lying_parquet(path, wrong, rows=10**6):
    """A file of many rows whose footer gives other numbers where ``wrong`` is 1: as integers of the same length."""

    def written(number, length=0):
        digits = []
        while number > 0 or len(digits) < length or not digits:
            digits.append(number & 127)
            number >>= 7
        return bytes([digit | 128 for digit in digits[:-1]] + digits[-1:])

    pq.write_table(pa.table({"x": np.zeros(rows)}), path, compression="zstd", row_group_size=rows)
    content = path.read_bytes()
    size = struct.unpack("<I", content[-8:-4])[0]
    pieces = content[-8 - size : -8].split(written(2 * rows))
    if len(pieces) != 5:
        pytest.skip("this pyarrow writes the number of rows in fewer places")
    footer = pieces[0]
    for lies, piece in zip(wrong, pieces[1:], strict=True):
        footer += written(2 * (3 if lies else rows), len(written(2 * rows))) + piece
    path.write_bytes(content[: -8 - size] + footer + content[-8:])


@needs("pyarrow")
@pytest.mark.parametrize("wrong", [(1, 0, 0, 0), (1, 1, 0, 0), (0, 1, 0, 0), (0, 0, 0, 1)])
def test_parquet_whose_footer_lies_about_its_rows(wrong, tmp_path):
    path = tmp_path / "t.parquet"
    put_lying_parquet(path, wrong)
    refused("its footer promises .* rows, it has .*: write it again", path)
    refuses(TableError, "its footer promises", lambda: open_lazily(path).compute(scheduler="sync"))


@needs("pyarrow")
def test_damage_that_is_met_in_a_part(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.random.default_rng(0).normal(size=9000)}), path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)
    refused("not a readable Parquet file", path)
    refuses(TableError, "not a readable Parquet file", lambda: open_lazily(path).compute(scheduler="sync"))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("indices", 10**6, "not a readable NumPy file"),
        ("indices", -1, "not a readable NumPy file"),
        ("indptr", 10**6, "not a readable NumPy file"),
        ("shape", 10**9, "the sparse matrix as a table needs"),
    ],
)
def test_sparse_matrices_that_would_write_elsewhere(name, value, message, tmp_path):
    matrix = sparse.csr_array(np.eye(4))
    arrays = {"format": b"csr", "shape": [4, 4]}
    arrays |= {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    arrays[name] = np.array(arrays[name], dtype=np.int64)
    arrays[name][1] = value
    if name == "shape":
        arrays[name][0] = value
    np.savez(tmp_path / "t.npz", **arrays)
    refused(message, tmp_path / "t.npz", BicliqueError)


def test_shapes_that_are_no_numbers(tmp_path):
    (tmp_path / "t.npy").write_bytes(npy_bytes("(True, 2)", numbers=bytes(16)).replace(b"'(True, 2)'", b"(True, 2)  "))
    refused("not a readable NumPy file", tmp_path / "t.npy")


def test_many_columns_of_text_give_a_short_error_and_few_are_looked_at(tmp_path, monkeypatch):
    looked_at = []
    look = diagnosis._look_of_texts
    monkeypatch.setattr(
        diagnosis, "_look_of_texts", lambda levels, column: looked_at.append(column) or look(levels, column)
    )
    names = [f"c{i}" for i in range(1200)]
    for first, rows in (([], ["a", "b"]), (["x"], ["1", "1", "2", "2"])):
        lines = [[*first, *names], *([*[row] * len(first), *[f"{name}{row}" for name in names]] for row in rows)]
        (tmp_path / "t.csv").write_text("\n".join(map(",".join, lines)))
        with pytest.raises(TableError, match="1200 are not numbers") as caught:
            read_table(tmp_path / "t.csv")
        message = str(caught.value)
        assert "… and 1100 more" in message
        assert "too many columns to name in one call" in message
        assert len(message) < 10_000
    assert len(looked_at) == 2 * diagnosis.MOST_DESCRIBED
