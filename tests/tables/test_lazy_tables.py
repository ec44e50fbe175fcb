"""Tables larger than memory: what Dask reads in parts is what is read whole."""

import numpy as np
import pytest

from biclique.exceptions import TableError
from biclique.tables import array_tables, text_tables
from biclique.tables.frames import texts_of
from biclique.tables.reading import open_lazily, read_frame
from biclique.tables.text_form import TextForm
from tests.calls import refuses
from tests.optional import Optional

pd = Optional("pandas")
pytest.importorskip("dask.dataframe")


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr(text_tables, "TEXT_BLOCK", 500)
    monkeypatch.setattr(array_tables, "ARRAY_BLOCK", 500)
    monkeypatch.setattr(text_tables, "FIRST_BYTES", 300)


def mixed(n=200):
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(n), unit="D")
    return pd.DataFrame(
        {
            "key": [f"{i:05d}" for i in range(n)],
            "x": np.where(np.arange(n) % 50 == 49, np.nan, np.arange(n) / 7),
            "kind": ["a", "NA", "größer"] * (n // 3) + ["a"] * (n % 3),
            "day": day,
            "flag": np.arange(n) % 2 == 0,
            "note": ['two\nlines, "quoted"' if i % 7 == 0 else "one" for i in range(n)],
        }
    )


def same(parts, whole):
    assert parts.npartitions > 2
    found = parts.compute()
    assert list(found.columns) == list(whole.columns)
    for name in whole.columns:
        assert texts_of(found[name]) == texts_of(whole[name])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("header", [True, False])
def test_text_in_blocks(encoding, header, tmp_path):
    path = tmp_path / "t.csv"
    mixed().to_csv(path, index=False, encoding=encoding, header=header)
    texts, form = ["key" if header else "0"], TextForm(encoding=encoding, header=header)
    same(open_lazily(path, form, texts=texts), read_frame(path, form, texts=texts))


def test_parquet_by_groups_of_rows(tmp_path):
    mixed().to_parquet(tmp_path / "t.parquet", row_group_size=30)
    same(open_lazily(tmp_path / "t.parquet", texts=["key"]), read_frame(tmp_path / "t.parquet", texts=["key"]))
    (tmp_path / "folder.parquet" / "year=2020").mkdir(parents=True)
    for part in range(3):
        mixed(30).to_parquet(tmp_path / "folder.parquet" / "year=2020" / f"{part}.parquet")
    same(open_lazily(tmp_path / "folder.parquet"), read_frame(tmp_path / "folder.parquet"))


def test_a_file_that_changes_between_passes(tmp_path):
    for name in ("t.csv", "t.parquet"):
        path = tmp_path / name
        write = mixed().to_csv if name == "t.csv" else mixed().to_parquet
        write(path, index=False)
        lazy = open_lazily(path)
        lazy.compute()
        path.write_bytes(path.read_bytes() + b"\n")
        refuses(TableError, "was written again or replaced", lazy.compute)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "x\n" + "1\n" * 600 + "much\n", r"\(from byte \d+ on\): column 'x' holds numbers in the first rows"),
        ("t.csv", "x,y\n" + "1,2\n" * 600 + "1\n", r"\(from byte \d+ on\): row \d+ has 1 fields, the first has 2"),
        ("t.csv", b"\xff\xfea\0\n\0", "can not be read in parts"),
        ("t.csv.gz", b"\x1f\x8b", "can not be read in parts"),
        ("t.xlsx", b"PK", "is read whole"),
        ("t.csv", "", "the file is empty"),
    ],
)
def test_what_cannot_be_read_in_parts(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    refuses(TableError, message, lambda: open_lazily(tmp_path / name).compute())


def test_columns_without_values_and_gaps_at_the_end(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("flag,x\n" + "true,1\n" * 200 + ",\n" * 300 + "false,\n,\n,\n")
    same(open_lazily(path), read_frame(path))
