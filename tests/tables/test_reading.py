"""Tables as pandas frames, and tables of numbers."""

import gzip
import os
import tomllib
from contextlib import nullcontext as no_warning
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from biclique.exceptions import DataError, MissingExtraError, ParameterError, TableError, TableWarning
from biclique.tables.diagnosis import ColumnsError
from biclique.tables.frames import as_frame, kind_of, levels_of, numbers_of, texts_of
from biclique.tables.reading import FORMATS, TableFormat, read_frame, read_table, size_of
from biclique.tables.text_form import TextForm
from tests.calls import refuses
from tests.optional import Optional
from tests.oracles import text_columns

pd, pl, pa, pq = (Optional(name) for name in ("pandas", "polars", "pyarrow", "pyarrow.parquet"))

TEXT = "name,x,y,kind\n007,1,2.5,red\nb,3,-4e1,?\n\nc,5,6,red\n"


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# Text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", TEXT),
        ("t.CSV", TEXT),
        ("t.tsv", TEXT.replace(",", "\t")),
        ("t.csv", TEXT.replace(",", ";")),
        ("t.csv", "sep=;\n" + TEXT.replace(",", ";")),
        ("t.txt", TEXT.replace(",", "|")),
        ("bom.csv", b"\xef\xbb\xbf" + TEXT.encode()),
        ("utf-16.csv", TEXT.encode("utf-16")),
        ("crlf.csv", TEXT.replace("\n", "\r\n")),
        ("mac.csv", TEXT.replace("\n", "\r")),
        ("quoted.csv", TEXT.replace("red", '"red"').replace("name", '"name"')),
        ("t.csv.gz", gzip.compress(TEXT.encode(), mtime=0)),
    ],
)
def test_text_tables(name, content, write):
    path = write(name, content)
    frame = read_frame(path, texts=["name"])
    assert frame.to_numpy().tolist() == [["007", 1, 2.5, "red"], ["b", 3, -40, None], ["c", 5, 6, "red"]]
    assert read_frame(path, texts=frame.columns).iloc[1].tolist() == ["b", "3", "-4e1", "?"]
    table = read_table(path, label="kind", id="name")
    assert (table.columns, table.labels, table.ids) == (["x", "y"], ["red", "?", "red"], ["007", "b", "c"])
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, -40], [5, 6]])


CELLS = st.one_of(
    st.sampled_from(["1", "-2.5", "3e2", "+4", " 5 ", ".5", "6.", "inf", "1e999", "0x1", "1_0", "1e5f"]),
    st.sampled_from(["", " ", "NA", "nA", "?", "NaN", " null "]),
    st.sampled_from(["true", "False", "TRUE", "tRue", "t", "2024-01-31", "2024-02-31", "2024-01-31 10:30Z"]),
    st.sampled_from(["31/12/2020", "12/31/2020", "1/2/2020", "01.02.2020", "1-2-2020 10:30", "1/2-2020", "2020/12/31"]),
    st.sampled_from(['"1"', '"a,b"', '"say ""x"""', '"two\nlines"', 'a"b', "é", "\x1c"]),
    st.floats(allow_nan=False).map(repr),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 3).flatmap(lambda d: st.lists(st.lists(CELLS, min_size=d, max_size=d), min_size=1, max_size=12)),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\n\n", " \n"]),
    st.sampled_from(["", "day", "month"]),
)
def test_every_text_is_read_as_the_definition_reads_it(tmp_path, rows, end, last, date_order):
    form = TextForm(header=True, date_order=date_order)
    path = tmp_path / "t.csv"
    text = end.join([",".join("abc"[: len(rows[0])]), *(",".join(row) for row in rows)]) + last
    path.write_bytes(text.encode())
    expected = text_columns(text, date_order)
    if not expected[0][2].size:
        refuses(TableError, "no rows", read_frame, path, form)
        return
    frame = read_frame(path, form)
    for name, kind, values in expected:
        assert kind_of(frame[name]) == kind
        if kind == "text":
            present = [None if text.strip().lower() in ("", "na", "nan", "null", "?") else text for text in values]
            assert levels_of(frame[name]).tolist() == present
        else:
            found = frame[name].to_numpy() if kind == "date" else numbers_of(frame[name])
            np.testing.assert_array_equal(found, values)


def test_kinds(write):
    path = write("t.csv", 'flag,day,share,price,empty\ntrue,2024-01-31,56%,"$1,200",\n,2024-02-01 10:30,7%,-$5.50,NA\n')
    frame = read_frame(path)
    assert [dtype.kind for dtype in frame.dtypes] == ["b", "M", "f", "f", "f"]
    assert frame["share"].tolist() == [56, 7]
    assert frame["price"].tolist() == [1200, -5.5]
    assert frame.isna().to_numpy().tolist() == [[False, False, False, False, True], [True, False, False, False, True]]
    path = write("t.csv", "größe;b;when;price\n1,5;x;31/12/2020;1.200,50 €\n-2;1.500;1/2/2021;7 €\n".encode("cp1252"))
    frame = read_frame(path, TextForm(decimal=",", encoding="cp1252", date_order="day"))
    assert frame["größe"].tolist() == [1.5, -2]
    assert frame["b"].tolist() == ["x", "1.500"]
    assert frame["when"].astype(str).tolist() == ["2020-12-31", "2021-02-01"]
    assert frame["price"].tolist() == [1200.5, 7]
    assert read_frame(write("t.csv", "x\n1,5\n-2\n"), TextForm(decimal=","))["x"].tolist() == [1.5, -2]
    path = write("t.csv", "both;points;share\n-1.071,70;1.071;5,3%\n12,5;1.500;-5%\n2.000;1,5;12,25 %\n")
    frame = read_frame(path, TextForm(decimal=","))
    assert frame["both"].tolist() == [-1071.7, 12.5, 2000]
    assert frame["points"].tolist() == ["1.071", "1.500", "1,5"]  # thousands or not?
    assert frame["share"].tolist() == [5.3, -5, 12.25]
    assert read_frame(write("t.csv", 'x\n"1,071.70"\n"2,000"\n'))["x"].tolist() == [1071.7, 2000]


def test_headers(write):
    numbers = "1,2\n3,4\n"
    assert read_frame(write("t.csv", numbers)).columns.tolist() == ["0", "1"]
    assert read_frame(write("t.csv", numbers), TextForm(header=True)).columns.tolist() == ["1", "2"]
    assert read_frame(write("t.csv", 'a,"b;;;;"\n1,2\n')).columns.tolist() == ["a", "b;;;;"]
    assert read_frame(write("t.csv", ",\n1,2\n")).isna().to_numpy()[0].all()


@pytest.mark.parametrize(
    ("first", "rows", "shown"),
    [
        ("2001,2002,2003", "1,2,3", "2001, 2002, …"),
        ("2000,2010,2020", "1.5,2.5,1", "2000, 2010, …"),
        ("2019,2020", "3,4", "2019, 2020"),
        ("2019,2020", "2001,2017", None),
        ("2019,2019", "3,4", None),
        ("10,50", "0.5,?\n0.1,-0.25", "10, 50"),
        ("10,50", "0.5,0.7\n3,0.25", None),
        ("1.5,50", "0.5,0.7", None),
        ("10,50", f"0.5,0.7\n0.1,{'0' * 200_000}.5", "10, 50"),
    ],
)
def test_numbers_that_may_be_names_are_noted(first, rows, shown, write):
    path = write("t.csv", f"{first}\n{rows}\n")
    noted = pytest.warns(TableWarning, match=rf"first line \({shown}\) was read as a row of numbers")
    with no_warning() if shown is None else noted:
        assert len(read_frame(path)) == 2 + rows.count("\n")


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
def test_rows_without_a_value_keep_their_place(text, rows, missing, write):
    path = write("t.csv", text)
    if missing:
        refuses(ColumnsError, rf"missing value in row {missing[0] + 1}, column 'a'", read_table, path)
    table = read_table(path, drop_missing=True)
    assert table.n_rows == rows
    assert table.rows.tolist() == [i for i in range(rows) if i not in missing]


def test_many_rows_are_read_exactly(write):
    X = np.random.default_rng(0).normal(size=(30_001, 8))
    lines = ["a,b,c,d,e,f,g,h", *(",".join(map(repr, row)) for row in X.tolist())]
    np.testing.assert_array_equal(read_table(write("t.csv", "\n".join(lines))).X, X)
    lines[20_000] = "1,2,oops,4,5,6,7,8"
    with pytest.raises(ColumnsError, match=r"c  numbers, but for 1 of 30001: 'oops' in row 20000"):
        read_table(write("t.csv", "\n".join(lines)))
    lines[20_000] = "1,2,3"
    refuses(TableError, "row 20000 has 3 fields, the first has 8", read_frame, write("t.csv", "\n".join(lines)))
    wide = ",".join(["1"] * 3000)
    assert read_table(write("t.csv", f"{wide}\n{wide}\n")).X.shape == (2, 3000)


@pytest.mark.parametrize(
    ("form", "message"),
    [({"decimal": "x"}, "decimal must be"), ({"date_order": "year"}, "date_order"), ({"encoding": "no"}, "not known")],
)
def test_bad_forms(form, message):
    refuses(ParameterError, message, TextForm, **form)


# Other files


FRAME = {
    "size": [1.0, 2.5, None],
    "big": [2**60 + 1, None, 3],
    "flag": [True, False, None],
    "day": [datetime(2024, 1, 31), datetime(2024, 2, 1, 10, 30), None],
    "kind": ["red", None, "blue"],
}


def check(frame):
    assert [kind_of(frame[name]) for name in FRAME] == ["number", "number", "boolean", "date", "text"]
    np.testing.assert_array_equal(numbers_of(frame["size"]), [1, 2.5, np.nan])
    np.testing.assert_array_equal(numbers_of(frame["flag"]), [1, 0, np.nan])
    assert texts_of(frame["day"]) == ["2024-01-31", "2024-02-01T10:30:00.000000", ""]
    assert texts_of(frame["kind"]) == ["red", "", "blue"]


FRAMES = {
    "pandas": lambda: pd.DataFrame(FRAME),
    "nullable": lambda: pd.DataFrame(FRAME).astype({"flag": "boolean", "size": "Float64", "kind": "category"}),
    "objects": lambda: pd.DataFrame(FRAME).astype(object),
    "polars": lambda: pl.DataFrame(FRAME),
    "arrow": lambda: pa.table(FRAME),
    "dictionary": lambda: pa.table({**FRAME, "kind": pa.array(FRAME["kind"]).dictionary_encode()}),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=[*FRAMES])
def test_frames(make):
    check(as_frame(make()))


def test_parquet(tmp_path):
    pq.write_table(pa.table(FRAME), tmp_path / "t.parquet")
    check(read_frame(tmp_path / "t.parquet"))
    assert texts_of(read_frame(tmp_path / "t.parquet")["big"]) == [str(2**60 + 1), "", "3"]
    assert read_frame(tmp_path / "t.parquet", texts=["big"])["big"].tolist() == [str(2**60 + 1), "", "3"]
    (tmp_path / "folder.parquet").mkdir()
    for part in range(2):
        pq.write_table(pa.table({"x": [part, part]}), tmp_path / "folder.parquet" / f"{part}.parquet")
    assert read_table(tmp_path / "folder.parquet").X.ravel().tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("index", [{"name": "key"}, {}])
def test_an_index_of_pandas_is_no_column(index, tmp_path):
    pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index([7, 9], **index)).to_parquet(tmp_path / "t.parquet")
    assert read_frame(tmp_path / "t.parquet").columns.tolist() == ["x"]


def test_an_index_of_pandas_can_be_ids(tmp_path):
    pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index(["a", "b"], name="key")).to_parquet(tmp_path / "t.parquet")
    frame = read_frame(tmp_path / "t.parquet", texts=["key"])
    assert frame.columns.tolist() == ["x", "key"]
    assert frame["key"].tolist() == ["a", "b"]


def test_excel(tmp_path):
    pytest.importorskip("openpyxl")
    made = pd.DataFrame({**FRAME, "id": ["007", "8", None], "price": ["$1,200", "$5", None]}).drop(columns="big")
    made.to_excel(tmp_path / "t.xlsx", index=False)
    frame = read_frame(tmp_path / "t.xlsx", texts=["id"])
    check(frame.assign(big=1))
    assert frame["id"].tolist() == ["007", "8", ""]
    assert numbers_of(frame["price"]).tolist()[:2] == [1200, 5]


def test_sheets_of_excel(tmp_path):
    pytest.importorskip("openpyxl")
    rows = {
        "Note": [["Made in May"]],
        "Data": [["a", "b"], [1, 2], [3, 4]],
        "Title": [["R", None], [None] * 2, ["a", "b"], [1, 2]],
    }
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        for sheet, cells in rows.items():
            pd.DataFrame(cells).to_excel(book, sheet_name=sheet, header=False, index=False)
    assert read_table(tmp_path / "t.xlsx", sheet="Data").X.tolist() == [[1, 2], [3, 4]]
    with (
        pytest.warns(
            TableWarning, match=r"its first sheet was read; its sheets: 'Note', 'Data', 'Title'; sheet=… chooses"
        ),
        pytest.raises(DataError, match=r"t.xlsx \(the first of its sheets .*; sheet=… chooses another\): 0 rows"),
    ):
        read_table(tmp_path / "t.xlsx")
    with pytest.raises(TableError, match="sheet 'Dat' does not exist; sheets: 'Note', 'Data', 'Title'"):
        read_table(tmp_path / "t.xlsx", sheet="Dat")
    with pytest.raises(TableError, match=r"first line lacks names of columns.* in row 3, delete the rows"):
        read_table(tmp_path / "t.xlsx", sheet="Title")
    refuses(TableError, "a NumPy file has no sheets: leave sheet='a' out", read_table, tmp_path / "t.npy", sheet="a")


def test_numpy_files(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "t.npy", X)
    np.testing.assert_array_equal(read_table(tmp_path / "t.npy", label="2", drop=["0"]).X, X[:, [1]])
    assert size_of(tmp_path / "t.npy") > 96
    np.save(tmp_path / "big_endian.npy", X.astype(">f8"))
    np.testing.assert_array_equal(read_table(tmp_path / "big_endian.npy").X, X)
    np.savez(tmp_path / "t.npz", X=X, y=np.array([0, 1, 0, 1]), other=X)
    table = read_table(tmp_path / "t.npz", label="y")
    np.testing.assert_array_equal(table.X, X)
    assert table.labels == ["0", "1", "0", "1"]
    np.savez(tmp_path / "one.npz", data=X)
    np.testing.assert_array_equal(read_table(tmp_path / "one.npz").X, X)
    np.savez(tmp_path / "two.npz", a=X, b=X)
    refuses(TableError, "an array called X or one two-dimensional array", read_table, tmp_path / "two.npz")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_matrices_of_scipy(kind, tmp_path):
    X = sparse.csr_array(sparse.random(20, 4, density=0.3, random_state=0))
    sparse.save_npz(tmp_path / "t.npz", X.asformat(kind))
    np.testing.assert_array_equal(read_table(tmp_path / "t.npz").X, X.toarray())


def test_a_new_format_is_one_entry(write, monkeypatch):
    def read(path, form, texts):
        return pd.DataFrame({"x": [float(line) for line in path.read_text().split()]})

    monkeypatch.setitem(FORMATS, ".toy", TableFormat("toy file", read))
    assert read_table(write("t.toy", "1 5\n3")).X.tolist() == [[1], [5], [3]]
    refuses(TableError, "not a readable toy file", read_frame, write("t.toy", "one"))


# What cannot be read


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "a,b\n", "the table has no rows"),
        ("t.csv", "a,b\n1,2\n3\n", "row 2 has 1 fields, the first has 2"),
        ("t.csv", "Sales 2020\na,b\n1,2\n", "fields, the first has 1: .* If the first line is a title, delete it."),
        ("t.csv", ",a\n0,2\n1,3\n", "no name: number"),
        ("t.csv", "a,a\n1,2\n", "column name 'a' appears 2 times"),
        (
            "t.csv",
            "Report,,\na,b,c\n1,2,3\n",
            "lacks names of 2 of 3 columns. If it is a title, delete the lines above",
        ),
        ("t.csv", "a,b\n1,inf\n2,3\n", r"infinite value \(inf\) in row 1, column 'b'"),
        ("t.csv", "a,b\nNA,1\n,2\n", r"missing in every row \(2\)"),
        ("t.csv", "a;b\n1,5;2\n2,5;3\n", "numbers with a decimal comma, such as '1,5': say so with decimal=','"),
        ("t.csv", b"a,b\n\xff\xfa,2\n", "not a text file in UTF-8"),
        ("t.csv", b"PAR1\xff", "not a text file but a Parquet file: rename it"),
        ("t.csv", "a,b\n1,2\x00\n", "'2.x00'"),
        ("t.csv.gz", gzip.compress(TEXT.encode(), mtime=0)[:-9], "not a readable text file"),
        ("t.npy", b"rubbish", "not a readable NumPy file"),
        ("t.npz", b"PK rubbish", "not a readable NumPy file"),
        ("t.parquet", b"rubbish", "not a readable Parquet file"),
        ("t.xlsx", b"PK rubbish", "not a readable Excel file"),
        ("t.xlsx", "a,b\n1,2\n", "not a readable Excel file: if it is text, rename it to end in .csv"),
        ("t.xls", b"x", r"unknown kind of table; the name must end in one of \.csv"),
        ("t.zarr", b"x", "not a readable Zarr array"),
    ],
)
def test_rubbish_gets_a_clear_error(name, content, message, write):
    refuses(TableError, message, read_table, write(name, content))


def test_files_that_are_none(tmp_path):
    for name, what in (("a.csv", "file"), ("a.npy", "file"), ("a.parquet", "file"), ("a.zarr", "folder")):
        refuses(TableError, f"no such {what}", read_frame, tmp_path / name)
    (tmp_path / "t.csv").mkdir()
    refuses(TableError, "it is a folder", read_frame, tmp_path / "t.csv")
    os.mkfifo(tmp_path / "p.csv")
    refuses(TableError, "it is a pipe or a device", read_frame, tmp_path / "p.csv")


@pytest.mark.parametrize("array", [np.arange(3.0), np.zeros((2, 2, 2)), np.array([["a"]]), np.zeros((2, 2), complex)])
def test_arrays_that_are_no_tables(array, tmp_path):
    np.save(tmp_path / "t.npy", array)
    refuses(TableError, "two-dimensional array of numbers", read_table, tmp_path / "t.npy")


@pytest.mark.parametrize("package", ["pandas", "pyarrow", "pyarrow.csv"])
def test_a_missing_package_names_the_line_that_installs_it(package, write, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    refuses(MissingExtraError, r"pip install '\.\[tables\]'", read_frame, write("t.csv", TEXT))


def test_the_oldest_versions_that_are_tried_are_the_floors():
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    floors = {needed for needed in [*extras["tables"], *extras["dask"]] if "[" not in needed}
    for group in ("test", "oldest"):
        assert floors <= set(project["dependency-groups"][group])
