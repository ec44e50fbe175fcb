"""Every error and warning that biclique raises on purpose, and names from data in their messages."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import sklearn
from sklearn.exceptions import ConvergenceWarning

_INSIDE = tuple(str(Path(file).parent) for file in (__file__, str(sklearn.__file__)))


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the caller's own code, however deep inside this package or scikit-learn we are."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def printable(text: object) -> str:
    r"""One line that a terminal shows as it is: ``\n`` for a line end, ``\x1b`` for what starts its commands.

    Names of files, columns, classes and rows can hold anything.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


class BicliqueError(Exception):
    """Base of every error raised on purpose."""


class ParameterError(BicliqueError, ValueError):
    """An argument has a value that is not allowed."""


class DataError(BicliqueError, ValueError):
    """The data cannot be used as they are."""


class TableError(DataError):
    """A table file cannot be read; the message names the row and the column."""


class DegreeError(DataError):
    """A shrunken degree S_i, or the total similarity ρ, is not positive."""


class MemoryLimitError(BicliqueError, MemoryError):
    """The work would not fit the memory limit; raised before anything is allocated."""


class MissingExtraError(BicliqueError, ImportError):
    """An optional package is needed; the message holds the install line."""


def optional(name: str, needed: str) -> Any:
    """An optional package. If it is not installed, an error says what needs it, with the line that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(needed) from error


class BicliqueWarning(UserWarning):
    """Base of every warning."""


class ColumnSpreadWarning(BicliqueWarning):
    """Columns live on scales more than a hundred times apart."""


class ApproximationWarning(BicliqueWarning):
    """K is approximated without having been asked to be, or less well than was aimed at."""


class DisconnectedWarning(BicliqueWarning):
    """The kernel falls into parts that do not touch each other."""


class TableWarning(BicliqueWarning):
    """Rows or values of a table were left out, or could not be distinguished."""


class RankWarning(BicliqueWarning):
    """The kernel has fewer informative eigenvectors than were asked for."""


class GapsWarning(BicliqueWarning):
    """Missing values: a column without a value, rows without a column in common, or eigenvalues that were clipped."""


class SelectionWarning(BicliqueWarning):
    """A search for settings ended early, or its choice did not do for all rows."""


class StructureWarning(BicliqueWarning):
    """A search for the number of clusters found no structure."""


class FewerClustersWarning(BicliqueWarning, ConvergenceWarning):
    """Fewer labels came out than were asked for."""


class SolverWarning(BicliqueWarning, ConvergenceWarning):
    """Some eigenpairs are above the tolerance."""
