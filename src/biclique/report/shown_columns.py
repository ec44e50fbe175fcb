"""What columns say about clusters: sums by cluster, which columns separate most, and values in one byte."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats.contingency import association as cramers_v

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ParameterError
from biclique.neighbors.index import members_of
from biclique.tables.frames import as_frame, kind_of, levels_of, numbers_of

MISSING = 255
"""The code of a missing value; the other 255 codes are values."""

LARGEST = 1e150
"""Infinite values, and those whose squares overflow, count as missing."""

PIECE = 65_536
"""Rows that are looked at together."""

YEAR = " (year)"
"""What is added to the name of a column of dates, whose values are shown as years."""


@dataclass(frozen=True)
class Coded:
    """A column in one byte a row: code → value."""

    name: str
    codes: NDArray[np.uint8]  # (n,)
    values: list[float] | list[str]  # ascending, or the levels of a category
    exact: bool  # whether every value is exact, and not the median of its group

    @classmethod
    def of_numbers(cls, name: str, column: FloatArray) -> Self:
        """The values themselves if they are 255 at most; else 255 groups of equal size, each by its median."""
        there = np.isfinite(column)
        known = column[there]
        values, group = np.unique(known, return_inverse=True)
        exact = len(values) <= MISSING
        if not exact:
            edges = np.unique(np.quantile(known, np.linspace(0, 1, MISSING + 1)[1:-1]))
            group = np.unique(np.searchsorted(edges, known, side="right"), return_inverse=True)[1]
            values = np.array([np.median(known[rows]) for rows in members_of(group)])
        return cls(name, _in_one_byte(there, group), [float(f"{value:.5g}") for value in values], exact)

    @classmethod
    def of_texts(cls, name: str, texts: NDArray[Any]) -> Self:
        """Of texts, None for gaps. At most 255 levels, the most frequent ones; the others are one."""
        there = np.array([text is not None for text in texts], dtype=bool)
        levels, place, sizes = np.unique(texts[there], return_inverse=True, return_counts=True)
        most = MISSING if len(levels) <= MISSING else MISSING - 1
        kept = np.sort(np.argsort(-sizes, kind="stable")[:most])
        new = np.full(len(levels), most)
        new[kept] = np.arange(len(kept))
        others = [f"one of {len(levels) - most} others"] if len(levels) > most else []
        return cls(name, _in_one_byte(there, new[place]), levels[kept].tolist() + others, True)


def _in_one_byte(there: np.ndarray, codes: IntArray) -> NDArray[np.uint8]:
    """The codes of the values that are there."""
    found = np.full(len(there), MISSING, dtype=np.uint8)
    found[there] = codes
    return found


class Sums:
    """Counts, sums and sums of squares of every column in every cluster; missing values are left out.

    Values are taken relative to ``origin``, the first of each column, so that squares lose no digits.
    """

    def __init__(self, n_clusters: int) -> None:
        self.origin: FloatArray = np.zeros(0)
        self.moments: FloatArray = np.zeros((3, n_clusters, 0))

    @classmethod
    def of(cls, rows: Rows, labels: IntArray, n_clusters: int) -> Self:
        """Of rows in memory; those with the label −1 are left out."""
        found, there = cls(n_clusters), labels >= 0
        found.add(rows if there.all() else rows[there], labels[there])
        return found

    @classmethod
    def of_levels(cls, category: Coded, labels: IntArray, n_clusters: int) -> Self:
        """Of the columns that say, by 0 and 1, whether a row has each level."""
        there = np.flatnonzero(category.codes != MISSING)
        ones = np.ones(len(there)), (np.arange(len(there)), category.codes[there])
        return cls.of(sparse.csr_array(ones, (len(there), len(category.values))), labels[there], n_clusters)

    def add(self, rows: Rows, labels: IntArray) -> None:
        """Some more rows."""
        for top in range(0, max(rows.shape[0], 1), PIECE):
            self._add(rows[top : top + PIECE], labels[top : top + PIECE])

    def _add(self, rows: Rows, labels: IntArray) -> None:
        (n, p), k = rows.shape, self.moments.shape[1]
        inside = sparse.csr_array((np.ones(n), (labels, np.arange(n))), shape=(k, n))
        if not self.moments.shape[2]:
            self.origin, self.moments = np.zeros(p), np.zeros((3, k, p))
        if sparse.issparse(rows):
            stored = sparse.csr_array(rows, dtype=float)
            counts = np.repeat(np.bincount(labels, minlength=k)[:, None], p, axis=1)
            self.moments += [counts, (inside @ stored).toarray(), (inside @ stored.power(2)).toarray()]
            return
        values = np.asarray(rows, dtype=float)
        there = np.abs(values) < LARGEST
        new = there.any(axis=0) & (self.moments[0].sum(axis=0) == 0)
        self.origin = np.where(new, values[there.argmax(axis=0), np.arange(p)], self.origin)
        values = np.where(there, values, self.origin) - self.origin
        self.moments += [inside @ there.astype(float), inside @ values, inside @ values**2]

    @property
    def _rest(self) -> FloatArray:
        """The moments of all other clusters."""
        return np.asarray(self.moments.sum(axis=1, keepdims=True) - self.moments)

    @property
    def means(self) -> FloatArray:
        """(k, p); not a number if a cluster has no value."""
        return _means(self.moments) + self.origin

    @property
    def other_means(self) -> FloatArray:
        """(k, p), of the rows of all other clusters."""
        return _means(self._rest) + self.origin

    @property
    def all_means(self) -> FloatArray:
        """(p,), of all rows."""
        return _means(self.moments.sum(axis=1)) + self.origin

    @property
    def effects(self) -> FloatArray:
        """(mean − mean of the rest)/s, s² the pooled variance of both, (k, p); what ``profile`` gives."""
        own, rest = self.moments, self._rest
        gap = _means(own) - _means(rest)
        variance = (_spread(own) + _spread(rest)) / np.maximum(own[0] + rest[0] - 2, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(gap == 0, 0.0, gap / np.sqrt(variance)))

    @property
    def separation(self) -> FloatArray:
        """η² = variance between clusters / variance, (p,), from 0 to 1; 0 for a constant column."""
        total, within = _spread(self.moments.sum(axis=1)), _spread(self.moments).sum(axis=0)
        return np.asarray(np.where(total > 0, 1 - within / np.where(total > 0, total, 1.0), 0.0).clip(0.0, 1.0))


def _means(moments: FloatArray) -> FloatArray:
    """Σx / n; not a number where n = 0."""
    counts, sums, _ = moments
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / counts)


def _spread(moments: FloatArray) -> FloatArray:
    """Σ (x − mean)²; zero if it is only rounding."""
    counts, sums, squares = moments
    found = squares - sums**2 / np.maximum(counts, 1)
    return np.where(found > 1e-12 * squares, found, 0.0)


def association(counts: FloatArray) -> float:
    """Cramér's V² of counts (k, levels), from 0 to 1."""
    table = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0].astype(int)
    return float(cramers_v(table)) ** 2 if min(table.shape) > 1 else 0.0


@dataclass(frozen=True)
class Columns:
    """Columns to show: numbers side by side, and categories."""

    names: list[str]
    numbers: Rows  # (n, p)
    categories: list[Coded]

    @classmethod
    def of(cls, table: Any, categories: Sequence[str | int] = ()) -> Self:
        """From a frame of pandas, polars or Arrow, an array or a CSR matrix; dates become years.

        ``categories`` are columns of codes that are no quantities, by name or by number.
        """
        is_array = isinstance(table, np.ndarray) and table.ndim == 2 and table.dtype.kind in "biuf"
        if not len(categories) and (is_array or sparse.issparse(table)):
            return cls.numbered(sparse.csr_array(table) if sparse.issparse(table) else table)
        named = hasattr(table, "columns") or hasattr(table, "column_names")
        frame = as_frame(table.toarray() if sparse.issparse(table) else table, "table")
        known = [name if named else f"x{name}" for name in frame.columns]
        texts = {known[one] if isinstance(one, int) and 0 <= one < len(known) else str(one) for one in categories}
        if not texts <= set(known):
            unknown = ", ".join(sorted(texts - set(known)))
            raise ParameterError(f"categories has {unknown}, which is not a column: the columns are {known[:10]}.")
        names: list[str] = []
        numbers: list[FloatArray] = []
        found: list[Coded] = []
        for name, (_, column) in zip(known, frame.items(), strict=True):
            kind = kind_of(column)
            if kind == "text" or name in texts:
                found.append(Coded.of_texts(name, levels_of(column)))
                continue
            if kind == "date":  # 2024.5 is the beginning of July 2024
                day = column.astype("datetime64[us]").dt
                column = day.year + (day.day_of_year - 1) / (365 + day.is_leap_year)
            names.append(f"{name}{YEAR * (kind == 'date')}")
            numbers.append(numbers_of(column))
        return cls(names, np.column_stack(numbers) if numbers else np.empty((len(frame), 0)), found)

    @classmethod
    def numbered(cls, rows: Rows, names: Sequence[str] | None = None) -> Self:
        """Columns of numbers, that may have no names."""
        return cls([f"x{j}" for j in range(rows.shape[1])] if names is None else list(map(str, names)), rows, [])

    def some(self, chosen: IntArray) -> Self:
        """Some of the rows."""
        texts = [replace(one, codes=one.codes[chosen]) for one in self.categories]
        return replace(self, numbers=self.numbers[chosen], categories=texts)
