import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

from biclique import __version__
from biclique.cli import main
from tests.cli.running import run
from tests.cli.waiting import wait_for_work
from tests.optional import Optional, needs

pd = Optional("pandas")
COLUMNS_OF_EDGES = [
    "  --edge-column paper --vertex-column author\n",
    "  --vertex-column authors --separator ';'\n",
    "biclique hypergraph info papers.csv --edge-column paper --vertex-column author",
    *(f"  --{name}" for name in ("edge-column", "vertex-column", "weight-column", "separator", "header", "no-header")),
]
"""What the help of every action on hypergraphs shows."""


@pytest.fixture
def iris_csv(tmp_path):
    pytest.importorskip("pandas")
    bunch = load_iris(as_frame=True)
    frame = bunch.data.assign(species=[bunch.target_names[t] for t in bunch.target])
    frame.insert(0, "flower", [f"f{i}" for i in range(150)])
    frame.to_csv(tmp_path / "iris.csv", index=False)
    return tmp_path / "iris.csv"


def test_a_data_set_by_name(capsys):
    code, out, err = run(capsys, "cluster", "iris", "-k", 3, "--scale", "none")
    assert code == 0
    assert "150 rows, 4 columns" in out
    assert "setosa (100%)" in out
    assert "error 0.0467" in out
    assert err == ""


def test_a_table_to_a_file(capsys, iris_csv, tmp_path):
    output = tmp_path / "labels.csv"
    arguments = ["cluster", iris_csv, "-k", 3, "-o", output, "--id", "flower", "--label-column", "species"]
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert f"labels written to {output}" in out
    labels = pd.read_csv(output)
    assert list(labels.columns) == ["flower", "label"]
    assert labels.flower.tolist() == [f"f{i}" for i in range(150)]
    assert set(labels.label) == {0, 1, 2}
    assert "adjusted Rand index" in out


def test_json(capsys, iris_csv):
    roles = ["--drop", "flower", "--label-column", "species"]
    code, out, err = run(capsys, "cluster", iris_csv, "-k", 3, *roles, "--json", "--affinity", "rbf", "--order", "inf")
    result = json.loads(out)
    assert code == 0
    assert err == ""
    assert result["order"] == "inf"
    assert sum(cluster["rows"] for cluster in result["clusters"]) == 150
    assert 0 <= result["error"] < 0.25
    assert result["warnings"] == []


def test_products_by_ffts_are_exact_and_say_how_exact(capsys, tmp_path):
    pytest.importorskip("finufft")
    np.save(tmp_path / "t.npy", np.random.default_rng(0).normal(size=(90, 2)))
    arguments = ("cluster", str(tmp_path / "t.npy"), "-k", "2", "--affinity", "rbf", "--gram", "fourier")
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert "exact: gram fourier (as asked for), products within " in out
    code, out, _ = run(capsys, *arguments, "--json")
    assert json.loads(out)["approximation"].keys() == {"product", "n_rows"}


def test_scaling_is_standard_unless_asked_otherwise(capsys, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2)) * [1, 1e4] + np.repeat([[0, 0], [9, 0]], 30, axis=0)
    np.savez(tmp_path / "t.npz", X=X, y=np.repeat([0, 1], 30))
    for scale, perfect in (("standard", True), ("robust", True), ("none", False)):
        code, out, _ = run(
            capsys, "cluster", tmp_path / "t.npz", "-k", 2, "--label-column", "y", "--json", "--scale", scale
        )
        result = json.loads(out)
        assert code == 0
        assert (result["error"] == 0) == perfect
        assert any("column spreads differ" in w for w in result["warnings"]) == (not perfect)


def test_quiet_prints_nothing(capsys, tmp_path):
    code, out, err = run(capsys, "cluster", "digits", "-k", 10, "--quiet", "-o", tmp_path / "l.npy")
    assert (code, out, err) == (0, "", "")
    assert np.load(tmp_path / "l.npy").shape == (1797,)


def test_constant_columns_are_mentioned(capsys):
    _, _, err = run(capsys, "cluster", "digits", "-k", 10)
    assert "constant columns tell nothing apart: 'pixel_0_0'" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["cluster", "no-such-thing", "-k", "3"], 3, "neither a file nor a data set of scikit-learn"),
        (["cluster", "absent.csv", "-k", "3"], 3, "no such file"),
        (["cluster", "iris", "-k", "200"], 3, "fewer than --clusters 200"),
        (["cluster", "iris", "-k", "0"], 2, "--clusters must be a whole number"),
        (["cluster", "iris", "-k", "3", "--order", "1"], 2, "--order must be at least 2, got 1"),
        (
            ["cluster", "iris", "-k", "3", "--order", "many"],
            2,
            "--order must be a number from 2 to infinity, or 'auto'",
        ),
        (["cluster", "iris", "-k", "3", "--gamma", "-1"], 2, "--gamma must be a number of at least 0"),
        (["cluster", "iris", "-k", "3", "--gamma", "wide"], 2, "--gamma must be one of"),
        (["cluster", "iris", "-k", "3", "--gamma", "select"], 2, "--gamma must be one of"),
        (["cluster", "iris", "-k", "3", "--drop", "zz"], 3, "--drop names column 'zz'"),
        (["cluster", "iris", "-k", "3", "-o", "labels.xls"], 2, "must end in one of"),
        (["cluster", "iris", "-k", "3", "--affinity", "linear"], 3, "--affinity rbf"),
        (
            ["cluster", "iris", "-k", "3", "--affinity", "poly", "--degree", "inf"],
            2,
            "--degree must be a finite number",
        ),
        (["cluster", "diabetes", "-k", "3", "--label-column", "target"], 3, "--label-column names column 'target'"),
        (["cluster", "iris", "-k", "3", "--affinity", "rbf", "--metric", "cosine"], 2, "--metric cosine is for"),
        (["cluster", "iris", "-k", "3", "--rank", "0"], 2, "--rank must be"),
        (["cluster", "iris", "-k", "3", "--rank", "2"], 2, "--rank 2 landmarks are fewer than the 3 clusters"),
        (["cluster", "iris", "-k", "3", "--gram", "nystroem"], 2, "--gram nystroem is for kernels"),
        (["cluster", "iris", "-k", "3", "--device", "nowhere"], 2, "--device must be"),
        (["cluster", "iris", "-k", "3", "-o", "no/l.csv"], 2, "there is no folder no"),
        (["cluster", "iris", "-k", "3", "--append"], 2, "--append needs a file to write to"),
    ],
)
def test_errors_say_what_to_do_and_have_their_exit_code(arguments, code, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found, out, err = run(capsys, *arguments)
    assert found == code
    assert err.startswith("biclique: error: ")
    assert message in err
    assert out == ""
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["cluster"],
        ["cluster", "-k", "3"],
        ["cluster", "iris"],
        ["cluster", "iris", "-k", "3", "--rank", "many"],
        ["cluster", "iris", "-k", "3", "--affinity", "precomputed"],
        ["cluster", "iris", "-k", "3", "--gram", "sparse"],
        ["cluster", "iris", "-k", "3", "--row-normalize", "true"],
        ["cluster", "iris", "-k", "3", "--metric", "manhattan"],
        ["cluster", "iris", "-k", "3", "--stream"],
        ["cluster", "iris", "-k", "three"],
        ["cluster", "iris", "-k", "3", "--affinity", "select"],
        ["paint"],
        ["hypergraph"],
        ["cluster", "iris", "-k", "3", "--seed", "-1"],
    ],
)
def test_usage_errors_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    err = capsys.readouterr().err
    assert (stop.value.code, err.count("\n"), "usage:" in err) == (2, 1, True)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([], ["COMMAND"]),
        (["cluster"], ["--affinity"]),
        (["predict"], ["--append"]),
        (["report"], ["--drop-missing"]),
        (["hypergraph"], ["convert"]),
        *((["hypergraph", action], ["hMetis", *COLUMNS_OF_EDGES]) for action in ("cluster", "info", "convert")),
        (["reproduce"], ["--resume"]),
        (["info"], ["--json"]),
    ],
)
def test_every_help_has_examples_and_exit_codes(capsys, command, words):
    with pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    out = capsys.readouterr().out
    assert stop.value.code == 0
    assert "examples:\n  biclique " in out
    assert "exit codes:" in out or command == ["hypergraph"]
    assert [word for word in words if word not in out] == []


def test_the_package_is_the_command():
    done = subprocess.run([sys.executable, "-m", "biclique", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"biclique {__version__}\n"


def test_missing_values(capsys, iris_csv, tmp_path):
    frame = pd.read_csv(iris_csv)
    frame.loc[4, "petal width (cm)"] = np.nan
    frame.to_csv(iris_csv, index=False)
    arguments = ["cluster", iris_csv, "-k", 3, "--id", "flower", "--label-column", "species"]
    code, _, err = run(capsys, *arguments)
    assert code == 3
    assert "missing value in row 5, column 'petal width (cm)'" in err
    code, out, _ = run(capsys, *arguments, "--drop-missing", "-o", tmp_path / "l.csv")
    assert code == 0
    assert "149 rows, 1 left out" in out
    labels = pd.read_csv(tmp_path / "l.csv")
    assert labels.flower.tolist() == [f"f{i}" for i in range(150)]
    assert np.flatnonzero(labels.label.isna()).tolist() == [4]


IN_PARTS = """
import sys
from biclique.cli import command, opened_tables
opened_tables.free_memory = lambda: 1000
sys.exit(command())
"""


@pytest.mark.parametrize("program", [["-m", "biclique"], pytest.param(["-c", IN_PARTS], marks=needs("dask"))])
def test_ctrl_c_leaves_cleanly(tmp_path, program):
    X = np.random.default_rng(0).normal(size=(300_000, 8))
    np.save(tmp_path / "t.npy", X)
    process = subprocess.Popen(
        [sys.executable, *program, "cluster", tmp_path / "t.npy", "-k", "5", "-o", tmp_path / "l.csv"],
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_work(process)
    assert process.poll() is None, "the fit ended before it could be interrupted"
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - start < 10
    assert "interrupted; nothing was written" in err
    assert "Traceback" not in err
    assert sorted(os.listdir(tmp_path)) == ["t.npy"]


def test_lowered_cuts_and_odd_orders(capsys):
    code, out, _ = run(capsys, "cluster", "wine", "-k", 3, "--assign-labels", "kernel_kmeans", "--n-init", 1)
    assert code == 0
    assert "normalised cut" in out
    symmetric = ["cluster", "wine", "-k", 3, "--affinity", "rbf", "--modelling", "symmetric"]
    code, out, _ = run(capsys, *symmetric, "--order", 5)
    assert code == 0
    assert "order 5" in out
    code, _, err = run(capsys, *symmetric, "--order", 2.5)
    assert code == 2
    assert "needs a whole order" in err


def test_the_number_of_clusters_is_selected_and_the_reason_is_printed(capsys):
    code, out, err = run(capsys, "cluster", "wine", "-k", "select", "--k-max", 6)
    assert (code, err) == (0, "")
    (told,) = [line for line in out.splitlines() if line.startswith("selected: ")]
    assert told.startswith("selected: 3 clusters: halves of the rows find these again best (stability")
    code, out, _ = run(capsys, "cluster", "wine", "-k", "select", "--k-max", 6, "--json")
    assert f"selected: {json.loads(out)['selected']}" == told


def test_gower_divides_by_ranges_itself(capsys):
    found = []
    for scale in ("standard", "none"):
        code, out, err = run(capsys, "cluster", "iris", "-k", 3, "--affinity", "gower", "--scale", scale, "--json")
        assert (code, err) == (0, "")
        found.append(json.loads(out))
    assert found[0]["gamma"] == found[1]["gamma"]
    assert found[0]["error"] < 0.15


def test_codes_of_categories_set_no_cluster_apart(capsys, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("age,city\n" + "".join(f"{i % 7 + 50 * (i % 2)},{'ab'[i % 2]}\n" for i in range(60)))
    command = ["cluster", table, "-k", "2", "--affinity", "gower", "--categorical", "city", "--json"]
    code, out, _ = run(capsys, *command)
    assert code == 0
    columns = [[one["column"] for one in cluster["set_apart_by"]] for cluster in json.loads(out)["clusters"]]
    assert columns == [["age"], ["age"]]


def test_neighbours_on_two_moons(capsys, tmp_path):
    X, y = make_moons(400, noise=0.06, random_state=0)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    arguments = ["cluster", tmp_path / "t.npz", "-k", 2, "--label-column", "y", "--affinity", "nearest_neighbors"]
    code, out, _ = run(capsys, *arguments, "--n-neighbors", 7, "--json")
    assert code == 0
    result = json.loads(out)
    assert result["error"] == 0
    assert (result["gram"], result["rank"], result["approximation"]) == ("neighbors", None, None)


@pytest.mark.parametrize("normalize", ["auto", "yes", "no"])
def test_an_approximation_says_how_close_it_is(capsys, normalize):
    nystroem = ["--affinity", "rbf", "--gram", "nystroem", "--rank", "40", "--row-normalize", normalize]
    code, out, err = run(capsys, "cluster", "iris", "-k", 3, *nystroem)
    assert (code, err) == (0, "")
    assert "approximate: gram nystroem of rank 40 (as asked for), eigenvalues within" in out
    code, out, _ = run(capsys, "cluster", "iris", "-k", 3, *nystroem, "--json")
    result = json.loads(out)
    assert (result["gram"], result["gram_reason"], result["rank"]) == ("nystroem", "as asked for", 40)
    assert set(result["approximation"]) == {"eigenvalues", "kernel", "n_rows"}
