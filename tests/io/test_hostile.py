"""Files made to run code, to fill memory or to break the reader: each gives one printable line."""

import io
import json
import os
import pickle
import shutil
import struct
import tomllib
import zipfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from biclique.cli import main
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import BicliqueError, MemoryLimitError, TableError
from biclique.io import Roles, hold, open_chunks, read_table
from biclique.io import chunks as files
from tests.optional import Optional, needs

pa = Optional("pyarrow")
pq = Optional("pyarrow.parquet")
zarr = Optional("zarr")

X = np.arange(12.0).reshape(4, 3)


def refused(message, read, *arguments, kind=TableError, **options):
    with pytest.raises(kind, match=message) as caught:
        read(*arguments, **options)
    assert str(caught.value).isprintable()
    return str(caught.value)


def use_up(path, **options):
    for _ in open_chunks(path, **options).chunks(64):
        pass


# Code in data


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def put_zarr(folder, version=3, change=None, X=X, **options):
    array = zarr.create_array(folder, shape=X.shape, chunks=X.shape, dtype=X.dtype, zarr_format=version, **options)
    array[:] = X
    if change is not None:
        file = folder / ("zarr.json" if version == 3 else ".zarray")
        metadata = json.loads(file.read_text())
        change(metadata)
        file.write_text(json.dumps(metadata))
    return folder


@needs("zarr")
@pytest.mark.parametrize("codec", ["pickle", "msgpack2", "json2", "vlen-utf8", "\x1b[2J", None, 7])
def test_codecs_that_are_not_known_are_refused_before_they_run(codec, tmp_path):
    def compressor(metadata):
        metadata["compressor"] = {"id": codec}

    def objects(metadata):
        metadata.update(dtype="|O", filters=[{"id": codec}], compressor=None, fill_value=None)

    def codecs(metadata):
        metadata["codecs"] = [{"name": f"numcodecs.{codec}"}]

    for number, (version, change) in enumerate([(2, compressor), (2, objects), (3, codecs)]):
        if codec is None and change is compressor:
            continue
        path = put_zarr(tmp_path / f"{number}.zarr", version, change)
        for chunk in path.rglob("*0"):
            if chunk.is_file():
                chunk.write_bytes(pickle.dumps(Trap()))
        refused("its codec .* is not read, because codecs can run code", use_up, path)


@needs("zarr")
def test_codecs_inside_shards_and_types_inside_codecs_are_looked_at(tmp_path):
    def inside(metadata):
        metadata["codecs"][0]["configuration"]["codecs"][0]["name"] = "numcodecs.pickle"

    path = put_zarr(tmp_path / "shard.zarr", 3, inside, shards=X.shape)
    refused("its codec 'numcodecs.pickle' is not read", use_up, path)

    def objects(metadata):
        metadata["filters"] = [{"id": "delta", "dtype": "|O"}]

    refused("dtype of the codec 'delta' is '|O'", use_up, put_zarr(tmp_path / "delta.zarr", 2, objects))
    refused("holds .O, not real numbers", use_up, put_zarr(tmp_path / "o.zarr", 2, lambda m: m.update(dtype="|O")))


@needs("zarr")
def test_zarr_codecs_that_are_known_are_read(tmp_path):
    numcodecs = pytest.importorskip("numcodecs")
    for number, compressor in enumerate([numcodecs.Blosc(), numcodecs.Zlib(), numcodecs.LZ4(), numcodecs.BZ2(), None]):
        path = put_zarr(tmp_path / f"{number}.zarr", 2, compressors=compressor, filters=[numcodecs.Delta("<f8")])
        assert np.array_equal(hold(open_chunks(path), Roles()).X, X)
    codecs = [zarr.codecs.GzipCodec(), zarr.codecs.BloscCodec(), zarr.codecs.ZstdCodec()]
    for number, codec in enumerate(codecs):
        path = put_zarr(tmp_path / f"three{number}.zarr", 3, compressors=[codec, zarr.codecs.Crc32cCodec()])
        assert np.array_equal(hold(open_chunks(path), Roles()).X, X)


@needs("pyarrow")
def test_extension_types_of_parquet_are_refused_by_name(tmp_path, monkeypatch):
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
        for read in (read_table, use_up):
            refused("column 'a' holds the extension type .*; store it as double, or leave it out", read, path)
            refused("column 'a' holds the extension type", read, path, roles=Roles(id="a"))
            read(path, roles=Roles(drop=["a"]))
    finally:
        pa.unregister_extension_type("tests.kind")
    monkeypatch.setattr(pa.lib, "_py_extension_type_auto_load", True, raising=False)
    for read in (read_table, use_up):
        refused("pyarrow was told to run code that files hold", read, path)


# Memory


def npy_bytes(shape, descr="<f8", numbers=b""):
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + numbers


def put_npz(path, kind=zipfile.ZIP_DEFLATED, **members):
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                for piece in [content] if isinstance(content, bytes) else content:
                    stream.write(piece)
    return path


def test_only_the_arrays_that_are_needed_are_unpacked(tmp_path):
    zeros = b"\0" * 2**20
    bomb = [npy_bytes((2**22,)), *[zeros] * 32]
    path = put_npz(tmp_path / "t.npz", X=npy_bytes((4, 3), numbers=X.tobytes()), other=bomb)
    assert path.stat().st_size < 2**20
    assert np.array_equal(read_table(path, memory_limit="1MB").X, X)
    path = put_npz(tmp_path / "b.npz", X=[npy_bytes((2**11, 2**11)), *[zeros] * 32])
    refused("a table of 2048 rows and 2048 columns in memory needs 64", read_table, path, memory_limit="20MB",
            kind=MemoryLimitError)  # fmt: skip
    path = put_npz(tmp_path / "more.npz", X=[npy_bytes((4, 3), numbers=X.tobytes()), zeros])
    refused("has 1048672 bytes, its header promises 96", read_table, path)


def test_headers_that_promise_more_than_there_is(tmp_path):
    path = tmp_path / "t.npy"
    path.write_bytes(npy_bytes((10**12, 3), numbers=X.tobytes()))
    for read in (read_table, use_up):
        refused("ends early: its header promises 1000000000000 rows, it holds 4", read, path)
    path = put_npz(tmp_path / "t.npz", X=npy_bytes((10**6, 3), numbers=X.tobytes()))
    refused("has 96 bytes, its header promises 24000000", read_table, path)
    path = put_npz(tmp_path / "h.npz", X=[b"\x93NUMPY\x02\x00\xff\xff\xff\x7f", *[b" " * 2**20] * 64])
    refused("not a readable NumPy file", read_table, path)


@needs("zarr")
def test_zarr_arrays_that_are_only_metadata(tmp_path):
    wide = put_zarr(tmp_path / "wide.zarr", 3, lambda m: m.update(shape=[4, 10**9]))
    tall = put_zarr(tmp_path / "tall.zarr", 3, lambda m: m.update(shape=[10**12, 3]))
    refused(
        "reading 1 rows of 1000000000 columns at once needs", use_up, wide, memory_limit="1GB", kind=MemoryLimitError
    )
    source = open_chunks(tall, memory_limit="1GB")
    refused("1000000000000 rows .* in memory needs", hold, source, Roles(), memory_limit="1GB", kind=MemoryLimitError)
    huge = {"name": "regular", "configuration": {"chunk_shape": [10**9, 10**9]}}
    path = put_zarr(tmp_path / "chunk.zarr", 3, lambda m: m.update(chunk_grid=huge))
    refused("a chunk of shape .* needs", use_up, path, kind=MemoryLimitError)
    for version, change in [(2, lambda m: m.update(chunks=[0, 3])),
                            (3, lambda m: m["chunk_grid"]["configuration"].update(chunk_shape=[0, 3]))]:  # fmt: skip
        refused(r"chunk.* is \[0, 3\]", use_up, put_zarr(tmp_path / f"zero{version}.zarr", version, change))
    path = put_zarr(tmp_path / "long.zarr", 3, lambda m: m.update(attributes={"a": "x" * 2**21}))
    refused("zarr.json has more than 1048576 bytes", use_up, path)
    path = put_zarr(tmp_path / "deep.zarr")
    (path / "zarr.json").write_text("[" * 10**5)
    refused("not a readable Zarr array", use_up, path)


def test_tables_larger_than_the_limit(tmp_path):
    np.save(tmp_path / "t.npy", np.zeros((1000, 50)))
    (tmp_path / "t.csv").write_text(("1," * 49 + "1\n") * 1000)
    paths = [tmp_path / "t.npy", tmp_path / "t.csv"]
    for path in paths:
        refused("a table of .* rows and 50 columns in memory needs .*, limit 200 KiB: raise memory_limit", read_table,
                path, memory_limit="200KB", kind=MemoryLimitError)  # fmt: skip
        assert read_table(path, memory_limit="10MB").X.shape == (1000, 50)
    refused("reading 64 rows of 50 columns at once", use_up, paths[0], memory_limit="20KB", kind=MemoryLimitError)
    refused("a line has more than 10 characters", read_table, paths[1], memory_limit=1000, kind=MemoryLimitError)


@needs("pyarrow")
def test_parquet_larger_than_the_limit(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.zeros(100_000)}), path)
    assert path.stat().st_size < 10_000
    refused("a table of 100000 rows and 1 columns in memory needs", read_table, path, memory_limit="100KB",
            kind=MemoryLimitError)  # fmt: skip


def test_memory_that_runs_out_is_a_limit(tmp_path, monkeypatch):
    np.save(tmp_path / "t.npy", X)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("biclique.io.chunks.read_header", fail)
    for read in (use_up,):
        refused("there was not enough memory to read it", read, tmp_path / "t.npy", kind=MemoryLimitError)


# Damage


def damaged_npz(path):
    """Archives that zipfile and its decompressors fail on in many ways."""
    good = npy_bytes((4, 3), numbers=X.tobytes())
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        content = put_npz(path, kind, X=good).read_bytes()
        for place in range(30, len(content), 7):
            yield content[:place] + bytes([content[place] ^ 0x5A]) + content[place + 1 :]
    content = put_npz(path, zipfile.ZIP_STORED, X=good).read_bytes()
    at = content.index(b"PK\x01\x02")
    for offset, value in [(8, 1), (10, 97), (10, 6)]:  # encrypted, and compressed in unknown ways
        changed = bytearray(content)
        struct.pack_into("<H", changed, at + offset, value)
        struct.pack_into("<H", changed, offset - 2, value)
        yield bytes(changed)
    for header in ("(" * 9000, "{'descr': " + "-" * 9000, "'\n", "{'descr': '<f8', 'shape': (1e400,)}", "\0"):
        text = header.encode() + b"\n"
        yield put_npz(path, X=b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text).read_bytes()
    yield put_npz(path, X=b"no array").read_bytes()
    yield put_npz(path, X=npy_bytes((4, -3))).read_bytes()
    yield put_npz(path, X=npy_bytes((4, 10**30))).read_bytes()


def test_damaged_npz_files_give_one_line(tmp_path):
    path = tmp_path / "t.npz"
    for content in damaged_npz(tmp_path / "made.npz"):
        path.write_bytes(content)
        message = ""
        try:
            assert np.array_equal(read_table(path).X, X)
        except BicliqueError as error:
            message = str(error)
        assert message.isprintable()


def test_messages_are_printable(tmp_path):
    path = tmp_path / "a\nb\x1b.csv"
    path.write_text("x\n1\noops\n")
    assert r"a\nb\x1b.csv: row 2" in refused("is not a number", read_table, path)
    refused("unknown kind", read_table, tmp_path / "a\n.xls")
    refused("no such file", use_up, tmp_path / "a\n.npy")
    assert files.line("first\x07 line\nsecond") == r"first\x07 line"


@needs("pyarrow")
def test_messages_about_parquet_are_one_line(tmp_path):
    path = tmp_path / "t.parquet"
    kind = pa.struct([pa.field("a\nb\x1b", pa.int8())])
    pq.write_table(pa.table({"s\n": pa.array([None], kind)}), path)
    for read in (read_table, use_up):
        refused("not numbers", read, path)


@needs("zarr")
@pytest.mark.parametrize("version", [2, 3])
def test_blosc_is_not_asked_to_read_beyond_the_end(version, tmp_path):
    numcodecs = pytest.importorskip("numcodecs")
    codec = numcodecs.Blosc() if version == 2 else [zarr.codecs.BloscCodec(), zarr.codecs.Crc32cCodec()]
    path = put_zarr(tmp_path / "t.zarr", version, compressors=codec)
    assert np.array_equal(hold(open_chunks(path), Roles()).X, X)
    chunk = path / ("0.0" if version == 2 else "c/0/0")
    content = bytearray(chunk.read_bytes())
    for place in (4, 12):
        changed = content.copy()
        struct.pack_into("<I", changed, place, 2**31 - 1)
        chunk.write_bytes(changed)
        refused(r"rows 1 to 4 .* cannot be read \(its header promises .* damaged", use_up, path)
    chunk.write_bytes(content[:10])
    refused("damaged", use_up, path)


# Files that are replaced


@pytest.mark.parametrize("rows", [4, 100_000])
@pytest.mark.parametrize("kind", ["npy", pytest.param("parquet", marks=needs("pyarrow"))])
def test_a_file_replaced_by_one_of_the_same_size(rows, kind, tmp_path):
    path = tmp_path / f"t.{kind}"

    def write(value):
        column = np.arange(rows) + value
        if kind == "npy":
            np.save(tmp_path / "new.npy", column[:, None])
        else:
            table = pa.table({"a": column})
            pq.write_table(table, tmp_path / "new.parquet", compression="none", use_dictionary=False)
        os.replace(tmp_path / f"new.{kind}", path)
        return path.stat().st_size

    size = write(0.0)
    source = open_chunks(path)
    list(source.chunks())
    assert write(1.0) == size
    refused("was written again or replaced", lambda: list(source.chunks()))


@needs("zarr")
def test_a_zarr_array_that_is_replaced(tmp_path):
    path = put_zarr(tmp_path / "t.zarr")
    source = open_chunks(path)
    shutil.rmtree(path)
    put_zarr(path, 3, lambda m: m.update(fill_value=1.0))
    refused("was written again or replaced", lambda: list(source.chunks()))


# Whole and in chunks


@needs("pyarrow")
def test_parquet_is_the_same_whole_and_in_chunks(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table(
        {
            "id": ["a", None, "c"],
            "class": pa.array([None, 1.0, float("nan")]),
            "large": pa.array([2**53 + 1, 2**63 - 1, -(2**60) - 1], pa.int64()),
            "unsigned": pa.array([2**64 - 1, 0, None], pa.uint64()),
            "money": pa.array([Decimal("0.1"), Decimal("1e25"), None], pa.decimal128(38, 5)),
        }
    )
    pq.write_table(table, path)
    roles = Roles(label="class", id="id")
    source = open_chunks(path, roles=roles)
    streamed = np.concatenate([np.array(chunk) for chunk in source.chunks(2, check_finite=False)])
    whole = read_table(path, roles, drop_missing=True)
    assert np.array_equal(whole.X, streamed[:2])
    assert whole.X[:, 0].tolist() == [float(2**53 + 1), float(2**63 - 1)]
    assert whole.ids == ["a", ""]
    assert whole.labels == ["", "1.0"]
    assert [t for texts in source.texts("id") for t in texts] == ["a", "", "c"]
    assert [t for texts in source.texts("class") for t in texts] == ["", "1.0", ""]


def test_a_missing_class_of_an_array_is_empty(tmp_path):
    np.save(tmp_path / "t.npy", [[1.0, np.nan], [2.0, 5.0]])
    assert read_table(tmp_path / "t.npy", Roles(label="1")).labels == ["", "5.0"]


@needs("pyarrow")
def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    folder = tmp_path / "t.parquet"
    folder.mkdir()
    for number in range(3):
        pq.write_table(pa.table({"a": [number], "b": [0.5]}), folder / f"{number}.parquet")
    assert read_table(folder).X.tolist() == [[0, 0.5], [1, 0.5], [2, 0.5]]


@pytest.mark.parametrize("cell", ["1_2", "１２", "٣", "1\u00a0", "\x1c1", "1e1_0", "\u20091"])
def test_numbers_that_only_python_reads_are_refused(cell, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n1,2\n3,{cell}\n", encoding="utf-8")
    refused("column 'b': .* is not a number", read_table, path)


def test_wide_tables_are_read_in_linear_time(tmp_path):
    """Names are looked up, not searched for: counting each among 30,000 would take minutes."""
    width = 30_000
    text = io.StringIO()
    text.write(",".join(f"c{j}" for j in range(width)) + "\n" + ",".join(["1"] * width) + "\n")
    (tmp_path / "t.csv").write_text(text.getvalue())
    np.save(tmp_path / "t.npy", np.ones((1, width)))

    class Names(list):
        def count(self, _):
            pytest.fail("a search for every name")

    from biclique.io.roles import feature_columns

    assert len(feature_columns("t", Names(map(str, range(width))), Roles(drop=["7"]))) == width - 1
    assert read_table(tmp_path / "t.csv", Roles(drop=["c7"])).X.shape == (1, width - 1)
    assert read_table(tmp_path / "t.npy", Roles(drop=["7"])).X.shape == (1, width - 1)
    assert open_chunks(tmp_path / "t.npy", roles=Roles(drop=["7"])).n_columns == width - 1


def test_the_oldest_versions_that_are_tried_are_the_floors():
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())
    tried = dict(line.split("==") for line in (root / "constraints-oldest.txt").read_text().split("\n") if "==" in line)
    floors = dict(needed.split(">=") for needed in project["project"]["optional-dependencies"]["io"])
    assert set(floors) <= {needed.split(">=")[0] for needed in project["dependency-groups"]["oldest"]}
    for group in ("test", "oldest"):
        assert {f"{name}>={floor}" for name, floor in floors.items()} <= set(project["dependency-groups"][group])
    for name, floor in floors.items():
        assert f"{tried[name]}.".startswith(f"{floor}.")


def test_more_rows_than_labels_fit_are_refused_before_the_first_pass(tmp_path, capsys):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(str(tmp_path / "t.zarr"), shape=(10**12, 3), dtype="f8", chunks=(1000, 3))  # fill values only
    assert main(["cluster", str(tmp_path / "t.zarr"), "-k", "3"]) == 4
    assert "needs" in capsys.readouterr().err
    with pytest.raises(MemoryLimitError, match="a label for each of 1000000000000 rows"):
        BicliqueSpectralClustering(3).fit(tmp_path / "t.zarr")


@pytest.mark.parametrize(
    ("text", "rows", "missing"),
    [
        ("a,b\n1,2\n,\n3,4\n", 3, [1]),  # a row without a value is a row: later rows keep their numbers
        ("a,b\n1,2\n\n3,4\n\n\n", 2, []),  # a blank line is none
        ("a,b\n1,2\n3,4\n,\n,\n", 2, []),  # nor are what spreadsheets leave at the end
        ("a\n1\n\n3\n\n", 3, [1]),  # in one column a blank line is a missing value
        ('a\n1\n""\n3\n', 3, [1]),
        ("\n\na,b\n1,2\n", 1, []),
    ],
)
def test_rows_without_a_value_keep_their_place(tmp_path, text, rows, missing):
    file = tmp_path / "t.csv"
    file.write_text(text)
    if missing:
        with pytest.raises(TableError, match=rf"missing value in row {missing[0] + 1} "):
            read_table(file)
    table = read_table(file, drop_missing=True)
    assert table.n_rows == rows
    assert table.rows.tolist() == [i for i in range(rows) if i not in missing]


def test_a_first_line_without_names_is_no_silent_loss(tmp_path):
    (tmp_path / "t.csv").write_text(",\n1,2\n3,4\n")
    with pytest.raises(TableError, match="missing value in row 1"):
        read_table(tmp_path / "t.csv")


def test_values_whose_squares_vanish_are_refused_in_chunks_too(tmp_path, capsys):
    np.save(tmp_path / "t.npy", 1e-300 * np.random.default_rng(0).normal(size=(60, 2)))
    assert main(["cluster", str(tmp_path / "t.npy"), "-k", "2"]) == 3
    assert "such squares vanish" in capsys.readouterr().err


def test_an_empty_name_of_an_output_is_refused(capsys):
    assert main(["cluster", "iris", "-k", "3", "-q", "-o", ""]) == 2
    assert "the name of the output is empty" in capsys.readouterr().err
