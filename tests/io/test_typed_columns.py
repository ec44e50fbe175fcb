import datetime as dt
from decimal import Decimal

import numpy as np
import pytest

from biclique.io import TextForm, as_columns, read_columns
from biclique.io.columns import texts_of
from biclique.io.typed_columns import Column
from tests.optional import Optional, needs

pd, pl, pa = Optional("pandas"), Optional("polars"), Optional("pyarrow")

TEXT = """id,size,flag,day,kind,empty
a,1,true,2024-01-31,red,
b,2.5,FALSE,2024-02-01 10:30,?,NA
c,NA,,,"1,5",
"""
KINDS = {"id": "text", "size": "number", "flag": "boolean", "day": "date", "kind": "text", "empty": "number"}


def check(table, kinds=KINDS):
    assert table.kinds == kinds
    np.testing.assert_array_equal(table.column("size").values, [1, 2.5, np.nan])
    np.testing.assert_array_equal(table.column("flag").values, [1, 0, np.nan])
    days = np.array(["2024-01-31", "2024-02-01T10:30", "NaT"], dtype="datetime64[us]")
    np.testing.assert_array_equal(table.column("day").values, days)
    assert table.column("day").missing.tolist() == [False, False, True]


def test_a_text(tmp_path):
    (tmp_path / "t.csv").write_text(TEXT)
    table = read_columns(tmp_path / "t.csv")
    check(table)
    assert table.column("kind").values.tolist() == ["red", "?", "1,5"]
    assert table.column("kind").missing.tolist() == [False, True, False]
    assert table.column("empty").missing.all()


def test_decimal_commas_and_encodings(tmp_path):
    (tmp_path / "t.csv").write_text("größe;b\n1,5;x\n-2;1.500\n", encoding="latin-1")
    table = read_columns(tmp_path / "t.csv", TextForm(decimal=",", encoding="latin-1"))
    assert table.kinds == {"größe": "number", "b": "text"}
    assert table.column("größe").values.tolist() == [1.5, -2]


FRAME = {
    "size": [1.0, 2.5, None],
    "flag": [True, False, None],
    "day": [dt.datetime(2024, 1, 31), dt.datetime(2024, 2, 1, 10, 30), None],
    "kind": ["red", None, "blue"],
}
FRAME_KINDS = {"size": "number", "flag": "boolean", "day": "date", "kind": "text"}


FRAMES = {
    "pandas": lambda: pd.DataFrame(FRAME),
    "nullable": lambda: pd.DataFrame(FRAME).astype({"flag": "boolean", "size": "Float64", "kind": "category"}),
    "objects": lambda: pd.DataFrame(FRAME).astype(object),
    "polars": lambda: pl.DataFrame(FRAME),
    "arrow": lambda: pa.table(FRAME),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=[*FRAMES])
def test_frames(make):
    table = as_columns(make())
    check(table, FRAME_KINDS)
    assert table.column("kind").values.tolist() == ["red", "", "blue"]


def test_arrays():
    table = as_columns(np.array([[1, True, "a"], [Decimal("2.5"), None, None]], dtype=object))
    assert table.kinds == {"0": "number", "1": "boolean", "2": "text"}
    assert as_columns(np.array([[True], [False]])).column("0").values.tolist() == [1, 0]


@needs("pyarrow")
def test_parquet(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(pa.table(FRAME), tmp_path / "t.parquet")
    check(read_columns(tmp_path / "t.parquet"), FRAME_KINDS)


def test_large_whole_numbers_keep_their_digits():
    """Ids beyond 2⁵³: float64 rounds them, and labels would stand beside other names."""
    large = [10**18 + i for i in range(3)]
    for frame in (pd.DataFrame({"key": large}), pl.DataFrame({"key": large}), pa.table({"key": large})):
        table = as_columns(frame)
        assert texts_of(table.column("key")) == [str(one) for one in large]
        again = [part.column("key") for part in table.column_chunks(2)]
        assert texts_of(Column.joined(again)) == [str(one) for one in large]
    assert as_columns(np.array([[1], [2]])).columns[0].digits is None
