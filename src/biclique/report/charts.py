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

WIDTH, HEIGHT = 420.0, 190.0
"""Of a chart."""

LEFT, RIGHT, TOP, BOTTOM = 46.0, 12.0, 12.0, 34.0
"""Margins of a chart."""

MOST_EFFECT = 3.0
"""Standard deviations at which the bar of a difference ends."""


def mark(cluster: int) -> Markup:
    """The mark of a cluster: its colour and shape."""
    kind, polygon = f"c{cluster % COLOURS}", POLYGONS.get(cluster % SHAPES)
    drawn = element("circle", cx="8", cy="8", r="6.5", class_=kind)
    if polygon is not None:
        drawn = element("polygon", points=polygon, class_=kind)
    return element("svg", drawn, viewBox="0 0 16 16", class_="mark", aria_hidden="true", focusable="false")


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


def effect_bar(effect: float) -> Markup:
    """A bar from the middle, to the right for more, to the left for less."""
    length = 50.0 * min(abs(effect), MOST_EFFECT) / MOST_EFFECT
    side = (50.0, length, "more") if effect > 0 else (50.0 - length, length, "less")
    return _bar(side, (49.5, 1.0, "zero"))


def distribution(shares: FloatArray, class_: str) -> Markup:
    """Bars side by side, the highest as high as the picture: how one column is distributed."""
    heights = np.ceil(10 * shares / (shares.max(initial=0.0) or 1.0)).astype(int)
    bars = "".join(f"M{4 * j} 10v-{height}h3v{height}" for j, height in enumerate(heights.tolist()) if height)
    shape = {"viewBox": f"0 0 {4 * len(heights) - 1} 10", "preserveAspectRatio": "none"}
    return element("svg", element("path", d=bars, class_=class_), **shape, class_="spread", aria_hidden="true")


class Frame:
    """Axes of a chart: places from values, and the lines around."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x, self.y = (ends if ends[1] > ends[0] else (ends[0] - 0.5, ends[0] + 0.5) for ends in (x, y))

    def across(self, value: float) -> float:
        return float(LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT))

    def up(self, value: float) -> float:
        return float(HEIGHT - BOTTOM - (value - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - TOP - BOTTOM))

    def line(self, a: tuple[float, float], b: tuple[float, float], class_: str) -> Markup:
        """A line between two values."""
        return element(
            "line", x1=self.across(a[0]), y1=self.up(a[1]), x2=self.across(b[0]), y2=self.up(b[1]), class_=class_
        )

    def dot(self, x: float, y: float, title: str, class_: str, r: str = "4") -> Markup:
        """A mark at a value, with words."""
        return element("circle", element("title", title), cx=self.across(x), cy=self.up(y), r=r, class_=class_)

    def drawn(
        self,
        parts: Sequence[Markup],
        title: str,
        labels: tuple[str, str],
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
    ) -> Markup:
        """The chart; ``title`` says in words what it shows."""
        low, (first, last) = HEIGHT - BOTTOM, self.x
        turned = f"translate(11 {(TOP + low) / 2:g}) rotate(-90)"
        return element(
            "svg",
            element("title", title),
            *(self.line((first, y), (last, y), "grid") for y in y_ticks),
            *(_text(LEFT - 6, self.up(y) + 4, f"{y:g}", "end") for y in y_ticks),
            *(_text(self.across(x), low + 15, f"{x:g}", "middle") for x in x_ticks),
            self.line((first, self.y[0]), (last, self.y[0]), "axis"),
            _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, labels[0], "middle"),
            element("text", labels[1], x="0", y="0", text_anchor="middle", transform=turned),
            *parts,
            viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
            class_="chart",
            role="img",
        )


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
            element("title", f"{low:.2f} to {low + 0.05:.2f}: {count} rows"),
            x=frame.across(low) + 0.5,
            y=frame.up(share),
            width=frame.across(0.05) - frame.across(0.0) - 1.0,
            height=frame.up(0.0) - frame.up(share),
            class_="plain",
        )
        for low, share, count in zip(edges[:-1], shares, counts, strict=True)
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
        parts += [frame.line((number, 0.0), (number, value), "stem"), frame.dot(number, value, f"{value:.4f}", "dot")]
    numbers = range(1, len(values) + 1, max(1, len(values) // 10))
    title = f"{len(values)} eigenvalues: {', '.join(f'{v:.3f}' for v in values[:20].tolist())}"
    return frame.drawn(parts, title, ("eigenvalue", "value"), numbers, (0.0, 0.5, 1.0))


def count_chart(found: CountResult) -> Markup:
    """Stability over the number of clusters, the choice marked."""
    k = [one.n_clusters for one in found.counted]
    low = min(0.0, *(one.stability - one.standard_error for one in found.counted))
    frame = Frame((min(k) - 0.5, max(k) + 0.5), (low, 1.0))
    line = " ".join(f"{frame.across(one.n_clusters):.1f},{frame.up(one.stability):.1f}" for one in found.counted)
    parts = [element("polyline", points=line, class_="curve")]
    for one in found.counted:
        x, y, error = one.n_clusters, one.stability, one.standard_error
        title = f"{x} clusters: stability {y:.3f} ± {error:.3f}"
        if not one.allowed:
            title += f"; too small a cluster: {one.smallest:g} rows, {one.needed:.1f} needed"
        parts.append(frame.line((x, y - error), (x, y + error), "error"))
        if x == found.n_clusters:
            parts.append(frame.dot(x, y, title, "chosen", "7"))
        else:
            parts.append(frame.dot(x, y, title, "dot" if one.allowed else "ruled-out"))
    words = f"Stability of {min(k)} to {max(k)} clusters. Chosen: {found.n_clusters}."
    return frame.drawn(parts, words, ("number of clusters", "stability"), k[:: max(1, len(k) // 10)], (0.0, 0.5, 1.0))
