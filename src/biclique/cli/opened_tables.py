"""A table, opened once: whole in memory, or lazily through Dask if it does not fit or if its rows are on a cluster.

What differs between the two is here and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique._typing import Array, FloatArray, IntArray
from biclique.datasets.paper import SHIPPED, load_shipped
from biclique.exceptions import DataError, TableError, optional, printable
from biclique.runtime.memory import free_memory
from biclique.runtime.threads import count_threads
from biclique.tables.frames import as_frame, pandas
from biclique.tables.preparer import TablePreparer
from biclique.tables.reading import COPIES, find_format, open_lazily, read_frame, settle, size_of
from biclique.tables.text_form import TextForm

DASK = "a table larger than the memory and --dask need Dask: pip install 'biclique[dask]'"
"""The sentence about packages that are not installed."""
SHOWN_ROWS = 20_000
"""Rows of a table larger than memory that show what sets clusters apart, and that a report is made of."""
CONNECT_SECONDS = 30
"""Seconds after which a scheduler counts as absent."""


class OpenedTable(ABC):
    """The columns of a table as numbers, booleans, dates and texts."""

    streamed: bool
    names: list[str]
    """Of the columns."""
    notes: tuple[str, ...]
    """What may have been meant otherwise, such as a first line of numbers that could be names."""

    @abstractmethod
    def prepared(self, preparer: TablePreparer) -> tuple[Array, NDArray[np.bool_]]:
        """Fit the preparer; the rows as numbers, and which rows of the table these are."""

    @abstractmethod
    def column(self, name: str) -> Any:
        """A column as a pandas series."""

    @abstractmethod
    def weights(self, values: FloatArray, X: Any) -> Any:
        """One number for each row of X, as ``fit`` takes them."""

    @abstractmethod
    def pieces(self) -> Iterator[Any]:
        """The rows as pandas frames."""

    @abstractmethod
    def written(self) -> Iterator[Any]:
        """The same pieces, the fields of a text file as they are written."""

    @abstractmethod
    def shown(self, work: Work, seed: int) -> tuple[Any, FloatArray, IntArray]:
        """All rows that are kept, or some: their columns, their rows of X, and which rows of X these are."""

    @abstractmethod
    def constant(self, work: Work) -> list[str]:
        """Columns of X with a single value, as far as they are known without another pass."""


@dataclass(frozen=True)
class Work:
    """A table whose columns are sorted and whose rows are numbers."""

    table: OpenedTable
    ids: list[str]
    preparer: TablePreparer
    X: Array  # (rows that are kept, prepared columns)
    kept: NDArray[np.bool_]  # (rows of the table,)
    classes: list[str] | None  # of the rows that are kept
    weights: Array | None  # of the rows that are kept


@dataclass
class HeldTable(OpenedTable):
    """A pandas frame."""

    frame: Any
    as_written: Any
    streamed = False

    def __post_init__(self) -> None:
        self.names = list(self.frame.columns)
        self.notes = tuple(self.frame.attrs.get("notes", ()))

    def prepared(self, preparer: TablePreparer) -> tuple[Array, NDArray[np.bool_]]:
        return preparer.fit_rows(self.frame)

    def column(self, name: str) -> Any:
        return self.frame[name]

    def weights(self, values: FloatArray, X: Any) -> Any:  # noqa: ARG002
        return values

    def pieces(self) -> Iterator[Any]:
        yield self.frame

    def written(self) -> Iterator[Any]:
        yield self.as_written

    def shown(self, work: Work, seed: int) -> tuple[Any, FloatArray, IntArray]:  # noqa: ARG002
        frame = self.frame if work.kept.all() else self.frame[work.kept]
        return frame, np.asarray(work.X), np.arange(len(frame))

    def constant(self, work: Work) -> list[str]:
        names = work.preparer.get_feature_names_out()
        return [str(name) for name in names[np.ptp(work.X, axis=0) == 0]]


@dataclass
class LazyTable(OpenedTable):
    """A Dask frame."""

    frame: Any
    as_written: Any
    paths: list[str]
    notes: tuple[str, ...] = ()
    streamed = True

    def __post_init__(self) -> None:
        self.names = list(self.frame.columns)
        self.dask = optional("dask", DASK)
        self.lengths: list[int] = []
        """Rows of every partition, once they are prepared."""

    def prepared(self, preparer: TablePreparer) -> tuple[Array, NDArray[np.bool_]]:
        preparer.fit(self.frame)
        kept = self.dask.compute(*(self.dask.delayed(_kept)(preparer, part) for part in self.frame.to_delayed()))
        self.lengths = [len(part) for part in kept]
        X = preparer.transform(self.frame).to_dask_array(lengths=[int(part.sum()) for part in kept])
        return X, np.concatenate(kept)

    def column(self, name: str) -> Any:
        return self.frame[name].compute()

    def weights(self, values: FloatArray, X: Any) -> Any:
        return optional("dask.array", DASK).from_array(values, chunks=(X.chunks[0],))

    def pieces(self) -> Iterator[Any]:
        return (part.compute() for part in self.frame.to_delayed())

    def written(self) -> Iterator[Any]:
        return (part.compute() for part in self.as_written.to_delayed())

    def shown(self, work: Work, seed: int) -> tuple[Any, FloatArray, IntArray]:
        n = int(work.kept.sum())
        numbers = np.sort(np.random.RandomState(seed).choice(n, min(n, SHOWN_ROWS), replace=False))
        places, start, tasks = np.flatnonzero(work.kept)[numbers], 0, []
        for part, length in zip(self.frame.to_delayed(), self.lengths, strict=True):
            own = places[np.searchsorted(places, start) : np.searchsorted(places, start + length)] - start
            tasks.append(self.dask.delayed(_rows)(part, own))
            start += length
        frame = pandas().concat(self.dask.compute(*tasks), ignore_index=True)
        return frame, work.preparer.transform_rows(frame)[0], numbers

    def constant(self, work: Work) -> list[str]:
        variances = getattr(work.preparer.scaler_, "var_", ())
        scaled = [name for name in work.preparer.number_columns_ if work.preparer.kinds_[name] != "boolean"]
        return [name for name, variance in zip(scaled, variances, strict=False) if variance == 0]


def _kept(preparer: TablePreparer, part: Any) -> NDArray[np.bool_]:
    return preparer.kept(part) if preparer.missing == "drop" else np.ones(len(part), dtype=bool)


def _rows(part: Any, numbers: IntArray) -> Any:
    return part.iloc[numbers]


# Opening


def open_table(
    path: str, form: TextForm, *, texts: Collection[str] = (), append: bool = False, dask: bool = False
) -> OpenedTable:
    """The table of a file, of a data set of scikit-learn, or with ``dask`` of all files of a pattern.

    texts: columns whose fields stay as they are written, such as ids.
    append: every field of a text file is needed as it is written, too.
    """
    if is_shipped(path):
        frame = _shipped(path.replace("-", "_"))
        return HeldTable(frame, frame)
    if dask:
        return _open_lazily(_files(path), form, texts, append)
    if not Path(path).suffix and not Path(path).exists():
        raise TableError(f"{path}: neither a file nor a data set of scikit-learn; those are {', '.join(SHIPPED)}.")
    kind = find_format(path)
    if kind is not None and kind.open is not None and COPIES * size_of(path) > free_memory():
        return _open_lazily([path], form, texts, append)
    if append and kind is not None and kind.is_text:
        as_written = read_frame(path, form, as_text=True)
        return HeldTable(settle(as_written, form, texts=texts), as_written)
    frame = read_frame(path, form, texts=texts)
    return HeldTable(frame, frame)


def is_shipped(name: str) -> bool:
    """Whether this is a data set of scikit-learn; a file of that name goes first."""
    return name.replace("-", "_") in SHIPPED and not Path(name).exists()


def _shipped(name: str) -> Any:
    bunch = load_shipped(name)
    frame = as_frame(pandas().DataFrame(bunch.data, columns=bunch.feature_names), name)
    if bunch.target_names is not None:
        frame["target"] = [str(bunch.target_names[number]) for number in bunch.target]
    return frame


def _files(pattern: str) -> list[str]:
    """A file, or all of a folder or a pattern, in the order of their names; workers have folders of their own."""
    path = Path(pattern)
    if path.is_dir() and find_format(path) is None:
        found = [str(file) for file in path.iterdir() if find_format(file) is not None]
    else:
        found = [pattern] if path.exists() else glob(pattern, recursive=True)
    if not found:
        raise TableError(f"{printable(pattern)}: no such file, and no file has a name of this pattern.")
    return [str(Path(file).absolute()) for file in sorted(found)]


def _open_lazily(paths: Sequence[str], form: TextForm, texts: Collection[str], append: bool) -> LazyTable:
    parts = [_as_dask_frame(open_lazily(path, form, texts=texts)) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        if list(part.columns) != list(parts[0].columns):
            raise TableError(f"{printable(path)}: has other columns than {printable(paths[0])}; take them apart.")
    notes = tuple(getattr(parts[0], "attrs", {}).get("notes", ()))
    frame = optional("dask.dataframe", DASK).concat(parts) if len(parts) > 1 else parts[0]
    kind = find_format(paths[0])
    as_written = frame
    if append and len(paths) == 1 and kind is not None and kind.is_text:
        as_written = open_lazily(paths[0], form, texts=list(frame.columns))
    return LazyTable(frame, as_written, list(paths), notes)


def _as_dask_frame(collection: Any) -> Any:
    """A Dask array as a frame whose columns are called "0", "1", and so on."""
    if hasattr(collection, "columns"):
        return collection
    names = [str(j) for j in range(collection.shape[1])]
    return optional("dask.dataframe", DASK).from_dask_array(collection, columns=names)


# A cluster


@contextmanager
def connected(where: str | None, jobs: int | None) -> Iterator[None]:
    """A client of the scheduler at an address; for "local", of processes on this machine, one for each core."""
    if where is None:
        yield
        return
    distributed = optional("distributed", DASK)
    if where == "local":
        workers = count_threads(jobs)
        with (
            distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
            ) as cluster,
            distributed.Client(cluster),
        ):
            yield
        return
    try:
        client = distributed.Client(where, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, ImportError) as error:
        raise DataError(
            f"--dask {printable(where)}: no Dask scheduler answers there ({error}): give its address, such as "
            "tcp://10.0.0.1:8786, or local."
        ) from error
    with client:
        yield
