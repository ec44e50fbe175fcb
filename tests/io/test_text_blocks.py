"""The fast parsers read what Python reads, or leave a block to it."""

import gzip
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from biclique.exceptions import MemoryLimitError, TableError
from biclique.io import Roles, TextForm, open_chunks, open_columns, read_columns, read_table, text_blocks, text_lines
from biclique.io.text_blocks import TextFile
from biclique.io.text_lines import count_plain
from tests.oracles import text_columns

PARSERS = ["pyarrow", "numpy"]


@pytest.fixture(params=PARSERS)
def parser(request, monkeypatch):
    """Small blocks, none of them too small for the fast parser; the number of blocks that it has read."""
    if request.param == "pyarrow":
        pytest.importorskip("pyarrow")
    else:
        monkeypatch.setattr(text_blocks, "find_pyarrow", lambda: None)
    monkeypatch.setattr(text_blocks, "FEW_LINES", 0)
    monkeypatch.setattr(text_lines, "BLOCK", 60)
    read = []
    inner = text_blocks.find_parser()

    def counted(*arguments):
        values = inner(*arguments)
        read.append(values is not None)
        return values

    monkeypatch.setattr(text_blocks, "find_parser", lambda: counted)
    return read


CELLS = st.one_of(
    st.sampled_from(
        ["1", "-2.5", "3e2", "+4", " 5 ", ".5", "6.", "inf", "1e999", "0x1", "1_0", "nan(1)", "-nan", "1e5f"]
    ),
    st.sampled_from(["", " ", "NA", "nA", "?", "NaN", " null "]),
    st.sampled_from(["true", "False", "TRUE", "tRue", "t", "2024-01-31", "2024-02-31", "2024-01-31 10:30Z"]),
    st.sampled_from(["31/12/2020", "12/31/2020", "1/2/2020", "01.02.2020", "1-2-2020 10:30", "1/2-2020", "2020/12/31"]),
    st.sampled_from(
        ['"1"', '"a,b"', '"say ""x"""', '"two\nlines"', 'a"b', '"a"b', '"', "é", "\u00a01", "\x1c", "\x00"]
    ),
    st.floats(allow_nan=False).map(repr),
)


def same(found, expected):
    kinds = {name: kind for name, kind, _ in expected}
    assert found.kinds == kinds
    for column, (_, _, values) in zip(found.columns, expected, strict=True):
        np.testing.assert_array_equal(column.values, values)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 3).flatmap(lambda d: st.lists(st.lists(CELLS, min_size=d, max_size=d), min_size=1, max_size=12)),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "\n", "\n\n", " \n"]),
    st.sampled_from(["", "day", "month"]),
)
def test_every_text_is_read_as_python_reads_it(parser, tmp_path, rows, end, last, date_order):
    form = TextForm(header=True, date_order=date_order)
    path = tmp_path / "t.csv"
    names = ",".join("abc"[: len(rows[0])])
    text = end.join([names, *(",".join(row) for row in rows)]) + last
    path.write_bytes(text.encode())
    try:
        expected = text_columns(text, date_order)
    except ValueError:
        with pytest.raises(TableError):
            read_columns(path, form)
        return
    if not expected[0][2].size:
        with pytest.raises(TableError, match="no rows"):
            read_columns(path, form)
        return
    same(read_columns(path, form), expected)
    source = open_columns(path, form)
    assert source.n_rows == len(expected[0][2]) == TextFile(path, form, 10**8).count_rows()
    chunks = list(source.column_chunks(3))
    for j, (_, kind, values) in enumerate(expected):
        assert {chunk.columns[j].kind for chunk in chunks} == {kind}
        np.testing.assert_array_equal(np.concatenate([chunk.columns[j].values for chunk in chunks]), values)


def test_plain_numbers_are_read_fast(parser, tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 3))
    lines = [",".join(map(repr, row)) for row in X.tolist()]
    (tmp_path / "t.csv").write_text("a,b,c\n" + "\n".join(lines))
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write("a,b,c\r\n" + "\r\n".join(lines) + "\r\n")
    for name in ("t.csv", "t.csv.gz"):
        table = read_table(tmp_path / name, Roles(drop=["b"]))
        np.testing.assert_array_equal(table.X, X[:, [0, 2]])
        assert table.lines == range(2, 202)
        source = open_chunks(tmp_path / name, roles=Roles(drop=["b"]))
        assert source.n_rows == 200
        np.testing.assert_array_equal(np.concatenate([chunk.copy() for chunk in source.chunks(7)]), X[:, [0, 2]])
        rows = np.array([0, 3, 199])
        np.testing.assert_array_equal(source.take(rows), X[rows][:, [0, 2]])
    assert len(parser) > 100
    assert all(parser)


def test_decimal_commas(parser, tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n" + "1,5;-2\n" * 50)
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv", decimal=",").X, [[1.5, -2]] * 50)
    assert any(parser)
    with pytest.raises(TableError, match=r"row 1 \(line 2\), column 'a': '1,5' is not a number.*decimal=','"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("a;b\n" + "1,5;-2\n" * 50 + "1.500;1\n")
    with pytest.raises(TableError, match=r"row 51 \(line 52\), column 'a': '1.500' is not a number. It has a point"):
        read_table(tmp_path / "t.csv", decimal=",")
    (tmp_path / "t.csv").write_text('a;b\n"1,000";2\n')
    with pytest.raises(TableError, match=r"'1,000' is not a number. If it has thousands separators, write it without"):
        read_table(tmp_path / "t.csv")


@pytest.mark.usefixtures("parser")
def test_a_column_that_changes_late_is_read_right_or_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 100 + "1.5,3\n" * 3)
    assert read_table(path).X[-1].tolist() == [1.5, 3]
    path.write_text("a,b\n" + "1,\n" * 100 + "07,true\n" * 3)
    assert read_table(path, drop_missing=True).X.tolist() == [[7, 1]] * 3
    path.write_text("a,b\n" + "07,\n" * 100 + "x,2024-01-31\n" * 3)
    for table in (read_columns(path), *open_columns(path).column_chunks(1000)):
        assert table.kinds == {"a": "text", "b": "date"}
    assert read_columns(path).column("a").values.tolist() == ["07"] * 100 + ["x"] * 3
    source = open_chunks(path, roles=Roles(drop=["b"]))
    for read in (lambda: read_table(path, Roles(drop=["b"])), lambda: list(source.chunks(check_finite=False))):
        with pytest.raises(TableError, match=r"row 101 \(line 102\), column 'a': 'x' is not a number"):
            read()
    path.write_text("a,b\n" + "1,true\n" * 100 + "1,2\n")
    with pytest.raises(TableError, match=r"row 101 \(line 102\), column 'b': '2' is not true or false"):
        read_table(path)


@pytest.mark.usefixtures("parser")
def test_errors_name_row_and_line_after_many_blocks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 50 + '"3\n",4\n\n' + "1,2\n" * 50 + "5\n")
    with pytest.raises(TableError, match=r"row 102 \(line 105\) has 1 fields, the first has 2"):
        read_table(path)
    path.write_bytes(b"a,b\n" + b"1,2\n" * 50 + b"\xff,2\n")
    with pytest.raises(TableError, match=r"not a text file in UTF-8 \(byte 204\)"):
        read_table(path)
    assert open_chunks(path, form=TextForm(encoding="latin-1")).n_rows == 51


def test_encodings(tmp_path):
    text = "größe,b\n" + "1,2\n" * 9
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-32"):
        (tmp_path / "t.csv").write_text(text, encoding=encoding)
        assert read_table(tmp_path / "t.csv", encoding=encoding).columns == ["größe", "b"]
    (tmp_path / "t.csv").write_text(text, encoding="utf-16")
    with pytest.raises(TableError, match=r"not a text file in UTF-8 \(byte 0\).*encoding=…, such as utf-16"):
        read_table(tmp_path / "t.csv")
    for wrong in ("klingon", "hex"):
        with pytest.raises(ValueError, match=r"encoding .* is not known"):
            read_table(tmp_path / "t.csv", encoding=wrong)


@pytest.mark.parametrize(
    ("beginning", "words"),
    [(b"PAR1", "a Parquet file"), (b"\x93NUMPY", "a NumPy file"), (b"PK\x03\x04", "a zip archive")],
)
def test_other_files_with_the_name_of_a_text(tmp_path, beginning, words):
    (tmp_path / "t.csv").write_bytes(beginning + b"\x15\xff\x00")
    with pytest.raises(TableError, match=f"not a text file but {words}.* to end in"):
        read_columns(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("PAR1,PK\n1,2\n")
    assert read_columns(tmp_path / "t.csv").names == ["PAR1", "PK"]


def test_damaged_gzip_files(tmp_path):
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    for content in (whole[:-20], whole[:30] + b"rubbish" + whole[37:]):
        (tmp_path / "t.csv.gz").write_bytes(content)
        with pytest.raises(TableError, match="not a readable gzip file"):
            read_table(tmp_path / "t.csv.gz")


def test_a_file_that_unpacks_to_more_than_memory_is_refused(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 10**5))
    with pytest.raises(MemoryLimitError, match="2 columns in memory needs"):
        read_table(tmp_path / "t.csv.gz", memory_limit="1MB")


@pytest.mark.parametrize(
    ("block", "plain"),
    [
        (b"1,2\n3,4\n", True),
        (b"1,2\r\n3,4", True),
        (b'"a","b ""c"""\n1,2\n', True),
        (b'"a,b",""\r\n"","c"', True),
        (b'""a",1\n', False),
        (b'a""b,1\n', False),
        (b'"a"b,1\n', False),
        (b'"a",1\n"b\n', False),
        (b"1,2\n\n3,4\n", False),
        (b"1,2\n \t\n3,4\n", False),
        (b"\n1,2\n", False),
        (b"1,2\n , \n", False),
        (b"1,2\r3,4\n", False),
        (b'1,"2\n3",4\n', False),
        (b'1,2"\n3,"4\n', False),
        ("1,2\n\u00a0\n3,4\n".encode(), False),
        (b"1,2\x00\n", False),
    ],
)
def test_plain_blocks(block, plain):
    assert count_plain(block, ",") == (len(block.splitlines()) if plain else None)


def test_years_as_names_are_noted(tmp_path):
    (tmp_path / "t.csv").write_text("2019,2020,2021\n1.5,2,3\n")
    (note,) = read_table(tmp_path / "t.csv").notes
    assert "was read as a row" in note
    assert note.endswith("say so: header=True.")
    assert read_table(tmp_path / "t.csv", header=True).notes == ()
    assert read_table(tmp_path / "t.csv", header=True).columns == ["2019", "2020", "2021"]


def test_progress_of_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "BLOCK", 100)
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 200)
    shares = []
    read_table(tmp_path / "t.csv", tick=shares.append)
    assert len(shares) > 5
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_small_tables_do_not_import_pyarrow(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(text_blocks, "find_pyarrow", lambda: pytest.fail("imported"))
    assert read_table(tmp_path / "t.csv").X.tolist() == [[1, 2]]


@pytest.mark.usefixtures("parser")
def test_more_rows_than_the_first_lines_promise(tmp_path):
    X = np.arange(600.0).reshape(300, 2)
    lines = [",".join(f"{x:030.10f}" if i < 20 else f"{x:g}" for x in row) for i, row in enumerate(X.tolist())]
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(lines))
    table = read_table(tmp_path / "t.csv")
    np.testing.assert_array_equal(table.X, X)
    assert table.X.flags.owndata
    assert table.X.flags.c_contiguous


def test_the_length_of_a_line_is_not_that_of_the_lines_before(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 225 + "3,4")  # the last line is read alone
    assert read_table(tmp_path / "t.csv", memory_limit=90_000).X.sum() == 3 * 225 + 7


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("sign", [";", "|"])
def test_a_line_for_excel_is_no_part_of_the_table(tmp_path, start, sign):
    (tmp_path / "t.csv").write_bytes(start + f"sep={sign}\r\na{sign}b\r\n1{sign}2\r\n3{sign}4\r\n".encode())
    table = read_table(tmp_path / "t.csv")
    assert (table.columns, table.X.tolist(), [*table.lines]) == (["a", "b"], [[1, 2], [3, 4]], [3, 4])


def test_a_line_with_other_fields_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("a|b\n1|2\n1|2|3\n")
    with pytest.raises(
        TableError, match=r"row 2 \(line 3\) has 3 fields, the first has 2: mend the line; .* a bar in it"
    ):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("names", ["a,b\n", ""])
def test_memory_is_estimated_from_the_first_lines(tmp_path, monkeypatch, names):
    monkeypatch.setattr(text_lines, "BLOCK", 2_000)
    (tmp_path / "t.csv").write_text(names + "1.5,2.5\n" * 5_000)
    assert open_chunks(tmp_path / "t.csv").held_bytes == pytest.approx(5_000 * 2 * 8, rel=0.1)
