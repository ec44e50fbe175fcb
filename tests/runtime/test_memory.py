"""What is free, what is refused, and bytes as they read well."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

from biclique.exceptions import MemoryLimitError
from biclique.runtime import memory
from biclique.runtime.memory import format_bytes, free_memory, release_pages

GIB = 2**30


def test_some_memory_is_free():
    assert free_memory() > 0


def test_what_needs_more_than_is_free_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 3 * GIB)
    memory.require_memory(3 * GIB, "the matrix", "take fewer rows.")
    with pytest.raises(MemoryLimitError, match=r"the matrix needs 4 GiB, and 3 GiB are free: take fewer rows\."):
        memory.require_memory(4 * GIB, "the matrix", "take fewer rows.")


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_pages_of_a_memory_map_are_released_and_nothing_is_lost(tmp_path, mode):
    path = tmp_path / "rows.npy"
    rows = np.arange(400_000, dtype=np.float32).reshape(-1, 4)
    np.save(path, rows)
    X = np.load(path, mmap_mode=mode)
    if mode != "r":
        rows[:7] = X[:7] = -1
    for some in (X[:1], np.asarray(X)[1000:90_000], X[::-1], X[:, 1:], rows, X):
        release_pages(some)
    assert np.array_equal(X, rows)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="pages are counted as on Linux")
def test_released_pages_are_no_memory_of_this_process(tmp_path):
    def resident():
        lines = Path("/proc/self/smaps").read_text().splitlines()
        place = next(number for number, line in enumerate(lines) if line.endswith(str(path)))
        return next(int(line.split()[1]) for line in lines[place:] if line.startswith("Rss"))

    path = tmp_path / "rows.npy"
    np.save(path, np.ones((2**18, 4)))
    X = np.load(path, mmap_mode="r")
    X.sum()
    before = resident()
    release_pages(X[: 2**17])
    assert before >= 2**13
    assert resident() <= 2**12 + 100


def test_bytes_read_well():
    assert [format_bytes(b) for b in (12, 8 * 200_000**2, 3 * 2**40)] == ["12 B", "298 GiB", "3 TiB"]


def test_windows_is_asked_for_its_free_memory(monkeypatch):
    class Kernel32:
        def __init__(self, answers):
            self.answers = answers

        def GlobalMemoryStatusEx(self, pointer):
            status = pointer._obj
            assert status[0] == ctypes.sizeof(status) == 64  # of MEMORYSTATUSEX; no memory is in use
            status[1:3] = 16 * 2**30, 5 * 2**30
            return self.answers

    monkeypatch.setattr(memory.sys, "platform", "win32")
    for answers, free, total in ((1, 5 * 2**30, 16 * 2**30), (0, memory.FREE_BY_GUESS, None)):
        windows = type("windll", (), {"kernel32": Kernel32(answers)})
        monkeypatch.setattr(memory.ctypes, "windll", windows, raising=False)
        assert memory._free_on_machine() == free
        assert memory.total_memory() == total
    monkeypatch.delattr(memory.ctypes, "windll")
    assert memory._free_on_machine() == memory.FREE_BY_GUESS
