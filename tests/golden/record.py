"""One case, run and written down: fitted attributes, labels and embeddings of new rows, kinds of warnings, errors."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

Record = dict[str, Any]
"""Arrays, numbers, texts and None by name."""

RESULTS = (
    *("labels_", "embedding_", "eigenvalues_", "n_clusters_", "gamma_", "order_", "gram_", "rank_", "precision_"),
    *("cut_", "cut_history_", "shift_", "residual_", "n_features_in_", "feature_names_in_"),
)
"""Fitted attributes that are written down. Others tell why something was chosen, or how long it took."""


@dataclass(frozen=True)
class Case:
    """What ``run`` does is written into a record."""

    name: str
    run: Callable[[Record], None]
    needs: tuple[str, ...] = ()
    """Packages without which it cannot run."""

    def lacks(self) -> list[str]:
        """The packages that are missing here."""
        return [package for package in self.needs if find_spec(package) is None]


def run_case(case: Case) -> Record:
    """Run a case in an empty folder of its own; what was raised and warned is part of the record."""
    record: Record = {}
    with _empty_folder(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            case.run(record)
        except Exception as error:
            record["error"] = described(error)
        record["warnings"] = ", ".join(sorted({w.category.__name__ for w in caught}))
    return record


@contextmanager
def _empty_folder() -> Iterator[None]:
    """Files are named relative to it, so that their names in messages are always the same."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def attempt(record: Record, name: str, call: Callable[[], Any]) -> None:
    """Write down what ``call`` returns, or the error that it raises."""
    try:
        note(record, name, call())
    except Exception as error:
        record[name] = described(error)


def note_model(record: Record, model: Any) -> None:
    """Write down the results of a fit."""
    for name in RESULTS:
        if hasattr(model, name):
            note(record, name, getattr(model, name))


def note(record: Record, name: str, value: Any) -> None:
    """Write down one value; lists by their members."""
    if hasattr(value, "compute"):  # of Dask
        value = value.compute()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str, np.ndarray)):
        record[name] = value
    elif isinstance(value, (list, tuple)):
        record[name] = f"{type(value).__name__} of {len(value)}"
        for number, member in enumerate(value):
            note(record, f"{name}[{number}]", member)
    else:
        record[name] = f"a {type(value).__name__}"  # without its module, which may move
