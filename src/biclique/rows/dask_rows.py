"""Rows of a Dask array or data frame: draw, sum and map are reductions with one task for each chunk.

A chunk is read inside its task, used and released; only what the task returns is kept. Results are added in a tree
that follows from the number of chunks alone. So sums have the same bits on threads and on a cluster, whoever finishes
first and whoever dies. Nobody else in the package imports Dask.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import count
from operator import iadd, or_
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from biclique._typing import Array, FloatArray, IntArray, Rows
from biclique.exceptions import BicliqueError, DataError
from biclique.progress import Progress
from biclique.rows.array import ArrayRows, Block, Check, Found, RowSource, Sum
from biclique.rows.checks import (
    MOST_NAMED,
    check_no_dates,
    check_no_mask,
    check_values,
    check_weight_values,
    check_weights,
    weight_unit,
)
from biclique.rows.dask_client import active_client, import_dask
from biclique.rows.dask_tiles import DaskSpread
from biclique.runtime.draws import draw_numbers
from biclique.runtime.memory import require_memory
from biclique.runtime.threads import one_thread

FAN_IN = 4
"""Results that one task of the tree adds: so many, less one, wait on each level, and are in memory."""

NUMBERS = "buif"
"""Kinds of NumPy's types that are numbers."""

QUIET = Progress(False)

NOTHING = np.empty((0, 0), dtype=object)
"""The example of arrays whose entries are parts that Dask asks for."""


# What a task does with its chunk


@dataclass(frozen=True)
class Part:
    """The result of one chunk or of several: their sum, the first error, and their checksums."""

    value: Any
    """None if the chunk has no rows."""
    error: Exception | None
    checksums: dict[int, int]


@dataclass(frozen=True)
class Work:
    """What a pass does with a chunk: the one large thing of a graph, so it is one key there."""

    function: Callable[[Block], Any]
    step: str
    """Such as "pass over the rows for the sums"."""
    names: Sequence[str] | None
    check: Check | None
    """For rows that nobody looked at so far."""
    lengths: IntArray | None
    """Of all chunks, if they are known."""
    checksums: dict[int, int]
    """Of the chunks in an earlier pass."""
    tick: Callable[[], None] | None = None
    """Called after every chunk, in this process alone."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "tick": None}

    def part(self, chunk: int, rows: Any, weights: Any = None) -> Part:
        """The function of one chunk, in this thread alone. An error is a value, so that the first one is raised."""
        try:
            with one_thread():
                block = self._block(chunk, rows, weights)
                if not block.rows.shape[0]:
                    return Part(None, None, {})
                checksum = checksum_of(block.rows)
                self._check(chunk, block, checksum)
                return Part(self.function(block), None, {chunk: checksum})
        except Exception as error:
            return Part(None, self._located(error, chunk), {})
        finally:
            if self.tick is not None:
                self.tick()

    def _block(self, chunk: int, rows: Any, weights: Any) -> Block:
        """A chunk as a float array or a CSR matrix, with its multiplicities."""
        first = 0 if self.lengths is None else int(self.lengths[:chunk].sum())
        check_no_mask(rows, "X", first)
        X: Rows = sparse.csr_array(rows.tocsr()) if hasattr(rows, "tocsr") else np.asarray(rows)
        if X.dtype.kind not in NUMBERS:
            raise DataError(f"it holds {X.dtype}, not numbers: drop such columns or turn them into numbers.")
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        n = int(X.shape[0])
        if self.lengths is not None and n != self.lengths[chunk]:
            raise DataError(f"it has {n} rows, and Dask says {self.lengths[chunk]}: give chunks that do not change.")
        if weights is None:
            return Block(X, np.ones(n), first)
        check_no_mask(weights, "sample_weight", first)
        if len(weights) != n:
            raise DataError(f"sample_weight has {len(weights)} numbers for its {n} rows: give one for each row.")
        w = np.asarray(weights[:, 0], dtype=np.float64)
        check_weight_values(w, "sample_weight", first)
        return Block(X, w, first)

    def _check(self, chunk: int, block: Block, checksum: int) -> None:
        if self.checksums.get(chunk, checksum) != checksum:
            raise DataError("its rows are not those of an earlier pass: leave them as they are until the fit is done.")
        if self.check is not None:
            check_values(block.rows, self.names, first_row=block.start)
            self.check(block.rows, range(block.start, block.start + block.rows.shape[0]))

    def _located(self, error: Exception, chunk: int) -> Exception:
        """The error of a chunk, with its place."""
        where = f"chunk {chunk} of X, in the {self.step}: "
        if not isinstance(error, BicliqueError):
            error.add_note(f"biclique, {where}a function raised this.")
            return error
        if self.lengths is None:
            where += "(rows are counted from the start of the chunk) "
        return type(error)(f"{where}{error}")


def checksum_of(rows: Rows) -> int:
    """By which a chunk that changes between passes is noticed."""
    if sparse.issparse(rows):
        return zlib.crc32(rows.indices, zlib.crc32(rows.data))
    return zlib.crc32(np.ascontiguousarray(rows.T if rows.flags.f_contiguous else rows).data)


def sum_chunk(*given: Any, work: Work, block_id: tuple[int, ...]) -> Part:
    """The task of a chunk in a reduction."""
    return work.part(block_id[0], *given)


def add_parts(parts: Sequence[Sequence[Part]], **_: Any) -> Part:
    """The task of the tree: sums in their order. Dask may use a part once more, so the first one is copied."""
    found = [part for (part,) in parts]
    first, *later = [part.value for part in found if part.value is not None] or [None]
    error = next((part.error for part in found if part.error is not None), None)
    return Part(reduce(iadd, later, deepcopy(first)), error, reduce(or_, (part.checksums for part in found)))


def map_chunk(rows: Any, *, work: Work, none: Array, block_id: tuple[int, ...]) -> Array:
    """The task of a lazy result, whose errors are raised; ``none`` is the result of a chunk without rows."""
    found = work.part(block_id[0], rows)
    if found.error is not None:
        raise found.error
    return none if found.value is None else np.asarray(found.value, none.dtype).reshape(len(found.value), -1)


# The source


class DaskRows(RowSource):
    """Rows of a Dask array in chunks of rows, with multiplicities as a column in the same chunks."""

    in_memory = False

    def __init__(self, array: Any, names: Sequence[str] | None, check: Check) -> None:
        self.array, self.names = array, names
        self.n_columns = int(array.shape[1])
        self._weights: tuple[Any, ...] = ()  # a column, if there are any
        self._check: Check | None = check
        self._checksums: dict[int, int] = {}

    @property
    def known(self) -> bool:
        """Whether the lengths of the chunks are known."""
        return "lengths" in self.__dict__ or not np.isnan(self.array.chunks[0]).any()

    @cached_property
    def lengths(self) -> IntArray:
        """Rows of every chunk; counted once if Dask does not know them."""
        array = self.array if self.known else self._run(self.array.copy().compute_chunk_sizes, "count of the rows")
        return np.asarray(array.chunks[0], dtype=np.intp)

    @property
    def n_rows(self) -> int:
        return int(self.lengths.sum())

    @property
    def n_counted(self) -> int:
        return sum(self._counted.values())

    @cached_property
    def _counted(self) -> dict[int, int]:
        """For the first row of every chunk with rows: how many of them have a positive weight.

        From then on, weights of an unusual size are divided by their mean.
        """
        if not self._weights:
            starts = np.cumsum(self.lengths) - self.lengths
            return {int(start): int(n) for start, n in zip(starts, self.lengths, strict=True) if n}

        def look(block: Block) -> tuple[int, int, float, float]:
            w = block.weights
            return block.start, int((w > 0).sum()), float(w.max()), float(w.sum())

        found = self.map(look, "weights", QUIET)
        if found and not any(counted for _, counted, _, _ in found):
            raise DataError("sample_weight is zero in every row: at least one row must count.")
        if found:
            largest, total = max(high for _, _, high, _ in found), sum(part for *_, part in found)
            unit = weight_unit(largest, total / self.n_rows)
            self._weights = self._weights if unit == 1 else (self._weights[0] / unit,)
        return {start: counted for start, counted, _, _ in found}

    def for_gram(self, gram: str) -> RowSource:
        """These rows; for exact tiles all of them in memory, and workers run the passes if there is a cluster."""
        if gram != "tiled":
            return self
        what = f"gram='tiled' on a cluster: all {self.n_rows} rows, here and on every worker,"
        way_out = "use gram='nystroem', for which rows stay where they are."
        require_memory(16 * self.n_rows * self.n_columns, what, way_out)
        pieces = self.map(lambda block: (block.rows, block.weights), "rows", QUIET)
        rows, weights = self._joined(pieces)
        gathered = ArrayRows(rows, check_weights(weights, len(weights)), self.names)
        gathered.spread = None if active_client() is None else DaskSpread()
        gathered.note = self.note
        return gathered

    def _joined(self, pieces: Sequence[tuple[Rows, FloatArray]]) -> tuple[Rows, FloatArray]:
        """Rows of several chunks with their weights, one below the other."""
        if not pieces:
            raise self._no_rows()
        rows, weights = zip(*pieces, strict=True)
        stacked = sparse.vstack(rows, format="csr") if any(map(sparse.issparse, rows)) else np.concatenate(rows)
        return stacked, np.concatenate(weights)

    def _no_rows(self) -> DataError:
        chunks = "its only chunk is" if len(self.lengths) == 1 else f"all {len(self.lengths)} chunks are"
        return DataError(
            f"X has no rows ({chunks} empty): at least 2 are needed. Look at the files or the filter that X is made of."
        )

    # The three verbs

    def draw(self, size: int, random: np.random.RandomState) -> tuple[Rows, FloatArray]:
        numbers = draw_numbers(self.n_counted, size, random)  # among the rows that count
        before = dict(zip(self._counted, np.cumsum([0, *self._counted.values()]), strict=False))

        def take(block: Block) -> tuple[Rows, FloatArray]:
            counted, first = np.flatnonzero(block.weights > 0), before[block.start]
            low, high = np.searchsorted(numbers, [first, first + len(counted)])
            places = counted[numbers[low:high] - first]
            return block.rows[places], block.weights[places]

        rows, weights = self._joined(self.map(take, "draw", QUIET))
        check_values(rows, self.names)  # of a chunk alone it does not matter if all values are tiny
        return rows, weights

    def map(self, function: Callable[[Block], Found], what: str, progress: Progress) -> list[Found]:
        return self._reduce(lambda block: [function(block)], what, progress) or []

    def sum(self, function: Callable[[Block], Sum], what: str, progress: Progress) -> Sum:
        found: Sum | None = self._reduce(function, what, progress)
        if found is None:
            raise self._no_rows()
        return found

    def _reduce(self, function: Callable[[Block], Any], what: str, progress: Progress) -> Any:
        """Σ of a function over the chunks; None if there are no rows."""
        work, n_chunks = self._pass(function, what, progress), len(self.lengths)
        parts = self._tasks(sum_chunk, work, self.array, *self._weights, chunks=((1,) * n_chunks, (1,)), meta=NOTHING)
        total = import_dask().array.reduction(
            parts,
            chunk=lambda part, **_: part,
            combine=add_parts,
            aggregate=add_parts,
            axis=(0, 1),
            keepdims=True,
            concatenate=False,
            split_every={0: FAN_IN, 1: 1},
            dtype=object,
            meta=NOTHING,
            name=parts.name,
        )
        found: Part = self._run(total.compute, work.step)
        progress.share(work.step, 1.0)
        if found.error is not None:
            raise found.error
        self._check = None
        self._checksums |= found.checksums
        return found.value

    # What every row gets

    def keep(
        self, function: Callable[[Rows], Array], columns: int, dtype: DTypeLike, what: str, progress: Progress
    ) -> DaskRows:
        work = self._pass(lambda block: function(block.rows), what, progress)
        kept = DaskRows(self._run(self._of_rows(work, columns, dtype).persist, work.step), None, no_check)
        kept._weights = self._weights
        progress.share(work.step, 1.0)
        return kept

    def label(
        self, function: Callable[[Rows], Array], n_clusters: int, progress: Progress
    ) -> tuple[IntArray, IntArray]:
        """Labels as a lazy collection, and the rows of every cluster; clusters without rows are left out of the former.

        Labels are computed once and kept where the chunks are: a byte for each row, or two.
        """
        labels = self.keep(function, 1, np.min_scalar_type(n_clusters), "labels", progress).array[:, 0]
        sizes = self._run(import_dask().array.bincount(labels, minlength=n_clusters).compute, "count of the labels")
        numbers = np.cumsum(sizes > 0) - 1
        return labels.map_blocks(numbers.take, dtype=np.intp), sizes

    def later(
        self, function: Callable[[Rows], Array], columns: int | None, dtype: DTypeLike, *, checked: bool = False
    ) -> Array:
        step, check = "computation of a lazy result", None if checked else no_check
        lengths = self.lengths if self.known else None
        work = Work(lambda block: function(block.rows), step, self.names, check, lengths, self._checksums)
        found = self._of_rows(work, columns or 1, dtype)
        return found if columns else found[:, 0]  # type: ignore[no-any-return]

    # Tasks

    def _pass(self, function: Callable[[Block], Any], what: str, progress: Progress) -> Work:
        """What a pass does, with its progress."""
        step, done = f"pass over the rows for the {what}", count(1)

        def tick() -> None:
            progress.share(step, next(done) / len(self.lengths))

        progress.share(step, 0.0)
        return Work(function, step, self.names, self._check, self.lengths, self._checksums, tick)

    def _of_rows(self, work: Work, columns: int, dtype: DTypeLike) -> Any:
        """What a function of rows gives, in chunks of the same rows."""
        rows = self.array.chunks[0] if work.lengths is None else tuple(map(int, work.lengths))
        none = np.empty((0, columns), dtype)
        return self._tasks(partial(map_chunk, none=none), work, self.array, chunks=(rows, (columns,)), meta=none)

    def _tasks(self, task: Callable[..., Any], work: Work, *arrays: Any, meta: Array, chunks: Any) -> Any:
        """A Dask array with one task for each chunk of these arrays."""
        dask = import_dask()
        return dask.array.map_blocks(
            task,
            *arrays,
            work=dask.delayed(work, pure=False, traverse=False),
            name=f"biclique-{work.step.split()[-1]}-{uuid4().hex[:8]}",
            dtype=meta.dtype,
            meta=meta,
            chunks=chunks,
        )

    def _run(self, compute: Callable[[], Any], step: str) -> Any:
        """What Dask computes; an error of the cluster, or of a chunk that cannot be read, in one sentence."""
        try:
            return compute()
        except BicliqueError:
            raise
        except Exception as error:
            kind = type(error).__name__
            if kind == "KilledWorker":
                raise DataError(
                    f"{_chunk_of(error)}, in the {step}: every worker that took it died ({error}). If it does not fit "
                    "a worker's memory, use smaller chunks or a lower rank."
                ) from error
            if kind == "CommClosedError":
                raise DataError(f"in the {step}: the cluster does not answer any more ({error}).") from error
            for i in range(self.array.numblocks[0]):
                read = self.array.blocks[i].map_blocks(lambda _: NOTHING, dtype=object, meta=NOTHING)
                try:
                    read.compute()
                except Exception as cause:
                    text = f"it cannot be read ({type(cause).__name__}: {cause})"
                    raise DataError(f"chunk {i} of X, in the {step}: {text}.") from error
            raise


def no_check(rows: Rows, numbers: Sequence[int] | np.ndarray) -> None:
    """Values are looked at; the kernel asks nothing more of new rows."""


def _chunk_of(error: Any) -> str:
    """Which task killed its workers."""
    name, *place = error.task if isinstance(error.task, tuple) else (error.task,)
    if not place or "-partial-" in name or "-aggregate-" in name:
        return f"a sum ({name})"
    return f"chunk {place[0]} of X"


# From what users have


def open_dask_rows(X: Any, sample_weight: Any, check: Check) -> DaskRows:
    """A row source of a Dask array or data frame; ``sample_weight`` may be one of Dask's too."""
    if import_dask().config.get("array.query-planning", False):
        raise DataError(
            "Dask's setting array.query-planning is on, and its arrays cannot do yet what is needed: leave it off "
            "(DASK_ARRAY__QUERY_PLANNING=False when Python starts)."
        )
    source = DaskRows(*as_array(X), check)
    notes = [] if source.known else ["the lengths of the chunks were not known: they are read once"]
    if sample_weight is not None:
        if not source.n_rows:
            raise source._no_rows()
        source._weights = (weight_column(sample_weight, tuple(map(int, source.lengths))),)
    client = active_client()
    if client is not None:
        notes.append(f"tasks run on {client.scheduler.address}, dashboard: {client.dashboard_link}")
    source.note = "; ".join(notes)
    return source


def as_array(X: Any) -> tuple[Any, list[str] | None]:
    """A Dask array whose chunks hold all columns, and the names of a frame's columns."""
    names = None
    if isinstance(getattr(X, "npartitions", None), int) and hasattr(X, "to_dask_array"):
        X, names = _of_frame(X)
    if not isinstance(getattr(X, "chunks", None), tuple) or hasattr(X, "coords"):
        raise DataError(
            f"X is a {type(X).__name__} of Dask, and an array or a data frame is needed: pass one, such as .data of an "
            "xarray.DataArray."
        )
    if len(X.shape) != 2:
        raise DataError(f"X must have two axes, rows and columns, got shape {X.shape}.")
    if not X.shape[1] > 0:
        raise DataError(
            f"X has {X.shape[1]} columns, and a number above 0 is needed: call X.compute_chunk_sizes() first."
        )
    if X.dtype.kind not in "buif":
        numbers = " (X.astype(float), if each of them is one)" if X.dtype == object else ""
        raise DataError(f"X holds {X.dtype}, not numbers: drop such columns or turn them into numbers{numbers}.")
    return X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X, names


def _of_frame(frame: Any) -> tuple[Any, list[str]]:
    if frame.ndim != 2:
        raise DataError(
            f"X must have two axes, rows and columns, and is a {type(frame).__name__} of one: pass X.to_frame()."
        )
    check_no_dates(frame)
    names, kinds = [str(name) for name in frame.columns], list(frame.dtypes)
    text = [repr(name) for name, kind in zip(names, kinds, strict=True) if getattr(kind, "kind", "O") not in "buif"]
    if text:
        raise DataError(
            f"X has columns that are not numbers: {', '.join(text[:MOST_NAMED])}. Drop them, or turn them into numbers "
            "first."
        )
    if len(set(kinds)) > 1 or not isinstance(kinds[0], np.dtype):
        frame = frame.astype(np.float64)  # pandas' own kinds have missing values that are no NaN
    return frame.to_dask_array(), names


def weight_column(sample_weight: Any, lengths: tuple[int, ...]) -> Any:
    """Multiplicities as a Dask array of one column in the chunks of the rows."""
    if not hasattr(sample_weight, "__dask_graph__"):
        weights = check_weights(sample_weight, sum(lengths))
        return import_dask().array.from_array(weights[:, None], chunks=(lengths, (1,)))
    if hasattr(sample_weight, "to_dask_array"):
        sample_weight = sample_weight.to_dask_array()
    if len(sample_weight.shape) != 1:
        raise DataError(
            f"sample_weight must have one axis, and has shape {sample_weight.shape}: pass one number for each row (one "
            "column)."
        )
    if sample_weight.dtype.kind not in "buif":
        raise DataError(f"sample_weight must be numbers, one for each row, got {sample_weight.dtype}.")
    chunks = sample_weight.chunks[0]
    if len(chunks) != len(lengths) or not (np.isnan(chunks).any() or tuple(chunks) == lengths):
        raise DataError(
            f"sample_weight has {sum(chunks)} numbers in {len(chunks)} chunks, X has {sum(lengths)} rows in "
            f"{len(lengths)}: give one for each row, in the same chunks (sample_weight.rechunk((X.chunks[0],)))."
        )
    return sample_weight[:, None]


def token_of(values: Any) -> Any:
    """What tells values apart for Dask, which names its tasks by it."""
    return import_dask().base.normalize_token(values)
