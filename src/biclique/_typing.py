"""Names for the array types that signatures use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.intp]
Array: TypeAlias = NDArray[Any]
"""A NumPy array, or a tensor: only what both have may be asked of it (``runtime.namespace`` has the rest)."""
Rows: TypeAlias = "Array | csr_matrix"
"""Rows of points, (n, d): a float array, a tensor or a CSR matrix. ``sparse.issparse`` tells mypy which."""


class TorchDevice(Protocol):
    """A ``torch.device``."""

    type: str


Device: TypeAlias = str | TorchDevice
"""Where PyTorch computes: a name such as "cuda:1", or a ``torch.device``."""
RandomState: TypeAlias = int | np.random.RandomState | None
"""What ``random_state`` takes."""
