"""One self-contained page: no network, no code but its own, and all names from data escaped."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files

import numpy as np

from biclique.report.charts import (
    COLOURS,
    count_chart,
    distribution,
    effect_bar,
    eigenvalue_chart,
    histogram,
    mark,
    share_bar,
)
from biclique.report.gather import Cluster, Difference, ReportData, Shown
from biclique.report.map_data import LEVEL, LEVELS_TEXT, NAMED, map_data, order_text
from biclique.report.markup import Markup, element, fill, joined, json_text, name_of, shown, table
from biclique.report.rows import FAINT, HARD, LEAST_POINTS, MOST_POINTS, UNSURE
from biclique.report.sentence import first_sentence, percent, stability_text, sure_text, value_text
from biclique.report.summary import summary_of

MOST_CLUSTERS = 100
"""Clusters that tables and cards show, the largest ones."""

MOST_CELLS = 400
"""Means that are shown: columns times clusters."""

LEAST_COLUMNS = 4
"""Columns whose means are shown however many clusters there are."""

SIDE_BY_SIDE = 8
"""Clusters whose means stand side by side; the means of more are wrapped."""

MOST_LEVELS = 12
"""Levels of a category that have a bar of their own, the most frequent ones."""

PACKAGES = ("numpy", "scipy", "scikit-learn")


def make_page(data: ReportData) -> str:
    """The page as text."""
    assets = files("biclique.report") / "assets"
    template, style, script = ((assets / name).read_text("utf-8") for name in ("page.html", "page.css", "map.js"))
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    pieces = {
        "policy": Markup(
            f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        "title": shown(data.title),
        "style": Markup(style),
        "script": Markup(script),
        "data": json_text(map_data(data)),
        "sentence": first_sentence(data.subject, data.facts),
        "about": _about(data),
        "notes": _list((shown(note, 600) for note in data.notes), "notes") if data.notes else "",
        "controls": _controls(data),
        "legend": _legend(data),
        "clusters": _cluster_table(data),
        "sections": _sections(data),
    }
    return fill(template, pieces)


def largest(data: ReportData) -> list[int]:
    """The numbers of the largest clusters, ascending."""
    return sorted(np.argsort(-data.facts.sizes, kind="stable")[:MOST_CLUSTERS].tolist())


def labelled(cluster: int) -> Markup:
    """The mark and the number of a cluster, and a place for the name that a reader gives it."""
    return joined([mark(cluster), f" {cluster}", element("bdi", data_name=str(cluster))])


def _list(items: Iterable[object], class_: str) -> Markup:
    return element("ul", *(element("li", item) for item in items), class_=class_)


def _faded(*words: object) -> Markup:
    return element("p", *words, class_="faded")


def _sections(data: ReportData) -> Markup:
    """All below the clusters; a section with nothing to say is left out."""
    sections = {
        "means": ("What is in each cluster", _means(data)),
        "apart": ("What sets each cluster apart", _cards(data)),
        "sure": ("How sure", _sure(data)),
        "selection": ("How the number of clusters was chosen", _selection(data)),
        "orders": ("Other orders", _orders(data)),
        "similar": ("Similarities", _similarities(data)),
        "values": ("Eigenvalues", _eigenvalues(data)),
        "repeat": ("To repeat this", _repeat(data)),
    }
    return joined(
        element("section", element("h2", title, id=f"h-{name}"), *parts, aria_labelledby=f"h-{name}")
        for name, (title, parts) in sections.items()
        if parts
    )


# Above: what the page is about, and the map


def _about(data: ReportData) -> str:
    n, k = data.facts.n_rows, len(data.clusters)
    words = f"{n:,} rows"
    if data.n_columns:
        words += f" in {data.n_columns:,} {'column' if data.n_columns == 1 else 'columns'}"
    words += "."
    if len(data.drawn) < n:
        least = min(LEAST_POINTS, MOST_POINTS // k)
        words += (
            f" The map draws {len(data.drawn):,} of them: of every cluster at least {least} rows, or all if it has "
            "fewer, so small clusters look larger than they are. Numbers in tables count all rows."
        )
    if k > MOST_CLUSTERS:
        words += f" Tables show the {MOST_CLUSTERS} largest of {k:,} clusters."
    return words


def _legend(data: ReportData) -> Markup:
    return joined(
        element("li", labelled(j), " ", element("span", f"({data.facts.sizes[j]:,})", class_="faded"), data_row=str(j))
        for j in largest(data)
    )


def _controls(data: ReportData) -> Markup:
    views = [element("option", view.name, value=str(j)) for j, view in enumerate(data.views)]
    colours = [element("option", "cluster", value="cluster"), element("option", "probability", value="sure")]
    if data.columns:
        columns = [element("option", shown(one.name, LEVELS_TEXT), value=str(j)) for j, one in enumerate(data.columns)]
        colours.append(element("optgroup", *columns, label="columns that separate most"))
    chosen = [element("option", "no rows", value="")]
    chosen += [element("option", f"cluster {j}", value=str(j)) for j in largest(data)]
    chosen.append(element("option", "rows that fit nowhere well", value="nowhere"))
    parts = [
        element("label", "Places ", element("select", *views, id="view"), hidden=len(views) < 2),
        element("label", "Colour ", element("select", *colours, id="colour")),
        element("label", "Select ", element("select", *chosen, id="chosen")),
    ]
    path = data.sampled.path
    if path is not None:
        most = str(len(path.orders) - 1)
        ends = {"min": "0", "max": most, "step": "1", "value": str(path.own)}
        slider = element("input", type="range", id="order", aria_describedby="order-note", **ends)
        own = element("output", order_text(path.orders[path.own]), id="order-value")
        parts.append(element("label", "Order ", own, slider))
    return joined(parts)


def _cluster_table(data: ReportData) -> Markup:
    head = ("Cluster", "Name", "Rows", "Share", "Sure", "Fit nowhere well", "Found again")
    facts = data.facts
    lost = np.bincount(facts.labels, facts.nowhere, len(data.clusters))
    rows = []
    for j in largest(data):
        share = facts.sizes[j] / facts.n_rows
        naming = {"maxlength": "40", "data_cluster": str(j), "aria_label": f"Name of cluster {j}"}
        rows.append(
            [
                joined([mark(j), f" {j}"]),
                element("input", type="text", class_="naming", placeholder="give it a name", disabled=True, **naming),
                f"{facts.sizes[j]:,}",
                element("span", share_bar(share, j), percent(share), class_="share"),
                sure_text(float(facts.sure[j])),
                f"{int(lost[j]):,}",
                stability_text(data.clusters[j].stability),
            ]
        )
    return table(head, rows, "stack")


# Means, and what sets clusters apart


def _means(data: ReportData) -> list[Markup]:
    kept = largest(data)
    columns = data.columns[: max(LEAST_COLUMNS, MOST_CELLS // (len(kept) + 1))]
    if not columns:
        return []
    names = [*(labelled(j) for j in kept), Markup("all rows")]
    places = [*kept, len(data.clusters)]
    rows = [
        [
            name_of(one.name, LEVELS_TEXT),
            *(
                joined([element("span", name, class_="label"), _cell(one, place, place == len(data.clusters))])
                for name, place in zip(names, places, strict=True)
            ),
        ]
        for one in columns
    ]
    which = "" if len(columns) == data.n_columns else f" of the {len(columns)} columns that separate the clusters most"
    words = (
        f"Means{which}, and how the values are distributed: all pictures of a row have one scale. Of a category: the "
        "most frequent level, and a bar for each level."
    )
    wide = "means many" if len(kept) > SIDE_BY_SIDE else "means"
    return [_faded(words), element("div", table(["", *names], rows, wide), class_="scroll")]


def _cell(one: Shown, place: int, all_rows: bool) -> Markup:
    """The mean and the distribution of one column in one cluster, or in all rows."""
    shares, kind = one.shares[place], "plain" if all_rows else f"c{place % COLOURS}"
    if one.means is not None:
        text = value_text(one.name, float(one.means[place]))
        return joined([text, distribution(shares, kind)])
    often = np.sort(np.argsort(-one.shares[-1], kind="stable")[:MOST_LEVELS])
    if not shares.any():
        return Markup("missing")
    level = shown(one.coded.values[int(shares.argmax())], LEVEL)
    words = joined([element("bdi", level), f" {percent(float(shares.max()))}"])
    return joined([words, distribution(shares[often], kind)])


def _cards(data: ReportData) -> list[Markup]:
    origin = f"Means of the cluster, means of the rest in brackets. {data.origin}" if data.n_columns else data.origin
    cards = [_card(data.clusters[j], data) for j in largest(data)]
    return [_faded(origin), element("div", *cards, class_="cards")]


def _card(one: Cluster, data: ReportData) -> Markup:
    size = int(data.facts.sizes[one.number])
    body = _faded("No column differs.")
    if not data.n_columns:
        body = _faded("There are no columns to compare: give some as table.")
    if one.differences:
        body = element("table", element("tbody", *(_difference(difference) for difference in one.differences)))
    names = [part for name in one.typical for part in (", ", name_of(name, NAMED))][1:]
    return element(
        "article",
        element("h3", mark(one.number), f" Cluster {one.number}", element("bdi", data_name=str(one.number))),
        _faded(f"{size:,} rows, {percent(size / data.facts.n_rows)}"),
        body,
        _faded("Typical: ", *names) if names else "",
    )


def _difference(one: Difference) -> Markup:
    if one.level is None:
        what: object = name_of(one.column, LEVELS_TEXT)
        numbers = f"{value_text(one.column, one.own)} (rest {value_text(one.column, one.rest)})"
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


# How sure, and what else was looked at


def _sure(data: ReportData) -> list[Markup]:
    facts = data.facts
    title = f"Probabilities of {facts.n_rows:,} rows: median {np.median(facts.best):.2f}."
    pairs = [
        joined([labelled(a), " and ", labelled(b), f": about {percent(share)} of their rows may belong to the other"])
        for a, b, share in facts.hard_pairs()[:10]
    ]
    unsure, faint, nowhere = (int(rows.sum()) for rows in (facts.best < UNSURE, facts.faint, facts.nowhere))
    counts = (
        f"Rows without a cluster of probability {UNSURE:g} or more: {unsure:,}. Rows with less than {percent(FAINT)} "
        f"of the similarity that is usual in their cluster: {faint:,}. These fit nowhere well: {nowhere:,}."
    )
    none = element("p", f"No two clusters share {percent(HARD)} of their rows or more.")
    return [
        histogram(facts.best, title, "probability of a row's own cluster"),
        element("h3", "Hard to tell apart"),
        _list(pairs, "pairs") if pairs else none,
        element("p", counts),
    ]


def _selection(data: ReportData) -> list[Markup]:
    found = data.subject.counted
    if found is None:
        return []
    parts = [element("p", shown(found.explanation, 2000))]
    if found.counted:
        words = "The large mark is the choice. Open marks cannot be chosen: they have a cluster that is too small."
        parts += [count_chart(found), _faded(words)]
    if found.runner_up is not None:
        margin = found.margin or 0.0
        word = "lower" if margin > 0 else "higher"
        beside = f", with a stability that is {abs(margin):.3f} {word}" if margin else ""
        parts.append(element("p", f"The next best number is {found.runner_up}{beside}."))
    return parts


def _orders(data: ReportData) -> list[Markup]:
    path = data.sampled.path
    if path is None:
        return []
    rows = []
    for j, order in enumerate(path.orders):
        name = f"{order_text(order)} (this model)" if j == path.own else order_text(order)
        sizes = np.bincount(path.labels[j], minlength=len(data.clusters)).tolist()
        listed = ", ".join(map(str, sizes[:30])) + (", …" if len(sizes) > 30 else "")
        rows.append([name, f"{path.agreement[j]:.2f}", listed])
    which = f"{len(data.places):,} of the rows" if len(data.places) < data.facts.n_rows else "the rows"
    words = (
        "The order says how much rows with few neighbours count: higher orders stop them from taking a cluster of "
        f"their own. Here {which} are clustered anew at every order, each row counted once. 1 means the same clusters. "
        "The slider above the map shows them."
    )
    return [element("p", words), table(("Order", "Same as this model", "Sizes of clusters"), rows, "stack")]


def _similarities(data: ReportData) -> list[Markup]:
    if data.sampled.similarities is None:
        return [element("p", shown(f"No picture of similarities: {data.sampled.reason}.", 600))]
    which = f"{len(data.places):,} drawn rows" if len(data.places) < data.facts.n_rows else "all rows"
    n_shown = len(np.unique(data.sampled.similarities.clusters))
    if n_shown < len(data.clusters):
        which += f", of the {n_shown} largest clusters among them"
    words = (
        f"Similarities of {which}, ordered by cluster. Filled squares along the diagonal are clusters; filled patches "
        "beside it are clusters that are like each other."
    )
    picture = element("canvas", id="matrix", role="img", aria_label="Similarities ordered by cluster")
    return [element("p", words), picture]


def _eigenvalues(data: ReportData) -> list[Markup]:
    values = data.subject.fitted.eigenvalues
    if not len(values):
        return [element("p", "One cluster has no eigenvalues to show.")]
    words = "Each says how well one more group can be told apart: near 1 the groups hardly touch, near 0 there is none."
    return [element("p", words), eigenvalue_chart(values)]


def _repeat(data: ReportData) -> list[Markup]:
    decided = summary_of(data.subject, data.facts.sizes.tolist()).lines
    settings = [(name, repr(value)) for name, value in data.subject.parameters.items()]
    versions = {"biclique": import_module("biclique").__version__, "Python": platform.python_version()}
    versions |= {name: version(name) for name in PACKAGES}
    return [
        element("pre", shown(data.command, 4000), id="command"),
        element("button", "Copy", type="button", id="copy-command"),
        element("h3", "What was decided"),
        _pairs(decided),
        element("h3", "Parameters that are not the defaults"),
        _pairs(settings),
        _faded(shown(", ".join(f"{name} {number}" for name, number in versions.items()), 400)),
    ]


def _pairs(lines: Sequence[tuple[str, str]]) -> Markup:
    """A table of names and what they are."""
    return table(("", ""), [(name, shown(text, 600)) for name, text in lines], "pairs-of-words")
