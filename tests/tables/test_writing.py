"""Labels and tables out."""

import numpy as np
import pytest

from biclique.tables.reading import read_frame
from biclique.tables.text_form import PLAIN, TextForm
from biclique.tables.writing import free_name, write_labels
from tests.optional import Optional

pd, pa, pq = Optional("pandas"), Optional("pyarrow"), Optional("pyarrow.parquet")

LABELS = np.array([4, -1, 0])
PROBABILITIES = np.array([0.75, np.nan, 1.0])


def write(path, *pieces, labels=LABELS, probabilities=None, form=PLAIN):
    write_labels(path, labels, pieces, form, probabilities)
    return path


def test_labels_beside_ids(tmp_path):
    ids = pd.DataFrame({"key": ["x", 'a "b"', "NA"], "shop": ["y,z", "", "w"]})
    for name, text in (
        ("a.csv", 'key,shop,label\nx,"y,z",4\n"a ""b""",,\nNA,w,0\n'),
        ("a.tsv", "key\tshop\tlabel\nx\ty,z\t4\n"),
    ):
        assert write(tmp_path / name, ids[:1], ids[1:]).read_text().startswith(text)
    path = write(tmp_path / "a.parquet", ids[["shop"]])
    assert pq.read_table(path).to_pydict() == {"shop": ["y,z", "", "w"], "label": [4, None, 0]}
    assert np.load(write(tmp_path / "a.npy", ids)).tolist() == [4, -1, 0]


@pytest.mark.parametrize(
    ("decimal", "ending", "text"),
    [
        (".", ".csv", 'id,a b,label,probability\n007,1.50,4,0.75\n"x""y",NA,,\n008,-0,0,1\n'),
        (".", ".tsv", 'id\ta b\tlabel\tprobability\n007\t1.50\t4\t0.75\n"x""y"\tNA\t\t\n008\t-0\t0\t1\n'),
        (",", ".csv", 'id,a b,label,probability\n007,"1,50",4,"0,75"\n"x""y",NA,,\n008,-0,0,1\n'),
        (",", ".tsv", 'id\ta b\tlabel\tprobability\n007\t1,50\t4\t0,75\n"x""y"\tNA\t\t\n008\t-0\t0\t1\n'),
    ],
)
def test_fields_of_a_text_file_stay_as_they_are(tmp_path, decimal, ending, text):
    file, form = tmp_path / "t.csv", TextForm(decimal=decimal)
    file.write_text(f'id;"a b"\n007;1{decimal}50\n"x""y";NA\n008;-0\n')
    rows = read_frame(file, form, texts=["id", "a b"])
    written = write(tmp_path / f"l{ending}", rows, probabilities=PROBABILITIES, form=form)
    assert written.read_text() == text
    np.testing.assert_array_equal(read_frame(written, form)["probability"], PROBABILITIES)


def test_values_in_memory(tmp_path):
    some = pd.DataFrame({"x": [1.0, None, 2.5], "label": ["a", "b", "c"], "flag": [True, False, None]})
    assert write(tmp_path / "l.csv", some, probabilities=PROBABILITIES).read_text() == (
        "x,label,flag,label_2,probability\n1,a,True,4,0.75\n,b,False,,\n2.5,c,,0,1\n"
    )
    assert free_name("label", ["label", "label_2"]) == "label_3"


def test_parquet_keeps_its_types(tmp_path):
    before = pa.table(
        {
            "big": pa.array([2**60 + 1, None, 3]),
            "t": pa.array(["a", None, "c"]),
            "small": pa.array([1, 2, None], pa.int8()),
            "flag": pa.array([True, None, False]),
        }
    )
    pq.write_table(before, tmp_path / "t.parquet")
    rows = read_frame(tmp_path / "t.parquet")
    after = pq.read_table(write(tmp_path / "l.parquet", rows, probabilities=PROBABILITIES))
    assert after.select(before.column_names).replace_schema_metadata().equals(before)
    assert after["label"].to_pylist() == [4, None, 0]
    text = write(tmp_path / "l.csv", rows, probabilities=PROBABILITIES).read_text()
    assert text.splitlines()[1] == f"{2**60 + 1},a,1,true,4,0.75"
