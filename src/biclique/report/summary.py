"""What a fit chose and why, as text and as HTML for notebooks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from biclique.report.markup import element, table
from biclique.report.rows import Subject
from biclique.report.sentence import percent


@dataclass(frozen=True)
class Summary:
    """Lines of a question and its answer; printed, a text; in a notebook, a table."""

    title: str
    lines: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.lines)
        return "\n".join([self.title, *(f"  {name:{width}}  {text}" for name, text in self.lines)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(element("div", element("b", self.title), table(("", ""), self.lines)))


MOST_SIZES = 12
"""Clusters whose sizes are named."""


def summary_of(subject: Subject, sizes: Sequence[int] | None) -> Summary:
    """The choices of a fit; ``sizes`` of clusters if the labels are known."""
    chosen = subject.fitted.chosen
    kernel, values = subject.fitted.settings.kernel, subject.fitted.eigenvalues
    affinity = kernel.affinity if isinstance(kernel.affinity, str) else "a kernel of your own"
    order = "infinity" if chosen.order == math.inf else f"{chosen.order:g}"
    rank = "" if chosen.rank is None else f" of rank {chosen.rank}"
    shown = ", ".join(f"{v:.3f}" for v in values[:8].tolist())
    lines = (
        ("clusters", str(subject.n_clusters) if sizes is None else _sizes(sizes)),
        ("number of clusters", _number(subject)),
        ("similarity", affinity if chosen.gamma is None else f"{affinity}, gamma {chosen.gamma:.4g}"),
        ("order", f"{order} ({chosen.order_reason})" if chosen.order_reason else order),
        ("neighbours", "" if chosen.n_neighbors is None else f"{chosen.n_neighbors} of {chosen.rank} landmarks a row"),
        ("kernel matrix", "" if chosen.n_neighbors is not None else f"{chosen.gram}{rank} ({chosen.gram_reason})"),
        ("approximation", "" if chosen.error is None else str(chosen.error)),
        ("eigenvalues", f"{shown}, …" if len(values) > 8 else shown),
    )
    rows = f"{chosen.n_rows} rows"
    if sizes is not None and sum(sizes) != chosen.n_rows:
        rows = f"{sum(sizes)} rows, {chosen.n_rows} distinct"
    return Summary(f"{subject.kind} of {rows}", tuple((name, text) for name, text in lines if text))


def _sizes(sizes: Sequence[int]) -> str:
    total = max(sum(sizes), 1)
    named = [f"{j}: {size} rows ({percent(size / total)})" for j, size in enumerate(sizes[:MOST_SIZES])]
    return ", ".join([*named, f"{len(sizes) - MOST_SIZES} more"] if len(sizes) > MOST_SIZES else named)


def _number(subject: Subject) -> str:
    """Why there are so many clusters."""
    if subject.counted is not None:
        return subject.counted.explanation
    if subject.asked == subject.n_clusters:
        return "as asked for"
    return f"{subject.n_clusters} found, {subject.asked} asked for"
