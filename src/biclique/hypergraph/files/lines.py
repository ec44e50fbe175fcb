"""Names and numbers in text files."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable
from itertools import count
from typing import Any

import numpy as np

from biclique._typing import IntArray

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,999}")


def numbered(names: Iterable[Hashable]) -> tuple[IntArray, list[Any]]:
    """The number of every name, and the distinct names in the order in which they are first seen."""
    index: dict[Hashable, int] = defaultdict(count().__next__)
    return np.fromiter(map(index.__getitem__, names), dtype=np.int64), list(index)


def decimal(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def parse_number(text: str) -> float | None:
    """A finite number, or None."""
    value = float(text) if NUMBER.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None
