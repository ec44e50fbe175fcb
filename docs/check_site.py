"""Look at the built site: ``python docs/check_site.py build/docs``, a part of ``make docs``.

1. Every link and picture inside the site exists, and so does the place in the page that it names.
2. Every public name has an entry in the reference.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import api_pages


class Page(HTMLParser):
    """Links of a page, and the places in it that a link may name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places.update(value for key in ("id", "name") if (value := given.get(key)))
        link = given.get("href" if tag == "a" else "src" if tag == "img" else "")
        if link:
            self.links.append(link)


def broken_links(pages: dict[Path, Page]) -> list[str]:
    """One line for each link to a file or a place that is not there."""
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{path.name}: {link} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{path.name}: {link} names a place that is not in {target.name}")
    return found


def names_without_entry(pages: dict[Path, Page]) -> list[str]:
    places = set().union(*(page.places for page in pages.values()))
    wanted = {full for names in api_pages.documented().values() for _, full in names}
    return [f"{name} has no entry in the reference" for name in sorted(wanted - places)]


def main(site: Path) -> int:
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    problems = broken_links(pages) + names_without_entry(pages)
    for line in problems:
        sys.stderr.write(f"{line}\n")
    sys.stdout.write(f"{len(pages)} pages, {len(problems)} problems\n")
    return 1 if problems or not pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
