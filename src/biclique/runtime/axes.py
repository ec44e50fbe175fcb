"""matplotlib, imported when something is to be drawn."""

from typing import Any

from biclique.exceptions import optional

NEEDED = "figures need matplotlib: pip install '.[plot]' in a clone of biclique"
"""The sentence about a package that is not installed."""


def figure_class() -> Any:
    """matplotlib's Figure, which needs no display, or the line that installs it."""
    return optional("matplotlib.figure", NEEDED).Figure


def new_axes() -> Any:
    """Axes of a new figure that pyplot knows: notebooks and ``plt.show()`` show it."""
    pyplot = optional("matplotlib.pyplot", NEEDED)
    return pyplot.subplots(figsize=(6, 4), layout="constrained")[1]
