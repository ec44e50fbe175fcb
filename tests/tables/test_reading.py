"""Tables as pandas frames."""

import gzip

import numpy as np
import pytest

from biclique.exceptions import TableError
from biclique.tables.reading import read_frame, settle
from biclique.tables.text_form import TextForm
from tests.optional import Optional

pd = Optional("pandas")

TEXT = "name,x,y,kind\n007,1,2.5,red\nb,3,-4e1,?\n\nc,5,6,red\n"


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


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
        ("quoted.csv", TEXT.replace("red", '"red"').replace("name", '"name"')),
        ("t.csv.gz", gzip.compress(TEXT.encode())),
    ],
)
def test_text_tables(name, content, write):
    path = write(name, content)
    frame = read_frame(path, texts=["name"])
    assert frame.to_numpy().tolist() == [["007", 1, 2.5, "red"], ["b", 3, -40, None], ["c", 5, 6, "red"]]
    texts = read_frame(path, as_text=True)
    assert texts.iloc[1].tolist() == ["b", "3", "-4e1", "?"]
    pd.testing.assert_frame_equal(settle(texts, texts=["name"]), frame)


def test_kinds(write):
    path = write("t.csv", 'flag,day,share,price,empty\ntrue,2024-01-31,56%,"$1,200",\n,2024-02-01 10:30,7%,-$5.50,NA\n')
    frame = read_frame(path)
    assert [dtype.kind for dtype in frame.dtypes] == ["b", "M", "f", "f", "f"]
    assert frame["share"].tolist() == [56, 7]
    assert frame["price"].tolist() == [1200, -5.5]
    assert frame.isna().to_numpy().tolist() == [[False, False, False, False, True], [True, False, False, False, True]]
    path = write("t.csv", "größe;b;when\n1,5;x;31/12/2020\n-2;1.500;1/2/2021\n".encode("latin-1"))
    frame = read_frame(path, TextForm(decimal=",", encoding="latin-1", date_order="day"))
    assert frame["größe"].tolist() == [1.5, -2]
    assert frame["b"].tolist() == ["x", "1.500"]
    assert frame["when"].astype(str).tolist() == ["2020-12-31", "2021-02-01"]


def test_an_index_of_pandas_is_no_column(tmp_path):
    pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index([7, 8], name="key")).to_parquet(tmp_path / "t.parquet")
    assert read_frame(tmp_path / "t.parquet").columns.tolist() == ["x"]


def test_arrays(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "t.npy", X)
    assert np.array_equal(read_frame(tmp_path / "t.npy").to_numpy(), X)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("a,b\n", "the table has no rows"),
        ("a,b\n1,2\n3\n", "row 2 has 1 fields, the first has 2"),
        ("a,a\n1,2\n", "column name 'a' appears 2 times"),
        (b"a,b\n\xff\xfe\xfa,2\n", "not a text file in UTF-8"),
    ],
)
def test_bad_texts(content, message, write):
    with pytest.raises(TableError, match=message):
        read_frame(write("t.csv", content))
