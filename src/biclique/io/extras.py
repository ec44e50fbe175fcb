"""Optional packages, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from biclique.exceptions import MissingExtraError


def import_pyarrow() -> Any:
    """pyarrow with its Parquet reader, or the line that installs it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Parquet files need pyarrow: pip install 'biclique[io]'") from error
    return pyarrow


def import_zarr() -> Any:
    """zarr, or the line that installs it."""
    try:
        return import_module("zarr")
    except ImportError as error:
        raise MissingExtraError("Zarr arrays need zarr: pip install 'zarr>=3'") from error
