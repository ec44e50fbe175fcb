"""One case, run and written down, and what differs between two records of a case."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

Record = dict[str, Any]
"""Arrays, numbers, texts and None by name."""

RESULTS = (
    *("labels_", "embedding_", "eigenvalues_", "n_clusters_", "gamma_", "order_", "gram_", "rank_", "precision_"),
    *("cut_", "cut_history_", "shift_", "residual_", "n_features_in_", "feature_names_in_"),
)
"""Fitted attributes that are written down. Others tell why something was chosen, or how long it took."""

TOLERANCE = 1e-9
"""Of numbers, relative to the largest of their array. One environment gives the same bits for the same operations;
the rest allows sums in another order."""


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
    # Files are named relative to the folder, so that their names in messages are always the same.
    with tempfile.TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        attempt(record, "error", lambda: case.run(record))
    record["warnings"] = ", ".join(sorted({w.category.__name__ for w in caught}))
    return record


def attempt(record: Record, name: str, call: Callable[[], Any]) -> None:
    """Write down what ``call`` returns, or the error that it raises."""
    try:
        note(record, name, call())
    except Exception as error:
        record[name] = f"{type(error).__name__}: {error}"


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
    if isinstance(value, (list, tuple)):
        for number, member in enumerate(value):
            note(record, f"{name}[{number}]", member)
        value = f"{type(value).__name__} of {len(value)}"
    if not (value is None or isinstance(value, (bool, int, float, str, np.ndarray))):
        value = f"a {type(value).__name__}"  # without its module, which may move
    record[name] = value


def differences(old: Record, new: Record) -> Iterator[tuple[str, str]]:
    """The name of every value that differs, and how."""
    for name in sorted({*old, *new}):
        how = difference(old.get(name, "nothing"), new.get(name, "nothing"))
        if how:
            yield name, how


def difference(old: Any, new: Any) -> str:
    """How two values differ; empty if they do not."""
    if _kind(old) != _kind(new):
        return f"{_short(old)} -> {_short(new)}"
    if not isinstance(old, (float, np.ndarray)):
        return "" if old == new else f"{_short(old)} -> {_short(new)}"
    old, new = np.asarray(old), np.asarray(new)
    largest = np.abs(old[np.isfinite(old)]).max(initial=0.0) if old.dtype.kind in "fc" else 0
    same = np.isclose(old, new, rtol=0, atol=TOLERANCE * largest, equal_nan=True) if largest else old == new
    if np.all(same | ((old != old) & (new != new))):
        return ""
    return f"{np.count_nonzero(~same)} of {old.size} differ, the largest is {largest:.2g}"


def _kind(value: Any) -> Any:
    return (value.shape, value.dtype) if isinstance(value, np.ndarray) else type(value)


def _short(value: Any) -> str:
    text = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) <= 160 else f"{text[:80]} … {text[-70:]}"
