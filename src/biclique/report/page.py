"""One self-contained page: no network, no code but its own, and all names from data escaped."""

import base64
import hashlib
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from platform import python_version

import numpy as np

from biclique.report.charts import count_chart, distribution, effect_bar, eigenvalue_chart, histogram, mark, share_bar
from biclique.report.gather import Difference, ReportData, Shown
from biclique.report.map_data import LEVEL_LENGTHS, NAMED, map_data, order_text
from biclique.report.markup import Markup, element, fill, joined, json_text, name_of, shown, table
from biclique.report.rows import HARD, LEAST_POINTS, MOST_POINTS
from biclique.report.sentence import doubtful_text, first_sentence, percent, stability_text, value_text
from biclique.report.shown_columns import MISSING
from biclique.report.summary import summary_of

MOST_CLUSTERS = 100
"""Clusters that tables and cards show, the largest ones."""

MOST_CELLS = 400
"""Means that are shown: columns times clusters."""

SIDE_BY_SIDE = 8
"""Clusters whose means stand side by side; the means of more are wrapped."""

MOST_LEVELS = 12
"""Levels of a category that have a bar of their own, the most frequent ones."""

CERTAIN = 0.9999
"""No mean probability is shown as 100 %: it is an estimate."""

PACKAGES = ("numpy", "scipy", "scikit-learn")
"""Their versions are shown."""


def make_page(data: ReportData) -> str:
    """The page as text."""
    assets = files("biclique.report") / "assets"
    template, style, script = ((assets / name).read_text("utf-8") for name in ("page.html", "page.css", "map.js"))
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    versions = {"biclique": import_module("biclique").__version__, "Python": python_version()}
    versions |= {name: version(name) for name in PACKAGES}
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
        "clusters": _cluster_table(data),
        "means": _means(data),
        "origin": data.origin,
        "cards": joined(_card(j, data) for j in largest(data)),
        "histogram": histogram(data.facts.best, "probability of a row's own cluster"),
        "hard": _hard_pairs(data),
        "doubtful": doubtful_text(data.facts),
        "selection": _selection(data),
        "orders": _orders(data),
        "similarities": _similarities(data),
        "eigenvalues": eigenvalue_chart(data.subject.fitted.eigenvalues),
        "command": shown(data.command, 4000),
        "decided": _pairs(summary_of(data.subject, data.facts.sizes.tolist()).lines),
        "parameters": _pairs((name, repr(value)) for name, value in data.subject.parameters.items()),
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
    }
    return fill(template, pieces)


def largest(data: ReportData) -> list[int]:
    """The numbers of the largest clusters, ascending."""
    return sorted(np.argsort(-data.facts.sizes, kind="stable")[:MOST_CLUSTERS].tolist())


def labelled(cluster: int, word: str = "") -> Markup:
    """The mark and the number of a cluster, and a place for the name that a reader gives it."""
    return joined([mark(cluster), f"{word} {cluster}", element("bdi", data_name=str(cluster))])


def _list(items: Iterable[object], class_: str) -> Markup:
    return element("ul", *(element("li", item) for item in items), class_=class_)


def _faded(*words: object) -> Markup:
    return element("p", *words, class_="faded")


def _section(name: str, title: str, *parts: object) -> Markup:
    """A section that not every page has."""
    return element("section", element("h2", title, id=f"h-{name}"), *parts, aria_labelledby=f"h-{name}")


# Above: what the page is about, and the map


def _about(data: ReportData) -> str:
    n, k = data.facts.n_rows, len(data.facts.sizes)
    columns = f" in {data.n_columns:,} {'column' if data.n_columns == 1 else 'columns'}" if data.n_columns else ""
    words = f"{n:,} rows{columns}."
    if len(data.drawn) < n:
        least = min(LEAST_POINTS, MOST_POINTS // k)
        words += (
            f" The map draws {len(data.drawn):,} of them: of every cluster at least {least} rows, or all if it has "
            "fewer, so small clusters look larger than they are. Numbers in tables count all rows."
        )
    if k > MOST_CLUSTERS:
        words += f" Tables show the {MOST_CLUSTERS} largest of {k:,} clusters."
    return words


def _cluster_table(data: ReportData) -> Markup:
    head = ("Cluster", "Name", "Rows", "Share", "Sure", "Fit nowhere well", "Found again")
    facts, rows = data.facts, []
    lost = np.bincount(facts.labels, facts.nowhere, len(facts.sizes))
    for j in largest(data):
        share = facts.sizes[j] / facts.n_rows
        naming = {"maxlength": "40", "data_cluster": str(j), "aria_label": f"Name of cluster {j}"}
        rows.append(
            [
                labelled(j),
                element("input", type="text", class_="naming", placeholder="give it a name", disabled=True, **naming),
                f"{facts.sizes[j]:,}",
                element("span", share_bar(share, j), percent(share), class_="share"),
                percent(min(float(facts.sure[j]), CERTAIN)),
                f"{int(lost[j]):,}",
                stability_text(data.stability[j]),
            ]
        )
    return table(head, rows, "stack")


# Means, and what sets clusters apart


def _means(data: ReportData) -> Markup:
    kept, k = largest(data), len(data.facts.sizes)
    columns = data.columns[: MOST_CELLS // (len(kept) + 1)]
    if not columns:
        return Markup("")
    names = {j: labelled(j) for j in kept} | {k: Markup("all rows")}
    rows = []
    for one in columns:
        cells = [element("span", name, class_="label") + _cell(one, j, j == k) for j, name in names.items()]
        rows.append([name_of(one.coded.name, NAMED), *map(Markup, cells)])
    which = "" if len(columns) == data.n_columns else f" of the {len(columns)} columns that separate the clusters most"
    words = (
        f"Means{which}, and how the values are distributed: all pictures of a row have one scale. Of a category: the "
        "most frequent level, and a bar for each level."
    )
    if any((one.coded.codes == MISSING).any() for one in columns):
        words += " Missing values are left out: shares are of the others."
    wide = "means many" if len(kept) > SIDE_BY_SIDE else "means"
    means = element("div", table(["", *names.values()], rows, wide), class_="scroll")
    return _section("means", "What is in each cluster", _faded(words), means)


def _cell(one: Shown, place: int, all_rows: bool) -> Markup:
    """The mean and the distribution of one column in one cluster, or in all rows."""
    shares, cluster = one.shares[place], None if all_rows else place
    if one.means is not None:
        return joined([value_text(one.coded.name, float(one.means[place])), distribution(shares, cluster)])
    if not shares.any():
        return Markup("missing")
    often = np.sort(np.argsort(-one.shares[-1], kind="stable")[:MOST_LEVELS])
    level = shown(one.coded.values[int(shares.argmax())], LEVEL_LENGTHS[0])
    return joined([element("bdi", level), f" {percent(float(shares.max()))}", distribution(shares[often], cluster)])


def _card(cluster: int, data: ReportData) -> Markup:
    size, found = int(data.facts.sizes[cluster]), data.differences[cluster]
    nothing = "No column differs." if data.n_columns else "There are no columns to compare: give some as table."
    body = element("table", element("tbody", *map(_difference, found))) if found else _faded(nothing)
    names = [part for name in data.typical[cluster] for part in (", ", name_of(name, NAMED))][1:]
    return element(
        "article",
        element("h3", labelled(cluster, " Cluster")),
        _faded(f"{size:,} rows, {percent(size / data.facts.n_rows)}"),
        body,
        _faded("Typical: ", *names) if names else "",
    )


def _difference(one: Difference) -> Markup:
    if one.level is None:
        what: object = name_of(one.column, NAMED)
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


def _hard_pairs(data: ReportData) -> Markup:
    pairs = [
        joined([labelled(a), " and ", labelled(b), f": about {percent(share)} of their rows may belong to the other"])
        for a, b, share in data.facts.hard_pairs()[:10]
    ]
    if not pairs:
        return element("p", f"No two clusters share {percent(HARD)} of their rows or more.")
    return _list(pairs, "pairs")


def _selection(data: ReportData) -> Markup:
    found = data.subject.counted
    if found is None:
        return Markup("")
    parts = [element("p", shown(found.explanation, 2000))]
    if found.counted:
        words = (
            "The orange bar is the choice. Open bars cannot be chosen: they are fewer than the connected components."
        )
        parts += [count_chart(found), _faded(words)]
    return _section("selection", "How the number of clusters was chosen", *parts)


def _orders(data: ReportData) -> Markup:
    path = data.sampled.path
    if path is None:
        return Markup("")
    rows = []
    for j, order in enumerate(path.orders):
        name = f"{order_text(order)} (this model)" if j == path.own else order_text(order)
        sizes = np.bincount(path.labels[j], minlength=len(data.facts.sizes)).tolist()
        listed = ", ".join(map(str, sizes[:30])) + (", …" if len(sizes) > 30 else "")
        rows.append([name, f"{path.agreement[j]:.2f}", listed])
    words = (
        "The order says how much rows with few neighbours count: higher orders stop them from taking a cluster of "
        f"their own. Here {_drawn_rows(data)} are clustered anew at every order, each row counted once. 1 means the "
        "same clusters. The slider above the map shows them."
    )
    sizes_of = table(("Order", "Same as this model", "Sizes of clusters"), rows, "stack")
    return _section("orders", "Other orders", element("p", words), sizes_of)


def _drawn_rows(data: ReportData) -> str:
    return f"{len(data.places):,} drawn rows" if len(data.places) < data.facts.n_rows else "all rows"


def _similarities(data: ReportData) -> Markup:
    if data.sampled.clusters is None:
        return element("p", shown(f"No picture of similarities: {data.sampled.reason}.", 600))
    which, n_shown = _drawn_rows(data), len(np.unique(data.sampled.clusters))
    if n_shown < len(data.facts.sizes):
        which += f", of the {n_shown} largest clusters among them"
    words = (
        f"Similarities of {which}, ordered by cluster. Filled squares along the diagonal are clusters; filled patches "
        "beside it are clusters that are like each other."
    )
    picture = element("canvas", id="matrix", role="img", aria_label="Similarities ordered by cluster")
    return joined([element("p", words), picture])


def _pairs(lines: Iterable[tuple[str, object]]) -> Markup:
    """A table of names and what they are."""
    return table(("", ""), [(name, shown(text, 600)) for name, text in lines])
