"""Whatever happens: the documented exit code, and one line."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

import biclique.cli
from biclique.cli import cluster_command as table
from biclique.cli import main, signals
from biclique.io import atomic_files, label_files
from biclique.printable import printable
from tests.cli.test_hypergraph_command import run

COMMAND = [sys.executable, "-m", "biclique"]
IRIS = ["cluster", "iris", "-k", "3"]


def shell(text, **environment):
    """A command line with ``biclique`` in it, by the shell: its exit code and what it says on standard error."""
    script = f'set -o pipefail; biclique() {{ "{sys.executable}" -m biclique "$@"; }}; {text}'
    environment = {**os.environ, **environment}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("biclique cluster iris -k 3 > /dev/full", 1, "cannot write to standard output (No space left on device)"),
        ("biclique --help > /dev/full", 1, "cannot write to standard output (No space left on device)"),
        ("biclique cluster iris -k 3 >&-", 1, "standard output is closed, and the result would be lost"),
        ("biclique cluster iris -k 3 -q >&-", 0, ""),
        ("biclique cluster iris -k 3 2>&- >&- <&-", 1, ""),
        ("biclique cluster iris -k 3 | true", 0, ""),
        ("biclique cluster --help | true", 0, ""),
    ],
)
def test_standard_output_that_takes_nothing(text, code, said):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    found, _, err = shell(text)
    assert (found, err.count("\n")) == (code, int(bool(said)))
    assert said in err


def test_the_file_is_written_though_nothing_can_be_printed(tmp_path):
    assert shell(f"biclique cluster iris -k 3 -o {tmp_path}/l.csv >&-")[0] == 0
    whole = (tmp_path / "l.csv").read_bytes()
    assert len(whole.splitlines()) == 151
    (tmp_path / "l.csv").unlink()
    code, _, err = shell(f"biclique cluster iris -k 3 -o {tmp_path}/l.csv > /dev/full")
    assert (code, err.count("\n")) == (1, 1)
    assert f"{tmp_path}/l.csv was written and is complete" in err
    assert (tmp_path / "l.csv").read_bytes() == whole


def test_labels_into_pipes_and_devices(tmp_path):
    assert main([*IRIS, "-q", "-o", f"{tmp_path}/l.csv"]) == 0
    whole = (tmp_path / "l.csv").read_text()
    assert shell("biclique cluster iris -k 3 -q -o /dev/stdout | cat") == (0, whole, "")
    assert shell(f"biclique cluster iris -k 3 -q -o /dev/stdout > {tmp_path}/out")[0] == 0
    assert (tmp_path / "out").read_text() == whole
    os.mkfifo(tmp_path / "pipe.csv")
    code, out, _ = shell(f"cat {tmp_path}/pipe.csv & biclique cluster iris -k 3 -q -o {tmp_path}/pipe.csv; wait")
    assert (code, out) == (0, whole)
    assert stat.S_ISFIFO((tmp_path / "pipe.csv").stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["l.csv", "out", "pipe.csv"]
    before = os.stat("/dev/null")
    assert main([*IRIS, "-q", "-o", "/dev/null"]) == 0
    assert os.stat("/dev/null").st_rdev == before.st_rdev


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError(), 4, "not enough memory: set a lower --memory-limit"),
        (MemoryError("Unable to allocate 9 TiB"), 4, "(Unable to allocate 9 TiB)"),
        (RecursionError("maximum depth"), 3, "nested too deeply"),
        (OverflowError("int too large"), 3, "too large (int too large)"),
        (UnicodeEncodeError("utf-8", "a\ud800", 1, 2, "surrogates not allowed"), 3, r"'\ud800' cannot be written"),
        (KeyError("x"), 1, "KeyError: 'x'; this is a bug; run with BICLIQUE_TRACEBACK=1 to see where"),
        (ZeroDivisionError(), 1, "ZeroDivisionError; this is a bug"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
        (signals.Stop(), 130, "interrupted; nothing was written"),
        (RuntimeError("a\x1b[2Jb\nc"), 1, r"a\x1b[2Jb\nc"),
    ],
)
def test_any_exception_is_one_line(capsys, monkeypatch, error, code, said):
    def raises(self, X):
        raise error

    monkeypatch.setattr(table.BicliqueSpectralClustering, "fit", raises)
    found, out, err = run(capsys, *IRIS)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert err.startswith("biclique: error: ")
    assert said in err
    if code < 128:
        monkeypatch.setenv("BICLIQUE_TRACEBACK", "1")
        assert "Traceback" in run(capsys, *IRIS)[2]


@pytest.mark.parametrize("size", ["9" * 400, "9" * 305 + "T", "0", "nan", "1e400", "-1", "1 2"])
def test_silly_memory_limits(capsys, size):
    try:
        code = main([*IRIS, f"--memory-limit={size}"])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.fixture(autouse=True)
def heard_signals():
    """Signals have their usual handlers here, also where the tests run under nohup."""
    ignored = [number for number in signals.WORDS if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_end_the_work_in_the_same_way(capsys, monkeypatch, tmp_path, name):
    number = getattr(signal, name)
    before = [signal.getsignal(s) for s in signals.WORDS]
    target = tmp_path / "l.csv"
    monkeypatch.setattr(table.BicliqueSpectralClustering, "fit", lambda self, X: signal.raise_signal(number))
    code, out, err = run(capsys, *IRIS, "-o", target)
    word = signals.WORDS[number]
    assert (code, out, err) == (128 + number, "", f"biclique: error: {word}; nothing was written\n")
    assert os.listdir(tmp_path) == []
    assert [signal.getsignal(s) for s in signals.WORDS] == before
    monkeypatch.undo()
    monkeypatch.setattr(table, "report", lambda *_: signal.raise_signal(number))
    code, out, err = run(capsys, *IRIS, "-o", target)
    assert (code, out, err) == (128 + number, "", f"biclique: error: {word}; {target} was written and is complete\n")
    assert os.listdir(tmp_path) == ["l.csv"]


def test_a_signal_while_a_file_is_put_in_place(capsys, monkeypatch, tmp_path):
    target = tmp_path / "l.csv"
    replace = atomic_files.Path.replace

    def signalled(path, target):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        return replace(path, target)

    monkeypatch.setattr(atomic_files.Path, "replace", signalled)
    code, out, err = run(capsys, *IRIS, "-o", target)
    assert (code, out, err) == (130, "", f"biclique: error: interrupted; {target} was written and is complete\n")
    assert len(target.read_text().splitlines()) == 151
    assert os.listdir(tmp_path) == ["l.csv"]


@pytest.mark.parametrize("place", ["mkstemp", "close"])
def test_a_signal_while_a_temporary_file_is_made(capsys, monkeypatch, tmp_path, place):
    module = atomic_files.tempfile if place == "mkstemp" else atomic_files.os
    works = getattr(module, place)

    def signalled(*arguments, **options):
        made = works(*arguments, **options)
        signal.raise_signal(signal.SIGINT)
        return made

    monkeypatch.setattr(label_files, "check_target", lambda path: None)
    monkeypatch.setattr(module, place, signalled)
    code, _, err = run(capsys, *IRIS, "-o", tmp_path / "l.csv")
    assert (code, err) == (130, "biclique: error: interrupted; nothing was written\n")
    assert os.listdir(tmp_path) == []


def test_an_ignored_signal_stays_ignored(capsys, monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    fit = table.BicliqueSpectralClustering.fit
    try:

        def hung_up(self, X):
            signal.raise_signal(signal.SIGHUP)
            return fit(self, X)

        monkeypatch.setattr(table.BicliqueSpectralClustering, "fit", hung_up)
        assert run(capsys, *IRIS, "-q") == (0, "", "")
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_that_falls_into_a_finaliser_is_not_lost(capsys, monkeypatch):
    class Finalised:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    def fit(self, X):
        Finalised()
        threading.Event().wait(20)

    monkeypatch.setattr(table.BicliqueSpectralClustering, "fit", fit)
    assert run(capsys, *IRIS) == (143, "", "biclique: error: terminated; nothing was written\n")


def test_the_main_thread_is_not_needed(capsys):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main([*IRIS, "-q"])))
    thread.start()
    thread.join()
    assert codes == [0]


def test_ctrl_c_is_heard_before_anything_heavy_is_imported():
    heavy = "{'numpy', 'scipy', 'sklearn', 'argparse', 'signal'}"
    code = f"import sys, biclique.cli; sys.exit(len({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert biclique.cli.command


def test_a_run_leaves_the_function_that_made_it(capsys):
    assert main([*IRIS, "--dry-run"]) == 0
    assert biclique.cli.main is main


def test_ctrl_c_while_importing(monkeypatch, tmp_path):
    (tmp_path / "scipy.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    code, out, err = shell("biclique cluster iris -k 3", PYTHONPATH=path)
    assert (code, out, err) == (130, "", "biclique: error: interrupted; nothing was written\n")


def test_the_package_gives_its_names_when_asked():
    code = (
        "import biclique, pickle\n"
        "assert biclique.gram.GRAMS and set(biclique.__all__) <= set(dir(biclique))\n"
        "from biclique import *\n"
        "assert pickle.loads(pickle.dumps(BicliqueSpectralClustering(3))).n_clusters == 3\n"
        "assert not hasattr(biclique, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# What comes from outside


def test_printable():
    assert printable("ordinary γ − text") == "ordinary γ − text"
    assert printable("a\x1b[2J\n\tb\u202e\udcff") == r"a\x1b[2J\n\tb\u202e\udcff"


def test_names_do_not_reach_the_terminal_as_commands(capsys, tmp_path):
    evil = "\x1b[2Jx"
    rows = "".join(f"{i % 2 * 9 + i / 50},1,{evil}{i % 2}\n" for i in range(40))
    path = tmp_path / f"{evil}.csv"
    path.write_text(f"a,{evil}c,kind\n{rows}")
    arguments = [
        "cluster",
        path,
        "-k",
        2,
        "--label-column",
        "kind",
        "--id",
        f"{evil}c",
        "-o",
        tmp_path / f"{evil}l.csv",
    ]
    code, out, err = run(capsys, *arguments)
    assert code == 0
    assert "mostly" in out
    assert (tmp_path / f"{evil}l.csv").read_text().startswith(f"{evil}c,label\n")
    code, more, wrong = run(capsys, "cluster", path, "-k", 2, "--drop", evil)
    assert code == 3
    assert wrong.count("\n") == 1
    code, facts, _ = run(capsys, *arguments, "--json")
    assert {c["mostly"][:-1] for c in json.loads(facts)["clusters"]} == {evil}
    _, warned, said = run(capsys, "cluster", path, "-k", 2, "--drop", "kind")
    assert "constant columns" in said
    with pytest.raises(SystemExit):
        main(["cluster", "iris", "-k", "3", evil])
    shown = out + err + more + wrong + facts + warned + said + capsys.readouterr().err
    assert all(c.isprintable() or c == "\n" for c in shown)


def test_a_full_disk_in_convert(tmp_path):
    resource = pytest.importorskip("resource")
    edges = np.random.RandomState(0).randint(0, 500, (2000, 2))
    source = tmp_path / "h.hgr"
    source.write_text(f"{len(edges)} 500\n" + "".join(f"{a + 1} {b + 1}\n" for a, b in edges))
    done = subprocess.run(
        [*COMMAND, "hypergraph", "convert", source, tmp_path / "h.json"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "File too large" in done.stderr
    assert os.listdir(tmp_path) == ["h.hgr"]
