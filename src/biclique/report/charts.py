"""Small charts as SVG: marks of clusters, bars, a curve with error bars, a histogram, eigenvalues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from biclique._typing import FloatArray
from biclique.report.markup import Markup, element
from biclique.selection import CountResult

COLOURS = 7
"""Cluster j has colour j mod 7."""

SHAPES = 5
"""Cluster j has shape j mod 5: 35 clusters look different, neighbours in colour and shape."""

POLYGONS = {1: "2,2 14,2 14,14 2,14", 2: "8,1 15,14 1,14", 3: "8,0.5 15.5,8 8,15.5 0.5,8", 4: "1,2 15,2 8,15"}
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


def distribution(shares: FloatArray, cluster: int | None) -> Markup:
    """Bars side by side, the highest as high as the picture: how one column is distributed."""
    class_ = "plain" if cluster is None else f"c{cluster % COLOURS}"
    heights = np.ceil(10 * shares / (shares.max(initial=0.0) or 1.0)).astype(int)
    bars = "".join(f"M{4 * j} 10v-{height}h3v{height}" for j, height in enumerate(heights.tolist()) if height)
    shape = {"viewBox": f"0 0 {4 * len(heights) - 1} 10", "preserveAspectRatio": "none"}
    return element("svg", element("path", d=bars, class_=class_), **shape, class_="spread", aria_hidden="true")


def _text(x: float, y: float, text: str, anchor: str = "middle") -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor)


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


@dataclass(frozen=True)
class Bar:
    """A bar of a chart."""

    height: float
    title: str  # what it shows, in words
    kind: str = "plain"
    error: float = 0.0  # its standard error


def bar_chart(
    bars: Sequence[Bar], title: str, labels: tuple[str, str], ticks: Mapping[float, str], top: float
) -> Markup:
    """Bars from zero, side by side; ``ticks`` are texts below places, 0 the middle of the first bar."""
    base, wide = min(0.0, *(bar.height - bar.error for bar in bars)), (WIDTH - LEFT - RIGHT) / len(bars)
    floor = HEIGHT - BOTTOM

    def across(place: float) -> float:
        return LEFT + (place + 0.5) * wide

    def up(value: float) -> float:
        return floor - (value - base) / (top - base) * (floor - TOP)

    parts = [_line(LEFT, up(y), WIDTH - RIGHT, up(y), "grid") for y in (top / 2, top)]
    parts += [_text(LEFT - 6, up(y) + 4, f"{y:.2g}", "end") for y in (0.0, top / 2, top)]
    parts += [_text(across(place), floor + 15, text) for place, text in ticks.items()]
    for j, bar in enumerate(bars):
        x, y, zero = across(j), up(bar.height), up(0.0)
        shape = {"x": x - 0.42 * wide, "y": min(y, zero), "width": 0.84 * wide, "height": abs(zero - y)}
        parts.append(element("rect", element("title", bar.title), **shape, class_=bar.kind))
        if bar.error:
            parts.append(_line(x, up(bar.height - bar.error), x, up(bar.height + bar.error), "error"))
    return element(
        "svg",
        element("title", title),
        *parts,
        _line(LEFT, up(0.0), WIDTH - RIGHT, up(0.0), "axis"),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, labels[0]),
        element("g", _text(0, 0, labels[1]), transform=f"translate(11 {(TOP + floor) / 2:g}) rotate(-90)"),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        class_="chart",
        role="img",
    )


def histogram(values: FloatArray, label: str) -> Markup:
    """Twenty bars from 0 to 1, heights as shares of all."""
    counts = np.histogram(values, bins=20, range=(0.0, 1.0))[0]
    bars = [
        Bar(count / len(values), f"{j / 20:.2f} to {(j + 1) / 20:.2f}: {count} rows")
        for j, count in enumerate(counts.tolist())
    ]
    title = f"{len(values):,} rows: median {np.median(values):.2f}."
    ticks = {20 * share - 0.5: f"{share:g}" for share in (0.0, 0.25, 0.5, 0.75, 1.0)}
    return bar_chart(bars, title, (label, "share of rows"), ticks, max(bar.height for bar in bars))


def eigenvalue_chart(values: FloatArray) -> Markup:
    """One bar an eigenvalue; one cluster has none."""
    if not len(values):
        return Markup("")
    bars = [Bar(value, f"{value:.4f}") for value in values.tolist()]
    ticks = {float(j): str(j + 1) for j in range(0, len(values), max(1, len(values) // 10))}
    title = f"{len(values)} eigenvalues: {', '.join(bar.title for bar in bars[:20])}"
    return bar_chart(bars, title, ("eigenvalue", "value"), ticks, max(1.0, float(values.max())))


def count_chart(found: CountResult) -> Markup:
    """Stability over the number of clusters, the choice marked."""
    bars = []
    for one in found.counted:
        title = f"{one.n_clusters} clusters: stability {one.stability:.3f} ± {one.standard_error:.3f}"
        if not one.allowed:
            title += "; fewer than the connected components"
        kind = "plain" if one.allowed else "ruled-out"
        kind = "chosen" if one.n_clusters == found.n_clusters else kind
        bars.append(Bar(one.stability, title, kind, one.standard_error))
    k = [one.n_clusters for one in found.counted]
    ticks = {float(j): str(k[j]) for j in range(0, len(k), max(1, len(k) // 10))}
    words = f"Stability of {k[0]} to {k[-1]} clusters. Chosen: {found.n_clusters}."
    return bar_chart(bars, words, ("number of clusters", "stability"), ticks, 1.0)
