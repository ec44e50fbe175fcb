"""Outputs are whole or absent: temporary files, links, pipes and signals."""

import errno
import os
import stat

import pytest

from biclique.exceptions import DataError
from biclique.tables import atomic_files
from biclique.tables.atomic_files import atomic_path, check_target, write_text
from tests.calls import refuses


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("before", [["a.csv"], []])
def test_a_failure_leaves_the_old_file_and_nothing_else(error, before, tmp_path):
    path = tmp_path / "a.csv"
    for name in before:
        (tmp_path / name).write_text("old")

    def fails():
        with atomic_path(path) as temporary:
            temporary.write_text("half of the")
            raise error

    with pytest.raises(error):
        fails()
    assert os.listdir(tmp_path) == before
    assert not before or path.read_text() == "old"


def test_a_disk_that_is_full_at_the_end_leaves_nothing(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic_files.os, "fsync", full)
    refuses(OSError, r"No space left.*nothing was written", write_text, tmp_path / "a.txt", "text")
    assert os.listdir(tmp_path) == []


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    write_text(tmp_path / "a.csv", "x")
    (tmp_path / "b.csv").touch()
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "b.csv").stat().st_mode
    (tmp_path / "b.csv").chmod(0o6600)  # setuid and setgid do not stay
    write_text(tmp_path / "b.csv", "x")
    assert stat.S_IMODE((tmp_path / "b.csv").stat().st_mode) == 0o600


def test_names_of_temporary_files_stay_short(tmp_path):
    name = "a" * 251 + ".csv"
    write_text(tmp_path / name, "x")
    assert os.listdir(tmp_path) == [name]
    refuses(DataError, "File name too long", check_target, tmp_path / ("a" * 252 + ".csv"))


def test_links_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "real" / "a.csv")
    for text in ("first", "second"):  # first to a file that does not exist
        check_target(link)
        write_text(link, text)
        assert link.is_symlink()
        assert (tmp_path / "real" / "a.csv").read_text() == text
    assert sorted(os.listdir(tmp_path)) == ["link.csv", "real"]
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    refuses(DataError, "cannot write", check_target, loop)
    broken = tmp_path / "broken.csv"
    broken.symlink_to(tmp_path / "nowhere" / "a.csv")
    refuses(DataError, "there is no folder", check_target, broken)


def test_targets_that_cannot_be_written(tmp_path, monkeypatch):
    refuses(DataError, "it is a folder", check_target, tmp_path)

    def read_only(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(atomic_files.Path, "touch", read_only)
    refuses(DataError, r"no file can be made there \(Read-only", check_target, tmp_path / "a.csv")
