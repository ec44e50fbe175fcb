"""One case, run and written down: fitted attributes, labels and embeddings of new rows, costs, warnings, errors."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

Record = dict[str, Any]
"""Arrays, numbers, texts and None by name."""


@dataclass(frozen=True)
class Case:
    """What ``run`` does is written into a record; ``needs`` names the packages without which it cannot run."""

    name: str
    run: Callable[[Record], None]
    needs: tuple[str, ...] = ()

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
            record["error"] = told(error)
        record["warnings"] = "\n".join(f"{w.category.__name__}: {w.message}" for w in caught)
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


def told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def attempt(record: Record, name: str, call: Callable[[], Any]) -> None:
    """Write down what ``call`` returns, or the error that it raises."""
    try:
        note(record, name, call())
    except Exception as error:
        record[name] = told(error)


def note_model(record: Record, model: Any, prefix: str = "") -> None:
    """Write down every public fitted attribute."""
    for name in dir(model):
        if name.endswith("_") and not name.startswith("_") and name != "plan_":  # its decisions are attributes too
            attempt(record, prefix + name, lambda name=name: getattr(model, name))


def note(record: Record, name: str, value: Any) -> None:
    """Write down one value: arrays, numbers and texts as they are, dataclasses and lists by their members."""
    if value is None or isinstance(value, (bool, int, float, str, np.ndarray)):
        record[name] = value
    elif isinstance(value, np.generic):
        record[name] = value.item()
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            note(record, f"{name}.{field.name}", getattr(value, field.name))
    elif isinstance(value, (list, tuple)):
        record[name] = f"{type(value).__name__} of {len(value)}"
        for number, member in enumerate(value):
            note(record, f"{name}[{number}]", member)
    else:
        record[name] = f"a {type(value).__name__}"  # without its module, which may move
