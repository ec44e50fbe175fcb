"""What a search for the number of clusters found: a curve over k, the choice, and the reason in words."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from biclique._typing import IntArray
from biclique.exceptions import ParameterError, optional
from biclique.runtime.axes import new_axes
from biclique.runtime.readable import Readable
from biclique.selection.structure import Structure

EQUAL = 0.03
"""Stabilities that differ by less count as equal: one or two rows in a hundred in other clusters cost so much."""


@dataclass(frozen=True)
class Counted:
    """One number of clusters. Shares have nine digits: what differs by less is equal."""

    n_clusters: int
    stability: float
    standard_error: float
    weakest: float  # the least mean Jaccard index of a cluster with its like in halves
    smallest: float  # rows of its smallest cluster
    covers_parts: bool = True  # whether it has a cluster for each part of the neighbour graph that is large enough

    @property
    def allowed(self) -> bool:
        """Whether it can be chosen: it covers the parts, or halves always find it again, so that gaps are by chance."""
        return self.covers_parts or self.stability >= 1 - EQUAL


@dataclass(frozen=True, repr=False)
class CountResult(Readable):
    """The number of clusters that a search chose, why, and the stability of every other.

    ``n_clusters`` is the choice. ``runner_up`` is the most stable other k, and ``margin`` the stability of the choice
    minus that of the runner-up: not positive if a smaller k is as stable, because the larger one is then chosen.
    ``structure`` says whether there are clusters at all. ``labels`` are those of the choice on the ``rows`` distinct
    rows that were looked at, in an order of their own: for labels of X, fit with this ``n_clusters``.
    ``interrupted`` says that the search was ended by hand.
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
        pandas = optional(
            "pandas", "a frame needs pandas: pip install '.[tables]' in a clone of biclique, or read counted"
        )
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
            note = ""
            if one.n_clusters == self.n_clusters:
                note = "  chosen"
            elif not one.allowed:
                note = "  fewer than parts"
            lines.append(
                f"{one.n_clusters:>3}  {one.stability:>9.3f}  {one.standard_error:>14.3f}  {one.weakest:>15.3f}  "
                f"{one.smallest:>16g}{note}"
            )
        return "\n".join(lines)

    __str__ = summary

    def plot(self, ax: Any = None) -> Any:
        """Draw the stability over k with its standard errors, the choice marked; returns matplotlib's axes."""
        if not self.counted:
            raise ParameterError("nothing was compared, so there is nothing to plot.")
        ax = new_axes() if ax is None else ax
        k, mean, errors = np.array([(one.n_clusters, one.stability, one.standard_error) for one in self.counted]).T
        left_out = np.array([not one.allowed for one in self.counted])
        chosen = k == self.n_clusters
        ax.errorbar(k, mean, errors, color="tab:blue", marker=".", capsize=2)
        ax.scatter(k[left_out], mean[left_out], marker="x", color="tab:gray", zorder=3, label="left out")
        ax.scatter(k[chosen], mean[chosen], marker="*", s=160, color="tab:red", zorder=3)
        ax.set(xlabel="number of clusters", ylabel="stability")
        ax.xaxis.get_major_locator().set_params(integer=True)
        return ax
