"""Draw the pictures of the pages and of the README: ``python docs/pictures.py [NAME ...]``.

Each is a figure of a script in examples/, kept in docs/images so that pages show it without the site. ``report`` and
``customers`` are screenshots of the report of examples/report.py and of the tutorial: they need Chromium. ``growth`` is
drawn from the records of benchmarks/scale.py and benchmarks/gpu.py.
"""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parent.parent
PICTURES = {
    "comparison": ("plot_comparison", 0),
    "unbalanced": ("plot_unbalanced", 0),
    "choosing_k": ("plot_choosing_k", 0),
    "how_sure": ("plot_how_sure", 0),
    "hypergraph": ("plot_neighbourhoods", 0),
    "coauthors": ("plot_coauthors", 0),
}
"""Pictures: the script, and which of its figures."""
SHOTS = {"report": 1185, "customers": 1220}
"""Screenshots of reports, 1000 pixels wide: their heights."""


def draw(name: str) -> None:
    script, number = PICTURES[name]
    shown: list[plt.Figure] = []

    def show() -> None:
        shown.extend(plt.figure(known) for known in plt.get_fignums())
        if len(shown) > number:
            raise StopIteration

    plt.show = show
    try:
        runpy.run_path(str(ROOT / "examples" / f"{script}.py"), run_name="__main__")
    except StopIteration:
        shown[number].savefig(ROOT / "docs" / "images" / f"{name}.png", dpi=90)
    plt.close("all")


def recorded(name: str, title: str) -> list[dict[str, str]]:
    """The rows of a table of a record, by the names of its columns."""
    record = json.loads((ROOT / "benchmarks" / "records" / f"{name}.json").read_text(encoding="utf-8"))
    table = next(table for table in record["tables"] if table["title"] == title)
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def growth() -> None:
    """Seconds against rows, columns, clusters and landmarks; a dotted line is proportional to the size."""
    sweeps = {row["what"]: row for row in recorded("scale", "Growth")}
    figure, panels = plt.subplots(1, len(sweeps), figsize=(12, 3), constrained_layout=True)
    for panel, (what, row) in zip(panels, sweeps.items(), strict=True):
        sizes, seconds = ([float(number) for number in row[name].split(", ")] for name in ("sizes", "seconds"))
        panel.loglog(sizes, seconds, marker="o", markersize=3, label="2 cores")
        if what == "rows":
            on_device = [
                (float(own["rows"]), float(own["seconds"]))
                for own in recorded("gpu", "The default: neighbourhoods")
                if own["rows on"] == "device" and own["columns"] == "16"
            ]
            panel.loglog(*zip(*on_device, strict=True), marker="s", markersize=3, label="H200")
            panel.legend(fontsize=8)
        ends = [sizes[0], sizes[-1]]
        panel.loglog(ends, [seconds[-1] * size / sizes[-1] for size in ends], ":", color="0.6", zorder=0)
        panel.set_xlabel(what)
    panels[0].set_ylabel("seconds")
    figure.savefig(ROOT / "docs" / "images" / "growth.png", dpi=90)


def shoot(name: str) -> None:
    """The first screen of a report, as Chromium shows it."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if name == "report":
            commands = [[str(ROOT / "examples" / "report.py"), "--out", "report.html"]]
        else:
            tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
            cluster = re.search(r"^\$ biclique (cluster .* --report customers.html .*)$", tutorial, flags=re.MULTILINE)
            if cluster is None:
                raise SystemExit("pictures.py: the tutorial has no command with --report customers.html")
            commands = [[str(ROOT / "examples" / "customers.py")], ["-m", "biclique", *shlex.split(cluster[1])]]
        for command in commands:
            subprocess.run([sys.executable, *command], cwd=folder, check=True)
        picture = ROOT / "docs" / "images" / f"{name}.png"
        flags = ["--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size=1000,{SHOTS[name]}"]
        page = (folder / f"{name}.html").as_uri()
        subprocess.run(["chromium", *flags, f"--screenshot={picture}", page], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or (*PICTURES, *SHOTS, "growth"):
        if wanted == "growth":
            growth()
        else:
            (shoot if wanted in SHOTS else draw)(wanted)
