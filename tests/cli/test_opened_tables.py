"""Tables larger than memory, and tables on a cluster: the same files as from memory."""

import json
import os
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from biclique.cli import cluster_command, opened_tables, scheduler
from biclique.tables import array_tables, text_tables
from tests.cli.running import run
from tests.optional import Optional, needs

pytestmark = [needs("dask"), needs("pyarrow"), needs("pandas")]
pd, pa, parquet, zarr = Optional("pandas"), Optional("pyarrow"), Optional("pyarrow.parquet"), Optional("zarr")


@pytest.fixture
def small_memory(monkeypatch):
    """Every table is larger than memory, and is read in small parts."""
    monkeypatch.setattr(text_tables, "TEXT_BLOCK", 2**15)
    monkeypatch.setattr(array_tables, "ARRAY_BLOCK", 2**14)

    def switch():
        monkeypatch.setattr(opened_tables, "free_memory", lambda: 1000)

    return switch


def table(n=3000):
    """Three groups in columns of different scales, with an id, a class, a category, a weight and a gap."""
    random = np.random.RandomState(0)
    y = random.randint(0, 3, size=n)
    X = random.normal(size=(n, 4))
    X[:, :2] += 7 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    X = X * [1, 50, 1, 0.01] + 5
    X[1500, 2] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(0, "name", [f"row {i}, of {n}" for i in range(n)])
    return frame.assign(kind=np.array(["ox", "ant", "bee"])[y], city=["Oslo", "Rome"] * (n // 2), weight=1 + y)


ROLES = ("--id", "name", "--label", "kind", "--weight", "weight")


@pytest.mark.parametrize(
    ("ending", "options"),
    [
        ("csv", (*ROLES, "--categorical", "city", "--missing", "mean", "-o", "{}.csv")),
        ("csv", (*ROLES, "--drop", "city", "--missing", "drop", "--append", "-o", "{}.csv")),
        ("parquet", (*ROLES, "--categorical", "city", "--missing", "indicator", "-o", "{}.parquet")),
        ("parquet", (*ROLES, "--drop", "city", "--missing", "drop", "--append", "-o", "{}.parquet")),
        ("npy", ("--missing", "drop", "--scale", "none", "--id", "3", "-o", "{}.tsv")),
        ("npy", ("--missing", "drop", "--affinity", "rbf", "--gram", "nystroem", "--rank", "40", "-o", "{}.npy")),
        pytest.param("zarr", ("--missing", "drop", "-o", "{}.csv"), marks=needs("zarr")),
    ],
)
def test_the_file_is_that_of_the_table_in_memory(capsys, tmp_path, monkeypatch, small_memory, ending, options):
    monkeypatch.chdir(tmp_path)
    frame = table()
    numbers = frame[list("abcd")].to_numpy()
    match ending:
        case "csv":
            frame.to_csv("t.csv", index=False)
        case "parquet":
            frame.to_parquet("t.parquet", row_group_size=700)
        case "npy":
            np.save("t.npy", numbers)
        case "zarr":
            zarr.create_array("t.zarr", shape=numbers.shape, chunks=(512, 4), dtype="f8")[:] = numbers
    results = []
    for place in ("held", "lazy"):
        if place == "lazy":
            small_memory()
        asked = [option.format(place) for option in options]
        code, out, _ = run(capsys, "cluster", f"t.{ending}", "-k", 3, "--json", *asked, "--save", f"{place}.skops")
        assert code == 0
        results.append(json.loads(out))
    held, lazy = results
    assert (held["streamed"], lazy["streamed"]) == (False, True)
    for key in ("rows", "rows_left_out", "columns", "error", "gram", "rank", "order"):
        assert held[key] == lazy[key]
    assert [one["rows"] for one in held["clusters"]] == [one["rows"] for one in lazy["clusters"]]
    output = options[-1]
    with open(output.format("held"), "rb") as one, open(output.format("lazy"), "rb") as other:
        if ending == "parquet":
            pd.testing.assert_frame_equal(pd.read_parquet(one), pd.read_parquet(other), check_dtype=False)
        else:
            assert one.read() == other.read()
    if "--append" not in options and ending != "zarr":  # new rows, by the saved model
        again = f"again{os.path.splitext(output)[1]}"
        gaps = ["--drop-missing"] if "drop" in options else []
        assert run(capsys, "predict", "lazy.skops", f"t.{ending}", "-o", again, *gaps, "-q") == (0, "", "")
        if ending != "parquet":
            with open(again, "rb") as one, open(output.format("lazy"), "rb") as other:
                assert one.read() == other.read()


def test_a_report_is_made_of_some_rows(capsys, tmp_path, small_memory, monkeypatch):
    table().to_csv(tmp_path / "t.csv", index=False)
    small_memory()
    monkeypatch.setattr(opened_tables, "SHOWN_ROWS", 500)
    arguments = ["--columns", "a,b", "--id", "name", "--report", tmp_path / "page.html", "-q"]
    assert run(capsys, "cluster", tmp_path / "t.csv", "-k", 3, *arguments) == (0, "", "")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "made of 500 of 3000 rows" in page
    assert "of 3000" in page  # ids


def test_what_needs_the_rows_in_memory_is_refused(capsys, tmp_path, small_memory):
    table().to_csv(tmp_path / "t.csv", index=False)
    small_memory()
    for options, message in (
        (["--affinity", "nearest_neighbors"], "nearest_neighbors"),
        (["--missing", "median"], "--missing median needs every value"),
        (["--scale", "robust"], "--scale robust needs every value"),
    ):
        code, out, err = run(capsys, "cluster", tmp_path / "t.csv", "-k", 3, "--columns", "a,b", *options)
        assert (code, out) == (2, "")
        assert message in err
    code, _, err = run(capsys, "cluster", tmp_path / "t.csv", "-k", 3)
    assert code == 3
    assert "--categorical kind,city" in err.splitlines()[-1]
    model, page = tmp_path / "m.skops", tmp_path / "page.html"
    assert run(capsys, "cluster", tmp_path / "t.csv", "-k", 3, "--columns", "a,b", "--save", model, "-q")[0] == 0
    code, _, err = run(capsys, "report", model, tmp_path / "t.csv", "-o", page)
    assert (code, "a report needs the whole table in memory" in err) == (4, True)


def test_a_table_that_changes_during_the_work(capsys, tmp_path, small_memory, monkeypatch):
    frame = table()
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=700)
    small_memory()
    fit = cluster_command.BicliqueSpectralClustering.fit

    def replaced(model, X):
        fit(model, X)
        frame[:1000].to_parquet(tmp_path / "t.parquet")
        return model

    monkeypatch.setattr(cluster_command.BicliqueSpectralClustering, "fit", replaced)
    arguments = ["cluster", tmp_path / "t.parquet", "-k", 3, "--columns", "a,b", "-o", tmp_path / "l.csv"]
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (3, "")
    assert "was written again or replaced" in err
    assert os.listdir(tmp_path) == ["t.parquet"]


# On a cluster


@pytest.fixture
def folder(blobs, tmp_path, monkeypatch):
    """Three files; tasks run in threads of this process: ``test_dask_cluster.py`` has worker processes."""
    monkeypatch.setattr(cluster_command, "connected", lambda where, jobs: nullcontext())
    (tmp_path / "rows").mkdir()
    for i, some in enumerate(np.split(np.arange(300), [130, 131])):
        columns = {name: blobs[0][some, j] for j, name in enumerate("abcde")} | {"key": [f"r{n}" for n in some]}
        parquet.write_table(pa.table(columns), tmp_path / "rows" / f"{i}.parquet")
    return tmp_path


def on_dask(capsys, folder, *more):
    rows = folder / "rows" / "*.parquet"
    return run(capsys, "cluster", rows, "-k", 4, "--dask", "local", "-o", folder / "labels", *more)


def labels_in(folder):
    return pa.concat_tables([parquet.read_table(path) for path in sorted(folder.glob("part-*.parquet"))])


def test_labels_are_those_of_the_table_in_memory(capsys, folder, blobs):
    code, out, _ = on_dask(capsys, folder, "--id", "key", "--json")
    assert code == 0
    found = labels_in(folder / "labels")
    assert found["key"].to_pylist() == [f"r{n}" for n in range(300)]
    labels = found["label"].to_numpy()
    assert adjusted_rand_score(labels, blobs[1]) == 1
    assert [one["rows"] for one in json.loads(out)["clusters"]] == np.bincount(labels).tolist()


def test_rows_are_numbered_from_0_over_all_files(capsys, folder):
    assert on_dask(capsys, folder, "--drop", "key")[0] == 0
    assert labels_in(folder / "labels")["row"].to_pylist() == list(range(300))


def test_a_failed_run_does_not_keep_its_folder(capsys, folder):
    path = folder / "rows" / "1.parquet"
    whole = parquet.read_table(path)
    parquet.write_table(whole.set_column(0, "a", pa.array([np.nan])), path)
    code, _, err = on_dask(capsys, folder, "--id", "key")
    assert (code, "missing value in row 1" in err) == (3, True)
    parquet.write_table(whole, path)
    assert on_dask(capsys, folder, "--id", "key")[0] == 0
    assert labels_in(folder / "labels").num_rows == 300


def test_a_run_is_gone_on_with(capsys, folder):
    out = folder / "labels"
    assert on_dask(capsys, folder, "--id", "key")[0] == 0
    whole = labels_in(out)
    second = out / "part-00001.parquet"
    first, second_bytes = (out / "part-00000.parquet").stat().st_mtime_ns, second.read_bytes()
    second.unlink()
    assert on_dask(capsys, folder, "--id", "key")[0] == 0
    assert (out / "part-00000.parquet").stat().st_mtime_ns == first
    assert second.read_bytes() == second_bytes
    assert labels_in(out) == whole
    assert "all 3 parts of this run are there" in on_dask(capsys, folder, "--id", "key")[1]
    code, _, err = on_dask(capsys, folder, "--id", "key", "--seed", 7)
    assert (code, "holds something else than labels of this run" in err) == (3, True)


def test_what_is_refused(capsys, folder, monkeypatch):
    def refused(*arguments):
        code, _, err = run(capsys, "cluster", "--dask", "local", "-k", 4, *arguments)
        assert code != 0
        return err

    assert "no file has a name of this pattern" in refused(folder / "none" / "*.parquet")
    parquet.write_table(pa.table({"a": [1.0], "key": ["x"]}), folder / "rows" / "9.parquet")
    assert "has other columns than" in refused(folder / "rows" / "*.parquet", "--drop", "key")
    monkeypatch.undo()
    monkeypatch.setattr(scheduler, "CONNECT_SECONDS", 0.2)
    assert "no Dask scheduler answers there" in refused(folder / "rows", "--dask", "tcp://127.0.0.1:9")
