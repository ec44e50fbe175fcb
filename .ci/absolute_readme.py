"""The README of the package: its links and pictures are absolute, because registries show it without the repository.

A hook of hatchling, named in ``pyproject.toml``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = {"CONTRIBUTING.md": "contributing.html", "CHANGELOG.md": "changes.html", "SECURITY.md": "security.html"}
"""Files of the root, and their pages."""


def absolute(readme: str, site: str) -> str:
    """Links to pages and pictures as addresses of the site; links to other files as text."""

    def address(found: re.Match[str]) -> str:
        before, text, target = found.groups()
        if ":" in target:
            return found[0]
        if before:
            return f"![{text}]({site}/_images/{Path(target).name})"
        page = PAGES.get(target) or (Path(target).stem + ".html" if target.startswith("docs/") else None)
        return f"[{text}]({site}/{page})" if page else text

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", address, readme)


class AbsoluteReadme(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = absolute(readme, metadata["urls"]["Documentation"].rstrip("/"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
