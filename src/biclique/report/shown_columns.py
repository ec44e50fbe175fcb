"""What columns say about clusters: sums by cluster, which columns separate most, and values in one byte."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.neighbors.index import members_of
from biclique.tables.frames import as_frame, kind_of, levels_of, numbers_of

MISSING = 255
"""The code of a missing value; the other 255 codes are values."""

LARGEST = 1e150
"""Infinite values, and those whose squares overflow, count as missing."""

PIECE = 65_536
"""Rows that are looked at together."""


@dataclass
class Sums:
    """Numbers, sums and sums of squares of every column in every cluster, (k, p); missing values are left out.

    Values are taken relative to ``origin``, the first of each column, so that squares lose no digits.
    """

    n_clusters: int
    origin: FloatArray | None = None
    counts: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    sums: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    squares: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    def add(self, rows: Rows, labels: IntArray) -> None:
        """Some more rows."""
        for top in range(0, rows.shape[0], PIECE):
            self._add(rows[top : top + PIECE], labels[top : top + PIECE])

    def _add(self, rows: Rows, labels: IntArray) -> None:
        n, p = rows.shape
        if self.origin is None:
            self.origin = np.zeros(p) if sparse.issparse(rows) else _first_values(np.asarray(rows, dtype=float))
            self.counts, self.sums, self.squares = (np.zeros((self.n_clusters, p)) for _ in range(3))
        inside = sparse.csr_array((np.ones(n), (labels, np.arange(n))), shape=(self.n_clusters, n))
        if sparse.issparse(rows):
            held = sparse.csr_array(rows, dtype=float)
            self.counts += np.asarray(inside.sum(axis=1)).reshape(-1, 1)
            self.sums += (inside @ held).toarray()
            self.squares += (inside @ held.power(2)).toarray()
            return
        values = np.asarray(rows, dtype=float) - self.origin
        there = np.abs(values) < LARGEST
        values = np.where(there, values, 0.0)
        self.counts += inside @ there.astype(float)
        self.sums += inside @ values
        self.squares += inside @ values**2

    @classmethod
    def of_levels(cls, codes: IntArray, n_levels: int, labels: IntArray, n_clusters: int) -> Sums:
        """Of the columns that say, by 0 and 1, whether a row has each level of a category; −1 is a missing one."""
        there = codes >= 0
        place = labels[there] * n_levels + codes[there]
        table = np.bincount(place, minlength=n_clusters * n_levels).reshape(n_clusters, n_levels).astype(float)
        counts = np.broadcast_to(table.sum(axis=1, keepdims=True), table.shape)
        return cls(n_clusters, np.zeros(n_levels), counts, table, table)

    @property
    def means(self) -> FloatArray:
        """(k, p); not a number if a cluster has no value."""
        return _ratio(self.sums, self.counts) + self._start

    @property
    def other_means(self) -> FloatArray:
        """(k, p), of the rows of all other clusters."""
        return _ratio(self.sums.sum(axis=0) - self.sums, self.counts.sum(axis=0) - self.counts) + self._start

    @property
    def _start(self) -> FloatArray:
        return np.zeros(self.sums.shape[1]) if self.origin is None else self.origin

    @property
    def effects(self) -> FloatArray:
        """(mean − mean of the rest)/s, s² the pooled variance of both, (k, p); what ``profile`` gives."""
        n, own = self.counts, self.sums
        rest, others = n.sum(axis=0) - n, own.sum(axis=0) - own
        gap = _ratio(own, n) - _ratio(others, rest)
        within = _spread(n, own, self.squares)
        without = _spread(rest, others, self.squares.sum(axis=0) - self.squares)
        deviation = np.sqrt(_ratio(within + without, n + rest - 2))
        flat = np.where(gap == 0, 0.0, np.copysign(np.inf, gap))
        found = np.where(deviation > 0, gap / np.where(deviation > 0, deviation, 1.0), flat)
        return np.asarray(np.where(np.isnan(gap), np.nan, found))

    @property
    def separation(self) -> FloatArray:
        """η² = variance between clusters / variance, (p,), from 0 to 1; 0 for a constant column."""
        counts, sums = self.counts.sum(axis=0), self.sums.sum(axis=0)
        total = _spread(counts, sums, self.squares.sum(axis=0))
        within = _spread(self.counts, self.sums, self.squares).sum(axis=0)
        return np.asarray(np.where(total > 0, 1 - within / np.where(total > 0, total, 1.0), 0.0).clip(0.0, 1.0))


def effects_of(rows: Rows, labels: IntArray, n_clusters: int) -> FloatArray:
    """``Sums.effects`` of the rows that have a label."""
    sums = Sums(n_clusters)
    sums.add(rows[labels >= 0], labels[labels >= 0])
    return sums.effects


def _first_values(rows: FloatArray) -> FloatArray:
    """The first value of every column that is not missing; 0 if there is none."""
    there = np.abs(rows) < LARGEST
    return np.where(there.any(axis=0), rows[there.argmax(axis=0), np.arange(rows.shape[1])], 0.0)


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.asarray(np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0))


def _spread(n: FloatArray, sums: FloatArray, squares: FloatArray) -> FloatArray:
    """Σ (x − mean)²; zero if it is only rounding."""
    found = squares - np.divide(sums**2, n, out=np.zeros(np.shape(sums)), where=n > 0)
    return np.where(found > 1e-12 * squares, found, 0.0)


@dataclass(frozen=True)
class Category:
    """A column of text: a level for every row, −1 for a missing one."""

    name: str
    codes: IntArray  # (n,)
    levels: list[str]

    @classmethod
    def of(cls, name: str, values: np.ndarray) -> Category:
        """At most 255 levels, the most frequent ones; the others are one."""
        numbers: dict[str, int] = {}
        codes = np.array(
            [
                -1 if value is None or value != value else numbers.setdefault(str(value), len(numbers))
                for value in values.tolist()
            ],
            dtype=np.intp,
        )
        sizes = np.bincount(codes[codes >= 0], minlength=len(numbers))
        levels = sorted(numbers)
        if len(numbers) > MISSING:
            levels = sorted(sorted(numbers, key=lambda level: (-sizes[numbers[level]], level))[: MISSING - 1])
        new = np.full(len(numbers) + 1, len(levels), dtype=np.intp)
        new[[numbers[level] for level in levels]] = np.arange(len(levels))
        new[-1] = -1  # the place of a missing one
        others = [f"one of {len(numbers) - MISSING + 1} others"] if len(numbers) > MISSING else []
        return cls(name, new[codes], levels + others)

    def separation(self, labels: IntArray, n_clusters: int) -> float:
        """Cramér's V² of the levels and the clusters: χ²/(n · min(k − 1, levels − 1)), from 0 to 1."""
        table = Sums.of_levels(self.codes, len(self.levels), labels, n_clusters).sums
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        least = min(table.shape) - 1
        if least < 1:
            return 0.0
        expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
        return float(((table - expected) ** 2 / expected).sum() / (table.sum() * least))


YEAR = " (year)"
"""What is added to the name of a column of dates, whose values are shown as years."""


@dataclass(frozen=True)
class Columns:
    """Columns to show: numbers side by side, and categories."""

    names: list[str]
    numbers: Rows  # (n, p)
    categories: list[Category]

    @classmethod
    def of(cls, table: Any) -> Columns:
        """From a frame of pandas, polars or Arrow, an array or a CSR matrix; dates become years."""
        if sparse.issparse(table):
            return cls(cls.numbered(table.shape[1]), sparse.csr_array(table), [])
        if isinstance(table, np.ndarray) and table.ndim == 2 and table.dtype.kind in "biuf":
            return cls(cls.numbered(table.shape[1]), table, [])
        start = "" if hasattr(table, "columns") or hasattr(table, "column_names") else "x"
        frame = as_frame(table, "table")
        names: list[str] = []
        numbers: list[FloatArray] = []
        categories: list[Category] = []
        for name, column in frame.items():
            kind = kind_of(column)
            if kind == "text":
                categories.append(Category.of(f"{start}{name}", levels_of(column)))
                continue
            names.append(f"{start}{name}{YEAR * (kind == 'date')}")
            numbers.append(years(column.to_numpy(dtype="datetime64[us]")) if kind == "date" else numbers_of(column))
        held = np.column_stack(numbers) if numbers else np.empty((len(frame), 0))
        return cls(names, held, categories)

    @staticmethod
    def numbered(n_columns: int) -> list[str]:
        """Names of columns that have none."""
        return [f"x{j}" for j in range(n_columns)]

    def some(self, chosen: IntArray) -> Columns:
        """Some of the rows."""
        texts = [Category(one.name, one.codes[chosen], one.levels) for one in self.categories]
        return Columns(self.names, self.numbers[chosen], texts)


@dataclass(frozen=True)
class Coded:
    """A column in one byte a row: code → value, the values ascending."""

    codes: NDArray[np.uint8]
    values: list[float] | list[str]
    exact: bool
    """Whether every value is exact, and not the median of its group."""

    @classmethod
    def of_numbers(cls, column: FloatArray) -> Coded:
        """The values themselves if they are 255 at most; else 255 groups of equal size, each by its median."""
        column = np.asarray(column, dtype=float)
        there = np.isfinite(column)
        codes = np.full(len(column), MISSING, dtype=np.uint8)
        found, place = np.unique(column[there], return_inverse=True)
        if len(found) <= MISSING:
            codes[there] = place
            return cls(codes, [_rounded(v) for v in found], True)
        edges = np.unique(np.quantile(column[there], np.linspace(0, 1, MISSING + 1)[1:-1]))
        group = np.searchsorted(edges, column[there], side="right")
        used, group = np.unique(group, return_inverse=True)
        codes[there] = group
        medians = [float(np.median(column[there][rows])) for rows in members_of(group)]
        return cls(codes, [_rounded(median) for median in medians], len(found) == len(used))

    @classmethod
    def of_category(cls, column: Category) -> Coded:
        """The levels."""
        return cls(np.where(column.codes < 0, MISSING, column.codes).astype(np.uint8), list(column.levels), True)


def years(dates: NDArray[Any]) -> FloatArray:
    """Dates as years with a fraction: 2024.5 is the beginning of July 2024; NaN for a missing one."""
    start = dates.astype("datetime64[Y]")
    first, last = start.astype("datetime64[us]"), (start + 1).astype("datetime64[us]")
    share = (dates - first) / (last - first)
    return np.asarray(np.where(np.isnat(dates), np.nan, 1970 + start.astype(float) + share))


def _rounded(value: float) -> float:
    """Five digits are what a page shows."""
    return float(f"{value:.5g}")


def as_base64(values: np.ndarray) -> str:
    """Bytes as text."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
