"""Rows of a Dask array or data frame: draw, sum and map as tasks, wherever its chunks lie.

A pass is one graph: a task that reads a few consecutive chunks and works on them, and sums of these in a tree. How
chunks are grouped and added follows from their lengths alone, so sums have the same bits whatever the workers, the
order of completion or deaths. The function of a pass is one key; only what it returns travels. Nobody else in the
package imports Dask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from biclique._typing import Array, FloatArray, IntArray, Rows
from biclique.exceptions import BicliqueError, DataError, optional, warn_user
from biclique.progress import Progress
from biclique.rows.array import ArrayRows, Block, Check, Found, RowSource, Sum
from biclique.rows.checks import check_no_dates, check_values
from biclique.rows.tasks import NOTE, LaterWork, Outcome, Work, call_later, fold, length_of, listed, merged
from biclique.runtime import draw_numbers, parse_memory_limit, require

ROWS_PER_RANK = 16
"""Rows of a task for every column of a feature map: its result, rank × rank, is small beside its work then."""

FAN_IN = 8
"""Results that one task of the tree adds."""

POLL_SECONDS = 0.2

QUIET = Progress(False)


def import_dask() -> Any:
    """Dask, or the line that installs it."""
    needed = "Dask collections need dask with its arrays: pip install 'biclique[dask]'"
    optional("dask.array", needed)
    return optional("dask", needed)


def import_distributed() -> Any:
    """Dask's scheduler for clusters, or the line that installs it."""
    return optional("distributed", "a Dask cluster needs distributed: pip install 'biclique[dask]'")


def array_of_pieces(read: Callable[[int], Array], lengths: Sequence[int], n_columns: int, dtype: DTypeLike) -> Any:
    """A Dask array of one chunk for every piece; ``read`` gives the rows of one by its number."""
    dask = import_dask()
    numbers = dask.array.from_array(np.arange(len(lengths)), chunks=1, name=_name("numbers"))
    return numbers.map_blocks(
        lambda number: read(int(number[0])),
        chunks=(tuple(lengths), (n_columns,)),
        new_axis=1,
        dtype=np.dtype(dtype),
        meta=np.empty((0, 0), dtype),
        name=_name("read"),
    )


def _delayed(collections: Any, tasks: dict[Any, Any], key: Any) -> Any:
    """A task that is to be computed, with those that it needs: ours, and those of some collections."""
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    layer = _name("layer")
    return Delayed(key, HighLevelGraph.from_collections(layer, tasks, collections), layer=layer)


class DaskRows(RowSource):
    """Rows of a Dask array in chunks of rows, with multiplicities in the same chunks."""

    lazy = True

    def __init__(
        self, array: Any, weights: Any, names: Sequence[str] | None, check: Check, lengths: IntArray | None = None
    ) -> None:
        self.array, self._weights, self.names, self._check = array, weights, names, check
        self.n_columns = int(array.shape[1])
        self.weights = None  # of all rows at once: they are never here
        self._checked = False
        self._known: IntArray | None = lengths
        self._inner: dict[Any, Any] = {}
        """The tasks of chunks by their keys, for graphs that hold a task in place of its key."""
        said = np.asarray(array.chunks[0], dtype=float)
        if not np.isnan(said).any():
            self._known = said.astype(np.intp)

    # What is known of the chunks

    @property
    def lengths(self) -> IntArray:
        """Rows of every chunk; read once if Dask does not know them."""
        if self._known is None:
            graph, rows, _ = self._keys
            outcomes = {f"length-{i}": (length_of, list(keys)) for i, keys in enumerate(rows)}
            found = _Pass(graph, outcomes, list(outcomes), "lengths", QUIET, self).run(listed)
            self._known = np.asarray(found, dtype=np.intp)
        return self._known

    @property
    def starts(self) -> IntArray:
        """The number of the first row of every chunk."""
        return np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.intp)

    @property
    def n_rows(self) -> int:
        return int(self.lengths.sum())

    @property
    def n_counted(self) -> int:
        return self.n_rows if self._weights is None else int(sum(self._counted.counts))

    @cached_property
    def _counted(self) -> _Counts:
        """Rows of positive weight in every chunk: one look at the weights alone."""
        graph, _, weights = self._keys
        work = Work(_count, "look at sample_weight", 1, lengths=self.lengths)
        name = _name("weights")
        tasks: dict[Any, Any] = {f"{name}-work": work}
        tasks.update({(name, i): (_fold_weights, f"{name}-work", key, i) for i, key in enumerate(weights or [])})
        leaves = [(name, i) for i in range(len(self.lengths))]
        counts: _Counts | None = _Pass(graph, tasks, leaves, "sample_weight", QUIET, self).run(merged)
        if counts is None or not counts.total > 0:
            raise DataError("sample_weight is zero in every row: at least one row must count.")
        return counts

    @cached_property
    def _keys(self) -> tuple[Any, list[list[Any]], list[Any] | None]:
        """The optimised collections, the keys of every chunk's pieces, and those of the weights."""
        dask = import_dask()
        found = dask.optimize(self.array) if self._weights is None else dask.optimize(self.array, self._weights)
        held = {**_persisted(self.array, found[0]), **_persisted(self._weights, found[-1])}
        rows = [[held.get(key, key) for key in keys] for keys in found[0].__dask_keys__()]
        weights = None if self._weights is None else [held.get(key, key) for key in found[1].__dask_keys__()]
        self._inner = _used_nowhere_else(dask, found[0].__dask_graph__(), [key for keys in rows for key in keys])
        return list(found), rows, weights

    def for_gram(self, gram: str, memory_limit: int | str) -> RowSource:
        """All rows in memory for exact tiles, whose passes workers run if there is a cluster."""
        if gram != "tiled":
            return self
        from biclique.rows.dask_tiles import DaskSpread

        what = f"gram='tiled' on a cluster: all {self.n_rows} rows, here and on every worker,"
        way_out = "raise memory_limit, or use gram='nystroem', for which rows stay where they are."
        require(16 * self.n_rows * self.n_columns, parse_memory_limit(memory_limit), what, way_out)
        found = self.map(lambda block: (block.rows, block.weights), "rows", QUIET)
        if not found:
            raise self._no_rows()
        gathered = ArrayRows(*_joined(found), self.names)
        client = _active_client(import_dask())
        gathered.spread, gathered.said = None if client is None else DaskSpread(client), self.said
        return gathered

    def _no_rows(self) -> DataError:
        chunks = len(self.lengths)
        told = "its only chunk is" if chunks == 1 else f"all {chunks} chunks are"
        return DataError(
            f"X has no rows ({told} empty): at least 2 are needed. Look at the files or the filter that X is made of."
        )

    # The three verbs

    def draw(self, size: int, random: np.random.RandomState) -> tuple[Rows, FloatArray]:
        counts = self.lengths if self._weights is None else np.asarray(self._counted.counts, dtype=np.intp)
        numbers = draw_numbers(int(counts.sum()), size, random)
        before = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        chosen = {  # for the first row of every chunk: which of its counted rows
            int(start): numbers[np.searchsorted(numbers, first) : np.searchsorted(numbers, last)] - first
            for start, first, last, n in zip(self.starts, before[:-1], before[1:], self.lengths, strict=True)
            if n
        }
        touched = [i for i, start in enumerate(self.starts) if self.lengths[i] and len(chosen[int(start)])]
        if not touched:
            raise self._no_rows()

        def taken(block: Block) -> list[tuple[Rows, FloatArray]]:
            places = np.flatnonzero(block.weights > 0)[chosen[block.start]]
            return [(block.rows[places], block.weights[places])]

        rows, weights = _joined(self._sum(taken, "draw", QUIET, chunks=touched))
        check_values(rows, self.names)  # of a chunk alone it does not matter if all values are tiny
        return rows, weights

    def _blocks(self) -> Iterator[Block]:
        raise TypeError("chunks of Dask are looked at on the workers")

    def sum(self, function: Callable[[Block], Sum], what: str, progress: Progress, rank: int = 1) -> Sum:
        found: Sum | None = self._sum(function, what, progress, ROWS_PER_RANK * rank)
        self._checked = True
        if found is None:
            raise self._no_rows()
        return found

    def map(
        self,
        function: Callable[[Block], Found],
        what: str,
        progress: Progress,
        chunks: Sequence[int] | None = None,
    ) -> list[Found]:
        """Of all chunks, or of some."""
        found: list[Found] = self._sum(lambda block: [function(block)], what, progress, chunks=chunks) or []
        self._checked = True
        return found

    def _sum(
        self,
        function: Callable[[Block], Any],
        what: str,
        progress: Progress,
        least: int = 1,
        chunks: Sequence[int] | None = None,
    ) -> Any:
        """Σ of a function over chunks: tasks of at least so many rows, then a tree."""
        collections, rows, weights = self._keys
        name = _name(what)
        told = f"pass over the rows for the {what}"
        check = None if self._checked else self._check
        work = Work(function, told, self.n_columns, self.names, check, self.lengths)
        tasks: dict[Any, Any] = {f"{name}-work": work}
        leaves: list[Any] = []
        for group in _grouped(self.lengths, range(len(rows)) if chunks is None else chunks, least):
            leaves.append((name, len(leaves)))
            chunks_of_rows = [[self._inner.get(key, key) for key in rows[i]] for i in group]
            given = None if weights is None else [weights[i] for i in group]
            tasks[leaves[-1]] = (fold, f"{name}-work", chunks_of_rows, given, group)
        return _Pass(collections, tasks, leaves, what, progress, self).run(merged)

    # Lazy results

    def later(
        self, function: Callable[[Rows], Array], columns: int | None, dtype: DTypeLike, *, checked: bool = False
    ) -> Array:
        dask = import_dask()
        known = self._known is not None
        work = Work(
            lambda block: function(block.rows),
            "computation of a lazy result",
            self.n_columns,
            self.names,
            None if checked else no_check,
            self.lengths if known else None,
        )
        holder = np.empty((), dtype=object)
        holder[()] = LaterWork(work, columns, np.dtype(dtype))
        lengths = tuple(int(x) for x in self.lengths) if known else self.array.chunks[0]
        shape = (0,) if columns is None else (0, 0)
        return dask.array.blockwise(  # type: ignore[no-any-return]
            call_later,
            "i" if columns is None else "ik",
            self.array,
            "ij",
            dask.array.from_array(np.arange(len(lengths)), chunks=1, name=_name("numbers")),
            "i",
            dask.array.from_array(holder, chunks=(), name=_name("work"), asarray=False),
            "",
            new_axes={} if columns is None else {"k": columns},
            adjust_chunks={"i": lengths},
            align_arrays=False,
            concatenate=True,
            name=_name("later"),
            dtype=np.dtype(dtype),
            meta=np.empty(shape, dtype),
        )


def no_check(rows: Rows, numbers: Sequence[int] | np.ndarray) -> None:
    """Values are looked at; the kernel asks nothing more of new rows."""


def _name(what: str) -> str:
    return f"biclique-{what.replace(' ', '-')}-{uuid4().hex[:8]}"


def _persisted(collection: Any, optimised: Any) -> dict[Any, Any]:
    """Chunks that are on the workers already, by key: what the optimised graph lost, a future stands for."""
    if collection is None:
        return {}
    left = dict(optimised.__dask_graph__())
    return {
        key: node for key, node in dict(collection.__dask_graph__()).items() if key not in left and _is_future(node)
    }


def _is_future(node: Any) -> bool:
    return hasattr(node, "key") and hasattr(node, "release")


def _used_nowhere_else(dask: Any, graph: Any, keys: Sequence[Any]) -> dict[Any, Any]:
    """Those keys that stand for tasks, not for data, and that no other task of a graph needs.

    Such a task may stand inside the one that uses it: rows are read where they are worked on, and do not travel.
    """
    tasks = {key: node for key, node in dict(graph).items() if dask.core.istask(node)}
    users = Counter(other for node in tasks.values() for other in dask.core.get_dependencies(graph, task=node))
    found = {}
    for key in keys:
        name, uses = key, 0
        while name in tasks and users[name] == uses:
            found[key] = tasks[name]
            name, uses = getattr(found[key], "target", None), 1  # another name for one task: Dask makes such
    return found


def _grouped(lengths: IntArray, chunks: Sequence[int], least: int) -> list[list[int]]:
    """Consecutive chunks in groups of at least so many rows: by the lengths alone. What is left joins the last."""
    groups: list[list[int]] = []
    current: list[int] = []
    rows = 0
    for i in chunks:
        current.append(i)
        rows += int(lengths[i])
        if rows >= least:
            groups.append(current)
            current, rows = [], 0
    if current and groups:
        groups[-1] += current
    elif current:
        groups.append(current)
    return groups


@dataclass
class _Counts:
    """Of the weights of some chunks."""

    counts: list[int]
    total: float
    squares: float

    def __iadd__(self, other: _Counts) -> _Counts:
        self.counts += other.counts
        self.total += other.total
        self.squares += other.squares
        return self


def _count(block: Block) -> _Counts:
    w = block.weights
    return _Counts([int((w > 0).sum())], float(w.sum()), float(w @ w))


def _fold_weights(work: Work, weights: Any, chunk: int) -> Outcome:
    """Of a chunk's weights alone; an empty chunk counts nothing."""
    found = fold(work, [[np.zeros((work.place(chunk).length, 1))]], [weights], [chunk])
    if found.failure is None and found.value is None:
        found.value = _Counts([0], 0.0, 0.0)
    return found


def _joined(pieces: Sequence[tuple[Rows, FloatArray]]) -> tuple[Rows, FloatArray]:
    """Rows of several chunks with their weights, one below the other."""
    rows, weights = zip(*pieces, strict=True)
    stacked = sparse.vstack(rows, format="csr") if any(map(sparse.issparse, rows)) else np.concatenate(rows)
    return stacked, np.concatenate(weights)


# Running a pass


class _Pass:
    """One graph, by the active client if there is one, else by the scheduler that Dask is set to: threads."""

    def __init__(
        self,
        collections: Any,
        tasks: dict[Any, Any],
        leaves: list[Any],
        what: str,
        progress: Progress,
        source: DaskRows,
    ) -> None:
        self.collections, self.tasks, self.leaves, self.source = collections, tasks, leaves, source
        self.told, self.progress = f"pass over the rows for the {what}", progress
        self.name = _name("pass")

    def run(self, add: Callable[[Sequence[Outcome]], Outcome]) -> Any:
        """What all tasks return together: added in a tree, or listed."""
        dask = import_dask()
        level, keys = 0, list(self.leaves)
        while len(keys) > 1 or level == 0:
            level += 1
            width = FAN_IN if add is merged else len(keys)
            groups = [keys[top : top + width] for top in range(0, len(keys), width)]
            keys = [(f"{self.name}-{level}", j) for j in range(len(groups))]
            self.tasks.update({key: (add, group) for key, group in zip(keys, groups, strict=True)})
        root = _delayed(self.collections, self.tasks, keys[0])
        self.progress.share(self.told, 0.0)
        scheduler = dask.base.get_scheduler(collections=[root])
        client = getattr(scheduler, "__self__", None)
        try:
            found = self._threads(dask, root) if client is None else self._cluster(client, root)
        except Exception as error:
            named = self._named(error, client)
            if named is error:
                raise
            raise named from error
        self.progress.share(self.told, 1.0)
        for text, category in found.warned:
            warn_user(text, category)
        if found.failure is not None:
            raise found.failure.named(self.told)
        return found.value

    def _threads(self, dask: Any, root: Any) -> Outcome:
        done, leaves = 0, set(self.leaves)

        def finished(key: Any, *_: Any) -> None:
            nonlocal done
            if key in leaves:
                done += 1
                self.progress.share(self.told, min(done / len(leaves), 0.99))

        with dask.callbacks.Callback(posttask=finished):
            return dask.compute(root)[0]  # type: ignore[no-any-return]

    def _cluster(self, client: Any, root: Any) -> Outcome:
        future = client.compute(root)
        try:
            while not self._finished(future):
                share = client.run_on_scheduler(share_done, self.leaves[0][0])
                self.progress.share(self.told, min(share, 0.99))
            return future.result()  # type: ignore[no-any-return]
        except BaseException:
            future.cancel()
            raise
        finally:
            future.release()

    def _finished(self, future: Any) -> bool:
        """Wait until a future is done; if a bar is shown, for a moment at a time."""
        try:
            import_distributed().wait(future, timeout=POLL_SECONDS if self.progress.enabled else None)
        except TimeoutError:
            return False
        return True

    def _named(self, error: Exception, client: Any) -> Exception:
        """An error of the cluster, or of a chunk that cannot be read, with the pass and the chunk."""
        if any(note.startswith(NOTE) for note in getattr(error, "__notes__", [])):
            return error
        if type(error).__name__ == "CommClosedError":  # the scheduler is gone
            return DataError(f"in the {self.told}: the cluster does not answer any more ({error}).")
        if isinstance(error, BicliqueError):  # of a table of ours, which names its file
            return type(error)(f"in the {self.told}: ", *error.args)
        key = getattr(error, "task", None)
        if type(error).__name__ == "KilledWorker":
            return DataError(
                f"{self._chunk_of(key)}, in the {self.told}: every worker that took it died ({error}). If it does not "
                "fit a worker's memory, use smaller chunks or a lower rank."
            )
        rows = self.source._keys[1]
        for i, keys in enumerate(rows):
            broken = self._read(client, keys)
            if broken is not None:
                return DataError(
                    f"chunk {i} of X, in the {self.told}: it cannot be read ({type(broken).__name__}: {broken})."
                )
        error.add_note(f"{NOTE} {self.told}.")
        return error

    def _read(self, client: Any, keys: list[Any]) -> Exception | None:
        """What reading a chunk by itself raises."""
        dask = import_dask()
        name = _name("read")
        root = _delayed(self.collections, {name: (length_of, keys)}, name)
        future = None if client is None else client.compute(root)
        try:
            if future is None:
                dask.compute(root, scheduler="sync")
            else:
                future.result()
        except Exception as error:
            return error.with_traceback(None)  # its frames would hold on to the future
        finally:
            if future is not None:
                future.release()
        return None

    def _chunk_of(self, key: Any) -> str:
        rows = self.source._keys[1]
        for i, keys in enumerate(rows):
            if key in keys:
                return f"chunk {i} of X"
        if isinstance(key, tuple) and len(key) == 3 and key[1] in range(len(rows)) and key not in self.tasks:
            return f"chunk {key[1]} of X"  # what was fused into a chunk's task has its number
        if key in self.leaves:
            numbers = self.tasks[key][-1]
            return f"chunk {numbers[0]} of X" if len(numbers) == 1 else f"chunks {numbers[0]} to {numbers[-1]} of X"
        return f"a task ({key})"


def share_done(name: str, dask_scheduler: Any = None) -> float:
    """Asked on the scheduler: the share of a group of tasks that is done."""
    group = dask_scheduler.task_groups.get(name)
    if group is None:
        return 0.0
    states = dict(group.states)
    done = sum(states.get(state, 0) for state in ("memory", "released", "forgotten", "erred"))
    return float(done / max(sum(states.values()), 1))


# From what users have


def open_dask_rows(X: Any, sample_weight: Any, memory_limit: int | str, check: Check) -> DaskRows:  # noqa: ARG001
    """A row source of a Dask array or data frame; ``sample_weight`` may be one of Dask's too."""
    dask = import_dask()
    array, names = as_array(X)
    source = DaskRows(array, None, names, check)
    told = []
    if source._known is None:
        told.append("the lengths of the chunks were not known: they are read once")
    if sample_weight is not None:
        lengths = source.lengths
        if not lengths.any():
            raise source._no_rows()
        source = DaskRows(array, _weights(dask, sample_weight, tuple(map(int, lengths))), names, check, lengths)
    client = _active_client(dask)
    if client is not None:
        told.append(f"tasks run on {client.scheduler.address}, dashboard: {_dashboard(client)}")
    source.said = "; ".join(told)
    return source


def _active_client(dask: Any) -> Any:
    """The client that Dask would use now; none is ever made here."""
    scheduler = dask.base.get_scheduler()
    client = getattr(scheduler, "__self__", None)
    return client if hasattr(client, "scheduler") else None


def _dashboard(client: Any) -> str:
    try:
        return str(client.dashboard_link or "none")
    except (KeyError, AttributeError):
        return "none"


FIRST_ARRAYS = "leave it off (DASK_ARRAY__QUERY_PLANNING=False when Python starts)"


def frame_values(frame: Any, name: str) -> Any:
    """The array of a data frame or series."""
    try:
        return frame.to_dask_array()
    except (AttributeError, NotImplementedError) as error:  # Dask's second implementation of arrays has none of them
        try:
            return _array_of_partitions(frame)
        except (AttributeError, NotImplementedError, TypeError, ValueError):
            raise DataError(
                f"{name} is a {type(frame).__name__}, and this version of Dask cannot turn one into an array while its "
                f"setting array.query-planning is on ({error}): {FIRST_ARRAYS}."
            ) from error


def _array_of_partitions(frame: Any) -> Any:
    """The same by Dask's protocol of collections: an array of as many chunks, and another graph in its place.

    Rows are counted first: arrays of the second implementation cannot be computed if a length is not known.
    """
    dask = import_dask()
    partitions = frame.to_delayed()
    lengths = tuple(int(n) for n in np.asarray(frame.map_partitions(len).compute()))
    kinds = list(frame.dtypes) if frame.ndim == 2 else [frame.dtype]
    more = (len(kinds),) if frame.ndim == 2 else ()
    dtype = np.result_type(*kinds)
    template = dask.array.from_array(np.zeros(len(partitions)), chunks=1, name=_name("partitions")).map_blocks(
        np.asarray,
        chunks=(lengths, *((width,) for width in more)),
        new_axis=list(range(1, frame.ndim)) or None,
        dtype=dtype,
        meta=np.empty((0,) * frame.ndim, dtype),
    )
    # Partitions share one graph: it is added once, then what is new of each.
    graph: dict[Any, Any] = dict(partitions[0].__dask_graph__())
    for key, partition in zip(dask.core.flatten(template.__dask_keys__()), partitions, strict=True):
        values = dask.delayed(np.asarray)(partition, dask_key_name=key)
        graph.update(values.__dask_graph__().layers[values.__dask_layers__()[0]])
    rebuild, arguments = template.__dask_postpersist__()
    return rebuild(graph, *arguments)


def as_array(X: Any) -> tuple[Any, list[str] | None]:
    """A Dask array of two axes, and the names of a frame's columns."""
    names = None
    if isinstance(getattr(X, "npartitions", None), int) and hasattr(X, "columns"):
        if len(X.shape) != 2:
            raise DataError(
                f"X must have two axes, rows and columns, and is a {type(X).__name__} of one: pass X.to_frame()."
            )
        check_no_dates(X)
        names = [str(name) for name in X.columns]
        text = [name for name, kind in zip(names, X.dtypes, strict=True) if getattr(kind, "kind", "O") not in "buif"]
        if text:
            raise DataError(
                f"X has columns that are not numbers: {', '.join(map(repr, text[:10]))}. Drop them, or turn them into "
                "numbers first."
            )
        kinds = {kind.kind if isinstance(kind, np.dtype) else "own" for kind in X.dtypes}
        if "own" in kinds or ("b" in kinds and len(kinds) > 1):
            X = X.astype(np.float64)  # pandas' own kinds have missing values that are no NaN; booleans beside numbers
        X = frame_values(X, "X")
    if getattr(X, "chunks", None) is None and hasattr(X, "map_blocks"):
        raise DataError(
            "X is an array without chunks: Dask made it of a data frame while its setting array.query-planning was on. "
            f"Pass the frame itself, or {FIRST_ARRAYS}."
        )
    if not isinstance(getattr(X, "chunks", None), tuple) or hasattr(X, "coords"):
        raise DataError(
            f"X is a {type(X).__name__} of Dask, and an array or a data frame is needed: pass one, such as .data of an "
            "xarray.DataArray."
        )
    if len(X.shape) != 2:
        raise DataError(f"X must have two axes, rows and columns, got shape {X.shape}.")
    if X.shape[1] == 0:
        raise DataError("X has no columns: at least 1 is needed.")
    if X.dtype is not None and X.dtype.kind not in "buif":
        numbers = " (X.astype(float), if each of them is one)" if X.dtype == object else ""
        raise DataError(f"X holds {X.dtype}, not numbers: drop such columns or turn them into numbers{numbers}.")
    if np.isnan(X.shape[1]):
        raise DataError("the number of columns of X is not known to Dask: call X.compute_chunk_sizes() first.")
    return X, names


def _weights(dask: Any, sample_weight: Any, lengths: tuple[int, ...]) -> Any:
    """Multiplicities as a Dask array in the chunks of the rows."""
    if hasattr(sample_weight, "to_dask_array"):
        sample_weight = frame_values(sample_weight, "sample_weight")
    if not hasattr(sample_weight, "__dask_graph__"):
        from biclique.rows.checks import check_weights

        return dask.array.from_array(check_weights(sample_weight, sum(lengths)), chunks=(lengths,))
    chunks = sample_weight.chunks
    if len(chunks) != 1:
        raise DataError(
            f"sample_weight must have one axis, and has shape {sample_weight.shape}: pass one number for each row (one "
            "column)."
        )
    known = not np.isnan(chunks[0]).any()
    if known and sum(chunks[0]) != sum(lengths):
        raise DataError(
            f"sample_weight has {sum(chunks[0])} numbers, X has {sum(lengths)} rows: give one for each row."
        )
    if len(chunks[0]) != len(lengths):
        raise DataError(
            f"sample_weight has the chunks {chunks}, X has {len(lengths)} chunks of rows: give one number for each row "
            "in the same chunks (sample_weight.rechunk((X.chunks[0],)))."
        )
    if known and tuple(chunks[0]) != lengths:
        raise DataError("sample_weight has chunks of other lengths than X: use sample_weight.rechunk((X.chunks[0],)).")
    return sample_weight
