"""Labels and tables out."""

import os

import numpy as np
import pytest

from biclique.exceptions import DataError, ParameterError
from biclique.tables.reading import read_frame
from biclique.tables.text_form import TextForm
from biclique.tables.writing import check_output, free_name, with_labels, write_frame, write_npy
from tests.optional import Optional

pd, pa, pq = Optional("pandas"), Optional("pyarrow"), Optional("pyarrow.parquet")

LABELS = np.array([4, -1, 0])
PROBABILITIES = np.array([0.75, np.nan, 1.0])


def test_labels_beside_ids(tmp_path):
    ids = pd.DataFrame({"key": ["x", 'a "b"', "NA"], "shop": ["y,z", "", "w"]})
    for name, text in (
        ("a.csv", 'key,shop,label\nx,"y,z",4\n"a ""b""",,\nNA,w,0\n'),
        ("a.tsv", "key\tshop\tlabel\nx\ty,z\t4\n"),
    ):
        write_frame(tmp_path / name, with_labels(ids, LABELS))
        assert (tmp_path / name).read_text().startswith(text)
    write_frame(tmp_path / "a.parquet", with_labels(ids[["shop"]], LABELS))
    assert pq.read_table(tmp_path / "a.parquet").to_pydict() == {"shop": ["y,z", "", "w"], "label": [4, None, 0]}
    write_npy(tmp_path / "a.npy", LABELS)
    assert np.load(tmp_path / "a.npy").tolist() == [4, -1, 0]


def test_fields_of_a_text_file_stay_as_they_are(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text('id;"a;b";when\n007;1.50;2024-01-01\n008;NA;\n"x""y";-0;2024-01-02 10:00\n')
    labelled = with_labels(read_frame(file, as_text=True), LABELS, PROBABILITIES)
    write_frame(tmp_path / "l.csv", labelled)
    assert (tmp_path / "l.csv").read_text() == (
        'id,a;b,when,label,probability\n007,1.50,2024-01-01,4,0.75\n008,NA,,,\n"x""y",-0,2024-01-02 10:00,0,1\n'
    )
    write_frame(tmp_path / "l.tsv", labelled)
    assert (tmp_path / "l.tsv").read_text().splitlines()[1] == "007\t1.50\t2024-01-01\t4\t0.75"


@pytest.mark.parametrize(("ending", "line"), [(".csv", '"1,5",x,4,"0,75"'), (".tsv", "1,5\tx\t4\t0,75")])
def test_probabilities_have_the_decimal_sign_of_the_text(tmp_path, ending, line):
    file, form, target = tmp_path / "t.csv", TextForm(decimal=","), tmp_path / f"l{ending}"
    file.write_text("a;b\n1,5;x\n2,5;y\n3;z\n")
    write_frame(target, with_labels(read_frame(file, form, as_text=True), LABELS, PROBABILITIES), form)
    assert target.read_text().splitlines()[1] == line
    again = read_frame(target, form)
    assert again["a"].tolist() == [1.5, 2.5, 3]
    np.testing.assert_array_equal(again["probability"], [0.75, np.nan, 1])


def test_values_in_memory(tmp_path):
    some = pd.DataFrame({"x": [1.0, None, 2.5], "label": ["a", "b", "c"], "flag": [True, False, None]})
    write_frame(tmp_path / "l.csv", with_labels(some, LABELS, PROBABILITIES))
    assert (tmp_path / "l.csv").read_text() == (
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
    labelled = with_labels(read_frame(tmp_path / "t.parquet"), LABELS, PROBABILITIES)
    write_frame(tmp_path / "l.parquet", labelled)
    after = pq.read_table(tmp_path / "l.parquet")
    assert after.select(before.column_names).replace_schema_metadata().equals(before)
    assert after["label"].to_pylist() == [4, None, 0]
    write_frame(tmp_path / "l.csv", labelled)
    assert (tmp_path / "l.csv").read_text().splitlines()[1] == f"{2**60 + 1},a,1,true,4,0.75"


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.npy", "a.parquet"])
def test_a_file_that_the_system_lets_grow_no_further(name, tmp_path):
    resource = pytest.importorskip("resource")
    labels = np.random.RandomState(0).randint(0, 2**31, 400_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    labelled = with_labels(pd.DataFrame({"row": np.arange(400_000)}), labels)
    write, content = (write_npy, labels) if name == "a.npy" else (write_frame, labelled)
    try:
        with pytest.raises(OSError, match="File too large"):
            write(tmp_path / name, content)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.xls", "must end in one of"),
        ("no/such/a.csv", "there is no folder"),
        ("folder.csv", "it is a folder"),
        ("table.csv", "is the input table itself"),
    ],
)
def test_outputs_that_cannot_be_written_are_refused_before_the_work(name, message, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "table.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match=message):
        check_output(str(tmp_path / name), str(tmp_path / "table.csv"))
    with pytest.raises(ParameterError, match="the name of the output is empty"):
        check_output("")
