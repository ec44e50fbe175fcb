"""Two records of one case: what differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.golden.record import Record

TOLERANCE = 1e-9
"""Of numbers, relative to the largest of their array. One environment gives the same bits for the same operations;
the rest allows sums in another order."""


def differences(old: Record, new: Record) -> Iterator[tuple[str, str]]:
    """The name of every value that differs, and how."""
    for name in sorted({*old, *new}):
        if name not in old:
            yield name, f"is new: {_short(new[name])}"
        elif name not in new:
            yield name, f"is gone, was {_short(old[name])}"
        else:
            found = difference(old[name], new[name])
            if found:
                yield name, found


def difference(old: Any, new: Any) -> str:
    """How two values differ; empty where they do not."""
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            return f"{old.dtype} of shape {old.shape} -> {new.dtype} of shape {new.shape}"
        if old.dtype.kind not in "fc":
            changed = np.count_nonzero(old != new)
            return f"{changed} of {old.size} entries differ" if changed else ""
        return _float_difference(old, new)
    if isinstance(old, float) and isinstance(new, float):
        found = _float_difference(np.array(old), np.array(new))
        return found and f"{old!r} -> {new!r}"
    same = type(old) is type(new) and not isinstance(old, np.ndarray) and old == new
    return "" if same else f"{_short(old)} -> {_short(new)}"


def _float_difference(old: np.ndarray, new: np.ndarray) -> str:
    if not (np.isfinite(old) == np.isfinite(new)).all():
        return f"{np.count_nonzero(np.isfinite(old) != np.isfinite(new))} of {old.size} are finite in one alone"
    finite = np.isfinite(old)
    if str(old[~finite]) != str(new[~finite]):
        return "other infinite values"
    if not finite.any():
        return ""
    largest = float(np.abs(old[finite]).max())
    error = float(np.abs(old[finite] - new[finite]).max())
    return "" if error <= TOLERANCE * largest else f"differs by {error:.2g}, the largest is {largest:.2g}"


def _short(value: Any) -> str:
    text = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) <= 160 else f"{text[:80]} … {text[-70:]}"
