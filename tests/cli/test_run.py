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
from biclique.tables import atomic_files, writing
from tests.cli.full_disk import full_disk
from tests.cli.running import run

IRIS = ["cluster", "iris", "-k", "3"]


def shell(text, **environment):
    """A command line with ``biclique`` in it, by the shell: its exit code and what it says on standard error."""
    script = f'set -o pipefail; biclique() {{ "{sys.executable}" -m biclique "$@"; }}; {text}'
    environment = {**os.environ, **environment}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


FORKED = """
import json, os, signal, sys
import biclique.cli.cluster_command, biclique.cli.hypergraph_command, biclique.cli.reproduce_command
from biclique.cli import command

cases, folder = json.loads(sys.argv[1]), sys.argv[2]
found = []
for number, (place, arguments) in enumerate(cases):
    child = os.fork()
    if child == 0:
        break
    status = os.waitpid(child, 0)[1]
    with open(f"{folder}/{number}") as file:
        found.append([os.waitstatus_to_exitcode(status), file.read()])
else:
    print(json.dumps(found))
    sys.exit()
signal.alarm(120)  # seconds, after which it fails instead of waiting
sys.argv = ["biclique", *arguments]
os.dup2(os.open(f"{folder}/{number}", os.O_WRONLY | os.O_CREAT), 2)
for stream, file in enumerate(("stdin", "stdout", "stderr")):
    if place == "nothing open" or (place == "closed" and file == "stdout"):
        os.close(stream)
        setattr(sys, file, None)
        setattr(sys, f"__{file}__", None)
if place == "full":
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
if place == "no reader":
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)
sys.exit(command())
"""
"""A process that imports everything once, then has a child for every command, with the standard output of its case."""

TAKES_NOTHING = {
    "a full disk": ("full", IRIS, 1, "cannot write to standard output (No space left on device)"),
    "help, a full disk": ("full", ["--help"], 1, "cannot write to standard output (No space left on device)"),
    "closed": ("closed", IRIS, 1, "standard output is closed, and the result would be lost"),
    "quiet, closed": ("closed", [*IRIS, "-q"], 0, ""),
    "nothing open": ("nothing open", IRIS, 1, ""),
    "no reader": ("no reader", IRIS, 0, ""),
    "help, no reader": ("no reader", ["cluster", "--help"], 0, ""),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    cases = json.dumps([case[:2] for case in TAKES_NOTHING.values()])
    arguments = [sys.executable, "-c", FORKED, cases, tmp_path_factory.mktemp("said")]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # what is left in a buffer is written when Python ends
    done = subprocess.run(arguments, capture_output=True, text=True, env=buffered, check=True)
    return dict(zip(TAKES_NOTHING, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("case", TAKES_NOTHING)
def test_standard_output_that_takes_nothing(outcomes, case):
    _, _, code, said = TAKES_NOTHING[case]
    found, err = outcomes[case]
    assert (found, err.count("\n")) == (code, int(bool(said)))
    assert said in err


def test_the_file_is_written_though_nothing_can_be_printed(capsys, monkeypatch, tmp_path):
    """Closed in a process of its own: a file that is opened could become standard output."""
    assert shell(f"biclique cluster iris -k 3 -o {tmp_path}/l.csv >&-")[0] == 0
    whole = (tmp_path / "l.csv").read_bytes()
    assert len(whole.splitlines()) == 151
    (tmp_path / "l.csv").unlink()
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        code = main([*IRIS, "-o", f"{tmp_path}/l.csv"])
    err = capsys.readouterr().err
    assert (code, err.count("\n")) == (1, 1)
    assert f"{tmp_path}/l.csv was written and is complete" in err
    assert (tmp_path / "l.csv").read_bytes() == whole


def test_labels_into_pipes_and_devices(capfd, tmp_path):
    assert main([*IRIS, "-q", "-o", f"{tmp_path}/l.csv"]) == 0
    whole = (tmp_path / "l.csv").read_text()
    assert shell("biclique cluster iris -k 3 -q -o /dev/stdout | cat") == (0, whole, "")
    assert main([*IRIS, "-q", "-o", "/dev/stdout"]) == 0
    assert capfd.readouterr() == (whole, "")
    os.mkfifo(tmp_path / "pipe.csv")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe.csv").read_text()))
    reader.start()
    assert main([*IRIS, "-q", "-o", f"{tmp_path}/pipe.csv"]) == 0
    reader.join(timeout=60)
    assert read == [whole]
    assert stat.S_ISFIFO((tmp_path / "pipe.csv").stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["l.csv", "pipe.csv"]
    before = os.stat("/dev/null")
    assert main([*IRIS, "-q", "-o", "/dev/null"]) == 0
    assert os.stat("/dev/null").st_rdev == before.st_rdev


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError(), 4, "not enough memory: take fewer rows or columns"),
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
    monkeypatch.setattr(table, "facts_of", lambda *_: signal.raise_signal(number))
    code, out, err = run(capsys, *IRIS, "-o", target)
    assert (code, out, err) == (128 + number, "", f"biclique: error: {word}; {target} was written and is complete\n")
    assert os.listdir(tmp_path) == ["l.csv"]


def test_a_signal_while_a_file_is_put_in_place(capsys, monkeypatch, tmp_path):
    target = tmp_path / "l.csv"
    replace = atomic_files.Path.replace

    def signalled(path, target):
        replace(path, target)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(atomic_files.Path, "replace", signalled)
    code, out, err = run(capsys, *IRIS, "-o", target)
    assert (code, out, err) == (130, "", f"biclique: error: interrupted; {target} was written and is complete\n")
    assert len(target.read_text().splitlines()) == 151
    assert os.listdir(tmp_path) == ["l.csv"]


def test_a_signal_while_a_temporary_file_is_made(capsys, monkeypatch, tmp_path):
    touch = atomic_files.Path.touch

    def signalled(*arguments, **options):
        touch(*arguments, **options)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(writing, "check_target", lambda path: None)
    monkeypatch.setattr(atomic_files.Path, "touch", signalled)
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


def test_ctrl_c_while_importing(monkeypatch, tmp_path):
    (tmp_path / "scipy.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    code, out, err = shell("biclique cluster iris -k 3", PYTHONPATH=path)
    assert (code, out, err) == (130, "", "biclique: error: interrupted; nothing was written\n")


def test_the_package_gives_its_names_when_asked():
    code = (
        "import biclique, pickle\n"
        "assert biclique.kernels.KERNELS and set(biclique.__all__) <= set(dir(biclique))\n"
        "from biclique import *\n"
        "assert pickle.loads(pickle.dumps(BicliqueSpectralClustering(3))).n_clusters == 3\n"
        "assert not hasattr(biclique, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# What comes from outside


def test_names_do_not_reach_the_terminal_as_commands(capsys, tmp_path):
    evil = "\x1b[2Jx"
    rows = "".join(f"{i % 2 * 9 + i / 50},1,{evil}{i % 2}\n" for i in range(40))
    path = tmp_path / f"{evil}.csv"
    path.write_text(f"a,{evil}c,kind\n{rows}")
    roles = ["--label-column", "kind", "--id", f"{evil}c"]
    arguments = ["cluster", path, "-k", 2, *roles, "-o", tmp_path / f"{evil}l.csv"]
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


def test_a_full_disk_in_convert(capsys, tmp_path):
    edges = np.random.RandomState(0).randint(0, 500, (2000, 2))
    source = tmp_path / "h.hgr"
    source.write_text(f"{len(edges)} 500\n" + "".join(f"{a + 1} {b + 1}\n" for a, b in edges))
    with full_disk():
        code, out, err = run(capsys, "hypergraph", "convert", source, tmp_path / "h.json")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "File too large" in err
    assert os.listdir(tmp_path) == ["h.hgr"]


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".parquet"])
def test_a_full_disk_leaves_the_old_file_and_no_other(capsys, tmp_path, suffix):
    output = tmp_path / f"l{suffix}"
    output.write_text("old")
    with full_disk():
        code, out, err = run(capsys, *IRIS, "-o", output)
    assert (code, out) == (1, "")
    assert err.startswith("biclique: error: ")
    assert "Traceback" not in err
    assert output.read_text() == "old"
    assert os.listdir(tmp_path) == [output.name]
