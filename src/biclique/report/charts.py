"""Small charts as SVG: marks of clusters, bars, a curve with error bars, a histogram, eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from biclique._typing import FloatArray
from biclique.report.markup import Markup, element
from biclique.selection import CountResult

COLOURS = 7
"""Cluster j has colour j mod 7."""

SHAPES = 5
"""Cluster j has shape j mod 5: 35 clusters look different, neighbours in colour and shape."""

POLYGONS = {
    1: "2,2 14,2 14,14 2,14",
    2: "8,1 15,14 1,14",
    3: "8,0.5 15.5,8 8,15.5 0.5,8",
    4: "1,2 15,2 8,15",
}
"""Shapes in a square of 16; shape 0 is a circle. ``map.js`` draws the same."""

WIDTH = 420.0
"""Of a chart."""

HEIGHT = 190.0
"""Of a chart."""

LEFT, RIGHT, TOP, BOTTOM = 46.0, 12.0, 12.0, 34.0
"""Margins of a chart."""


def mark(cluster: int, class_: str = "mark") -> Markup:
    """The mark of a cluster: its colour and shape."""
    kind = f"c{cluster % COLOURS}"
    shape = cluster % SHAPES
    if shape == 0:
        drawn = element("circle", cx="8", cy="8", r="6.5", class_=kind)
    else:
        drawn = element("polygon", points=POLYGONS[shape], class_=kind)
    return element("svg", drawn, viewBox="0 0 16 16", class_=class_, aria_hidden="true", focusable="false")


def _bar(*pieces: tuple[float, float, str]) -> Markup:
    """Rectangles in a bar of length 100: where each starts, its length and its class."""
    rectangles = [
        element("rect", x=start, y="0", width=length, height="10", class_=kind)
        for start, length, kind in ((0.0, 100.0, "ground"), *pieces)
    ]
    shape = {"viewBox": "0 0 100 10", "preserveAspectRatio": "none"}
    return element("svg", *rectangles, **shape, class_="bar", aria_hidden="true", focusable="false")


def share_bar(share: float, cluster: int) -> Markup:
    """A bar for a share from 0 to 1."""
    return _bar((0.0, 100.0 * min(max(share, 0.0), 1.0), f"c{cluster % COLOURS}"))


MOST_EFFECT = 3.0
"""Standard deviations at which the bar of a difference ends."""


def effect_bar(effect: float) -> Markup:
    """A bar from the middle, to the right for more, to the left for less."""
    length = 50.0 * min(abs(effect), MOST_EFFECT) / MOST_EFFECT
    side = (50.0, length, "more") if effect > 0 else (50.0 - length, length, "less")
    return _bar(side, (49.5, 1.0, "zero"))


class Frame:
    """Axes of a chart: places from values, and the lines around."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x, self.y = _opened(x), _opened(y)

    def across(self, value: float) -> float:
        return float(LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT))

    def up(self, value: float) -> float:
        return float(HEIGHT - BOTTOM - (value - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - TOP - BOTTOM))

    def drawn(
        self,
        parts: Sequence[Markup],
        title: str,
        labels: tuple[str, str],
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
    ) -> Markup:
        """The chart; ``title`` says in words what it shows."""
        low, left = HEIGHT - BOTTOM, LEFT
        turned = f"translate(11 {(TOP + low) / 2:g}) rotate(-90)"
        return element(
            "svg",
            element("title", title),
            *(element("line", x1=left, y1=self.up(y), x2=WIDTH - RIGHT, y2=self.up(y), class_="grid") for y in y_ticks),
            *(_text(left - 6, self.up(y) + 4, f"{y:g}", "end") for y in y_ticks),
            *(_text(self.across(x), low + 15, f"{x:g}", "middle") for x in x_ticks),
            element("line", x1=left, y1=low, x2=WIDTH - RIGHT, y2=low, class_="axis"),
            _text((left + WIDTH - RIGHT) / 2, HEIGHT - 4, labels[0], "middle"),
            element("text", labels[1], x="0", y="0", text_anchor="middle", transform=turned),
            *parts,
            viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
            class_="chart",
            role="img",
        )


def _opened(ends: tuple[float, float]) -> tuple[float, float]:
    return ends if ends[1] > ends[0] else (ends[0] - 0.5, ends[0] + 0.5)


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor)


def histogram(values: FloatArray, title: str, label: str) -> Markup:
    """Twenty bars from 0 to 1, heights as shares of all."""
    counts, edges = np.histogram(values, bins=20, range=(0.0, 1.0))
    shares = counts / max(len(values), 1)
    most = float(shares.max(initial=0.0)) or 1.0
    frame = Frame((0.0, 1.0), (0.0, most))
    bars = [
        element(
            "rect",
            element("title", f"{low:.2f} to {high:.2f}: {count} rows"),
            x=frame.across(low) + 0.5,
            y=frame.up(share),
            width=frame.across(high) - frame.across(low) - 1.0,
            height=frame.up(0.0) - frame.up(share),
            class_="plain",
        )
        for low, high, share, count in zip(edges[:-1], edges[1:], shares, counts, strict=True)
        if count
    ]
    ticks = [0.0, float(f"{most / 2:.2g}"), float(f"{most:.2g}")]
    return frame.drawn(bars, title, (label, "share of rows"), (0.0, 0.25, 0.5, 0.75, 1.0), ticks)


def eigenvalue_chart(values: FloatArray) -> Markup:
    """One stem an eigenvalue."""
    low = min(0.0, float(values.min(initial=0.0)))
    frame = Frame((0.5, len(values) + 0.5), (low, max(1.0, float(values.max(initial=1.0)))))
    parts = []
    for number, value in enumerate(values.tolist(), start=1):
        x = frame.across(number)
        parts += [
            element("line", x1=x, y1=frame.up(0.0), x2=x, y2=frame.up(value), class_="stem"),
            element("circle", element("title", f"{value:.4f}"), cx=x, cy=frame.up(value), r="4", class_="dot"),
        ]
    step = max(1, len(values) // 10)
    title = f"{len(values)} eigenvalues: {', '.join(f'{v:.3f}' for v in values[:20].tolist())}"
    return frame.drawn(parts, title, ("eigenvalue", "value"), range(1, len(values) + 1, step), (0.0, 0.5, 1.0))


def count_chart(found: CountResult) -> Markup:
    """Stability over the number of clusters, the choice marked."""
    shown_counts = found.counted
    k = [one.n_clusters for one in shown_counts]
    low = min(0.0, *(one.stability - one.standard_error for one in shown_counts))
    frame = Frame((min(k) - 0.5, max(k) + 0.5), (low, 1.0))
    line = " ".join(f"{frame.across(one.n_clusters):.1f},{frame.up(one.stability):.1f}" for one in shown_counts)
    parts = [element("polyline", points=line, class_="curve")]
    for one in shown_counts:
        x, y = frame.across(one.n_clusters), frame.up(one.stability)
        ends = frame.up(one.stability - one.standard_error), frame.up(one.stability + one.standard_error)
        best = one.n_clusters == found.n_clusters
        kind = "chosen" if best else "dot" if one.allowed else "ruled-out"
        title = f"{one.n_clusters} clusters: stability {one.stability:.3f} ± {one.standard_error:.3f}"
        if not one.allowed:
            title += f"; too small a cluster: {one.smallest:g} rows, {one.needed:.1f} needed"
        parts += [
            element("line", x1=x, y1=ends[0], x2=x, y2=ends[1], class_="error"),
            element("circle", element("title", title), cx=x, cy=y, r="7" if best else "4", class_=kind),
        ]
    step = max(1, len(k) // 10)
    words = f"Stability of {min(k)} to {max(k)} clusters. Chosen: {found.n_clusters}."
    return frame.drawn(parts, words, ("number of clusters", "stability"), k[::step], (0.0, 0.5, 1.0))
