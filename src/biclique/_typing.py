"""Names for the array types that signatures use."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.intp]
Rows: TypeAlias = Any
"""Rows of points, (n, d): a float array or a CSR matrix (scipy has no types)."""
