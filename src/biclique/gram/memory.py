"""The memory of rows and of Gram matrices; limits are in ``biclique/memory.py``, which files use too."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from biclique.memory import format_bytes, free_memory, parse_memory_limit, require

__all__ = ["data_bytes", "format_bytes", "free_memory", "parse_memory_limit", "require"]


def data_bytes(data: Any) -> int:
    """Memory of an array or a CSR matrix."""
    if sparse.issparse(data):
        return int(data.data.nbytes + data.indices.nbytes + data.indptr.nbytes)
    return int(data.nbytes)
