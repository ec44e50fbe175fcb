"""The work as cells: one data set or sequence and one method each, every one a record on disk.

A record is written whole or not at all, so a run that was killed goes on where it was: finished cells are never done
again, and the tables come from the records alone. Each holds a checksum of itself: a number that was changed is not
believed, and the cell is done again.
"""

import hashlib
import json
import os
import re
import threading
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import scale

from biclique import __version__
from biclique._typing import FloatArray
from biclique.datasets import Hopkins155, data_home, load_hopkins155, load_iris, load_ovarian, load_spine
from biclique.exceptions import BicliqueError, BicliqueWarning, DataError
from biclique.progress import Progress
from biclique.reproduce.methods import METHODS, Problem, Result, Settings
from biclique.reproduce.printed import ORDERS, REPEATS
from biclique.runtime.namespace import unit_rows
from biclique.runtime.threads import single_threaded_blas
from biclique.tables.atomic_files import write_text

QUICK_SEQUENCES = 10
FULL = Settings(REPEATS, ORDERS)
QUICK = Settings(20, (2, 4, 8, 14, 20))
LARGEST_RECORD = 2**24
"""Bytes; a record of ours has some ten thousand."""

PREPARATION_METHODS = ("gaussian_ours", "gaussian_demo", "gaussian_ascending")
"""Three ways of taking eigenvectors, for every preparation of the ovarian data."""

NOT_ON_DATA = ("gaussian_ascending",)
"""Methods for the preparations alone."""

NOT_ON_SEQUENCES = (*NOT_ON_DATA, "gaussian_demo", "polynomial_demo")
"""Methods left out on Hopkins155 besides: too slow for 155 sequences."""


PREPARATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "raw (the demo's translation changes no distance)": lambda X: X,
    "z-scored": scale,
    "min-max": lambda X: (X - X.min(axis=0)) / np.ptp(X, axis=0),
    "unit rows": unit_rows,
    "z-scored, unit rows": lambda X: unit_rows(scale(X)),
}
"""Scalings of the ovarian data that might be meant."""


@dataclass(frozen=True)
class Cell:
    """One data set (or one sequence of Hopkins155) and one method."""

    data: str
    problem: str
    method: str

    @property
    def file(self) -> str:
        return f"{self.data}/{re.sub(r'[^A-Za-z0-9_]+', '-', self.problem)}/{self.method}.json"


Results = dict[Cell, list[Result]]


@lru_cache(maxsize=1)
def sequences_of(home: str | None) -> Hopkins155:
    """Hopkins155, read and checked once in a process."""
    return load_hopkins155(home, verbose=False)


def load_problem(data: str, name: str, home: str | None, *, verbose: bool = False) -> Problem:
    """A data set as the paper's numbers need it: iris and Hopkins155 raw, spine and ovarian z-scored."""
    if data == "hopkins155":
        bunch = sequences_of(home).sequence(name)
        return Problem(name, bunch.data, bunch.target, bunch.n_clusters)
    if data == "preparations":
        features, scaling = name.split(" features, ")
        bunch = load_ovarian(home, features=int(features))
        return Problem(name, PREPARATIONS[scaling](bunch.data), bunch.target, 2)
    if data == "iris":
        bunch = load_iris()
        return Problem(data, bunch.data, bunch.target, 3)
    load = load_spine if data == "spine" else load_ovarian
    bunch = load(home, verbose=verbose)
    return Problem(data, scale(bunch.data), bunch.target, bunch.n_clusters, bunch.data)


def plan(
    data: Iterable[str], methods: Collection[str], home: str | None, *, quick: bool, verbose: bool = False
) -> list[Cell]:
    """Every cell of a run, in order; data that are missing are fetched now, or refused before any work.

    "preparations" are those of the ovarian data, with each way of taking eigenvectors; of 4000 features if they are
    there.
    """
    cells = []
    for name in dict.fromkeys(data):
        problems, chosen = [name], [method for method in methods if method not in NOT_ON_DATA]
        if name == "hopkins155":
            problems = load_hopkins155(home, verbose=verbose).names
            if quick:
                problems = problems[:: max(len(problems) // QUICK_SEQUENCES, 1)][:QUICK_SEQUENCES]
            chosen = [method for method in methods if method not in NOT_ON_SEQUENCES]
        elif name == "preparations":
            features = ["100", *["4000"] * (data_home(home) / "ovarian4000.npz").exists()]
            problems = [f"{number} features, {scaling}" for number in features for scaling in PREPARATIONS]
            chosen = list(PREPARATION_METHODS)
        if name != "hopkins155":
            load_problem(name, problems[-1], home, verbose=verbose)
        cells += [Cell(name, problem, method) for problem in problems for method in chosen]
    return cells


class Records:
    """The records of one run in a folder, each with what it was done with."""

    def __init__(self, out: Path, settings: Settings, *, resume: bool) -> None:
        self.folder, self.settings = out / "records", settings
        self._stamp = json.loads(json.dumps(asdict(settings)))
        files = list(self.folder.glob("*/*/*.json"))
        if files and not resume:
            raise DataError(
                f"{out} holds a run with {len(files)} finished cells: pass --resume to go on with it, or another --out."
            )
        if any(record is not None and record.get("settings") != self._stamp for record in map(_read, files)):
            raise DataError(f"{out} holds a run with other settings (--quick or not): choose another --out.")
        self.folder.mkdir(parents=True, exist_ok=True)

    def _valid(self, cell: Cell) -> dict[str, Any] | None:
        record = _read(self.folder / cell.file)
        ours = record is not None and (record.get("cell"), record.get("settings")) == (asdict(cell), self._stamp)
        return record if ours else None

    def get(self, cell: Cell) -> list[Result] | None:
        """The results of a finished cell; None for one that is not, or whose record is damaged or of another run."""
        record = self._valid(cell)
        return None if record is None else list(record["results"])

    def put(self, cell: Cell, results: list[Result]) -> None:
        """Write the record of a cell, whole or not at all."""
        target = self.folder / cell.file
        target.parent.mkdir(parents=True, exist_ok=True)
        record = {"cell": asdict(cell), "settings": self._stamp, "version": __version__, "results": results}
        write_text(target, json.dumps({**record, "checksum": _checksum(record)}))

    def versions(self, cells: Iterable[Cell]) -> list[str]:
        """The versions of the package that the cells were computed with."""
        return sorted({str(record.get("version")) for cell in cells if (record := self._valid(cell)) is not None})


def _checksum(record: dict[str, Any]) -> str:
    """SHA-256 of a record without its checksum, however it is laid out."""
    content = {key: value for key, value in record.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> dict[str, Any] | None:
    """The record in a file; None if there is none, or its checksum is another."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_RECORD + 1)
        found = json.loads(content.decode("utf-8")) if len(content) <= LARGEST_RECORD else None
    except (OSError, ValueError, RecursionError):
        return None
    whole = isinstance(found, dict) and found.get("checksum") == _checksum(found)
    return found if whole else None


def run_cell(cell: Cell, records: Records, home: str | None) -> list[Result]:
    """Compute a cell and write its record; its randomness depends on its own name alone."""
    problem = load_problem(cell.data, cell.problem, home)
    random = np.random.RandomState(zlib.crc32(cell.file.encode()) ^ records.settings.seed)
    with single_threaded_blas(), warnings.catch_warnings(action="ignore", category=BicliqueWarning):
        results = METHODS[cell.method](problem, records.settings, random)
    results = [{**result, "k": problem.k} for result in results]
    records.put(cell, results)
    return results


def run_cells(cells: list[Cell], records: Records, *, home: str | None, jobs: int, progress: Progress) -> Results:
    """Do what is not done yet, over processes, and return the results of every cell."""
    found = {cell: records.get(cell) for cell in cells}
    results = {cell: result for cell, result in found.items() if result is not None}
    missing = [cell for cell in cells if cell not in results]
    if results:
        progress.note(f"{len(results)} of {len(cells)} cells are there already")
    damaged = sum((records.folder / cell.file).exists() for cell in missing)
    if damaged:
        progress.note(f"{damaged} records are damaged, or of an older version without a checksum: they are done again")

    def keep(cell: Cell, result: list[Result]) -> None:
        results[cell] = result
        progress.share("cells", len(results) / len(cells), f"{len(results)} of {len(cells)}")

    if jobs <= 1 or len(missing) <= 1:
        for cell in missing:
            keep(cell, run_cell(cell, records, home))
    else:
        with ProcessPoolExecutor(jobs, get_context("spawn"), _leave_with_the_parent) as pool:
            try:
                work = {pool.submit(run_cell, cell, records, home): cell for cell in missing}
                for done in as_completed(work):
                    keep(work[done], done.result())
            except BrokenProcessPool as error:
                raise BicliqueError(
                    "a worker process died, perhaps because memory ran out: finished cells are kept, go on with "
                    "--resume and fewer --jobs."
                ) from error
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return {cell: results[cell] for cell in cells}


def _leave_with_the_parent() -> None:
    """In a worker: end when the process that started it is gone."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
