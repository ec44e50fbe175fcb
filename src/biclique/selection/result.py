"""What a search found: every candidate with its criteria, the choice, and the reason in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from biclique._typing import IntArray
from biclique.exceptions import ParameterError
from biclique.runtime.axes import new_axes
from biclique.selection.candidates import Candidate

SMALL_MARGIN = 1.25
"""Of doubts: that of the second best is larger by no more than a quarter."""

Value = float | int | str | bool | None


@dataclass(frozen=True)
class Judged:
    """A candidate with its criteria; None if a criterion was not computed."""

    candidate: Candidate | None
    """None for k-means on the rows, which is there to be compared with."""
    name: str
    family: str
    smallest: float | None = None
    """Rows of its smallest cluster."""
    cut: float | None = None
    stability: float | None = None
    consensus: float | None = None
    doubt: float | None = None
    """What the criteria leave open; only for candidates that can be chosen."""
    same_as: str = ""
    """The candidate that stands for it, if both give the same clusters."""
    dropped: str = ""
    """Why it cannot be chosen."""

    def record(self) -> dict[str, Value]:
        """Its row of the table."""
        order = None if self.candidate is None else self.candidate.order
        return {
            "name": self.name,
            "family": self.family,
            "order": order,
            "cut": self.cut,
            "stability": self.stability,
            "consensus": self.consensus,
            "doubt": self.doubt,
            "smallest": self.smallest,
            "same_as": self.same_as,
            "dropped": self.dropped,
        }


class Records(Sequence[Mapping[str, Value]]):
    """A table without pandas: a sequence of rows, each a mapping, with ``columns``."""

    def __init__(self, rows: Sequence[Mapping[str, Value]]) -> None:
        self._rows = list(rows)
        self.columns = list(rows[0]) if rows else []

    def __getitem__(self, place: Any) -> Any:
        """A row by its number, or a column by its name."""
        return [row[place] for row in self._rows] if isinstance(place, str) else self._rows[place]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Mapping[str, Value]]:
        return iter(self._rows)

    def __repr__(self) -> str:
        shown = [self.columns, *([_shown(row[name]) for name in self.columns] for row in self._rows)]
        widths = [max(len(line[j]) for line in shown) for j in range(len(self.columns))]
        return "\n".join("  ".join(f"{x:{w}s}" for x, w in zip(line, widths, strict=True)).rstrip() for line in shown)


def _shown(value: Value) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def as_frame(records: Sequence[Mapping[str, Value]]) -> Any:
    """A frame of records: pandas' if it is installed, else ``Records``."""
    try:
        frame = import_module("pandas").DataFrame
    except ImportError:
        return Records(records)
    return frame.from_records(records)


@dataclass(frozen=True)
class SelectionResult:
    """The settings that a search chose, why, and what else was tried.

    ``chosen`` and ``runner_up`` are candidates; ``margin`` is the doubt of the second over that of the choice (None
    without a second); ``reason`` is a sentence; ``labels`` are those of the choice on the ``rows`` distinct rows that
    were looked at. ``interrupted`` says that the search was ended by hand.
    """

    judged: tuple[Judged, ...]
    """The best first, then what stands behind others, then what was dropped."""
    chosen: Candidate
    runner_up: Candidate | None
    margin: float | None
    reason: str
    rows: int
    n_clusters: int
    gamma: float | None
    """γ of the choice on the rows that were looked at."""
    labels: IntArray
    interrupted: bool = False

    @property
    def candidates(self) -> Any:
        """A frame of every candidate with its criteria, the best first: pandas' if it is installed, else records."""
        return as_frame([judged.record() for judged in self.judged])

    @property
    def ranked(self) -> list[Candidate]:
        """The candidates that can be chosen, the best first."""
        return [one.candidate for one in self.judged if one.candidate is not None and one.doubt is not None]

    @property
    def parameters(self) -> dict[str, Any]:
        """What ``BicliqueSpectralClustering`` takes to repeat the choice; γ is that of the rows looked at."""
        chosen = self.chosen
        found: dict[str, Any] = {"affinity": chosen.affinity, "order": chosen.order}
        found["gamma"] = chosen.gamma if self.gamma is None else self.gamma
        if chosen.is_graph:
            found |= {"n_neighbors": chosen.n_neighbors, "neighbor_weights": chosen.neighbor_weights}
        return {**found, "row_normalize": chosen.row_normalize}

    def taking(self, candidate: Candidate, because: str) -> SelectionResult:
        """The same with another choice."""
        return replace(self, chosen=candidate, reason=f"{candidate.name}: {because} {self.reason}")

    def summary(self) -> str:
        """The choice, the second, and the ten best candidates as text."""
        lines = [self.reason, ""]
        shown = [one for one in self.judged if one.doubt is not None][:10]
        shown += [one for one in self.judged if one.candidate is None]
        width = max((len(one.name) for one in shown), default=9)
        lines.append(f"{'candidate':{width}s}    cut  stability  consensus      doubt")
        for one in shown:
            numbers = (one.cut, one.stability, one.consensus, one.doubt)
            cells = [
                f"{'' if x is None else format(x, '.3f'):>{w}s}" for x, w in zip(numbers, (5, 9, 9, 9), strict=True)
            ]
            lines.append(f"{one.name:{width}s}  {'  '.join(cells)}")
        same = sum(1 for one in self.judged if one.same_as)
        dropped = sum(1 for one in self.judged if one.dropped and one.candidate is not None)
        lines += ["", f"{same} candidates give the clusters of another, {dropped} were dropped."]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def plot(self, ax: Any = None) -> Any:
        """Draw stability against the cut, one point a candidate, the choice marked; returns matplotlib's axes."""
        shown = [one for one in self.judged if one.cut is not None and not one.same_as]
        if not shown:
            raise ParameterError("nothing was compared, so there is nothing to plot.")
        ax = new_axes() if ax is None else ax
        for one in shown:
            kind = {True: "o", False: "x"}[one.candidate is not None]
            best = one.candidate == self.chosen
            ax.scatter(
                one.cut,
                np.nan if one.stability is None else one.stability,
                marker="*" if best else kind,
                s=160 if best else 30,
                color="tab:red" if best else "tab:gray" if one.dropped else "tab:blue",
            )
        best_one = next((one for one in shown if one.candidate == self.chosen), shown[0])
        if best_one.stability is not None:
            ax.annotate(best_one.name, (best_one.cut, best_one.stability), fontsize="small")
        ax.set_xlabel("neutral cut (1: no edge leaves a cluster)")
        ax.set_ylabel("stability")
        return ax
