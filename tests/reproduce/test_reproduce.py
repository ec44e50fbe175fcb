"""The paper's evaluation: repeats of k-means, embeddings, records that survive a kill, tables and figures."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

from biclique import __version__
from biclique.cli import main
from biclique.datasets import paper as sources
from biclique.exceptions import DataError, DegreeError, ParameterError
from biclique.progress import Progress
from biclique.reproduce import cells, methods
from biclique.reproduce.cells import FULL, PREPARATIONS, QUICK, Cell, Records, load_problem, run_cell
from biclique.reproduce.everything import reproduce, wrapped
from biclique.reproduce.methods import METHODS, Problem, Settings, embedding, repeated_kmeans
from biclique.reproduce.printed import DATA, INHOMOGENEOUS, RUN_TIMES, TABLE_1
from biclique.reproduce.result_tables import (
    INHOMOGENEOUS_ROWS,
    TABLE_1_ROWS,
    best_of,
    by_order,
    hopkins_table,
    observations,
)
from tests import oracles
from tests.calls import refuses
from tests.optional import needs


def rbf(X, gamma=1.0):
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


def result(order, error):
    return {"order": order, "gamma": 1.0, "error": error, "deviation": 0.01, "seconds": 1.0, "k": 3}


# k-means


def test_runs_are_as_good_as_scikit_learns():
    """The mean inertia of single k-means++ starts, ours plain and theirs greedy, on data with several optima."""
    rows = np.random.default_rng(1).standard_normal((100, 2))
    labels = repeated_kmeans(rows, 5, 200, np.random.RandomState(0))
    ours = [sum(((rows[run == j] - rows[run == j].mean(axis=0)) ** 2).sum() for j in range(5)) for run in labels]
    theirs = [KMeans(5, n_init=1, random_state=seed).fit(rows).inertia_ for seed in range(50)]
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.05)
    assert np.min(ours) == pytest.approx(np.min(theirs), rel=1e-6)
    assert repeated_kmeans(np.zeros((5, 2)), 3, 4, np.random.RandomState(0)).shape == (4, 5)  # all points coincide


# Embeddings


@pytest.mark.parametrize("order", [2, 4, 20])
def test_embedding_is_algorithm_1(order):
    K = rbf(load_iris().data)
    _, vectors = oracles.algorithm_1(K, order)
    expected = oracles.projector(vectors[:, :3])
    np.testing.assert_allclose(oracles.projector(embedding(K, order, 3)), expected, atol=1e-8)
    np.testing.assert_allclose(oracles.projector(methods.demo_embedding(K, order, 3)), expected, atol=1e-6)


def test_negative_eigenvalues_do_not_bring_the_trivial_vector_back():
    """With a zero diagonal every eigenvalue but the first can be negative; zero must not stand before them."""
    A = 1 - np.eye(6) + 0.01 * np.outer(np.arange(6), np.arange(6)) * (1 - np.eye(6))
    rows = embedding(A, 2, 3)
    np.testing.assert_allclose(rows.T @ rows, np.eye(3), atol=1e-10)
    root = np.sqrt(A.sum(axis=1))
    vectors = np.linalg.eigh(A / root / root[:, None])[1]
    np.testing.assert_allclose(oracles.projector(rows), oracles.projector(vectors[:, -3:]), atol=1e-8)


def test_eigenvectors_that_rounding_chooses_are_refused():
    rows = load_iris().data
    for order in (2, 4):
        with pytest.raises(np.linalg.LinAlgError, match="2 eigenvectors have no eigengap"):
            embedding(rbf(rows, 1e5), order, 3)


def test_degrees_that_are_not_positive_are_refused():
    with pytest.raises(DegreeError):
        embedding(-np.ones((4, 4)), 2, 2)
    lonely = np.ones((4, 4))
    lonely[0] = lonely[:, 0] = 1e-310
    assert np.isfinite(embedding(lonely, 2, 2)).all()
    with pytest.raises(DegreeError):
        methods.demo_embedding(np.zeros((4, 4)), 2, 2)


# Methods


def test_the_label_free_protocol_on_a_little_of_iris():
    bunch = load_iris()
    problem = Problem("iris", bunch.data[::5], bunch.target[::5], 3)
    (found,) = METHODS["inhomogeneous_protocol_4"](problem, Settings(5, (2, 4)), np.random.RandomState(0))
    assert found["order"] == 4
    assert 0 <= found["error"] <= 2 / 3 + 1e-9
    assert found["seconds"] > 0


def test_the_papers_iris_numbers():
    problem = load_problem("iris", "iris", None)
    results = METHODS["gaussian_ours"](problem, FULL, np.random.RandomState(0))
    two, more = best_of(r for r in results if r["order"] == 2), best_of(r for r in results if r["order"] >= 4)
    assert two["error"] == pytest.approx(TABLE_1["Gaussian, m = 2"]["iris"][0], abs=0.005)
    assert more["error"] == pytest.approx(TABLE_1["Gaussian, ours, m ≥ 4"]["iris"][0], abs=0.005)
    largest = best_of(METHODS["gaussian_max"](problem, FULL, np.random.RandomState(0)))
    assert largest["error"] == pytest.approx(TABLE_1["Gaussian, max"]["iris"][0], abs=0.005)


# The paper's numbers


def test_every_row_has_its_printed_numbers():
    for row in TABLE_1_ROWS:
        assert set(TABLE_1[row.paper or row.name]) == set(DATA)
        assert set(RUN_TIMES[row.paper or row.name]) == set(DATA)
        assert row.method in METHODS
    for row in INHOMOGENEOUS_ROWS:
        assert set(INHOMOGENEOUS[row.paper or row.name]) == set(DATA)


# Runs


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """Made-up data in the original layout: two sequences."""
    folder = tmp_path_factory.mktemp("home")
    random = np.random.default_rng(0)
    for name in ("arm", "cars1"):
        (folder / "Hopkins155" / name).mkdir(parents=True)
        s = np.repeat([1, 2], 15)
        x = random.standard_normal((3, 30, 4)) + 3 * s[None, :, None]
        savemat(folder / "Hopkins155" / name / f"{name}_truth.mat", {"x": x, "s": s[:, None]})
    return folder


@pytest.fixture
def home(made_up, monkeypatch):
    monkeypatch.setattr(sources, "DIGESTS", dict.fromkeys(sources.DIGESTS))
    return made_up


@pytest.fixture(scope="module")
def finished_runs(made_up, tmp_path_factory):
    """Runs of table 1 in one process, done once: on iris, and on the made-up sequences. Tests take a copy."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "DIGESTS", dict.fromkeys(sources.DIGESTS))
        for data in ("iris", "hopkins155"):
            reproduce("table1", data=(data,), out=folder / data, data_home=made_up, quick=True, verbose=False)
    return folder


def read(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@needs("matplotlib")
def test_a_run_writes_tables_pages_and_figures(tmp_path, home, finished_runs, monkeypatch):
    for name in METHODS:
        if "protocol" in name:  # another search without labels, in a tenth of the time
            monkeypatch.setitem(METHODS, name, lambda *arguments: METHODS["label_free"](*arguments)[:1])
    out, data = tmp_path / "out", ("iris", "hopkins155")
    for name in data:
        shutil.copytree(finished_runs / name / "records", out / "records", dirs_exist_ok=True)
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "page.md"
    tables = reproduce("all", data=data, out=out, data_home=home, quick=True, resume=True, page=page)
    assert set(tables) == {"observations", "table1", "hopkins155", "inhomogeneous", "runtime", "datasets", "figures"}
    rows = read(out / "table1.csv")
    ours = next(r for r in rows if r["method"] == "Gaussian, ours, m ≥ 4" and r["data"] == "iris")
    assert float(ours["ours"].split()[0]) == pytest.approx(0.0693, abs=0.01)
    assert ours["paper"] == "0.0693 ± 0.0033"
    assert {r["data"] for r in rows} == {"iris", "hopkins155"}
    for name in ("figure1", "figure2"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / f"{name}.svg").read_text()
        assert (tmp_path / "docs" / "images" / "reproduction" / f"{name}.png").exists()
    page = (out / "reproduction.md").read_text()
    assert "falls, then rises" in page
    assert "| Gaussian, ours, m ≥ 4 | 0.0" in page
    assert "(images/reproduction/figure1.png)" in (tmp_path / "docs" / "page.md").read_text()
    assert all(len(line) <= 100 for line in page.splitlines() if not line.startswith(("|", "#", "!")))
    assert wrapped(page).rstrip() + "\n" == page
    assert read(out / "datasets.csv")[1]["data"] == "hopkins155"
    for name, table in tables.items():
        assert len(set(table.header)) == len(table.header), name
    for file in (out / "records").glob("*/*/*.json"):
        results = json.loads(file.read_text())["results"]
        kept = [r for r in results if r["error"] is not None]
        assert kept, file
        assert all(0 <= r["error"] <= 2 / 3 + 1e-9 and r["seconds"] > 0 for r in kept)
        assert all("reason" in r for r in results if r["error"] is None)
    free = next(r for r in read(out / "inhomogeneous.csv") if "protocol" in r["method"] and r["data"] == "iris")
    assert free["chosen"] == "without labels"
    assert "±" not in free["ours"]


def test_hopkins_is_compared_at_the_order_the_paper_means():
    """0.1112 is the error at m = 4; the best order of each sequence is another number, 0.0927."""
    results = {
        Cell("hopkins155", "a", "gaussian_ours"): [result(2, 0.4), result(4, 0.2), result(6, 0.0)],
        Cell("hopkins155", "b", "gaussian_ours"): [result(2, 0.4), result(4, 0.0), result(6, 0.2)],
    }
    row = next(row for row in TABLE_1_ROWS if row.name == "Gaussian, ours, m ≥ 4")
    assert row.best(results, "hopkins155")["error"] == pytest.approx(0.1)
    best = next(row for row in INHOMOGENEOUS_ROWS if row.name == "ours, best m")
    assert best.best(results, "hopkins155")["error"] == pytest.approx(0.0)


def test_one_choice_for_all_sequences_has_a_result_on_all():
    left_out = {**result(2, 0.0), "gamma": 100.0}
    results = {
        Cell("hopkins155", "a", "gaussian_ours"): [result(2, 0.4), result(4, 0.2), left_out],
        Cell("hopkins155", "b", "gaussian_ours"): [result(2, 0.2), result(4, 0.0), {**left_out, "error": None}],
    }
    common = hopkins_table(results).rows[1]
    assert common[1].startswith("0.3000")


def test_finished_cells_are_never_done_again(tmp_path, home, finished_runs, monkeypatch, capsys):
    out = tmp_path / "out"
    shutil.copytree(finished_runs / "hopkins155", out)
    first = (out / "table1.csv").read_text()
    (out / "table1.csv").unlink()
    refuses(DataError, "pass --resume", reproduce, "table1", data=("hopkins155",), out=out, data_home=home, quick=True)
    with pytest.raises(DataError, match="other settings"):
        reproduce("table1", data=("hopkins155",), out=out, data_home=home, resume=True)
    done = []
    monkeypatch.setattr(cells, "run_cell", lambda cell, *rest: done.append(cell) or run_cell(cell, *rest))
    first_record, second_record = sorted((out / "records").glob("*/*/*.json"))[:2]
    first_record.unlink()  # never finished
    second_record.write_text('{"cell"')  # cut short by a power failure of another program
    second = reproduce("table1", data=("hopkins155",), out=out, data_home=home, quick=True, resume=True)
    assert len(done) == 2
    assert "1 records are damaged, or of an older version without a checksum: they are done" in capsys.readouterr().err
    assert second["table1"].csv() == (out / "table1.csv").read_text() == first


def test_a_killed_run_goes_on_and_gives_the_same_tables(tmp_path, finished_runs):
    """Kill the process while it works, start it again, and compare with a run in one process that was left alone."""
    arguments = ["reproduce", "table1", "--data", "iris", "--quick", "--jobs", "2"]
    command = [sys.executable, "-m", "biclique", *arguments, "--out"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*command, tmp_path / "killed"], env=environment, start_new_session=True, **quiet)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "killed").glob("records/*/*/*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "killed").glob("records/*/*/*.json")}
    assert before
    assert main([*arguments, "--out", str(tmp_path / "killed"), "--resume", "-q"]) == 0
    assert all(path.stat().st_mtime_ns == time_ for path, time_ in before.items())
    assert (tmp_path / "killed" / "table1.csv").read_text() == (finished_runs / "iris" / "table1.csv").read_text()


def test_slow_methods_leave_the_sequences_out(home):
    planned = cells.plan(["hopkins155", "iris"], METHODS, str(home), quick=False)
    assert Cell("iris", "iris", "gaussian_demo") in planned
    assert not any(c.data == "hopkins155" and c.method == "gaussian_demo" for c in planned)


def test_curves_and_observations():
    falls = {Cell("iris", "iris", "gaussian_ours"): [result(2, 0.3), result(4, 0.1), result(6, 0.2), result(4, 0.15)]}
    curve = by_order(falls, "iris", "gaussian_ours")
    assert [(best["order"], best["error"]) for best in curve] == [(2, 0.3), (4, 0.1), (6, 0.2)]
    assert observations(falls).rows == [["iris", "Gaussian", "0.3000", "0.1000 (m = 4)", "0.2000 (m = 6)", "yes"]]
    flat = {Cell("iris", "iris", "gaussian_ours"): [result(2, 0.1), result(4, 0.1), result(6, 0.1)]}
    assert observations(flat).rows[0][-1] == "no"


def test_preparations_of_ovarian(tmp_path, home):
    X = np.random.default_rng(0).standard_normal((30, 100))
    X[:12] += 1
    np.savez(home / "ovarian100.npz", X=X, y=(np.arange(30) < 12).astype(int))
    planned = cells.plan(["preparations"], METHODS, str(home), quick=True)
    assert len({cell.file for cell in planned}) == len(planned) == len(PREPARATIONS) * 3
    tables = reproduce("ovarian", data=("ovarian",), out=tmp_path / "out", data_home=home, quick=True, verbose=False)
    assert len(tables["ovarian"].rows) == len(PREPARATIONS)
    assert "The lowest is" in tables["ovarian"].notes[0]
    scaled = {name: load_problem("preparations", f"100 features, {name}", str(home)).X for name in PREPARATIONS}
    np.testing.assert_allclose(scaled["z-scored"].std(axis=0), 1)
    np.testing.assert_allclose(np.linalg.norm(scaled["unit rows"], axis=1), 1)
    assert (scaled["min-max"].min(), scaled["min-max"].max()) == (0, 1)


def test_smallest_eigenvalues_on_request():
    K = rbf(load_iris().data)
    _, vectors = oracles.algorithm_1(K, 4)
    found = methods.ascending_embedding(K, 4, 2)
    residual = found - vectors @ (vectors.T @ found)
    np.testing.assert_allclose(residual, 0, atol=1e-8)
    assert np.abs(vectors[:, :100].T @ found).max() < 1e-6


def test_wrong_arguments(tmp_path, capsys):
    refuses(DataError, "page must be a file", reproduce, "datasets", data=("iris",), out=tmp_path / "o", page=tmp_path)
    refuses(ParameterError, "needs ovarian", reproduce, "ovarian", data=("iris",), out=tmp_path / "o")
    for wrong, message in (({"target": "table9"}, "target"), ({"data": ("x",)}, "data"), ({"jobs": 0}, "jobs")):
        refuses(ParameterError, f"{message} must be", reproduce, **{"out": tmp_path / "o", **wrong})
    (tmp_path / "file").write_text("")
    refuses(DataError, "must be a folder", reproduce, "datasets", data=("iris",), out=tmp_path / "file")
    home = ["--data-home", str(tmp_path / "file")]
    assert main(["reproduce", "table1", "--data", "spine", *home, "--out", str(tmp_path)]) == 3
    assert "must be a folder" in capsys.readouterr().err


def test_tables_need_no_matplotlib(tmp_path, finished_runs, capsys, monkeypatch):
    """Figures are skipped with the line that installs it; a figure asked for by name is an error before the work."""
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    out = tmp_path / "out"
    shutil.copytree(finished_runs / "iris" / "records", out / "records")
    command = ["reproduce", "table1", "--data", "iris", "--quick", "--out", str(out), "--page", str(tmp_path / "p.md")]
    assert main([*command, "--resume"]) == 0
    shown = capsys.readouterr().err
    needed = "figures need matplotlib: pip install '.[plot]' in a clone of biclique"
    assert shown.count(f"biclique: skipped: {needed}\n") == 1
    assert {r["data"] for r in read(out / "table1.csv")} == {"iris"}
    assert not list(tmp_path.glob("**/*.png"))
    for page in (out / "reproduction.md", tmp_path / "p.md"):
        assert "figure1" not in page.read_text()
    assert main(["reproduce", "datasets", "--data", "iris", "--out", str(tmp_path / "other")]) == 0
    assert "matplotlib" not in capsys.readouterr().err
    assert main(["reproduce", "figure1", "--data", "iris", "--out", str(tmp_path / "third")]) != 0
    assert "pip install '.[plot]'" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_does_not_throw_finished_cells_away(tmp_path, home, monkeypatch, jobs):
    planned = [Cell("iris", "iris", method) for method in ("label_free", "no_method", "gaussian_demo")]
    records = Records(tmp_path / "out", Settings(2, (2,)), resume=False)
    refuses(KeyError, "no_method", cells.run_cells, planned, records, home=str(home), jobs=jobs, progress=Progress())
    assert records.get(planned[0]) is not None


def test_interrupted_runs_say_what_is_kept(tmp_path, capsys, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("biclique.reproduce.cells.run_cell", interrupted)
    assert main(["reproduce", "table1", "--data", "iris", "--quick", "--out", str(tmp_path / "out")]) == 130
    assert "go on with --resume" in capsys.readouterr().err


def test_polynomial_rows_as_in_the_demo():
    bunch = load_iris()
    problem = Problem("iris", bunch.data, bunch.target, 3)
    expected = bunch.data - bunch.data.mean(axis=0) / bunch.data.std(axis=0, ddof=1)
    np.testing.assert_allclose(problem.as_in_demo, expected - expected.min())
    np.testing.assert_allclose(problem.shifted, bunch.data - bunch.data.min())


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"error": 0.25', '"error": 0.125'),
        lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "checksum"}),  # an older version
        lambda text: text.replace('"checksum": "', '"checksum": ["').removesuffix('"}') + '"]}',
        lambda text: "[" * 100_000,
        lambda text: json.dumps([json.loads(text)]),
        lambda text: text.replace("0.25", "9" * 5000),
        lambda text: text + " " * 2**24,
        lambda text: text.replace("results", "result\ud800").encode("utf-8", "replace").decode(),
    ],
)
def test_changed_and_damaged_records_are_not_believed(tmp_path, change):
    cell = Cell("iris", "iris", "gaussian_ours")
    records = Records(tmp_path, QUICK, resume=False)
    results = [{"order": 2, "error": 0.25, "k": 3}]
    records.put(cell, results)
    assert Records(tmp_path, QUICK, resume=True).get(cell) == results
    assert records.versions([cell]) == [__version__]
    assert records.get(Cell("iris", "iris", "label_free")) is None
    path = tmp_path / "records" / cell.file
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text
    assert records.get(cell) is None
    assert records.versions([cell]) == []
