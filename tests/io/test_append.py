"""Tables written back with labels."""

import numpy as np
import pytest

from biclique.exceptions import DataError, TableError
from biclique.io.fields import TextForm
from biclique.io.label_files import NewColumns, append_labels, check_append, check_ids, free_name
from biclique.io.tables import read_columns
from tests.io.test_prepare import table
from tests.optional import Optional

pa = Optional("pyarrow")

KEPT = np.array([True, False, True])
NEW = NewColumns(KEPT, np.array([4, 0]), np.array([0.75, 1.0]))


def test_fields_of_a_text_file_stay_as_they_are(tmp_path):
    text = 'id;"a;b";when\n007;1.50;2024-01-01\n008;NA;\n"x""y";-0;2024-01-02 10:00\n'
    file = tmp_path / "t.csv"
    file.write_text(text)
    append_labels(tmp_path / "l.csv", read_columns(file), NEW, file)
    assert (tmp_path / "l.csv").read_text() == (
        'id,a;b,when,label,probability\n007,1.50,2024-01-01,4,0.75\n008,NA,,,\n"x""y",-0,2024-01-02 10:00,0,1\n'
    )
    append_labels(tmp_path / "l.tsv", read_columns(file), NewColumns(KEPT, np.array([4, 0])), file)
    assert (tmp_path / "l.tsv").read_text().splitlines()[:2] == ["id\ta;b\twhen\tlabel", "007\t1.50\t2024-01-01\t4"]


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_probabilities_have_the_decimal_sign_of_the_text(tmp_path, ending):
    file, form, target = tmp_path / "t.csv", TextForm(decimal=","), tmp_path / f"l{ending}"
    file.write_text("a;b\n1,5;x\n2,5;y\n3;z\n")
    append_labels(target, read_columns(file, form), NEW, file, form)
    lines = {".csv": '"1,5",x,4,"0,75"', ".tsv": "1,5\tx\t4\t0,75"}
    assert target.read_text().splitlines()[1] == lines[ending]
    again = read_columns(target, form)
    np.testing.assert_array_equal(again.column("a").values, [1.5, 2.5, 3])
    np.testing.assert_array_equal(again.column("probability").values, [0.75, np.nan, 1])


def test_columns_in_memory(tmp_path):
    some = table(x=[1.0, None, 2.5], label=["a", "b", "c"], flag=[True, False, None])
    append_labels(tmp_path / "l.csv", some, NEW)
    assert (tmp_path / "l.csv").read_text() == (
        "x,label,flag,label_2,probability\n1,a,true,4,0.75\n,b,false,,\n2.5,c,,0,1\n"
    )
    assert free_name("label", ["label", "label_2"]) == "label_3"


def test_parquet_keeps_its_types(tmp_path):
    before = pa.table({"big": [2**60 + 1, None, 3], "t": ["a", None, "c"]})
    file = tmp_path / "t.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(before, file)
    append_labels(tmp_path / "l.parquet", read_columns(file), NEW, file)
    after = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "l.parquet")
    assert after.select(["big", "t"]).equals(before)
    assert after["label"].to_pylist() == [4, None, 0]
    assert after["probability"].to_pylist() == [0.75, None, 1.0]
    for form in None, TextForm(decimal=","):  # which is for text files
        append_labels(tmp_path / "l.csv", read_columns(file), NEW, file, form)
        assert (tmp_path / "l.csv").read_text().splitlines()[1] == f"{2**60 + 1},a,4,0.75"


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"written as \.csv, \.tsv or \.parquet"):
        check_append("l.npy", "t.csv")
    with pytest.raises(DataError, match="only the rows of a Parquet file"):
        check_append("l.parquet", "t.csv")
    with pytest.raises(DataError, match="several columns of ids"):
        check_ids("l.npy")
    with pytest.raises(TableError, match="2 rows came in this pass, 3 before"):
        append_labels(tmp_path / "l.csv", table(x=[1.0, 2.0]), NEW)
    assert list(tmp_path.iterdir()) == []
