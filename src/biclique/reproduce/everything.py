"""One call: plan the cells, do what is missing, write tables, figures and the page."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill

import numpy as np

from biclique.exceptions import DataError, MissingExtraError, ParameterError
from biclique.progress import Progress
from biclique.reproduce.cells import FULL, QUICK, Cell, Records, Results, load_problem, plan, run_cells, sequences_of
from biclique.reproduce.methods import METHODS
from biclique.reproduce.printed import DATA, FINDINGS
from biclique.reproduce.result_tables import CURVES, INHOMOGENEOUS_ROWS, TABLE_1_ROWS, Row, Table, all_tables, by_order
from biclique.runtime.arguments import check_choice, check_count
from biclique.runtime.axes import figure_class
from biclique.tables.atomic_files import atomic_path, write_text

# The paper's two figures: error and run time against the order


COLOURS = ("tab:red", "tab:blue")
CAPTIONS = {
    "figure1": "Figure 1: error rate at the best parameters of each order, shaded by the deviation over repeats.",
    "figure2": "Figure 2: seconds for the matrix and its eigenvectors at the best parameters of each order "
    "(Hopkins155: the sum over the sequences); each is timed once, so there is no deviation to shade.",
}


def methods_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """The methods of the rows of a table, each once."""
    return tuple(dict.fromkeys(row.method for row in rows))


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
    captions = {target: CAPTIONS[target]} if target in CAPTIONS else CAPTIONS
    for name in captions:
        number = "error" if name == "figure1" else "seconds"
        figure = figure_class()(figsize=(4 * len(shown), 3.2), layout="constrained")
        for place, data in enumerate(shown, 1):
            axes = figure.add_subplot(1, len(shown), place)
            for (method, label), colour in zip(CURVES.items(), COLOURS, strict=True):
                curve = by_order(results, data, method)
                if not curve:
                    continue
                orders, numbers, deviations = ([best[key] for best in curve] for key in ("order", number, "deviation"))
                axes.plot(orders, numbers, marker="o", color=colour, label=label)
                if number == "error" and data != "hopkins155":
                    low, high = np.subtract(numbers, deviations), np.add(numbers, deviations)
                    axes.fill_between(orders, low, high, color=colour, alpha=0.2, linewidth=0)
            if number == "seconds":
                axes.set_ylim(bottom=0)  # after every curve, or the later ones would be cut off
            ticks = [best["order"] for best in by_order(results, data, "gaussian_ours")][::2]
            label = "error rate" if number == "error" else number
            axes.set(title=data.replace("hopkins", "Hopkins"), xlabel="order m", ylabel=label, xticks=ticks)
            axes.legend()
        for suffix in ("png", "svg"):
            with atomic_path(folder / f"{name}.{suffix}") as temporary:
                figure.savefig(temporary, format=suffix, dpi=120, metadata={"Date": None} if suffix == "svg" else None)
    return captions


# Tables and figures as files, and the one page that holds them all


LINE = 100
"""Characters in a line of prose."""

IMAGES = "images/reproduction"
"""The folder of figures beside a page."""

ALL_TABLES = ("observations", "table1", "ovarian", "hopkins155", "inhomogeneous", "runtime", "datasets", "figures")

TARGETS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "table1": ((*methods_of(TABLE_1_ROWS), "label_free"), ("observations", "table1", "hopkins155", "figures")),
    "runtime": (methods_of(TABLE_1_ROWS), ("runtime",)),
    "inhomogeneous": (methods_of(INHOMOGENEOUS_ROWS), ("inhomogeneous", "hopkins155")),
    "datasets": ((), ("datasets",)),
    "ovarian": ((), ("ovarian",)),
    "figure1": (tuple(CURVES), ("observations", "figures")),
    "figure2": (tuple(CURVES), ("observations", "figures")),
    "all": (tuple(METHODS), ALL_TABLES),
}
"""What can be asked for: the methods that it needs and the tables that it writes."""


def page_text(tables: dict[str, Table], captions: dict[str, str], provenance: str, images: str) -> str:
    """The whole reproduction as Markdown."""
    parts = ["# The paper's evaluation, regenerated", "", provenance, "", *(f"{finding}\n" for finding in FINDINGS)]
    parts += [table.by_method().markdown() for name, table in tables.items() if name != "figures"]
    for name, caption in captions.items():
        parts += [f"![{name}]({images}/{name}.png)", "", caption, ""]
    return wrapped("\n".join(parts)).rstrip() + "\n"


def wrapped(text: str) -> str:
    """Markdown with lines of prose and lists of at most 100 characters; tables, titles and pictures stay.

    Words are never cut, not even at hyphens.
    """

    def of_line(line: str) -> str:
        if line.startswith(("|", "#", "!")):
            return line
        indent = "  " if line.startswith("- ") else ""
        return fill(line, LINE, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)

    return "\n".join(map(of_line, text.split("\n")))


# One call


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
    verbose: bool | int = True,
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
    if not data or not set(data) <= set(DATA):
        raise ParameterError(f"data must be some of {', '.join(map(repr, DATA))}, got {list(data)!r}.")
    check_count("jobs", jobs)
    if target == "ovarian" and "ovarian" not in data:
        raise ParameterError("target 'ovarian' needs ovarian among the data.")
    if page is not None and (Path(page).is_dir() or not Path(page).parent.is_dir()):
        raise DataError(f"page must be a file in a folder that exists, got {os.fspath(page)!r}.")
    if target in CAPTIONS:
        figure_class()  # an error before the work if matplotlib is missing
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"out must be a folder, {folder} is a file.")
    home = None if data_home is None else os.fspath(data_home)
    methods, names = TARGETS[target]
    prepared = ["preparations"] if "ovarian" in names and "ovarian" in data else []
    cells = plan([*data, *prepared], methods, home, quick=quick, verbose=bool(verbose))
    records = Records(folder, QUICK if quick else FULL, resume=resume)
    with Progress.of(verbose) as progress:
        if "gaussian_ours" in methods and why_not_drawn():
            progress.note(f"skipped: {why_not_drawn()}")
        results = run_cells(cells, records, home=home, jobs=jobs, progress=progress)
    found = all_tables(results, _sizes(data, cells, home))
    tables = {name: table for name, table in found.items() if name in names}
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", table.csv())
        write_text(folder / f"{name}.md", table.markdown())
    provenance = _provenance(command, records.versions(cells), quick=quick)
    captions = draw(results, folder, target)
    write_text(folder / "reproduction.md", page_text(tables, captions, provenance, "."))
    if page is not None:
        captions = draw(results, Path(page).parent / IMAGES, "all")
        provenance = _provenance(command, [], quick=quick)
        write_text(Path(page), page_text(tables, captions, provenance, IMAGES))
    return tables


def _provenance(command: str, versions: list[str], *, quick: bool) -> str:
    """Where tables come from: with versions for files of results, without them for a page."""
    computed = f"Computed with biclique {', '.join(versions)}" if versions else "Computed"
    made = f"{computed} by `{command}`." if command else f"{computed}."
    return made + (" Quick: 20 repeats, five orders, ten sequences of Hopkins155." if quick else "")


def _sizes(data: Sequence[str], cells: list[Cell], home: str | None) -> dict[str, tuple[int, float]]:
    """Points and mean dimension of every data set in the run."""
    sizes: dict[str, tuple[int, float]] = {}
    for name in data:
        every = sequences_of(home).names if name == "hopkins155" else [name]
        problems = dict.fromkeys(cell.problem for cell in cells if cell.data == name) or every
        points, dimensions = zip(*(load_problem(name, problem, home).X.shape for problem in problems), strict=True)
        sizes[name] = (sum(points), float(np.mean(dimensions)))
    return sizes
