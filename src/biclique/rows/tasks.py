"""What a task does with chunks of rows on a worker, and what it returns: values, first failures, warnings.

No Dask in here: a task is a function, and chunks are arrays.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from biclique._typing import Array, FloatArray, IntArray, Rows
from biclique.exceptions import BicliqueError, DataError
from biclique.rows.array import Block, Check
from biclique.rows.checks import check_no_mask, check_values, check_weight_values
from biclique.runtime.threads import one_thread, single_threaded_blas

Warned = list[tuple[str, type[Warning]]]
"""Texts and categories of warnings."""

NOTE = "biclique, in the"
"""How the note of an error begins that was raised by a function of ours."""


@dataclass(frozen=True)
class Place:
    """Where a chunk stands."""

    chunk: int
    start: int
    """The number of its first row; −1 if that is not known."""
    length: int
    """Its rows; −1 if that is not known."""

    @property
    def first(self) -> int:
        return max(self.start, 0)


@dataclass
class Failure:
    """What went wrong in a chunk."""

    place: Place
    error: BicliqueError

    def named(self, told: str) -> BicliqueError:
        """The error, with the chunk and the pass."""
        where = f"chunk {self.place.chunk} of X, in the {told}: "
        if self.place.start < 0:
            where += "(rows are counted from the start of the chunk) "
        return type(self.error)(where, *self.error.args)


@dataclass
class Outcome:
    """Of one chunk or of several: a value, what was warned of, and the first failure."""

    value: Any = None
    failure: Failure | None = None
    warned: Warned = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """A later one; values are added in place."""
        self.warned += [one for one in other.warned if one not in self.warned]
        self.failure = self.failure or other.failure
        if self.failure is None and other.value is not None:
            self.value = other.value if self.value is None else self.value.__iadd__(other.value)

    def __sizeof__(self) -> int:
        """Bytes with those of the value: Dask asks Python, to decide where tasks run and what memory is in use."""
        return object.__sizeof__(self) + array_bytes(self.value)


def array_bytes(value: Any) -> int:
    """Bytes of the arrays that a value holds: itself, in lists, or in its attributes."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    held = value if isinstance(value, list | tuple) else getattr(value, "__dict__", {}).values()
    return sum(map(array_bytes, held))


@dataclass(frozen=True)
class Work:
    """What a pass does with a chunk: the one large thing of a graph, so it is one key there."""

    function: Callable[[Block], Any]
    told: str
    """Which pass this is, in words."""
    n_columns: int
    names: Sequence[str] | None = None
    check: Check | None = None
    """For rows that nobody looked at so far."""
    lengths: IntArray | None = None
    """Of all chunks, if they are known. In one place: tasks are many, and name a chunk by its number alone."""

    def place(self, chunk: int) -> Place:
        """Where a chunk stands."""
        if self.lengths is None:
            return Place(chunk, -1, -1)
        return Place(chunk, int(self.lengths[:chunk].sum()), int(self.lengths[chunk]))

    def of_chunk(self, pieces: Sequence[Any], weights: Any, place: Place) -> Any:
        """The function of one chunk, given as pieces of its columns; None of an empty one."""
        rows = as_rows(pieces, self.n_columns, place.first)
        n = int(rows.shape[0])
        if n != place.length and place.length >= 0:
            raise DataError(f"it has {n} rows, and Dask says {place.length}: give chunks their true lengths.")
        if n == 0:
            return None
        if self.check is not None:
            check_values(rows, self.names, first_row=place.first)
            self.check(rows, range(place.first, place.first + n))
        return self.function(Block(rows, as_weights(weights, n, place.first), place.first))

    def outcome(self, pieces: Sequence[Any], weights: Any, place: Place) -> Outcome:
        """The same in this thread alone, with what is ours to say as a value."""
        found = Outcome()
        with one_thread(), single_threaded_blas(), kept_warnings(found.warned):
            try:
                found.value = self.of_chunk(pieces, weights, place)
            except BicliqueError as error:
                found.failure = Failure(place, error)
            except Exception as error:
                error.add_note(f"{NOTE} {self.told}: chunk {place.chunk} of X, whose first row is row {place.first}.")
                raise
        return found


def as_rows(pieces: Sequence[Any], n_columns: int, first_row: int = 0) -> Rows:
    """The columns of a chunk side by side: a float array or a CSR matrix."""
    rows: Any
    for piece in pieces:
        check_no_mask(piece, "X", first_row)
    if any(hasattr(piece, "tocsr") for piece in pieces):
        rows = sparse.hstack([sparse.csr_array(piece.tocsr()) for piece in pieces], format="csr")
    else:
        arrays = [np.asarray(piece) for piece in pieces]
        if any(array.dtype.kind not in "buif" for array in arrays):
            kinds = ", ".join(sorted({str(array.dtype) for array in arrays}))
            raise DataError(f"it holds {kinds}, not numbers: drop such columns or turn them into numbers.")
        rows = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)
    if rows.ndim != 2 or rows.shape[1] != n_columns:
        raise DataError(f"it has shape {rows.shape}, and {n_columns} columns were expected.")
    found: Rows = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
    return found


def as_weights(weights: Any, n: int, start: int) -> FloatArray:
    """Multiplicities of a chunk: finite, none negative."""
    if weights is None:
        return np.ones(n)
    check_no_mask(weights, "sample_weight", start)
    given = np.asarray(weights)
    if given.dtype.kind not in "buifO":  # of dates NumPy would make numbers
        raise DataError(f"sample_weight must be numbers, one for each row, got {given.dtype}.")
    try:
        found: FloatArray = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must be numbers, one for each row ({error}).") from error
    if found.shape != (n,):
        raise DataError(f"sample_weight has shape {found.shape} for its {n} rows: give one number for each row.")
    check_weight_values(found, "sample_weight", start)
    return found


# Tasks


def fold(work: Work, chunks: Sequence[Any], weights: Sequence[Any] | None, numbers: Sequence[int]) -> Outcome:
    """The sum of the function over a few chunks, given with their numbers."""
    total = Outcome()
    for i, (pieces, number) in enumerate(zip(chunks, numbers, strict=True)):
        total.add(work.outcome(pieces, None if weights is None else weights[i], work.place(number)))
        if total.failure is not None:
            break
    return total


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Sums of tasks, in their order. Dask may hand out what it gave once more, so the first one is copied."""
    total = deepcopy(outcomes[0])
    for other in outcomes[1:]:
        total.add(other)
    return total


def listed(outcomes: Sequence[Outcome]) -> Outcome:
    """What tasks returned, as a list."""
    total = Outcome([])
    for one in outcomes:
        total.add(Outcome([] if one.value is None else [one.value], one.failure, one.warned))
    return total


def length_of(pieces: Sequence[Any]) -> Outcome:
    return Outcome(int(pieces[0].shape[0]))


@dataclass(frozen=True)
class LaterWork:
    """What a lazy collection does with a chunk; errors are raised where it is computed."""

    work: Work
    columns: int | None
    dtype: DTypeLike

    def __call__(self, rows: Any, chunk: int) -> Array:
        found = self.work.outcome([rows], None, self.work.place(chunk))
        if found.failure is not None:
            raise found.failure.named(self.work.told)
        for text, category in found.warned:
            warnings.warn(text, category, stacklevel=2)
        if found.value is None:
            return np.empty((0,) if self.columns is None else (0, self.columns), self.dtype)
        return np.asarray(found.value, self.dtype)


def call_later(rows: Any, number: Array, holder: Array) -> Array:
    """A task of a lazy collection: arrays of Dask's hold the number of the chunk, and the work, which is one key."""
    later: LaterWork = holder.item()
    return later(rows, int(number.item()))


# Warnings as values


class _Keeper(threading.local):
    """Where the warnings of this thread go while it runs a task."""

    found: Warned | None = None


_keeper, _lock = _Keeper(), threading.Lock()
_shown: list[Any] = []
"""What showed warnings before tasks began, once for every task that runs now."""


def _show(message: Any, category: Any, *where: Any, **more: Any) -> None:
    if _keeper.found is None:
        _shown[0](message, category, *where, **more)
    elif (str(message), category) not in _keeper.found:
        _keeper.found.append((str(message), category))


@contextmanager
def kept_warnings(found: Warned) -> Iterator[None]:
    """Warnings of this thread as values: ``warnings.catch_warnings`` is for one thread, and workers have several."""
    with _lock:
        _shown.append(_shown[0] if _shown else warnings.showwarning)
        warnings.showwarning = _show
    before, _keeper.found = _keeper.found, found
    try:
        yield
    finally:
        _keeper.found = before
        with _lock:
            original = _shown.pop()
            if not _shown and warnings.showwarning is _show:
                warnings.showwarning = original
