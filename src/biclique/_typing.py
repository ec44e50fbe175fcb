"""Names for the array types that signatures use."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.intp]
Rows: TypeAlias = Any
"""Rows of points, (n, d): a float array or a CSR matrix (scipy has no types)."""


class TorchDevice(Protocol):
    """A ``torch.device``."""

    type: str


Device: TypeAlias = str | TorchDevice
"""Where PyTorch computes: a name such as "cuda:1", or a ``torch.device``."""
RandomState: TypeAlias = int | np.random.RandomState | None
"""What ``random_state`` takes."""
