"""Passes over the rows of a feature map: sums and products, nothing of size n × p kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from biclique._typing import FloatArray, Rows
from biclique.features.maps import FeatureMap
from biclique.runtime.namespace import as_dtype, float64, full, full_float32, moved, namespace, on_host, to_host
from biclique.runtime.threads import Pulse, Result, Tick, run_groups

BLOCK_ENTRIES = 2**19
"""Entries of c(X) that are computed at once: a float32 block of 2 MiB, which stays in a core's cache."""

DEVICE_ENTRIES = 2**23
"""The same on a device: enough to fill it, few enough rows for their sums in float32."""

GROUPS = 8
"""Partial sums of a pass: fixed, so that sums never depend on the number of threads."""


def factored_bytes(size: int, chunk_rows: int, n_columns: int) -> int:
    """Memory of a pass: partial sums of p × p, a chunk of rows, and a few blocks of columns."""
    return 8 * size * size * (GROUPS + 6) + 16 * chunk_rows * n_columns + 64 * BLOCK_ENTRIES


def device_factored_bytes(size: int, itemsize: int) -> int:
    """Memory of a pass on a device besides the rows: partial sums of p × p, and a few blocks of columns."""
    return 8 * size * size * (GROUPS + 2) + 4 * itemsize * max(DEVICE_ENTRIES, 64 * size)


def block_starts(feature_map: FeatureMap, X: Rows) -> range:
    """Where blocks of rows begin: by the sizes alone, never by the number of threads."""
    entries = BLOCK_ENTRIES if on_host(X) else DEVICE_ENTRIES
    return range(0, X.shape[0], max(entries // feature_map.size, 64))


def _placed(values: FloatArray, feature_map: FeatureMap, X: Rows) -> FloatArray:
    """Values in the map's precision, where the rows lie."""
    if on_host(X):
        return np.ascontiguousarray(values, dtype=feature_map.dtype)
    return as_dtype(moved(values, X), feature_map.dtype)


def _jobs(X: Rows, n_jobs: int | None) -> int | None:
    """Threads of a pass: one where a device does the work."""
    return n_jobs if on_host(X) else 1


def _digits(X: Rows) -> AbstractContextManager[None]:
    """Products in the precision of their factors: on a device a program may have allowed fewer digits."""
    return nullcontext() if on_host(X) else full_float32(namespace(X))


def column_sums(
    feature_map: FeatureMap, X: Rows, V: FloatArray, *, n_jobs: int | None = None, tick: Tick | None = None
) -> FloatArray:
    """c(X)ᵀ V, shape (p, b), in float64: products of a block in the map's precision, summed in a fixed order.

    The sums are on the host, wherever the rows lie.
    """
    V = _placed(V, feature_map, X)
    starts = block_starts(feature_map, X)

    def add(group: int, pulse: Pulse) -> FloatArray:
        total: FloatArray = full((feature_map.size, V.shape[1]), 0.0, V)
        for top in starts[group::GROUPS]:
            total += feature_map.columns(X[top : top + starts.step]).T @ V[top : top + starts.step]
            pulse()
        return total

    with _digits(X):
        return _added(run_groups(add, _groups(starts), n_jobs=_jobs(X, n_jobs), total=len(starts), tick=tick))


def weighted_gram(
    feature_map: FeatureMap,
    X: Rows,
    weigh: Callable[[FloatArray, slice], FloatArray],
    *,
    centre: FloatArray | None = None,
    n_jobs: int | None = None,
) -> FloatArray:
    """Σ_x ω(x) (c(x) − a)(c(x) − a)ᵀ, shape (p, p), in float64; a is the ``centre``, zero if None.

    ``weigh`` gives √ω of a block from its columns and place. The products of a block are in the map's precision: their
    rounding is a share of |c − a|², so a centre near all columns saves the digits that the columns have in common.
    The sums are on the host, wherever the rows lie.
    """
    starts = block_starts(feature_map, X)
    middle = None if centre is None else _placed(centre, feature_map, X)

    def add(group: int, pulse: Pulse) -> FloatArray:
        total: FloatArray = full((feature_map.size, feature_map.size), 0.0, X)
        for top in starts[group::GROUPS]:
            place = slice(top, top + starts.step)
            columns = feature_map.columns(X[place])
            roots = as_dtype(weigh(columns, place)[:, None], feature_map.dtype)
            if middle is not None:
                columns -= middle
            columns *= roots
            total += columns.T @ columns  # one array with itself: half the work, by NumPy's own choice
            pulse()
        return total

    with _digits(X):
        return _added(run_groups(add, _groups(starts), n_jobs=_jobs(X, n_jobs)))


def map_rows(
    feature_map: FeatureMap,
    X: Rows,
    Q: FloatArray,
    finish: Callable[..., Result],
    *,
    n_jobs: int | None = None,
    sizes: FloatArray | None = None,
) -> list[Result]:
    """``finish(c(X) Q)`` of every block of rows, in order and where they lie; products in float64.

    With ``sizes`` (p,) it is ``finish(c(X) Q, |c(X)| sizes)``: what the terms of a sum add up to if none cancels.
    """
    Q = _placed(Q, feature_map, X)
    sizes = None if sizes is None else _placed(sizes, feature_map, X)
    starts = block_starts(feature_map, X)

    def work(number: int, pulse: Pulse) -> Result:
        top = starts[number]
        pulse()
        columns = feature_map.columns(X[top : top + starts.step])
        if sizes is None:
            return finish(float64(columns @ Q))
        return finish(float64(columns @ Q), float64(abs(columns) @ sizes))

    with _digits(X):
        return run_groups(work, len(starts), n_jobs=_jobs(X, n_jobs))


def map_product(feature_map: FeatureMap, X: Rows, Q: FloatArray, *, n_jobs: int | None = None) -> FloatArray:
    """c(X) Q, shape (n, b), in float64."""
    blocks = map_rows(feature_map, X, Q, lambda product: product, n_jobs=n_jobs)
    return namespace(X).concatenate(blocks) if blocks else full((0, Q.shape[1]), 0.0, X)


def squared_lengths(feature_map: FeatureMap, X: Rows, *, n_jobs: int | None = None) -> FloatArray:
    """|φ(x)|² of every row, shape (n,)."""
    root = feature_map.lift(np.eye(feature_map.rank))
    xp = namespace(X)
    blocks = map_rows(feature_map, X, root, lambda features: xp.einsum("ij,ij->i", features, features), n_jobs=n_jobs)
    return xp.concatenate(blocks) if blocks else full((0,), 0.0, X)


def _groups(starts: range) -> int:
    return min(GROUPS, max(len(starts), 1))


def _added(parts: list[FloatArray]) -> FloatArray:
    return to_host(sum(parts[1:], start=parts[0]))
