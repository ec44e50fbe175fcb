"""The paper's two figures: error and run time against the order."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from biclique.exceptions import MissingExtraError
from biclique.io import atomic_path
from biclique.reproduce.printed import DATA
from biclique.reproduce.result_tables import Results, by_order

SERIES = (("gaussian_ours", "Gaussian", "tab:red"), ("polynomial_ours", "polynomial", "tab:blue"))
TITLES = {"iris": "iris", "spine": "spine", "ovarian": "ovarian", "hopkins155": "Hopkins155"}


def figure_class() -> Any:
    """matplotlib's Figure, which needs no display, or the line that installs it."""
    try:
        return import_module("matplotlib.figure").Figure
    except ImportError as error:
        raise MissingExtraError("figures need matplotlib: pip install 'biclique[plot]'") from error


def why_not_drawn() -> str:
    """Why figures cannot be drawn, with the line that installs what is missing; "" if they can."""
    try:
        figure_class()
    except MissingExtraError as error:
        return str(error)
    return ""


def draw(results: Results, folder: Path, target: str) -> dict[str, str]:
    """Figure 1 (error at the best parameters) and Figure 2 (seconds) as PNG and SVG; returns their captions.

    Nothing without matplotlib.
    """
    shown = [data for data in DATA if by_order(results, data, "gaussian_ours")]
    if not shown or why_not_drawn():
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    captions = {
        "figure1": "Figure 1: error rate at the best parameters of each order, shaded by the deviation over repeats.",
        "figure2": "Figure 2: seconds for the matrix and its eigenvectors at the best parameters of each order "
        "(Hopkins155: the sum over the sequences); each is timed once, so there is no deviation to shade.",
    }
    if target in captions:
        captions = {target: captions[target]}
    for name in captions:
        figure = figure_class()(figsize=(4 * len(shown), 3.2), layout="constrained")
        for place, data in enumerate(shown, 1):
            axes = figure.add_subplot(1, len(shown), place)
            for method, label, colour in SERIES:
                curve = by_order(results, data, method)
                if not curve:
                    continue
                orders, errors, deviations, seconds = zip(*curve, strict=True)
                if name == "figure1":
                    axes.plot(orders, errors, marker="o", color=colour, label=label)
                    low = [e - d for e, d in zip(errors, deviations, strict=True)]
                    high = [e + d for e, d in zip(errors, deviations, strict=True)]
                    if data != "hopkins155":
                        axes.fill_between(orders, low, high, color=colour, alpha=0.2, linewidth=0)
                else:
                    axes.plot(orders, seconds, marker="o", color=colour, label=label)
            if name == "figure2":
                axes.set_ylim(bottom=0)  # after every curve, or the later ones would be cut off
            axes.set_xticks([m for m, *_ in by_order(results, data, "gaussian_ours")][::2])
            axes.set_title(TITLES[data])
            axes.set_xlabel("order m")
            axes.set_ylabel("error rate" if name == "figure1" else "seconds")
            axes.legend()
        for suffix in ("png", "svg"):
            with atomic_path(folder / f"{name}.{suffix}") as temporary:
                figure.savefig(temporary, format=suffix, dpi=120, metadata={"Date": None} if suffix == "svg" else None)
    return captions
