"""Fitted: what an estimator keeps of a fit, one protocol whatever the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import RankWarning, SolverWarning, warn_user
from biclique.fit.plan import Plan
from biclique.runtime.namespace import namespace
from biclique.spectral import EigenResult


class Fitted(Protocol):
    """A fitted embedding and, where labels were asked for, the rule behind them.

    Its state is arrays and plain values (``biclique.fit.state``).
    """

    plan: Plan

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


def unit_rows(rows: FloatArray) -> FloatArray:
    """Rows divided by their lengths; a zero row stays."""
    xp = namespace(rows)
    lengths = xp.sqrt((rows * rows).sum(1))[:, None]
    return xp.where(lengths > 0, rows / xp.where(lengths > 0, lengths, 1.0), 0.0)  # type: ignore[no-any-return]


def padded(values: FloatArray, length: int) -> FloatArray:
    """Values with zeros behind them, up to a length; rows of a matrix each."""
    missing = length - values.shape[-1]
    if missing <= 0:
        return values
    xp = namespace(values)
    if xp is np:
        return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])
    return xp.nn.functional.pad(values, (0, missing))  # type: ignore[no-any-return]


def warn_unless_converged(pairs: EigenResult) -> None:
    """Say how many eigenpairs missed the tolerance, and by how much."""
    if not pairs.converged:
        above = int((pairs.residuals > pairs.target).sum())
        warn_user(
            f"{above} of {len(pairs.values)} eigenpairs above tol (worst residual {pairs.residuals.max():.1e} > "
            f"{pairs.target:.1e}) after {pairs.n_passes} passes; raise max_iter or eigen_tol.",
            SolverWarning,
        )


def warn_about_null_columns(informative: np.ndarray, n_columns: int) -> None:
    """Say how many columns of an embedding are zero because K has too few eigenvalues that are not."""
    found = int(informative.sum()) + 1  # and the trivial one
    if found < n_columns:
        warn_user(
            f"the kernel gives {found} informative columns, {n_columns} were asked for: the rest of the embedding is "
            "zero; use another affinity or fewer clusters.",
            RankWarning,
        )
