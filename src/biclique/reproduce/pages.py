"""Tables and figures as files, and the one page that holds them all."""

from __future__ import annotations

import os
from pathlib import Path

from biclique.io import write_text
from biclique.reproduce.figures import draw
from biclique.reproduce.remarks import FINDINGS
from biclique.reproduce.result_tables import Results, Table, all_tables, observations

TARGETS: dict[str, tuple[str, ...]] = {
    "table1": ("table1", "hopkins155", "figures"),
    "runtime": ("runtime",),
    "inhomogeneous": ("inhomogeneous", "hopkins155"),
    "datasets": ("datasets",),
    "ovarian": ("ovarian",),
    "figure1": ("figures",),
    "figure2": ("figures",),
    "all": ("table1", "ovarian", "hopkins155", "inhomogeneous", "runtime", "datasets", "figures"),
}
"""What can be asked for, and the tables that it writes; figures come with whatever has the orders."""


def write(
    results: Results, sizes: dict[str, tuple[int, float]], target: str, out: Path, provenance: str
) -> dict[str, Table]:
    """CSV and Markdown of every table, the figures, and ``reproduction.md`` in the folder; returns the tables."""
    tables = {name: table for name, table in all_tables(results, sizes).items() if name in TARGETS[target]}
    for name, table in tables.items():
        write_text(out / f"{name}.csv", table.csv())
        write_text(out / f"{name}.md", table.markdown())
    captions = draw(results, out, target)
    write_text(out / "reproduction.md", page(results, tables, captions, provenance, "."))
    return tables


def publish(results: Results, tables: dict[str, Table], target: Path, provenance: str) -> None:
    """The page elsewhere, with its figures in ``images/reproduction`` beside it."""
    images = target.parent / "images" / "reproduction"
    captions = draw(results, images, "all")
    link = os.path.relpath(images, target.parent).replace(os.sep, "/")
    write_text(target, page(results, tables, captions, provenance, link))


def page(results: Results, tables: dict[str, Table], captions: dict[str, str], provenance: str, images: str) -> str:
    """The whole reproduction as Markdown."""
    parts = ["# The paper's evaluation, regenerated", "", provenance, "", *(f"{finding}\n" for finding in FINDINGS)]
    seen = observations(results)
    if seen:
        parts += ["## The paper's two observations", "", *seen, ""]
    parts += [tables[name].markdown() for name in TARGETS["all"] if name in tables and name != "figures"]
    for name, caption in captions.items():
        parts += [f"![{name}]({images}/{name}.png)", "", caption, ""]
    return "\n".join(parts).rstrip() + "\n"
