"""Put what was measured and what commands print into the pages: ``python docs/pages.py`` (``--check`` only looks).

``docs/tables.py`` says how a page marks records of benchmarks, ``docs/sessions.py`` commands.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sessions import same, with_sessions
from tables import unprinted, with_tables

DOCS = Path(__file__).parent


def main() -> int:
    wrong = []
    for path in (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))):
        page = path.read_text(encoding="utf-8")
        now = with_sessions(with_tables(page))
        wrong += [f"{path.name}: no record printed {number}" for number in unprinted(now)]
        if same(page, now):
            continue
        if "--check" in sys.argv:
            wrong.append(f"{path.name}: records or commands say something else; run python docs/pages.py")
        else:
            path.write_text(now, encoding="utf-8")
    sys.stderr.write("".join(f"{line}\n" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
