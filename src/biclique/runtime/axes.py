"""matplotlib, imported when something is to be drawn."""

from __future__ import annotations

from typing import Any

from biclique.exceptions import optional


def figure_class() -> Any:
    """matplotlib's Figure, which needs no display, or the line that installs it."""
    return optional("matplotlib.figure", "figures need matplotlib: pip install 'biclique[plot]'").Figure


def new_axes() -> Any:
    """Axes of a new figure."""
    return figure_class()(figsize=(6, 4), layout="constrained").add_subplot()
