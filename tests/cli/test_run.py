"""Whatever happens: the documented exit code, and one line."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import biclique.cli
from biclique.cli import cluster_command as table
from biclique.cli import main, signals
from biclique.cli import run as run_module
from biclique.tables import atomic_files, writing
from tests.cli.full_disk import full_disk

IRIS = "cluster iris -k 3"


def shell(text, **environment):
    """A command line with ``biclique`` in it, by the shell: its exit code and what it says on standard error."""
    script = f'set -o pipefail; biclique() {{ "{sys.executable}" -m biclique "$@"; }}; {text}'
    environment = {**os.environ, **environment}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


FULL = "cannot write to standard output (No space left on device)"
LOST = "standard output is closed, and the result would be lost"
NO_READER = "| { exec <&-; sleep 4; }"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("info > /dev/full", 1, FULL),
        ("--help > /dev/full", 1, FULL),
        ("info >&-", 1, LOST),
        ("info <&- >&- 2>&-", 1, ""),
        (f"info {NO_READER}", 0, ""),
        (f"--help {NO_READER}", 0, ""),
    ],
)
def test_standard_output_that_takes_nothing(command, code, message):
    # What is left in a buffer is written when Python ends.
    found, _, err = shell(f"biclique {command}", PYTHONUNBUFFERED="")
    assert (found, err.count("\n"), message in err) == (code, int(bool(message)), True)


def test_the_file_is_written_though_nothing_can_be_printed(cli, monkeypatch):
    """Closed in a process of its own: a file that is opened could become standard output."""
    assert shell(f"biclique {IRIS} -o l.csv >&-")[0] == 0
    whole = Path("l.csv").read_bytes()
    assert len(whole.splitlines()) == 151
    Path("l.csv").unlink()
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        code, _, err = cli(f"{IRIS} -o l.csv")
    assert (code, err.count("\n"), "l.csv was written and is complete" in err) == (1, 1, True)
    assert Path("l.csv").read_bytes() == whole


def test_labels_into_pipes_and_devices(cli):
    assert cli(f"{IRIS} -q -o l.csv")[0] == 0
    whole = Path("l.csv").read_text()
    assert shell(f"biclique {IRIS} -q -o /dev/stdout | cat") == (0, whole, "")
    assert cli(f"{IRIS} -q -o /dev/stdout") == (0, whole, "")
    os.mkfifo("pipe.csv")
    read = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe.csv").read_text()))
    reader.start()
    assert cli(f"{IRIS} -q -o pipe.csv")[0] == 0
    reader.join(timeout=60)
    assert read == [whole]
    assert stat.S_ISFIFO(os.stat("pipe.csv").st_mode)
    assert sorted(os.listdir()) == ["l.csv", "pipe.csv"]
    before = os.stat("/dev/null")
    assert cli(f"{IRIS} -q -o /dev/null")[0] == 0
    assert os.stat("/dev/null").st_rdev == before.st_rdev


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "4 not enough memory: take fewer rows or columns"),
        (MemoryError("Unable to allocate 9 TiB"), "4 (Unable to allocate 9 TiB)"),
        (RecursionError("maximum depth"), "3 nested too deeply"),
        (OverflowError("int too large"), "3 too large (int too large)"),
        (UnicodeEncodeError("utf-8", "a\ud800", 1, 2, "surrogates not allowed"), r"3 '\ud800' cannot be written"),
        (KeyError("x"), "1 KeyError: 'x'; this is a bug; run with BICLIQUE_TRACEBACK=1 to see where"),
        (ZeroDivisionError(), "1 ZeroDivisionError; this is a bug"),
        (OSError(28, "No space left on device"), "1 No space left on device"),
        (KeyboardInterrupt(), "130 interrupted; nothing was written"),
        (RuntimeError("a\x1b[2Jb\nc"), r"1 a\x1b[2Jb\nc"),
    ],
)
def test_any_exception_is_one_line(cli, refused, monkeypatch, error, message):
    def raises(self, X):
        raise error

    monkeypatch.setattr(table.BicliqueSpectralClustering, "fit", raises)
    found = refused(IRIS)
    code, words = message.split(" ", 1)
    assert (found.split()[0], words in found) == (code, True)
    if int(code) < 128:
        monkeypatch.setenv("BICLIQUE_TRACEBACK", "1")
        assert "Traceback" in cli(IRIS)[2]


class Ended(BaseException):
    """Instead of the end of the process."""


@pytest.fixture
def ended(cli, monkeypatch, capfd):
    """A command that a signal ends: the exit code, and what it says."""

    def end(code):
        raise Ended(code)

    def run(text):
        with pytest.raises(Ended) as caught:
            cli(text)
        return caught.value.args[0], capfd.readouterr().err

    before = {number: signal.signal(number, signal.SIG_DFL) for number in signals.WORDS}
    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(run_module, "_explain", lambda error: (_ for _ in ()).throw(error))
    signals.listen()
    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", signals.WORDS)
def test_signals_end_the_work_in_the_same_way(ended, monkeypatch, number):
    word = f"biclique: error: {signals.WORDS[number]}"
    with monkeypatch.context() as patch:
        patch.setattr(table.BicliqueSpectralClustering, "fit", lambda self, X: signal.raise_signal(number))
        assert ended(f"{IRIS} -o l.csv") == (128 + number, f"{word}; nothing was written\n")
    assert os.listdir() == []
    monkeypatch.setattr(table, "facts_of", lambda *_: signal.raise_signal(number))
    assert ended(f"{IRIS} -o l.csv") == (128 + number, f"{word}; l.csv was written and is complete\n")
    assert os.listdir() == ["l.csv"]


@pytest.mark.parametrize(
    ("step", "outcome", "left"),
    [("touch", "nothing was written", []), ("replace", "l.csv was written and is complete", ["l.csv"])],
)
def test_a_signal_while_a_temporary_file_is_made_or_put_in_place(ended, monkeypatch, step, outcome, left):
    take = getattr(atomic_files.Path, step)

    def signalled(*arguments, **options):
        take(*arguments, **options)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(writing, "check_target", lambda path: None)
    monkeypatch.setattr(atomic_files.Path, step, signalled)
    assert ended(f"{IRIS} -o l.csv") == (130, f"biclique: error: interrupted; {outcome}\n")
    assert os.listdir() == left
    assert [len(Path(name).read_text().splitlines()) for name in left] == [151] * len(left)


def test_an_ignored_signal_stays_ignored(ended):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signals.listen()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is signals.end


FINALISED = """
import signal, sys, threading
from biclique.cli import cluster_command, command

class Finalised:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

def fit(self, X):
    Finalised()
    threading.Event().wait(20)

cluster_command.BicliqueSpectralClustering.fit = fit
sys.exit(command())
"""


def test_a_signal_that_falls_into_a_finaliser_is_not_lost():
    done = subprocess.run([sys.executable, "-c", FINALISED, *IRIS.split()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "biclique: error: terminated; nothing was written\n")


def test_the_main_thread_is_not_needed(capsys):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main([*IRIS.split(), "-q"])))
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


# What comes from outside


def test_names_do_not_reach_the_terminal_as_commands(cli, capfd):
    evil = "\x1b[2Jx"
    rows = "".join(f"{i % 2 * 9 + i / 50},1,{evil}{i % 2}\n" for i in range(40))
    Path(f"{evil}.csv").write_text(f"a,{evil}c,kind\n{rows}")
    roles = f"cluster '{evil}.csv' -k 2 --label-column kind --id '{evil}c' -o '{evil}l.csv'"
    code, *shown = cli(roles)
    assert (code, "mostly" in shown[0]) == (0, True)
    assert Path(f"{evil}l.csv").read_text().startswith(f"{evil}c,label\n")
    code, *error = cli(f"cluster '{evil}.csv' -k 2 --drop '{evil}'")
    assert (code, error[1].count("\n")) == (3, 1)
    _, facts, _ = cli(f"{roles} --json")
    assert {c["mostly"][:-1] for c in json.loads(facts)["clusters"]} == {evil}
    _, *constant = cli(f"cluster '{evil}.csv' -k 2 --drop kind")
    assert "constant columns" in constant[1]
    with pytest.raises(SystemExit):
        cli(f"cluster iris -k 3 '{evil}'")
    every = "".join([*shown, *error, facts, *constant, *capfd.readouterr()])
    assert all(c.isprintable() or c == "\n" for c in every)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (f"{IRIS} -o", "l.csv"),
        (f"{IRIS} -o", "l.npy"),
        (f"{IRIS} -o", "l.parquet"),
        ("hypergraph convert h.hgr", "h.json"),
    ],
)
def test_a_full_disk_leaves_the_old_file_and_no_other(refused, command, name):
    edges = np.random.RandomState(0).randint(0, 500, (2000, 2))
    Path("h.hgr").write_text(f"{len(edges)} 500\n" + "".join(f"{a + 1} {b + 1}\n" for a, b in edges))
    Path(name).write_text("old")
    with full_disk():
        error = refused(f"{command} {name}")
    assert (error[0], "File too large" in error) == ("1", True)
    assert Path(name).read_text() == "old"
    assert sorted(os.listdir()) == sorted(["h.hgr", name])
