"""What is free, what is refused, and bytes as they read well."""

import ctypes

import pytest

from biclique.exceptions import MemoryLimitError
from biclique.runtime import memory
from biclique.runtime.memory import format_bytes, free_memory

GIB = 2**30


def test_some_memory_is_free():
    assert free_memory() > 0


def test_what_needs_more_than_is_free_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 3 * GIB)
    memory.require_memory(3 * GIB, "the matrix", "take fewer rows.")
    with pytest.raises(MemoryLimitError, match=r"the matrix needs 4 GiB, and 3 GiB are free: take fewer rows\."):
        memory.require_memory(4 * GIB, "the matrix", "take fewer rows.")


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
