import os
import stat

import numpy as np
import pandas as pd
import pytest

from biclique.exceptions import DataError
from biclique.io import atomic_path, check_output, write_labels

LABELS = np.array([2, 0, 1])
ROWS = np.array([0, 2, 3])


def test_labels_with_row_numbers_or_ids(tmp_path):
    write_labels(str(tmp_path / "a.csv"), LABELS, rows=ROWS, n_rows=4)
    assert (tmp_path / "a.csv").read_text() == "row,label\n1,2\n3,0\n4,1\n"
    write_labels(str(tmp_path / "a.tsv"), LABELS, rows=ROWS, n_rows=4, ids=["x", "y,z", "w"], id_name="key")
    assert (tmp_path / "a.tsv").read_text() == "key\tlabel\nx\t2\ny,z\t0\nw\t1\n"
    write_labels(str(tmp_path / "a.npy"), LABELS, rows=ROWS, n_rows=4)
    assert np.load(tmp_path / "a.npy").tolist() == [2, -1, 0, 1]
    write_labels(str(tmp_path / "a.parquet"), LABELS, rows=ROWS, n_rows=4)
    assert pd.read_parquet(tmp_path / "a.parquet").to_dict("list") == {"row": [1, 3, 4], "label": [2, 0, 1]}


def test_an_id_column_called_label_is_not_lost(tmp_path):
    for name in ("a.csv", "a.parquet"):
        write_labels(str(tmp_path / name), LABELS, rows=ROWS, n_rows=4, ids=["x", "y", "z"], id_name="label")
    assert (tmp_path / "a.csv").read_text() == "label,cluster\nx,2\ny,0\nz,1\n"
    assert list(pd.read_parquet(tmp_path / "a.parquet").columns) == ["label", "cluster"]


def test_a_failure_leaves_the_old_file_and_no_rubbish(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("old")

    def fails():
        with atomic_path(path) as temporary:
            temporary.write_text("half of the")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["labels.csv"]


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    with atomic_path(tmp_path / "a.csv") as temporary:
        temporary.write_text("x")
    (tmp_path / "b.csv").touch()
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "b.csv").stat().st_mode
    (tmp_path / "b.csv").chmod(0o600)
    with atomic_path(tmp_path / "b.csv") as temporary:
        temporary.write_text("x")
    assert stat.S_IMODE((tmp_path / "b.csv").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.xls", "must end in one of"), ("no/such/a.csv", "there is no folder"), ("folder.csv", "it is a folder")],
)
def test_outputs_that_cannot_be_written_are_refused_before_the_work(name, message, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=message):
        check_output(str(tmp_path / name))


def test_the_input_is_never_overwritten(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a\n1\n")
    with pytest.raises(DataError, match="is the input table itself"):
        check_output(str(table), str(table))
