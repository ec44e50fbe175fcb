"""matplotlib, imported when something is to be drawn."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from biclique.exceptions import MissingExtraError


def figure_class() -> Any:
    """matplotlib's Figure, which needs no display, or the line that installs it."""
    try:
        return import_module("matplotlib.figure").Figure
    except ImportError as error:
        raise MissingExtraError("figures need matplotlib: pip install 'biclique[plot]'") from error


def new_axes() -> Any:
    """Axes of a new figure."""
    return figure_class()(figsize=(6, 4), layout="constrained").add_subplot()
