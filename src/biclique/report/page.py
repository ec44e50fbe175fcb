"""One self-contained page: no network, no code but its own, and all names from data escaped."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files

import numpy as np

from biclique.report.charts import count_chart, effect_bar, eigenvalue_chart, histogram, mark, share_bar
from biclique.report.gather import Cluster, Difference, ReportData
from biclique.report.map_data import LEVELS_TEXT, NAMED, map_data, order_text
from biclique.report.markup import Markup, element, escaped, fill, joined, json_text, name_of, shown
from biclique.report.rows import FAINT, HARD, LEAST_POINTS, MOST_POINTS, UNSURE
from biclique.report.sentence import percent
from biclique.report.shown_columns import YEAR
from biclique.report.summary import summary_of

STABLE = 0.85
"""A stability from which on Hennig calls a cluster stable."""

DISSOLVED = 0.6
"""A stability below which Hennig calls a cluster dissolved."""

MOST_CLUSTERS = 100
"""Clusters that tables and cards show, the largest ones."""


def make_page(data: ReportData) -> str:
    """The page as text."""
    assets = files("biclique.report") / "assets"
    template, style, script = ((assets / name).read_text("utf-8") for name in ("page.html", "page.css", "map.js"))
    pieces = {
        "policy": _policy(style, script),
        "title": Markup(escaped(shown(data.title))),
        "style": Markup(style),
        "script": Markup(script),
        "data": json_text(map_data(data)),
        "sentence": Markup(escaped(data.sentence)),
        "about": _about(data),
        "notes": _notes(data),
        "controls": _controls(data),
        "legend": _legend(data),
        "clusters": _cluster_table(data),
        "origin": Markup(escaped(_origin(data))),
        "apart": joined(_card(one, data.n_rows, data.n_columns) for one in largest(data)),
        "sure": _sure(data),
        "selection": _selection(data),
        "orders": _orders(data),
        "similarities": _similarities(data),
        "eigenvalues": _eigenvalues(data),
        "repeat": _repeat(data),
    }
    return fill(template, pieces)


def _policy(style: str, script: str) -> Markup:
    """What the page may do: run the one script and apply the one style sheet in it, and nothing else."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    return Markup(
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


# The map


def largest(data: ReportData) -> list[Cluster]:
    """The largest clusters, in the order of their numbers."""
    kept = sorted(data.clusters, key=lambda one: (-one.rows, one.number))[:MOST_CLUSTERS]
    return sorted(kept, key=lambda one: one.number)


def _controls(data: ReportData) -> Markup:
    views = [element("option", view.name, value=str(j)) for j, view in enumerate(data.views)]
    colours = [element("option", "cluster", value="cluster"), element("option", "probability", value="sure")]
    if data.columns:
        columns = [element("option", shown(one.name, LEVELS_TEXT), value=str(j)) for j, one in enumerate(data.columns)]
        colours.append(element("optgroup", *columns, label="columns that separate most"))
    chosen = [
        element("option", "no rows", value=""),
        *(element("option", f"cluster {one.number}", value=str(one.number)) for one in largest(data)),
        element("option", "rows that fit nowhere well", value="nowhere"),
    ]
    parts = [
        element("label", "Places ", element("select", *views, id="view"), hidden=len(views) < 2),
        element("label", "Colour ", element("select", *colours, id="colour")),
        element("label", "Select ", element("select", *chosen, id="chosen")),
    ]
    path = data.sampled.path
    if path is not None:
        own = path.orders.index(data.subject.fitted.chosen.order)
        slider = element(
            "input",
            type="range",
            id="order",
            min="0",
            max=str(len(path.orders) - 1),
            step="1",
            value=str(own),
            aria_describedby="order-note",
        )
        parts.append(
            element("label", "Order ", element("output", order_text(path.orders[own]), id="order-value"), slider)
        )
    return joined(parts)


def _legend(data: ReportData) -> Markup:
    return joined(
        element("li", mark(one.number), f" {one.number} ", element("span", f"({one.rows:,})", class_="faded"))
        for one in largest(data)
    )


# Words and tables


def _about(data: ReportData) -> Markup:
    size = f"{data.n_rows:,} rows"
    if data.n_columns:
        size += f" in {data.n_columns:,} {'column' if data.n_columns == 1 else 'columns'}"
    thin = ""
    if len(data.drawn) < data.n_rows:
        least = min(LEAST_POINTS, MOST_POINTS // data.subject.n_clusters)
        thin = (
            f" The map draws {len(data.drawn):,} of them: of every cluster at least {least} rows, or all if it has "
            "fewer, so small clusters look larger than they are. Numbers in tables count all rows."
        )
    if len(data.clusters) > MOST_CLUSTERS:
        thin += f" Tables show the {MOST_CLUSTERS} largest of {len(data.clusters):,} clusters."
    return escaped(f"{size}.{thin}")


def _notes(data: ReportData) -> Markup:
    lines = [element("li", shown(note, 600)) for note in data.notes]
    return element("ul", *lines, class_="notes") if lines else Markup("")


def _cluster_table(data: ReportData) -> Markup:
    head = {
        "Cluster": None,
        "Rows": "number",
        "Share": "share",
        "Sure": "number",
        "Fit nowhere well": "number",
        "Found again": None,
    }
    rows = []
    for one in largest(data):
        share = one.rows / data.n_rows
        cells = [
            joined([mark(one.number), f" {one.number}"]),
            f"{one.rows:,}",
            element("span", share_bar(share, one.number), percent(share)),
            f"{one.sure:.2f}",
            f"{one.nowhere:,}",
            stability_text(one.stability),
        ]
        rows.append(cells)
    return _table(head, rows)


def _table(head: Mapping[str, str | None], rows: Sequence[Sequence[object]]) -> Markup:
    """A table with the class of each column; the first cell of a row is its head."""
    titles = [element("th", text, scope="col", class_=kind) for text, kind in head.items()]
    lines = [
        element(
            "tr",
            element("th", first, scope="row"),
            *(element("td", cell, class_=kind) for cell, kind in zip(cells, list(head.values())[1:], strict=True)),
        )
        for first, *cells in rows
    ]
    return element("table", element("thead", element("tr", *titles)), element("tbody", *lines))


def stability_text(stability: float | None) -> str:
    """``0.93, stable``."""
    if stability is None:
        return "not computed"
    word = "stable" if stability >= STABLE else "not stable" if stability < DISSOLVED else "fairly stable"
    return f"{stability:.2f}, {word}"


def _origin(data: ReportData) -> str:
    return f"Means of the cluster, means of the rest in brackets. {data.origin}" if data.n_columns else data.origin


def _card(one: Cluster, n_rows: int, n_columns: int) -> Markup:
    nothing = "No column differs." if n_columns else "There are no columns to compare: give some as table."
    lines = [_difference(difference) for difference in one.differences]
    body = element("table", element("tbody", *lines)) if lines else element("p", nothing, class_="faded")
    typical = Markup("")
    if one.typical:
        names = [part for name in one.typical for part in (", ", name_of(name, NAMED))][1:]
        typical = element("p", "Typical: ", *names, class_="faded")
    return element(
        "article",
        element("h3", mark(one.number), f" Cluster {one.number}"),
        element("p", f"{one.rows:,} rows, {percent(one.rows / max(n_rows, 1))}", class_="faded"),
        body,
        typical,
    )


def _difference(one: Difference) -> Markup:
    if one.level is None:
        what = name_of(one.column, LEVELS_TEXT)
        text = month_text if one.column.endswith(YEAR) else number_text
        numbers = f"{text(one.own)} (rest {text(one.rest)})"
    else:
        what = joined([name_of(one.column, NAMED), " = ", name_of(one.level, NAMED)])
        numbers = f"{percent(one.own)} (rest {percent(one.rest)})"
    if not one.used:
        what = joined([what, " ", element("span", "(not used)", class_="faded")])
    size = f"{one.effect:+.1f} SD" if np.isfinite(one.effect) else "every row"
    return element(
        "tr",
        element("th", what, scope="row"),
        element("td", effect_bar(one.effect), class_="wide"),
        element("td", numbers, element("span", size, class_="size")),
    )


def number_text(value: float) -> str:
    """Three digits, as people write them."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
        text = f"{value:,.{min(digits, 6)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.2e}"


def month_text(year: float) -> str:
    """2024.5 is 2024-07."""
    return f"{math.floor(year)}-{math.floor(year % 1 * 12) + 1:02d}" if math.isfinite(year) else number_text(year)


def _sure(data: ReportData) -> Markup:
    best = data.facts.best
    title = f"Probabilities of {data.n_rows:,} rows: median {np.median(best):.2f}."
    chart = histogram(best, title, "probability of a row's own cluster")
    lines = []
    for a, b, share in data.facts.hard_pairs()[:10]:
        text = f" {b}: about {percent(share)} of their rows may belong to the other"
        lines.append(element("li", mark(a), f" {a} and ", mark(b), text))
    words = element("ul", *lines, class_="pairs")
    if not lines:
        words = element("p", f"No two clusters share {percent(HARD)} of their rows or more.")
    unsure, faint, nowhere = (int(rows.sum()) for rows in (best < UNSURE, data.facts.faint, data.facts.nowhere))
    counts = (
        f"Rows without a cluster of probability {UNSURE:g} or more: {unsure:,}. Rows with less than {percent(FAINT)} "
        f"of the similarity that is usual in their cluster: {faint:,}. These fit nowhere well: {nowhere:,}."
    )
    return joined([chart, element("h3", "Hard to tell apart"), words, element("p", counts)])


def _selection(data: ReportData) -> Markup:
    found = data.subject.counted
    if found is None:
        return Markup("")
    parts = [element("p", shown(found.explanation, 2000))]
    if found.counted:
        words = "The large mark is the choice. Open marks cannot be chosen: they have a cluster that is too small."
        parts += [count_chart(found), element("p", words, class_="faded")]
    if found.runner_up is not None:
        margin = found.margin or 0.0
        word = "lower" if margin > 0 else "higher"
        beside = f", with a stability that is {abs(margin):.3f} {word}" if margin else ""
        parts.append(element("p", f"The next best number is {found.runner_up}{beside}."))
    title = element("h2", "How the number of clusters was chosen", id="h-selection")
    return element("section", title, *parts, aria_labelledby="h-selection")


def _orders(data: ReportData) -> Markup:
    path = data.sampled.path
    if path is None:
        return Markup("")
    own = data.subject.fitted.chosen.order
    rows = []
    for order, agreed, sizes in zip(path.orders, path.agreement, path.sizes, strict=True):
        name = f"{order_text(order)} (this model)" if order == own else order_text(order)
        rows.append([name, f"{agreed:.2f}", ", ".join(map(str, sizes[:30])) + (", …" if len(sizes) > 30 else "")])
    table = _table({"Order": None, "Same as this model": "number", "Sizes of clusters": None}, rows)
    which = f"{len(data.places):,} of the rows" if len(data.places) < data.n_rows else "the rows"
    words = element(
        "p",
        f"The order says how much rows with few neighbours count: higher orders stop them from taking a cluster of "
        f"their own. Here {which} are clustered anew at every order, each row counted once. "
        "1 means the same clusters. The slider above the map shows them.",
    )
    return joined([words, element("div", table, class_="scroll")])


def _similarities(data: ReportData) -> Markup:
    if data.sampled.similarities is None:
        return element("p", shown(f"No picture of similarities: {data.sampled.reason}.", 600))
    which = f"{len(data.places):,} drawn rows" if len(data.places) < data.n_rows else "all rows"
    shown_clusters = len(np.unique(data.sampled.similarities.clusters))
    if shown_clusters < len(data.clusters):
        which += f", of the {shown_clusters} largest clusters among them"
    words = element(
        "p",
        f"Similarities of {which}, ordered by cluster. Filled squares along the diagonal are clusters; filled patches "
        "beside it are clusters that are like each other.",
    )
    return joined([words, element("canvas", id="matrix", role="img", aria_label="Similarities ordered by cluster")])


def _eigenvalues(data: ReportData) -> Markup:
    values = data.subject.fitted.eigenvalues
    if not len(values):
        return element("p", "One cluster has no eigenvalues to show.")
    words = element(
        "p",
        "Each says how well one more group can be told apart: near 1 the groups hardly touch, near 0 there is none.",
    )
    return joined([words, eigenvalue_chart(values)])


def _repeat(data: ReportData) -> Markup:
    decided = summary_of(data.subject, data.facts.sizes.tolist()).lines
    settings = [(name, repr(value)) for name, value in data.subject.parameters.items()]
    versions = ", ".join(f"{name} {number}" for name, number in data.versions.items())
    return joined(
        [
            element("pre", shown(data.command, 4000), id="command"),
            element("button", "Copy", type="button", id="copy-command"),
            element("h3", "What was decided"),
            _pairs(decided),
            element("h3", "Parameters that are not the defaults"),
            _pairs(settings),
            element("p", shown(versions, 400), class_="faded"),
        ]
    )


def _pairs(lines: Sequence[tuple[str, str]]) -> Markup:
    """A table of names and what they are."""
    rows = [element("tr", element("th", name, scope="row"), element("td", shown(text, 600))) for name, text in lines]
    return element("table", element("tbody", *rows))
