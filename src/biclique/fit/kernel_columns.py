"""What a fit knows of the columns of X before it computes: categories, ranges, gaps. For kernels that need it."""

from __future__ import annotations

from functools import reduce

import numpy as np
from scipy import sparse

from biclique._typing import IntArray
from biclique.exceptions import GapsWarning, ParameterError, warn_user
from biclique.fit.settings import Settings
from biclique.kernels.gower import Columns
from biclique.progress import Progress
from biclique.rows.array import Block, RowSource

MOST_PATTERNS = 4096
"""Sets of columns without gaps that are compared with each other."""

MOST_NAMED = 10


def find_columns(settings: Settings, source: RowSource, by_dtype: np.ndarray | None, progress: Progress) -> Columns:
    """The columns of the rows, for a kernel that takes categories and gaps: one pass for the ranges.

    ``by_dtype`` is a mask of the columns whose type is that of categories, None if X has no types of columns.
    """
    gower = settings.kernel.gower()
    own, d = gower.columns, source.n_columns
    if own is not None and len(own.categorical) != d:
        raise ParameterError(
            f"affinity is a kernel that was made for {len(own.categorical)} columns with categories of its own: "
            f"pass X with as many ({d} came)."
        )
    mask = gower.categorical_mask(d, source.names, by_dtype)
    everywhere = Columns(mask, np.zeros(d), np.zeros(d))  # until it is known which have no value

    def of_block(block: Block) -> Columns:
        rows = block.rows.toarray() if sparse.issparse(block.rows) else block.rows
        numbers = range(block.start, block.start + len(rows))
        (everywhere if own is None else own).check_rows(rows, numbers, source.names)
        return Columns.of(rows[block.weights > 0], mask)

    found = source.map(of_block, "ranges of the columns", progress)
    columns = own or reduce(Columns.joined, found)
    _warn_about_gaps(columns, source)
    return columns


def _warn_about_gaps(columns: Columns, source: RowSource) -> None:
    """Columns without a value, and rows without a column in common."""
    if columns.empty.any():
        empty = np.flatnonzero(columns.empty)
        named = [str(j) if source.names is None else repr(source.names[j]) for j in empty[:MOST_NAMED]]
        more = " …" if len(empty) > MOST_NAMED else ""
        warn_user(
            f"{len(empty)} of {len(columns.empty)} columns have no value at all ({', '.join(named)}{more}), and count "
            "for nothing: leave them out.",
            GapsWarning,
        )
    if not source.in_memory:  # Dask's rows have no gaps: reading them refuses them
        return
    there = ~np.isnan(source.held)
    if there.all():
        return
    strangers, pair, all_compared = rows_apart(there)
    if strangers:
        warn_user(
            f"{'' if all_compared else 'at least '}{strangers} "
            f"{'pair of rows has' if strangers == 1 else 'pairs of rows have'} no column in common (such as rows "
            f"{pair[0]} and {pair[1]}), so nothing tells how far apart they are: their distance is taken to be 1. "
            "Leave out rows or columns with many gaps, or fill gaps first (sklearn.impute.SimpleImputer).",
            GapsWarning,
        )


def rows_apart(there: np.ndarray) -> tuple[int, tuple[int, int], bool]:
    """How many pairs of rows have no column in common, two such rows, and whether all pairs were compared.

    ``there`` is True for every value that is not missing, (n, d). Rows with gaps in the same columns are compared once.
    """
    _, first, counts = np.unique(np.packbits(there, axis=1), axis=0, return_index=True, return_counts=True)
    sets: np.ndarray = there[first]
    sizes = sets.sum(axis=1)
    few: IntArray = np.flatnonzero((sizes > 0) & (sizes <= there.shape[1] - sizes[sizes > 0].min(initial=1)))
    few = few[np.argsort(sizes[few], kind="stable")]
    compared = few[:MOST_PATTERNS]
    sets, counts, first = sets[compared].astype(np.float32), counts[compared], first[compared]
    apart = np.triu(sets @ sets.T == 0, 1)
    if not apart.any():
        return 0, (0, 0), len(compared) == len(few)
    total = int(counts.astype(np.int64) @ (apart @ counts.astype(np.int64)))
    a, b = np.argwhere(apart)[0]
    pair = sorted((int(first[a]), int(first[b])))
    return total, (pair[0], pair[1]), len(compared) == len(few)
