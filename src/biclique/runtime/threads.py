"""Threads over independent pieces of work, while BLAS runs with one thread."""

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from multiprocessing import current_process
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from biclique._typing import FloatArray

Result = TypeVar("Result")
Tick = Callable[[float], None]
"""Told the share of one pass that is done, from 0 to 1."""

POLL_SECONDS = 0.1
"""Between two looks at running threads, for progress and Ctrl-C."""

PANEL = 512
"""Rows of one piece of work, fixed so that sums never depend on the number of threads."""

SMALL_PRODUCT = 2**24
"""Multiplications that take a few milliseconds: to start threads for them takes as long."""


class _OneThread:
    """Holds the pools of one kind to one thread, from the first holder until the last has left, whoever that is."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.lock = threading.Lock()
        self.holders = 0
        self.pools: ThreadpoolController | None = None
        self.before = ExitStack()

    def __enter__(self) -> None:
        with self.lock:
            pools = _pools(len(sys.modules))
            if pools is not self.pools:  # the first holder, or libraries were loaded since
                self.pools = pools
                for library in pools.select(user_api=self.kind).lib_controllers:
                    # From any thread: threadpoolctl 3.8 obeys only the one thread that first set a number.
                    set_threads = getattr(library, "_real_set_num_threads", library.set_num_threads)
                    self.before.callback(set_threads, library.num_threads)
                    set_threads(1)
            self.holders += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.holders -= 1
            if self.holders == 0:
                self.pools = None
                self.before.close()


@lru_cache(maxsize=1)
def _pools(n_modules: int) -> ThreadpoolController:  # noqa: ARG001
    """The pools of the process. Looking for them takes milliseconds, so it is done only after new imports."""
    return ThreadpoolController()


class _Here(threading.local):
    """What holds in this thread: OpenMP counts its threads for each thread of ours."""

    def __init__(self) -> None:
        self.openmp = _OneThread("openmp")
        self.alone = False


_blas = _OneThread("blas")
_here = _Here()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold every BLAS pool of the process, and the OpenMP pools of this thread, to one thread.

    Our own threads run over tiles instead: faster for small products, and the same sums in the same order for any
    number of threads. Nests, and may be entered from several threads.
    """
    # OpenMP first and last: a BLAS on top of it sets the number of this thread too, and another thread may lift that.
    with _here.openmp, _blas:
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Work of this thread, BLAS included, runs in it alone and ignores ``n_jobs``, because other threads are busy."""
    before, _here.alone = _here.alone, True
    try:
        with single_threaded_blas():
            yield
    finally:
        _here.alone = before


def count_threads(n_jobs: int | None) -> int:
    """How many threads to use: None means every core this process may run on, as BLAS would.

    In a process of a ``multiprocessing.Pool`` it means one, because the pool has taken the cores. joblib would warn
    about processes, and none are started here.
    """
    if _here.alone:
        return 1
    asked = -1 if n_jobs is None else n_jobs
    if current_process().daemon:
        return max(asked, 1)
    return int(effective_n_jobs(asked))


class Stopped(Exception):
    """Raised inside a worker after an interrupt, to leave between two tiles."""


class Pulse:
    """What a worker calls between two tiles: it counts them, and leaves when the run was interrupted."""

    def __init__(self, total: int) -> None:
        self.total = max(total, 1)
        self.stop = threading.Event()
        self._done = 0
        self._lock = threading.Lock()

    def __call__(self) -> None:
        if self.stop.is_set():
            raise Stopped
        with self._lock:
            self._done += 1

    @property
    def share(self) -> float:
        return min(self._done / self.total, 1.0)


def run_groups(
    work: Callable[[int, Pulse], Result],
    n_groups: int,
    *,
    n_jobs: int | None,
    total: int = 1,
    tick: Tick | None = None,
) -> list[Result]:
    """``[work(0, pulse), …]``, in threads; the list is in order whoever finishes first.

    Ctrl-C stops every worker at its next tile, and is raised only when all have left.
    """
    return list(each_group(work, n_groups, n_jobs=n_jobs, total=total, tick=tick))


def each_group(
    work: Callable[[int, Pulse], Result],
    n_groups: int,
    *,
    n_jobs: int | None,
    total: int = 1,
    tick: Tick | None = None,
) -> Iterator[Result]:
    """The same one by one, in order; a result that was taken is not kept here."""
    pulse = Pulse(total)

    def quiet(group: int) -> Result:
        # What is not finite is an error of the caller's, with a way out.
        with np.errstate(over="ignore", invalid="ignore"):
            return work(group, pulse)

    n_threads = min(count_threads(n_jobs), n_groups) if n_groups > 1 else n_groups  # to count takes a millisecond
    with single_threaded_blas():
        if n_threads <= 1 and tick is None:
            yield from map(quiet, range(n_groups))
            return
        with ThreadPoolExecutor(max(n_threads, 1), initializer=lambda: _here.openmp.__enter__()) as pool:
            futures = deque(pool.submit(quiet, group) for group in range(n_groups))
            try:
                pending = set(futures)
                while pending:
                    done, pending = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                    while done:
                        done.pop().result()  # a failed worker stops the others now, not at the end
                    if tick is not None:
                        tick(pulse.share)
                    while futures and futures[0].done():
                        yield futures.popleft().result()
            except BaseException:
                pulse.stop.set()
                for future in futures:
                    future.cancel()
                raise


def run_panels(
    work: Callable[[slice], Result], n: int, rows: int, *, n_jobs: int | None, tick: Tick | None = None
) -> list[Result]:
    """``work`` of every panel of so many of n rows, in threads; the list is in order."""
    tops = range(0, n, rows)

    def of_panel(number: int, pulse: Pulse) -> Result:
        result = work(slice(tops[number], min(tops[number] + rows, n)))
        pulse()
        return result

    return run_groups(of_panel, len(tops), n_jobs=n_jobs, total=len(tops), tick=tick)


def panel_product(K: Any, V: FloatArray, *, n_jobs: int | None, panel: int = PANEL) -> FloatArray:
    """K @ V for a stored K, dense or sparse, in panels of rows, each summed by one thread."""
    V = np.asarray(V, dtype=np.float64)
    out = np.empty((K.shape[0], V.shape[1]))

    def multiply(rows: slice) -> None:
        out[rows] = K[rows] @ V

    small = K.shape[0] * K.shape[1] * V.shape[1] <= SMALL_PRODUCT
    run_panels(multiply, K.shape[0], panel, n_jobs=1 if small else n_jobs)
    return out


def given_panel(n: int) -> int:
    """Rows of a given matrix that are looked at together: some 2 MiB of them."""
    return int(np.clip(2**18 // max(n, 1), 1, PANEL))
