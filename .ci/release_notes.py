"""Print the changes of a version from CHANGELOG.md: ``python .ci/release_notes.py [VERSION]``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def notes(changes: str, version: str) -> str:
    """The section of a version, without its title."""
    found = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
    if found is None:
        known = ", ".join(re.findall(r"^## (\S+)", changes, re.MULTILINE))
        raise SystemExit(f"CHANGELOG.md has no version {version}: it has {known}")
    return found[1].strip()


if __name__ == "__main__":
    current = re.search(r'__version__ = "(.+?)"', (ROOT / "src/biclique/__init__.py").read_text(encoding="utf-8"))
    version = sys.argv[1] if len(sys.argv) > 1 else current[1]
    print(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version))
