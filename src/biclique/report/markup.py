"""HTML and SVG out of plain text. All that is not ``Markup`` is escaped, so names from data stay text."""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from biclique.exceptions import printable

LONGEST = 80
"""Characters of a name that are shown; the rest is cut off."""

VOID = ("br", "meta", "input")
"""Elements of HTML that have no end; those of SVG need one."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def shown(text: object, most: int = LONGEST) -> str:
    """A name from data: short, on one line, without control characters or marks that turn its direction."""
    whole = str(text)
    cut = printable(whole[: most + 1])
    return cut if len(cut) <= most and len(whole) <= most else cut[: most - 1] + "…"


def escaped(text: object) -> Markup:
    """Text as HTML; line ends stay, other control characters are spelled out."""
    if isinstance(text, Markup):
        return text
    return Markup(html.escape("\n".join(map(printable, str(text).split("\n")))))


def joined(parts: Iterable[object]) -> Markup:
    """Pieces one after the other."""
    return Markup("".join(map(escaped, parts)))


def element(name: str, *children: object, **attributes: str | float | bool | None) -> Markup:
    """``<name attributes>children</name>``. ``class_`` is class, ``stroke_width`` is stroke-width; None is left out."""
    given = []
    for key, value in attributes.items():
        word = key.rstrip("_").replace("_", "-")
        if word == "style" or word.startswith("on"):
            raise ValueError(f"the page's policy forbids the attribute {word}: use a class.")
        if value is None or value is False:
            continue
        text = f"{value:.6g}" if isinstance(value, float) else value
        given.append(f" {word}" if value is True else f' {word}="{escaped(text)}"')
    start = f"<{name}{''.join(given)}>"
    return Markup(start if name in VOID and not children else f"{start}{joined(children)}</{name}>")


def name_of(text: object, most: int = LONGEST) -> Markup:
    """A name from data, in an element that keeps its direction of writing inside."""
    return element("bdi", shown(text, most))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], class_: str | None = None) -> Markup:
    """A table; the first cell of a row is its head. A phone shows titles that are plain text before their cells."""
    titles = [element("th", text, scope="col") for text in head]
    plain = [None if isinstance(text, Markup) or not text else text for text in head[1:]]
    lines = [
        element(
            "tr",
            element("th", first, scope="row"),
            *(element("td", cell, data_title=title) for cell, title in zip(cells, plain, strict=True)),
        )
        for first, *cells in rows
    ]
    top = element("thead", element("tr", *titles)) if any(head) else ""
    return element("table", top, element("tbody", *lines), class_=class_)


def json_text(data: Mapping[str, Any]) -> Markup:
    """Data for a script element: no character in it can end that element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def fill(template: str, pieces: Mapping[str, object]) -> str:
    """A template with ``{{name}}`` replaced; what comes in is not looked at again."""
    return re.sub(r"{{(\w+)}}", lambda found: escaped(pieces[found[1]]), template)
