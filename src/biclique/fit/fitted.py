"""Fitted: what an estimator keeps of a fit, one protocol whatever the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from biclique._typing import FloatArray, IntArray, Rows
from biclique.fit.plan import Plan
from biclique.spectral.assign import Seen


class Fitted(Protocol):
    """A fitted embedding and, where labels were asked for, the rule behind them.

    Its state is arrays and plain values (``biclique.fit.state``).
    """

    plan: Plan
    seen: Seen | None
    """Training rows for probabilities, where labels were asked for."""

    @property
    def eigenvalues(self) -> FloatArray:
        """Of B, descending, as many as columns but one; zero where there are no more."""

    @property
    def residuals(self) -> FloatArray:
        """Of the eigenvalues."""

    @property
    def n_passes(self) -> int:
        """Over K, or over the rows of a factored one."""

    @property
    def takes_chunks(self) -> bool:
        """Whether new rows may come in chunks."""

    @property
    def keeps_tensors(self) -> bool:
        """Whether new rows that are a tensor are embedded where it lies."""

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of any rows, (n, n_columns), on the host; a training row gets its own row back."""

    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:
        """The labels of any rows; a row that is like no training row takes the label of its nearest."""


@dataclass(frozen=True)
class Result:
    """A fit, and what it found for the training rows."""

    fitted: Fitted
    n_vertices: int
    embedding: FloatArray | None
    """None where rows were read in chunks."""
    labels: IntArray | None
    cut_history: FloatArray | None = None
