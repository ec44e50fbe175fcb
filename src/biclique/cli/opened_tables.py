"""A table, opened once: whole in memory, or lazily through Dask if it does not fit or if its rows are on a cluster."""

import logging
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from glob import glob
from importlib.util import find_spec
from multiprocessing import resource_tracker
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from biclique._typing import Array, FloatArray, IntArray
from biclique.datasets.paper import SHIPPED, load_shipped
from biclique.exceptions import BicliqueError, DataError, TableError, printable
from biclique.runtime.memory import free_memory
from biclique.runtime.threads import count_threads
from biclique.tables.atomic_files import files
from biclique.tables.frames import as_frame, dask, pandas
from biclique.tables.parts import check_unchanged, of_parts
from biclique.tables.preparer import TablePreparer
from biclique.tables.reading import COPIES, find_format, open_lazily, read_frame, size_of
from biclique.tables.text_form import TextForm

INPUT = "standard input"
BEGINNINGS = {b"PAR1": ".parquet", b"\x93NUM": ".npy", b"PK\x03\x04": ".npz"}
"""The first bytes of tables that are not text, with the endings of their names."""
ROOMY = 2**29
"""Bytes of a table in memory, copies counted, beyond which a file that is quick to read is read in parts anyway."""
SHOWN_ROWS = 20_000
"""Rows of a table larger than memory that show what sets clusters apart, and that a report is made of."""
CONNECT_SECONDS = 30
"""Seconds after which a scheduler, or its workers, count as absent."""
QUIET_TRACKER = "ignore::UserWarning:multiprocessing.resource_tracker"
"""For the process that unlinks semaphores of killed workers: the user need not read of it."""
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""What workers run once they are imported, for Windows: see ``deaf_children``."""


@dataclass
class OpenedTable:
    """The columns of a table as numbers, booleans, dates and texts."""

    frame: Any
    """Of pandas, or of Dask."""
    as_written: Any
    """The same rows, the fields of a text file as they are written."""
    streamed: bool = False
    """Whether the frames are of Dask."""
    lengths: Sequence[int] = ()
    """Rows of every partition of a Dask frame, once they are prepared."""
    preparer: TablePreparer = field(init=False)
    X: Array = field(init=False)  # (rows that are kept, prepared columns)
    kept: NDArray[np.bool_] = field(init=False)  # (rows of the table,)

    @property
    def names(self) -> list[str]:
        return list(self.frame.columns)

    def prepare(self, preparer: TablePreparer) -> Array:
        """Fit the preparer; the rows that it keeps as numbers."""
        self.preparer = preparer.fit(self.frame)
        if not self.streamed:
            self.X, self.kept = preparer.transform_rows(self.frame)
            return self.X
        kept = of_parts(preparer.kept, self.frame)
        self.lengths, self.kept = [len(part) for part in kept], np.concatenate(kept)
        self.X = preparer.transform(self.frame).to_dask_array(lengths=[int(part.sum()) for part in kept])
        return self.X

    def column(self, name: str) -> Any:
        """A column as a pandas series."""
        return self.frame[name].compute() if self.streamed else self.frame[name]

    def pieces(self, *, as_written: bool = False) -> Iterator[Any]:
        """The rows as pandas frames."""
        frame = self.as_written if as_written else self.frame
        return (part.compute() for part in frame.to_delayed()) if self.streamed else iter([frame])

    def shown(self, seed: int) -> tuple[Any, FloatArray, IntArray]:
        """All rows that are kept, or some: their columns, their rows of X, and which rows of X these are."""
        n = int(self.kept.sum())
        if not self.streamed:
            return self.frame[self.kept], np.asarray(self.X), np.arange(n)
        numbers = np.sort(np.random.RandomState(seed).choice(n, min(n, SHOWN_ROWS), replace=False))
        chosen = np.zeros(len(self.kept), dtype=bool)
        chosen[np.flatnonzero(self.kept)[numbers]] = True
        own = [(mask,) for mask in np.split(chosen, np.cumsum(self.lengths)[:-1])]
        frame = pandas().concat(of_parts(lambda part, mask: part[mask], self.frame, own), ignore_index=True)
        return frame, self.preparer.transform_rows(frame)[0], numbers


def open_table(
    path: str,
    form: TextForm,
    *,
    texts: Collection[str] = (),
    append: bool = False,
    lazily: bool = False,
    sparing: bool = False,
) -> OpenedTable:
    """The table of a file, of a data set of scikit-learn, or with ``lazily`` of all files of a pattern.

    texts: columns whose fields stay as they are written, such as ids.
    append: every field of a text file is needed as it is written, too.
    sparing: a large file of numbers is read in parts even if it fits; text takes too long to read in every pass.
    """
    if is_shipped(path):
        frame = _shipped(path.replace("-", "_"))
        return OpenedTable(frame, frame)
    if not lazily and not Path(path).suffix and not Path(path).exists():
        raise TableError(f"{path}: neither a file nor a data set of scikit-learn; those are {', '.join(SHIPPED)}.")
    paths = _files(path) if lazily else [path]
    kind = find_format(paths[0])
    if kind is not None and kind.open is not None and not lazily:
        spared = sparing and not kind.is_text and find_spec("dask") is not None
        lazily = COPIES * size_of(path) > (min(ROOMY, free_memory()) if spared else free_memory())
    read = partial(open_lazily if lazily else read_frame, form=form)
    parts = [read(one, texts=texts) for one in paths]
    for one, part in zip(paths, parts, strict=True):
        if list(part.columns) != list(parts[0].columns):
            raise TableError(f"{printable(one)}: has other columns than {printable(paths[0])}; take them apart.")
    frame = as_written = parts[0]
    if len(parts) > 1:
        frame = as_written = dask("dask.dataframe").concat(parts)
        frame.attrs = parts[0].attrs
    elif append and kind is not None and kind.is_text:
        as_written = read(paths[0], texts=list(frame.columns))
        check_unchanged(Path(paths[0]), frame.attrs["stamp"], as_written.attrs["stamp"])
    return OpenedTable(frame, as_written, streamed=lazily)


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


COUNTED_FROM_0 = re.compile(r"(?P<rows>rows? \d+(?:, \d+)*)(?P<more> …)?(?:, column (?P<column>\d+))?, counted from 0")
"""How errors of the library name rows of X, and perhaps a column."""


@contextmanager
def in_rows_of_table(kept: NDArray[np.bool_], names: NDArray[Any], first_row: int = 0) -> Iterator[None]:
    """Errors inside name rows as the table counts them, from 1 and with those that were left out; columns by name."""
    numbers = np.flatnonzero(kept) + first_row + 1

    def in_table(found: re.Match[str]) -> str:
        rows = re.sub(r"\d+", lambda number: str(numbers[int(number[0])]), found["rows"])
        column = "" if found["column"] is None else f", column {str(names[int(found['column'])])!r}"
        return f"{rows}{found['more'] or ''}{column}"

    try:
        yield
    except BicliqueError as error:
        error.args = (COUNTED_FROM_0.sub(in_table, str(error)),)
        raise


@contextmanager
def table_file(name: str) -> Iterator[str]:
    """The file of a table: a copy of standard input for ``-``, which is removed afterwards."""
    if name != "-":
        yield name
        return
    stream: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
    if stream is None or sys.stdin.isatty():
        raise TableError(f"{INPUT}: there is no table in it: send one, as in biclique cluster - -k 3 < table.csv.")
    beginning = stream.read(4)
    path = files.name(Path(tempfile.gettempdir()), BEGINNINGS.get(beginning, ".csv"))
    try:
        path.touch(0o600, exist_ok=False)
        with path.open("wb") as file:
            file.write(beginning)
            shutil.copyfileobj(stream, file)
        yield str(path)
    except BicliqueError as error:
        error.args = (str(error).replace(str(path), INPUT),)
        raise
    finally:
        files.remove(path)


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes and threads that are started inside never hear Ctrl-C, which reaches them too: we end them.

    A signal that comes meanwhile is heard afterwards. Windows cannot do that.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it would unblock the signal if it were started inside
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def connected(where: str | None, jobs: int | None) -> Iterator[None]:
    """A client of the scheduler at an address; for "local", of processes on this machine, one for each core."""
    if where is None:
        yield
        return
    distributed = dask("distributed")
    with ExitStack() as stack:
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable()  # Dask and its event loop write lines of their own about workers that come, go or are lost
        if where == "local":
            os.environ.setdefault("PYTHONWARNINGS", QUIET_TRACKER)
            with deaf_children():
                cluster = distributed.LocalCluster(
                    n_workers=count_threads(jobs),
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address=None,
                    silence_logs=50,
                    preload=DEAF,
                )
            where = stack.enter_context(cluster)
        try:
            client = distributed.Client(where, timeout=CONNECT_SECONDS)
        except (OSError, ValueError, ImportError) as error:
            raise DataError(
                f"--dask {printable(where)}: no Dask scheduler answers there ({error}): give its address, such as "
                "tcp://10.0.0.1:8786, or local."
            ) from error
        stack.enter_context(client)
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError as error:
            raise DataError(
                f"--dask {printable(where)}: the scheduler has no workers, and none came in {CONNECT_SECONDS:g} s: "
                f"start some, as in dask worker {printable(where)}."
            ) from error
        yield
