"""Dask itself, and the client that runs its tasks."""

from __future__ import annotations

from typing import Any

from biclique.exceptions import optional


def import_dask() -> Any:
    """Dask, or the line that installs it."""
    needed = "Dask collections need dask with its arrays: pip install '.[dask]' in a clone of biclique"
    optional("dask.array", needed)
    return optional("dask", needed)


def active_client() -> Any:
    """The client that Dask would use now; none is ever made here."""
    client = getattr(import_dask().base.get_scheduler(), "__self__", None)
    return client if hasattr(client, "scheduler") else None
