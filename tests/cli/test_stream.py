"""Tables that are read in chunks, and the ways of holding K, from the command line."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from biclique.cli import main, stream
from biclique.io import FiniteChunks, find_format, formats, open_chunks
from tests.cli.full_disk import full_disk
from tests.cli.waiting import wait_for_work

NYSTROEM = ("--affinity", "rbf", "--gram", "nystroem", "--rank", "40")


def run(capsys, *arguments):
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def blobs(n, d=4, seed=0):
    """Three groups, apart in the first two columns, the columns on different scales and away from 0."""
    random = np.random.RandomState(seed)
    y = random.randint(0, 3, size=n)
    X = random.normal(size=(n, d))
    X[:, :2] += 7 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    return X * [1, 50, 1, 0.01][:d] + 5, y


@pytest.fixture
def npy(tmp_path):
    X, _ = blobs(3000)
    np.save(tmp_path / "t.npy", X)
    return tmp_path / "t.npy"


@pytest.fixture
def parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y = blobs(3000)
    columns = {name: X[:, j] for j, name in enumerate("abcd")}
    names = [f"row {i}, of {len(X)}" for i in range(len(X))]
    table = pa.table({"name": names, **columns, "kind": [("ox", "ant", "bee")[j] for j in y]})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    return tmp_path / "t.parquet"


# The same as in memory


# Formats know nothing of scales or of models: each is met once at least.
@pytest.mark.parametrize(
    ("suffix", "scale", "model"),
    [
        (".csv", "standard", ()),
        (".tsv", "robust", (*NYSTROEM, "--order", 4)),
        (".npy", "none", (*NYSTROEM, "--order", 4)),
        (".parquet", "standard", ("--order", 4)),
    ],
)
def test_streaming_writes_the_file_of_the_same_rows_in_memory(capsys, npy, tmp_path, suffix, scale, model):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    files = []
    for number, more in enumerate(((), ("--stream",))):
        output = tmp_path / f"{number}{suffix}"
        code, out, _ = run(capsys, "cluster", npy, "-k", 3, *model, "--scale", scale, "--id", 3, "-o", output, *more)
        assert code == 0
        assert ("read in chunks" in out) == bool(more)
        files.append(output.read_bytes())
    assert files[0] == files[1]
    assert sorted(os.listdir(tmp_path)) == sorted([f"0{suffix}", f"1{suffix}", "t.npy"])


def test_more_rows_than_the_pool_agree_up_to_the_draw(capsys, tmp_path):
    # Beyond 40,000 rows a source draws the rows for landmarks by another method than an array.
    X, y = blobs(70_000)
    np.save(tmp_path / "t.npy", X.astype(np.float32))
    labels = []
    for more in ((), ("--stream",)):
        assert run(capsys, "cluster", tmp_path / "t.npy", "-k", 3, "-o", tmp_path / "l.npy", *more)[0] == 0
        labels.append(np.load(tmp_path / "l.npy"))
    assert adjusted_rand_score(*labels) > 0.99
    assert adjusted_rand_score(y, labels[1]) > 0.95


def test_parquet_with_ids_and_classes(capsys, parquet, tmp_path):
    results = []
    for more in ((), ("--stream",)):
        output = tmp_path / f"{len(more)}.csv"
        roles = ["--id", "name", "--label-column", "kind", "--drop", "d"]
        code, out, err = run(capsys, "cluster", parquet, "-k", 3, *roles, "-o", output, "--json", *more)
        assert (code, err) == (0, "")
        results.append(json.loads(out))
    held, streamed = results
    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "1.csv").read_bytes()
    assert (tmp_path / "1.csv").read_text().splitlines()[:2][0] == "name,label"
    assert '"row 0, of 3000",' in (tmp_path / "1.csv").read_text()
    assert (held["streamed"], streamed["streamed"]) == (False, True)
    of_held, of_streamed = ([one.pop("probability") for one in result["clusters"]] for result in results)
    assert of_held == pytest.approx(of_streamed, rel=1e-9)  # rows are added in other groups
    for key in ("rows", "columns", "error", "adjusted_rand_index", "clusters", "gram", "rank", "order", "warnings"):
        assert held[key] == streamed[key]
    assert streamed["columns"] == 3
    assert streamed["error"] < 0.1
    assert {entry["mostly"] for entry in streamed["clusters"]} == {"ox", "ant", "bee"}


def test_zarr_held_and_streamed(capsys, tmp_path):
    zarr = pytest.importorskip("zarr")
    X, y = blobs(3000)
    array = zarr.create_array(str(tmp_path / "t.zarr"), shape=(3000, 5), chunks=(512, 5), dtype="f8")
    array[:] = np.column_stack([X, y])
    for more in ((), ("--stream",)):
        output = tmp_path / f"{len(more)}.csv"
        arguments = ["cluster", tmp_path / "t.zarr", "-k", 3, "--label-column", "4", "-o", output, *more]
        code, out, _ = run(capsys, *arguments)
        assert code == 0
        assert "3000 rows, 4 columns" in out
        assert "2.0 (100%)" in out
    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "1.csv").read_bytes()
    code, _, err = run(capsys, "cluster", tmp_path / "absent.zarr", "-k", 3)
    assert (code, "no such folder" in err) == (3, True)


def test_zarr_that_is_not_installed_is_named_with_its_install_line(capsys, tmp_path, monkeypatch):
    (tmp_path / "t.zarr").mkdir()
    monkeypatch.setitem(sys.modules, "zarr", None)
    for more in ((), ("--stream",)):
        code, out, err = run(capsys, "cluster", tmp_path / "t.zarr", "-k", 3, *more)
        assert (code, out) == (1, "")
        assert "pip install" in err


@pytest.mark.parametrize("stored", ["float64", "float32"])
def test_constant_columns_are_mentioned_and_not_scaled(capsys, tmp_path, stored):
    X, _ = blobs(2000)
    X = np.column_stack([X, np.full(2000, 0.1), np.full(2000, 1e6)]).astype(stored)
    np.save(tmp_path / "t.npy", X)
    errs = []
    for more in ((), ("--stream",)):
        code, _, err = run(capsys, "cluster", tmp_path / "t.npy", "-k", 3, *more)
        assert code == 0
        errs.append(err)
    assert errs[0] == errs[1] == "biclique: warning: constant columns tell nothing apart: '4', '5'.\n"


def test_a_column_that_is_constant_but_for_rounding_is_not_blown_up(tmp_path):
    X = np.column_stack([np.arange(1000.0), np.full(1000, 1e6)])
    X[::2, 1] += 1e-9
    np.save(tmp_path / "t.npy", X)
    options = stream.argparse.Namespace(scale="standard", seed=0)
    scaled, notes = stream._scaled(open_chunks(tmp_path / "t.npy"), options, stream.Progress())
    values = next(scaled.chunks())
    assert np.abs(values[:, 1]).max() < 1e-8
    assert values[:, 0].std() == pytest.approx(1)
    assert notes == []


# What is said


def test_json_says_how_k_was_held(capsys, npy):
    code, out, err = run(capsys, "cluster", npy, "-k", 3, "--stream", "--json", *NYSTROEM)
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert (result["gram"], result["gram_reason"], result["rank"]) == ("nystroem", "as asked for", 40)
    assert set(result["approximation"]) == {"eigenvalues", "kernel", "n_rows"}
    assert 0 < result["approximation"]["kernel"] < 1
    code, out, _ = run(capsys, "cluster", "iris", "-k", 3, "--json")
    result = json.loads(out)
    assert (result["gram"], result["rank"], result["approximation"]) == ("neighborhoods", 149, None)
    assert result["gram_reason"] == "the hypergraph of neighbourhoods"


def test_an_approximation_is_said_once(capsys, npy):
    arguments = ["cluster", npy, "-k", 3, "--affinity", "rbf", "--stream"]
    code, out, err = run(capsys, *arguments)
    assert code == 0
    assert "approximate: gram nystroem of rank 1000 (the rows are read in chunks), eigenvalues within" in out
    assert err == ""
    code, out, _ = run(capsys, *arguments, "--json")
    assert [w for w in json.loads(out)["warnings"] if "gram='auto' took" in w]
    code, out, _ = run(capsys, "cluster", "iris", "-k", 3, "--affinity", "rbf")
    assert "exact: gram dense (the matrix of 149 rows takes" in out
    assert run(capsys, *arguments, "-q") == (0, "", "")


def test_features_that_are_exact(capsys, npy):
    np.save(npy, np.abs(np.load(npy)))
    code, out, _ = run(capsys, "cluster", npy, "-k", 3, "--stream", "--affinity", "linear", "--scale", "none")
    assert code == 0
    assert "exact: gram features of rank 4 (the kernel is an inner product of few columns)" in out


def test_dry_run(capsys, npy, tmp_path):
    code, out, err = run(capsys, "cluster", npy, "-k", 3, "--stream", "--dry-run", "-o", tmp_path / "l.csv")
    assert (code, err) == (0, "")
    assert "3000 rows, 4 columns, read in chunks" in out
    assert "gram='neighborhoods': about " in out
    assert "(estimate; nothing was computed)" in out
    code, out, _ = run(capsys, "cluster", npy, "-k", 3, "--stream", "--dry-run", "--json", *NYSTROEM)
    estimate = json.loads(out)
    assert (estimate["rows"], estimate["columns"], estimate["gram"]) == (3000, 4, "nystroem")
    assert 0 < estimate["seconds"] < 100
    assert estimate["bytes"] > 1e6
    assert run(capsys, "cluster", npy, "-k", 3, "--stream", "--dry-run", "--drop-missing", "--scale", "none")[0] == 0
    assert os.listdir(tmp_path) == ["t.npy"]


def test_streaming_switches_on_by_itself_for_a_large_table(capsys, tmp_path):
    X, _ = blobs(200_000)
    np.save(tmp_path / "t.npy", X)
    arguments = ["cluster", tmp_path / "t.npy", "-k", 3, "--rank", 100, "--n-init", 1, "--memory-limit", "12MB"]
    code, out, err = run(capsys, *arguments)
    assert code == 0
    assert "read in chunks" in out
    assert err == (
        f"biclique: {tmp_path / 't.npy'}: 200000 rows of 4 columns would take 6.1 MiB, more than half of the memory "
        "limit (12 MiB); they are read in chunks, as with --stream.\n"
    )


def test_a_small_table_stays_in_memory_and_a_large_one_that_cannot_be_streamed_is_refused(capsys, npy):
    code, out, err = run(capsys, "cluster", npy, "-k", 3, "--json")
    assert (code, err, json.loads(out)["streamed"]) == (0, "", False)
    for more, said in (
        (["--affinity", "rbf", "--gram", "dense"], "--gram dense"),
        (["--affinity", "nearest_neighbors"], "nearest_neighbors"),
    ):
        code, out, err = run(capsys, "cluster", npy, "-k", 3, "--memory-limit", "50K", *more)
        assert (code, out) == (4, "")
        assert "3000 rows of 4 columns would take 93.8 KiB, limit 50 KiB" in err
        assert said in err


# Rows and files that are wrong


def test_nan_in_the_middle_is_named_or_left_out(capsys, tmp_path):
    X, y = blobs(3000)
    X[1500, 2], X[1700, 0] = np.nan, np.inf
    np.save(tmp_path / "t.npy", np.column_stack([X, y]))
    arguments = ["cluster", tmp_path / "t.npy", "-k", 3, "--label-column", 4, "-o", tmp_path / "l.csv"]
    code, out, err = run(capsys, *arguments, "--stream")
    assert (code, out) == (3, "")
    assert "missing value (NaN) in row 1501 (counting from 1), column '2'" in err
    assert "--drop-missing" in err
    assert os.listdir(tmp_path) == ["t.npy"]
    for suffix in (".csv", ".npy"):
        files = []
        for more in ((), ("--stream",)):
            output = tmp_path / f"{len(more)}{suffix}"
            code, out, _ = run(capsys, *arguments, "--drop-missing", "-o", output, *more)
            assert code == 0
            assert "2998 rows, 2 left out" in out
            files.append(output.read_bytes())
        assert files[0] == files[1]
    labels = np.load(tmp_path / "1.npy")
    assert np.flatnonzero(labels == -1).tolist() == [1500, 1700]


def test_ids_of_rows_left_out_are_left_out(capsys, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, _ = blobs(400)
    column = [None if i % 7 == 0 else float(v) for i, v in enumerate(X[:, 0])]
    parquet.write_table(
        pa.table({"id": [f"i{i}" for i in range(400)], "a": column, "b": X[:, 1]}), tmp_path / "t.parquet"
    )
    arguments = ["cluster", tmp_path / "t.parquet", "-k", 3, "--id", "id", "--drop-missing"]
    for more in ((), ("--stream",)):
        assert run(capsys, *arguments, "-o", tmp_path / f"{len(more)}.csv", *more)[0] == 0
    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "1.csv").read_bytes()
    np.save(tmp_path / "t.npy", np.full((50, 2), np.nan))
    code, _, err = run(capsys, "cluster", tmp_path / "t.npy", "-k", 3, "--stream", "--drop-missing")
    assert (code, "every row has a missing value" in err) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["cluster", "t.npy", "-k", "3", *NYSTROEM, "--rank", "3001"], 2, "rank=3001 is more than the 3000"),
        (["cluster", "t.npy", "-k", "3", "--rank", "0"], 2, "rank must be 'auto', 'all' or a whole number"),
        (["cluster", "t.npy", "-k", "3", "--rank", "all"], 2, "rank='all' needs X in memory"),
        (["cluster", "t.npy", "-k", "3", "--rank", "2"], 2, "rank=2 landmarks are fewer than the 3 clusters"),
        (["cluster", "t.npy", "-k", "3", "--gram", "nystroem"], 2, "gram='nystroem' is for kernels"),
        (["cluster", "t.npy", "-k", "3", "--affinity", "rbf", "--gram", "tiled"], 2, "not work with --gram tiled"),
        (["cluster", "t.npy", "-k", "3", "--affinity", "nearest_neighbors"], 2, "use --affinity neighborhoods"),
        (["cluster", "t.npy", "-k", "3", "--modelling", "symmetric", "--affinity", "rbf"], 2, "--modelling biclique"),
        (["cluster", "t.npy", "-k", "3", "--assign-labels", "kernel_kmeans"], 2, "use --assign-labels kmeans"),
        (["cluster", "t.npy", "-k", "0"], 2, "n_clusters must be a whole number"),
        (["cluster", "t.npy", "-k", "3001"], 3, "X has 3000 rows, fewer than n_clusters=3001"),
        (["cluster", "t.npy", "-k", "3001", "--dry-run"], 3, "X has 3000 rows, fewer than n_clusters=3001"),
        (["cluster", "t.npy", "-k", "3", "--id", "9"], 3, "--id names column '9', which does not exist"),
        (["cluster", "t.npy", "-k", "3", "--drop", "0", "1", "2", "3"], 3, "no feature columns are left"),
        (["cluster", "t.npy", "-k", "3", "-o", "t.npy"], 2, "is the input table itself"),
        (["cluster", "t.npy", "-k", "3", "-o", "no/l.csv"], 2, "there is no folder no"),
        (
            ["cluster", "t.npy", "-k", "3", "--affinity", "rbf", "--gram", "nystroem", "--memory-limit", "1MB"],
            4,
            "limit 1 MiB",
        ),
        (["cluster", "t.npy", "-k", "3", "--memory-limit", "few"], 2, "memory_limit must be"),
        (["cluster", "absent.npy", "-k", "3"], 3, "no such file"),
        (["cluster", "t.npz", "-k", "3"], 3, "leave out --stream to read it whole"),
        (["cluster", "t.npz", "-k", "3"], 3, "convert the table to one of these"),
        (["cluster", "iris", "-k", "3"], 3, "--stream reads CSV, TSV, .npy and Parquet files"),
        (["cluster", "short.npy", "-k", "3"], 3, "the file ends early: its header promises 3000 rows, it holds 1249"),
        (["cluster", "text.npy", "-k", "3"], 3, "not real numbers"),
        (["cluster", "rubbish.npy", "-k", "3"], 3, "not a readable NumPy file"),
        (["cluster", "empty.npy", "-k", "3"], 3, "the table has no rows"),
    ],
)
def test_errors_say_what_to_do_and_leave_nothing(arguments, code, message, capsys, npy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.npy").write_bytes(npy.read_bytes()[:40_100])
    (tmp_path / "rubbish.npy").write_bytes(b"rubbish")
    np.save(tmp_path / "empty.npy", np.empty((0, 4)))
    np.save(tmp_path / "text.npy", np.array([["a", "b"]]))
    before = sorted(os.listdir(tmp_path))
    more = [] if "-o" in arguments else ["-o", "l.csv"]
    found, out, err = run(capsys, *arguments, "--stream", *more)
    assert found == code
    assert err.startswith("biclique: error: ")
    assert err.count("\n") == 1
    assert message in err
    assert out == ""
    assert sorted(os.listdir(tmp_path)) == before


def test_a_damaged_chunk_is_named(tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(str(tmp_path / "t.zarr"), shape=(3000, 4), chunks=(100, 4), dtype="f8")
    array[:] = blobs(3000)[0]
    (tmp_path / "t.zarr" / "c" / "17" / "0").write_bytes(b"rubbish")
    # In a process of its own: Zarr's unfinished tasks can, rarely, complain after our line, while the interpreter ends.
    twice = (
        "import sys; from biclique.cli import main; print([main(sys.argv[1:] + more) for more in ([], ['--stream'])])"
    )
    command = ["cluster", tmp_path / "t.zarr", "-k", "3", "-o", tmp_path / "l.csv"]
    done = subprocess.run([sys.executable, "-c", twice, *command], capture_output=True, text=True, check=False)
    assert done.stdout == "[3, 3]\n"
    said = [line for line in done.stderr.splitlines() if line.startswith("biclique: error: ")]
    assert ["a chunk of the array is damaged" in line for line in said] == [True, True]
    assert os.listdir(tmp_path) == ["t.zarr"]


def test_rows_without_missing_values_are_a_source():
    X, _ = blobs(1000)
    X[::7, 1], X[5, 0] = np.nan, -np.inf
    source = FiniteChunks(open_chunks(X))
    good = np.isfinite(X).all(axis=1)
    assert source.n_rows is None
    assert [len(chunk) for chunk in source.chunks(300)] == [300, 300, int(good.sum()) - 600]
    assert source.n_rows == good.sum()
    assert (source.kept == good).all()
    assert (np.concatenate([chunk.copy() for chunk in source.chunks(64)]) == X[good]).all()
    rows, numbers = source.draw(50, np.random.RandomState(0))
    assert (rows == X[good][numbers]).all()


def test_a_table_that_gets_shorter_during_the_work(capsys, npy, tmp_path, monkeypatch):
    fit = stream.BicliqueSpectralClustering.fit

    def cut_off(model, X):
        fit(model, X)
        npy.write_bytes(npy.read_bytes()[:50_000])
        return model

    monkeypatch.setattr(stream.BicliqueSpectralClustering, "fit", cut_off)
    code, out, err = run(capsys, "cluster", npy, "-k", 3, "--stream", "--id", 3, "-o", tmp_path / "l.csv")
    assert (code, out) == (3, "")
    assert "the file ends early" in err
    assert os.listdir(tmp_path) == ["t.npy"]


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".parquet"])
def test_a_full_disk_leaves_the_old_file_and_no_other(capsys, npy, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    output = tmp_path / f"l{suffix}"
    output.write_text("old")
    with full_disk():
        code, out, err = run(capsys, "cluster", npy, "-k", 3, "--stream", "-o", output)
    assert (code, out) == (1, "")
    assert err.startswith("biclique: error: ")
    assert "Traceback" not in err
    assert output.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == sorted([output.name, "t.npy"])


def test_ctrl_c_leaves_cleanly(tmp_path):
    np.save(tmp_path / "t.npy", blobs(400_000)[0])
    command = ["cluster", tmp_path / "t.npy", "-k", "3", "--stream"]
    process = subprocess.Popen(
        [sys.executable, "-m", "biclique", *command, "-o", tmp_path / "l.csv"], stderr=subprocess.PIPE, text=True
    )
    wait_for_work(process)
    assert process.poll() is None, "the fit ended before it could be interrupted"
    for _ in range(4):  # Python loses an interrupt that falls into a finaliser
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=20)
            break
        except subprocess.TimeoutExpired:
            continue
    assert process.returncode == 130
    assert "interrupted; nothing was written" in err
    assert "Traceback" not in err
    assert sorted(os.listdir(tmp_path)) == ["t.npy"]


def test_ctrl_c_while_writing_leaves_no_file(capsys, npy, tmp_path, monkeypatch):
    def interrupted(source, name):
        yield ["1.5"] * 10
        raise KeyboardInterrupt

    monkeypatch.setattr("biclique.io.sources.ColumnChunks.texts", interrupted)
    arguments = ["cluster", npy, "-k", 3, "--stream", "--id", 3, "-o", tmp_path / "l.csv"]
    code, out, err = run(capsys, *arguments)
    assert (code, out, err) == (130, "", "biclique: error: interrupted; nothing was written\n")
    assert os.listdir(tmp_path) == ["t.npy"]


# Other options of the estimator


def test_a_device_is_asked_for(capsys, npy):
    code, _, err = run(capsys, "cluster", npy, "-k", 3, "--device", "nowhere")
    assert code == 2
    assert "device must be None, 'cpu', 'cuda', 'mps', 'xpu'" in err
    code, _, err = run(capsys, "cluster", npy, "-k", 3, "--device", "cuda:99")
    assert code in (1, 2)  # without torch: how to get it
    assert "device='cuda:99' cannot be used here" in err or "a device needs torch: pip install 'biclique[gpu]'" in err
    code, _, err = run(capsys, "cluster", npy, "-k", 3, "--stream", "--device", "cuda")
    assert code == 2
    assert "--stream does not work with --device cuda" in err


def test_neighbours_on_two_moons(capsys, tmp_path):
    X, y = make_moons(400, noise=0.06, random_state=0)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    arguments = ["cluster", tmp_path / "t.npz", "-k", 2, "--label-column", "y", "--affinity", "nearest_neighbors"]
    for more in ([], ["--n-neighbors", 7]):
        code, out, _ = run(capsys, *arguments, *more, "--json")
        assert code == 0
        result = json.loads(out)
        assert result["error"] == 0
        assert (result["gram"], result["rank"], result["approximation"]) == ("neighbors", None, None)
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert "exact: gram neighbors (" in out


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans++", "leverage"])
@pytest.mark.parametrize("normalize", ["auto", "yes", "no"])
def test_landmarks_and_unit_rows(capsys, landmarks, normalize):
    code, out, _ = run(
        capsys, "cluster", "iris", "-k", 3, *NYSTROEM, "--landmarks", landmarks, "--row-normalize", normalize
    )
    assert code == 0
    assert "approximate: gram nystroem of rank 40 (as asked for), eigenvalues within" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rank", "many"],
        ["--rank", "-1"],
        ["--affinity", "precomputed"],
        ["--gram", "sparse"],
        ["--landmarks", "best"],
        ["--row-normalize", "true"],
        ["--metric", "manhattan"],
        ["--neighbor-weights", "rbf"],
    ],
)
def test_usage_errors_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["cluster", "iris", "-k", "3", *arguments])
    assert stop.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_names_of_files_that_are_read_in_chunks():
    for name in ("a.npy", "a.PARQUET", "b/a.pq", "a.zarr", "a.zarr/x", "/b/a.Zarr/", "a.csv", "b.1.TSV.gz"):
        assert find_format(name) in formats(in_chunks=True)
    for name in ("a.npz", "iris", "a.gz", "a.zarr.npz", "a.zarr/t.npz"):
        assert find_format(name) not in formats(in_chunks=True)


@pytest.mark.parametrize("way", [[], ["--stream"]])
def test_codes_of_categories_set_no_cluster_apart(capsys, tmp_path, way):
    table = tmp_path / "t.csv"
    table.write_text("age,city\n" + "".join(f"{i % 7 + 50 * (i % 2)},{'ab'[i % 2]}\n" for i in range(60)))
    command = ["cluster", str(table), "-k", "2", "--affinity", "gower", "--categorical", "city", "--json", *way]
    assert main(command) == 0
    clusters = json.loads(capsys.readouterr().out)["clusters"]
    assert [[one["column"] for one in cluster["set_apart_by"]] for cluster in clusters] == [["age"], ["age"]]
