"""``biclique cluster --dask``: files as chunks, labels as parts, resumed."""

import json
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from biclique.cli import main, on_dask
from tests.optional import Optional, needs

distributed, pa, parquet = Optional("distributed"), Optional("pyarrow"), Optional("pyarrow.parquet")
pytestmark = [needs("distributed"), needs("pyarrow")]


@pytest.fixture(autouse=True)
def in_threads(monkeypatch):
    """Tasks run in threads of this process: ``test_dask_cluster.py`` has worker processes."""
    monkeypatch.setattr(on_dask, "connected", lambda where, jobs: nullcontext())


@pytest.fixture
def folder(blobs, tmp_path):
    X, _ = blobs
    rows = tmp_path / "rows"
    rows.mkdir()
    for i, some in enumerate(np.split(np.arange(300), [130, 131])):
        columns = {name: X[some, j] for j, name in enumerate("abcde")} | {"key": [f"r{n}" for n in some]}
        parquet.write_table(pa.table(columns), rows / f"{i}.parquet")
    return tmp_path


def run(folder, *more):
    arguments = ["cluster", str(folder / "rows" / "*.parquet"), "-k", "4", "--id", "key", "--dask", "local"]
    return main([*arguments, *more])


def labels_in(folder):
    parts = [parquet.read_table(path) for path in sorted(folder.glob("part-*.parquet"))]
    return pa.concat_tables(parts)


def test_labels_are_those_of_the_table_in_memory(folder, blobs, capsys):
    out = folder / "labels"
    assert run(folder, "-o", str(out), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["columns"]) == (300, 5)
    found = labels_in(out)
    assert found["key"].to_pylist() == [f"r{n}" for n in range(300)]
    labels = found["label"].to_numpy()
    assert adjusted_rand_score(labels, blobs[1]) == 1
    assert [one["rows"] for one in told["clusters"]] == np.bincount(labels).tolist()
    assert main(["cluster", str(folder / "rows" / "0.parquet"), "-k", "4", "--drop", "key"]) == 0


def test_rows_are_numbered_from_0_over_all_files(folder):
    rows, out, table = folder / "rows" / "*.parquet", folder / "labels", folder / "table.csv"
    settings = ["-k", "4", "--drop", "key"]
    assert main(["cluster", str(rows), *settings, "--dask", "local", "-o", str(out)]) == 0
    found = labels_in(out)
    assert found["row"].to_pylist() == list(range(300))
    first = str(folder / "rows" / "0.parquet")
    assert main(["cluster", first, *settings, "-o", str(table)]) == 0  # as without Dask
    numbers = np.loadtxt(table, delimiter=",", skiprows=1, usecols=0, dtype=int)
    assert numbers.tolist() == found["row"].to_pylist()[:130]


def test_a_failed_run_does_not_keep_its_folder(folder, capsys):
    out, path = folder / "labels", folder / "rows" / "1.parquet"
    whole = parquet.read_table(path)
    parquet.write_table(whole.set_column(0, "a", pa.array([np.nan])), path)
    assert run(folder, "-o", str(out)) == 3
    assert "missing value (NaN) in row 1" in capsys.readouterr().err
    parquet.write_table(whole, path)
    assert run(folder, "-o", str(out)) == 0
    assert labels_in(out).num_rows == 300


def test_a_run_is_gone_on_with(folder, capsys):
    out = folder / "labels"
    assert run(folder, "-o", str(out)) == 0
    whole = labels_in(out)
    second = out / "part-00001.parquet"
    first, second_bytes = (out / "part-00000.parquet").stat().st_mtime_ns, second.read_bytes()
    second.unlink()
    assert run(folder, "-o", str(out)) == 0
    assert (out / "part-00000.parquet").stat().st_mtime_ns == first
    assert second.read_bytes() == second_bytes
    assert labels_in(out) == whole
    capsys.readouterr()
    assert run(folder, "-o", str(out)) == 0
    assert "all 3 parts of this run are there" in capsys.readouterr().out
    assert run(folder, "-o", str(out), "--seed", "7") == 3
    assert "holds something else than labels of this run" in capsys.readouterr().err


def test_scales(folder, capsys):
    assert run(folder, "--scale", "robust", "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 300


def test_moments_are_those_of_all_rows(blobs):
    from biclique.rows.array import Block

    X, _ = blobs
    total = on_dask.moments_of(Block(X[:100], np.ones(100)))
    total += on_dask.moments_of(Block(X[100:], np.ones(200)))
    np.testing.assert_allclose(total.mean, X.mean(axis=0))
    np.testing.assert_allclose(total.squares / total.n, X.var(axis=0))


def test_what_is_refused(folder, capsys):
    def refused(*arguments):
        assert main(["cluster", *arguments, "-k", "4", "--dask", "local"]) != 0
        return capsys.readouterr().err

    table = str(folder / "rows" / "0.parquet")
    assert "no file has a name of this pattern" in refused(str(folder / "none" / "*.parquet"))
    assert "--label cannot be used with --dask" in refused(table, "--label-column", "key")
    assert "--missing cannot be used with --dask" in refused(table, "--drop-missing")
    assert "nearest_neighbors" in refused(table, "--drop", "key", "--affinity", "nearest_neighbors")
    parquet.write_table(pa.table({"a": [1.0], "key": ["x"]}), folder / "rows" / "9.parquet")
    assert "has other columns than" in refused(str(folder / "rows" / "*.parquet"), "--drop", "key")
    values = np.ones(200)
    values[120] = np.nan
    parquet.write_table(pa.table({"a": np.arange(200.0), "b": values}), folder / "bad.parquet")
    told = refused(str(folder / "bad.parquet"))
    assert "bad.parquet" in told
    assert "121" in told


def test_no_scheduler_there(folder, capsys, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(on_dask, "CONNECT_SECONDS", 0.2)
    assert run(folder, "--dask", "tcp://127.0.0.1:9") != 0
    assert "no Dask scheduler answers there" in capsys.readouterr().err
