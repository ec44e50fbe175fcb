"""A TablePreparer for tables that are read in chunks: fitted in one pass, to what the whole table would give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray
from biclique.exceptions import Argument, ParameterError, TableError
from biclique.io.chunks import TEXT_BYTES, ChunkSource, Raw
from biclique.io.columns import texts_of
from biclique.io.fields import text_array
from biclique.io.prepare import TablePreparer, sorted_levels
from biclique.io.prepare_columns import DROP, MISSING_DROP, first_gap, sorted_columns, too_large, weights_of
from biclique.io.prepare_state import CLASS, PARAMETERS, restored
from biclique.io.sources import Moments, varies
from biclique.io.typed_columns import Column, ColumnSource, TypedTable
from biclique.runtime import parse_memory_limit, require

ROWS = 65_536
MEDIAN, MEAN = Argument("missing='median'"), Argument("missing='mean'")
ROBUST, STANDARD = Argument("scale='robust'"), Argument("scale='standard'")
AUTO = Argument("categorical='auto'")
VALUES = " needs every value of a column at once, and chunks do not have them: use "
WHOLE = {
    "missing": ("median", (MEDIAN, VALUES, MEAN, ", or read the table whole.")),
    "scale": ("robust", (ROBUST, VALUES, STANDARD, ", or read the table whole.")),
    "categorical": ("auto", (AUTO, " needs a look at the whole table, and chunks do not have it: name the columns.")),
}
"""What cannot be told from chunks alone, by parameter: its value, and why not with the way out."""

Fields: TypeAlias = Callable[[Sequence[str]], Iterator[list[list[str]]]]
"""One pass over columns of a text file as they stand there, by their names."""


def fit_chunks(preparer: TablePreparer, source: ColumnSource, tick: Callable[[float], None] | None = None) -> None:
    """``preparer.fit`` of a table in one pass. What needs the whole table at once is refused."""
    for name, (value, why) in WHOLE.items():
        asked = getattr(preparer, name)
        if isinstance(asked, str) and asked == value:
            raise ParameterError(f"{source.name}: ", *why)
    numbers, categories = _sorted(preparer, source)
    moments, gaps = Moments.none(len(numbers)), np.zeros(len(numbers), dtype=bool)
    levels: list[Counter[str | None]] = [Counter() for _ in categories]
    n_kept = done = 0
    for table in source.column_chunks(ROWS):
        known = {column.name: column for column in table.columns}
        used = [known[c] for c in (*numbers, *categories)]
        gap = first_gap(used, table) if preparer.missing == "refuse" else ""
        if gap:
            raise TableError(f"{table.name}: {gap}; leave such rows out with ", MISSING_DROP, ", or fill them in.")
        kept = preparer._kept(used)
        X, L = preparer._parts(table, used[: len(numbers)], used[len(numbers) :], kept)
        n_kept += int(kept.sum())
        gaps |= np.isnan(X).any(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            moments += Moments.of_values(X)
        for counts, column in zip(levels, L.T, strict=True):
            counts.update(column.tolist())
        require(
            TEXT_BYTES * sum(map(len, levels)),
            parse_memory_limit("auto"),
            f"{source.name}: the levels of {', '.join(map(repr, categories))}",
            "leave out categories with many levels.",
        )
        done += table.n_rows
        if tick is not None and source.n_rows:
            tick(done / source.n_rows)
    if not n_kept:
        raise TableError(f"{source.name}: every row has a missing value; use another missing=, or drop columns.")
    empty = [name for name, n in zip(numbers, moments.n, strict=True) if not n]
    empty += [name for name, counts in zip(categories, levels, strict=True) if not {*counts} - {None}]
    if empty:
        raise TableError(
            f"{source.name}: columns {', '.join(map(repr, empty))} have no value: leave them out with ", DROP, "."
        )
    restored(preparer, _state(preparer, source, numbers, categories, moments, gaps, levels, n_kept))


def _sorted(preparer: TablePreparer, source: ColumnSource) -> tuple[list[str], list[str]]:
    """The names of numbers and categories, by the kinds of the whole table and a look at its first rows."""
    names = list(source.kinds)
    chosen, categorical = preparer._choose(source.name, names)
    first = next(iter(source.column_chunks(ROWS)))
    known = {column.name: column for column in first.columns}
    columns = [known[name] for name in chosen]
    whole = first.n_rows == source.n_rows
    numbers, categories = sorted_columns(first, columns, categorical, preparer._given(), with_names=True, whole=whole)
    preparer._use(names, numbers, categories)
    return preparer.number_columns_, preparer.category_columns_


def _state(
    preparer: TablePreparer,
    source: ColumnSource,
    numbers: list[str],
    categories: list[str],
    moments: Moments,
    gaps: NDArray[np.bool_],
    levels: Sequence[Counter[str | None]],
    n_kept: int,
) -> dict[str, Any]:
    kinds = [source.kinds[name] for name in (*numbers, *categories)]
    filling = preparer.missing in ("mean", "indicator")
    gap_is_level = preparer.missing == "indicator"
    scaled = [j for j, kind in enumerate(kinds[: len(numbers)]) if kind != "boolean"]
    variance, mean = moments.squares[scaled] / n_kept, moments.mean[scaled]  # filled values have deviation 0
    if preparer.scale == "standard" and not np.isfinite(variance).all():
        raise too_large(source.name)
    scaling = preparer.scale == "standard" and bool(scaled)
    return {
        "class": CLASS,
        **{name: getattr(preparer, name) for name in PARAMETERS},
        "names": list(source.kinds),
        "has_names": True,
        "number_columns": numbers,
        "category_columns": categories,
        "kinds": kinds,
        "levels": [sorted_levels(counts, gap_is_level) for counts in levels],
        "indicated": [
            c for c, some in zip(numbers, gaps.tolist(), strict=True) if some and preparer.missing == "indicator"
        ],
        "fill": moments.mean.copy() if filling and numbers else None,
        "offset": mean if scaling else None,
        "divisor": np.where(varies(mean, variance, n_kept), np.sqrt(variance), 1.0) if scaling else None,
        "most_frequent": [_common(c) for c in levels] if preparer.missing == "mean" and categories else None,
    }


def _common(counts: Counter[str | None]) -> str:
    """The most frequent level; of several the first."""
    return min((-count, level) for level, count in counts.items() if level is not None)[1]


class PreparedChunks(ChunkSource):
    """The rows of a table, prepared chunk by chunk."""

    dtype = np.dtype(np.float64)
    _error = TableError
    _first = 1

    def __init__(self, source: ColumnSource, preparer: TablePreparer, fields: Fields | None = None) -> None:
        self.table, self.preparer, self.name, self._fields = source, preparer, source.name, fields
        self.columns = [str(name) for name in preparer.get_feature_names_out()]
        self.n_columns = len(self.columns)
        self.kept: NDArray[np.bool_] | None = None
        if preparer.missing != "drop":
            self._n_rows = source.n_rows

    @property
    def n_used(self) -> int:
        return self.preparer.n_used

    @property
    def n_table_rows(self) -> int:
        return self.table.n_rows or 0

    def only(self, names: Sequence[str]) -> ColumnSource:
        """Some columns of the table as texts, in memory."""
        texts = [[text for some in self.texts(name) for text in some] for name in names]
        columns = tuple(Column(name, "text", text_array(some)) for name, some in zip(names, texts, strict=True))
        return TypedTable(self.name, columns, self.n_table_rows)

    def weights(self, name: str) -> FloatArray:
        """A column of weights, of the rows that are kept."""
        tables = self.table.column_chunks(ROWS)
        return np.concatenate([weights_of(table, table.column(name), self.preparer.kept(table)) for table in tables])

    def texts(self, name: str) -> Iterator[list[str]]:
        """One fresh pass over any column of the table, as texts: of all rows."""
        if self._fields is not None:
            for (texts,) in self._fields([name]):
                yield texts
            return
        for table in self.table.column_chunks(ROWS):
            yield texts_of(table.column(name))

    def _pieces(self, rows: int) -> Iterator[Raw]:
        masks = []
        for table in self.table.column_chunks(rows):
            X, kept = self.preparer.transform_rows(table)
            masks.append(kept)
            yield X
        self.kept = np.concatenate(masks)
