"""The Gower kernel: tables of numbers and categories, with gaps."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError, ParameterError
from biclique.kernels.kernel import ExponentialKernel

MOST_CODES = 2**24
"""Codes of categories are below this: float32 holds such numbers exactly."""

NEAREST_PAIRS = 2**21
"""Pairs of rows that are compared at once in the search for near rows."""

FROM_DTYPE = "from_dtype"
"""Columns of a frame whose type is that of categories."""

MOST_NAMED = 10
"""Columns that a message names."""

Categorical = str | Sequence[bool] | Sequence[int] | Sequence[str] | np.ndarray[Any, Any]
"""Columns of categories: a mask, numbers, names, or "from_dtype"."""


def check_categorical(name: str, value: object) -> None:
    """Refuse what is not None, "from_dtype", a mask, numbers or names."""
    if value is None or (isinstance(value, str) and value == FROM_DTYPE):
        return
    kinds = {np.asarray(item).dtype.kind for item in value} if isinstance(value, (Sequence, np.ndarray)) else {""}
    if isinstance(value, str) or not (kinds <= {"b"} or kinds <= {"i", "u"} or kinds <= {"U"}):
        raise ParameterError(
            f"{name} must be None, {FROM_DTYPE!r}, or columns by a mask of True and False, by numbers or by names, got "
            f"{value!r}."
        )


@dataclass(frozen=True, eq=False)
class Columns:
    """What a fit knows of the columns of X: which hold categories, and the least and largest value of each."""

    categorical: np.ndarray  # (d,), True for a column of codes
    low: FloatArray  # (d,), NaN for a column without any value
    high: FloatArray  # (d,)

    @classmethod
    def of(cls, X: FloatArray, categorical: np.ndarray | None = None) -> Columns:
        """Of all rows of X; every column is numeric unless a mask says otherwise."""
        mask = np.zeros(X.shape[1], dtype=bool) if categorical is None else np.array(categorical, dtype=bool)
        low = np.fmin.reduce(X, axis=0, initial=np.inf).astype(np.float64)
        high = np.fmax.reduce(X, axis=0, initial=-np.inf).astype(np.float64)
        empty = low == np.inf
        return cls(mask, np.where(empty, np.nan, low), np.where(empty, np.nan, high))

    def joined(self, other: Columns) -> Columns:
        """The same of the rows of both."""
        return replace(self, low=np.fmin(self.low, other.low), high=np.fmax(self.high, other.high))

    @property
    def span(self) -> FloatArray:
        """high − low, (d,); 0 for a column without any value."""
        return np.nan_to_num(self.high - self.low)

    @property
    def by_equality(self) -> np.ndarray:
        """Columns whose values are equal or not, (d,): categories, and numbers that are all the same."""
        return np.asarray(self.categorical | (self.span == 0))

    @property
    def empty(self) -> np.ndarray:
        """Columns without any value, (d,)."""
        return np.isnan(self.low)

    def check_rows(self, X: FloatArray, numbers: Sequence[int] | np.ndarray, names: Sequence[str] | None) -> None:
        """Refuse category codes that are not valid, and rows without a value in all columns that have values."""
        codes = X[:, self.categorical]
        with np.errstate(invalid="ignore"):
            bad = np.argwhere((codes < 0) | (codes >= MOST_CODES) | (codes != np.floor(codes)) & ~np.isnan(codes))
        if len(bad):
            row, place = (int(i) for i in bad[0])
            column = int(np.flatnonzero(self.categorical)[place])
            named = f"column {column}" if names is None else f"column {column} ({names[column]!r})"
            raise DataError(
                f"categorical: {named} has {codes[row, place]:.10g} in row {numbers[row]}, counted from 0. Codes "
                f"of categories must be whole numbers from 0 to {MOST_CODES - 1}, or NaN for a missing value (pandas "
                "writes -1): encode the column with sklearn.preprocessing.OrdinalEncoder, or leave it numeric."
            )
        known = ~np.isnan(X[:, ~self.empty]).all(axis=1)
        if not known.all():
            bare = np.flatnonzero(~known)
            shown = ", ".join(str(numbers[i]) for i in bare[:10]) + (" …" if len(bare) > 10 else "")
            raise DataError(
                f"{len(bare)} of {len(X)} rows have no value in any column that the fit can use (rows {shown}, counted "
                "from 0), so their distances to other rows are not known: leave those rows out."
            )


class Gower(ExponentialKernel):
    """κ(x, y) = exp(−γ q(x, y)), q the Gower distance: the mean of what the columns say, gaps left out.

    q(x, y) = Σ_l δ_l s_l / Σ_l δ_l over the columns l, with

    - δ_l = 1 if both x_l and y_l are there, 0 if one of them is NaN,
    - s_l = |x_l − y_l| / R_l for numbers, R_l the range of the column in the training rows,
    - s_l = 0 or 1 for categories: whether x_l and y_l are equal. A number that is constant in the training rows
      (R_l = 0) counts as a category.

    q = 1 for two rows without a column in common (Σ_l δ_l = 0). New rows: a number outside the range can count more
    than 1; a category that the training rows do not have differs from all of theirs.

    Without gaps κ is positive semi-definite. Gaps can give K negative eigenvalues.

    Parameters
    ----------
    categorical : array of bool, int or str, "from_dtype" or None
        Columns of categories: a mask, numbers, names of columns of a frame, or "from_dtype" for the columns of a frame
        whose type is categorical. Their codes are whole numbers from 0. None: all columns are numbers.
    gamma : float or None
        γ; None leaves it to ``gamma`` of the estimator.
    columns : Columns or None
        Ranges of the columns, if not those of the rows that are fitted.
    """

    name = "gower"
    translation_invariant = takes_gaps = True
    gamma: float | None  # type: ignore[assignment]

    def __init__(
        self,
        categorical: Categorical | None = None,
        *,
        gamma: float | None = None,
        columns: Columns | None = None,
    ) -> None:
        check_categorical("categorical", categorical)
        self.categorical, self.gamma, self.columns = categorical, gamma, columns

    def __repr__(self) -> str:
        return f"Gower(categorical={self.categorical!r}, gamma={self.gamma!r})"

    def completed(self, gamma: float | None, columns: Columns | None) -> Gower:
        """The same with this γ, if it has none of its own, and with the ranges of these columns."""
        found = copy(self)
        found.gamma = gamma if self.gamma is None else self.gamma
        found.columns = self.columns if columns is None else columns
        return found

    def categorical_mask(
        self, n_columns: int, names: Sequence[str] | None = None, by_dtype: np.ndarray | None = None
    ) -> np.ndarray:
        """Which columns of X hold categories, (d,); ``by_dtype`` is the same by the types of a frame."""
        if self.categorical is None:
            return np.zeros(n_columns, dtype=bool)
        if isinstance(self.categorical, str):
            if by_dtype is None:
                raise ParameterError(
                    f"categorical={FROM_DTYPE!r} needs X to be a frame of pandas or polars, whose columns have types: "
                    "pass one, or the columns by their numbers."
                )
            return by_dtype
        wanted = np.asarray(self.categorical)
        if wanted.dtype.kind == "b":
            if wanted.shape != (n_columns,):
                raise ParameterError(
                    f"categorical is a mask of {wanted.size} columns, and X has {n_columns}: give True or False for "
                    "each, or the numbers of the columns."
                )
            return wanted
        if wanted.dtype.kind == "U":
            wanted = _places(wanted.tolist(), names)
        outside = wanted[(wanted < 0) | (wanted >= n_columns)]
        if len(outside):
            raise ParameterError(
                f"categorical has column {outside[0]}, and X has {n_columns}: columns count from 0 to {n_columns - 1}."
            )
        return np.isin(np.arange(n_columns), wanted)

    def _columns(self) -> Columns:
        if self.columns is None:
            raise ParameterError(
                "affinity='gower' needs the ranges of the columns, which a fit of BicliqueSpectralClustering, "
                "BicliqueSpectralEmbedding or BicliqueKernelKMeans finds: use one of these, or "
                "biclique.kernels.Gower(gamma=gamma, columns=biclique.kernels.Columns.of(X))."
            )
        return self.columns

    def distances(self, X: Rows, Y: Rows) -> FloatArray:
        """q(x_i, y_j) for every row of X and of Y, shape (n_x, n_y), in float64."""
        columns = self._columns()
        equal, span = columns.by_equality, np.where(columns.by_equality, 1.0, columns.span)
        X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
        total, shared = np.zeros((2, X.shape[0], Y.shape[0]))
        if not (np.isnan(X).any() or np.isnan(Y).any()):
            if not equal.all():
                total = cdist(X[:, ~equal] / span[~equal], Y[:, ~equal] / span[~equal], "cityblock")
            if equal.any():
                differ = cdist(X[:, equal], Y[:, equal], "hamming")
                differ *= equal.sum()
                total += np.rint(differ, out=differ)
            total /= X.shape[1]
            return total
        for j, unit in enumerate(span):
            s = np.abs(np.subtract.outer(X[:, j], Y[:, j])) / unit  # NaN if one of the two is missing
            known = ~np.isnan(s)
            shared += known
            total += (s > 0) if equal[j] else np.where(known, s, 0.0)
        return np.divide(total, shared, out=np.ones_like(total), where=shared > 0)

    def block(self, X: Rows, Y: Rows) -> FloatArray:
        if self.gamma is None:
            raise ParameterError("Gower: gamma is None, which an estimator replaces by its own: give a number here.")
        return super().block(X, Y)

    def dissimilarity(self, X: Rows) -> FloatArray:
        """q of all pairs of rows."""
        q = self.distances(X, X)
        np.fill_diagonal(q, 0.0)
        return q

    def nearest(self, Y: Rows, X: Rows, count: int) -> tuple[FloatArray, IntArray]:
        """Distances and numbers of the nearest rows of X for every row of Y, by (distance, number), (n_y, count)."""
        gap, near = np.empty((Y.shape[0], count)), np.empty((Y.shape[0], count), dtype=np.intp)
        step = max(NEAREST_PAIRS // X.shape[0], 1)
        for top in range(0, Y.shape[0], step):
            place = slice(top, top + step)
            q = self.distances(Y[place], X)
            near[place] = np.argsort(q, axis=1, kind="stable")[:, :count]
            gap[place] = np.take_along_axis(q, near[place], axis=1)
        return gap, near

    def centre(self, X: FloatArray) -> FloatArray:
        """The least number of every column that these rows have, 0 for codes, so that these keep all digits."""
        found = Columns.of(X)
        return np.where(self._columns().categorical | found.empty, 0.0, found.low)


def _places(wanted: list[str], names: Sequence[str] | None) -> IntArray:
    """The numbers of named columns."""
    if names is None:
        raise ParameterError(
            f"categorical names columns ({wanted[0]!r}), and X has no names: pass a frame, or the columns by their "
            "numbers."
        )
    known = list(names)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ParameterError(
            f"categorical has {unknown[0]!r}, which is not a column of X: the columns are "
            f"{', '.join(map(repr, known[:MOST_NAMED]))}{' …' if len(known) > MOST_NAMED else ''}."
        )
    return np.array([known.index(name) for name in wanted], dtype=np.intp)
