"""Tables larger than memory, and tables on a cluster: the same files as from memory."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from biclique.cli import cluster_command, label_output, opened_tables
from biclique.tables import array_tables, text_tables
from tests.optional import Optional, needs

pytestmark = [needs("dask"), needs("pyarrow"), needs("pandas")]
distributed, psutil = Optional("distributed"), Optional("psutil")
pd, pa, parquet, zarr = Optional("pandas"), Optional("pyarrow"), Optional("pyarrow.parquet"), Optional("zarr")


@pytest.fixture
def small_memory(monkeypatch):
    """Every table is larger than memory, and is read in small parts."""
    monkeypatch.setattr(text_tables, "TEXT_BLOCK", 2**15)
    monkeypatch.setattr(array_tables, "ARRAY_BLOCK", 2**14)

    def switch():
        monkeypatch.setattr(opened_tables, "free_memory", lambda: 1000)

    return switch


@pytest.fixture
def table(cli):
    """Three groups in columns of different scales, with an id, a class, a category, a weight and a gap."""
    random = np.random.RandomState(0)
    n, y = 3000, random.randint(0, 3, size=3000)
    X = random.normal(size=(n, 4))
    X[:, :2] += 7 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    X = X * [1, 50, 1, 0.01] + 5
    X[1500, 2] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(0, "name", [f"row {i}, of {n}" for i in range(n)])
    frame = frame.assign(kind=np.array(["ox", "ant", "bee"])[y], city=["Oslo", "Rome"] * (n // 2), weight=1 + y)
    frame.to_csv("t.csv", index=False)
    return frame


@pytest.mark.parametrize(
    ("options", "in_parts"),
    [
        ("", True),
        ("--scale robust", False),
        ("--affinity nearest_neighbors", False),
        ("--assign-labels kernel_kmeans", False),
        ("--report r.html", False),
    ],
)
def test_a_large_file_of_numbers_is_read_in_parts_if_the_clusters_are_the_same(
    done, table, monkeypatch, options, in_parts
):
    table[list("abd")].to_parquet("t.parquet", row_group_size=700)
    found = []
    for roomy in (opened_tables.ROOMY, 1000):
        monkeypatch.setattr(opened_tables, "ROOMY", roomy)
        out, _ = done(f"cluster t.parquet -k 3 {options} -o l.npy --json")
        found.append((json.loads(out), np.load("l.npy")))
    (whole, labels), (large, same) = found
    assert (whole["streamed"], large["streamed"]) == (False, in_parts)
    assert np.array_equal(labels, same)


def test_what_is_wrong_with_a_large_file_is_said_of_all_rows(explained, table, monkeypatch):
    table[[*"abcd", "city"]].to_parquet("t.parquet", row_group_size=700)
    message = explained("cluster t.parquet -k 3")
    monkeypatch.setattr(opened_tables, "ROOMY", 1000)
    assert "missing value in row 1501" in message
    assert explained("cluster t.parquet -k 3") == message


ROLES = "--id name --label kind --weight weight"


def assert_same(*files):
    """Two files hold the same, but for the types of Parquet."""
    if files[0].endswith(".parquet"):
        pd.testing.assert_frame_equal(*map(pd.read_parquet, files), check_dtype=False)
    else:
        assert Path(files[0]).read_bytes() == Path(files[1]).read_bytes()


@pytest.mark.parametrize(
    ("ending", "options", "output"),
    [
        ("csv", f"{ROLES} --categorical city --missing mean", "csv"),
        ("csv", f"{ROLES} --drop city --missing drop --append", "csv"),
        ("parquet", f"{ROLES} --categorical city --missing indicator", "parquet"),
        ("parquet", f"{ROLES} --drop city --missing drop --append", "parquet"),
        ("npy", "--missing drop --scale none --id 3", "tsv"),
        ("npy", "--missing drop --affinity rbf --gram nystroem --rank 40", "npy"),
        pytest.param("zarr", "--missing drop", "csv", marks=needs("zarr")),
    ],
)
def test_the_file_is_that_of_the_table_in_memory(cli, done, table, small_memory, ending, options, output):
    numbers = table[list("abcd")].to_numpy()
    match ending:
        case "parquet":
            table.to_parquet("t.parquet", row_group_size=700)
        case "npy":
            np.save("t.npy", numbers)
        case "zarr":
            zarr.create_array("t.zarr", shape=numbers.shape, chunks=(512, 3), dtype="f8")[:] = numbers
    results = []
    for place in ("memory", "lazy"):
        if place == "lazy":
            small_memory()
        out, _ = done(f"cluster t.{ending} -k 3 --json {options} -o {place}.{output} --save {place}.skops")
        results.append(json.loads(out))
    memory, lazy = results
    assert (memory["streamed"], lazy["streamed"]) == (False, True)
    for key in ("rows", "rows_left_out", "columns", "error", "gram", "rank", "order"):
        assert memory[key] == lazy[key]
    assert [one["rows"] for one in memory["clusters"]] == [one["rows"] for one in lazy["clusters"]]
    assert_same(f"memory.{output}", f"lazy.{output}")
    if "--append" not in options and ending != "zarr":  # new rows, by the saved model
        gaps = "--drop-missing" if "drop" in options else ""
        assert cli(f"predict lazy.skops t.{ending} -o again.{output} {gaps} -q") == (0, "", "")
        assert_same(f"again.{output}", f"lazy.{output}")


def test_a_report_is_made_of_some_rows(cli, table, small_memory, monkeypatch):
    small_memory()
    monkeypatch.setattr(opened_tables, "SHOWN_ROWS", 500)
    assert cli("cluster t.csv -k 3 --columns a,b --id name --report page.html -q") == (0, "", "")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "made of 500 of 3000 rows" in page
    assert "of 3000" in page  # ids


def test_what_needs_the_rows_in_memory_is_refused(done, refused, explained, table, small_memory):
    small_memory()
    for options, message in (
        ("--affinity nearest_neighbors", "nearest_neighbors"),
        ("--missing median", "--missing median needs every value"),
        ("--scale robust", "--scale robust needs every value"),
    ):
        error = refused(f"cluster t.csv -k 3 --columns a,b {options}")
        assert (error[0], message in error) == ("2", True)
    assert "--categorical kind,city" in explained("cluster t.csv -k 3").splitlines()[-1]
    done("cluster t.csv -k 3 --columns a,b --save m.skops -q")
    assert "4 t.csv: a report needs the whole table in memory" in refused("report m.skops t.csv -o page.html")


# On a cluster

DASK = "cluster rows/*.parquet -k 4 --dask local -o labels"


@pytest.fixture
def folder(cli, blobs, tmp_path, monkeypatch):
    """Three files; tasks run in threads of this process: ``test_dask_cluster.py`` has worker processes."""
    monkeypatch.setattr(cluster_command, "connected", lambda where, jobs: nullcontext())
    (tmp_path / "rows").mkdir()
    for i, some in enumerate(np.split(np.arange(300), [130, 131])):
        columns = {name: blobs[0][some, j] for j, name in enumerate("abcde")} | {"key": [f"r{n}" for n in some]}
        parquet.write_table(pa.table(columns), tmp_path / "rows" / f"{i}.parquet")


def labels():
    return pa.concat_tables([parquet.read_table(path) for path in sorted(Path("labels").glob("part-*.parquet"))])


def test_labels_are_those_of_the_table_in_memory(facts, folder, blobs):
    result = facts(f"{DASK} --id key")
    found = labels()
    assert found["key"].to_pylist() == [f"r{n}" for n in range(300)]
    assert adjusted_rand_score(found["label"].to_numpy(), blobs[1]) == 1
    assert [one["rows"] for one in result["clusters"]] == np.bincount(found["label"].to_numpy()).tolist()


def test_rows_are_numbered_from_0_over_all_files(done, folder):
    done(f"{DASK} --drop key")
    assert labels()["row"].to_pylist() == list(range(300))


def test_a_failed_run_does_not_keep_its_folder(done, refused, explained, folder):
    whole = parquet.read_table("rows/1.parquet")
    parquet.write_table(whole.set_column(0, "a", pa.array([np.nan])), "rows/1.parquet")
    err = explained(f"{DASK} --id key")
    assert ("missing value in row 1" in err, "was written" in err) == (True, False)
    assert os.listdir() == ["rows"]
    parquet.write_table(whole, "rows/1.parquet")
    done(f"{DASK} --id key")
    assert labels().num_rows == 300
    assert refused(f"{DASK} --id key").startswith("2 cannot write labels: it exists, and --dask writes a new folder")


def test_a_part_that_cannot_be_written_leaves_no_folder(refused, folder, monkeypatch):
    write = label_output.write_labels

    def full(path, *more):
        if "part-00001" in str(path):
            raise OSError(28, "No space left on device")
        write(path, *more)

    monkeypatch.setattr(label_output, "write_labels", full)
    assert refused(f"{DASK} --id key").startswith("1 No space left on device")
    assert os.listdir() == ["rows"]


def test_what_is_refused(refused, folder, monkeypatch):
    dask = "cluster -k 4 --dask local"
    assert "no file has a name of this pattern" in refused(f"{dask} none/*.parquet")
    parquet.write_table(pa.table({"a": [1.0], "key": ["x"]}), "rows/9.parquet")
    assert "has other columns than" in refused(f"{dask} rows/*.parquet --drop key")


@needs("distributed")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_scheduler_that_is_absent_or_has_no_workers(refused, folder, monkeypatch):
    monkeypatch.setattr(cluster_command, "connected", opened_tables.connected)
    monkeypatch.setattr(opened_tables, "CONNECT_SECONDS", 0.5)
    assert "no Dask scheduler answers there" in refused("cluster rows -k 4 --dask tcp://127.0.0.1:9")
    local = {"n_workers": 0, "processes": False, "dashboard_address": None, "host": "127.0.0.1", "protocol": "tcp"}
    with distributed.LocalCluster(**local) as cluster:
        where = cluster.scheduler_address
        error = refused(f"cluster rows -k 4 -o labels --dask {where}")
    assert error.startswith(f"3 --dask {where}: the scheduler has no workers, and none came in 0.5 s")
    assert not Path("labels").exists()


@needs("distributed")
@pytest.mark.once
@pytest.mark.parametrize("seconds", [0, 2])
def test_ctrl_c_with_workers_is_one_line(folder, tmp_path, seconds):
    """While the workers are still being imported, and later."""
    X = np.random.default_rng(0).normal(size=(400_000, 8))
    pd.DataFrame(X, columns=list("abcdefgh")).to_parquet("rows.parquet", row_group_size=100_000)
    words = ["cluster", "rows.parquet", "-k", "5", "--order", "4", "--dask", "local", "--jobs", "2", "-o", "labels"]
    command = [sys.executable, "-m", "biclique", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while len(psutil.Process(process.pid).children()) < 3:  # two workers and what watches over them
        time.sleep(0.1)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    err = process.communicate(timeout=60)[1]
    lines = [line for line in err.splitlines() if not line.startswith("biclique: pass")]
    assert (process.returncode, lines) == (130, ["biclique: error: interrupted; nothing was written"])
