"""What commands print, for the pages.

In a block ``console``, a line after ``$ `` is a command, and what follows is what it printed. All blocks of a page run
in one folder, with ``customers.csv`` of ``examples/customers.py`` and ``papers.csv`` of PAPERS. A command with ``…`` in
it or in what it printed stays as it is. Seconds, sizes and where lines break may differ.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
BLOCK = re.compile(r"(```console\n)(\$ .*?)(```)", re.DOTALL)
PAPERS = {
    "p1": ["ann", "bob", "cy"],
    "p2": ["ann", "cy"],
    "p3": ["bob", "cy"],
    "p4": ["dan", "eve"],
    "p5": ["dan", "eve", "fay"],
    "p6": ["cy", "dan"],
}
"""The papers of hypergraphs.md and their authors."""
VARIES = re.compile(r"\d+\.\d+ s\b|\d+ KiB")


def printed(command: str, folder: Path) -> str:
    """What a command prints, errors too."""
    words = shlex.split(command)
    if words[0] == "biclique":
        words = [sys.executable, "-m", *words]
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.stdout.strip("\n") + "\n"


def with_sessions(page: str) -> str:
    """The page with what its commands print today."""
    if not BLOCK.search(page):
        return page
    with tempfile.TemporaryDirectory() as name:
        example = runpy.run_path(str(DOCS.parent / "examples" / "customers.py"))
        example["customers"]().to_csv(Path(name) / "customers.csv", index=False)
        lines = [f"{paper},{author},2020" for paper, authors in PAPERS.items() for author in authors]
        (Path(name) / "papers.csv").write_text("\n".join(["paper,author,year", *lines, ""]), encoding="utf-8")

        def run(found: re.Match[str]) -> str:
            parts = []
            for session in re.split(r"^\$ ", found[2], flags=re.MULTILINE)[1:]:
                command, _, output = session.partition("\n")
                kept = "…" in command or "…" in output
                parts.append(f"$ {command}\n{output if kept else printed(command, Path(name))}")
            return found[1] + "\n".join(part.strip("\n") + "\n" for part in parts) + found[3]

        return BLOCK.sub(run, page)


def same(page: str, other: str) -> bool:
    return VARIES.sub("", page).split() == VARIES.sub("", other).split()
