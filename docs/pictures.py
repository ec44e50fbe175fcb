"""Draw the pictures of the pages and of the README: ``python docs/pictures.py [NAME ...]``.

Each is a figure of a script in examples/, kept in docs/images so that pages show it without the site.
"""

from __future__ import annotations

import runpy
import sys
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
}
"""Pictures: the script, and which of its figures."""


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


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PICTURES:
        draw(wanted)
