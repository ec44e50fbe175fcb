"""``save`` and ``load``: a fitted model as one file, which runs no code when it is read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator

from biclique import __version__
from biclique.exceptions import BicliqueError, DataError, ParameterError, printable
from biclique.fit.plan import FACTORED_WAY, NEIGHBORHOODS
from biclique.fit.state import Value
from biclique.models.archive import DAMAGED, read_archive, write_archive
from biclique.models.contents import HEAVY, model_from, model_state, what_predict_needs
from biclique.runtime import format_bytes
from biclique.tables.atomic_files import check_target

Notes = Mapping[str, Value]


@dataclass(frozen=True)
class Saved:
    """What ``save`` wrote; printed, a sentence."""

    path: str
    bytes: int
    """Of the file."""
    parts: Mapping[str, int]
    """Bytes of every array by its place in the model, the largest first; ``"text"`` is everything that is not an array.
    """
    needs: str = ""
    """What of the training rows ``predict`` needs."""

    def __str__(self) -> str:
        return f"{self.path}: {format_bytes(self.bytes)}" + (f", {self.needs}" if self.needs else "")


def save(
    model: BaseEstimator, path: str | os.PathLike[str], *, include: Sequence[str] = (), notes: Notes | None = None
) -> Saved:
    """Write a fitted model, or a pipeline that ends in one, into a file.

    The file is a zip of JSON and .npy arrays. ``load`` makes the same model of it: ``predict``, ``transform`` and
    ``predict_proba`` give the same bits. It holds estimators of biclique, scikit-learn's scalers and pipelines of
    these; anything else is refused by its name. The file is written whole or not at all.

    Parameters
    ----------
    model : estimator or Pipeline
    path : str or path
        Such as "model.biclique". An existing file is replaced.
    include : sequence of "labels_", "embedding_"
        What is left out otherwise: one value or one row for every training row, which ``predict`` does not need.
    notes : dictionary, optional
        Text, numbers, lists and dictionaries to keep beside the model; ``load_with_notes`` returns them.

    Returns
    -------
    Saved
        With ``bytes`` and ``parts``; printed, it says how large the file is and what makes it so.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import biclique
    >>> X = load_iris().data
    >>> model = biclique.BicliqueSpectralClustering(3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = biclique.save(model, pathlib.Path(folder) / "iris.biclique")
    ...     again = biclique.load(saved.path)
    >>> bool((again.predict(X) == model.labels_).all())
    True
    """
    if isinstance(include, str) or not set(include) <= set(HEAVY):
        raise ParameterError(f"include must be a list of some of {', '.join(map(repr, HEAVY))}, got {include!r}.")
    check_target(path)
    state = {"model": model_state(model, include), "notes": _noted(dict(notes or {}), "notes")}
    made_by = {
        "biclique": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    parts = write_archive(path, state, made_by)
    ordered = dict(sorted(parts.items(), key=lambda part: -part[1]))
    return Saved(os.fspath(path), Path(path).stat().st_size, ordered, _needs(model))


def load(path: str | os.PathLike[str], *, memory_limit: int | str = "auto") -> Any:
    """The model in a file that ``save`` wrote.

    No code in the file is run: it holds numbers and text, and the classes it may name are a fixed list. A file that
    is damaged, or of a newer version, is a ``DataError``.

    Parameters
    ----------
    path : str or path
    memory_limit : "auto", int or str, default "auto"
        A larger file is refused before it is read; "auto" is half of what is free.
    """
    return load_with_notes(path, memory_limit=memory_limit)[0]


def load_with_notes(path: str | os.PathLike[str], *, memory_limit: int | str = "auto") -> tuple[Any, dict[str, Any]]:
    """The model in a file, and the notes that were saved beside it."""
    name = printable(os.fspath(path))
    state, made_by = read_archive(path, memory_limit)
    model, notes = state.get("model"), state.get("notes")
    if not isinstance(model, dict) or not isinstance(notes, dict):
        raise DataError(f"{name}: holds no model: {DAMAGED}.")
    by = f"written by biclique {printable(made_by.get('biclique'))}, this is {__version__}"
    try:
        return model_from(model), notes
    except BicliqueError as error:
        raise DataError(f"{name}: {str(error).rstrip('.')} ({by}): fit and save it again.") from error
    except Exception as error:  # fields that are missing, too many or of another kind
        raise DataError(f"{name}: its parts do not make a model ({printable(error)}; {by}): {DAMAGED}.") from error


def _noted(value: object, name: str) -> Any:
    """Notes as plain values."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_noted(x, name) for x in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _noted(x, f"{name}[{key!r}]") for key, x in value.items()}
    raise ParameterError(f"{name} must be text, numbers, lists or dictionaries of these, got a {type(value).__name__}.")


def _needs(model: BaseEstimator) -> str:
    """What of the training rows the file holds, in words."""
    said = []
    for plan in what_predict_needs(model).values():
        if plan.way == NEIGHBORHOODS:
            said.append(f"with {plan.rank} landmarks: rows, or means of rows")
        elif plan.way == FACTORED_WAY:
            said.append(
                f"with {plan.rank} {'landmarks' if plan.gram == 'nystroem' else 'features'} instead of the rows"
            )
        else:
            said.append(f"with all {plan.rows} distinct training rows, which exact predictions need")
    return " and ".join(said)
