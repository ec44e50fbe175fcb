"""One call: plan the cells, do what is missing, write the tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from biclique.exceptions import DataError, ParameterError
from biclique.progress import Progress
from biclique.reproduce.cells import (
    FULL,
    QUICK,
    Cell,
    Records,
    current_commit,
    load_problem,
    plan,
    plan_preparations,
    run_cells,
    sequences_of,
)
from biclique.reproduce.figures import figure_class, why_not_drawn
from biclique.reproduce.methods import METHODS
from biclique.reproduce.pages import TARGETS, publish, write
from biclique.reproduce.printed import DATA
from biclique.reproduce.result_tables import INHOMOGENEOUS_ROWS, TABLE_1_ROWS, Table
from biclique.runtime.arguments import check_choice, check_count

OF_TARGET: dict[str, tuple[str, ...]] = {
    "table1": (*dict.fromkeys(row.method for row in TABLE_1_ROWS), "label_free"),
    "runtime": tuple(dict.fromkeys(row.method for row in TABLE_1_ROWS)),
    "inhomogeneous": tuple(dict.fromkeys(row.method for row in INHOMOGENEOUS_ROWS)),
    "datasets": (),
    "ovarian": (),
    "figure1": ("gaussian_ours", "polynomial_ours"),
    "figure2": ("gaussian_ours", "polynomial_ours"),
    "all": tuple(METHODS),
}
"""The methods that a target needs."""


def reproduce(
    target: str = "all",
    *,
    data: Sequence[str] = DATA,
    out: str | os.PathLike[str] = "reproduction",
    data_home: str | os.PathLike[str] | None = None,
    quick: bool = False,
    resume: bool = False,
    jobs: int = 1,
    page: str | os.PathLike[str] | None = None,
    command: str = "",
    verbose: bool = True,
) -> dict[str, Table]:
    """Regenerate a table, a figure or everything, from the records of finished cells and what is missing.

    Figures need matplotlib. Without it the other targets skip their figures, and say so.

    Parameters
    ----------
    target : {"table1", "runtime", "inhomogeneous", "datasets", "ovarian", "figure1", "figure2", "all"}
    data : names of data sets
    out : folder for records, tables and figures
    data_home : folder of the data sets
    quick : fewer repeats, orders and sequences
    resume : go on with the run in ``out``
    jobs : processes
    page : also write the page there, with its figures beside it
    command : what was typed, for the page
    """
    check_choice("target", target, tuple(TARGETS))
    unknown = [name for name in data if name not in DATA]
    if unknown or not data:
        raise ParameterError(f"data must be some of {', '.join(map(repr, DATA))}, got {list(data)!r}.")
    check_count("jobs", jobs)
    if target == "ovarian" and "ovarian" not in data:
        raise ParameterError("target 'ovarian' needs ovarian among the data.")
    if page is not None and (Path(page).is_dir() or not Path(page).parent.is_dir()):
        raise DataError(f"page must be a file in a folder that exists, got {os.fspath(page)!r}.")
    if target in ("figure1", "figure2"):
        figure_class()  # an error before the work if matplotlib is missing
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"out must be a folder, {folder} is a file.")
    home = None if data_home is None else os.fspath(data_home)
    cells = plan(data, OF_TARGET[target], home, quick=quick)
    if target == "ovarian" or (target == "all" and "ovarian" in data):
        cells += plan_preparations(home)
    records = Records(folder, QUICK if quick else FULL, resume=resume)
    with Progress(verbose) as progress:
        if "gaussian_ours" in OF_TARGET[target] and why_not_drawn():
            progress.say(f"skipped: {why_not_drawn()}")
        results = run_cells(cells, records, home=home, jobs=jobs, progress=progress)
    provenance = _provenance(command, records.commits(cells), quick=quick)
    ordered = {cell: results[cell] for cell in cells}
    tables = write(ordered, _sizes(data, cells, home), target, folder, provenance)
    if page is not None:
        publish(ordered, tables, Path(page), provenance)
    return tables


def _provenance(command: str, commits: list[str], *, quick: bool) -> str:
    computed = f"Computed on {', '.join(commits) or current_commit()}"
    made = f"{computed} by `{command}`." if command else f"{computed}."
    return made + (" Quick: 20 repeats, five orders, ten sequences of Hopkins155." if quick else "")


def _sizes(data: Sequence[str], cells: list[Cell], home: str | None) -> dict[str, tuple[int, float]]:
    """Points and mean dimension of every data set in the run."""
    sizes: dict[str, tuple[int, float]] = {}
    for name in data:
        problems = list(dict.fromkeys(cell.problem for cell in cells if cell.data == name))
        if not problems:
            problems = sequences_of(home).names if name == "hopkins155" else [name]
        shapes = [load_problem(name, problem, home).X.shape for problem in problems]
        if shapes:
            sizes[name] = (sum(s[0] for s in shapes), float(np.mean([s[1] for s in shapes])))
    return sizes
