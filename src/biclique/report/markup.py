"""HTML and SVG out of plain text. All that is not ``Markup`` is escaped, so names from data stay text."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping
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
    return Markup(html.escape("\n".join(printable(line) for line in str(text).split("\n"))))


def joined(parts: Iterable[object]) -> Markup:
    """Pieces one after the other."""
    return Markup("".join(escaped(part) for part in parts))


def element(name: str, *children: object, **attributes: str | float | bool | None) -> Markup:
    """``<name attributes>children</name>``. ``class_`` is class, ``stroke_width`` is stroke-width; None is left out."""
    given = []
    for key, value in attributes.items():
        word = key.rstrip("_").replace("_", "-")
        if word == "style" or word.startswith("on"):
            raise ValueError(f"the page's policy forbids the attribute {word}: use a class.")
        if value is not None and value is not False:
            given.append(f" {word}" if value is True else f' {word}="{escaped(_number(value))}"')
    start = f"<{name}{''.join(given)}>"
    return Markup(start if name in VOID and not children else f"{start}{joined(children)}</{name}>")


def _number(value: str | float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def name_of(text: object, most: int = LONGEST) -> Markup:
    """A name from data, in an element that keeps its direction of writing inside."""
    return element("bdi", shown(text, most))


def json_text(data: Mapping[str, Any]) -> Markup:
    """Data for a script element: no character in it can end that element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def fill(template: str, pieces: Mapping[str, str]) -> str:
    """A template with ``{{name}}`` replaced, each name once; what comes in is not looked at again."""
    out, rest = [], template
    while "{{" in rest:
        before, _, rest = rest.partition("{{")
        name, _, rest = rest.partition("}}")
        out += [before, escaped(pieces[name.strip()])]
    return "".join([*out, rest])
