"""How much memory there is, and what a request would need."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from numbers import Real
from pathlib import Path
from typing import Any

from scipy import sparse

from biclique.exceptions import MemoryLimitError, ParameterError
from biclique.runtime.arguments import is_finite

FREE_BY_GUESS = 4 * 2**30
"""If the system does not say how much is free."""
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_CGROUP = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


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
    for limit, used in _CGROUP:
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


class _MemoryStatus(ctypes.Structure):
    """Windows' MEMORYSTATUSEX."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("free", ctypes.c_uint64),
        *((name, ctypes.c_uint64) for name in ("total_page", "free_page", "total_virtual", "free_virtual", "extended")),
    )


def _windows_memory() -> tuple[int, int] | tuple[None, None]:
    """Bytes that the machine has, and those that are free; None if Windows does not say."""
    status = _MemoryStatus()
    status.length = ctypes.sizeof(status)
    kernel32: Any = getattr(getattr(ctypes, "windll", None), "kernel32", None)
    if kernel32 is None or not kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None, None
    return int(status.total), int(status.free)


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


def parse_memory_limit(limit: object) -> int:
    """Bytes from ``"auto"`` (half of what is free), a number of bytes, or text like ``"4GB"``."""
    if limit is None or limit == "auto":
        return free_memory() // 2
    if isinstance(limit, Real) and not isinstance(limit, bool) and is_finite(limit) and float(limit) > 0:
        return int(float(limit))
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", limit, flags=re.IGNORECASE)
        if match and 0 < float(match[1]) * _UNITS[match[2].upper()] < float("inf"):
            return int(float(match[1]) * _UNITS[match[2].upper()])
    raise ParameterError(f"memory_limit must be 'auto', a number of bytes or text like '4GB', got {limit!r}.")


def require(needed: float, limit: float, what: str, *way_out: str) -> None:
    """Refuse, before allocating, what does not fit."""
    if needed > limit:
        raise MemoryLimitError(f"{what} needs {format_bytes(needed)}, limit {format_bytes(limit)}: ", *way_out)


def require_memory(needed: float, what: str, way_out: str) -> None:
    """Refuse, before allocating, what needs more bytes than are free now."""
    free = free_memory()
    if needed > free:
        raise MemoryLimitError(f"{what} needs {format_bytes(needed)}, and {format_bytes(free)} are free: {way_out}")


def data_bytes(data: Any) -> int:
    """Memory of an array or a CSR matrix."""
    if sparse.issparse(data):
        return int(data.data.nbytes + data.indices.nbytes + data.indptr.nbytes)
    return int(data.nbytes)
