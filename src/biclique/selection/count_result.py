"""What a search for the number of clusters found: a curve over k, the choice, and the reason in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from biclique._typing import IntArray
from biclique.exceptions import ParameterError, optional
from biclique.runtime.axes import new_axes
from biclique.selection.structure import Structure


@dataclass(frozen=True)
class Counted:
    """One number of clusters."""

    n_clusters: int
    stability: float
    standard_error: float
    weakest: float
    """The least mean Jaccard index of a cluster with its like in halves."""
    smallest: float
    """Rows of its smallest cluster."""
    needed: float
    """Rows that its smallest cluster must have: √(n/k)."""
    covers_parts: bool = True
    """Whether it has a cluster for each part of the neighbour graph that is large enough."""

    @property
    def large_enough(self) -> bool:
        """Whether its smallest cluster is large enough."""
        return self.smallest >= self.needed

    @property
    def allowed(self) -> bool:
        """Whether it can be chosen."""
        return self.large_enough and self.covers_parts


@dataclass(frozen=True)
class CountResult:
    """The number of clusters that a search chose, why, and the stability of every other.

    ``n_clusters`` is the choice. ``runner_up`` is the most stable other k, and ``margin`` the stability of the choice
    minus that of the runner-up: not positive if a smaller k is as stable, because the larger one is then chosen.
    ``structure`` says whether there are clusters at all. ``labels`` are those of the choice on the ``rows`` distinct
    rows that were looked at. ``interrupted`` says that the search was ended by hand.
    """

    counted: tuple[Counted, ...]
    n_clusters: int
    runner_up: int | None
    margin: float | None
    reason: str
    rows: int
    labels: IntArray
    structure: Structure
    interrupted: bool = False

    @property
    def frame(self) -> Any:
        """A pandas frame over k: stability, standard error, weakest and smallest cluster."""
        pandas = optional("pandas", "a frame needs pandas: pip install 'biclique[tables]', or read counted")
        return pandas.DataFrame([{**asdict(one), "allowed": one.allowed} for one in self.counted])

    @property
    def has_structure(self) -> bool | None:
        """Whether there are clusters at all; None if that was not tested."""
        return self.structure.found

    @property
    def explanation(self) -> str:
        """The reason, and what is known about structure."""
        return f"{self.reason} {self.structure.reason}"

    def summary(self) -> str:
        """The choice and the curve as text."""
        lines = [self.reason, self.structure.reason, ""]
        lines.append("  k  stability  standard error  weakest cluster  smallest cluster")
        for one in self.counted:
            mark = "" if one.covers_parts else "  fewer than parts"
            mark = mark if one.large_enough else f"  too small: {one.needed:.1f} rows needed"
            mark = "  chosen" if one.n_clusters == self.n_clusters else mark
            lines.append(
                f"{one.n_clusters:>3}  {one.stability:>9.3f}  {one.standard_error:>14.3f}  {one.weakest:>15.3f}  "
                f"{one.smallest:>16g}{mark}"
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def plot(self, ax: Any = None) -> Any:
        """Draw the stability over k with its standard errors, the choice marked; returns matplotlib's axes."""
        shown = self.counted
        if not shown:
            raise ParameterError("nothing was compared, so there is nothing to plot.")
        ax = new_axes() if ax is None else ax
        k = np.array([one.n_clusters for one in shown])
        mean = np.array([one.stability for one in shown], dtype=float)
        errors = np.array([one.standard_error for one in shown], dtype=float)
        ax.errorbar(k, mean, errors, color="tab:blue", marker=".", capsize=2)
        left_out = ~np.array([one.allowed for one in shown])
        ax.scatter(k[left_out], mean[left_out], marker="x", color="tab:gray", zorder=3, label="left out")
        ax.scatter(k[k == self.n_clusters], mean[k == self.n_clusters], marker="*", s=160, color="tab:red", zorder=3)
        ax.set_xlabel("number of clusters")
        ax.set_ylabel("stability")
        return ax
