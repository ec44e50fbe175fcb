"""The same case in two trees: what the base commit calls otherwise, and what is compared no more."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

try:
    from biclique.io import open_chunks
except ImportError:  # rows in chunks are Dask's now
    open_chunks = None

DROPPED = {
    "fit(path)": "rows come as an array, a memory map or a Dask collection",
    "open_chunks of a function or an iterator": "Dask has delayed and from_map for these",
    "categorical_features": "Gower(categorical=...) says which columns are categories",
}
"""What the base can do that has no case any more, and why."""


def in_chunks(rows: Path | list[Any]) -> Any:
    """A file, or a list of arrays or frames, in chunks."""
    if open_chunks is not None:
        return open_chunks(rows)
    import dask.array as da
    import dask.dataframe as dd
    import numpy as np

    if isinstance(rows, list):
        if isinstance(rows[0], np.ndarray):
            return da.concatenate([da.from_array(part, chunks=part.shape) for part in rows])
        return dd.concat([dd.from_pandas(part, npartitions=1) for part in rows])
    if rows.suffix == ".npy":
        return da.from_array(np.load(rows, mmap_mode="r"), chunks=-1)
    if rows.suffix == ".zarr":
        return da.from_zarr(str(rows))
    return dd.read_csv(rows) if rows.suffix == ".csv" else dd.read_parquet(rows)


def own_names(estimator: Any, asked: dict[str, Any]) -> Any:
    """The estimator with these parameters, ``categorical_features`` as this tree takes it."""
    columns = asked.get("categorical_features")
    if columns is None or "categorical_features" in signature(estimator).parameters:
        return estimator(**asked)
    from biclique.kernels import Gower

    rest = {name: value for name, value in asked.items() if name != "categorical_features"}
    return estimator(**{**rest, "affinity": Gower(categorical=columns)})
