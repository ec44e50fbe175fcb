"""How much memory is free, and one refusal before what does not fit is allocated."""

import ctypes
import mmap
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from biclique.exceptions import MemoryLimitError

FREE_BY_GUESS = 4 * 2**30
"""If the system does not say how much is free."""
CONTAINERS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
"""Files with the limit of a container and what it uses, of both kinds of control groups."""


def format_bytes(size: float) -> str:
    """``298 GiB``: three digits and a unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"


def free_memory() -> int:
    """Bytes this process could still take: what is free, or what its container leaves it."""
    candidates = [_free_on_machine()]
    for limit, used in CONTAINERS:
        try:
            candidates.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):  # no such container, or no limit ("max")
            continue
    return max(min(candidates), 0)


def total_memory() -> int | None:
    """Bytes of memory that the machine has; None if the system does not say."""
    if sys.platform == "win32":
        return _windows_memory()[0]
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _windows_memory() -> tuple[int, int] | tuple[None, None]:
    """Bytes that the machine has, and those that are free; None if Windows does not say."""
    status = (ctypes.c_uint64 * 8)(64)  # MEMORYSTATUSEX begins with its size; then come all memory and what is free
    windows = getattr(ctypes, "windll", None)
    if windows is None or not windows.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None, None
    return status[1], status[2]


def _free_on_machine() -> int:
    if sys.platform == "win32":
        free = _windows_memory()[1]
        return FREE_BY_GUESS if free is None else free
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    total = total_memory()  # no count of free pages on this system: take a half of all there is
    return FREE_BY_GUESS if total is None else total // 2


def require_memory(needed: float, what: str, way_out: str) -> None:
    """Refuse, before allocating, what needs more bytes than are free now."""
    free = free_memory()
    if needed > free:
        raise MemoryLimitError(f"{what} needs {format_bytes(needed)}, and {format_bytes(free)} are free: {way_out}")


def release_pages(rows: Any) -> None:
    """Let go of the pages of consecutive rows of a memory map, if it cannot be written to.

    The system still has them, or reads them again. Until then they count as memory of this process.
    """
    whole = rows
    while isinstance(whole, np.ndarray):
        whole = whole.base
    if not isinstance(whole, mmap.mmap) or not hasattr(whole, "madvise") or not rows.flags.c_contiguous:
        return
    with memoryview(whole) as view:
        if not view.readonly:  # a copy on write would be lost
            return
        first = np.frombuffer(view, dtype=np.uint8).ctypes.data
    top = rows.ctypes.data - first
    start = top // mmap.PAGESIZE * mmap.PAGESIZE  # where a page begins
    whole.madvise(mmap.MADV_DONTNEED, start, top + rows.nbytes - start)


def data_bytes(data: Any) -> int:
    """Memory of an array or a CSR matrix."""
    if sparse.issparse(data):
        return int(data.data.nbytes + data.indices.nbytes + data.indptr.nbytes)
    return int(data.nbytes)
