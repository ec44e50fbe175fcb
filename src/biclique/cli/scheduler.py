"""A Dask cluster to work on: the scheduler at an address, or processes on this machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from biclique.exceptions import DataError, printable
from biclique.runtime.threads import count_threads
from biclique.tables.frames import dask

CONNECT_SECONDS = 30
"""Seconds after which a scheduler, or its workers, count as absent."""
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""What workers of this machine run first: Ctrl-C reaches them too, and it is for us to end them."""


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
