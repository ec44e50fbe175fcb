"""Temporary files, links, pipes and signals."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from biclique.exceptions import DataError
from biclique.io import LabelWriter, check_output
from biclique.tables import atomic_files
from biclique.tables.atomic_files import atomic_path

LABELS = np.array([2, 0, 1])


def left_behind(target):
    """A temporary file for this target by a process that was killed."""
    code = (
        "import os, sys; from biclique.tables.atomic_files import atomic_path\n"
        "with atomic_path(sys.argv[1]) as path: path.write_text('half'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, target], check=False).returncode == -signal.SIGKILL
    return next(p for p in target.parent.iterdir() if p.suffix == ".part")


def test_what_a_killed_process_left_is_removed_when_it_is_old(tmp_path):
    rubbish = left_behind(tmp_path / "a.csv")
    others = [tmp_path / re.sub(r"-\d+-(\w+)\.part", rf"-{pid}-\1.part", rubbish.name) for pid in (os.getpid(), 1)]
    others += [tmp_path / ".a.csv.part", tmp_path / ".biclique-00000000-host-999999999-x.part"]
    old = time.time() - 2 * atomic_files.STALE_SECONDS
    for path in others:
        path.write_text("of another process, host or target")
        os.utime(path, (old, old))

    def write(name):
        with atomic_path(tmp_path / name) as temporary:
            temporary.write_text("whole")

    write("a.csv")
    assert rubbish.exists()  # young
    os.utime(rubbish, (old, old))
    write("b.csv")
    assert rubbish.exists()  # of another target
    write("a.csv")
    assert not rubbish.exists()
    assert all(path.exists() for path in others)


def test_names_of_temporary_files_stay_short(tmp_path):
    name = "a" * 251 + ".csv"
    with LabelWriter(tmp_path / name) as writer:
        writer.write(LABELS)
        (temporary,) = os.listdir(tmp_path)
        assert len(temporary) < 100
        assert f"-{os.getpid()}-" in temporary
    assert os.listdir(tmp_path) == [name]
    with pytest.raises(DataError, match="File name too long"):
        check_output(str(tmp_path / ("a" * 252 + ".csv")))


def test_an_output_where_no_file_can_be_made_is_refused_before_the_work(tmp_path, monkeypatch):
    def refuses(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(atomic_files.tempfile, "mkstemp", refuses)
    with pytest.raises(DataError, match=r"no file can be made in .*Read-only"):
        check_output(str(tmp_path / "a.csv"))


def test_links_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "real" / "a.csv")
    for _ in range(2):  # first to a file that is not there yet
        check_output(str(link))
        with LabelWriter(link) as writer:
            writer.write(LABELS)
        assert link.is_symlink()
        assert (tmp_path / "real" / "a.csv").read_text() == "row,label\n0,2\n1,0\n2,1\n"
    assert sorted(os.listdir(tmp_path)) == ["link.csv", "real"]
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    with pytest.raises(DataError, match="cannot write"):
        check_output(str(loop))
    broken = tmp_path / "broken.csv"
    broken.symlink_to(tmp_path / "nowhere" / "a.csv")
    with pytest.raises(DataError, match="there is no folder"):
        check_output(str(broken))


def test_signals_wait_until_a_block_ends():
    lines = []

    def block():
        with atomic_files.uninterrupted():
            signal.raise_signal(signal.SIGINT)
            lines.append("whole")
        lines.append("never")

    before = [signal.getsignal(number) for number in atomic_files.SIGNALS]
    with pytest.raises(KeyboardInterrupt):
        block()
    assert lines == ["whole"]
    assert [signal.getsignal(number) for number in atomic_files.SIGNALS] == before
