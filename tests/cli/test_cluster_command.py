import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from biclique import __version__
from biclique.cli import main
from tests.cli.conftest import pasted
from tests.optional import Optional, needs

pd, psutil = Optional("pandas"), Optional("psutil")
COLUMNS_OF_EDGES = [
    "  --edge-column paper --vertex-column author\n",
    "  --vertex-column authors --separator ';'\n",
    "biclique hypergraph info papers.csv --edge-column paper --vertex-column author",
    *(f"  --{name}" for name in ("edge-column", "vertex-column", "weight-column", "separator", "header", "no-header")),
]
"""What the help of every action on hypergraphs shows."""
FOURIER = "exact: K by FFTs in float64 (as asked for), products within "
LANDMARKS = "approximate: K from 40 landmark rows in float32 (as asked for), eigenvalues within"


@pytest.fixture
def write(tmp_path):
    def write(names, fields, n=60):
        """t.csv, whose lines are ``fields`` of the number of a row."""
        (tmp_path / "t.csv").write_text("\n".join([names, *(fields(i) for i in range(n))]) + "\n")

    return write


def test_json(facts):
    result = facts("cluster iris -k 3 --affinity rbf --order inf")
    assert result["order"] == "inf"
    assert sum(cluster["rows"] for cluster in result["clusters"]) == 150
    assert 0 <= result["error"] < 0.25
    assert result["warnings"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("iris -k 3 --scale none", ["150 rows, 4 columns", "setosa (100%)", "error 0.0467", "adjusted Rand index"]),
        ("iris -k 3", ["hypergraph of neighbourhoods: 149 landmarks, 7 nearest of each row; "]),
        ("iris -k 3 --order 4", ["landmarks, 7 nearest of each row; order 4; "]),
        (
            "iris -k 3 --affinity rbf --gamma 2 --order 4",
            ["rbf, gamma 2, order 4; ", "exact: K is stored in float64 (the matr"],
        ),
        (
            "iris -k 3 --affinity nearest_neighbors --n-neighbors 7",
            ["nearest_neighbors, order 2; ", ": K is a graph in "],
        ),
        ("digits -k 10", ["constant columns tell nothing apart: 'pixel_0_0'"]),
        ("wine -k 3 --assign-labels kernel_kmeans --n-init 1", ["normalised cut"]),
        ("wine -k 3 --affinity rbf --modelling symmetric --order 5", ["order 5"]),
    ],
)
def test_what_is_printed(done, arguments, words):
    shown = "".join(done(f"cluster {arguments}"))
    assert [text for text in words if text not in shown] == []


@pytest.mark.parametrize(
    ("options", "words", "numbers"),
    [
        pytest.param("--gram fourier", FOURIER, {"product", "n_rows"}, marks=needs("finufft")),
        *(
            (f"--gram nystroem --rank 40 --row-normalize {choice}", LANDMARKS, {"eigenvalues", "kernel", "n_rows"})
            for choice in ("auto", "yes", "no")
        ),
    ],
)
def test_it_is_said_how_exact_labels_are(done, facts, options, words, numbers):
    np.save("t.npy", np.random.default_rng(0).normal(size=(90, 2)) + np.repeat([[0, 0], [4, 0], [0, 4]], 30, axis=0))
    command = f"cluster t.npy -k 3 --affinity rbf {options}"
    out, err = done(command)
    assert (err, words in out) == ("", True)
    result = facts(command)
    assert result["approximation"].keys() == numbers
    assert (result["gram"], result["gram_reason"]) == (options.split()[1], "as asked for")
    assert result["rank"] == (40 if "rank" in options else None)


def test_only_clusters_that_were_found_are_listed(done, facts, write):
    write("a,b", lambda i: "1,2", 20)
    assert "1 cluster returned, 2 asked for" in done("cluster t.csv -k 2")[1]
    assert [one["rows"] for one in facts("cluster t.csv -k 2")["clusters"]] == [20]


def test_names_of_many_columns_are_not_all_printed(done, refused):
    X = np.hstack([np.random.default_rng(0).normal(size=(60, 2)), np.ones((60, 3000))])
    np.save("t.npy", X)
    np.save("narrow.npy", X[:, :-1])
    _, err = done("cluster t.npy -k 2 --save m.skops")
    assert "constant columns tell nothing apart: '2', '3', " in err
    error = refused("predict m.skops narrow.npy")
    assert "column '3001' was used in fit and is not there; columns: '0', '1', " in error
    assert max(len(err), len(error)) < 1000


def test_scaling_is_standard_unless_asked_otherwise(cli, facts):
    X = np.random.default_rng(0).normal(size=(60, 2)) * [1, 1e4] + np.repeat([[0, 0], [9, 0]], 30, axis=0)
    np.savez("t.npz", X=X, y=np.repeat([0, 1], 30))
    for scale, perfect in (("standard", True), ("robust", True), ("none", False)):
        result = facts(f"cluster t.npz -k 2 --label-column y --scale {scale}")
        assert (result["error"] == 0) == perfect
        assert any("column spreads differ" in w for w in result["warnings"]) == (not perfect)


def test_quiet_prints_nothing(cli):
    assert cli("cluster digits -k 10 --quiet -o l.npy") == (0, "", "")
    assert np.load("l.npy").shape == (1797,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("no-such-thing -k 3", "3 no-such-thing: neither a file nor a data set of scikit-learn"),
        ("absent.csv -k 3", "3 absent.csv: no such file"),
        ("iris -k 200", "3 X has 150 rows, fewer than --clusters 200"),
        ("iris -k 0", "2 --clusters must be a whole number"),
        ("iris -k three", "2 --clusters must be a whole number of at least 1, got 'three': 'select' chooses it"),
        ("absent.csv -k 0", "2 --clusters must be a whole number of at least 1, got 0"),  # before any table is read
        ("iris -k select --k-max 0", "2 --k-max must be a whole number of at least 1, got 0"),
        ("iris -k 3 --seed -1", "2 --seed must be from 0 to 2**32 − 1, got -1"),
        ("iris -k 3 --rank many", "2 --rank must be 'auto', 'all' or a whole number"),
        ("iris -k 3 --order 1", "2 --order must be at least 2, got 1"),
        ("iris -k 3 --gamma -1", "2 --gamma must be a number of at least 0"),
        ("iris -k 3 --gamma select", "2 --gamma must be one of"),
        ("iris -k 3 --drop zz", "3 iris: --drop names column 'zz'"),
        ("iris -k 3 -o labels.xls", "2 cannot write labels.xls: its name must end in one of"),
        ("iris -k 3 --affinity poly --degree inf", "2 --degree must be a finite number"),
        ("diabetes -k 3 --label-column target", "3 diabetes: --label-column names column 'target'"),
        ("iris -k 3 --affinity rbf --metric cosine", "2 --metric cosine is for"),
        ("iris -k 3 --rank 2", "2 --rank 2 landmarks are fewer than the 3 clusters"),
        ("iris -k 3 --gram nystroem", "2 --gram nystroem is for kernels"),
        ("iris -k 3 --device nowhere", "2 --device must be"),
        ("iris -k 3 -o ''", "2 the name of the output is empty"),
        ("iris -k 3 -o no/l.csv", "2 cannot write no/l.csv: there is no folder no"),
        ("iris -k 3 --append", "2 --append needs a file to write to"),
        ("iris -k 3 --affinity linear", "3 .*--affinity rbf"),  # another kernel is the way out
        ("wine -k 3 --affinity rbf --modelling symmetric --order 2.5", "2 .*needs a whole order"),
    ],
)
def test_errors_say_what_to_do_and_have_their_exit_code(arguments, message, refused):
    start, _, words = message.partition(".*")
    error = refused(f"cluster {arguments}")
    assert (error.startswith(start), words in error) == (True, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("cluster", "usage: biclique cluster --help"),
        ("cluster -k 3", "TABLE"),
        ("cluster iris", "--clusters"),
        ("cluster iris -k 3 --affinity precomputed", "precomputed"),
        ("cluster iris -k 3 --gram sparse", "sparse"),
        ("cluster iris -k 3 --stream", "unrecognized arguments: --stream; usage: biclique cluster --help"),
        ("cluster iris -k 3 --degree x", "--degree: needs a number, such as 0.5, got 'x'"),
        ("paint", "usage: biclique --help"),
        ("hypergraph", "usage: biclique hypergraph --help"),
        ("hypergraph cluster h.json -k select", "--clusters: needs a whole number, such as 3, got 'select'"),
        ("hypergraph cluster h.json -k 2 --stream x", "--stream x; usage: biclique hypergraph cluster --help"),
    ],
)
def test_usage_errors_exit_with_2(arguments, words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments.split())
    err = capsys.readouterr().err
    assert (stop.value.code, err.count("\n"), "usage:" in err, words in err) == (2, 1, True, True)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("", ["COMMAND"]),
        ("cluster", ["--affinity"]),
        ("predict", ["--append"]),
        ("report", ["--drop-missing"]),
        ("hypergraph", ["convert"]),
        *((f"hypergraph {action}", ["hMetis", *COLUMNS_OF_EDGES]) for action in ("cluster", "info", "convert")),
        ("reproduce", ["--resume"]),
        ("info", ["--json"]),
    ],
)
def test_every_help_has_examples_and_exit_codes(capsys, command, words):
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), "--help"])
    out = capsys.readouterr().out
    assert stop.value.code == 0
    assert "examples:\n  biclique " in out
    assert "exit codes:" in out or command == "hypergraph"
    assert [word for word in words if word not in out] == []


def test_the_package_is_the_command():
    done = subprocess.run([sys.executable, "-m", "biclique", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"biclique {__version__}\n"


WORK = 4.0
"""Seconds of a processor after which a command has been imported and is at work, however busy the machine is."""
IN_PARTS = """
import sys
from biclique.cli import command, opened_tables
opened_tables.free_memory = lambda: 1000
sys.exit(command())
"""


@needs("dask")
@needs("psutil")
def test_ctrl_c_leaves_cleanly(tmp_path):
    """Also the threads of Dask."""
    np.save(tmp_path / "t.npy", np.random.default_rng(0).normal(size=(3_000_000, 8)).astype(np.float32))
    command = [sys.executable, "-c", IN_PARTS, "cluster", "t.npy", "-k", "5", "-o", "l.csv"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    while sum(psutil.Process(process.pid).cpu_times()[:2]) < WORK:
        assert process.poll() is None, "the fit ended before it could be interrupted"
        time.sleep(0.1)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - start < 10
    assert "interrupted; nothing was written" in err
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == ["t.npy"]


def test_the_number_of_clusters_is_selected_and_the_reason_is_printed(done, facts):
    out, err = done("cluster wine -k select --k-max 6")
    assert "warning" not in err
    (reason,) = [line for line in out.splitlines() if line.startswith("selected: ")]
    assert reason.startswith("selected: 3 clusters: halves of the rows find these again best (stability")
    assert f"selected: {facts('cluster wine -k select --k-max 6')['selected']}" == reason


def test_gower_divides_by_ranges_itself(facts):
    one, other = (facts(f"cluster iris -k 3 --affinity gower --scale {scale}") for scale in ("standard", "none"))
    assert one["gamma"] == other["gamma"]
    assert one["error"] < 0.15


@pytest.mark.parametrize("gower", ["", "--metric gower"])
def test_levels_set_clusters_apart(done, facts, write, gower):
    write("age,city", lambda i: f"{i % 7 + 50 * (i % 2)},{'ab'[i % 2]}")
    command = f"cluster t.csv -k 2 --categorical city {gower}"
    found = facts(command)["clusters"]
    apart = [[(one["column"], one["difference"]) for one in cluster["set_apart_by"]] for cluster in found]
    assert [found[:2] for found in apart] == [[("city=a", None), ("city=b", None)]] * 2  # no spread: no number
    assert [found[2][0] for found in apart] == ["age", "age"]
    out, _ = done(command)
    assert "city=a always higher, city=b always lower, age -" in out
    assert "inf" not in out


@pytest.mark.parametrize("k_max", ["", "--k-max 6"])
def test_gower_takes_a_number_of_clusters_that_is_selected(explained, facts, write, k_max):
    write("n,one,two", lambda i: f"{'' if i == 5 else i % 3},{'abc'[i % 3]},{'xy'[i % 2]}", 90)
    command = pasted(explained("cluster t.csv -k select"))
    assert command.endswith("-k select --metric gower --categorical one,two")  # most columns are levels
    found = facts(f"{command} {k_max}")
    assert found["rows"] == 90
    assert found["selected"].startswith(f"{len(found['clusters'])} clusters: ")


def test_a_warning_comes_once_though_columns_are_looked_at_twice(done, write):
    write("n,one", lambda i: f"{i},{'abc'[i % 3]}")
    _, err = done("cluster t.csv -k select --metric gower --categorical one")
    assert err.count("column 'n' only counts the rows") == 1


def test_nothing_is_sure_to_a_hundred_per_cent(done):
    np.save("t.npy", np.concatenate([np.random.default_rng(0).normal(size=(40, 2)) + centre for centre in (0, 30)]))
    out, _ = done("cluster t.npy -k 2")
    assert ("99%" in out, "100%" in out) == (True, False)


def test_a_rare_category_does_not_stop_the_search(cli, explained, write):
    draw = np.random.default_rng(0).normal(size=(1500, 2))
    write("a,b,kind", lambda i: f"{draw[i, 0]},{draw[i, 1]},{'rare' if i < 3 else 'usual'}", 1500)
    assert cli(f"{pasted(explained('cluster t.csv -k select --k-max 4'))} -q")[:2] == (0, "")


def test_what_is_known_of_structure_comes_once(done, facts):
    np.save("t.npy", np.random.default_rng(0).normal(size=(200, 2)))
    shown = "".join(done("cluster t.npy -k select --k-max 4"))
    assert shown.count("No structure was found") == shown.count("clusters are slices of one cloud") == 1
    assert "No structure" in facts("cluster t.npy -k select --k-max 4")["warnings"][0]
