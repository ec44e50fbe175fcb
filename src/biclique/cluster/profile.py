"""What sets a cluster apart."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from biclique._typing import FloatArray, IntArray
from biclique.report.shown_columns import Columns, Sums


def profile_of(X: Any, labels: IntArray, n_clusters: int, categories: Sequence[str | int] | None) -> Any:
    """A frame of clusters by columns; a dictionary of columns if pandas is not installed."""
    columns = Columns.of(X, () if categories is None else categories)
    sums = Sums(n_clusters)
    sums.add(columns.numbers, labels)
    out: dict[str, FloatArray] = dict(zip(columns.names, sums.effects.T, strict=True))
    for one in columns.categories:
        shares = Sums.of_levels(one.codes, len(one.levels), labels, n_clusters)
        gaps = (shares.means - shares.other_means).T
        out |= {f"{one.name}={level}": gap for level, gap in zip(one.levels, gaps, strict=True)}
    if find_spec("pandas") is None:
        return out
    pandas = import_module("pandas")
    return pandas.DataFrame(out, index=pandas.RangeIndex(n_clusters, name="cluster"))
