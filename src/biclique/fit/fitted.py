"""Fitted: what a model keeps of a fit, and what the rows of the fit got."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from biclique._typing import FloatArray, IntArray, Rows
from biclique.fit.choose import Chosen
from biclique.fit.settings import Settings
from biclique.spectral.rounding import Rule, Seen


@dataclass(kw_only=True)
class Fitted(ABC):
    """A fitted embedding, and the rule for labels if labels were asked for: arrays, numbers and kernels."""

    settings: Settings
    """What was asked for."""
    chosen: Chosen
    """What was chosen, and why."""
    eigenvalues: FloatArray  # (n_columns − 1,), of B, descending; zero if there are no more
    residuals: FloatArray  # (n_columns − 1,)
    n_passes: int
    """Over K, or over the rows of a factored one."""
    rule: Rule | None = None
    seen: Seen | None = None
    """Training rows for probabilities, if labels were asked for."""

    @property
    def keeps_tensors(self) -> bool:
        """Whether new rows that are a tensor are embedded on their device."""
        return False

    def for_rows(self) -> Self:
        """The same, as small as can be, to embed and label rows elsewhere."""
        return self

    @abstractmethod
    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of any rows, (n, n_columns), on the host; a training row gets its own row back."""

    @abstractmethod
    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:
        """The labels of any rows; a row that is like no training row takes the label of its nearest."""

    @abstractmethod
    def degrees(self, embedded: FloatArray) -> FloatArray:
        """δ of rows, from their embedding (n, n_columns): similarity to all training rows; NaN at order infinity."""

    def known_rule(self) -> Rule:
        """The rule for labels; a ValueError if only an embedding was asked for."""
        if self.rule is None:
            raise ValueError("no labels have been assigned")
        return self.rule


@dataclass(frozen=True)
class Training:
    """What the rows of the fit got. Of Dask's rows, embedding and labels are lazy collections."""

    n_distinct: int
    embedding: FloatArray  # (n, n_columns)
    labels: IntArray | None = None
    cut_history: FloatArray | None = None
    sizes: tuple[int, ...] | None = None
    """Rows of the clusters that have any, if labels are lazy."""
