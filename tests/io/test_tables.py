from contextlib import suppress

import numpy as np
import pytest

from biclique.exceptions import MissingExtraError, TableError
from biclique.io import Roles, read_table
from tests.optional import Optional, needs

pd = Optional("pandas")

TEXT = "name,x,y,kind\na,1,2.5,red\nb,3,-4e1,blue\n\nc,5,6,red\n"
ROLES = Roles(label="kind", id="name")


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def check(table):
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, -40], [5, 6]])
    assert table.columns == ["x", "y"]
    assert table.labels == ["red", "blue", "red"]
    assert table.ids == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", TEXT),
        ("t.CSV", TEXT),
        ("t.tsv", TEXT.replace(",", "\t")),
        ("t.csv", TEXT.replace(",", ";")),
        ("t.txt", TEXT.replace(",", "\t")),
        ("bom.csv", b"\xef\xbb\xbf" + TEXT.encode()),
        ("crlf.csv", TEXT.replace("\n", "\r\n")),
        ("quoted.csv", TEXT.replace("red", '"red"').replace("name", '"name"')),
    ],
)
def test_text_tables(name, content, write):
    check(read_table(write(name, content), ROLES))


def test_parquet(tmp_path):
    frame = pd.DataFrame({"name": list("abc"), "x": [1, 3, 5], "y": [2.5, -40, 6], "kind": ["red", "blue", "red"]})
    frame.to_parquet(tmp_path / "t.parquet")
    check(read_table(tmp_path / "t.parquet", ROLES))
    with pytest.raises(
        TableError,
        match=r"column 'name' holds .*string, not numbers.*Roles\(label=…\), Roles\(id=…\) or Roles\(drop=…\)",
    ):
        read_table(tmp_path / "t.parquet")
    frame["x"] = [1, None, 5]
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="missing value in row 2, column 'x'"):
        read_table(tmp_path / "t.parquet", ROLES)


def test_parquet_without_pyarrow_prints_the_install_line(write, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'biclique\[io\]'"):
        read_table(write("t.parquet", b"x"))


def test_numpy_files(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "t.npy", X)
    np.testing.assert_array_equal(read_table(tmp_path / "t.npy").X, X)
    table = read_table(tmp_path / "t.npy", Roles(label="2", drop=["0"]))
    np.testing.assert_array_equal(table.X, X[:, [1]])
    assert table.labels == ["2.0", "5.0", "8.0", "11.0"]
    np.savez(tmp_path / "t.npz", X=X, y=np.array([0, 1, 0, 1]), other=X)
    table = read_table(tmp_path / "t.npz", Roles(label="y"))
    np.testing.assert_array_equal(table.X, X)
    assert table.labels == ["0", "1", "0", "1"]
    np.savez(tmp_path / "one.npz", data=X)
    np.testing.assert_array_equal(read_table(tmp_path / "one.npz").X, X)
    np.savez(tmp_path / "two.npz", a=X, b=X)
    with pytest.raises(TableError, match="an array called X or one two-dimensional array"):
        read_table(tmp_path / "two.npz")


def test_nothing_is_ever_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    np.save(tmp_path / "t.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "t.npz", X=np.array([[Trap()]], dtype=object))
    for name in ("t.npy", "t.npz"):
        with pytest.raises(TableError, match="never unpickled"):
            read_table(tmp_path / name)


def test_headers(write):
    numbers = "1,2\n3,4\n"
    assert read_table(write("t.csv", numbers)).X.shape == (2, 2)
    table = read_table(write("t.csv", numbers), header=True)
    assert table.columns == ["1", "2"]
    assert table.X.shape == (1, 2)
    assert read_table(write("t.csv", "a,b\n1,2\n")).columns == ["a", "b"]
    table = read_table(write("t.csv", numbers), Roles(drop=["0"]))
    np.testing.assert_array_equal(table.X, [[2], [4]])


@pytest.mark.parametrize("cell", ["", "NA", "nan", " ", "null", "?"])
def test_missing_values_are_named_or_dropped(cell, write):
    path = write("t.csv", f"a,b\n1,2\n3,{cell}\n5,6\n")
    with pytest.raises(
        TableError, match=r"missing value in row 2 \(line 3\), column 'b'; 1 of 3 rows.*drop_missing=True"
    ):
        read_table(path)
    table = read_table(path, drop_missing=True)
    np.testing.assert_array_equal(table.X, [[1, 2], [5, 6]])
    assert table.rows.tolist() == [0, 2]
    assert table.n_rows == 3


def test_many_rows_in_chunks(write):
    X = np.random.default_rng(0).normal(size=(25_001, 3))
    path = write("t.csv", "a,b,c\n" + "".join(",".join(map(repr, row)) + "\n" for row in X.tolist()))
    np.testing.assert_array_equal(read_table(path).X, X)
    lines = path.read_text().splitlines()
    lines[20_000] = "1,oops,3"
    path.write_text("\n".join(lines))
    with pytest.raises(TableError, match=r"row 20000 \(line 20001\), column 'b': 'oops' is not a number"):
        read_table(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "the file is empty"),
        ("t.csv", "a,b\n", "the table has no rows"),
        ("t.csv", "a,b\n1,2\n3\n", r"row 2 \(line 3\) has 1 fields, the first has 2"),
        ("t.csv", ",a\n0,2\n1,3\n", r"column 1 has no name. If it numbers the rows, say so with Roles\(id=''\)"),
        ("t.csv", "a,a\n1,2\n", "column name 'a' appears 2 times"),
        ("t.csv", "a,b\n1,inf\n", r"infinite value in row 1 \(line 2\), column 'b'"),
        ("t.csv", "a,b\nNA,1\n,2\n", "missing value in row 1"),
        ("t.csv", b"a,b\n\xff\xfe\xfa,2\n", "not a text file in UTF-8"),
        ("t.csv", "a,b\n1,2\x00\n", "is not a number"),
        ("t.npy", b"rubbish", "not a readable NumPy file"),
        ("t.npz", b"PK rubbish", "not a readable NumPy file"),
        ("t.npy", b"", "not a readable NumPy file"),
        pytest.param("t.parquet", b"rubbish", "not a readable Parquet file", marks=needs("pyarrow")),
        ("t.xls", b"x", r"unknown kind of table; the name must end in one of \.csv"),
    ],
)
def test_rubbish_gets_a_clear_error(name, content, message, write):
    with pytest.raises(TableError, match=message):
        read_table(write(name, content))


@pytest.mark.parametrize("name", ["missing.csv", "missing.npy", "missing.parquet"])
def test_absent_files(name, tmp_path):
    with pytest.raises(TableError, match="no such file"):
        read_table(tmp_path / name)


def test_folders_are_no_tables(tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(TableError, match="cannot be read"):
        read_table(tmp_path / "t.csv")


def test_columns_with_a_role_must_exist(write):
    path = write("t.csv", "a,b\n1,2\n")
    for roles, role in ((Roles(label="z"), "label"), (Roles(id="z"), "id"), (Roles(drop=["z"]), "drop")):
        message = rf"Roles\({role}=…\) names column 'z', which does not exist; columns: 'a', 'b'"
        with pytest.raises(TableError, match=message):
            read_table(path, roles)
    with pytest.raises(TableError, match="no feature columns are left"):
        read_table(path, Roles(drop=["a", "b"]))


@pytest.mark.parametrize("array", [np.arange(3.0), np.zeros((2, 2, 2)), np.array([["a"]]), np.zeros((2, 2), complex)])
def test_arrays_that_are_no_tables(array, tmp_path):
    np.save(tmp_path / "t.npy", array)
    with pytest.raises(TableError, match="two-dimensional array of numbers"):
        read_table(tmp_path / "t.npy")


def test_random_and_truncated_bytes_never_give_a_traceback(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "good.npy", rng.normal(size=(20, 3)))
    np.savez(tmp_path / "good.npz", X=rng.normal(size=(20, 3)))
    pd.DataFrame(rng.normal(size=(20, 3)), columns=list("abc")).to_parquet(tmp_path / "good.parquet")
    (tmp_path / "good.csv").write_text(TEXT)
    for kind in ("npy", "npz", "parquet", "csv"):
        good = (tmp_path / f"good.{kind}").read_bytes()
        for trial in range(60):
            if trial % 2:
                content = good[: rng.integers(0, len(good))]
            else:
                content = bytearray(good)
                for place in rng.integers(0, len(good), 5):
                    content[place] = rng.integers(0, 256)
            path = tmp_path / f"bad.{kind}"
            path.write_bytes(bytes(content))
            with suppress(TableError):
                read_table(path)


def test_large_values_are_no_infinite_ones(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1e308,1\n1e308,2\n")
    assert read_table(tmp_path / "t.csv").X.max() == 1e308
    (tmp_path / "t.csv").write_text("a,b\n1e308,1\n1e308,inf\n-inf,3\n")
    with pytest.raises(TableError, match=r"infinite value in row 2 \(line 3\), column 'b'; 2 of 3 rows have one"):
        read_table(tmp_path / "t.csv")
